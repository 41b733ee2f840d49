"""Checks of what names a conversation: ids, incarnations, deleting, listing."""

from __future__ import annotations

import pickle
from typing import Any

from ledger.records import kinds
from ledger.testing.bench import Bench, needs, refused
from ledger.testing.examples import BAD_IDS, CANARY, ODD_IDS, note, notes, texts


class IdentityChecks(Bench):
    """Which conversation is which, and whether it is still the one that was read."""

    # -- ids

    def test_bad_ids_are_refused_everywhere(self) -> None:
        """An id that is no safe name is conversation-id in every method that takes one."""
        store = self.fresh()
        calls: dict[str, Any] = {
            "append": lambda name: store.append(name, notes("a")),
            "append nothing": lambda name: store.append(name, []),
            "append expecting": lambda name: store.append(name, notes("a"), expect=0),
            "read": lambda name: store.read(name),
            "read after": lambda name: store.read(name, 1),
            "scan": lambda name: store.scan(name),
            "wait": lambda name: store.wait(name, 0, 0),
            "delete": lambda name: store.delete(name),
            "raw": lambda name: store.raw(name),
            "adopt": lambda name: store.adopt(name, b"x\n"),
            "verify": lambda name: store.verify(name),
            "damage": lambda name: store.damage(name),
            "erase": lambda name: store.erase(name, "t"),
        }
        accepted = []
        for method, call in calls.items():
            if not hasattr(store, method.split()[0]):
                continue
            for name in BAD_IDS:
                try:
                    with refused("conversation-id"):
                        call(name)
                except AssertionError as error:
                    accepted.append(f"{method} {name!r}: {error.__cause__!r}")
        assert accepted == []

    def test_distinct_ids_are_distinct_logs(self) -> None:
        """Ids that differ in case, length or look hold their own records, or are refused by code."""
        store = self.fresh()
        kept = []
        for name in ODD_IDS:
            try:
                assert store.append(name, notes(name), expect=0) == 1, name
                kept.append(name)
            except Exception as error:
                if getattr(error, "code", None) != "conversation-id":
                    raise
        assert {"a", "a.b", "a-", "a_", "0", "x" * 199 + "1", "x" * 199 + "2"} <= set(kept)
        for name in kept:
            assert store.append(name, notes("more"), expect=1) == 2, name
        mixed = [name for name in kept if texts(store.read(name)) != [name, "more"]]
        assert mixed == []

    @needs("delete")
    def test_deleting_one_leaves_those_alike(self) -> None:
        """Deleting a conversation removes none of those whose ids look like its files."""
        store = self.fresh()
        others = ["a.jsonl", "a.lock", "a.torn-1", "a.erase", "a.new-0a", "a.", "aa", "b"]
        for name in ["a", *others]:
            store.append(name, notes(name))
        assert store.delete("a")
        assert texts(store.read("a")) == []
        assert [name for name in others if texts(store.read(name)) != [name]] == []

    # -- incarnations

    @needs("incarnations")
    def test_positions_are_alike(self) -> None:
        """Append and read give the same position: an int that carries its incarnation, and pickles."""
        store = self.fresh()
        given = store.append("c", notes("a", "b"))
        found = [store.read("c").position, store.read("c", 1).position, store.append("c", [])]
        found += [store.read("c", given).position, pickle.loads(pickle.dumps(given))]
        for position in found:
            assert issubclass(type(position), int)
            assert position == given == 2
            assert position.incarnation == given.incarnation
        assert given.incarnation is not None
        assert store.append("c", notes("c"), expect=given).incarnation == given.incarnation
        assert store.append("d", notes("a")).incarnation != given.incarnation

    @needs("incarnations")
    def test_position_of_nothing_is_zero(self) -> None:
        """The position of a conversation without records may be expected, and read after."""
        store = self.fresh()
        nothing = store.read("c").position
        assert nothing == 0
        assert store.append("c", [], expect=nothing) == 0
        assert store.append("c", notes("a"), expect=nothing) == 1
        assert texts(store.read("c", nothing)) == ["a"]
        with refused("store-conflict"):
            store.append("c", notes("x"), expect=nothing)

    @needs("incarnations", "delete")
    def test_old_position_conflicts_after_making_anew(self) -> None:
        """A position of a deleted conversation is a conflict at any count of the one made anew."""
        store = self.fresh()
        old = store.append("c", notes("a"))
        store.delete("c")
        with refused("store-conflict"):
            store.append("c", notes("x"), expect=old)
        new = store.append("c", notes("b"))
        assert (old, new) == (1, 1)
        assert old.incarnation != new.incarnation
        with refused("store-conflict") as caught:
            store.append("c", notes("x"), expect=old)
        assert (caught.error.expected, caught.error.found) == (1, 1)
        with refused("store-conflict"):
            store.append("c", [], expect=old)
        assert texts(store.read("c")) == ["b"]
        assert store.append("c", notes("c"), expect=new) == 2

    @needs("incarnations", "delete")
    def test_old_position_is_gone_after_making_anew(self) -> None:
        """Reading after a position of a deleted conversation is store-gone at any count."""
        store = self.fresh()
        old = store.append("c", notes("a"))
        store.delete("c")
        with refused("store-gone"):
            store.read("c", old)
        store.append("c", notes("b", "c"))
        with refused("store-gone") as caught:
            store.read("c", old)
        assert (caught.error.after, caught.error.found) == (1, 2)
        assert texts(store.read("c", 1)) == ["c"]

    @needs("delete")
    def test_bare_ints_compare_counts(self) -> None:
        """A plain number says nothing of the incarnation: only the count is compared."""
        store = self.fresh()
        store.append("c", notes("a"))
        store.delete("c")
        store.append("c", notes("b"))
        assert store.read("c", 1) == []
        assert store.append("c", notes("c"), expect=1) == 2

    # -- deleting

    @needs("delete")
    def test_delete_leaves_nothing(self) -> None:
        """After deleting, the conversation holds nothing, and begins at 1 again."""
        store = self.fresh()
        store.append("c", notes("a", "b", "c"))
        store.append("d", notes("d"))
        assert store.delete("c")
        assert store.read("c") == []
        with refused("store-gone"):
            store.read("c", 1)
        with refused("store-conflict"):
            store.append("c", notes("x"), expect=3)
        assert store.append("c", [], expect=0) == 0
        assert texts(store.read("d")) == ["d"]
        assert store.append("c", notes("e"), expect=0) == 1
        assert store.read("c") == [note("e", seq=1)]

    @needs("delete")
    def test_delete_says_whether_there_was_one(self) -> None:
        """What deleting returns is true once, and false for what is not there."""
        store = self.fresh()
        assert not store.delete("c")
        store.append("c", notes("a"))
        assert store.delete("c")
        assert not store.delete("c")
        assert store.append("c", notes("a")) == 1

    @needs("delete", "reopening")
    def test_delete_is_for_everyone(self) -> None:
        """What another store at the same place deletes and makes anew is noticed by this one."""
        store = self.fresh()
        other = self.again()
        old = store.append("c", notes("a", "b"))
        assert other.delete("c")
        assert store.read("c") == []
        assert other.append("c", notes("c", "d")) == 2
        assert texts(store.read("c")) == ["c", "d"]
        assert texts(self.again().read("c")) == ["c", "d"]
        if not self.is_lacking("incarnations"):
            with refused("store-conflict"):
                store.append("c", notes("x"), expect=old)
        assert store.append("c", notes("e"), expect=2) == 3

    @needs("incarnations", "reopening")
    def test_positions_outlive_the_store(self) -> None:
        """A position given by one store is the same to another at the same place."""
        store = self.fresh()
        given = store.append("c", notes("a", "b"))
        other = self.again()
        assert other.read("c").position.incarnation == given.incarnation
        assert other.read("c", given) == []
        assert other.append("c", notes("c"), expect=given) == 3

    # -- listing

    @needs("conversations")
    def test_conversations_lists_what_holds_records(self) -> None:
        """Listed are, sorted, the ids that hold a record: none that was only asked or refused."""
        store = self.fresh()
        assert store.conversations() == []
        store.read("asked")
        store.append("nothing", [])
        with refused("record-invalid"):
            store.append("invalid", notes(float("nan")))
        with refused("store-conflict"):
            store.append("conflict", notes("a"), expect=5)
        assert store.conversations() == []
        names = ["b", "B", "a.b", "0", "a", "x" * 200]
        for name in names:
            store.append(name, notes("a"))
        assert store.conversations() == sorted(names)

    @needs("conversations", "delete")
    def test_conversations_lists_no_deleted_one(self) -> None:
        """A deleted conversation is not listed, until it is made anew."""
        store = self.fresh()
        store.append("c", notes("a"))
        store.append("d", notes("a"))
        store.delete("c")
        assert store.conversations() == ["d"]
        store.append("c", notes("b"))
        assert store.conversations() == ["c", "d"]

    @needs("conversations", "reopening")
    def test_conversations_are_those_of_the_place(self) -> None:
        """Another store at the same place lists the same conversations."""
        store = self.fresh()
        for name in ("b", "a"):
            store.append(name, notes("a"))
            assert self.again().conversations() == store.conversations()

    # -- what is said

    def test_nothing_said_holds_content(self) -> None:
        """Neither the text of an error nor of the store holds what a record says."""
        store = self.fresh()
        store.append("c", [note(CANARY, more={CANARY: [CANARY]})])
        bad = note({"text": CANARY, "list": [CANARY, float("nan")]})
        calls: list[Any] = [
            lambda: store.append("c", notes(CANARY), expect=9),
            lambda: store.append("c", [note(CANARY), bad]),
            lambda: store.append("c", [note([CANARY, CANARY + "\ud800"])]),
            lambda: store.append("c", [note(CANARY, functai_conversation=CANARY)]),
            lambda: store.append("c", [CANARY]),
            lambda: store.append("c", [note([CANARY, {CANARY}, CANARY.encode()])]),
            lambda: store.read("c", 9),
        ]
        said = [repr(store), str(store)]
        for number, call in enumerate(calls):
            try:
                call()
            except Exception as error:
                seen: BaseException | None = error
                said.append(repr(error))
                while seen is not None:
                    said.append(str(seen))
                    seen = seen.__cause__ or seen.__context__
            else:
                raise AssertionError(f"call {number} was to be refused")
        assert [text for text in said if CANARY in text] == []

    @needs("scan")
    def test_scan_says_what_read_says(self) -> None:
        """Structs of a log have the kinds, places and payloads of its dicts, and its position."""
        store = self.fresh()
        other = {"functai_conversation": 1, "kind": "novel", "at": "2026-01-01T00:00:00.000000Z"}
        stop = {**other, "kind": "stop", "turn": "t"}
        store.append("c", [note({"a": [1]}), other, stop])
        for after in range(4):
            structs, records = store.scan("c", after), store.read("c", after)
            assert [one.seq for one in structs] == [record["seq"] for record in records]
            assert list(map(type, structs)) == [type(kinds.of(record)) for record in records]
            assert structs.position == records.position
        assert kinds.payload(store.scan("c")[0].data) == {"a": [1]}
        with refused("store-gone"):
            store.scan("c", 4)
