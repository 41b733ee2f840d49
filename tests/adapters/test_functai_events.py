"""The events of running turns: functai's stores and ours keep the same rules and share the same files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import functai.errors
import pytest
from functai import eventlog, stores
from hypothesis import given
from hypothesis import strategies as st

from ledger.adapters import functai as adapter
from ledger.errors import EventRefused
from ledger.records import events as rules
from ledger.stores.event_files import FolderEvents
from ledger.stores.events import MemoryEvents
from ledger.stores.memory import MemoryStore
from tests.records.event_examples import AT, OTHER, PROGRAM, SHA256, TREE, event, turn

ROOT = Path(__file__).parents[2]


def answer(work):
    """Return what a call gives, or the code that it refuses with."""
    try:
        return work()
    except (EventRefused, functai.errors.EventRefused) as error:
        return error.code


# -- the same rules

KINDS = st.sampled_from(["started", "text", "text", "text", "done", "helper's done"])
PLACES = st.none() | st.builds(
    lambda writer, seq: {"writer": writer, "seq": seq}, st.integers(1, 3), st.integers(1, 6)
)


def made(kind: str, text: str, **keys):
    """Return an event of a kind."""
    if kind == "started":
        start = {"parent": None, "root": TREE, "program": PROGRAM, "saw": [], "content": True}
        return event(kind, **start, inputs={"m": text}, **keys)
    if kind == "text":
        return event(kind, field="result", answer=True, text=text, **keys)
    ended = event("done", value=text, **keys)
    return {**ended, "call": OTHER} if kind == "helper's done" else ended


ANYWHERE = st.builds(
    made,
    KINDS,
    st.sampled_from("ab"),
    writer=st.integers(1, 3),
    seq=st.integers(1, 6),
    after=PLACES,
)
NEXT = st.tuples(KINDS, st.sampled_from("ab"), st.integers(1, 2), st.booleans())
"""An event that follows the last: kind, text, how far on, whether by the writer who may."""
ODD = st.sampled_from(
    [None, 5, {}, {**made("text", "a"), "tree": OTHER}, {**made("text", "a"), "text": ""}]
)
APPENDS = st.lists(
    st.one_of(
        st.tuples(st.just("next"), NEXT),
        st.tuples(st.just("next"), NEXT),
        st.tuples(st.just("again"), st.integers(0, 9)),
        st.tuples(st.just("event"), ANYWHERE),
        st.tuples(st.just("event"), ODD),
    ),
    min_size=1,
    max_size=3,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), APPENDS),
        st.tuples(st.just("append"), APPENDS),
        st.tuples(st.just("claim"), st.none()),
        st.tuples(st.just("read"), PLACES),
    ),
    max_size=20,
)


def batch_of(appends, log: list, writer: int) -> list:
    """Return the events that some appends mean, by what the log holds and who may write."""
    log, batch = list(log), []
    for how, what in appends:
        if how == "event":
            batch.append(what)
        elif how == "again":
            batch.append(log[what % len(log)] if log else made("started", "a"))
        else:
            kind, text, step, is_holder = what
            last = rules.position(log[-1]) if log else None
            number = {
                "writer": writer if is_holder else 1,
                "seq": (last or {"seq": 0})["seq"] + step,
            }
            batch.append(made(kind if log else "started", text, **number, after=last))
            log.append(batch[-1])
    return batch


@given(STEPS, st.lists(st.booleans(), min_size=60, max_size=60))
def test_the_same_calls_get_the_same_answers_and_leave_the_same_log(steps, turns_taken):
    """Whatever is appended, claimed and read: functai's and our memory, and one folder in which both
    take turns, answer alike and hold the same events."""
    with tempfile.TemporaryDirectory() as place:
        sides = [stores.FolderEvents(os.path.join(place, "shared", "trees"))]
        sides.append(FolderEvents(os.path.join(place, "shared")))
        oracle = eventlog.MemoryStore()
        alone = [
            MemoryEvents(),
            FolderEvents(os.path.join(place, "own")),
            stores.FolderEvents(os.path.join(place, "theirs")),
            adapter.store(MemoryStore()).events,
        ]
        for (what, how), ours in zip(steps, turns_taken, strict=False):
            call = called(what, how, oracle)
            expected = answer(lambda call=call: call(oracle))
            for kept_in in (*alone, sides[ours]):
                assert answer(lambda call=call, kept_in=kept_in: call(kept_in)) == expected
        log = oracle.read(TREE)
        for kept_in in (*alone, *sides):
            assert kept_in.read(TREE) == log
            assert kept_in.finished(TREE) is oracle.finished(TREE)


def called(what: str, how, oracle):
    """Return one step, as a call of whichever store."""
    if what == "claim":
        return lambda kept_in: kept_in.claim(TREE)
    if what == "read":
        return lambda kept_in: kept_in.read(TREE, how)
    batch = batch_of(how, oracle.read(TREE), oracle.writer_of(TREE))
    return lambda kept_in: kept_in.extend(batch)


@given(STEPS)
def test_a_refused_batch_names_the_same_event(steps):
    """The refusal of a batch names the first refused event, as functai's does."""
    oracle, own = eventlog.MemoryStore(), MemoryEvents()
    for what, how in steps:
        call = called(what, how, oracle)
        places = []
        for kept_in in (oracle, own):
            try:
                call(kept_in)
                places.append(None)
            except (EventRefused, functai.errors.EventRefused) as error:
                places.append(error.event if what == "append" else None)
        assert places[0] == places[1]


