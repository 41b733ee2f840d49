"""Conversations copied between a folder and a database, both ways."""

from __future__ import annotations

import pytest

import ledger
from ledger.errors import (
    AttachmentMissing,
    ConversationUnknown,
    StoreConflict,
    StoreUnsupported,
    TurnState,
)
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from tests.scenarios.stores import TwoMethods
from tests.stores.support import foreign
from tests.testing.sql_places import open_sql, postgres_place, sqlite_place


@pytest.fixture(params=["sqlite", "postgres", "folder"])
def target(request, tmp_path):
    """Return an empty store, of each persistent kind if nothing else is said."""
    made = {
        "sqlite": lambda: open_sql(sqlite_place(tmp_path)),
        "postgres": lambda: open_sql(postgres_place()),
        "folder": lambda: FolderStore(tmp_path / "target"),
        "memory": MemoryStore,
    }
    with made[request.param]() as store:
        yield store


@pytest.fixture
def source(tmp_path):
    """Return a folder with two conversations; one has a branch, an erased turn and an attachment."""
    store = FolderStore(tmp_path / "source")
    chat = ledger.open("alex", store=store)
    first = chat.record("one", "1")
    chat.record(
        {"message": "two", "file": ledger.Attachment(b"x" * 3_000_000, media_type="text/plain")},
        "2",
    )
    chat.continue_from(first).record("three", "3")
    chat.forget(chat.record("secret", "4"))
    ledger.open("other", store=store).record("a", "b")
    return store


def test_a_copy_is_the_same_and_comes_back(source, target, tmp_path):
    """There and back again, logs are the same bytes, verify, and have their attachments."""
    done = ledger.copy_conversations(source, target)
    back = FolderStore(tmp_path / "back")
    ledger.copy_conversations(target, back)

    assert [(one.conversation, bool(one)) for one in done] == [("alex", True), ("other", True)]
    for name in source.conversations():
        assert target.raw(name) == back.raw(name) == source.raw(name)
        assert target.verify(name).counts == source.verify(name).counts
    (sha256,) = done[0].attachments
    assert target.blobs.get(sha256) == back.blobs.get(sha256) == b"x" * 3_000_000
    copied = ledger.open("alex", store=target)
    assert [turn.result for turn in copied.all_turns()] == ["1", "2", "3", None]
    assert copied.record("five", "5").parent == copied.turn(2)


def test_copying_again_adds_what_is_new(source, target):
    """A copy that holds a beginning gets the rest, once; one that went on by itself is refused."""
    ledger.copy_conversations(source, target, ["alex"])
    assert not any(ledger.copy_conversations(source, target, ["alex"]))
    ledger.open("alex", store=source).record("more", "5")

    (done,) = ledger.copy_conversations(source, target, ["alex"])
    assert done.added == 2
    assert target.raw("alex") == source.raw("alex")
    ledger.open("alex", store=target).record("mine", "6")
    ledger.open("alex", store=source).record("yours", "6")
    before = target.raw("alex")
    with pytest.raises(StoreConflict, match=r"forgotten.*delete it"):
        ledger.copy_conversations(source, target, ["alex"], strict=True)
    refused, other = ledger.copy_conversations(source, target)
    assert (refused.refused.code, bool(refused), bool(other)) == ("store-conflict", False, True)
    assert target.raw("alex") == before


def test_lines_of_other_writers_are_copied(source, target):
    """Lines without seals, and a log that ends without its line feed, are kept as they are."""
    source.adopt("foreign", b"\n" + foreign("a", 1) + b"\n" + foreign("b", 2))
    cut = source.raw("other")[:-1]
    source.delete("other")
    source.adopt("other", cut)

    ledger.copy_conversations(source, target, ["foreign", "other"])

    for name in ("foreign", "other"):
        assert target.raw(name) == source.raw(name)
        assert target.read(name) == source.read(name)


def test_what_runs_is_not_copied(source, target):
    """A conversation with a running turn is refused, and nothing of it is copied."""

    def program(message: str) -> str:
        with pytest.raises(TurnState) as caught:
            ledger.copy_conversations(source, target, ["runs"], strict=True)
        return caught.value.state

    chat = ledger.open("runs", program, store=source)
    assert chat.send("run").result == "running"
    assert target.conversations() == []
    assert ledger.copy_conversations(source, target, ["runs"])[0]


