"""Which holders are known dead: by the store on this machine, and by a clock that nobody sets."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import TurnUnknown
from ledger.records import times
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from ledger.turns import commands, judging, programs
from ledger.turns.commands import LEASE_S, Outcome, Sent
from ledger.turns.judging import Judge
from ledger.turns.log import Log
from ledger.views import History, all_turns
from tests.stores.support import Unflushed, end, heard, start
from tests.worlds import START, FakeWorld

TURN = "018f0000-0000-7000-8000-000000000001"


def at(seconds: float) -> str:
    """Return a moment as records name it."""
    return times.to_text(START + timedelta(seconds=seconds))


def record(kind: str, **keys: object) -> dict:
    """Return a record of the turn."""
    return {"functai_conversation": 1, "kind": kind, "at": at(0), "turn": TURN, **keys}


def lease(until: float, holder: str = "there", attempt: int = 1, boot: str | None = None) -> dict:
    """Return a lease of the turn, until so many seconds after the start."""
    named = {} if boot is None else {"boot": boot}
    return record("lease", holder=holder, until=at(until), attempt=attempt, **named)


def running(*leases: dict) -> History:
    """Return the history of a turn that was sent under some leases."""
    return History.of([record("turn", parent=None), *leases])


class Undertaker(MemoryStore):
    """A store that knows the dead, and notes of whom it was asked."""

    def __init__(self, *dead: str) -> None:
        super().__init__()
        self.dead = set(dead)
        self.asked: list[str] = []

    def is_dead(self, holder: str) -> bool:
        self.asked.append(holder)
        return holder in self.dead


@pytest.fixture
def world():
    """Return a world at the start."""
    return FakeWorld()


# -- on this machine ---------------------------------------------------------------------------------


def test_a_dead_holder_of_this_boot(world):
    """The holder of a lease of this boot is dead as soon as the store says so."""
    store = Undertaker("there")
    history = running(lease(30, boot="boot-1", attempt=3))

    dead = Judge(store, world).dead(history, TURN)

    assert dead == {("there", 3)}
    assert history.state(TURN, now=world.now(), dead=dead) == "interrupted"


def test_a_living_holder(world):
    """A holder of whom the store knows no death is not dead, and is asked about every time."""
    store = Undertaker()
    judge, history = Judge(store, world), running(lease(30, boot="boot-1"))
    assert judge.dead(history, TURN) == frozenset()

    store.dead.add("there")

    assert judge.dead(history, TURN) == {("there", 1)}


@pytest.mark.parametrize("theirs, ours", [("boot-2", "boot-1"), (None, "boot-1"), (None, None)])
def test_a_lease_of_another_boot(theirs, ours):
    """The store is not asked of a holder on another machine, another boot, or one nobody knows."""
    store = Undertaker("there")
    judge = Judge(store, FakeWorld(boot=ours))

    assert judge.dead(running(lease(30, boot=theirs)), TURN) == frozenset()
    assert store.asked == []


def test_the_last_lease_counts(world):
    """When another took the turn over, the death of the one before says nothing."""
    store = Undertaker("there")
    both = running(lease(30, boot="boot-1"), lease(30, "next", 2, boot="boot-1"))

    assert Judge(store, world).dead(both, TURN) == frozenset()
    assert store.asked == ["next"]


@pytest.mark.parametrize(
    "more, seconds",
    [
        ([record("ended", state="done", outputs={})], 0),
        ([record("waiting", approvals=[], attempt=1)], 0),
        ([], 30.5),
    ],
)
def test_a_turn_that_does_not_run_is_not_asked_about(world, more, seconds):
    """Nothing is asked when the turn ended, waits, or its lease ran out anyway."""
    store = Undertaker("there")
    world.pass_time(seconds)

    assert Judge(store, world).dead(running(lease(30, boot="boot-1"), *more), TURN) == frozenset()
    assert store.asked == []


def test_a_turn_without_a_lease(world):
    """A turn without a lease has no holder."""
    assert Judge(Undertaker(), world).dead(running(), TURN) == frozenset()


def test_an_unknown_turn_is_refused(world):
    """A turn that is none is refused as everywhere."""
    with pytest.raises(TurnUnknown):
        Judge(Undertaker(), world).dead(running(), "other")


def test_a_store_that_knows_nothing(world):
    """A store with the two methods alone gives the rules of time."""

    class Two:
        def append(self, conversation, records, *, expect=None):
            return 0

        def read(self, conversation, after=0):
            return []

    assert Judge(Two(), world).dead(running(lease(30, boot="boot-1")), TURN) == frozenset()


def test_a_killed_process(tmp_path, world):
    """The turn of a process that was killed is interrupted at once, and claimed from then on."""
    store = FolderStore(tmp_path, calls=Unflushed())
    world.boot_id = "here"
    process = start("FolderStore(folder).hold('there'); say('held'); sys.stdin.read()", tmp_path)
    assert heard(process) == "held"
    store.append("c", [record("turn", parent=None), lease(30, boot="here")])
    log, judge = Log(store, "c"), Judge(store, world)
    try:
        assert judge.state(log, TURN) == "running"
    finally:
        end(process)

    assert judge.state(log, TURN) == "interrupted"
    store.append("c", [lease(30, "next", 2)])
    assert judge.state(log, TURN) == "running"


def test_a_holder_that_ended_its_turn_first(world):
    """A holder that ended its turn, and then itself, between reading and asking, left a turn that is done."""

    class Late(Undertaker):
        def is_dead(self, holder: str) -> bool:
            self.append("c", [record("ended", state="done", outputs={})])
            return True

    store = Late()
    store.append("c", [record("turn", parent=None), lease(30, boot="boot-1")])

    assert Judge(store, world).state(Log(store, "c"), TURN) == "done"


# -- by a clock that nobody sets -----------------------------------------------------------------------


def test_a_lease_too_far_ahead_that_stands_still(world):
    """A lease that reaches hours ahead is over when it is the last one a lease's length after it was seen."""
    judge, history = Judge(MemoryStore(), world), running(lease(7200))
    assert judge.dead(history, TURN) == frozenset()
    world.pass_time(LEASE_S - 0.1)
    assert judge.dead(history, TURN) == frozenset()
    world.pass_time(0.1)

    assert judge.dead(history, TURN) == {("there", 1)}


