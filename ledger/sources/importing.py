"""Importing: what a source holds becomes turns of conversations, once.

Turn ids are made from the source, so importing again finds them and adds nothing, and a longer
export adds only what is new. Each conversation is one append: it is there whole, or not at all. One
that cannot be imported is reported and costs the others nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from ledger.errors import ImportInvalid, LedgerError
from ledger.formats import merge_json
from ledger.formats.base import Draft, DraftTurn, Exported, Report, Skipped
from ledger.records import ids, kinds, times, values
from ledger.records.kinds import NewRecord, new
from ledger.sources import files
from ledger.sources.media import Media
from ledger.stores.memory import MemoryStore
from ledger.stores.resolve import store_for
from ledger.turns import commands, content, programs
from ledger.turns.attachments import Attachment
from ledger.turns.log import Log
from ledger.turns.programs import ANSWER
from ledger.turns.world import SYSTEM, World
from ledger.views import History

IMPORTED = "import"
"""The entry kind that says what an import left: its source, its raw records, where the head was."""
TURN_FIELDS = ({"message": ""}, {programs.ANSWER: ""})
"""What every imported turn is made of: text, and text."""

Progress = Callable[[str, Report], None]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def import_conversations(
    paths: Paths,
    *,
    store: Any = None,
    progress: Progress | None = None,
    world: World = SYSTEM,
) -> Report:
    """Import every conversation found in files, zip files or folders; formats are found by looking.

    Args: paths: one or several. store: None: this process's memory; a folder; or a store.
    progress: called after each conversation with its id and the report so far.
    Returns: the report: what was imported, what was skipped and why, types not known with counts.
    Raises: import-invalid: nothing recognisable, or not one conversation, was found; store errors;
    conversation-content: `ledger.keep` says that what is imported may not be kept.
    Files that messages point to and that lie in the same zip or folder are kept as attachments of the
    turns that are added.
    Not promised: that every file is there; a turn that was imported before gets none.
    """
    kept_in = store_for(store)
    content.refuse(kept_in, ("message", ANSWER), {})
    report = Report()
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    for path in listed:
        try:
            _import_path(kept_in, path, report, progress, world)
        except ImportInvalid as error:
            report.notes.skipped.append(Skipped(os.fspath(path), error.reason))
    if not report.found:
        where = ", ".join(str(path) for path in listed) or "no path"
        raise ImportInvalid(source=where, reason=f"no conversation in it\n{report}")
    return report


def _import_path(
    store: Any,
    path: str | os.PathLike[str],
    report: Report,
    progress: Progress | None,
    world: World,
) -> None:
    for source in files.find(path):
        for item in source.items:
            if isinstance(item, Skipped):
                report.notes.skipped.append(item)
                continue
            name = _import_one(store, item, source.media, report, world)
            if progress is not None:
                progress(name, report)


def conversation_id(draft: Draft) -> str:
    """Return the id of an imported conversation: the source's own where it can be one."""
    try:
        return ids.check_conversation(draft.source_id)
    except LedgerError:
        digest = hashlib.sha256(draft.source_id.encode("utf-8", "replace")).hexdigest()
        return f"{draft.format}-{digest[:32]}"


def _import_one(
    store: Any, item: Draft | Exported, media: Media, report: Report, world: World
) -> str:
    """Import one conversation whole; what is wrong with it is its own and goes into the report."""
    name = item.conversation if isinstance(item, Exported) else conversation_id(item)
    try:
        if isinstance(item, Exported):
            exported = _records(item)
            added, known = _import_export(store, item, exported, report, world)
            damaged = sum(record["kind"] == "unreadable" for record in exported)
            report.notes.counts[f"records of {name} that cannot be read in the export"] += damaged
        else:
            added, known = _import_draft(store, name, item, media, world)
            report.notes.add(item.notes)
    except LedgerError as error:
        if error.code.startswith("store-"):
            raise
        report.notes.skipped.append(Skipped(f"conversation {name}", error.message()))
        return name
    report.conversations += bool(added)
    report.conversations_known += not added
    report.turns += added
    report.turns_known += known
    return name


# -- our own JSON ----------------------------------------------------------------------------------


