"""A long conversation is opened at its end; nothing that anybody asks is answered otherwise for it."""

import asyncio
import shutil
import threading
import warnings

import pytest

import ledger
from ledger import last_turns
from ledger.errors import DamageWarning, StoreGone
from ledger.records import kinds
from ledger.stores import log_search
from ledger.stores.sql import SQLStore
from ledger.turns.log import LAST
from ledger.turns.programs import recorded
from tests.testing.sql_places import place_of

AT = "2026-01-01T00:00:00.000000Z"
TURNS = 700
"""So many that their records are more than what is read of a long log at first, several times."""


class Counted:
    """Counts how often a log was read from its start."""

    whole = 0

    def scan(self, conversation, after=0):
        self.whole += not after
        return super().scan(conversation, after)


class Counting(Counted, ledger.FolderStore):
    """A folder that counts."""


class CountingSQL(Counted, SQLStore):
    """A database that counts."""


def echo(message: str) -> str:
    """Say what was shown."""
    return " ".join(row["message"] for row in ledger.current().earlier())


def write(store):
    """Record a line of turns, 1 to 700, the second of which has two branches."""
    program = recorded({"message": ""}, {"result": ""})
    records = [kinds.new("program", AT, **program.keys())]
    for n in range(1, TURNS + 1):
        parent = None if n == 1 else f"turn-{2 if n == 4 else n - 1}"
        named = {"turn": f"turn-{n}", "saw": []}
        records.append(
            kinds.new(
                "turn",
                AT,
                parent=parent,
                program=program.version,
                inputs={"message": f"m{n}"},
                **named,
            )
        )
        outputs = {"result": f"r{n}"}
        records.append(kinds.new("ended", AT, state="done", outputs=outputs, attempt=1, **named))
    for start in range(0, len(records), 51):
        store.append("alex", records[start : start + 51])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long") / "s"
    with ledger.FolderStore(folder) as store:
        write(store)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "s")


@pytest.fixture(params=["folder", "sqlite", "postgres"])
def opened(request, tmp_path):
    """A function that returns a store at one place of each kind, each time another, that counts."""
    place = None if request.param == "folder" else place_of(request.param, tmp_path)
    stores = []

    def another():
        if place is None:
            return Counting(tmp_path / "s")
        stores.append(CountingSQL(place.url, tenant=place.tenant))
        return stores[-1]

    yield another
    for store in stores:
        store.close()


@pytest.fixture
def counting(opened, written):
    """The same where the log is."""
    opened().adopt("alex", ledger.FolderStore(written).raw("alex"))
    return opened


def test_what_the_next_turn_needs_is_read_from_the_end(counting):
    """Under a window, a turn is recorded, or run, or made elsewhere on the branch, and nothing else is read."""
    assert LAST * 4 < TURNS * 2
    store = counting()
    chat = ledger.open("alex", store=store, context=last_turns(10))
    chat.record("m701", "r701")
    assert chat.head.inputs == {"message": "m701"}
    assert chat.head.result == "r701"
    assert chat.head.parent.outputs == {"result": "r700"}
    assert chat.continue_from("turn-690").record("beside", "too").parent.id == "turn-690"
    assert store.whole == 0

    assert [turn.id for turn in chat.head.saw] == [f"turn-{n}" for n in range(691, 701)]
    assert store.whole == 0
    assert (chat.head.ordinal, len(chat.turns), len(chat.all_turns())) == (701, 700, 702)
    assert store.whole == 1


def test_a_receipt_says_all_that_went(counting):
    """Of a log whose end alone was known, too: what went with a turn is looked up before it goes."""
    turn = ledger.open("alex", store=counting()).turn("turn-3")
    turn.rate(1)
    turn.label("odd")
    others = [kinds.new("entry", AT, plugin="x", entry="y", data=n) for n in range(LAST)]
    counting().append("alex", others)
    receipt = ledger.open("alex", store=counting()).forget("turn-3")
    assert receipt.summaries == ["ledger/rating", "ledger/label"]
    assert receipt.erased.records["entry"] == 2


@pytest.mark.parametrize("face", ["blocking", "aio"])
def test_a_program_runs_on_the_end(counting, face):
    """A turn needs no more than the end, also the first of a program that the log does not name yet."""
    store = counting()
    ledger.open("alex", echo, store=store, context=last_turns(3))("first")
    assert store.whole == 0
    store = counting()
    if face == "aio":
        chat = ledger.aio.open("alex", echo, store=store, context=last_turns(3))
        answer = asyncio.run(chat("again"))
    else:
        answer = ledger.open("alex", echo, store=store, context=last_turns(3))("again")

    assert answer == "m699 m700 first"
    assert store.whole == 0