def test_a_renewal_begins_anew(world):
    """A holder that renews lives, though its clock is hours ahead, or says the same time for ever."""
    judge, records = Judge(MemoryStore(), world), [lease(7200)]
    for _ in range(20):
        assert judge.dead(running(*records), TURN) == frozenset()
        world.pass_time(10)
        records.append(lease(7200))


def test_the_wall_clock_is_set_back(world):
    """When our clock is set back, a lease counts as too far ahead from when that is seen."""
    judge, history = Judge(MemoryStore(), world), running(lease(30))
    assert judge.dead(history, TURN) == frozenset()
    world.set_clock(-3600)
    world.pass_time(LEASE_S)
    assert judge.dead(history, TURN) == frozenset()
    world.pass_time(LEASE_S)

    assert judge.dead(history, TURN) == {("there", 1)}


def test_the_wall_clock_does_not_count(world):
    """Setting our clock makes no time pass."""
    judge, history = Judge(MemoryStore(), world), running(lease(7200))
    judge.dead(history, TURN)
    world.set_clock(3600)

    assert judge.dead(history, TURN) == frozenset()


def test_an_ordinary_lease_is_not_watched(world):
    """A lease of a clock like ours is left to its time, and costs no memory."""
    judge = Judge(MemoryStore(), world)
    judge.dead(running(lease(30)), TURN)

    assert judge._watched == {}


def test_what_is_watched_is_bounded(world):
    """However many leases reach too far, the memory for them is bounded."""
    judge = Judge(MemoryStore(), world)
    for number in range(2 * judging.MOST + 5):
        history = History(f"c{number}").extend([record("turn", parent=None), lease(7200)])
        judge.dead(history, TURN)

        assert len(judge._watched) <= judging.MOST


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.sampled_from([0, 1, 10, 29, 30, 31])),
        st.tuples(st.just("set"), st.sampled_from([-7200, -31, -30, 30, 7200])),
        st.tuples(st.just("renew"), st.sampled_from([-5, 29, 30, 31, 7200])),
        st.tuples(st.just("take"), st.sampled_from([30, 60])),
        st.tuples(st.sampled_from(["wait", "end"]), st.just(0)),
        st.tuples(st.just("look"), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS)
def test_the_clock_rule_is_the_contracts(steps):
    """At every look a holder is dead exactly when the turn runs and an earlier look, 30 s or more before, saw
    the same last lease with more than 30 s to go."""
    world, records, looks = FakeWorld(), [record("turn", parent=None), lease(30)], []
    judge, attempt, wall, mono = Judge(MemoryStore(), world), 1, 0.0, 0.0
    last, last_until, phase = 1, 30.0, "runs"
    for kind, value in [*steps, ("look", 0)]:
        if kind == "pass":
            world.pass_time(value)
            wall, mono = wall + value, mono + value
        elif kind == "set":
            world.set_clock(value)
            wall += value
        elif kind in ("renew", "take") and phase != "over":
            attempt += kind == "take"
            records.append(lease(wall + value, attempt=attempt))
            last, last_until, phase = len(records), wall + value, "runs"
        elif kind == "wait" and phase != "over":
            records.append(record("waiting", approvals=[], attempt=attempt))
            phase = "waits"
        elif kind == "end":
            records.append(record("ended", state="failed"))
            phase = "over"
        else:
            found = judge.dead(History.of(records), TURN)
            runs = phase == "runs" and last_until >= wall
            over = runs and any(then == last and when <= mono - 30 for then, when in looks)
            assert found == ({("there", attempt)} if over else set())
            if runs and last_until - wall > 30:
                looks.append((last, mono))


# -- what is written -------------------------------------------------------------------------------------


@pytest.mark.parametrize("boot", ["0b6c2a54-3c7f-4c9e-9f1e-3f1b8f0c2a11", None])
def test_a_lease_names_the_boot(world, boot):
    """The leases of a turn's start and end name the boot when there is one, and lack the key when not."""
    program = programs.recorded({"message": "hi"}, {"result": "yes"})
    sent = Sent(turn=TURN, parent=None, inputs={"message": "hi"})
    history = History()
    shown = history.shown(None, all_turns())
    claim = commands.Claim("me", 1, boot)
    begun = commands.start(history, sent, program=program, shown=shown, claim=claim, now=START)
    world.pass_time(LEASE_S + 1)
    outcome = Outcome(state="failed", error={"type": "E"})
    history.extend(begun)
    ended = commands.end(history, TURN, outcome, claim, now=world.now())

    leases = [r for r in (*begun, *ended) if r["kind"] == "lease"]
    assert [r.get("boot") for r in leases] == [boot, boot]
    assert all(("boot" in r) == (boot is not None) for r in leases)
    assert history.node(TURN).lease.boot == boot
