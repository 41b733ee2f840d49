"""What an import of a draft appends: the turns that are not there, and what was left where.

Turns are compared by their ids alone. The source's own records are kept as attachments; of a file
that has only grown, what was added.

Must stay in step: `data` of an import's entry and docs/reference/format.md; `records.erasing`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.errors import ImportInvalid
from ledger.formats.base import Draft, DraftTurn
from ledger.records import kinds, times, values
from ledger.records.kinds import NewRecord, new
from ledger.turns import commands, programs
from ledger.views import History
from ledger.views.earlier import usage_of
from ledger.views.nodes import LABEL, Node
from ledger.views.ratings import label_data

IMPORTED = "import"
"""The entry kind that says what an import left: its source, its raw records, where the head was."""
TURN_FIELDS = ({"message": ""}, {programs.ANSWER: ""})
"""What every imported turn is made of: text, and text."""


LEFT = "attachments left out, since the store keeps none"
GROWN = "turns that went on in the source after they were imported, left as they were"
RETITLED = "titles that were changed in the source, taken over"


@dataclass(slots=True)
class Addition:
    """What an import appends, and what must be kept before."""

    turns: list[DraftTurn]
    records: list[NewRecord]
    blobs: list[bytes]
    held: int = 0
    """How many turns were left out, since they may go on."""
    retitled: bool = False
    """Whether the conversation was here, and its title was changed in the source since."""


def lacking(history: History, draft: Draft) -> list[DraftTurn]:
    """Return the turns that a history lacks, without those that may go on."""
    return [turn for turn in draft.turns if turn.id not in history and turn.id not in draft.held]


def addition(
    history: History,
    draft: Draft,
    *,
    keeps_bytes: bool,
    now: datetime,
    labels: tuple[str, ...] = (),
) -> Addition:
    """Return what a history lacks of a draft; no records when it has all of it.

    Where a turn was erased, the source's own records are not kept: they would bring it back.
    Args: keeps_bytes: whether there is a place for attachments. labels: put on a conversation that gains a turn.
    Raises: import-invalid: it is another's conversation.
    """
    _refuse_anothers(history, draft)
    added = lacking(history, draft)
    held = sum(turn.id in draft.held and turn.id not in history for turn in draft.turns)
    _note_grown(history, draft)
    last = _last_import(history)
    moved, left = _head(history, draft, added, last)
    title = _title(history, draft, is_newer=bool(added))
    if not added and moved is None and title is None:
        return Addition([], [], [], held)
    erased = any(turn.id in history and history.nodes[turn.id].erased for turn in draft.turns)
    raw, blobs = _raw(history, draft) if keeps_bytes and not erased else (None, [])
    data = {
        "format": draft.format,
        "conversation": draft.source_id,
        "title": draft.title or None,
        "head": left,
        "raw": raw,
        "notes": {what: n for what, n in draft.notes.counts.items() if n},
    }
    if draft.side_of:
        data["side_of"] = draft.side_of
    if draft.prefix:
        data["prefix"] = draft.prefix
    out = _turns(history, draft, added, now)
    blobs += _named(draft, out, keeps_bytes=keeps_bytes)
    if moved is not None:
        out.append(new("head", times.to_text(now), turn=moved))
    if title is not None:
        out += commands.entry(commands.OWN, commands.TITLE, title, now=now)
    out += commands.entry(commands.OWN, IMPORTED, data, now=now)
    if added:
        out += labelled(history, labels, now)
    return Addition(added, out, blobs, held, retitled=title is not None and bool(last))


def _refuse_anothers(history: History, draft: Draft) -> None:
    """Refuse to add to what was imported under other prefixes alone.

    An id behind one prefix may be that behind a longer one, `bob.` and `jr.1` as `bob.jr.` and `1`, and the source
    says what stands there.
    """
    theirs = [str(data.get("prefix") or "") for data in _imports(history)]
    if theirs and draft.prefix not in theirs and not any(t.id in history for t in draft.turns):
        under = f"under the prefix {theirs[0]!r}" if theirs[0] else "without a prefix"
        reason = (
            f"its id here is that of one imported {under}; choose a prefix that begins no other"
        )
        raise ImportInvalid(source=f"{draft.format} {draft.source_id}", reason=reason)


def labelled(history: History, labels: tuple[str, ...], now: datetime) -> list[NewRecord]:
    """Return what puts labels on a conversation: those of which nobody has said whether it has them."""
    said = [
        kinds.payload(entry.data, entry.seq)
        for entry in history.annotated.get(None, ())
        if (entry.plugin, entry.entry) == LABEL
    ]
    known = [data.get("label") for data in said if isinstance(data, dict)]
    return [
        record
        for label in labels
        if label not in known
        for record in commands.entry(*LABEL, label_data(label, on=True), now=now)
    ]


def _named(draft: Draft, added: list[NewRecord], *, keeps_bytes: bool) -> list[bytes]:
    """Return the bytes that new records name as attachments."""
    named = set(values.references(added)) & draft.blobs.keys() if draft.blobs else set()
    if named and not keeps_bytes:
        draft.notes.counts[LEFT] += len(named)
        return []
    return [draft.blobs[sha256] for sha256 in sorted(named)]


def _turns(
    history: History, draft: Draft, added: list[DraftTurn], now: datetime
) -> list[NewRecord]:
    at = times.to_text(now)
    program = programs.recorded(*TURN_FIELDS)
    out: list[NewRecord] = []
    if added and program.version not in history.programs:
        out.append(new("program", at, **program.keys()))
    parents = {turn.id: turn.parent for turn in draft.turns}
    counted = _Counted(history if any(turn.usage for turn in added) else History())
    for turn in added:
        out += _turn(turn, parents, program, at, counted.less(turn))
    return out


def _turn(
    turn: DraftTurn,
    parents: dict[str, str | None],
    program: programs.Description,
    at: str,
    usage: dict[str, int],
) -> list[NewRecord]:
    saw = _saw(turn.parent, parents)
    sent = new(
        "turn",
        at,
        turn=turn.id,
        parent=turn.parent,
        program=program.version,
        inputs=turn.inputs,
        saw=saw,
        messages=turn.messages_in,
        source=turn.source,
    )
    ended = new(
        "ended",
        at,
        turn=turn.id,
        state=turn.state,
        saw=saw,
        attempt=1,
        outputs=turn.outputs,
        value=None if turn.outputs is None else turn.outputs.get(programs.ANSWER),
        model=turn.model,
        usage=usage,
        messages=turn.messages_out,
    )
    return [sent, ended]


class _Counted:
    """What was counted for turns that were not over when they were imported.

    Once they are, they come as turns with an answer, which hold the same records: the first one that
    does has used so much less.
    """

    def __init__(self, history: History) -> None:
        self._open: list[tuple[frozenset[str], dict[str, int]]] = []
        whole: list[frozenset[str]] = []
        for node in history.every():
            if (source := _source(node)) is None or node.outcome is None:
                continue
            records = _records(source)
            if node.outcome != "abandoned":
                whole.append(records)
            elif (used := usage_of(node)) and records:
                self._open.append((records, used))
        self._open = [
            (records, used)
            for records, used in self._open
            if not any(records <= other for other in whole)
        ]

    def less(self, turn: DraftTurn) -> dict[str, int]:
        """Return what a turn has used beyond what was counted before."""
        usage = turn.usage or {}
        if not self._open or not usage or turn.outputs is None:
            return usage
        records = _records(turn.source)
        for one in self._open:
            if one[0] <= records:
                self._open.remove(one)
                return {key: max(0, n - one[1].get(key, 0)) for key, n in usage.items()}
        return usage


def _records(source: dict[str, Any]) -> frozenset[str]:
    listed = source.get("records")
    return (
        frozenset(one for one in listed if isinstance(one, str))
        if isinstance(listed, list)
        else frozenset()
    )


def _note_grown(history: History, draft: Draft) -> None:
    """Count the turns that had fewer records when they were imported: they stay as they were."""
    for turn in draft.turns:
        if turn.id in history and not history.nodes[turn.id].children:
            had = _records(_source(history.nodes[turn.id]) or {})
            if had and had < _records(turn.source):
                draft.notes.counts[GROWN] += 1


def _source(node: Node) -> dict[str, Any] | None:
    if not kinds.has(node.record.source):
        return None
    found = kinds.payload(node.record.source, node.seq)
    return found if isinstance(found, dict) else None


def _saw(parent: str | None, parents: dict[str, str | None]) -> list[dict[str, Any]]:
    """An imported turn was shown its whole branch; the record says so in at most two entries."""
    if parent is None:
        return []
    whole = [{"saw_of": parent}] if parents.get(parent) is not None else []
    return [*whole, {"call": parent}]


def _head(
    history: History, draft: Draft, added: list[DraftTurn], last: dict[str, Any]
) -> tuple[str | None, str | None]:
    """Return where a `head` record must point (None: no record), and where an import left the head.

    The head follows the source's current turn until somebody moves it. New turns are records after
    the head, so where they must not move it, a `head` record says where it was.
    """
    before = history.head
    after = added[-1].id if added else before
    current = _standing(history, draft)
    if before is not None and before != last.get("head"):
        return (before if added else None), last.get("head")
    left = current if current is not None else after
    return (left if left != after else None), left


def _standing(history: History, draft: Draft) -> str | None:
    """Return the source's current turn: above it, where that may go on and was left out."""
    if draft.current in draft.held and draft.current not in history:
        return next(turn.parent for turn in draft.turns if turn.id == draft.current)
    return draft.current


