"""A step is made: its record is found or written, and its call is made in between.

On an event loop a step is awaited, and the store is waited for by a thread; elsewhere it blocks.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ledger.turns import loops
from ledger.turns.pool import in_pool
from ledger.turns.steps import Begun, Steps


def step(steps: Steps, begin: Callable[[], Begun], call: Callable[[], Any]) -> Any:
    """Make a step. Returns: what it gave, or on a loop what gives that when it is awaited."""
    if loops.running_loop() is not None:
        return _awaited(steps, begin, call)
    with steps.under_way():
        begun = begin()
        if begun.known:
            return begun.value
        value = call()
        if inspect.isawaitable(value):
            value = loops.result_of(value, loops.background())
        return steps.end(begun, value)


async def _awaited(steps: Steps, begin: Callable[[], Begun], call: Callable[[], Any]) -> Any:
    with steps.under_way():
        begun = await loops.done(in_pool(begin, steps.lane))
        if begun.known:
            return begun.value
        if inspect.iscoroutinefunction(call):
            value = await call()
        else:
            # A thread goes on when its task is cancelled, as in a group of tasks one of which waits for a
            # person: what it gives is recorded all the same, and nobody has to be asked what it did.
            value = await asyncio.shield(asyncio.ensure_future(_in_thread(steps, begun, call)))
            if not inspect.isawaitable(value):
                return value
            value = await value
        return await _ended(steps, begun, value)


async def _in_thread(steps: Steps, begun: Begun, call: Callable[[], Any]) -> Any:
    """Make a call in a thread, and record what it gave, unless that is still to be awaited."""
    with steps.under_way():
        value = await asyncio.to_thread(call)
        return value if inspect.isawaitable(value) else await _ended(steps, begun, value)


async def _ended(steps: Steps, begun: Begun, value: Any) -> Any:
    return await loops.done(in_pool(lambda: steps.end(begun, value), steps.lane))


async def settled(steps: Steps, given_up: Callable[[], bool]) -> None:
    """Wait until no step is under way beside a question, or the waiting is given up."""
    while not (steps.settled or given_up()):
        await asyncio.sleep(0.005)
