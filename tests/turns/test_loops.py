"""Who blocks on an event loop is not left waiting when that loop ends."""

import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

import ledger
from ledger import errors
from ledger.turns import loops
from tests.scenarios.stores import Coroutines

SOON_S = 20


class Gated(Coroutines):
    """A coroutine store, one method of which waits to be let go on, the first time."""

    def __init__(self, method):
        super().__init__()
        self.method = method
        self.entered = threading.Event()
        self.gated_on = []

    async def _gate(self, method):
        self.gated_on.append(asyncio.get_running_loop())
        if method == self.method and not self.entered.is_set():
            self.entered.set()
            await asyncio.Event().wait()

    async def append(self, conversation, records, *, expect=None):
        """Add records."""
        await self._gate("append")
        return await super().append(conversation, records, expect=expect)

    async def read(self, conversation, after=0):
        """Return the records after a place."""
        await self._gate("read")
        return await super().read(conversation, after)


def blocked(store):
    """Let a thread block on a store at home on a loop, and end that loop. Returns: what the thread got."""
    got = []

    def block():
        try:
            got.append(ledger.open("alex", store=store).record("a", "b").state)
        except errors.LedgerError as error:
            got.append(error.code)

    async def home():
        loops.settle(store, asyncio.get_running_loop())
        thread.start()
        while not store.entered.is_set():
            await asyncio.sleep(0.001)

    thread = threading.Thread(target=block)
    asyncio.run(home())
    thread.join(SOON_S)
    return got


def test_a_read_is_done_again_elsewhere():
    """A read whose loop ended in the middle of it is done again on another loop; who waited sees nothing of it."""
    assert blocked(Gated("read")) == ["done"]


def test_nothing_is_begun_on_a_loop_that_is_about_to_end():
    """A loop that cancelled a read may run on for a while until it ends: the read is not left behind there."""
    store, got = Gated("read"), []

    async def home():
        loops.settle(store, asyncio.get_running_loop())
        thread.start()
        while not store.entered.is_set():
            await asyncio.sleep(0.001)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.1)
        return asyncio.get_running_loop()

    thread = threading.Thread(
        target=lambda: got.append(ledger.open("alex", store=store).record("a", "b").state)
    )
    ended = asyncio.run(home())
    thread.join(SOON_S)

    assert got == ["done"]
    assert store.gated_on.count(ended) == 1


def test_an_append_is_not_done_again():
    """An append whose loop ended in the middle of it may have been made: store-unknown, and it is not repeated."""
    store = Gated("append")

    assert blocked(store) == ["store-unknown"]
    assert store.inner.logs == {}


def test_what_had_not_begun_is_done_elsewhere():
    """An append that the loop had not begun when it ended is made on another loop."""
    store = Gated("nothing")

    async def home():
        loops.settle(store, asyncio.get_running_loop())
        thread.start()
        time.sleep(0.2)  # The loop cannot begin it: it is kept busy to its end.

    thread = threading.Thread(target=lambda: ledger.open("alex", store=store).record("a", "b"))
    asyncio.run(home())
    thread.join(SOON_S)

    assert len(store.inner.logs["alex"]) == 3


def test_a_loop_that_pauses():
    """A loop that is used for one thing after another is no place to wait for in between."""
    store, loop = Coroutines(), asyncio.new_event_loop()
    chat = ledger.aio.open("alex", lambda message: message, store=store)
    loop.run_until_complete(chat.send("one"))

    assert ledger.open("alex", lambda message: message, store=store)("two") == "two"

    loop.run_until_complete(chat.send("three"))
    loop.close()
    assert len(ledger.open("alex", store=store).turns) == 3


def test_a_closed_loop():
    """On a loop that is closed nothing is begun."""
    loop = asyncio.new_event_loop()
    loop.close()

    async def never():
        raise AssertionError

    with pytest.raises(loops.LoopEnded) as caught:
        loops.result_of(never(), loop)

    assert not caught.value.begun


def test_what_it_raises_is_raised():
    """What an awaitable gives or raises is given or raised; a cancellation of its own says so."""

    async def fails():
        raise KeyError("x")

    async def gives_up():
        raise asyncio.CancelledError

    async def gives():
        return 7

    assert loops.result_of(gives(), loops.background()) == 7
    with pytest.raises(KeyError):
        loops.result_of(fails(), loops.background())
    with pytest.raises(loops.LoopEnded):
        loops.result_of(gives_up(), loops.background())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forks_child_has_its_own_home():
    """After a fork the child uses a coroutine store on a loop of its own: its parent's do not run there."""
    store = Coroutines()
    ledger.open("alex", lambda message: message, store=store)("parent")
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if ledger.open("alex", lambda message: message, store=store)("child") else 1
        finally:
            os._exit(code)
    deadline = time.monotonic() + SOON_S
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(ended[1]) == 0


LATE = """
import asyncio, threading
import ledger

class Slow:
    def __init__(self):
        self.inner = ledger.MemoryStore()
    async def append(self, conversation, records, *, expect=None):
        await asyncio.sleep(0.15)
        return self.inner.append(conversation, records, expect=expect)
    async def read(self, conversation, after=0):
        await asyncio.sleep(0.15)
        return self.inner.read(conversation, after)

def work():
    threading.main_thread().join()
    for store in (None, Slow()):
        print(ledger.open("alex", lambda message: message, store=store)("said"), flush=True)

threading.Thread(target=work).start()
"""


def test_a_thread_goes_on_when_the_main_thread_has_returned():
    """It may be the first that asks for anything, of any store: the process lives, and so do its loops."""
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["said", "said"], "")
