"""The append lock: an exclusive flock on `<id>.lock`, and on the data file, as others take it.

A lock that is busy is asked for again for a moment, since an append holds it for a fraction of a millisecond.
Then waiting queues in the kernel and still ends in time: it is waited for by a helper thread that opens the
file anew, blocks in flock, and hands the locked file over, or closes it when the waiter has gone. Lock files
are never deleted; should somebody delete one, a holder of the old file and a holder of the new one still meet
at the data file. Locks are given back by unlocking before closing: a child that inherited the open file would
hold the lock on.

The lock that says that a process lives (`LifeLock`) is filelock's: nobody waits for it, and a child that
was forked closes it without unlocking. Only this module uses portalocker and filelock; portalocker's
flock by name, since its global default can be switched. filelock is imported with this module, not when
it is first needed: a child that is forked while another thread imports can never finish that import.
"""

from __future__ import annotations

import errno
import fcntl
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from filelock import FileLock
from portalocker.portalocker import FlockLocker

from ledger.errors import LedgerError, StoreBusy, StoreIO
from ledger.stores.files import Descriptor, naming, same_file

_flock = FlockLocker().locker
_SOON_S = 0.02
"""How long a lock that is busy is asked for again and again: to wait in the kernel's queue takes a thread."""
_PAUSE_S = 0.0002
"""How long the first pause is; each is twice the one before."""
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


class LockedFile(Descriptor):
    """An open file on which a lock is held from `lock` (or a `try_lock` that says yes) to `close`."""

    how = fcntl.LOCK_EX

    def try_lock(self) -> bool:
        """Take the lock if nobody has it. Says whether."""
        return self._lock(self.how | fcntl.LOCK_NB)

    def lock(self) -> None:
        """Wait for the lock, in the kernel's queue, without a limit."""
        self._lock(self.how)

    def _lock(self, operation: int) -> bool:
        try:
            _flock(self._number[0], operation)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            reason = os.strerror(error.errno or errno.EIO)
            raise StoreIO(where=self.path, reason=f"it cannot be locked: {reason}") from error
        return True

    _freed = False

    def free(self) -> None:
        """Free the lock, and keep the file open; it is not locked again."""
        try:
            if self._number and not self._freed:
                _flock(self._number[0], fcntl.LOCK_UN)
                self._freed = True
        except OSError:
            pass  # Closing frees it too, unless a child still has the file.

    def close(self) -> None:
        """Free the lock, then close the file; again is no error."""
        try:
            self.free()
        finally:
            super().close()


class SharedFile(LockedFile):
    """The same with a lock that others may share, and that keeps out who wants it alone."""

    how = fcntl.LOCK_SH


def acquire(
    path: str,
    deadline: float,
    *,
    create: bool,
    kind: type[LockedFile] = LockedFile,
    still: Callable[[], object] | None = None,
) -> LockedFile:
    """Return the file at a path, locked, as soon as nobody else has it.

    Args: deadline: when to give up, on the monotonic clock. create: make the file if it is not there
    (0600), else FileNotFoundError. kind: whether the lock may be shared. still: asked now and then while
    others have it; it raises once it is of no use any more.
    Raises: store-busy: the deadline passed. store-link: it is not a plain file with one name.
    """
    flags = os.O_RDWR | (os.O_CREAT if create else 0)
    while True:
        file = kind(path, flags)
        if not file.try_lock() and not _soon(file, deadline, still):
            file.close()
            if deadline <= time.monotonic():
                raise _busy(path)
            file = _Waiter(path, flags, kind).wait(deadline)
        there = file.at_its_path()
        if there is not None:
            file.found = there
            return file
        file.close()


def try_lock(path: str, kind: type[LockedFile] = LockedFile) -> LockedFile | None:
    """Take a lock for reading: at once, without making its file. None: busy, absent, or not allowed."""
    try:
        file = kind(path, os.O_RDONLY)
        if file.try_lock() and file.at_its_path() is not None:
            return file
        file.close()
    except (OSError, LedgerError):
        pass
    return None


def _soon(file: LockedFile, deadline: float, still: Callable[[], object] | None) -> bool:
    """Take a lock that is freed soon, as an append's is. Says whether: else it is to be waited for."""
    until = min(time.monotonic() + _SOON_S, deadline)
    pause = _PAUSE_S
    try:
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(pause, left))
            if still is not None:
                still()
            if file.try_lock():
                return True
            pause *= 2
    except BaseException:
        file.close()
        raise
    return False


class LifeLock:
    """A lock on a new file, held until nobody refers to this object, at the latest until the process ends.

    A child that is forked does not hold it, and does not free it; a program that is started neither.
    Args: path: a name that no file has; it is made, for its owner only, and may be renamed.
    Raises: store-io, store-read-only, store-denied and the like: it is not held.
    """

    def __init__(self, path: str) -> None:
        with naming(path):
            self._lock = FileLock(
                path,
                mode=0o600,
                thread_local=False,
                fallback_to_soft=False,
                preserve_lock_file=True,
            )
            self._lock.acquire(blocking=False)
            self._found = os.stat(path, follow_symlinks=False)
        if try_lock(path, SharedFile) is not None:
            raise StoreIO(where=path, reason="locks do not exclude others here")

    def is_at(self, path: str) -> bool:
        """Say whether a path leads to its file."""
        return same_file(self._found, path)


class _Waiter:
    """Waits for a lock in a thread of its own, so that the caller can leave."""

    def __init__(self, path: str, flags: int, kind: type[LockedFile]) -> None:
        self._path = path
        self._flags = flags
        self._kind = kind
        self._box: queue.SimpleQueue[LockedFile | Exception] = queue.SimpleQueue()
        self._left = False

    def wait(self, deadline: float) -> LockedFile:
        """Return the file, locked. Raises store-busy when the deadline passes."""
        thread = threading.Thread(target=self._run, name="ledger-lock", daemon=True)
        try:
            thread.start()
            found = self._box.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise _busy(self._path) from None
        except RuntimeError as error:
            raise StoreBusy(
                where=self._path, reason="it is locked, and no thread could be started to wait"
            ) from error
        finally:
            self._left = True
            self._clear()
        if isinstance(found, Exception):
            raise found
        return found

    def _run(self) -> None:
        try:
            file = self._kind(self._path, self._flags)
            file.lock()
        except Exception as error:  # Handed to the waiter, whose it is.
            self._box.put(error)
            return
        self._box.put(file)
        del file
        if self._left:
            self._clear()

    def _clear(self) -> None:
        """Close what nobody will take. Both sides call it, so that neither order leaves a lock."""
        try:
            found = self._box.get_nowait()
        except queue.Empty:
            return
        if isinstance(found, LockedFile):
            found.close()


def _busy(path: str) -> StoreBusy:
    return StoreBusy(where=path, reason=f"{_holder(path)} has the lock")


def _holder(path: str) -> str:
    """Name the process that holds the lock on a file, as far as the system tells."""
    try:
        inode = f":{os.stat(path, follow_symlinks=False).st_ino}"
        with open("/proc/locks", encoding="ascii") as table:
            for row in table:
                words = row.split()
                if words[1] == "FLOCK" and words[5].endswith(inode):
                    return f"process {words[4]}"
    except (OSError, IndexError, UnicodeDecodeError):
        pass
    return "another process"


@contextmanager
def held_now(*paths: str) -> Iterator[bool]:
    """Hold the locks of several files, if nobody has any, without waiting. Yields whether."""
    with ExitStack() as held:
        for path in paths:
            file = try_lock(path)
            if file is None:
                held.close()
                yield False
                return
            held.enter_context(file)
        yield True
