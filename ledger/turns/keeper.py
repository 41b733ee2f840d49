"""One thread per process that keeps the running turns: it looks for stops and renews leases, in time.

The thread itself only decides what is due. What may take long (an append that waits for another
process's lock, a read of a slow store) is done by a bounded pool of threads, a few for each conversation,
so that one that hangs costs no other turn its lease. Both are started when the first turn runs, and made
anew in a fork's child, which runs none of its parent's turns.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any, Protocol

from ledger.bells import Bell
from ledger.turns.pool import in_pool

LOOK_S = 0.4
"""How often the log of a running turn is looked at: a stop is seen within this and a little more."""
RENEW_S = 10.0
"""How old a lease gets before it is renewed."""
SLICES = 4
"""In how many parts all turns are looked at in that time, one after the other."""
EARLIER_S = 5.0
"""How much earlier, at most, a lease is renewed for the first time, so that those of many turns are not due at once."""
AGAIN_S = 1.0
"""When a renewal that failed is tried again."""

_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole part, lie evenly between 0 and 1, however many they are."""


class Kept(Protocol):
    """A running turn, as the keeper sees it."""

    @property
    def lane(self) -> Hashable:
        """Where its jobs stand in line."""

    def look(self) -> None:
        """See whether its log has news; must not take long."""

    def renew(self) -> bool:
        """Renew its lease; may take long. Returns: whether that went well."""


class Keeper:
    """Does what is due when it is due.

    `tick` does all that is due at a time and says when to come again; the thread only calls it.
    """

    def __init__(self, submit: Callable[[Callable[[], Any], Hashable], Any]) -> None:
        self._submit = submit
        self._jobs: list[tuple[float, int, Callable[[], Any], Hashable]] = []
        self._count = itertools.count()
        self._bell = Bell()
        self._kept: dict[Kept, float] = {}
        """When each turn's lease is to be renewed. Who is to be looked at next stands first."""
        self._look_at: float | None = None
        """When turns are looked at next; None: there are none."""
        self._thread: threading.Thread | None = None

    def tend(self, kept: Kept, now: float) -> None:
        """Look at a turn and renew its lease from now on, until `leave`."""
        with self._bell.lock:
            self._kept[kept] = now + RENEW_S - EARLIER_S * (len(self._kept) * _GOLDEN % 1)
            if self._look_at is None:
                self._look_at = now + LOOK_S
                self._bell.ring()

    def leave(self, kept: Kept) -> None:
        """Look after a turn no more."""
        with self._bell.lock:
            self._kept.pop(kept, None)

    def later(self, due: float, job: Callable[[], Any], lane: Hashable = None) -> None:
        """Have a job done in the pool at a time, or soon after."""
        with self._bell.lock:
            heapq.heappush(self._jobs, (due, next(self._count), job, lane))
            if self._jobs[0][0] == due:
                self._bell.ring()

    def tick(self, now: float) -> float | None:
        """Do all that is due. Returns: when the next is; None: nothing is."""
        with self._bell.lock:
            due = []
            while self._jobs and self._jobs[0][0] <= now:
                due.append(heapq.heappop(self._jobs)[2:])
            looks = self._look_at is not None and self._look_at <= now
            kept = self._next_slice() if looks else []
            if looks:
                slices = min(SLICES, len(self._kept))
                self._look_at = now + LOOK_S / slices if slices else None
        for job, lane in due:
            self._submit(job, lane)
        for turn, renewal in kept:
            turn.look()
            if renewal <= now:
                self._renew(turn, now)
        return self._next()

    def _next_slice(self) -> list[tuple[Kept, float]]:
        """Return the turns that are to be looked at now; they stand last then."""
        some = list(itertools.islice(self._kept.items(), -(-len(self._kept) // SLICES)))
        for turn, renewal in some:
            del self._kept[turn]
            self._kept[turn] = renewal
        return some

    def _renew(self, turn: Kept, now: float) -> None:
        """Have a lease renewed, and say when again. It counts from the beginning, however long it takes."""
        with self._bell.lock:
            if turn in self._kept:
                self._kept[turn] = math.inf

        def renew() -> None:
            wait = RENEW_S if turn.renew() else AGAIN_S
            with self._bell.lock:
                if turn in self._kept:
                    self._kept[turn] = now + wait

        self._submit(renew, turn.lane)

    def _next(self) -> float | None:
        with self._bell.lock:
            return min((d for d in (self._look_at, self._first()) if d is not None), default=None)

    def _is_other_than(self, due: float | None) -> bool:
        return self._next() != due

    def _first(self) -> float | None:
        return self._jobs[0][0] if self._jobs else None

    # -- the thread

    def start(self) -> None:
        """Start the thread, if it is not there; where none can be had now, the next call tries again."""
        with self._bell.lock:
            if self._thread is not None and self._thread.is_alive():
                return
            thread = threading.Thread(target=self._run, name="ledger-keeper", daemon=True)
            # Outside the turn, if any, that is the first to need it.
            with suppress(RuntimeError):
                Context().run(thread.start)
                self._thread = thread

    def _run(self) -> None:
        while True:
            try:
                self.tick(time.monotonic())
            except Exception:
                # Whatever it was, the other turns need their leases. At the next tick it is tried again.
                if not threading.main_thread().is_alive():
                    return
            due = self._next()
            left = None if due is None else max(due - time.monotonic(), 0)
            self._bell.wait_for(partial(self._is_other_than, due), left)


class _Process:
    """The keeper of this process; a fork's child, which runs none of its parent's turns, has its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid = 0
        self._keeper: Keeper

    def keeper(self) -> Keeper:
        with self.lock:
            if self.pid != os.getpid():
                self.pid = os.getpid()
                self._keeper = Keeper(in_pool)
        self._keeper.start()
        return self._keeper


_process = _Process()


def _renew_lock() -> None:
    _process.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def later(delay_s: float, job: Callable[[], Any], lane: Hashable = None) -> None:
    """Have a job done in the pool after a delay in seconds."""
    _process.keeper().later(time.monotonic() + delay_s, job, lane)


def tend(kept: Kept) -> None:
    """Look after a running turn until `leave`."""
    _process.keeper().tend(kept, time.monotonic())


def leave(kept: Kept) -> None:
    """Look after a turn no more."""
    _process.keeper().leave(kept)
