"""Indexes made, kept up, and removed; what an index is: `log_index`.

Whose append passes a multiple of `SPAN` bytes writes a part of what was appended since the last one, after it;
whoever had to read a long log whole writes the parts that are not there. Parts are written once, and not flushed:
after a fall of the machine the checksums tell. Some that follow each other are joined into one, up to a size.

A part gets its name under the append lock, and only if the folder of the parts is as it was before its lines were
read, and if all that changed the log since were appends of ours (`witness`); who erases, repairs, replaces or deletes a
log holds that lock, and first has the witness say nothing, then removes the parts. So all parts that are believed are
of the log as it is.

Nothing here is needed: where it fails (a folder that may only be read, a full disk), there is no index.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice, pairwise
from typing import NamedTuple

from ledger.records import codec, kinds
from ledger.records import undecoded as kept
from ledger.stores import files, handout, index_parts, lines, locks, witness
from ledger.stores.files import Descriptor
from ledger.stores.home import Home
from ledger.stores.index_parts import Damaged, Part, Row, Stretch
from ledger.stores.log_index import FAILURES, Index, follows, named, read_part
from ledger.stores.reading import Log

FOLDER = "indexes"
SPAN = 1 << 17
"""How many bytes are appended before a part is written of them."""
BEHIND = 1 << 22
"""How many bytes an index may be behind its log to be of use."""
BEGUN = 2 * SPAN
"""How long a log may be for an append to begin its index: that of a longer one waits for who reads the whole."""
KEPT_OUT = 32
"""How many of the last records no part covers: they are read anyhow."""
KEPT_OUT_BYTES = 1 << 16
"""The same in bytes, where records are large."""
LARGEST = 1 << 27
"""How many bytes of a log a part covers at most, or little more: one that is written while the whole is read, or to
which others were joined. Each question asks each part."""
JOINED = 4
"""How many parts become one."""

_MOST_ENDS = 4096
"""How many lines are looked at for one where a part may end."""
_NAME = re.compile(r"([0-9a-f]{1,15})-([0-9a-f]{1,15})")
_OURS = re.compile(rf"{_NAME.pattern}|new-[0-9a-f]{{16}}")
_LOOKS, _PAUSE_S = 10, 0.0005
"""How often a log that is being appended to is looked at again, and after which time."""
_PATIENCE_S = 0.05
"""How long who makes an index waits for those that append: they hold the lock for less than a millisecond each."""
_TOMBSTONE = b'"erased":true'
_CLEARED = ("ledger", "cleared")
"""The entries that move the head before the first turn (`views.nodes.CLEARED`)."""
_NOTES = (("ledger", "rating"), ("ledger", "label"))
"""Those that are looked for by their turn (`views.nodes.RATING`, `LABEL`)."""


class Found(NamedTuple):
    """An index, and what is known of the log where it ends."""

    log_index: Index
    known: lines.Known


class _Stands:
    """Whether a log is as a writer of ours left it, asked again once it has changed. Args: wait: says so of a file."""

    def __init__(self, log: Log, file: Descriptor, wait: Callable[[Log, Descriptor], bool]) -> None:
        self._log, self._wait = log, wait
        self._seen = witness.look(file.found)

    def __call__(self) -> bool:
        """Say whether it is. Raises: as files."""
        if witness.look(os.stat(self._log.data, follow_symlinks=False)) == self._seen:
            return True
        with Descriptor(self._log.data, os.O_RDONLY) as file:
            if not self._wait(self._log, file):
                return False
            self._seen = witness.look(file.found)
        return True


class Indexes:
    """The indexes of a folder store."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._wanted: set[str] = set()
        """The conversations of which there is no index, or none to be believed, and one would have helped."""

    # -- found

    def find(self, log: Log, file: Descriptor) -> Found | None:
        """Return a log's index, if it is one of the log as it is; None: there is none that is of use."""
        if files.found_at(log.plan):
            return None
        try:
            names = self._cover(log)
            if names and not self._waits_for_witness(log, file):
                self.want(log.conversation)
            elif names:
                found = self._compared(log, file, names)
                if file.found.st_size - found.known.end <= BEHIND:
                    return found
                self.want(log.conversation)
        except FAILURES:
            self.want(log.conversation)
        return None

    def _waits_for_witness(self, log: Log, file: Descriptor) -> bool:
        """Say whether a log is as a writer of ours left it; for one that is appended to just now, a moment later."""
        with Descriptor(log.lock, os.O_RDONLY) as lock:
            for _ in range(_LOOKS):
                if witness.stands(lock, log.files, file.stat()):
                    return True
                if not lock.stat().st_size:
                    return False
                time.sleep(_PAUSE_S)
        return False

    def _compared(self, log: Log, file: Descriptor, names: list[str]) -> Found:
        """Return a log's index. Raises: one of `FAILURES`: it is not to be believed."""
        stands = _Stands(log, file, self._waits_for_witness)
        index = Index(log, file, self._place(log), names, lambda: self._distrust(log), stands)
        source, end = lines.FileSource(file, log.files), index.end
        guard = lines.guard_before(source, end.end)
        seal = codec.find_seal(guard[:-1]) if guard.endswith(b"\n") else None
        if seal is None or (seal.seq, seal.chain) != (end.records, end.chain):
            raise Damaged("the log is another")
        known = lines.Known(
            identity=source.identity,
            changed_ns=source.changed_ns,
            scanner=codec.Scanner(seal.chain, offset=end.end, count=seal.seq, after=seal),
            guard=guard,
            head=lines.head_of(source),
            counted=False,
            newer=False,
        )
        return Found(index, known)

    def _distrust(self, log: Log) -> None:
        self.want(log.conversation)
        with locks.held_now(log.lock) as alone, suppress(*FAILURES):
            if alone:
                self.remove(log)

    def _place(self, log: Log) -> str:
        return os.path.join(self._home.folder, FOLDER, log.conversation)

    def _cover(self, log: Log) -> list[str]:
        """Return the names of the parts that follow each other from the start, the longest of those that might."""
        best: dict[int, int] = {}
        with suppress(FileNotFoundError):
            for found in map(_NAME.fullmatch, os.listdir(self._place(log))):
                if found is not None:
                    start, end = int(found[1], 16), int(found[2], 16)
                    best[start] = max(end, best.get(start, 0))
        names, at = [], 0
        while best.get(at, 0) > at:
            names.append(f"{at:x}-{best[at]:x}")
            at = best[at]
        return names

    # -- made

    def want(self, conversation: str) -> None:
        """Have who reads the whole log next make its index with it."""
        self._wanted.add(conversation)

    def wants(self, conversation: str) -> bool:
        """Say whether who reads the whole log is to make its index with it."""
        return conversation in self._wanted

    def maker(self, log: Log) -> Maker | None:
        """Return what takes in a log that is read from its start, and writes the parts that are not there."""
        try:
            with Descriptor(log.data, os.O_RDONLY) as file:
                self._begin(log, file)
                try:
                    return Maker(self, log, file, self.index(log, file))
                except FAILURES:
                    self._distrust(log)
                    self._begin(log, file)
                    return Maker(self, log, file, None)
        except FAILURES:
            return None
        finally:
            self._wanted.discard(log.conversation)

    def _begin(self, log: Log, file: Descriptor) -> None:
        """Have a witness from now on, before a line is read; without one until now, the parts there are of no worth.

        Raises: as files; store-busy: others append in this moment.
        """
        with locks.acquire(log.lock, time.monotonic() + _PATIENCE_S, create=False) as lock:
            if not witness.stands(lock, log.files, file.stat()):
                self._remove_parts(log)
                witness.write(lock, log.files, file.stat())

    def _goes_on(self, log: Log, file: Descriptor) -> bool:
        """Say whether the parts there are of the log as it is. Where there are none: there is a witness from now on."""
        if not self._cover(log):
            self._begin(log, file)
            return True
        with Descriptor(log.lock, os.O_RDONLY) as lock:
            return witness.stands(lock, log.files, file.stat())

    def index(self, log: Log, file: Descriptor) -> Index | None:
        """Return a log's index, however far it is behind; None: there is none. Raises: one of `FAILURES`."""
        names = self._cover(log)
        return self._compared(log, file, names).log_index if names else None

    def grown(self, conversation: str, end: int) -> None:
        """Add to the index of a log that grew to an end, as `is_due`. Raises: nothing."""
        log = self._home.log(conversation)
        try:
            names = self._cover(log)
            behind = end - (_bounds(names[-1])[1] if names else 0)
            if behind <= (BEHIND if names else BEGUN):
                self._extend(log)
        except (*FAILURES, RecursionError):
            pass

    def _extend(self, log: Log) -> None:
        with Descriptor(log.data, os.O_RDONLY) as file:
            if not self._goes_on(log, file):
                self.want(log.conversation)
                return
            names = self._cover(log)
            found = self._compared(log, file, names) if names else None
            maker = Maker(self, log, file, found.log_index if found is not None else None)
            start = found.known.scanner.onward() if found is not None else None
            source = lines.FileSource(file, log.files)
            reader = lines.Reader(source, start or codec.Scanner(log.first_chain))
            for piece in reader.whole_lines():
                maker.take(piece)
            maker.finish()

    def look(self, log: Log) -> str:
        """Return what is another text when the log is another, or an index of it was removed or added to since.

        Raises: OSError, store errors; Damaged: nothing is to be added now, since something is being erased.
        """
        if files.found_at(log.plan):
            raise Damaged("the log is being erased from")
        place = self._place(log)
        files.check_trusted(place)
        if not os.path.isdir(place):
            self._home.calls.make_folder(place)
        there = os.stat(place, follow_symlinks=False)
        inode = os.stat(log.data, follow_symlinks=False).st_ino
        return f"{inode} {there.st_ino} {there.st_ctime_ns}"

    def put(self, log: Log, stretch: Stretch, data: bytes, look: str) -> str:
        """Give a part its name, and remove those that it stands for. Returns: how it looks now.

        Args: look: how it looked before its lines were read. Raises: as `look`; Damaged: it looks otherwise now;
        store-busy: others kept the lock.
        """
        place = self._place(log)
        with locks.acquire(log.lock, time.monotonic() + _PATIENCE_S, create=False):
            if self.look(log) != look:
                raise Damaged("others were faster")
            with Descriptor(log.lock, os.O_RDONLY) as lock:
                if not witness.stands(lock, log.files, os.stat(log.data, follow_symlinks=False)):
                    raise Damaged("the log was changed otherwise than by appending")
            new = os.path.join(place, f"new-{secrets.token_hex(8)}")
            try:
                with Descriptor(new, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file:
                    files.write_at(file, log.files, data, 0)
                log.files.replace(new, os.path.join(place, named(stretch)))
            except BaseException:
                with suppress(OSError):
                    os.unlink(new)
                raise
            there = {name for name in os.listdir(place) if _OURS.fullmatch(name)}
            for other in there - set(self._cover(log)):
                os.unlink(os.path.join(place, other))
            return self.look(log)

    def join(self, log: Log, look: str) -> None:
        """Make one part of several, as long as the last ones are of like size. Raises: as `put`."""
        while True:
            last = self._cover(log)[-JOINED:]
            levels = [_level(*_bounds(name)) for name in last]
            size = _bounds(last[-1])[1] - _bounds(last[0])[0] if last else 0
            if len(last) < JOINED or max(levels) > levels[-1] or size > LARGEST:
                return
            read = [self._read(log, name) for name in last]
            for before, after in pairwise(read):
                if not follows(before[0], after[0]):
                    raise Damaged("its parts do not follow each other")
            look = self.put(log, *index_parts.joined(read), look)

    def _read(self, log: Log, name: str) -> tuple[Stretch, list[bytes], bytes]:
        path = os.path.join(self._place(log), name)

        def read(offset: int, length: int) -> bytes:
            return read_part(log, path, offset, length)

        part = Part(read)
        return part.stretch, *part.everything(read)

    # -- removed

    def remove(self, log: Log, *, quietly: bool = False) -> None:
        """Remove a log's index, durably; it is not believed from then on. The append lock is held.

        Raises: store-io, store-denied and the like. Args: quietly: do not raise because of parts that stay, which hold
        hashes of ids.
        """
        witness.clear(log.lock, log.files)
        with suppress(*(FAILURES if quietly else ())):
            self._remove_parts(log)

    def _remove_parts(self, log: Log) -> None:
        """Remove what is ours of the folder of the parts, and it, if nothing else is in it."""
        place = self._place(log)
        with files.naming(place), suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                return  # None of ours.
            files.check_trusted(place)
            ours = [name for name in os.listdir(place) if _OURS.fullmatch(name)]
            for name in ours:
                log.files.remove(os.path.join(place, name))
            if ours:
                log.files.flush_folder(place)
            with suppress(OSError):
                os.rmdir(place)

    def forget(self) -> None:
        """Forget what is remembered."""
        self._wanted = set()


class _Noted(NamedTuple):
    """How far a maker was after a line."""

    end: int
    records: int
    entries: int
    turns: int
    erased: int


class Maker:
    """Takes in the lines of a log from its start, or from where an index ends, and writes parts of them.

    It gives up where a line does not stand in the place that its seal names, and where another was faster.
    Args: file: the log, open. index: what is there already.
    """

    def __init__(self, indexes: Indexes, log: Log, file: Descriptor, index: Index | None) -> None:
        self._indexes, self._log, self._index = indexes, log, index
        self._inode = file.found.st_ino
        self._look = indexes.look(log)
        first = Stretch(self._inode, 0, 0, 0, 0, 0, 0, 0, 0, b"", log.first_chain)
        self._before = index.end if index is not None else first
        """Where the next part begins: the end of this one."""
        self._entries: list[bytes] = []
        self._rows: list[Row] = []
        self._ordinals: dict[str, int] = {}
        """Of the turns that have a row here."""
        self._noted: list[_Noted] = []
        self._given_up = False
        self._erased = self._before.erased

    def undecoded(self, piece: handout.Settled, after: int) -> list[kept.Part]:
        """Return the records of lines, as `handout.undecoded` does, and take note of them."""
        self.take(piece)
        return handout.undecoded(piece, after)

    def take(self, piece: handout.Settled) -> None:
        """Take note of the records of lines. Raises: nothing, but RecursionError."""
        if not self._given_up:
            try:
                self._take(piece, handout.structs(piece, 0))
            except FAILURES:
                self._given_up = True

    def _take(self, piece: handout.Settled, records: list[kinds.Recorded]) -> None:
        erased = _TOMBSTONE in piece.data
        count = self._noted[-1].records if self._noted else self._before.records
        for line, record in zip(piece.lines, records, strict=True):
            if line.seq <= count and not self._noted:
                continue  # The index has it.
            count += 1
            if line.seq != count or (line.written or count) != count:
                self._given_up = True
                return
            if erased and _TOMBSTONE in piece.data[line.start - piece.base : line.end - piece.base]:
                self._erased += 1
            self._note(record, line.start)
            turns = self._before.turns + len(self._rows)
            end = _Noted(line.end + 1, count, len(self._entries), turns, self._erased)
            self._noted.append(end)
        if self._noted and self._noted[-1].end - self._before.end > LARGEST + KEPT_OUT_BYTES:
            self._write_on()

    def _note(self, record: kinds.Recorded, offset: int) -> None:
        entry, entries = index_parts.entry, self._entries
        if isinstance(record, kinds.Turn):
            self._note_turn(record, offset)
        elif isinstance(record, kinds.Program):
            entries.append(entry(index_parts.PROGRAM, record.version, offset))
        elif isinstance(record, kinds.Head):
            entries.append(entry(index_parts.MOVE, "", offset))
        elif isinstance(record, kinds.Entry):
            kind = record.plugin, record.entry
            entries.append(entry(index_parts.KEPT, index_parts.kind_of(*kind), offset))
            if kind == _CLEARED:
                entries.append(entry(index_parts.MOVE, "", offset))
            elif kind in _NOTES:
                entries.append(entry(index_parts.NOTED, record.turn or "", offset))
        elif not isinstance(record, kinds.Other | kinds.Unreadable):
            entries.append(entry(index_parts.ABOUT, record.turn, offset))

    def _note_turn(self, record: kinds.Turn, offset: int) -> None:
        if record.turn in self._ordinals:
            return
        ordinal = self._before.turns + len(self._rows) + 1
        parent = 0
        if record.parent is not None:
            parent = self._ordinals.get(record.parent, 0)
            if not parent and self._index is not None:
                parent = self._index.ordinal(record.parent)
        self._rows.append(index_parts.row(offset, ordinal, parent, self._row))
        self._ordinals[record.turn] = ordinal
        entry = index_parts.entry
        self._entries.append(entry(index_parts.TURN, record.turn, ordinal))
        if parent and record.parent is not None:
            self._entries.append(entry(index_parts.CHILD, record.parent, offset))
        if record.request_id is not None:
            self._entries.append(entry(index_parts.REQUEST, record.request_id, offset))

    def _row(self, ordinal: int) -> Row:
        own = ordinal - self._before.turns
        if own > 0 or self._index is None:
            return self._rows[own - 1]
        return self._index.row(ordinal)

    def finish(self) -> None:
        """Write a part of what was taken in last. Raises: nothing."""
        with suppress(*FAILURES):
            if not self._given_up and self._write() is not None:
                self._indexes.join(self._log, self._look)

    def _write_on(self) -> None:
        """Write a part, and go on behind it; give up if there is none to be written by now."""
        stretch = self._write()
        self._given_up = stretch is None
        if stretch is None:
            return
        with Descriptor(self._log.data, os.O_RDONLY) as file:
            self._index = self._indexes.index(self._log, file)
        del self._rows[: stretch.turns - stretch.turns_before], self._entries[: stretch.entries]
        self._noted = [
            noted._replace(entries=noted.entries - stretch.entries)
            for noted in self._noted
            if noted.end > stretch.end
        ]
        self._ordinals = {turn: n for turn, n in self._ordinals.items() if n > stretch.turns}
        self._before = stretch

    def _write(self) -> Stretch | None:
        """Write a part, up to the last place before what is kept out where a part may end. Returns: what it covers."""
        found = self._last_end()
        before = self._before
        if found is None or found[0].end - before.end < SPAN // 2:
            return None
        at, chain = found
        stretch = Stretch(
            inode=self._inode,
            start=before.end,
            end=at.end,
            records_before=before.records,
            records=at.records,
            turns_before=before.turns,
            turns=at.turns,
            erased=at.erased,
            entries=at.entries,
            chain_before=before.chain,
            chain=chain,
        )
        rows = b"".join(map(index_parts.packed, self._rows[: at.turns - before.turns]))
        data = index_parts.encode(stretch, self._entries[: at.entries], rows)
        self._look = self._indexes.put(self._log, stretch, data, self._look)
        return stretch

    def _last_end(self) -> tuple[_Noted, bytes] | None:
        """Return the last place where a part may end, and what the seal before it says."""
        noted = self._noted
        last = noted[-1].end if noted else 0
        kept_out = sum(last - at.end < KEPT_OUT_BYTES for at in noted[-KEPT_OUT:])
        # Of a log that came in one append, only its end is where a part may end.
        ends = [
            *islice(reversed(noted), kept_out, kept_out + _MOST_ENDS),
            *noted[len(noted) - kept_out :][::-1],
        ]
        with Descriptor(self._log.data, os.O_RDONLY) as file:
            source = lines.FileSource(file, self._log.files)
            for at in ends:
                guard = lines.guard_before(source, at.end)
                seal = codec.find_seal(guard[:-1]) if guard.endswith(b"\n") else None
                if seal is not None and seal.i == seal.n and seal.seq == at.records and seal.salt:
                    return at, seal.chain
        return None


def is_due(start: int, end: int) -> bool:
    """Say whether an index is to be added to by who appended to its log, from where to where.

    It is whenever a multiple of `SPAN` is passed, so that of many processes one does.
    """
    return start // SPAN != end // SPAN


def _bounds(name: str) -> tuple[int, int]:
    start, _, end = name.partition("-")
    return int(start, 16), int(end, 16)


def _level(start: int, end: int) -> int:
    """Return of which size a part is; the next is `JOINED` times as large."""
    return (max(1, (end - start) // SPAN).bit_length() - 1) // 2
