"""What a store in a database does beside what every store does, on both databases."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import pytest
import sqlalchemy

import ledger
from ledger.errors import (
    AttachmentMissing,
    LedgerError,
    StoreConflict,
    StoreCorrupt,
    StoreGone,
    StoreIO,
    StoreReadOnly,
    StoreVersion,
)
from ledger.records import kinds, times
from ledger.stores.log_search import MOST_LINES
from ledger.stores.memory import MemoryStore
from ledger.stores.resolve import store_for
from ledger.stores.sql import SQLStore
from ledger.testing import jobs
from ledger.testing.bytes_checks import damaged
from ledger.testing.children import together
from ledger.testing.erase_checks import conversation_of
from ledger.testing.examples import notes, texts
from tests import postgres
from tests.records.event_examples import TREE, turn
from tests.stores.support import ROOT
from tests.testing.sql_places import (
    SQLPlace,
    open_sql,
    place_of,
    postgres_place,
    read_rows,
    sqlite_place,
    write_rows,
)

AT = "2026-01-01T00:00:00.000000Z"
TURN = "01890000-0000-7000-8000-000000000001"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Return an empty place on each database."""
    return place_of(request.param, tmp_path)


@pytest.fixture
def store(place):
    """Return a store there."""
    with open_sql(place) as store:
        yield store


def run(store: SQLStore, statement: str, **given):
    """Do something with the tables, past the store."""
    with store._database.engine.begin() as connection:
        found = connection.execute(sqlalchemy.text(statement), given)
        return found.all() if found.returns_rows else []


# -- tenants


def test_tenants_are_apart(place):
    """Nothing of one tenant is seen by another: no record, attachment, event, or place in the feed."""
    url = place.url
    names = [f"{name}{os.urandom(6).hex()}" for name in "ab"]
    with SQLStore(url, tenant=names[0]) as a, SQLStore(url, tenant=names[1]) as b:
        name, _ = a.blobs.put(b"of a")
        a.append("c", notes("a"))
        a.events.extend(turn())
        b.append("c", notes("b"), expect=0)
        b.append("d", notes("b"))

        assert texts(a.read("c")) == ["a"]
        assert (a.conversations(), b.conversations()) == (["c"], ["c", "d"])
        assert [fed.record["data"] for fed in a.feed()] == ["a"]
        assert (a.blobs.has(name), b.blobs.has(name)) == (True, False)
        with pytest.raises(AttachmentMissing):
            b.blobs.get(name)
        assert b.events.read(TREE) == []
        assert b.delete("c")
        assert b.sweep(older_than_s=0) == []
        assert texts(a.read("c")) == ["a"]
        assert a.events.read(TREE) == turn()


def test_a_tenant_stays_itself_in_a_restored_database(tmp_path):
    """Where a database was restored under open stores, none of them becomes another tenant's."""
    for url in (f"sqlite:///{tmp_path}/ledger.db", postgres.fresh_url()):
        with SQLStore(url, tenant="a") as a, SQLStore(url, tenant="b") as b:
            a.append("c", notes("of a"))
            b.append("c", notes("of b"))
            for table in ("lines", "conversations", "tenants"):
                run(a, f"DELETE FROM ledger_{table}")
            with SQLStore(url, tenant="z") as z:
                z.append("c", notes("of z"))
            assert (a.read("c"), b.read("c"), b.conversations()) == ([], [], [])
            b.append("c", notes("again"))
            assert texts(z.read("c")) == ["of z"]
        with SQLStore(url, tenant="b") as later:
            assert texts(later.read("c")) == ["again"]


def test_a_history_that_is_no_more_is_told(store, place):
    """Where an older log was restored and grew past it, a place in the one that was is gone, and no end."""
    early = store.append("c", notes("a"))
    older = store.raw("c")
    seen = store.append("c", notes("b", "c"))
    mark = store.since("c").mark
    look = store.looks()["c"]
    write_rows(store, "c", older)
    with open_sql(place) as other:
        other.append("c", notes("x", "y"))
        assert store.wait("c", seen, 0)
        with pytest.raises(StoreConflict):
            store.append("c", notes("d"), expect=seen)
        other.append("c", notes("z"))
    with pytest.raises(StoreGone):
        store.read("c", seen)
    with pytest.raises(StoreConflict):
        store.append("c", notes("d"), expect=seen)

    assert texts(store.read("c", early)) == ["x", "y", "z"]
    assert texts(store.read("c", int(seen))) == ["z"]
    assert store.looks()["c"] != look
    assert store.since("c", mark).whole


