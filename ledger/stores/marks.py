"""Whether a log is as it was, asked cheaply: for what is derived from logs and kept beside them.

A *look* is a text that is another one whenever the log is: of a folder it is what the system says of the
log's file, of the list of turns erased from it, and of an erasure that is being done. A *mark* is how far a
log was read. Given back, it gives what was added since; or, where the log is no continuation of what was
read (made anew, erased from, cut by a fall of the machine, repaired), all of it. That is decided by the bytes
before the mark and by the looks, and no clock is compared.

How a log ends is asked cheaply too: from its last lines.

Looked first, then read: what changes between the two is seen by the next look.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from ledger.errors import LedgerError, StoreFailure, StoreGone, StoreLink
from ledger.records import kinds
from ledger.stores import files, handout, lines, log_search, names, reading, waking
from ledger.stores.base import FEW, Ends, Position, Records, Scanned, Since, agrees
from ledger.stores.home import Home
from ledger.stores.index_making import Found, Indexes

_TRIES = 8
"""How often a log is read whose end is being written in that very moment."""
_TELLING = {names.LOG: 0, ".forgotten": 1, ".erase": 2}
"""The files of a conversation that tell whether its log changed, by their places in a look."""


class _Mark(msgspec.Struct, frozen=True, array_like=True):
    identity: tuple[int, int]
    end: int
    length: int
    guard: str
    """The hash of so many bytes before the end: a mark is kept elsewhere, and must not hold what a log says."""
    count: int
    incarnation: tuple[str, str | None] | None
    erasures: str
    """The look without the log's own part."""
    damaged: str
    """How the log looked, if lines of it were lost: in any other they may be there again. Empty: none was."""

    def stands(self, source: lines.Source) -> bool:
        """Say whether the log still holds the bytes before the mark."""
        if source.size < self.end:
            return False
        return _hashed(source.read(self.end - self.length, self.length)) == self.guard


