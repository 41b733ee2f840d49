"""Damage put right in place, as far as it can be proven (`records.healing`), and undone again.

What is changed is written down first, in `<id>.repaired-<n>`: offset, the bytes that stood there, the bytes
that were put there, and why. So no byte is thrown away but what a tombstone replaces (it may be what was
forgotten), a process may die at any step, and repairing or undoing once more goes on from there.

As long as no length changes, bytes are overwritten: readers remember offsets. Where lines are put back that were
lost, all behind them moves, and the log is replaced by another file, whole: every reader notices that, and reads
it anew.

The caller holds the append lock and the log's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from ledger.errors import StoreIO
from ledger.records import healing
from ledger.stores import files, lines, removing, verify, whole
from ledger.stores.files import Descriptor
from ledger.stores.reading import Log

_RECORD = re.compile(r"\.(repaired|undone)-([0-9]+)")


class Repaired(msgspec.Struct, kw_only=True):
    """What repairing a log did, and how it stands now. True when it changed anything."""

    conversation: str
    changes: list[healing.Change] = []
    """What was put right, in order; in an undoing, what was put back."""
    record: str | None = None
    """The file beside the log that says so; None: there is nothing to undo."""
    report: verify.Report
    """What checking the log finds now."""
    left: list[healing.Left] = []
    """What stays damaged once they are made, and why."""
    further: int = 0
    """How many records the copy has behind the last one of the log: a log that ends before them is no damaged one."""

    def __bool__(self) -> bool:
        return bool(self.changes)


def repair(log: Log, file: Descriptor, copy: bytes | None, *, really: bool = True) -> Repaired:
    """Put right what can be proven. Reads the whole log into memory.

    Args: copy: the log as it was at another time. really: False: say what would be done, do nothing.
    """
    source = lines.FileSource(file, log.files)
    data = source.read(0, source.size)
    forgotten = removing.forgotten(log)
    found = healing.changes(data, log.conversation, copy, forgotten)
    healed = healing.apply(data, found)
    record = None
    if found and really:
        record = _write_down(log, found, len(healed))
        _put(log, file, found, healed)
    return Repaired(
        conversation=log.conversation,
        changes=found,
        record=record,
        report=_check(log),
        left=healing.left(healed, log.conversation, copy, forgotten),
        further=0 if copy is None else healing.further(healed, log.conversation, copy),
    )


def undo(log: Log, file: Descriptor) -> Repaired:
    """Put back what the last repair changed, where its bytes still stand and no line is lost by it."""
    last = max(_numbers(log, "repaired"), default=None)
    if last is None:
        return Repaired(conversation=log.conversation, report=_check(log))
    path = f"{log.stem}.repaired-{last}"
    with files.naming(path), Descriptor(path, os.O_RDONLY) as kept:
        source = lines.FileSource(kept, log.files)
        try:
            written = msgspec.json.decode(source.read(0, source.size), type=_Record)
        except msgspec.DecodeError as error:
            raise StoreIO(where=path, reason="it is no record of a repair") from error
    standing = lines.FileSource(file, log.files)
    data = standing.read(0, standing.size)
    changes = [w.change() for w in written.changes]
    found = healing.undone(data, log.conversation, changes, written.size_bytes)
    _put(log, file, found, healing.apply(data, found))
    undone = f"{log.stem}.undone-{last}"
    with files.naming(path):
        log.files.replace(path, undone)
        log.files.flush_folder(os.path.dirname(path))
    name = os.path.basename(undone)
    return Repaired(conversation=log.conversation, changes=found, record=name, report=_check(log))


class _Written(msgspec.Struct):
    """A change as it is written down: bytes as text of one character each, so that names stay legible."""

    offset: int
    """Where it is in the mended log."""
    before: str
    after: str
    why: str

    def change(self) -> healing.Change:
        before, after = self.before.encode("latin-1"), self.after.encode("latin-1")
        return healing.Change(self.offset, before, after, self.why)


class _Record(msgspec.Struct):
    """What a repair changed."""

    size_bytes: int
    """How long the log was with them."""
    changes: list[_Written]
    """Without those that put tombstones: what they replace may be what was forgotten."""


def _write_down(log: Log, found: list[healing.Change], size: int) -> str | None:
    written = [
        _Written(c.offset, c.before.decode("latin-1"), c.after.decode("latin-1"), c.why)
        for c in healing.moved(found)
        if c.why != "forgotten"
    ]
    if not written:
        return None
    record = _Record(size, written)
    number = max(_numbers(log, "repaired", "undone"), default=0) + 1
    path = f"{log.stem}.repaired-{number}"
    files.put(log.stem, path, msgspec.json.encode(record), log.files)
    return os.path.basename(path)


def _put(log: Log, file: Descriptor, found: Sequence[healing.Change], healed: bytes) -> None:
    """Make changes in a log. Args: healed: the log with them."""

    def write() -> None:
        for change in found:
            files.write_at(file, log.files, change.after, change.offset)

    if any(change.grows_by for change in found):
        whole.place(log, healed)
    else:
        with files.naming(file.path):
            log.write(write, file)
    if found:
        removing.tell_of_change(log)


def _numbers(log: Log, *kinds: str) -> list[int]:
    folder, stem = os.path.split(log.stem)
    with files.naming(folder):
        listed = os.listdir(folder)
    matches = [_RECORD.fullmatch(n[len(stem) :]) for n in listed if n.startswith(stem)]
    return [int(found[2]) for found in matches if found is not None and found[1] in kinds]


def _check(log: Log) -> verify.Report:
    with Descriptor(log.data, os.O_RDONLY) as file:
        return verify.verify(lines.FileSource(file, log.files), log.conversation)
