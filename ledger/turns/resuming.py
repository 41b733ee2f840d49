"""A turn that was interrupted, or that waited and has its answers, is gone on with by this process.

One of those who claim it wins. Unless its holder is known dead, its log is watched first for longer than
a living holder takes to renew its lease, by this process's own clock: no two machines' clocks are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import Context
from typing import Any

from ledger.records import kinds
from ledger.records.kinds import NewRecord
from ledger.turns import commands, launching, loops, running
from ledger.turns.launching import Launch
from ledger.turns.log import Log
from ledger.turns.running import Run
from ledger.turns.steps import saved, unsaved
from ledger.turns.view import View
from ledger.views import History

WATCH_S = 12.0
"""How long a log is watched for a renewal: a holder that lives renews every 10 s."""
LOOK_S = 0.25
"""How long to wait, at most, before looking again."""


class Resumption:
    """A turn that is about to be resumed. `claim` is asked until it says that it is ours."""

    def __init__(
        self,
        log: Log,
        view: View,
        turn: str,
        *,
        results: Mapping[Any, Any] | None = None,
        rerun: Collection[Any] = (),
    ) -> None:
        if view.program is None:
            raise TypeError("this conversation was opened without a program: nothing can go on")
        if isinstance(rerun, str):
            raise TypeError(f"rerun is a list of tool calls, not {rerun!r}")
        self._log = log
        self._view = view
        self._turn = turn
        self._results = dict(results or {})
        self._rerun = list(rerun)
        self._program = view.program
        self._claim: commands.Claim | None = None

    def claim(self) -> float | None:
        """Claim the turn. Returns: how many seconds to wait before asking again; None: it is ours.

        Raises: turn-state, turn-waiting, turn-unfinished, conversation-signature; store errors.
        """
        view, history = self._view, self._log.read()
        commands.check_fields(history, self._turn, self._program.description)
        left = self._watch(history)
        if left > 0:
            return min(left, LOOK_S)
        self._log.hold(view.world.holder())
        self._log.append(self._decide)
        saved(self._turn)
        return None

    def launch(self, context: Context, loop: loops.Loop | None = None) -> Run:
        """Start its program again, once it is ours."""
        assert self._claim is not None
        record = self._log.history.node(self._turn).record
        bound = self._program.rebind(kinds.mapping(record.inputs, record.seq))
        settings = {**self._view.settings, **kinds.mapping(record.settings, record.seq)}
        launch = Launch(self._turn, self._program, bound, settings, self._claim)
        return launching.launch(self._log, self._view, launch, context, loop)

    def _decide(self, history: History) -> list[NewRecord]:
        view = self._view
        self._claim = view.claim(history.node(self._turn).attempt + 1)
        return commands.resume(
            history,
            self._turn,
            self._claim,
            results=self._results,
            rerun=self._rerun,
            now=view.world.now(),
            dead=view.dead(history, self._turn),
            kept=unsaved(self._turn),
        )

    def _watch(self, history: History) -> float:
        """Return how long its log has to be watched still."""
        view, node = self._view, history.node(self._turn)
        dead = view.dead(history, self._turn)
        state = history.state(self._turn, now=view.world.now(), dead=dead)
        if state != "interrupted" or dead or node.lease is None or view.judge is None:
            return 0
        here = node.lease.holder == view.world.holder() and running.find(self._turn) is None
        if here or view.judge.ended_here(node.lease):
            return 0
        return WATCH_S - view.judge.stood_s(history, self._turn)
