"""Values are exact or refused, before anything is stored.

What may be kept is JSON and nothing near it: None, bool, int within ±(2^53 - 1), finite float, str
without lone surrogates, list, dict with str keys; containers at most 200 deep. A value of any other
type comes back as something else, or not at all, so it is refused with its path; so are subclasses
(an Enum that is a str, a numpy float), which come back as their base. One more rule: a dict with the
key `$attachment` is a reference to stored bytes and has that form only. A caller gives an `Attached` in
its place, and the reference is made of that.

The check walks with its own stack, so depth and cycles cost memory, never the interpreter's stack. A
container that stands in many places is walked once for each greater depth it is met at, so a graph of
shared parts costs what it weighs; but its JSON is written out in full, so its written size is added
up before an encoder is let loose on it.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from ledger.errors import RecordInvalid, RecordTooLarge

DEPTH_LIMIT = 200
TOO_DEEP = f"it is nested more than {DEPTH_LIMIT} deep, or in itself"
INTEGER_LIMIT = 2**53 - 1
SIZE_LIMIT_BYTES = 64 * 1024 * 1024
REFERENCE = "$attachment"

_HEX64 = re.compile(r"[0-9a-f]{64}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEPS = bytes.maketrans(b"[{]}", b"\2\2\0\0")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))

_HINTS = {
    "tuple": "a tuple comes back as a list; use a list",
    "set": "JSON has no sets; use a sorted list",
    "frozenset": "JSON has no sets; use a sorted list",
    "bytes": "bytes belong in an attachment: ledger.Attachment(data)",
    "bytearray": "bytes belong in an attachment: ledger.Attachment(data)",
    "memoryview": "bytes belong in an attachment: ledger.Attachment(data)",
    "Decimal": "a Decimal has no exact JSON form; use str(value)",
    "datetime": "use value.isoformat()",
    "date": "use value.isoformat()",
    "UUID": "use str(value)",
    "Enum": "use value.value",
    "Path": "use str(value)",
    "PosixPath": "use str(value)",
}

# A place is (place of the container, key or index); paths are spelled only when something is wrong.
_Place = tuple[Any, Any] | None
_Steps = Iterator[tuple[Any, Any]]
_CONTAINERS = frozenset({dict, list})


class Attached:
    """What a caller gives where a reference to stored bytes is to stand: see `ledger.Attachment`."""


def check(
    value: Any, path: str = "", *, references: bool = True, attached: list[Any] | None = None
) -> None:
    """Raise unless a value can be kept exactly.

    Args: path: what the value is called in messages. references: whether `$attachment` references
    may stand in it (a caller's own values may not hold any). attached: takes every `Attached` that
    stands in it; None: none may.
    Raises: record-invalid, naming the path. record-too-large: parts that stand in it many times
    would make its text larger than a record may be.
    """
    if type(value) not in _CONTAINERS:
        _check_leaf(value, path, None, attached=attached)
        return
    stack: list[tuple[_Steps, int, _Place]] = [(_enter(value, path, None, references), 1, None)]
    met = {id(value): 1}
    shared = False
    while stack:
        steps, depth, place = stack[-1]
        for step, inner in steps:
            kind = type(inner)
            if inner is None or (kind is str and inner.isascii()):  # What most are.
                continue
            if kind not in _CONTAINERS:
                _check_leaf(inner, path, place, step, attached)
                continue
            before = met.get(id(inner), 0)
            shared = shared or before > 0
            if before > depth:
                continue
            met[id(inner)] = depth + 1
            place = (place, step)
            if depth == DEPTH_LIMIT:
                _refuse(path, place, TOO_DEEP)
            stack.append((_enter(inner, path, place, references), depth + 1, place))
            break
        else:
            stack.pop()
    if shared:
        size = _least_size(value)
        if size > SIZE_LIMIT_BYTES:
            raise RecordTooLarge(size_bytes=size, limit_bytes=SIZE_LIMIT_BYTES)


def is_plain(value: dict[Any, Any]) -> bool:
    """Say whether a value passes `check` for certain, if an encoder finds no lone surrogate in its text.

    False says nothing: such as of a value that holds a reference, or a part in two places.
    """
    level: list[Any] = [value]
    met = {id(value)}
    count = 1
    for _ in range(DEPTH_LIMIT):
        below: list[Any] = []
        for item in level:
            if type(item) is dict:
                for key in item:
                    if type(key) is not str:
                        return False
                if REFERENCE in item:
                    return False
                item = item.values()
            for inner in item:
                kind = type(inner)
                if kind is str or inner is None:
                    continue
                if kind is dict or kind is list:
                    below.append(inner)
                elif kind is int:
                    if not -INTEGER_LIMIT <= inner <= INTEGER_LIMIT:
                        return False
                elif kind is float:
                    if not math.isfinite(inner):
                        return False
                elif kind is not bool:
                    return False
        if not below:
            return True
        met.update(map(id, below))
        count += len(below)
        if len(met) != count:
            return False
        level = below
    return False


def references(value: Any) -> Iterator[str]:
    """Yield the SHA-256 of every stored attachment that a value refers to, also more than once."""
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is dict:
            named = item.get(REFERENCE)
            if type(named) is dict and type(named.get("sha256")) is str:
                yield named["sha256"]
            stack.extend(item.values())
        elif type(item) is list:
            stack.extend(item)


def has_references(value: Any) -> bool:
    """Say whether a value refers to a stored attachment."""
    if type(value) is dict:
        for inner in value.values():
            if type(inner) in _CONTAINERS:
                break
        else:
            return False  # What most are: a reference has an object within.
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is dict:
            if REFERENCE in item and any(True for _ in references(item)):
                return True
            item = item.values()
        elif type(item) is not list:
            continue
        if not _CONTAINERS.isdisjoint(map(type, item)):
            stack.extend(item)
    return False


def is_reference(value: Any) -> bool:
    """Say whether a value is a reference to stored bytes, in exactly its form."""
    if type(value) is not dict or len(value) != 1:
        return False
    inner = value.get(REFERENCE)
    return (
        type(inner) is dict
        and set(inner) <= {"sha256", "media_type", "size", "name", "options"}
        and type(inner.get("sha256")) is str
        and _HEX64.fullmatch(inner["sha256"]) is not None
        and type(inner.get("media_type")) is str
        and type(inner.get("size")) is int
        and inner["size"] >= 0
        and type(inner.get("name", "")) is str
        and type(inner.get("options", {})) is dict
    )


def references_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every reference that stands in a kept value, in order, also more than once."""
    if is_reference(value):
        yield value
    elif type(value) in _CONTAINERS:
        for inner in value.values() if type(value) is dict else value:
            yield from references_in(inner)


def replaced(value: Any, of: Callable[[Any], Any]) -> Any:
    """Return a kept value with every reference in it replaced; itself where there is none."""
    return _replaced(value, of) if has_references(value) else value


def _replaced(value: Any, of: Callable[[Any], Any]) -> Any:
    if is_reference(value):
        return of(value)
    if type(value) is dict:
        return {key: _replaced(inner, of) for key, inner in value.items()}
    return [_replaced(inner, of) for inner in value] if type(value) is list else value


def identity(value: Any) -> Any:
    """Return what two values are compared by: of an attachment its bytes and options, not how it is called."""
    return replaced(value, _bytes_and_options)


def _bytes_and_options(reference: Any) -> Any:
    named = reference[REFERENCE]
    options = {"options": named["options"]} if named.get("options") else {}
    return {REFERENCE: {"sha256": named["sha256"], **options}}


def _enter(item: Any, path: str, place: _Place, references: bool) -> _Steps:
    """Check a container's own keys and return its (key or index, value) pairs."""
    if type(item) is list:
        return enumerate(item)
    for key in item:
        if type(key) is not str:
            _refuse(path, place, f"a key is {_shown_type(key)}, and JSON keys are text")
        if not key.isascii():
            _check_text(key, path, place, "a key")
    if REFERENCE in item:
        _check_reference(item, path, place, references)
    return iter(item.items())


def _least_size(value: Any) -> int:
    """Return a lower bound of the length of a checked container's JSON; each part is weighed once."""
    sizes: dict[int, int] = {}
    stack = [value]
    while stack:
        item = stack[-1]
        inner = item.values() if type(item) is dict else item
        unknown = {id(x): x for x in inner if type(x) in _CONTAINERS and id(x) not in sizes}
        if unknown:
            stack.extend(unknown.values())
            continue
        keys = sum(len(key) + 3 for key in item) if type(item) is dict else 0
        sizes[id(item)] = 2 + keys + sum(_size_in(sizes, x) for x in inner)
        stack.pop()
    return sizes[id(value)]


def _size_in(sizes: dict[int, int], item: Any) -> int:
    if type(item) in _CONTAINERS:
        return sizes[id(item)]
    return len(item) + 2 if type(item) is str else 1


def too_deep(text: bytes) -> bool:
    """Say whether the brackets of a JSON text, outside its strings, go deeper than a record may.

    A decoder gives up where the interpreter's stack ends, which depends on who calls; this does not.
    A text that is no JSON gets an answer too: a decoder stops in it no deeper than was counted here.
    """
    if text.count(b"[") + text.count(b"{") <= DEPTH_LIMIT:
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(text.split(b'"')[::2]).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(outside, lambda depth, step: depth + step - 1, initial=0)) > DEPTH_LIMIT


