"""A turn in the making that was made elsewhere: the caller knows all of it, and it is done at once."""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType
from typing import Any

from ledger.formats.usage import taken
from ledger.records import messages
from ledger.records.kinds import NewRecord
from ledger.turns import commands, current
from ledger.turns.attachments import lowered
from ledger.turns.beside import exchange_of
from ledger.turns.commands import Outcome, Sent
from ledger.turns.view import Making, TurnLike, View
from ledger.views import History


class Record(Making):
    """A turn that was made elsewhere."""

    def __init__(
        self,
        view: View,
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        *,
        parent: TurnLike | EllipsisType | None = ...,
        expect: TurnLike | EllipsisType | None = ...,
        model: str | None = None,
        usage: Any = None,
        saw: Iterable[TurnLike] | None = None,
        exchange: list[dict[str, Any]] | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(view, request_id)
        current.check_model(model)
        inputs = lowered(inputs, "inputs", self.given)
        outputs = lowered(outputs, "outputs", self.given)
        asked, answered = (None, None)
        if exchange is not None:
            asked, answered = messages.split(messages.check(exchange_of(exchange, self.given)))
        self.program = view.recorded_program(inputs, outputs)
        """The program that it is recorded as a turn of."""
        self._sent = Sent(
            turn=self.turn, parent=None, inputs=inputs, messages=asked, request_id=request_id
        )
        self._outcome = Outcome(
            state="done",
            outputs=outputs,
            value=outputs.get(self.program.answer),
            model=model,
            usage=taken({} if usage is None else usage),
            messages=answered,
        )
        self._named = parent
        self.expect = expect
        self._saw = None if saw is None else list(saw)

    def _repeats(self, history: History) -> str | None:
        return self._sent_before(history, self._sent.inputs, self._sent.messages)

    def queues_at(self, history: History) -> str | None:
        """As any other; a parent that is named is done, and free."""
        return super().queues_at(history) if isinstance(self._named, EllipsisType) else None

    def _parent(self, history: History) -> tuple[str | None, bool]:
        if isinstance(self._named, EllipsisType):
            return super()._parent(history)
        self.view.check_newest(history, self.expect)
        reason = "only a turn that is done can be continued"
        return self.view.done(history, self._named, reason), False

    def _records(self, history: History, parent: str | None) -> list[NewRecord]:
        if self._saw is not None:
            saw = [{"call": self.view.find(history, turn)} for turn in self._saw]
            return self.records(history, parent, saw)
        shown = history.shown(parent, self.view.rule)
        return self.records(history, parent, shown.saw, shown.entries, saw_all=shown.is_all)

    def records(
        self,
        history: History,
        parent: str | None,
        saw: list[dict[str, Any]],
        entries: list[int] | None = None,
        *,
        saw_all: bool = False,
    ) -> list[NewRecord]:
        """Return its records under a parent. Args: saw, entries, saw_all: what it was shown, as records have it."""
        self._sent.parent = parent
        return commands.record(
            history,
            self._sent,
            self._outcome,
            program=self.program,
            saw=saw,
            saw_all=saw_all,
            entries=entries,
            now=self.view.world.now(),
        )