def test_it_says_what_the_whole_log_says(counting):
    """Read from the end and completed, or read from the start: everything is the same."""
    late = ledger.open("alex", store=counting(), context=last_turns(2))
    late.record("m701", "r701")
    late.title = "Long"
    other = ledger.open("alex", store=counting())

    assert late.turn(3).children == []
    for ask in (
        lambda chat: [turn.id for turn in chat.turns],
        lambda chat: [turn.ordinal for turn in chat.heads()],
        lambda chat: chat.title,
        lambda chat: str(chat.tree()),
        lambda chat: chat.lineage(650).explain(),
        lambda chat: chat.turn("turn-4").parent.id,
        lambda chat: [turn.id for turn in chat.turn(701).saw],
    ):
        assert ask(late) == ask(other)


def test_others_append_while_the_rest_is_read(folder):
    """Threads that ask for the beginning, and one that appends, all on one conversation."""
    chat = ledger.open("alex", store=folder, context=last_turns(2))
    start, found = threading.Barrier(4), []

    def ask():
        head = chat.head
        start.wait()
        found.append((chat.turn("turn-1").ordinal, head.ordinal, len(head.parent.parent.children)))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    start.wait()
    for n in range(701, 721):
        chat.record(f"m{n}", f"r{n}")
    for thread in threads:
        thread.join()

    assert found == [(1, 700, 1)] * 3
    assert [turn.ordinal for turn in chat.turns[-20:]] == list(range(701, 721))


def test_a_log_that_was_made_anew_meanwhile(counting):
    """What stood before is gone: who asks for it is told so, once, and goes on with the new log."""
    chat = ledger.open("alex", store=counting())
    turn = chat.head
    other = counting()
    other.delete("alex")
    ledger.open("alex", store=other).record("new", "log")

    with pytest.raises(StoreGone):
        _ = turn.ordinal
    assert [turn.inputs for turn in chat.turns] == [{"message": "new"}]


