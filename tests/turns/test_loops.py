"""Coroutines from code that blocks: loops that end while they are waited for."""

import asyncio
import threading

import pytest

import ledger
from ledger.errors import StoreIO
from ledger.turns import loops


class Coroutines:
    """A store whose methods are coroutines."""

    def __init__(self):
        self.inner = ledger.MemoryStore()

    async def append(self, conversation, records, *, expect=None):
        """Append."""
        await asyncio.sleep(0)
        return self.inner.append(conversation, records, expect=expect)

    async def read(self, conversation, after=0):
        """Read."""
        await asyncio.sleep(0)
        return self.inner.read(conversation, after)


def test_a_loop_that_stopped_is_not_waited_for_for_ever():
    """A store whose loop was stopped, not closed, fails with store-io; no thread waits for it for ever."""
    store, loop = Coroutines(), asyncio.new_event_loop()
    loop.run_until_complete(ledger.aio.open("c", store=store).record("a", "b"))

    with pytest.raises(StoreIO, match="does not run any more"):
        loops.blocking(store).read("c")
    loop.close()


def test_a_loop_that_was_closed_is_left_for_our_own():
    """A store whose loop was closed is used on the library's own loop by callers that block."""
    store = Coroutines()
    asyncio.run(ledger.aio.open("c", store=store).record("a", "b"))

    assert len(ledger.open("c", store=store).turns) == 1


def test_on_its_own_loop_a_blocking_call_is_refused():
    """A blocking call on the loop that the store lives on would wait for itself: it says what to use."""
    store = Coroutines()

    async def main():
        await ledger.aio.open("c", store=store).record("a", "b")
        with pytest.raises(RuntimeError, match=r"use ledger\.aio here"):
            ledger.open("c", store=store).record("x", "y")

    asyncio.run(main())


def test_a_timeout_of_the_store_is_the_stores():
    """A TimeoutError that a store raises reaches the caller as it is."""

    async def late():
        raise TimeoutError("the store's own")

    with pytest.raises(TimeoutError, match="the store's own"):
        loops.result_of(late(), loops.background())


def test_turns_left_on_dead_loops_hold_no_thread():
    """Many turns whose loops ended with them running leave the pool free for others."""

    def slow(message: str) -> str:
        go_on.wait(30)
        return message

    go_on, dead = threading.Event(), []
    for _ in range(40):
        loop = asyncio.new_event_loop()
        chat = ledger.aio.open("c", slow, store=Coroutines())

        async def begin(chat=chat):
            return await chat.stream("x")

        dead.append(loop.run_until_complete(begin()))
        loop.close()
    threading.Event().wait(1.0)  # Each is looked at at least once.

    answer = asyncio.run(ledger.aio.open("free", str.upper, store=ledger.MemoryStore())("x"))
    go_on.set()

    assert answer == "X"
