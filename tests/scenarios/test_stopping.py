"""T18: a turn is stopped, wherever it runs, whatever its program is doing, from wherever."""

import asyncio
import gc
import threading
import time
from concurrent.futures import thread as pools
from contextlib import suppress

import pytest

import ledger
from ledger import errors
from ledger.testing.children import children
from tests.scenarios.support import FACES, SOON_S, asked, raw, states, until, view

FREED_S = 4.0
"""How long a caller may have to wait after a stop: 1 s is promised, the rest is for a busy machine."""
STUCK_S = 60.0
PIECES = ["Once ", "upon ", "a time "]


class Teller:
    """Programs of each kind that say some pieces, count what they used, and then are stuck."""

    def __init__(self, count: int):
        self.pieces = PIECES[:count]
        self.said = threading.Event()

    def _used(self):
        ledger.current().note(model="m-1", usage={"output_tokens": len(self.pieces)})
        self.said.set()

    def plain(self, message: str) -> str:
        """Say, and sleep where nothing can wake it."""
        for piece in self.pieces:
            ledger.current().emit(piece)
        self._used()
        time.sleep(STUCK_S)
        return "the end"

    def generator(self, message: str):
        """Give, and sleep."""
        yield from self.pieces
        self._used()
        time.sleep(STUCK_S)

    async def awaited(self, message: str) -> str:
        """Say, and wait for what never comes."""
        for piece in self.pieces:
            ledger.current().emit(piece)
        self._used()
        await asyncio.Event().wait()
        return "the end"

    async def generator_awaited(self, message: str):
        """Give, and wait."""
        for piece in self.pieces:
            yield piece
        self._used()
        await asyncio.Event().wait()

    async def stubborn(self, message: str) -> str:
        """Say, and take no cancelling for an answer."""
        for piece in self.pieces:
            ledger.current().emit(piece)
        self._used()
        while not ledger.current().stopped:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(STUCK_S)
        await asyncio.sleep(1)
        return "the end"

    async def stubborn_for_ever(self, message: str) -> str:
        """Take neither cancelling nor stopping for an answer."""
        self.said.set()
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(STUCK_S)


KINDS = ["plain", "generator", "awaited", "generator_awaited", "stubborn"]


def rows(message: str) -> str:
    """Answer with what is shown of the turns before."""
    return str([row["message"] for row in ledger.current().earlier()])


def stop_there(say, folder, turn):
    """In another process: stop a turn."""
    view(folder).stop(turn)


def stop_it(by, face, chat, store):
    """Stop the running turn in one of the ways. Returns: when it was asked for."""
    begun = time.monotonic()
    if by == "its conversation":
        face.do(chat.stop)
    elif by == "its request id":
        face.do(face.open("alex", store=store).stop, request_id="r")
    else:
        view(store).turn(2).stop()
    return begun


def stop_elsewhere(folder):
    """Stop the running turn in another process. Returns: when it was asked for."""
    with children(1) as (other,):
        other.prepare(stop_there, folder, 2)
        other.begin(SOON_S)
        begun = time.monotonic()
        other.result(SOON_S)
    return begun


def check_stopped(store, teller, before):
    """Raise unless the last turn is stopped, with what it had said and used, and is shown to no later turn."""
    turn = view(store).all_turns()[-1]
    assert (turn.state, turn.result, turn.outputs) == ("stopped", None, {})
    assert turn.partial == ("".join(teller.pieces) or None)
    assert (turn.model, turn.usage) == ("m-1", {"output_tokens": len(teller.pieces)})
    after = ledger.open("alex", rows, store=store).send("next")
    assert after.result == str(before)
    assert after.parent is None or after.parent.state == "done"


def check_stops(face, store, kind, count, stop):
    """Stop a program after some pieces, and raise unless all is as it should be."""
    ledger.open("alex", store=store).record("first", "1")
    teller = Teller(count)
    chat = face.open("alex", getattr(teller, kind), store=store)
    sent = face.begin(chat.send, "tell", request_id="r")
    assert teller.said.wait(SOON_S)

    begun = stop(chat)
    stopped = sent.exception(SOON_S)

    assert time.monotonic() - begun < FREED_S
    assert isinstance(stopped, errors.Cancelled)
    assert stopped.turn == view(store).turn(2).id
    check_stopped(store, teller, before=["first"])


