"""Two values made from one, put together: what only one side changed wins. Pure.

Objects are merged key by key, at any depth. Texts of several lines are merged by lines, where the lines that the
two sides changed are apart. Everything else, lists too, is one thing: changed by both it is a conflict, unless
both made the same of it.

For every base, one and other: merging with an unchanged side gives the other side; both sides the same gives it;
and the sides may be exchanged, but for the order of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ledger.views.words import Match, matches

ABSENT: Any = msgspec.UNSET
"""Stands for a value that is not there."""

Key = Callable[[Any], bytes]
"""A value -> what is equal exactly for values that are the same."""


class Conflict(msgspec.Struct, frozen=True):
    """A value that both sides changed, each otherwise."""

    field: str
    """Where: the output, and the keys in it, with dots between."""
    base: Any
    """What both began with. None, here and below: it was not there, or is null."""
    one: Any
    """What the earlier turns made of it."""
    other: Any
    """What the later turn made of it."""


Settle = Callable[[Conflict], Any]


def merged(base: Any, one: Any, other: Any, *, key: Key, settle: Settle, field: str = "") -> Any:
    """Return two values put together; ABSENT where that takes it away.

    Args: base: what both were made from. settle: gives the value for a conflict. field: where they stand.
    """
    if _same(one, other, key) or _same(other, base, key):
        return one
    if _same(one, base, key):
        return other
    if (
        isinstance(one, dict)
        and isinstance(other, dict)
        and (base is ABSENT or isinstance(base, dict))
    ):
        before = {} if base is ABSENT else base
        return _objects(before, one, other, key=key, settle=settle, field=field)
    if isinstance(base, str) and isinstance(one, str) and isinstance(other, str):
        text = merged_lines(base, one, other)
        if text is not None:
            return text
    return settle(Conflict(field, *(None if v is ABSENT else v for v in (base, one, other))))


def _same(one: Any, other: Any, key: Key) -> bool:
    if one is ABSENT or other is ABSENT:
        return one is other
    return key(one) == key(other)


def _objects(
    base: dict[str, Any],
    one: dict[str, Any],
    other: dict[str, Any],
    *,
    key: Key,
    settle: Settle,
    field: str,
) -> dict[str, Any]:
    out = {}
    for name in {**one, **other, **base}:
        values = (each.get(name, ABSENT) for each in (base, one, other))
        where = f"{field}.{name}" if field else name
        value = merged(*values, key=key, settle=settle, field=where)
        if value is not ABSENT:
            out[name] = value
    return out


def merged_lines(base: str, one: str, other: str) -> str | None:
    """Return two texts put together line by line; None: both changed the same place, or places that touch.

    None too for texts so long and so different that finding out would take too many steps.
    """
    before = base.splitlines(keepends=True)
    edits: list[Edit] = []
    for text in (one, other):
        lines = text.splitlines(keepends=True)
        found = matches(before, lines)
        if found is None:
            return None
        edits += _edits(found, before, lines)
    out: list[str] = []
    at, last = 0, None
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        if edit == last:
            continue  # Both made the same of it.
        if last is not None and edit[0] <= last[1]:
            return None
        out += [*before[at : edit[0]], *edit[2]]
        at, last = edit[1], edit
    return "".join([*out, *before[at:]])


Edit = tuple[int, int, list[str]]
"""The lines of the base from one place up to another, and what stands there instead."""


def _edits(found: list[Match], before: list[str], lines: list[str]) -> Iterator[Edit]:
    at = to = 0
    for i, j, size in [*found, (len(before), len(lines), 0)]:
        if i > at or j > to:
            yield at, i, lines[to:j]
        at, to = i + size, j + size
