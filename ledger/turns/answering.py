"""A person answers a question that a turn waits for. Of two answers to one question the first counts."""

from __future__ import annotations

from typing import Any

from ledger.records.kinds import NewRecord
from ledger.turns import claims
from ledger.turns.log import Log
from ledger.turns.view import View
from ledger.views import History


def answer(
    log: Log,
    view: View,
    turn: str,
    question: Any,
    verdict: str,
    *,
    by: str | None,
    reason: str | None,
) -> None:
    """Record an answer. Raises: question-unknown, turn-state, TypeError."""
    for name, value in (("by", by), ("reason", reason)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is text, not {type(value).__name__}")

    def decide(history: History) -> list[NewRecord]:
        now = view.world.now()
        return claims.answer(history, turn, question, verdict, by=by, reason=reason, now=now)

    log.append(decide)
