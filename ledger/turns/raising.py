"""What the call of a step raised, as a record keeps it, and raised again by a run that does not make the call.

An exception comes back as what it was to those who catch it: its class, where this process knows that, and
its text; a group with those in it. What else it held is gone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ledger.records import canonical, values

ERROR_LIMIT = 10_000
"""How many characters of an exception's text a record keeps."""
_LAST_WORD = re.compile(r"[^\s,;:{}()\[\]\"']*$")
_COUNTED = re.compile(r" \(\d+ sub-exceptions?\)\Z")
"""What a group says behind its own text."""
GROUPS_WITHIN = 8
"""How deep groups in groups are recorded."""
GROUP_LIMIT = 100
"""How many exceptions of a group are."""
_OF_THE_HEAP = 1 << 9
"""The flag of classes that are made by a `class` statement, or as one is."""
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


def recorded(error: BaseException, depth: int = 0) -> dict[str, Any]:
    """Return what a step's call raised as its record keeps it: `type`, `module`, `message`.

    And where the class is made of more than its text: `errors`, each in turn, of a group; `title` and `lines` of what
    pydantic refuses.
    """
    kind = type(error)
    said = {"type": kind.__qualname__, "module": kind.__module__, "message": text_of(error)}
    with suppress(Exception):
        if isinstance(error, BaseExceptionGroup) and depth < GROUPS_WITHIN:
            found = error.exceptions[:GROUP_LIMIT]
            return {**said, "errors": [recorded(each, depth + 1) for each in found]}
        if _is_validation(kind):
            return said | _validation(error)
    return said


def again(said: Mapping[str, Any]) -> Exception:
    """Return an exception as it was recorded: of its class or the nearest that can be made, with its text."""
    name, message = str(said.get("type")), str(said.get("message", ""))
    for kind in _classes(said.get("module"), name):
        with suppress(Exception):
            return _made(kind, kind.__name__, message, said)
    last = name.rpartition(".")[2]
    return _made(Exception, last if last.isidentifier() else "Exception", message, {})


def _classes(module: Any, name: str) -> list[type[Exception]]:
    """Return the class of a name and its bases, as far as this process has loaded them. Nothing is imported."""
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or not issubclass(found, Exception):
        return []
    return [kind for kind in found.__mro__[:-1] if issubclass(kind, Exception)]


def _made(kind: type[Exception], name: str, message: str, said: Mapping[str, Any]) -> Exception:
    """Return an exception of a class, or of one made of it, that says a text. Its `__init__` is not called."""
    error = _bare(kind, said)
    if kind.__name__ != name or not _says(error, message):
        told = {
            "__str__": lambda self: message,
            "__repr__": lambda self: f"{name}({message!r})",
            "__module__": kind.__module__,
        }
        error = _bare(type(name, (kind,), told), said)
    error.__notes__ = [NOTE]
    return error


def _bare(kind: type[Exception], said: Mapping[str, Any]) -> Exception:
    """Return an exception of a class with no more than its text, and what it cannot be made without."""
    message = str(said.get("message", ""))
    if issubclass(kind, ExceptionGroup):
        inner = [again(each) for each in said.get("errors") or [{}]]
        text = _COUNTED.sub("", message)
        return ExceptionGroup.__new__(kind, text, inner)
    if _is_validation(kind):
        return _refused(kind, said)
    # A class of its own may want more to be made of; the one beneath it that is Python's own does not.
    beneath: Any = next(each for each in kind.__mro__ if not each.__flags__ & _OF_THE_HEAP)
    error: Exception = beneath.__new__(kind)
    error.args = (message,)
    return error


def _says(error: Exception, message: str) -> bool:
    """Say whether an exception says a text, and can be shown at all."""
    with suppress(Exception):
        return text_of(error) == message and bool(repr(error))
    return False


# -- what pydantic refuses, without importing it ----------------------------------------------------------


def _is_validation(kind: type) -> bool:
    return kind.__name__ == "ValidationError" and kind.__module__ == "pydantic_core._pydantic_core"


def _validation(error: Any) -> dict[str, Any]:
    """Return what such an error is made of, where JSON has it all and it is not long."""
    lines = [
        {
            "type": line["type"],
            "loc": list(line["loc"]),
            "input": line["input"],
            "ctx": {key: _plain(value) for key, value in line.get("ctx", {}).items()},
        }
        for line in error.errors(include_url=False)
    ]
    found = {"title": error.title, "lines": lines}
    values.check(found, "error", references=False)
    return found if len(canonical.canonical(found)) <= ERROR_LIMIT else {}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, BaseException) else value


def _refused(kind: Any, said: Mapping[str, Any]) -> Exception:
    lines = []
    for line in said["lines"]:
        ctx = dict(line["ctx"])
        if "error" in ctx:
            ctx["error"] = ValueError(ctx["error"])
        lines.append({**line, "loc": tuple(line["loc"]), "ctx": ctx})
    error: Exception = kind.from_exception_data(said["title"], lines)
    if text_of(error) != said["message"]:  # It cannot be made to say another text.
        raise ValueError("it would say something else")
    return error
