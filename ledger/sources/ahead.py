"""What is read is written while the next is read: writing waits for the disk, which takes several together.

A few jobs are under way at once, in threads; what came of them is handed out in their order. Memory holds what
they hold: so few, and so much of the source. A large one is done by the caller, alone: a thread would have
memory of its own for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from typing import Generic, NamedTuple, TypeVar

from ledger.turns.pool import in_pool

MOST = 4
"""How many jobs are under way at once."""
MOST_BYTES = 512 << 10
"""How many bytes of the source they have together; one that has more is large."""

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

    Raises: what a job raises, in its place; those that were begun are over by then.
    """
    under_way: deque[tuple[str, int, Future[T]]] = deque()
    lane = object()

    def first() -> T:
        value = under_way[0][2].result()
        under_way.popleft()  # Interrupted before, it is still waited for.
        return value

    def is_full() -> bool:
        return len(under_way) >= MOST or sum(size for _, size, _ in under_way) > MOST_BYTES

    try:
        for name, size_bytes, work in jobs:
            is_large = size_bytes > MOST_BYTES
            while under_way and (is_large or any(other == name for other, _, _ in under_way)):
                yield first()
            if is_large:
                yield work()
                continue
            under_way.append((name, size_bytes, in_pool(_once(work), lane)))
            while is_full():
                yield first()
        while under_way:
            yield first()
    finally:
        wait([future for *_, future in under_way])


def _once(work: Callable[[], T]) -> Callable[[], T]:
    """Return the same to be done once: a thread may keep what it was given to do, but not what that held."""
    held = [work]
    return lambda: held.pop()()
