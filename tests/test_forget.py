"""Forgetting a turn and deleting a conversation, by the public verbs; other readers of the same file."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import functai.stores
import pytest
from functai import module

import ledger
from ledger import errors, merging
from ledger.conversation import Conversation
from ledger.records import kinds
from ledger.sources.importing import import_conversations
from ledger.turns.log import Log
from ledger.turns.programs import Program
from ledger.turns.view import View
from tests.worlds import FakeWorld

CANARY = "canary-9K"
ROOT = Path(__file__).parent.parent


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    return ledger.MemoryStore() if request.param == "memory" else ledger.FolderStore(tmp_path)


@pytest.fixture
def chat(store):
    """A conversation of four turns: 1, 2 (the canary), 3 below it, 4 beside 3."""
    chat = ledger.open("alex", store=store)
    chat.record("one", "1")
    second = chat.record(f"two {CANARY}", f"2 {CANARY}", model="m-canary-9K")
    chat.record("three", "3")
    chat.continue_from(second).record("four", "4")
    return chat


def leaks(folder: Path) -> list[str]:
    """The files of a folder in which the canary stands."""
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and CANARY.encode() in path.read_bytes()
    ]


def opened(store: Any, program: Any, world: FakeWorld) -> Conversation:
    """A conversation in a world of the test's."""
    return Conversation(Log(store, "alex"), View("alex", Program(program), world=world))


# -- who has it open


def shown(message: str) -> str:
    """Say what was shown."""
    return " ".join(row["message"] for row in ledger.current().earlier())


def test_a_view_that_is_open_forgets_with_the_others(chat, store):
    """It reads the turn as erased, and its next turn is not shown it: nothing comes back to the disk."""
    open_before = ledger.open("alex", shown, store=store).continue_from(3)
    turn = open_before.turn(2)
    assert CANARY in turn.result
    chat.forget(2)

    assert open_before("go on") == "one three"
    assert turn.erased
    assert [seen.ordinal for seen in open_before.head.saw] == [1, 3]
    assert CANARY not in str(store.read("alex"))


def test_a_turn_forgotten_by_another_process_is_forgotten_here(tmp_path):
    """The command line forgets; a process that has the conversation open shows nothing of it any more."""
    store = ledger.FolderStore(tmp_path / "s")
    chat = ledger.open("alex", shown, store=store)
    chat.record("one", "1")
    chat.record(f"two {CANARY}", "2")
    chat.record("three", "3")
    command = [
        sys.executable,
        "-m",
        "ledger.cli",
        "--store",
        str(tmp_path / "s"),
        "forget",
        "alex",
        "2",
        "--yes",
    ]
    subprocess.run(command, check=True, capture_output=True)

    assert chat("go on") == "one three"
    assert chat.turn(2).erased
    assert leaks(tmp_path) == []


# -- the turn


def test_the_turn_keeps_its_place_and_says_nothing(chat):
    """A forgotten turn is `abandoned`, empty, and stands where it stood; its children stay."""
    before = [(t.id, t.parent.id if t.parent else None) for t in chat.all_turns()]

    chat.forget(2)

    turn = chat.turn(2)
    assert (turn.state, turn.erased) == ("abandoned", True)
    assert (turn.inputs, turn.outputs, turn.result, turn.messages) == ({}, {}, None, [])
    assert (turn.error, turn.model, turn.usage, turn.request_id) == (None, None, {}, None)
    assert [child.ordinal for child in turn.children] == [3, 4]
    assert [(t.id, t.parent.id if t.parent else None) for t in chat.all_turns()] == before
    assert [t.ordinal for t in chat.turns] == [1, 2, 3]
    assert [t.ordinal for t in chat.heads()] == [4, 3]
    assert CANARY not in repr(turn)


def test_the_conversation_goes_on(chat):
    """Later turns are shown what is left, and go on from where the view stood."""
    chat.forget(2)
    turn = chat.record("five", "5")

    assert turn.parent == chat.turn(3)
    assert [t.ordinal for t in turn.saw] == [1, 3]
    assert turn.parent.parent == chat.turn(2)


