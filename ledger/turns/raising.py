"""What the call of a step raised, as a record keeps it, and raised again by a run that does not make the call.

An exception comes back as what it was to those who catch it: its class, where this process knows that, and
its text. What else it held is gone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ledger.records import values

ERROR_LIMIT = 10_000
"""How many characters of an exception's text a record keeps."""
_LAST_WORD = re.compile(r"[^\s,;:{}()\[\]\"']*$")
NOTE = "raised before the turn was interrupted, and told again from its record"


def text_of(error: BaseException) -> str:
    """Return the text of an exception, shortened. What is no text in it (a lone surrogate) becomes `?`."""
    try:
        text = str(error)
    except BaseException:
        text = "(it could not say)"
    return shortened(text.encode("utf-8", "replace").decode())


def shortened(text: str) -> str:
    """Return the beginning of a long text, up to the end of a word: half a one is nothing that redacting would know."""
    if len(text) <= ERROR_LIMIT:
        return text
    whole = _LAST_WORD.sub("", text[:ERROR_LIMIT])
    return whole or f"({len(text)} characters that are one word)"


def describe(error: BaseException) -> dict[str, Any]:
    """Return an exception as a record keeps it: `type`, `message`, and `code` when it has one."""
    told = {"type": type(error).__name__, "message": text_of(error)}
    try:
        code = getattr(error, "code", None)
        values.check(code, "code", references=False)
    except BaseException:
        return told
    return {**told, "code": code} if type(code) is str else told


def recorded(error: BaseException) -> dict[str, Any]:
    """Return what a step's call raised as its record keeps it: `type`, `module`, `message`."""
    kind = type(error)
    return {"type": kind.__qualname__, "module": kind.__module__, "message": text_of(error)}


def again(said: Mapping[str, Any]) -> Exception:
    """Return an exception as it was recorded: of its class or the nearest that can be made, with its text."""
    name, message = str(said.get("type")), str(said.get("message", ""))
    for kind in _classes(said.get("module"), name):
        with suppress(Exception):
            return _made(kind, kind.__name__, message)
    last = name.rpartition(".")[2]
    return _made(Exception, last if last.isidentifier() else "Exception", message)


def _classes(module: Any, name: str) -> list[type[Exception]]:
    """Return the class of a name and its bases, as far as this process has loaded them. Nothing is imported."""
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or not issubclass(found, Exception):
        return []
    return [kind for kind in found.__mro__[:-1] if issubclass(kind, Exception)]


def _made(kind: type[Exception], name: str, message: str) -> Exception:
    """Return an exception of a class, or of one made of it, that says a text. Its `__init__` is not called."""
    error = kind.__new__(kind)
    error.args = (message,)
    if kind.__name__ != name or text_of(error) != message:
        said = {"__str__": lambda self: message, "__module__": kind.__module__}
        made: Any = type(name, (kind,), said)
        error = made.__new__(made)
        error.args = (message,)
    error.add_note(NOTE)
    return error
