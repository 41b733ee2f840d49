"""A store on PostgreSQL: transactions that meet, connections that are lost, and what is told of changes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress

import psycopg
import pytest
import sqlalchemy

from ledger.errors import AttachmentMissing, LedgerError, StoreBusy, StoreUnknown
from ledger.stores.sql import SQLStore, listening, writing
from ledger.stores.sql import store as sql_store
from ledger.stores.sql.failures import Lost
from ledger.testing import jobs
from ledger.testing.children import children
from ledger.testing.erase_checks import conversation_of
from ledger.testing.examples import notes, texts
from tests import postgres
from tests.scenarios import crowd
from tests.stores.sql import crowds
from tests.testing.sql_places import SQLPlace, open_sql, postgres_place

TURN = "01890000-0000-7000-8000-000000000001"


@pytest.fixture
def place():
    """Return an empty place."""
    return postgres_place()


@pytest.fixture
def store(place):
    """Return a store there."""
    with open_sql(place) as store:
        yield store


@pytest.fixture
def other():
    """Return a connection of somebody else's."""
    with psycopg.connect(postgres.url()) as connection:
        yield connection


def statements(store: SQLStore) -> list[str]:
    """Return the list to which every statement that a store sends is added from now on."""
    sent: list[str] = []

    def note(connection, cursor, statement, parameters, context, many):
        sent.append(statement)

    sqlalchemy.event.listen(store._database.engine, "before_cursor_execute", note)
    return sent


# -- appending


def test_an_append_is_one_statement(store):
    """With `expect` and a known end, an append is one statement; without a known end, two."""
    position = store.append("c", notes("a"))
    sent = statements(store)

    def made() -> int:
        """How many, but for what tells others of an append, which is sent a moment later."""
        return sum("pg_notify" not in statement for statement in sent)

    store._listener.hears = True
    try:
        position = store.append("c", notes("b", "c"), expect=position)
        assert made() == 1
        store._known.clear()
        store.append("c", notes("d"), expect=position)
        assert made() == 3
    finally:
        store._listener.hears = False


def test_one_conversation_blocks_no_other(store, other):
    """While a log's row is locked, appends to others go on; one to it waits no longer than it is told to."""
    store.append("c", notes("a"))
    other.execute("SELECT 1 FROM ledger_conversations WHERE id = 'c' FOR UPDATE")
    with SQLStore(postgres.url(), tenant=store.tenant, lock_timeout_s=0.2) as hasty:
        assert hasty.append("d", notes("b")) == 1
        with pytest.raises(StoreBusy):
            hasty.erase("c", TURN)
        for _ in range(2):  # The end is known the first time, then not.
            with pytest.raises(StoreBusy):
                hasty.append("c", notes("b"))
            hasty.read("c")


