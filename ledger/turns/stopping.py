"""Stopping a turn from anywhere, and what waits to become one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ledger.records.kinds import NewRecord
from ledger.turns import arrivals, commands, current, following, running
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


@contextmanager
def waiting(making: Making, log: Log) -> Iterator[None]:
    """Have a turn wait to be recorded, behind those that came before it (`arrivals`).

    Meanwhile it can be cancelled: under its request id, and with the turn that it is made in.
    """
    outer = current.recorded_turn()
    with nullcontext() if outer is None else outer.stopping(making.cancel):
        arrivals.arrive(making, log.conversation, log.store)
        try:
            yield
        finally:
            waits_no_more(making)


def waits_no_more(making: Making) -> None:
    """Have a turn wait no more, so that it cannot be cancelled under its request id; again is no error."""
    arrivals.leave(making, making.view.conversation)