def test_forgetting_the_turn_a_view_stands_on(chat):
    """After the last turn was forgotten the next one continues its nearest ancestor that is done."""
    chat.forget(3)

    turn = chat.record("five", "5")
    assert turn.parent == chat.turn(2)


def test_the_tree_and_the_lineage_say_erased(chat):
    """The drawing marks the turn, and lineage says that it, or what an answer rests on, was erased."""
    chat.forget(2)

    assert "[erased]" in str(chat.tree()).splitlines()[2]
    assert CANARY not in str(chat.tree())
    assert "erased" in chat.lineage(2).explain().splitlines()[0]
    assert "erased since: turn 2" in chat.lineage(3).explain()


def test_the_receipt_says_what_went_and_what_is_not_promised(chat):
    """Records by kind, entries, merges that keep a copy, and turns it was shown to are named."""
    second = chat.turn(2)
    chat.keep_entry("notes", "summary", {"of": [second.id], "text": CANARY})
    chat.keep_entry("notes", "rating", CANARY, turn=second)
    merged = chat.merge([2, 3], merging.pick(chat.turn(3)))

    receipt = chat.forget(2)

    assert receipt.erased.records == {"turn": 1, "ended": 1, "entry": 2}
    assert receipt.summaries == ["notes/summary", "notes/rating"]
    assert receipt.merges == [merged.id]
    assert receipt.shown_to == [chat.turn(3).id, chat.turn(4).id]
    assert receipt.erased.size_bytes > 4 * len(CANARY)
    text = str(receipt)
    assert CANARY not in text
    for said in ("1 turn", "Backups", f"own copy: {merged.id}", "may repeat it"):
        assert said in text
    assert json.loads(json.dumps(receipt.to_dict()))["turn"] == second.id
    assert merged.inputs == {"message": f"two {CANARY}"}
    chat.forget(merged)
    assert chat.entries("notes", "summary") == []
    assert CANARY.encode() not in chat.store.raw("alex")


def test_a_forgotten_request_is_free_again():
    """Nothing tells that it was answered: sent again it runs anew. The receipt says so, once."""
    calls = []

    def pay(message: str) -> str:
        calls.append(message)
        return "paid"

    chat = ledger.open("alex", pay, store=ledger.MemoryStore())
    chat("one")
    turn = chat.send("pay", request_id="job-1")

    assert "request id" not in str(chat.forget(1))
    assert "Its request id is free" in str(chat.forget(turn))
    assert "request id" not in str(chat.forget(turn))
    assert chat.send("pay", request_id="job-1") != turn
    assert calls == ["one", "pay", "pay"]


def test_forgetting_again(chat):
    """Forgetting again is no error, and takes what was added since."""
    chat.forget(2)
    assert not chat.forget(2).erased

    chat.keep_entry("notes", "rating", CANARY, turn=2)
    assert chat.forget(2).erased.records == {"entry": 1}


def test_an_unknown_turn(chat):
    """A turn that is not there is refused by name."""
    with pytest.raises(errors.TurnUnknown):
        chat.forget("nothing")


def test_a_running_turn_is_refused_and_an_interrupted_one_is_ended(store):
    """A running turn refuses; once its lease ran out it is ended `abandoned` and forgotten."""
    world = FakeWorld()

    def program(message: str) -> str:
        own.keep_entry("notes", "inside", 1)
        with pytest.raises(errors.TurnState) as caught:
            own.forget(1)
        assert caught.value.state == "running"
        raise SystemError

    own = opened(store, program, world)
    with pytest.raises(SystemError):
        own(f"fails {CANARY}")
    sent = [kinds.new("turn", "2026-01-01T00:00:00.000000Z", turn=world.turn_id(), parent=None)]
    sent[0] |= {"program": "sha256:" + "a" * 64, "inputs": {"message": CANARY}}
    until = "2026-01-01T00:00:30.000000Z"
    sent.append(kinds.new("lease", until, turn=sent[0]["turn"], holder="h", until=until, attempt=2))
    store.append("alex", sent)
    with pytest.raises(errors.TurnState):
        own.forget(2)
    world.pass_time(31)
    assert own.turn(2).state == "interrupted"

    receipt = own.forget(2)
    own.forget(1)

    assert receipt.erased.records == {"turn": 1, "lease": 1}
    ended = [r for r in store.read("alex") if r["kind"] == "ended"]
    assert (ended[-1]["state"], ended[-1]["attempt"]) == ("abandoned", 2)
    assert (own.turn(2).state, own.turn(2).erased) == ("abandoned", True)
    assert CANARY.encode() not in store.raw("alex")


