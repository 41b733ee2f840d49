"""A merge in the making, and what its program may note while it is at work.

Nothing is recorded of a merge before its program is over, so that one which raises leaves no trace. What the program
notes meanwhile (the model that it asked, what that used, what was said) is kept here and goes into the record.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import EllipsisType
from typing import Any

from ledger.errors import Cancelled
from ledger.records import kinds
from ledger.records.kinds import NewRecord
from ledger.turns import commands, current, outcomes, programs
from ledger.turns.commands import Outcome, Sent
from ledger.turns.current import Unrecorded
from ledger.turns.forgotten import Quoted
from ledger.turns.telling import Exchange
from ledger.turns.view import Making, Outputs, TurnLike, View
from ledger.views import History


class Merge(Making):
    """A turn whose answer another program makes of several: settled when all of these are over, then given its answer.

    Args: merged: the turns. made_by: what the record says of that program. onto: where it lands; left out: where these
    turns meet.
    """

    def __init__(
        self,
        view: View,
        merged: Sequence[str],
        made_by: dict[str, Any],
        request_id: str | None = None,
        *,
        onto: TurnLike | EllipsisType | None = ...,
    ) -> None:
        super().__init__(view, request_id)
        self.merged = list(merged)
        """The turns that it reads."""
        self.quoted = Quoted(tuple(merged), "there is no answer left to merge")
        self._made_by = made_by
        self._onto = onto
        self._program: programs.Description
        self._outcome: Outcome
        self._noted: Unrecorded
        self._seconds = 0.0

    def settle(self, history: History) -> programs.Description:
        """Return whose turn it is, once all that it reads are over. Raises: turn-state: it has nowhere to land."""
        self._parent(history)
        self._program = self.view.merged_program(history, self.merged[0])
        return self._program

    @contextmanager
    def at_work(self, exchange: Exchange) -> Iterator[None]:
        """While its program is: what that notes is the merge's. Args: exchange: what it may ask of messages."""
        view, began = self.view, time.perf_counter()
        noted = Unrecorded(
            view.conversation, self.turn, view.settings, exchange, lambda: self.cancelled
        )
        self._noted = noted
        try:
            with current.being(noted):
                yield
        except BaseException:
            noted.ask_to_stop()
            raise
        finally:
            noted.over = True
            self._seconds = time.perf_counter() - began

    def give(self, value: Any) -> None:
        """Take what its program returned. Raises: record-invalid: it cannot be the answer."""
        outputs = self.view.merged_outputs(self._program, value, self.given)
        noted = self._noted
        kept = value.model if isinstance(value, Outputs) else None
        self._outcome = Outcome(
            state="done",
            outputs=outputs,
            value=outputs.get(self._program.answer),
            model=noted.model if noted.model is not None else kept,
            usage=dict(noted.usage),
            seconds=round(self._seconds, 6),
        )

    def repeat(self, history: History) -> bool:
        """Say whether a merge of the same turns was made under the same request id: then it is that one.

        Raises: request-mismatch: another turn was. turn-stopped: this one was cancelled.
        """
        if self.cancelled:
            raise Cancelled(turn=self.turn)
        self.repeats = self._repeats(history)
        return self.repeats is not None

    def _repeats(self, history: History) -> str | None:
        return commands.merged_as(history, self.request_id, self.merged)

    def queues_at(self, history: History) -> str | None:
        """None: where it lands is free."""
        return None

    def _parent(self, history: History) -> tuple[str | None, bool]:
        if isinstance(self._onto, EllipsisType):
            return history.landing(self.merged), False
        return self.view.done(history, self._onto, "a merge lands on a turn that is done"), False

    def _records(self, history: History, parent: str | None) -> list[NewRecord]:
        """Return its records. What it was asked is what the first merged turn was asked."""
        record = history.node(self.merged[0]).record
        where = record.seq, f"turn {self.merged[0]}"
        sent = Sent(
            turn=self.turn,
            parent=parent,
            inputs=kinds.mapping(record.inputs, *where),
            messages=kinds.payload(record.messages, *where) or None,
            request_id=self.request_id,
            reads=self.merged,
            made_by=self._made_by,
        )
        outcomes.tell(self._outcome, self._noted)
        now = self.view.world.now()
        return commands.record(history, sent, self._outcome, program=self._program, saw=[], now=now)
