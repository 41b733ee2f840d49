"""Whose turn is it: `current()` in threads, pools and tasks that programs start, also when they share them."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

import ledger
from tests.scenarios.support import SOON_S, Awaiting


def mine() -> str | None:
    """Return the id of the turn that this code runs in; None: there is none."""
    try:
        return ledger.current().turn
    except LookupError:
        return None


def in_thread(work):
    """Do work in a thread of its own."""
    given = []
    thread = threading.Thread(target=lambda: given.append(work()))
    thread.start()
    thread.join()
    return given[0]


class Thread(threading.Thread):
    """A thread that says in its own `run` whose turn it is in."""

    def run(self):
        """Say it."""
        self.found = mine()


def in_subclass():
    """Say it in a thread of a class of its own."""
    thread = Thread()
    thread.start()
    thread.join()
    return thread.found


def in_pool(pool):
    """Say it in a pool: by `submit`, by `map`, and in a thread that the pool's thread starts."""
    found = {
        pool.submit(mine).result(),
        pool.submit(in_thread, mine).result(),
        *pool.map(lambda _: mine(), range(5)),
    }
    return found.pop() if len(found) == 1 else found


async def awaited() -> str | None:
    """Say it after giving way."""
    await asyncio.sleep(0.001)
    return mine()


async def in_tasks():
    """Say it in tasks, in a thread of the loop's pool, and in tasks that tasks start."""
    loop = asyncio.get_running_loop()

    async def inner():
        return set(await asyncio.gather(awaited(), asyncio.create_task(awaited())))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(awaited())
    found = await inner()
    found |= {
        task.result(),
        await asyncio.to_thread(mine),
        await asyncio.to_thread(in_thread, mine),
    }
    found.add(await loop.run_in_executor(None, mine))
    return found.pop() if len(found) == 1 else found


def timed():
    """Say it in a timer's thread."""
    found: list[str | None] = []
    timer = threading.Timer(0.001, lambda: found.append(mine()))
    timer.start()
    timer.join()
    return found[0]


SHARED = ThreadPoolExecutor(2, "shared")


def plain(message: str) -> str:
    """Ask from everywhere that a plain program can start."""
    with ThreadPoolExecutor(2) as own:
        found = {mine(), in_thread(mine), in_subclass(), timed(), in_pool(own), in_pool(SHARED)}
    assert found == {mine()}, found
    return asyncio.run(in_tasks()) or ""


async def asynchronous(message: str) -> str:
    """Ask from everywhere that an async program can start."""
    found = {mine(), await in_tasks(), await asyncio.to_thread(in_pool, SHARED), in_pool(SHARED)}
    assert found == {mine()}, found
    return mine() or ""


def generator(message: str):
    """Ask between pieces."""
    for _ in range(3):
        yield in_pool(SHARED)[-4:]
    return mine()


async def generator_awaited(message: str):
    """Ask between pieces."""
    for _ in range(3):
        assert await in_tasks() == mine() == in_pool(SHARED)
        await asyncio.sleep(0)
    yield mine()


@pytest.mark.parametrize("program", [plain, asynchronous, generator, generator_awaited])
def test_everything_a_program_starts_is_in_its_turn(face, program):
    """In threads, pools, tasks and timers that a program starts, `current()` is its turn; nowhere after."""
    store = ledger.MemoryStore()
    for n in range(2):
        turn = face.do(face.open(f"c{n}", program, store=store).send, "hi")
        assert turn.result == turn.id
    assert {SHARED.submit(mine).result() for _ in range(4)} == {None}
    assert mine() is None


@pytest.mark.parametrize("program", [plain, asynchronous, generator, generator_awaited])
def test_turns_that_share_a_pool(face, program):
    """Twenty turns at once that share one pool of two threads each see their own turn, in every job."""
    store = ledger.MemoryStore()
    chats = [face.open(f"c{n}", program, store=store) for n in range(20)]
    if program is asynchronous or program is generator_awaited:
        chats = chats[:10]

    turns = [send.result(SOON_S) for send in [face.begin(chat.send, "hi") for chat in chats]]

    assert [turn.result for turn in turns] == [turn.id for turn in turns]
    assert {SHARED.submit(mine).result() for _ in range(4)} == {None}


def test_a_pool_that_a_turn_made_belongs_to_no_turn_after_it(face):
    """The threads of a pool, begun inside one turn, are in the next turn that uses them, and then in none."""
    store, pool = ledger.MemoryStore(), ThreadPoolExecutor(1)

    def program(message: str) -> str:
        return pool.submit(mine).result() or ""

    turns = [face.do(face.open(f"c{n}", program, store=store).send, "hi") for n in range(3)]

    assert [turn.result for turn in turns] == [turn.id for turn in turns]
    assert pool.submit(mine).result() is None
    pool.shutdown()


def test_a_thread_that_outlives_its_turn(face):
    """A thread that goes on after its turn ended may make turns of its own: it is in nobody's way."""
    store, go, made = ledger.MemoryStore(), threading.Event(), []
    threads: list[threading.Thread] = []

    def program(message: str) -> str:
        threads.append(threading.Thread(target=later))
        threads[0].start()
        return "fine"

    def later():
        assert go.wait(SOON_S)
        made.append(ledger.open("other", lambda message: mine() or "", store=store).send("hi"))

    assert face.do(face.open("alex", program, store=store), "hi") == "fine"
    go.set()
    threads[0].join(SOON_S)

    assert made[0].result == made[0].id


def test_a_caller_is_in_no_turn(face):
    """The thread or task that sent is in no turn, while the program runs and after; so are its own tasks."""
    store, entered, go = ledger.MemoryStore(), threading.Event(), threading.Event()

    def program(message: str) -> str:
        entered.set()
        assert go.wait(SOON_S)
        return "fine"

    chat = face.open("alex", program, store=store)
    sent = face.begin(chat.send, "hi")
    assert entered.wait(SOON_S)
    assert mine() is None
    if isinstance(face, Awaiting):
        assert face.do(in_tasks) is None
    go.set()
    wait([sent])
    assert (face.do(in_tasks) if isinstance(face, Awaiting) else in_thread(mine)) is None
