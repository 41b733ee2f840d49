"""Databases of every released version are brought to the present one, and are then what a new one is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from ledger.stores.sql import SQLStore, tables
from ledger.testing.examples import notes, texts
from tests import postgres
from tests.records.event_examples import TREE, turn
from tests.stores.sql.make_schema import TENANT, TURN

FILES = sorted(Path(__file__).parent.glob("schema-*.sql"))


def place_of(dialect: str, folder: Path) -> str:
    """Return the URL of an empty database."""
    return f"sqlite:///{folder}/ledger.db" if dialect == "sqlite" else postgres.fresh_url()


@contextmanager
def restored(file: Path, folder: Path) -> Iterator[SQLStore]:
    """Return a store in a database that is made by the statements of a file."""
    url = place_of(file.stem.rpartition("-")[2], folder)
    engine = sqlalchemy.create_engine(postgres.psycopg_url(url))
    with engine.begin() as connection:
        for statement in file.read_text(encoding="utf-8").splitlines():
            connection.exec_driver_sql(statement)
    engine.dispose()
    with SQLStore(url, tenant=TENANT) as store:
        yield store


def shape(store: SQLStore) -> dict[str, Any]:
    """Return what tables, columns and indexes there are."""
    found = sqlalchemy.inspect(store._database.engine)
    return {
        name: (
            [(column["name"], str(column["type"])) for column in found.get_columns(name)],
            sorted(str(index["column_names"]) for index in found.get_indexes(name)),
            found.get_pk_constraint(name)["constrained_columns"],
        )
        for name in sorted(found.get_table_names())
    }


def test_every_version_is_here():
    """There is a database of each released version on both databases."""
    expected = {
        (version, dialect)
        for version in range(1, tables.VERSION + 1)
        for dialect in ("sqlite", "postgres")
    }
    found = (re.fullmatch(r"schema-([0-9]+)-(\w+)", file.stem) for file in FILES)
    assert {(int(one[1]), one[2]) for one in found} == expected


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_old_database_goes_on(file, tmp_path):
    """All that an older version kept is read, verifies and is added to."""
    with restored(file, tmp_path) as store:
        assert store.conversations() == ["c", "d", "e"]
        records = store.read("c")
        assert texts(records[:2]) == ["a", "\u20ac\x00"]
        assert records[2]["inputs"]["message"] == "kept"
        assert [record["kind"] for record in store.read("d")] == [
            "turn",
            "erased",
            "ended",
            "erased",
        ]
        assert [store.damage(name) for name in "cd"] == [[], []]
        assert store.verify("e").set_aside == ["torn-1"]
        name = records[2]["inputs"]["shown"]["$attachment"]["sha256"]
        assert store.blobs.get(name) == b"an attachment"
        assert store.events.read(TREE) == turn()
        count = len(records)
        assert store.append("c", notes("new"), expect=count) == count + 1
        assert store.append("f", notes("new"), expect=0) == 1
        fed, after = [], None
        while step := store.feed(after, limit=4, wait=5 if len(fed) < 17 else 0):
            fed += step
            after = step[-1].position
        assert [one.record for one in fed if one.conversation == "c"] == store.read("c")
        assert fed[-1].conversation == "f"
        assert store.erase("e", TURN).attachments == []
        assert store.erase("c", TURN).attachments == [name]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_old_database_becomes_what_a_new_one_is(file, tmp_path):
    """After its migrations, a database has the tables, columns and indexes of a new one."""
    (tmp_path / "new").mkdir()
    dialect = file.stem.rpartition("-")[2]
    with restored(file, tmp_path) as old, SQLStore(place_of(dialect, tmp_path / "new")) as new:
        old.read("c")
        new.append("c", notes("a"))
        assert shape(old) == shape(new)
