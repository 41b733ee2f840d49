"""Point 5: a branch in the middle; what it reads and what it writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import ledger
from ledger.turns.world import SYSTEM
from tools.benchmarks import floors
from tools.benchmarks.logs import CHAT, TEXT, log_of, size_of, turn_records
from tools.benchmarks.rows import Bench, Measure, Row, timed

Make = Callable[[], Mapping[str, Measure]]


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    for turns in sorted({bench.sizes.short, bench.sizes.read}):
        at = f"open, {turns:,} turns: branch in the middle, `record`"
        yield Row(5, at, branching(bench, turns))
        yield Row(5, f"{at}, read the branch", branching(bench, turns, read=True))
        yield Row(5, f"{at}: written, to one at the end", writing(bench, turns), 1.05, "bytes")
        if Path("/proc/self/io").exists():
            yield Row(5, f"{at}: read, to the branch", bytes_read(bench, turns), 1.0, "bytes")


def opened(bench: Bench, turns: int) -> tuple[ledger.Conversation, Path, str]:
    """Return an open conversation that was read, its log, and the turn in the middle."""
    folder, names = bench.conversation(turns, name="branched")
    chat = ledger.open(CHAT, store=ledger.FolderStore(folder))
    chat.all_turns()
    return chat, log_of(folder), names[len(names) // 2]


def branching(bench: Bench, turns: int, *, read: bool = False) -> Make:
    """Return what prepares a branch in an open conversation, and F."""

    def make() -> dict[str, Measure]:
        chat, _, middle = opened(bench, turns)
        data = b"x" * size_of(turn_records(SYSTEM.turn_id(), ["", ""]))

        def work() -> None:
            view = chat.continue_from(middle)
            view.record(TEXT, TEXT)
            if read:
                view.turns  # noqa: B018 - being read is what is measured

        return {
            "ours": lambda: timed(work),
            "floor": floors.appends(bench.new_place("floor"), data),
        }

    return make


def writing(bench: Bench, turns: int) -> Make:
    """Return what prepares how many bytes a branch adds, and a turn at the end."""

    def make() -> dict[str, Measure]:
        chat, log, middle = opened(bench, turns)

        def grown(at: str | None) -> float:
            before = log.stat().st_size
            (chat.continue_from(at) if at else chat).record(TEXT, TEXT)
            return log.stat().st_size - before

        return {"ours": lambda: grown(middle), "floor": lambda: grown(None)}

    return make


def bytes_read(bench: Bench, turns: int) -> Make:
    """Return what prepares how many bytes a branch has the system read, and those of the branch."""

    def make() -> dict[str, Measure]:
        chat, log, middle = opened(bench, turns)

        def work() -> float:
            before = asked_of_system()
            chat.continue_from(middle).record(TEXT, TEXT)
            return asked_of_system() - before

        return {"ours": work, "floor": lambda: log.stat().st_size / 2}

    return make


def asked_of_system() -> int:
    """Return how many bytes this process has read, from wherever."""
    descriptor = os.open("/proc/self/io", os.O_RDONLY)
    try:
        return int(os.read(descriptor, 100).split()[1])
    finally:
        os.close(descriptor)
