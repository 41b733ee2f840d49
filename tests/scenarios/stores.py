"""Stores of other people, for the scenarios: slow ones, coroutine ones, ones with two methods and no more."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from ledger.errors import StoreConflict


class TwoMethods:
    """Lists in memory behind the two methods that make a store; blocking."""

    def __init__(self) -> None:
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> int:
        """Add records."""
        with self._lock:
            log = self.logs.setdefault(conversation, [])
            if expect is not None and expect != len(log):
                raise StoreConflict(conversation=conversation, expected=expect, found=len(log))
            for record in records:
                log.append({**record, "seq": len(log) + 1})
            return len(log)

    def read(self, conversation: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the records after a place."""
        with self._lock:
            return self.logs.get(conversation, [])[after:]


class Coroutines:
    """The same as coroutines, which give way in the middle and notice a foreign loop."""

    def __init__(self) -> None:
        self.inner = TwoMethods()
        self.loops: set[Any] = set()

    async def append(self, conversation: str, records: Any, *, expect: int | None = None) -> int:
        """Add records."""
        self.loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0.001)
        return self.inner.append(conversation, records, expect=expect)

    async def read(self, conversation: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the records after a place."""
        self.loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0.001)
        return self.inner.read(conversation, after)


class Slow:
    """A store in front of another one, each call of which takes its time."""

    def __init__(self, inner: Any, seconds: float) -> None:
        self.inner = inner
        self.seconds = seconds
        self.calls = 0

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> int:
        """Add records, slowly."""
        self.calls += 1
        time.sleep(self.seconds)
        return self.inner.append(conversation, records, expect=expect)

    def read(self, conversation: str, after: int = 0) -> Any:
        """Return the records after a place, slowly."""
        self.calls += 1
        time.sleep(self.seconds)
        return self.inner.read(conversation, after)
