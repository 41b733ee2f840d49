"""A caller that blocks goes through with its turns; interrupted, it leaves none of them running.

An interrupt may come between any two steps of the caller: while a turn is recorded and started (see `apart`),
while its program runs, and in between. So all of that stands in one `try`, and what is done then is always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from contextvars import Context
from typing import Any, Protocol, TypeVar

from ledger.turns import apart, current, loops
from ledger.turns.running import Run

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Beginning(Protocol[T_co]):
    """A turn on its way to its program: one that is sent, or gone on with."""

    run: Run | None
    """Its program at work; None: not yet, or never."""

    def begin(self, context: Context, loop: loops.Loop | None = None) -> T_co:
        """Record that it begins and start its program, as one; or say that it has to wait."""
        ...

    def cancel(self) -> None:
        """Say that it is no longer wanted: what has not begun will not."""

    def leave(self) -> None:
        """Have it end, wherever it is by now; may take as long as the store."""


def begin(beginning: Beginning[T], context: Context) -> T:
    """Have a turn begun, or say that it has to wait, as `Beginning.begin`; no interrupt comes between."""
    return apart.do(lambda: beginning.begin(context), interrupted=beginning.cancel)


def through(beginnings: Sequence[Beginning[Any]], go: Callable[[], T]) -> T:
    """Go through with turns. Whatever ends that before they are over, an interrupt above all: they are left first.

    Inside another turn, who stops that one stops them.
    """
    outer = current.recorded_turn()
    inside = nullcontext() if outer is None else outer.stopping(lambda: _stop(beginnings))
    try:
        with inside:
            done = go()
    except BaseException:
        left = [each for each in beginnings if each.run is None or not each.run.is_over]
        if left:
            apart.last(lambda: _leave(left))
        raise
    return done


def _stop(beginnings: Sequence[Beginning[Any]]) -> None:
    for each in beginnings:
        each.cancel()
        if each.run is not None:
            each.run.stop()


def _leave(left: Sequence[Beginning[Any]]) -> None:
    for each in left:
        with suppress(Exception):
            each.leave()
    for each in left:
        if each.run is not None:
            each.run.wait(apart.LAST_S)
