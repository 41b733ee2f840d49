"""Databases as formats read them: what tables there are, and rows as JSON. Pure.

Only tables are read, never views: what a view does is for its author to say.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ledger.formats.base import File, Row, Schema, Skipped
from ledger.records import times

_COLUMNS = """
    select sqlite_master.name as "table", columns.name as "column"
    from sqlite_master, pragma_table_info(sqlite_master.name) as columns
    where sqlite_master.type = 'table'
"""


def schema(file: File) -> Schema:
    """Return the tables of a database. Raises: Unreadable."""
    found: dict[str, tuple[str, ...]] = {}
    for row in file.rows(_COLUMNS):
        found[row["table"]] = (*found.get(row["table"], ()), row["column"])
    return Schema(found)


def with_columns(sample: object, *columns: str) -> str | None:
    """Return the first table that has all these columns; None when no table of a database has."""
    if not isinstance(sample, Schema):
        return None
    wanted = set(columns)
    return next((name for name in sorted(sample) if wanted <= set(sample[name])), None)


def quoted(name: str) -> str:
    """Return the name of a table as it stands in a query."""
    return '"' + name.replace('"', '""') + '"'


def texts(file: File, table: str, column: str) -> list[str]:
    """Return the different texts in a column, in order. What is no text names nothing. Raises: Unreadable."""
    query = (
        f"select distinct {column} as it from {table} where typeof({column}) = 'text' order by 1"
    )
    return [row["it"] for row in file.rows(query)]


def nameless(file: File, table: str, column: str) -> Iterator[Skipped]:
    """Yield how many rows have no text in a column, if there are any. Raises: Unreadable."""
    query = f"select count(*) as n from {table} where typeof({column}) != 'text'"
    for row in file.rows(query):
        if row["n"]:
            yield Skipped(f"{file.name}: {row['n']:,} rows", f"their {column} names nothing")


def value(text: Any) -> Any:
    """Return the JSON that a column holds; None when it is none."""
    if not isinstance(text, str | bytes):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def utc(text: Any) -> datetime | None:
    """Return the time that a column of UTC times holds; it may not say that it is UTC."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if moment is not None and moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return times.from_text(text) if moment is not None else None


def record(rows: Iterable[tuple[str, Row]]) -> bytes:
    """Return rows, each with the name of its table, as JSON: one a line; bytes are base64."""
    return b"\n".join(
        json.dumps({"table": table, **row}, default=_bytes).encode() for table, row in rows
    )


def _bytes(data: Any) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode()}
