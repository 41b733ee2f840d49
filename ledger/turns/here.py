"""Where this thread or task is in a turn: whose call it is, at which site, in which step's call.

One context variable holds all of it, so that who carries it into a thread carries it whole.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from ledger.turns.sites import Site


class Notes:
    """What is noted while the call of a step is made, for its record. Safe for threads."""

    def __init__(self, by: Any) -> None:
        self.by = by
        """Who makes the step: the model that answered is for them to say."""
        self.usage: dict[str, int] = {}
        self.model: str | None = None
        self._lock = threading.Lock()

    def add(self, model: str | None, counts: Mapping[str, int]) -> None:
        """Note a model, and add token counts."""
        with self._lock:
            self.model = self.model if model is None else model
            for name, count in counts.items():
                self.usage[name] = self.usage.get(name, 0) + count

    def recorded(self) -> dict[str, Any]:
        """Return the keys by which a record says it; none of what was not noted."""
        with self._lock:
            said = {"model": self.model, "usage": dict(self.usage)}
        return {name: value for name, value in said.items() if value}


class Here(NamedTuple):
    """Where code is in a turn."""

    running: Any
    """The turn, or the helper's call, as its code sees it (`current.Running`)."""
    site: Site
    notes: Notes | None = None
    """Of the step whose call is being made."""


_HERE: ContextVar[Here | None] = ContextVar("ledger_here", default=None)


def get() -> Here | None:
    """Return where this code is; None: in no turn."""
    return _HERE.get()


@contextmanager
def being(here: Here) -> Iterator[None]:
    """Be somewhere."""
    token = _HERE.set(here)
    try:
        yield
    finally:
        _HERE.reset(token)


@contextmanager
def calling(running: Any, site: Site, by: Any) -> Iterator[Notes]:
    """Be in the call of a step: what is made here is made within it, what is noted goes into its record.

    Args: running: the turn or helper's call as the code here sees it. by: the one that makes the step.
    """
    notes = Notes(by)
    with being(Here(running, site, notes)):
        yield notes


def enter(here: Here | None) -> Token[Here | None]:
    """Be somewhere until `leave`."""
    return _HERE.set(here)


def leave(token: Token[Here | None]) -> None:
    """Undo `enter`."""
    _HERE.reset(token)