# -- the feed


def test_feed_gives_every_record_once_in_order(store):
    """From the beginning in steps of any size, the feed gives each record once, as reading does."""
    for n in range(5):
        store.append(f"c{n % 2}", notes(*(f"{n}-{i}" for i in range(3))))

    for limit in (1, 2, 4, 100):
        found, after = [], None
        while step := store.feed(after, limit=limit):
            assert len(step) <= limit
            found += step
            after = step[-1].position
        assert [fed.record["data"] for fed in found] == [
            f"{n}-{i}" for n in range(5) for i in range(3)
        ]
        for name in ("c0", "c1"):
            assert [f.record for f in found if f.conversation == name] == store.read(name)


def test_feed_waits_for_the_next_record(store):
    """Where there is no record yet, the feed waits as long as it is told to."""
    assert store.feed(wait=0.01) == []
    store.append("c", notes("a"))
    after = store.feed()[-1].position
    assert store.feed(after, wait=0.01) == []
    store.append("c", notes("b"))
    assert texts([fed.record for fed in store.feed(after, wait=20)]) == ["b"]


def test_feed_of_a_file_waits_for_the_lower_place(tmp_path):
    """Recipe T32 on SQLite: one writes at a time, so who follows gets what was begun first, first."""
    place = SQLPlace(f"sqlite:///{tmp_path}/ledger.db")
    held, go = threading.Event(), threading.Event()

    def hold(connection, cursor, statement, *_):
        if statement == "COMMIT":
            held.set()
            go.wait(20)

    with open_sql(place) as first, open_sql(SQLPlace(f"{place.url}?timeout=20")) as second:
        first.append("c", notes("before"))
        after = first.feed()[-1].position
        sqlalchemy.event.listen(first._database.engine, "before_cursor_execute", hold)
        lower = threading.Thread(target=first.append, args=("c", notes("lower")))
        lower.start()
        assert held.wait(20)
        higher = threading.Thread(target=second.append, args=("d", notes("higher")))
        higher.start()
        assert second.feed(after) == []
        go.set()
        lower.join()
        higher.join()
        assert texts([fed.record for fed in second.feed(after)]) == ["lower", "higher"]


def test_feed_gives_tombstones_and_damage_as_reading_does(store):
    """Erased, void and damaged records come in their places; those of a deleted conversation do not."""
    store.append("c", conversation_of(TURN, "gone"))
    store.append("d", notes("d"))
    store.append("e", notes("e"))
    store.erase("c", TURN)
    store.delete("d")

    found = store.feed()

    assert [f.record for f in found if f.conversation == "c"] == store.read("c")
    assert "gone" not in repr(found)
    assert [f.conversation for f in found] == ["c"] * 4 + ["e"]


@pytest.mark.parametrize("after", ["", "1", "1-2-3", "1-2-3-x", 0, "٣-1-1-1"])
def test_feed_refuses_what_is_no_position(store, after):
    """A position that no feed gave is refused."""
    with pytest.raises(ValueError, match="position of a feed"):
        store.feed(after)
    with pytest.raises(ValueError, match="limit"):
        store.feed(limit=0)


# -- bytes


@pytest.mark.parametrize("name", [*damaged(b"a\nb\nc\n"), "torn", "no line feed"])
def test_any_log_is_kept_and_gone_on_with_as_in_memory(store, name):
    """Whatever was copied in is kept byte for byte, and appending after it leaves what memory has."""
    source = MemoryStore()
    source.append("c", notes("a", "b"))
    source.append("c", notes("c"))
    whole = source.raw("c")
    odd = {"torn": whole + b'{"functai_conv', "no line feed": whole[:-1]}
    data = {**damaged(whole), **odd}[name]
    other = MemoryStore()
    other.adopt("c", data)

    assert store.adopt("c", data) == len(other.read("c"))
    assert store.raw("c") == read_rows(store, "c") == data
    report, expected = store.verify("c"), other.verify("c")
    assert report == expected
    count = store.append("c", notes("x"))
    other.append("c", notes("x"))
    assert store.read("c") == other.read("c")
    assert len(store.raw("c")) == len(other.raw("c"))
    assert store.verify("c").counts == other.verify("c").counts
    assert store.append("c", notes("y"), expect=count) == count + 1


