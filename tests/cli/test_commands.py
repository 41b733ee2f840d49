"""The commands are listed without being loaded, and what is listed is what they are."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.main import get_command, get_group

import ledger.cli
from ledger.cli.app import app
from ledger.cli.commands import loaded

LISTED = {name: command.help for name, command in get_command(app).commands.items()}
LOADED = (
    "import sys, typer; before = set(sys.modules); sys.argv[0] = 'turn-ledger'\n"
    "from ledger.cli import main\n"
    "try: main()\n"
    "finally: print(*sorted(set(sys.modules) - before), file=sys.stderr)"
)


def modules(*args: str, **environment: str) -> tuple[str, list[str]]:
    """What a call of the command line prints, and the modules that it loads beside typer."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *args],
        cwd=Path(ledger.__file__).parents[1],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, done.stderr.split()


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_line_is_what_the_command_says_of_itself(name):
    """The line in the help of all commands is the first paragraph of the command's own."""
    first, _, _ = (loaded(name).help or "").partition("\n\n")

    assert " ".join(first.split()) == LISTED[name]


def test_every_command_is_listed():
    """No module has a command that the help leaves out."""
    part = typer.Typer()
    for path in Path(ledger.cli.__file__).parent.glob("[!_]*.py"):
        module = import_module(f"ledger.cli.{path.stem}")
        if hasattr(module, "add_to"):
            module.add_to(part)

    assert {*get_group(part).commands} == {*LISTED}


def test_the_help_loads_no_command():
    """To list all commands nothing is loaded but the frame: no store, no format, no msgspec, no drawing of boxes."""
    shown, new = modules("--help")

    assert "sweep" in shown
    assert {name for name in new if name.startswith("ledger")} == {
        "ledger",
        "ledger._version",
        "ledger.cli",
        "ledger.cli.app",
        "ledger.cli.commands",
        "ledger.cli.ending",
        "ledger.errors",
    }
    assert len(new) < 20
    assert not {"msgspec", "rich", "sqlite3", "asyncio"} & {*new}


def test_a_command_loads_its_own_module_alone():
    """The help of one command loads no other."""
    shown, new = modules("copy", "--help")

    assert "Example: turn-ledger copy" in shown
    assert "ledger.cli.copying" in new
    assert not {"ledger.cli.resuming", "ledger.cli.writing", "ledger.sources.importing"} & {*new}


def test_the_shell_completes_commands():
    """Completion lists the commands that begin as typed, and loads none."""
    shown, new = modules(
        _TURN_LEDGER_COMPLETE="complete_bash",
        COMP_WORDS="turn-ledger l",
        COMP_CWORD="1",
    )

    assert shown.split() == [name for name in LISTED if name.startswith("l")]
    assert "ledger.cli.output" not in new


def test_without_a_command_it_shows_the_help(cli):
    """Who names no command is shown them all; that is wrong usage."""
    code, shown, err = cli()

    assert (code, err) == (2, "")
    assert shown == cli("--help")[1]
