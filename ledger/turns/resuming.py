"""A turn that was interrupted, or that waited and has its answers, is gone on with by this process.

One of those who claim it wins. Unless its holder is known dead, its log is watched first for longer than
a living holder takes to renew its lease, by this process's own clock: no two machines' clocks are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context, copy_context
from inspect import BoundArguments
from typing import Any, TypeVar

from ledger.errors import (
    Cancelled,
    SignatureChanged,
    TurnState,
    TurnUnfinished,
    TurnUnknown,
    TurnWaiting,
    counted,
)
from ledger.records import kinds
from ledger.records.kinds import NewRecord
from ledger.turns import (
    apart,
    approving,
    carrying,
    claims,
    commands,
    launching,
    loops,
    running,
)
from ledger.turns.attachments import Attachment, lowered
from ledger.turns.commands import UNATTENDED
from ledger.turns.helping import Remembering
from ledger.turns.launching import Launch
from ledger.turns.log import Log
from ledger.turns.programs import Program
from ledger.turns.running import Run
from ledger.turns.steps import saved, unsaved
from ledger.turns.view import View
from ledger.views import History, states

T = TypeVar("T")

WATCH_S = 12.0
"""How long a log is watched for a renewal: a holder that lives renews every 10 s."""
WAIT_S = 0.25
"""How long to wait, at most, before looking again at a log that is watched."""
LOOK_S = 0.05
"""How long to wait before looking again at turns that are gone on with."""


class Resumption:
    """A turn that is about to be resumed. `claim` is asked until it says that it is ours."""

    def __init__(
        self,
        log: Log,
        view: View,
        turn: str,
        *,
        results: Mapping[Any, Any] | None = None,
        rerun: Iterable[Any] = (),
    ) -> None:
        if view.program is None:
            raise TypeError("this conversation was opened without a program: nothing can go on")
        if isinstance(rerun, str):
            raise TypeError(f"rerun is a list of tool calls, not {rerun!r}")
        if not isinstance(results, Mapping | None):
            raise TypeError(f"results maps each tool call to what it gave, not {results!r}")
        self._log = log
        self._view = view
        self.turn = turn
        """The turn's id."""
        self.run: Run | None = None
        """Its program at work; None: not yet."""
        self.cancelled = False
        """Whether it is no longer wanted: then it is not claimed, or given back."""
        self._given: list[Attachment] = []
        self._results = {
            call: lowered(output, f"results[{call!r}]", self._given)
            for call, output in dict(results or {}).items()
        }
        self._rerun = list(rerun)
        self._program = view.program
        self._claim: commands.Claim | None = None
        self._bound: BoundArguments | None = None
        self._rule: approving.Rule | None = None

    def begin(self, context: Context, loop: loops.Loop | None = None) -> float | None:
        """Claim the turn and start its program again, as one: nobody is to come between.

        Returns: how many seconds to wait before asking again; None: that is done. Raises: as `claim`.
        turn-stopped: it was cancelled meanwhile; then the turn is as it was.
        """
        if self.cancelled:
            raise Cancelled(turn=self.turn)
        wait_s = self.claim()
        if wait_s is None:
            if self.cancelled:
                self._log.append(self._give_back)
                raise Cancelled(turn=self.turn)
            self.run = self._launch(context, loop)
            if self.cancelled:
                self.run.stop()
        return wait_s

    def cancel(self) -> None:
        """Say that it is no longer wanted."""
        self.cancelled = True

    def leave(self) -> None:
        """Have it end `stopped`, if it was begun: its caller is gone."""
        self.cancel()
        if self.run is not None:
            self.run.stop()

    def claim(self) -> float | None:
        """Claim the turn. Returns: how many seconds to wait before asking again; None: it is ours.

        Raises: turn-state, turn-waiting, turn-unfinished, conversation-signature; store errors; TypeError: an
        input that the program needs is not recorded.
        """
        view, history = self._view, self._log.read()
        claims.refuse_attended(self.turn, self._state(history))
        self._refuse_foreign(history)
        self._refuse_unredacted(history)
        commands.check_fields(history, self.turn, self._program.description)
        record = history.node(self.turn).record
        self._bound = self._program.rebind(
            kinds.mapping(record.inputs, record.seq), self._log.raised
        )
        self._rule = self._approve(history)
        left = self._watch(history)
        if left > 0:
            return min(left, WAIT_S)
        self._log.hold(view.world.holder())
        self._log.append(self._decide, self._given)
        saved((*self._log.lane, self.turn))
        return None

    def _launch(self, context: Context, loop: loops.Loop | None) -> Run:
        assert self._claim is not None
        assert self._bound is not None
        record = self._log.history.node(self.turn).record
        settings = {**self._view.settings, **kinds.mapping(record.settings, record.seq)}
        recorded = kinds.payload(record.remembers, record.seq)
        launch = Launch(
            self.turn,
            self._program,
            self._bound,
            settings,
            self._claim,
            self._rule,
            self._view.remembering or Remembering.of_record(recorded),
        )
        return launching.launch(self._log, self._view, launch, context, loop)

    def _decide(self, history: History) -> list[NewRecord]:
        view = self._view
        self._claim = view.claim(history.node(self.turn).attempt + 1)
        return claims.resume(
            history,
            self.turn,
            self._claim,
            results=self._results,
            rerun=self._rerun,
            now=view.world.now(),
            dead=view.dead(history, self.turn),
            kept=unsaved(history, (*self._log.lane, self.turn)),
        )

    def _give_back(self, history: History) -> list[NewRecord]:
        assert self._claim is not None
        now = self._view.world.now()
        return commands.release(history, self.turn, self._claim, program=None, now=now)

    def _approve(self, history: History) -> approving.Rule | None:
        """Return the rule by which a person is asked about its tools. Raises: turn-state: nobody can know it."""
        node = history.node(self.turn)
        said = kinds.payload(node.record.approve, node.seq)
        asked = bool(node.waits or node.approvals)
        try:
            return approving.of_record(said, self._view.approve, asked=asked)
        except LookupError as error:
            raise TurnState(turn=self.turn, state=self._state(history), reason=str(error)) from None

    def _refuse_foreign(self, history: History) -> None:
        """Refuse a turn of another library's AI function: its steps are its own requests, which no program
        of ours makes again. Found out by running one, it would be too late for what that did."""
        node = history.node(self.turn)
        known = history.programs.get(node.program)
        if node.outcome is None and known is not None and known.program_kind == "ai":
            reason = "another library's AI function made it; only that library can go on with it"
            raise TurnState(turn=self.turn, state=self._state(history), reason=reason)

    def _state(self, history: History) -> states.State:
        dead = self._view.dead(history, self.turn)
        return history.state(self.turn, now=self._view.world.now(), dead=dead)

    def _refuse_unredacted(self, history: History) -> None:
        """Refuse to go on with a turn by writing what it was sent never to write."""
        node = history.node(self.turn)
        if node.outcome is None and node.record.redacted and self._view.redact is None:
            reason = (
                "its texts are redacted before they are recorded: say how, with `redact` of `open`"
            )
            raise TurnState(turn=self.turn, state=self._state(history), reason=reason)

    def _watch(self, history: History) -> float:
        """Return how long its log has to be watched still."""
        view, node = self._view, history.node(self.turn)
        dead = view.dead(history, self.turn)
        if (
            self._state(history) != "interrupted"
            or dead
            or node.lease is None
            or view.judge is None
        ):
            return 0
        if states.released(node.lease):
            return 0
        here = node.lease.holder == view.world.holder() and running.find(self.turn) is None
        if here or view.judge.ended_here(node.lease):
            return 0
        return WATCH_S - view.judge.stood_s(history, self.turn)


