"""The SQL store passes the suite that is shipped for everybody's, on both databases."""

from __future__ import annotations

from tests.testing.sql_places import PostgresSuite, SQLiteSuite


class TestPostgres(PostgresSuite):
    """PostgreSQL lacks nothing."""


class TestSQLite(SQLiteSuite):
    """A file of SQLite lacks nothing."""
