"""The bytes of a log as they lie: found from the end, read forward, known again later.

Reading goes forward, from a place where a `Scanner` can start: the start of the log, a sealed line
found by walking back, or the end of what is already known. Only whole lines are taken; what
follows the last line feed is the `rest`. Nothing here decides whether an unfinished batch is void:
that takes the append lock, which is the store's business.

How many lines stand before a place is the truth, and counting them takes the whole log. So from the
end, the `seq` of a line whose seal checks stands for the count (`counted` is False then); the store
counts for certain before it refuses anybody on the ground of such a number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from ledger.records import codec, runs
from ledger.records.verdicts import Found, Line, each
from ledger.stores import handout
from ledger.stores.base import Incarnation, Position
from ledger.stores.files import Descriptor, Files, named

BLOCK = 1 << 16
"""How much is read from the end at first, in bytes; doubled until enough is found."""
CHUNK = 1 << 18
"""How much is read at once going forward, in bytes."""
GUARD = 192
"""How many bytes at a known place are compared before what is known is used: more than a seal."""


class Source(Protocol):
    """The bytes of a log, up to the size it had when it was looked at."""

    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes; fewer only at the end."""
        ...


class BytesSource:
    """A log in memory."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes."""
        return bytes(self._data[offset : min(offset + length, self.size)])


class FileSource:
    """A log in an open file. Args: found: what the system says of it; None: it is asked."""

    def __init__(self, file: Descriptor, files: Files, found: os.stat_result | None = None) -> None:
        self.file = file
        self._files = files
        found = found or file.stat()
        self.identity = (found.st_dev, found.st_ino)
        self.size = found.st_size
        self.changed_ns = found.st_ctime_ns
        """When the file was changed last, as the system tells."""

    def look(self) -> None:
        """See what was appended since."""
        found = self.file.stat()
        self.size, self.changed_ns = found.st_size, found.st_ctime_ns

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes. Raises store-io and the like by name."""
        length = max(0, min(length, self.size - offset))
        try:
            data = self._files.read(self.file.number, length, offset)
            while len(data) < length:
                more = self._files.read(self.file.number, length - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise named(error, self.file.path) from error
        return data


# -- forward ---------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Lines whose verdict is settled, and the bytes they lie in."""

    found: Sequence[Found]
    data: bytes
    base: int
    """Offset in the log of the first byte of `data`."""

    @property
    def lines(self) -> list[Line]:
        """The lines, each by itself."""
        return each(self.found)

    def text(self, line: Line) -> bytes:
        """Return the bytes of a line, without its line feed."""
        return self.data[line.start - self.base : line.end - self.base]


class Reader:
    """Goes forward through a log with a scanner, and hands out what is settled."""

    def __init__(self, source: Source, scanner: codec.Scanner) -> None:
        self.source = source
        self.scanner = scanner
        self.newer = False
        """Whether a line that was read is a record of a newer format."""
        self.taken = scanner.count
        """How many lines stand before the first that is not settled."""
        self.taken_to = scanner.offset
        """Offset of the end of those lines."""
        self._held = b""
        """The bytes from `taken_to` to where the scanner stands."""

    def whole_lines(self) -> Iterator[Piece]:
        """Read up to the last line feed that is there now."""
        length = CHUNK
        while True:
            offset = self.scanner.offset
            if offset >= self.source.size:
                return
            chunk = self.source.read(offset, length)
            end = chunk.rfind(b"\n") + 1
            if not end:
                if offset + len(chunk) >= self.source.size or len(chunk) < length:
                    return
                length *= 2
                continue
            self.scanner.feed(chunk, end)
            yield from self._taken(self.scanner.take(), offset, chunk, end)
            length = max(CHUNK, len(self._held))

    def rest(self) -> bytes:
        """Return the bytes after the last line feed."""
        return self.source.read(self.scanner.offset, self.source.size - self.scanner.offset)

    def rest_looks_whole(self) -> bool:
        """Say whether the rest ends as a sealed line does, reading no more of it than that."""
        length = min(GUARD, self.source.size - self.scanner.offset)
        if length <= 0:
            return False
        return codec.find_seal(self.source.read(self.source.size - length, length)) is not None

    def take_rest(self) -> bool:
        """Count the rest as a line, if it is sealed and checks. Says whether; then reads no more."""
        if not self.rest_looks_whole():
            return False
        rest = self.rest()
        taken = self.scanner.feed_unended(rest)
        if taken:
            self._look_at(rest, len(rest))
            self._held += rest
        return taken

    def finish(self, *, in_flight: bool) -> Piece:
        """Settle the lines still open. Args: in_flight: an unfinished batch may be being written."""
        found = self.scanner.take(at_end=True, in_flight=in_flight)
        piece = Piece(found, self._held, self.taken_to)
        self._hold(found, self.taken_to, self._held, len(self._held))
        return piece

    def _taken(self, found: list[Found], offset: int, data: bytes, end: int) -> Iterator[Piece]:
        """Hand out lines that are settled now that a chunk was read: of those that were held, then of its own."""
        self._look_at(data, end)
        own = next((k for k, part in enumerate(found) if part.start >= offset), len(found))
        pieces = [Piece(found[:own], self._held, self.taken_to)] if own else []
        if found[own:]:
            pieces.append(Piece(found[own:], data, offset))
            self._hold(found, offset, data, end)
        else:
            self._hold(found, self.taken_to, self._held + data[:end], len(self._held) + end)
        yield from pieces

    def _hold(self, taken: list[Found], offset: int, data: bytes, end: int) -> None:
        """Hold the bytes behind the lines that were taken; `data` up to `end` lies at `offset`."""
        if taken:
            self.taken, self.taken_to = taken[-1].last, taken[-1].end + 1
        if self.taken == self.scanner.count:
            self.taken_to = self.scanner.offset
        self._held = data[self.taken_to - offset : end]

    def _look_at(self, data: bytes, end: int) -> None:
        if self.scanner.strange and not self.newer:
            self.newer = any(map(is_newer, data[:end].split(b"\n")))


