"""Attachments: bytes kept once, under the SHA-256 of what they are.

    <folder>/attachments/<first 2 hex digits>/<sha256>

Bytes are durable, under their final name, before `put` returns, so before a record can name them. They
are written under a random name in the same folder first and renamed, which also heals a file whose
bytes went bad. What this object put here itself, and nobody has touched since, is not written again.
Two processes that put the same bytes do no harm to each other. Only `sweeping` removes any; a store that
has seen bytes here notices by `lost`, before a record names them, that they went.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO, Protocol

from ledger.errors import AttachmentMissing, StoreCorrupt
from ledger.stores import files

CHUNK = 1 << 20
"""How many bytes are read or written at once."""
PIECE_S = 86_400.0
"""How long nothing was written to a piece that nobody writes any more."""
_NAME = re.compile(r"[0-9a-f]{64}")


class Blobs(Protocol):
    """Where the bytes of attachments are kept."""

    def put(self, content: bytes | BinaryIO) -> tuple[str, int]:
        """Keep bytes, given whole or as an open stream. Returns: their SHA-256 and their size."""
        ...

    def get(self, sha256: str) -> bytes:
        """Return the bytes. Raises: attachment-missing. store-corrupt: they are other bytes now."""
        ...

    def open(self, sha256: str) -> BinaryIO:
        """Return the bytes as a stream; raises as `get`, other bytes when the end is reached."""
        ...

    def has(self, sha256: str) -> bool:
        """Say whether there are bytes under this name."""
        ...

    def lost(self, sha256s: Iterable[str]) -> list[str]:
        """Return those of some attachments that were here, as far as this object saw, and are not."""
        ...

    def remove(self, sha256s: Iterable[str]) -> None:
        """Remove attachments, durably; those that are not here are passed over."""
        ...


class MemoryBlobs:
    """Attachments in this process's memory."""

    def __init__(self) -> None:
        self._bytes: dict[str, bytes] = {}
        self._removed: set[str] = set()

    def put(self, content: bytes | BinaryIO) -> tuple[str, int]:
        """Keep bytes. Returns: their SHA-256 and their size."""
        data = b"".join(chunks(content))
        sha256 = hashlib.sha256(data).hexdigest()
        self._bytes[sha256] = data
        self._removed.discard(sha256)
        return sha256, len(data)

    def get(self, sha256: str) -> bytes:
        """Return the bytes. Raises: attachment-missing."""
        try:
            return self._bytes[sha256]
        except KeyError:
            raise missing(sha256) from None

    def open(self, sha256: str) -> BinaryIO:
        """Return the bytes as a stream."""
        return io.BytesIO(self.get(sha256))

    def has(self, sha256: str) -> bool:
        """Say whether there are bytes under this name."""
        return sha256 in self._bytes

    def lost(self, sha256s: Iterable[str]) -> list[str]:
        """Return those of some attachments that were here and are not."""
        return [sha256 for sha256 in sha256s if sha256 in self._removed]

    def remove(self, sha256s: Iterable[str]) -> None:
        """Remove attachments."""
        for sha256 in sha256s:
            if self._bytes.pop(sha256, None) is not None:
                self._removed.add(sha256)