def test_a_first_line_may_say_anything_of_its_time(store):
    """A log of other writers whose first line has a time with a NUL is kept, known again, and gone on with."""
    data = b'{"functai_conversation":1,"kind":"entry","at":"\\u0000 x","plugin":"p","entry":"e"}\n'
    position = store.adopt("c", data)
    assert store.grow("d", data) == 1
    assert store.read("c", position) == []
    assert store.append("c", notes("a"), expect=position) == 2
    assert store.raw("c").startswith(data)


def test_what_stood_torn_is_set_aside(store):
    """The next append keeps a torn tail beside the log, and says so; it goes with the turn that it may be of."""
    store.append("c", notes("a"))
    piece = f'{{"functai_conversation":1,"turn":"{TURN}"'.encode()
    write_rows(store, "c", read_rows(store, "c") + piece)
    assert store.verify("c").torn_bytes == len(piece)

    store.append("c", notes("b"))

    assert texts(store.read("c")) == ["a", "b"]
    assert (store.verify("c").torn_bytes, store.verify("c").set_aside) == (0, ["torn-1"])
    store.append("c", conversation_of(TURN, "x"))
    store.erase("c", TURN)
    assert store.verify("c").set_aside == []


def test_rows_altered_by_hand_are_told(store):
    """A row that is gone or doubled keeps its place as unreadable, and is damage; the rest reads."""
    for text in "abcd":
        store.append("c", notes(text))
    run(store, "DELETE FROM ledger_lines WHERE seq = 2")

    assert texts(store.read("c")) == ["a", None, None, "d"]
    assert {f.seq for f in store.damage("c")} == {2, 3}
    assert store.append("c", notes("e"), expect=4) == 5
    with open_sql(SQLPlace(str(store._database.engine.url), store.tenant)) as strict:
        strict._strict = True
        with pytest.raises(StoreCorrupt):
            strict.read("c")


def test_a_log_grows_to_its_copy(store):
    """What a copy has beyond what is held is added; what is no beginning of it is refused."""
    source = MemoryStore()
    source.append("c", notes("a", "b"))
    assert store.grow("c", source.raw("c")) == 2
    source.append("c", notes("c"))
    positions = [fed.position for fed in store.feed()]
    assert store.grow("c", source.raw("c")) == 3
    assert store.grow("c", source.raw("c")) == 3
    assert store.raw("c") == source.raw("c")
    assert [fed.position for fed in store.feed()][:2] == positions
    store.append("c", notes("d"))
    with pytest.raises(StoreConflict):
        store.grow("c", source.raw("c"))


def test_what_changed_is_told_by_looks(store):
    """A log looks otherwise after an append, an erasure and a deletion; beyond a mark only what is new comes."""
    store.append("c", conversation_of(TURN, "x"))
    looks, erasures = store.looks(), store.erasures("c")
    first = store.since("c")
    assert (len(first.records), first.whole, looks["c"]) == (4, True, first.look)
    assert store.since("c", first.mark).records == []
    store.append("c", notes("a"))
    assert store.looks() != looks
    assert store.erasures("c") == erasures
    second = store.since("c", first.mark)
    assert (len(second.records), second.whole) == (1, False)
    store.erase("c", TURN)
    assert store.erasures("c") != erasures
    third = store.since("c", second.mark)
    assert (len(third.records), third.whole) == (5, True)
    store.delete("c")
    store.append("c", notes("a"))
    assert store.since("c", third.mark).whole


# -- the schema


def test_reading_makes_nothing(tmp_path):
    """Reading, waiting and listing where nothing was written make no table, and no file."""
    for place in (sqlite_place(tmp_path), SQLPlace(postgres.fresh_url())):
        with open_sql(place) as store:
            assert (store.read("c"), store.conversations(), store.feed()) == ([], [], [])
            assert store.wait("c", 0, 0) is False
            assert not store.delete("c")
            assert not store.blobs.has("0" * 64)
            if store._database.is_postgres:
                assert sqlalchemy.inspect(store._database.engine).get_table_names() == []
            else:
                assert os.listdir(tmp_path) == []


