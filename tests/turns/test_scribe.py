"""What of a running turn is written beside the store, and when. The test does what passes do."""

from __future__ import annotations

import pytest

from ledger.stores.events import MemoryEvents
from ledger.turns import passes
from ledger.turns.commands import Outcome
from ledger.turns.pieces import Pieces
from ledger.turns.programs import recorded
from ledger.turns.scribe import Scribe
from tests.worlds import FakeWorld

TURN = "0190b1c3-0000-7000-8000-000000000001"
DONE = Outcome(state="done", outputs={"result": "said"}, value="said")


class Events(MemoryEvents):
    """Events that count the writes."""

    writes = 0

    def write(self, events):
        """Write."""
        self.writes += 1
        return super().write(events)


class Turn:
    """A turn that runs, its pieces, and the events that are kept of it."""

    def __init__(self) -> None:
        self.kept = Events()
        self.pieces = Pieces()
        program = recorded({"message": ""}, {"result": ""})
        self.scribe = Scribe(self.kept, TURN, program, self.pieces, FakeWorld())
        self.scribe.begin({"message": "x"}, [])

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events that are kept."""
        return [event["kind"] for event in self.kept.read(TURN)]

    @property
    def writes(self) -> int:
        """How often something was written."""
        return self.kept.writes


@pytest.fixture(autouse=True)
def no_passes(monkeypatch):
    """Let nothing be written but by the test."""
    monkeypatch.setattr(passes, "soon", lambda write, lane: None)


def test_a_short_turn_is_one_write():
    """A turn that ends before anything is written of it is told whole, by one write."""
    turn = Turn()
    turn.pieces.add("sa")
    turn.pieces.add("id")
    assert turn.kinds == []
    turn.scribe.end(DONE)
    assert (turn.kinds, turn.writes) == (["started", "text", "done"], 1)


def test_a_turn_that_says_nothing_is_begun_when_it_is_looked_at():
    """Its start waits to be written, and nothing does after."""
    turn = Turn()
    assert turn.scribe.waits
    turn.scribe.flush()
    assert (turn.kinds, turn.scribe.waits) == (["started"], False)


def test_a_pass_that_comes_after_the_end_writes_nothing():
    """What a program still says when its turn has ended is nobody's."""
    turn = Turn()
    turn.scribe.end(DONE)
    turn.pieces.add("late")
    turn.scribe.flush()
    assert turn.kinds == ["started", "done"]


def test_a_turn_asks_for_one_pass_at_a_time(monkeypatch):
    """However many pieces come, one pass is asked for until it is there; interrupted, the next piece asks again."""
    turn, asked = Turn(), []

    def interrupted(write, lane):
        raise KeyboardInterrupt

    monkeypatch.setattr(passes, "soon", interrupted)
    with pytest.raises(KeyboardInterrupt):
        turn.pieces.add("a")
    monkeypatch.setattr(passes, "soon", lambda write, lane: asked.append(write))
    for _ in range(3):
        turn.pieces.add("b")
    assert len(asked) == 1
    asked[0]()
    turn.pieces.add("c")
    assert len(asked) == 2
    assert [event.get("text") for event in turn.kept.read(TURN)] == [None, "abbb"]


def test_a_turn_that_cannot_be_told_of_now_is_left_for_the_next_pass(monkeypatch):
    """Whose it is may not be known at once, and another thread may be at it: a pass waits for neither."""
    turn, asked = Turn(), []
    monkeypatch.setattr(passes, "soon", lambda write, lane: asked.append(write))
    turn.pieces.add("said")
    turn.scribe.ours = lambda: None
    asked.pop()()
    assert (turn.kinds, len(asked)) == ([], 1)
    turn.scribe.ours = lambda: True
    with turn.scribe._writing:
        asked.pop()()
    assert (turn.kinds, len(asked)) == ([], 1)
    asked.pop()()
    assert (turn.kinds, asked) == (["started", "text"], [])


def test_leaving_a_turn_waits_for_nobody():
    """A turn that was lost is left though a store that hangs is being written to."""
    turn = Turn()
    with turn.scribe._writing:
        turn.scribe.leave()
    turn.scribe.flush()
    assert turn.kinds == []


def test_nothing_is_written_of_a_turn_that_is_somebody_elses():
    """A turn that was lost is not told of."""
    turn = Turn()
    turn.scribe.ours = lambda: False
    turn.pieces.add("said")
    turn.scribe.flush()
    turn.scribe.leave()
    turn.scribe.flush()
    assert turn.kinds == []
