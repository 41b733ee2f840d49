"""The README's test command is what runs for every change."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs_runner import find_blocks

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def commands():
    """The two set-up commands: the first two sh blocks of the README."""
    return [
        block.text.removesuffix("\n")
        for block in find_blocks(README, "README.md")
        if block.language == "sh"
    ][:2]


def run_ci(folder: Path, readme: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of .ci/run beside a README."""
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    (folder / "README.md").write_text(readme, encoding="utf-8")
    return subprocess.run(
        ["bash", ".ci/run"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_both_commands_begin_with_nothing_installed(commands):
    """Each set-up command is one line that makes its own environment; the second ends with the one check."""
    assert all(
        command.startswith("python3 -m venv .venv && ") and "\n" not in command
        for command in commands
    )
    assert commands[1].endswith(" && .venv/bin/python tools/check")


def test_ci_runs_the_readmes_test_command(commands, tmp_path):
    """.ci/run runs exactly what the README's second sh block holds, in the checkout."""
    assert README.count(commands[1]) == 1

    done = run_ci(tmp_path, README.replace(commands[1], "echo 'in place of' '$HOME' && pwd"))

    assert done.stdout.splitlines()[1:] == ["in place of $HOME", str(tmp_path)]
    assert done.returncode == 0


def test_ci_fails_as_the_command_fails(commands, tmp_path):
    """.ci/run ends with the exit code of the command it ran."""
    assert run_ci(tmp_path, README.replace(commands[1], "exit 7")).returncode == 7


def test_ci_fails_without_a_command(tmp_path):
    """.ci/run does not pass where the README has no second sh block."""
    done = run_ci(tmp_path, "```sh\ntrue\n```\n")

    assert done.returncode == 1
    assert "no second sh block" in done.stderr
