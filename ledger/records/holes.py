"""Lines of a log that are lost, found in a copy of it: by seals, wherever in the copy they stand.

Theory. Each seal names, in its own chain value, the seal before it and every byte since. So when the last good
line before some damage stands in a copy too (a chain value is found once), and a line after the damage does as well,
or checks behind the last line of the copy, then what the copy has between the two is what the log had between them:
no byte more, no byte less, however many stand there now. No length and no place is taken from the copy.

Where nothing sealed follows in the log, nothing says where the copy's lines end; then all are taken that follow.
"""

from __future__ import annotations

import base64
import hashlib
from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from typing import Literal, NamedTuple

from ledger.records import codec

BAD = frozenset({"suspect", "unreadable"})
_START = attrgetter("start")
_HIDES = frozenset({"erased", "unprovable"})
"""Lines whose seals cannot be asked whether something stood before them."""


class Sealed(NamedTuple):
    """A line that ends in a seal, whether that checks or not."""

    covers_from: int
    """Offset of the first byte that its seal covers."""
    start: int
    quote_at: int
    """Offset of the quote that opens its chain."""
    end: int
    """Offset of its line feed."""
    chain: bytes
    ends_batch: bool

    def due(self, data: bytes, before: bytes) -> bytes:
        """Return the chain that its bytes give after another chain."""
        return chained(before, data[self.covers_from : self.quote_at])


def chained(before: bytes, covered: bytes) -> bytes:
    """Return the chain value of a seal that covers bytes, after another chain value."""
    digest = hashlib.sha256(before + covered).digest()[:16]
    return base64.urlsafe_b64encode(digest).rstrip(b"=")


def sealed(data: bytes) -> Iterator[Sealed]:
    """Yield the lines that end in a seal, in order."""
    start = covers_from = 0
    while (end := data.find(b"\n", start)) >= 0:
        seal = codec.find_seal(data[start:end])
        if seal is not None:
            quote_at = start + seal.quote_at
            yield Sealed(covers_from, start, quote_at, end, seal.chain, seal.i == seal.n)
            covers_from = end + 1
        start = end + 1


def stretches(data: bytes, conversation: str) -> Iterator[tuple[int, int]]:
    """Yield where damage begins and ends: from one good line to the next, or the end of the last line.

    Blank lines between belong to it: damage makes some, of the first or the last byte of a line.
    """
    for start, end, is_bad in _places(data, conversation):
        if is_bad:
            yield start, end


