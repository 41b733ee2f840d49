"""One database as this process reaches it: its connections, its schema, its errors, its clock.

All stores of a process that name a database by the same URL share one `Database`, and so its connections
and the one that listens. Every statement goes through `run`, which repeats what a lost connection cut off:
so what is given to it must do no harm when it was done already.

Connections are used in autocommit: one statement is one round trip. A transaction is begun and ended by
its own statements (`transaction`), the same way with both databases.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from sqlalchemy import exc
from sqlalchemy.engine import URL, Connection, Engine

from ledger.bells import Bell, OwnLock
from ledger.errors import LedgerError, StoreBusy, StoreIO, StoreVersion
from ledger.stores import forks, handout
from ledger.stores.files import naming
from ledger.stores.sql import failures, files, tables, urls
from ledger.stores.sql.failures import Again, Lost, Missing

T = TypeVar("T")

RETRY_S = 30.0
"""For how long a connection that was lost is sought again."""
FIRST_S = 1.0
"""For how long the first one is sought: an address that is wrong is told soon."""
CLOCK_S = 60.0
"""How old an answer of the database's clock gets before it is asked again."""
_SCHEMA_LOCK = 0x7475726E
"""The advisory lock of who makes or changes the tables (any number that others are unlikely to use)."""
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0

NOW = {
    True: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS double precision)",
    False: "((julianday('now') - 2440587.5) * 86400.0)",
}
"""The seconds since 1970 by the database's clock: on PostgreSQL, else on SQLite."""


