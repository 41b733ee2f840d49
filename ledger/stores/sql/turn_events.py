"""The events of running turns in a database. What an append adds is one row, of one line or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from sqlalchemy import text
from sqlalchemy.engine import Connection

from ledger.records import events as rules
from ledger.records.events import Event
from ledger.stores.events import EventLogs, Log, Waits
from ledger.stores.sql import removal
from ledger.stores.sql.database import Database

T = TypeVar("T")

_MOST = 512
"""How many rows of a log are read at once."""

_FIND = text("SELECT key, writer, last FROM ledger_events WHERE tenant = :tenant AND tree = :tree")
_HOLD = text(
    """INSERT INTO ledger_events (tenant, tree, writer, last) VALUES (:tenant, :tree, :writer, 0)
    ON CONFLICT (tenant, tree) DO UPDATE SET last = ledger_events.last
    RETURNING key, writer, last"""
)
_NEWEST = text(
    """SELECT n, data FROM ledger_event_lines WHERE log = :key AND n < :before
    ORDER BY n DESC LIMIT :most"""
)
_ADD = text("INSERT INTO ledger_event_lines (log, n, data) VALUES (:key, :n, :data)")
_LAST = text("UPDATE ledger_events SET last = :last WHERE key = :key")
_WRITER = text("UPDATE ledger_events SET writer = :writer WHERE key = :key")


class _RowLog:
    """One log, as a connection sees it."""

    def __init__(self, connection: Connection, tree: str, key: int, writer: int, last: int) -> None:
        self._connection = connection
        self._tree = tree
        self._key = key
        self._writer = writer
        self._last = last

    def newest(self) -> Iterator[Event]:
        before, most = self._last + 1, 1
        while before > 1:
            given = {"key": self._key, "before": before, "most": most}
            found = self._connection.execute(_NEWEST, given).all()
            if not found:
                return
            for n, data in found:
                before = n
                for line in reversed(bytes(data).splitlines()):
                    event = rules.of_line(line, self._tree)
                    if event is not None:
                        yield event
            most = min(most * 8, _MOST)

    def writer(self) -> int:
        return self._writer

    def last(self) -> Event | None:
        return next(self.newest(), None)

    def add(self, events: list[Event]) -> None:
        data = b"".join(map(rules.line, events))
        self._last += 1
        self._connection.execute(_ADD, {"key": self._key, "n": self._last, "data": data})
        self._connection.execute(_LAST, {"key": self._key, "last": self._last})

    def hand_to(self, writer: int) -> None:
        self._connection.execute(_WRITER, {"key": self._key, "writer": writer})


class SQLEvents(EventLogs):
    """The events of running turns in a database, of one tenant.

    Args: tenant: gives its key, or None when it has nothing yet; asked with True, it makes one. waits:
    who waits for a log to grow.
    """

    def __init__(
        self, database: Database, tenant: Callable[[bool], int | None], waits: Callable[[], Waits]
    ) -> None:
        super().__init__()
        self._database = database
        self._tenant = tenant
        self._make_waits = waits
        self._waiters = waits()

    def _look(self, tree: str, work: Callable[[Log], T]) -> T:
        tenant = self._tenant(False)
        if tenant is None:  # There may be no database to ask, and an empty log asks nothing.
            return work(_RowLog(cast(Connection, None), tree, 0, rules.FIRST_WRITER, 0))

        def look(connection: Connection) -> T:
            found = connection.execute(_FIND, {"tenant": tenant, "tree": tree}).first()
            key, writer, last = found or (0, rules.FIRST_WRITER, 0)
            return work(_RowLog(connection, tree, key, writer, last))

        return self._database.run(look)

    def _change(self, tree: str, work: Callable[[Log], T], *, waits: bool = True) -> T:
        tenant = self._tenant(True)

        def change(connection: Connection) -> T:
            # What must survive a fall of the machine is in the records: this is not waited for.
            with self._database.transaction(connection, durable=False):
                given = {"tenant": tenant, "tree": tree, "writer": rules.FIRST_WRITER}
                key, writer, last = connection.execute(_HOLD, given).one()
                return work(_RowLog(connection, tree, key, writer, last))

        return self._database.run(change)

    def remove(self, tree: str) -> bool:
        """Remove a log. Returns: whether there was one."""
        rules.check_tree(tree)
        tenant = self._tenant(False)
        if tenant is None:
            return False

        def work(connection: Connection) -> bool:
            with self._database.transaction(connection):
                return removal.events(connection, tenant, tree)

        return self._database.run(work)

    def before_fork(self) -> None:
        """Nothing is held between calls."""

    def after_fork(self, *, child: bool) -> None:
        """In the child, leave to the parent who waits there."""
        if child:
            self._waiters = self._make_waits()
