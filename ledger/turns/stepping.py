"""A step is made: its record is found or written, and its call is made in between.

On an event loop a step is awaited, and the store is waited for by a thread; elsewhere it blocks. What is
noted while its call is made goes into its record, so that a run that does not make the call notes it too.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from ledger.turns import here, loops, raising
from ledger.turns import steps as making
from ledger.turns.here import Notes
from ledger.turns.loops import asyncio
from ledger.turns.pool import in_pool
from ledger.turns.sites import Site
from ledger.turns.steps import Begun, InTheWay, Paused, Steps

_TOLD = (Exception, BaseExceptionGroup, Paused)
"""What may come out of a call and is recorded of it. Whoever is interrupted or cancelled has no time for it."""


class Caller(Protocol):
    """Who makes a step: the turn, or a helper's call in it."""

    def count(self, model: str | None, counts: Mapping[str, int]) -> None:
        """Count what was noted: for the turn, and in no step's record."""


def step(
    steps: Steps, site: Site, begin: Callable[[], Begun], call: Callable[[], Any], caller: Caller
) -> Any:
    """Make a step at a site. Returns: what it gave, or on a loop what gives that when it is awaited."""
    if loops.running_loop() is not None:
        return _awaited(steps, site, begin, call, caller)
    with steps.under_way():
        begun = _begun(steps, site, begin)
        if begun.known:
            return _again(begun, caller)
        with _calling(begun, caller) as notes:
            try:
                value = call()
                if inspect.isawaitable(value):
                    value = loops.result_of(value, loops.background())
            except _TOLD as error:
                steps.failed(begun, error, notes)
                raise
        return steps.end(begun, value, notes)


def _begun(steps: Steps, site: Site, begin: Callable[[], Begun]) -> Begun:
    deadline = time.monotonic() + making.PATIENCE_S
    while True:
        try:
            return begin()
        except InTheWay as error:
            if time.monotonic() > deadline:
                raise steps.change(site, error.left) from None
            time.sleep(0.02)


async def _awaited(
    steps: Steps, site: Site, begin: Callable[[], Begun], call: Callable[[], Any], caller: Caller
) -> Any:
    with steps.under_way():
        begun = await _begun_on_loop(steps, site, begin)
        if begun.known:
            return _again(begun, caller)
        return await _Work(steps, begun, call, caller).result()


async def _begun_on_loop(steps: Steps, site: Site, begin: Callable[[], Begun]) -> Begun:
    """Begin a step; cancelled meanwhile, record that its call is not made."""
    deadline = time.monotonic() + making.PATIENCE_S
    while True:
        job = in_pool(begin, steps.lane)
        try:
            return await loops.done(job)
        except InTheWay as error:
            if time.monotonic() > deadline:
                raise steps.change(site, error.left) from None
        except asyncio.CancelledError:
            await loops.in_the_end(job)
            if job.done() and job.exception() is None and not job.result().known:
                begun = job.result()
                await loops.in_the_end(in_pool(partial(steps.undo, begun), steps.lane))
            raise
        await asyncio.sleep(0.02)


class _Work:
    """The call of a step on a loop, in a task of its own.

    A group of tasks one of which waits for a person cancels the others. What those are in the middle of goes on
    and is recorded, so that nobody is asked what it did; the turn waits for it. Cancelled for another reason, a
    call in a thread goes on all the same, and any other is cancelled.
    """

    def __init__(self, steps: Steps, begun: Begun, call: Callable[[], Any], caller: Caller) -> None:
        self._steps = steps
        self._begun = begun
        self._call = call
        self._caller = caller
        self._in_thread = False
        self._dropped = False

    async def result(self) -> Any:
        """Make the call. Returns: what it gave."""
        self._steps.enter()  # Not by the task itself: this may be left before that has begun.
        task = asyncio.ensure_future(self._made())
        task.add_done_callback(lambda _: self._steps.leave())
        self._steps.at_work.add(task)
        task.add_done_callback(self._steps.at_work.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done() and not self._steps.questions:
                self._dropped = True
                if not self._in_thread:
                    task.cancel()
                    await loops.in_the_end(task)
            raise

    async def _made(self) -> Any:
        steps, begun = self._steps, self._begun
        with _calling(begun, self._caller) as notes:
            try:
                value = await self._called()
            except _TOLD as error:
                failed = partial(steps.failed, begun, error, notes)
                await loops.in_the_end(in_pool(failed, steps.lane))
                raise
        return await loops.done(in_pool(partial(steps.end, begun, value, notes), steps.lane))

    async def _called(self) -> Any:
        if inspect.iscoroutinefunction(self._call):
            return await self._call()
        self._in_thread = True
        value = await asyncio.to_thread(self._call)
        self._in_thread = False
        if not inspect.isawaitable(value):
            return value
        if self._dropped:
            if inspect.iscoroutine(value):
                value.close()
            raise asyncio.CancelledError
        return await value


def _again(begun: Begun, caller: Caller) -> Any:
    """Return what a step gave before, or raise what it raised, and count what was noted then."""
    for noted in begun.noted:
        caller.count(noted.model, noted.usage)
    if begun.error is not None:
        raise raising.again(begun.error)
    return begun.value


def _calling(begun: Begun, caller: Caller) -> AbstractContextManager[Notes]:
    """Be in the call of a step: what is made and noted in it is."""
    assert begun.inside is not None
    around = here.get()
    return here.calling(caller if around is None else around.running, begun.inside, caller)


async def settled(steps: Steps, given_up: Callable[[], bool]) -> None:
    """Wait until no step is under way beside a question, or the waiting is given up: then none goes on."""
    while not (steps.settled or given_up()):
        await asyncio.sleep(0.005)
    for task in list(steps.at_work) if given_up() else []:
        task.cancel()
