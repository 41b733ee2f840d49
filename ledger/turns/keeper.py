"""One thread per process that keeps the running turns: it looks for stops and renews leases, in time.

The thread itself only decides what is due. What may take long (an append that waits for another
process's lock, a read of a slow store) is done by a bounded pool of threads, so that one conversation
that hangs costs no other turn its lease. Both are started when the first turn runs, and made anew in
a fork's child, which runs none of its parent's turns.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

LOOK_S = 0.4
"""How often the log of a running turn is looked at: a stop is seen within this and a little more."""
RENEW_S = 10.0
"""How old a lease gets before it is renewed."""
AGAIN_S = 1.0
"""When a renewal that failed is tried again."""
MOST_THREADS = 32
"""How many stores are waited for at once."""


class Kept(Protocol):
    """A running turn, as the keeper sees it."""

    def look(self) -> None:
        """See whether its log has news; must not take long."""

    def renew(self) -> bool:
        """Renew its lease; may take long. Returns: whether that went well."""


class Keeper:
    """Does what is due when it is due.

    `tick` does all that is due at a time and says when to come again; the thread only calls it.
    """

    def __init__(self, submit: Callable[[Callable[[], Any]], Any]) -> None:
        self._submit = submit
        self._due: list[tuple[float, int, Callable[[float], None]]] = []
        self._count = itertools.count()
        self._changed = threading.Condition()
        self._kept: set[Kept] = set()
        self._thread: threading.Thread | None = None

    def tend(self, kept: Kept, now: float) -> None:
        """Look at a turn and renew its lease from now on, until `leave`."""
        with self._changed:
            self._kept.add(kept)
        self._at(now + LOOK_S, lambda at: self._look(kept, at))
        self._at(now + RENEW_S, lambda at: self._renew(kept, at))

    def leave(self, kept: Kept) -> None:
        """Look after a turn no more."""
        with self._changed:
            self._kept.discard(kept)

    def later(self, due: float, job: Callable[[], Any]) -> None:
        """Have a job done in the pool at a time, or soon after."""
        self._at(due, lambda _: self._submit(job))

    def tick(self, now: float) -> float | None:
        """Do all that is due. Returns: when the next is; None: nothing is."""
        while True:
            with self._changed:
                if not self._due or self._due[0][0] > now:
                    return self._due[0][0] if self._due else None
                job = heapq.heappop(self._due)[2]
            job(now)

    def _look(self, kept: Kept, now: float) -> None:
        if kept in self._kept:
            kept.look()
            self._at(now + LOOK_S, lambda at: self._look(kept, at))

    def _renew(self, kept: Kept, now: float) -> None:
        if kept in self._kept:
            self._submit(lambda: self._renewed(kept, now))

    def _renewed(self, kept: Kept, began: float) -> None:
        """In the pool: renew, and say when again. It counts from the beginning, however long it took."""
        wait = RENEW_S if kept.renew() else AGAIN_S
        self._at(began + wait, lambda at: self._renew(kept, at))

    def _at(self, due: float, job: Callable[[float], None]) -> None:
        with self._changed:
            heapq.heappush(self._due, (due, next(self._count), job))
            self._changed.notify()

    # -- the thread

    def start(self) -> None:
        """Start the thread, once."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger-keeper", daemon=True)
                # Outside the turn, if any, that is the first to need it.
                Context().run(self._thread.start)

    def _run(self) -> None:
        while True:
            try:
                due = self.tick(time.monotonic())
            except RuntimeError:  # The interpreter is going down, and takes no more work.
                return
            with self._changed:
                first = self._due[0][0] if self._due else None
                if first == due:
                    left = None if due is None else max(due - time.monotonic(), 0)
                    self._changed.wait(left)


class _Process:
    """The keeper and the pool of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid = 0
        self.keeper: Keeper
        self.pool: ThreadPoolExecutor

    def ready(self) -> None:
        with self.lock:
            if self.pid != os.getpid():
                self.pid = os.getpid()
                self.pool = ThreadPoolExecutor(MOST_THREADS, "ledger-io")
                self.keeper = Keeper(_submit_outside)


_process = _Process()


def _renew_lock() -> None:
    _process.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def _submit_outside(job: Callable[[], T]) -> Future[T]:
    return Context().run(lambda: _process.pool.submit(job))


def in_pool(job: Callable[[], T]) -> Future[T]:
    """Have a job that may wait for a store done by one of a bounded number of threads."""
    _process.ready()
    return _submit_outside(job)


def later(delay_s: float, job: Callable[[], Any]) -> None:
    """Have a job done in the pool after a delay in seconds."""
    keeper().later(time.monotonic() + delay_s, job)


def tend(kept: Kept) -> None:
    """Look after a running turn until `leave`."""
    keeper().tend(kept, time.monotonic())


def leave(kept: Kept) -> None:
    """Look after a turn no more."""
    keeper().leave(kept)


def keeper() -> Keeper:
    """Return this process's keeper, at work."""
    _process.ready()
    _process.keeper.start()
    return _process.keeper