def test_a_waiting_turn_is_refused(store):
    """A turn that waits for a person is refused; nothing is appended or erased."""
    turn = FakeWorld().turn_id()
    at = "2026-01-01T00:00:00.000000Z"
    question = {"call": turn, "invocation": 1, "id": "1", "name": "pay", "path": "p", "site": "p"}
    sent = kinds.new("turn", at, turn=turn, parent=None, program="p", inputs={"message": "x"})
    waits = kinds.new("waiting", at, turn=turn, approvals=[question], attempt=1)
    store.append("alex", [sent, waits])
    before = store.raw("alex")

    with pytest.raises(errors.TurnState) as caught:
        ledger.open("alex", store=store).forget(turn)

    assert (caught.value.state, store.raw("alex")) == ("waiting", before)


def test_a_store_that_cannot_erase(store):
    """A store with only the two methods is named as what cannot do it, and nothing is appended."""

    class Two:
        append, read = store.append, store.read

    chat = ledger.open("alex", store=Two())
    chat.record("one", "1")
    before = store.raw("alex")

    with pytest.raises(errors.StoreUnsupported) as caught:
        chat.forget(1)

    assert (caught.value.store, store.raw("alex")) == ("Two", before)


def test_others_that_append_meanwhile(store):
    """A turn is forgotten also when the log grew between the decision and the erasure."""
    chat = ledger.open("alex", store=store)
    chat.record("one", CANARY)
    erase = store.erase
    late = [lambda: ledger.open("alex", store=store).record("late", "x")]

    class Slow:
        append, read, scan = store.append, store.read, store.scan

        def erase(self, *args: Any, **keys: Any) -> Any:
            if late:
                late.pop()()
            return erase(*args, **keys)

    slow = ledger.open("alex", store=Slow())
    assert slow.forget(1).shown_to == [chat.turn(2).id]
    assert chat.turn(2).result == "x"
    assert CANARY.encode() not in store.raw("alex")


# -- other readers of ours


def test_an_open_conversation_notices_that_record_1_went(tmp_path):
    """Where record 1 was the turn's, an open conversation reads anew, and its next turn is kept."""
    program = {"version": "v", "name": "p", "fields": [], "interface": {}}
    turn, at = FakeWorld().turn_id(), "2026-01-01T00:00:00.000000Z"
    store = ledger.FolderStore(tmp_path)
    sent = kinds.new("turn", at, turn=turn, parent=None, program="v", inputs={"message": CANARY})
    end = kinds.new("ended", at, turn=turn, state="done", outputs={"result": CANARY})
    store.append("alex", [sent, kinds.new("program", at, **program), end])
    live = ledger.open("alex", store=ledger.FolderStore(tmp_path))
    assert live.turn(1).result == CANARY

    ledger.open("alex", store=store).forget(1)

    assert live.record("next", "n").parent is None
    assert (live.turn(1).inputs, live.turn(1).erased) == ({}, True)
    assert [t.ordinal for t in live.all_turns()] == [1, 2]


def test_an_open_conversation_goes_on_after_a_turn_in_the_middle_went(tmp_path):
    """An open conversation appends on after an erasure; opened anew it shows the turn erased."""
    one = ledger.open("alex", store=ledger.FolderStore(tmp_path))
    for n in range(3):
        one.record(f"{CANARY} {n}", "x" * 300)
    two = ledger.open("alex", store=ledger.FolderStore(tmp_path))
    assert len(two.all_turns()) == 3
    one.forget(2)

    two.record("next", "n")
    one.record("last", "n")

    fresh = ledger.open("alex", store=ledger.FolderStore(tmp_path))
    assert [t.erased for t in fresh.all_turns()] == [False, True, False, False, False]
    assert fresh.store.verify("alex").counts == {"sealed": 9, "erased": 2}


