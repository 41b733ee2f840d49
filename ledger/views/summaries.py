"""Summaries: entries that stand for the first turns of a branch, and which of them fits a new turn.

A summary is an entry at the last turn it stands for, and its data name all of them in order. So it fits
every branch that begins with exactly these turns, and no other; whoever goes back before its end has an
earlier summary or none; and erasing any of the turns takes it out, since it names them
(`records.erasing`). It costs the length of that list each time: what must be found by erasing has to
stand in the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ledger.errors import StoreCorrupt
from ledger.records import kinds
from ledger.views.earlier import Earlier
from ledger.views.nodes import Tree

ROW = "summary"
"""The one name in the row of a summary."""


class Summary(msgspec.Struct, frozen=True):
    """A text that stands for the first turns of a branch."""

    turns: tuple[str, ...]
    """The turns it stands for, oldest first."""
    text: str | None
    """None: it is still to be made."""
    name: str = ""
    """The program that made it."""
    seq: int = 0
    """The place of its entry in the log; 0: it is still to be made."""

    @property
    def row(self) -> dict[str, Any]:
        """How a program is shown it."""
        return {ROW: self.text}


class Wanted(msgspec.Struct, frozen=True):
    """A summary that is to be made before a turn is sent."""

    by: Callable[..., Any]
    """What makes it."""
    name: str
    """What that is called."""
    before: Summary | None
    """The summary that it goes on from."""
    fresh: tuple[Earlier, ...]
    """The turns that it stands for beside those, oldest first."""

    @property
    def turns(self) -> tuple[str, ...]:
        """All turns that it is to stand for, oldest first."""
        earlier = self.before.turns if self.before is not None else ()
        return (*earlier, *(turn.id for turn in self.fresh))

    @property
    def arguments(self) -> tuple[str, list[dict[str, Any]]]:
        """What its maker is given: the earlier summary, or "", and the rows. Raises: store-corrupt."""
        earlier = self.before.text if self.before is not None else None
        return earlier or "", [turn.row for turn in self.fresh]

    def data(self, text: str, made_by: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data of its entry."""
        after = len(self.before.turns) if self.before is not None else 0
        return {
            "turns": list(self.turns),
            "text": text,
            "made_by": {**made_by, "name": self.name},
            "after": after,
        }


def read(entry: kinds.Entry, seq: int) -> Summary | None:
    """Return the summary that an entry keeps; None: its data are not those of one, or do not decode."""
    try:
        data = kinds.mapping(entry.data, seq)
    except StoreCorrupt:
        return None
    turns, text, made_by = data.get("turns"), data.get("text"), data.get("made_by")
    if not isinstance(text, str) or not isinstance(turns, list) or not turns:
        return None
    if not all(isinstance(turn, str) for turn in turns):
        return None
    name = made_by.get("name") if isinstance(made_by, dict) else None
    return Summary(tuple(turns), text, name if isinstance(name, str) else "", seq)


def at(tree: Tree, seq: int) -> Summary | None:
    """Return the summary at a place of the log; None: there is none (any more)."""
    entry = tree.summaries.get(seq)
    return None if entry is None else read(entry, seq)


def fitting(
    kept: Mapping[int, kinds.Entry], name: str, turns: Sequence[Earlier], most: int
) -> Summary | None:
    """Return the summary of a maker that stands for most of the first turns of a list, if any does.

    Args: most: how many turns it may stand for. Of several for the same turns the first in the log.
    """
    counts = {turn.id: count for count, turn in enumerate(turns[: max(most, 0)], 1)}
    found = [(counts[e.turn], seq, e) for seq, e in list(kept.items()) if e.turn in counts]
    for count, seq, entry in sorted(found, key=lambda each: (-each[0], each[1])):
        summary = read(entry, seq)
        if summary is None or summary.name != name or len(summary.turns) != count:
            continue
        if all(id == turn.id for id, turn in zip(summary.turns, turns, strict=False)):
            return summary
    return None