def test_the_adapter_tells_a_refusal_as_functai():
    """What our events refuse comes out of the adapter as functai's error, with code and place."""
    events = adapter.store(MemoryStore()).events
    with pytest.raises(functai.errors.EventRefused) as caught:
        events.extend(turn()[1:])
    assert (caught.value.code, caught.value.event) == ("event-gap", {"writer": 1, "seq": 2})


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("started", {**turn()[0], "inputs": {"m": 2**60}}),
        ("tool_call", {"id": "t", "name": "n", "input": 2**60}),
        ("done", {"value": [2**60]}),
        ("done", {"value": "\ud800"}),
        ("failed", {"error": {"type": "E", "code": "c", "message": "\ud800"}}),
    ],
)
def test_content_that_cannot_be_kept_exactly_is_left_out(kind, keys):
    """An event with a value that we refuse is kept without it, and sent again it is there."""
    events = adapter.store(MemoryStore()).events
    first = turn()[0]
    given = {**event(kind), **keys}
    if kind != "started":
        events.append(first)
        given |= {"seq": 2, "after": {"writer": 1, "seq": 1}}

    assert (events.append(given), events.append(given)) == ("kept", "duplicate")
    kept = events.read(TREE)[-1]
    assert (kept["kind"], kept["content"]) == (kind, False)
    assert not {"inputs", "input", "value"} & set(kept)
    assert kept.get("error", {"type": "E", "code": "c"}) == {"type": "E", "code": "c"}


def test_what_cannot_be_kept_without_content_is_refused():
    """A piece of text that is no text has no form without it."""
    events = adapter.store(MemoryStore()).events
    events.append(turn()[0])
    piece = {**turn()[2], "seq": 2, "after": {"writer": 1, "seq": 1}, "text": "\ud800"}
    assert answer(lambda: events.append(piece)) == "event-malformed"


# -- the same files


PRELUDE = """
import os, signal, sys
from functai import stores
from ledger.stores.event_files import FolderEvents
from tests.records.event_examples import *
theirs = stores.FolderEvents(os.path.join(sys.argv[1], "trees"))
ours = FolderEvents(sys.argv[1])
log = turn(pieces=300)
"""


def started(code: str, folder) -> subprocess.Popen[str]:
    """Start a process that has both stores of a folder."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + code, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_we_follow_a_process_of_functai(tmp_path):
    """Events that functai writes in another process are read here as they come, each once."""
    os.makedirs(tmp_path / "trees", 0o700)
    process = started("for event in log: theirs.append(event)", tmp_path)
    ours = FolderEvents(tmp_path)
    seen: list = []
    while not (seen and rules.finished(seen[-1])):
        after = rules.position(seen[-1]) if seen else None
        assert ours.wait(TREE, after, 30)
        seen += ours.read(TREE, after)
    assert process.wait(30) == 0
    process.communicate()
    assert seen == turn(pieces=300)


def test_functai_follows_a_process_of_ours(tmp_path):
    """Events that we write in another process are read by functai here as they come, each once."""
    theirs = stores.FolderStore(tmp_path)
    process = started("for event in log: ours.append(event)", tmp_path)
    seen = list(stores.follow(theirs, TREE, poll=0.005, timeout=30))
    assert process.wait(30) == 0
    process.communicate()
    assert seen == turn(pieces=300)


def test_writers_of_both_in_many_processes_keep_each_event_once(tmp_path):
    """Two processes of each side send the same log at once: it is kept once, in order, for both."""
    os.makedirs(tmp_path / "trees", 0o700)
    processes = [
        started(f"for event in log: {side}.append(event)", tmp_path)
        for side in ("ours", "theirs", "ours", "theirs")
    ]
    assert [process.wait(120) for process in processes] == [0] * 4
    for process in processes:
        process.communicate()
    assert FolderEvents(tmp_path).read(TREE) == turn(pieces=300)
    assert stores.FolderEvents(tmp_path / "trees").read(TREE) == turn(pieces=300)


DIES = """
for event in log[:5]:
    {side}.append(event)