def test_tables_that_were_dropped_are_made_anew(tmp_path):
    """Where the tables go under an open store it says so once, and then begins anew, as a new one would."""
    for url in (f"sqlite:///{tmp_path}/ledger.db", postgres.fresh_url()):
        with SQLStore(url) as store:
            for call in (lambda: store.append("c", notes("b")), lambda: store.read("c")):
                position = store.append("c", notes("a"))
                for table in sqlalchemy.inspect(store._database.engine).get_table_names():
                    run(store, f"DROP TABLE {table}")
                with pytest.raises(StoreIO, match="tables are gone"):
                    call()
                with pytest.raises(StoreConflict):
                    store.append("c", notes("b"), expect=position)
                assert store.append("c", notes("c")) == 1
                assert texts(store.read("c")) == ["c"]
                store.delete("c")


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_many_are_the_first(kind, tmp_path):
    """Recipe T2: threads of several processes that are the first users of a database all succeed."""
    for n in range(3):
        url = postgres.fresh_url() if kind == "postgres" else f"sqlite:///{tmp_path}/{n}.db"
        place = SQLPlace(url)
        done = together(4, 60, jobs.add_in_threads, open_sql, place, 4, 1)
        with open_sql(place) as store:
            assert len(texts(store.read("c"))) == 16
        assert sorted(count for told in done for count in told) == list(range(1, 17))


def test_a_newer_schema_is_refused(tmp_path):
    """Tables of a newer version are neither read nor written, and the error says what to do."""
    for place in (sqlite_place(tmp_path), SQLPlace(postgres.fresh_url())):
        with open_sql(place) as store:
            store.append("c", notes("a"))
            run(store, "UPDATE ledger_meta SET version = 999")
        with open_sql(place) as store:
            for call in (lambda: store.read("c"), lambda: store.append("c", notes("b"))):
                with pytest.raises(StoreVersion, match=r"version 999.*upgrade turn-ledger"):
                    call()
            assert run(store, "SELECT count(*) FROM ledger_lines") == [(1,)]


def test_a_file_is_for_its_owner_only(tmp_path):
    """The file of a SQLite database, and its folder, are the owner's."""
    with SQLStore(f"sqlite:///{tmp_path}/new/ledger.db") as store:
        store.append("c", notes("a"))
        modes = [os.stat(tmp_path / "new" / name).st_mode for name in os.listdir(tmp_path / "new")]

    assert {stat.S_IMODE(mode) for mode in modes} == {0o600}
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o700


def test_erased_content_is_in_no_byte_of_the_file(tmp_path):
    """What was erased is in neither the database file nor its write-ahead log."""
    canary = "canary-" + "7f3a" * 8
    with SQLStore(f"sqlite:///{tmp_path}/ledger.db") as store:
        store.append("c", conversation_of(TURN, canary))
        store.erase("c", TURN)
        left = b"".join((tmp_path / name).read_bytes() for name in os.listdir(tmp_path))

    assert canary.encode() not in left


def test_a_file_that_goes_is_noticed(tmp_path):
    """Records are not acknowledged into a file that was removed or replaced; then it goes on with what is there."""
    path = tmp_path / "ledger.db"
    with SQLStore(f"sqlite:///{path}") as store:
        store.append("c", notes("a"))
        with SQLStore(f"sqlite:///{tmp_path}/other.db") as other:
            other.append("c", notes("x"))
        for change in (lambda: (tmp_path / "other.db").replace(path), path.unlink):
            for ending in ("-wal", "-shm"):  # They are of the file that goes.
                (tmp_path / f"ledger.db{ending}").unlink(missing_ok=True)
            change()
            with pytest.raises(StoreIO, match="removed or replaced"):
                store.append("c", notes("b"))
            found = texts(store.read("c"))
            assert found == (["x"] if path.exists() else [])
        assert not path.exists()
        assert store.append("c", notes("new"), expect=0) == 1
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_stays_the_one_that_was_named(tmp_path, monkeypatch):
    """A store named by a relative path keeps its file where the working directory was when it was opened."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with SQLStore(f"sqlite:///{tmp_path.name}.db") as store:
        store.append("c", notes("a"))
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.append("c", notes("b"))
        store.close()
        assert texts(store.read("c")) == ["a", "b"]
        assert os.listdir(".") == []


def test_a_file_in_a_folder_that_can_only_be_read_is_read(tmp_path, monkeypatch):
    """Where SQLite can make nothing beside its file, the file is read, and an append says why not."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    with SQLStore(url) as store:
        store.append("c", notes("a"))
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    with SQLStore(url) as store:
        assert texts(store.read("c")) == ["a"]
        assert os.listdir(tmp_path) == ["ledger.db"]
        with pytest.raises(StoreReadOnly):
            store.append("c", notes("b"))
        assert store.verify("c").counts == {"sealed": 1}


