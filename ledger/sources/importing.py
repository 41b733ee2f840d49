"""Importing: what a source holds becomes turns of conversations, once.

Turn ids are made from the source, so importing again finds them and adds nothing, and a longer
export adds only what is new. Each conversation is one append: it is there whole, or not at all. One
that cannot be imported is reported and costs the others nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ledger.errors import ImportInvalid, LedgerError, StoreVersion
from ledger.formats import merge_json
from ledger.formats.base import Counted, Draft, Exported, Found, Notes, Report, Skipped, listed
from ledger.records import times, values
from ledger.records.kinds import FORMAT, NewRecord, new
from ledger.sources import drafts, files, holding, seen
from ledger.sources.ahead import Job, in_order
from ledger.sources.belonging import Belonging, belonging, conversation_id, under
from ledger.sources.copying import placed
from ledger.sources.media import Media
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from ledger.stores.resolve import store_for
from ledger.turns import content
from ledger.turns.attachments import Attachment
from ledger.turns.log import Log
from ledger.turns.programs import ANSWER
from ledger.turns.world import SYSTEM, World
from ledger.views import History
from ledger.views.late import complete

Progress = Callable[[str, Report], None]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def import_conversations(
    paths: Paths,
    *,
    store: Any = None,
    prefix: str = "",
    labels: Sequence[str] = (),
    progress: Progress | None = None,
    world: World = SYSTEM,
) -> Report:
    """Import every conversation found in files, zip files or folders; formats are found by looking.

    Args: paths: one or several. store: None: this process's memory; a folder; or a store.
    prefix: what the ids of the conversations begin with, as `"ann."`: what is imported under another prefix, or
    under none, is another conversation with turns of its own, so that chats of several people that begin alike
    stay apart. Our own JSON keeps its ids, and is skipped under a prefix. labels: put on each conversation
    that gains a turn, but for those that somebody has put on it or taken off it before.
    progress: called after each conversation with its id and the report so far.
    Returns: the report: what was imported, what was skipped and why, types not known with counts.
    Raises: import-invalid: a path is not there or holds no conversation; all of the others are imported
    before, and the error names each such path and has the report; conversation-id: no id can begin with the
    prefix; TypeError, ValueError: paths or labels are none; store errors;
    conversation-content: `ledger.keep` says that what is imported may not be kept.
    Files that messages point to and that lie in the same zip or folder are kept as attachments of the
    turns that are added.
    Not promised: that every file is there; a turn that was imported before gets none.
    """
    given, whose = _paths(paths), belonging(prefix, labels)
    kept_in = store_for(store)
    content.refuse(kept_in, ("message", ANSWER), {})
    report = Report()
    empty: list[Skipped] = []
    for path in given:
        told, found = len(report.notes.skipped), report.found
        try:
            _import_path(kept_in, path, whose, report, progress, world)
        except ImportInvalid as error:
            empty.append(Skipped(os.fspath(path), error.reason))
            report.notes.skipped.append(empty[-1])
        else:
            if report.found == found:
                skipped = "\n".join(listed(report.notes.skipped[told:]))
                empty.append(Skipped(os.fspath(path), f"no conversation in it\n{skipped}"))
    if empty:
        raise _invalid(empty, report)
    if not report.found:
        raise ImportInvalid(source="no path", reason="name a file, a zip file or a folder")
    return report


def _paths(given: Any) -> list[str | os.PathLike[str]]:
    """Return the paths that are meant. Raises: TypeError: it is neither one nor several."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes | os.PathLike)
    paths = list(given) if several else [given]
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            takes = "paths takes the path of a file, a zip file or a folder, as text or a Path, or several"
            raise TypeError(f"{takes}; not {path!r}")
    return paths


def _invalid(empty: list[Skipped], report: Report) -> ImportInvalid:
    """Return the error that names the paths which held nothing."""
    if len(empty) == 1:
        return ImportInvalid(source=empty[0].what, reason=empty[0].reason, report=report)
    reason = "\n".join(["nothing to import", *(f"{one.what}: {one.reason}" for one in empty)])
    return ImportInvalid(source=", ".join(one.what for one in empty), reason=reason, report=report)


