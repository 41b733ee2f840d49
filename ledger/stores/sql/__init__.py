"""A store in a database: PostgreSQL, or a file of SQLite. Needs SQLAlchemy and psycopg, the extra `sql`."""

from __future__ import annotations

try:
    from ledger.stores.sql.store import SQLStore
except ModuleNotFoundError as missing:
    if missing.name != "sqlalchemy":
        raise
    told = "a store in a database needs SQLAlchemy: python -m pip install 'turn-ledger[sql]'"
    raise ModuleNotFoundError(told, name=missing.name) from None

__all__ = ["SQLStore"]
