"""JSON values one a line, each line as its own bytes: one that is no JSON costs itself alone. Pure.

Whether a file is one is seen at its first two lines. JSON that is spread over lines looks alike only
where a line ends inside a list or an object, right after a bracket, a comma or a colon.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ledger.formats.base import Broken, Element
from ledger.records import codec

HEAD_BYTES = 1 << 20
"""How much of a file is looked at to find its second line."""
BOM = b"\xef\xbb\xbf"
_OPEN_END = b"[{,:"
_SPACE = b" \t\r\n"
_FIRST_TWO = re.compile(rb"[ \t\r\n]*([^\n]+)\n[ \t\r\n]*([^ \t\r\n])")


def line(value: Any) -> bytes:
    """Return a value as one line: for every reader, also one that takes other signs for the end of a line."""
    return codec.escaped(msgspec.json.encode(value)) + b"\n"


def begins(head: bytes, *, whole: bool) -> bool | None:
    """Say whether a file that begins so has a value a line; None: more of it must be seen.

    Args: whole: nothing follows.
    """
    text = head[:HEAD_BYTES].removeprefix(BOM)
    if text.lstrip(_SPACE).startswith(b"["):
        return False
    found = _FIRST_TWO.match(text)
    if found is None:
        return False if whole or len(head) >= HEAD_BYTES else None
    last = found[1].rstrip(_SPACE)[-1:]
    return found[2] == b"{" and last not in _OPEN_END


def split(chunks: Iterable[bytes], *, at: int, limit_bytes: int) -> Iterator[Element | Broken]:
    """Yield each line that is not blank, without the white space around it.

    Args: at: the offset of the first byte in the file.
    """
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
        for line in lines:
            yield from _element(line, at)
            at += len(line) + 1
        if len(rest) > limit_bytes:
            yield Broken(at, f"one line has more than {limit_bytes:,} bytes")
            return
    yield from _element(rest, at)


def _element(line: bytes, at: int) -> Iterator[Element]:
    text = line.strip(_SPACE)
    if text:
        yield Element(text, at + len(line) - len(line.lstrip(_SPACE)))
