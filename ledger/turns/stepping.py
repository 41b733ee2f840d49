"""A step is made: its record is found or written, and its call is made in between.

On an event loop a step is awaited, and the store is waited for by a thread; elsewhere it blocks. What is
noted while its call is made goes into its record, so that a run that does not make the call notes it too.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from ledger.errors import TurnChanged
from ledger.turns import loops
from ledger.turns import steps as making
from ledger.turns.pool import in_pool
from ledger.turns.steps import Begun, InTheWay, Steps

Note = Callable[[Mapping[str, int]], None]
"""What adds token counts to a turn."""

_NOTED: ContextVar[dict[str, int] | None] = ContextVar("ledger_noted", default=None)
"""What was noted while the call of this step is made."""


def noted(counts: Mapping[str, int]) -> None:
    """Say what was noted here, to the step in whose call it was."""
    inside = _NOTED.get()
    if inside is not None:
        for name, count in counts.items():
            inside[name] = inside.get(name, 0) + count


def step(steps: Steps, begin: Callable[[], Begun], call: Callable[[], Any], note: Note) -> Any:
    """Make a step. Returns: what it gave, or on a loop what gives that when it is awaited."""
    if loops.running_loop() is not None:
        return _awaited(steps, begin, call, note)
    with steps.under_way():
        begun = _begun(steps, begin)
        if begun.known:
            return _again(begun, note)
        try:
            with _noting() as usage:
                value = call()
                if inspect.isawaitable(value):
                    value = loops.result_of(value, loops.background())
        except Exception as error:
            steps.failed(begun, error)
            raise
        return steps.end(begun, value, usage)


def _begun(steps: Steps, begin: Callable[[], Begun]) -> Begun:
    deadline = time.monotonic() + making.PATIENCE_S
    while True:
        try:
            return begin()
        except InTheWay as left:
            if time.monotonic() > deadline:
                raise _changed(steps, left) from None
            time.sleep(0.02)


async def _awaited(
    steps: Steps, begin: Callable[[], Begun], call: Callable[[], Any], note: Note
) -> Any:
    with steps.under_way():
        begun = await _begun_on_loop(steps, begin)
        if begun.known:
            return _again(begun, note)
        try:
            with _noting() as usage:
                if inspect.iscoroutinefunction(call):
                    value = await call()
                else:
                    # A thread goes on when its task is cancelled, as in a group of tasks one of which waits
                    # for a person: what it gives is recorded all the same, and nobody is asked what it did.
                    steps.enter()  # Not by the work itself: this may be left before that has begun.
                    work = asyncio.ensure_future(_in_thread(steps, begun, call, usage))
                    value = await asyncio.shield(work)
                    if not inspect.isawaitable(value):
                        return value
                    value = await value
        except Exception as error:
            failure = error
            await loops.in_the_end(in_pool(lambda: steps.failed(begun, failure), steps.lane))
            raise
        return await _ended(steps, begun, value, usage)


async def _begun_on_loop(steps: Steps, begin: Callable[[], Begun]) -> Begun:
    """Begin a step; cancelled meanwhile, record that its call is not made."""
    deadline = time.monotonic() + making.PATIENCE_S
    while True:
        job = in_pool(begin, steps.lane)
        try:
            return await loops.done(job)
        except InTheWay as left:
            if time.monotonic() > deadline:
                raise _changed(steps, left) from None
        except asyncio.CancelledError:
            await loops.in_the_end(job)
            if job.done() and job.exception() is None and not job.result().known:
                begun = job.result()
                await loops.in_the_end(in_pool(partial(steps.undo, begun), steps.lane))
            raise
        await asyncio.sleep(0.02)


def _changed(steps: Steps, left: InTheWay) -> TurnChanged:
    return TurnChanged(turn=steps.turn, left=tuple(left.left))


async def _in_thread(
    steps: Steps, begun: Begun, call: Callable[[], Any], usage: dict[str, int]
) -> Any:
    """Make a call in a thread, and record what it gave, unless that is still to be awaited."""
    try:
        value = await asyncio.to_thread(call)
        return value if inspect.isawaitable(value) else await _ended(steps, begun, value, usage)
    finally:
        steps.leave()


async def _ended(steps: Steps, begun: Begun, value: Any, usage: dict[str, int]) -> Any:
    return await loops.done(in_pool(lambda: steps.end(begun, value, usage), steps.lane))


def _again(begun: Begun, note: Note) -> Any:
    """Return what a step gave before, and note what was noted then."""
    if begun.usage:
        note(begun.usage)
    return begun.value


@contextmanager
def _noting() -> Any:
    usage: dict[str, int] = {}
    token = _NOTED.set(usage)
    try:
        yield usage
    finally:
        _NOTED.reset(token)


async def settled(steps: Steps, given_up: Callable[[], bool]) -> None:
    """Wait until no step is under way beside a question, or the waiting is given up."""
    while not (steps.settled or given_up()):
        await asyncio.sleep(0.005)
