"""The command line's frame: the store that is meant, the exit codes, errors without tracebacks."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from ledger.cli import reading, removing, writing
from ledger.cli.output import fail
from ledger.errors import LedgerError
from ledger.views.text import printable

app = typer.Typer(
    name="turn-ledger",
    help="Conversations kept as append-only logs: import, branch, merge and inspect them.",
    epilog="Exit codes: 0 done · 1 damage found · 2 wrong usage · 3 not found · 4 refused · "
    "5 the store failed, or is not fit · 6 the input cannot be kept or read.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def default_store() -> Path:
    """Return the folder of the store: TURN_LEDGER_STORE, else under XDG_DATA_HOME."""
    named = os.environ.get("TURN_LEDGER_STORE")
    if named:
        return Path(named).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "turn-ledger"


def _version(wanted: bool) -> None:
    if wanted:
        from ledger._version import __version__

        typer.echo(f"turn-ledger {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            help="The folder of the store. Default: $TURN_LEDGER_STORE, else turn-ledger under "
            "$XDG_DATA_HOME (~/.local/share).",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    context.obj = store if store is not None else default_store()


reading.add_to(app)
writing.add_to(app)
removing.add_to(app)


def _warn(message: Warning | str, *_where: object, **_: object) -> None:
    print(f"turn-ledger: {printable(str(message))}", file=sys.stderr)


def store_first(arguments: list[str]) -> list[str]:
    """Return the arguments with `--store` before the command, wherever it was given before `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    moved: list[str] = []
    rest: list[str] = []
    given = iter(arguments[:end])
    for argument in given:
        if argument == "--store":
            moved += [argument, *([value] if (value := next(given, None)) is not None else [])]
        elif argument.startswith("--store="):
            moved.append(argument)
        else:
            rest.append(argument)
    return [*moved, *rest, *arguments[end:]]


def run() -> None:
    """Run the command; a user's error is one sentence on stderr and an exit code."""
    warnings.showwarning = _warn
    try:
        app(store_first(sys.argv[1:]))
    except LedgerError as error:
        sys.exit(fail(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
