"""Many processes at one log, and a disk that fills up."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ledger.errors import StoreConflict, StoreFull
from ledger.stores.folder import FolderStore
from tests.crash.calls import in_child
from tests.crash.scenes import CHAT, Wrong, names, record


def race(folder: str, *, processes: int = 16, each: int = 50) -> tuple[int, float]:
    """Let processes append to one log, each only at the place it has seen, and kill some of them.

    Returns: how many appends were acknowledged, and the longest that one had to wait, in seconds.
    Raises: Wrong: two were acknowledged at one place, or one is missing.
    """
    children = []
    for number in range(processes):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            code = 1
            try:
                _racer(folder, number, each, writer)
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        children.append((child, reader))
    told = [_told(reader) for _, reader in children]
    ended = [os.waitpid(child, 0)[1] for child, _ in children]
    if any(ended):
        raise Wrong(f"a racer failed: {ended}")
    return _compare(folder, [line for lines in told for line in lines], processes * each)


def _racer(folder: str, number: int, each: int, writer: int) -> None:
    store = FolderStore(folder)
    for i in range(each):
        begun = time.monotonic()
        while True:
            seen = store.read_end(CHAT)
            try:
                at = store.append(CHAT, [record(f"{number}/{i}")], expect=seen)
                break
            except StoreConflict:
                continue
        waited = time.monotonic() - begun
        os.write(writer, f"{number}/{i} {int(at)} {waited:.6f}\n".encode())


def _told(reader: int) -> list[str]:
    with os.fdopen(reader) as file:
        return file.read().splitlines()


def _compare(folder: str, told: list[str], expected: int) -> tuple[int, float]:
    places: dict[int, str] = {}
    longest = 0.0
    for line in told:
        name, at, waited = line.split()
        if int(at) in places:
            raise Wrong(f"two appends were acknowledged at place {at}")
        places[int(at)] = name
        longest = max(longest, float(waited))
    found = names(FolderStore(folder))
    if [places.get(i) for i in range(1, len(found) + 1)] != found or len(found) != expected:
        raise Wrong(f"{len(told)} were acknowledged, {len(found)} are there")
    return len(told), longest


def holder_killed(folder: str) -> float:
    """Kill a process that holds the append lock. Returns: how long the next append waited, in s."""
    store = FolderStore(folder)
    store.append(CHAT, [record("before")])
    ready, tell = os.pipe()
    child = os.fork()
    if not child:
        from ledger.stores import locks

        path = os.path.join(folder, "conversations", f"{CHAT}.lock")
        held = locks.acquire(path, time.monotonic() + 20, create=False)
        os.write(tell, b"x")
        signal.pause()
        held.close()
        os._exit(0)
    os.read(ready, 1)
    os.kill(child, signal.SIGKILL)
    begun = time.monotonic()
    store.append(CHAT, [record("after")])
    waited = time.monotonic() - begun
    os.waitpid(child, 0)
    return waited


@contextmanager
def small_disk(place: str) -> Iterator[str | None]:
    """Give a file system of 1 MB, where one may be mounted; else None."""
    mounted = os.path.join(place, "small")
    os.mkdir(mounted)
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", mounted]
    done = subprocess.run(command, capture_output=True, check=False) if os.geteuid() == 0 else None
    try:
        yield mounted if done is not None and done.returncode == 0 else None
    finally:
        if done is not None and done.returncode == 0:
            subprocess.run(["umount", mounted], capture_output=True, check=False)


def fill(folder: str, *, size: int = 20_000) -> int:
    """Append until there is no room, make room, go on. Returns: how many were acknowledged.

    Raises: Wrong: an acknowledged record is missing, or the store does not go on.
    """
    ballast = os.path.join(os.path.dirname(folder), "ballast")
    with open(ballast, "wb") as file:
        file.write(b"x" * 200_000)
    store = FolderStore(folder)
    acknowledged: list[str] = []
    refused = _until_full(store, acknowledged, size)
    os.unlink(ballast)
    acknowledged_then = len(acknowledged)
    refused += _until_full(store, acknowledged, size)
    found = [name for name in names(store) if name is not None]
    if found != acknowledged or refused < 2 or len(acknowledged) <= acknowledged_then:
        raise Wrong(f"{len(acknowledged)} acknowledged, {len(found)} there, {refused} refused")
    if store.verify(CHAT).damaged:
        raise Wrong("the full disk left damage")
    return len(acknowledged)


def _until_full(store: FolderStore, acknowledged: list[str], size: int) -> int:
    for _ in range(1000):
        name = f"r{len(acknowledged)}"
        try:
            store.append(CHAT, [record(name, size), record(name + "b", size)])
        except StoreFull:
            return 1
        acknowledged += [name, name + "b"]
    return 0


def fill_to_a_limit(folder: str) -> int:
    """Run `fill` in a process whose files may not grow over 1 MB, for where nothing can be mounted."""

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        store = FolderStore(folder)
        soft = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, soft))
        acknowledged: list[str] = []
        refused = _until_full(store, acknowledged, 20_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, soft))
        refused += _until_full(store, acknowledged, 20_000)
        found = [name for name in names(store) if name is not None]
        if found != acknowledged or refused != 2 or store.verify(CHAT).damaged:
            raise Wrong(f"{len(acknowledged)} acknowledged, {len(found)} there")

    if in_child(work):
        raise Wrong("the store did not get over a file size limit")
    return len([name for name in names(FolderStore(folder)) if name is not None])
