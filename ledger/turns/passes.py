"""What running turns say is written in passes: all that is due in one lane, one after the other, by one job.

A pass begins a moment after the first piece that is due, so pieces are joined meanwhile. The passes of a lane take a
share of a core and no more: where so many turns run that writing what they say takes longer, the next pass
is later, and more is joined until then. So what turns say costs their event loop little, however many they are.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any

from ledger.turns import keeper

JOIN_S = 0.05
"""How long pieces are joined before they are written."""
SHARE = 1 / 8
"""How much of a core the passes of one lane take at most."""

Write = Callable[[], Any]


class Passes:
    """The passes of all lanes.

    Args: later: has a job done after some seconds, in a lane. worked: how many seconds this thread has worked.
    """

    def __init__(
        self,
        later: Callable[[float, Callable[[], Any], Hashable], Any],
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        self._later = later
        self._worked = worked
        self._lock = threading.Lock()
        self._due: dict[Hashable, list[Write]] = {}
        """What is to be written, by lane: of each that has a pass under way or before it."""

    def soon(self, write: Write, lane: Hashable = None) -> None:
        """Have something written by the next pass of a lane."""
        with self._lock:
            if lane in self._due:
                self._due[lane].append(write)
                return
            # In this order: an interrupt in between leaves a pass that finds nothing, and no lane without one.
            self._later(JOIN_S, partial(self._pass, lane), lane)
            self._due[lane] = [write]

    def _pass(self, lane: Hashable) -> None:
        with self._lock:
            due = self._due.get(lane)
            if due is None:
                return
            self._due[lane] = []
        before = self._worked()
        for write in due:
            with suppress(Exception):  # What one says must not hold back the others.
                write()
        rest_s = (self._worked() - before) * (1 / SHARE - 1)
        with self._lock:
            if not self._due.get(lane) and rest_s < JOIN_S:
                self._due.pop(lane, None)
                return
        self._later(max(JOIN_S, rest_s), partial(self._pass, lane), lane)


class _Process:
    """The passes of this process; a fork's child, which runs none of its parent's turns, has its own."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.passes = Passes(keeper.later)


_process = _Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.renew)


def soon(write: Write, lane: Hashable = None) -> None:
    """Have something written in some 50 ms, or later where much is to be."""
    _process.passes.soon(write, lane)
