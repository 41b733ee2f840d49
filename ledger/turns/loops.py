"""Coroutines from code that blocks: a loop of this process's own, and coroutine stores as blocking ones.

The blocking face has to run async programs and to use stores whose methods are coroutines. It gives
them to one event loop in a thread of its own, always the same one, so that clients and pools that a
program keeps between turns stay on the loop they were made on. The awaiting face gives them to the
caller's loop instead. So a store has a home: the loop it was first used on, while that runs.

asyncio is loaded when a loop is needed, here and in the modules that take it from here: it takes a fifth of what
opening a first conversation takes, and who blocks, with programs that do, needs none.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ledger.errors import StoreUnknown
from ledger.turns.identity import ByIdentity


class _Late:
    """A module that is loaded when something in it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(import_module(self._name), name)
        return found


if TYPE_CHECKING:
    import asyncio as asyncio
else:
    asyncio = _Late("asyncio")

LAST_S = 2.0
"""How long a caller that is cancelled waits for what it began, such as its turn's being recorded as stopped."""
LOOK_S = 0.1
"""How often who waits for something on an event loop looks whether that loop is still there."""
END_S = 1.0
"""How long a loop that cancelled a call is given to end, before the call is made there again."""
PAUSE_S = 0.005
"""How often is looked meanwhile."""
TRIES = 3
"""How often a call of a store is begun anew on another loop."""
READS = ("read", "scan", "wait")
"""What may be called again though it had begun."""

T = TypeVar("T")
Loop: TypeAlias = "asyncio.AbstractEventLoop"


class _Background:
    """The loop for callers that block."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid = 0
        self._loop: asyncio.AbstractEventLoop

    def loop(self) -> asyncio.AbstractEventLoop:
        with self.lock:
            if self.pid != os.getpid():
                self.pid = os.getpid()
                self._loop = asyncio.new_event_loop()
                run = self._loop.run_forever
                thread = threading.Thread(target=run, name="ledger-loop", daemon=True)
                Context().run(thread.start)
            return self._loop

    def is_it(self, loop: asyncio.AbstractEventLoop) -> bool:
        return self.pid == os.getpid() and loop is self._loop


_background = _Background()


def _renew() -> None:
    """In a fork's child no loop of its parent runs, though each says that it does."""
    _background.lock = threading.Lock()
    _homes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def background() -> asyncio.AbstractEventLoop:
    """Return the loop on which callers that block have their coroutines run."""
    return _background.loop()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread, or None."""
    if "asyncio" not in sys.modules:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_still: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("ledger_still", default=None)


def stands_still(loop: asyncio.AbstractEventLoop | None) -> None:
    """Say in a context that a loop does nothing until the work there is done: its thread waits for it."""
    _still.set(loop)


_at_work: set[asyncio.Task[Any]] = set()


def start(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], context: Context
) -> Callable[[], None]:
    """Run a coroutine as a task of a loop, from any thread. Returns: what cancels it, from any thread."""
    tasks: list[asyncio.Task[Any]] = []
    cancelled = False

    def begin() -> None:
        task = loop.create_task(coroutine, context=context)
        # A loop refers to its tasks weakly: one that nothing else knows would vanish while it waits.
        _at_work.add(task)
        task.add_done_callback(_at_work.discard)
        tasks.append(task)
        if cancelled:
            task.cancel()

    def cancel() -> None:
        nonlocal cancelled
        cancelled = True
        for task in tasks:
            task.cancel()

    def cancel_soon() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(cancel)

    loop.call_soon_threadsafe(begin)
    return cancel_soon


class LoopEnded(RuntimeError):
    """What was to be done on an event loop was cancelled there, or the loop ended before."""

    def __init__(self, *, begun: bool) -> None:
        super().__init__("the event loop ended before this was done")
        self.begun = begun
        """Whether it had begun; else nothing of it was done."""


def result_of(awaitable: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """Block until an awaitable gave its result on a loop.

    Raises: RuntimeError: this is that loop's thread. LoopEnded.
    """
    if loop in (running_loop(), _still.get()):
        _drop(awaitable)
        raise RuntimeError(
            "this would wait on the event loop for the event loop itself; use ledger.aio here"
        )
    given: Future[Any] = Future()
    # See `bells`: no interrupt may leave the loop to wait for the future's own.
    done = threading.Lock()
    done.acquire()
    given.add_done_callback(lambda _: done.release())
    try:
        loop.call_soon_threadsafe(_begin, awaitable, given)
    except RuntimeError:  # It is closed.
        _drop(awaitable)
        raise LoopEnded(begun=False) from None
    # A loop that ends says nothing to those who wait on it: they have to look.
    while not done.acquire(timeout=LOOK_S):
        if _is_over(loop) and given.cancel():
            _drop(awaitable)
            raise LoopEnded(begun=False)
        # Who could go on with it?
        ended = _is_over(loop) and not threading.main_thread().is_alive()
        if loop.is_closed() or ended:
            raise LoopEnded(begun=not _drop(awaitable))
    return given.result()


def _begin(awaitable: Any, given: Future[Any]) -> None:
    if not given.set_running_or_notify_cancel():
        return  # Nobody waits any more, and it was dropped.

    async def awaited() -> Any:
        return await awaitable

    def hand_over(task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            given.set_exception(LoopEnded(begun=not _drop(awaitable)))
        elif (error := task.exception()) is not None:
            given.set_exception(error)
        else:
            given.set_result(task.result())

    asyncio.get_running_loop().create_task(awaited()).add_done_callback(hand_over)


def _drop(awaitable: Any) -> bool:
    """Have a coroutine that has not begun never begin. Returns: whether it was such a one."""
    created = inspect.iscoroutine(awaitable) and (
        inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED
    )
    if created:
        awaitable.close()
    return created


def _is_over(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether a loop does nothing now: it ended, or it pauses and may never go on."""
    return not loop.is_running() and not _background.is_it(loop)


