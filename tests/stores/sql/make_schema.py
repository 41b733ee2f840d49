"""Writes `schema-<version>-<dialect>.sql`: the tables of the present version with a store's rows in them.

    python -m tests.stores.sql.make_schema

Run once, when a version of the tables is released; what it wrote is never written again.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import sqlalchemy

from ledger.stores.sql import SQLStore, tables
from ledger.testing.erase_checks import conversation_of
from ledger.testing.examples import notes
from tests import postgres
from tests.records.event_examples import turn

HERE = Path(__file__).parent
TURN = "01890000-0000-7000-8000-000000000001"
TENANT = "alex"


def fill(store: SQLStore) -> None:
    """Put something into every table."""
    name, _ = store.blobs.put(b"an attachment")
    store.append("c", notes("a", "\u20ac\x00"))
    store.append("c", conversation_of(TURN, "kept", name))
    store.append("d", conversation_of(TURN, "erased"))
    store.erase("d", TURN)
    store.adopt("e", store.raw("c") + b'{"torn')
    store.append("e", notes("after"))
    store.events.extend(turn())
    store.hold("host:1:random")


def literal(value: Any, *, dialect: str) -> str:
    """Return a value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes | memoryview):
        digits = bytes(value).hex()
        return f"X'{digits}'" if dialect == "sqlite" else f"'\\x{digits}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def dump(store: SQLStore, dialect: str) -> list[str]:
    """Return the statements that make the tables and their rows."""
    spelled = tables.SQLITE if dialect == "sqlite" else tables.POSTGRES
    made = tables.migrations(0, spelled)
    statements = [re.sub(r"\s+", " ", one) for one in made if not one.startswith("INSERT")]
    with store._database.engine.connect() as connection:
        for one in statements:
            name = re.match(r"CREATE TABLE (\w+)", one)
            if name is None:
                continue
            table = sqlalchemy.table(name[1], sqlalchemy.literal_column("*"))
            rows = connection.execute(sqlalchemy.select(table)).mappings().all()
            for row in rows:
                values = ", ".join(literal(value, dialect=dialect) for value in row.values())
                statements.append(
                    f"INSERT INTO {name[1]} ({', '.join(row.keys())}) VALUES ({values})"
                )
            if dialect == "postgres" and rows and "IDENTITY" in one and "key" in rows[0]:
                sequence = f"pg_get_serial_sequence('{name[1]}', 'key')"
                statements.append(f"SELECT setval({sequence}, {max(row['key'] for row in rows)})")
    return statements


def main() -> None:
    """Write both."""
    with tempfile.TemporaryDirectory() as folder:
        urls = {"sqlite": f"sqlite:///{folder}/ledger.db", "postgres": postgres.fresh_url()}
        for dialect, url in urls.items():
            with SQLStore(url, tenant=TENANT) as store:
                fill(store)
                text = "".join(f"{one};\n" for one in dump(store, dialect))
            (HERE / f"schema-{tables.VERSION}-{dialect}.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
