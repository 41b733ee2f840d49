"""The index in a store's database: brought up cheaply, purged with the logs, made anew when it is damaged."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy
from hypothesis import example, given
from hypothesis import strategies as st

import ledger
from ledger.catalog import postgres as index_in_postgres
from ledger.catalog import refreshing, sqlite, texts
from tests import postgres
from tests.catalog.test_catalog import at, ids, in_memory, put, said
from tests.catalog.test_folder_index import Watched, running
from tests.catalog.test_texts import finds
from tests.testing.sql_places import SQLPlace, open_sql, place_of


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Return an empty place on each database."""
    return place_of(request.param, tmp_path)


@pytest.fixture
def store(place):
    """A store with two conversations."""
    with open_sql(place) as found:
        put(found, "a", *said("t", "the secret walrus"), *said("u", "parcel"))
        put(found, "b", *said("v", "parcel"))
        yield found


@pytest.fixture
def alone():
    """A store in a PostgreSQL schema of its own, with one conversation."""
    with open_sql(SQLPlace(postgres.fresh_url())) as found:
        put(found, "a", *said("t", "the secret walrus"))
        yield found


def run(store, statement):
    """Do something with the tables, past the store; `@` is what the names of the index's begin with."""
    prefix = "ledger_catalog_"
    if not store._database.is_postgres:
        prefix += f"{store._tenant(False)}_"
    with store._database.engine.begin() as connection:
        found = connection.exec_driver_sql(statement.replace("@", prefix))
        return found.all() if found.returns_rows else []


def everything(store):
    """All that the index keeps, or all bytes of the file."""
    if store._database.is_postgres:
        tenant = store._tenant(False)
        tables = ("conversations", "turns", "texts")
        return repr([run(store, f"SELECT * FROM @{t} WHERE tenant = {tenant}") for t in tables])
    path = store._database.engine.url.database
    files = [file for file in (Path(path), Path(f"{path}-wal")) if file.exists()]
    return b"".join(file.read_bytes() for file in files).decode(errors="replace")


@pytest.fixture
def fresh(place):
    """A function that returns the catalog as another process would have it."""
    with ExitStack() as stack:
        yield lambda: ledger.catalog.of(stack.enter_context(open_sql(place)))


def refreshed(catalog):
    """Bring the index up. Returns: what was read, and how many records."""
    watched = catalog._logs = Watched(catalog._logs)
    catalog.refresh()
    return watched.read


# -- cheap -----------------------------------------------------------------------------------------------


def test_only_what_was_added_is_read(store, fresh):
    """What did not change is read by nobody; of what did, one process reads what is new, for all."""
    assert refreshed(fresh()) == [("a", 4), ("b", 2)]
    assert refreshed(fresh()) == []
    put(store, "b", *said("w", "more"))
    assert refreshed(fresh()) == [("b", 2)]
    store.delete("b")
    put(store, "b", *said("n1", "new"))
    assert refreshed(fresh()) == [("b", 2)]
    assert fresh().search("more") == []


def test_nothing_is_made_where_there_is_nothing(fresh):
    """Asking of an empty place answers nothing, and makes nothing."""
    catalog = fresh()
    assert catalog.conversations() == catalog.search("x") == catalog.usage() == []
    assert catalog.store._tenant(False) is None


def test_tenants_are_apart(place):
    """One tenant finds nothing of another's, and forgets nothing of it."""
    names = [f"{name}{os.urandom(4).hex()}" for name in "ab"]
    for name in names:
        with ledger.SQLStore(place.url, tenant=name) as one:
            put(one, "c", *said("t", f"parcel {name}"))
            assert len(ledger.catalog.of(one).search("parcel")) == 1
            assert [each.turns for each in ledger.catalog.of(one).usage()] == [1]
    with ledger.SQLStore(place.url, tenant=names[0]) as one:
        one.delete("c")
    with ledger.SQLStore(place.url, tenant=names[1]) as other:
        assert len(ledger.catalog.of(other).search(names[1])) == 1
        assert ledger.catalog.of(other).search(names[0]) == []


