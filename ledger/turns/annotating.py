"""What is kept beside the turns. People and programs rate turns and label them: one entry each, whatever the log
holds by then.

Who rates loses to nobody: it is decided again as long as others append first. All that is asked is whether the turn
is there still: one that was taken out has nothing left to be rated, and an entry at it would keep something of what
was to be forgotten; and a conversation that was deleted meanwhile is not made anew by it.
"""

from __future__ import annotations

from typing import Any

from ledger.records import kinds
from ledger.records.kinds import NewRecord
from ledger.turns import commands, forgotten
from ledger.turns.attachments import Attachment, lowered
from ledger.turns.log import Begun, Log
from ledger.turns.view import TurnLike, View
from ledger.views import History, ratings
from ledger.views.nodes import LABEL, RATING

_NOTHING_LEFT = "there is nothing left to rate or label"


def rate(log: Log, view: View, turn: str, value: Any, *, by: Any, why: Any) -> None:
    """Record a rating. Raises: TypeError, ValueError, turn-unknown, turn-state: the turn was erased."""
    data = ratings.rating_data(value, by, why)

    def decide(history: History) -> list[NewRecord]:
        forgotten.refuse(history, turn, _NOTHING_LEFT)
        return commands.entry(*RATING, data, now=view.world.now(), turn=turn)

    log.append(decide)


def label(log: Log, view: View, turn: str | None, text: Any, *, on: bool) -> None:
    """Record that a label is put on a turn or the conversation (None), or taken off; nothing where it is so.

    Raises: as `rate`.
    """
    data = ratings.label_data(text, on=on)

    def decide(history: History) -> list[NewRecord]:
        if turn is not None:
            forgotten.refuse(history, turn, _NOTHING_LEFT)
        if on is (log.redacted(text, "label") in history.labels(turn)):
            return []
        return commands.entry(*LABEL, data, now=view.world.now(), turn=turn)

    log.append(decide, begun=Begun())


def entitle(log: Log, view: View, text: Any) -> None:
    """Record a title. Raises: TypeError, ValueError: it is no line of text."""
    if not isinstance(text, str):
        raise TypeError(f"a title is text, not {type(text).__name__}")
    if text and text.splitlines() != [text]:
        raise ValueError("a title is one line, without line breaks")
    entry = commands.entry(commands.OWN, commands.TITLE, text, now=view.world.now())
    log.append(lambda _: entry, begun=Begun())


def keep(log: Log, view: View, plugin: str, kind: str, data: Any, turn: TurnLike | None) -> None:
    """Record an entry. Raises: TypeError, record-invalid; turn-unknown."""
    given: list[Attachment] = []
    kept = lowered(data, "data", given)
    begun = Begun()
    history = log.begin(begun)
    at = None if turn is None else view.find(history, turn)
    entry = commands.entry(plugin, kind, kept, now=view.world.now(), turn=at)
    log.append(lambda _: entry, given, begun=begun)


def entries(log: Log, view: View, plugin: str, kind: str) -> list[dict[str, Any]]:
    """Return what a plugin kept on the branch on which a view stands, oldest first."""
    history = log.read()
    at = view.cursor.resolve(history)
    return [
        {
            "seq": entry.seq,
            "at": entry.at,
            "turn": entry.turn,
            "data": log.raised(kinds.payload(entry.data, entry.seq)),
        }
        for entry in history.entries(plugin, kind, at)
        if at is not None or entry.turn is None
    ]
