"""The events of running turns beside a store, in memory and in a folder."""

from __future__ import annotations

import os
import shutil
import threading
import time

import pytest

from ledger.errors import EventRefused, LedgerError, StoreBusy, StoreFull, StoreIO, StoreLink
from ledger.records import events as rules
from ledger.stores import event_files, locks
from ledger.stores.base import Events
from ledger.stores.event_files import FolderEvents
from ledger.stores.events import MemoryEvents
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from tests.hostile.test_planted import THINGS, plant, victim
from tests.records.event_examples import AT, OTHER, TREE, turn
from tests.stores.support import Failing, Recorded, end, error, heard, run, start
from tests.testing.sql_places import open_sql, postgres_place, sqlite_place

__all__ = ["victim"]


@pytest.fixture(params=["memory", "folder", "sqlite", "postgres"])
def events(request, tmp_path):
    """Return the events of an empty store of each kind."""
    if request.param in ("memory", "folder"):
        checked: Events = (
            MemoryEvents() if request.param == "memory" else FolderEvents(tmp_path / "store")
        )
        yield checked
        return
    with open_sql(sqlite_place(tmp_path) if request.param == "sqlite" else postgres_place()) as at:
        yield at.events


@pytest.fixture
def folder(tmp_path):
    """Return the events in a folder."""
    return FolderEvents(tmp_path)


def path(folder: FolderEvents, ending: str = ".jsonl"):
    """Return where the contract puts a file of the tree's log."""
    return os.path.join(folder.folder, "trees", TREE + ending)


def content(name: str) -> bytes:
    """Return the bytes of a file."""
    with open(name, "rb") as file:
        return file.read()


def code_of(work) -> str:
    """Return the code of the refusal."""
    with pytest.raises(EventRefused) as caught:
        work()
    return caught.value.code


# -- both


def test_events_come_back_in_order(events):
    """What was added is read in order; after a place, what stands behind it; nothing behind the last."""
    log = turn()
    assert [events.append(event) for event in log] == ["kept"] * len(log)

    assert events.read(TREE) == log
    for at, event in enumerate(log):
        assert events.read(TREE, rules.position(event)) == log[at + 1 :]
    assert (events.finished(TREE), events.finished(OTHER), events.read(OTHER)) == (True, False, [])


def test_what_is_read_is_the_readers_own(events):
    """Changing what was given or read changes nothing that is kept."""
    log = turn()
    given = turn()
    events.extend(given)
    given[0]["inputs"]["m"] = events.read(TREE)[0]["inputs"]["m"] = "changed"

    assert events.read(TREE) == log


def test_a_batch_is_kept_whole_or_not_at_all(events):
    """One refused event refuses its batch, and is named; again, the good ones are kept, then are there."""
    log = turn()
    with pytest.raises(EventRefused) as caught:
        events.extend([*log[:2], log[3]])
    assert (caught.value.code, caught.value.event) == ("event-gap", {"writer": 1, "seq": 4})
    assert events.read(TREE) == []

    assert events.extend([*log[:2], log[1]]) == "kept"
    assert events.extend(log[:2]) == events.extend([]) == "duplicate"
    assert events.extend(log) == "kept"
    assert events.read(TREE) == log


def test_the_refusals(events):
    """Each way not to follow has its code."""
    log = turn()
    assert code_of(lambda: events.append(log[1])) == "event-gap"
    assert code_of(lambda: events.append({**log[1], "after": None})) == "event-start"
    assert code_of(lambda: events.append({**log[0], "writer": 2})) == "event-start"
    assert code_of(lambda: events.append({})) == "event-malformed"
    assert code_of(lambda: events.append(None)) == "event-malformed"
    assert code_of(lambda: events.append({**log[0], "inputs": {"m": {1}}})) == "event-malformed"
    assert code_of(lambda: events.append({**log[1], "after": {"writer": 1, "seq": 2}})) == (
        "event-malformed"
    )
    assert code_of(lambda: events.claim(TREE)) == "event-unknown"
    events.extend(log[:3])
    assert code_of(lambda: events.append({**log[2], "text": "other"})) == "event-conflict"
    assert code_of(lambda: events.append({**log[3], "after": {"writer": 1, "seq": 2}})) == (
        "event-conflict"
    )
    assert code_of(lambda: events.read(TREE, {"writer": 2, "seq": 1})) == "event-unknown"
    assert code_of(lambda: events.read("../x")) == "event-malformed"
    events.extend(log)
    late = {**log[-1], "seq": 9, "after": rules.position(log[-1])}
    assert code_of(lambda: events.append(late)) == "event-after-end"
    assert code_of(lambda: events.claim(TREE)) == "event-after-end"
    assert events.read(TREE) == log