# -- forgetting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["forget", "delete"])
def test_what_is_forgotten_leaves_the_index_at_once(store, how):
    """No text of a forgotten turn, or deleted conversation, is in the index after that, before anybody asks."""
    catalog = ledger.catalog.of(store)
    assert len(catalog.search("walrus")) == 1
    assert "walrus" in everything(store)
    if how == "forget":
        ledger.open("a", store=store).forget(1)
    else:
        store.delete("a")
    assert "walrus" not in everything(store)
    assert catalog.search("walrus") == []
    found = [(hit.conversation, hit.ordinal) for hit in catalog.search("parcel")]
    assert sorted(found) == ([("a", 2)] if how == "forget" else []) + [("b", 1)]
    assert {row.preview for row in catalog.conversations()} == {"parcel"}


def test_what_is_erased_while_another_reads_it_does_not_come_back(place, store, fresh, monkeypatch):
    """Who forgets a turn waits for who has read it and writes it to the index: it is gone from there too."""
    catalog, take, threads = fresh(), refreshing._take, []

    def forget():
        with open_sql(place) as other:
            ledger.open("a", store=other).forget(1)

    def slow(index, logs, conversation):
        done = take(index, logs, conversation)
        if conversation == "a" and not threads:
            threads.append(threading.Thread(target=forget))
            threads[0].start()
            threads[0].join(0.2)
            assert threads[0].is_alive()
        return done

    monkeypatch.setattr(refreshing, "_take", slow)
    catalog.refresh()
    threads[0].join()
    assert "walrus" not in everything(store)
    assert catalog.search("walrus") == []


# -- damage ----------------------------------------------------------------------------------------------

HARMS = {
    "a table is gone": ["DROP TABLE @turns"],
    "nonsense in rows": ["UPDATE @turns SET data = '{'", "UPDATE @conversations SET data = '[1'"],
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_damaged_index_is_made_anew(tmp_path, harm):
    """Whatever became of the tables, the answers are right, nothing is raised, and there is an index again."""
    for place in (place_of("sqlite", tmp_path), SQLPlace(postgres.fresh_url())):
        with open_sql(place) as store:
            put(store, "a", *said("t", "parcel"))
            catalog = ledger.catalog.of(store)
            catalog.refresh()
            for statement in harm:
                run(store, statement)
            assert sum(each.turns for each in catalog.usage()) == 1
            assert ids(catalog.conversations()) == ["a"]
            assert [hit.turn for hit in catalog.search("parcel")] == ["t"]
            assert in_memory(store) is None


def test_an_index_of_another_version_is_made_anew(tmp_path, monkeypatch):
    """Tables that another version made are dropped, whatever they are."""
    for place in (place_of("sqlite", tmp_path), SQLPlace(postgres.fresh_url())):
        with open_sql(place) as store:
            put(store, "a", *said("t", "parcel"))
            ledger.catalog.of(store).refresh()
            for module in (sqlite, index_in_postgres):
                monkeypatch.setattr(module, "SCHEMA", 999)
            assert len(ledger.catalog.of(store).search("parcel")) == 1
            assert in_memory(store) is None
            monkeypatch.undo()
            assert len(ledger.catalog.of(store).search("parcel")) == 1
            assert in_memory(store) is None


def test_where_nothing_may_be_made_memory_serves(alone):
    """Who may read the logs only is answered all the same."""
    url = alone._database.engine.url
    options = f"{url.query['options']} -cdefault_transaction_read_only=on"
    with ledger.SQLStore(url.update_query_dict({"options": options})) as reader:
        catalog = ledger.catalog.of(reader)
        assert len(catalog.search("walrus")) == 1
        put(alone, "b", *said("t", "walrus"))
        assert len(catalog.search("walrus")) == 2
        assert in_memory(reader) is not None
    assert "ledger_catalog" not in sqlalchemy.inspect(alone._database.engine).get_table_names()


def test_what_cannot_be_read_is_named_and_hides_no_other(place, store):
    """A log that a strict store refuses is among `failed`, nothing of it is found, and the rest is."""
    line = store.raw("a").replace(b"secret", b"altered")
    store.delete("a")
    store.adopt("a", line)
    with ledger.SQLStore(place.url, tenant=place.tenant, strict=True) as strict:
        found = ledger.catalog.of(strict).search("parcel")
        assert [hit.conversation for hit in found] == ["b"]
        assert found.failed["a"].code == "store-corrupt"
        assert in_memory(strict) is None


def test_a_search_on_an_event_loop(store):
    """The other face asks the same index."""

    async def search():
        return await ledger.aio.catalog.of(store).search("parcel")

    assert len(asyncio.run(search())) == 2
    assert in_memory(store) is None


def test_rebuilding_gives_the_same(store):
    """Made anew, the index says what it said."""
    catalog = ledger.catalog.of(store)
    before = catalog.conversations(), catalog.search("parcel"), catalog.usage()
    catalog.rebuild()
    assert (catalog.conversations(), catalog.search("parcel"), catalog.usage()) == before
    assert in_memory(store) is None


def test_one_connection_serves(place, store):
    """A question needs one connection at a time, also while it reads logs: none waits for another's second one."""
    url = store._database.engine.url
    engine = sqlalchemy.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=1)
    with ledger.SQLStore(engine, tenant=place.tenant) as one:
        assert len(ledger.catalog.of(one).search("parcel")) == 2
        assert in_memory(one) is None
    engine.dispose()


