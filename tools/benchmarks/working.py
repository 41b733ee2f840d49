"""Point 11: a second of conversation work on a long conversation, beside the same on a short one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import ledger
from ledger import merging
from tools.benchmarks import floors
from tools.benchmarks.logs import CHAT, TEXT, size_of, turn_records
from tools.benchmarks.rows import Bench, Measure, Row, timed

SHORT = 100
Make = Callable[[], Mapping[str, Measure]]
Work = Callable[[ledger.Conversation], object]


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    short, long = SHORT, bench.sizes.read
    title = f"conversation work, {long:,} turns to {short}"
    yield Row(11, f"{title}: all of it", working(bench, a_second), 2)
    for name, work in PARTS.items():
        yield Row(11, f"{title}: {name}", working(bench, work))
    for turns in sorted({short, bench.sizes.short, min(bench.sizes.long, 10_000)}):
        yield Row(0, f"`chat.sync` of one new turn, {turns:,} known", syncing(bench, turns))


def sends(chat: ledger.Conversation) -> None:
    """Send ten turns."""
    for _ in range(10):
        chat.send(TEXT)


def branches(chat: ledger.Conversation) -> list[ledger.Turn]:
    """Branch three times, a few turns back."""
    head = chat.head
    assert head is not None
    for _ in range(5):
        head = head.parent or head
    return [chat.continue_from(head).send(TEXT) for _ in range(3)]


def merge(chat: ledger.Conversation) -> None:
    """Branch three times, and merge."""
    made = branches(chat)
    chat.merge(made, by=merging.pick(made[0]))


def lineage(chat: ledger.Conversation) -> None:
    """Ask what the newest answer rests on."""
    head = chat.head
    assert head is not None
    chat.lineage(head)


def a_second(chat: ledger.Conversation) -> None:
    """Send ten turns, branch three times, merge, ask for the lineage."""
    sends(chat)
    merge(chat)
    lineage(chat)


PARTS: dict[str, Work] = {
    "10 sends": sends,
    "3 branches": branches,
    "3 branches, 1 merge": merge,
    "1 lineage": lineage,
}


def opened(bench: Bench, turns: int) -> ledger.Conversation:
    """Return a conversation that has been read, whose turns are shown the last ten."""
    folder, _ = bench.conversation(turns, name="worked")

    def answer(message: str) -> str:
        return TEXT

    rule = ledger.last_turns(10)
    chat = ledger.open(CHAT, answer, store=ledger.FolderStore(folder), context=rule)
    chat.all_turns()
    chat.send(TEXT)
    return chat


def working(bench: Bench, work: Work) -> Make:
    """Return what prepares some work on a long conversation, and the same on a short one."""

    def make() -> dict[str, Measure]:
        long, short = opened(bench, bench.sizes.read), opened(bench, SHORT)
        return {
            "ours": lambda: timed(lambda: work(long)),
            "floor": lambda: timed(lambda: work(short)),
        }

    return make


def syncing(bench: Bench, turns: int) -> Make:
    """Return what prepares a list that is handed over, one turn longer each time, and F."""

    def make() -> dict[str, Measure]:
        chat = ledger.open("synced", store=ledger.FolderStore(bench.new_place("synced")))
        messages: list[dict[str, str]] = []

        def grow(count: int) -> None:
            for _ in range(count):
                said = f"{len(messages)} {TEXT}"
                messages.append({"role": "user", "content": said})
                messages.append({"role": "assistant", "content": said})

        def once() -> float:
            grow(1)
            return timed(lambda: chat.sync(messages, format="openai"))

        grow(turns)
        chat.sync(messages, format="openai")
        data = b"x" * size_of(turn_records("", ["", ""]))
        return {"ours": once, "floor": floors.appends(bench.new_place("floor"), data)}

    return make