# -- secrets


def test_no_secret_is_said(tmp_path):
    """No password of a URL is in a repr, or in an error or anything that it is chained to."""
    secret = "pa55-w0rd"
    url = (
        f"postgresql://me:{secret}@127.0.0.1:1/nowhere?password={secret}&application_name={secret}"
    )
    store = SQLStore(url, tenant="t")
    with pytest.raises(LedgerError) as caught:
        store.append("c", notes("a"))

    said = [repr(store), repr(store._database), repr(caught.value)]
    error: BaseException | None = caught.value
    while error is not None:
        said += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    assert not [text for text in said if secret in text]
    assert caught.value.code == "store-io"
    assert "127.0.0.1:1/nowhere" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql+nothing://me:pa55@host/x", "known are postgresql and sqlite"),
        ("sqlite://", "MemoryStore"),
        ("sqlite:///:memory:", "MemoryStore"),
        ("postgresql+psycopg2://me:pa55@host/x", "psycopg"),
        ("://", "does not read"),
        ("mysql://me:pa55@host/x", "no store knows"),
        ("postgresql://me:a@pa55@host/x", "write %40"),
        ("postgresql://me:a?pa55@pa55@host/x", "write %40"),
        ("postgresql://me:pa55@host:pa55/x", "does not read"),
        ("postgresql://me:pa55@host:99999/x", "1 to 65535"),
        ("postgresql:/me:pa55@host/x", "does not read"),
        ("post gresql://me:pa55@host/x", "does not read"),
        (" postgresql://me:pa55@host/x", "does not read"),
        ("postgresql:me:pa55@host/x", "does not read"),
        ("sqlite://me:pa55@host/x", "on no host"),
        ("postgresql://me:pa55\0@host/x", "NUL|character"),
        ("postgresql://me:pa55\ud800@host/x", "character"),
    ],
)
def test_what_no_store_can_be_in_is_refused(url, told):
    """A URL of another database, or of none, is refused at once, without its password."""
    with pytest.raises((ValueError, ModuleNotFoundError), match=told) as caught:
        SQLStore(url)
    assert "pa55" not in str(caught.value)
    with pytest.raises((ValueError, ModuleNotFoundError), match=told) as caught:
        store_for(url)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize("tenant", ["", "a\0b", "a\ud800", 1])
def test_what_is_no_tenant_is_refused(tmp_path, tenant):
    """A tenant whose name no database can keep is refused at once."""
    with pytest.raises(ValueError, match="tenant"):
        SQLStore(f"sqlite:///{tmp_path}/ledger.db", tenant=tenant)


def test_an_engine_is_taken_as_it_is(place):
    """An engine of the caller's is used and never closed."""
    url = place.url.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = sqlalchemy.create_engine(url)
    with SQLStore(engine, tenant=place.tenant) as store:
        store.append("c", notes("a"))
        assert store.wait("c", 0, 1)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    engine.dispose()
    static = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    with pytest.raises(ValueError, match="each thread"):
        SQLStore(static)


# -- beside


def test_a_url_names_a_store(place):
    """`open(store=url)` keeps turns in the database, and the same URL is the same store."""
    with store_for(place.url) as store:
        chat = ledger.open(f"c{os.urandom(4).hex()}", store=place.url)
        chat.record("asked", "answered")
        assert store_for(place.url) is store
        assert ledger.open(chat.id, store=place.url).head.result == "answered"
        assert store.verify(chat.id).counts == {"sealed": 3}
        chat.delete() if hasattr(chat, "delete") else store.delete(chat.id)


