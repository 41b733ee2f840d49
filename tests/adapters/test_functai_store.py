"""Stores of ours as functai's `store=`."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from functai import ConversationError, module
from functai.stores import store_for

import ledger
from ledger.adapters import functai as adapter
from tests.adapters.functai_side import Scripted, agreed, echo, fresh, judge_of, ours, tutor_of

APPENDER = Path(__file__).with_name("functai_appender.py")


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    return ledger.MemoryStore() if request.param == "memory" else ledger.FolderStore(tmp_path)


@pytest.fixture
def model():
    """A scripted model."""
    return Scripted()


# -- whole conversations


def test_a_whole_conversation_of_functai_in_a_store_of_ours(store, model):
    """Turns, branches, a merge, a failed turn, a moved head and an entry: both say the same."""
    chat = tutor_of(model).conversation("alex", store=adapter.store(store))
    chat("one")
    first, second = chat.turns[0], chat.predict("two")
    beside = chat.continue_from(first)
    beside("two again")
    merged = chat.continue_from(first).merge([second.call_id, beside.turns[-1].id], judge_of(model))
    model.fails = ValueError("told to fail")
    with pytest.raises(ValueError, match="told to fail"):
        chat("fail")
    chat.remember("notes", "note", {"n": 1})
    chat.head = merged
    chat("three")

    own = ledger.open("alex", store=store)
    said = agreed(chat, own)
    assert (len(said["all"]), len(said["turns"])) == (6, 3)
    assert own.heads() == [own.turn(6)]
    assert store.verify("alex").counts == {"sealed": len(store.read("alex"))}


def test_both_go_on_in_one_store(store, model):
    """Turns of functai through the adapter and of ours, one after the other, are one conversation."""
    theirs = tutor_of(model).conversation("alex", store=adapter.store(store))
    own = ledger.open("alex", ours, store=store)
    theirs("one")
    own("two")
    theirs("three")
    own("four")

    said = agreed(echo.conversation("alex", store=adapter.store(store)), own)
    assert [turn["result"] for turn in said["all"]] == [
        "reply 1",
        "ours two",
        "reply 2",
        "ours four",
    ]
    assert said["all"][-1]["saw"] == [turn["id"] for turn in said["all"][:-1]]


def test_functai_takes_it_as_a_store(store):
    """functai's own check of `store=` accepts it, with our durability and persistence."""
    given = adapter.store(store)

    assert store_for(given) is given
    assert (given.durability, given.persistent) == (store.durability, store.persistent)
    assert given.conversations() == []
    assert repr(store) in repr(given)


def test_functai_expands_no_long_chain_of_what_was_seen(model):
    """functai follows `saw` by recursion: of a line of 1,100 turns it shows the last turn's own entry
    only. What we show, and what its next turn is shown, is whole."""
    store = ledger.MemoryStore()
    own = ledger.open("alex", store=store)
    for n in range(1100):
        own.record(f"{n}", "x")
    chat = tutor_of(model).conversation("alex", store=adapter.store(store))

    assert (len(chat.turns[-1].saw), len(own.turns[-1].saw)) == (1, 1099)
    chat("next")
    assert len(model.requests[0].messages) == 2201
    assert len(own.turns[-1].saw) == 1100


# -- at once


def test_two_threads_sending_at_once_make_one_line(store):
    """Two conversations of functai over one store queue behind each other: nothing is lost."""
    chats = [echo.conversation("alex", store=adapter.store(store)) for _ in range(2)]
    failures = []

    def send(chat, name):
        try:
            for i in range(4):
                chat(f"{name}{i}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=pair) for pair in zip(chats, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    turns = ledger.open("alex", store=store).turns
    assert sorted(turn.inputs["message"] for turn in turns) == sorted(
        f"{name}{i}" for name in "ab" for i in range(4)
    )


class Contended(ledger.MemoryStore):
    """A store in which somebody else appends just before each of the first conditional appends."""

    def __init__(self, times):
        super().__init__()
        self.left = times
        self.refused = 0

    def append(self, conversation, records, *, expect=None):
        if expect is not None and self.left:
            self.left -= 1
            ledger.open(conversation, store=self).keep_entry("other", "note", self.left)
        try:
            return super().append(conversation, records, expect=expect)
        except ledger.LedgerError:
            self.refused += 1
            raise


def test_a_conflict_makes_functai_read_again_and_retry():
    """A conditional append that others overtook three times is made the fourth time; once."""
    store = Contended(3)
    chat = echo.conversation("alex", store=adapter.store(store))

    assert chat("hi") == "echo hi"
    assert (store.refused, len(chat.all_turns())) == (3, 1)


def test_many_processes_append_through_the_adapter(tmp_path):
    """Three processes of functai over our folder store, 5 turns each: one line, each turn once."""
    code = (
        "import sys, ledger\n"
        "from functai import module\n"
        "from ledger.adapters.functai import store\n"
        "@module\n"
        "def echo(message: str) -> str:\n"
        "    return message\n"
        "chat = echo.conversation('alex', store=store(ledger.FolderStore(sys.argv[1])))\n"
        "for i in range(5):\n"
        "    chat(f'{sys.argv[2]}{i}')\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, tmp_path, name]) for name in "abc"]
    assert [process.wait(120) for process in processes] == [0, 0, 0]

    turns = ledger.open("alex", store=tmp_path).turns
    assert sorted(turn.inputs["message"] for turn in turns) == sorted(
        f"{name}{i}" for name in "abc" for i in range(5)
    )
    assert {turn.state for turn in turns} == {"done"}
    report = ledger.FolderStore(tmp_path).verify("alex")
    assert report.counts == {"sealed": report.records}


# -- errors


def test_a_conflict_is_functai_s_error_with_our_code(store):
    """An append at the wrong position raises functai's class, its code and ours."""
    given = adapter.store(store)
    with pytest.raises(ConversationError) as caught:
        given.append("alex", [], expect=3)

    assert caught.value.code == "store-conflict"
    assert caught.value.__cause__.code == "store-conflict"


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (lambda s: s.append("../x", []), "conversation-id"),
        (lambda s: s.read("../x"), "conversation-id"),
        (lambda s: s.wait("../x", 0, 0), "conversation-id"),
        (lambda s: s.read("alex", 7), "store-gone"),
        (lambda s: s.append("alex", [{"kind": "turn"}]), "record-invalid"),
    ],
)
def test_every_refusal_of_ours_keeps_its_code(store, work, code):
    """Whatever method refuses, functai's error carries the code, and says where."""
    with pytest.raises(ConversationError) as caught:
        work(adapter.store(store))

    assert caught.value.code == code
    assert str(caught.value) == str(caught.value.__cause__)


