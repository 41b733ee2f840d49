"""Conversations copied between a folder and a database, both ways."""

from __future__ import annotations

import pytest

import ledger
from ledger.errors import ConversationUnknown, StoreConflict, StoreUnsupported, TurnState
from ledger.stores.folder import FolderStore
from tests.scenarios.stores import TwoMethods
from tests.stores.support import foreign
from tests.testing.sql_places import open_sql, postgres_place, sqlite_place


@pytest.fixture(params=["sqlite", "postgres", "folder"])
def target(request, tmp_path):
    """Return an empty store of each persistent kind."""
    made = {
        "sqlite": lambda: open_sql(sqlite_place(tmp_path)),
        "postgres": lambda: open_sql(postgres_place()),
        "folder": lambda: FolderStore(tmp_path / "target"),
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
