"""Threads that wait for a change, and are woken by it; an interrupt of one of them harms no other.

`threading.Condition`, `Event` and `concurrent.futures.wait` are written in Python, and a signal's handler that raises
(Ctrl-C raises KeyboardInterrupt) may come between any two of their steps. Then a lock stays held, and whoever needs it
next waits for ever. A lock that is written in C is taken and given back in one step of `with`, and so all that is
waited on here are such locks. Nothing in this package waits on the others.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SIGNAL_S = 0.5
"""How long the main thread waits at once. A signal that comes between Python's last look for one and the
system's wait does not end that wait: it is seen when the wait is over."""


class OwnLock:
    """A lock for threads that share something. In a fork's child it is free, whoever had it in the parent."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.RLock] = {}

    @property
    def lock(self) -> threading.RLock:
        """This process's."""
        found = self._locks.get(os.getpid())
        return found or self._locks.setdefault(os.getpid(), threading.RLock())


class Bell:
    """A lock, and those who wait until something that is changed under it is so."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held while what is waited for is changed or asked."""
        self._waiting: list[threading.Lock] = []

    def wait_for(self, what: Callable[[], T], timeout_s: float | None = None) -> T:
        """Block until something is true, or the time is up. Returns: what it was last.

        Args: what: asked with the lock held, at first and whenever the bell rings. The caller does not hold
        the lock.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            woken = threading.Lock()
            woken.acquire()
            with self.lock:
                found, left = what(), _left(deadline)
                if found or not left:
                    return found
                self._waiting.append(woken)
            if not woken.acquire(timeout=_at_once(left)):
                with self.lock:
                    if woken in self._waiting:
                        self._waiting.remove(woken)

    @property
    def is_waited_for(self) -> bool:
        """Whether anybody waits: to be asked under the lock, by who changes there what is waited for."""
        return bool(self._waiting)

    def ring(self) -> None:
        """Have all who wait ask again."""
        with self.lock:
            waiting, self._waiting = self._waiting, []
        for woken in waiting:
            woken.release()


def _at_once(left_s: float) -> float:
    if threading.current_thread() is not threading.main_thread():
        return left_s
    return SIGNAL_S if left_s < 0 else min(left_s, SIGNAL_S)


def _left(deadline: float | None) -> float:
    """Return the seconds that are left, as `acquire` takes them: -1 is no limit."""
    if deadline is None:
        return -1
    return min(max(deadline - time.monotonic(), 0), threading.TIMEOUT_MAX)
