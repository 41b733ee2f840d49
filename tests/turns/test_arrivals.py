"""Sends that wait, in order of arrival: who stands behind whom, and who is passed by."""

import asyncio
import time
from dataclasses import dataclass

import pytest

from ledger.turns import arrivals
from ledger.turns.arrivals import PATIENCE_S
from ledger.views import History

STORE = object()
EMPTY = History("c")


@dataclass(eq=False)
class Send:
    """A send that waits at a place, wherever that is in the history."""

    turn: str
    place: str | None = "a"
    request_id: str | None = None
    rests: float | None = None
    cancelled: bool = False

    def cancel(self):
        """Note that it is no longer wanted."""
        self.cancelled = True

    def queues_at(self, history):
        """Return the place."""
        return self.place


@pytest.fixture
def arrive():
    """Have sends of these places arrive one after another; they leave in the end."""
    came = []

    def come(*places, store=STORE, **how):
        sends = [
            Send(f"t{len(came)}.{number}", place, **how) for number, place in enumerate(places)
        ]
        for send in sends:
            arrivals.arrive(send, "c", store)
        came.extend(sends)
        return sends

    yield come
    for send in came:
        arrivals.leave(send, "c")


def behind(*sends, history=EMPTY):
    """Say of each send whether it stands behind another one."""
    return [arrivals.is_behind(send, "c", history) for send in sends]


def test_who_came_first_goes_first(arrive):
    """Of several at one place the first stands behind nobody; when it leaves, the next does not."""
    first, second, third = arrive("a", "a", "a")
    assert behind(first, second, third) == [False, True, True]

    arrivals.leave(first, "c")
    arrivals.leave(first, "c")

    assert behind(second, third) == [False, True]


def test_who_waits_elsewhere_is_in_nobodys_way(arrive):
    """Another place, another store, and who stands in no line: none of them is waited for, and none waits."""
    other, nowhere, mine, beside = arrive("b", None, "a", None)
    (elsewhere,) = arrive("a", store=object())
    assert behind(other, nowhere, mine, beside, elsewhere) == [False] * 5
    (later,) = arrive("b")
    assert behind(later) == [True]


def test_the_place_is_the_one_of_now(arrive):
    """Who waits for something else by now is waited for no more."""
    first, second = arrive("a", "a")
    first.place = "b"
    assert behind(second) == [False]


def test_who_never_arrived_waits_for_nobody(arrive):
    """What is made without waiting stands behind nobody."""
    arrive("a")
    assert behind(Send("x")) == [False]


def test_who_is_recorded_is_no_longer_waited_for(arrive):
    """From when its turn is in the log it holds up nobody, though it has not left."""

    class Recorded(History):
        def found(self, turn):
            return turn if turn == first.turn else None

    first, second = arrive("a", "a")
    assert behind(second, history=Recorded("c")) == [False]


def test_who_does_not_ask_any_more_is_passed_by(arrive):
    """One that rests for long is held up; one that is at work for long is not."""
    first, second = arrive("a", "a")
    first.rests = time.monotonic()
    assert behind(second) == [True]
    first.rests -= PATIENCE_S
    assert behind(second) == [False]
    first.rests = None
    assert behind(second) == [True]


def test_who_is_gone_is_passed_by():
    """One that vanished without leaving, as an interrupt at the wrong moment may have it, is forgotten."""
    first, second = Send("first"), Send("second")
    arrivals.arrive(first, "c", STORE)
    arrivals.arrive(second, "c", STORE)
    del first
    assert behind(second) == [False]
    arrivals.leave(second, "c")
    assert not arrivals._arrived


def test_who_waits_on_a_loop_that_ended_is_passed_by(arrive):
    """A loop that stopped asks for nobody; when it goes on, who waits there has kept the place."""
    loop, came = asyncio.new_event_loop(), []

    async def come():
        came.extend(arrive("a"))

    loop.run_until_complete(come())
    came.extend(arrive("a"))
    assert behind(*came) == [False, False]

    async def look():
        return behind(*came)

    assert loop.run_until_complete(look()) == [False, True]
    loop.close()


def test_what_is_sent_for_another_stands_behind_nobody(arrive):
    """What is sent while a summary is made for a send would wait for itself: behind that, or who stands behind it."""
    first, second, inside = arrive("a", "a", "a")
    first.rests = 0.0
    with arrivals.serving(first):
        assert (first.rests, behind(inside)) == (None, [False])
    assert behind(second, inside) == [True, True]


def test_those_of_a_request_are_cancelled(arrive):
    """Cancelled are all that wait under the request id in that conversation."""
    one, other = arrive("a", "b", request_id="r")
    (third,) = arrive("a")
    assert arrivals.cancel("c", "r")
    assert not arrivals.cancel("c", "q")
    assert not arrivals.cancel("d", "r")
    assert [each.cancelled for each in (one, other, third)] == [True, True, False]
