"""Foreign values made exact, with a count of what was changed. Pure.

A source may hold what no record may (lone surrogates, NaN, integers no reader keeps exact, nesting
without end). The source's own bytes are kept beside, so here the nearest exact value is taken.
"""

from __future__ import annotations

import base64
import math
import re
from datetime import datetime
from typing import Any

import msgspec

from ledger.formats import deep
from ledger.formats.base import Notes
from ledger.records import times, values

NOT_UTF8 = "records with bytes that are not UTF-8, replaced by U+FFFD"
SURROGATES = "lone surrogates replaced by U+FFFD"
_NUMBERS = "numbers that are not exact in JSON kept as text"
_DEEP = "values nested too deep replaced by a note"
_RESERVED = f"keys named {values.REFERENCE} renamed"
_LONE = re.compile("[\ud800-\udfff]")
_DEPTH = 100
_MILLISECONDS_FROM = 1e11
"""Unix times above this (the year 5138 in seconds) are in milliseconds."""


def decoded(raw: bytes, notes: Notes) -> Any:
    """Read the bytes of a JSON value, however deep; what is not UTF-8 in them becomes U+FFFD.

    Raises: ValueError: they are none.
    """
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass  # What it reads it reads as `json` does; but that reads NaN, lone surrogates and more.
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode(errors="replace")
        notes.counts[NOT_UTF8] += 1
    return deep.loads(text)


def text(value: str, notes: Notes) -> str:
    """Return text without lone surrogates: each becomes U+FFFD, so positions stay."""
    if value.isascii():
        return value
    cleaned, count = _LONE.subn("\ufffd", value)
    if count:
        notes.counts[SURROGATES] += count
    return cleaned


def record_id(value: str) -> str:
    """Return a source's id as exact text; lone surrogates are spelled, so ids stay apart."""
    return value if value.isascii() else value.encode(errors="backslashreplace").decode()


def value(item: Any, notes: Notes, depth: int = 0) -> Any:
    """Return a decoded JSON value, or what a database has, as one that may be stored."""
    if isinstance(item, str):
        return text(item, notes)
    if isinstance(item, bool) or item is None:
        return item
    if isinstance(item, int | float):
        return _number(item, notes)
    if isinstance(item, bytes):
        return {"base64": base64.b64encode(item).decode()}
    if depth >= _DEPTH:
        notes.counts[_DEEP] += 1
        return "(nested too deep; the source's own record has it)"
    if isinstance(item, list):
        return [value(inner, notes, depth + 1) for inner in item]
    return {_key(key, notes): value(inner, notes, depth + 1) for key, inner in item.items()}


def moment(value: Any) -> datetime | None:
    """Read a source's time: Unix seconds or milliseconds, as a number or text, or ISO 8601."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return times.from_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return times.from_unix(value / 1000 if abs(value) >= _MILLISECONDS_FROM else value)
    except OverflowError:
        return None


def _key(key: str, notes: Notes) -> str:
    if key == values.REFERENCE:
        notes.counts[_RESERVED] += 1
        return "attachment"
    return text(key, notes)


def _number(item: int | float, notes: Notes) -> Any:
    if isinstance(item, int):
        if abs(item) <= values.INTEGER_LIMIT:
            return item
    elif math.isfinite(item):
        return item
    notes.counts[_NUMBERS] += 1
    return str(item)
