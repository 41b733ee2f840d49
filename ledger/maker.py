"""A turn is made, step by step, for either face: what may wait is left to the caller.

Each step reads, decides and appends once. A blocking caller waits between steps in its thread, an
awaiting one on its loop; so both make turns by the same steps and cannot drift apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context
from inspect import BoundArguments
from types import EllipsisType
from typing import Any

from ledger import merging
from ledger.errors import Cancelled
from ledger.records.kinds import NewRecord
from ledger.records.messages import Message
from ledger.turn import Turn
from ledger.turns import asking, commands, content, launching, loops, programs, stopping, telling
from ledger.turns.attachments import Attachment
from ledger.turns.forgotten import Quoted
from ledger.turns.launching import Launch
from ledger.turns.log import Begun, Log
from ledger.turns.merges import Merge
from ledger.turns.queueing import Queued
from ledger.turns.recording import Record
from ledger.turns.running import Run
from ledger.turns.summarizing import Summarizing
from ledger.turns.telling import Exchange
from ledger.turns.view import (
    Making,
    Siblings,
    Start,
    TurnLike,
    View,
    check_request_id,
)
from ledger.views import History
from ledger.views.place import Cursor
from ledger.views.states import Dead


class Merging:
    """A merge on its way: it waits for turns that run, then for its program. Made by `Maker.merging`."""

    def __init__(
        self,
        maker: Maker,
        making: Merge,
        by: Callable[..., Any],
        inputs: Mapping[str, Any],
    ) -> None:
        self.making = making
        """The turn in the making."""
        self.by = by
        """The merging program."""
        self.arguments: dict[str, Any] = {}
        """What that is called with."""
        self._taken = merging.taken(by, inputs)
        self._asked: list[Message] = []
        self._maker = maker
        self._inputs = inputs

    @contextmanager
    def waiting(self) -> Iterator[Queued | None]:
        """While it is made: it can be cancelled (`stopping`), and others under the same request id stand behind it.

        Yields: its place among these, which is to be waited for and begun; None: it has no request id.
        Raises: conversation-busy: its own program asks for it.
        """
        log, request_id = self._maker._log, self.making.request_id
        with stopping.waiting(self.making, log):
            if request_id is None:
                yield None
                return
            line = (id(log.store), log.conversation, request_id)
            queued = Queued(line, log.conversation, wait=True)
            try:
                yield queued
            finally:
                queued.end()

    def is_ready(self) -> bool:
        """Say whether its program can be called, or it repeats another merge; else a merged turn still runs.

        Raises: turn-state: one has no answer, and will have none. turn-stopped: it was cancelled.
        store-gone: the conversation was deleted meanwhile.
        """
        log, view, making = self._maker._log, self._maker._view, self.making
        merged, history = making.merged, log.begin(making.begun)
        if making.repeat(history):
            return True
        dead: Dead = frozenset().union(*(view.dead(history, turn) for turn in merged))
        history = log.begin(making.begun) if dead else history
        if commands.mergeable(history, merged, now=view.world.now(), dead=dead) is not None:
            return False
        program = making.settle(history)
        self._maker.check_content(program, self._maker._kept_of(program))
        self._asked = history.asked(merged[0])
        answers = [self._answer(turn) for turn in merged]
        self.arguments = {self._taken.answers: answers, **self._inputs}
        if self._taken.base:
            met = history.meeting(merged)
            self.arguments[merging.BASE] = None if met is None else self._answer(met)
        return True

    def at_work(self) -> AbstractContextManager[None]:
        """While its program is."""
        return self.making.at_work(
            Exchange(asked=self._asked, read=telling.reading(self._maker._log))
        )

    def _answer(self, turn: str) -> dict[str, Any]:
        found = Turn(self._maker._log, self._maker._view, turn)
        return {
            "turn": found.id,
            "model": found.model,
            "inputs": found.inputs,
            "outputs": found.outputs,
            "result": found.result,
        }


class Sending:
    """A turn on its way to its program. Made by `Maker.prepare`; `begin` is called until it says that it is made."""

    def __init__(self, maker: Maker, start: Start, bound: BoundArguments) -> None:
        self.start = start
        """The turn in the making."""
        self.run: Run | None = None
        """Its program at work; None: not yet, or it repeats another turn."""
        self._maker = maker
        self._bound = bound

    def begin(self, context: Context, loop: loops.Loop | None = None) -> bool:
        """Record the turn and start its program, as one: nobody is to come between.

        Returns: whether that is done, or the turn repeats another; else it has to wait, or wants a summary.
        Raises: turn-stopped: it was cancelled meanwhile; then nothing is recorded, or that it is stopped.
        """
        if self._maker.step(self.start) is None:
            return False
        if self.start.repeats is None:
            if self.start.cancelled:
                self.leave()
                raise Cancelled(turn=self.start.turn)
            self.run = self._maker.launch(self.start, self._bound, context, loop)
            if self.start.cancelled:
                self.run.stop()
        return True

    def cancel(self) -> None:
        """Say that it is no longer wanted."""
        self.start.cancel()

    def leave(self) -> None:
        """Have it end `stopped`, wherever it is by now: its caller is gone."""
        self.cancel()
        stopping.waits_no_more(self.start)
        if self.run is None:
            self._maker.unsend(self.start)
        else:
            self.run.stop()


class Maker:
    """Makes the turns of one view of a conversation."""

    def __init__(self, log: Log, view: View) -> None:
        self._log = log
        self._view = view

    def prepare(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        request_id: str | None = None,
        *,
        under: Siblings | None = None,
        at: Cursor | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Sending:
        """Return a turn on its way. Raises: TypeError, ValueError, record-invalid."""
        given: list[Attachment] = []
        beside, kwargs = self._view.take_beside(kwargs, given)
        bound, inputs, own = self._view.bind(args, kwargs, given)
        settings = {**own, **(settings or {})}
        program = self._view.program
        assert program is not None
        self.check_content(program.description, program.keep)
        start = Start(
            self._view,
            program,
            inputs,
            settings=settings,
            given=given,
            request_id=request_id,
            beside=beside,
            under=under,
            at=at,
        )
        return Sending(self, start, bound)

    def again(
        self,
        turn: TurnLike,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        request_id: str | None,
    ) -> Sending:
        """Return a turn on its way that asks what another one asked, beside it. Raises: as `asking.again`."""
        check_request_id(request_id)
        begun = Begun()
        history = self._log.begin(begun)
        named = self._view.find(history, turn)
        node = history.node(named)
        sent = history.request(request_id) if node.erased and request_id is not None else None
        # What one that was forgotten was asked is known still where this very request asked it again.
        known = named if sent is None else sent
        asked = asking.again(self._view, history, known, args, kwargs, self._log.raised)
        at = Cursor.start() if node.parent is None else Cursor.exactly(node.parent)
        sending = self.prepare(*asked, request_id, at=at)
        sending.start.begun = begun
        sending.start.quoted = Quoted((named,), asking.FORGOTTEN)
        return sending

    def tries(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        settings: Sequence[Mapping[str, Any]],
        under: Siblings,
        request_id: str | None,
    ) -> list[Sending]:
        """Return the turns of `tries` on their way: the same inputs, other settings."""
        check_request_id(request_id)
        made = []
        for number, each in enumerate(settings, 1):
            if not isinstance(each, Mapping):
                raise TypeError(f"settings are given by name, not as {type(each).__name__}")
            self._view.check_settings(each)
            own = None if request_id is None else f"{request_id}#{number}"
            made.append(self.prepare(args, kwargs, own, under=under, settings=each))
        return made

    def stay(self, under: Siblings) -> None:
        """Have the view stand where several turns share their parent."""
        parent = under.parent
        self._view.cursor = Cursor.start() if parent is None else Cursor.exactly(parent)

    def recording(
        self, inputs: Mapping[str, Any] | str, outputs: Mapping[str, Any] | str, **how: Any
    ) -> Record:
        """Return a turn that was made elsewhere, in the making."""
        exchange = how.pop("messages")
        named = _named(inputs, "message"), _named(outputs, programs.ANSWER)
        record = Record(self._view, *named, exchange=exchange, **how)
        self.check_content(record.program, self._kept_of(record.program))
        return record

    def check_content(self, program: programs.Description, keep: Mapping[str, bool]) -> None:
        """Refuse fields that may not be kept where this store keeps them. Raises: conversation-content."""
        content.refuse(self._log.store, [field["name"] for field in program.fields], keep)

    def _kept_of(self, program: programs.Description) -> Mapping[str, bool]:
        own = self._view.program
        return own.keep if own is not None and own.description.version == program.version else {}

    def merging(
        self,
        turns: Sequence[TurnLike],
        by: Callable[..., Any],
        onto: TurnLike | EllipsisType | None,
        inputs: Mapping[str, Any],
        request_id: str | None,
    ) -> Merging:
        """Return a merge on its way.

        Raises: turn-unknown; TypeError, ValueError: `turns` or `by` cannot be. turn-state: `onto` ended without an
        answer. conversation-content.
        """
        if isinstance(turns, str) or not isinstance(turns, Iterable):
            raise TypeError(f"merge takes a list of turns, as [3, 5]; not {turns!r}")
        begun = Begun()
        view, history = self._view, self._log.begin(begun)
        merged = [view.find(history, turn) for turn in turns]
        if merged and (request_id is None or history.request(request_id) is None):
            self._refuse_merge(history, merged[0], onto)
        by = merging.in_conversation(by, lambda turn: view.find(history, turn))
        making = Merge(view, merged, merging.made_by(by), request_id, onto=onto)
        making.begun = begun
        return Merging(self, making, by, inputs)

    def _refuse_merge(
        self, history: History, first: str, onto: TurnLike | EllipsisType | None
    ) -> None:
        """Refuse a merge for what stays as it is however long turns are waited for."""
        program = self._view.merged_program(history, first)
        self.check_content(program, self._kept_of(program))
        if onto is not None and not isinstance(onto, EllipsisType):
            landing = history.node(self._view.find(history, onto))
            if landing.outcome is not None:
                self._view.done(history, landing.id, "a merge lands on a turn that is done")

    def step(self, making: Making) -> str | None:
        """Append a turn in the making, or find the turn it repeats; None: it has to wait, or wants a summary."""
        if making.given:
            self._log.begin(making.begun)
            self._keep(making)  # Before the lock: it may take long.
        # One step for threads that share this view: who sends next stands behind this turn.
        with self._log.lock:
            self._log.append(lambda h: self._decided(making, h), making.given, begun=making.begun)
            if making.repeats is not None:
                self._log.confirm()  # Who recorded it may have died before it was durable.
            elif making.waits or making.wants is not None:
                making.rests = time.monotonic()
                return None
            else:
                making.quoted.refuse_behind(self._log, [making.turn], making.unsend)
            if making.moves_view:
                self._view.cursor = Cursor.branch_of(making.made)
            return making.made

    def _decided(self, making: Making, history: History) -> list[NewRecord]:
        records = making.decide(history)
        if records and isinstance(making, Start):
            # Only now: which log it goes into is found before anything that may take a while.
            self._log.hold(self._view.world.holder())
        return records

    def _keep(self, making: Making) -> None:
        try:
            self._log.keep(making.given)
        except Exception as error:
            if getattr(error, "code", None) == "attachment-missing":
                making.quoted.refuse(self._log.read())  # They went with the turn.
            raise

    def summarizing(self, making: Making) -> Summarizing:
        """Return the summary that a turn in the making wants, in the making itself. Raises: store-corrupt."""
        assert isinstance(making, Start)
        return Summarizing(self._log, making)

    def launch(
        self,
        start: Start,
        bound: BoundArguments,
        context: Context,
        loop: loops.Loop | None = None,
    ) -> Run:
        """Start the program of a turn that was recorded."""
        program = self._view.program
        assert program is not None
        launch = Launch(
            start.turn,
            program,
            bound,
            start.settings,
            start.claim,
            start.approve,
            self._view.remembering,
            start.asked,
        )
        return launching.launch(self._log, self._view, launch, context, loop)

    def unsend(self, start: Start) -> None:
        """Have a turn end `stopped` that was recorded and that nobody runs."""
        self._log.append(start.unsend)


def _named(value: Mapping[str, Any] | str, name: str) -> dict[str, Any]:
    if isinstance(value, str):
        return {name: value}
    if not isinstance(value, Mapping):
        raise TypeError(f"values are given by name, or as text, not {type(value).__name__}")
    return dict(value)
