"""Whole logs: copied out and put in place."""

from __future__ import annotations

import os

from ledger.records import codec
from ledger.stores import files, lines, locks, plans
from ledger.stores.reading import Log


def copy(log: Log) -> bytes:
    """Return the bytes of a log, without what is being appended. Raises FileNotFoundError."""
    with files.Descriptor(log.data, os.O_RDONLY) as file:
        with locks.held_now(log.lock, log.data) as nobody_writes:
            source = plans.source(file, log.files, log.plan)
        data = source.read(0, source.size)
    if nobody_writes:
        return data
    reader = lines.Reader(lines.BytesSource(data), codec.Scanner(log.first_chain))
    for _ in reader.whole_lines():
        pass
    reader.finish(in_flight=True)
    return data[: reader.taken_to]


def place(log: Log, data: bytes) -> None:
    """Put a whole log in its place, durable, all or nothing. The caller holds the append lock."""
    files.put(log.stem, log.data, data, log.files)


def begins(log: Log, data: bytes) -> bool:
    """Say whether a log holds a beginning of these bytes, or nothing. The caller holds the append lock."""
    try:
        with files.Descriptor(log.data, os.O_RDONLY) as file:
            source = lines.FileSource(file, log.files)
            return source.size <= len(data) and data.startswith(source.read(0, source.size))
    except FileNotFoundError:
        return True
