"""Checks of values: every store keeps the same ones exactly, and refuses the same others."""

from __future__ import annotations

from ledger.records import values
from ledger.testing.bench import Bench, refused
from ledger.testing.examples import KEPT, NO_RECORDS, REFUSED, note, notes, same, texts


class ValueChecks(Bench):
    """The table of values, long records, and content that must not leak."""

    def test_values_come_back_the_same(self) -> None:
        """Every value that may be kept comes back equal and of the same types."""
        store = self.fresh()
        wrong = []
        for number, (name, value) in enumerate(KEPT.items()):
            try:
                store.append(f"v{number}", [note(value)])
                if not same(store.read(f"v{number}")[0]["data"], value):
                    wrong.append(f"{name}: another value")
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}")
        assert wrong == []

    def test_text_of_every_kind_is_kept(self) -> None:
        """Every character that is text comes back, also as a key."""
        store = self.fresh()
        ranges = [(0, 0x3000), (0xD000, 0xD800), (0xE000, 0x10000), (0x1F000, 0x20000)]
        expected = ["".join(map(chr, range(*bounds))) for bounds in ranges]
        keys = {chr(point): 1 for point in range(0x3000)}
        store.append("c", [*notes(*expected), note(keys)])
        found = texts(store.read("c"))
        assert found[:-1] == expected
        assert same(found[-1], keys)

    def test_values_that_are_refused(self) -> None:
        """Every value that would come back as another is record-invalid, naming its path."""
        store = self.fresh()
        accepted, unnamed = [], []
        for name, value in REFUSED.items():
            try:
                with refused("record-invalid") as caught:
                    store.append("c", [note({"in": [0, value]})])
                if not str(caught.error.path).startswith("data.in[1]"):
                    unnamed.append(name)
            except AssertionError:
                accepted.append(name)
        assert accepted == []
        assert unnamed == []
        assert store.read("c") == []
        assert store.append("c", notes("a"), expect=0) == 1

    def test_what_is_no_record_is_refused(self) -> None:
        """A record without its format, kind or time, or of another shape, is record-invalid."""
        store = self.fresh()
        accepted = []
        for name, value in NO_RECORDS.items():
            try:
                with refused("record-invalid"):
                    store.append("c", [value])
            except AssertionError:
                accepted.append(name)
        assert accepted == []
        assert store.read("c") == []

    def test_a_big_record_is_kept(self) -> None:
        """Records of some ten megabytes are kept, and the next record finds its place."""
        store = self.fresh()
        big = '\u20ac\x00"\\\U0001f600\u2028abc ' * 500_000
        assert store.append("c", notes("a", big, "b")) == 3
        assert texts(store.read("c")) == ["a", big, "b"]
        assert store.append("c", notes("c"), expect=3) == 4
        assert texts(store.read("c", 2)) == ["b", "c"]

    def test_a_record_beyond_the_limit_is_refused(self) -> None:
        """A record of more than 64 MiB is record-too-large, with both sizes; nothing is stored."""
        store = self.fresh()
        store.append("c", notes("a"))
        with refused("record-too-large") as caught:
            store.append("c", [note("x"), note("a" * values.SIZE_LIMIT_BYTES)], expect=1)
        assert caught.error.limit_bytes == values.SIZE_LIMIT_BYTES
        assert caught.error.size_bytes > values.SIZE_LIMIT_BYTES
        shared = ["a" * 2**20] * 100
        with refused("record-too-large"):
            store.append("c", [note(shared)])
        assert store.append("c", notes("b"), expect=1) == 2
        assert texts(store.read("c")) == ["a", "b"]
