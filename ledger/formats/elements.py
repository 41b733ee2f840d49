"""The top-level values of a JSON file, one at a time, each as its own bytes. Pure.

A file is a list of values, one object, `{"conversations": [...]}`, or objects one a line (`jsonl`).
Only brackets and strings are followed, so memory holds one element, not the file, and an element
that is not JSON inside costs itself alone. What is not well nested ends the reading with a `Broken`
that names the byte; the elements before it have been handed out.

No byte of a multi-byte UTF-8 sequence looks like a quote, a backslash or a bracket, so bytes do. They are
followed in a copy in which nothing is escaped: there a string ends at the next quote, and to find that is quick.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from ledger.formats import jsonl
from ledger.formats.base import Broken, Element

LIMIT_BYTES = 2 << 30
"""No element may be larger: a quote that is never closed must not swallow the memory."""

_SPACE = b" \t\r\n"
_WRAPPER = b'"conversations"'
_MESSAGE = re.compile(
    rb'\s*\{\s*("from"\s*:\s*"[^"\\]*+"\s*,\s*"value"\s*:|"value"\s*:.*"from"\s*:\s*"[^"\\]*+"\s*\}\s*\Z)',
    re.DOTALL,
)
"""How a message of ShareGPT is spelled: an object whose `conversations` are such is one of them."""
_SHORT = 64
"""A string cut by the end of the data is looked at again when it is no longer than this, so that
the wrapper's key is seen whole; a longer one is followed piece by piece."""

_TOKEN = re.compile(rb'"[^"]*+"|["\[\]{},]')


def _nested_to(depth: int) -> bytes:
    """Return the pattern of what is well nested, brackets within brackets to a depth; it never goes back."""
    within = b"" if depth == 0 else rb"|\[%b\]|\{%b\}" % ((_nested_to(depth - 1),) * 2)
    return rb'(?:[^"\[\]{}]++|"[^"]*+"%b)*+' % within


_WHOLE = re.compile(_nested_to(4))
"""Whatever inside an element is whole: one match skips it, and what is deeper is followed bracket by bracket."""
_OPENED_BY = {b"]": b"[", b"}": b"{"}


def split(chunks: Iterable[bytes], *, limit_bytes: int = LIMIT_BYTES) -> Iterator[Element | Broken]:
    """Yield each top-level value of a JSON file, in order; then, if it breaks off, where and why.

    Args: chunks: the bytes of the file, cut anywhere. An element is its own bytes without the white
    space around it; whether they are JSON is for the reader of the element to say.
    """
    pieces = iter(chunks)
    head = b""
    verdict = None
    while verdict is None:
        piece = next(pieces, None)
        head += piece or b""
        verdict = jsonl.begins(head, whole=piece is None)
    pieces = itertools.chain([head], pieces)
    if verdict:
        at = len(jsonl.BOM) if head.startswith(jsonl.BOM) else 0
        yield from jsonl.split(_from(pieces, at), at=at, limit_bytes=limit_bytes)
    else:
        yield from _nested(pieces, limit_bytes)


def _from(pieces: Iterator[bytes], at: int) -> Iterator[bytes]:
    yield next(pieces)[at:]
    yield from pieces


def _nested(pieces: Iterator[bytes], limit_bytes: int) -> Iterator[Element | Broken]:
    splitter = _Splitter(limit_bytes)
    for piece in pieces:
        yield from splitter.feed(piece)
        if splitter.broken:
            return
        if (more := splitter.more_lines()) is not None:
            rest = itertools.chain([more.raw], pieces)
            yield from jsonl.split(rest, at=more.at, limit_bytes=limit_bytes)
            return
    yield from splitter.finish()