def test_a_claim_fences_the_writers_before_it(events):
    """After a claim the first writer is refused, also what it sent before; the later one goes on."""
    log = turn()
    events.extend(log[:3])
    claims = [events.claim(TREE), events.claim(TREE)]

    assert claims == [{"writer": n, "after": {"writer": 1, "seq": 3}} for n in (2, 3)]
    assert code_of(lambda: events.append(log[3])) == "event-conflict"
    assert code_of(lambda: events.append(log[2])) == "event-conflict"
    writer = rules.Writer(TREE, "tutor", **claims[1])
    assert events.append(writer.done("b", at=AT)) == "kept"
    assert [e["writer"] for e in events.read(TREE)] == [1, 1, 1, 3]
    assert events.finished(TREE)


def test_what_a_writer_made_is_added_without_being_checked_again(events):
    """`write` keeps, knows again and refuses what `extend` does."""
    log = turn()
    assert events.write(log[:2]) == "kept"
    assert events.write(log[:3]) == "kept"
    assert events.write(log[1:3]) == events.write([]) == "duplicate"
    assert code_of(lambda: events.write(log[4:])) == "event-gap"
    assert code_of(lambda: events.write([{**log[2], "text": "other"}])) == "event-conflict"
    events.claim(TREE)
    assert code_of(lambda: events.write(log[3:])) == "event-conflict"
    assert events.read(TREE) == log[:3]


def test_a_removed_log_does_not_come_back_half(events):
    """Who goes on with a removed log is refused, and so is a later writer; a whole new one may begin."""
    log = turn()
    events.extend(log[:3])
    later = rules.Writer(TREE, "tutor", **events.claim(TREE))
    assert events.remove(TREE) is True
    assert events.remove(TREE) is False

    assert code_of(lambda: events.append(log[3])) == "event-gap"
    assert code_of(lambda: events.append(later.text("result", "x", at=AT))) == "event-gap"
    assert code_of(lambda: events.extend(log[1:])) == "event-gap"
    assert events.read(TREE) == []
    assert events.extend(log) == "kept"


def test_waiting_ends_with_an_event_of_another_thread(events):
    """`wait` says no in time when nothing comes, and yes at once when there is or comes something."""
    log = turn()
    assert events.wait(TREE, None, 0) is False
    events.extend(log[:2])
    assert events.wait(TREE, None, 0) is True
    place = rules.position(log[1])
    assert events.wait(TREE, place, 0) is False

    found = []
    waiter = threading.Thread(target=lambda: found.append(events.wait(TREE, place, 20)))
    waiter.start()
    events.append(log[2])
    waiter.join()
    assert found == [True]


def test_threads_that_send_the_same_events_keep_each_once(events):
    """Eight threads send one log, in pieces; every event is kept once, in order."""
    log = turn(pieces=20)

    def send():
        for at in range(0, len(log), 3):
            events.extend(log[: at + 3])

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert events.read(TREE) == log


