"""Logs cut into rows, against a dumb oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.stores.memory import MemoryStore
from ledger.stores.sql import pieces
from ledger.testing.bytes_checks import damaged
from ledger.testing.examples import note, notes


def log_of(*sizes: int) -> bytes:
    """Return a log that some appends made."""
    store = MemoryStore()
    for size in sizes:
        store.append("c", notes(*range(size)))
    return store.raw("c")


LOGS = {"plain": log_of(1, 3, 2), **damaged(log_of(2, 1))}
parts = st.sampled_from(
    [b"\n", b" \n", b"null\n", b"{}", b"\r\n", *log_of(2, 1).splitlines(keepends=True)]
)


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines of a log that are not blank, dumbly."""
    return [line for line in data.split(b"\n") if line.strip(b" \t\r\v\f")]


@given(st.lists(parts, max_size=8).map(b"".join))
def test_rows_are_the_log(data):
    """Rows in order and what stands torn are the bytes; row k begins with line k; each is one line."""
    rows, head = pieces.cut("c", data)

    assert b"".join(rows[seq] for seq in sorted(rows)) + (head.torn or b"") == data
    whole = lines_of(data[: len(data) - len(head.torn or b"")])
    assert head.records == len(whole)
    assert [pieces.line_of(rows[seq]) for seq in range(1, head.records + 1)] == whole
    assert all(
        pieces.is_one_line(row, last=seq == head.records) for seq, row in rows.items() if seq
    )


@pytest.mark.parametrize("name", LOGS)
def test_an_append_goes_on_from_what_the_head_says(name):
    """Where a log ends in a sealed line, its chain is all that the next line has to cover."""
    data = LOGS[name]
    head = pieces.cut("c", data).head
    if not head.ready:
        assert not data.endswith(b'"]}\n')
        return
    other = MemoryStore()
    other.adopt("c", data)
    other.append("c", [note("next")])

    again = pieces.cut("c", other.raw("c"))

    line = pieces.line_of(again.rows[again.head.records])
    salt = line.rsplit(b'"', 4)[1]
    assert again.head.records == head.records + 1
    assert len(salt) == 22
    assert other.verify("c").findings_total == len(
        [f for f in other.verify("c").findings if f.seq <= head.records]
    )


def test_rows_that_are_gone_keep_their_places():
    """A row that is missing, or is no one line, reads as a line that is no record."""
    rows, head = pieces.cut("c", log_of(1, 1, 1, 1))
    found = {**rows, 3: rows[3] + rows[3]}
    del found[2]

    window = pieces.window(found.items(), 0, 4, end=head.records)

    assert window.rows == [rows[1], pieces.GONE, pieces.GONE, rows[4]]