def test_writers_that_meet_add_once_each(store):
    """Threads that append to one log at once, all as they know its end, each add once, in feed order too."""
    threads = [
        threading.Thread(
            target=lambda n=n: [store.append("c", notes(f"{n}-{i}")) for i in range(6)]
        )
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = texts(store.read("c"))
    assert Counter(found) == Counter(f"{n}-{i}" for n in range(6) for i in range(6))
    assert [fed.record["data"] for fed in store.feed()] == found
    assert store.verify("c").counts == {"sealed": 36}


def test_an_attachment_stays_while_a_record_is_named_it(store, place):
    """Of one who removes an attachment and one who names it, either the bytes stay or the record is refused."""
    with open_sql(place) as second:
        for _ in range(6):
            name, _ = store.blobs.put(b"a")
            second.blobs.has(name)
            store.append("c", conversation_of(TURN, "x", name))
            outcome: list[str] = []

            def naming(name: str = name, outcome: list[str] = outcome) -> None:
                try:
                    second.append("d", conversation_of(TURN, "y", name))
                    outcome.append("named")
                except AttachmentMissing:
                    outcome.append("refused")

            thread = threading.Thread(target=naming)
            thread.start()
            store.delete("c")
            thread.join()

            assert store.blobs.has(name) is (outcome == ["named"])
            second.delete("d")


# -- T1


def test_many_senders_make_one_line():
    """Recipe T1, short: processes that send to one conversation make one line of turns, each input once."""
    crowd.processes(postgres.fresh_url(), count=3, each=4)


# -- the feed


def test_a_lower_place_that_commits_last_is_not_passed(store, place, other):
    """Recipe T32: while a transaction with a lower place runs, the feed holds back what has a higher one."""
    store.append("c", notes("before"))
    after = store.feed()[-1].position
    other.execute("SELECT pg_current_xact_id()")  # The lower place is taken, and nothing added yet.
    with open_sql(place) as second:
        second.append("d", notes("higher"))
        assert store.feed(after) == []
        key = other.execute(
            "SELECT key, tenant FROM ledger_conversations WHERE id = 'c' AND tenant = %s",
            [store._tenant(False)],
        ).fetchone()
        line = store.raw("c").replace(b'"seq":1', b'"seq":2')
        other.execute(
            """INSERT INTO ledger_lines VALUES
            (%s, 2, %s, 1, pg_current_xact_id()::text::bigint, %s)""",
            [*key, line],
        )
        other.execute("UPDATE ledger_conversations SET count = 2 WHERE key = %s", [key[0]])
        other.commit()

    found = store.feed(after, wait=20)
    found += store.feed(found[-1].position, wait=0.3)
    assert [(fed.conversation, fed.record["seq"]) for fed in found] == [("c", 2), ("d", 1)]


def test_word_of_an_append_wakes_the_feed(place, store, monkeypatch):
    """Who waits for the feed asks nothing meanwhile, and is woken by an append of another store."""
    monkeypatch.setattr(sql_store, "_FEED_PAUSE_S", 60.0)
    monkeypatch.setattr(listening, "LOOK_S", 60.0)
    store.append("c", notes("a"))
    after, found = store.feed()[-1].position, []
    waiting = threading.Thread(target=lambda: found.extend(store.feed(after, wait=60)))
    waiting.start()
    postgres.until(lambda: store._listener.hears)
    with open_sql(place) as another:
        another.append("d", notes("b"))
        waiting.join(20)
    assert [fed.record["data"] for fed in found] == ["b"]


def test_the_feed_goes_on_after_a_restore():
    """Where a database was restored into a server that counts from below, what is added later comes later."""
    place = SQLPlace(postgres.fresh_url())
    with open_sql(place) as store:
        store.append("c", notes("a"))
        with store._database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE ledger_lines SET place = place + 1000000000")
    with open_sql(place) as store:
        assert texts(store.read("c")) == ["a"]
        store.append("d", notes("b"))
        found = store.feed(wait=20)
        found += store.feed(found[-1].position, wait=0.2)
        assert [fed.record["data"] for fed in found] == ["a", "b"]


# -- connections that are lost


def kill_connections(other: psycopg.Connection, application: str) -> None:
    """End all connections that bear a name."""
    other.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s",
        [application],
    )
    other.commit()


def named_place() -> tuple[SQLPlace, str]:
    """Return a place whose connections bear a name of their own."""
    place, name = postgres_place(), f"app-{os.urandom(4).hex()}"
    mark = "&" if "?" in place.url else "?"
    return place._replace(url=f"{place.url}{mark}application_name={name}"), name


def test_a_lost_connection_is_made_anew(other):
    """After every connection of a store was ended, reading and appending go on without an error."""
    place, name = named_place()
    with open_sql(place) as store:
        position = store.append("c", notes("a"))
        for text in ("b", "c"):
            kill_connections(other, name)
            position = store.append("c", notes(text), expect=position)
            kill_connections(other, name)
            assert texts(store.read("c"))[-1] == text
        kill_connections(other, name)
        assert store.erase("c", TURN) == store.erase("c", TURN)
        assert texts(store.read("c")) == ["a", "b", "c"]


