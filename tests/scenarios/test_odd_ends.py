"""Turns whose end is odd: what cannot be recorded, what raises while it is looked at, what is begun twice."""

import asyncio
import dataclasses
import os
import threading

import pytest

import ledger
from ledger import errors
from ledger.stores.events import MemoryEvents
from tests.scenarios.support import until


class Odd(Exception):
    """An exception that cannot be asked anything."""

    @property
    def code(self):
        """Raise."""
        raise BaseException("no")

    def __str__(self):
        raise BaseException("no")


def last_kinds(store):
    """The kinds of the records of the one conversation."""
    return [record["kind"] for record in store.read("c")]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_that_cannot_be_asked_anything():
    """A program that raises what cannot be told ends its turn as failed, and its caller has the error."""
    store = ledger.MemoryStore()

    def program(message: str) -> str:
        raise Odd

    with pytest.raises(Odd):
        ledger.open("c", program, store=store)("x")

    turn = ledger.open("c", store=store).turn(1)
    assert (turn.state, turn.error["type"]) == ("failed", "Odd")


def test_what_was_said_is_too_much_for_a_record():
    """A failed turn that had said more than a record holds is failed, with the beginning of it."""

    def program(message: str) -> str:
        for _ in range(70):
            ledger.current().emit("word " * (1 << 18))
        raise ValueError("late")

    store = ledger.MemoryStore()
    with pytest.raises(ValueError, match="late"):
        ledger.open("c", program, store=store)("x")

    turn = ledger.open("c", store=store).turn(1)
    assert (turn.state, turn.error["type"]) == ("failed", "ValueError")
    assert (turn.partial or "").startswith("word word")
    assert len(turn.partial or "") <= 10_000


@pytest.mark.parametrize(
    "note", [{"model": "m\ud800"}, {"usage": {"a\ud800": 1}}, {"usage": {1: 1}}]
)
def test_what_cannot_be_noted(note):
    """A model or a count that no record can hold is refused where it is noted."""

    def program(message: str) -> str:
        with pytest.raises(errors.RecordInvalid):
            ledger.current().note(**note)
        return "fine"

    assert ledger.open("c", program, store=ledger.MemoryStore())("x") == "fine"


class FullStore(ledger.MemoryStore):
    """A store that is full for a while."""

    full = False

    def append(self, conversation, records, *, expect=None):
        """Append, when there is room."""
        if self.full and records:
            raise errors.StoreFull(where="here", reason="no room")
        return super().append(conversation, records, expect=expect)


def test_an_end_is_recorded_when_there_is_room_again():
    """The end of a turn for which there was no room is recorded as soon as there is, with its answer."""
    store = FullStore()

    def program(message: str) -> str:
        store.full = True
        return "paid for"

    chat = ledger.open("c", program, store=store)
    with pytest.raises(errors.StoreFull) as caught:
        chat("x", request_id="r")
    assert "tried again" in caught.value.__notes__[0]

    store.full = False

    assert until(lambda: chat.turn(1).state == "done")
    assert chat("x", request_id="r") == "paid for"


def test_a_stream_is_begun_once():
    """Two tasks that use a stream which nobody has entered share one turn, and its program is called once."""
    calls = []

    async def program(message: str):
        calls.append(message)
        yield "a "
        yield "b"

    async def main():
        store = ledger.MemoryStore()
        stream = ledger.aio.open("c", program, store=store).stream("x")

        async def read():
            return [piece async for piece in stream]

        async def result():
            return await stream.result

        seen = await asyncio.gather(read(), result(), read())
        return seen, last_kinds(store)

    seen, kinds = asyncio.run(main())
    assert seen == [["a ", "b"], "a b", ["a ", "b"]]
    assert (len(calls), kinds) == (1, ["program", "turn", "lease", "ended"])


def test_nothing_to_try_changes_nothing():
    """`tries` without settings makes no turn, and the view stays where it was."""
    chat = ledger.open("c", str.upper, store=ledger.MemoryStore())
    chat("a")

    assert chat.tries("b", settings=[]) == []
    assert len(chat.turns) == 1


@dataclasses.dataclass
class Dataclass:
    """A store of coroutines that is not hashable."""

    inner: ledger.MemoryStore = dataclasses.field(default_factory=ledger.MemoryStore)

    async def append(self, conversation, records, *, expect=None):
        """Append."""
        return self.inner.append(conversation, records, expect=expect)

    async def read(self, conversation, after=0):
        """Read."""
        return self.inner.read(conversation, after)


def test_a_store_that_is_not_hashable():
    """A store of coroutines that is a dataclass is a store in both faces."""
    store = Dataclass()
    assert asyncio.run(ledger.aio.open("c", str.upper, store=store)("x")) == "X"
    assert ledger.open("c", str.upper, store=store)("y") == "Y"


def test_a_task_that_the_program_cancelled_is_no_stop():
    """A program that fails since it cancelled a task of its own ended as failed, not as stopped."""

    async def program(message: str) -> str:
        inner = asyncio.create_task(asyncio.sleep(10))
        inner.cancel()
        await inner
        return "never"

    store = ledger.MemoryStore()
    with pytest.raises(asyncio.CancelledError):
        ledger.open("c", program, store=store)("x")

    assert ledger.open("c", store=store).turn(1).state == "failed"


@pytest.mark.parametrize("kind", [GeneratorExit, SystemExit, KeyboardInterrupt, StopAsyncIteration])
def test_what_a_program_may_raise(kind):
    """Whatever an async program raises ends its turn as failed, and reaches its caller or as Python has it."""

    async def program(message: str) -> str:
        raise kind

    store = ledger.MemoryStore()
    with pytest.raises((kind, RuntimeError)):
        ledger.open("c", program, store=store)("x")

    assert ledger.open("c", store=store).turn(1).state == "failed"


class SlowEvents(MemoryEvents):
    """Events of a store that fails in the middle of a turn, until long after its end."""

    fails = False

    def _change(self, tree, work, *, waits=True):
        if self.fails:
            raise errors.StoreIO(where="here", reason="as told")
        return super()._change(tree, work, waits=waits)


def test_events_that_could_not_be_written_are_no_gap():
    """Who follows a turn whose last events are missing gets the rest of its answer from the records."""
    store = ledger.MemoryStore()
    store.events = SlowEvents()

    def program(message: str):
        yield "one "
        assert until(lambda: store.events.read(ledger.current().turn))
        store.events.fails = True
        yield "two "
        yield "three"

    chat = ledger.open("c", program, store=store)
    assert chat("x", request_id="r") == "one two three"

    assert "".join(chat.stream("x", request_id="r")) == "one two three"
    events = list(chat.turn(1).events())
    assert [event["kind"] for event in events] == ["started", "text", "text", "done"]
    assert list(chat.turn(1).events({"writer": 1, "seq": 2})) == events[2:]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_conversation_is_usable_in_a_forks_child_while_a_thread_appends(tmp_path):
    """A child of a fork reads with the same object though a thread of its parent was appending with it."""
    chat = ledger.open("c", store=ledger.FolderStore(tmp_path / "s"))
    chat.record("a", "b")
    over = threading.Event()

    def write():
        while not over.is_set():
            chat.record("a", "b")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if not child:
                os._exit(0 if len(chat.all_turns()) else 1)
            assert until(lambda child=child: os.waitpid(child, os.WNOHANG)[0])
    finally:
        over.set()
        thread.join()