class Database:
    """A database, and the connections of this process to it. For any number of threads."""

    def __init__(self, engine: Engine, *, lock_timeout_s: float, own: bool) -> None:
        self.is_postgres = _is_postgres(engine)
        self.where = urls.where(engine.url)
        """Which database it is, for errors: without user, password and options."""
        self.lock_timeout_s = lock_timeout_s
        self.engine = engine
        self.losses = 0
        """How often the connection was lost: what was known of the database then has to be asked again."""
        self.users = 0
        """How many open stores use it."""
        self.listener: Any = None
        """Who waits for it to change (`listening.Listener`)."""
        self._own = own
        self._path = "" if self.is_postgres else os.path.abspath(str(engine.url.database))
        self._work = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._schema_at: int | None = None
        """The value of `losses` at which the tables were last found."""
        self._was_up = False
        self._clock: tuple[float, float] | None = None
        """What the database's clock said, and this process's own when it did."""
        self._door = threading.Lock()
        """Passed by whoever begins to do something; held while the process is copied."""
        self._bell = Bell()
        self._busy: set[object] = set()
        """What is done with connections now."""
        self._held = threading.local()
        """The connection that a thread works inside of, if there is one."""
        forks.join(self)

    def __repr__(self) -> str:
        return f"Database({self.where!r})"

    # -- doing something

    def run(self, work: Callable[[Connection], T], *, patience_s: float = RETRY_S) -> T:
        """Do work with a connection; again, with another, when it was lost or given up for another's sake.

        Raises: store-io, store-busy, store-full, store-denied, store-read-only.
        """
        try:
            return self.attempt(work, patience_s)
        except Missing:
            pass
        raise self.emptied()

    def emptied(self) -> StoreIO:
        """Forget all that is known of the tables, which are gone. Returns: the error that says so."""
        self._schema_at = None
        self._note_loss()
        reason = "its tables are gone; the next append makes them anew, if nobody puts them back"
        return StoreIO(where=self.where, reason=reason)

    def attempt(self, work: Callable[[Connection], T], patience_s: float = RETRY_S) -> T:
        """Do the same. Raises: as `run`; Missing: a table is not there."""
        held: Connection | None = getattr(self._held, "connection", None)
        if held is not None:
            return work(held)
        begun, pause = time.monotonic(), _PAUSE_S
        deadline, first = begun + patience_s, begun + FIRST_S
        while True:
            try:
                return self.once(work)
            except (Lost, Again) as error:
                failure: LedgerError = self._given_up(error)
                if isinstance(error, Lost) and not self._was_up:
                    deadline = min(deadline, first)
            except StoreIO as error:
                # It may be that another process is just making it, or closing it as its last user.
                if error.reason != failures.UNOPENED or self._is_no_file():
                    raise
                failure, deadline = error, min(deadline, first)
            if time.monotonic() >= deadline:
                raise failure
            time.sleep(random.uniform(0, pause))
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    @contextmanager
    def inside(self, connection: Connection) -> Iterator[None]:
        """Have all that this thread runs meanwhile done with a connection that it has, in its transaction.

        What is repeated after a loss is then the whole that has the connection.
        """
        self._held.connection = connection
        try:
            yield
        finally:
            self._held.connection = None

    def once(self, work: Callable[[Connection], T]) -> T:
        """Do work with a connection, once. Raises as `run`, and Lost, Again."""
        # A pool that runs out of stack in the middle loses a connection.
        return handout.with_room(lambda: self._once(work))

    def _once(self, work: Callable[[Connection], T]) -> T:
        connected = False
        this = object()
        try:
            with self._door:
                self._busy.add(this)
            with self._work.connect() as connection:
                connected = self._was_up = True
                self._set_up(connection)
                self._check_file(connection)
                done = work(connection)
                self._check_file(connection)
                if self.is_postgres and not connection.connection.is_detached:
                    self._look_at_clock(connection)
            return done
        except exc.DBAPIError as error:
            lost = error.connection_invalidated
            failure = failures.of(error.orig, self.where, lost=lost, connected=connected)
        except exc.TimeoutError:
            reason = "no connection of the pool came free; its size is set where the engine is made"
            failure = StoreBusy(where=self.where, reason=reason)
        finally:
            if self._own and (not self.users or self._is_only_read()):
                self.engine.dispose()  # A store that was closed is used: nothing stays open for it.
            self._busy.discard(this)
            self._bell.ring()
        if isinstance(failure, Lost):
            self._note_loss()
        # Outside of `except`: the driver's error, which may tell secrets, is not chained to it.
        raise failure

    def _given_up(self, error: Exception) -> LedgerError:
        if isinstance(error, Again):
            return StoreBusy(where=self.where, reason="others were preferred for the whole time")
        reason = "the database cannot be reached, or does not let this process in"
        return StoreIO(where=self.where, reason=reason)

    def _note_loss(self) -> None:
        with self._bell.lock:
            self.losses += 1

    @contextmanager
    def transaction(self, connection: Connection, *, durable: bool = True) -> Iterator[None]:
        """Do what is inside as one transaction: all of it, or none when it raises.

        Args: durable: False: when it returns, a fall of the machine may still undo it.
        """
        with self._as_durable(connection, durable):
            connection.exec_driver_sql(self._begin(durable=durable))
            try:
                yield
            except BaseException:
                with suppress(exc.SQLAlchemyError):
                    connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")

    def _begin(self, *, durable: bool) -> str:
        if not self.is_postgres:
            return "BEGIN IMMEDIATE"
        # All in one round trip. Who stops in the middle holds up the others no longer than they wait.
        wait = max(1, round(self.lock_timeout_s * 1000))
        settings = {"lock_timeout": wait, "idle_in_transaction_session_timeout": wait}
        lazy = {} if durable else {"synchronous_commit": "off"}
        told = (f"SET LOCAL {name} = {value}" for name, value in {**settings, **lazy}.items())
        return "; ".join(["BEGIN ISOLATION LEVEL READ COMMITTED", *told])

    @contextmanager
    def snapshot(self, connection: Connection) -> Iterator[None]:
        """Read what is inside as it was at one moment."""
        postgres = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        connection.exec_driver_sql(postgres if self.is_postgres else "BEGIN")
        try:
            yield
        finally:
            with suppress(exc.SQLAlchemyError):
                connection.exec_driver_sql("ROLLBACK")

    @contextmanager
    def _as_durable(self, connection: Connection, durable: bool) -> Iterator[None]:
        """Have SQLite flush at a commit, or not."""
        if durable or self.is_postgres:
            yield
            return
        connection.exec_driver_sql("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            connection.exec_driver_sql("PRAGMA synchronous = FULL")

    def _set_up(self, connection: Connection) -> None:
        """Set what the database is told of each connection that is ours."""
        if connection.info.get("ledger") or (self.is_postgres and not self._own):
            return
        wait = max(1, round(self.lock_timeout_s * 1000))
        if self.is_postgres:
            connection.exec_driver_sql(f"SET lock_timeout = {wait}")
            connection.info["ledger"] = True
            return
        for pragma in (f"busy_timeout = {wait}", "synchronous = FULL", "secure_delete = ON"):
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        connection.info["ledger"] = self._identity()

    def _check_file(self, connection: Connection) -> None:
        """Refuse a file of SQLite that was removed or replaced since it was opened. Raises: store-io.

        What is written to it then is in no file that anybody finds: nothing of it counts.
        """
        if self.is_postgres or connection.info["ledger"] == self._identity():
            return
        connection.invalidate()
        self.engine.dispose()
        self._schema_at = None
        self._note_loss()
        reason = "its file was removed or replaced while it was open, and nothing of this counts"
        raise StoreIO(where=self.where, reason=reason)

    # -- the schema

    def has_schema(self) -> bool:
        """Say whether the tables are there; those of an older version are brought to this one.

        Raises: store-version: they are of a newer version.
        """
        if self._schema_at == self.losses:
            return True
        losses = self.losses
        if self._is_no_file():
            return False
        try:
            found = self.attempt(_version)
        except Missing:
            return False
        self._check_version(found)
        if found < tables.VERSION:
            self.run(self._make_tables)
        self._schema_at = losses
        return True

    def make_schema(self) -> None:
        """Make the tables where there are none; for any number of processes at once.

        Raises: store-version: they are of a newer version. store-denied, store-read-only and the like.
        """
        if not self.has_schema():
            self._make_file()
            self.run(self._make_tables)
            self.has_schema()

    def _make_tables(self, connection: Connection) -> None:
        if not self.is_postgres:
            self._set_journal(connection)
        with self.transaction(connection):
            found = self._version_locked(connection)
            self._check_version(found)
            dialect = tables.POSTGRES if self.is_postgres else tables.SQLITE
            for statement in tables.migrations(found, dialect):
                connection.exec_driver_sql(statement)

    def _version_locked(self, connection: Connection) -> int:
        if self.is_postgres:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
            there = "SELECT to_regclass('ledger_meta') IS NOT NULL"
        else:
            there = "SELECT count(*) FROM sqlite_master WHERE name = 'ledger_meta'"
        return _version(connection) if connection.exec_driver_sql(there).scalar() else 0

    def check_version(self, connection: Connection) -> None:
        """Refuse tables that another process brought to a newer version. Raises: store-version."""
        self._check_version(_version(connection))

    def _check_version(self, found: int) -> None:
        if found > tables.VERSION:
            told = f"its tables are of version {found}, and this version knows {tables.VERSION}"
            raise StoreVersion(where=self.where, reason=f"{told}; nothing was read or changed")

    def _set_journal(self, connection: Connection) -> None:
        """Let readers and a writer of SQLite not wait for each other. It does not wait for a lock itself."""
        deadline = time.monotonic() + self.lock_timeout_s
        while True:
            try:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                return
            except exc.OperationalError as error:
                name = getattr(error.orig, "sqlite_errorname", "")
                if not name.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0, _PAUSE_S))

    def _is_no_file(self) -> bool:
        return not self.is_postgres and self._identity() is None

    def _is_only_read(self) -> bool:
        return not self.is_postgres and files.is_read_only(self._file())

    def _identity(self) -> tuple[int, int] | None:
        """Return what tells the file from another; None: there is none. Raises: store-denied: that may not be seen."""
        with naming(self.where):
            return files.identity(self._file())

    def _file(self) -> str:
        return self._path

    def _make_file(self) -> None:
        """Make the file of a SQLite database, and its folder, for its owner only."""
        if self.is_postgres:
            return
        path = self._file()
        with naming(self.where):
            os.makedirs(os.path.dirname(os.path.abspath(path)), 0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def clean_up(self) -> None:
        """Have SQLite drop what was overwritten from its write-ahead log too, if nobody reads there now."""
        if not self.is_postgres:
            with suppress(LedgerError, Again):
                self.once(lambda c: c.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all())

    # -- the clock

    def now(self) -> datetime:
        """Return the time by the database's clock; asks nothing of it.

        It was asked with some statement of the last minute or so, and is counted on by a steady clock.
        Before the first statement, and on SQLite, it is this machine's time.
        """
        if self._clock is None:
            return datetime.now(UTC)
        said, then = self._clock
        return datetime.fromtimestamp(said + _steady() - then, UTC)

    def _look_at_clock(self, connection: Connection) -> None:
        if self._clock is not None and 0 <= _steady() - self._clock[1] < CLOCK_S:
            return
        before = _steady()
        said = float(connection.exec_driver_sql(f"SELECT {NOW[True]}").scalar_one())
        self._clock = said, (before + _steady()) / 2

    # -- its end

    def close(self) -> None:
        """Close the connections that are free; one is made anew when it is needed."""
        self._schema_at = None
        if self._own:
            self.engine.dispose()

    def before_fork(self) -> None:
        """Let nobody be half-way through something, and on SQLite close every connection.

        SQLite keeps in memory which locks a process holds. A child that inherited that would take locks for
        held that only its parent holds, and a file's log could be removed under it.
        """
        self._door.acquire()
        if not self.is_postgres:
            self._bell.wait_for(lambda: not self._busy)
            self.engine.dispose()
        self._bell.lock.acquire()

    def after_fork(self, *, child: bool) -> None:
        """In the child, leave the connections to the parent: they are its, and are not to be closed here."""
        if not child:
            self._bell.lock.release()
            self._door.release()
            return
        self._door, self._bell, self._busy = threading.Lock(), Bell(), set()
        _left_to_parents.append(self.engine.pool)
        self.engine.dispose(close=False)


_left_to_parents: list[Any] = []
"""Pools of processes that this one was forked from. Kept, since dropping a connection would close it."""


def _version(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT version FROM ledger_meta").scalar_one())


def _steady() -> float:
    """Return seconds that no setting of the clock moves, and that count while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


# -- which database --------------------------------------------------------------------------------

_databases: WeakValueDictionary[tuple[Any, ...], Database] = WeakValueDictionary()
_opening = OwnLock()


def database_of(named: str | URL | Engine, lock_timeout_s: float) -> Database:
    """Return the database that a URL or an engine names; the same for the same one in this process.

    Raises: ValueError: it is none that a store can be in.
    """
    if isinstance(named, Engine):
        urls.check(named)
        key: tuple[Any, ...] = (id(named), lock_timeout_s)
    else:
        named = urls.parsed(named)
        key = (named.render_as_string(hide_password=False), lock_timeout_s)
    with _opening.lock:
        found = _databases.get(key)
        if found is None or (isinstance(named, Engine) and found.engine is not named):
            own = not isinstance(named, Engine)
            engine = named if isinstance(named, Engine) else urls.engine_of(named)
            found = _databases[key] = Database(engine, lock_timeout_s=lock_timeout_s, own=own)
        return found


def _is_postgres(engine: Engine) -> bool:
    return engine.dialect.name == "postgresql"
