"""Coroutines from code that blocks: a loop of this process's own, and coroutine stores as blocking ones.

The blocking face has to run async programs and to use stores whose methods are coroutines. It gives
them to one event loop in a thread of its own, always the same one, so that clients and pools that a
program keeps between turns stay on the loop they were made on. The awaiting face gives them to the
caller's loop instead. So a store has a home: the loop it was first used on.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ledger.errors import StoreIO

LOOK_S = 0.5
"""How often it is asked whether a loop still runs that is waited for."""

T = TypeVar("T")
Loop = asyncio.AbstractEventLoop


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


_background = _Background()


def _renew_lock() -> None:
    _background.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def background() -> asyncio.AbstractEventLoop:
    """Return the loop on which callers that block have their coroutines run."""
    return _background.loop()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def start(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], context: Context
) -> Callable[[], None]:
    """Run a coroutine as a task of a loop, from any thread. Returns: what cancels it, from any thread."""
    tasks: list[asyncio.Task[Any]] = []
    cancelled = False

    def begin() -> None:
        task = loop.create_task(coroutine, context=context)
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


def result_of(awaitable: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """Block until an awaitable gave its result on a loop. Raises: RuntimeError: this is that loop's thread."""
    if running_loop() is loop:
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise RuntimeError(
            "this would wait on the event loop for the event loop itself; use ledger.aio here"
        )

    async def given() -> Any:
        return await awaitable

    coroutine = given()
    try:
        return _wait(asyncio.run_coroutine_threadsafe(coroutine, loop), loop)
    except (RuntimeError, StoreIO) as error:
        # On a loop that ended it was never begun, and will not be.
        for left in (coroutine, awaitable):
            if inspect.iscoroutine(left) and inspect.getcoroutinestate(left) == "CORO_CREATED":
                left.close()
        if loop.is_closed() and not isinstance(error, StoreIO):
            raise _gone() from error
        raise


def _wait(future: Future[Any], loop: asyncio.AbstractEventLoop) -> Any:
    """Wait for what a loop does, and not for ever for a loop that does nothing any more."""
    stood_still = False
    while True:
        try:
            return future.result(LOOK_S)
        except TimeoutError:
            if future.done():  # The error is what the loop has to say.
                return future.result()
        if loop.is_running():
            stood_still = False
        elif stood_still:
            future.cancel()
            raise _gone()
        else:
            stood_still = True


def _gone() -> StoreIO:
    reason = "the event loop that it was used on does not run any more"
    return StoreIO(where="what is awaited", reason=reason)


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


async def done(future: Future[T]) -> T:
    """Wait for what is done elsewhere. Returns: what came of it. Cancelled, it is done all the same."""
    await over(future)
    return future.result()


_homes: WeakKeyDictionary[Any, asyncio.AbstractEventLoop] = WeakKeyDictionary()


def settle(store: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Make a loop the home of a coroutine store, unless it has one that is still open."""
    if is_awaitable(store):
        home = _homes.get(store)
        if home is None or home.is_closed():
            _homes[store] = loop


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
            settle(self.store, background())
            loop = _homes[self.store]

            async def calling() -> Any:
                given = found(*args, **kwargs)
                return await given if inspect.isawaitable(given) else given

            return result_of(calling(), loop)

        return call


def blocking(store: Any) -> Any:
    """Return a store as one whose methods block: itself, or a bridge when they are coroutines."""
    return Bridge(store) if is_awaitable(store) else store
