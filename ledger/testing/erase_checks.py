"""Checks of what is taken out: erased turns, and attachments that nothing names any more."""

from __future__ import annotations

from typing import Any

from ledger.stores.memory import MemoryStore
from ledger.testing.bench import Bench, needs, refused
from ledger.testing.examples import AT, CANARY, note, notes, texts
from ledger.testing.seals import sealed_lines

_FIRST = "01890000-0000-7000-8000-000000000001"
_SECOND = "01890000-0000-7000-8000-000000000002"


def conversation_of(turn: str, text: str, attachment: str | None = None) -> list[dict[str, Any]]:
    """Return the records of a turn that ended, and of an entry beside it, which all hold a text."""
    common = {"functai_conversation": 1, "at": AT, "turn": turn}
    named: Any = {"sha256": attachment, "media_type": "text/plain", "size": 1}
    shown = {"$attachment": named} if attachment else None
    inputs = {"message": text, "shown": shown}
    return [
        {**common, "kind": "turn", "parent": None, "program": "p", "inputs": inputs, "saw": []},
        {**common, "kind": "lease", "holder": "h", "until": AT, "attempt": 1},
        {**common, "kind": "ended", "state": "done", "outputs": {"result": text}, "saw": []},
        note(text, turn=turn),
    ]


class EraseChecks(Bench):
    """Erasing a turn, and deleting a conversation with what belongs to it."""

    @needs("erase")
    def test_erased_content_is_gone(self) -> None:
        """What an erased turn said is in no byte; every record keeps its place, and others all."""
        store = self.fresh()
        store.append("c", notes("first"))
        store.append("c", conversation_of(_FIRST, CANARY))
        position = store.append("c", conversation_of(_SECOND, "kept"))
        before, size = store.read("c"), len(self.read_bytes(store, "c"))
        assert store.erase("c", _FIRST, expect=position)
        data = self.read_bytes(store, "c")
        assert CANARY.encode() not in data
        assert len(data) == size
        after = store.read("c")
        assert CANARY not in repr(after)
        assert [record["seq"] for record in after] == list(range(1, 10))
        assert after[0] == before[0]
        assert after[5:] == before[5:]
        assert store.append("c", notes("next"), expect=position) == 10
        assert texts(store.read("c", 9)) == ["next"]

    @needs("erase")
    def test_erasing_is_the_same_in_every_store(self) -> None:
        """The bytes after erasing are those of any other store, and so is what is said of it."""
        store, other = self.fresh(), MemoryStore()
        for turn in (_FIRST, _SECOND):
            store.append("c", conversation_of(turn, f"says {turn}"))
        other.adopt("c", self.read_bytes(store, "c"))
        for turn in (_SECOND, _FIRST):
            done, expected = store.erase("c", turn), other.erase("c", turn)
            assert (done.records, done.size_bytes) == (expected.records, expected.size_bytes)
            assert self.read_bytes(store, "c") == other.raw("c")
            assert store.read("c") == other.read("c")

    @needs("erase")
    def test_erasing_what_is_not_there(self) -> None:
        """Erasing a turn that is not there, or once more, is false and changes nothing."""
        store = self.fresh()
        assert not store.erase("none", _FIRST)
        store.append("c", conversation_of(_FIRST, CANARY))
        data = self.read_bytes(store, "c")
        assert not store.erase("c", _SECOND)
        assert self.read_bytes(store, "c") == data
        assert len(sealed_lines(data, "c")) == 4
        assert store.erase("c", _FIRST)
        data = self.read_bytes(store, "c")
        assert not store.erase("c", _FIRST)
        assert self.read_bytes(store, "c") == data

    @needs("erase")
    def test_erasing_asks_what_is_expected(self) -> None:
        """An erasure that expects another count is a conflict, and erases nothing."""
        store = self.fresh()
        store.append("c", conversation_of(_FIRST, CANARY))
        data = self.read_bytes(store, "c")
        with refused("store-conflict") as caught:
            store.erase("c", _FIRST, expect=3)
        assert (caught.error.expected, caught.error.found) == (3, 4)
        assert self.read_bytes(store, "c") == data

    @needs("erase", "incarnations")
    def test_erasing_the_first_record_ends_old_positions(self) -> None:
        """When record 1 is erased, positions from before conflict; those given after it do not."""
        store = self.fresh()
        old = store.append("c", conversation_of(_FIRST, CANARY))
        store.erase("c", _FIRST)
        with refused("store-conflict"):
            store.append("c", notes("x"), expect=old)
        with refused("store-gone"):
            store.read("c", old)
        assert store.append("c", notes("a"), expect=store.read("c").position) == 5

    @needs("erase", "reopening")
    def test_erasing_is_for_everyone(self) -> None:
        """A store that had read what another erases at the same place hands it out no more."""
        store = self.fresh()
        store.append("c", notes("first"))
        position = store.append("c", conversation_of(_FIRST, CANARY))
        store.read("c")
        assert self.again().erase("c", _FIRST)
        for one in (store, self.again()):
            assert CANARY not in repr(one.read("c"))
        assert store.append("c", notes("next"), expect=position) == 6

    # -- attachments

    @needs("erase", "blobs")
    def test_erasing_takes_its_attachments(self) -> None:
        """An attachment goes with the last turn that names it, and not before."""
        store = self.fresh()
        name, _ = store.blobs.put(b"a")
        store.append("c", conversation_of(_FIRST, "a", name))
        store.append("d", conversation_of(_SECOND, "a", name))
        assert store.erase("c", _FIRST).attachments == []
        assert store.blobs.get(name) == b"a"
        assert store.erase("d", _SECOND).attachments == [name]
        assert not store.blobs.has(name)

    @needs("delete", "blobs")
    def test_deleting_takes_its_attachments(self) -> None:
        """An attachment goes with the last conversation that names it, and not before."""
        store = self.fresh()
        name, _ = store.blobs.put(b"a")
        for conversation in ("c", "d"):
            store.append(conversation, conversation_of(_FIRST, "a", name))
        store.delete("c")
        assert store.blobs.get(name) == b"a"
        store.delete("d")
        assert not store.blobs.has(name)

    @needs("delete", "blobs")
    def test_no_record_names_what_went(self) -> None:
        """A record that names an attachment that was put here and has gone is refused."""
        store = self.fresh()
        name, _ = store.blobs.put(b"a")
        store.append("c", conversation_of(_FIRST, "a", name))
        store.delete("c")
        with refused("attachment-missing"):
            store.append("d", conversation_of(_SECOND, "a", name))
        assert store.read("d") == []
        store.blobs.put(b"a")
        assert store.append("d", conversation_of(_SECOND, "a", name)) == 4
