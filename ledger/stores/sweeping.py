"""Attachments that nothing names any more are removed; what a log names never is.

Who removes holds `<folder>/attachments.lock` alone, looks through every log of the folder, and removes
what none of them names, all under that lock. Who appends a record that names an attachment shares the
lock from looking whether the bytes are there to having written the record. So one of two things happens:
the record is in a log before the remover looks, and the bytes stay; or the bytes are gone before the
appender looks, and its append is refused (`attachment-missing`): it puts them again. Between them no
clock and no waiting time decides.

Looking through every log takes long. So it is done once before the lock is taken, and under the lock
only what was added since is read. It is done in bytes, a part at a time: memory does not grow with the
logs, and damaged and void lines name attachments as well. A log that cannot be read may name anything:
then everything stays. Locks are taken in one order, a conversation's before this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

from ledger.errors import AttachmentMissing, LedgerError
from ledger.records import erasing
from ledger.stores import files, lines, locks
from ledger.stores.blobs import FolderBlobs
from ledger.stores.files import Descriptor, Files

_CHUNK = 1 << 20


class Swept(NamedTuple):
    """What became of attachments."""

    removed: list[str]
    kept: list[str]
    """Something else names them, or a log could not be read."""


class _Seen(NamedTuple):
    identity: tuple[int, int]
    size: int


def sweep(
    attachments: Iterable[str],
    blobs: FolderBlobs,
    conversations: str,
    lock: str,
    calls: Files,
    *,
    deadline: float,
    besides: str | None = None,
) -> Swept:
    """Remove those attachments that no log names, durably.

    Args: besides: the path of a log that does not count, since it goes.
    Raises: store-busy, store-io and the like: some may be removed; the same again finishes.
    """
    candidates = [sha256 for sha256 in dict.fromkeys(attachments) if blobs.has(sha256)]
    if not candidates:
        return Swept([], [])
    search = _Search(candidates, conversations, calls, besides)
    search.run()
    removed = []
    if search.unnamed:
        with locks.acquire(lock, deadline, create=True):
            search.run()
            removed = [sha256 for sha256 in candidates if sha256 in search.unnamed]
            blobs.remove(removed)
    return Swept(removed, [sha256 for sha256 in candidates if sha256 not in removed])


def keep(
    attachments: Iterable[str], blobs: FolderBlobs, lock: str, deadline: float
) -> AbstractContextManager[object]:
    """Let nobody remove attachments while a record that names them is written.

    Raises: attachment-missing: one has gone since it was put, or was seen here.
    """
    attachments = list(attachments)
    if not attachments:
        return nullcontext()
    kept = locks.acquire(lock, deadline, create=True, kind=locks.SharedFile)
    try:
        for sha256 in blobs.lost(attachments):
            raise AttachmentMissing(sha256=sha256)
    except BaseException:
        kept.close()
        raise
    return kept


class _Search:
    """Looks through logs for names of attachments; again, only through what was added."""

    def __init__(
        self, candidates: list[str], conversations: str, calls: Files, besides: str | None
    ) -> None:
        self.unnamed = set(candidates)
        self._conversations = conversations
        self._calls = calls
        self._besides = besides
        self._seen: dict[str, _Seen] = {}

    def run(self) -> None:
        """Read what was not read yet, and keep of `unnamed` what is not named there."""
        names: list[str] = []
        with files.naming(self._conversations), suppress(FileNotFoundError):
            names = os.listdir(self._conversations)
        for name in names:
            path = os.path.join(self._conversations, name)
            if self.unnamed and path != self._besides and _may_name(name):
                self._look(path)

    def _look(self, path: str) -> None:
        try:
            with Descriptor(path, os.O_RDONLY) as file:
                self._read(path, lines.FileSource(file, self._calls))
        except FileNotFoundError:
            self._seen.pop(path, None)
        except LedgerError:
            self.unnamed.clear()

    def _read(self, path: str, source: lines.FileSource) -> None:
        before = self._seen.get(path)
        offset = 0
        if before is not None and before.identity == source.identity:
            offset = max(0, before.size - erasing.LONGEST_NAME) if before.size <= source.size else 0
        while offset < source.size and self.unnamed:
            chunk = source.read(offset, _CHUNK)
            if not chunk:
                break
            self.unnamed.difference_update(erasing.attachments(chunk))
            last = offset + len(chunk) >= source.size
            offset += len(chunk) if last else max(1, len(chunk) - erasing.LONGEST_NAME)
        self._seen[path] = _Seen(source.identity, source.size)


def _may_name(name: str) -> bool:
    """Say whether a file may hold records: a log, also one of a foreign name, or one being placed."""
    return name.endswith(".jsonl") or ".new-" in name
