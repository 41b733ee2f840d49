"""Reading one log: where to start, what may be handed out, what is remembered.

Readers wait for nobody. What is open at the end (a batch not finished, a line without its line feed) is
settled by trying the append lock without waiting: who gets it knows that nobody is writing, looks
again, and what is still open will never be finished. Who does not returns what stands before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from msgspec import structs

from ledger.errors import StoreCorrupt, StoreGone
from ledger.records import codec, kinds
from ledger.records.verdicts import Line
from ledger.stores import files, handout, lines, locks, plans
from ledger.stores.base import Position, Records, agrees
from ledger.stores.files import Descriptor, Files
from ledger.stores.flushing import Debts, Flushes

T = TypeVar("T")
Decode = Callable[[lines.Piece, int], list[T]]
"""Makes records of the lines of a piece beyond a place."""


def nothing(piece: lines.Piece, after: int) -> list[None]:
    """Make no records: only where the log ends is asked."""
    return []


_DAMAGED = frozenset({"suspect", "unreadable"})
_TRIES = 3
"""How often a log is read while names come and go beside it."""
_DOUBTS = 16
"""How many damaged lines are looked at once more."""


class Log:
    """One conversation's log: its id, its files, and the calls that reach them.

    Args: stem: the path without an ending. flushes: those of the whole store.
    """

    __slots__ = ("_debts", "_flushes", "conversation", "files", "stem")

    def __init__(self, conversation: str, stem: str, files: Files, flushes: Flushes) -> None:
        self.conversation = conversation
        self.stem = stem
        self.files = files
        self._flushes = flushes
        self._debts: Debts | None = None

    def debts(self) -> Debts:
        """Return what is known of its flushes: for all who hold it at once, the same."""
        if self._debts is None:
            self._debts = self._flushes.of(self.conversation)
        return self._debts

    def write(self, work: Callable[[], object], file: Descriptor) -> None:
        """Write to the log, and make it durable. Args: work: writes, and may be done again. Raises OSError."""
        self.debts().write(work, file, self.files)

    @property
    def data(self) -> str:
        """The path of the log."""
        return self.stem + ".jsonl"

    @property
    def lock(self) -> str:
        """The path of its append lock."""
        return self.stem + ".lock"

    @property
    def plan(self) -> str:
        """The path of what was decided to be erased."""
        return self.stem + ".erase"

    @property
    def forgotten(self) -> str:
        """The path of the list of turns that were erased."""
        return self.stem + ".forgotten"

    @property
    def first_chain(self) -> bytes:
        """The chain before line 1."""
        return codec.first_chain(self.conversation)


def recall(known: lines.Known | None, source: lines.FileSource) -> tuple[lines.Known | None, bool]:
    """Return what is known if it may be used, and whether the log is another than was known."""
    if known is None:
        return None, False
    if not known.still_stands(source):
        return None, True
    return (known if known.identity == source.identity else None), False


def found_end(log: Log, file: Descriptor) -> lines.Known:
    """Return what is known of a log from its last lines, as many as it takes to find its end."""
    source = plans.source(file, log.files, log.plan)
    reader, counted = lines.find_end(source, log.first_chain)
    return lines.known_at_end(source, reader, lines.head_of(source), counted=counted)


def grown(log: Log, known: lines.Known) -> lines.Known | None:
    """Return what is known of a log to which others appended, read on from what was known; no lock is needed.

    None: it has not grown, or that cannot be told without it, such as while a batch is being written.
    """
    found = files.found_at(log.data)
    if found is None or found.st_size <= known.end:
        return None
    with suppress(FileNotFoundError), Descriptor(log.data, os.O_RDONLY) as file:
        return handout.shallow(lambda: _grown(lines.FileSource(file, log.files), known))
    return None


def _grown(source: lines.FileSource, known: lines.Known) -> lines.Known | None:
    stands, _ = recall(known, source)
    if stands is None or not stands.counted:
        return None
    reader = lines.Reader(source, stands.scanner.onward())
    for _ in reader.whole_lines():
        pass
    if reader.scanner.batch_open or not reader.scanner.is_sealed:
        return None
    found = lines.known_at_end(source, reader, stands.head, counted=True)
    return structs.replace(found, newer=stands.newer or reader.newer)


def beginning(log: Log, file: Descriptor) -> list[kinds.Recorded]:
    """Return the first records of a long log, as many as are read at once and settled there; perhaps none."""
    source = plans.source(file, log.files, log.plan)
    source.size = min(source.size, lines.BLOCK)
    reader = lines.Reader(source, codec.Scanner(log.first_chain))
    return [record for piece in reader.whole_lines() for record in handout.structs(piece, 0)]


def read(
    log: Log,
    file: Descriptor,
    after: int,
    *,
    known: lines.Known | None,
    decode: Decode[T],
    strict: bool,
) -> tuple[Records[T], lines.Known | None]:
    """Return the records after a position, and what to remember of the log (None: nothing new).

    An erasure that begins meanwhile leaves lines half overwritten for a moment. Where no seal would tell
    (another writer's line, a line that does not check), the log is read again if one may have begun.
    Raises: store-gone: the position is not in this log. store-corrupt: strict, and a line is damaged.
    """
    before = _names_changed(log)
    records, one, remembered = _read_once(log, file, after, known, decode)
    for _ in range(_TRIES):
        if not (one.doubts or one.unsealed) or before == (before := _names_changed(log)):
            break
        records, one, remembered = _read_once(log, file, after, known, decode)
    if strict and one.doubts:
        raise StoreCorrupt(
            where=log.data, seq=one.doubts[0].seq, reason="the line, or one beside it, was altered"
        )
    return records, remembered


def _names_changed(log: Log) -> int:
    """Return when a name in the log's folder came or went last: a plan does both."""
    return os.stat(os.path.dirname(log.data)).st_mtime_ns


def _read_once(
    log: Log, file: Descriptor, after: int, known: lines.Known | None, decode: Decode[T]
) -> tuple[Records[T], _Pass[T], lines.Known | None]:
    source = plans.source(file, log.files, log.plan)
    known, replaced = recall(known, source)
    head = known.head if known is not None else None
    head = head or lines.head_of(source)
    given = after.incarnation if isinstance(after, Position) and after else None
    if given is not None and (replaced or head is None or head.incarnation != given):
        raise _gone(log, source, after)
    one = _Pass(log, source, after, known, decode)
    if given is not None and not agrees(after, Position(after, given, one.begun)):
        raise _gone(log, source, after)
    one.run()
    if one.changed_meanwhile():
        one = _Pass(log, source, after, known, decode)
        one.run()
    if after > one.reader.scanner.count and not one.counted:
        one = _Pass(log, source, after, None, decode, whole=True)
        one.run()
    if after > one.reader.scanner.count:
        found = one.reader.scanner.count
        raise StoreGone(conversation=log.conversation, after=int(after), found=found)
    if head is None or not head.whole:
        head = lines.head_of(source)
    count = max(int(after), one.reader.taken)
    incarnation = head.incarnation if head is not None and count else None
    return (
        Records(one.records, Position(count, incarnation, one.ended(count))),
        one,
        one.remember(head),
    )


def _gone(log: Log, source: lines.Source, after: int) -> StoreGone:
    """Return the refusal of a position that is of another log."""
    found = lines.find_end(source, log.first_chain)[0].scanner.count
    return StoreGone(conversation=log.conversation, after=int(after), found=found)


class _Doubt(NamedTuple):
    """A line that was found damaged, and its bytes, to be looked at once more."""

    seq: int
    start: int
    content: bytes


class _Pass(Generic[T]):
    """One way through a log, from the best place to start to its end."""

    def __init__(
        self,
        log: Log,
        source: lines.FileSource,
        after: int,
        known: lines.Known | None,
        decode: Decode[T],
        *,
        whole: bool = False,
    ) -> None:
        self._log = log
        self._source = source
        self._after = int(after)
        self._compares = isinstance(after, Position) and after.chain is not None
        self._known = known
        self._decode = decode
        self._resume: codec.Scanner | None = None
        self.records: list[T] = []
        self.doubts: list[_Doubt] = []
        self.unsealed = False
        """Whether another writer's line was handed out."""
        self.begun: str | None = None
        """What tells the log up to the position from another; None: it is not asked for, or it ends before that."""
        scanner, self.counted = self._start(whole or not after)
        self._started_at = scanner.offset
        self.reader = lines.Reader(source, scanner)

    def _start(self, whole: bool) -> tuple[codec.Scanner, bool]:
        first_chain = self._log.first_chain
        if whole:
            return codec.Scanner(first_chain), True
        known = self._known
        if known is None or known.count < self._after:
            reader, counted = lines.find_end(self._source, first_chain)
            self._known = known = lines.known_at_end(self._source, reader, None, counted=counted)
        if known.count <= self._after:
            scanner, counted = known.scanner.onward(), known.counted
        else:
            scanner = lines.find_place(self._source, known, self._after, first_chain)
            counted = known.counted or not scanner.offset
        if self._compares:
            self.begun = lines.end_at(self._source, scanner, self._after)
        return scanner, counted

    def ended(self, count: int) -> str | None:
        """Return what tells the log up to where it was read from another of that length; None: that is not known."""
        scanner = self.reader.scanner
        return scanner.end if scanner.count == count == self.reader.taken else None

    def run(self) -> None:
        """Read to the end, and settle what is open there if nobody is writing."""
        reader = self.reader
        for piece in reader.whole_lines():
            self._take(piece)
        if not reader.scanner.batch_open and not reader.rest_looks_whole():
            self._resume = reader.scanner.onward()
            self._take(reader.finish(in_flight=False))
            return
        pieces: list[lines.Piece] = []
        with locks.held_now(self._log.lock, self._log.data) as nobody_writes:
            if nobody_writes:
                self._source.look()
                pieces += reader.whole_lines()
                self._resume = reader.scanner.onward()
                reader.take_rest()
        for piece in pieces:
            self._take(piece)
        self._take(reader.finish(in_flight=not nobody_writes))

    def _take(self, piece: lines.Piece) -> None:
        self.records += self._decode(piece, self._after)
        lines = [part for part in piece.found if isinstance(part, Line)]
        verdicts = {line.verdict for line in lines}
        self.unsealed = self.unsealed or "unsealed" in verdicts
        if _DAMAGED.isdisjoint(verdicts):
            return
        for line in lines:
            damaged = line.verdict in _DAMAGED and line.seq > self._after
            if damaged and len(self.doubts) < _DOUBTS:
                self.doubts.append(_Doubt(line.seq, line.start, piece.text(line)))

    def changed_meanwhile(self) -> bool:
        """Look at damaged lines once more, while nobody writes if that can be. Says if they changed."""
        if not self.doubts:
            return False
        with locks.held_now(self._log.lock, self._log.data):
            return any(
                self._source.read(doubt.start, len(doubt.content)) != doubt.content
                for doubt in self.doubts
            )

    def remember(self, head: lines.Head | None) -> lines.Known | None:
        """Return what is known of the log now; None when its end is still being written."""
        resume, known = self._resume, self._known
        if resume is None:
            return None
        went_on = self._started_at > 0
        return lines.Known(
            identity=self._source.identity,
            changed_ns=self._source.changed_ns,
            scanner=resume,
            guard=lines.guard_before(self._source, resume.offset),
            head=head if resume.count else None,
            counted=self.counted,
            newer=self.reader.newer or (went_on and known is not None and known.newer),
        )
