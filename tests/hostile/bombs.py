"""Logs that are too large, made quickly, and what a call on one costs in a process of its own."""

from __future__ import annotations

from pathlib import Path

from ledger.stores.folder import FolderStore
from tests.stores.support import Unflushed, foreign, log_path, run, stop

DEEP = 100_000
_PIECE = 1_000_000
_BATCH = 2_000

_MEASURE = """
import resource
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
calls = {
    "read": lambda store: store.read("c"),
    "scan": lambda store: store.scan("c"),
    "verify": lambda store: store.verify("c"),
    "list": lambda store: store.conversations(),
    "append": lambda store: store.append("c", [stop("x")]),
    "raw": lambda store: store.raw("c"),
    "tail": lambda store: store.read("c", int(sys.argv[3])),
    "wait": lambda store: store.wait("c", int(sys.argv[3]), 0),
}
warm = FolderStore(folder + "-warm")
warm.append("c", [stop("a"), stop("b")])
for call in calls.values():
    if call not in (calls["tail"], calls["wait"]):
        call(warm)
before = used()
begun = time.perf_counter()
calls[sys.argv[2]](FolderStore(folder))
say(f"{used() - before} {time.perf_counter() - begun:.2f}")
"""


def bomb(folder: Path, kind: str, size: int) -> int:
    """Make a log of about a size in bytes. Returns: how many records it has, if it is made of records."""
    store = FolderStore(folder, calls=Unflushed())
    if kind == "records":
        each = 170
        for first in range(0, size // each, _BATCH):
            store.append("c", [stop(str(i)) for i in range(first, first + _BATCH)])
        return len(range(0, size // each, _BATCH)) * _BATCH
    if kind == "our record":
        store.append("c", [{**stop("a"), "text": "x" * size}])
        return 1
    if kind == "foreign records":
        log_path(folder).parent.mkdir(parents=True, mode=0o700)
        with log_path(folder).open("wb") as file:
            for i in range(1, size // 100):
                file.write(foreign(str(i), i))
        return size // 100 - 1
    if kind == "no end and nothing else":
        log_path(folder).parent.mkdir(parents=True, mode=0o700)
    else:
        store.append("c", [stop("a")])
    start, _, end = foreign("HERE", 2).partition(b"HERE")
    with log_path(folder).open("ab") as file:
        file.write(start if kind == "a record" else b"")
        for _ in range(size // _PIECE):
            file.write(b"x" * _PIECE)
        file.write(end if kind == "a record" else b"\n" if kind == "no record" else b"")
    return 2


def measured(folder: Path, calls: list[str], place: int = 0) -> dict[str, int]:
    """Return, for each call, by how many bytes it made the memory of a process of its own grow."""
    return {call: int(run(_MEASURE, folder, call, place, timeout=600).split()[0]) for call in calls}


def costs(folder: Path, call: str, place: int = 0) -> tuple[int, float]:
    """Return by how many bytes a call made a process grow, and how many seconds it took."""
    grown, seconds = run(_MEASURE, folder, call, place, timeout=600).split()
    return int(grown), float(seconds)
