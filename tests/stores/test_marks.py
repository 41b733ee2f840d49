"""Looks and marks: whether a log is as it was, and what was added to it since, on both stores."""

from __future__ import annotations

import pytest

import ledger
from tests.stores.support import Unflushed, log_path, turns
from tests.views import build


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind, with a conversation of two turns."""
    memory = request.param == "memory"
    found = (
        ledger.MemoryStore() if memory else ledger.FolderStore(tmp_path / "s", calls=Unflushed())
    )
    found.append("c", [*build.done("a"), *build.done("b", "a")])
    return found


def names(since) -> list:
    """The turns that records are of."""
    return [getattr(record, "turn", None) for record in since.records]


def test_a_mark_gives_what_was_added(store):
    """Given back, a mark gives the records behind it; the look is another one after each append."""
    first = store.since("c")
    assert (len(first.records), first.whole) == (6, True)
    assert store.looks() == {"c": first.look}

    store.append("c", build.done("d", "b"))
    assert store.looks()["c"] != first.look
    second = store.since("c", first.mark)
    assert (names(second), second.whole) == (["d"] * 3, False)
    assert names(store.since("c", second.mark)) == []


@pytest.mark.parametrize("again", [False, True])
def test_after_an_erasure_all_is_given(store, again):
    """An erasure changes the look, and a mark from before it gives everything, also when more was appended."""
    before = store.since("c")
    store.erase("c", "b")
    if again:
        store.append("c", build.done("d", "a"))
    assert store.looks()["c"] != before.look
    after = store.since("c", before.mark)
    assert after.whole
    assert len(after.records) == 6 + 3 * again


def test_a_conversation_made_anew_is_given_whole(store):
    """A mark of a conversation that was deleted says nothing of the one that has its id now."""
    before = store.since("c")
    store.delete("c")
    assert store.looks() == {}
    assert names(store.since("c", before.mark)) == []
    store.append("c", [*build.done("x"), *build.done("y", "x"), *build.done("z", "y")])
    after = store.since("c", before.mark)
    assert (len(after.records), after.whole) == (9, True)


@pytest.mark.parametrize("mark", ["nonsense", "[]", "x:1", '[[1,2],3,4,"",5,null,""]'])
def test_a_mark_that_is_none_gives_all(store, mark):
    """What is no mark, or another store's, gives everything."""
    assert len(store.since("c", mark).records) == 6


def test_a_mark_holds_nothing_that_was_said(tmp_path):
    """A mark and a look may be kept elsewhere: no text of the log is in them."""
    store = ledger.FolderStore(tmp_path / "s", calls=Unflushed())
    store.append("c", [build.new("entry", plugin="p", entry="e", data="walrus", turn=None)])
    found = store.since("c")
    assert "walrus" not in found.mark + found.look
    assert turns(store.read("c")) == [None]
    assert b"walrus" in log_path(store.folder).read_bytes()
