"""A log cut into rows, and rows made a log again. Pure: no I/O.

Theory. Row k holds line k with its line feed and the blank lines after it; row 0 the blank lines before
line 1, if there are any. So the rows in order, joined, are the bytes of the log, and where a line stands
among the others is the number of its row. What stands torn after the last line feed is no row.

A row that is gone, or is not one line, was altered by hand. It reads as a line that is no record (GONE), so
that the places of the others stay and the next seal tells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ledger.records import codec, erasing
from ledger.stores import handout, lines
from ledger.stores.base import Incarnation, Position

GONE = b"null\n"


class Head(NamedTuple):
    """What the row of a conversation says of its log."""

    key: int
    records: int
    size: int
    """Bytes of all rows and of `torn`."""
    chain: str
    """The chain as the last sealed line wrote it; before that, the first chain."""
    ready: bool
    """Whether the log ends in a sealed line, so that `chain` is all that the next one covers."""
    newer: bool
    """Whether it holds a record of a newer format."""
    first_at: str | None
    first_salt: str | None
    erased: int
    """How often something was erased from it."""
    torn: bytes | None
    """What stands after the last line feed and is no whole line."""

    @property
    def incarnation(self) -> Incarnation | None:
        """Whose log it is; None: it holds no record."""
        return (self.first_at or "", self.first_salt) if self.records else None

    @property
    def position(self) -> Position:
        """The position of its end."""
        chain = self.chain if self.records and self.ready else None
        return Position(self.records, self.incarnation, chain)


def nothing(conversation: str) -> Head:
    """Return the head of a conversation that is not there."""
    chain = codec.first_chain(conversation).decode()
    return Head(0, 0, 0, chain, True, False, None, None, 0, None)


class Cut(NamedTuple):
    """A whole log as rows."""

    rows: dict[int, bytes]
    head: Head
    """What is to be said of it, but for its key."""


def cut(conversation: str, data: bytes) -> Cut:
    """Cut the bytes of a whole log into rows."""
    scanner = codec.Scanner(codec.first_chain(conversation))
    whole = data.rfind(b"\n") + 1
    scanner.feed(data[:whole])
    if scanner.feed_unended(data[whole:]):
        whole = len(data)
    found = scanner.settled(at_end=True)
    starts = [line.start for line in found]
    ends = [*starts[1:], whole][: len(starts)]
    rows = {line.seq: data[line.start : end] for line, end in zip(found, ends, strict=True)}
    blank = data[: starts[0]] if starts else data[:whole]
    if blank:
        rows[0] = blank
    torn = data[whole:] or None
    first = first_of(line_of(rows[1])) if found else (None, None)
    head = Head(
        key=0,
        records=len(found),
        size=len(data),
        chain=scanner.chain.decode(),
        ready=torn is None and _ends_sealed(rows, len(found)),
        newer=any(map(lines.is_newer, data.split(b"\n"))),
        first_at=first[0],
        first_salt=first[1],
        erased=0,
        torn=torn,
    )
    return Cut(rows, head)


def first_of(line: bytes) -> Incarnation:
    """Return whose log it is that begins with a line, as a database can keep it: PostgreSQL keeps no NUL."""
    at, salt = handout.incarnation(line)
    return (ascii(at) if "\0" in at else at), salt


def _ends_sealed(rows: Mapping[int, bytes], count: int) -> bool:
    if not count:
        return not rows
    return is_anchor(rows[count])


def is_anchor(row: bytes) -> bool:
    """Say whether a row is a sealed line and its line feed alone: a scanner can start after it."""
    return row.find(b"\n") == len(row) - 1 and codec.find_seal(row[:-1]) is not None


def line_of(row: bytes) -> bytes:
    """Return the line of a row, without its line feed."""
    return row.partition(b"\n")[0]


def is_one_line(row: bytes, *, last: bool) -> bool:
    """Say whether a row is one line; the last of a log may lack its line feed."""
    end = row.find(b"\n")
    if row.isspace() or not row:
        return False
    if end == len(row) - 1:
        return True
    if end < 0:
        return last
    line, *rest = row.split(b"\n")
    return row.endswith(b"\n") and not codec.is_blank(line) and all(map(codec.is_blank, rest))


# -- reading ---------------------------------------------------------------------------------------


class Window(NamedTuple):
    """Some rows of a log that follow each other, to be read from a place where a scanner can start."""

    first: int
    """The number of the first row."""
    rows: list[bytes]
    """Without holes, up to the last that was asked for."""

    @property
    def starts_well(self) -> bool:
        """Whether a scanner can start: at the beginning, or after a first row that is sealed."""
        return self.first <= 1 or is_anchor(self.rows[0])

    @property
    def ends_well(self) -> bool:
        """Whether what follows says nothing of these lines: the last is sealed, and the last of its append."""
        found = codec.find_seal(line_of(self.rows[-1])) if is_anchor(self.rows[-1]) else None
        return found is not None and found.i == found.n

    def chain_at(self, place: int) -> str | None:
        """Return the chain that a line of these wrote; None: it is none of these, or is not sealed."""
        index = place - self.first
        row = self.rows[index] if 0 <= index < len(self.rows) else GONE
        seal = codec.find_seal(line_of(row))
        return seal.chain.decode() if seal is not None else None

    def reader(self, conversation: str) -> lines.Reader:
        """Return a reader of these lines. The first row, if it is not the log's, is where it starts."""
        if self.first <= 1:
            return self._reader(self.rows, codec.Scanner(codec.first_chain(conversation)))
        seal = codec.find_seal(line_of(self.rows[0]))
        chain = seal.chain if seal is not None else b""
        return self._reader(self.rows[1:], codec.Scanner(chain, count=self.first, after=seal))

    def _reader(self, rows: list[bytes], scanner: codec.Scanner) -> lines.Reader:
        data = b"".join(rows)
        if data and not data.endswith(b"\n"):
            data += (
                b"\n"  # It belongs to the last line, whoever writes it later: no seal covers it.
            )
        return lines.Reader(lines.BytesSource(data), scanner)


