"""Flushes that fail: what they may have lost is written again, before anybody is told yes.

The system tells of a failed flush once, and may have dropped from memory what was written to the file, whoever
wrote it, and called it clean: the next flush says yes to nothing. So in one process

1. one flush of a log runs at a time, and its failure is noted before the next begins;
2. when one fails, all that was written to the log and not yet flushed is owed, whichever thread wrote it;
3. what is owed is written again at its place, and flushed, before more is acknowledged.

To another process that has the file open, the system has to tell it itself, as Linux does.

Bytes are written again only where nothing of others stands. A page that was dropped reads as zeros, which no line
has in it. So in the place of each line of ours may stand what is left of it between zeros, or its tombstone; if
anything else does, somebody put another log there, and went on with that.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from ledger.records import codec
from ledger.stores import lines
from ledger.stores.files import Descriptor, Files, naming, write_at

_KEPT = re.compile(rb"[^\0]+")


# -- bytes -----------------------------------------------------------------------------------------


class Owed(NamedTuple):
    """Bytes that were appended, and that are gone from the disk perhaps if a flush fails."""

    identity: tuple[int, int]
    """Device and inode of the file."""
    offset: int
    data: bytes
    """Whole lines; the first byte may be the line feed that the line before lacked."""
    head: bytes | None
    """The last bytes of record 1, by which the log is known again; None: it is in `data`."""

    @classmethod
    def of(cls, file: Descriptor, offset: int, data: bytes, head: lines.Head) -> Owed:
        """Return what is owed of bytes at an offset of a file if a flush fails. Args: head: its record 1."""
        identity = file.found.st_dev, file.found.st_ino
        return cls(identity, offset, data, head.guard if head.offset < offset else None)


def _write_again(due: Iterable[Owed], file: Descriptor, files: Files) -> None:
    """Write bytes again that are owed, if the log is still theirs. Raises: OSError, store-io and the like.

    A log that was replaced, made anew, or cut meanwhile, or that others went on with from another state, is
    left alone.
    """
    source = lines.FileSource(file, files)
    for owed in due:
        if source.identity != owed.identity or source.size < owed.offset + len(owed.data):
            continue
        if owed.head is not None and not _is_head(source, owed.head):
            continue
        data = _but_for_tombstones(owed.data, source.read(owed.offset, len(owed.data)))
        if data is not None:
            write_at(file, files, data, owed.offset)


def _is_head(source: lines.Source, known: bytes) -> bool:
    """Say whether record 1 of a log is the one that ended so; a tombstone may stand in its place."""
    head = lines.head_of(source)
    if head is None or head.guard == known:
        return head is not None
    was = codec.find_seal(known)
    now = codec.find_seal(source.read(0, head.offset + len(head.guard)))
    return was is not None and now is not None and was.chain == now.chain


def _but_for_tombstones(data: bytes, there: bytes) -> bytes | None:
    """Return lines of ours as they were written, but for those that were erased since; None: others' stand there."""
    out, start = [], 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        line, now = data[start:end], there[start:end]
        if _is_tombstone(now, line):
            out.append(now)
        elif _is_left_of(now, line):
            out.append(line)
        else:
            return None
        start = end
    return b"".join(out)


def _is_tombstone(now: bytes, line: bytes) -> bool:
    written, found = codec.find_seal(line[:-1]), codec.find_seal(now[:-1])
    if written is None or found is None or found.salt is not None:
        return False
    return written.chain == found.chain and now.endswith(b"\n") and now.count(b"\n") == 1


def _is_left_of(now: bytes, line: bytes) -> bool:
    """Say whether bytes are those of a line, but for some that are zeros."""
    return len(now) == len(line) and all(
        line.startswith(kept[0], kept.start()) for kept in _KEPT.finditer(now)
    )


# -- one log ---------------------------------------------------------------------------------------


class Debts:
    """The flushes of one log in this process, and what is owed since some failed.

    One lock is held around a flush and nothing else, the other never for long: both come after every lock on a
    file. They are written in C, so that no interrupt leaves one held, and a signal's handler that appends may
    take them again.
    """

    def __init__(self, conversation: str, owing: dict[str, Debts]) -> None:
        self.failed = 0
        """How many flushes failed: bytes that were written before it grew may be gone."""
        self._conversation = conversation
        self._owing = owing
        """Where it is kept as long as something is owed."""
        self._flushing = threading.RLock()
        self._lock = threading.RLock()
        """Held while what follows is changed."""
        self._written: list[Owed] = []
        """What is appended, and not flushed yet."""
        self._owed: list[Owed] = []

    def __bool__(self) -> bool:
        """Whether something is owed."""
        return bool(self._owed)

    def note(self, owed: Owed) -> None:
        """Note what is going to be appended, so that whoever finds it there finds it noted."""
        with self._lock:
            self._written.append(owed)

    def strike(self, owed: Owed) -> None:
        """Forget what was noted: it was not written."""
        with self._lock:
            self._written = _without([owed], self._written)
            self._paid([owed])

    def flush(self, file: Descriptor, files: Files, written: Owed | None = None) -> None:
        """Make durable what was written to the log. Raises OSError: it is owed now.

        Args: written: what was noted and has been written. Only that is struck out: what others noted may not
        have been written yet as this began.
        """
        with self._flushing:
            try:
                files.flush(file.number)
            except BaseException:  # An interrupt may hide what the system said.
                with self._lock:
                    self._all_is_owed()
                    self.failed += 1  # After that: who finds that none failed since has looked at what is owed.
                raise
            if written is not None:
                with self._lock:
                    self._written = _without([written], self._written)

    def write(self, work: Callable[[], object], file: Descriptor, files: Files) -> None:
        """Write to the log, and make it durable: again if another's flush fails meanwhile. Raises OSError.

        Args: work: writes, and may be done again.
        """
        while True:
            failed = self.failed
            work()
            self.flush(file, files)
            if self.failed == failed:
                return

    def pay(self, file: Descriptor, files: Files) -> None:
        """Write all again that is owed, and flush it. The append lock is held.

        Raises: store-io and the like: it failed again, and is owed still.
        """
        while due := self._owed[:]:
            with naming(file.path):
                self.write(partial(_write_again, due, file, files), file, files)
            self._paid(due)
            file.found = file.stat()

    def drop(self) -> None:
        """Forget what is owed: the log is gone."""
        self._paid(self._owed[:])

    def _all_is_owed(self) -> None:
        if self._written:
            self._owing[self._conversation] = self
            self._owed += self._written
            self._written = []

    def _paid(self, due: list[Owed]) -> None:
        with self._lock:
            self._owed = _without(due, self._owed)
            if not self._owed:
                self._owing.pop(self._conversation, None)


def _without(some: list[Owed], every: list[Owed]) -> list[Owed]:
    return [owed for owed in every if owed not in some]


class Flushes:
    """The flushes of a store's logs. A log that nobody works on, and of which nothing is owed, is forgotten."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owing: dict[str, Debts] = {}
        self._logs: WeakValueDictionary[str, Debts] = WeakValueDictionary()

    def of(self, conversation: str) -> Debts:
        """Return those of one log: for all who work on it at once, the same."""
        with self._lock:
            found = self._logs.get(conversation)
            if found is None:
                found = self._logs[conversation] = Debts(conversation, self._owing)
            return found
