"""Where the index of a store is: in a file of its folder, else in this process's memory.

In a file it is opened for each question and closed after it. So a fork finds nothing open, and who has to make
it anew waits for no idle process. What is damaged, or of another version, is removed and made anew; where that
cannot be done (nothing may be written, others keep it busy), memory serves as well, and is as right: only
slower, the first time.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol, TypeVar

import msgspec

from ledger.catalog.index import Index
from ledger.catalog.sqlite import Foreign, SQLiteIndex
from ledger.errors import LedgerError
from ledger.stores.index_file import IndexFile

T = TypeVar("T")
_CIRCUMSTANCES = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
}
"""What SQLite fails with though the file is well."""
TRIES = 3
"""How often a file is made anew before memory serves."""


class Place(Protocol):
    """Where an index is."""

    def ask(self, work: Callable[[Index], T]) -> T:
        """Do something with the index; again with a new one where it is found to be damaged."""
        ...

    def rebuild(self) -> None:
        """Forget all that is in the index."""
        ...


class InMemory:
    """An index in this process's memory. Threads take turns; a fork's child makes its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0
        self._index: SQLiteIndex | None = None
        self._close: Callable[[], object] = bool

    def ask(self, work: Callable[[Index], T]) -> T:
        """Do something with the index."""
        with self._alone():
            if self._index is None:
                memory = _memory()
                self._index = SQLiteIndex(memory)
                self._close = weakref.finalize(self, memory.close)
            return work(self._index)

    def rebuild(self) -> None:
        """Forget all that is in the index."""
        with self._alone():
            self._index = None
            self._close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._process != os.getpid():
            self._process, self._lock, self._index = os.getpid(), threading.Lock(), None
        with self._lock:
            yield


class InFile:
    """An index in a store's folder, for every process; else in memory."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file
        self._instead = InMemory()

    def ask(self, work: Callable[[Index], T]) -> T:
        """Do something with the index; again with a new one where it is found to be damaged."""
        for _ in range(TRIES):
            with ExitStack() as stack:
                try:
                    connection = stack.enter_context(self._file.opened())
                except (LedgerError, OSError):
                    break  # Nothing may be written here, or others are at it for long.
                except sqlite3.Error as error:
                    if not is_damage(error):
                        break
                except BY_DAMAGE:
                    pass
                else:
                    try:
                        return work(SQLiteIndex(connection))
                    except sqlite3.Error as error:
                        if not is_damage(error):
                            break
                    except (Foreign, msgspec.MsgspecError, *BY_DAMAGE):
                        pass
            if not self._removed():
                break
        return self._instead.ask(work)

    def rebuild(self) -> None:
        """Forget all that is in the index, and remove its file."""
        self._instead.rebuild()
        self._removed()

    def _removed(self) -> bool:
        try:
            self._file.discard()
        except (LedgerError, OSError):
            return False
        return True


BY_DAMAGE = (UnicodeDecodeError, LookupError, TypeError)
"""What comes, beside errors of SQLite's, of rows and messages that are not what was written. A question that is at
fault itself raises again in memory."""


def is_damage(error: sqlite3.Error) -> bool:
    """Say whether an index is to be made anew, and not only left alone: it is busy, or the disk is full."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _CIRCUMSTANCES


def _memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
