"""Whether anybody reads what is printed: asked also while there is nothing to print."""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import TypeVar

from ledger.cli.ending import OutputClosed

T = TypeVar("T")

LOOK_S = 0.25
"""How often it is asked whether anybody reads."""


def while_read(items: Iterator[T]) -> Iterator[T]:
    """Yield what comes, as long as somebody reads standard output.

    A write would tell, but a turn may say nothing for long, and `watch | head` shall end.
    Raises: OutputClosed: nobody reads any more; what `items` raises.
    """
    coming: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()

    def fetch() -> None:
        try:
            for item in items:
                coming.put((item,))
        except BaseException as error:
            coming.put(error)
        else:
            coming.put(None)

    threading.Thread(target=fetch, name="ledger-watch", daemon=True).start()
    while (came := _next(coming)) is not None:
        if isinstance(came, BaseException):
            raise came
        yield came[0]


def _next(coming: SimpleQueue[T]) -> T:
    while True:
        try:
            return coming.get(timeout=LOOK_S)
        except Empty:
            if nobody_reads():
                raise OutputClosed from None


def nobody_reads() -> bool:
    """Say whether standard output is a pipe or terminal whose other end was closed, as far as is known."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)  # Of what happens to it, errors alone.
        return bool(poll.poll(0))
    except (AttributeError, OSError, ValueError):
        return False  # No such call on this system, or no file behind it.
