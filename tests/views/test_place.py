"""Where a new turn goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import Busy, BusyWaiting, TurnUnknown
from ledger.views import History, Place
from tests.views import build, oracle
from tests.views.build import AHEAD, DAMAGED, NOW

SENDS = ["queue", "refuse", "branch"]


def running(name: str, parent: str | None) -> list[build.Record]:
    """A turn that a live process holds."""
    return [build.turn(name, parent), build.lease(name, AHEAD)]


@pytest.mark.parametrize("sends", SENDS)
def test_the_first_turn_has_no_parent(sends):
    """In an empty conversation a new turn is a root."""
    assert History.of([]).place(now=NOW, sends=sends) == Place("parent")


@pytest.mark.parametrize("sends", SENDS)
def test_a_done_turn_is_continued(sends):
    """The parent is the place where the view continues if that turn ended `done`."""
    history = History.of(build.line("a", "b"))

    assert history.place(now=NOW, sends=sends) == Place("parent", parent="b")
    assert history.place(now=NOW, sends=sends, at="a") == Place("parent", parent="a")


@pytest.mark.parametrize("sends", SENDS)
@pytest.mark.parametrize("state", ["failed", "stopped", "abandoned", None])
def test_a_turn_without_an_answer_is_never_a_parent(state, sends):
    """Failed, stopped, abandoned and interrupted turns yield to the nearest done ancestor."""
    records = [*build.line("a"), build.turn("b", "a"), build.lease("b"), build.turn("c", "b")]
    if state is not None:
        records += [build.ended("b", state), build.ended("c", state)]
    history = History.of(records)

    assert history.place(now=NOW, sends=sends) == Place("parent", parent="a")


def test_without_a_done_ancestor_it_is_a_root():
    """When no turn of the branch is done, the new turn is a root."""
    history = History.of([build.turn("a"), build.ended("a", "failed")])

    assert history.place(now=NOW) == Place("parent", parent=None)


def test_queue_waits_for_a_running_turn():
    """sends="queue", the default: wait for the running turn."""
    history = History.of([*build.line("a"), *running("b", "a")])

    assert history.place(now=NOW) == Place("waits_for", waits_for="b")


def test_refuse_says_busy():
    """sends="refuse": conversation-busy, with the state and the conversation's name."""
    history = History.of([*build.line("a"), *running("b", "a")], conversation="c1")
    refusal = history.place(now=NOW, sends="refuse").refusal

    assert type(refusal) is Busy
    assert (refusal.code, refusal.state) == ("conversation-busy", "running")
    assert (refusal.conversation, refusal.turn) == ("c1", "b")


def test_branch_goes_beside_a_running_turn():
    """sends="branch": from the running turn's parent."""
    history = History.of([*build.line("a"), *running("b", "a")])

    assert history.place(now=NOW, sends="branch") == Place("parent", parent="a")


def test_a_dead_holder_keeps_nobody_waiting():
    """A running turn whose holder is known dead is interrupted: its ancestor is continued."""
    history = History.of([*build.line("a"), *running("b", "a")])

    assert history.place(now=NOW, dead={("h", 1)}) == Place("parent", parent="a")


@pytest.mark.parametrize("sends", ["queue", "refuse"])
def test_a_waiting_turn_refuses_with_its_questions(sends):
    """A waiting turn refuses, but for sends="branch"; the refusal carries the open questions."""
    question = build.question()
    history = History.of(
        [*build.line("a"), build.turn("b", "a"), build.waiting("b", (question,))],
    )
    refusal = history.place(now=NOW, sends=sends).refusal

    assert type(refusal) is BusyWaiting
    assert (refusal.code, refusal.state) == ("conversation-busy", "waiting")
    (asked,) = refusal.questions
    assert asked == {**question, "key": f"{question['site']}:{question['invocation']}"}
    assert history.place(now=NOW, sends="branch") == Place("parent", parent="a")


def test_damaged_questions_still_refuse():
    """Questions that do not decode are left out of the refusal, which stays the same otherwise."""
    history = History.of([build.turn("a"), build.waiting("a", DAMAGED)])
    refusal = history.place(now=NOW).refusal

    assert isinstance(refusal, BusyWaiting)
    assert refusal.questions == ()


def test_what_is_no_place_is_refused():
    """An unknown turn is turn-unknown; another word for `sends` is a mistake."""
    history = History.of(build.line("a"))

    with pytest.raises(TurnUnknown):
        history.place(now=NOW, at="nobody")
    with pytest.raises(ValueError, match="queue"):
        history.place(now=NOW, sends="never")  # type: ignore[arg-type]


@given(build.logs, st.sampled_from(SENDS), st.sampled_from([set(), {("h", 1)}]))
def test_places_match_their_twin(records, sends, dead):
    """Exactly one of parent, waits_for and refusal is meaningful, as the contract says."""
    history = History.of(records)
    for at in (None, *history.order):
        place = history.place(now=NOW, sends=sends, at=at, dead=dead)
        kind, expected = oracle.place(records, at, sends, NOW, dead)

        assert place.kind == kind
        if place.refusal is not None:
            assert place.refusal.state == expected
        else:
            assert getattr(place, kind) == expected
        others = {"parent", "waits_for", "refusal"} - {kind}
        assert all(getattr(place, other) is None for other in others)
