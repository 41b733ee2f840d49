"""The bytes of one part of an index: where that which a stretch of a log names stands in it. No I/O.

    the head      what the stretch is, and how it ends
    two tables    the first hash of each page of entries; the checksum of each page; the checksum of all this
    entries       (hash of a key, value), 16 bytes each, sorted, in pages of 256
    rows          one for each turn, 20 bytes each, in log order, in pages of 204

A key is a letter and a name: a turn's (`TURN`; its value is the turn's ordinal, all others' the offset of a line),
what is recorded of a turn later (`ABOUT`), its children (`CHILD`), a request id's (`REQUEST`), a program's
(`PROGRAM`), an entry's, by who keeps it and its kind (`KEPT`), the ratings and labels of a turn, or, of no name, of the
conversation (`NOTED`), and, of no name, what moves the head (`MOVE`). What a log says is not here, but for hashes of
these names.

A row tells a turn's line, parent and depth, and one turn further up, so chosen that every turn above is reached in
few steps: about twice the logarithm of how many lie between (Myers, "An applicative random-access stack").

Numbers are big-endian, so entries sort as bytes. Each page has its checksum, since "it is not there" is believed
too. Must stay in step with docs/reference/format.md.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

TURN, ABOUT, CHILD, REQUEST, PROGRAM = b"t", b"a", b"c", b"q", b"p"
KEPT, NOTED, MOVE = b"e", b"n", b"m"

_MAGIC = b"index-2\n"
_HEAD = struct.Struct(">8s9Q22s22s")
_ENTRY = struct.Struct(">8sQ")
_ROW = struct.Struct(">QIII")
_SUM = struct.Struct(">I")
_ENTRIES = 256
"""Entries in a page."""
_ROWS = 204
"""Rows in a page."""

_FIRST = 1 << 15
"""How many bytes of a part are read at first: all, of most."""

Read = Callable[[int, int], bytes]
"""Reads up to so many bytes of a part's file from an offset."""


class Damaged(Exception):
    """Raised when a part is not what was written. Next: take the index for not there, and have it made anew."""


