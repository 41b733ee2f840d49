"""Whether a file system keeps what a folder store relies on, tried on that very file system.

Locks must exclude other processes and end with their holder; what one process writes another must
read; flushes must be taken. Each is tried with real files and real processes in a folder of its own
below the one that is asked about, which is removed again. What cannot be tried from here (a drive
that lies about a flush, a second machine that mounts the same folder) is said, not guessed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from ledger.errors import LedgerError
from ledger.stores import files, locks
from ledger.stores.folder import FolderStore

_PATIENCE_S = 20.0
_SHARED = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "sshfs"}
)
_HOLD = """
import sys, time
from ledger.stores import locks
file = locks.acquire(sys.argv[1], time.monotonic() + 20, create=True)
print("held", flush=True)
sys.stdin.read()
"""
_TRY = """
import sys
from ledger.stores import locks
file = locks.try_lock(sys.argv[1])
print("free" if file is not None else "busy", flush=True)
"""
_APPEND = """
import sys
from ledger.stores.folder import FolderStore
store = FolderStore(sys.argv[1])
at = "2026-01-01T00:00:00.000000Z"
print(int(store.append("doctor", [{"functai_conversation": 1, "kind": "note", "at": at}])))
"""


class Check(msgspec.Struct, frozen=True):
    """One thing that was tried."""

    what: str
    ok: bool
    detail: str = ""


class Diagnosis(msgspec.Struct, frozen=True):
    """What was tried on a file system, and what cannot be."""

    folder: str
    file_system: str
    """Its type as the system names it; empty when it does not say."""
    checks: list[Check]
    warnings: list[str]
    """What holds nobody back but should be known."""

    @property
    def ok(self) -> bool:
        """Whether conversations are safe here for the processes of one machine."""
        return all(check.ok for check in self.checks)


def examine(folder: str | os.PathLike[str]) -> Diagnosis:
    """Try locks, flushes and appends below a folder, which is made if it is not there.

    Takes some seconds: it starts processes. Leaves nothing behind but the folder itself.
    Raises: store-denied, store-read-only, store-io: nothing can be made there.
    """
    path = os.path.abspath(os.path.expanduser(os.fspath(folder)))
    with files.naming(path):
        files.Files().make_folder(path)
        place = os.path.join(path, f".doctor-{secrets.token_hex(8)}")
        os.mkdir(place, 0o700)
    try:
        checks = [_tried(what, test, place) for what, test in _TESTS]
        warnings = list(_warnings(place))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Diagnosis(path, file_system(path), checks, warnings)


def _tried(what: str, test: Callable[[str], str | None], place: str) -> Check:
    try:
        wrong = test(place)
    except (OSError, LedgerError, subprocess.SubprocessError) as error:
        wrong = str(error)
    return Check(what, wrong is None, wrong or "")


# -- what is tried; each returns what is wrong, or None --------------------------------------------


def _excludes(place: str) -> str | None:
    path = os.path.join(place, "exclude.lock")
    with locks.acquire(path, time.monotonic() + _PATIENCE_S, create=True):
        if _run(_TRY, path) != "busy":
            return "a lock held here was given to another process as well"
    return None if _run(_TRY, path) == "free" else "a lock given back here stays held elsewhere"


def _ends_with_its_holder(place: str) -> str | None:
    path = os.path.join(place, "killed.lock")
    with _holder(path) as process:
        if locks.try_lock(path) is not None:
            return "a lock held by another process was given to this one as well"
        process.kill()
        process.wait(_PATIENCE_S)
        begun = time.monotonic()
        try:
            locks.acquire(path, begun + 1.0, create=False).close()
        except LedgerError:
            return "the lock of a killed process was still held a second later"
    return None


def _flushes(place: str) -> str | None:
    path = os.path.join(place, "flush")
    with files.Descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file:
        os.pwrite(file.number, b"x" * 4096, 0)
        files.flush(file.number)
        os.ftruncate(file.number, 100)
        files.flush(file.number)
    os.rename(path, path + ".renamed")
    files.flush_folder(place)
    return None


def _shares_appends(place: str) -> str | None:
    folder = os.path.join(place, "store")
    store = FolderStore(folder)
    record = {"functai_conversation": 1, "kind": "note", "at": "2026-01-01T00:00:00.000000Z"}
    for turn in range(1, 4):
        if int(store.append("doctor", [record])) != 2 * turn - 1:
            return "an append of another process is not seen here"
        if _run(_APPEND, folder) != str(2 * turn):
            return "an append of this process is not seen by another"
    report = store.verify("doctor")
    return "what two processes appended does not verify" if report.damaged else None


_TESTS: tuple[tuple[str, Callable[[str], str | None]], ...] = (
    ("locks exclude other processes", _excludes),
    ("a lock ends with the process that held it", _ends_with_its_holder),
    ("files and folders can be flushed", _flushes),
    ("processes see each other's appends", _shares_appends),
)


# -- what is only said -----------------------------------------------------------------------------


def _warnings(place: str) -> Iterator[str]:
    kind = file_system(place)
    if kind in _SHARED or kind.startswith("fuse"):
        yield (
            f"{kind} is shared or emulated: the locks were tried between processes of this machine "
            "only; keep one machine per folder"
        )
    if kind in ("tmpfs", "ramfs"):
        yield f"{kind} is memory: nothing in it outlives the machine's next start"
    probe = os.path.join(place, "Case")
    with open(probe, "xb"):
        pass
    if os.path.exists(os.path.join(place, "cASE")):
        yield "names are blind to case: ids that differ in case only are refused"
    yield "whether a drive keeps its word on a flush cannot be tried from here"


def file_system(path: str) -> str:
    """Return the type of the file system that a path is on; empty where the system does not say."""
    best = kind = ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as table:
            for row in table:
                before, _, after = row.partition(" - ")
                mounted = before.split()[4].replace("\\040", " ")
                inside = path == mounted or path.startswith(mounted.rstrip("/") + "/")
                if inside and len(mounted) >= len(best):
                    best, kind = mounted, after.split()[0]
    except (OSError, IndexError):
        return ""
    return kind


# -- other processes -------------------------------------------------------------------------------


def _run(script: str, argument: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, argument],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=True,
    )
    return done.stdout.strip()


@contextmanager
def _holder(path: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the lock on a path until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()
