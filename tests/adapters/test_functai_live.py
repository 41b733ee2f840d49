"""A functai reader that is open, its cache warm, while we tidy up, append and leave batches void."""

from __future__ import annotations

import json

import pytest
from functai import ConversationError

import ledger
from ledger import errors
from tests.adapters.functai_side import agreed, echo, fresh, ours, ours_says, theirs_says

TORN = b'{"functai_conversation":1,"kind":"entry","at":"2026-01-01T00:00:0'


def log_of(folder):
    """Return the path of the conversation's log."""
    return folder / "conversations" / "alex.jsonl"


def add_bytes(folder, data):
    """Append bytes to the log as a process that dies would leave them."""
    with log_of(folder).open("ab") as file:
        file.write(data)


@pytest.fixture
def own(tmp_path):
    """A conversation of ours with two turns."""
    chat = ledger.open("alex", store=ledger.FolderStore(tmp_path))
    chat.record("one", "1")
    chat.record("two", "2")
    return chat


@pytest.fixture
def live(own, tmp_path):
    """A functai conversation that has read them and stays open; its store keeps what it parsed."""
    chat = echo.conversation("alex", store=fresh(tmp_path))
    assert len(chat.all_turns()) == 2
    return chat


# -- plain appends


def test_it_reads_on(own, live):
    """An open reader sees each turn that we append."""
    for n in range(3):
        own.record(f"more {n}", "m")
        agreed(live, own)


def test_its_conditional_append_is_refused_after_ours(own, live):
    """A functai store that read before our append is told of the conflict, by its own count."""
    count = len(live.store.read("alex"))
    own.record("more", "m")

    with pytest.raises(ConversationError) as caught:
        live.store.append("alex", [], expect=count)
    assert caught.value.code == "store-conflict"
    assert live("and theirs") == "echo and theirs"


# -- torn tails