def _import_path(
    store: Any,
    path: str | os.PathLike[str],
    whose: Belonging,
    report: Report,
    progress: Progress | None,
    world: World,
) -> None:
    sources = list(files.find(path, world))
    report.files += sum(len(source.files) for source in sources)
    with seen.Seen(store) as known:
        for source in sources:
            for name in _import_source(store, source, whose, known, report, world):
                if progress is not None:
                    progress(name, report)
            report.files_read += len(source.files)


def _import_source(
    store: Any,
    source: files.Source,
    whose: Belonging,
    known: seen.Seen,
    report: Report,
    world: World,
) -> Iterator[str]:
    """Import what files hold, unless they are as they were at an import before."""
    stamp = seen.stamp(source, whose.prefix)
    counted = Counted(
        source.name, source.format.name if source.format else "unknown", len(source.files)
    )
    if source.format is not None:
        report.sources.append(counted)
    if (before := known.of(stamp)) is not None:
        counted.conversations, counted.turns = len(before), sum(before.values())
        report.conversations_known += len(before)
        report.turns_known += sum(before.values())
        yield from before
        return
    turns: dict[str, int] = {}
    gained: dict[str, bool] = {}
    skipped = len(report.notes.skipped)
    held = False
    for done in _imported(store, source, whose, world):
        report.notes.add(done.notes)
        report.held += done.held
        held = held or done.held
        if done.name is None:
            continue
        if done.is_read:
            _count(report, gained, done.name, done.added > 0)
        report.turns += done.added
        report.turns_known += done.known
        turns[done.name] = turns.get(done.name, 0) + done.added + done.known
        counted.conversations, counted.new = len(gained), counted.new + done.added
        counted.turns += done.added + done.known
        yield done.name
    is_whole = len(report.notes.skipped) == skipped and not held
    if is_whole and not any(file.touched for file in source.files):
        known.add(stamp, turns)


@dataclass
class _Done:
    """What came of one conversation of a source."""

    notes: Notes
    name: str | None = None
    """Its id; None: the source has something there that is no conversation."""
    is_read: bool = False
    """Whether it is in the store now."""
    added: int = 0
    known: int = 0
    """How many turns were added, and how many were there."""
    held: bool = False
    """Whether a turn may go on and was left out."""


def _imported(store: Any, source: files.Source, whose: Belonging, world: World) -> Iterator[_Done]:
    """Import the conversations of a source; yield what came of each, in order."""
    items = holding.marked(source.items, world.now)
    jobs = map(partial(_job, store, source.media, whose, world), items)
    return in_order(jobs) if isinstance(store, FolderStore) else (job.work() for job in jobs)


def _job(store: Any, media: Media, whose: Belonging, world: World, item: Found) -> Job[_Done]:
    """Return how a conversation is imported."""
    if isinstance(item, Exported) and whose.prefix:
        return _left_out(Skipped(f"conversation {item.conversation}", _KEEPS_ITS_ID))
    if isinstance(item, Skipped):
        return _left_out(item)
    if isinstance(item, Exported):
        name, size = item.conversation, len(item.raw_log)
        found: Draft | Exported = item
    else:
        name, size = conversation_id(item, whose.prefix), sum(map(len, item.raw))
        found = under(whose.prefix, item)
    return Job(name, size, lambda: _import_one(store, name, found, media, whose.labels, world))


def _left_out(what: Skipped) -> Job[_Done]:
    return Job("", 0, lambda: _Done(Notes(skipped=[what])))


_KEEPS_ITS_ID = (
    "our own JSON is the conversation itself and keeps its id: it is not imported under a prefix"
)


def _import_one(
    store: Any,
    name: str,
    item: Draft | Exported,
    media: Media,
    labels: tuple[str, ...],
    world: World,
) -> _Done:
    """Import one conversation whole; what is wrong with it is its own and is noted."""
    notes = Notes()
    try:
        if isinstance(item, Draft):
            return _import_draft(store, name, item, media, labels, world)
        added, known = _import_export(store, item, notes, world)
        if added and labels:
            _label(Log(store, name), labels, notes, world)
    except LedgerError as error:
        if error.code.startswith("store-"):
            raise
        return _Done(Notes(skipped=[Skipped(f"conversation {name}", error.message())]), name)
    return _Done(notes, name, True, added, known)


