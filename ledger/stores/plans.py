"""What was decided to be removed: `<id>.erase`, durable before the first byte of the log changes.

The file holds the turn and, per line, offset, length and tombstone; for a whole conversation, no turn.
From the moment it stands under its name the removal has happened: readers see the log with the
tombstones in their places (`source`), whatever of it is on the disk, and the next writer finishes it.
So no reader is ever given half a line, and a process may die at any step.

A plan may come to stand beside another log than the one it was made for: one restored from a backup, or
deleted and made anew by hand. So a tombstone counts only where its place still begins after a line feed,
ends at one, and holds that line (`erasing.is_place`).
"""

from __future__ import annotations

import os
import secrets
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from ledger.errors import StoreCorrupt
from ledger.records import erasing
from ledger.stores import files, lines
from ledger.stores.base import Erased
from ledger.stores.files import Descriptor, Files

_CHUNK = 1 << 20


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


# -- deciding --------------------------------------------------------------------------------------


def planned(source: lines.Source, conversation: str, turn: str) -> tuple[Plan, Erased]:
    """Return what erasing a turn overwrites in a log, and the beginning of the receipt."""
    eraser = erasing.Eraser(turn)
    report = Erased(conversation=conversation, turn=turn)
    changes = list(eraser.changes(lines_of(source)))
    _note(report, eraser, changes)
    named = dict.fromkeys(sha256 for change in changes for sha256 in change.attachments)
    places = tuple(Place(c.offset, c.length, c.text) for c in changes)
    plan = Plan(conversation=conversation, turn=turn, lines=places, attachments=tuple(named))
    return plan, report


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


# -- on the disk -----------------------------------------------------------------------------------


def read(path: str, calls: Files) -> Plan | None:
    """Return the plan that stands, or None.

    Raises: store-corrupt: it does not read. store-link, store-io and the like.
    """
    try:
        with Descriptor(path, os.O_RDONLY) as file:
            source = lines.FileSource(file, calls)
            data = source.read(0, source.size)
    except FileNotFoundError:
        return None
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = "the plan of an erasure does not read; erase again once it is out of the way"
        raise StoreCorrupt(where=path, seq=0, reason=reason) from error
    if plan.turn_ledger_erase != 1:
        raise StoreCorrupt(where=path, seq=0, reason="it is an erasure of a newer version")
    return plan


def write(stem: str, path: str, plan: Plan, calls: Files) -> None:
    """Put a plan under its name, durable, all or nothing; it replaces the one that stands."""
    new = f"{stem}.new-{secrets.token_hex(8)}"
    try:
        with files.naming(path):
            with Descriptor(new, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file:
                files.write_at(file, calls, msgspec.json.encode(plan), 0)
                calls.flush(file.number)
            calls.replace(new, path)
            calls.flush_folder(os.path.dirname(path))
    except BaseException:
        with suppress(OSError):
            calls.remove(new)
        raise


def source(file: Descriptor, calls: Files, path: str) -> lines.FileSource:
    """Return the bytes of a log, with the tombstones of the plan that stands beside it.

    Raises: FileNotFoundError: the plan says that the log is to go.
    """
    plan = read(path, calls) if os.path.lexists(path) else None
    if plan is None:
        return lines.FileSource(file, calls)
    if plan.turn is None:
        raise FileNotFoundError(path)
    return _Erased(file, calls, plan, plan.turn)


def fits(log: lines.Source, place: Place, turn: str) -> bool:
    """Say whether a place of a log still begins after a line feed, ends at one, and holds its line."""
    before = min(place.offset, 1)
    data = log.read(place.offset - before, before + place.length + 1)
    whole = len(data) == before + place.length + 1 and data.endswith(b"\n")
    line = data[before:-1]
    if not whole or data[:before] != b"\n"[:before] or b"\n" in line:
        return False
    return erasing.is_place(line, place.text.encode(), turn)


class _Erased(lines.FileSource):
    """A log as it is once the plan beside it is finished."""

    def __init__(self, file: Descriptor, calls: Files, plan: Plan, turn: str) -> None:
        super().__init__(file, calls)
        plain = lines.FileSource(file, calls)
        self._places = [place for place in plan.lines if fits(plain, place, turn)]
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
