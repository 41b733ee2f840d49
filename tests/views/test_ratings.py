"""Ratings and labels: what counts of many, what cannot be one, and that a foreign entry says nothing."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.views import History, ratings
from ledger.views.ratings import Rating
from tests.views import build

AT = datetime(2026, 1, 1, tzinfo=UTC)


def rating(turn: Any, value: Any, by: Any = None, **keys: Any) -> dict[str, Any]:
    """The entry of a rating."""
    data = {"value": value, "by": by, "why": None, **keys}
    return build.new("entry", plugin="ledger", entry="rating", turn=turn, data=data)


def label(turn: str | None, text: Any, on: Any = True) -> dict[str, Any]:
    """The entry of a label."""
    data = {"label": text, "on": on}
    named = {} if turn is None else {"turn": turn}
    return build.new("entry", plugin="ledger", entry="label", data=data, **named)


def folded(*entries: dict[str, Any]) -> History:
    """Two turns, and entries after them."""
    return History.of([*build.line("a", "b"), *entries])


def test_the_last_rating_by_each_counts():
    """Who rates again replaces the own rating, and no other's; the last given stands at the end."""
    history = folded(
        rating("a", 1, "maria", why="at first"),
        rating("a", 2),
        rating("b", 5, "maria"),
        rating("a", 3, "maria", why="now"),
    )

    assert history.ratings("a") == [Rating(2, None, None, AT), Rating(3, "maria", "now", AT)]
    assert history.ratings("b") == [Rating(5, "maria", None, AT)]


def test_a_rating_is_taken_back():
    """A rating of None takes back the one by the same, and no other."""
    history = folded(
        rating("a", 1), rating("a", True, "maria"), rating("a", None), rating("b", None)
    )

    assert history.ratings("a") == [Rating(True, "maria", None, AT)]
    assert history.ratings("b") == []


def test_a_label_is_on_as_it_was_said_last():
    """Labels keep the order in which they were put on; the conversation's are its own."""
    history = folded(
        label("a", "x"),
        label("a", "y"),
        label("a", "x"),
        label("a", "z"),
        label("a", "y", on=False),
        label(None, "whole"),
        label("b", "gone"),
        label("b", "gone", on=False),
        label("b", "never", on=False),
    )

    assert history.labels("a") == ["x", "z"]
    assert history.labels() == ["whole"]
    assert history.labels("b") == []


@pytest.mark.parametrize(
    "entry",
    [
        rating("a", "five"),
        rating("a", [5]),
        rating("a", 4, by=7),
        rating("nobody", 4),
        label("a", 5),
        label("a", "x", on="yes"),
        label("nobody", "x"),
        build.new("entry", plugin="ledger", entry="rating", turn="a", data="five"),
        build.new("entry", plugin="ledger", entry="rating", turn="a", data=build.DAMAGED),
        build.new("entry", plugin="other", entry="rating", turn="a", data={"value": 1}),
    ],
    ids=range(10),
)
def test_what_is_no_annotation_says_nothing(entry):
    """Entries of other writers, damaged ones, and those at unknown turns leave the others as they are."""
    history = folded(rating("a", 4), label("a", "kept"), entry)

    assert [each.value for each in history.ratings("a")] == [4]
    assert history.labels("a") == ["kept"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from([None, 0, 1.5, True]), st.sampled_from("xy")
        )
    )
)
def test_ratings_are_what_a_dumb_reader_finds(given_ones):
    """For each who rated: the last that was given, unless it took the rating back."""
    history = folded(*(rating(*each) for each in given_ones))

    for turn in "ab":
        mine = [(by, value) for at, value, by in given_ones if at == turn]
        last = [
            (by, value)
            for i, (by, value) in enumerate(mine)
            if value is not None and by not in [later for later, _ in mine[i + 1 :]]
        ]
        assert [(each.by, each.value) for each in history.ratings(turn)] == last


@given(st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), st.booleans())))
def test_folding_labels_in_parts_gives_the_same(said):
    """A label is on exactly when the last that was said of it says so, however the log is read."""
    entries = [label("a", text, on) for text, on in said]
    history = folded()
    for entry in entries:
        history.extend([entry])

    assert set(history.labels("a")) == {text for text, on in dict(said).items() if on}
    assert folded(*entries).labels("a") == history.labels("a")


@pytest.mark.parametrize(
    ("value", "by", "why", "error", "told"),
    [
        ("5", None, None, TypeError, "value is a number"),
        ([1], None, None, TypeError, "value is a number"),
        (math.nan, None, None, ValueError, "finite"),
        (-math.inf, None, None, ValueError, "finite"),
        (2**60, None, None, ValueError, "at most"),
        (1, 7, None, TypeError, "by is text"),
        (1, "", None, ValueError, "by is empty"),
        (1, "a\nb", None, ValueError, "one line"),
        (1, " maria", None, ValueError, "blank"),
        (1, "x" * 101, None, ValueError, "100"),
        (1, None, 5, TypeError, "why is text"),
    ],
)
def test_what_cannot_be_a_rating_is_refused(value, by, why, error, told):
    """The refusal names what is wrong, and of what kind it is to be."""
    with pytest.raises(error, match=told):
        ratings.rating_data(value, by, why)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (5, TypeError),
        (None, TypeError),
        *((text, ValueError) for text in ("", "  ", "a\u2028b", "a\0b", " a", "a\n", "x" * 101)),
    ],
)
def test_what_cannot_be_a_label_is_refused(text, error):
    """A label is text of one line, 1 to 100 characters, none of them control characters, no blanks around it."""
    with pytest.raises(error, match="a label"):
        ratings.label_data(text, on=True)
    assert ratings.label_data("x" * 100, on=False) == {"label": "x" * 100, "on": False}


def test_any_label_can_be_taken_off():
    """One with a control character, from elsewhere, is taken off; joined signs are no such characters."""
    assert ratings.label_data("a\0b", on=False) == {"label": "a\0b", "on": False}
    assert ratings.label_data("👩‍💻", on=True)["label"] == "👩‍💻"


def test_values_are_kept_as_they_are():
    """A bool stays one, a number stays a number of its kind, also one of a class of its own; no why is none."""

    class Score(float):
        """As numpy has them."""

    for value in (True, False, 0, -3, 0.5, None):
        data = ratings.rating_data(value, None, "")
        assert (data["value"], type(data["value"])) == (value, type(value))
        assert data["why"] is None
    assert type(ratings.rating_data(Score(2.5), None, None)["value"]) is float


def test_annotations_in_short():
    """A star with the values in order, and each label behind a hash; long ones are cut."""
    entries = [
        rating("a", 4.0, "x"),
        rating("a", False, "y"),
        label("a", "good"),
        label("a", "to do"),
    ]
    history = folded(*entries)

    assert ratings.marks(history, "a", width=40) == ["★ 4, no", "#good #to do"]
    assert ratings.marks(history, "a", width=6) == ["★ 4, …", "#good…"]
    assert ratings.marks(history, "b", width=40) == []
    assert str(Rating(0.25, "maria", "short", AT)) == "0.25 by maria: short"
    assert str(Rating(True, None, None, AT)) == "yes"
