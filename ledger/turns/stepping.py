"""A step is made: its record is found or written, and its call is made in between.

On an event loop a step is awaited, and the store is waited for by a thread; elsewhere it blocks. What is
noted while its call is made goes into its record, so that a run that does not make the call notes it too.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from ledger.errors import TurnChanged
from ledger.turns import here, loops
from ledger.turns import steps as making
from ledger.turns.here import Notes
from ledger.turns.pool import in_pool
from ledger.turns.steps import Begun, InTheWay, Paused, Steps

_TOLD = (Exception, BaseExceptionGroup, Paused)
"""What may come out of a call and is recorded of it. Whoever is interrupted or cancelled has no time for it."""


class Caller(Protocol):
    """Who makes a step: the turn, or a helper's call in it."""

    def count(self, model: str | None, counts: Mapping[str, int]) -> None:
        """Count what was noted: for the turn, and in no step's record."""


def step(steps: Steps, begin: Callable[[], Begun], call: Callable[[], Any], caller: Caller) -> Any:
    """Make a step. Returns: what it gave, or on a loop what gives that when it is awaited."""
    if loops.running_loop() is not None:
        return _awaited(steps, begin, call, caller)
    with steps.under_way():
        begun = _begun(steps, begin)
        if begun.known:
            return _again(begun, caller)
        try:
            with _calling(begun, caller) as notes:
                value = call()
                if inspect.isawaitable(value):
                    value = loops.result_of(value, loops.background())
        except _TOLD as error:
            steps.failed(begun, error)
            raise
        return steps.end(begun, value, notes)


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
    steps: Steps, begin: Callable[[], Begun], call: Callable[[], Any], caller: Caller
) -> Any:
    with steps.under_way():
        begun = await _begun_on_loop(steps, begin)
        if begun.known:
            return _again(begun, caller)
        try:
            with _calling(begun, caller) as notes:
                if inspect.iscoroutinefunction(call):
                    value = await call()
                else:
                    # A thread goes on when its task is cancelled, as in a group of tasks one of which waits
                    # for a person: what it gives is recorded all the same, and nobody is asked what it did.
                    steps.enter()  # Not by the work itself: this may be left before that has begun.
                    work = asyncio.ensure_future(_in_thread(steps, begun, call, notes))
                    value = await asyncio.shield(work)
                    if not inspect.isawaitable(value):
                        return value
                    value = await value
        except _TOLD as error:
            failure = error
            await loops.in_the_end(in_pool(lambda: steps.failed(begun, failure), steps.lane))
            raise
        return await _ended(steps, begun, value, notes)


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


async def _in_thread(steps: Steps, begun: Begun, call: Callable[[], Any], notes: Notes) -> Any:
    """Make a call in a thread, and record what it gave, unless that is still to be awaited."""
    try:
        value = await asyncio.to_thread(call)
        return value if inspect.isawaitable(value) else await _ended(steps, begun, value, notes)
    finally:
        steps.leave()


async def _ended(steps: Steps, begun: Begun, value: Any, notes: Notes) -> Any:
    return await loops.done(in_pool(lambda: steps.end(begun, value, notes), steps.lane))


def _again(begun: Begun, caller: Caller) -> Any:
    """Return what a step gave before, and count what was noted then."""
    for noted in begun.noted:
        caller.count(noted.model, noted.usage)
    return begun.value


def _calling(begun: Begun, caller: Caller) -> AbstractContextManager[Notes]:
    """Be in the call of a step: what is made and noted in it is."""
    assert begun.inside is not None
    around = here.get()
    return here.calling(caller if around is None else around.running, begun.inside)


async def settled(steps: Steps, given_up: Callable[[], bool]) -> None:
    """Wait until no step is under way beside a question, or the waiting is given up."""
    while not (steps.settled or given_up()):
        await asyncio.sleep(0.005)