def test_damage_is_told_of_when_it_is_met(folder):
    """Damage that stands before what was read is told of when that is read."""
    log = folder / "conversations" / "alex.jsonl"
    data = log.read_bytes()
    log.write_bytes(data.replace(b'"m300"', b'"m3O0"', 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chat = ledger.open("alex", store=folder, context=last_turns(2))
        chat.record("m701", "r701")
    with pytest.warns(DamageWarning, match="record 600"):
        assert "turn-300" not in [turn.id for turn in chat.all_turns()]


def test_a_strict_store_reads_all(folder):
    """It refuses damage wherever it is, so it cannot leave the beginning unread."""
    assert ledger.FolderStore(folder, strict=True).scan_ends("alex", 10) is None


@pytest.fixture(scope="module")
def shown_all():
    """The bytes of a log whose turns were shown all of their line, and say so."""
    store = ledger.MemoryStore()
    chat = ledger.open("alex", store=store)
    for n in range(1, TURNS + 1):
        chat.record(f"m{n}", f"r{n}")
    return store.raw("alex")


@pytest.mark.parametrize("forgotten", ["", "here", "elsewhere"])
def test_a_turn_that_is_shown_all_goes_on_from_the_one_before(shown_all, opened, forgotten):
    """What it was shown is said by the turn before, as long as nothing was taken out; else the log is read."""
    if forgotten == "elsewhere":
        memory = ledger.MemoryStore()
        memory.adopt("alex", shown_all)
        ledger.open("alex", store=memory).forget(3)
        opened().adopt("alex", memory.raw("alex"))
    else:
        opened().adopt("alex", shown_all)
    if forgotten == "here":
        ledger.open("alex", store=opened()).forget(3)
    store = opened()
    turn = ledger.open("alex", store=store).record("next", "turn")

    assert store.whole == bool(forgotten)
    line = [n for n in range(1, TURNS + 1) if not (forgotten and n == 3)]
    assert [seen.ordinal for seen in turn.saw] == line
    again = ledger.open("alex", store=opened()).turn(turn.id)
    assert [seen.ordinal for seen in again.saw] == line


def test_what_turns_say_of_themselves_is_not_taken_elsewhere(shown_all, tmp_path):
    """Turns that are brought into another conversation's log do not say it there: their line may be another."""
    source, target = ledger.FolderStore(tmp_path / "a"), ledger.FolderStore(tmp_path / "b")
    source.adopt("alex", shown_all)
    exported = tmp_path / "alex.json"
    exported.write_bytes(ledger.export_json(ledger.open("alex", store=source)))
    ledger.import_conversations(exported, store=target)
    chat = ledger.open("alex", store=target)
    chat.continue_from(5).record("mine", "own")
    ledger.open("alex", store=source).record("theirs", "later")
    exported.write_bytes(ledger.export_json(ledger.open("alex", store=source)))
    ledger.import_conversations(exported, store=target)

    added = [r for r in target.read("alex") if r.get("inputs") == {"message": "theirs"}]
    assert len(added) == 1
    assert "saw_all" not in added[0]


def test_a_request_that_nobody_sent_needs_no_reading(counting):
    """Where the log does not name its id there is no such turn; where it may be spelled otherwise, the log is read."""
    ledger.open("alex", echo, store=counting(), context=last_turns(1))("once", request_id="r-1")
    store = counting()
    chat = ledger.open("alex", echo, store=store, context=last_turns(1))
    assert chat("first", request_id="r-2") == "once"
    assert store.whole == 0

    assert chat.send("first", request_id="r-2").request_id == "r-2"
    odd = ledger.open("alex", echo, store=counting(), context=last_turns(1))
    assert odd.send("odd", request_id="ü/1").id == odd.send("odd", request_id="ü/1").id


def test_a_request_that_was_sent_is_found_in_the_bytes(folder):
    """Without an index too: the turn's own lines are read, each checked; damage among them has all read."""
    program = recorded({"message": ""}, {"result": ""}).version
    asked = {"turn": "asked", "saw": [], "parent": "turn-700", "program": program}
    ended = {"turn": "asked", "saw": [], "state": "done", "attempt": 1, "outputs": {"result": "!"}}
    log = folder / "conversations" / "alex.jsonl"
    with ledger.FolderStore(folder) as store:
        store.append("alex", [kinds.new("turn", AT, request_id="r-9", inputs={}, **asked)])
        for start in range(0, 4 * LAST, LAST):
            ended_late = [kinds.new("ended", AT, **ended)] if start == LAST else []
            others = [kinds.new("entry", AT, plugin="x", entry="y", data=n) for n in range(LAST)]
            store.append("alex", [*others, *ended_late])
    shutil.rmtree(folder / "indexes", ignore_errors=True)

    store = Counting(folder)
    turn = ledger.open("alex", store=store).turn(request_id="r-9")
    assert (turn.id, turn.state, turn.result, store.whole) == ("asked", "done", "!", 0)
    assert (turn.ordinal, store.whole) == (701, 1)

    log.write_bytes(log.read_bytes().replace(b'"result":"!"', b'"result":"?"'))
    with pytest.warns(DamageWarning):
        turn = ledger.open("alex", store=ledger.FolderStore(folder)).turn(request_id="r-9")
    assert (turn.id, turn.state) == ("asked", "interrupted")


def test_bytes_are_found_wherever_they_lie(tmp_path, monkeypatch):
    """Also across the pieces in which a log is looked at; not in another conversation's."""
    monkeypatch.setattr(log_search, "CHUNK", 7)
    store = ledger.FolderStore(tmp_path)
    ledger.open("a", store=store).record("needle in it", "x")
    ledger.open("b", store=store).record("y", "x")
    assert store.mentions("a", b"needle")
    assert not store.mentions("b", b"needle")
    assert not store.mentions("c", b"needle")


@pytest.mark.parametrize("ask", ["turn", "tree", "record", "forget", "turns", "lineage"])
@pytest.mark.parametrize("damage", ["a line feed", "a line", "bytes", "a late line feed"])
def test_a_log_that_lost_lines_is_usable(folder, damage, ask):
    """Where places were lost, what seals say at the end is not what is counted: all goes on as in a short log."""
    log = folder / "conversations" / "alex.jsonl"
    data = bytearray(log.read_bytes())
    at = data.index(b"\n", len(data) - 20_000 if damage == "a late line feed" else 5_000)
    if damage == "a line":
        del data[at : data.index(b"\n", at + 1)]
    elif damage == "bytes":
        data[at : at + 3_000] = b"?" * 3_000
    else:
        data[at] ^= 1
    log.write_bytes(data)
    whole = ledger.open("alex", store=folder).all_turns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        chat = ledger.open("alex", store=ledger.FolderStore(folder), context=last_turns(2))
        assert chat.head.result == "r700"
        {
            "turn": lambda: chat.turn("turn-1").result,
            "tree": lambda: str(chat.tree()),
            "record": lambda: chat.record("m701", "r701"),
            "forget": lambda: chat.forget("turn-700"),
            "turns": lambda: chat.turns,
            "lineage": lambda: chat.lineage(chat.turn("turn-700")).explain(),
        }[ask]()
        chat.record("next", "turn")
        assert [turn.id for turn in chat.all_turns()] == [turn.id for turn in whole()]
        assert chat.turns[-1].result == "turn"


def test_bytes_are_found_in_a_database(counting):
    """The same where the database looks."""
    store = counting()
    store.append("b", store.read("alex")[:1])
    assert store.mentions("alex", b'"m700"')
    assert not store.mentions("b", b'"m700"')
    assert not store.mentions("c", b'"m700"')