def resumable(log: Log, view: View) -> tuple[list[str], dict[str, str]]:
    """Return the turns that can be gone on with, in log order, and of those that need a person first why.

    Nobody runs them, nothing is left to ask. One that this very program gave back (turn-changed) is left too:
    it would do so again.
    """
    history, found, left = log.read(), [], {}
    version = view.program.description.version if view.program is not None else None
    for turn in history.order:
        node = history.node(turn)
        if node.outcome is not None:
            continue
        now, dead = view.world.now(), view.dead(history, turn)
        state = history.state(turn, now=now, dead=dead)
        if state not in UNATTENDED:
            continue
        if asked := history.unanswered(turn) if state == "waiting" else []:
            left[turn] = f"it waits for {counted(len(asked), 'answer')} of a person"
        elif open_ones := history.unfinished(turn):
            left[turn] = f"{len(open_ones)} of its tools may have run: a person says what they gave"
        elif version is not None and node.lease is not None and node.lease.program == version:
            left[turn] = "this program gave it back: it does not make the calls that were recorded"
        elif node.record.redacted and view.redact is None:
            left[turn] = (
                "its texts are redacted before they are recorded, and no `redact` was given"
            )
        elif view.program is not None and not fitting([view.program], _made_by(history, turn)):
            left[turn] = "another program made it"
        else:
            found.append(turn)
    return found, left


