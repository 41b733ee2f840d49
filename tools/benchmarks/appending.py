"""Point 1: an append in an open store, and what a conversation adds to it, at any length."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import ledger
from ledger.turns.world import SYSTEM
from tools.benchmarks import floors
from tools.benchmarks.logs import CHAT, TEXT, log_of, turn_records
from tools.benchmarks.rows import Bench, Measure, Row, often

SHOWN = 10
"""How many earlier turns a running turn is shown."""


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    lengths = [0, *bench.sizes.lengths]
    for turns in lengths:
        at = f"{turns:,} turns there"
        yield Row(1, f"`store.append` of a turn, {at}", through(bench, turns, stored), 1.25)
    for turns in lengths[:3]:
        at = f"{turns:,} turns there"
        yield Row(1, f"`chat.record`, {at}", through(bench, turns, recorded), 1.5)
        yield Row(1, f"a whole running turn, {at}", through(bench, turns, sent), 1.5)


def stored(store: ledger.FolderStore, names: list[str]) -> Callable[[], object]:
    """Return what appends a turn to a store."""
    records = turn_records(SYSTEM.turn_id(), names[-2:])
    return lambda: store.append(CHAT, records)


def recorded(store: ledger.FolderStore, names: list[str]) -> Callable[[], object]:
    """Return what records a turn in a conversation."""
    chat = ledger.open(CHAT, store=store)
    return lambda: chat.record(TEXT, TEXT, model="m", usage={})


def sent(store: ledger.FolderStore, names: list[str]) -> Callable[[], object]:
    """Return what makes a turn with a program."""

    def answer(message: str) -> str:
        return TEXT

    rule = ledger.last_turns(SHOWN)
    chat = ledger.open(CHAT, answer, store=store, context=rule)
    return lambda: chat.send(TEXT)


def through(
    bench: Bench, turns: int, way: Callable[[ledger.FolderStore, list[str]], Callable[[], object]]
) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares a way to append, and the bare appends of the bytes that it writes."""

    def make() -> dict[str, Measure]:
        folder, names = bench.conversation(turns, name="sent" if way is sent else "appended")
        store = ledger.FolderStore(folder)
        work = way(store, names)
        work()  # Reads what is there, and writes its program.
        before = log_of(folder).stat().st_size
        work()
        batches = appended(folder, before)
        floor = floors.appends(bench.new_place("floor"), *batches)
        ruled = floors.ruled(bench.new_place("ruled"), *batches)
        times = bench.sizes.appends
        return {
            "ours": lambda: often(work, times),
            "floor": lambda: statistics.median(floor() for _ in range(times)),
            "R, the rules alone": lambda: statistics.median(ruled() for _ in range(times)),
        }

    return make


def appended(folder: Path, start: int) -> list[bytes]:
    """Return what was appended to the log since a size, cut into its appends."""
    with log_of(folder).open("rb") as file:
        file.seek(start)
        lines = file.read().splitlines(keepends=True)
    batches: list[bytes] = []
    for line in lines:
        if b'"ledger":["1/' in line:
            batches.append(line)
        else:
            batches[-1] += line
    return batches
