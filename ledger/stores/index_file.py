"""A file beside the logs in which an index of them is kept: SQLite, discardable, never the truth.

    <folder>/catalog.sqlite    the index; its owner's alone
    <folder>/catalog.lock      shared by who has it open, held alone by who makes or removes it

What an index holds is not known here, but for this, which is true of every one: a conversation and a turn that
are inserted into its `forgotten` are taken out of it, and its full-text table is `texts`. So whoever erases from
a log has the text go from here as well, in the same breath, without a thought for what it means. The file is
overwritten where the text stood (`secure_delete`).

SQLite's locks are lost to a process that opens and closes the file in another way (a trait of POSIX locks),
and an index that is exchanged under its users is damaged. Hence the second file, and nobody here opens the
index itself while others may have it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import quote

from ledger.errors import LedgerError, StoreLink
from ledger.stores import files, locks, names
from ledger.stores.files import Descriptor

LOCK = "catalog.lock"
_SETTINGS = (
    "PRAGMA secure_delete = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA temp_store = MEMORY",
)


class IndexFile:
    """The index's file in a store's folder.

    Args: timeout_s: how long to wait for others who write to it, or make it anew.
    """

    def __init__(self, folder: str, *, timeout_s: float = 30.0) -> None:
        self.path = os.path.join(folder, names.INDEX)
        self._folder = folder
        self._lock = os.path.join(folder, LOCK)
        self._timeout_s = timeout_s

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Give a connection, of the calling thread alone; the file is made, empty, if it is not there.

        Raises: store errors: it cannot be used here (read-only, denied, a link). sqlite3.Error: as SQLite says.
        """
        files.check_trusted(self._folder, by_link=True)
        with self._shared(), closing(self._connect()) as connection:
            yield connection

    def discard(self) -> None:
        """Remove the index with all that belongs to it; who has it open is waited for. Raises: store errors."""
        with self._locked(locks.LockedFile):
            for name in names.OF_THE_INDEX:
                with files.naming(self.path), suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._folder, name))

    def purge(self, conversation: str, turn: str | None) -> None:
        """Take out what the index has of a turn (None: of the whole conversation), for good.

        An index of which this cannot be done is removed. Raises: nothing: it is never the truth, and the log
        looks otherwise now, so that who uses the index next does it.
        """
        with suppress(LedgerError, OSError):
            if not self._is_there():  # What it left, if somebody removed it alone, goes too.
                self.discard()
                return
            try:
                with self.opened() as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    forget(connection, conversation, turn)
                    merge(connection)
                    connection.execute("COMMIT")
            except (LedgerError, OSError):
                raise
            except (
                Exception
            ):  # Of a damaged file SQLite says what no text is, and Python raises what it will.
                self.discard()

    @contextmanager
    def _shared(self) -> Iterator[None]:
        """Share the lock while there is an index, which is made first if need be."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            with self._locked(locks.SharedFile, deadline):
                if self._is_there():
                    yield
                    return
            with self._locked(locks.LockedFile, deadline):
                if not self._is_there():
                    with files.naming(self.path), suppress(FileExistsError):
                        Descriptor(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL).close()

    def _is_there(self) -> bool:
        """Say whether the file is there. Raises: store-link: what is there is no plain file."""
        with files.naming(self.path), suppress(FileNotFoundError):
            if not files.is_plain(os.stat(self.path, follow_symlinks=False)):
                raise StoreLink(where=self.path, reason="it is not a plain file with one name")
            return True
        return False

    def _locked(
        self, kind: type[locks.LockedFile], deadline: float | None = None
    ) -> locks.LockedFile:
        until = deadline if deadline is not None else time.monotonic() + self._timeout_s
        try:
            return locks.acquire(self._lock, until, create=True, kind=kind)
        except FileNotFoundError as error:
            raise files.named(error, self._lock) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(self.path)}?mode=rw",
            uri=True,
            timeout=self._timeout_s,
            isolation_level=None,
        )
        try:
            for setting in _SETTINGS:
                connection.execute(setting)
        except BaseException:
            connection.close()
            raise
        return connection


def forget(
    connection: sqlite3.Connection, conversation: str, turn: str | None, *, prefix: str = ""
) -> None:
    """Take a turn out of an index; None: all of the conversation. To be merged then. Raises: sqlite3.Error.

    Args: prefix: what the names of the index's tables begin with.
    """
    connection.execute(
        f"INSERT INTO {prefix}forgotten(conversation, turn) VALUES(?, ?)", (conversation, turn)
    )


def merge(connection: sqlite3.Connection, *, prefix: str = "") -> None:
    """Merge the full-text index into one: what was deleted from it is not in it any more. Raises: sqlite3.Error."""
    connection.execute(f"INSERT INTO {prefix}texts({prefix}texts) VALUES('optimize')")
