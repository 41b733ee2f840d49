"""Sends of this process that wait to be recorded, in the order in which they came.

Where several wait for one place, who came first goes first. The place is what a send would continue if it were made
now, and is asked anew each time: so a line forms behind whatever is to be waited for, and two branches go on side by
side. Nothing is handed over: a send that is behind another asks again, as one does that waits for a turn. So nobody has
to leave a line for the others to go on: one that does not ask any more, for whatever reason, is passed by.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from ledger.turns import loops
from ledger.views import History

PATIENCE_S = 3.0
"""How long a send may be late in asking again: who should have it ask is held up, or gone."""


class Arriving(Protocol):
    """A send on its way."""

    turn: str
    """The turn that it becomes."""
    request_id: str | None
    """The request id that it is made under."""
    rests: float | None
    """Since when it does nothing but wait to ask again, on the monotonic clock; None: it is at work."""

    def cancel(self) -> None:
        """Say that it is no longer wanted."""
        ...

    def queues_at(self, history: History) -> str | None:
        """Return the turn that it waits to continue, empty before the first one; None: it stands behind nobody."""
        ...


class _Arrived(NamedTuple):
    send: weakref.ref[Arriving]
    store: Any
    loop: loops.Loop | None
    """The loop on which it waits; None: a thread does."""

    def is_alive(self) -> bool:
        """Say whether it can be expected to ask again, or is at work."""
        send = self.send()
        if send is None or (self.loop is not None and not self.loop.is_running()):
            return False
        return send.rests is None or time.monotonic() - send.rests < PATIENCE_S


_lock = threading.Lock()
_arrived: dict[str, list[_Arrived]] = {}
_serves: ContextVar[bool] = ContextVar("ledger_serves", default=False)
"""Whether this code runs on behalf of a send that is not recorded yet."""


def arrive(send: Arriving, conversation: str, store: Any) -> None:
    """Take the place behind all that came before."""
    arrived = _Arrived(weakref.ref(send), store, loops.running_loop())
    with _lock:
        others = [each for each in _arrived.get(conversation, ()) if each.send() is not None]
        _arrived[conversation] = [*others, arrived]


def leave(send: Arriving, conversation: str) -> None:
    """Wait no more; again is no error."""
    with _lock:
        found = _arrived.pop(conversation, [])
        left = [each for each in found if each.send() not in (None, send)]
        if left:
            _arrived[conversation] = left


def cancel(conversation: str, request_id: str) -> bool:
    """Cancel the sends that wait under a request id. Returns: whether there was one."""
    with _lock:
        every = [each.send() for each in _arrived.get(conversation, ())]
    found = [send for send in every if send is not None and send.request_id == request_id]
    for send in found:
        send.cancel()
    return bool(found)


def is_behind(send: Arriving, conversation: str, history: History) -> bool:
    """Say whether another one that came before it to the same store waits for the same place, and can take it."""
    if _serves.get():
        return False  # Who waits for it stands in that line, and it would wait for itself.
    earlier: list[_Arrived] = []
    with _lock:
        for each in _arrived.get(conversation, ()):
            if each.send() is send:
                earlier = [other for other in earlier if other.store is each.store]
                break
            earlier.append(each)
        else:
            return False
    place = send.queues_at(history) if earlier else None
    return place is not None and any(
        each.is_alive() and _waits_at(each.send(), place, history) for each in reversed(earlier)
    )


def _waits_at(send: Arriving | None, place: str, history: History) -> bool:
    if send is None or history.found(send.turn) is not None:
        return False
    return send.queues_at(history) == place


@contextmanager
def serving(send: Arriving) -> Iterator[None]:
    """While something is made for a send before it is recorded: what is sent in there stands behind nobody."""
    before = _serves.set(True)
    send.rests = None
    try:
        yield
    finally:
        _serves.reset(before)


def _renew() -> None:
    """In a fork's child no send of its parent waits."""
    global _lock
    _lock = threading.Lock()
    _arrived.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