def _check_leaf(
    item: Any, path: str, place: _Place, step: Any = None, attached: list[Any] | None = None
) -> None:
    """Check what holds nothing else. `step`: its key or index in the container at `place`."""
    kind = type(item)
    if kind is str:
        if not item.isascii():
            _check_text(item, path, place if step is None else (place, step), "the text")
        return
    if kind is int:
        if -INTEGER_LIMIT <= item <= INTEGER_LIMIT:
            return
        reason = "an integer beyond ±(2^53 - 1) is not exact in every reader"
    elif kind is float:
        if math.isfinite(item):
            return
        reason = f"{item!r} is not a JSON number"
    elif item is None or kind is bool:
        return
    elif attached is not None and isinstance(item, Attached):
        attached.append(item)
        return
    else:
        reason = why_not(item)
    _refuse(path, place if step is None else (place, step), reason)


def _check_text(text: str, path: str, place: _Place, what: str) -> None:
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
    if not is_reference(item):
        _refuse(path, place, f"the key {REFERENCE!r} is reserved for stored attachments")


def why_not(item: Any) -> str:
    """Say why a value of a foreign type is not kept."""
    if isinstance(item, Attached):
        return "no attachment can stand here"
    name = type(item).__name__
    for base in type(item).__mro__:
        if base.__name__ in _HINTS and base.__module__ != "__main__":
            return f"{_shown_type(item)} is not kept: {_HINTS[base.__name__]}"
    for base in (str, bool, int, float, list, dict):
        if isinstance(item, base):
            return f"{name} would come back as plain {base.__name__}; use {base.__name__}(value)"
    if inspect.isawaitable(item):
        return f"{_shown_type(item)} was not awaited"
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
