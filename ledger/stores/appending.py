"""Bytes added to a log, by the one who holds its lock.

A log never shrinks below a line feed: other readers remember offsets. So what is cut, from a torn tail
or after a failed write, is only what follows the last line feed. A torn tail is copied and flushed
first. The end that is written to is always known; files are never opened for appending, where the
system ignores it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import structs

from ledger.errors import LedgerError, StoreUnknown
from ledger.records import codec
from ledger.stores import handout, lines
from ledger.stores.base import Position
from ledger.stores.files import Descriptor, Files, named, naming, write_at
from ledger.stores.flushing import Owed
from ledger.stores.reading import Log, recall

_COPY = 1 << 20


# -- one append ------------------------------------------------------------------------------------


class Tail:
    """The end of a log, found under its lock: how many records it holds and what the next covers.

    Args: file: unchanged since what the system `found` of it. known: what was known of the log before.
    """

    def __init__(self, log: Log, file: Descriptor, known: lines.Known | None) -> None:
        self._log = log
        self._source = lines.FileSource(file, log.files, file.found)
        known, _ = recall(known, self._source)
        if known and not known.scanner.is_sealed and known.changed_ns != self._source.changed_ns:
            known = None  # What the next seal covers was remembered, and may be otherwise now.
        if known is None:
            reader, self.counted = lines.find_end(self._source, log.first_chain)
            self.newer = reader.newer
            head = lines.head_of(self._source)
        else:
            unchanged = known.end == self._source.size
            scanner = known.scanner if unchanged else known.scanner.onward()
            reader, self.counted = self._read(scanner), known.counted
            self.newer = known.newer or reader.newer
            head = known.head or lines.head_of(self._source)
        self._take(reader, head)

    def _read(self, scanner: codec.Scanner) -> lines.Reader:
        reader = lines.Reader(self._source, scanner)
        for _ in reader.whole_lines():
            pass
        return reader

    def _take(self, reader: lines.Reader, head: lines.Head | None) -> None:
        self._reader, self._scanner = reader, reader.scanner
        self._end = reader.scanner.offset
        self._lacks_line_feed = reader.take_rest()
        self._head = head if reader.scanner.count else None
        incarnation = self._head.incarnation if self._head is not None else None
        self.position = Position(reader.scanner.count, incarnation, reader.scanner.end)

    def known(self) -> lines.Known | None:
        """Return what is known of the log now, for who has to append to it again; None: its end is no sealed line."""
        if self._lacks_line_feed or self._end != self._source.size or not self._scanner.is_sealed:
            return None
        found = lines.known_at_end(self._source, self._reader, self._head, counted=self.counted)
        return structs.replace(found, newer=self.newer)

    def count(self) -> None:
        """Count all lines, where a `seq` was trusted before."""
        reader = self._read(codec.Scanner(self._log.first_chain))
        self.counted, self.newer = True, reader.newer
        self._take(reader, self._head)

    def tidy(self, file: Descriptor) -> None:
        """Set aside and cut what an unfinished append left after the last line feed."""
        if not self._lacks_line_feed and self._source.size > self._end:
            set_aside(file, self._log.files, self._end, self._log.stem)

    def end_line(self, file: Descriptor) -> None:
        """Write the line feed that the last line lacks, durably."""
        if self._lacks_line_feed:
            with naming(file.path):
                self._log.write(lambda: self._write(file, b"\n"), file)

    def _write(self, file: Descriptor, data: bytes) -> None:
        write(file, self._log.files, data, self._scanner.offset)

    def add(self, file: Descriptor, bodies: Sequence[bytes]) -> Added:
        """Seal records and write them at the end. They are not flushed yet, and owed if a flush fails."""
        added = self._sealed(file, bodies)
        debts = self._log.debts()
        debts.note(added.owed)
        try:
            self._write(file, added.owed.data)
        except BaseException:
            debts.strike(added.owed)
            raise
        return added

    def _sealed(self, file: Descriptor, bodies: Sequence[bytes]) -> Added:
        salts = os.urandom(16 * len(bodies))
        text, chain = codec.seal(
            bodies,
            int(self.position),
            self._scanner.covered,
            (salts[i : i + 16] for i in range(0, len(salts), 16)),
        )
        start = self._scanner.offset
        before = b"\n" if self._lacks_line_feed else b""
        count = int(self.position) + len(bodies)
        end = start + len(before) + len(text)
        head = self._head or _head_of_first(text, start + len(before))
        owed = Owed.of(file, start, before + text, head)
        scanner = codec.Scanner(chain, offset=end, count=count)
        position = Position(count, head.incarnation, scanner.end)
        return Added(owed, position, scanner, head, self.counted)


def _head_of_first(text: bytes, offset: int) -> lines.Head:
    line = text[: text.index(b"\n")]
    guard = line[-lines.GUARD :]
    return lines.Head(offset + len(line) - len(guard), guard, handout.incarnation(line), True)


class Added(NamedTuple):
    """Records that were written: where, the bytes, and what is known of the log with them."""

    owed: Owed
    """What is owed if a flush fails."""
    position: Position
    scanner: codec.Scanner
    """Stands behind them."""
    head: lines.Head
    counted: bool

    @property
    def stretch(self) -> tuple[int, int]:
        """Where they begin and end in the log."""
        return self.owed.offset, self.scanner.offset

    def known_at(self, found: os.stat_result) -> lines.Known:
        """Return what is known of the log with them, once the system said what it has."""
        return lines.Known(
            identity=self.owed.identity,
            changed_ns=found.st_ctime_ns,
            scanner=self.scanner,
            guard=self.owed.data[-lines.GUARD :],
            head=self.head,
            counted=self.counted,
            newer=False,
        )

    def stands_in(self, log: Log) -> bool:
        """Say whether they are in the file that has the log's name now, such as one that a repair put there."""
        try:
            with Descriptor(log.data, os.O_RDONLY) as file:
                source = lines.FileSource(file, log.files)
                there = source.read(self.owed.offset, len(self.owed.data))
                # Where a repair put lines back, they moved.
                return there == self.owed.data or self.owed.data in source.read(0, source.size)
        except (OSError, LedgerError):
            return False


