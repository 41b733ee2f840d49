"""Tests of `ledger.formats.merge_json`: what an export adds to a conversation that is there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import ImportInvalid
from ledger.formats.merge_json import missing

Record = dict[str, Any]


def record(kind: str, at: int = 0, **keys: Any) -> Record:
    return {"functai_conversation": 1, "kind": kind, "at": f"t{at}", **keys}


def turn(name: str, parent: str | None = None, answer: str = "a", text: str = "q") -> list[Record]:
    return [
        record("turn", turn=name, parent=parent, inputs={"message": text}),
        record("lease", turn=name, attempt=1),
        record("ended", turn=name, state="done", outputs={"result": answer}),
    ]


def log(*records: Record) -> list[Record]:
    return [{**one, "seq": seq} for seq, one in enumerate(records, 1)]


def bare(records: list[Record]) -> list[Record]:
    return [{k: v for k, v in one.items() if k != "seq"} for one in records]


PROGRAM = record("program", version="sha256:1")
TITLE = record("entry", plugin="title", entry="title", data="Talk")


def test_into_nothing_goes_everything():
    """Into an empty conversation goes every record, heads included, in order."""
    whole = log(PROGRAM, *turn("A"), record("head", turn="A"), TITLE)

    assert bare(whole) == missing(whole, [])


def test_the_same_again_adds_nothing():
    """What is all here adds nothing."""
    whole = log(PROGRAM, *turn("A"), *turn("B", "A"), TITLE, record("head", turn="A"))

    assert [] == missing(whole, whole)
    assert [] == missing(whole[:4], whole)


def test_turns_entries_and_programs_that_are_missing_are_added():
    """New turns come with all their records; known ones, programs and entries stay single."""
    here = log(PROGRAM, *turn("A"), TITLE, *turn("C", "A"))
    newer = record("program", version="sha256:2")
    rating = record("entry", plugin="rating", entry="stars", data=5, turn="A")
    there = log(PROGRAM, *turn("A"), *turn("B", "A"), TITLE, newer, rating)

    assert [*turn("B", "A"), newer, rating] == missing(there, here)


def test_the_head_is_not_moved():
    """A `head` record of the export is not added to a conversation that has its own."""
    there = log(*turn("A"), *turn("B", "A"), record("head", turn="A"))

    assert turn("B", "A") == missing(there, log(*turn("A")))


@pytest.mark.parametrize("changed", [turn("B", answer="x"), turn("B", text="x")])
def test_another_content_under_the_same_id_is_refused(changed):
    """A turn asked or ended otherwise refuses the whole import, naming the turn."""
    with pytest.raises(ImportInvalid, match="turn B"):
        missing(log(*turn("A"), *turn("B"), *turn("C")), log(*changed))


def test_only_the_first_end_counts():
    """A later second `ended` record of a turn is no difference."""
    late = record("ended", 9, turn="A", state="stopped")

    assert [] == missing(log(*turn("A")), log(*turn("A"), late))


def test_a_turn_that_ended_elsewhere_ends_here():
    """A turn that was still running when it was copied gets the rest of its records."""
    started, lease, ended = turn("A")
    renewed = record("lease", 1, turn="A", attempt=1)

    assert [renewed, ended] == missing(log(started, lease, renewed, ended), log(started, lease))


def test_a_turn_that_went_on_here_is_left_alone():
    """A turn that both copies went on with, unended here, is not ended from elsewhere."""
    started, lease, ended = turn("A")
    resumed = record("lease", 5, turn="A", attempt=2)

    assert [] == missing(log(started, lease, ended), log(started, lease, resumed))


def test_an_erased_turn_stays_erased():
    """What was erased here does not come back, and a copy erased there takes nothing away."""
    gone = [
        record("turn", turn="A", parent=None, inputs={}, erased=True),
        record("erased"),
        record("ended", turn="A", state="abandoned", erased=True),
    ]

    assert [] == missing(log(*turn("A")), log(*gone))
    assert [] == missing(log(*gone), log(*turn("A")))
    assert [gone[0], gone[2]] == missing(log(*gone), log(TITLE))


def test_shown_entries_follow_their_entries():
    """The places of the entries a turn was shown become those the entries have here."""
    started, lease, ended = turn("B", "A")
    there = log(TITLE, *turn("A"), record("entry", plugin="p", entry="summary", data=1), started)
    there += log(lease, {**ended, "shown_entries": [1, 5, 99]})

    added = missing(there, log(*turn("A"), TITLE))

    assert [4, 5] == added[-1]["shown_entries"]
    here = log(*turn("A"), TITLE, *added)
    assert [] == missing(there, here)


def test_what_cannot_be_read_is_not_added():
    """An unreadable line of the export adds nothing and moves no neighbour."""
    there = [*log(*turn("A")), {"kind": "unreadable", "seq": 4}, *log(TITLE)]

    assert [TITLE] == missing(there, log(*turn("A")))


def test_kinds_of_other_programs_go_along():
    """Records of kinds not known here go with their turn, or by content."""
    own = record("later_kind", turn="B", data=1)
    alone = record("later_kind", data=2)
    there = log(*turn("A"), *turn("B"), own, alone)

    assert [*turn("B"), own, alone] == missing(there, log(*turn("A")))


@given(st.integers(0, 6), st.permutations("ABCDEF"), st.permutations("ABCDEF"))
def test_what_both_begin_with_changes_nothing(alike, there, here):
    """Copies that begin alike lack what the rests of them lack, place by place."""
    begin = [one for name in "GHIJKL"[:alike] for one in turn(name)]
    rests = [[one for name in names[:4] for one in turn(name)] for names in (there, here)]

    added = missing(*(log(*begin, *rest) for rest in rests))

    assert missing(*(log(*rest) for rest in rests)) == added


def test_a_beginning_that_differs_in_places_alone_is_alike():
    """The places that a record names may differ: what it is does not."""
    started, lease, ended = turn("A")
    shown = {**ended, "shown_entries": [9]}

    assert [] == missing(log(started, lease, shown), log(started, lease, {**ended, "saw_all": 1}))


@given(
    st.lists(st.sampled_from("ABCDEF"), unique=True),
    st.lists(st.sampled_from("ABCDEF"), unique=True),
)
def test_afterwards_nothing_is_missing(there, here):
    """Once the missing records are appended, the same export adds nothing, and nothing is lost."""
    exported = log(*(one for name in there for one in turn(name)))
    existing = log(*(one for name in here for one in turn(name)))

    after = log(*existing, *missing(exported, existing))

    assert [] == missing(exported, after)
    assert {*there, *here} == {one["turn"] for one in after}
