"""Ctrl-C at each moment of each verb that makes turns: none is left running, and the same process goes on."""

import threading
import time
from concurrent.futures import Future
from itertools import count

import pytest

import ledger
from ledger.errors import TurnUnknown
from ledger.records import kinds
from ledger.turns import running
from tests.interrupts import interrupted_at
from tests.scenarios.support import SOON_S, states, view

LONG_AGO = "2026-01-01T00:00:00.000000Z"


def program(message: str) -> str:
    """Take a moment, less if it is stopped."""
    for _ in range(20):
        if message == "next" or ledger.current().stopped:
            break
        time.sleep(0.001)
    return "the end"


async def awaited(message: str) -> str:
    """Give an answer."""
    return "the end"


def send(chat):
    """Make a turn under a request id."""
    chat.send("hi", request_id="r")


def stream(chat):
    """Read the first of a stream."""
    with chat.stream("hi") as pieces:
        next(iter(pieces), None)


def tries(chat):
    """Make two turns side by side."""
    chat.tries("hi", settings=[{"lm": "a"}, {"lm": "b"}])


def resume(chat):
    """Go on with a turn."""
    chat.turn(1).resume()


VERBS = {
    "call": lambda chat: chat("hi"),
    "send": send,
    "stream": stream,
    "tries": tries,
    "resume": resume,
    "resume_all": lambda chat: chat.resume_all(),
}


def in_time(work):
    """Do work in a thread: what hangs fails."""
    done = Future()

    def run():
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done.result(SOON_S)


@pytest.fixture(scope="module")
def interrupted():
    """The records of a turn that nobody runs any more."""
    store = ledger.MemoryStore()
    ledger.open("alex", program, store=store)("hi")
    records = [record for record in store.read("alex") if record["kind"] != "ended"]
    held = {key: records[-1][key] for key in ("turn", "holder", "attempt")}
    return [*records, kinds.new("lease", LONG_AGO, until=LONG_AGO, **held)]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("program", [program, awaited], ids=["plain", "awaited"])
def test_an_interrupt_at_each_moment(verb, program, interrupted):
    """Interrupted anywhere, a verb leaves no turn that runs, and the next send is answered."""
    resumes = verb.startswith("resume")
    places = []
    for nth in count(program is awaited, 2):
        store = ledger.MemoryStore()
        if resumes:
            store.append("alex", interrupted)
        chat = ledger.open("alex", program, store=store)
        place = interrupted_at(nth, lambda chat=chat: VERBS[verb](chat))
        if place is None:
            break
        found = set(in_time(lambda store=store: states(view(store).all_turns())))
        if place.startswith("Stream.__enter__"):  # Its caller has the stream by then.
            chat.stop()
            found = {view(store).turn(1).wait(SOON_S)}

        assert found <= {"stopped", "done", *(["interrupted"] if resumes else [])}, place
        assert running.all_here() == [], place
        if verb == "send" and not found:
            with pytest.raises(TurnUnknown):  # Nobody waits under its id.
                chat.stop(request_id="r")
        assert in_time(lambda chat=chat: chat("next")) == "the end", place
        places.append(place)
    assert len(places) > 30


def test_an_interrupt_of_a_reader():
    """Interrupted anywhere while it reads, a view knows the whole log afterwards, and writes to it."""
    store = ledger.MemoryStore()
    ledger.open("alex", program, store=store)("hi")
    for nth in count(0, 3):
        chat = ledger.open("alex", program, store=store)
        place = interrupted_at(nth, lambda chat=chat: chat.turns)
        assert in_time(lambda chat=chat: states(chat.turns)) == ["done"], place
        if place is None:
            break
    assert nth > 60
    assert in_time(lambda: chat("next")) == "the end"


def test_an_interrupt_of_who_stops():
    """Interrupted anywhere, a stop either was not asked for or is heeded; asked for again, it is."""
    for nth in count(0, 7):
        chat = ledger.open("alex", program, store=ledger.MemoryStore())
        stream = chat.stream("hi")
        place = interrupted_at(nth, lambda chat=chat: chat.stop())
        chat.stop()
        assert in_time(stream.turn.wait) in ("stopped", "done"), place
        assert in_time(lambda chat=chat: chat("next")) == "the end", place
        if place is None:
            break
    assert nth > 60
