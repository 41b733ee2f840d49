"""A step is made: its record is found or written, and its call is made in between.

On an event loop a step is awaited, and the store is waited for by a thread; elsewhere it blocks.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ledger.turns import keeper, loops
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
        begun = await loops.done(keeper.in_pool(begin))
        if begun.known:
            return begun.value
        if inspect.iscoroutinefunction(call):
            value = await call()
        else:
            value = await asyncio.to_thread(call)
            value = await value if inspect.isawaitable(value) else value
        return await loops.done(keeper.in_pool(lambda: steps.end(begun, value)))


async def settled(steps: Steps, given_up: Callable[[], bool]) -> None:
    """Wait until no step is under way beside a question, or the waiting is given up."""
    while not (steps.settled or given_up()):
        await asyncio.sleep(0.005)
