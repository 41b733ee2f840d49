"""What was decided to be removed: `<id>.erase`, durable before the first byte of the log changes.

The file holds the turn and, per line, offset, length and tombstone; for a whole conversation, no turn.
From the moment it stands under its name the removal has happened: readers see the log with the
tombstones in their places (`source`), whatever of it is on the disk, and the next writer finishes it.
So no reader is ever given half a line, and a process may die at any step.

A plan may come to stand beside another log than the one it was made for: one restored from a backup, or
deleted and made anew by hand. So a tombstone counts only where its place still begins after a line feed,
ends at one, and holds that line: what stands before a seal that is still there is what it was, since its
chain covers all of it; elsewhere the line itself is asked (`erasing.is_place`).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from ledger.errors import StoreCorrupt, StoreVersion
from ledger.records import codec, erasing, kinds
from ledger.stores import files, lines
from ledger.stores.base import Erased
from ledger.stores.files import Descriptor, Files, named

_CHUNK = 1 << 20
_LAST_SEALED = 64
"""How many sealed lines from the end are thought of as a guard."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """One line to overwrite."""

    offset: int
    length: int
    text: str
    """The tombstone without the spaces that fill its place."""

    @property
    def end(self) -> int:
        """Offset of its line feed."""
        return self.offset + self.length

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes of the place between two offsets of the log that lie in it."""
        text = self.text.encode()[start - self.offset : end - self.offset]
        return text.ljust(end - start)


class Guard(msgspec.Struct, frozen=True, array_like=True):
    """A sealed line that stays."""

    end: int
    """Offset of its line feed."""
    chain: str

    def stands_in(self, log: lines.Source) -> bool:
        """Say whether it is still there, and so all that stood before it."""
        data = log.read(max(0, self.end - lines.GUARD), min(self.end, lines.GUARD) + 1)
        found = codec.find_seal(data[:-1])
        return data.endswith(b"\n") and found is not None and found.chain.decode() == self.chain


class Plan(msgspec.Struct, kw_only=True, frozen=True):
    """What is to be removed."""

    turn_ledger_erase: int = 1
    """The version of this file."""
    conversation: str
    turn: str | None
    """None: the conversation goes, with all its files."""
    lines: tuple[Place, ...] = ()
    """In order."""
    attachments: tuple[str, ...] = ()
    """What the lines named; those that nothing else names go."""
    guard: Guard | None = None
    """A seal that does not change."""


# -- deciding --------------------------------------------------------------------------------------


def planned(source: lines.Source, conversation: str, turn: str) -> tuple[Plan, Erased]:
    """Return what erasing a turn overwrites in a log, and the beginning of the receipt."""
    last: deque[tuple[int, int, bytes]] = deque(maxlen=_LAST_SEALED)
    changes, report = changes_of(_noting_seals(source, last), conversation, turn)
    places = tuple(Place(c.offset, c.length, c.text) for c in changes)
    plan = Plan(
        conversation=conversation,
        turn=turn,
        lines=places,
        attachments=tuple(erasing.named(changes)),
        guard=_guard(reversed(last), {change.offset for change in changes}),
    )
    return plan, report


def changes_of(
    log: Iterable[tuple[int, bytes]], conversation: str, turn: str
) -> tuple[list[erasing.Change], Erased]:
    """Return what becomes of the lines of a log when a turn is erased, and the beginning of the receipt.

    Args: log: each line's offset and bytes, as `lines_of` gives them.
    """
    eraser = erasing.Eraser(turn)
    report = Erased(conversation=conversation, turn=turn)
    changes = list(eraser.changes(log))
    _note(report, eraser, changes)
    return changes, report