class _Splitter:
    """Follows the brackets. `_level` is how many are open around an element; 0: not known yet."""

    def __init__(self, limit_bytes: int) -> None:
        self.broken = False
        self._limit = limit_bytes
        self._data = bytearray()
        self._plain = bytearray()
        """The same bytes, but for those of escapes; without backslashes at the end, whose meaning is not known yet."""
        self._base = 0
        """Offset in the file of the first byte of `_data`."""
        self._at = 0
        """What of `_data` has been followed."""
        self._open: list[bytes] = []
        self._level = 0
        self._start: int | None = None
        """Where in `_data` the element begins; None outside any."""
        self._after_comma = False
        self._may_be_whole = False
        """Whether nothing of a wrapper was handed out yet: it stands in `_data` from its beginning."""
        self._in_string = False
        self._last = b""
        """The token before, to know the wrapper's key when its list opens."""
        self._begun = self._done = False

    def feed(self, chunk: bytes, *, at_end: bool = False) -> Iterator[Element | Broken]:
        """Follow more bytes; yield what they complete."""
        self._data += chunk
        self._unescape(chunk, at_end)
        if not self._begun:
            if broken := self._begin(at_end):
                yield broken
            if self.broken or not self._begun:
                return
        while not self._done:
            token = self._token()
            if token is None:
                break
            found = self._follow(token)
            if found is not None:
                yield found
            if self.broken:
                return
        yield from self._after()

    def finish(self) -> Iterator[Element | Broken]:
        """Say whether the file is whole."""
        yield from self.feed(b"", at_end=True)
        if not self._done and not self.broken:
            reason = "the file ends before its JSON does"
            if self._start is not None:
                reason += f", inside the value that begins at byte {self._base + self._start}"
            yield self._break(len(self._data), reason)

    def more_lines(self) -> Element | None:
        """Return what stands on the lines below one object, which then was the first of many."""
        if not self._done or self._level:
            return None
        after = bytes(self._data)
        gap = after[: len(after) - len(after.lstrip(_SPACE))]
        if len(gap) == len(after) or b"\n" not in gap:
            return None
        return Element(after, self._base)

    # -- the beginning and the end

    def _unescape(self, chunk: bytes, at_end: bool) -> None:
        # What is in `_data` alone was held back: backslashes.
        more = b"\\" * (len(self._data) - len(chunk) - len(self._plain)) + chunk
        if not at_end and more.endswith(b"\\"):
            more = more.rstrip(b"\\")
        if b"\\" in more:
            more = more.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        self._plain += more

    def _begin(self, at_end: bool) -> Broken | None:
        if len(self._data) < len(jsonl.BOM) and not at_end:
            return None
        skipped = len(jsonl.BOM) if self._data.startswith(jsonl.BOM) else 0
        text = self._data[skipped:].lstrip(_SPACE)
        if not text and not at_end:
            return None
        self._drop(len(self._data) - len(text))
        self._begun = True
        if not text.startswith((b"[", b"{")):
            reason = "there is no JSON list or object" if text else "the file is empty"
            return self._break(0, reason)
        self._level = 1 if text.startswith(b"[") else 0
        self._start = None if self._level else 0
        return None

    def _after(self) -> Iterator[Broken]:
        """Let go of what is not needed any more, and look for text that does not belong there."""
        if self._done:
            self._drop(self._at)
            rest = self._data.lstrip(_SPACE)
            if rest and self.more_lines() is None:
                yield self._break(len(self._data) - len(rest), "there is more after its end")
            elif self._level:
                self._drop(len(self._data))
        elif self._start is None:
            self._drop(self._at)
        elif len(self._data) - self._start > self._limit:
            reason = f"one value has more than {self._limit:,} bytes"
            yield self._break(self._start, reason)

    def _break(self, at: int, reason: str) -> Broken:
        self.broken = True
        return Broken(self._base + at, reason)

    def _drop(self, count: int) -> None:
        del self._data[:count]
        del self._plain[:count]
        self._base += count
        self._at = max(0, self._at - count)
        if self._start is not None:
            self._start -= count

    # -- following

    def _token(self) -> bytes | None:
        """Return the next bracket, comma or string; None when more bytes are needed."""
        while True:
            if self._in_string and not self._leave_string():
                return None
            if len(self._open) > max(self._level, 1) and (
                whole := _WHOLE.match(self._plain, self._at)
            ):
                self._at = whole.end()
            found = _TOKEN.search(self._plain, self._at)
            if found is None:
                self._at = len(self._plain)
                return None
            token = found.group()
            if token != b'"':
                self._at = found.end()
                return bytes(token)
            if len(self._plain) - found.start() <= _SHORT:
                self._at = found.start()
                return None
            self._in_string = True
            self._at = found.end()
            self._last = token

    def _leave_string(self) -> bool:
        quote = self._plain.find(b'"', self._at)
        self._in_string = quote < 0
        self._at = len(self._plain) if quote < 0 else quote + 1
        return quote >= 0

    def _follow(self, token: bytes) -> Element | Broken | None:
        before, self._last = self._last, token
        depth = len(self._open)
        if token in (b"[", b"{"):
            self._open.append(token)
            if depth == 0:
                self._start = self._at if self._level else self._start
            elif token == b"[" and not self._level and depth == 1 and before == _WRAPPER:
                self._level = 2
                self._start = self._at
                self._may_be_whole = True
            return None
        if token in _OPENED_BY:
            return self._close(token)
        if token == b"," and self._level and depth == self._level and self._start is not None:
            self._after_comma = True
            return self._element(self._at - 1, self._at)
        return None

    def _close(self, token: bytes) -> Element | Broken | None:
        if not self._open or self._open[-1] != _OPENED_BY[token]:
            return self._break(self._at - 1, f"a {token.decode()!r} closes nothing")
        self._open.pop()
        self._done = not self._open
        if not self._level:
            return self._element(self._at, None) if self._done else None
        if len(self._open) != self._level - 1 or self._start is None:
            return None
        element = self._element(self._at - 1, None)
        return element if element is None or element.raw or self._after_comma else None

    def _element(self, end: int, next_start: int | None) -> Element | None:
        """Return an element; None when it shows that the object around it is one, and no wrapper."""
        start = self._start or 0
        text = bytes(self._data[start:end])
        if self._may_be_whole and _MESSAGE.match(text):
            self._level, self._start, self._may_be_whole = 0, 0, False
            return None
        self._may_be_whole = False
        at = self._base + start + len(text) - len(text.lstrip(_SPACE))
        self._start = next_start
        self._drop(end if next_start is None else next_start)
        return Element(text.strip(_SPACE), at)
