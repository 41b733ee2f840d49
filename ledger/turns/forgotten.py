"""What was forgotten is not written down again by turns that say what others said: a merge, an answer made anew.

It is decided where they are appended, on the log as it is then, however long they waited before. An erasure that comes
between that look and the append makes no log longer, so the store refuses nothing: it is looked once more behind the
append, and what was written is taken out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ledger.errors import TurnState
from ledger.records.kinds import NewRecord
from ledger.turns.log import Log
from ledger.views import History


def refuse(history: History, turn: str, reason: str) -> None:
    """Refuse to go on where a turn was forgotten. Raises: turn-state; turn-unknown."""
    node = history.node(turn)
    if node.erased:
        state = node.outcome if node.outcome is not None else "abandoned"
        raise TurnState(turn=turn, state=state, reason=f"it was forgotten: {reason}")


class Quoted(NamedTuple):
    """Turns whose words are recorded once more."""

    turns: tuple[str, ...] = ()
    reason: str = ""
    """Why that cannot be of one that was forgotten."""

    def refuse(self, history: History) -> None:
        """Refuse to go on where one was forgotten. Raises: turn-state; turn-unknown."""
        for turn in self.turns:
            refuse(history, turn, self.reason)

    def refuse_behind(
        self, log: Log, made: Iterable[str], end: Callable[[History], list[NewRecord]]
    ) -> None:
        """Take turns out again if one whose words they say was forgotten just before they were appended.

        Args: made: those that were appended. end: gives the end of one of these that runs.
        Raises: as `refuse`.
        """
        if not self.turns:
            return
        try:
            self.refuse(log.read_anew())
        except TurnState:
            for turn in made:
                log.erase(turn, end)
            raise
