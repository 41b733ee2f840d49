"""The suite itself: whole or nothing, and honest about what was not checked."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ledger.testing import StoreSuite, run
from ledger.testing.bench import ABILITIES, HOOKS, Bench
from ledger.testing.suite import checks
from tests.testing.suites import LinesSuite, MemorySuite, SimpleSuite

SOME = "test_expect_is_exact"
OTHER = "test_append_returns_the_count"


@pytest.mark.parametrize(
    "dropped",
    [
        {SOME: None},
        {SOME: lambda self: None},
        {SOME: property(lambda self: None)},
        {"fresh": lambda self: None},
        {"_doing": lambda self: None},
        {"_on_the_bench": None},
    ],
)
def test_no_check_is_dropped(dropped: dict[str, Any]) -> None:
    """A subclass that defines a check, or what checks stand on, anew cannot be made."""
    with pytest.raises(TypeError, match="whole or nothing"):
        type("Mine", (MemorySuite,), dropped)


def test_no_check_is_dropped_from_beside() -> None:
    """Nor can one be made whose other base class hides a check."""
    hiding = type("Hiding", (), {SOME: lambda self: None})

    with pytest.raises(TypeError, match="whole or nothing"):
        type("Mine", (hiding, MemorySuite), {})


def test_a_check_dropped_later_fails_them_all() -> None:
    """A check that is replaced after the class was made fails every check that is run."""
    mine: Any = type("Mine", (MemorySuite,), {})
    setattr(mine, SOME, lambda self: None)

    assert {one.what for one in run(mine, only=[SOME, OTHER])} == {"failed"}


def test_a_subclass_may_add_tests_and_define_hooks() -> None:
    """Tests of one's own, fixtures and every hook are welcome."""

    class Mine(MemorySuite):
        lacks: ClassVar = {**MemorySuite.lacks}
        effort = 0.1
        patience_s = 5.0
        opened: ClassVar[list[Any]] = []

        def close_store(self, store: Any) -> None:
            self.opened.append(store)

        def test_of_my_own(self) -> None:
            """Mine is mine."""

        def helper(self) -> None:
            pass

    assert [one.what for one in run(Mine, only=[SOME])] == ["passed"]
    assert len(Mine.opened) == 1
    assert "test_of_my_own" not in checks(Mine)


@pytest.mark.parametrize(
    ("lacks", "said"),
    [({"waiting": "x"}, "unknown: .*waiting"), ({"wait": ""}, "without a reason: .*wait")],
)
def test_what_is_lacking_is_named_with_a_reason(lacks: dict[str, str], said: str) -> None:
    """An ability that is not known, or a lack without a reason, is refused."""
    with pytest.raises(TypeError, match=said):
        type("Mine", (MemorySuite,), {"lacks": lacks})


def test_what_is_lacking_is_reported() -> None:
    """A check that cannot be made is skipped, and the declared reason is shown."""
    (one,) = run(MemorySuite, only=["test_killed_writer_leaves_whole_batches"])

    assert one.what == "skipped"
    assert one.why == "this store lacks reopening: the records are gone with the store"


def test_a_false_declaration_fails() -> None:
    """A store that is said to lack what it has fails, and so does one with a lack that is not named."""
    lacks = {**SimpleSuite.lacks, "wait": "not worth testing"}
    hiding = type("Hiding", (SimpleSuite,), {"lacks": lacks})
    lacks = {name: why for name, why in LinesSuite.lacks.items() if name != "delete"}
    silent = type("Silent", (LinesSuite,), {"lacks": lacks})
    lacks = {**SimpleSuite.lacks, "incarnations": "not worth testing"}
    shy = type("Shy", (SimpleSuite,), {"lacks": lacks})

    name = "test_declared_lacks_are_true"
    assert [one.what for one in run(hiding, only=[name])] == ["failed"]
    assert [one.what for one in run(silent, only=[name])] == ["failed"]
    name = "test_incarnations_are_what_is_declared"
    assert [one.what for one in run(shy, only=[name])] == ["failed"]


def test_checks_state_their_claims() -> None:
    """Every check has a claim, and needs only abilities that there are."""
    found = checks(StoreSuite)

    assert len(found) > 80
    assert [name for name, claim in found.items() if not claim.endswith(".")] == []
    needed = {one for name in found for one in getattr(getattr(StoreSuite, name), "needs", ())}
    assert needed == set(ABILITIES) - {"raw"}


def test_hooks_say_what_they_are() -> None:
    """Every hook stands in the bench, each method with its promise."""
    for name in HOOKS:
        hook = inspect.getattr_static(Bench, name)
        assert not callable(hook) or hook.__doc__, name


def test_hooks_that_are_missing_are_named() -> None:
    """A suite without hooks says which to write."""
    bare = type("Bare", (StoreSuite,), {})

    (one,) = run(bare, only=[SOME])

    assert (one.what, one.why[:19]) == ("failed", "NotImplementedError")
    assert "make_place" in one.why


def test_pytest_runs_it_and_shows_skips(tmp_path: Path) -> None:
    """pytest collects a subclass from a file, runs its checks, and shows what the store lacks."""
    (tmp_path / "test_mine.py").write_text(
        "from tests.testing.suites import SimpleSuite\n\nclass TestMine(SimpleSuite):\n    pass\n"
    )

    done = _python("-m", "pytest", "-q", "-rs", "-k", "wait", str(tmp_path / "test_mine.py"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed, 2 skipped" in done.stdout
    assert "this store lacks reopening: the records are gone with the store" in done.stdout


@pytest.mark.parametrize("missing", ["pytest", "hypothesis"])
def test_what_is_missing_is_named(missing: str) -> None:
    """Without pytest or hypothesis the import says which extra to install; nothing else needs them."""
    done = _python(
        "-c",
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import ledger, ledger.testing, ledger.testing.children\n"
        "ledger.open, ledger.FolderStore\n"
        "from ledger.testing import StoreSuite",
    )

    assert done.returncode == 1
    assert f"ledger.testing needs {missing}: python -m pip install" in done.stderr.splitlines()[-1]


def test_assertions_must_be_on(tmp_path: Path) -> None:
    """Run by a Python that leaves assertions out, the suite fails and says so."""
    done = _python("-O", "-c", "from tests.testing.suites import MemorySuite")

    assert done.returncode == 1
    assert "python -O" in done.stderr


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
