"""The events of running turns in files that other implementations share.

    <folder>/trees/<turn>.jsonl    the events, one a line
    <folder>/trees/<turn>.lock     locked while that changes
    <folder>/trees/<turn>.writer   the last writer number that was given; absent: 1

A log is read from its end: the last event decides about the next one, and what a follower lacks stands
behind it. So an append and a look cost what is new, not what is there. Who adds events remembers where the
log ended then, and with which event; a file that is another or has another size is read again.

Nothing is flushed to disk, either: what must survive is in the records. Bytes after the last line feed
are of a writer that died, or whose write was cut short. They are no event; the next writer overwrites
them with spaces and ends the line. A log so never shrinks (another process remembers offsets), and no
line stays in it that does not read, past which functai appends no more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self, TypeVar

from ledger.errors import StoreIO, StoreLink
from ledger.records import events as rules
from ledger.records.events import Event
from ledger.stores import files, lines, locks
from ledger.stores.events import EventLogs, Fresh, Log, MemoryLog

T = TypeVar("T")

ENDINGS = (".jsonl", ".lock", ".writer", ".writer.tmp")
"""Of the files of one log."""

_CHUNK = 1 << 13
_LARGEST_CHUNK = 1 << 20
_LONGEST_NUMBER = 32
_MOST_ENDS = 4096


def pieces_back(source: lines.Source) -> Iterator[bytes]:
    """Yield what stands between the line feeds of a file, the last first.

    The first piece is what stands after the last line feed: nothing, or a torn line.
    """
    start, rest, length = source.size, b"", _CHUNK
    while start > 0:
        chunk = source.read(max(0, start - length), min(length, start))
        start -= min(length, start)
        rest, *whole = (chunk + rest).split(b"\n")
        yield from reversed(whole)
        if not whole or length < _LARGEST_CHUNK:
            length *= 2
    yield rest


class _End(NamedTuple):
    """Where a log ended when this process added to it, with a line feed."""

    device: int
    inode: int
    size: int
    event: Event
    """The outline of its last event."""


class _FileLog:
    """One log in a file, which may not be there. Args: end: where it ended when it was added to last."""

    def __init__(
        self, tree: str, stem: str, calls: files.Files, flags: int, end: _End | None = None
    ) -> None:
        self._tree = tree
        self._stem = stem
        self._calls = calls
        self._path = stem + ".jsonl"
        self._file: files.Descriptor | None = None
        with suppress(FileNotFoundError):
            self._file = files.Descriptor(self._path, flags)
        self.end = end if end is not None and self._ends_at(end) else None
        """Where it ends, if that is known."""

    def _ends_at(self, end: _End) -> bool:
        if self._file is None:
            return False
        found = self._file.found
        return (found.st_dev, found.st_ino, found.st_size) == end[:3]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._file is not None:
            self._file.close()

    def newest(self) -> Iterator[Event]:
        if self._file is None:
            return
        whole = pieces_back(lines.FileSource(self._file, self._calls))
        next(whole)
        for text in whole:
            event = rules.of_line(text, self._tree)
            if event is not None:
                yield event

    def last(self) -> Event | None:
        return self.end.event if self.end is not None else next(self.newest(), None)

    def writer(self) -> int:
        """Return the last writer number, as functai reads it: what is no number is 1."""
        try:
            os.stat(self._stem + ".writer", follow_symlinks=False)  # Most logs have none.
            with files.Descriptor(self._stem + ".writer", os.O_RDONLY) as file:
                text = lines.FileSource(file, self._calls).read(0, _LONGEST_NUMBER)
                return int(text.strip() or rules.FIRST_WRITER)
        except (FileNotFoundError, ValueError):
            return rules.FIRST_WRITER

    def add(self, events: list[Event]) -> None:
        """Put events at the end, in one write, after a torn line was blanked and ended."""
        data = b"".join(map(rules.line, events))
        if self._file is None:
            self._file = files.Descriptor(self._path, os.O_RDWR | os.O_CREAT)
        found = self._file.found
        size, torn = found.st_size, 0
        if self.end is None and size:
            torn = len(next(pieces_back(lines.FileSource(self._file, self._calls))))
        self.end = None
        with files.naming(self._path):
            if torn:
                # Blank first: a reader must not see half of it with the line feed.
                files.write_at(self._file, self._calls, b" " * torn, size - torn)
                data = b"\n" + data
            files.write_at(self._file, self._calls, data, size)
        last = rules.outline(events[-1])
        self.end = _End(found.st_dev, found.st_ino, size + len(data), last)

    def hand_to(self, writer: int) -> None:
        new = self._stem + ".writer.tmp"
        with files.naming(new):
            with suppress(FileNotFoundError):
                self._calls.remove(new)
            with files.Descriptor(new, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file:
                files.write_at(file, self._calls, b"%d" % writer, 0)
            self._calls.replace(new, self._stem + ".writer")


class FolderEvents(EventLogs):
    """The events of running turns in a store's folder, for many processes at once.

    The first event makes what is not there; reading and refusing make nothing.
    Args: folder: the store's. lock_timeout_s: how long a change waits for others before store-busy.
    Raises (each method): store-busy, store-full, store-io, store-denied, store-read-only, store-link.
    """

    writes_at_once = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        lock_timeout_s: float = 30.0,
        calls: files.Files | None = None,
    ) -> None:
        self.folder = os.path.abspath(os.path.expanduser(os.fspath(folder)))
        """The absolute path of the store's folder."""
        self._trees = os.path.join(self.folder, "trees")
        self._lock_timeout_s = lock_timeout_s
        self._calls = calls or files.Files()
        self._trusted: tuple[int, ...] | None = None
        """The folder of events as it was when it was found to be trusted."""
        self._ends: dict[str, _End] = {}
        """Of the logs that this process adds to: the latest `_MOST_ENDS`."""
        super().__init__()

    def __repr__(self) -> str:
        return f"FolderEvents({self.folder!r})"

    def _look(self, tree: str, work: Callable[[Log], T]) -> T:
        self._check_trusted()
        with self._log(tree, os.O_RDONLY) as log:
            return work(log)

    def _change(self, tree: str, work: Callable[[Log], T], *, waits: bool = True) -> T:
        end = self._ends.pop(tree, None)
        with (
            self._locked(tree, self._lock_timeout_s if waits else 0),
            self._log(tree, os.O_RDWR, end) as log,
        ):
            done = work(log)
            if log.end is not None and not rules.finished(log.end.event):
                self._remember(tree, log.end)
            return done

    def _remember(self, tree: str, end: _End) -> None:
        self._ends[tree] = end
        if len(self._ends) > _MOST_ENDS:
            with suppress(RuntimeError):  # Another thread is at it.
                self._ends.pop(next(iter(self._ends)), None)

    def _extend(self, tree: str, fresh: Fresh, *, waits: bool = True) -> list[Event]:
        if tree not in self._ends and files.found_at(self._stem(tree) + ".jsonl") is None:
            fresh(MemoryLog(tree))  # Refusing makes nothing.
            if not os.path.isdir(self._trees):
                with files.naming(self._trees):
                    self._calls.make_folder(self._trees)
        return super()._extend(tree, fresh, waits=waits)

    def _claim(self, tree: str) -> dict[str, Any]:
        rules.check_claim(tree, self._last(tree))  # Refusing makes nothing, no lock file either.
        return super()._claim(tree)

    def _sign(self, tree: str) -> object:
        with suppress(OSError):
            found = os.stat(self._stem(tree) + ".jsonl", follow_symlinks=False)
            return found.st_dev, found.st_ino, found.st_size
        return None

    def remove(self, tree: str) -> bool:
        """Remove a log's files. Returns: whether there were any."""
        rules.check_tree(tree)
        self._ends.pop(tree, None)
        self._check_trusted()
        deadline = time.monotonic() + self._lock_timeout_s
        return bool(remove_files(self._trees, tree, self._calls, deadline))

    def before_fork(self) -> None:
        """Nothing is held between calls."""

    def _stem(self, tree: str) -> str:
        return f"{self._trees}/{tree}"

    def _log(self, tree: str, flags: int, end: _End | None = None) -> _FileLog:
        return _FileLog(tree, self._stem(tree), self._calls, flags, end)

    def _locked(self, tree: str, timeout_s: float) -> locks.LockedFile:
        self._check_trusted()
        deadline = time.monotonic() + timeout_s
        try:
            return locks.acquire(self._stem(tree) + ".lock", deadline, create=True)
        except FileNotFoundError as error:
            reason = "the folder was removed while it was written"
            raise StoreIO(where=self._trees, reason=reason) from error

    def _check_trusted(self) -> None:
        """Refuse folders that cannot be trusted; what was trusted is asked again once it is another."""
        found = None
        with suppress(OSError):
            status = os.stat(self._trees, follow_symlinks=False)
            found = (status.st_dev, status.st_ino, status.st_mode, status.st_uid)
        if found is None or found != self._trusted:
            files.check_trusted(self._trees)
            files.check_trusted(self.folder, by_link=True)
            self._trusted = found


def remove_files(trees: str, tree: str, calls: files.Files, deadline: float) -> list[str]:
    """Remove the files of a log, once no writer is in it. Returns: their paths.

    A writer that waited for the lock finds no log then, and cannot leave the end of one without its
    beginning. What is planted in the lock's place holds nobody back; the name goes.
    """
    stem = os.path.join(trees, tree)
    gone = []
    with files.naming(trees), _in_peace(stem, deadline):
        for ending in ENDINGS:
            with suppress(FileNotFoundError):
                calls.remove(stem + ending)
                gone.append(stem + ending)
    return gone


@contextmanager
def _in_peace(stem: str, deadline: float) -> Iterator[None]:
    try:
        lock = locks.acquire(stem + ".lock", deadline, create=False)
    except (FileNotFoundError, StoreLink):
        yield
        return
    with lock:
        yield
