"""Finding places in the bytes of a log: from the end, against reading everything."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.records import codec
from ledger.stores import lines
from ledger.stores.memory import MemoryStore
from tests.stores.support import foreign, stop

LONG = "x" * 700


@st.composite
def logs(draw):
    """Make a log of batches, foreign, blank and garbage lines, cut anywhere near its end."""
    store = MemoryStore()
    parts = draw(st.lists(st.sampled_from([1, 1, 2, 40, "f", "b", "g"]), min_size=1, max_size=12))
    count = 0
    for part in parts:
        if isinstance(part, int):
            count = int(store.append("c", [stop(LONG)] * part))
        else:
            data = store.raw("c")
            extra = {"f": foreign(LONG, count + 1), "b": b" \t\n", "g": b"[]\n"}[part]
            store.delete("c")
            count = int(store.adopt("c", data + extra))
    data = store.raw("c")
    return data[: len(data) - draw(st.integers(0, min(len(data), 900)))]


def whole(data: bytes):
    """Count and find the chain by reading everything."""
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(data[: data.rfind(b"\n") + 1])
    return scanner


@settings(max_examples=150, deadline=None)
@given(logs(), st.sampled_from([300, 2_000, 40_000]))
def test_the_end_is_the_same_from_either_side(data, block):
    """Count, chain and place found from the end are those of reading everything."""
    before, lines.BLOCK = lines.BLOCK, block
    try:
        reader, counted = lines.find_end(lines.BytesSource(data), codec.first_chain("c"))
    finally:
        lines.BLOCK = before
    expected = whole(data)

    found = reader.scanner
    assert (found.count, found.chain, found.offset) == (
        expected.count,
        expected.chain,
        expected.offset,
    )
    assert found.covered.digest() == expected.covered.digest()
    assert counted or block < len(data)


@settings(max_examples=100, deadline=None)
@given(logs(), st.data())
def test_pieces_are_every_line_once(data, choose):
    """However the log is cut into chunks, its lines come once, in order, with their bytes."""
    before, lines.CHUNK = lines.CHUNK, choose.draw(st.sampled_from([1, 100, 5_000]))
    try:
        reader = lines.Reader(lines.BytesSource(data), codec.Scanner(codec.first_chain("c")))
        pieces = [*reader.whole_lines(), reader.finish(in_flight=False)]
    finally:
        lines.CHUNK = before

    rows = [row for row in data.split(b"\n")[:-1] if row.strip()]
    assert [piece.text(line) for piece in pieces for line in piece.lines] == rows
    assert [line.seq for piece in pieces for line in piece.lines] == list(range(1, len(rows) + 1))
    assert reader.taken == len(rows)
    assert reader.rest() == data[data.rfind(b"\n") + 1 :]


@settings(max_examples=100, deadline=None)
@given(logs(), st.data())
def test_what_tells_a_place_is_the_same_from_wherever_it_is_read(data, choose):
    """From any place before it; and it is another where a byte before it is."""
    ended = data.rfind(b"\n") + 1
    first = codec.Scanner(codec.first_chain("c"))
    told, starts = {0: first.end}, [first]
    scanner = first.onward()
    for row in data[:ended].splitlines(keepends=True):
        scanner.feed(row)
        told[scanner.count] = scanner.end
        starts.append(scanner.onward())
    before, lines.CHUNK = lines.CHUNK, choose.draw(st.sampled_from([1, 100, 5_000]))
    try:
        start = choose.draw(st.sampled_from(starts))
        place = choose.draw(st.integers(start.count, scanner.count))
        assert lines.end_at(lines.BytesSource(data), start, place) == told[place]
        assert lines.end_at(lines.BytesSource(data), start, scanner.count + 1) is None
    finally:
        lines.CHUNK = before