# -- T37: a turn in the middle with children and a shared blob


def test_erase_a_turn_in_the_middle(tmp_path):
    """The body is in no file of the folder; the shared blob stays while it is named; the tree, and the
    places and seals that others remembered, still hold."""
    store = ledger.FolderStore(tmp_path)
    chat = ledger.open("alex", store=store)
    chat.record("one", "1")
    own, size = store.blobs.put(f"picture {CANARY}".encode())
    shared, _ = store.blobs.put(b"shared picture")

    def picture(sha256: str, text: str) -> list[dict[str, Any]]:
        named = {"$attachment": {"sha256": sha256, "media_type": "image/png", "size": size}}
        part = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": named}
        return [{"role": "user", "parts": [{"type": "text", "content": text}, part]}]

    both = picture(own, CANARY) + picture(shared, CANARY)
    second = chat.record(CANARY, CANARY, messages=both)
    chat.record("three", "3", messages=picture(shared, "three"))
    chat.continue_from(second).record("four", "4")
    chat.keep_entry("compaction", "summary", {"turns": [second.id], "summary": CANARY})
    other = ledger.open("other", store=store)
    other.record("x", "y", messages=picture(shared, "x"))
    tree = [(t.id, t.parent.id if t.parent else None) for t in chat.all_turns()]
    places = [(line["kind"], line["seq"]) for line in store.read("alex")]
    live = ledger.FolderStore(tmp_path)
    end = live.read("alex").position
    assert set(leaks(tmp_path)) == {"alex.jsonl", own}

    receipt = chat.forget(second)

    assert leaks(tmp_path) == []
    assert (receipt.erased.attachments, receipt.erased.attachments_kept) == ([own], [shared])
    assert store.blobs.get(shared) == b"shared picture"
    assert [(t.id, t.parent.id if t.parent else None) for t in chat.all_turns()] == tree
    erased = [(line["kind"], line["seq"]) for line in store.read("alex")]
    assert erased == [(k if k != "entry" else "erased", seq) for k, seq in places]
    assert store.verify("alex").counts == {"sealed": 7, "erased": 3}
    # A reader that remembered the end of the log verifies it, goes on, and appends where it stood.
    assert live.verify("alex").counts == {"sealed": 7, "erased": 3}
    assert live.append("alex", [kinds.new("stop", "2026-01-01T00:00:00.000000Z", turn="x")]) > end
    assert not live.verify("alex").damaged

    store.delete("alex")
    assert store.blobs.has(shared)
    assert ledger.open("other", store=store).turn(1).messages[0]["parts"][1]["type"] == "blob"
    assert store.delete("other").attachments == [shared]
    assert not store.blobs.has(shared)


# -- copies that come in and go out


def test_an_imported_turn_goes_with_the_source_it_came_in(tmp_path):
    """The raw source that an import keeps holds the turn too; it goes, and importing again does not
    bring the turn back."""
    export = json.loads((ROOT / "docs/tutorial/chatgpt-export.json").read_text())
    text = json.dumps(export).replace("Why is 1/3 bigger than 1/4?", CANARY)
    path = tmp_path / "export.json"
    path.write_text(text)
    store = ledger.FolderStore(tmp_path / "store")
    import_conversations([path], store=store)
    chats = [ledger.open(name, store=store) for name in store.conversations()]
    (chat,) = [c for c in chats if any(CANARY in str(t.inputs) for t in c.all_turns())]
    # The prompt of two answers is recorded in the turns of both.
    asked = [t for t in chat.all_turns() if CANARY in str(t.messages)]

    receipts = [chat.forget(turn) for turn in asked]

    assert len(asked) == 2
    assert receipts[0].summaries == ["ledger/import"]
    assert len(receipts[0].erased.attachments) == 1
    assert leaks(tmp_path / "store") == []
    before = store.raw(chat.id)
    import_conversations([path], store=store)
    assert store.raw(chat.id) == before
    assert leaks(tmp_path / "store") == []


