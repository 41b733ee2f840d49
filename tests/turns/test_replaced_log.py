"""A log that is replaced, or changed in place, under a conversation that is open: what is there now counts."""

import asyncio
import os
import warnings

import msgspec
import pytest

import ledger
from ledger import last_turns
from ledger.errors import DamageWarning, StoreConflict, StoreGone
from ledger.records import kinds
from ledger.views.late import LateHistory

AT = "2026-01-01T00:00:00.000000Z"
MANY = 700
"""So many turns that a log of them is opened at its end."""


def put_back(log, data, how):
    """Put bytes in a log's place: into its file, or as another file."""
    if how == "in place":
        with log.open("r+b") as file:
            file.write(data)
            file.truncate()
    else:
        beside = log.with_suffix(".new")
        beside.write_bytes(data)
        beside.chmod(0o600)
        os.replace(beside, log)


def asked(turns):
    return [turn.inputs["message"] for turn in turns]


def echo(message: str) -> str:
    return message


@pytest.mark.parametrize("others", [2, 3])
@pytest.mark.parametrize("how", ["in place", "another file"])
def test_an_older_copy_on_which_others_went_on_is_what_there_is(tmp_path, how, others):
    """As many turns as were lost, or more: nothing of what was lost is shown, and the next turn follows theirs."""
    log = tmp_path / "conversations" / "c.jsonl"
    chat = ledger.open("c", echo, store=tmp_path)
    chat("kept")
    copy = log.read_bytes()
    chat("lost 1")
    lost = chat.send("lost 2", request_id="bill")
    put_back(log, copy, how)
    other = ledger.open("c", echo, store=ledger.FolderStore(tmp_path))
    for number in range(others):
        other(f"new {number}")

    there = ["kept", *(f"new {number}" for number in range(others))]
    sent = chat.send("lost 2", request_id="bill")
    assert sent.id != lost.id
    assert asked(chat.turns) == asked(chat.all_turns()) == [*there, "lost 2"]
    fresh = ledger.open("c", store=ledger.FolderStore(tmp_path))
    assert asked(fresh.turns) == [*there, "lost 2"]


@pytest.mark.parametrize("how", ["in place", "another file"])
def test_a_position_is_of_one_log_however_often_it_is_given(tmp_path, how):
    """Also where another log has as many records, and record 1 is the same."""
    log = tmp_path / "conversations" / "c.jsonl"
    store, other = ledger.FolderStore(tmp_path), ledger.FolderStore(tmp_path)
    note = [kinds.new("entry", AT, plugin="x", entry="y", data=1)]
    store.append("c", note)
    copy = log.read_bytes()
    position = store.append("c", note * 2)
    assert store.append("c", note, expect=position) == 4
    assert store.read("c", position).position == other.read("c").position == 4
    put_back(log, copy, how)
    for _ in range(5):
        other.append("c", note)
        for each in (store, other, ledger.FolderStore(tmp_path)):
            with pytest.raises(StoreConflict):
                each.append("c", note, expect=position)
            with pytest.raises(StoreGone):
                each.read("c", position)


def test_a_question_of_a_log_that_was_replaced_is_not_answered_from_two(tmp_path):
    """What stands before the end is read of the same log as the end, or not at all."""
    log = tmp_path / "conversations" / "c.jsonl"
    store = ledger.FolderStore(tmp_path)
    line = [record for n in range(MANY) for record in recorded(n)]
    store.append("c", line[:100])
    copy = log.read_bytes()
    store.append("c", line[100:])
    chat = ledger.open("c", echo, store=ledger.FolderStore(tmp_path))
    turn = chat.head
    put_back(log, copy, "in place")
    other = ledger.FolderStore(tmp_path)
    for start in range(100, len(line), 50):
        other.append("c", line[start : start + 50])
    other.append("c", line[:50])
    with pytest.raises(StoreGone):
        _ = turn.ordinal
    assert len(chat.turns) == MANY


