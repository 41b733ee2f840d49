"""The least that the same work can be: bare system calls, and msgspec.

F is flock + write + fsync of the same bytes; R is F and what else the contract's rules ask of an append. D is one read
of a file, `decode_lines` into one Struct whose payloads stay undecoded, and one SHA-256 over each line; D0 is D
without the hashes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ledger.records import codec, kinds
from tools.benchmarks.rows import Measure, timed


class SelfClosing(sqlite3.Connection):
    """A bare database that is closed with the last reference to it."""

    def __del__(self) -> None:
        self.close()


class Appends:
    """F: appends of ready bytes to a file that stays open."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._end = os.fstat(self._descriptor).st_size

    def append(self, data: bytes) -> None:
        """Append under a lock, durably."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.pwrite(self._descriptor, data, self._end)
        os.fsync(self._descriptor)
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._end += len(data)


def appends(path: Path, *batches: bytes) -> Measure:
    """Return F of some batches, one after the other."""
    file = Appends(path)

    def work() -> None:
        for data in batches:
            file.append(data)

    return lambda: timed(work)


class Ruled:
    """R: appends of records by the calls that the contract's rules ask for, in one function and nothing else.

    The lock file and the log are opened, locked and looked at by name; no erasure is pending; the log ends as it did;
    the lines are spelled and sealed. No value is checked, and no failure, fork, interrupt or waiting seen to.
    """

    def __init__(self, stem: Path) -> None:
        self._lock, self._log, self._plan = (f"{stem}.{name}" for name in ("lock", "log", "erase"))
        self._count = self._end = 0
        self._last, self._chain = b"", codec.first_chain("c")
        for path in (self._lock, self._log):
            Path(path).touch()

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append some records, durably."""
        bodies = [codec.escaped(msgspec.json.encode(record)) for record in records]
        lock = self._locked(self._lock)
        with suppress(FileNotFoundError):
            os.lstat(self._plan)
        log = self._locked(self._log)
        if os.pread(log, len(self._last), self._end - len(self._last)) != self._last:
            raise ValueError("the log does not end as it did")
        salts = [os.urandom(16) for _ in bodies]
        data, self._chain = codec.seal(bodies, self._count, hashlib.sha256(self._chain), salts)
        os.pwrite(log, data, self._end)
        self._count += len(bodies)
        self._end += len(data)
        self._last = data[-192:]
        fcntl.flock(log, fcntl.LOCK_UN)
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.fsync(log)
        os.stat(self._log, follow_symlinks=False)
        os.close(log)
        os.close(lock)

    def _locked(self, path: str) -> int:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_ino != os.stat(path, follow_symlinks=False).st_ino:
            raise ValueError("the file was replaced")
        return file


def ruled(stem: Path, *batches: bytes) -> Measure:
    """Return R of the records of some batches, one after the other."""
    file = Ruled(stem)
    appends = [[codec.decode_plain(line) or {} for line in data.splitlines()] for data in batches]

    def work() -> None:
        for records in appends:
            file.append(records)

    return lambda: timed(work)


class Line(msgspec.Struct):
    """The one Struct that every line is decoded to."""

    kind: str
    turn: str = ""
    parent: str | None = None
    inputs: msgspec.Raw = kinds.ABSENT
    outputs: msgspec.Raw = kinds.ABSENT
    value: msgspec.Raw = kinds.ABSENT
    saw: msgspec.Raw = kinds.ABSENT


def decode(path: Path) -> Measure:
    """Return D0."""
    decoder = msgspec.json.Decoder(Line)
    return lambda: timed(lambda: decoder.decode_lines(path.read_bytes()))


def decode_and_hash(path: Path) -> Measure:
    """Return D."""
    decoder = msgspec.json.Decoder(Line)

    def work() -> Sequence[Line]:
        data = path.read_bytes()
        lines = decoder.decode_lines(data)
        start = 0
        while start < len(data):
            end = data.index(b"\n", start)
            hashlib.sha256(data[start:end]).digest()
            start = end + 1
        return lines

    return lambda: timed(work)


def decode_each(path: Path) -> Measure:
    """Return what reads a file and decodes each line of it to a dict."""
    decoder = msgspec.json.Decoder()

    def work() -> None:
        for line in path.read_bytes().split(b"\n")[:-1]:
            decoder.decode(line)

    return lambda: timed(work)


NEW_PROCESS_APPEND = """
import fcntl, os
data = b"x" * int(sys.argv[2])
begun = time.perf_counter()
descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
fcntl.flock(descriptor, fcntl.LOCK_EX)
os.pwrite(descriptor, data, os.fstat(descriptor).st_size)
os.fsync(descriptor)
os.close(descriptor)
print(time.perf_counter() - begun)
"""
"""F in a new process. Arguments: a file, how many bytes."""

NEW_PROCESS_LAST = """
import msgspec, os
begun = time.perf_counter()
descriptor = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(descriptor).st_size
tail = os.pread(descriptor, 65536, max(0, size - 65536)).split(b"\\n")[1:-1][-20:]
for line in tail:
    msgspec.json.decode(line)
print(time.perf_counter() - begun)
"""
"""The last 20 lines, decoded to dicts. Argument: a file."""

COMPARE_AND_SET = """
import fcntl, json, os
body = json.dumps({"text": "x" * int(sys.argv[2]), "seq": 0}).encode()
def once(seen):
    descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    size = os.fstat(descriptor).st_size
    tail = os.pread(descriptor, 8192, max(0, size - 8192))
    found = int(tail[tail.rindex(b'"seq":') + 6:-2]) if tail else 0
    if found == seen:
        os.pwrite(descriptor, body[:-2] + b"%d}\\n" % (seen + 1), size)
        os.fsync(descriptor)
    os.close(descriptor)
    return found
seen = 0
def append():
    global seen
    while (found := once(seen)) != seen:
        seen = found
    seen += 1
"""
"""Defines `append`: a compare-and-set of a file's last number under flock. Arguments: a file, how many bytes."""
