"""What is read is written while the next is read: writing waits for the disk, which takes several together.

A few jobs are under way at once, in threads; what came of them is handed out in their order. Memory holds what
they hold: so few, and so much of the source, that a large one is alone.
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
"""How many bytes of the source they have together; one that has more is done before the next is read."""

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
    under_way: deque[tuple[Job[T], Future[T]]] = deque()
    lane = object()

    def first() -> T:
        value = under_way[0][1].result()
        under_way.popleft()  # Interrupted before, it is still waited for.
        return value

    def is_full() -> bool:
        return len(under_way) >= MOST or sum(job.size_bytes for job, _ in under_way) > MOST_BYTES

    try:
        for job in jobs:
            while any(other.name == job.name for other, _ in under_way):
                yield first()
            under_way.append((job, in_pool(job.work, lane)))
            while is_full():
                yield first()
        while under_way:
            yield first()
    finally:
        wait([future for _, future in under_way])
