"""Points 2 and 3: what a new process waits for. Imports are not counted; theme `starting` has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import ledger
from ledger.turns.world import SYSTEM
from tools.benchmarks import floors, processes
from tools.benchmarks.logs import ASKED_BEFORE, CHAT, log_of, size_of, turn_records
from tools.benchmarks.rows import Bench, Measure, Row

OPENED = (
    processes.LOADED
    + """
from tools.benchmarks.logs import CHAT, TEXT, turn_records
from ledger.turns.world import SYSTEM
def answer(message: str) -> str:
    return TEXT
from ledger import merging
from ledger.records import kinds
folder, last, middle, left, right = sys.argv[1:6]
turn = SYSTEM.turn_id()
records = turn_records(turn, [last])
begun = time.perf_counter()
store = ledger.FolderStore(folder)
"""
)
END = "\nprint(time.perf_counter() - begun)\n"

STORE = "store.append(CHAT, records)"
RECORD = "ledger.open(CHAT, store=store).record(TEXT, TEXT)"
SEND = "ledger.open(CHAT, answer, store=store, context=ledger.last_turns(10))(TEXT)"
HEAD = "ledger.open(CHAT, store=store).continue_from(last).record(TEXT, TEXT)"
MIDDLE = "ledger.open(CHAT, store=store).continue_from(middle).record(TEXT, TEXT)"
MERGE = "ledger.open(CHAT, store=store).merge([left, right], by=merging.pick(left))"
SCRIPTS = {
    "`store.append`": STORE,
    "open, `record`": RECORD,
    "`chat()`, `last_turns(10)`": SEND,
    "`continue_from` the end, `record`": HEAD,
    "`continue_from` the middle, `record`": MIDDLE,
    "`merge` two at the end": MERGE,
}
LAST = """
for record in store.scan(CHAT, int(store.append(CHAT, [])) - 20):
    if isinstance(record, kinds.Turn):
        kinds.payload(record.inputs)
"""
UNKNOWN = SEND.replace("(TEXT)", "(TEXT, request_id=turn)")
KNOWN = f'assert ledger.open(CHAT, store=store).turn(request_id="{ASKED_BEFORE}").id == middle'


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    lengths = bench.sizes.lengths
    for turns in lengths:
        for name, script in SCRIPTS.items():
            at = f"new process, {turns:,} turns: {name}"
            make = appending(bench, turns, script)
            yield Row(2, at, make, 10, repetitions=few(bench, turns, script))
        yield Row(3, f"new process, {turns:,} turns: the last 10", last(bench, turns), 10)
    for turns in lengths[-1:]:
        for name, script in (("an unknown", UNKNOWN), ("a known", KNOWN)):
            at = f"new process, {turns:,} turns: {name} `request_id`"
            make = looking(bench, turns, script)
            yield Row(3, at, make, 0.5, repetitions=few(bench, turns, script))


def few(bench: Bench, turns: int, script: str) -> int | None:
    """Return fewer repetitions for what reads a very long log whole."""
    return 3 if turns == bench.sizes.huge and script in (MIDDLE, KNOWN) else None


def appending(bench: Bench, turns: int, script: str) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares a new process that adds a turn, and F in a new process."""

    def make() -> dict[str, Measure]:
        beside, size = bench.new_place("floor"), size_of(turn_records(SYSTEM.turn_id(), ["", ""]))
        return {
            "ours": new_process(bench, turns, script),
            "floor": lambda: processes.number(floors.NEW_PROCESS_APPEND, beside, size),
        }

    return make


def last(bench: Bench, turns: int) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares a new process that reads the last ten turns."""

    def make() -> dict[str, Measure]:
        ours = new_process(bench, turns, LAST)
        log = log_of(bench.conversation(turns)[0])
        return {
            "ours": ours,
            "floor": lambda: processes.number(floors.NEW_PROCESS_LAST, log),
        }

    return make


def looking(bench: Bench, turns: int, script: str) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares a new process that looks for a request id."""
    return lambda: {"ours": new_process(bench, turns, script)}


def new_process(bench: Bench, turns: int, script: str) -> Measure:
    """Return what runs a script in a new process on a conversation that ends in two branches."""
    folder, names = bench.conversation(turns, name="shown" if "last_turns" in script else "kept")
    chat = ledger.open(CHAT, store=ledger.FolderStore(folder))
    ends = [chat.continue_from(names[-1]).record("asked", answer).id for answer in "ab"]
    code, middle = OPENED + script + END, names[len(names) // 2]
    return lambda: processes.number(code, folder, names[-1], middle, *ends)
