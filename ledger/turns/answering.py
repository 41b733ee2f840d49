"""A person answers a question that a turn waits for. Of two answers to one question the first counts."""

from __future__ import annotations

from collections.abc import Mapping
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
    if isinstance(question, bool) or not isinstance(question, str | int | Mapping | None):
        raise TypeError(
            f"a question is one of turn.waiting, or its key, id, number, path or name, not {question!r}; "
            "approve() says yes, deny() says no"
        )

    def decide(history: History) -> list[NewRecord]:
        now, dead = view.world.now(), view.dead(history, turn)
        return claims.answer(
            history, turn, question, verdict, by=by, reason=reason, now=now, dead=dead
        )

    log.append(decide)
