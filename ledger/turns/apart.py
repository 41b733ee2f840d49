"""What must not be broken off half-way is done by a thread that no signal reaches.

Python runs signal handlers in the main thread, between any two of its steps, and one that raises (Ctrl-C raises
KeyboardInterrupt) ends whatever that thread is at: a turn may be recorded and not started, or started and not known to
its caller. So what begins a turn and what ends it is done by another thread, while the main thread waits on a bare
lock. Who waits may be interrupted; the work is not. Threads other than the main one do their own work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from ledger.bells import Bell
from ledger.turns import loops
from ledger.turns.pool import Workers

T = TypeVar("T")

LAST_S = 5.0
"""How long a caller that is interrupted waits for what is under way."""


def _nothing() -> None:
    pass


def do(work: Callable[[], T], *, interrupted: Callable[[], None] = _nothing) -> T:
    """Have work done to its end, whatever interrupts the caller, who waits for it.

    Interrupted, the caller says so, waits for the work for 5 s more at most, and is interrupted then. Work that
    had not begun is begun all the same: it knows by then that it is not wanted, if `interrupted` told it.
    """
    if not _is_main():
        return work()
    job = _Job(work)
    try:
        job.begin()
        job.wait()
    except BaseException:
        interrupted()
        job.begin()
        job.wait(LAST_S)
        raise
    return job.result()


def last(work: Callable[[], Any]) -> None:
    """Have work done for a caller that was interrupted, who waits 5 s for it at most. What it raises is dropped."""
    if not _is_main():
        with suppress(Exception):
            work()
        return
    job = _Job(work)
    job.begin()
    job.wait(LAST_S)


def _is_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident


class _Job(Generic[T]):
    """Work that is done once, whoever comes to it first."""

    def __init__(self, work: Callable[[], T]) -> None:
        # In the caller's context; and who waits for a loop there knows which one stands still meanwhile.
        context = copy_context()
        context.run(loops.stands_still, loops.running_loop())
        self._work: Callable[[], T] = lambda: context.run(work)
        self._taken = threading.Lock()
        self._bell = Bell()
        self._over = False
        self._value: T
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Have it done, if nobody does it yet; here, where no thread can be had."""
        if self._taken.locked():
            return
        try:
            _threads.workers.run(self._do)
        except RuntimeError:
            self._do()

    def _do(self) -> None:
        if not self._taken.acquire(blocking=False):
            return
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        self._over = True
        self._bell.ring()

    def wait(self, timeout_s: float | None = None) -> None:
        """Block until it is over, or for some seconds."""
        self._bell.wait_for(lambda: self._over, timeout_s)

    def result(self) -> T:
        """Return what it gave, or raise what it raised, once it is over."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                del self._error  # It refers to its frames, and they to this.
        return self._value


class _Threads:
    """What a fork's child has to have anew: its parent's threads are not there."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.workers = Workers("ledger-begin")


_threads = _Threads()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.renew)
