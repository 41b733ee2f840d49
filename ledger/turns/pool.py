"""Threads for what may wait for a store: bounded, and so that one conversation that hangs is alone in it.

Jobs of one lane (a conversation in a store) take a few threads at most, whatever they wait for; the rest
of that lane stands in line, and other lanes go on. Threads are daemons: a store that hangs keeps no process
alive. At exit the jobs under way have a moment to end.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import Context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

MOST_THREADS = 32
"""How many jobs are done at once, those aside that have been under way for long."""
MOST_STUCK = 256
"""How many jobs are under way in all, at most."""
STUCK_S = 1.0
"""How long a job is under way before it no longer counts: it waits for something that hangs."""
MOST_IN_LANE = 4
"""How many of them for one lane."""
IDLE_S = 10.0
"""How long a thread without work is kept."""
LAST_S = 2.0
"""How long a process that ends waits for the jobs under way."""

Work = Callable[[], None]


class Workers:
    """Threads that do one piece of work after another; those without any for a while go.

    There are as many as work is under way: who gives the work bounds it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[Work]] = []

    def run(self, work: Work) -> None:
        """Have work done at once, by a thread that is free or a new one.

        Raises: RuntimeError: no thread can be had.
        """
        with self._lock:
            free = self._idle.pop() if self._idle else None
        if free is not None:
            free.put(work)
            return
        mine: SimpleQueue[Work] = SimpleQueue()
        mine.put(work)
        thread = threading.Thread(target=self._serve, args=(mine,), name=self._name, daemon=True)
        # Outside the turn, if any, that is the first to need it.
        Context().run(thread.start)

    def _serve(self, mine: SimpleQueue[Work]) -> None:
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


class _Job(NamedTuple):
    future: Future[Any]
    work: Callable[[], Any]


class Pool:
    """Does jobs in threads, a bounded number at once, and of each lane a few."""

    def __init__(
        self, workers: Workers, *, most: int = MOST_THREADS, most_in_lane: int = MOST_IN_LANE
    ) -> None:
        self._workers = workers
        self._most = most
        self._most_in_lane = most_in_lane
        self._lock = threading.Lock()
        self._lines: dict[Hashable, deque[_Job]] = {}
        self._busy: dict[Hashable, int] = {}
        self._begun: dict[Future[Any], float] = {}
        """When each job that is under way was begun."""

    def submit(self, work: Callable[[], T], lane: Hashable = None) -> Future[T]:
        """Have a job done. It waits for its lane, and for a thread where none can be had; it never raises."""
        future: Future[T] = Future()
        with self._lock:
            self._lines.setdefault(lane, deque()).append(_Job(future, work))
        self._go_on()
        return future

    def _go_on(self) -> None:
        """Begin what can begin."""
        while (begun := self._next()) is not None:
            lane, job = begun
            try:
                self._workers.run(partial(self._do, lane, job))
            except RuntimeError:
                # No thread can be had. It goes on with the next job that ends or comes.
                with self._lock:
                    self._leave(lane, job)
                    self._lines.setdefault(lane, deque()).appendleft(job)
                return

    def _next(self) -> tuple[Hashable, _Job] | None:
        with self._lock:
            if not self._has_room():
                return None
            for lane, line in self._lines.items():
                if self._busy.get(lane, 0) < self._most_in_lane:
                    job = line.popleft()
                    # What still waits there goes behind the others.
                    del self._lines[lane]
                    if line:
                        self._lines[lane] = line
                    self._busy[lane] = self._busy.get(lane, 0) + 1
                    self._begun[job.future] = time.monotonic()
                    return lane, job
        return None

    def _has_room(self) -> bool:
        if len(self._begun) < self._most:
            return True
        since = time.monotonic() - STUCK_S
        lively = sum(begun > since for begun in self._begun.values())
        return lively < self._most and len(self._begun) < MOST_STUCK

    def _leave(self, lane: Hashable, job: _Job) -> None:
        del self._begun[job.future]
        self._busy[lane] -= 1
        if not self._busy[lane]:
            del self._busy[lane]

    def _do(self, lane: Hashable, job: _Job) -> None:
        if job.future.set_running_or_notify_cancel():
            try:
                value = job.work()
            except BaseException as error:
                job.future.set_exception(error)
            else:
                job.future.set_result(value)
        with self._lock:
            self._leave(lane, job)
        self._go_on()

    def settle(self, timeout_s: float) -> None:
        """Wait until no job is under way, or the time is up."""
        deadline = time.monotonic() + timeout_s
        while self._begun and time.monotonic() < deadline:
            time.sleep(0.01)


class _Process:
    """The pool of this process; a fork's child has its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid = 0
        self.pool: Pool

    def ready(self) -> Pool:
        with self.lock:
            if self.pid != os.getpid():
                if not self.pid:
                    atexit.register(self.last)
                self.pid = os.getpid()
                self.pool = Pool(Workers("ledger-io"))
            return self.pool

    def last(self) -> None:
        if self.pid == os.getpid():
            self.pool.settle(LAST_S)


_process = _Process()


def _renew_lock() -> None:
    _process.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def in_pool(work: Callable[[], T], lane: Hashable = None) -> Future[T]:
    """Have a job that may wait for a store done by a thread. Args: lane: see `Log.lane`."""
    return _process.ready().submit(work, lane)