def test_a_death_is_seen_at_once(store, place):
    """A holder whose process ended is known dead at once by who shares its machine; one that lives is not."""
    script = (
        "import sys; from ledger.stores.sql import SQLStore\n"
        "SQLStore(sys.argv[1], tenant=sys.argv[2] or None).hold('their:holder')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, place.url, place.tenant or ""]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as theirs:
        assert theirs.stdout.readline() == b"held\n"
        store.hold("our:holder")
        assert [store.is_dead(name) for name in ("their:holder", "our:holder")] == [False, False]
        theirs.kill()
        theirs.wait()
    assert store.is_dead("their:holder")
    assert not store.is_dead("unknown:holder")


def test_a_shared_clock_decides(monkeypatch):
    """Where a store has a clock, turns are made and judged by it, whatever the machine's own says."""
    from datetime import UTC, datetime, timedelta

    from ledger.turns import world

    skewed = datetime.now(UTC) + timedelta(hours=3)
    monkeypatch.setattr(world.System, "now", lambda self: skewed)
    with open_sql(postgres_place()) as store:
        store.read("c")
        seen = []

        def answer(message: str) -> str:
            seen.append(ledger.open("c", store=store).all_turns()[-1].state)
            return "x"

        ledger.open("c", answer, store=store).send("hello")
        written = [times.from_text(record["at"]) for record in store.read("c")]

    assert seen == ["running"]
    late = [
        at for at in written if at is None or abs(at - datetime.now(UTC)) > timedelta(minutes=9)
    ]
    assert late == []


# -- request ids


def turn_of(name, request_id):
    return kinds.new("turn", AT, turn=name, saw=[], program="p", request_id=request_id)


def end_of(name):
    return kinds.new("ended", AT, turn=name, saw=[], state="done", attempt=1)


def said(text):
    return kinds.new("entry", AT, plugin="x", entry="y", data=text)


def found(store, request_id, conversation="a"):
    sent = store.sent(conversation, request_id)
    return None if sent is None else [(record.turn, record.seq) for record in sent]


def test_the_first_turn_of_a_request_id_is_found(store):
    """With all that is recorded of it afterwards; what only mentions either is none of it."""
    assert found(store, "r") == []
    store.append("a", [said("r"), turn_of("t0", "q"), turn_of("t1", "r")])
    store.append("a", [turn_of("t2", "r"), end_of("t2"), said("t1"), end_of("t1")])
    assert found(store, "r") == [("t1", 3), ("t1", 7)]
    assert found(store, "q") == [("t0", 2)]
    assert found(store, "t1") == []
    assert found(store, "r", "none") == []
    assert found(store, "\u00fc") is None


def test_a_request_id_in_many_lines_is_not_told(store):
    """Reading everything is the better way then."""
    store.append("a", [said("often")] * MOST_LINES)
    assert found(store, "often") == []
    store.append("a", [turn_of("t1", "often"), turn_of("t2", "r")])
    assert found(store, "often") is None
    assert found(store, "r") == [("t2", MOST_LINES + 2)]


@pytest.mark.parametrize("damage", ["line", "before", "after", "gone"])
def test_a_damaged_line_of_a_request_id_is_not_told(place, damage):
    """It is altered, or the seal of the one before; what is damaged elsewhere says nothing of it."""
    with open_sql(place) as store:
        store.append("a", [said("before")])
        store.append("a", [turn_of("t1", "r")])
        store.append("a", [end_of("t1")])
        store.append("a", [said("after")])
        seq = {"line": 2, "before": 1, "after": 4, "gone": 3}[damage]
        of = "WHERE seq = :seq AND tenant = :tenant"
        given = {"seq": seq, "tenant": store._need_tenant()}
        if damage == "gone":
            run(store, f"DELETE FROM ledger_lines {of}", **given)
        else:
            ((data,),) = run(store, f"SELECT data FROM ledger_lines {of}", **given)
            altered = bytes(data).replace(b'"saw"', b'"sew"').replace(b'"data"', b'"dota"')
            run(store, f"UPDATE ledger_lines SET data = :data {of}", data=altered, **given)
    for strict in (False, True):
        with SQLStore(place.url, tenant=place.tenant, strict=strict) as store:
            all_of_it = [("t1", 2), ("t1", 3)]
            told = {"line": None, "before": all_of_it, "after": all_of_it, "gone": [("t1", 2)]}
            assert found(store, "r") == told[damage]


def test_a_request_that_was_sent_is_not_read_for(place):
    """Who sends again in a new process reads the turn's own lines, and of a long log no others."""
    with open_sql(place) as store:
        chat = ledger.open("a", lambda message: message, store=store)
        chat("first", request_id="r-1")
        store.append("a", [said(number) for number in range(1100)])
        chat.record("next", "turn")

    class Reading(SQLStore):
        """Counts what is read from the start."""

        whole = 0

        def scan(self, conversation, after=0):
            self.whole += not after
            return super().scan(conversation, after)

    with Reading(place.url, tenant=place.tenant) as store:
        chat = ledger.open("a", lambda message: "again", store=store, context=ledger.last_turns(1))
        assert chat("first", request_id="r-1") == "first"
        assert store.whole == 0
