"""What stands where in a long log, kept beside it: derived, discardable, compared before it is believed.

    <folder>/indexes/<id>/<start>-<end>    a part: what it covers of the log, in hexadecimal (`index_parts`)

An index answers what would else take the whole log: the records of a turn that stands far back, where two
turns meet, whether a request id was ever sent. "It is there" is always read from the log's own line, whose
seal is checked. "It is not there" is believed of parts that follow each other from the start without a gap,
whose checksums are right, and of which the last ends where the log, in that very file, has the seal that it
names, as long as all that changed the log since were appends of ours (`witness`). Whatever is otherwise, the
answer is None, "cannot tell", and the log is read as if there were no index.

Who makes and removes the parts: `index_making`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from hashlib import sha256
from itertools import pairwise
from typing import TypeVar

from ledger.errors import LedgerError
from ledger.records import codec, kinds
from ledger.stores import handout, index_parts, lines
from ledger.stores.files import Descriptor
from ledger.stores.index_parts import (
    ABOUT,
    CHILD,
    KEPT,
    MOVE,
    NOTED,
    PROGRAM,
    REQUEST,
    TURN,
    Damaged,
    Part,
    Row,
    Stretch,
)
from ledger.stores.reading import Log

T = TypeVar("T")

MOST_LINES = 512
"""How many lines of the log one answer may take."""
_BLOCK = 1 << 14
"""How much of the log is read at once, in bytes."""
FAILURES = (OSError, LedgerError, Damaged)
"""What may come of reading an index."""


class CannotTell(Damaged):
    """Raised when a line of the log cannot be checked alone, or the log is another. Next: read the whole."""


class Index:
    """Answers what stands in a log before a place. None: it cannot tell.

    Args: place: the folder of its parts. names: those that follow each other, from the start. file: the log.
    distrust: told that a part is not what was written. stands: says whether all that changed the log since it was
    begun were appends of ours. Raises: Damaged, and as files.
    """

    def __init__(
        self,
        log: Log,
        file: Descriptor,
        place: str,
        names: Sequence[str],
        distrust: Callable[[], None],
        stands: Callable[[], bool],
    ) -> None:
        self._log, self._place, self._names = log, place, names
        self._identity = file.found.st_dev, file.found.st_ino
        self._distrust, self._stands = distrust, stands
        self._known: dict[int, Part] = {}
        self.end = self._part(len(names) - 1).stretch
        """What its last part covers."""

    # -- questions

    def turn(self, turn: str) -> list[kinds.Recorded] | None:
        """Return what is recorded of a turn, its first record first; nothing: there is no such turn."""
        return self._answer(partial(self._turn, turn))

    def children(self, turn: str) -> list[str] | None:
        """Return the turns that continue a turn, in log order."""

        def find() -> list[str]:
            found = self._turns(self._values(CHILD, turn))
            return [record.turn for record in found if record.parent == turn]

        return self._answer(find)

    def request(self, request_id: str) -> list[str] | None:
        """Return the turns that were sent under a request id, in log order."""

        def find() -> list[str]:
            found = self._turns(self._values(REQUEST, request_id))
            return [record.turn for record in found if record.request_id == request_id]

        return self._answer(find)

    def program(self, version: str) -> list[kinds.Program] | None:
        """Return the records of a program, in log order, one at least where there is one."""

        def find() -> list[kinds.Program]:
            found = self._lines(self._values(PROGRAM, version))
            return [r for r in found if isinstance(r, kinds.Program) and r.version == version]

        return self._answer(find)

    def head(self) -> list[kinds.Recorded] | None:
        """Return the last turn's first record, and what moved the head since."""
        return self._answer(self._head)

    @property
    def erased(self) -> bool:
        """Whether something was erased."""
        return bool(self.end.erased)

    def meeting(self, a: str, b: str) -> list[str] | None:
        """Return the nearest turn on the branches of two turns that are there; nothing: there is none."""
        return self._answer(partial(self._meeting, a, b))

    def above(self, turn: str, depth: int) -> list[str] | None:
        """Return the turn of a depth (0: a root) on the branch of one that is there; nothing: it is not that deep."""

        def find() -> list[str]:
            found = index_parts.above(self.ordinal(turn), depth, self.row)
            return self._ids([found] if found else [])

        return self._answer(find)

    def at(self, ordinal: int) -> list[str] | None:
        """Return the turn of an ordinal; nothing: there are not so many."""
        there = [ordinal] if 0 < ordinal <= self.end.turns else []
        return self._answer(lambda: self._ids(there))

    def place(self, turn: str) -> tuple[int, int] | None:
        """Return the ordinal of a turn that is there, and how many turns stand above it."""

        def find() -> tuple[int, int]:
            ordinal = self.ordinal(turn)
            return ordinal, self.row(ordinal).depth

        return self._answer(find)

    def count(self) -> int | None:
        """Return how many turns there are."""
        return self._answer(lambda: self.end.turns)

    def kept(self, plugin: str, entry: str) -> list[kinds.Entry] | None:
        """Return the entries of a kind, in log order."""
        name = index_parts.kind_of(plugin, entry)

        def find() -> list[kinds.Entry]:
            found = self._lines(self._values(KEPT, name))
            entries = (record for record in found if isinstance(record, kinds.Entry))
            return [one for one in entries if (one.plugin, one.entry) == (plugin, entry)]

        return self._answer(find)

    def noted(self, turn: str | None) -> list[kinds.Entry] | None:
        """Return the ratings and labels of a turn, or the conversation's, in log order."""

        def find() -> list[kinds.Entry]:
            found = self._lines(self._values(NOTED, turn or ""))
            return [r for r in found if isinstance(r, kinds.Entry) and r.turn == turn]

        return self._answer(find)

    # -- for who adds to it

    def ordinal(self, turn: str) -> int:
        """Return which turn it is, 1 the first; 0: there is no such turn. Raises: Damaged, and as files."""
        with self._opened() as file:
            for ordinal in self._values(TURN, turn):
                line = Block(self._log, file).line(self.row(ordinal).offset)
                record = codec.decode_struct(line, 0)
                if isinstance(record, kinds.Turn) and record.turn == turn:
                    return ordinal
        return 0

    def row(self, ordinal: int) -> Row:
        """Return a turn's row. Raises: Damaged, and as files."""
        for number, part in self._parts.items():
            if part.stretch.turns_before < ordinal <= part.stretch.turns:
                return part.row(ordinal, self._reader(number))
        raise Damaged("a row names a turn that is not there")

    # -- answers

    def _answer(self, work: Callable[[], T]) -> T | None:
        try:
            found = handout.shallow(work)
            # Asked afterwards: what it said until now was right.
            return found if self._stands() else None
        except (CannotTell, FileNotFoundError):  # A part may have been joined with others since.
            return None
        except FAILURES:
            self._distrust()
            return None

    def _turn(self, turn: str) -> list[kinds.Recorded]:
        ordinals = self._values(TURN, turn)
        if not ordinals:
            return []
        at = self.row(ordinals[0]).offset
        later = [offset for offset in self._values(ABOUT, turn) if offset > at]
        first, *more = self._lines([at, *later])
        if not isinstance(first, kinds.Turn) or first.turn != turn:
            raise CannotTell
        return [first, *(record for record in more if getattr(record, "turn", None) == turn)]

    def _head(self) -> list[kinds.Recorded]:
        last = self.row(self.end.turns).offset if self.end.turns else -1
        moves = [offset for offset in self._values(MOVE, "") if offset > last]
        return self._lines([last, *moves] if last >= 0 else moves)

    def _meeting(self, a: str, b: str) -> list[str]:
        met = index_parts.meeting(self.ordinal(a), self.ordinal(b), self.row)
        return self._ids([met] if met else [])

    def _ids(self, ordinals: Sequence[int]) -> list[str]:
        return [record.turn for record in self._turns([self.row(n).offset for n in ordinals])]

    # -- parts

    @cached_property
    def _parts(self) -> dict[int, Part]:
        """All of them, in order."""
        parts = {number: self._part(number) for number in range(len(self._names))}
        first = parts[0].stretch
        begins = first.start, first.records_before, first.turns_before, first.chain_before
        whole = begins == (0, 0, 0, self._log.first_chain)
        for before, after in pairwise(part.stretch for part in parts.values()):
            whole = whole and follows(before, after)
        if not whole:
            raise Damaged("its parts do not follow each other")
        return parts

    def _part(self, number: int) -> Part:
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = Part(self._reader(number))
            stretch = found.stretch
            if named(stretch) != self._names[number] or stretch.inode != self._identity[1]:
                raise Damaged("a part is of another log")
        return found

    def _reader(self, number: int) -> index_parts.Read:
        return partial(read_part, self._log, os.path.join(self._place, self._names[number]))

    def _values(self, letter: bytes, name: str) -> list[int]:
        key = index_parts.hashed(letter, name)
        found = [part.values(key, self._reader(number)) for number, part in self._parts.items()]
        return [value for some in found for value in some]

    # -- lines of the log

    def _opened(self) -> Descriptor:
        file = Descriptor(self._log.data, os.O_RDONLY)
        if (file.found.st_dev, file.found.st_ino) != self._identity:
            raise CannotTell
        return file

    def _turns(self, offsets: Sequence[int]) -> Iterator[kinds.Turn]:
        return (record for record in self._lines(offsets) if isinstance(record, kinds.Turn))

    def _lines(self, offsets: Sequence[int]) -> list[kinds.Recorded]:
        if len(offsets) > MOST_LINES:
            raise CannotTell
        with self._opened() as file:
            block = Block(self._log, file)
            return [block.checked(offset) for offset in offsets]


