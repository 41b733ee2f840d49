"""An idle `resume_all` reads no log again that did not change, and misses nothing for that."""

import shutil
from datetime import timedelta

import pytest

import ledger
from ledger.records import times
from ledger.records.kinds import new
from ledger.recovery import interrupted
from ledger.stores.sql import SQLStore
from ledger.turns.programs import Program
from ledger.turns.world import SYSTEM
from tests.testing.sql_places import place_of
from tests.worlds import START

TURN = "01900000-0000-7000-8000-00000000000{}".format


class Counted:
    """Notes which conversations are read, and from where; its clock is set by hand."""

    time = START

    def now(self):
        return self.time

    def scan(self, conversation, after=0):
        self.read_from(conversation, after)
        return super().scan(conversation, after)

    def read_from(self, conversation, after):
        self.__dict__.setdefault("reads", []).append((conversation, int(after)))

    def taken(self):
        """Return what was read since it was asked."""
        return self.__dict__.pop("reads", [])


class CountingMemory(Counted, ledger.MemoryStore):
    """Memory that counts."""

    def since(self, conversation, mark=""):
        found = super().since(conversation, mark)
        self.read_from(conversation, found.records.position - len(found.records))
        return found


class CountingFolder(Counted, ledger.FolderStore):
    """A folder that counts."""


class CountingSQL(Counted, SQLStore):
    """A database that counts."""


@pytest.fixture(params=["memory", "folder", "sqlite", "postgres"])
def store(request, tmp_path):
    """A store of each kind."""
    if request.param == "memory":
        return CountingMemory()
    if request.param == "folder":
        return CountingFolder(tmp_path / "chats")
    place = place_of(request.param, tmp_path)
    return CountingSQL(place.url, tenant=place.tenant)


def refund(message: str) -> str:
    """Ask before money goes."""
    return str(ledger.current().tool("refund", 7, lambda: "paid", effects="changes"))


def other(message: str) -> str:
    """Another program."""
    return message


def leave(store, name, *, until=timedelta(seconds=30)):
    """Leave a turn of `refund` that somebody elsewhere runs until a time from now."""
    at, program = times.to_text(store.time), Program(refund).description
    store.append(
        name,
        [
            new("program", at, **program.keys()),
            new("turn", at, turn=TURN(1), parent=None, program=program.version)
            | {"inputs": {"message": "money"}, "saw": []},
            lease(store, until=until),
        ],
    )


def lease(store, *, until=timedelta(seconds=30)):
    """A lease of that turn's holder."""
    at, end = times.to_text(store.time), times.to_text(store.time + until)
    return new("lease", at, turn=TURN(1), holder="there:1:x", until=end, attempt=1)


def unfinished(store, name):
    """Leave a turn whose tool may have run."""
    leave(store, name, until=timedelta(seconds=-1))
    at = times.to_text(store.time)
    tool = {"site": "refund#1", "invocation": 1, "id": "a", "name": "refund", "input": 7}
    store.append(name, [new("tool", at, turn=TURN(1), state="started", **tool)])


def asked(store, *programs, **how):
    """Return the conversations of the turns that can be gone on with, and why the others are left."""
    found, left = interrupted(store, list(programs) or [refund], how)
    return [chat.id for chat, _ in found], left


def test_logs_that_did_not_change_are_not_read_again(store):
    """Asked again, nothing is read: whatever the turns wait for, and if nothing can be done, it is said again."""
    ledger.open("done", store=store).record("hi", "hello")
    ledger.open("asks", refund, store=store, approve="changes").stream("money")
    ledger.drain(30)
    leave(store, "runs")
    unfinished(store, "stuck")
    first = asked(store)
    assert sorted(why.split(" ")[0] for why in first[1].values()) == ["1", "it"]
    store.taken()

    assert asked(store) == first == ([], first[1])
    assert store.taken() == []


def test_a_lease_that_runs_out_is_seen_though_its_log_did_not_change(store):
    """What was running is interrupted when the time of its lease has come, and not before."""
    leave(store, "runs")
    assert asked(store) == ([], {})

    store.time += timedelta(seconds=30)
    assert asked(store) == ([], {})
    store.time += timedelta(seconds=1)

    assert asked(store) == asked(store) == (["runs"], {})