def hashed(letter: bytes, name: str) -> bytes:
    """Return the eight bytes by which a key is found."""
    return blake2b(letter + name.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def entry(letter: bytes, name: str, value: int) -> bytes:
    """Return an entry."""
    return _ENTRY.pack(hashed(letter, name), value)


def kind_of(plugin: str, entry: str) -> str:
    """Return the name of a kind of entries."""
    return f"{plugin}\0{entry}"


class Row(NamedTuple):
    """A turn in the tree, named by its ordinal as all turns are here."""

    offset: int
    """Of its line in the log."""
    parent: int
    """0: it is a root."""
    jump: int
    """A turn above it; of a root: itself."""
    depth: int


def row(offset: int, ordinal: int, parent: int, row_of: Callable[[int], Row]) -> Row:
    """Return a new turn's row. Args: row_of: gives the rows of turns above it."""
    if not parent:
        return Row(offset, 0, ordinal, 0)
    above = row_of(parent)
    far = row_of(above.jump)
    as_far = above.depth - far.depth == far.depth - row_of(far.jump).depth
    return Row(offset, parent, far.jump if as_far else parent, above.depth + 1)


def meeting(a: int, b: int, row_of: Callable[[int], Row]) -> int:
    """Return the nearest turn that is both of two or above them; 0: there is none."""
    left, right = row_of(a), row_of(b)
    while left.depth != right.depth:
        if left.depth < right.depth:
            a, b, left, right = b, a, right, left
        a = left.jump if row_of(left.jump).depth >= right.depth else left.parent
        left = row_of(a)
    while a != b:
        if not left.depth:
            return 0
        a, b = (left.parent, right.parent) if left.jump == right.jump else (left.jump, right.jump)
        left, right = row_of(a), row_of(b)
    return a


def above(a: int, depth: int, row_of: Callable[[int], Row]) -> int:
    """Return the turn of a depth that is a turn or above it; 0: it is not that deep."""
    found = row_of(a)
    if found.depth < depth:
        return 0
    while found.depth > depth:
        a = found.jump if row_of(found.jump).depth >= depth else found.parent
        found = row_of(a)
    return a


class Stretch(NamedTuple):
    """What a part covers."""

    inode: int
    """Of the log's file."""
    start: int
    """Offset of its first byte."""
    end: int
    """Offset of the first byte after it: a sealed line ended there, and with it what was appended at once."""
    records_before: int
    records: int
    """How many stand before its end."""
    turns_before: int
    turns: int
    """How many stand before its end."""
    erased: int
    """How many tombstones stand before its end, at least."""
    entries: int
    chain_before: bytes
    """What the last seal before it says."""
    chain: bytes
    """What its last seal says."""


def encode(stretch: Stretch, entries: Iterable[bytes], rows: bytes) -> bytes:
    """Return a part's bytes. Args: entries: in any order."""
    ordered = b"".join(sorted(entries))
    pages = [*_pages(ordered, _ENTRIES * _ENTRY.size), *_pages(rows, _ROWS * _ROW.size)]
    fences = [page[:8] for page in pages[: _count(stretch.entries, _ENTRIES)]]
    sums = struct.pack(f">{len(pages)}I", *map(zlib.crc32, pages))
    head = _HEAD.pack(_MAGIC, *stretch) + b"".join(fences) + sums
    return b"".join((head, _SUM.pack(zlib.crc32(head)), ordered, rows))


def _pages(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _count(items: int, in_page: int) -> int:
    return -(-items // in_page)


def _range(data: bytes, size: int, key: bytes) -> tuple[int, int]:
    """Return from where to where items of a size, in order, begin with a key."""

    def begins(number: int) -> bytes:
        return data[number * size : number * size + 8]

    indexes = range(len(data) // size)
    return bisect_left(indexes, key, key=begins), bisect_right(indexes, key, key=begins)


class Part:
    """A part that is read page by page. Args: read: reads its file. Raises: Damaged."""

    def __init__(self, read: Read) -> None:
        self._begun = data = read(0, _FIRST)
        if len(data) < _HEAD.size or not data.startswith(_MAGIC):
            raise Damaged("it is no part of an index")
        self.stretch = stretch = Stretch(*_HEAD.unpack_from(data)[1:])
        own = stretch.turns - stretch.turns_before
        if not 0 <= own < 1 << 32 or stretch.entries >= 1 << 32:
            raise Damaged("its head was altered")
        entry_pages, row_pages = _count(stretch.entries, _ENTRIES), _count(own, _ROWS)
        size = _HEAD.size + 8 * entry_pages + 4 * (entry_pages + row_pages)
        if len(data) < size + 4:
            data = read(0, size + 4)
        if data[size : size + 4] != _SUM.pack(zlib.crc32(data[:size])):
            raise Damaged("its head was altered")
        fences_end = _HEAD.size + 8 * entry_pages
        self._fences = data[_HEAD.size : fences_end]
        self._sums = data[fences_end:size]
        self._entries_at = size + 4
        self._rows_at = self._entries_at + stretch.entries * _ENTRY.size
        self._end = self._rows_at + own * _ROW.size
        self._kept: dict[int, bytes] = {}
        """The pages that were read."""

    def values(self, key: bytes, read: Read) -> list[int]:
        """Return the values of a hash, in order. Raises: Damaged."""
        found: list[int] = []
        first, last = _range(self._fences, 8, key)
        for number in range(max(0, first - 1), last):
            page = self._page(number, read)
            for number in range(*_range(page, _ENTRY.size, key)):
                found.append(_ENTRY.unpack_from(page, number * _ENTRY.size)[1])
        return found

    def row(self, ordinal: int, read: Read) -> Row:
        """Return the row of one of its turns. Raises: Damaged."""
        page, at = divmod(ordinal - self.stretch.turns_before - 1, _ROWS)
        data = self._page(len(self._fences) // 8 + page, read)
        return Row._make(_ROW.unpack_from(data, at * _ROW.size))

    def everything(self, read: Read) -> tuple[list[bytes], bytes]:
        """Return its entries and its rows. Raises: Damaged."""
        pages = [self._page(number, read) for number in range(len(self._sums) // 4)]
        self._kept = {}
        own = len(self._fences) // 8
        return _pages(b"".join(pages[:own]), _ENTRY.size), b"".join(pages[own:])

    def _page(self, number: int, read: Read) -> bytes:
        page = self._kept.get(number)
        if page is None:
            own = len(self._fences) // 8
            if number < own:
                start = self._entries_at + number * _ENTRIES * _ENTRY.size
                end = min(start + _ENTRIES * _ENTRY.size, self._rows_at)
            else:
                start = self._rows_at + (number - own) * _ROWS * _ROW.size
                end = min(start + _ROWS * _ROW.size, self._end)
            page = self._begun[start:end] if end <= len(self._begun) else read(start, end - start)
            if _SUM.pack(zlib.crc32(page)) != self._sums[4 * number : 4 * number + 4]:
                raise Damaged("a page of it was altered")
            self._kept[number] = page
        return page


def joined(parts: Sequence[tuple[Stretch, list[bytes], bytes]]) -> tuple[Stretch, bytes]:
    """Return one part in place of several that follow each other."""
    first, last = parts[0][0], parts[-1][0]
    entries = [found for _, some, _ in parts for found in some]
    stretch = last._replace(
        start=first.start,
        records_before=first.records_before,
        turns_before=first.turns_before,
        chain_before=first.chain_before,
        entries=len(entries),
    )
    return stretch, encode(stretch, entries, b"".join(rows for _, _, rows in parts))


def packed(found: Row) -> bytes:
    """Return a row's bytes."""
    return _ROW.pack(*found)
