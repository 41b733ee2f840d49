"""tools/check: what it runs, and how it stops."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def check():
    """The script as a module."""
    spec = spec_from_loader("check", SourceFileLoader("check", str(ROOT / "tools" / "check")))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_first_failure_stops(check, capfd):
    """Each command is shown before it runs; the first that fails is named and nothing runs after it."""
    steps = [
        check.Step("good", check.python("-c", "print('good ran')")),
        check.Step("bad", check.python("-c", "exit(3)")),
        check.Step("late", check.python("-c", "print('late ran')")),
    ]

    assert check.run(steps) == 3

    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("+ ")
    assert lines[1] == "good ran"
    assert lines[-1].startswith("check: FAILED at bad, exit code 3: ")
    assert "late ran" not in lines


def test_what_a_step_starts_imports_this_checkout(check, capfd):
    """Every step finds this checkout's package, whatever the environment has installed."""
    check.run(
        [check.Step("where", check.python("-P", "-c", "import ledger; print(ledger.__file__)"))]
    )

    assert capfd.readouterr().out.splitlines()[-1] == str(ROOT / "ledger" / "__init__.py")


def test_what_a_step_starts_keeps_its_bytecode(check, capfd, monkeypatch):
    """No process of a step compiles what one before it has compiled, also where the environment forbids bytecode."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import sys; print(sys.dont_write_bytecode)"

    check.run([check.Step("bytecode", check.python("-c", code))])

    assert capfd.readouterr().out.splitlines()[-1] == "False"


def test_the_same_tree_is_tried_with_the_same_examples():
    """What is drawn by chance in properties follows from the tree, but where one explores."""
    exploring = settings.get_current_profile_name() == "explore"

    assert settings().derandomize is not exploring


def test_scripts_without_suffix_are_checked(check):
    """The Python scripts in tools/ are formatted, linted and typed like the package."""
    assert check.sources()[:2] == ["ledger", "tests"]
    assert {"tools/check", "tools/benchmarks"} <= set(check.sources())


@pytest.mark.parametrize(
    ("name", "text", "verdict"),
    [
        ("run", "#!/usr/bin/env python3\n", True),
        ("run.py", "", True),
        ("run", "#!/usr/bin/env bash\npython\n", False),
        ("run.txt", "python\n", False),
    ],
)
def test_python_is_told_by_suffix_or_first_line(check, tmp_path, name, text, verdict):
    """A file is Python by its suffix or by the interpreter its first line names."""
    (tmp_path / name).write_text(text)

    assert check.is_python(tmp_path / name) is verdict


def test_missing_tools_are_named(check, monkeypatch, capsys):
    """An environment without the test extra is told what it lacks and what to install."""
    monkeypatch.setattr(sys, "argv", ["check"])
    monkeypatch.setattr(check, "NEEDED", ("pytest", "no_such_tool"))

    assert check.main() == 1

    said = capsys.readouterr().out
    assert "lacks no_such_tool;" in said
    assert "python -m pip install -e '.[test]'" in said