class Marked:
    """What a folder store does for those who keep something derived of its logs, or ask only which there are, or how
    one ends."""

    _home: Home
    _indexes: Indexes
    _known: dict[str, lines.Known]
    _strict: bool
    _waiters: waking.Waiters
    _check: Callable[[object], None]
    _read: Callable[..., Records[Any]]

    def scan(self, conversation: str, after: int = 0) -> Scanned:
        """Return what `read` returns, as Structs with their payloads undecoded, each made when it is asked for."""
        self._check(conversation)
        maker = None
        if not after and self._indexes.wants(conversation):
            maker = self._indexes.maker(self._home.log(conversation))
        decode = maker.undecoded if maker is not None else handout.undecoded
        records = handout.scanned(self._read(conversation, after, decode))
        if maker is not None:
            maker.finish()
        return records

    def scan_ends(self, conversation: str, last: int) -> Ends | None:
        """Return some of the first records, and the last ones; None: `scan` gives all. See `LedgerStore`."""
        found = self._index(conversation)
        if found is not None:
            place = found.known.position
            self._known.setdefault(conversation, found.known)
            return Ends([], place, self.scan(conversation, place), found.log_index)
        end = self.read_end(conversation)
        if self._strict or end <= FEW * last:
            return None
        place, log = Position(end - last, end.incarnation), self._home.log(conversation)
        last_ones = self.scan(conversation, place)
        with self._opened(log) as file:
            first = handout.shallow(lambda: reading.beginning(log, file))
        self._indexes.want(conversation)
        return Ends(first, place, last_ones)

    def _index(self, conversation: str) -> Found | None:
        self._check(conversation)
        log = self._home.log(conversation)
        if self._strict or not self._home.is_there():
            return None
        with suppress(FileNotFoundError), files.Descriptor(log.data, os.O_RDONLY) as file:
            return self._indexes.find(log, file)
        return None

    @contextmanager
    def _opened(self, log: reading.Log) -> Iterator[files.Descriptor]:
        with files.Descriptor(log.data, os.O_RDONLY) as file, files.naming(log.data):
            yield file

    def mentions(self, conversation: str, text: bytes) -> bool:
        """Say whether some bytes stand anywhere in a log, in whatever line. Looks at bytes, so it is quick."""
        log = self._home.log(conversation)
        with suppress(FileNotFoundError), self._opened(log) as file:
            return log_search.stands(log, file, text)
        return False

    def sent(self, conversation: str, request_id: str) -> list[kinds.Recorded] | None:
        """Return what is recorded of the first turn that was sent under a request id, its first record first.

        It is looked for in the log's bytes, which is quicker than reading it. Returns nothing where there is none, and
        None where it cannot tell: the id stands in many lines, say, or one cannot be checked without all before it.
        """
        log = self._home.log(conversation)
        with suppress(FileNotFoundError), self._opened(log) as file:
            sent = log_search.sent(log, file, request_id)
            # Asked afterwards: of a turn that is being erased nothing is to be handed out.
            return None if files.found_at(log.plan) else sent
        return []

    def read_end(self, conversation: str) -> Position:
        """Return the position of the end, reading what was appended since it was last known, or the last lines."""
        try:
            return self._read(conversation, None, reading.nothing).position
        except StoreGone:  # What was known of it is forgotten now.
            return self._read(conversation, None, reading.nothing).position

    def erasures(self, conversation: str) -> str:
        """Return a text that is another one whenever a turn was erased, or is being."""
        self._check(conversation)
        stem, told = os.path.join(self._home.conversations, conversation), ""
        for ending in (".forgotten", ".erase"):
            found = files.found_at(stem + ending)
            told += ending + _told(found) if found is not None else ""
        return told

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        """Block until the conversation is not at position `after`, or `timeout` seconds passed.

        Appends of this process wake it at once; those of others are seen within 0.2 s.
        Returns: whether it changed. Not promised: that a change that was undone is noticed.
        """
        self._check(conversation)
        if timeout <= 0:
            return self._moved(conversation, after)
        return self._waiters.wait(conversation, lambda: self._moved(conversation, after), timeout)

    def _moved(self, conversation: str, after: int) -> bool:
        known = self._known.get(conversation)
        if known is not None and agrees(after, known.position):
            with suppress(OSError):
                found = os.stat(self._home.log(conversation).data, follow_symlinks=False)
                seen = (*known.identity, known.end, known.changed_ns)
                if (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns) == seen:
                    return False
        try:
            return not agrees(after, self._read(conversation, after, reading.nothing).position)
        except StoreGone:
            return True

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that hold a record, sorted; foreign files are skipped.

        One whose log cannot be read is among them: it may hold records, and asked for them says why
        it does not give them.
        """
        found = [c for _, c, plain in self._home.entries() if c is not None and plain]
        return sorted(filter(self._holds_a_record, found))

    def foreign_files(self) -> list[str]:
        """Return the names in the folder of conversations that no conversation uses, sorted.

        They are left alone: copies that a sync tool made, what somebody put there, links.
        """
        return self._home.foreign()

    def _holds_a_record(self, conversation: str) -> bool:
        log = self._home.log(conversation)
        try:
            with files.Descriptor(log.data, os.O_RDONLY) as file:
                first = os.pread(file.number, lines.BLOCK, 0)
            if b"\n" in first.lstrip() and files.found_at(log.plan) is None:
                return True
            return self.read_end(conversation) > 0
        except (FileNotFoundError, StoreLink):
            return False
        except (OSError, StoreFailure):
            return True

    def looks(self) -> dict[str, str]:
        """Return how each log looks now, by conversation: also those that hold no record, or cannot be read."""
        if not self._home.is_there():
            return {}
        parts: dict[str, list[str]] = {}
        place = self._home.conversations
        with files.naming(place), os.scandir(place) as entries:
            for entry in entries:
                stem, dot, ending = entry.name.rpartition(".")
                at = _TELLING.get(dot + ending)
                if at is None:
                    continue
                with suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    if at or (files.is_plain(found) and found.st_size):
                        parts.setdefault(stem, ["", "", ""])[at] = _told(found)
        return {
            stem: ",".join(told)
            for stem, told in parts.items()
            if told[0] and names.conversation_of(stem + names.LOG)
        }

    def since(self, conversation: str, mark: str = "") -> Since:
        """Return what a conversation holds beyond a mark, or all of it. Raises: as `scan`."""
        look = self.look(conversation)
        erasures = look.partition(",")[2]
        before = _decoded(mark)
        after = self._place(conversation, before, look) if before is not None else 0
        for _ in range(_TRIES):
            try:
                records = self.scan(conversation, after)
            except StoreGone:
                after = 0
                continue
            known = self._known.get(conversation)
            if known is not None and known.position == records.position:
                damaged = records.is_damaged or (after and before is not None and before.damaged)
                made = _Mark(
                    known.identity,
                    known.end,
                    len(known.guard),
                    _hashed(known.guard),
                    known.count,
                    known.position.incarnation,
                    erasures,
                    look if damaged else "",
                )
                return Since(records, look, _encoded(made), whole=not after)
        # Its end was being written each time, or it was removed meanwhile.
        return Since(self.scan(conversation, 0), look, "", whole=True)

    def look(self, conversation: str) -> str:
        """Return how a log looks now: another text whenever it is another, or was changed in place."""
        self._check(conversation)
        stem = os.path.join(self._home.conversations, conversation)
        told = ["", "", ""]
        for ending, at in _TELLING.items():
            found = files.found_at(stem + ending)
            told[at] = _told(found) if found is not None else ""
        return ",".join(told)

    def _place(self, conversation: str, mark: _Mark, look: str) -> int:
        """Return the place from which to go on: the mark's, or 0 where the log is another, or may be."""
        erasures = look.partition(",")[2]
        if mark.erasures != erasures or not erasures.endswith(","):
            return 0
        if mark.damaged not in ("", look):
            return 0
        log = self._home.log(conversation)
        try:
            with files.Descriptor(log.data, os.O_RDONLY) as file:
                source = lines.FileSource(file, log.files)
                if source.identity == mark.identity and mark.stands(source):
                    return Position(mark.count, mark.incarnation)
        except (FileNotFoundError, LedgerError):
            pass
        return 0


def _told(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_ctime_ns}"


def _hashed(guard: bytes) -> str:
    return hashlib.sha256(guard).hexdigest()


def _encoded(mark: _Mark) -> str:
    return msgspec.json.encode(mark).decode()


def _decoded(mark: str) -> _Mark | None:
    """Return a mark that was given back; None for none, and for what is none of ours."""
    with suppress(msgspec.DecodeError, ValueError):
        return msgspec.json.decode(mark, type=_Mark) if mark else None
    return None
