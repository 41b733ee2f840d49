"""Point 6: several processes in one conversation, and several conversations in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import ledger
from ledger.turns.world import SYSTEM
from tools.benchmarks import floors, processes
from tools.benchmarks.logs import CHAT, TEXT, size_of, turn_records
from tools.benchmarks.rows import Bench, Measure, Row, Runs, timed

SET = (
    processes.LOADED
    + """
from ledger.turns.world import SYSTEM
from tools.benchmarks.logs import CHAT, turn_records
store = ledger.FolderStore(sys.argv[1])
seen = 0
def append():
    global seen
    while True:
        try:
            seen = store.append(CHAT, records, expect=seen)
            return
        except ledger.errors.StoreConflict as conflict:
            seen = conflict.found
records = turn_records(SYSTEM.turn_id(), ["", ""])
"""
)
"""A turn appended on the condition that nobody else has appended: the compare-and-set."""
RECORD = (
    processes.LOADED
    + """
from tools.benchmarks.logs import CHAT, TEXT
chat = ledger.open(CHAT, store=ledger.FolderStore(sys.argv[1]))
def append():
    chat.record(TEXT, TEXT)
"""
)
Told = list[dict[str, Any]]


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    many, each = bench.sizes.at_once, bench.sizes.each
    title = f"{many} processes, {many * each:,} appends to one conversation"
    bare, stores, chats = racing(bench, None), racing(bench, SET), racing(bench, RECORD)

    def raced(runs: Runs, key: str) -> Callable[[], Mapping[str, Measure]]:
        return lambda: {"ours": runs.figure(key), "floor": bare.figure(key)}

    for name, runs in (("`store.append(expect=...)`", stores), ("`chat.record`", chats)):
        yield Row(6, f"{title}: {name}", raced(runs, "seconds"), 1.3)
        yield Row(6, f"{title}: {name}, the longest wait", raced(runs, "longest"))
        fair = f"{title}: {name}, of the slowest when the first is done"
        yield Row(6, fair, raced(runs, "share"), unit="share")
    title = f"{many} conversations on {many} threads, {many * each:,} turns"
    yield Row(6, f"{title}: `store.append`", beside(bench, stored))
    yield Row(6, f"{title}: `chat.record`", beside(bench, recorded))
    yield Row(6, f"{title}, to one thread: `store.append`", scaling(bench, stored), 1.2, "times")


def figures(told: Told) -> dict[str, float]:
    """Return the seconds from the first begin to the last end, the longest wait, and the least share.

    The share is how much of its work the slowest had done when the first was done with its own.
    """
    first = min(one["ended"][-1] for one in told)
    shares = (sum(at <= first for at in one["ended"]) / len(one["ended"]) for one in told)
    return {
        "seconds": max(one["ended"][-1] for one in told) - min(one["begun"] for one in told),
        "longest": max(max(one["waits"]) for one in told),
        "share": min(shares),
    }


def racing(bench: Bench, code: str | None) -> Runs:
    """Return runs of processes that append at once; None: each a bare compare-and-set.

    What was acknowledged is counted: nothing may be lost.
    """
    many, each = bench.sizes.at_once, bench.sizes.each
    size = size_of(turn_records(SYSTEM.turn_id(), ["", ""]))

    def ours() -> dict[str, float]:
        folder = bench.new_place("raced")
        with ledger.FolderStore(folder) as store:
            store.append(CHAT, turn_records(SYSTEM.turn_id(), []))
            told = processes.race(str(code), many, folder, each)
            kept = sum(record["kind"] == "ended" for record in store.read(CHAT))
        if kept != many * each + 1:
            raise RuntimeError(f"{kept - 1} of {many * each} turns are there")
        return figures(told)

    def bare() -> dict[str, float]:
        place = bench.new_place("floor")
        return figures(processes.race(floors.COMPARE_AND_SET, many, place, size, each))

    return Runs(ours if code else bare)


# -- threads ---------------------------------------------------------------------------------------

Work = Callable[[], object]


def stored(store: ledger.FolderStore, id: str) -> Work:
    """Return what appends a turn."""
    records = turn_records(SYSTEM.turn_id(), [])
    return lambda: store.append(id, records)


def recorded(store: ledger.FolderStore, id: str) -> Work:
    """Return what records a turn."""
    chat = ledger.open(id, store=store)
    return lambda: chat.record(TEXT, TEXT)


def works(
    bench: Bench, way: Callable[[ledger.FolderStore, str], Work]
) -> tuple[list[Work], list[Work]]:
    """Return what appends to each of several conversations, and to each of several files."""
    store = ledger.FolderStore(bench.new_place("beside"))
    data = b"x" * size_of(turn_records(SYSTEM.turn_id(), ["", ""]))
    ours = [way(store, f"c{number}") for number in range(bench.sizes.at_once)]
    files = [floors.Appends(bench.new_place("floor")) for _ in range(bench.sizes.at_once)]
    bare: list[Work] = [partial(file.append, data) for file in files]
    for work in ours + bare:
        work()
    return ours, bare


def at_once(works: list[Work], each: int) -> float:
    """Return the seconds of each work done so many times, each in a thread of its own."""

    def run(work: Work) -> None:
        for _ in range(each):
            work()

    with ThreadPoolExecutor(len(works)) as pool:
        return timed(lambda: list(pool.map(run, works)))


def beside(
    bench: Bench, way: Callable[[ledger.FolderStore, str], Work]
) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares conversations that are appended to at once, and files."""

    def make() -> dict[str, Measure]:
        ours, bare = works(bench, way)
        each = bench.sizes.each
        return {"ours": lambda: at_once(ours, each), "floor": lambda: at_once(bare, each)}

    return make


def scaling(
    bench: Bench, way: Callable[[ledger.FolderStore, str], Work]
) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares how many times the time of one thread's work that of all of them takes."""

    def make() -> dict[str, Measure]:
        ours, bare = works(bench, way)
        each = bench.sizes.each
        return {
            "ours": lambda: at_once(ours, each) / at_once(ours[:1], each),
            "floor": lambda: at_once(bare, each) / at_once(bare[:1], each),
        }

    return make