class FolderBlobs:
    """Attachments in a folder. It is made when the first is put."""

    def __init__(self, folder: str, *, calls: files.Files | None = None) -> None:
        self._folder = os.path.join(folder, "attachments")
        self._calls = calls or files.Files()
        self._seen: set[str] = set()
        """What was here when this object looked. It grows with what a process puts and reads."""
        self._named: dict[str, tuple[int, ...]] = {}
        """Which folders stood here before their names were made durable."""
        self._put: dict[str, _Mark] = {}
        """How the files looked that this object put here."""

    def put(self, content: bytes | BinaryIO) -> tuple[str, int]:
        """Keep bytes; they are durable under their name when this returns.

        Returns: their SHA-256 and their size. Raises: store-full, store-io, store-denied,
        store-read-only, store-link: nothing is kept under the name.
        """
        known = None
        if isinstance(content, bytes):
            known = hashlib.sha256(content).hexdigest()
            if self._is_untouched(known):
                return known, len(content)
        with files.naming(self._folder):
            self._make(self._folder)
        self._check_trusted()
        path = os.path.join(self._folder, f"new-{secrets.token_hex(16)}")
        try:
            with files.naming(self._folder):
                sha256, size = self._write(path, content, known)
                shelf = os.path.join(self._folder, sha256[:2])
                self._make(shelf)
                files.check_trusted(shelf)
                os.replace(path, os.path.join(shelf, sha256))
                self._calls.flush_folder(shelf)
                mark = _mark(os.path.join(shelf, sha256))
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        self._seen.add(sha256)
        if mark is not None:
            self._put[sha256] = mark
        return sha256, size

    def _make(self, folder: str) -> None:
        """Make a folder, its name durable: also one that another process made, which may have died before.

        Once for each that stands there: names that are durable stay so.
        """
        found = _mark(folder)
        there = found and found[:2]
        if there is None or self._named.get(folder) != there:
            self._calls.make_folder(folder)
            if there is not None:
                self._named[folder] = there

    def _is_untouched(self, sha256: str) -> bool:
        """Say whether a file is here that this object put, as far as its inode and times tell."""
        mark, path = self._put.get(sha256), self._path(sha256)
        if mark is not None:
            self._check_trusted(os.path.dirname(path))
        return mark is not None and _mark(path) == mark

    def _write(self, path: str, content: bytes | BinaryIO, known: str | None) -> tuple[str, int]:
        """Write a new file, durably. Args: known: the SHA-256, where it is known. Returns: it, and the size."""
        digest, size = hashlib.sha256(), 0
        with files.Descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file:
            for chunk in chunks(content):
                if known is None:
                    digest.update(chunk)
                view = memoryview(chunk)
                while view:
                    written = self._calls.write(file.number, view, size)
                    view = view[written:]
                    size += written
            self._calls.flush(file.number)
        return known or digest.hexdigest(), size

    def get(self, sha256: str) -> bytes:
        """Return the bytes. Raises: attachment-missing. store-corrupt: they are other bytes now."""
        with self.open(sha256) as stream:
            return stream.read()

    def open(self, sha256: str) -> BinaryIO:
        """Return the bytes as a stream, to be read once from the start to the end.

        Raises: attachment-missing; and when the end is reached, store-corrupt: they are other bytes
        now, and what was read is not to be used.
        """
        if not is_name(sha256):
            raise missing(sha256)
        path = self._path(sha256)
        self._check_trusted(os.path.dirname(path))
        try:
            file = files.Descriptor(path, os.O_RDONLY)
            stream = io.BufferedReader(_Checked(file, sha256, self._calls), CHUNK)
        except FileNotFoundError:
            raise missing(sha256) from None
        self._seen.add(sha256)
        return stream

    def has(self, sha256: str) -> bool:
        """Say whether there is a file under this name. Raises: store-denied and the like: it may not be looked at.

        Not promised: that its bytes are right.
        """
        there = is_name(sha256) and self._is_file(sha256)
        if there:
            self._seen.add(sha256)
        return there

    def lost(self, sha256s: Iterable[str]) -> list[str]:
        """Return those of some attachments that were here, as far as this object saw, and are not."""
        return [s for s in sha256s if s in self._seen and not self._is_file(s)]

    def remove(self, sha256s: Iterable[str]) -> None:
        """Remove attachments, durably; those that are not here are passed over.

        Raises: store-io, store-denied, store-read-only; store-link: a folder on the way is a link.
        """
        shelves = set()
        with files.naming(self._folder):
            for sha256 in sha256s:
                path = self._path(sha256)
                shelf = os.path.dirname(path)
                files.check_trusted(self._folder)
                files.check_trusted(shelf)
                with suppress(FileNotFoundError):
                    self._calls.remove(path)
                shelves.add(shelf)
            for shelf in shelves:
                with suppress(FileNotFoundError):
                    self._calls.flush_folder(shelf)

    def older(self, than_s: float) -> list[str]:
        """Return the attachments that were put at least some seconds ago, sorted; remove pieces of the day before.

        A piece is what a process left that died while it put one; of a process that lives it grows.
        Raises: store-io, store-denied, store-link.
        """
        found = []
        with files.naming(self._folder), suppress(FileNotFoundError):
            self._check_trusted()
            for entry in list(os.scandir(self._folder)):
                with suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        found += [e.name for e in os.scandir(entry) if _is_old(e, than_s)]
                    elif entry.name.startswith("new-") and _is_old(entry, max(than_s, PIECE_S)):
                        self._calls.remove(entry.path)
        return sorted(name for name in found if is_name(name))

    def _check_trusted(self, *shelf: str) -> None:
        """Refuse folders that are links, or that others may change. Raises: store-link, store-denied."""
        files.check_trusted(os.path.dirname(self._folder), by_link=True)
        for path in (self._folder, *shelf):
            files.check_trusted(path)

    def _is_file(self, sha256: str) -> bool:
        found = files.found_at(self._path(sha256))
        return found is not None and stat.S_ISREG(found.st_mode)

    def _path(self, sha256: str) -> str:
        return os.path.join(self._folder, sha256[:2], sha256)


def _is_old(entry: os.DirEntry[str], than_s: float) -> bool:
    plain = entry.is_file(follow_symlinks=False)
    return plain and time.time() - entry.stat(follow_symlinks=False).st_mtime >= than_s


_Mark = tuple[int, ...]


def _mark(path: str) -> _Mark | None:
    """Return what changes when a file is written to or replaced; None: there is none to be seen."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Checked(io.RawIOBase):
    """The bytes of a file, hashed as they are read and compared at the end."""

    def __init__(self, file: files.Descriptor, sha256: str, calls: files.Files) -> None:
        self._file = file
        self._sha256 = sha256
        self._calls = calls
        self._digest = hashlib.sha256()
        self._offset = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        with files.naming(self._file.path):
            data = self._calls.read(self._file.number, len(view), self._offset)
        view[: len(data)] = data
        self._digest.update(data)
        self._offset += len(data)
        if not data and len(view) and self._digest.hexdigest() != self._sha256:
            raise StoreCorrupt(
                where=self._file.path, seq=0, reason="its bytes are not those it is named after"
            )
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def is_name(sha256: str) -> bool:
    """Say whether a text is a SHA-256 as attachments are named by it."""
    return bool(_NAME.fullmatch(sha256))


def chunks(content: bytes | BinaryIO) -> Iterator[bytes]:
    """Yield what is to be kept in pieces."""
    if isinstance(content, bytes | bytearray | memoryview):
        yield bytes(content)
        return
    while chunk := content.read(CHUNK):
        yield chunk


def missing(sha256: str) -> AttachmentMissing:
    """Return the error to raise for an attachment that is not there."""
    shown = sha256 if len(sha256) <= 64 else sha256[:61] + "..."
    return AttachmentMissing(sha256=shown)