def _let_end(loop: asyncio.AbstractEventLoop) -> None:
    """Wait while a loop runs that cancelled a call: it is about to end, and would leave behind what is begun now."""
    until = time.monotonic() + END_S
    while not _is_over(loop) and time.monotonic() < until and not _background.is_it(loop):
        time.sleep(PAUSE_S)


def teller(tell: Callable[[], None]) -> Callable[..., None]:
    """Return what calls back on the present loop, from any thread; nothing once that loop is closed."""
    loop = asyncio.get_running_loop()

    def call(*_: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell)

    return call


async def over(future: Future[Any]) -> None:
    """Wait until something is done elsewhere, whatever came of it."""
    happened = asyncio.Event()
    future.add_done_callback(teller(happened.set))
    await happened.wait()


async def in_the_end(future: Future[Any] | asyncio.Future[Any]) -> None:
    """Wait until something is done elsewhere, also when cancelled again meanwhile; not longer than 2 s.

    Who is cancelled finds the log consistent: cancel scopes cancel again at every step of a task.
    """
    happened = asyncio.Event()
    future.add_done_callback(teller(happened.set))
    limit = asyncio.get_running_loop().call_later(LAST_S, happened.set)
    try:
        while not happened.is_set():
            with suppress(asyncio.CancelledError):
                await happened.wait()
    finally:
        limit.cancel()


async def done(future: Future[T]) -> T:
    """Wait for what is done elsewhere. Returns: what came of it. Cancelled, it is done all the same."""
    await over(future)
    return future.result()


_homes: ByIdentity[asyncio.AbstractEventLoop] = ByIdentity()


def settle(store: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Make a loop the home of a coroutine store, unless it has one that runs."""
    if is_awaitable(store):
        home = _homes.get(store)
        if home is None or _is_over(home):
            _homes.set(store, loop)


def is_awaitable(store: Any) -> bool:
    """Say whether a store's methods are coroutines."""
    return any(map(inspect.iscoroutinefunction, (store.append, store.read)))


class Bridge:
    """A store whose methods are coroutines, as a blocking one: each call runs on the store's home loop.

    It has the methods that the store has, and no others.
    """

    def __init__(self, store: Any) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            ended = None
            for _ in range(TRIES):
                settle(self.store, background())
                home = _homes.get(self.store) or background()
                try:
                    return result_of(_given(found, args, kwargs), home)
                except LoopEnded as error:
                    ended = error
                if ended.begun and name not in READS:
                    break
                _let_end(home)
            reason = "the event loop that it was used on ended meanwhile"
            raise StoreUnknown(where=type(self.store).__name__, reason=reason) from ended

        return call


async def _given(method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    given = method(*args, **kwargs)
    return await given if inspect.isawaitable(given) else given


def blocking(store: Any) -> Any:
    """Return a store as one whose methods block: itself, or a bridge when they are coroutines."""
    return Bridge(store) if is_awaitable(store) else store
