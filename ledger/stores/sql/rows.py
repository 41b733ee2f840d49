"""Logs read from their rows, with the connection that is given. One statement sees one moment."""

from __future__ import annotations

from typing import Any

from sqlalchemy import TextClause, text
from sqlalchemy.engine import Connection

from ledger.stores import lines
from ledger.stores.sql import pieces
from ledger.stores.sql.pieces import Head, Window

_BACK = 32
"""How many rows are read at first to find a place where a scanner can start; then always twice as many."""
_AT_ONCE = 1000
"""How many rows of a log are read at once where it is gone through from end to end."""

_COLUMNS = "key, count, size, chain, ready, newer, first_at, first_salt, erased, torn"

_HEAD = text(f"SELECT {_COLUMNS} FROM ledger_conversations WHERE tenant = :tenant AND id = :id")
_HEADS = text(f"SELECT id, {_COLUMNS} FROM ledger_conversations WHERE tenant = :tenant")
_HEAD_LOCKED = text(f"{_HEAD.text} FOR UPDATE")
_FROM = text(
    f"""WITH head AS ({_HEAD.text})
    SELECT -1 AS seq, NULL AS data, {_COLUMNS} FROM head
    UNION ALL
    SELECT line.seq, line.data, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM head JOIN ledger_lines AS line ON line.conversation = head.key WHERE line.seq >= :first
    ORDER BY seq"""
)
LOOK = "head.key || '.' || head.erased || ':' || head.count || ':' || head.chain"
"""What tells how a log looks, as `KnownEnds.looks` writes it."""
_BETWEEN = text(
    """SELECT seq, data FROM ledger_lines
    WHERE conversation = :key AND seq BETWEEN :first AND :last ORDER BY seq"""
)

_SUM = text(
    """SELECT count(CASE WHEN seq > 0 THEN 1 END), coalesce(sum(length(data)), 0)
    FROM ledger_lines WHERE conversation = :key"""
)


def head(connection: Connection, tenant: int, conversation: str) -> Head | None:
    """Return what is said of a conversation's log; None: there is none."""
    found = connection.execute(_HEAD, {"tenant": tenant, "id": conversation}).first()
    return _head(tuple(found)) if found is not None else None


def heads(connection: Connection, tenant: int) -> list[tuple[str, Head]]:
    """Return what is said of every log, with its id."""
    found = connection.execute(_HEADS, {"tenant": tenant})
    return [(row[0], _head(tuple(row)[1:])) for row in found]


def stale(known: str) -> TextClause:
    """Return the statement that finds which logs do not look as they are known, and which known ones are gone.

    Args: known: a query of `id` and `look`.
    """
    return text(
        f"""SELECT head.id, 0 FROM ledger_conversations AS head
        LEFT JOIN ({known}) AS known ON known.id = head.id
        WHERE head.tenant = :tenant AND (known.look IS NULL OR known.look != {LOOK})
        UNION ALL
        SELECT known.id, 1 FROM ({known}) AS known
        LEFT JOIN ledger_conversations AS head ON head.tenant = :tenant AND head.id = known.id
        WHERE head.key IS NULL"""
    )


def head_locked(
    connection: Connection, tenant: int, conversation: str, *, postgres: bool
) -> Head | None:
    """Return the same, and let nobody else change the log until the transaction ends."""
    statement = _HEAD_LOCKED if postgres else _HEAD  # SQLite has one writer at a time.
    found = connection.execute(statement, {"tenant": tenant, "id": conversation}).first()
    return _head(tuple(found)) if found is not None else None


def read(
    connection: Connection, tenant: int, conversation: str, after: int
) -> tuple[Head | None, Window]:
    """Return the head of a log, and its lines beyond a place, from where a scanner can start."""
    first = after if after > 1 else 0
    given = {"tenant": tenant, "id": conversation, "first": first}
    found = connection.execute(_FROM, given).all()
    if not found or found[0][0] != -1:
        return None, Window(0, [])
    log = _head(tuple(found[0])[2:])
    if after > log.records:
        return log, Window(after, [])
    there = [(row[0], row[1]) for row in found[1:]]
    return log, _from_anchor(
        connection, log, pieces.window(there, first, log.records, end=log.records)
    )


def between(connection: Connection, log: Head, first: int, last: int) -> Window:
    """Return lines of a log by their numbers, from where a scanner can start to where nothing more is told."""
    last = min(last, log.records)
    while True:
        found = _between(connection, log, first - 1, last)
        if last >= log.records or found.ends_well:
            return _from_anchor(connection, log, found)
        last = min(log.records, last + max(_BACK, last - first))


def _from_anchor(connection: Connection, log: Head, found: Window) -> Window:
    """Return a window with as many rows before it as it takes to start."""
    back = _BACK
    while not found.starts_well:
        before = _between(connection, log, max(0, found.first - back), found.first - 1)
        found, back = Window(before.first, [*before.rows, *found.rows]), back * 2
    return found


def _between(connection: Connection, log: Head, first: int, last: int) -> Window:
    given = {"key": log.key, "first": max(first, 0), "last": last}
    there = [(row[0], row[1]) for row in connection.execute(_BETWEEN, given)]
    return pieces.window(there, max(first, 0), last, end=log.records)


def source(connection: Connection, log: Head) -> lines.Source:
    """Return the bytes of a whole log, in bounded memory unless rows of it are gone."""
    count, size = connection.execute(_SUM, {"key": log.key}).one()
    if count == log.records and int(size) + len(log.torn or b"") == log.size:
        return _Rows(connection, log)
    found = _between(connection, log, 0, log.records)
    return lines.BytesSource(b"".join(found.rows) + (log.torn or b""))


class _Rows:
    """The bytes of a whole log, read from the start to the end in pieces. It may be gone through again."""

    def __init__(self, connection: Connection, log: Head) -> None:
        self.size = log.size
        self._connection = connection
        self._log = log
        self._start_anew()

    def _start_anew(self) -> None:
        self._base = 0
        self._data = b""
        self._next: int | None = 0

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes; fewer only at the end."""
        if offset < self._base:
            self._start_anew()
        while self._next is not None and self._base + len(self._data) < offset + length:
            self._fetch(offset)
        start = offset - self._base
        return self._data[start : start + length]

    def _fetch(self, offset: int) -> None:
        first = self._next or 0
        last = min(first + _AT_ONCE, self._log.records)
        found = _between(self._connection, self._log, first, last)
        done = max(0, offset - self._base)
        self._base += min(done, len(self._data))
        self._data = self._data[done:] + b"".join(found.rows)
        self._next = last + 1
        if last >= self._log.records:
            self._data += self._log.torn or b""
            self._next = None


def one(connection: Connection, log: Head, seq: int) -> bytes | None:
    """Return a row as it is, or None."""
    given = {"key": log.key, "first": seq, "last": seq}
    found = connection.execute(_BETWEEN, given).first()
    return bytes(found[1]) if found is not None else None


def raw(connection: Connection, tenant: int, conversation: str) -> bytes:
    """Return the bytes of a whole log as they are."""
    given = {"tenant": tenant, "id": conversation, "first": 0}
    found = connection.execute(_FROM, given).all()
    if not found or found[0][0] != -1:
        return b""
    log = _head(tuple(found[0])[2:])
    return b"".join(bytes(row[1]) for row in found[1:]) + (log.torn or b"")


def _head(found: tuple[Any, ...]) -> Head:
    key, count, size, chain, ready, newer, at, salt, erased, torn = found
    torn = bytes(torn) if torn is not None else None
    return Head(key, count, size, chain, bool(ready), bool(newer), at, salt, erased, torn)