def is_exactly(view: View, log: Log, turn: str) -> bool:
    """Say whether a view's program is the very one that made a turn, not only one like it."""
    made = log.history.node(turn).program
    return view.program is not None and view.program.description.version == made


def _made_by(history: History, turn: str) -> kinds.Program | None:
    return history.programs.get(history.node(turn).program)


class Crew:
    """Several turns gone on with at once. `step` never waits for a program."""

    def __init__(
        self,
        resumptions: list[Resumption],
        context: Context,
        loop: loops.Loop | None = None,
        *,
        at_once: int = 32,
    ) -> None:
        self.all = list(resumptions)
        """The turns, whatever became of them."""
        self._left = list(resumptions)
        self._cancelled = False
        self._context = context
        self._loop = loop
        self._at_once = at_once
        self._error: Exception | None = None
        self.resumed: list[Resumption] = []
        """Those that this process went on with."""
        self.left: dict[str, str] = {}
        """Those that it did not, and why, by turn."""

    def step(self) -> bool:
        """Claim and start what can be now. Returns: whether all of it is over.

        A turn that somebody else went on with, or that cannot be gone on with, is left alone.
        Raises: the first store error that a claim met, when the other turns are over.
        """
        for resumption in list(self._left):
            if self._cancelled or len(self._running()) >= self._at_once:
                break
            try:
                if resumption.begin(self._context.copy(), self._loop) is not None:
                    continue
            except _LEFT_ALONE as error:
                self._left.remove(resumption)
                self.left[resumption.turn] = str(error)
                continue
            except Exception as error:  # One log that fails is no reason to stop the others.
                self._left.remove(resumption)
                self._error = self._error or error
                continue
            self._left.remove(resumption)
            self.resumed.append(resumption)
        over = not self._left and not self._running()
        if over and self._error is not None:
            raise self._error
        return over

    def _running(self) -> list[Run]:
        return [each.run for each in self.resumed if each.run is not None and not each.run.is_over]

    def cancel(self) -> None:
        """Start no more."""
        self._cancelled = True
        for resumption in self.all:
            resumption.cancel()

    def stop(self) -> None:
        """Start no more, and stop all that runs."""
        self.cancel()
        for resumption in self.all:
            resumption.leave()


_LEFT_ALONE = (TurnState, TurnWaiting, TurnUnfinished, TurnUnknown, SignatureChanged)


class Resumed(list[T]):
    """The turns that were gone on with; `left` says of those that were not why, by the turn's id.

    (Of a conversation that cannot be read, by its id.)
    """

    def __init__(self, turns: Iterable[T], left: Mapping[str, str]) -> None:
        super().__init__(turns)
        self.left = dict(left)


def fitting(programs: list[Program], record: kinds.Program | None) -> Program | None:
    """Return the program that made a turn, by its version, else by its name and fields; None: none of them."""
    if record is None:
        return None
    fields = kinds.payload(record.fields, record.seq)
    for program in programs:
        if program.description.version == record.version:
            return program
    for program in programs:
        named = program.description
        if (named.name, named.fields) == (record.name, fields):
            return program
    return None


def go_on(resumption: Resumption, wait: Callable[[float], None]) -> Any:
    """Go on with a turn until it is over; interrupted, stop it first. Returns: what its program returned.

    Args: wait: lets some seconds go by, before the turn is claimed again.
    """
    return carrying.through([resumption], lambda: begun(resumption, wait).result())


def begun(resumption: Resumption, wait: Callable[[float], None]) -> Run:
    """Claim a turn as soon as it can be, and start its program. Args: wait: as for `go_on`."""
    context = copy_context()
    while (wait_s := carrying.begin(resumption, context)) is not None:
        wait(wait_s)
    assert resumption.run is not None
    return resumption.run


def finish(crew: Crew) -> None:
    """Go on with turns until all are over; interrupted, stop them first."""

    def go() -> None:
        while not apart.do(crew.step, interrupted=crew.cancel):
            time.sleep(LOOK_S)

    carrying.through(crew.all, go)