def test_a_lease_that_was_renewed_counts_by_its_new_time(store):
    """A renewal is a change: what runs is not taken for interrupted by the time of an older lease."""
    leave(store, "runs")
    assert asked(store) == ([], {})
    store.time += timedelta(seconds=20)
    store.append("runs", [lease(store)])
    store.time += timedelta(seconds=20)

    assert asked(store) == ([], {})


def test_of_a_log_that_grew_what_was_added_is_read(store):
    """A turn more in a conversation costs that turn's records."""
    chat = ledger.open("long", store=store)
    for n in range(5):
        chat.record(str(n), str(n))
    asked(store)
    before = len(store.read("long"))
    chat.record("one more", "yes")
    store.taken()

    asked(store)

    assert store.taken() == [("long", before)]


def test_what_a_person_answered_is_gone_on_with(store):
    """An answer changes the log, so the turn that waited for it is found."""
    chat = ledger.open("asks", refund, store=store, approve="changes")
    chat.stream("money")
    ledger.drain(30)
    (why,) = asked(store)[1].values()
    assert why == "it waits for 1 answer of a person"

    chat.turn(1).approve()

    assert [turn.result for turn in ledger.resume_all(store, refund)] == ["paid"]
    assert asked(store) == ([], {})


def test_another_program_is_asked_anew(store):
    """What one program cannot go on with, another may."""
    leave(store, "runs", until=timedelta(seconds=-1))

    assert asked(store, other) == ([], {TURN(1): "another program made it"})
    assert asked(store, other) == ([], {TURN(1): "another program made it"})
    assert asked(store, other, refund) == (["runs"], {})


def test_a_conversation_made_anew_is_read_anew(store):
    """What was known of a conversation goes with it."""
    ledger.open("again", store=store).record("hi", "hello")
    asked(store)
    store.delete("again")
    assert asked(store) == ([], {})
    leave(store, "again", until=timedelta(seconds=-1))

    assert asked(store) == (["again"], {})


def test_a_holder_that_died_is_seen_though_its_log_did_not_change():
    """Who is known to have ended is missed at once, whatever time its lease leaves it."""
    dead: set[str] = set()

    class Missing(CountingMemory):
        def is_dead(self, holder):
            return holder in dead

    store = Missing()
    leave(store, "runs")
    store.append("runs", [lease(store) | {"boot": SYSTEM.boot()}])
    assert asked(store) == ([], {})

    dead.add("there:1:x")

    assert asked(store) == (["runs"], {})


def test_a_log_that_cannot_be_read_is_named_each_time(tmp_path):
    """A conversation that fails is said with its reason, again and again, until it can be read."""
    store = CountingFolder(tmp_path / "chats")
    leave(store, "bad", until=timedelta(seconds=-1))
    asked(store)
    shutil.rmtree(tmp_path / "chats" / "holders", ignore_errors=True)
    log = tmp_path / "chats" / "conversations" / "bad.jsonl"
    data = log.read_bytes()
    log.unlink()
    log.mkdir()
    (log / "x").touch()
    bad = asked(store), asked(store)
    shutil.rmtree(log)
    log.write_bytes(data)

    assert bad[0] == bad[1]
    assert asked(store) == (["bad"], {})


def test_a_store_that_cannot_tell_is_read():
    """Where a store does not say whether its logs changed, they are read each time."""

    class Plain:
        def __init__(self):
            self.kept = CountingMemory()
            self.append, self.read = self.kept.append, self.kept.read
            self.conversations, self.now = self.kept.conversations, self.kept.now

    store = Plain()
    leave(store.kept, "runs")
    assert asked(store) == ([], {})

    store.kept.time += timedelta(seconds=31)

    assert asked(store) == asked(store) == (["runs"], {})


def test_what_is_given_wrongly_is_said_though_nothing_is_to_do(store):
    """A misspelt option is refused by an idle call too."""
    with pytest.raises(TypeError, match="approve"):
        ledger.resume_all(store, refund, aprove="changes")