def test_what_cannot_be_copied_is_told(source, target, tmp_path):
    """An id that the source does not have, and a store of other people, are refused by name."""
    with pytest.raises(ConversationUnknown):
        ledger.copy_conversations(source, target, ["nobody"], strict=True)
    with pytest.raises(StoreUnsupported):
        ledger.copy_conversations(TwoMethods(), target)
    with pytest.raises(StoreUnsupported):
        ledger.copy_conversations(source, TwoMethods())
    ledger.open("alex", store=source).record("a checksum", {"sha256": "5e" * 32})
    (sha256,) = ledger.copy_conversations(source, target)[0].attachments
    source.blobs.remove([sha256])
    third = FolderStore(tmp_path / "third")
    (done,) = ledger.copy_conversations(source, third, ["alex"])
    assert done.missing == [sha256]


class Meanwhile:
    """The attachments of a store; before one is opened, something is done once."""

    def __init__(self, blobs, first):
        self.blobs, self.first = blobs, [first]

    def open(self, sha256):
        while self.first:
            self.first.pop()()
        return self.blobs.open(sha256)


SHARED, OWN = b"shared" * 100, b"own" * 100


def forgotten_meanwhile(source, target):
    """Have a turn that names an attachment in the target forgotten while a copy that names it too is made."""
    shared, own = (ledger.Attachment(data, media_type="image/png") for data in (SHARED, OWN))
    ledger.open("pics", store=source).record({"message": "look", "a": shared, "b": own}, "nice")
    chat = ledger.open("here", store=target)
    turn = chat.record({"message": "look", "a": shared}, "nice")
    assert target.blobs.has(shared.sha256)
    source.blobs = Meanwhile(source.blobs, lambda: chat.forget(turn))
    return shared.sha256, own.sha256


def test_an_attachment_that_others_forget_while_a_copy_is_made_is_put_again(source, target):
    """The target had it when the copy was begun, and no log named it there any more when it was placed."""
    shared, own = forgotten_meanwhile(source, target)
    (done,) = ledger.copy_conversations(source, target, ["pics"])
    assert (done.refused, done.missing) == (None, [])
    assert sorted(done.attachments) == sorted([shared, own])
    assert [each.read() for each in ledger.open("pics", store=target).attachments()] == [
        SHARED,
        OWN,
    ]


def test_a_copy_whose_attachment_is_gone_from_both_is_not_placed(source, target):
    """What it names was in the target when it was begun, so nobody is told that it is missing."""
    shared, _ = forgotten_meanwhile(source, target)
    source.blobs.blobs.remove([shared])
    (done,) = ledger.copy_conversations(source, target, ["pics"])
    assert done.refused.code == "attachment-missing"
    assert shared in done.refused.message()
    assert target.raw("pics") == b""


@pytest.mark.parametrize("place", ["adopt", "grow"])
@pytest.mark.parametrize("target", ["sqlite", "postgres", "folder", "memory"], indirect=True)
def test_a_log_that_names_an_attachment_which_went_is_not_placed(source, target, place):
    """As an append that names it would be refused: put the bytes again, and it is placed."""
    attachment = ledger.Attachment(SHARED, media_type="image/png")
    ledger.open("pics", store=source).record({"message": "look", "a": attachment}, "nice")
    data = source.raw("pics")
    target.blobs.put(SHARED)
    target.blobs.remove([attachment.sha256])
    with pytest.raises(AttachmentMissing):
        getattr(target, place)("pics", data)
    assert target.conversations() == []
    target.blobs.put(SHARED)
    assert getattr(target, place)("pics", data) == len(source.read("pics"))


def test_ids_are_not_taken_from_the_letters_of_one(source, target):
    """A text in place of a list of ids is refused, with the list that was meant."""
    with pytest.raises(TypeError, match=r"\['alex'\]"):
        ledger.copy_conversations(source, target, "alex")
    assert target.conversations() == []