def _noting_seals(
    source: lines.Source, last: deque[tuple[int, int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    for offset, line in lines_of(source):
        if line.endswith(b'"]}'):
            last.append((offset, offset + len(line), line[-lines.GUARD :]))
        yield offset, line


def _guard(last: Iterable[tuple[int, int, bytes]], changed: set[int]) -> Guard | None:
    for offset, end, text in last:
        found = codec.find_seal(text)
        if found is not None and offset not in changed:
            return Guard(end, found.chain.decode())
    return None


def _note(report: Erased, eraser: erasing.Eraser, changes: Iterable[erasing.Change]) -> None:
    """Write into a receipt what is overwritten, and what stays."""
    for change in changes:
        report.records[change.kind] = report.records.get(change.kind, 0) + 1
        report.size_bytes += change.length - len(change.text.encode())
        if not change.sealed:
            report.unsealed.append(change.seq)
        if change.kind == "entry":
            report.entries.append(change.seq)
    report.stay, report.unreadable = eraser.stay, eraser.unreadable


def lines_of(source: lines.Source) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes, without line feed, of each whole line."""
    offset, length = 0, _CHUNK
    while offset < source.size:
        chunk = source.read(offset, length)
        end = chunk.rfind(b"\n") + 1
        if not end:
            if len(chunk) < length:
                return
            length *= 2
            continue
        start = 0
        while start < end:
            stop = chunk.index(b"\n", start)
            yield offset + start, chunk[start:stop]
            start = stop + 1
        offset, length = offset + end, _CHUNK


def contents(source: lines.Source, attachments: dict[str, None]) -> Iterator[str]:
    """Yield the turns of a log, and note the attachments that its lines name."""
    for _, line in lines_of(source):
        attachments.update(dict.fromkeys(erasing.attachments(line)))
        if b'"turn"' in line:
            record = codec.decode_struct(line, 0)
            if isinstance(record, kinds.Turn):
                yield record.turn


# -- on the disk -----------------------------------------------------------------------------------


def read(path: str, calls: Files) -> Plan | None:
    """Return the plan that stands, or None.

    Raises: store-corrupt: it does not read. store-version: it cannot be understood. store-link,
    store-io and the like.
    """
    try:
        os.lstat(path)  # Mostly there is none, and this says so at less cost than opening.
        with Descriptor(path, os.O_RDONLY) as file:
            source = lines.FileSource(file, calls)
            data = source.read(0, source.size)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise named(error, path) from error
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = "the plan of an erasure does not read; erase again once it is out of the way"
        raise StoreCorrupt(where=path, seq=0, reason=reason) from error
    if plan.turn_ledger_erase != 1:
        raise StoreVersion(where=path, reason="it is an erasure of a newer version")
    return plan


def write(stem: str, path: str, plan: Plan, calls: Files) -> None:
    """Put a plan under its name, durable, all or nothing; it replaces the one that stands."""
    files.put(stem, path, msgspec.json.encode(plan), calls)


def source(file: Descriptor, calls: Files, path: str) -> lines.FileSource:
    """Return the bytes of a log, with the tombstones of the plan that stands beside it.

    A plan that does not read stops writers, not readers: what it left half done, no seal vouches for.
    Raises: FileNotFoundError: the plan says that the log is to go.
    """
    plan = None
    with suppress(StoreCorrupt):
        plan = read(path, calls)
    if plan is None:
        return lines.FileSource(file, calls)
    if plan.turn is None:
        raise FileNotFoundError(path)
    return _Erased(file, calls, plan, plan.turn)


def good_places(log: lines.Source, plan: Plan, turn: str) -> list[Place]:
    """Return the places of a plan that still begin after a line feed, end at one, and hold their line."""
    known_to = plan.guard.end if plan.guard is not None and plan.guard.stands_in(log) else 0
    return [place for place in plan.lines if _is_good(log, place, turn, place.end < known_to)]


def _is_good(log: lines.Source, place: Place, turn: str, known: bool) -> bool:
    before = min(place.offset, 1)
    data = log.read(place.offset - before, before + place.length + 1)
    whole = len(data) == before + place.length + 1 and data.endswith(b"\n")
    line = data[before:-1]
    if not whole or data[:before] != b"\n"[:before] or b"\n" in line:
        return False
    return known or erasing.is_place(line, place.text.encode(), turn)


class _Erased(lines.FileSource):
    """A log as it is once the plan beside it is finished."""

    def __init__(self, file: Descriptor, calls: Files, plan: Plan, turn: str) -> None:
        super().__init__(file, calls)
        plain = lines.FileSource(file, calls)
        self._places = good_places(plain, plan, turn)
        self._starts = [place.offset for place in self._places]

    def read(self, offset: int, length: int) -> bytes:
        data = super().read(offset, length)
        end = offset + len(data)
        for place in self._places[max(0, bisect_right(self._starts, offset) - 1) :]:
            if place.offset >= end:
                break
            start, stop = max(place.offset, offset), min(place.end, end)
            if start < stop:
                new = place.part(start, stop)
                data = data[: start - offset] + new + data[stop - offset :]
        return data