def test_an_input_that_cannot_be_kept_exactly_is_refused_before_anything(store):
    """A value we would not give back as it was is refused with its path; no turn begins."""
    chat = echo.conversation("alex", store=adapter.store(store))

    with pytest.raises(ConversationError, match=r"inputs\.message") as caught:
        chat("half a pair: \ud800")

    assert caught.value.code == "record-invalid"
    assert chat.all_turns() == []


def test_an_answer_that_cannot_be_kept_exactly_fails_the_turn(store):
    """The caller has functai's answer (and, once per process, its warning); the turn is `failed` and
    says why, so the next send does not wait for it."""

    @module
    def big(message: str) -> int:
        return 2**60 if message == "big" else 1

    chat = big.conversation("alex", store=adapter.store(store))
    chat("small")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert chat("big") == 2**60

    turn = chat.turns[-1]
    last = list(turn.events(timeout=20))[-1]
    assert (last["kind"], last["content"]) == ("done", False)
    assert (turn.state, turn.error["code"]) == ("failed", "record-invalid")
    assert "2^53" in turn.error["message"]
    assert chat("small again") == 1
    said = agreed(chat, ledger.open("alex", store=store))
    assert [t["state"] for t in said["all"]] == ["done", "failed", "done"]


def test_a_planted_link_is_refused_with_its_code(tmp_path):
    """functai over our folder store follows no link in place of a log."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"")
    chat = echo.conversation("alex", store=adapter.store(ledger.FolderStore(tmp_path / "chats")))
    chat("hi")
    (tmp_path / "chats" / "conversations" / "ben.jsonl").symlink_to(elsewhere)

    with pytest.raises(ConversationError) as caught:
        echo.conversation("ben", store=adapter.store(ledger.FolderStore(tmp_path / "chats")))("hi")

    assert caught.value.code == "store-link"
    assert elsewhere.read_bytes() == b""


@pytest.mark.filterwarnings("ignore::UserWarning")  # Its observer may be at work still, and warns.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_conversation_made_anew_is_not_mixed_with_the_old_one(store):
    """After delete and re-create, an open functai conversation is told `store-gone`."""
    chat = echo.conversation("alex", store=adapter.store(store))
    chat("old")
    chat("old again")
    store.delete("alex")
    ledger.open("alex", store=store).record("new", "n")

    with pytest.raises(ConversationError) as caught:
        chat("more")
    assert caught.value.code == "store-gone"
    assert len(echo.conversation("alex", store=adapter.store(store)).all_turns()) == 1


# -- the events of a turn


def test_a_turn_is_watched_while_it_runs(store, model):
    """Another view over the store is given the events of a running turn, and its end."""
    model.go.clear()
    stream = tutor_of(model).conversation("alex", store=adapter.store(store)).stream("hi")
    assert model.entered.wait(20)
    watching = tutor_of(Scripted()).conversation("alex", store=adapter.store(store))
    events = watching.turns[0].events(timeout=20)

    first = next(events)
    assert (first["kind"], first["call"], first["inputs"]) == (
        "started",
        stream.turn_id,
        {"message": "hi"},
    )
    model.go.set()
    rest = list(events)

    assert (rest[-1]["kind"], rest[-1]["value"]) == ("done", "reply 1")
    assert stream.result == "reply 1"


def test_an_ended_turn_gives_its_events_again(store, model):
    """Opened later, a turn gives its whole log, and says which calls it made."""
    adapted = adapter.store(store)
    tutor_of(model).conversation("alex", store=adapted)("hi")
    turn = tutor_of(model).conversation("alex", store=adapter.store(store)).turns[0]

    kinds = [event["kind"] for event in turn.events(timeout=20)]
    assert (kinds[0], kinds[-1]) == ("started", "done")
    assert [(call["function"], call["ended"]) for call in turn.calls()] == [("tutor", "done")]


def test_events_of_a_folder_lie_where_functai_looks_for_them(tmp_path, model):
    """functai's own store on the same folder gives the events kept through ours."""
    chat = tutor_of(model).conversation("alex", store=adapter.store(ledger.FolderStore(tmp_path)))
    chat("hi")
    turn = chat.turns[0]

    own_store = tutor_of(model).conversation("alex", store=fresh(tmp_path))
    assert list(own_store.turns[0].events(timeout=20)) == list(turn.events(timeout=20))
    assert (tmp_path / "trees" / f"{turn.id}.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_turn_of_ours_has_no_events(store):
    """A turn that we made has no event log: functai waits its time out and gives none."""
    ledger.open("alex", store=store).record("hi", "hello")
    turn = echo.conversation("alex", store=adapter.store(store)).turns[0]

    assert list(turn.events(timeout=0)) == []
    assert turn.calls() == []


def test_making_the_adapter_makes_nothing(tmp_path):
    """A store on a folder that is not there leaves it so until the first turn."""
    folder = tmp_path / "chats"
    given = adapter.store(ledger.FolderStore(folder))
    chat = echo.conversation("alex", store=given)
    assert (chat.turns, given.conversations()) == ([], [])
    assert not folder.exists()

    chat("hi")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_where_no_events_can_be_kept_there_are_none(tmp_path):
    """A file in the place of `trees` costs the events, not the turns."""
    (tmp_path / "trees").write_bytes(b"")
    chat = echo.conversation("alex", store=adapter.store(ledger.FolderStore(tmp_path)))

    assert chat("hi") == "echo hi"
    assert list(chat.turns[0].events(timeout=0)) == []


# -- both on one folder from many processes


def test_processes_of_both_libraries_append_to_one_conversation(tmp_path):
    """Three processes of functai and three of ours, 100 conditional appends each: nothing is lost or
    doubled, both read every line alike, and only functai's lines are unsealed; none is damaged."""
    appends = 100
    writers = [(side, number) for side in ("functai", "ours") for number in range(3)]
    processes = [
        subprocess.Popen(
            [sys.executable, APPENDER, side, f"{side}-{number}", tmp_path, str(appends)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for side, number in writers
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 6
    conflicts = [int(output) for output in outputs]

    store = ledger.FolderStore(tmp_path)
    records = store.read("alex")
    theirs = fresh(tmp_path).read("alex")
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    for record in theirs:
        record.pop("ledger", None)
    assert theirs == records

    said = [(record["plugin"], record["data"]["n"], record["data"]["part"]) for record in records]
    expected = [
        (f"{side}-{number}", n, part)
        for side, number in writers
        for n in range(appends)
        for part in range(1 + n % 3)
    ]
    assert sorted(said) == sorted(expected)
    for writer, own in itertools.groupby(sorted(enumerate(said), key=by_writer), key=by_writer):
        in_order = [(place, n, part) for place, (_, n, part) in own]
        assert in_order == sorted(in_order, key=lambda each: each[1:]), writer
    for (_, n, part), (_, m, following) in itertools.pairwise(said):
        assert part == n % 3 or (m, following) == (n, part + 1)

    report = store.verify("alex")
    of_functai = [r["seq"] for r in records if r["plugin"].startswith("functai")]
    assert report.counts == {
        "sealed": len(records) - len(of_functai),
        "unsealed": len(of_functai),
    }
    assert [finding.seq for finding in report.findings] == of_functai[: len(report.findings)]
    assert not report.damaged
    assert (report.torn_bytes, report.set_aside) == (0, [])
    assert sum(conflicts) > 0


def by_writer(placed):
    """Return who wrote a record."""
    return placed[1][0]


def test_the_store_of_a_process_that_waits_sees_the_other_s_appends(tmp_path):
    """`wait` of either library wakes for a record of the other."""
    own, theirs = ledger.FolderStore(tmp_path), fresh(tmp_path)
    ledger.open("alex", store=own).record("one", "1")
    count = len(theirs.read("alex"))
    assert own.wait("alex", count, 0) is False

    module_chat = module(answer).conversation("alex", store=theirs)
    thread = threading.Thread(target=module_chat, args=("two",))
    thread.start()
    assert own.wait("alex", count, 20) is True
    thread.join()

    count = len(theirs.read("alex"))
    thread = threading.Thread(target=ledger.open("alex", store=own).record, args=("three", "3"))
    thread.start()
    theirs.wait("alex", count, 20)
    thread.join()
    assert len(theirs.read("alex")) == count + 2


def answer(message: str) -> str:
    """Answer with what was asked."""
    return message
