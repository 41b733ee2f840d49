"""Checks of the bytes that are kept: sealed, the same in every store, and mistrusted when read."""

from __future__ import annotations

import json
from typing import Any

from ledger.records import codec
from ledger.stores.memory import MemoryStore
from ledger.testing.bench import Bench, needs, refused
from ledger.testing.examples import AT, KEPT, note, notes, texts
from ledger.testing.seals import sealed_lines


class BytesChecks(Bench):
    """What lies on the disk or in the rows, reached by the raw hooks."""

    # -- torn tails (also of stores without seals)

    @needs("tearing")
    def test_a_torn_tail_costs_nothing_else(self) -> None:
        """Cut within its last record, a log keeps all before it, and takes the next records whole."""
        whole = self._of_three()
        last = whole.rindex(b"\n", 0, -1) + 1
        step = max(1, (len(whole) - last) // len(self.times(12)))
        for cut in [last + 1, *range(last + 2, len(whole) - 3, step)]:
            store = self.fresh()
            self.write_bytes(store, "c", whole[:cut])
            assert texts(store.read("c")) == ["a", "b"], f"cut at {cut}"
            assert store.append("c", notes("d", "e"), expect=2) == 4, f"cut at {cut}"
            assert texts(store.read("c")) == ["a", "b", "d", "e"], f"cut at {cut}"
            assert [record["seq"] for record in store.read("c")] == [1, 2, 3, 4]
            if not self.is_lacking("reopening"):
                assert texts(self.again().read("c")) == ["a", "b", "d", "e"], f"cut at {cut}"

    @needs("tearing")
    def test_a_tail_torn_under_an_open_store(self) -> None:
        """A store that knew the log finds the torn tail that another writer has left since."""
        store = self.fresh()
        store.append("c", notes("a", "b"))
        store.read("c")
        before = self.read_bytes(store, "c")
        self.write_bytes(store, "c", before + before[: len(before) // 3])
        assert texts(store.read("c")) == ["a", "b"]
        assert store.append("c", notes("d"), expect=2) == 3
        assert texts(store.read("c")) == ["a", "b", "d"]

    @needs("tearing", "seals")
    def test_a_lost_line_feed_costs_nothing(self) -> None:
        """A log whose last line is whole but lacks its line feed counts that line."""
        whole = self._of_three()
        store = self.fresh()
        store.append("c", notes("x"))
        self.write_bytes(store, "c", whole[:-1])
        assert texts(store.read("c")) == ["a", "b", "\u20acc"]
        assert store.append("c", notes("d"), expect=3) == 4
        assert texts(store.read("c")) == ["a", "b", "\u20acc", "d"]
        assert self.read_bytes(store, "c").startswith(whole)

    def _of_three(self) -> bytes:
        store = self.fresh()
        store.append("c", notes("a", "b"))
        store.append("c", notes("\u20acc"))
        return self.read_bytes(store, "c")

    # -- sealed bytes

    @needs("seals")
    def test_bytes_are_sealed_lines(self) -> None:
        """Each record is one sealed line, by the letter of the format, each append one batch."""
        store = self.fresh()
        assert self.read_bytes(store, "c") == b""
        for size in (1, 3, 2):
            store.append("c", notes(*(["\u2028\u00fc\x00"] * size)))
        found = sealed_lines(self.read_bytes(store, "c"), "c")
        batches = [(1, 1), (1, 3), (2, 3), (3, 3), (1, 2), (2, 2)]
        assert [(line.i, line.n) for line in found] == batches
        assert len({line.salt for line in found}) == 6
        scanner = codec.Scanner(codec.first_chain("c"))
        scanner.feed(self.read_bytes(store, "c"))
        assert [line.verdict for line in scanner.settled(at_end=True)] == ["sealed"] * 6

    @needs("seals")
    def test_bytes_are_the_same_in_every_store(self) -> None:
        """But for salts and chains, the kept bytes of any record are those of any other store."""
        store, other = self.fresh(), MemoryStore()
        batch = notes(*KEPT.values())
        for one in (store, other):
            one.append("c", batch)
            one.append("c", notes("a"))
        found = sealed_lines(self.read_bytes(store, "c"), "c")
        expected = sealed_lines(other.raw("c"), "c")
        assert [line._replace(salt=b"") for line in found] == [
            line._replace(salt=b"") for line in expected
        ]
        at, salt = store.read("c").position.incarnation
        assert (at, salt) == (AT, found[0].salt.decode())

    @needs("seals")
    def test_no_line_is_split_by_text(self) -> None:
        """Text that other readers take for a line's end stands escaped in the bytes."""
        store = self.fresh()
        store.append("c", notes("a\u2028b\u2029c\u0085d\ne\rf\x0bg\x0ch\x1ci"))
        data = self.read_bytes(store, "c")
        assert len(data.decode().splitlines()) == 1

    @needs("seals")
    def test_no_altered_byte_is_handed_out(self) -> None:
        """A record with a byte changed is `unreadable` in its place; the others keep theirs."""
        store = self.fresh()
        for text in ("a", "b", "c"):
            store.append("c", notes(text))
        good = self.read_bytes(store, "c")
        for text, expected in (("a", [None, "b", "c"]), ("b", ["a", None, "c"])):
            bad = good.replace(b'"data":"%b"' % text.encode(), b'"data":"z"')
            assert bad != good
            self.write_bytes(store, "c", bad)
            assert texts(store.read("c")) == expected
            assert [record["seq"] for record in store.read("c")] == [1, 2, 3]
            assert texts(store.read("c", 1)) == expected[1:]
        assert store.append("c", notes("d"), expect=3) == 4
        assert texts(store.read("c")) == ["a", None, "c", "d"]
        assert store.read("c")[1] == {"kind": "unreadable", "seq": 2}

    @needs("seals")
    def test_an_unfinished_batch_is_void(self) -> None:
        """Of a batch whose last line is not there, no record is handed out; their places stay."""
        store = self.fresh()
        store.append("c", notes("a"))
        store.append("c", notes("x", "y", "z"))
        lines = self.read_bytes(store, "c").splitlines(keepends=True)
        for kept in (1, 2):
            self.write_bytes(store, "c", b"".join(lines[: 1 + kept]))
            assert texts(store.read("c")) == ["a"] + [None] * kept
            count = store.append("c", notes("b"), expect=1 + kept)
            assert count == 2 + kept
            assert texts(store.read("c")) == ["a"] + [None] * kept + ["b"]

    @needs("seals")
    def test_damage_reads_alike_in_every_store(self) -> None:
        """Lines of other writers, garbage, lost, doubled and altered lines read as in any store."""
        store = self.fresh()
        store.append("c", notes("a", "b"))
        store.append("c", notes("c"))
        for name, data in damaged(self.read_bytes(store, "c")).items():
            other = MemoryStore()
            other.adopt("c", data)
            self.write_bytes(store, "c", data)
            expected = other.read("c")
            assert store.read("c") == expected, name
            for after in range(len(expected) + 1):
                assert store.read("c", after) == expected[after:], (name, after)
            for one in (store, other):
                assert one.append("c", notes("next"), expect=len(expected)) == len(expected) + 1
            assert store.read("c") == other.read("c"), name

    @needs("seals")
    def test_other_writers_records_are_kept(self) -> None:
        """Records that others wrote without seals are read whole; ours after them seal them."""
        store = self.fresh()
        store.append("c", notes("a"))
        foreign = {**note("b", novel={"x": 1}), "seq": 2}
        data = self.read_bytes(store, "c") + json.dumps(foreign).encode() + b"\n"
        self.write_bytes(store, "c", data)
        assert store.read("c", 1) == [foreign]
        assert store.append("c", notes("c"), expect=2) == 3
        assert self.read_bytes(store, "c").startswith(data)
        assert texts(store.read("c")) == ["a", "b", "c"]
        altered = self.read_bytes(store, "c").replace(b'"x": 1', b'"x": 2')
        self.write_bytes(store, "c", altered)
        assert texts(store.read("c")) == ["a", None, None]

    @needs("seals")
    def test_a_newer_format_is_read_and_not_added_to(self) -> None:
        """A log with a record of a newer format is read; appending is store-version."""
        store = self.fresh()
        store.append("c", notes("a"))
        newer = json.dumps({"functai_conversation": 2, "kind": "entry", "at": AT, "seq": 2})
        data = self.read_bytes(store, "c") + newer.encode() + b"\n"
        self.write_bytes(store, "c", data)
        assert [record["functai_conversation"] for record in store.read("c")] == [1, 2]
        with refused("store-version"):
            store.append("c", notes("b"))
        assert self.read_bytes(store, "c") == data

    # -- copies of whole logs

    @needs("copying")
    def test_raw_is_what_is_kept(self) -> None:
        """raw() gives the kept bytes; none for what is not there."""
        store = self.fresh()
        assert store.raw("c") == b""
        store.append("c", notes("a", "b"))
        assert store.raw("c") == self.read_bytes(store, "c")

    @needs("copying")
    def test_a_copy_is_the_same_log(self) -> None:
        """A log copied to another store and back is the same bytes, position and records."""
        store = self.fresh()
        position = store.append("c", notes("a", "b"))
        store.append("c", [note("\u2028")])
        data, records = store.raw("c"), store.read("c")
        other = MemoryStore()
        assert other.adopt("c", data) == 3
        assert other.append("c", notes("d"), expect=3) == 4
        second = self.fresh()
        copied = second.adopt("c", other.raw("c"))
        assert copied == 4
        assert copied.incarnation == position.incarnation
        assert second.raw("c") == self.read_bytes(second, "c") == other.raw("c")
        assert second.read("c")[:3] == records
        assert second.append("c", notes("e"), expect=copied) == 5
        assert len(sealed_lines(second.raw("c"), "c")) == 5

    @needs("copying")
    def test_a_copy_replaces_nothing(self) -> None:
        """A log is adopted only where there is none; no bytes make no conversation."""
        store = self.fresh()
        store.append("c", notes("a"))
        data = store.raw("c")
        with refused("store-conflict"):
            store.adopt("c", data)
        assert store.raw("c") == data
        assert store.adopt("empty", b"") == 0
        assert store.read("empty") == []
        if hasattr(store, "conversations"):
            assert store.conversations() == ["c"]

    @needs("verify")
    def test_verify_names_what_is_wrong(self) -> None:
        """verify() counts every verdict of a log, and names the place of a line that was altered."""
        store = self.fresh()
        for text in ("a", "b", "c"):
            store.append("c", notes(text))
        assert store.verify("c").counts == {"sealed": 3}
        assert store.damage("c") == []
        assert not store.verify("c").damaged
        bad = self.read_bytes(store, "c").replace(b'"data":"b"', b'"data":"z"')
        self.write_bytes(store, "c", bad)
        report = store.verify("c")
        assert (report.records, report.damaged) == (3, True)
        assert [(one.what, one.seq) for one in report.findings] == [("suspect", 2)]
        assert [(one.what, one.seq) for one in store.damage("c")] == [("suspect", 2)]


def damaged(data: bytes) -> dict[str, bytes]:
    """Return logs that something happened to, made of one of three records (a batch of 2, and 1)."""
    first, second, third = data.splitlines(keepends=True)
    foreign = json.dumps({**note("foreign"), "seq": 1}).encode() + b"\n"
    garbage = [b"[]\n", b"3\n", b"{}\n", b"null\n", b"xx\n", b"\xff\xfe\n", b"\0" * 9 + b"\n"]
    logs: dict[str, Any] = {
        "garbage first": [*garbage, first, second, third],
        "garbage between": [first, second, *garbage, third],
        "garbage last": [first, second, third, *garbage],
        "garbage within a batch": [first, b"xx\n", second, third],
        "blank lines": [b"\n", first, b" \t\r\n", second, b"\x0b\x0c\n", third, b"\n"],
        "another writer's first": [foreign, first, second, third],
        "another writer's last": [first, second, third, foreign],
        "another writer's within a batch": [first, foreign, second, third],
        "CRLF": [line[:-1] + b"\r\n" for line in (first, second, third)],
        "a byte order mark": [b"\xef\xbb\xbf", first, second, third],
        "first lost": [second, third],
        "middle lost": [first, third],
        "doubled": [first, second, second, third],
        "swapped": [third, first, second],
        "two in one line": [first, second[:-1], third],
        "a duplicate key": [first, second.replace(b"{", b'{"kind":"stop",', 1), third],
        "a place altered": [first, second, third.replace(b'"seq":3', b'"seq":4')],
        "deep": [first, second, b"[" * 100_000 + b"\n", third],
        "a number beyond all": [foreign.replace(b'"foreign"', b"1e999"), first, second, third],
    }
    return {name: b"".join(lines) for name, lines in logs.items()}