class Block:
    """Some bytes of a log, in which lines are looked for that stand near each other."""

    def __init__(self, log: Log, file: Descriptor) -> None:
        self._log, self._file = log, file
        self._base, self._data = 0, b""

    def checked(self, offset: int) -> kinds.Recorded:
        """Return the record of a line whose seal checks."""
        line = self.line(offset)
        chain, seal = self._chain_before(offset), codec.find_seal(line)
        if chain is None or seal is None:
            raise CannotTell
        digest = sha256(chain)
        digest.update(memoryview(line)[: seal.quote_at])
        if codec.salt_text(digest.digest()[:16]) != seal.chain:
            raise CannotTell
        return codec.decode_struct(line, seal.seq)

    def ended(self, offset: int) -> kinds.Recorded:
        """Return the record of a line whose seal checks, and whose batch was written to its end: else it is void."""
        record, line = self.checked(offset), self.line(offset)
        seal, end = codec.find_seal(line), offset + len(line) + 1
        while seal is not None and seal.i < seal.n:
            self.checked(end)
            line = self.line(end)
            after, end = codec.find_seal(line), end + len(line) + 1
            if after is None or (after.i, after.n) != (seal.i + 1, seal.n):
                raise CannotTell
            seal = after
        return record

    def line(self, offset: int) -> bytes:
        """Return a line without its line feed."""
        start = max(0, offset - lines.GUARD)
        inside = self._base <= start and offset < self._base + len(self._data)
        end = self._data.find(b"\n", offset - self._base) if inside else -1
        length = _BLOCK
        while end < 0:
            self._base, self._data = start, self._read(start, length)
            end = self._data.find(b"\n", offset - start)
            if end < 0 and len(self._data) < length:
                raise CannotTell
            length *= 2
        return self._data[offset - self._base : end]

    def _read(self, start: int, length: int) -> bytes:
        return self._log.files.read(self._file.number, length, start)

    def _chain_before(self, offset: int) -> bytes | None:
        if not offset:
            return self._log.first_chain
        before = self._data[max(0, offset - self._base - lines.GUARD) : offset - self._base]
        found = codec.find_seal(before[:-1]) if before.endswith(b"\n") else None
        return found.chain if found is not None else None


def read_part(log: Log, path: str, offset: int, length: int) -> bytes:
    """Return up to `length` bytes of a part."""
    with Descriptor(path, os.O_RDONLY) as file:
        return log.files.read(file.number, length, offset)


def named(stretch: Stretch) -> str:
    """Return the name of a part."""
    return f"{stretch.start:x}-{stretch.end:x}"


def follows(before: Stretch, after: Stretch) -> bool:
    """Say whether a stretch begins as one before it ends."""
    begins = after.start, after.records_before, after.turns_before, after.chain_before
    ends = before.end, before.records, before.turns, before.chain
    return before.inode == after.inode and begins == ends and before.erased <= after.erased
