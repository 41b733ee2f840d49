"""One turn while its program runs in this process. It ends once, whoever ends it first.

Three may end it: its program, by returning, raising, or waiting for a person; a stop, a moment after the
program was told of it, since a program may be deep in something that cannot be interrupted; and the loss of its lease,
which records nothing, as the turn is no longer ours. Who comes second finds it ended and does nothing:
so a program that was stopped and still works on can change nothing more.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from ledger.bells import Bell
from ledger.errors import (
    Cancelled,
    LeaseLost,
    LedgerError,
    StoreFailure,
    TurnChanged,
    TurnUnknown,
    TurnWaiting,
)
from ledger.records.kinds import NewRecord
from ledger.turns import commands, keeper, outcomes
from ledger.turns.attachments import Attachment
from ledger.turns.commands import LEASE_S, Claim, Outcome
from ledger.turns.current import Running
from ledger.turns.log import Log
from ledger.turns.pool import in_pool
from ledger.turns.programs import Program
from ledger.turns.scribe import Scribe
from ledger.turns.steps import Paused, Steps, saved, unsaved
from ledger.turns.world import World
from ledger.views import History, states

GRACE_S = 0.25
"""How long a program that was stopped has to end by itself, so that it can say what it used."""
TRIES = 25
"""How often an end that could not be recorded is tried again, once a second: nearly as long as a lease."""
UNFIT = ("record-invalid", "record-too-large", "attachment-missing")
"""Refusals that trying again does not change."""
MARGIN_S = 5.0
"""How long before its lease ends a turn that cannot renew it is given up."""


def _nothing() -> None:
    pass


class Run:
    """A running turn: told by its program's side how it went, and from outside to stop."""

    def __init__(
        self,
        log: Log,
        program: Program,
        running: Running,
        claim: Claim,
        world: World,
        steps: Steps,
        scribe: Scribe | None = None,
    ) -> None:
        self.outcome: Future[Any] = Future()
        """What the program returned, or why there is nothing: set when the end is recorded. For event loops."""
        self.error: BaseException | None = None
        """Why there is nothing, once it is over."""
        self._value: Any = None
        self.running = running
        self.program = program
        self.claim = claim
        self._cancel: Callable[[], None] = _nothing
        self._log = log
        self._world = world
        self.steps = steps
        self._scribe = scribe
        self._process = os.getpid()
        self._begun = time.perf_counter()
        self._lock = threading.Lock()
        self._taken = False
        self._bell = Bell()
        """Rings when it is over."""
        self._seen = log.position
        self._reading = False
        self._renewed = world.monotonic()
        self._trying: float | None = None
        if scribe is not None:
            scribe.ours = self.is_ours
        _running[running.turn] = self
        keeper.tend(self)

    @property
    def turn(self) -> str:
        """The turn's id."""
        return self.running.turn

    @property
    def lane(self) -> Hashable:
        """Where jobs for it stand in line: behind no step, which may ask a rule that takes its time."""
        return *self._log.lane, "kept"

    @property
    def is_over(self) -> bool:
        """Whether its outcome is there."""
        return self.running.over

    def wait(self, timeout_s: float | None = None) -> None:
        """Block until its outcome is there, or for some seconds."""
        self._bell.wait_for(lambda: self.is_over, timeout_s)

    def result(self) -> Any:
        """Block until its outcome is there. Returns: what its program returned. Raises: why there is nothing."""
        self.wait()
        if self.error is not None:
            raise self.error
        return self._value

    # -- told by the program's side

    def cancelled_by(self, cancel: Callable[[], None]) -> None:
        """Say what wakes the program when it has to stop. It may have to already: it began before this."""
        self._cancel = cancel
        if self.running.stopped:
            cancel()

    def finish(self, value: Any) -> None:
        """The program returned."""
        self._end(lambda: self._finish(value))

    def fail(self, error: BaseException) -> None:
        """The program raised."""
        self._end(lambda: self._fail(error))

    def _end(self, end: Callable[[], None]) -> None:
        """End it, if nobody has; whatever goes wrong in that, who waits for it is told."""
        if not self._take():
            return
        try:
            end()
        except BaseException as error:
            if not self.is_over:
                self._conclude(error=error)

    def _finish(self, value: Any) -> None:
        if self.running.stopped:
            self._record(self._stopped(), error=Cancelled(turn=self.turn))
            return
        if self.steps.questions:
            self._wait()
            return
        if self.steps.changed is not None:
            self._give_back(self.steps.changed)
            return
        if left := self.steps.left():
            self._give_back(TurnChanged(turn=self.turn, left=tuple(left)))
            return
        try:
            outcome = outcomes.done(self.program, value, self.running, self._seconds())
            with suppress(StoreFailure):  # A store that fails now is tried again with the record.
                self._log.keep(outcome.given)
        except Exception as error:
            self._failed(error)
            return
        self._record(outcome, value=value)

    def _fail(self, error: BaseException) -> None:
        if self.running.stopped:
            self._record(self._stopped(), error=Cancelled(turn=self.turn))
        elif isinstance(error, Paused) or self.steps.questions:
            self._wait()
        elif self.steps.changed is not None:
            self._give_back(self.steps.changed)
        else:
            self._failed(error)

    # -- told from outside

    def stop(self) -> None:
        """End it as stopped: the program is told, and has a moment to end by itself."""
        if self.is_over or self.running.stopped:
            return
        keeper.later(GRACE_S, self._end_stopped, self.lane)
        self.running.ask_to_stop()
        self.running.stop_within()
        self._cancel()

    def lose(self, error: LeaseLost) -> None:
        """It is no longer this process's: the program is told, and nothing more is recorded."""
        if self._take():
            self.running.ask_to_stop()
            self._cancel()
            self._conclude(error=error)

    # -- told by the keeper

    def look(self) -> None:
        """See whether the log has news, whether the lease is kept, and whether watchers have to be told."""
        if self._overdue():
            self._give_up()
        if self._scribe is not None and self._scribe.waits:
            self._scribe.soon()
        if not self._reading and self._has_news():
            self._reading = True
            in_pool(self._read, self.lane)

    def is_ours(self) -> bool | None:
        """Whether it has not ended, and is this process's as far as the log tells at once. None: not now.

        A process that slept for long finds out so before it tells others what its program says. It waits for nobody.
        """
        is_read = True
        if self._log.tells_at_once and self._has_news():
            is_read = self._take_in(self._log.read_at_once)
        return (not self._taken) if is_read or self._taken else None

    def _has_news(self) -> bool:
        return self._log.position != self._seen or self._log.has_word()

    def renew(self) -> bool:
        """Renew the lease. Returns: whether it was renewed, or needs to be no more."""
        if self.is_over:
            return True
        began = self._world.monotonic()
        self._trying = began if self._trying is None else self._trying
        try:
            self._log.append(self._renewal)
        except (LeaseLost, TurnUnknown) as error:
            self.lose(_lost(self.turn, error))
            return True
        except Exception:
            return False
        self._renewed, self._trying = began, None
        return True

    def _renewal(self, history: History) -> list[NewRecord]:
        self._check_process()
        return commands.renew(history, self.turn, self.claim, now=self._world.now())

    def _overdue(self) -> bool:
        """Whether renewing has failed for so long that others may soon take the turn over.

        It counts from the first try too: a machine that slept has not tried yet.
        """
        now = self._world.monotonic()
        late = now - self._renewed > LEASE_S - MARGIN_S
        return late and self._trying is not None and now - self._trying > MARGIN_S

    def _give_up(self) -> None:
        self.lose(LeaseLost(turn=self.turn, reason="its lease could not be renewed in time"))

    def _read(self) -> None:
        try:
            self._take_in(self._log.read)
        finally:
            self._reading = False

    def _take_in(self, read: Callable[[], History | None]) -> bool:
        """Act on what the log says. Returns: whether it was read, or could not be."""
        try:
            history = read()
            if history is None:
                return False
            self._seen = self._log.position
            if self.turn not in history:
                raise TurnUnknown(conversation=history.conversation, turn=self.turn)
            commands.fence(history, self.turn, self.claim)
            if commands.asked_to_stop(history, self.turn):
                self.stop()
        except (LeaseLost, TurnUnknown) as error:
            self.lose(_lost(self.turn, error))
        except Exception:
            pass  # A store that fails now is asked again at the next look.
        return True

    # -- inside

    def _take(self) -> bool:
        with self._lock:
            taken, self._taken = self._taken, True
        return not taken

    def _end_stopped(self) -> None:
        stopped = Cancelled(turn=self.turn)
        self._end(lambda: self._record(self._stopped(), error=stopped))

    def _stopped(self) -> Outcome:
        return outcomes.stopped(self.running, self._seconds())

    def _failed(self, error: BaseException) -> None:
        """Record that it failed; what goes wrong in that never hides why it failed."""
        self._record(outcomes.failed(error, self.running, self._seconds()), error=error)

    def _record(
        self, outcome: Outcome, *, value: Any = None, error: BaseException | None = None
    ) -> None:
        """Record how it ended; a stop that was asked for first counts, whatever the program did."""

        def decide(history: History) -> list[NewRecord]:
            nonlocal outcome, error
            self._check_process()
            if outcome.state != "stopped" and commands.asked_to_stop(history, self.turn):
                outcome, error = self._stopped(), Cancelled(turn=self.turn)
            outcomes.tell(outcome, self.running)
            ended = commands.end(history, self.turn, outcome, self.claim, now=self._world.now())
            return [*unsaved(history, self.steps.key), *ended]

        given = outcome.given
        try:
            self._log.append(decide, given)
            saved(self.steps.key)
        except (LeaseLost, TurnUnknown) as gone:
            self._conclude(error=_lost(self.turn, gone))
        except BaseException as second:
            if getattr(second, "code", None) not in UNFIT:
                self._later(decide, second if error is None else error, second, given)
            elif outcome.state == "done":
                self._failed(second)
            elif not outcome.bare:
                self._record(outcomes.bare(outcome), error=error)
            else:
                self._conclude(error=second if error is None else error)
        else:
            self._conclude(value=value, error=error, recorded=outcome)

    def _later(
        self,
        decide: Callable[[History], list[NewRecord]],
        error: BaseException,
        second: BaseException,
        given: Sequence[Attachment] = (),
    ) -> None:
        """Tell the caller that the end could not be recorded, and try again while the turn is ours."""
        error.add_note(
            f"how turn {self.turn} went could not be recorded ({second}); it is tried again for "
            f"{TRIES} s: sent again under its request id, the turn then says how it went"
        )
        self._conclude(error=error)
        left = TRIES

        def again() -> None:
            nonlocal left
            try:
                self._log.append(decide, given)
                saved(self.steps.key)
            except (LeaseLost, TurnUnknown):
                return
            except Exception:
                left -= 1
                if left:
                    keeper.later(1.0, again, self.lane)

        keeper.later(1.0, again, self.lane)

    def _wait(self) -> None:
        """Record that it waits for people. Nobody holds it then.

        So a turn with an open question does, whatever its program made of the pause: a group of tasks makes
        a group of errors of it, or a result, and no answer is never yes.
        """
        self.steps.close()
        questions = self.steps.questions

        def decide(history: History) -> list[NewRecord]:
            self._check_process()
            now = self._world.now()
            waiting = commands.wait(history, self.turn, questions, self.claim, now=now)
            return [*unsaved(history, self.steps.key), *waiting]

        try:
            self._log.append(decide)
            saved(self.steps.key)
        except Cancelled as error:
            self._record(self._stopped(), error=error)
        except (LeaseLost, TurnUnknown) as gone:
            self._conclude(error=_lost(self.turn, gone))
        except BaseException as error:
            if getattr(error, "code", None) in UNFIT:
                self._failed(error)
            else:
                self._later(decide, error, error)
        else:
            waits = TurnWaiting(turn=self.turn, questions=tuple(map(states.keyed, questions)))
            self._conclude(error=waits, watched=True)

    def _give_back(self, error: LedgerError) -> None:
        """End nothing, and let others go on with it at once."""
        self.steps.close()

        def decide(history: History) -> list[NewRecord]:
            self._check_process()
            now = self._world.now()
            version = self.program.description.version
            released = commands.release(history, self.turn, self.claim, program=version, now=now)
            return [*unsaved(history, self.steps.key), *released]

        try:
            self._log.append(decide)
            saved(self.steps.key)
        except Exception as second:
            error.add_note(f"and turn {self.turn} could not be given back: {second}")
        self._conclude(error=error)

    def _conclude(
        self,
        *,
        value: Any = None,
        error: BaseException | None = None,
        recorded: Outcome | None = None,
        watched: bool = False,
    ) -> None:
        self.steps.close()
        if self._scribe is not None:
            # After the record: who watches sees no end that is not kept. It is for watching only.
            with suppress(Exception):
                if recorded is None:
                    self._scribe.leave(write=watched)
                else:
                    self._scribe.end(recorded)
        keeper.leave(self)
        _running.pop(self.turn, None)
        self._value, self.error = value, error
        self.running.over = True
        if error is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(value)
        self._bell.ring()
        self.running.pieces.close()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LeaseLost(turn=self.turn, reason="it runs in the process that started it")

    def _seconds(self) -> float:
        return time.perf_counter() - self._begun


def _lost(turn: str, error: LeaseLost | TurnUnknown) -> LeaseLost:
    if isinstance(error, LeaseLost):
        return error
    return LeaseLost(turn=turn, reason="its conversation was deleted or made anew")


_running: dict[str, Run] = {}


def find(turn: str) -> Run | None:
    """Return the run of a turn that runs in this process, or None."""
    run = _running.get(turn)
    return run if run is not None and run.claim.holder and not run.is_over else None


def all_here() -> list[Run]:
    """Return the turns that run in this process."""
    return list(_running.values())


def drain(timeout_s: float | None = None) -> list[str]:
    """Wait until none of this process's turns runs, or the time is up: before a worker goes.

    Returns: the ids of the turns that still run. Their programs are not stopped.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while left := all_here():
        for run in left:
            run.wait(None if deadline is None else max(deadline - time.monotonic(), 0))
            if not run.is_over:
                return [run.turn for run in all_here()]
    return []


def _forget() -> None:
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
