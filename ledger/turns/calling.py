"""A program is called: in a thread, or as a task, as it is written; its pieces become the turn's.

A program that is not async runs in a thread of its own, in the awaiting face and in the blocking one:
so a stop frees the caller within a second, whatever the program is doing. An async one runs on an
event loop: the caller's, or the one that callers who block share.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextvars import Context
from inspect import BoundArguments
from queue import Empty, SimpleQueue
from typing import Any

from ledger.errors import Cancelled
from ledger.turns import current, helping, keeper, loops, stepping
from ledger.turns.running import Run
from ledger.turns.steps import Paused

IDLE_S = 10.0
"""How long a thread without work is kept."""
MOST_THREADS = 128
"""How many programs that are not async run at once for awaiting callers; more wait for their turn."""


def start(
    run: Run,
    bound: BoundArguments,
    context: Context,
    loop: asyncio.AbstractEventLoop | None = None,
) -> None:
    """Start a turn's program in a context of its own. Args: loop: the caller's; None: the caller blocks."""
    context.run(current.enter, run.running)
    context.run(helping.entering, run.program.function)
    if run.program.kind in ("async", "async-generator"):
        run.cancel = loops.start(loop or loops.background(), _on_loop(run, bound), context)
        return

    def work() -> None:
        context.run(here, run, bound, loop)

    if loop is None:
        _threads.workers.run(work)
    else:
        _threads.crowd.enter(work)


def here(run: Run, bound: BoundArguments, loop: asyncio.AbstractEventLoop | None = None) -> None:
    """Run a turn's program in this thread, to its end."""
    if run.outcome.done():
        return
    try:
        value = run.program.call(bound)
        if inspect.isgenerator(value):
            value = _drain(run, value)
        elif inspect.isasyncgen(value):
            value = loops.result_of(_drain_async(run, value), loop or loops.background())
        elif inspect.isawaitable(value):
            value = loops.result_of(value, loop or loops.background())
    except BaseException as error:
        if isinstance(error, Paused):
            while not (run.steps.quiet or run.running.stopped):
                time.sleep(0.005)
        run.fail(error)
    else:
        run.finish(value)


async def _on_loop(run: Run, bound: BoundArguments) -> None:
    try:
        value = run.program.call(bound)
        if inspect.isasyncgen(value):
            value = await _drain_async(run, value)
        elif inspect.isawaitable(value):
            value = await value
    except GeneratorExit:
        # The turn is over and the loop gone: the garbage collector throws the program away, in the middle
        # of anything. Any lock may be held here, so nothing is done.
        raise
    except BaseException as error:
        failure = error  # The name of the clause is gone after it.
        if isinstance(error, asyncio.CancelledError):
            # Stopped, or the whole loop is: either way somebody asked for it.
            run.running.ask_to_stop()
        if isinstance(error, Paused):
            await stepping.quiet(run.steps, lambda: run.running.stopped)
        keeper.in_pool(lambda: run.fail(failure))
    else:
        keeper.in_pool(lambda: run.finish(value))


def _drain(run: Run, pieces: Generator[Any, Any, Any]) -> Any:
    """Say the pieces of a generator as they come. Returns: what it returned, or all of them joined."""
    while True:
        if run.running.stopped:
            pieces.close()
            raise Cancelled(turn=run.turn)
        try:
            piece = next(pieces)
        except StopIteration as end:
            return run.program.streamed(run.running.pieces.text, end.value)
        run.running.emit(piece)


async def _drain_async(run: Run, pieces: Any) -> Any:
    try:
        async for piece in pieces:
            run.running.emit(piece)
    finally:
        await pieces.aclose()
    return run.program.streamed(run.running.pieces.text)


class _Workers:
    """Threads that run one program after another; those without work for a while go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def run(self, work: Callable[[], None]) -> None:
        """Have work done at once, by a thread that is free or a new one."""
        with self._lock:
            work_of = self._idle.pop() if self._idle else None
        if work_of is not None:
            work_of.put(work)
            return
        mine: SimpleQueue[Callable[[], None]] = SimpleQueue()
        mine.put(work)
        thread = threading.Thread(
            target=self._serve, args=(mine,), name="ledger-program", daemon=True
        )
        Context().run(thread.start)

    def _serve(self, mine: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            try:
                work = mine.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if mine in self._idle:
                        self._idle.remove(mine)
                        return
                continue  # Somebody has just taken it, and the work is on its way.
            work()
            del work
            with self._lock:
                self._idle.append(mine)


class _Crowd:
    """Programs for awaiting callers: a bounded number at once, the rest in line."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._line: deque[Callable[[], None]] = deque()

    def enter(self, work: Callable[[], None]) -> None:
        """Have work done as soon as there is room."""
        with self._lock:
            if self._count >= MOST_THREADS:
                self._line.append(work)
                return
            self._count += 1
        _threads.workers.run(lambda: self._work(work))

    def _work(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            with self._lock:
                work = self._line.popleft() if self._line else None
                if work is None:
                    self._count -= 1


class _Threads:
    """What a fork's child has to have anew: its parent's threads are not there."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.workers = _Workers()
        self.crowd = _Crowd()


_threads = _Threads()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.renew)