def test_an_append_from_deep_in_the_stack(events):
    """A caller near the end of its stack appends, reads and claims as any other."""
    deep = turn()[0]
    value: list = []
    for _ in range(150):
        value = [value]
    deep["inputs"] = {"m": value}

    def at_depth(work, left):
        return work() if left == 0 else at_depth(work, left - 1)

    for left in (500, 800, 900):
        log = FolderEvents(events.folder) if isinstance(events, FolderEvents) else events
        assert at_depth(lambda log=log: log.append(deep), left) in ("kept", "duplicate")
        assert at_depth(lambda log=log: log.read(TREE), left) == [deep]
        assert at_depth(lambda log=log: log.claim(TREE)["after"], left) == {"writer": 1, "seq": 1}
        events.remove(TREE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_child_of_a_fork_can_use_them(events):
    """A child forked while other threads append and wait goes on by itself."""
    log = turn(pieces=200)
    events.append(log[0])
    stop = threading.Event()

    def busy():
        for event in log[1:-1]:
            events.append(event)
        stop.wait()

    def waits():
        while not stop.is_set():
            events.wait(TREE, rules.position(log[-1]), 0.01)

    threads = [threading.Thread(target=work) for work in (busy, waits)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    events.extend(turn(OTHER))
                    code = 0 if events.finished(OTHER) and events.read(TREE) else 1
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# -- stores


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_erasing_and_deleting_take_the_events_along(kind, tmp_path):
    """The events of an erased turn, and of the turns of a deleted conversation, are gone; others stay."""
    store = MemoryStore() if kind == "memory" else FolderStore(tmp_path)
    third = OTHER[:-1] + "9"
    for conversation, name in (("c", TREE), ("c", OTHER), ("d", third)):
        record = {"functai_conversation": 1, "kind": "turn", "at": AT, "turn": name}
        store.append(conversation, [{**record, "parent": None, "program": "p", "inputs": {}}])
        store.events.extend(turn(name))

    store.erase("nothing", TREE)
    assert store.events.finished(TREE)
    store.erase("c", TREE)
    assert [store.events.finished(name) for name in (TREE, OTHER, third)] == [False, True, True]
    assert code_of(lambda: store.events.append(turn()[1])) == "event-gap"
    store.delete("c")
    assert [store.events.finished(name) for name in (TREE, OTHER, third)] == [False, False, True]


# -- a folder


def test_reading_and_refusing_make_nothing(tmp_path):
    """Only the first event that is kept makes the folder, for its owner only."""
    folder = FolderEvents(tmp_path / "store")
    log = turn()
    for work in (
        lambda: folder.append(log[1]),
        lambda: folder.claim(TREE),
        lambda: folder.append({**log[0], "writer": 2}),
    ):
        code_of(work)
    assert (folder.read(TREE), folder.finished(TREE), folder.wait(TREE, None, 0)) == (
        [],
        False,
        False,
    )
    assert folder.remove(TREE) is False
    assert not os.path.lexists(folder.folder)

    folder.append(log[0])
    folder.claim(TREE)
    assert os.stat(os.path.dirname(path(folder))).st_mode & 0o777 == 0o700
    assert sorted(os.listdir(os.path.dirname(path(folder)))) == [
        TREE + ending for ending in (".jsonl", ".lock", ".writer")
    ]
    for ending in (".jsonl", ".lock", ".writer"):
        assert os.stat(path(folder, ending)).st_mode & 0o777 == 0o600


def test_an_append_and_a_look_cost_what_is_new(tmp_path):
    """Among a megabyte of events, adding one and reading the last few read and write a few kilobytes."""
    calls = Recorded()
    folder = FolderEvents(tmp_path, calls=calls)
    log = turn(pieces=5000)
    folder.extend(log[:-10])
    assert os.path.getsize(path(folder)) > 1_000_000
    calls.calls.clear()

    for event in log[-10:]:
        folder.append(event)
    assert folder.read(TREE, rules.position(log[-10])) == log[-9:]
    assert folder.wait(TREE, rules.position(log[-1]), 0) is False
    assert calls.bytes_read() < 200_000
    assert ("flush",) not in calls.calls


@pytest.mark.parametrize("size", [10, 8_191, 8_192, 8_193, 70_000, 3_000_000])
def test_lines_of_any_length_are_read_from_the_end(folder, size):
    """Where a line lies across the pieces that are read makes no difference."""
    writer = rules.Writer(TREE, "tutor")
    log = [writer.started(turn()[0]["program"], {}, saw=[], at=AT)]
    log += [writer.text("result", "x" * (size + n), at=AT) for n in range(3)]
    for event in log:
        folder.append(event)

    assert folder.read(TREE) == log
    assert folder.read(TREE, rules.position(log[1])) == log[2:]


def test_lines_that_do_not_read_are_passed_over(folder):
    """Garbage, blank lines and another tree's events between and after the events change nothing."""
    log = turn()
    folder.extend(log[:2])
    with open(path(folder), "ab") as file:
        file.write(
            b"garbage\n\n5\n[]\n\xff\xfe\n   \n" + b"[" * 5000 + b"\n" + rules.line(turn(OTHER)[0])
        )

    assert folder.read(TREE) == log[:2]
    assert folder.append(log[1]) == "duplicate"
    assert folder.extend(log[2:]) == "kept"
    assert folder.read(TREE, rules.position(log[0])) == log[1:]


@pytest.mark.parametrize("cut", [1, 40, 250])
def test_a_torn_line_is_no_event_and_the_log_never_shrinks(folder, cut):
    """A line that a dead writer left unended is not read; the next writer blanks it and goes on."""
    log = turn()
    folder.extend(log[:2])
    torn = rules.line(log[2])[:-1][:cut]
    with open(path(folder), "ab") as file:
        file.write(torn)
    before = content(path(folder))
    assert folder.read(TREE) == log[:2]

    assert folder.append(log[2]) == "kept"

    assert folder.read(TREE) == log[:3]
    whole = before[: -len(torn)]
    assert content(path(folder)) == whole + b" " * len(torn) + b"\n" + rules.line(log[2])


def test_a_write_that_was_cut_short_is_made_again(tmp_path):
    """When the disk is full in the middle of a batch, sending it again completes it."""
    calls = Failing()
    folder = FolderEvents(tmp_path, calls=calls)
    log = turn()
    folder.append(log[0])
    calls.fail["write"] = [len(rules.line(log[1])) + 10, error(28)]

    with pytest.raises(StoreFull):
        folder.extend(log[1:])
    assert folder.read(TREE) == log[:2]
    assert folder.extend(log[1:]) == "kept"
    assert folder.read(TREE) == log


def test_a_replaced_log_is_read_again(folder, tmp_path):
    """A file that was removed, or put in place of the log, is what is read and added to next."""
    log = turn()
    folder.extend(log[:4])
    other = FolderEvents(tmp_path / "other")
    other.extend(log[:2])
    os.replace(path(other), path(folder))

    assert folder.read(TREE) == log[:2]
    assert code_of(lambda: folder.read(TREE, rules.position(log[3]))) == "event-unknown"
    assert folder.wait(TREE, rules.position(log[3]), 0) is True
    assert folder.append(log[2]) == "kept"
    os.unlink(path(folder))
    assert folder.read(TREE) == []
    assert folder.wait(TREE, rules.position(log[2]), 0) is False
    assert folder.append(log[0]) == "kept"


def test_what_others_added_since_is_seen(folder):
    """Who goes on with a log goes on after what another process added, and reads it for a duplicate."""
    log, other = turn(), FolderEvents(folder.folder)
    for at, event in enumerate(log):
        mine, theirs = (folder, other) if at % 2 else (other, folder)
        assert mine.write([event]) == "kept"
        assert theirs.write([event]) == theirs.append(event) == "duplicate"
    assert folder.read(TREE) == log


def test_an_event_of_a_writer_costs_one_write_and_no_read(tmp_path):
    """Who added to a log last adds the next event without reading it."""
    calls = Recorded()
    folder = FolderEvents(tmp_path, calls=calls)
    log = turn()
    folder.write(log[:2])
    calls.calls.clear()

    folder.write(log[2:3])

    assert [call[0] for call in calls.calls] == ["write"]


def test_a_removed_folder_of_events_ends_its_logs(folder):
    """Who goes on with a log whose folder was removed is refused, and a new log makes the folder anew."""
    log = turn()
    folder.write(log[:2])
    shutil.rmtree(os.path.dirname(path(folder)))
    with pytest.raises(StoreIO):
        folder.write(log[2:3])
    assert code_of(lambda: folder.write(log[2:3])) == "event-gap"
    assert folder.write(log) == "kept"


def test_what_is_remembered_of_logs_is_bounded(folder, monkeypatch):
    """Of more logs than are remembered the oldest are read again, and nothing else is otherwise."""
    monkeypatch.setattr(event_files, "_MOST_ENDS", 3)
    logs = [turn(f"{TREE[:-1]}{number}") for number in range(6)]
    for events in zip(*logs, strict=True):
        for event in events:
            assert folder.write([event]) == "kept"
    assert [folder.read(log[0]["tree"]) for log in logs] == logs


@pytest.mark.parametrize("text", ["", "x", "\xff", " 1\n", "x" * 5000])
def test_a_writer_number_that_does_not_read_is_one(folder, text):
    """What is no number in the writer's file counts as the first writer, as in functai."""
    log = turn()
    folder.append(log[0])
    with open(path(folder, ".writer"), "w", encoding="latin-1") as file:
        file.write(text)

    assert folder.append(log[1]) == "kept"


def test_a_change_waits_for_the_lock_and_a_reader_does_not(folder):
    """While somebody holds the log's lock a change is refused in time, and reading goes on."""
    folder.append(turn()[0])
    short = FolderEvents(folder.folder, lock_timeout_s=0.05)
    with locks.acquire(path(folder, ".lock"), time.monotonic() + 5, create=True):
        for work in (
            lambda: short.append(turn()[1]),
            lambda: short.claim(TREE),
            lambda: short.remove(TREE),
        ):
            with pytest.raises(StoreBusy):
                work()
        assert short.read(TREE) == turn()[:1]
        threads = threading.active_count()
        with pytest.raises(StoreBusy):
            folder.write(turn()[1:2])  # At once, and no thread waits on.
        assert threading.active_count() == threads


@pytest.mark.parametrize("what", THINGS)
@pytest.mark.parametrize("ending", [".jsonl", ".lock", ".writer"])
def test_planted_at_a_file_of_a_log(folder, victim, what, ending):
    """What is no plain file of its own is refused at each name, and never followed."""
    log = turn()
    if ending != ".jsonl":
        folder.append(log[0])
        if os.path.lexists(path(folder, ending)):
            os.unlink(path(folder, ending))
    plant(victim.parent / "trees" / (TREE + ending), what, victim)

    for work in (lambda: folder.append(log[0]), lambda: folder.append(log[1])):
        with pytest.raises(LedgerError):
            work()
    if ending == ".jsonl":
        with pytest.raises(StoreLink):
            folder.read(TREE)
    if what != "folder":
        assert folder.remove(TREE) is True
        assert os.listdir(os.path.dirname(path(folder))) == []


@pytest.mark.parametrize("what", THINGS)
def test_planted_at_the_file_that_becomes_the_writers(folder, victim, what):
    """A claim takes the name of a leftover, follows nothing, and refuses a folder."""
    folder.append(turn()[0])
    plant(victim.parent / "trees" / (TREE + ".writer.tmp"), what, victim)

    if what == "folder":
        with pytest.raises(LedgerError):
            folder.claim(TREE)
    else:
        assert folder.claim(TREE)["writer"] == 2
        assert content(path(folder, ".writer")) == b"2"


@pytest.mark.parametrize("what", [thing for thing in THINGS if thing != "folder"])
def test_planted_at_the_folder(folder, victim, what):
    """A link or a file in place of the folder of events is refused for all work."""
    plant(victim.parent / "trees", what, victim)
    for work in (
        lambda: folder.append(turn()[0]),
        lambda: folder.read(TREE),
        lambda: folder.claim(TREE),
        lambda: folder.remove(TREE),
    ):
        with pytest.raises(StoreLink):
            work()


# -- processes

PRELUDE = """
    from ledger.stores.event_files import FolderEvents
    from tests.records.event_examples import *
    folder = FolderEvents(folder)
    log = turn(pieces=3000)
"""

KILLED = """
    said = open(sys.argv[2], "w")
    for event in log:
        folder.append(event)
        print(event["seq"], file=said, flush=True)
        if event["seq"] == 50:
            say("on its way")
"""


def test_a_writer_killed_in_the_middle_costs_no_event_that_it_was_told_is_kept(folder):
    """Killed while it writes, a process leaves a beginning of its log; another claims it and ends it."""
    said = os.path.join(folder.folder, "said")
    for pause_s in (0.0, 0.01, 0.02):
        process = start(PRELUDE + KILLED, folder.folder, said)
        heard(process)
        time.sleep(pause_s)
        end(process)

        kept = folder.read(TREE)
        told = [int(word) for word in content(said).split()]
        assert kept == turn(pieces=3000)[: len(kept)]
        assert len(kept) >= len(told) > 0
        later = rules.Writer(TREE, "tutor", **folder.claim(TREE))
        folder.append(later.failed({"type": "Killed"}, at=AT))
        assert folder.finished(TREE)
        folder.remove(TREE)


def test_a_process_follows_another(folder):
    """Events that one process writes are read by another as they come, each once, to the last."""
    process = start(PRELUDE + "    for event in log[:200]: folder.append(event)", folder.folder)
    seen: list = []
    try:
        while len(seen) < 200:
            after = rules.position(seen[-1]) if seen else None
            assert folder.wait(TREE, after, 20)
            seen += folder.read(TREE, after)
    finally:
        end(process)
    assert seen == turn(pieces=3000)[:200]


def test_a_claim_of_another_process_fences_this_one(folder):
    """What this process appends is refused once another claimed the log."""
    log = turn()
    folder.extend(log[:2])
    said = run(PRELUDE + "    say(folder.claim(TREE)['writer'])", folder.folder)

    assert said == "2\n"
    assert code_of(lambda: folder.append(log[2])) == "event-conflict"