def is_newer(line: bytes) -> bool:
    """Say whether a line is a record of a newer format."""
    if line.startswith(runs.FORMAT_1) or codec.is_blank(line):
        return False
    record = codec.decode_plain(line)
    return record is not None and record["functai_conversation"] > 1


# -- what is known of a log ------------------------------------------------------------------------


class Head(NamedTuple):
    """Record 1: whose log it is."""

    offset: int
    guard: bytes
    """The last bytes of its line: its seal, if it has one."""
    incarnation: Incarnation
    whole: bool
    """Whether the line has its line feed; else it may still be being written."""


class Known(msgspec.Struct, frozen=True):
    """What is known of a log up to a place; to be used only while the bytes there are the same."""

    identity: tuple[int, int]
    """Device and inode."""
    changed_ns: int
    """When the file was changed last, when this was known. A log that was made anew has another time."""
    scanner: codec.Scanner
    """Stands at the end of what is known. Never fed: `scanner.onward()` is."""
    guard: bytes
    """The last bytes before that end."""
    head: Head | None
    """None: it holds no record."""
    counted: bool
    """Whether the lines were counted from the start, and not taken from a `seq`."""
    newer: bool
    """Whether a record of a newer format was seen."""

    @property
    def end(self) -> int:
        """Offset of the end of what is known."""
        return self.scanner.offset

    @property
    def count(self) -> int:
        """How many records there are up to that end."""
        return self.scanner.count

    @property
    def position(self) -> Position:
        """That end as a position."""
        incarnation = self.head.incarnation if self.head is not None else None
        return Position(self.count, incarnation, self.scanner.end)

    def still_stands(self, source: Source) -> bool:
        """Say whether the log still holds these bytes at these places."""
        if source.size < self.end:
            return False
        if source.read(self.end - len(self.guard), len(self.guard)) != self.guard:
            return False
        head = self.head
        return head is None or source.read(head.offset, len(head.guard)) == head.guard


def guard_before(source: Source, end: int) -> bytes:
    """Return the last bytes before a place."""
    length = min(GUARD, end)
    return source.read(end - length, length)


def head_of(source: Source) -> Head | None:
    """Find record 1; None when there is no line but blank ones."""
    offset, length = 0, BLOCK
    while True:
        data = source.read(offset, length)
        if not data:
            return None
        line, feed, _ = data.partition(b"\n")
        if not feed and len(data) == length:
            length *= 2
        elif codec.is_blank(line):
            offset, length = offset + len(line) + 1, BLOCK
        else:
            guard = line[-GUARD:]
            incarnation = handout.incarnation(line)
            return Head(offset + len(line) - len(guard), guard, incarnation, bool(feed))


