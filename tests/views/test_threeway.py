"""Two values made from one, put together."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.records.canonical import canonical
from ledger.views.threeway import ABSENT, Conflict, merged, merged_lines

VALUES = st.recursive(
    st.sampled_from([None, True, 1, 1.0, "x", "a\nb\nc\n"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3)
    ),
    max_leaves=8,
)
LINES = st.lists(st.sampled_from("abcd"), max_size=7).map(
    lambda lines: "".join(f"{x}\n" for x in lines)
)
TAKEN = "what was settled"


def put(base, one, other, settle=None):
    """Merge; a conflict gives a mark."""
    return merged(base, one, other, key=canonical, settle=settle or (lambda _: TAKEN))


@given(VALUES, VALUES)
def test_what_one_side_left_as_it_was_does_not_count(base, changed):
    """An unchanged side gives the other side, and two equal sides give what both are, with no conflict."""

    def never(conflict):
        raise AssertionError(conflict)

    for found in (
        put(base, base, changed, never),
        put(base, changed, base, never),
        put(base, changed, changed, never),
    ):
        assert canonical(found) == canonical(changed)


@given(VALUES, VALUES, VALUES)
def test_the_sides_may_be_exchanged(base, one, other):
    """Who comes first decides nothing, and nothing that was given is changed."""
    before = json.dumps([base, one, other])

    assert canonical(put(base, one, other)) == canonical(put(base, other, one))
    assert json.dumps([base, one, other]) == before


@given(*[st.dictionaries(st.sampled_from("pqrs"), st.integers(0, 2))] * 3)
def test_flat_objects_are_merged_as_a_dumb_reader_would(base, one, other):
    """Key by key: equal sides, the side that changed, or a conflict."""
    expected = {}
    for key in "pqrs":
        b, x, y = (side.get(key, ABSENT) for side in (base, one, other))
        value = x if x == y or y == b else y if x == b else TAKEN
        if value is not ABSENT:
            expected[key] = value

    assert put(base, one, other) == expected


def test_objects_are_merged_at_any_depth():
    """Each key by itself; taken away on one side and unchanged on the other is taken away."""
    base = {"plan": {"city": "Porto", "days": 2, "by": "bus"}, "notes": ["a"]}
    one = {"plan": {"city": "Lisbon", "days": 2, "by": "bus"}, "notes": ["a"]}
    other = {"plan": {"city": "Porto", "days": 3}, "notes": ["a", "b"], "new": {"x": 1}}

    assert put(base, one, other) == {
        "plan": {"city": "Lisbon", "days": 3},
        "notes": ["a", "b"],
        "new": {"x": 1},
    }


def test_conflicts_are_told_with_their_place():
    """Each value that both changed otherwise, taken away included, with what all three have."""
    told = []
    base = {"a": {"b": 1, "gone": 1, "list": [1]}}
    one = {"a": {"b": 2, "list": [1, 2]}, "text": "x"}
    other = {"a": {"b": 3, "gone": 2, "list": [0, 1]}, "text": "y"}

    def settle(conflict):
        told.append(conflict)
        return conflict.other

    found = put(base, one, other, settle)
    assert told == [
        Conflict("a.b", 1, 2, 3),
        Conflict("a.list", [1], [1, 2], [0, 1]),
        Conflict("a.gone", 1, None, 2),
        Conflict("text", None, "x", "y"),
    ]
    assert found == other


def test_true_is_not_one_and_a_float_may_be_a_whole_number():
    """Values are compared as JSON has them."""
    assert put({"n": 1}, {"n": 1.0}, {"n": 2}) == {"n": 2}
    assert put({"n": 1}, {"n": True}, {"n": 2}) == {"n": TAKEN}


@pytest.mark.parametrize(
    ("base", "one", "other", "found"),
    [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n", None),
        ("a\nb\nc\n", "a\nb\nc\nd\n", "z\na\nb\nc\n", "z\na\nb\nc\nd\n"),
        ("a\nb\n", "a\nx\nb\n", "a\ny\nb\n", None),
        ("a\nb\n", "a\nx\nb\n", "a\nx\nb\n", "a\nx\nb\n"),
        ("a\nb\nc\nd\ne\n", "b\nc\nd\ne\n", "a\nb\nc\nd\n", "b\nc\nd\n"),
        ("a\nb\nc", "A\nb\nc", "a\nb\nc\nd", "A\nb\nc\nd"),
        ("one line", "one Line", "One line", None),
    ],
)
def test_texts_are_merged_by_lines_that_are_apart(base, one, other, found):
    """Lines that both changed, or that touch, are a conflict of the whole text."""
    assert merged_lines(base, one, other) == found
    assert put({"t": base}, {"t": one}, {"t": other}) == {"t": TAKEN if found is None else found}


@given(LINES, LINES, LINES)
def test_lines_obey_the_same_laws(base, one, other):
    """Unchanged sides do not count and sides may be exchanged; what both have kept is kept."""
    assert merged_lines(base, one, base) == one
    assert merged_lines(base, base, other) == other
    assert merged_lines(base, one, one) == one
    found = merged_lines(base, one, other)
    assert found == merged_lines(base, other, one)
    if found is not None:
        assert set(found) <= set(one) | set(other)
