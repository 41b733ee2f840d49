"""Who makes a turn of a conversation in this process, and who is next: one at a time, in order.

It holds for turns that nothing is recorded of before they end. Between processes nothing is held.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Hashable
from concurrent.futures import Future
from contextvars import ContextVar

from ledger.errors import Busy

ADVICE = 'try again later, or have the memory wait, with busy="queue"'
"""What to do where a memory does not wait."""
_lock = threading.Lock()
_lines: dict[Hashable, deque[Future[None]]] = {}
_inside: ContextVar[frozenset[Hashable]] = ContextVar("ledger_inside", default=frozenset())


class Queued:
    """A place in a conversation's line.

    Args: line: what tells the conversation. wait: whether to stand behind others, or to refuse.
    Raises: conversation-busy: somebody stands there, and it is not to wait; or the caller does itself.
    """

    def __init__(self, line: Hashable, conversation: str, *, wait: bool) -> None:
        self._line = line
        self.free: Future[None] = Future()
        """Is done when it is this one's turn."""
        if line in _inside.get():
            raise _busy(conversation, "being made by the caller itself", "let that end first")
        with _lock:
            others = _lines.setdefault(line, deque())
            if others and not wait:
                raise _busy(conversation, "being made in this process", ADVICE)
            others.append(self.free)
            if len(others) == 1:
                self.free.set_result(None)

    def begin(self) -> None:
        """Note that what the caller does from now on is done in this turn."""
        _inside.set(_inside.get() | {self._line})

    def end(self) -> None:
        """Leave the line, from its front or from anywhere in it; the next one is free then."""
        _inside.set(_inside.get() - {self._line})
        with _lock:
            others = _lines.get(self._line, deque())
            if self.free not in others:
                return
            others.remove(self.free)
            if not others:
                del _lines[self._line]
            elif not others[0].done():
                others[0].set_result(None)


def _busy(conversation: str, state: str, advice: str) -> Busy:
    return Busy(conversation, "<not recorded yet>", state, advice=advice)


def _renew() -> None:
    """In a fork's child nobody of its parent makes a turn."""
    global _lock
    _lock = threading.Lock()
    _lines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
