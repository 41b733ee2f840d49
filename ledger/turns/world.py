"""What the shells take from outside: the time, new ids, and who this process is.

Tests pass a world of their own, so nothing in them waits or depends on chance.
"""

from __future__ import annotations

import os
import secrets
import socket
from datetime import UTC, datetime
from typing import Protocol

from ledger.records import ids, times


class World(Protocol):
    """Time, chance and identity, as one object."""

    def now(self) -> datetime:
        """Return the wall clock's time, aware."""
        ...

    def turn_id(self) -> str:
        """Return a new turn id."""
        ...

    def holder(self) -> str:
        """Return who this process is in leases: `host:pid:random`."""
        ...

    def boot(self) -> str | None:
        """x"""
        ...

    def monotonic(self) -> float:
        """x"""
        ...


class System:
    """The real world: this machine's clock, its randomness, this process."""

    def __init__(self) -> None:
        self._holders: dict[int, str] = {}

    def now(self) -> datetime:
        """Return the wall clock's time, aware."""
        return datetime.now(UTC)

    def turn_id(self) -> str:
        """Return a new turn id."""
        return ids.uuid7(times.to_milliseconds(self.now()), secrets.randbits(74))

    def holder(self) -> str:
        """Return who this process is; a fork's child is somebody else."""
        pid = os.getpid()
        known = self._holders.get(pid)
        if known is None:
            # One step: threads that ask first at the same time are given the same.
            new = f"{socket.gethostname()}:{pid}:{secrets.token_hex(16)}"
            known = self._holders.setdefault(pid, new)
        return known

    def boot(self) -> str | None:
        """x"""
        return None

    def monotonic(self) -> float:
        """x"""
        import time

        return time.monotonic()


SYSTEM = System()
