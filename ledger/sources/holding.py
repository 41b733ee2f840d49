"""Which turns of a source may still go on, so that an import leaves them for a later one.

A turn that is there is never changed: one that is imported while it runs is `abandoned` for ever, and
comes once more when it is over. So of a conversation that was written to within the last minutes (by
its own times, see `Opened.growing`) a turn without an answer is left out

(1) when the conversation stands at it, or
(2) when it was last written to within these minutes itself, or tells no time, or
(3) when it belongs to a sub-agent that works for such a turn.

Nothing is lost: an import some minutes later takes it as it is then, answered or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from ledger.formats.base import Draft, DraftTurn, Found
from ledger.records import times
from ledger.sources.opened import Clock, is_recent


def marked(items: Iterable[Found], now: Clock) -> Iterator[Found]:
    """Yield what a source holds, each conversation with the turns that may go on in `held`."""
    held: set[str] = set()
    for item in items:
        if isinstance(item, Draft) and item.growing:
            works_for_held = (item.side_of or {}).get("turn") in held
            item.held = frozenset(
                turn.id
                for turn in item.turns
                if works_for_held or _may_go_on(turn, item.current, now())
            )
            held |= item.held
        yield item


def _may_go_on(turn: DraftTurn, current: str | None, now: datetime) -> bool:
    if turn.state != "abandoned":
        return False
    written = times.from_text(turn.source.get("updated"))
    return turn.id == current or written is None or is_recent(written, now)
