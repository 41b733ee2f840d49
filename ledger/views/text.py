"""Text for people: values as one line, and nothing in it that steers a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ledger.records import values
from ledger.records.values import REFERENCE

_MOST_RUNS = 12
_STEERING = {
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xFEFF,
}
_VISIBLE = {c: f"\\x{c:02x}" if c < 0x100 else f"\\u{c:04x}" for c in _STEERING}
_VISIBLE_LINES = {c: shown for c, shown in _VISIBLE.items() if c not in (0x09, 0x0A)}


def printable(text: str, *, lines: bool = False) -> str:
    """Return a text with control characters and direction marks spelled out.

    Args: lines: keep line feeds and tabs.
    """
    return text.translate(_VISIBLE_LINES if lines else _VISIBLE)


def one_line(value: Any, width: int) -> str:
    """Return a value as one printable line of at most `width` characters."""
    text = value if isinstance(value, str) else repr(value)
    text = printable(" ".join(text[: 4 * width + 40].split()))
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def error_text(error: Mapping[str, Any]) -> str:
    """Return a recorded error as text: its type, and what it said, if it did."""
    message = error.get("message")
    return str(error.get("type")) + (f": {message}" if message else "")


def value_text(value: Any) -> str:
    """Return a value as text: text as it is, attachments by their names, anything else as JSON.

    In a list of text and attachments each stands as it is.
    """
    told = values.replaced(value, lambda reference: f"[{attachment_text(reference)}]")
    if told is not value and isinstance(told, list) and all(isinstance(t, str) for t in told):
        return " ".join(told)
    return told if isinstance(told, str) else msgspec.json.encode(told).decode()


def attachment_text(reference: Mapping[str, Any]) -> str:
    """Return a reference to an attachment as text: its name or hash, its media type, its size."""
    named = reference[REFERENCE]
    sha256 = named.get("sha256")
    name = named.get("name") or (f"{str(sha256)[:12]}…" if sha256 else "unnamed")
    size = named.get("size")
    sized = f", {size_text(size)}" if isinstance(size, int) else ""
    return f"{name} ({named.get('media_type')}{sized})"


def size_text(size_bytes: int) -> str:
    """Return a size for people: 317 bytes, 1.2 MB."""
    size, units = float(size_bytes), iter(("kB", "MB", "GB", "TB"))
    if size < 1000:
        return f"{size_bytes} byte{'' if size_bytes == 1 else 's'}"
    unit = ""
    while size >= 999.95 and (further := next(units, "")):
        size, unit = size / 1000, further
    return f"{size:.1f} {unit}"


def without_text(names: Iterable[str]) -> str:
    """Return what was left out of a turn, to stand behind it: ` without document, steps`; nothing: ""."""
    told = ", ".join(one_line(name, 40) for name in names)
    return f" without {told}" if told else ""


def runs_text(ordinals: Sequence[int]) -> str:
    """Return rising numbers as text, runs as ranges and not more than `_MOST_RUNS`: 1 to 3, 7."""
    runs: list[tuple[int, int]] = []
    for ordinal in ordinals:
        if runs and runs[-1][1] == ordinal - 1:
            runs[-1] = (runs[-1][0], ordinal)
        else:
            runs.append((ordinal, ordinal))
    texts = [f"{first} to {last}" if first < last else f"{first}" for first, last in runs]
    more = len(texts) - _MOST_RUNS
    return ", ".join(texts[:_MOST_RUNS]) + (f" and {more} more runs" if more > 0 else "")
