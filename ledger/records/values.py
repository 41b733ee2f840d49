"""Values are exact or refused, before anything is stored.

What may be kept is JSON and nothing near it: None, bool, int within ±(2^53 - 1), finite float, str
without lone surrogates, list, dict with str keys; containers at most 200 deep. A value of any other
type comes back as something else, or not at all, so it is refused with its path; so are subclasses
(an Enum that is a str, a numpy float), which come back as their base. One more rule: a dict with the
key `$attachment` is a reference to stored bytes and has that form only.

The check walks with its own stack, so depth and cycles cost memory, never the interpreter's stack.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ledger.errors import RecordInvalid

DEPTH_LIMIT = 200
INTEGER_LIMIT = 2**53 - 1
SIZE_LIMIT_BYTES = 64 * 1024 * 1024
REFERENCE = "$attachment"

_HEX64 = re.compile(r"[0-9a-f]{64}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_HINTS = {
    "tuple": "a tuple comes back as a list; use a list",
    "set": "JSON has no sets; use a sorted list",
    "frozenset": "JSON has no sets; use a sorted list",
    "bytes": "bytes belong in an attachment",
    "bytearray": "bytes belong in an attachment",
    "memoryview": "bytes belong in an attachment",
    "Decimal": "a Decimal has no exact JSON form; use str(value)",
    "datetime": "use value.isoformat()",
    "date": "use value.isoformat()",
    "UUID": "use str(value)",
    "Path": "use str(value)",
    "PosixPath": "use str(value)",
}

# A place is (place of the container, key or index); paths are spelled only when something is wrong.
_Place = tuple[Any, Any] | None


def check(value: Any, path: str = "", *, references: bool = True) -> None:
    """Raise record-invalid, naming the path, unless a value can be kept exactly.

    Args: path: what the value is called in messages. references: whether `$attachment` references
    may stand in it (a caller's own values may not hold any).
    """
    stack: list[tuple[Any, int, _Place]] = [(value, 1, None)]
    while stack:
        item, depth, place = stack.pop()
        kind = type(item)
        if kind is dict:
            if depth > DEPTH_LIMIT:
                _refuse(path, place, f"it is nested more than {DEPTH_LIMIT} deep, or in itself")
            if REFERENCE in item:
                _check_reference(item, path, place, references)
            for key, inner in item.items():
                if type(key) is not str:
                    _refuse(path, place, f"a key is {_shown_type(key)}, and JSON keys are text")
                _check_text(key, path, place, "a key")
                _step(inner, depth, (place, key), path, stack)
        elif kind is list:
            if depth > DEPTH_LIMIT:
                _refuse(path, place, f"it is nested more than {DEPTH_LIMIT} deep, or in itself")
            for index, inner in enumerate(item):
                _step(inner, depth, (place, index), path, stack)
        else:
            _check_leaf(item, path, place)


def _step(
    item: Any, depth: int, place: _Place, path: str, stack: list[tuple[Any, int, _Place]]
) -> None:
    kind = type(item)
    if kind is dict or kind is list:
        stack.append((item, depth + 1, place))
    else:
        _check_leaf(item, path, place)


def _check_leaf(item: Any, path: str, place: _Place) -> None:
    kind = type(item)
    if kind is str:
        _check_text(item, path, place, "the text")
    elif kind is int:
        if not -INTEGER_LIMIT <= item <= INTEGER_LIMIT:
            _refuse(path, place, "an integer beyond ±(2^53 - 1) is not exact in every reader")
    elif kind is float:
        if not math.isfinite(item):
            _refuse(path, place, f"{item!r} is not a JSON number")
    elif item is not None and kind is not bool:
        _refuse(path, place, _foreign(item))


def _check_text(text: str, path: str, place: _Place, what: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        _refuse(
            path,
            place,
            f"{what} holds a lone surrogate (U+{ord(text[error.start]):04X}) at character "
            f"{error.start}, which is not text",
        )


def _check_reference(item: dict[Any, Any], path: str, place: _Place, allowed: bool) -> None:
    if not allowed:
        _refuse(path, place, f"the key {REFERENCE!r} is reserved for stored attachments")
    inner = item[REFERENCE]
    fits = (
        len(item) == 1
        and type(inner) is dict
        and set(inner) <= {"sha256", "media_type", "size", "name", "options"}
        and type(inner.get("sha256")) is str
        and _HEX64.fullmatch(inner["sha256"]) is not None
        and type(inner.get("media_type")) is str
        and type(inner.get("size")) is int
        and inner["size"] >= 0
        and type(inner.get("name", "")) is str
        and type(inner.get("options", {})) is dict
    )
    if not fits:
        _refuse(path, place, f"the key {REFERENCE!r} is reserved for stored attachments")


def _foreign(item: Any) -> str:
    name = type(item).__name__
    for base in type(item).__mro__:
        if base.__name__ in _HINTS and base.__module__ != "__main__":
            return f"{_shown_type(item)} is not kept: {_HINTS[base.__name__]}"
    for base in (str, bool, int, float, list, dict):
        if isinstance(item, base):
            return f"{name} would come back as plain {base.__name__}; use {base.__name__}(value)"
    return f"{_shown_type(item)} has no JSON form"


def _shown_type(item: Any) -> str:
    kind = type(item)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _refuse(path: str, place: _Place, reason: str) -> None:
    steps: list[Any] = []
    while place is not None:
        place, step = place
        steps.append(step)
    shown = path
    for step in reversed(steps):
        if isinstance(step, str) and _IDENTIFIER.fullmatch(step):
            shown += f".{step}" if shown else step
        else:
            shown += f"[{ascii(step) if len(ascii(step)) <= 60 else ascii(step)[:57] + '...'}]"
        if len(shown) > 400:
            shown = shown[:400] + "..."
            break
    raise RecordInvalid(path=shown, reason=reason)
