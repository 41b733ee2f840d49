"""Waiting on an event loop for what threads do, and for a log to grow. No file is touched on the loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, ParamSpec, TypeVar

from ledger.turns import loops
from ledger.turns.carrying import Beginning
from ledger.turns.log import POLL_S, Log
from ledger.turns.loops import in_the_end, over
from ledger.turns.pool import in_pool
from ledger.turns.running import Run

P = ParamSpec("P")
T = TypeVar("T")

SHORTEST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.2


async def do(log: Log, work: Callable[[], T]) -> T:
    """Have work that may wait for a store done by a thread."""
    loops.settle(log.store, asyncio.get_running_loop())
    job = in_pool(work, log.lane)
    await over(job)
    return job.result()


async def begin(beginning: Beginning[T], log: Log, context: Context) -> T:
    """Have a turn begun, or say that it has to wait. Cancelled, it is left, and has ended then."""
    loop = asyncio.get_running_loop()
    loops.settle(log.store, loop)
    job = in_pool(lambda: beginning.begin(context, loop), log.lane)

    def stop(_: Any) -> None:
        if beginning.run is not None:
            beginning.run.stop()

    try:
        await over(job)
    except asyncio.CancelledError:
        beginning.cancel()
        # Not by this task: it may be cancelled again before the job is done.
        job.add_done_callback(stop)
        await in_the_end(job)
        if beginning.run is not None:
            await in_the_end(beginning.run.outcome)
        raise
    return job.result()


async def result(run: Run) -> Any:
    """Wait for a turn's program; cancelled, stop the turn and wait until that is recorded."""
    try:
        await over(run.outcome)
    except asyncio.CancelledError:
        run.stop()
        await in_the_end(run.outcome)
        raise
    return run.outcome.result()


async def changed(log: Log, timeout_s: float) -> None:
    """Wait until a log may have grown, or the time is up."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + timeout_s, SHORTEST_PAUSE_S
    if not log.tells_at_once:
        await asyncio.sleep(min(timeout_s, POLL_S))
        return
    while (left := deadline - loop.time()) > 0:
        await asyncio.sleep(min(pause, left))
        if await do(log, log.moved):
            return
        pause = min(pause * 1.5, LONGEST_PAUSE_S)


class Unawaited(Coroutine[Any, Any, T]):
    """A coroutine that gives what has a `send` of its own. Every coroutine has one as well: whoever calls that with
    something to send, or asks for what no coroutine has, forgot to await first and is told so."""

    def __init__(self, coming: Coroutine[Any, Any, T], name: str) -> None:
        self._coming, self._name = coming, name

    def __await__(self) -> Generator[Any, Any, T]:
        """Give what it gives."""
        return self._coming.__await__()

    def send(self, *args: Any, **kwargs: Any) -> Any:
        """Go on, as the event loop has it. Raises: TypeError: the `send` of what it gives is meant."""
        if args != (None,) or kwargs:
            self.close()
            raise TypeError(self._told(".send(...)"))
        return self._coming.send(None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: what it gives is meant. Raises: TypeError."""
        self.close()
        raise TypeError(self._told("(...)"))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._told(f".{name}"))

    def _told(self, then: str) -> str:
        return f"{self._name} is awaited first: (await {self._name}(...)){then}"

    def throw(self, *args: Any) -> Any:
        """Raise an error in it."""
        return self._coming.throw(*args)

    def close(self) -> None:
        """End it."""
        self._coming.close()


def awaited_first(
    verb: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Have a verb that gives what has a `send` say so where it was not awaited."""

    @functools.wraps(verb)
    def called(*args: P.args, **kwargs: P.kwargs) -> Unawaited[T]:
        return Unawaited(verb(*args, **kwargs), verb.__name__)

    return called
