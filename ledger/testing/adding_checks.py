"""Checks of the two methods every store has: records added at the end, read after a position."""

from __future__ import annotations

import pytest

from ledger.testing.bench import Bench, needs, refused
from ledger.testing.examples import note, notes, same, texts


class AddingChecks(Bench):
    """Append and read, by one caller."""

    def test_first_records_are_one_and_two(self) -> None:
        """A conversation that does not exist holds nothing; its first records are 1, 2."""
        store = self.fresh()
        assert store.read("c") == []
        assert store.append("c", notes("a", "b")) == 2
        assert store.read("c") == [note("a", seq=1), note("b", seq=2)]

    def test_append_returns_the_count(self) -> None:
        """Each append returns how many records the conversation holds then."""
        store = self.fresh()
        assert [store.append("c", notes(*range(size))) for size in (1, 3, 0, 2)] == [1, 4, 4, 6]

    def test_places_are_dense(self) -> None:
        """Whatever the sizes of the appends, `seq` counts 1, 2, 3 ... in the order of adding."""
        store = self.fresh()
        for size in (1, 7, 2, 1, 20):
            store.append("c", notes(*(f"{size}-{i}" for i in range(size))))
        found = store.read("c")
        assert [record["seq"] for record in found] == list(range(1, 32))
        assert texts(found) == [f"{size}-{i}" for size in (1, 7, 2, 1, 20) for i in range(size)]
        assert all(type(record["seq"]) is int for record in found)

    def test_a_long_batch_keeps_its_order(self) -> None:
        """A thousand records of one append come back whole and in order."""
        store = self.fresh()
        assert store.append("c", notes(*range(1000))) == 1000
        assert texts(store.read("c")) == list(range(1000))

    def test_read_after_gives_the_rest(self) -> None:
        """Reading after each position gives exactly the records beyond it, in order."""
        store = self.fresh()
        for size in (1, 3, 2):
            store.append("c", notes(*range(size)))
        whole = store.read("c")
        assert len(whole) == 6
        for after in range(7):
            assert store.read("c", after) == whole[after:], f"after {after}"

    def test_beyond_the_end_is_gone(self) -> None:
        """Reading after a place that the log does not have is store-gone, with after and found."""
        store = self.fresh()
        store.append("c", notes("a", "b"))
        for conversation, after, found in (("c", 3, 2), ("c", 1000, 2), ("none", 1, 0)):
            with refused("store-gone") as caught:
                store.read(conversation, after)
            assert (caught.error.after, caught.error.found) == (after, found)

    def test_conversations_are_apart(self) -> None:
        """Two conversations that grow in turn have their own counts, places and records."""
        store = self.fresh()
        for count in range(1, 4):
            assert store.append("c", notes(f"c{count}"), expect=count - 1) == count
            assert store.append("d", notes(f"d{count}"), expect=count - 1) == count
        assert texts(store.read("c")) == ["c1", "c2", "c3"]
        assert texts(store.read("d", 1)) == ["d2", "d3"]

    def test_equal_records_are_all_kept(self) -> None:
        """The same content appended again is another record: nothing is left out as a duplicate."""
        store = self.fresh()
        record = note("a")
        for count in range(1, 4):
            assert store.append("c", [record]) == count
        assert store.append("c", [record, record]) == 5
        assert texts(store.read("c")) == ["a"] * 5

    def test_appending_nothing(self) -> None:
        """An append of no records returns the count, checks `expect`, and changes nothing."""
        store = self.fresh()
        assert store.append("c", []) == 0
        assert store.append("c", [], expect=0) == 0
        with refused("store-conflict"):
            store.append("c", [], expect=1)
        store.append("c", notes("a", "b"))
        assert store.append("c", []) == 2
        assert store.append("c", [], expect=2) == 2
        for wrong in (0, 1, 3):
            with refused("store-conflict"):
                store.append("c", [], expect=wrong)
        assert texts(store.read("c")) == ["a", "b"]

    # -- expect

    def test_expect_is_exact(self) -> None:
        """`expect` is met by the very count and by no other; a refusal changes nothing."""
        store = self.fresh()
        for count in range(4):
            before = store.read("c")
            for wrong in {0, count - 1, count + 1, count + 2, 100} - {count, -1}:
                with refused("store-conflict"):
                    store.append("c", notes("wrong"), expect=wrong)
            assert store.read("c") == before
            assert store.append("c", notes(count), expect=count) == count + 1
        assert texts(store.read("c")) == [0, 1, 2, 3]

    def test_expect_counts_records_not_appends(self) -> None:
        """After batches, what is expected is the number of records."""
        store = self.fresh()
        store.append("c", notes("a", "b", "c"), expect=0)
        with refused("store-conflict"):
            store.append("c", notes("x"), expect=1)
        assert store.append("c", notes("d", "e"), expect=3) == 5

    def test_conflict_says_expected_and_found(self) -> None:
        """A conflict carries what was expected and what was found, as numbers."""
        store = self.fresh()
        store.append("c", notes("a", "b"))
        for conversation, expect, found in (("c", 0, 2), ("c", 7, 2), ("none", 3, 0)):
            with refused("store-conflict") as caught:
                store.append(conversation, notes("x"), expect=expect)
            assert (caught.error.expected, caught.error.found) == (expect, found)

    def test_after_a_conflict_the_retry_adds_once(self) -> None:
        """Who was refused, reads and tries again with what was found has added exactly once."""
        store = self.fresh()
        store.append("c", notes("a"))
        with refused("store-conflict") as caught:
            store.append("c", notes("b"), expect=0)
        assert store.append("c", notes("b"), expect=caught.error.found) == 2
        assert texts(store.read("c")) == ["a", "b"]

    # -- all or none

    def test_a_bad_record_refuses_its_batch(self) -> None:
        """Wherever in a batch a record cannot be kept, nothing of the batch is added."""
        store = self.fresh()
        for bad in (note(float("nan")), note(b"a"), None, {"kind": "entry"}):
            for place in range(3):
                batch = notes("x", "y")
                batch.insert(place, bad)  # type: ignore[arg-type]
                with refused("record-invalid"):
                    store.append("c", batch)
        assert store.read("c") == []
        assert store.append("c", notes("a"), expect=0) == 1
        with refused("record-invalid"):
            store.append("c", [*notes("x", "y"), note({1: 2})], expect=1)
        assert store.append("c", notes("b"), expect=1) == 2
        assert texts(store.read("c")) == ["a", "b"]

    # -- copies

    def test_records_are_copied_in(self) -> None:
        """What the caller does to a record after appending it changes nothing kept."""
        store = self.fresh()
        record = note({"list": [1, {"deep": "a"}]}, more=[1])
        batch = [record]
        store.append("c", batch)
        record["data"]["list"][1]["deep"] = "changed"
        record["data"]["list"].append(2)
        record["more"] = "changed"
        record["extra"] = "changed"
        batch.append(note("changed"))
        assert store.read("c") == [note({"list": [1, {"deep": "a"}]}, more=[1], seq=1)]

    def test_append_leaves_the_callers_records_alone(self) -> None:
        """An append adds no `seq`, and nothing else, to the records it was given."""
        store = self.fresh()
        record, expected = note({"a": [1]}), note({"a": [1]})
        store.append("c", [record])
        assert same(record, expected)

    def test_records_are_copied_out(self) -> None:
        """What a caller does to what was read changes nothing kept, and no other caller's copy."""
        store = self.fresh()
        store.append("c", [note({"list": [1]})])
        first, second = store.read("c"), store.read("c")
        first[0]["data"]["list"].append(2)
        first[0]["kind"] = "changed"
        first.append("changed")
        expected = [note({"list": [1]}, seq=1)]
        assert second == expected
        assert store.read("c") == expected
        store.append("c", notes("b"))
        assert store.read("c", 1) == [note("b", seq=2)]
        assert store.read("c")[:1] == expected

    # -- what is kept

    def test_given_places_are_ignored(self) -> None:
        """A `seq` or `ledger` in a record is the store's to give; `ledger` is not handed out."""
        store = self.fresh()
        store.append("c", [note("a", seq=9, ledger=["1/1", None, "x"]), note("b", seq="x")])
        assert store.read("c") == [note("a", seq=1), note("b", seq=2)]

    def test_unknown_kinds_and_keys_are_kept(self) -> None:
        """Records of kinds, and with keys, that nobody knows come back whole, in their order."""
        store = self.fresh()
        unknown = {
            "functai_conversation": 1,
            "kind": "novel_2",
            "at": "2026-01-01T00:00:00.000001Z",
        }
        unknown |= {"zz": {"b": [None, {}], "a": 1}, "aa": "x", "": 0}
        known = note("a", novel={"x": [1]}, turn=None)
        store.append("c", [unknown, known])
        found = store.read("c")
        for record, expected in zip(found, [unknown, known], strict=True):
            record.pop("seq")
            assert same(record, expected)

    @needs("reopening")
    def test_reopened_store_holds_all(self) -> None:
        """Another store at the same place holds every record whose append had returned."""
        store = self.fresh()
        for size in (1, 3, 1):
            store.append("c", notes(*range(size)))
            assert self.again().read("c") == store.read("c")
        other = self.again()
        assert other.append("c", notes("other"), expect=5) == 6
        assert texts(store.read("c", 5)) == ["other"]
        with refused("store-conflict"):
            store.append("c", notes("x"), expect=5)
        assert self.again().read("c") == store.read("c")

    @needs("reopening")
    def test_stores_at_other_places_are_apart(self) -> None:
        """A store at another place holds nothing of this one."""
        self.fresh().append("c", notes("a"))
        assert self.fresh().read("c") == []

    def test_methods_take_what_the_protocol_says(self) -> None:
        """`expect` is given by name only; `after` by place or by name."""
        store = self.fresh()
        store.append("c", notes("a"))
        assert store.read(conversation="c", after=0) == store.read("c")
        assert store.append(conversation="c", records=notes("b"), expect=None) == 2
        with pytest.raises(TypeError):
            store.append("c", notes("x"), 2)
        assert texts(store.read("c")) == ["a", "b"]