# -- bytes -----------------------------------------------------------------------------------------


def write(file: Descriptor, files: Files, data: bytes, end: int) -> None:
    """Write at the end of a log, all or no whole batch.

    Raises: store-full, store-io and the like: nothing of it counts. store-unknown: what was written
    could not be cut. Any other exception passes, with the same done.
    """
    try:
        write_at(file, files, data, end)
    except OSError as error:
        _cut_after_failure(file, files, data, end)
        raise named(error, file.path) from error
    except BaseException:
        _cut_after_failure(file, files, data, end)
        raise


def _cut_after_failure(file: Descriptor, files: Files, data: bytes, end: int) -> None:
    """Cut a batch that was not written whole back to its last line feed; it is void then."""
    try:
        written = file.stat().st_size - end
        if 0 < written < len(data):
            files.cut(file.number, end + data.rfind(b"\n", 0, written) + 1)
    except (OSError, LedgerError) as error:
        raise StoreUnknown(
            where=file.path, reason="a write failed, and what it left could not be cut"
        ) from error


def set_aside(file: Descriptor, files: Files, start: int, stem: str) -> str:
    """Copy what follows the last line feed to `<stem>.torn-<n>`, durable, then cut it.

    Returns: the path of the copy. Raises: store-full and the like: nothing was cut.
    """
    copy = _new_copy(stem)
    try:
        with copy:
            offset = start
            while chunk := files.read(file.number, _COPY, offset):
                write_at(copy, files, chunk, offset - start)
                offset += len(chunk)
            files.flush(copy.number)
        files.flush_folder(os.path.dirname(stem))
    except OSError as error:
        with suppress(OSError):
            os.unlink(copy.path)
        raise named(error, copy.path) from error
    try:
        files.cut(file.number, start)
    except OSError as error:
        raise named(error, file.path) from error
    return copy.path


def _new_copy(stem: str) -> Descriptor:
    """Make the file for the next piece. Numbers are given in order, so the next is found by halving."""
    taken, free = 0, 1
    while os.path.lexists(f"{stem}.torn-{free}"):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if os.path.lexists(f"{stem}.torn-{middle}"):
            taken = middle
        else:
            free = middle
    return Descriptor(f"{stem}.torn-{free}", os.O_RDWR | os.O_CREAT | os.O_EXCL)
