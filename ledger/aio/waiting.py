"""Waiting on an event loop for what threads do, and for a log to grow. No file is touched on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVar

from ledger.turns import loops
from ledger.turns.carrying import Beginning
from ledger.turns.log import POLL_S, Log
from ledger.turns.loops import in_the_end, over
from ledger.turns.pool import in_pool
from ledger.turns.running import Run

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
