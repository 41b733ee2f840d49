"""Lines are found by bytes that stand in them, wherever those lie."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger.records import kinds
from ledger.stores import log_search

AT = "2026-01-01T00:00:00.000000Z"


@given(
    st.lists(st.text("ab", max_size=9), max_size=9).map(lambda some: "\n".join(some).encode()),
    st.text("ab", min_size=1, max_size=4).map(str.encode),
    st.integers(4, 12),
)
def test_every_line_is_found_once(data, text, chunk):
    """As by looking at each line; in pieces as large as what is looked for, or larger."""
    found = list(log_search._lines(lambda offset: data[offset : offset + chunk], text))
    starts, start = [], 0
    for line in data.splitlines(keepends=True):
        if text in line:
            starts.append(start)
        start += len(line)
    assert found == starts


def write(store, *records):
    for kind, keys in records:
        store.append("a", [kinds.new(kind, AT, saw=[], **keys)])


def a_turn(turn, request_id, **keys):
    return "turn", {"turn": turn, "program": "p", "request_id": request_id, **keys}


def ended(turn):
    return "ended", {"turn": turn, "state": "done", "attempt": 1}


def found(store, request_id):
    sent = store.sent("a", request_id)
    return None if sent is None else [(r.turn, r.seq) for r in sent]


def said(text):
    return "entry", {"plugin": "x", "entry": "y", "data": text}


def test_the_first_turn_of_a_request_id_is_found(tmp_path):
    """With all that is recorded of it afterwards; what only mentions either is none of it."""
    with ledger.FolderStore(tmp_path) as store:
        assert store.sent("a", "r") == []
        write(store, said("r"), a_turn("t0", "q"), a_turn("t1", "r", inputs={"m": "q"}))
        write(store, a_turn("t2", "r", parent="t1"), ended("t2"), said("t1"), ended("t1"))
        assert found(store, "r") == [("t1", 3), ("t1", 7)]
        assert found(store, "q") == [("t0", 2)]
        assert store.sent("a", "t1") == []
        assert store.sent("none", "r") == []


def test_what_may_be_elsewhere_or_everywhere_is_not_told(tmp_path):
    """Reading everything is the better way then, or the only one."""
    with ledger.FolderStore(tmp_path) as store:
        many = [kinds.new("entry", AT, plugin="x", entry="often", data="t1")]
        store.append("a", many * log_search.MOST_LINES)
        assert store.sent("a", "often") == []
        write(store, a_turn("t1", "often"), a_turn("t2", "r"), a_turn("t/3", "q"))
        assert store.sent("a", "often") is None
        assert store.sent("a", "\u00fc") is None
        assert store.sent("a", "q") is None
        assert found(store, "r") == [("t2", 130)]


@pytest.mark.parametrize("void", ["turn", "ended"])
def test_what_a_batch_left_that_was_cut_is_not_told(tmp_path, void):
    """Whole lines of it are void, though their seals check: of a turn that nobody recorded, or how it did not end."""
    with ledger.FolderStore(tmp_path) as store:
        write(store, said("before"))
        if void == "ended":
            write(store, a_turn("t1", "r"))
        log = tmp_path / "conversations" / "a.jsonl"
        kept = len(log.read_bytes())
        records = [a_turn("t1", "r"), ended("t1"), said("last")][void == "ended" :]
        store.append("a", [kinds.new(kind, AT, saw=[], **keys) for kind, keys in records])
        assert found(store, "r")
        os.truncate(log, log.read_bytes().index(b"\n", kept) + 1)
        assert store.sent("a", "r") is None
        write(store, said("after"))
        assert store.sent("a", "r") is None


def test_what_is_being_erased_is_not_told(tmp_path):
    """Once it was decided, though its bytes stand there still."""
    with ledger.FolderStore(tmp_path) as store:
        write(store, a_turn("t1", "r"))
        (tmp_path / "conversations" / "a.erase").write_bytes(b"{")
        assert store.sent("a", "r") is None


@pytest.mark.parametrize("damaged", [b"before", b'"r"', b'"done"'])
def test_a_line_that_cannot_be_checked_is_not_told(tmp_path, damaged):
    """It, or the seal of the one before, is not as it was written."""
    with ledger.FolderStore(tmp_path) as store:
        write(store, said("before"), a_turn("t1", "r"), ended("t1"), a_turn("t2", "q"))
        log = tmp_path / "conversations" / "a.jsonl"
        data = log.read_bytes()
        at = data.index(b"\n") - 10 if damaged == b"before" else data.index(damaged) - 9
        log.write_bytes(data[:at] + b"#" + data[at + 1 :])
        assert store.sent("a", "r") is None
        assert found(store, "q") == [("t2", 4)]
