"""Threads that wait for a conversation to change: woken by appends of this process, else by looking."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

_SHORTEST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.2


class Waiters:
    """Who waits in this process, by conversation. Args: longest_pause_s: how long, at most, until they look."""

    def __init__(self, longest_pause_s: float = _LONGEST_PAUSE_S) -> None:
        self._longest_pause_s = longest_pause_s
        self._woken: dict[str, list[SimpleQueue[None]]] = {}

    def wait(self, conversation: str, moved: Callable[[], bool], timeout: float) -> bool:
        """Block until `moved` says so, or `timeout` seconds passed; look from time to time.

        Returns: whether it moved.
        """
        deadline = time.monotonic() + timeout
        pause = min(_SHORTEST_PAUSE_S, self._longest_pause_s)
        woken: SimpleQueue[None] = SimpleQueue()
        self._woken.setdefault(conversation, []).append(woken)
        try:
            while not moved():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                with suppress(Empty):
                    woken.get(timeout=min(pause, left))
                pause = min(pause * 1.5, self._longest_pause_s)
            return True
        finally:
            waiting = self._woken.get(conversation, [])
            with suppress(ValueError):
                waiting.remove(woken)
            if not waiting:
                self._woken.pop(conversation, None)

    def wake(self, conversation: str) -> None:
        """Have those who wait for a conversation look now."""
        for woken in tuple(self._woken.get(conversation, ())):
            woken.put(None)
