"""Work for which the caller may stand too deep in its own stack: it is done in a fresh thread, or refused in time.

So what can be written can be read anywhere, and of what was written nobody is told that it was not.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_ROOM = 150
"""How many frames of the stack an append is sure to get along with."""
_AFTERWARDS = 40
"""How many frames who appended is sure to get along with to take in what it appended."""


def shallow(work: Callable[[], T]) -> T:
    """Do work that changes nothing; if the stack is too deep for it, again in a fresh thread."""
    try:
        return work()
    except RecursionError:
        return _in_fresh_thread(work)


def with_room(work: Callable[[], T]) -> T:
    """Do work that must not fail half-way for want of stack: in a fresh thread if little is left."""
    return work() if _has_room(_ROOM) else _in_fresh_thread(work)


def check_room() -> None:
    """Refuse to append where its caller could not be told of it for want of stack. Raises: RecursionError."""
    if not _has_room(_AFTERWARDS):
        raise RecursionError(
            "too little of the stack is left to append; nothing was appended or erased"
        )


def _has_room(frames: int) -> bool:
    try:
        sys._getframe(max(0, sys.getrecursionlimit() - frames))
    except ValueError:  # The stack is not that deep.
        return True
    return False


def _in_fresh_thread(work: Callable[[], T]) -> T:
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="ledger-decode")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
