"""Who lives: a process holds a lock on a file of its own, so that others see at once when it ends.

    <folder>/holders/<first 32 hex digits of SHA-256(holder)>.lock

A file has such a name only while it is locked, and after its holder ended: it is made and locked under a
random name, and renamed then. So who looks never meets one that is about to be locked, and a file that
is there and free tells of a death. No file tells nothing: the holder could not lock, or ended long
ago; then the times in its leases decide. Nothing is flushed: what a power loss takes is of an earlier
boot of the machine, and leases name theirs.

What is held belongs to the process, not to a store object: several on one folder share it, and closing
one frees nothing. In the child of a fork nothing is held.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import time
from contextlib import suppress
from itertools import islice

from ledger.errors import LedgerError
from ledger.stores import files, locks
from ledger.stores.home import Home

_OLD_S = 24 * 60 * 60
"""How old a free file is before it is removed: leases that name its holder ran out long before."""
_MOST = 1000
"""How many files are looked at before the first turn of a process."""
_OURS = re.compile(r"[0-9a-f]{32}\.lock|new-[0-9a-f]{32}")

_Folder = tuple[int, int]


class _Process:
    """What this process holds: by holder, then by folder (device and inode; a path has spellings).

    The lock is not held while forking: filelock stops its users then, one of whom may have the lock.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Hold nothing: a fork's child begins anew."""
        self.lock = threading.Lock()
        self.held: dict[str, dict[_Folder, locks.LifeLock]] = {}


_process = _Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.renew)


class Holders:
    """The holders that a folder knows. For any number of threads, objects and processes."""

    def __init__(self, home: Home) -> None:
        self.folder = os.path.join(home.folder, "holders")
        self._home = home
        self._found: _Folder | None = None
        """Which folder it was when something was held in it last."""

    def hold(self, holder: str) -> None:
        """Let others see that this process lives, until it ends: see `LedgerStore.hold`."""
        if self._holds(holder):
            return
        with suppress(OSError, LedgerError), _process.lock:
            self._found = self._make()
            self._hold(holder, self._found)

    def _holds(self, holder: str) -> bool:
        """Say whether the file that others look for is there, and locked by this process."""
        if self._found is None:
            return False
        mine = _process.held.get(holder, {}).get(self._found)
        return mine is not None and mine.is_at(self._path(holder))

    def is_dead(self, holder: str) -> bool:
        """Say whether a holder is known to have ended: see `LedgerStore.is_dead`."""
        if holder in _process.held:
            return False
        try:
            files.check_trusted(self.folder)
        except LedgerError:
            return False
        # Shared, so that two who look at the same time do not take each other for the holder.
        file = locks.try_lock(self._path(holder), locks.SharedFile)
        if file is None:
            return False
        file.close()
        return True

    def _path(self, holder: str) -> str:
        digest = hashlib.sha256(holder.encode("utf-8", "surrogatepass")).hexdigest()
        return os.path.join(self.folder, f"{digest[:32]}.lock")

    def _make(self) -> _Folder:
        """Make the folder if it is not there, and return which one it is."""
        self._home.make()
        with suppress(FileExistsError):
            os.mkdir(self.folder, 0o700)
        files.check_trusted(self.folder)
        found = os.stat(self.folder, follow_symlinks=False)
        return found.st_dev, found.st_ino

    def _hold(self, holder: str, folder: _Folder) -> None:
        path = self._path(holder)
        mine = _process.held.get(holder, {}).get(folder)
        if mine is not None and mine.is_at(path):
            return
        first = not any(folder in folders for folders in _process.held.values())
        new = os.path.join(self.folder, f"new-{secrets.token_hex(16)}")
        try:
            lock = locks.LifeLock(new)
            _process.held.setdefault(holder, {})[folder] = lock
            os.rename(new, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(new)
        if first:
            self._sweep()

    def _sweep(self) -> None:
        """Remove old files that nobody holds."""
        before = time.time() - _OLD_S
        with os.scandir(self.folder) as entries:
            for entry in islice(entries, _MOST):
                with suppress(OSError):
                    if (
                        _OURS.fullmatch(entry.name)
                        and entry.stat(follow_symlinks=False).st_mtime < before
                    ):
                        _remove(entry.path)


def _remove(path: str) -> None:
    """Remove a file if nobody holds it; what is not a plain file of ours stays."""
    file = locks.try_lock(path)
    if file is not None:
        with file:
            os.unlink(path)
