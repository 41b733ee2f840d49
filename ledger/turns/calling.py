"""A program is called: in a thread, or as a task, as it is written; its pieces become the turn's.

A program that is not async runs in a thread of its own, in the awaiting face and in the blocking one:
so a stop frees the caller within a second, whatever the program is doing. An async one runs on an
event loop: the caller's, or the one that callers who block share.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextvars import Context
from inspect import BoundArguments
from typing import Any

from ledger.errors import Cancelled
from ledger.turns import current, helping, loops, stepping
from ledger.turns.loops import asyncio
from ledger.turns.pool import Workers, in_pool
from ledger.turns.running import Run

MOST_PROGRAMS = 128
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
        run.cancelled_by(loops.start(loop or loops.background(), _on_loop(run, bound), context))
        return

    def work() -> None:
        context.run(here, run, bound, loop)

    if loop is None:
        _threads.workers.run(work)
    else:
        _threads.crowd.enter(run, work)


def here(run: Run, bound: BoundArguments, loop: asyncio.AbstractEventLoop | None = None) -> None:
    """Run a turn's program in this thread, to its end."""
    if run.is_over:
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
        if isinstance(error, loops.LoopEnded):
            run.running.ask_to_stop()  # As a task that is cancelled: see `_on_loop`.
        _settle(run)
        run.fail(error)
    else:
        _settle(run)
        run.finish(value)


def _settle(run: Run) -> None:
    """Let the steps beside a question come to their end, before the turn waits for a person."""
    while not (run.steps.settled or run.running.stopped):
        time.sleep(0.005)


async def _settle_on_loop(run: Run) -> None:
    """The same on a loop. Cancelled meanwhile, the turn is to stop, and nothing more is waited for."""
    try:
        await stepping.settled(run.steps, lambda: run.running.stopped)
    except asyncio.CancelledError:
        run.running.ask_to_stop()


def _is_running(task: asyncio.Task[Any] | None) -> bool:
    """Say whether this is done by a task, at a step of its own."""
    return loops.running_loop() is not None and asyncio.current_task() is task


async def _on_loop(run: Run, bound: BoundArguments) -> None:
    task = asyncio.current_task()
    try:
        value = run.program.call(bound)
        if inspect.isasyncgen(value):
            value = await _drain_async(run, value)
        elif inspect.isawaitable(value):
            value = await value
    except BaseException as error:
        if isinstance(error, GeneratorExit) and not _is_running(task):
            # The turn is over and the loop gone: the garbage collector throws the program away, in the
            # middle of anything. Any lock may be held here, so nothing is done.
            raise
        failure = error  # The name of the clause is gone after it.
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            # Stopped, or the whole loop is: either way somebody asked for it. (Else it comes from a task
            # that the program cancelled itself.)
            run.running.ask_to_stop()
        await _settle_on_loop(run)
        in_pool(lambda: run.fail(failure), run.lane)
    else:
        await _settle_on_loop(run)
        in_pool(lambda: run.finish(value), run.lane)


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


class _Crowd:
    """Programs for awaiting callers: a bounded number of turns at once, the rest in line.

    A place is free again when its turn has ended, also where a stopped program still works on.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._count = 0
        self._line: deque[tuple[Run, Callable[[], None]]] = deque()

    def enter(self, run: Run, work: Callable[[], None]) -> None:
        """Have a turn's program run as soon as there is room."""
        with self._lock:
            self._line.append((run, work))
        self._go_on()

    def _go_on(self, _: Any = None) -> None:
        while True:
            with self._lock:
                if self._count >= MOST_PROGRAMS or not self._line:
                    return
                self._count += 1
                run, work = self._line.popleft()
            run.outcome.add_done_callback(self._leave)
            try:
                self._workers.run(work)
            except RuntimeError as error:  # No thread can be had: then that is how the turn ended.
                failure = error
                in_pool(functools.partial(run.fail, failure), run.lane)

    def _leave(self, _: Any) -> None:
        with self._lock:
            self._count -= 1
        self._go_on()


class _Threads:
    """What a fork's child has to have anew: its parent's threads are not there."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.workers = Workers("ledger-program")
        self.crowd = _Crowd(self.workers)


_threads = _Threads()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.renew)
