"""The projection: records, in order, become changes of rows. Pure; it costs what the records cost, not the log.

The rules are those of the fold (`views.history`) and of the questions that are asked of it: the first record of
a turn and the first end count; a parent stands earlier; what names an unknown turn is skipped. Where the fold
keeps records, a row keeps what is asked of them. What a record says of other turns (a child, a merge) changes
their rows: they are asked for by `find`, and given back with the changes.

Must stay in step: `views.history` (the fold), `views.branches.heads`, `views.nodes.model_of`,
`views.earlier.usage_of`, `views.states.unanswered`, `views.ratings.labels`,
`Turn.started` and `Turn.ended`. A test compares them all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ledger.catalog.rows import Changes, ConversationRow, TurnRow
from ledger.catalog.texts import in_messages, in_value, joined
from ledger.errors import StoreCorrupt
from ledger.records import kinds, times
from ledger.records.values import INTEGER_LIMIT
from ledger.turns import commands
from ledger.views import states
from ledger.views.nodes import CLEARED, LABEL
from ledger.views.text import one_line

Find = Callable[[str], TurnRow | None]
"""Gives the row of a turn of the conversation as the index has it, or None."""

_SPELLED = len("2026-01-01T00:00:00.000000Z")
IMPORTED = "import"
PREVIEW = 100
"""How many characters of what was asked first a listing has."""


def project(
    before: ConversationRow, records: Iterable[kinds.Recorded | Mapping[str, Any]], find: Find
) -> Changes:
    """Return what the records after a conversation's position change. What is given is not changed."""
    work = _Work(before, find)
    for record in records:
        work.take(record)
    return work.changes


class _Work:
    def __init__(self, before: ConversationRow, find: Find) -> None:
        self.row = copy.deepcopy(before)
        self.changes = Changes(self.row)
        self._find = find

    def take(self, record: kinds.Recorded | Mapping[str, Any]) -> None:
        self.row.position += 1
        if isinstance(record, Mapping):
            record = kinds.of(record, self.row.position)
        take = _TAKE.get(type(record))
        if take is not None:
            take(self, record, self.row.position)

    def find(self, turn: str | None) -> TurnRow | None:
        """Return a turn's row as it is by now."""
        if turn is None:
            return None
        return self.changes.turns.get(turn) or self._find(turn)

    def change(self, row: TurnRow, **to: Any) -> TurnRow:
        """Change a turn's row, and what the conversation and the turns above come to by it."""
        was_kept = row.is_kept
        self.row.count(row, -1)
        row = copy.copy(row)
        for name, value in to.items():
            setattr(row, name, value)
        self.row.count(row, 1)
        self.changes.turns[row.turn] = row
        if row.is_kept != was_kept:
            self.tell_parent(row, 1 if row.is_kept else -1)
        return row

    def tell_parent(self, row: TurnRow, number: int) -> None:
        """Tell the parent that it has a kept child more or less; and its own, if that changes what it is."""
        while (parent := self.find(row.parent)) is not None:
            was_kept = parent.is_kept
            self.row.count(parent, -1)
            parent = copy.copy(parent)
            parent.kept_children += number
            self.row.count(parent, 1)
            self.changes.turns[parent.turn] = parent
            if parent.is_kept == was_kept:
                return
            row = parent

    def happened(self, at: str | None, *, sent: bool = False) -> None:
        """Note when a turn was sent or ended."""
        if at is None:
            return
        self.row.last = at if self.row.last is None else max(self.row.last, at)
        if sent:
            self.row.first = at if self.row.first is None else min(self.row.first, at)

    def describe(self) -> None:
        """Note the text of the title and the labels."""
        self.changes.about[None] = joined([self.row.title or "", *self.row.labels])


# -- one function per kind ---------------------------------------------------------------------------


def _turn(work: _Work, record: kinds.Turn, _seq: int) -> None:
    if work.find(record.turn) is not None:
        return
    parent = work.find(record.parent)
    source, model = _mapping(record.source), _mapping(record.settings).get("lm")
    row = TurnRow(
        turn=record.turn,
        ordinal=work.row.turns + 1,
        parent=parent.turn if parent is not None else None,
        started=_time(source, "created", record.at),
        undated=isinstance(source.get("format"), str) and _time(source, "created", "") is None,
        updated=_time(source, "updated", ""),
        sent_to=model if isinstance(model, str) else None,
        reads=list(dict.fromkeys(t for t in _listed(record.reads) if isinstance(t, str))),
    )
    work.row.count(row, 1)
    work.row.head = record.turn
    work.changes.turns[record.turn] = row
    work.tell_parent(row, 1)
    work.happened(row.started, sent=True)
    if work.row.source is None:
        work.row.source = _source(source)
    inputs, messages = _mapping(record.inputs), _listed(record.messages)
    work.changes.asked[record.turn] = joined([*in_value(inputs), *in_messages(messages)])
    if work.row.preview is None:
        work.row.preview = _preview(inputs, messages)


def _preview(inputs: dict[str, Any], messages: list[Any]) -> str | None:
    """Return the beginning of what was asked, on one line; None: there is no text in it."""
    said = " ".join(in_value(inputs)).strip()
    if not said:
        asked = (m for m in messages if isinstance(m, dict) and m.get("role") == "user")
        said = " ".join(in_messages(asked)).strip()
    return one_line(said, PREVIEW) if said else None


def _lease(work: _Work, record: kinds.Lease, seq: int) -> None:
    row = work.find(record.turn)
    if row is not None and row.state is None:
        work.change(row, lease=record, lease_seq=seq)


