"""Stopping a turn from anywhere, and what waits to become one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ledger.records.kinds import NewRecord
from ledger.turns import commands, current, following, running
from ledger.turns.log import Log
from ledger.turns.view import Making, View
from ledger.views import History


def stop(log: Log, view: View, turn: str) -> None:
    """Ask a running turn to stop, wherever it runs; end one that nobody runs; leave one that ended.

    Who presses stop loses to nobody: what asks is appended whatever became of the turn by then, unless it is gone.
    Raises: turn-unknown.
    """
    history = log.read()
    decided = commands.stop(history, turn, now=view.world.now(), dead=view.dead(history, turn))
    if not decided:
        return
    if decided[0]["kind"] == "stop":

        def ask(history: History) -> list[NewRecord]:
            history.node(turn)
            return decided

        log.append(ask)
    else:
        said = following.said(log, turn)

        def decide(history: History) -> list[NewRecord]:
            now, dead = view.world.now(), view.dead(history, turn)
            return commands.stop(history, turn, now=now, dead=dead, said=said)

        log.append(decide)
    here = running.find(turn)
    if here is not None:
        here.stop()


def abandon(log: Log, view: View, turn: str) -> None:
    """End a turn that waits or was interrupted; what it had said is kept. Raises: turn-state."""
    said = following.said(log, turn)

    def decide(history: History) -> list[NewRecord]:
        now, dead = view.world.now(), view.dead(history, turn)
        return commands.abandon(history, turn, now=now, dead=dead, said=said)

    log.append(decide)


# -- what waits to be recorded ---------------------------------------------------------------------

_lock = threading.Lock()
_waiting: dict[tuple[str, str], list[Making]] = {}


@contextmanager
def waiting(making: Making) -> Iterator[None]:
    """Let a turn be cancelled while it waits to be recorded: under its request id, and with the turn it is made in."""
    outer = current.recorded_turn()
    with nullcontext() if outer is None else outer.stopping(making.cancel):
        if making.request_id is not None:
            with _lock:
                _waiting.setdefault(_key(making), []).append(making)
        try:
            yield
        finally:
            waits_no_more(making)


def waits_no_more(making: Making) -> None:
    """Let a turn not be cancelled under its request id any more; again is no error."""
    key = _key(making)
    with _lock:
        left = [other for other in _waiting.pop(key, []) if other is not making]
        if left:
            _waiting[key] = left


def _key(making: Making) -> tuple[str, str]:
    return making.view.conversation, making.request_id or ""


def cancel(conversation: str, request_id: str) -> bool:
    """Cancel the sends of this process that wait under a request id. Returns: whether there was one."""
    with _lock:
        found = list(_waiting.get((conversation, request_id), ()))
    for making in found:
        making.cancel()
    return bool(found)


def _renew() -> None:
    """In a fork's child no send of its parent waits."""
    global _lock
    _lock = threading.Lock()
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
