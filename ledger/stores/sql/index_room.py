"""Room in the database for an index of the logs: tables of its own, discardable, never the truth.

What an index holds is not known here, but for this, which is true of every one:

    PostgreSQL  `ledger_catalog_conversations` has a row (`tenant`, `id`) for each conversation in it, and with
                that row all goes that is kept of the conversation
    SQLite      each tenant has tables of its own, `ledger_catalog_<tenant>_...`; a conversation that is inserted
                into the one called `forgotten` goes, and `texts` is to be merged then (`stores.index_file`)

So who erases from a log takes the conversation out of the index too, in the same transaction; whoever asks next
reads it anew. A log is read in the transaction that writes what it says, and one of these is done at a time (on
PostgreSQL under an advisory lock of the tenant's): so nothing forgotten comes back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from sqlalchemy import text
from sqlalchemy.engine import Connection

from ledger.stores import index_file
from ledger.stores.sql import rows
from ledger.stores.sql.database import Database

T = TypeVar("T")

PREFIX = "ledger_catalog_"
"""What the names of an index's tables begin with."""
_LOCK = 0x7475726E << 32
"""The advisory lock of who makes or drops an index's tables; with a tenant's key in it: of who writes its index."""
_IDLE_MS = 300_000
"""How long who writes an index may be busy with what it read; only who erases waits for it."""
_FORGET = text(f"DELETE FROM {PREFIX}conversations WHERE tenant = :tenant AND id = :id")
_OURS = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, %(prefix)s) "
    "AND pg_table_is_visible(oid)"
)


class IndexRoom:
    """Where in a database the index of a tenant's logs is kept.

    Args: tenant: a store's method that returns its key. The store is not kept alive by it: what is remembered for
    a store goes with the store.
    """

    def __init__(self, database: Database, tenant: Callable[[bool], int | None]) -> None:
        self._database = database
        self._tenant = weakref.WeakMethod(tenant)

    def use(self, work: Callable[[Room], T]) -> T | None:
        """Do something in the room; again when the connection was lost. Returns: None: there are no logs.

        All that this thread asks of the store meanwhile is asked with the same connection: who had one and waited
        for another could wait for others that do the same.
        Raises: Missing: there are no tables of an index; otherwise as `Database.run`.
        """
        find = self._tenant()
        tenant = find(False) if find is not None else None
        if tenant is None:
            return None
        database = self._database

        def inside(connection: Connection) -> T:
            with database.inside(connection):
                return work(Room(database, connection, tenant))

        return database.attempt(inside)


class Room:
    """The same with a connection, for one question."""

    def __init__(self, database: Database, connection: Connection, tenant: int) -> None:
        self.is_postgres = database.is_postgres
        self.tenant = tenant
        self._database = database
        self._connection = connection

    @property
    def driver(self) -> Any:
        """The driver's own connection."""
        return self._connection.connection.driver_connection

    @property
    def prefix(self) -> str:
        """What the names of the tenant's tables begin with, on SQLite."""
        return prefix_of(self.tenant)

    def run(self, statement: str, given: Any = None) -> Any:
        """Execute a statement as the driver takes it; with a list of parameters, for each of them."""
        return self._connection.exec_driver_sql(statement, given)

    @contextmanager
    def making(self) -> Iterator[None]:
        """Make tables, or drop them, on PostgreSQL: one process at a time."""
        with self._database.transaction(self._connection):
            self.run(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all that is written inside, or none, nobody else to this index meanwhile."""
        with self._database.transaction(self._connection):
            if self.is_postgres:  # SQLite has one writer at a time.
                self.run(f"SET LOCAL idle_in_transaction_session_timeout = {_IDLE_MS}")
                self.run(f"SELECT pg_advisory_xact_lock({_LOCK ^ self.tenant})")
            yield

    def reading(self) -> AbstractContextManager[None]:
        """Have all that is asked inside answered as of one moment."""
        return self._database.snapshot(self._connection)

    def tables(self) -> set[str]:
        """Return the names of the tables of an index that are there, on PostgreSQL."""
        return {row[0] for row in self.run(_OURS, {"prefix": PREFIX[:-1]})}

    def stale(self, table: str) -> tuple[list[str], list[str]]:
        """Return which conversations look otherwise than a table of an index says, and which are gone."""
        mine = f"SELECT id, look FROM {table}"
        if self.is_postgres:
            mine += f" WHERE tenant = {self.tenant}"
        found = self._connection.execute(rows.stale(mine), {"tenant": self.tenant}).all()
        changed = [row[0] for row in found if not row[1]]
        return sorted(changed), [row[0] for row in found if row[1]]


def prefix_of(tenant: int) -> str:
    """Return what the names of a tenant's tables begin with, on SQLite."""
    return f"{PREFIX}{tenant}_"


def forget(connection: Connection, tenant: int, id: str, *, postgres: bool) -> None:
    """Take a conversation out of the index, if there is one; the last of what a transaction does.

    Whoever writes to the index is waited for: it may have read what is forgotten.
    """
    if postgres:
        locks = (
            f"SELECT pg_advisory_xact_lock_shared({_LOCK}), pg_advisory_xact_lock({_LOCK ^ tenant})"
        )
        connection.exec_driver_sql(locks)
        there = f"SELECT to_regclass('{PREFIX}conversations') IS NOT NULL"
        if connection.exec_driver_sql(there).scalar():
            connection.execute(_FORGET, {"tenant": tenant, "id": id})
        return
    prefix = prefix_of(tenant)
    there = f"SELECT count(*) FROM sqlite_master WHERE name = '{prefix}forgotten'"
    if connection.exec_driver_sql(there).scalar():
        driver: Any = connection.connection.driver_connection
        index_file.forget(driver, id, None, prefix=prefix)
        index_file.merge(driver, prefix=prefix)
