"""What the shells take from outside: the time, new ids, who this process is, and where.

Tests pass a world of their own, so nothing in them waits or depends on chance.
"""

from __future__ import annotations

import inspect
import os
import secrets
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Protocol
from weakref import WeakMethod

from ledger.records import ids, times
from ledger.turns.identity import ByIdentity

BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""Where Linux tells its boot id: 128 random bits, new at every start, the same in all containers."""


class World(Protocol):
    """Time, chance and identity, as one object."""

    def now(self) -> datetime:
        """Return the wall clock's time, aware."""
        ...

    def monotonic(self) -> float:
        """Return the seconds since some moment, the same one while the machine runs.

        No setting of the clock moves it. Time in which the machine sleeps counts: leases run out
        meanwhile, and whoever wakes must not think that no time passed.
        """
        ...

    def turn_id(self) -> str:
        """Return a new turn id."""
        ...

    def holder(self) -> str:
        """Return who this process is in leases: `host:pid:random`."""
        ...

    def boot(self) -> str | None:
        """Return the id of this machine's present boot; None where there is none."""
        ...


class System:
    """The real world: this machine's clock, its randomness, this process."""

    def __init__(self) -> None:
        self._holders: dict[int, str] = {}

    def now(self) -> datetime:
        """Return the wall clock's time, aware."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds since the machine started, those in which it slept included.

        Not promised: the latter, on systems without such a clock (CLOCK_BOOTTIME).
        """
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

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
        """Return the kernel's boot id (Linux); None elsewhere."""
        return _boot(BOOT_ID)


class Shared(System):
    """The real world, with the time of a store that has a clock: one clock for all who share it.

    So leases are judged by the clock that they were written by, whatever the machines' own say.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now

    def now(self) -> datetime:
        """Return the time by the store's clock."""
        return self._now()

    def holder(self) -> str:
        """Return who this process is, whatever store it is told to."""
        return SYSTEM.holder()


@cache
def _boot(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(100).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


SYSTEM = System()

_shared: ByIdentity[Shared] = ByIdentity()


def world_of(store: Any) -> World:
    """Return the world that a store's turns are made in: by its clock, if it has one (`now`)."""
    now = getattr(store, "now", None)
    if not callable(now) or inspect.iscoroutinefunction(now):
        return SYSTEM
    known = _shared.get(store)
    if known is None:
        # The world does not keep its store alive: it goes with it.
        bound = WeakMethod(now) if inspect.ismethod(now) else None
        known = Shared(partial(_asked, bound) if bound is not None else now)
        _shared.set(store, known)
    return known


def _asked(method: Callable[[], Callable[[], datetime] | None]) -> datetime:
    now = method()
    return now() if now is not None else SYSTEM.now()