def test_an_older_export_does_not_bring_a_turn_back(tmp_path):
    """Our own JSON from before an erasure adds neither the turn, nor its entries, nor its attachments."""
    store = ledger.FolderStore(tmp_path / "store")
    chat = ledger.open("alex", store=store)
    sha256, size = store.blobs.put(CANARY.encode())
    named = {"$attachment": {"sha256": sha256, "media_type": "text/plain", "size": size}}
    part = {"type": "blob", "modality": "document", "mime_type": "text/plain", "content": named}
    chat.record(CANARY, "1", messages=[{"role": "user", "parts": [part]}])
    chat.keep_entry("notes", "rating", CANARY, turn=1)
    chat.keep_entry("notes", "summary", {"of": chat.turn(1).id, "text": CANARY})
    (tmp_path / "old.json").write_bytes(b"".join([ledger.export_json(chat)]))
    chat.forget(1)

    import_conversations([tmp_path / "old.json"], store=store)

    assert leaks(tmp_path / "store") == []
    assert len(ledger.open("alex", store=store).all_turns()) == 1


# -- the other library's readers, fresh and live


@module
def echo(message: str) -> str:
    """Answer with what was asked."""
    return f"echo {message}"


def said(chat: Any) -> list[tuple[str, str | None, str, dict[str, Any]]]:
    """What a functai conversation says of its turns."""
    return [(t.id, t.parent, t.state, t.inputs) for t in chat.all_turns()]


def test_functai_reads_on_after_an_erasure(tmp_path):
    """A functai conversation that was open, and one opened anew, go on after turns of both were erased;
    the new one shows them empty and `abandoned`."""
    own = ledger.open("alex", store=ledger.FolderStore(tmp_path))
    own.record("one", CANARY)
    live = echo.conversation("alex", store=functai.stores.FolderStore(tmp_path))
    live(f"two {CANARY}")
    own.record("three", "3")
    assert len(live.all_turns()) == 3

    receipt = own.forget(2)
    own.forget(1)

    assert leaks(tmp_path / "conversations") == []
    assert receipt.erased.unsealed
    fresh = echo.conversation("alex", store=functai.stores.FolderStore(tmp_path))
    ids = [t.id for t in own.all_turns()]
    assert said(fresh) == [
        (ids[0], None, "abandoned", {}),
        (ids[1], ids[0], "abandoned", {}),
        (ids[2], ids[1], "done", {"message": "three"}),
    ]
    assert live("four") == "echo four"
    assert fresh("five") == "echo five"
    own.record("six", "6")
    assert [t.id for t in live.all_turns()] == [t.id for t in own.all_turns()]
    assert len(own.all_turns()) == 6
    assert said(fresh) == said(echo.conversation("alex", store=type(fresh.store)(tmp_path)))
    assert not own.store.verify("alex").damaged


def test_functai_reads_on_after_a_deletion(tmp_path):
    """After a conversation was deleted and made anew, a functai store that was open, and one opened
    anew, read the new log, where it is not longer than the old one was."""
    store = ledger.FolderStore(tmp_path)
    own = ledger.open("alex", store=store)
    for n in range(4):
        own.record(f"{CANARY} {n}", "x" * 200)
    live = functai.stores.FolderStore(tmp_path)
    assert len(live.read("alex")) == 9
    assert store.delete("alex")
    own = ledger.open("alex", store=store)
    own.record("new", "n")

    fresh = functai.stores.FolderStore(tmp_path)
    assert live.read("alex") == fresh.read("alex")
    assert echo.conversation("alex", store=live)("next") == "echo next"
    assert [t.inputs["message"] for t in own.all_turns()] == ["new", "next"]
    assert leaks(tmp_path) == []


# -- where it loads


def test_a_memory_store_loads_no_lock_libraries():
    """Erasing in memory needs nothing of what locks files."""
    code = "import ledger, sys; ledger.MemoryStore().erase('c', 'x'); print('portalocker' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