def _waiting(work: _Work, record: kinds.Waiting, seq: int) -> None:
    row = work.find(record.turn)
    if row is not None and row.state is None:
        asked = [states.keyed(q) for q in _listed(record.approvals) if isinstance(q, dict)]
        at = _time({}, "", record.at)
        work.change(row, waiting_seq=seq, waiting_at=at, questions=asked)


def _approval(work: _Work, record: kinds.Approval, _seq: int) -> None:
    row = work.find(record.turn)
    if row is not None and row.questions:
        still_open = [q for q in row.questions if not states.answers_to(record, q)]
        work.change(row, questions=still_open)


def _ended(work: _Work, record: kinds.Ended, _seq: int) -> None:
    row = work.find(record.turn)
    if row is None or row.state is not None:
        return
    row = work.change(
        row,
        state=record.state,
        ended=row.updated or _time({}, "", record.at),
        answered_by=record.model,
        usage=_counts(record.usage) if kinds.has(record.usage) else None,
        lease=None,
        lease_seq=0,
        waiting_seq=0,
        waiting_at=None,
        questions=[],
    )
    work.happened(row.ended)
    if row.state == "done":
        _merge(work, row)
    partial = [record.partial] if record.partial else []
    said = [*in_value(_mapping(record.outputs)), *in_messages(_listed(record.messages)), *partial]
    work.changes.answered[row.turn] = joined(said)


def _merge(work: _Work, row: TurnRow) -> None:
    """Note of the turns that a merge reads that they are merged, now that it is done."""
    for turn in row.reads:
        read = work.find(turn)
        if read is not None and read.ordinal < row.ordinal and not read.merged:
            work.change(read, merged=True)


def _reply(work: _Work, record: kinds.Reply, _seq: int) -> None:
    row, counts = work.find(record.turn), _counts(record.usage)
    if row is not None and counts:
        total = dict(row.replied)
        for kind, number in counts.items():
            total[kind] = total.get(kind, 0) + number
        work.change(row, replied=total)


def _tool(work: _Work, record: kinds.Tool, _seq: int) -> None:
    row, counts = work.find(record.turn), _counts(record.usage)
    place = f"{record.site or ''}:{record.invocation}"
    if row is not None and (counts or place in row.tools):
        work.change(row, tools={**row.tools, place: counts})


def _head(work: _Work, record: kinds.Head, _seq: int) -> None:
    if work.find(record.turn) is not None:
        work.row.head = record.turn


def _entry(work: _Work, record: kinds.Entry, _seq: int) -> None:
    if record.turn is not None and work.find(record.turn) is None:
        return
    name = record.plugin, record.entry
    if name == CLEARED:
        work.row.head = None
    elif name == (commands.OWN, commands.TITLE):
        title = _value(record.data)
        if isinstance(title, str):
            work.row.title = title
            work.describe()
    elif name == LABEL:
        _label(work, record)
    elif name == (commands.OWN, IMPORTED):
        work.row.source = _source(_mapping(record.data)) or work.row.source


def _label(work: _Work, record: kinds.Entry) -> None:
    said = _mapping(record.data)
    label, on = said.get("label"), said.get("on")
    if not isinstance(label, str) or not isinstance(on, bool):
        return
    row = work.find(record.turn)
    kept = [one for one in (row or work.row).labels if one != label or on]
    labels = kept if label in kept or not on else [*kept, label]
    if row is None:
        work.row.labels = labels
        work.describe()
    else:
        work.change(row, labels=labels)
        work.changes.about[row.turn] = joined(labels)


def _unreadable(work: _Work, _record: kinds.Unreadable, _seq: int) -> None:
    work.row.unreadable += 1


_TAKE: dict[type, Callable[[_Work, Any, int], None]] = {
    kinds.Turn: _turn,
    kinds.Lease: _lease,
    kinds.Waiting: _waiting,
    kinds.Approval: _approval,
    kinds.Ended: _ended,
    kinds.Reply: _reply,
    kinds.Tool: _tool,
    kinds.Head: _head,
    kinds.Entry: _entry,
    kinds.Unreadable: _unreadable,
}


# -- payloads: what does not decode, or is of another kind, is as if it were not there ----------------


def _value(payload: Any) -> Any:
    try:
        return kinds.payload(payload)
    except StoreCorrupt:
        return None


def _mapping(payload: Any) -> dict[str, Any]:
    value = _value(payload)
    return value if isinstance(value, dict) else {}


def _listed(payload: Any) -> list[Any]:
    value = _value(payload)
    return value if isinstance(value, list) else []


def _counts(payload: Any) -> dict[str, int]:
    """Return token counts: whole numbers by name, as far as they are such."""
    return {
        kind: number
        for kind, number in _mapping(payload).items()
        if type(number) is int and abs(number) <= INTEGER_LIMIT
    }


def _time(source: Mapping[str, Any], key: str, at: str) -> str | None:
    """Return a time of an import's source, else that of the record, as records write times."""
    told = source.get(key)
    found = times.from_text(told) if isinstance(told, str) else None
    if found is None:
        found = times.from_text(at)
        if found is not None and len(at) == _SPELLED and at.endswith("Z") and at[10] == "T":
            return at  # As records write it: nearly always.
    return None if found is None else times.to_text(found)


def _source(named: Mapping[str, Any]) -> dict[str, str] | None:
    told = {
        key: named[key] for key in ("format", "conversation") if isinstance(named.get(key), str)
    }
    return told or None