def known_at_end(source: FileSource, reader: Reader, head: Head | None, *, counted: bool) -> Known:
    """Return what is known when a reader has read all whole lines."""
    scanner = reader.scanner.onward()
    return Known(
        identity=source.identity,
        changed_ns=source.changed_ns,
        scanner=scanner,
        guard=guard_before(source, scanner.offset),
        head=head if scanner.count else None,
        counted=counted,
        newer=reader.newer,
    )


# -- from the end ----------------------------------------------------------------------------------


def find_end(source: Source, first_chain: bytes) -> tuple[Reader, bool]:
    """Return a reader that has read all whole lines, and whether it counted them from the start.

    Reads from the end only as much as it takes to find a line whose seal checks. Its lines up to an
    unfinished batch are taken.
    """
    length = BLOCK
    while length < source.size:
        start = source.size - length
        anchor = _first_seal(source.read(start, length), start)
        if anchor is not None:
            reader = _read_all(source, anchor.scanner(anchor.seal.seq))
            shift = reader.shift
            if shift == 0:
                return reader, False
            if shift is not None:
                return _read_all(source, anchor.scanner(anchor.seal.seq + shift)), False
        length *= 2
    return _read_all(source, codec.Scanner(first_chain)), True


class _Reading(Reader):
    shift: int | None = None
    """By how much the places are off, as the last line whose seal checks says; None: none does."""


def _read_all(source: Source, scanner: codec.Scanner) -> _Reading:
    reader = _Reading(source, scanner)
    for piece in reader.whole_lines():
        _compare(reader, piece)
    _compare(reader, reader.finish(in_flight=True))
    return reader


def _compare(reader: _Reading, piece: Piece) -> None:
    for line in reversed(piece.lines):
        if line.verdict == "sealed" and line.written is not None:
            reader.shift = line.written - line.seq
            return


class _Anchor(NamedTuple):
    """A sealed line, after which a scanner can start."""

    seal: codec.Seal
    end: int
    """Offset of the first byte after it."""

    def scanner(self, count: int) -> codec.Scanner:
        return codec.Scanner(self.seal.chain, offset=self.end, count=count, after=self.seal)


def _first_seal(data: bytes, base: int) -> _Anchor | None:
    """Return the first sealed line of those that are whole in data."""
    start = data.find(b"\n") + 1
    while 0 < start < len(data):
        end = data.find(b"\n", start)
        if end < 0:
            return None
        anchor = _anchor(data, start, end, base)
        if anchor is not None:
            return anchor
        start = end + 1
    return None


def _anchor(data: bytes, start: int, end: int, base: int) -> _Anchor | None:
    found = codec.find_seal(data[max(start, end - GUARD) : end])
    return _Anchor(found, base + end + 1) if found is not None else None


def end_at(source: Source, scanner: codec.Scanner, place: int) -> str | None:
    """Return what tells the bytes up to a place from others, read on from a scanner; None: there is no such place."""
    scanner, length = scanner.onward(), CHUNK
    while scanner.count < place:
        chunk = source.read(scanner.offset, length)
        end = _end_of(chunk, place - scanner.count)
        if end:
            scanner.feed(chunk, end)
        elif len(chunk) < length:
            return None
        else:
            length *= 2
    return scanner.end if scanner.count == place else None


def _end_of(data: bytes, count: int) -> int:
    """Return where so many lines end, or as many of them as are whole."""
    end = 0
    while count and (feed := data.find(b"\n", end)) >= 0:
        count -= not codec.is_blank(data[end:feed])
        end = feed + 1
    return end


def find_place(source: Source, known: Known, place: int, first_chain: bytes) -> codec.Scanner:
    """Return a scanner that stands after a sealed line, at a place or as little as can be before it.

    Walks back from the end that is known, counting lines.
    """
    length = BLOCK
    while length < known.end:
        base = known.end - length
        data = source.read(base, length)
        count, end = known.count, len(data)
        while end > 0:
            # `end` is after a line feed, and `count` lines stand before it.
            start = data.rfind(b"\n", 0, end - 1) + 1
            if not start:
                break
            anchor = _anchor(data, start, end - 1, base) if count <= place else None
            if anchor is not None:
                return anchor.scanner(count)
            if not codec.is_blank(data[start : end - 1]):
                count -= 1
            end = start
        length *= 2
    return codec.Scanner(first_chain)
