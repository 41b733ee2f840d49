"""A part of an index gives what was put into it, says when it was altered, and knows where branches meet."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.stores import index_parts
from ledger.stores.index_parts import Damaged, Part, Row, Stretch

NAMES = st.sampled_from(["a", "b", "c", "d"])
LETTERS = st.sampled_from([index_parts.TURN, index_parts.ABOUT])
ENTRIES = st.lists(st.tuples(LETTERS, NAMES, st.integers(0, 1 << 40)), max_size=40)
PARENTS = st.lists(st.integers(0, 1 << 30), max_size=60).map(
    lambda drawn: [number % (ordinal + 1) for ordinal, number in enumerate(drawn)]
)
"""The parents of turns 1, 2, 3 ...: each an earlier one, or 0."""


def rows_of(parents):
    rows: list[Row] = []
    for ordinal, parent in enumerate(parents, 1):
        rows.append(index_parts.row(ordinal * 10, ordinal, parent, lambda n: rows[n - 1]))
    return rows


def encoded(entries, rows, *, start=0, turns_before=0, chains=(b"x" * 22, b"y" * 22)):
    turns = turns_before + len(rows)
    stretch = Stretch(
        7, start, start + 9, start, start + 9, turns_before, turns, 0, len(entries), *chains
    )
    packed = [index_parts.entry(letter, name, value) for letter, name, value in entries]
    return index_parts.encode(stretch, packed, b"".join(map(index_parts.packed, rows)))


def reading(data):
    return lambda offset, length: data[offset : offset + length]


def looked_up(data, entries, rows):
    """All that a part can be asked for, or "damaged"."""
    read = reading(data)
    try:
        part = Part(read)
        values = [
            part.values(index_parts.hashed(letter, name), read)
            for letter in (index_parts.TURN, index_parts.ABOUT)
            for name in "abcdx"
        ]
        return values, [part.row(ordinal, read) for ordinal in range(1, len(rows) + 1)]
    except Damaged:
        return "damaged"


def known(entries, rows):
    values = [
        sorted(value for letter, name, value in entries if (letter, name) == (wanted, named))
        for wanted in (index_parts.TURN, index_parts.ABOUT)
        for named in "abcdx"
    ]
    return values, rows


@given(ENTRIES, PARENTS)
def test_a_part_gives_what_was_put_into_it(entries, parents):
    """Each value under its key, in order; each row under its ordinal."""
    rows = rows_of(parents)
    assert looked_up(encoded(entries, rows), entries, rows) == known(entries, rows)


def test_a_key_may_have_more_values_than_a_page_holds():
    """Values of one key are found on every page that they stand on."""
    entries = [(index_parts.TURN, "b", n) for n in range(1500)]
    entries += [(index_parts.ABOUT, name, 3) for name in "acd"]
    rows = rows_of(range(1000))
    assert looked_up(encoded(entries, rows), entries, rows) == known(entries, rows)


@given(ENTRIES, PARENTS, st.data())
def test_a_part_that_was_altered_says_so(entries, parents, data):
    """Bytes that were changed, cut off, or added never change an answer."""
    rows = rows_of(parents)
    good = encoded(entries, rows)
    at = data.draw(st.integers(0, len(good) - 1))
    bad = data.draw(
        st.sampled_from(
            [good[:at], good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :], good + b"more"]
        )
    )
    assert looked_up(bad, entries, rows) in ("damaged", known(entries, rows))


@given(ENTRIES, ENTRIES, PARENTS)
def test_parts_that_follow_each_other_are_joined(some, others, parents):
    """The one that stands for them answers as both."""
    rows, half = rows_of(parents), len(parents) // 2
    first = encoded(some, rows[:half], chains=(b"x" * 22, b"y" * 22))
    second = encoded(others, rows[half:], start=9, turns_before=half, chains=(b"y" * 22, b"z" * 22))
    read = []
    for data in (first, second):
        part = Part(reading(data))
        read.append((part.stretch, *part.everything(reading(data))))
    stretch, data = index_parts.joined(read)

    both = [*some, *others]
    assert looked_up(data, both, rows) == known(both, rows)
    assert Part(reading(data)).stretch == stretch
    assert (stretch.start, stretch.end, stretch.turns, stretch.chain_before, stretch.chain) == (
        *(0, 18, len(rows), b"x" * 22, b"z" * 22),
    )


@given(PARENTS, st.data())
def test_where_two_branches_meet(parents, data):
    """As by walking up one step at a time."""
    if not parents:
        return
    a, b = (data.draw(st.integers(1, len(parents))) for _ in range(2))
    rows = rows_of(parents)

    def branch(turn):
        while turn:
            yield turn
            turn = parents[turn - 1]

    above = set(branch(a))
    met = next((turn for turn in branch(b) if turn in above), 0)
    assert index_parts.meeting(a, b, lambda n: rows[n - 1]) == met


def test_few_steps_lead_far_up():
    """From the end of a line of many thousands to a turn near its start, some thirty rows are looked at."""
    rows = rows_of(range(50_000))
    asked = []

    def row_of(ordinal):
        asked.append(ordinal)
        return rows[ordinal - 1]

    assert index_parts.meeting(49_999, 3, row_of) == 3
    assert len(asked) < 150