def recorded(number, **keys):
    parent = f"turn-{number - 1}" if number else None
    named = {"turn": f"turn-{number}", "saw": []}
    inputs = {"message": "x" * 300}
    return [
        kinds.new("turn", AT, parent=parent, program="p", inputs=inputs, **named, **keys),
        kinds.new("ended", AT, state="done", attempt=1, outputs={"result": "r"}, **named),
    ]


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    """The bytes of a long log whose sixth turn has a request id."""
    with ledger.FolderStore(tmp_path_factory.mktemp("long")) as store:
        for start in range(0, MANY, 10):
            turns = range(start, start + 10)
            ids = [{"request_id": "r5"} if number == 5 else {} for number in turns]
            line = [recorded(number, **keys) for number, keys in zip(turns, ids, strict=True)]
            store.append("c", [record for turn in line for record in turn])
        return store.raw("c")


@pytest.mark.parametrize("read", ["late", "whole", "made whole"])
@pytest.mark.parametrize(
    "how",
    [
        "repair",
        "repair here",
        "repair, then an append",
        "in place",
        "in place, then an append",
        "another file",
        "another file, then an append",
    ],
)
def test_a_line_that_was_mended_is_seen_by_who_has_the_log_open(tmp_path, long_log, how, read):
    """Its request id is not sent again, whether an index, or all that was read, says that it was not sent."""
    log = tmp_path / "conversations" / "c.jsonl"
    at = long_log.index(b"x", long_log.rindex(b"\n", 0, long_log.index(b'"r5"')))
    with ledger.FolderStore(tmp_path) as store:
        store.adopt("c", long_log[:at] + b"y" + long_log[at + 1 :])
    store = ledger.FolderStore(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        store._indexes.want("c")
        ledger.open("c", store=store).all_turns()
        chat = ledger.open("c", echo, store=ledger.FolderStore(tmp_path), context=last_turns(1))
        if read == "whole":
            chat.all_turns()
        elif read == "made whole":
            assert len(chat.heads()) == 2
        with pytest.raises(ledger.errors.TurnUnknown):
            chat.turn(request_id="r5")
        history = chat._log.history
        assert isinstance(history, LateHistory) == (read == "late")
        assert read != "late" or history.index is not None

        if how.startswith("repair"):
            here = chat._log.store if how == "repair here" else ledger.FolderStore(tmp_path)
            assert here.repair("c", copy=long_log)
        else:
            put_back(log, long_log, how.partition(",")[0])
        if how.endswith("append"):
            note = kinds.new("entry", AT, plugin="x", entry="y", data=1)
            ledger.FolderStore(tmp_path).append("c", [note])
        sent = chat.send("x" * 300, request_id="r5")
    assert sent.id == "turn-5"
    assert log.read_bytes().startswith(long_log)


def damaged(folder):
    """Return a log with a turn of a request id whose line is damaged now, and its bytes before that."""
    log = folder / "conversations" / "c.jsonl"
    chat = ledger.open("c", echo, store=ledger.FolderStore(folder))
    chat("one")
    chat.send("pay", request_id="r5")
    chat("three")
    good = log.read_bytes()
    put_back(log, good.replace(b'"pay"', b'"pax"', 1), "in place")
    return log, good


def test_a_conversation_that_is_gone_on_with_while_it_is_damaged_sees_it_mended(tmp_path):
    """Its own appends, and those of others, do not hide that."""
    log, good = damaged(tmp_path)
    chat = ledger.open("c", echo, store=ledger.FolderStore(tmp_path))
    other = ledger.open("c", echo, store=ledger.FolderStore(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        chat("four")
        other("five")
        assert "pay" not in asked(chat.all_turns())
        chat("six")
        put_back(log, good + log.read_bytes()[len(good) :], "in place")
        other("seven")
        sent = chat.send("pay", request_id="r5")
    assert sent.id == ledger.open("c", store=tmp_path).turn(request_id="r5").id
    assert asked(chat.all_turns()) == ["one", "pay", "three", "four", "five", "six", "seven"]


class Counting(ledger.FolderStore):
    """A store that counts how often a log is read from its start."""

    whole = 0

    def scan(self, conversation, after=0):
        self.whole += not after
        return super().scan(conversation, after)


def test_a_damaged_log_is_read_once_as_long_as_only_its_reader_appends(tmp_path):
    """Its own appends are no sign that somebody mended it."""
    damaged(tmp_path)
    store = Counting(tmp_path)
    chat = ledger.open("c", echo, store=store)
    with pytest.warns(DamageWarning):
        chat("four")
    read = store.whole
    chat("five")
    assert "pay" not in asked(chat.all_turns())
    assert store.whole == read


def test_an_awaitable_conversation_sees_a_line_that_was_mended(tmp_path):
    """As the blocking one does: what was asked in it is not asked again."""
    log, good = damaged(tmp_path)

    async def main():
        chat = ledger.aio.open("c", echo, store=ledger.FolderStore(tmp_path))
        with pytest.warns(DamageWarning):
            assert len(await chat.all_turns()) == 2
        put_back(log, good, "another file")
        ledger.open("c", echo, store=ledger.FolderStore(tmp_path))("four")
        await chat.send("pay", request_id="r5")
        return await chat.all_turns()

    assert asked(asyncio.run(main())) == ["one", "pay", "three", "four"]


@pytest.mark.parametrize("appended", [False, True])
@pytest.mark.parametrize("how", ["in place", "another file"])
def test_a_catalog_finds_a_line_that_was_mended(tmp_path, how, appended):
    """Also where the catalog, or what it is asked by, was made while the line was damaged."""
    log, good = damaged(tmp_path)
    assert not ledger.catalog.of(tmp_path).search("pay")
    put_back(log, good, how)
    if appended:
        ledger.open("c", echo, store=ledger.FolderStore(tmp_path))("four")
    catalog = ledger.catalog.of(tmp_path)
    assert len(catalog.search("pay")) == 1
    assert [row.turns for row in catalog.conversations()] == [3 + appended]


def test_a_mark_of_a_log_in_which_all_is_well_is_gone_on_from(tmp_path):
    """Only what was lost may be there again: elsewhere others' appends are all that is read."""
    log, good = damaged(tmp_path)
    store = ledger.FolderStore(tmp_path)
    note = [kinds.new("entry", AT, plugin="x", entry="y", data=1)]
    lost = store.since("c")
    assert not store.since("c", lost.mark).whole
    store.append("c", note)
    again = store.since("c", lost.mark)
    assert again.whole
    assert not store.since("c", again.mark).whole
    put_back(log, good, "in place")
    well = store.since("c", again.mark)
    assert well.whole
    store.append("c", note)
    more = store.since("c", well.mark)
    assert (more.whole, len(more.records)) == (False, 1)


def test_what_is_kept_of_a_log_sees_a_repair(tmp_path, long_log):
    """A mark from before it gives all of the log: the catalog and workers go on from such marks."""
    at = long_log.index(b"x", long_log.rindex(b"\n", 0, long_log.index(b'"r5"')))
    with ledger.FolderStore(tmp_path) as store:
        store.adopt("c", long_log[:at] + b"y" + long_log[at + 1 :])
        before = store.since("c")
        assert not store.since("c", before.mark).whole
        ledger.FolderStore(tmp_path).repair("c", copy=long_log)
        assert store.looks()["c"] != before.look
        again = store.since("c", before.mark)
        assert again.whole
        assert not store.since("c", again.mark).whole


def test_an_append_covers_what_stands_there_now(tmp_path):
    """Lines of another writer, of which one was damaged when they were read, and mended before the append."""
    log = tmp_path / "conversations" / "c.jsonl"
    note = [kinds.new("entry", AT, plugin="x", entry="y", data=1)]
    store = ledger.FolderStore(tmp_path)
    store.append("c", note)
    others = b"".join(
        msgspec.json.encode({**note[0], "data": "x" * 300, "n": n}) + b"\n" for n in range(3)
    )
    good = log.read_bytes() + others
    log.write_bytes(good.replace(b"xxx", b"\xffxx", 1))
    store.read("c")
    with log.open("r+b") as file:
        file.write(good)
    store.append("c", note)
    assert not ledger.FolderStore(tmp_path).verify("c").damaged
    assert [record["kind"] for record in ledger.FolderStore(tmp_path).read("c")] == ["entry"] * 5