def _import_export(
    store: Any, item: Exported, exported: list[NewRecord], report: Report, world: World
) -> tuple[int, int]:
    """Adopt the whole log, or add what is missing. Returns: turns added and turns known."""
    log = Log(store, item.conversation)
    before = len(log.read().order)
    turns = len(History.of(exported, conversation=item.conversation).order)
    if not log.history.position and hasattr(store, "adopt"):
        _keep(store, item, set(item.blobs))
        store.adopt(item.conversation, item.raw_log)
        return turns, 0

    def decide(history: History) -> list[NewRecord]:
        here = store.read(item.conversation)
        source = f"conversation {item.conversation}"
        added = merge_json.missing(exported, here, source=source)
        if added:
            _keep(store, item, set(values.references(added)))
        if _goes_on(here, exported):
            # An older copy: what came after it there is what comes after it here, the head included.
            return [_unplaced(record) for record in exported[len(here) :] if _kept(record)]
        if history.head is not None and any(record["kind"] == "turn" for record in added):
            added.append(new("head", times.to_text(world.now()), turn=history.head))
        return added

    position = log.history.position
    after = len(log.append(decide).order)
    grown = log.history.position - position
    if grown and after == before:
        report.notes.counts[f"records added to turns of {item.conversation} that were here"] += (
            grown
        )
    return after - before, turns - (after - before)


def _records(item: Exported) -> list[NewRecord]:
    """Read the log of an export as a store reads it: void and damaged lines keep their places."""
    copy = MemoryStore()
    copy.adopt(item.conversation, item.raw_log)
    return list(copy.read(item.conversation))


def _goes_on(here: list[NewRecord], exported: list[NewRecord]) -> bool:
    """Say whether an export begins with exactly the records that are here."""
    return exported[: len(here)] == here


def _kept(record: NewRecord) -> bool:
    return record["kind"] not in ("unreadable", "erased") and record.get("erased") is not True


def _unplaced(record: NewRecord) -> NewRecord:
    return {key: value for key, value in record.items() if key != "seq"}


def _keep(store: Any, item: Exported, named: set[str]) -> None:
    """Keep the attachments that are named by what is added: those of a turn erased here stay away."""
    blobs = getattr(store, "blobs", None)
    if blobs is not None:
        for sha256, content in item.blobs.items():
            if sha256 in named:
                blobs.put(content)


# -- other formats ---------------------------------------------------------------------------------


def _import_draft(
    store: Any, name: str, draft: Draft, media: Media, world: World
) -> tuple[int, int]:
    """Add the turns that are not there, with the files they point to. Returns: turns added and turns known."""
    log = Log(store, name)
    blobs = log.blobs
    given: list[Attachment] = []
    if blobs is not None:
        history = log.read()
        lacking = [turn for turn in draft.turns if turn.id not in history]
        given = media.take_in(lacking, lambda found: log.keep([found]), draft.notes)
    raw = None if blobs is None else _reference(draft.raw)
    added: list[DraftTurn] = []

    def decide(history: History) -> list[NewRecord]:
        added[:] = [turn for turn in draft.turns if turn.id not in history]
        out = records(history, draft, added, raw, world.now())
        if out and blobs is not None:
            blobs.put(draft.raw)
        return out

    log.append(decide, given)
    return len(added), len(draft.turns) - len(added)


def records(
    history: History,
    draft: Draft,
    added: list[DraftTurn],
    raw: dict[str, Any] | None,
    now: datetime,
) -> list[NewRecord]:
    """Return what an import appends to a history; nothing when it has all of it."""
    last = _last_import(history)
    moved, left = _head(history, draft, added, last)
    if not added and moved is None:
        return []
    at = times.to_text(now)
    program = programs.recorded(*TURN_FIELDS)
    out: list[NewRecord] = []
    if added and program.version not in history.programs:
        out.append(new("program", at, **program.keys()))
    parents = {turn.id: turn.parent for turn in draft.turns}
    for turn in added:
        out += _turn(turn, parents, program, at)
    if moved is not None:
        out.append(new("head", at, turn=moved))
    if draft.title and draft.title != last.get("title"):
        out += commands.entry(commands.OWN, commands.TITLE, draft.title, now=now)
    data = {
        "format": draft.format,
        "conversation": draft.source_id,
        "title": draft.title or None,
        "head": left,
        "raw": raw,
        "notes": dict(draft.notes.counts),
    }
    return out + commands.entry(commands.OWN, IMPORTED, data, now=now)


def _turn(
    turn: DraftTurn, parents: dict[str, str | None], program: programs.Description, at: str
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
        usage=turn.usage or {},
        messages=turn.messages_out,
    )
    return [sent, ended]


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
    if before is not None and before != last.get("head"):
        return (before if added else None), last.get("head")
    left = draft.current if draft.current is not None else after
    return (left if left != after else None), left


def _last_import(history: History) -> dict[str, Any]:
    for entry in reversed(history.entries(commands.OWN, IMPORTED)):
        data = kinds.payload(entry.data, entry.seq)
        if isinstance(data, dict):
            return data
    return {}


def _reference(data: bytes) -> dict[str, Any]:
    """Name bytes that are kept as an attachment."""
    digest = hashlib.sha256(data).hexdigest()
    return {"$attachment": {"sha256": digest, "media_type": "application/json", "size": len(data)}}
