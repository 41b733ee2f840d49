"""How a run of a program becomes the outcome that its `ended` record keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ledger.errors import Cancelled, LedgerError, TurnState, TurnWaiting
from ledger.turns import raising
from ledger.turns.attachments import Attachment
from ledger.turns.commands import Outcome
from ledger.turns.current import Running
from ledger.turns.programs import Program
from ledger.views.text import error_text


def done(program: Program, value: Any, running: Running, seconds: float) -> Outcome:
    """Return the outcome of a program that returned. Raises: record-invalid naming the path."""
    given: list[Attachment] = []
    outputs = program.outputs(value, given)
    answer = outputs[program.description.answer]
    noted = _noted(running, seconds)
    return Outcome(state="done", outputs=outputs, value=answer, given=given, **noted)


def failed(error: BaseException, running: Running, seconds: float) -> Outcome:
    """Return the outcome of a program that raised."""
    error_told = raising.describe(error)
    partial = running.pieces.broken_off or None
    return Outcome(state="failed", error=error_told, partial=partial, **_noted(running, seconds))


def stopped(running: Running, seconds: float) -> Outcome:
    """Return the outcome of a program that was stopped: what it had said, and used, so far."""
    partial = running.pieces.broken_off or None
    return Outcome(state="stopped", partial=partial, **_noted(running, seconds))


def tell(outcome: Outcome, running: Running) -> None:
    """Add what the turn and its model said; only now that what the answer names is kept, since it is said in text."""
    if not outcome.bare:
        answer = [outcome.value] if outcome.state == "done" else []
        outcome.messages = running.exchange.recorded(*answer)


def bare(outcome: Outcome) -> Outcome:
    """Return an end that every record can hold: how it ended, and the beginning of what was said."""
    partial = None if outcome.partial is None else raising.shortened(outcome.partial)
    return Outcome(state=outcome.state, error=outcome.error, partial=partial, bare=True)


def _noted(running: Running, seconds: float) -> dict[str, Any]:
    return {
        "model": running.model,
        "usage": dict(running.usage),
        "seconds": round(seconds, 6),
    }


def missing(
    turn: str, state: str, error: Mapping[str, Any] | None, questions: Iterable[Any]
) -> LedgerError:
    """Return why a turn that no longer runs, and is not done, has no answer."""
    if state == "stopped":
        return Cancelled(turn=turn)
    if state == "waiting":
        return TurnWaiting(turn=turn, questions=tuple(questions))
    if state == "interrupted":
        reason = "its process died before it ended; resume() goes on with it"
        return TurnState(turn=turn, state=state, reason=reason)
    told = error_text(error) if error else "it has no result"
    next_step = "look at turn.steps before you send it under a new request id"
    reason = f"{told}; what it did stands: {next_step}"
    return TurnState(turn=turn, state=state, reason=reason)