@pytest.mark.parametrize("size", [1, len(TORN), 100_000])
def test_it_survives_the_cut_of_a_torn_tail(own, live, tmp_path, size):
    """Bytes that a dying writer left after the last line feed are cut by our next append, also when
    they are longer than it; the open reader then reads every record, and appends itself."""
    add_bytes(tmp_path, (TORN * (size // len(TORN) + 1))[:size])
    assert len(live.all_turns()) == 2

    own.record("three", "3")
    said = agreed(live, own)
    assert [turn["inputs"]["message"] for turn in said["all"]] == ["one", "two", "three"]

    live("four")
    own.record("five", "5")
    assert len(agreed(live, own)["turns"]) == 5
    report = own.store.verify("alex")
    assert not report.damaged
    assert (report.torn_bytes, report.set_aside) == (0, ["alex.torn-1"])


def test_a_cut_in_the_middle_of_a_character_changes_nothing(own, live, tmp_path):
    """A tail torn within a UTF-8 sequence is cut like any other."""
    add_bytes(tmp_path, TORN + "é".encode()[:1])
    own.record("three", "3")

    assert len(agreed(live, own)["all"]) == 3


def test_a_torn_tail_that_functai_appends_to_costs_its_record(own, live, tmp_path):
    """functai does not tidy up: its next append runs into the torn bytes. Both then find one
    unreadable line in the place of its first record, keep its place, and go on after it."""
    add_bytes(tmp_path, TORN)
    live.remember("notes", "note", 1)
    live.remember("notes", "note", 2)

    assert [entry["data"] for entry in live.entries("notes", "note")] == [2]
    with pytest.warns(errors.DamageWarning, match="left out: record 6;"):
        assert [entry["data"] for entry in own.entries("notes", "note")] == [2]
    assert own.store.verify("alex").counts["unreadable"] == 1
    own.record("three", "3")
    assert live("four") == "echo four"
    assert len(agreed(live, own)["turns"]) == 4


# -- void batches


def leave_void(folder, lines):
    """Let a process of ours die inside its next append: of the batch of three that starts a turn
    of a new program, only the first lines stand in the log."""

    class Died(BaseException):
        pass

    def program(message: str) -> str:
        raise Died

    path = log_of(folder)
    before = path.read_bytes()
    with pytest.raises(Died):
        ledger.open("alex", program, store=ledger.FolderStore(folder))("void")
    batch = path.read_bytes()[len(before) :].splitlines(keepends=True)[:3]
    assert [b'"1/3"' in batch[0], b'"2/3"' in batch[1], b'"3/3"' in batch[2]] == [True] * 3
    path.write_bytes(before + b"".join(batch[:lines]))
    for events in (folder / "trees").glob(f"{json.loads(batch[1])['turn']}.*"):
        events.unlink()  # It died before it ran.


def test_it_shows_the_turn_of_a_void_batch_as_interrupted(own, live, tmp_path):
    """Two lines of three: we skip the turn; functai shows it, interrupted, without lease or end, and
    as its head until the next turn. `verify` lists both lines as void."""
    leave_void(tmp_path, 2)

    void = live.all_turns()[-1]
    assert (void.inputs, void.state, void.outputs, void.saw[-1].id) == (
        {"message": "void"},
        "interrupted",
        {},
        own.turn(2).id,
    )
    assert live.head.id == void.id
    assert own.head == own.turn(2)
    assert len(own.all_turns()) == 2
    assert own.store.verify("alex").counts == {"sealed": 5, "void": 2}


@pytest.mark.parametrize("lines", [1, 2])
def test_it_reads_what_we_append_after_a_void_batch(own, live, tmp_path, lines):
    """After our next append, an open reader that saw the void lines and a fresh one agree with us on
    all other turns, on the head and on every position."""
    leave_void(tmp_path, lines)
    assert len(live.all_turns()) == 1 + lines
    own.record("three", "3")
    own.record("four", "4")

    said = ours_says(own)
    for theirs in (live, echo.conversation("alex", store=fresh(tmp_path))):
        shown = theirs_says(theirs)
        kept = [turn for turn in shown["all"] if turn["inputs"] != {"message": "void"}]
        assert (shown["head"], shown["turns"], kept) == (said["head"], said["turns"], said["all"])
        assert len(shown["all"]) == 3 + lines
    records = own.store.read("alex")
    assert [r["seq"] for r in live.store.read("alex")] == [r["seq"] for r in records]
    assert [r["kind"] for r in records].count("unreadable") == lines


def test_it_sends_after_a_void_batch(own, live, tmp_path):
    """functai's next turn continues from the done turn before the void one; both agree on it."""
    leave_void(tmp_path, 2)
    assert live("three") == "echo three"

    turn = own.turns[-1]
    assert (turn.result, turn.parent) == ("echo three", own.turn(2))
    assert own.head == turn
    report = own.store.verify("alex")
    assert report.counts["void"] == 2
    assert not report.damaged


def test_a_void_turn_that_functai_resumes_is_its_own(own, live, tmp_path):
    """functai may resume the turn and show it done. We keep skipping it, and what it then adds
    below it is, with us, a line of its own; the turns before and after are the same in both."""
    leave_void(tmp_path, 2)
    assert live.all_turns()[-1].resume() == "echo void"
    assert live.all_turns()[-1].state == "done"
    assert len(own.all_turns()) == 2

    live("below")
    below = own.turn(3)
    assert (below.result, below.parent) == ("echo below", None)
    assert len(live.turns) == 4
    assert own.continue_from(2).record("after", "a").parent.ordinal == 2
    assert live.all_turns()[-1].parent == own.turn(2).id


def test_whole_batches_after_void_ones_are_read_by_both(own, live, tmp_path):
    """Void batches one after the other, each with a whole one behind it, cost nothing else."""
    for n in range(3):
        leave_void(tmp_path, 2)
        own.record(f"after {n}", "a")
        live(f"theirs {n}")

    said = ours_says(own)
    kept = [t for t in theirs_says(live)["all"] if t["inputs"] != {"message": "void"}]
    assert kept == said["all"]
    assert len(said["turns"]) == 8
    assert own.store.verify("alex").counts["void"] == 6


# -- damage and deletion


def test_an_altered_line_of_ours_is_trusted_by_functai_alone(own, live, tmp_path):
    """functai checks no seals: an altered line is data to a fresh reader of its, and unreadable to
    us, who warn once; an open one keeps what it read. The places of all others stay."""
    path = log_of(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"message":"two"', b'"message":"TWO"'))

    assert [t.inputs["message"] for t in live.all_turns()] == ["one", "two"]
    reopened = echo.conversation("alex", store=fresh(tmp_path))
    assert [t.inputs["message"] for t in reopened.all_turns()] == ["one", "TWO"]
    fresh_own = ledger.open("alex", store=ledger.FolderStore(tmp_path))
    with pytest.warns(errors.DamageWarning, match="record 4;"):
        assert [t.inputs["message"] for t in fresh_own.all_turns()] == ["one"]
    assert own.store.verify("alex").damaged


def test_a_record_of_functai_that_is_no_json_is_unreadable_here(own, live):
    """functai writes NaN, which is no JSON: the line keeps its place, its record is functai's alone."""
    live.store.append(
        "alex",
        [
            {
                "functai_conversation": 1,
                "kind": "entry",
                "at": "2026-01-01T00:00:00.000000Z",
                "plugin": "notes",
                "entry": "note",
                "data": value,
            }
            for value in (float("nan"), 2)
        ],
    )

    assert len(live.entries("notes", "note")) == 2
    with pytest.warns(errors.DamageWarning, match="left out: record 6;"):
        assert [entry["data"] for entry in own.entries("notes", "note")] == [2]
    assert own.store.verify("alex").counts == {"sealed": 5, "unreadable": 1, "unsealed": 1}
    own.record("three", "3")
    assert len(agreed(live, own)["all"]) == 3


def test_it_keeps_on_after_our_delete_only_when_opened_anew(own, tmp_path, live):
    """After we delete the conversation, an open functai conversation still shows what it read; one
    that is opened anew finds nothing."""
    assert own.store.delete("alex")

    assert len(live.all_turns()) == 2
    assert echo.conversation("alex", store=fresh(tmp_path)).all_turns() == []


def test_a_program_of_ours_and_one_of_theirs_take_turns_through_all_of_it(own, live, tmp_path):
    """Torn tails and void batches between turns of both libraries: one line of all that was answered."""
    mine = ledger.open("alex", ours, store=own.store)
    for n in range(3):
        mine(f"ours {n}")
        leave_void(tmp_path, 2)
        live(f"theirs {n}")
        add_bytes(tmp_path, TORN)
    mine("last")

    messages = [turn.inputs["message"] for turn in mine.turns]
    assert messages == [
        *("one", "two", "ours 0", "theirs 0", "ours 1", "theirs 1", "ours 2", "theirs 2", "last"),
    ]
    assert [turn.inputs["message"] for turn in live.turns] == messages
    assert [t.id for t in live.all_turns() if t.state == "done"] == [
        turn.id for turn in mine.all_turns()
    ]


def test_it_follows_a_turn_of_ours_that_was_over_at_once(tmp_path):
    """Every turn that ran has events, to its end: functai's reader waits for that."""

    def upper(message: str) -> str:
        return message.upper()

    chat = ledger.open("alex", upper, store=ledger.FolderStore(tmp_path))
    assert chat("x") == "X"
    turn = echo.conversation("alex", store=fresh(tmp_path)).all_turns()[0]
    assert [event["kind"] for event in turn.events(timeout=5)] == ["started", "done"]
