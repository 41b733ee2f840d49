"""A summary is made before the turn that wants it: outside any append, and once for each send.

The maker of summaries may take long and may be paid for. So the log is not held meanwhile, and what it
gave is kept even when the send is given up: it is true of these turns, and the next send uses it. Of two
processes that make the same summary at once, the one that comes second drops its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ledger.errors import LedgerError, SummaryFailed
from ledger.records import values
from ledger.turns import arrivals, commands, programs
from ledger.turns.log import Log
from ledger.turns.view import Start


class Summarizing:
    """A summary in the making, for a turn in the making."""

    def __init__(self, log: Log, start: Start) -> None:
        assert start.wants is not None
        self._log = log
        self._start = start
        self._wanted = start.wants
        self.by: Callable[..., Any] = start.wants.by
        """What makes it."""
        self.arguments = start.wants.arguments
        """What that is called with, by place."""

    @contextmanager
    def making(self) -> Iterator[None]:
        """While `by` is at work: what it raises is told as the failure it is. Raises: summary-failed."""
        try:
            with arrivals.serving(self._start):
                yield
        except Exception as error:
            raise self._failed(f"it raised {type(error).__name__}") from error

    def keep(self, text: Any) -> None:
        """Keep what `by` gave, if nobody else kept a summary of these turns meanwhile.

        Raises: summary-failed: it is no text that can be kept. record-too-large, store errors.
        """
        if not isinstance(text, str):
            raise self._failed(f"it gave {type(text).__name__}, not text")
        try:
            values.check(text, "summary", references=False)
        except LedgerError as error:
            raise self._failed("it gave text that cannot be kept") from error
        now, version = self._start.view.world.now, programs.version_of(self.by)
        self._log.read_anew()
        self._log.append(
            lambda history: commands.summarize(
                history, self._wanted, text, {"version": version}, now=now()
            )
        )
        self._forget_with_its_turns()
        self._start.summarized = True

    def _forget_with_its_turns(self) -> None:
        """Take the summary out again if one of its turns was forgotten just before it was kept.

        Forgetting overwrites a log without making it longer, so neither the condition of the append nor
        what was folded before tells of it; only reading anew does, before and after.
        """
        history = self._log.read_anew()
        for turn in self._wanted.turns:
            if turn in history and history.node(turn).erased:
                self._log.erase(turn, lambda _: [])
                return  # The summary names all of them: it went with the first.

    def _failed(self, reason: str) -> SummaryFailed:
        conversation = self._start.view.conversation
        return SummaryFailed(conversation=conversation, by=self._wanted.name, reason=reason)
