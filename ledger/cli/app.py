"""The command line's frame: the store that is meant, the exit codes, errors without tracebacks."""

from __future__ import annotations

import io
import sys
import warnings
from typing import Annotated, Any

import typer

from ledger.cli.commands import Commands
from ledger.cli.ending import (
    NOT_FOUND,
    OutputClosed,
    OutputFailed,
    StoreMissing,
    abandon_output,
    fail,
    finish,
    tell,
    warn,
    writing,
)
from ledger.errors import LedgerError

app = typer.Typer(
    name="turn-ledger",
    cls=Commands,
    rich_markup_mode=None,  # Rich would take twice the time that all else of a help takes.
    help="Conversations kept as append-only logs: import, branch, merge and inspect them.",
    epilog="Exit codes: 0 done · 1 a fault of this program · 2 wrong usage · 3 not found, or no store · 4 refused · "
    "5 the store failed, or is not fit · 6 the input cannot be kept or read · 7 the output cannot "
    "be written · 8 damage found. With --json an error is one JSON object on stderr. Only add, import and copy make "
    "a store; list, search and usage take a default store that is not there yet for an empty one.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from ledger._version import __version__

        typer.echo(f"turn-ledger {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="DIR|URL",
            help="The store: a folder, or the URL of a database. Default: $TURN_LEDGER_STORE, else "
            "turn-ledger under $XDG_DATA_HOME (~/.local/share).",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if store == "":
        raise typer.BadParameter("--store is given without a folder")
    from ledger.cli.stores import default_store, named_store

    context.obj = named_store(store) if store is not None else default_store()


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


_UsageError: type[Exception] = next(
    cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException"
)
"""What typer raises for wrong usage; it has no public name. Shown by us: typer's way of showing it
lets direction marks through."""


def run() -> None:
    """Run the command; a user's error is one sentence on stderr and an exit code."""
    arguments = store_first(sys.argv[1:])
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in options
    warnings.showwarning = lambda message, *_where, **_: warn(str(message), as_json=as_json)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        if sys.stdout is None:  # It was closed before we began.
            raise OutputFailed("the output cannot be written: there is no standard output")
        code = _run(arguments, as_json=as_json)
        finish()
    except OutputClosed:
        abandon_output()
        code = 0
    except OutputFailed as error:
        abandon_output()
        tell(str(error), "output", as_json=as_json)
        code = 7
    sys.exit(code)


def _run(arguments: list[str], *, as_json: bool) -> int:
    """Run the command. Returns: the exit code."""
    try:
        code = app(arguments, standalone_mode=False)
    except LedgerError as error:
        return fail(error, as_json=as_json)
    except StoreMissing as error:
        tell(str(error), "store-missing", as_json=as_json)
        return NOT_FOUND
    except KeyboardInterrupt:
        return 130
    except SystemExit as ending:  # typer's answer to a pipe that nobody reads
        raise OutputClosed from ending
    except OSError as error:
        if error.filename is not None:
            raise
        raise OutputFailed(f"the output cannot be written: {error.strerror}") from error
    except _UsageError as error:
        return _wrong_usage(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def _wrong_usage(error: Any, *, as_json: bool) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        with writing():
            print(error.format_message())  # the help
        return 2
    path = error.ctx.command_path if error.ctx is not None else "turn-ledger"
    message = error.format_message().rstrip(".")
    tell(f"{message}; `{path} -h` tells how it is used", "usage", as_json=as_json)
    return 2