@pytest.mark.parametrize("by", ["its conversation", "its request id", "the turn"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_frees_the_caller(face, kind, by):
    """Stopped, the caller has Cancelled at once, and what was said and used is kept."""
    store = ledger.MemoryStore()
    check_stops(face, store, kind, 2, lambda chat: stop_it(by, face, chat, store))


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_from_another_process_frees_the_caller(face, tmp_path, kind, count):
    """Stopped by another process after 0, 1 or n pieces, the caller has Cancelled within a second."""
    store = ledger.FolderStore(tmp_path / "s")
    check_stops(face, store, kind, count, lambda chat: stop_elsewhere(store.folder))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_stream_is_stopped(face, kind, count):
    """A stream that is stopped gave the pieces up to then, and then raises Cancelled."""
    store = ledger.MemoryStore()
    teller = Teller(count)
    chat = face.open("alex", getattr(teller, kind), store=store)
    stream = face.enter(chat.stream("tell"))
    assert face.read(stream, count) == teller.pieces
    assert teller.said.wait(SOON_S)

    begun = time.monotonic()
    face.do(chat.stop)
    with pytest.raises(errors.Cancelled):
        face.result(stream)

    assert time.monotonic() - begun < FREED_S
    check_stopped(store, teller, before=[])


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_a_stream_stops_the_turn(face, tmp_path, kind):
    """Leaving `with chat.stream(...)` before the end stops the turn, and it is recorded when `with` ends."""
    store = ledger.FolderStore(tmp_path / "s")
    teller = Teller(1)
    chat = face.open("alex", getattr(teller, kind), store=store)
    stream = face.enter(chat.stream("tell"))
    assert face.read(stream, 1) == PIECES[:1]
    assert teller.said.wait(SOON_S)

    begun = time.monotonic()
    face.leave(stream)

    assert time.monotonic() - begun < FREED_S
    check_stopped(store, teller, before=[])


@pytest.mark.parametrize("kind", KINDS)
def test_cancelling_the_task_stops_the_turn(tmp_path, kind):
    """A task that is cancelled while it waits for its turn ends that turn `stopped` before it ends."""
    store = ledger.FolderStore(tmp_path / "s")
    face, teller = FACES["aio"](), Teller(1)
    told = []

    async def cancelled():
        chat = ledger.aio.open("alex", getattr(teller, kind), store=store)
        task = asyncio.ensure_future(chat("tell"))
        await asyncio.to_thread(teller.said.wait, SOON_S)
        begun = time.monotonic()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            told.append(time.monotonic() - begun)

    face.do(cancelled)
    face.close()

    assert told[0] < FREED_S
    check_stopped(store, teller, before=[])


def test_a_program_says_what_it_used_when_it_is_stopped(face, store):
    """A program that notices the stop can still note what it used, and that is recorded."""
    entered = threading.Event()

    def program(message: str) -> str:
        entered.set()
        until(lambda: ledger.current().stopped)
        ledger.current().note(usage={"input_tokens": 7})
        return "too late"

    chat = face.open("alex", program, store=store)
    sent = face.begin(chat.send, "hi")
    assert entered.wait(SOON_S)
    face.do(chat.stop)

    assert isinstance(sent.exception(SOON_S), errors.Cancelled)
    turn = view(store).turn(1)
    assert (turn.state, turn.usage, turn.outputs) == ("stopped", {"input_tokens": 7}, {})


def test_a_stopped_program_that_works_on_changes_nothing(face, store):
    """What a program says and returns after its turn ended is nobody's: not a byte, not an event."""
    entered, go, over = threading.Event(), threading.Event(), threading.Event()
    raised = []

    def program(message: str) -> str:
        entered.set()
        go.wait(SOON_S)
        try:
            ledger.current().note(usage={"input_tokens": 7})
            ledger.current().emit("late")
        except errors.Cancelled as error:
            raised.append(error)
        finally:
            over.set()
        return "late"

    chat = face.open("alex", program, store=store)
    sent = face.begin(chat.send, "hi")
    assert entered.wait(SOON_S)
    face.do(chat.stop)
    assert isinstance(sent.exception(SOON_S), errors.Cancelled)
    turn = view(store).turn(1)
    before = raw(store), list(turn.events())
    go.set()
    assert over.wait(SOON_S)
    face.do(chat.keep_entry, "a", "b", 1)

    assert raised
    assert raw(store).startswith(before[0])
    assert b"late" not in raw(store)
    assert list(turn.events()) == before[1]


def test_one_of_many_is_stopped(face, store):
    """Of several turns that run at once beside each other, only the one that is named is stopped."""
    tellers = [Teller(1) for _ in range(4)]
    chats = [face.open("alex", teller.awaited, store=store, sends="branch") for teller in tellers]
    sends = [face.begin(chat.send, str(n)) for n, chat in enumerate(chats)]
    assert all(teller.said.wait(SOON_S) for teller in tellers)

    third = next(turn for turn in view(store).all_turns() if asked([turn]) == ["2"])
    third.stop()

    assert isinstance(sends[2].exception(SOON_S), errors.Cancelled)
    assert sorted(states(view(store).all_turns())) == ["running", "running", "running", "stopped"]
    for turn in view(store).all_turns():
        turn.stop()
    assert all(isinstance(send.exception(SOON_S), errors.Cancelled) for send in sends)


def asks(message: str) -> str:
    """Say something, then call a tool that a person is asked about."""
    turn = ledger.current()
    turn.emit("I would pay.")
    return turn.tool("pay", {"to": message}, lambda: "paid", effects="changes")


@pytest.mark.parametrize("end", ["abandon", "stop"])
def test_what_a_waiting_turn_had_said(face, store, end):
    """What it said is there while it waits, and is recorded when it is ended unanswered."""
    chat = face.open("alex", asks, store=store, approve="changes")
    with pytest.raises(errors.TurnWaiting):
        face.do(chat.send, "them")

    async def awaited():
        return await chat.head

    turn = face.do(awaited) if face.name == "aio" else chat.head
    assert (turn.state, turn.partial) == ("waiting", "I would pay.")
    assert view(store).turn(1).partial == "I would pay."

    face.do(getattr(turn, end))
    assert view(store).turn(1).state == "abandoned"
    assert view(store).turn(1).partial == "I would pay."
    assert store.read("alex")[-1]["partial"] == "I would pay."


def test_a_program_that_outlives_its_loop_is_collected_quietly(store):
    """A program that took no stopping, and whose loop is gone, is thrown away by the collector, who may come
    while any lock is held: nothing is waited for."""
    never = Teller(0)

    async def stopped():
        stream = await ledger.aio.open("alex", never.stubborn_for_ever, store=store).stream("hi")
        await asyncio.to_thread(never.said.wait, SOON_S)
        await stream.close()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(stopped())
    loop.close()
    del loop

    with pools._global_shutdown_lock:
        collecting = threading.Thread(target=gc.collect, daemon=True)
        collecting.start()
        collecting.join(SOON_S)
        assert not collecting.is_alive()
    assert states(view(store).all_turns()) == ["stopped"]


@pytest.mark.parametrize("face", ["blocking", "awaiting"])
@pytest.mark.parametrize("at", ["work", "queue"])
def test_a_turn_that_is_stopped_stops_what_it_waits_for(face, at, monkeypatch):
    """A conversation of its own that a program uses is stopped with the turn, at work or waiting for its place."""
    store, works, go_on = ledger.MemoryStore(), threading.Event(), threading.Event()
    waits, wait = threading.Event(), store.wait

    def told(conversation, *args, **kwargs):
        if conversation == "sub":
            waits.set()
        return wait(conversation, *args, **kwargs)

    def stuck(task: str) -> str:
        works.set()
        go_on.wait(STUCK_S)
        return "never"

    def sub(opened):
        return opened("sub", stuck, store=store)

    def blocking(message: str) -> str:
        return sub(ledger.open)(message)

    async def awaiting(message: str) -> str:
        return await sub(ledger.aio.open)(message)

    other = None
    if at == "queue":
        other = sub(ledger.open).stream("before")
        assert works.wait(SOON_S)
        monkeypatch.setattr(store, "wait", told)
    program = blocking if face == "blocking" else awaiting
    inner = ledger.open("sub", store=store)
    chat = ledger.open("main", program, store=store, remembers={inner: "own"})
    stream = chat.stream("go")
    assert (works if other is None else waits).wait(SOON_S)

    chat.stop()

    with pytest.raises(errors.Cancelled):
        _ = stream.result
    if other is None:
        assert inner.turn(1).wait(SOON_S) == "stopped"
    go_on.set()
    if other is not None:
        assert other.result == "never"
    assert [turn.inputs["task"] for turn in inner.all_turns()] == ["before" if other else "go"]


@pytest.mark.parametrize("face", ["blocking", "awaiting"])
@pytest.mark.parametrize("verb", ["merge", "record"])
def test_a_turn_that_is_stopped_makes_no_merge_that_it_waits_for(face, verb, monkeypatch):
    """What waits behind a running turn of another conversation is not made: no merging program runs."""
    store, works, go_on = ledger.MemoryStore(), threading.Event(), threading.Event()
    waits, left, wait, merged = threading.Event(), threading.Event(), store.wait, []

    def told(conversation, *args, **kwargs):
        if conversation == "sub":
            waits.set()
        return wait(conversation, *args, **kwargs)

    def stuck(task: str) -> str:
        works.set()
        go_on.wait(STUCK_S)
        return "done"

    def by(answers):
        merged.append(answers)
        return "merged"

    def made(opened):
        chat = opened("sub", store=store)
        return chat.merge([1], by) if verb == "merge" else chat.record("more", "x")

    def blocking(message: str) -> str:
        try:
            return made(ledger.open).result
        finally:
            left.set()

    async def awaiting(message: str) -> str:
        try:
            return (await made(ledger.aio.open)).result
        finally:
            left.set()

    other = ledger.open("sub", stuck, store=store).stream("before")
    assert works.wait(SOON_S)
    monkeypatch.setattr(store, "wait", told)
    program = blocking if face == "blocking" else awaiting
    inner = ledger.open("sub", store=store)
    chat = ledger.open("main", program, store=store, remembers={inner: "own"})
    stream = chat.stream("go")
    assert waits.wait(SOON_S)

    chat.stop()

    with pytest.raises(errors.Cancelled):
        _ = stream.result
    assert left.wait(SOON_S)
    go_on.set()
    assert other.result == "done"
    assert merged == []
    assert [turn.inputs for turn in inner.all_turns()] == [{"task": "before"}]


def test_a_turn_that_is_stopped_stops_what_its_helper_waits_for():
    """A remembered helper is a part of the turn: what it made in another conversation is stopped with the turn."""
    store, works, go_on = ledger.MemoryStore(), threading.Event(), threading.Event()

    def stuck(task: str) -> str:
        works.set()
        go_on.wait(STUCK_S)
        return "never"

    @ledger.program
    def researcher(task: str) -> str:
        return ledger.open("sub", stuck, store=store)(task)

    def program(message: str) -> str:
        return researcher(message)

    inner = ledger.open("sub", store=store)
    remembers = {inner: "own", researcher: "turn"}
    chat = ledger.open("main", program, store=store, remembers=remembers)
    stream = chat.stream("go")
    assert works.wait(SOON_S)

    chat.stop()

    with pytest.raises(errors.Cancelled):
        _ = stream.result
    assert inner.turn(1).wait(5 * FREED_S) == "stopped"
    go_on.set()
