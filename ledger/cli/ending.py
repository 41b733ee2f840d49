"""How the command line ends: errors as one line on stderr, exit codes, output that cannot be written.

It is loaded to show help, too, so it imports next to nothing; what makes text printable, when there is some.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ledger.errors import LedgerError, QuestionUnknown, TurnUnfinished

NOT_FOUND = 3
"""The exit code when what was named is not there."""
EXIT_CODES = {
    "conversation-unknown": NOT_FOUND,
    "turn-unknown": NOT_FOUND,
    "event-unknown": NOT_FOUND,
    "attachment-missing": NOT_FOUND,
    "import-invalid": 6,
    "record-invalid": 6,
    "record-too-large": 6,
    "conversation-id": 6,
}

DAMAGE = 8
"""The exit code of who finds damage."""


class StoreMissing(Exception):
    """Raised when there is no store where one has to be. Next: end, and say where."""


class OutputClosed(Exception):
    """Raised when nobody reads standard output any more. Next: end, without a word."""


class OutputFailed(Exception):
    """Raised when the output cannot be written. Next: end, and say why."""


def tell(message: str, code: str, *, as_json: bool) -> None:
    """Print an error as one line on stderr, with its code; for programs as a JSON object."""
    if as_json:
        _note({"error": {"code": code, "message": message}})
    else:
        _note(f"{_printable('; '.join(message.splitlines()))} [{code}]")


def warn(message: str, *, as_json: bool) -> None:
    """Print what should be known as one line on stderr; for programs as a JSON object."""
    _note({"warning": {"message": message}} if as_json else _printable(message))


def _printable(message: str) -> str:
    from ledger.views.text import printable

    return f"turn-ledger: {printable(message)}"


def _note(line: str | dict[str, Any]) -> None:
    if sys.stderr is not None:
        print(line if isinstance(line, str) else json.dumps(line), file=sys.stderr)


def fail(error: LedgerError, *, as_json: bool = False, of: str = "") -> int:
    """Print an error on stderr, with its code, and return the exit code of its kind.

    Args: of: the conversation that it is of, one of several.
    """
    message = _message(error)
    if of and f"conversation {of}" not in message and repr(of) not in message:
        message = f"{of}: {message}"
    tell(message, error.code, as_json=as_json)
    if error.code in EXIT_CODES:
        return EXIT_CODES[error.code]
    return 5 if error.code.startswith("store-") else 4


def _message(error: LedgerError) -> str:
    """Return what an error says, with what is to be done next in the words of the command line."""
    if isinstance(error, TurnUnfinished):
        named = ", ".join(
            f"{key} ({name})" for key, name in zip(error.tools, error.names, strict=True)
        )
        return (
            f"turn {error.turn}: tools that started may have run, and what they gave is not known: {named}; "
            "say so of each with --result KEY=JSON, or --rerun KEY"
        )
    if isinstance(error, QuestionUnknown):
        return f"turn {error.turn}: {error.reason}; `turn-ledger show` lists what is open"
    return error.message()


def finish() -> None:
    """Write out what is still held back."""
    with writing():
        sys.stdout.flush()


def abandon_output() -> None:
    """Let what is still held back go nowhere, so that the interpreter says nothing of it at its end."""
    if sys.stdout is not None:
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


@contextmanager
def writing(where: str = "") -> Iterator[None]:
    """Turn the system's errors inside into ours."""
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise OutputFailed(f"{where or 'the output'} cannot be written: {reason}") from error
