"""What is read is written while the next is read: writing waits for the disk, which takes several together.

A few jobs are under way at once, in threads; what came of them is handed out in their order. Memory holds what
they hold: so few, and so much of the source. A large one is done by the caller, alone: a thread would have
memory of its own for it.

Where the disk answers at once the caller does all of them: Python does one thing at a time, and threads that
change places at each call of the system cost more than they save. So now and then a job is done by the caller,
and timed; as long as such jobs wait for little beside what they work, so are those that follow.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from ledger.bells import Bell
from ledger.turns.pool import in_pool

MOST = 4
"""How many jobs are under way at once."""
MOST_BYTES = 512 << 10
"""How many bytes of the source they have together; one that has more is large."""
AT_FIRST = 8
"""How many jobs are done in threads before one is timed; twice as many each time that it waited for long."""
AT_LAST = 512
"""How many at most."""
LITTLE = 0.5
"""For how much of the time that jobs work they may wait, and are done by the caller still."""
SPARE_S = 0.05
"""For how much longer one may wait, at most, if those before it waited for less."""
LAST_S = 5.0
"""How long who breaks off, or is interrupted, waits for what is under way."""

T = TypeVar("T")


class Job(NamedTuple, Generic[T]):
    """Something to be written."""

    name: str
    """Two jobs of one name are done one after the other."""
    size_bytes: int
    """How much of the source it holds."""
    work: Callable[[], T]


def in_order(jobs: Iterable[Job[T]]) -> Iterator[T]:
    """Do jobs, some at once; yield what came of each, in their order.

    Raises: what a job raises, in its place. Those that were begun are over by then, or had 5 s to be.
    """
    under_way: deque[_Writing[T]] = deque()
    lane = object()
    trial: _Trial[T] = _Trial()

    def first() -> T:
        value = under_way[0].result()
        under_way.popleft()  # Interrupted before, it is still waited for.
        return value

    def is_full() -> bool:
        return len(under_way) >= MOST or sum(one.size_bytes for one in under_way) > MOST_BYTES

    try:
        for name, size_bytes, work in jobs:
            is_large = size_bytes > MOST_BYTES
            is_alone = is_large or trial.is_due()
            while under_way and (is_alone or any(one.name == name for one in under_way)):
                yield first()
            if is_alone:
                yield work() if is_large else trial.of(work)
                continue
            under_way.append(_Writing(name, size_bytes))
            in_pool(under_way[-1].doing(work), lane)
            while is_full():
                yield first()
        while under_way:
            yield first()
    finally:
        deadline = time.monotonic() + LAST_S
        for one in under_way:
            one.wait(max(0, deadline - time.monotonic()))


class _Trial(Generic[T]):
    """Whether jobs wait for so little that they are done one by one."""

    def __init__(self) -> None:
        self._pause = self._left = AT_FIRST
        """How many jobs are done in threads between two that are timed, and how many of them are left."""
        self._spare_s = 0.0
        """For how much less than they might the last ones waited."""

    def is_due(self) -> bool:
        """Say whether the next job is to be done alone, and timed."""
        self._left -= 1
        return self._left < 0

    def of(self, work: Callable[[], T]) -> T:
        """Do a job; if such jobs wait for too long, some that follow are done in threads."""
        begun, worked = time.perf_counter(), time.thread_time()
        value = work()
        worked = time.thread_time() - worked
        waited = time.perf_counter() - begun - worked
        self._spare_s = min(SPARE_S, self._spare_s + LITTLE * worked - waited)
        if self._spare_s < 0:
            self._spare_s = 0.0
            self._left, self._pause = self._pause, min(2 * self._pause, AT_LAST)
        else:
            self._pause = AT_FIRST
        return value


class _Writing(Generic[T]):
    """A job that a thread does. It is waited for as `ledger.bells` says, so that no interrupt stops the thread."""

    def __init__(self, name: str, size_bytes: int) -> None:
        self.name = name
        self.size_bytes = size_bytes
        self._bell = Bell()
        self._over = False
        self._value: T
        self._error: BaseException | None = None

    def doing(self, work: Callable[[], T]) -> Callable[[], None]:
        """Return what does it, whatever comes of it."""

        def do() -> None:
            try:
                self._value = work()
            except BaseException as error:
                self._error = error
            self._over = True
            self._bell.ring()

        return do

    def wait(self, timeout_s: float | None = None) -> None:
        """Block until it is over, or for some seconds."""
        self._bell.wait_for(lambda: self._over, timeout_s)

    def result(self) -> T:
        """Return what came of it, once it is over, or raise what it raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._value