@pytest.mark.parametrize("done", [False, True], ids=["before it was done", "after"])
@pytest.mark.parametrize("locked", [False, True], ids=["one statement", "locked"])
def test_an_append_of_unknown_outcome_is_settled(store, monkeypatch, done, locked):
    """A connection lost in an append leaves its records there exactly once, whether it had been done."""
    store.append("c", notes("a"))
    lost: list[bool] = []
    if locked:
        monkeypatch.setattr("ledger.stores.sql.ends._TRIES", 0)
        original = type(store._database).transaction

        def transaction(self, connection, **options):
            return _Losing(original(self, connection, **options), done, lost)

        monkeypatch.setattr(type(store._database), "transaction", transaction)
    else:
        in_one = writing.in_one

        def losing(*given):
            if lost:
                return in_one(*given)
            lost.append(True)
            if done:
                in_one(*given)
            raise Lost(sent=True)

        monkeypatch.setattr(writing, "in_one", losing)

    assert store.append("c", notes("b", "c"), expect=1) == 3
    assert lost == [True]
    assert texts(store.read("c")) == ["a", "b", "c"]
    assert store.append("c", notes("d")) == 4


class _Losing:
    """A transaction whose end is not heard, the first time."""

    def __init__(self, inner, done, lost):
        self._inner, self._done, self._lost = inner, done, lost

    def __enter__(self):
        return self._inner.__enter__()

    def __exit__(self, kind, error, trace):
        if self._lost or kind is not None:
            return self._inner.__exit__(kind, error, trace)
        self._lost.append(True)
        if self._done:
            self._inner.__exit__(None, None, None)
        else:
            with suppress(Lost):
                self._inner.__exit__(Lost, Lost(sent=True), None)
        raise Lost(sent=True)


def test_what_cannot_be_settled_is_unknown(store, monkeypatch):
    """Where the connection does not come back, an append whose outcome nobody knows says so."""
    store.append("c", notes("a"))

    def lost(*given):
        raise Lost(sent=True)

    monkeypatch.setattr(writing, "in_one", lost)
    monkeypatch.setattr("ledger.stores.sql.database._PAUSE_S", 0.001)
    monkeypatch.setattr(type(store._database), "run", _run_briefly(type(store._database).run))
    with pytest.raises(StoreUnknown):
        store.append("c", notes("b"))
    assert texts(store.read("c")) == ["a"]


def _run_briefly(run):
    return lambda self, work, patience_s=0.0: run(self, work, patience_s=0.0)


def test_a_crowd_survives_kills_and_a_restart():
    """Eight processes append while connections are ended and the server restarts: what was acknowledged is there."""
    server = postgres.Server(flushes=True)
    try:
        told = crowds.survive(server.url, server.restart, processes=8, each=9, pause_s=0.05)
    finally:
        server.stop()
    assert told["restarts"] == 1
    assert told["connections ended"] > 0
    assert told["acknowledged"] > 8


# -- hearing of changes


