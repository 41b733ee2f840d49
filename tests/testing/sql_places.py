"""Where SQL stores are kept while they are tested, and their rows reached past them."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import text

from ledger.stores.sql import SQLStore, pieces
from ledger.testing import StoreSuite
from tests import postgres


class SQLPlace(NamedTuple):
    """A place for a store: a database, and whose conversations."""

    url: str
    tenant: str | None = None


def open_sql(place: SQLPlace) -> SQLStore:
    """Return the store at a place."""
    return SQLStore(place.url, tenant=place.tenant)


def postgres_place() -> SQLPlace:
    """Return a new empty place on PostgreSQL."""
    return SQLPlace(postgres.url(), f"tenant-{secrets.token_hex(8)}")


def sqlite_place(folder: Path) -> SQLPlace:
    """Return a new empty place in a file of SQLite."""
    return SQLPlace(f"sqlite:///{folder / 'ledger.db'}")


def place_of(kind: str, folder: Path) -> SQLPlace:
    """Return a new empty place of a kind: `sqlite` or `postgres`."""
    return sqlite_place(folder) if kind == "sqlite" else postgres_place()


def read_rows(store: SQLStore, conversation: str) -> bytes:
    """Return the bytes of a log, not through the store."""
    given = {"tenant": store.tenant or "", "id": conversation}
    asked = """FROM ledger_conversations AS head JOIN ledger_tenants AS t ON t.key = head.tenant
        LEFT JOIN ledger_lines AS line ON line.conversation = head.key
        WHERE t.name = :tenant AND head.id = :id ORDER BY line.seq"""
    if store._tenant(False) is None:
        return b""
    with store._database.engine.connect() as connection:
        found = connection.execute(text(f"SELECT line.data, head.torn {asked}"), given).all()
    torn = bytes(found[0][1] or b"") if found else b""
    return b"".join(bytes(row[0] or b"") for row in found) + torn


def write_rows(store: SQLStore, conversation: str, data: bytes) -> None:
    """Put bytes in the place of a log's, not through the store."""
    tenant = store._need_tenant()
    cut = pieces.cut(conversation, data)
    with store._database.engine.begin() as connection:

        def run(statement: str, **given: Any) -> Any:
            return connection.execute(text(statement), {"tenant": tenant, **given})

        find = "SELECT key FROM ledger_conversations WHERE tenant = :tenant AND id = :id"
        key = run(find, id=conversation).scalar()
        for table in ("lines", "aside") if key else ():
            run(f"DELETE FROM ledger_{table} WHERE conversation = :key", key=key)
        run("DELETE FROM ledger_conversations WHERE tenant = :tenant AND id = :id", id=conversation)
        values = cut.head._asdict() | {"id": conversation, "ready": int(cut.head.ready)}
        values |= {"newer": int(cut.head.newer)}
        run(
            """INSERT INTO ledger_conversations
            (tenant, id, count, size, chain, ready, newer, first_at, first_salt, erased, torn) VALUES
            (:tenant, :id, :records, :size, :chain, :ready, :newer, :first_at, :first_salt, :erased, :torn)""",
            **values,
        )
        key = run(find, id=conversation).scalar()
        for seq, row in cut.rows.items():
            run(
                """INSERT INTO ledger_lines (conversation, seq, tenant, era, place, data)
                VALUES (:key, :seq, :tenant, 1, 1, :data)""",
                key=key,
                seq=seq,
                data=row,
            )


class _SQLSuite(StoreSuite):
    lacks: ClassVar = {}
    effort: ClassVar = 0.5  # There are two databases, and each commit waits for a disk or a server.
    open_store = staticmethod(open_sql)

    def read_bytes(self, store: SQLStore, conversation: str) -> bytes:
        return read_rows(store, conversation)

    def write_bytes(self, store: SQLStore, conversation: str, data: bytes) -> None:
        write_rows(store, conversation, data)


class PostgresSuite(_SQLSuite):
    """PostgreSQL lacks nothing."""

    def make_place(self, folder: Path) -> SQLPlace:
        return postgres_place()


class SQLiteSuite(_SQLSuite):
    """A file of SQLite lacks nothing."""

    def make_place(self, folder: Path) -> SQLPlace:
        return sqlite_place(folder)