def _places(data: bytes, conversation: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the stretches, and the places before lines whose seals do not tell whether something is lost there."""
    scanner = codec.Scanner(codec.first_chain(conversation))
    end = data.rfind(b"\n")
    scanner.feed(data[: end + 1])
    begin, bad = 0, False
    for line in scanner.settled(at_end=True):
        if codec.judged(line, data[line.start : line.end]) in BAD:
            bad = True
            continue
        if bad or line.verdict in _HIDES:
            yield begin, line.start - 1, bad
        begin, bad = line.end + 1, False
    if bad:
        yield begin, end, True


class Hole(NamedTuple):
    """Bytes of a log, and the lines of a copy that belong in their place."""

    start: int
    stop: int
    begin: int
    """Where the lines begin in the copy."""
    end: int


Reason = Literal["other", "before", "older", "damaged", "after"]
"""Why a copy does not tell what stood somewhere. `other`: it has no line of this log. `before`: it lacks the last
good line before. `older`: it ends before the damage does. `damaged`: it is damaged there too. `after`: no line
follows that shows where its lines end, or what follows was appended on the damage."""


class Copy:
    """A copy of a log, by its seals. Args: data: as it was given. told: the same, as it may be used."""

    def __init__(self, data: bytes, told: bytes, conversation: str) -> None:
        self.held = data.rfind(b"\n") + 1
        self._data = data
        self.told = told
        self._first = codec.first_chain(conversation)
        self._lines = list(sealed(told))
        self._by_chain = {line.chain: number for number, line in enumerate(self._lines)}
        self._bad = [start for start, _ in stretches(data, conversation)]

    def holes(self, data: bytes, conversation: str) -> Iterator[Hole]:
        """Yield what of a log is to be replaced by lines of the copy, or by nothing, as seals prove."""
        log = list(sealed(data))
        size = data.rfind(b"\n") + 1
        for start, end, _ in _places(data, conversation):
            yield from self._within(data, log, start, end + 1, size)

    def why_not(self, data: bytes, start: int) -> Reason:
        """Say why the copy does not mend damage that begins somewhere in a log."""
        log = list(sealed(data))
        if not any(line.chain in self._by_chain for line in log):
            return "other"
        begin = self._behind(data, log, start)
        if begin is None:
            ended = {line.chain for line in log if line.end < start}
            return "older" if self._lines[-1].chain in ended else "before"
        if self._is_bad(begin, self.held):
            return "damaged"
        following = log[bisect_left(log, start, key=_START) :]
        known = any(line.chain in self._by_chain for line in following)
        return "after" if known or not following else "older"

    def further(self, data: bytes) -> int:
        """Count the sealed lines that the copy has behind the last line of a log."""
        log = list(sealed(data))
        number = self._by_chain.get(log[-1].chain) if log else None
        return 0 if number is None else len(self._lines) - 1 - number

    def _within(
        self, data: bytes, log: list[Sealed], start: int, stop: int, size: int
    ) -> Iterator[Hole]:
        while start <= stop:
            following = bisect_left(log, start, key=_START)
            begin = self._behind(data, log, start)
            joint = None if begin is None else self._joint(data, log, start, stop, begin)
            if joint is not None and begin is not None:
                at, end, line = joint
                if data[start:at] != self.told[begin:end]:
                    yield Hole(start, at, begin, end)
                start = line.end + 1
                continue
            if begin is not None and stop == size:
                end = self._last_end(begin)
                if self._has_all(data[start:stop], begin, end):
                    yield Hole(start, stop, begin, end)
                    return
            if following == len(log):
                return
            start = log[following].end + 1

    def _behind(self, data: bytes, log: list[Sealed], start: int) -> int | None:
        """Return where the copy goes on behind the sealed line that ends at a place of the log."""
        if start == 0:
            return 0
        number = bisect_left(log, start, key=_START) - 1
        if number < 0 or log[number].end + 1 != start:
            return None
        known = self._by_chain.get(log[number].chain)
        return None if known is None else self._lines[known].end + 1

    def _joint(
        self, data: bytes, log: list[Sealed], start: int, stop: int, begin: int
    ) -> tuple[int, int, Sealed] | None:
        """Find where log and copy agree again: in the one, in the other, and the line that proves it."""
        at = start
        while at <= stop:
            number = bisect_left(log, at, key=_START)
            if number == len(log):
                return None
            line = log[number]
            end = self._agrees(data, at, line, begin)
            if end is not None:
                return at, end, line
            if at == stop:
                return None
            at = data.index(b"\n", at) + 1
        return None

    def _agrees(self, data: bytes, at: int, line: Sealed, begin: int) -> int | None:
        """Return where the copy has what the log has from a place to a seal, and that seal; None: it has not."""
        length = line.quote_at - at
        number = self._by_chain.get(line.chain)
        if number is None:
            return self.held if self._ends_before(data[at : line.quote_at], line, begin) else None
        there = self._lines[number]
        end = there.quote_at - length
        if end < begin or (end and self._data[end - 1 : end] != b"\n"):
            return None
        if self.told[end : there.quote_at] != data[at : line.quote_at]:
            return None
        return None if self._is_bad(begin, there.end) else end

    def _ends_before(self, rest: bytes, line: Sealed, begin: int) -> bool:
        """Say whether a line of the log checks behind the last line of the copy."""
        if self.held < begin or self._is_bad(begin, self.held):
            return False
        chain, since = self._first, 0
        if self._lines:
            chain, since = self._lines[-1].chain, self._lines[-1].end + 1
        return chained(chain, self._data[since : self.held] + rest) == line.chain

    def _last_end(self, begin: int) -> int:
        """Return where the last whole append of the copy ends, before what is damaged in it."""
        first = bisect_left(self._lines, begin, key=_START)
        good = (
            line
            for line in reversed(self._lines[first:])
            if line.ends_batch and not self._is_bad(begin, line.end)
        )
        last = next(good, None)
        return begin if last is None else last.end + 1

    def _has_all(self, text: bytes, begin: int, end: int) -> bool:
        """Say whether lines of the copy can stand for others: whatever of those is, or was, a record is among them."""
        if not text or end == begin:
            return False
        told = frozenset(self.told[begin:end].split(b"\n"))
        for line in text.split(b"\n"):
            seal = codec.find_seal(line)
            if seal is not None:
                number = self._by_chain.get(seal.chain)
                if number is None or not begin <= self._lines[number].start < end:
                    return False
            elif line not in told and codec.decode_plain(line) is not None:
                return False
        return True

    def _is_bad(self, begin: int, end: int) -> bool:
        number = bisect_left(self._bad, begin)
        return number < len(self._bad) and self._bad[number] < end
