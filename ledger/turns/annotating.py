"""People and programs rate turns and label them: one entry each, whatever the log holds by then.

Who rates loses to nobody, so nothing is asked but what the turn is: one that was taken out has nothing left to
be rated, and an entry at it would keep something of what was to be forgotten.
"""

from __future__ import annotations

from typing import Any

from ledger.errors import TurnState
from ledger.turns import commands
from ledger.turns.log import Log
from ledger.turns.view import View
from ledger.views import History, ratings
from ledger.views.nodes import LABEL, RATING


def rate(log: Log, view: View, turn: str, value: Any, *, by: Any, why: Any) -> None:
    """Record a rating. Raises: TypeError, ValueError, turn-unknown, turn-state: the turn was erased."""
    data = ratings.rating_data(value, by, why)
    _refuse_erased(log.read(), turn)
    log.add(commands.entry(*RATING, data, now=view.world.now(), turn=turn))


def label(log: Log, view: View, turn: str | None, text: Any, *, on: bool) -> None:
    """Record that a label is put on a turn or the conversation (None), or taken off; nothing where it is so.

    Raises: as `rate`.
    """
    data = ratings.label_data(text, on=on)
    history = log.read()
    if turn is not None:
        _refuse_erased(history, turn)
    if on is (log.redacted(text, "label") in history.labels(turn)):
        return
    log.add(commands.entry(*LABEL, data, now=view.world.now(), turn=turn))


def _refuse_erased(history: History, turn: str) -> None:
    node = history.node(turn)
    if node.erased:
        state = node.outcome if node.outcome is not None else "erased"
        reason = "what it said was taken out, so there is nothing left to rate or label"
        raise TurnState(turn=turn, state=state, reason=reason)
