"""Waiting on an event loop for what threads do, and for a log to grow. No file is touched on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from ledger.turns import loops
from ledger.turns.log import POLL_S, Log
from ledger.turns.loops import in_the_end, over
from ledger.turns.pool import in_pool
from ledger.turns.running import Run

T = TypeVar("T")

Begun = tuple[Any, Run | None]
"""What a job says that may start a turn's program, and the run, if it did."""

SHORTEST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.2


async def do(log: Log, work: Callable[[], T]) -> T:
    """Have work that may wait for a store done by a thread."""
    loops.settle(log.store, asyncio.get_running_loop())
    job = in_pool(work, log.lane)
    await over(job)
    return job.result()


def _run_of(job: Future[Begun]) -> Run | None:
    return None if job.exception() is not None else job.result()[1]


def stop_begun(job: Future[Begun]) -> None:
    """Stop the turn that a job started, if it did."""
    run = _run_of(job)
    if run is not None:
        run.stop()


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


async def undone(job: Future[Begun]) -> None:
    """Wait until a job is done, and the turn it started, if it did, has ended."""
    await in_the_end(job)
    run = _run_of(job) if job.done() else None
    if run is not None:
        await in_the_end(run.outcome)