line = json.dumps(log[5], separators=(",", ":")).encode() + b"\\n"
file = os.open(os.path.join(sys.argv[1], "trees", TREE + ".jsonl"), os.O_WRONLY | os.O_APPEND)
lock = os.open(os.path.join(sys.argv[1], "trees", TREE + ".lock"), os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(file, line[:len(line) // 2])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_writer_killed_in_the_middle_of_a_line(tmp_path, side):
    """Half a line that a killed writer left is no event for either; we go on, and then functai can,
    also one that has the log open since before."""
    os.makedirs(tmp_path / "trees", 0o700)
    process = started("import fcntl, json" + DIES.format(side=side), tmp_path)
    assert process.wait(30) == -9
    process.communicate()
    theirs, ours = stores.FolderEvents(tmp_path / "trees"), FolderEvents(tmp_path)
    log = turn(pieces=300)
    assert theirs.read(TREE) == ours.read(TREE) == log[:5]

    claim = ours.claim(TREE)
    writer = rules.Writer(TREE, "tutor", **claim)
    rest = [writer.text("result", word, at=AT) for word in ("a", "b", "c")]
    assert ours.append(rest[0]) == "kept"
    assert theirs.append(rest[1]) == "kept"
    assert stores.FolderEvents(tmp_path / "trees").append(rest[2]) == "kept"
    assert theirs.read(TREE) == ours.read(TREE) == log[:5] + rest


@pytest.mark.parametrize("claimer", [0, 1])
def test_a_claim_of_either_fences_a_writer_of_the_other(tmp_path, claimer):
    """Once one library claimed a log, the other's earlier writer is refused event-conflict."""
    sides = [stores.FolderEvents(tmp_path / "trees"), FolderEvents(tmp_path)]
    first, second = sides[1 - claimer], sides[claimer]
    log = turn()
    first.extend(log[:2])
    claim = second.claim(TREE)

    assert claim == {"writer": 2, "after": {"writer": 1, "seq": 2}}
    assert answer(lambda: first.append(log[2])) == "event-conflict"
    later = rules.Writer(TREE, "tutor", **claim)
    assert second.append(later.done("x", at=AT)) == "kept"
    assert first.finished(TREE)
    assert answer(lambda: first.claim(TREE)) == "event-after-end"


def test_functai_does_not_leave_the_end_of_a_log_that_is_removed(tmp_path):
    """A log is removed while functai appends to it: what it sends after that is no log."""
    ours, theirs = FolderEvents(tmp_path), stores.FolderEvents(tmp_path / "trees")
    log = turn(pieces=40)
    for removed_at in range(1, 40, 3):
        seen = threading.Event()

        def append(seen=seen, removed_at=removed_at):
            for each in log:
                answer(lambda each=each: theirs.append(each))
                if each["seq"] == removed_at:
                    seen.set()

        thread = threading.Thread(target=append)
        thread.start()
        seen.wait(20)
        ours.remove(TREE)
        thread.join()
        assert ours.read(TREE) == []


def test_the_program_of_a_start_has_an_interface():
    """functai's schema asks for the hash of the interface too; without it there is no start."""
    writer = rules.Writer(TREE, "tutor")
    program = {name: value for name, value in PROGRAM.items() if name != "interface"}
    with pytest.raises(EventRefused):
        writer.started(program, {}, saw=[], at=AT)
    assert writer.started({**program, "interface": SHA256}, {}, saw=[], at=AT)