def _title(history: History, draft: Draft, *, is_newer: bool) -> str | None:
    """Return the title to record; None: the one that is here stays.

    It follows the source until somebody else sets it. A title that an import brought before is not new:
    it may come from an older export, and two of them would change it at each import, for ever.
    """
    before = [title for data in _imports(history) if (title := data.get("title"))]
    here = commands.title(history)
    if not draft.title or not (is_newer or history.order):
        return None
    if draft.title == here or (here is not None and [here] != before[:1]):
        return None
    return draft.title if is_newer or draft.title not in before else None


def _last_import(history: History) -> dict[str, Any]:
    return next(_imports(history), {})


def _imports(history: History) -> Iterator[dict[str, Any]]:
    """Yield what imports left, the last one first."""
    for entry in reversed(history.entries(commands.OWN, IMPORTED)):
        data = kinds.payload(entry.data, entry.seq)
        if isinstance(data, dict):
            yield data


# -- the source's own records ----------------------------------------------------------------------


def _raw(history: History, draft: Draft) -> tuple[Any, list[bytes]]:
    """Return how the entry names the source's records, and the bytes to keep.

    One for each file, a list when there are several: a reference, or of a file that begins with all
    that was kept of it before: `after` (that), `rest` (a reference, or null when that was all) and
    `whole`. Logs only grow, and a copy at each import would grow with the square.
    """
    before = {
        whole["sha256"]: whole["size"]
        for data in _imports(history)
        for raw in _listed(data.get("raw"))
        if (whole := _whole(raw))
    }
    kept: list[bytes] = []
    named = []
    for raw in draft.raw:
        sha256 = _longest_start(raw, before)
        rest = raw[before[sha256] :] if sha256 else raw
        if rest:
            kept.append(rest)
        name = _reference(rest, draft.raw_type) if rest else None
        if sha256 is not None:
            after = {"sha256": sha256, "size": before[sha256]}
            name = {"after": after, "rest": name, "whole": _digest(raw)}
        named.append(name)
    return (named[0] if len(named) == 1 else named or None), kept


def _listed(raw: Any) -> list[Any]:
    return raw if isinstance(raw, list) else [raw]


def _whole(raw: Any) -> dict[str, Any] | None:
    """Return the hash and size of all that an entry knows of a file."""
    found = raw.get("whole") or raw.get(values.REFERENCE) if isinstance(raw, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("size"), int):
        return None
    return found if isinstance(found.get("sha256"), str) else None


def _longest_start(raw: bytes, before: dict[str, int]) -> str | None:
    """Return which of some known bytes these begin with, by their hash: the longest."""
    for sha256, size in sorted(before.items(), key=lambda one: -one[1]):
        if 0 < size <= len(raw) and hashlib.sha256(raw[:size]).hexdigest() == sha256:
            return sha256
    return None


def _reference(data: bytes, media_type: str) -> dict[str, Any]:
    """Name bytes that are kept as an attachment."""
    return {values.REFERENCE: {**_digest(data), "media_type": media_type}}


def _digest(data: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
