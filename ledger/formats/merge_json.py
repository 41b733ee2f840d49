"""An export into a store that has the conversation: what is missing there, or why not. Pure.

A conversation is copied, both copies go on, and one comes back as an export. Turns have ids, so a
turn is the same turn in both; what else a log holds is the same when its content is.

What exists stays: nothing here is changed, ended differently, un-erased, or given another head.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from ledger.errors import ImportInvalid
from ledger.records import erasing

Record = dict[str, Any]

_BESIDE_TURNS = frozenset({"entry", "head", "program"})
_NO_CONTENT = frozenset({"unreadable", "erased"})
_PLACES = ("seq", "ledger", "shown_entries", "saw_all")
"""Keys that say where a record stands in its own log, not what it is."""


def missing(
    exported: Sequence[Record], existing: Sequence[Record], *, source: str = "the export"
) -> list[Record]:
    """Return the records of an export that a conversation lacks, in order, to append as they are.

    Added are: turns that are not here, with all their records; the rest of a turn that has not
    ended here, when its records here are the beginning of those there; programs by version; entries
    and other records that belong to no turn by content. `head` records are added only when nothing
    is here yet: whether new turns move the head is for the one who appends them to say. A turn that
    was erased on either side stays as it is here; entries at a turn that was erased here, or about it,
    are not added, nor what cannot be read there.

    Args: both as a store reads them, whole, in order. The result has no `seq`; it is for one append
    that expects exactly `existing`, so all or none of it counts.
    Raises: import-invalid: a turn has the same id and another content (its `turn` record, or its
    first `ended` record, differs); nothing is to be appended then.
    """
    alike = _alike(exported, existing)
    rest = exported[alike:]
    if not rest:
        return []
    there, here = _Copy(exported), _Copy(existing)
    turns = {turn: None for record in rest if (turn := _turn(record)) is not None}
    _refuse_changed(turns, there, here, source)
    going_on = {turn for turn in turns if _goes_on(turn, there, here)}
    added: list[Record] = []
    places = {place: place for place in range(1, alike + 1)}
    for place, record in enumerate(rest, alike + 1):
        content = _content(record)
        if _is_missing(record, content, there, here, going_on):
            added.append(_moved(record, places))
            places[place] = len(existing) + len(added)
        elif (known := here.places.get(content)) is not None:
            places[place] = known
    return added


def _alike(exported: Sequence[Record], existing: Sequence[Record]) -> int:
    """Return how many records both begin with: a copy that comes back has most of them unchanged."""
    for place, (one, other) in enumerate(zip(exported, existing, strict=False)):
        if _content(one) != _content(other):
            return place
    return min(len(exported), len(existing))


class _Copy:
    """One copy of a conversation, by what makes a record the same record in another copy."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.places: dict[str | bytes, int] = {}
        """The place of the first record with a content."""
        self.versions = {r.get("version") for r in records if r.get("kind") == "program"}
        self.of_turn: dict[str, list[Record]] = {}
        for place, record in enumerate(records, 1):
            self.places.setdefault(_content(record), place)
            if (turn := _turn(record)) is not None:
                self.of_turn.setdefault(turn, []).append(record)
        self.gone = [turn for turn in self.of_turn if self.erased(turn)]
        """The turns whose content was taken out."""

    def first(self, turn: str, kind: str) -> Record | None:
        """Return the record that counts of a kind, of which the first one does."""
        return next((r for r in self.of_turn.get(turn, []) if r.get("kind") == kind), None)

    def has(self, turn: str) -> bool:
        """Say whether the turn itself is here, not only records that name it."""
        return self.first(turn, "turn") is not None

    def erased(self, turn: str) -> bool:
        """Say whether the turn's content was taken out."""
        return any(record.get("erased") is True for record in self.of_turn.get(turn, []))


def _refuse_changed(turns: Collection[str], there: _Copy, here: _Copy, source: str) -> None:
    for turn in turns:
        if there.erased(turn) or here.erased(turn):
            continue
        for kind in ("turn", "ended"):
            one, other = there.first(turn, kind), here.first(turn, kind)
            if one is not None and other is not None and _content(one) != _content(other):
                what = "was asked" if kind == "turn" else "ended"
                reason = f"turn {turn} {what} otherwise here; nothing was added"
                raise ImportInvalid(source=source, reason=reason)


def _is_missing(
    record: Record, content: str | bytes, there: _Copy, here: _Copy, going_on: Collection[str]
) -> bool:
    kind = record.get("kind")
    if kind in _NO_CONTENT:
        return False
    if kind == "program":
        return record.get("version") not in here.versions
    if kind == "head":
        return not here.places
    if kind == "entry" and any(erasing.concerns(record, turn) for turn in here.gone):
        return False
    turn = _turn(record)
    if turn is None or not there.has(turn):
        return content not in here.places
    if not here.has(turn):
        return True
    return turn in going_on and content not in here.places


def _goes_on(turn: str, there: _Copy, here: _Copy) -> bool:
    """Say whether a turn goes on there from exactly where it stands here."""
    if not here.has(turn) or here.first(turn, "ended") is not None or there.erased(turn):
        return False
    mine = [_content(record) for record in here.of_turn[turn]]
    return mine == [_content(record) for record in there.of_turn[turn][: len(mine)]]


def _turn(record: Record) -> str | None:
    turn = record.get("turn")
    return turn if isinstance(turn, str) and record.get("kind") not in _BESIDE_TURNS else None


def _content(record: Record) -> str | bytes:
    content = {key: value for key, value in record.items() if key not in _PLACES}
    try:
        return msgspec.json.encode(content, order="sorted")
    except (OverflowError, ValueError):  # A number or a text that only others write.
        return json.dumps(content, sort_keys=True)


def _moved(record: Record, places: dict[int, int]) -> Record:
    """Return a record without its place; the places it names become those they have here."""
    moved = {key: value for key, value in record.items() if key not in ("seq", "ledger")}
    moved.pop("saw_all", None)  # Its line may be another here.
    shown = moved.get("shown_entries")
    if isinstance(shown, list):
        moved["shown_entries"] = list(_known(shown, places))
    return moved


def _known(shown: list[Any], places: dict[int, int]) -> Iterator[int]:
    for place in shown:
        if isinstance(place, int) and place in places:
            yield places[place]