def test_one_connection_hears_for_all(store, place):
    """However many threads wait, one connection listens, and none asks again meanwhile."""
    count = store.append("c", notes("a"))
    sent = statements(store)
    said: list[bool] = []
    threads = [
        threading.Thread(target=lambda: said.append(store.wait("c", count, 30))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    postgres.until(lambda: store._listener.hears)
    asked = 0
    while asked < len(sent) or asked < len(threads):  # Until nearly all have looked, and wait.
        asked = len(sent)
        time.sleep(0.3)
    assert store._database.engine.pool.checkedout() == 0
    assert store.wait("c", count, 0.5) is False
    assert len(sent) < asked + len(threads)  # It, and perhaps a thread that came late.

    def asks() -> int:
        before = len(sent)
        assert store.has_word("c", count) is False
        assert store.has_word("c", 0) is True
        return len(sent) - before

    assert min(asks() for _ in range(5)) == 0
    with children(1) as (child,):
        child.prepare(jobs.write_batches, open_sql, place, 1)
        child.begin(20)
        child.result(20)
    for thread in threads:
        thread.join(20)
    assert said == [True] * 20


def test_where_no_word_comes_it_is_looked_at(monkeypatch):
    """Through a pooler that passes no word on, a change of another process is seen all the same."""
    monkeypatch.setattr(listening.Listener, "_is_heard", lambda self, connection, driver: False)
    place, _ = named_place()  # No other store shares the connection that listens.
    with open_sql(place) as store, children(1) as (child,):
        count = store.append("c", notes("a"))
        child.prepare(jobs.write_batches, open_sql, place, 1)
        waiting = threading.Thread(target=lambda: child.begin(20))
        waiting.start()
        assert store.wait("c", count, 30)
        waiting.join()
        child.result(20)
        assert not store._listener.hears


def test_a_listener_that_was_cut_off_comes_back(place, other, monkeypatch):
    """When the listening connection is ended, waiting goes on, and it is made anew."""
    monkeypatch.setattr(listening, "SEEK_S", 0.1)
    place, name = named_place()
    with open_sql(place) as store:
        store.append("c", notes("a"))
        assert store.has_word("c", 1)
        postgres.until(lambda: store._listener.hears)
        kill_connections(other, name)
        postgres.until(lambda: not store._listener.hears)
        said: list[bool] = []
        waiting = threading.Thread(target=lambda: said.append(store.wait("c", 1, 30)))
        waiting.start()
        with open_sql(place._replace(url=postgres.url())) as second:
            second.append("c", notes("b"))
        waiting.join(20)
        assert said == [True]
        postgres.until(lambda: store._listener.hears)


@contextmanager
def silent(store, other, name):
    """Have a connection that listens answer nothing, as one that a firewall forgot."""
    assert store.has_word("c", 1)
    postgres.until(lambda: store._listener.hears)
    found = other.execute(
        """SELECT pid FROM pg_stat_activity WHERE application_name = %s
        AND query LIKE '%%unnest(%%' AND query NOT LIKE '%%ledger_lines%%'""",
        [name],
    )
    (pid,) = [row[0] for row in found]
    other.commit()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.skipif(postgres.NAMED in os.environ, reason="the server's processes are stopped")
def test_a_listener_that_gets_no_answer_is_given_up(other, monkeypatch):
    """Where the listening connection answers nothing, changes are seen all the same, and closing waits for nothing."""
    monkeypatch.setattr(listening, "LOOK_S", 0.1)
    monkeypatch.setattr(listening, "HEAR_S", 0.5)
    place, name = named_place()
    with open_sql(place) as store:
        store.append("c", notes("a"))
        with silent(store, other, name):
            said: list[bool] = []
            waiting = threading.Thread(target=lambda: said.append(store.wait("c", 1, 30)))
            waiting.start()
            postgres.until(lambda: not store._listener.hears, 10)
            with open_sql(place._replace(url=postgres.url())) as second:
                second.append("c", notes("b"))
            waiting.join(10)
            assert said == [True]
    monkeypatch.setattr(listening, "HEAR_S", 60.0)
    place, name = named_place()
    with open_sql(place) as store:
        store.append("c", notes("a"))
        with silent(store, other, name):
            postgres.until(lambda: store._listener._line._since is not None)
            begun = time.monotonic()
            store.close()
            assert time.monotonic() - begun < 2


def test_who_is_not_let_in_is_told_why_at_once(other):
    """A role or a database that is not there, and a right that is missing, are told by name, and not retried."""
    role = f"role_{os.urandom(4).hex()}"
    other.execute(f"CREATE ROLE {role} PASSWORD 's3cret'")  # It may not log in.
    other.commit()
    made = sqlalchemy.make_url(postgres.url())
    cases = {
        made.set(username=f"no_{role}", password="s3cret"): "store-denied",
        made.set(username=role, password="s3cret"): "store-denied",
        made.set(database=f"no_{role}"): "store-io",
    }
    for url, code in cases.items():
        begun = time.monotonic()
        with pytest.raises(LedgerError, match=r"credentials|no such database") as caught:
            SQLStore(url).append("c", notes("a"))
        assert caught.value.code == code
        assert "s3cret" not in str(caught.value)
        assert time.monotonic() - begun < 1
    other.execute(f"DROP ROLE {role}")
    other.commit()


def test_a_wrong_password_is_told_without_it():
    """A server that does not let this process in is store-io or store-denied, said without a secret."""
    with pytest.raises(LedgerError) as caught:
        SQLStore("postgresql://nobody:s3cret@/nowhere?host=/nonexistent").read("c")
    assert "s3cret" not in f"{caught.value}{caught.value!r}{caught.value.__context__!r}"