def window(found: Iterable[tuple[int, bytes]], first: int, last: int, *, end: int) -> Window:
    """Return rows as a window from one number to another, holes filled.

    Args: end: how many lines the log has.
    """
    there = {seq: bytes(row) for seq, row in found}
    low = 0 if first <= 1 and 0 in there else max(first, 1)
    rows = []
    for seq in range(low, last + 1):
        row = there.get(seq, GONE if seq else b"")
        good = not seq or is_one_line(row, last=seq == end)
        rows.append(row if good else GONE)
    return Window(low if rows else max(first, 1), rows)


# -- adding ----------------------------------------------------------------------------------------


class Sealed(NamedTuple):
    """Records as rows, to be added at one place and no other."""

    rows: list[bytes]
    head: Head
    """What is to be said of the log with them."""

    @property
    def chain_of_first(self) -> bytes:
        """What tells these rows from any others at their place, also once they were erased."""
        seal = codec.find_seal(line_of(self.rows[0]))
        return seal.chain if seal is not None else b""


def seal(head: Head, bodies: Sequence[bytes], salts: bytes, covered: hashlib._Hash) -> Sealed:
    """Seal records to follow a log's last line.

    Args: salts: 16 bytes for each. covered: what the first of them covers (`Scanner.covered`).
    """
    each = (salts[i : i + 16] for i in range(0, len(salts), 16))
    data, chain = codec.seal(bodies, head.records, covered, each)
    rows = [line + b"\n" for line in data[:-1].split(b"\n")]
    first = head.incarnation or first_of(rows[0][:-1])
    after = head._replace(
        records=head.records + len(rows),
        size=head.size + len(data),
        chain=chain.decode(),
        ready=True,
        newer=False,
        first_at=first[0],
        first_salt=first[1],
        torn=None,
    )
    return Sealed(rows, after)


def mentions(rows: Iterable[tuple[int, bytes]]) -> list[tuple[str, int]]:
    """Return which attachments lines name, each with the number of the row."""
    return [
        (sha256, seq) for seq, row in rows for sha256 in dict.fromkeys(erasing.attachments(row))
    ]
