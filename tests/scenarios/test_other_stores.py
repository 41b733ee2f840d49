"""Stores of other people in both faces: two blocking methods, or two coroutines, and nothing else."""

import asyncio
import threading
import time

import pytest

import ledger
from ledger import errors, merging
from tests.scenarios import crowd
from tests.scenarios.stores import Coroutines, TwoMethods
from tests.scenarios.support import FACES, SOON_S, Awaiting, asked, states, until

STORES = {"two methods": TwoMethods, "coroutines": Coroutines}


def plain(message: str) -> str:
    """Answer with how much was shown."""
    ledger.current().emit("well, ")
    return f"{len(ledger.current().earlier())} before {message}"


async def awaited(message: str) -> str:
    """Answer, later, with how much was shown."""
    await asyncio.sleep(0.001)
    return f"{len(ledger.current().earlier())} before {message}"


def generator(message: str):
    """Answer in pieces."""
    yield f"{len(ledger.current().earlier())} before "
    yield message


async def generator_awaited(message: str):
    """Answer in pieces, later."""
    yield f"{len(ledger.current().earlier())} before "
    await asyncio.sleep(0.001)
    yield message


class Stuck:
    """A program that is stuck."""

    def __init__(self):
        self.entered = threading.Event()

    def __call__(self, message: str) -> str:
        """Sleep."""
        self.entered.set()
        time.sleep(60)
        return ""


PROGRAMS = [plain, awaited, generator, generator_awaited]


@pytest.fixture(params=list(STORES))
def store(request):
    """Somebody else's store."""
    return STORES[request.param]()


def records(store):
    """Return what the store holds of the conversation, past its methods."""
    return getattr(store, "inner", store).logs.get("alex", [])


def turns(face, chat):
    """Return all turns, by the face."""

    async def all_():
        return await chat.all_turns()

    return face.do(all_) if isinstance(face, Awaiting) else chat.all_turns()


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_verb(face, store, program):
    """A conversation is made, streamed, branched, merged and read in a store that can do nothing special."""
    chat = face.open("alex", program, store=store)
    assert face.do(chat, "one") == "0 before one"
    stream = face.enter(chat.stream("two"))
    assert face.result(stream) == "1 before two"
    face.leave(stream)
    tries = face.do(chat.tries, "three", settings=[{"lm": "a"}, {"lm": "b"}])
    merged = face.do(chat.merge, tries, merging.pick(tries[1]))
    beside = face.do(face.do(chat.continue_from, 1).send, "beside", request_id="r")
    again = face.do(chat.send, "beside", request_id="r")

    assert merged.result == "2 before three"
    assert (beside.result, again) == ("1 before beside", beside)
    assert states(turns(face, chat)) == ["done"] * 6
    assert [r["seq"] for r in records(store)] == list(range(1, len(records(store)) + 1))


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_was_made_in_one_face_is_read_in_the_other(program, store):
    """The faces take turns in one store, each finding what the other made."""
    faces = [kind() for kind in FACES.values()]
    for n in range(4):
        chat = faces[n % 2].open("alex", program, store=store)
        assert faces[n % 2].do(chat, str(n)) == f"{n} before {n}"
    for face in faces:
        face.close()


def test_a_stop_is_seen_in_time(face, store):
    """A turn in a store that cannot wait is stopped within a second, by its view or by another one's record."""
    for other in (False, True):
        teller = Stuck()
        chat = face.open("alex", teller, store=store)
        sent = face.begin(chat.send, "hi")
        assert teller.entered.wait(SOON_S)
        begun = time.monotonic()
        if other:
            last = records(store)[-1]
            stop = {key: last[key] for key in ("functai_conversation", "at", "turn")}
            getattr(store, "inner", store).append("alex", [{**stop, "kind": "stop"}])
        else:
            face.do(chat.stop)
        assert isinstance(sent.exception(SOON_S), errors.Cancelled)
        assert time.monotonic() - begun < 4  # A second, and what a busy machine adds.


def test_many_senders(store):
    """Threads and tasks of one process make one line in it."""
    crowd.mixed(store, workers=3, each=4)
    crowd.check_one_line(store, 24)


def test_a_coroutine_store_has_one_home():
    """A coroutine store is awaited on one loop only, whoever uses it: the one it was first used on."""
    store, face = Coroutines(), FACES["aio"]()
    face.do(face.open("alex", awaited, store=store), "first")
    here = face.loop

    ledger.open("alex", plain, store=store)("from a thread that blocks")
    face.do(face.open("alex", plain, store=store), "again")

    assert store.loops == {here}
    assert asked(ledger.open("alex", store=store).turns) == [
        "first",
        "from a thread that blocks",
        "again",
    ]
    face.close()


def test_a_coroutine_store_whose_loop_ended_moves():
    """When the loop that was its home is closed, the next one is: `asyncio.run` may be called again and again."""
    store = Coroutines()
    for n in range(3):
        assert (
            asyncio.run(ledger.aio.open("alex", awaited, store=store)(str(n))) == f"{n} before {n}"
        )
    assert ledger.open("alex", plain, store=store)("blocking") == "3 before blocking"
    assert len(store.loops) == 4


def test_a_blocking_verb_on_the_loop_of_a_coroutine_store():
    """Blocking verbs on the loop that is the store's home would wait for themselves: RuntimeError, at once."""
    store = Coroutines()

    async def both():
        chat = ledger.aio.open("alex", awaited, store=store)
        await chat("hi")
        with pytest.raises(RuntimeError, match=r"ledger\.aio"):
            ledger.open("alex", plain, store=store).turns  # noqa: B018 - it raises
        with pytest.raises(RuntimeError, match=r"ledger\.aio"):
            ledger.open("alex", plain, store=store)("never")
        return await chat("again")

    assert asyncio.run(both()) == "1 before again"


def test_a_loop_is_not_blocked_by_slow_coroutines():
    """A store that awaits for long leaves the loop free, and its waits overlap."""
    store = Coroutines()
    append, read = store.append, store.read
    waiting = most = ticks = 0

    async def slowly(call, *args, **kwargs):
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        before = ticks
        while ticks < before + 5:  # So it ends only if the loop goes on meanwhile.
            await asyncio.sleep(0.01)
        waiting -= 1
        return await call(*args, **kwargs)

    class Slow(Coroutines):
        async def append(self, *args, **kwargs):
            return await slowly(append, *args, **kwargs)

        async def read(self, *args, **kwargs):
            return await slowly(read, *args, **kwargs)

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def all_():
        ticking = asyncio.create_task(tick())
        slow = Slow()
        chats = [ledger.aio.open(f"c{n}", awaited, store=slow) for n in range(20)]
        await asyncio.wait_for(asyncio.gather(*(chat("hi") for chat in chats)), SOON_S)
        ticking.cancel()

    asyncio.run(all_())

    assert most >= 10
    until(lambda: all(log[-1]["kind"] == "ended" for log in store.inner.logs.values()))
