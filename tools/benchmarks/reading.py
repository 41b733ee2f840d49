"""Point 4: reading everything, and what memory that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import ledger
from tools.benchmarks import floors, processes
from tools.benchmarks.logs import CHAT, log_of
from tools.benchmarks.rows import Bench, Measure, Row, timed

READ_ALL = (
    processes.LOADED
    + processes.PEAK
    + """
before = peak()
history = ledger.History.of(ledger.FolderStore(sys.argv[1]).scan("bench"))
print((peak() - before) / int(sys.argv[2]))
"""
)


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    read = f"read {bench.sizes.read:,} turns"
    yield Row(4, f"{read} into a `History`", reading(bench, whole), 2.0)
    yield Row(4, f"{read}: peak memory, times the file", remembering(bench), 1.3, "times")
    yield Row(4, f"{read} into a `History`, all values", touching(bench, all_values), 2.5)
    yield Row(4, f"{read} by `chat.turns`, all values", touching(bench, all_turns), 2.5)


def whole(store: ledger.FolderStore) -> ledger.History:
    """Read everything and fold it."""
    return ledger.History.of(store.scan(CHAT))


def all_values(store: ledger.FolderStore) -> None:
    """Read everything, and decode what was asked and answered."""
    history = whole(store)
    for turn in history.turns:
        node = history.node(turn)
        node.inputs()
        node.outputs()


def all_turns(store: ledger.FolderStore) -> None:
    """Look at every turn of the conversation as a user does."""
    for turn in ledger.open(CHAT, store=store).turns:
        turn.inputs  # noqa: B018 - being asked for is what is measured
        turn.outputs  # noqa: B018


def reading(
    bench: Bench, work: Callable[[ledger.FolderStore], object]
) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares reading, with D and D0."""

    def make() -> dict[str, Measure]:
        folder, _ = bench.conversation(bench.sizes.read, name="read")
        log = log_of(folder)
        return {
            "ours": lambda: timed(lambda: work(ledger.FolderStore(folder))),
            "floor": floors.decode_and_hash(log),
            "D0, no hashes": floors.decode(log),
        }

    return make


def touching(
    bench: Bench, work: Callable[[ledger.FolderStore], object]
) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares looking at every value, with decoding each line to a dict."""

    def make() -> dict[str, Measure]:
        folder, _ = bench.conversation(bench.sizes.read, name="read")
        return {
            "ours": lambda: timed(lambda: work(ledger.FolderStore(folder))),
            "floor": floors.decode_each(log_of(folder)),
        }

    return make


def remembering(bench: Bench) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares a new process that reads everything and tells its peak."""

    def make() -> dict[str, Measure]:
        folder, _ = bench.conversation(bench.sizes.read, name="read")
        size = log_of(folder).stat().st_size
        return {"ours": lambda: processes.number(READ_ALL, folder, size)}

    return make
