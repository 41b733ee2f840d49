"""Tests of `ledger.sources.databases`: other programs' databases, read and never touched."""

from __future__ import annotations

import sqlite3

import pytest

from ledger.formats.base import Schema, Unreadable
from ledger.sources.databases import Database


@pytest.fixture
def path(tmp_path):
    """A database of one table with a text, a blob and nothing."""
    path = tmp_path / "chat s#1?.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a TEXT, b BLOB)")
        connection.execute("INSERT INTO t VALUES ('x', x'00ff'), (CAST(x'ff61' AS TEXT), NULL)")
    connection.close()
    return path


def test_tables_and_rows_are_read(path):
    """A database gives its tables with their columns, and rows by name; text that is not UTF-8 too."""
    with Database(path) as database:
        assert Schema({"t": ("a", "b")}) == database.schema()
        assert [{"a": "x", "b": b"\0\xff"}] == list(
            database.rows("SELECT a, b FROM t WHERE a = ?", "x")
        )
        assert ["x", "\ufffda"] == [row["a"] for row in database.rows("SELECT a FROM t")]


def test_nothing_is_made_beside_it_and_nothing_is_written(path):
    """Reading leaves the folder as it was, also one that may not be written; a write is refused."""
    before = path.read_bytes()
    with Database(path) as database, pytest.raises(Unreadable):
        list(database.rows("DELETE FROM t"))

    assert [path] == list(path.parent.iterdir())
    assert before == path.read_bytes()


def test_the_last_writes_of_a_running_program_are_read_from_a_copy(path):
    """What stands in the write-ahead log only is read, and the log is as it was."""
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO t VALUES ('late', NULL)")
    writer.commit()
    log = path.with_name(path.name + "-wal")
    before = log.read_bytes(), path.read_bytes()

    with Database(path) as database:
        found = [row["a"] for row in database.rows("SELECT a FROM t")]

    assert "late" == found[-1]
    assert before == (log.read_bytes(), path.read_bytes())
    writer.close()


def test_damage_is_told(path, tmp_path):
    """A file that only begins like a database, and a query that does not fit, are unreadable."""
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(Unreadable), Database(bad) as database:
        database.schema()
    with pytest.raises(Unreadable), Database(path) as database:
        list(database.rows("SELECT nothing FROM t"))