def _label(log: Log, labels: tuple[str, ...], notes: Notes, world: World) -> None:
    def decide(history: History) -> list[NewRecord]:
        complete(history)
        return drafts.labelled(history, labels, world.now())

    try:
        log.append(decide)
    except StoreVersion:  # It was taken over as it is, and this version would not go on behind it.
        notes.counts["conversations of a newer format, which take no labels"] += 1


def _count(report: Report, gained: dict[str, bool], name: str, gains: bool) -> None:
    """Count a conversation, once though a source has it in pieces: as gained, if one of them was new."""
    before = gained.get(name)
    gained[name] = gains or before is True
    report.conversations += gained[name] - (before is True)
    report.conversations_known += (not gained[name]) - (before is False)


# -- our own JSON ----------------------------------------------------------------------------------


def _import_export(store: Any, item: Exported, notes: Notes, world: World) -> tuple[int, int]:
    """Adopt the whole log, or add what is missing. Returns: turns added and turns known."""
    exported = _records(item)
    damaged = sum(record["kind"] == "unreadable" for record in exported)
    notes.counts[f"records of {item.conversation} that cannot be read in the export"] += damaged
    turns = len(History.of(exported, conversation=item.conversation).order)
    if turns and hasattr(store, "raw") and store.raw(item.conversation).startswith(item.raw_log):
        return 0, turns
    log = Log(store, item.conversation)
    before = len(log.read().order)
    if not log.history.position and hasattr(store, "adopt"):
        placed(
            lambda: _keep(store, item, set(item.blobs)),
            lambda: store.adopt(item.conversation, item.raw_log),
        )
        return turns, 0

    def decide(history: History) -> list[NewRecord]:
        here = store.read(item.conversation)
        source = f"conversation {item.conversation}"
        added = merge_json.missing(exported, here, source=source)
        if added:
            _keep(store, item, set(values.references(added)))
        if _goes_on(here, exported):
            # An older copy: what came after it there is what comes after it here, the head included.
            added = [_unplaced(record) for record in exported[len(here) :] if _kept(record)]
            _refuse_newer(added, source)
            return added
        _refuse_newer(added, source)
        if history.head is not None and any(record["kind"] == "turn" for record in added):
            added.append(new("head", times.to_text(world.now()), turn=history.head))
        return added

    position = log.history.position
    after = len(log.append(decide).order)
    grown = log.history.position - position
    if grown and after == before:
        notes.counts[f"records added to turns of {item.conversation} that were here"] += grown
    return after - before, turns - (after - before)


def _records(item: Exported) -> list[NewRecord]:
    """Read the log of an export as a store reads it: void and damaged lines keep their places."""
    copy = MemoryStore()
    copy.adopt(item.conversation, item.raw_log)
    return list(copy.read(item.conversation))


def _goes_on(here: list[NewRecord], exported: list[NewRecord]) -> bool:
    """Say whether an export begins with exactly the records that are here."""
    return exported[: len(here)] == here


def _refuse_newer(added: list[NewRecord], source: str) -> None:
    """Refuse to add records that this version would not go on behind. A whole log of them is kept as it is."""
    if any(record["functai_conversation"] != FORMAT for record in added):
        reason = "it holds records of a newer format, and can be taken in only where nothing of it is yet"
        raise StoreVersion(where=f"the export of {source}", reason=reason)


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
    store: Any, name: str, draft: Draft, media: Media, labels: tuple[str, ...], world: World
) -> _Done:
    """Add the turns that are not there, with the files they point to; those that may go on are left out."""
    log = Log(store, name)
    blobs = log.blobs
    given: list[Attachment] = []
    if blobs is not None and media.names:
        history = log.read()
        complete(history)
        lacking = drafts.lacking(history, draft)
        given = media.take_in(lacking, lambda found: log.keep([found]), draft.notes)
    found = drafts.Addition([], [], [])

    def decide(history: History) -> list[NewRecord]:
        nonlocal found
        complete(history)  # Each of its turns is asked for.
        found = drafts.addition(
            history, draft, keeps_bytes=blobs is not None, now=world.now(), labels=labels
        )
        if blobs is not None:
            for data in found.blobs:
                blobs.put(data)
        return found.records

    log.append(decide, given, last=True)
    added = len(found.turns)
    known = len(draft.turns) - added - found.held
    if found.retitled:
        draft.notes.counts[drafts.RETITLED] += 1
    return _Done(draft.notes, name, added + known > 0, added, known, found.held > 0)
