"""What was decided to be removed, removed: the lines of a turn, or a conversation with all its files.

The order of an erasure: the plan is durable; lines overwritten, flushed; the turn's events, torn pieces,
attachments that nothing else names, each folder flushed, what an index of the folder has; the plan removed,
flushed. Every step can be
done again, so whoever finds the plan starts at the beginning. A deletion's plan has no lines: what goes
with the log is found in it, so the log goes last.

The caller holds the append lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from ledger.errors import ConversationIdInvalid, LedgerError, StoreFull, StoreLink
from ledger.records import erasing, ids
from ledger.stores import event_files, files, lines, locks, names, plans, sweeping
from ledger.stores.base import Deleted
from ledger.stores.blobs import FolderBlobs
from ledger.stores.files import Descriptor
from ledger.stores.home import Home
from ledger.stores.reading import Log

_CHUNK = 1 << 20


def settle(
    home: Home, log: Log, blobs: FolderBlobs, plan: plans.Plan, deadline: float, *, whole: bool
) -> None:
    """Finish what a process began to remove and did not finish.

    Args: whole: raise also when something beside the log could not be removed; the plan stays then
    in any case, for the next writer.
    """
    if plan.turn is None:
        delete(home, log, blobs, deadline, begun=True)
        return
    with suppress(FileNotFoundError), locks.acquire(log.data, deadline, create=False) as file:
        plan = overwrite(log, file, plan, plan.turn)
    turn = plan.turn or ""
    try:
        remove_beside(home, log, blobs, turn, plan.attachments, deadline)
        finish(log, turn)
    except LedgerError:
        if whole:
            raise


# -- a turn ----------------------------------------------------------------------------------------


def overwrite(log: Log, file: Descriptor, plan: plans.Plan, turn: str) -> plans.Plan:
    """Put the tombstones of a plan into their places, durably.

    Where the log is not the one that the plan was made for, the turn's lines are looked for again.
    Returns: the plan that was carried out.
    """
    source = lines.FileSource(file, log.files)
    good = plans.good_places(source, plan, turn)
    if len(good) < len(plan.lines):
        plan = _found_again(log, source, plan, good, turn)
    with files.naming(file.path):
        log.write(lambda: _write(log, file, plan.lines), file)
    return plan


def _write(log: Log, file: Descriptor, places: Iterable[plans.Place]) -> None:
    for place in places:
        for start in range(place.offset, place.end, _CHUNK):
            part = place.part(start, min(start + _CHUNK, place.end))
            files.write_at(file, log.files, part, start)


def _found_again(
    log: Log, source: lines.Source, plan: plans.Plan, good: list[plans.Place], turn: str
) -> plans.Plan:
    again, _ = plans.planned(source, plan.conversation, turn)
    places = {place.offset: place for place in (*good, *again.lines)}
    plan = plans.Plan(
        conversation=plan.conversation,
        turn=turn,
        lines=tuple(places[offset] for offset in sorted(places)),
        attachments=tuple(dict.fromkeys((*plan.attachments, *again.attachments))),
        guard=again.guard,
    )
    plans.write(log.stem, log.plan, plan, log.files)
    return plan


def remove_beside(
    home: Home, log: Log, blobs: FolderBlobs, turn: str, attachments: Iterable[str], deadline: float
) -> tuple[list[str], sweeping.Swept]:
    """Remove a turn's events, torn pieces that may be of it, and attachments nothing else names.

    The index of the folder, if there is one, forgets the turn.
    Returns: the files removed, and what became of the attachments.
    """
    _purge(home, log, turn, deadline)
    gone = _remove_trees(home, log, [turn], deadline)
    gone += _remove_side_files(
        home, log, lambda path: path != log.forgotten and _is_piece_of(log, path, turn)
    )
    swept = sweeping.sweep(
        attachments, blobs, home.conversations, home.sweeping, log.files, deadline=deadline
    )
    return gone, swept


def finish(log: Log, turn: str) -> None:
    """End an erasure: list the turn as forgotten, for repairs from old copies; remove the plan."""
    known = forgotten(log)
    if turn not in known:
        files.put(log.stem, log.forgotten, msgspec.json.encode([*known, turn]), log.files)
    _drop_plan(log)


def tell_of_change(log: Log) -> None:
    """Have all who read a log see that lines were changed in place: they look at the list of what was forgotten."""
    files.put(log.stem, log.forgotten, msgspec.json.encode(forgotten(log)), log.files)


def forgotten(log: Log) -> list[str]:
    """Return the turns that were erased, as listed. A list that does not read is an empty one."""
    with (
        files.naming(log.forgotten),
        suppress(FileNotFoundError, msgspec.DecodeError),
        Descriptor(log.forgotten, os.O_RDONLY) as file,
    ):
        source = lines.FileSource(file, log.files)
        return msgspec.json.decode(source.read(0, source.size), type=list[str])
    return []


def _drop_plan(log: Log) -> None:
    """Remove a plan that is finished, durably."""
    with files.naming(log.plan):
        with suppress(FileNotFoundError):
            log.files.remove(log.plan)
        log.files.flush_folder(os.path.dirname(log.plan))


# -- attachments -----------------------------------------------------------------------------------


def sweep(home: Home, blobs: FolderBlobs, older_than_s: float, deadline: float) -> list[str]:
    """Remove attachments that no log names, and pieces of some that were never whole. Returns: their SHA-256."""
    candidates = blobs.older(older_than_s)
    swept = sweeping.sweep(
        candidates, blobs, home.conversations, home.sweeping, home.calls, deadline=deadline
    )
    return swept.removed


# -- a conversation --------------------------------------------------------------------------------


def delete(home: Home, log: Log, blobs: FolderBlobs, deadline: float, *, begun: bool) -> Deleted:
    """Remove a log and all that belongs to it, durably; its lock file stays.

    Args: begun: a plan says so already.
    """
    report = Deleted(conversation=log.conversation, found=begun)
    try:
        with locks.acquire(log.data, deadline, create=False) as file:
            report.found = True
            if not begun:
                report.files += _decide(home, log, file, deadline)
            attachments: dict[str, None] = {}
            turns = plans.contents(lines.FileSource(file, log.files), attachments)
            report.files += _remove_trees(home, log, turns, deadline)
            swept = sweeping.sweep(
                attachments,
                blobs,
                home.conversations,
                home.sweeping,
                log.files,
                deadline=deadline,
                besides=log.data,
            )
            report.attachments, report.attachments_kept = swept
            with files.naming(log.data):
                log.files.remove(log.data)
            report.files.append(_within(home, log.data))
    except FileNotFoundError:
        pass
    _purge(home, log, None, deadline)
    report.files += _remove_side_files(home, log, lambda path: True)
    with files.naming(log.data):
        log.files.flush_folder(home.conversations)
    _drop_plan(log)
    return report


def _decide(home: Home, log: Log, file: Descriptor, deadline: float) -> list[str]:
    """Write down that a conversation goes. Returns: the files that were removed to make room for that.

    On a full disk the events of its turns go first, which are for who watches. Raises: store-full: that did not help.
    """
    plan = plans.Plan(conversation=log.conversation, turn=None)
    try:
        plans.write(log.stem, log.plan, plan, log.files)
        return []
    except StoreFull:
        turns = plans.contents(lines.FileSource(file, log.files), {})
        gone = _remove_trees(home, log, turns, deadline)
        if not gone:
            raise
    plans.write(log.stem, log.plan, plan, log.files)
    return gone


def _purge(home: Home, log: Log, turn: str | None, deadline: float) -> None:
    """Take a turn, or all of the conversation, out of the index that the folder may have."""
    files_of_it = (os.path.join(home.folder, name) for name in names.OF_THE_INDEX)
    if any(map(files.found_at, files_of_it)):
        # Loaded where there is an index: not every Python has SQLite.
        from ledger.stores.index_file import IndexFile

        left_s = max(0.0, deadline - time.monotonic())
        IndexFile(home.folder, timeout_s=left_s).purge(log.conversation, turn)


# -- files beside a log ----------------------------------------------------------------------------


def _remove_trees(home: Home, log: Log, turns: Iterable[str], deadline: float) -> list[str]:
    files.check_trusted(home.trees)
    gone = []
    for turn in turns:
        with suppress(ConversationIdInvalid):  # What could be no file name there, has no file.
            name = ids.check_conversation(turn)
            gone += event_files.remove_files(home.trees, name, log.files, deadline)
    if gone:
        with files.naming(home.trees):
            log.files.flush_folder(home.trees)
    return [_within(home, path) for path in gone]


def _remove_side_files(home: Home, log: Log, goes: Callable[[str], bool]) -> list[str]:
    """Remove a conversation's torn pieces that go, and what an unfinished write left; not the plan."""
    gone = []
    with files.naming(home.conversations):
        for name in sorted(os.listdir(home.conversations)):
            path = os.path.join(home.conversations, name)
            if path == log.plan or not names.is_side_file(name, log.conversation):
                continue
            holds = names.holds_content(name, log.conversation)
            if (not holds or goes(path)) and _remove(log, path):
                gone.append(path)
        if gone:
            log.files.flush_folder(home.conversations)
    return [_within(home, path) for path in gone]


def _is_piece_of(log: Log, path: str, turn: str) -> bool:
    try:
        with Descriptor(path, os.O_RDONLY) as file:
            source = lines.FileSource(file, log.files)
            return erasing.piece_concerns(source.read(0, source.size), turn)
    except (FileNotFoundError, StoreLink):
        return False  # What is no plain file was never ours.


def _remove(log: Log, path: str) -> bool:
    try:
        log.files.remove(path)
    except FileNotFoundError:
        return False
    return True


def _within(home: Home, path: str) -> str:
    return os.path.relpath(path, home.folder)
