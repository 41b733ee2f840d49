"""Whether a log was changed by anybody but writers of ours since its index was begun: what its lock file says.

An index tells what does not stand in a log, so bytes of the log must not change behind its back: a backup that is
copied over it, in place, may hold other lines with the same seals around them. What the system says of a file tells
of every change, but not whose it was. So each writer of ours, while it has the append lock, writes into the lock file
how the log looks once it is done, if it looked before as the one before it wrote: then all changes are appends. The
lock file of a log that has no index is empty, and nobody writes there.

Whoever changes what stands in a log empties it first.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ledger.stores import files
from ledger.stores.files import Descriptor, Files

_LENGTH = 96


def stands(lock: Descriptor, calls: Files, log: os.stat_result) -> bool:
    """Say whether a log looks as its lock file says."""
    try:
        return calls.read(lock.number, _LENGTH, 0) == look(log)
    except OSError:
        return False


def write(lock: Descriptor, calls: Files, log: os.stat_result) -> None:
    """Have a lock file say how the log looks. The lock is held. Where that fails, no log looks as it says."""
    with suppress(OSError):
        calls.write(lock.number, memoryview(look(log)), 0)


def clear(path: str, calls: Files) -> None:
    """Have a lock file say nothing. The lock is held. Raises: store-io and the like."""
    with files.naming(path), suppress(FileNotFoundError), Descriptor(path, os.O_RDWR) as lock:
        if lock.found.st_size:
            calls.cut(lock.number, 0)


def look(log: os.stat_result) -> bytes:
    """Return what the system says of a log, in as many bytes as that of any other."""
    look = b"%d %d %d %d" % (log.st_dev, log.st_ino, log.st_size, log.st_ctime_ns)
    return look.ljust(_LENGTH - 1) + b"\n"
