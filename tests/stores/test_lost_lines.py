"""Repairing a log that lost lines: another file takes its place, and all who knew the log read what is there now."""

import asyncio
import warnings

import pytest

import ledger
from ledger.errors import DamageWarning, LedgerError
from ledger.stores.folder import FolderStore
from tests.stores.support import Failing, Unflushed, error, log_path, stop, turns

SECRET = "the secret of the canary"


def echo(message: str) -> str:
    return message


def lose(folder, first, last):
    """Cut lines out of the log. Returns: the bytes before and after."""
    path = log_path(folder)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:first] + lines[last:]))
    return whole, path.read_bytes()


@pytest.fixture
def chats(tmp_path):
    """A conversation of three turns, open."""
    chat = ledger.open("c", echo, store=FolderStore(tmp_path))
    for text in ("one", "two", "three"):
        chat(text)
    return chat


def asked(chat):
    return [turn.inputs["message"] for turn in chat.turns]


def test_a_turn_that_was_lost_is_between_its_neighbours_again(chats, tmp_path):
    """The branch is whole for who had it open before, who opened it meanwhile, and the catalog; all go on with it."""
    chats.record("four", "4")
    line = next(
        n for n, t in enumerate(log_path(tmp_path).read_bytes().split(b"\n")) if b'"two"' in t
    )
    whole, _ = lose(tmp_path, line, line + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        meanwhile = ledger.open("c", echo, store=FolderStore(tmp_path))
        assert "one" not in asked(meanwhile)
        assert not ledger.catalog.of(tmp_path).search("two")
        mark = FolderStore(tmp_path).since("c").mark

        assert FolderStore(tmp_path).repair("c", copy=whole).report.damaged is False

        for chat in (chats, meanwhile, ledger.open("c", echo, store=tmp_path)):
            assert asked(chat) == ["one", "two", "three", "four"]
    assert len(ledger.catalog.of(tmp_path).search("two")) == 1
    assert FolderStore(tmp_path).since("c", mark).whole
    meanwhile("five")
    chats("six")
    assert asked(chats) == ["one", "two", "three", "four", "five", "six"]
    assert not FolderStore(tmp_path).verify("c").damaged


def test_an_awaitable_conversation_sees_what_was_put_back(chats, tmp_path):
    """As the blocking one does."""
    whole, _ = lose(tmp_path, 4, 7)

    async def main():
        chat = ledger.aio.open("c", echo, store=FolderStore(tmp_path))
        with pytest.warns(DamageWarning):
            assert len(await chat.turns) < 3
        FolderStore(tmp_path).repair("c", copy=whole)
        await chat.send("four")
        return await chat.turns

    assert [turn.inputs["message"] for turn in asyncio.run(main())] == [
        "one",
        "two",
        "three",
        "four",
    ]


def test_putting_back_is_written_down_and_undone(chats, tmp_path):
    """The damaged bytes come back, with what was appended since behind them."""
    whole, broken = lose(tmp_path, 4, 6)
    store = FolderStore(tmp_path)
    assert store.repair("c", copy=whole).record == "c.repaired-1"
    assert log_path(tmp_path).read_bytes() == whole
    assert log_path(tmp_path).stat().st_mode & 0o777 == 0o600
    store.append("c", [stop("later")])
    grown = log_path(tmp_path).read_bytes()

    assert store.undo_repair("c")
    assert log_path(tmp_path).read_bytes() == broken + grown[len(whole) :]
    assert not store.undo_repair("c")
    assert store.repair("c", copy=whole).record == "c.repaired-2"
    assert log_path(tmp_path).read_bytes() == grown


@pytest.mark.parametrize("call", ["write", "flush", "flush_folder"])
@pytest.mark.parametrize("worked", range(4))
def test_putting_back_that_dies_is_done_again(chats, tmp_path, call, worked):
    """At every call the log is what it was or what it is to be, and repairing again ends it."""
    whole, broken = lose(tmp_path, 4, 6)
    calls = Failing()
    calls.fail[call] = [*[None] * worked, error(5)]
    try:
        FolderStore(tmp_path, calls=calls).repair("c", copy=whole)
    except LedgerError:
        assert log_path(tmp_path).read_bytes() in (whole, broken)
    FolderStore(tmp_path).repair("c", copy=whole)
    assert log_path(tmp_path).read_bytes() == whole
    assert not list(log_path(tmp_path).parent.glob("c.new-*"))


def test_an_append_that_is_being_flushed_moves_with_the_rest(chats, tmp_path):
    """It is not told that it was lost: it stands further behind."""
    whole, _ = lose(tmp_path, 4, 6)

    class Meanwhile(Unflushed):
        """Repairs the log while the first flush of an append is under way."""

        done = False

        def flush(self, number):
            if not self.done:
                self.done = True
                assert FolderStore(tmp_path).repair("c", copy=whole)
            super().flush(number)

    store = FolderStore(tmp_path, calls=Meanwhile())
    store.append("c", [stop("later")])
    assert log_path(tmp_path).read_bytes().startswith(whole)
    assert turns(FolderStore(tmp_path).read("c"))[-1] == "later"


def test_a_position_in_the_damaged_log_is_none_in_the_mended_one(tmp_path):
    """It counted other records: who appends on it, or reads on from it, is told."""
    store = FolderStore(tmp_path)
    for name in "abcd":
        store.append("c", [stop(name)])
    whole, _ = lose(tmp_path, 1, 2)
    position = store.read("c").position
    FolderStore(tmp_path).repair("c", copy=whole)
    for each in (store, FolderStore(tmp_path)):
        with pytest.raises(LedgerError) as refused:
            each.append("c", [stop("e")], expect=position)
        assert refused.value.code == "store-conflict"
        with pytest.raises(LedgerError) as refused:
            each.read("c", position)
        assert refused.value.code == "store-gone"


@pytest.mark.parametrize("listed", [True, False])
def test_what_was_forgotten_since_the_copy_does_not_come_back(tmp_path, listed):
    """Its lines are lost, and come back as tombstones: by the list beside the log, or by one of its tombstones."""
    store = FolderStore(tmp_path)
    chat = ledger.open("c", store=store)
    chat.record("a", "b")
    made = chat.record(SECRET, SECRET)
    chat.record("c", "d")
    before = log_path(tmp_path).read_bytes()
    chat.forget(made)
    whole = log_path(tmp_path).read_bytes()
    line = next(n for n, text in enumerate(whole.split(b"\n")) if b'"erased":true' in text)
    if not listed:
        (tmp_path / "conversations" / "c.forgotten").unlink()
    lose(tmp_path, line - 1, line + 1 + listed)

    assert store.repair("c", copy=before)
    assert log_path(tmp_path).read_bytes() == whole
    for path in log_path(tmp_path).parent.iterdir():
        assert SECRET.encode() not in path.read_bytes()


def test_forgetting_takes_what_a_repair_wrote_down(tmp_path):
    """The record of it holds the lines that were put back."""
    chat = ledger.open("c", store=FolderStore(tmp_path))
    chat.record("a", "b")
    made = chat.record(SECRET, SECRET)
    chat.record("c", "d")
    whole, _ = lose(tmp_path, 3, 5)
    FolderStore(tmp_path).repair("c", copy=whole)
    ledger.open("c", store=tmp_path).forget(made.id)
    for path in log_path(tmp_path).parent.iterdir():
        assert SECRET.encode() not in path.read_bytes()


def test_seals_made_on_a_hole_are_not_lost(tmp_path):
    """What was appended while lines were missing stays, also by who counted fewer records."""
    store = FolderStore(tmp_path)
    for name in "abcd":
        store.append("c", [stop(name)])
    whole, _ = lose(tmp_path, 1, 2)
    FolderStore(tmp_path).append("c", [stop("e")])
    repaired = FolderStore(tmp_path).repair("c", copy=whole)
    assert (repaired.left, repaired.further) == ([], 0)
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b", "c", "d", "e"]
    FolderStore(tmp_path).append("c", [stop("f")])
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b", "c", "d", "e", "f"]