# -- several processes -----------------------------------------------------------------------------------

_ASK = """
import sys, ledger
catalog = ledger.catalog.of(ledger.SQLStore(sys.argv[1], tenant=sys.argv[2] or None))
print("ready", flush=True)
seen = 0
while seen < int(sys.argv[3]):
    turns = sum(each.turns for each in catalog.conversations())
    assert turns >= seen, (turns, seen)
    assert len(catalog.search("parcel", limit=1000)) >= turns
    assert sum(each.turns for each in catalog.usage()) >= turns
    seen = turns
"""
_REBUILD = """
import sys, ledger
catalog = ledger.catalog.of(ledger.SQLStore(sys.argv[1], tenant=sys.argv[2] or None))
print("ready", flush=True)
while True:
    catalog.rebuild()
"""


def test_processes_ask_while_others_write_and_rebuild(place):
    """A process that asks, one that makes the index anew again and again, one that writes: all see all."""
    with open_sql(place) as store:
        put(store, "c0", *said("t", "parcel"))
        given = (place.url, place.tenant or "")
        with running(_ASK, *given, "15") as asking, running(_REBUILD, *given):
            for number in range(1, 15):
                put(store, f"c{number % 5}", *said(f"t{number}", "parcel", at(number)))
            assert asking.wait(60) == 0
        assert len(ledger.catalog.of(store).search("parcel", limit=100)) == 15


# -- words -----------------------------------------------------------------------------------------------


def test_long_texts_are_searched_to_their_end(store):
    """Words are found, and stand side by side, wherever they are: beyond the places and bytes that a vector has."""
    many = " ".join(f"word{n:06}" for n in range(60_000))
    put(store, "l", *said("x", f"{'的 ' * 20_000} 包裹 {many} zebra crossing zebr\0a" + "z" * 5000))
    catalog = ledger.catalog.of(store)
    for query in (
        "包裹",
        "word059999",
        '"zebra crossing"',
        "crossin*",
        '"word000001 word000002" zebra',
    ):
        assert [hit.conversation for hit in catalog.search(query)] == ["l"], query
        assert catalog.search(query)[0].matches
    for query in ("裹包", '"crossing zebra"', "word12", "word059999 walrus"):
        assert catalog.search(query) == [], query


def test_names_of_any_length_are_kept(store):
    """Ids of turns, models and labels may be longer than what a database indexes, and hold NUL."""
    long = "\0n" * 40_000
    put(store, "n", *said(long, "odd parcel", model=long))
    put(store, "n", *said("w", "after", parent=long))
    catalog = ledger.catalog.of(store)
    assert [hit.turn for hit in catalog.search("odd")] == [long]
    assert ids(catalog.conversations(models=[long])) == ["n"]
    assert in_memory(store) is None


def stands(query, text):
    """Say whether a text is found by a query, as the index in PostgreSQL looks for it."""
    row = index_in_postgres._words(index_in_postgres.Said(texts.spelled(text)), 1)
    phrases = texts.phrases(query)
    return bool(phrases) and all(
        f" {' '.join(words)}{'' if begins else ' '}" in row["words"] for words, begins in phrases
    )


_letters = st.text('aAbÉe\u0301\u0300 ßçσςΣ包裹手हिन्दी소포ñ1٣ήΉёй_-.*"\x1f', max_size=12)


@given(_letters, _letters)
@example("nai\u0308ve", "NAÏVE")
@example("İstanbul", "istanbul")
@example('"a b"', "a \u0301 b")
@example("αθηνα", "Αθήνα")
def test_words_are_cut_as_sqlite_cuts_them(query, text):
    """The index in PostgreSQL finds what the one in SQLite finds."""
    assert stands(query, text) == finds(query, text)
