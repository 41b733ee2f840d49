"""Points 2 and 3: what a new process waits for. Imports are not counted; theme `starting` has them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping

import ledger
from ledger.turns.world import SYSTEM
from tools.benchmarks import floors, processes
from tools.benchmarks.logs import ASKED_BEFORE, CHAT, find_turns, log_of, size_of, turn_records
from tools.benchmarks.rows import Bench, Measure, Row

OPENED = (
    processes.LOADED
    + """
from tools.benchmarks.logs import CHAT, TEXT, turn_records
from ledger.turns.world import SYSTEM
def answer(message: str) -> str:
    return TEXT
def asking(message: str) -> str:
    return ledger.current().messages("openai")[0]["content"]
from ledger import merging
from ledger.errors import TurnUnknown
from ledger.records import kinds
folder, last, middle, third, left, right = sys.argv[1:7]
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
MESSAGES = SEND.replace("answer", "asking")
HEAD = "ledger.open(CHAT, store=store).continue_from(last).record(TEXT, TEXT)"
MIDDLE = "ledger.open(CHAT, store=store).continue_from(middle).record(TEXT, TEXT)"
MERGE = "ledger.open(CHAT, store=store).merge([left, right], by=merging.pick(left))"
APART = MERGE.replace("left", "third")
SCRIPTS = {
    "`store.append`": STORE,
    "open, `record`": RECORD,
    "`chat()`, `last_turns(10)`": SEND,
    "`chat()` that asks for its messages, `last_turns(10)`": MESSAGES,
    "`continue_from` the end, `record`": HEAD,
    "`continue_from` the middle, `record`": MIDDLE,
    "`merge` two at the end": MERGE,
    "`merge` the end and a turn far back": APART,
}
LAST = """
for record in store.scan(CHAT, int(store.read_end(CHAT)) - 20):
    if isinstance(record, kinds.Turn):
        kinds.payload(record.inputs)
"""
UNKNOWN = SEND.replace("(TEXT)", "(TEXT, request_id=turn)")
KNOWN = f'assert ledger.open(CHAT, store=store).turn(request_id="{ASKED_BEFORE}").id == middle'
ASK_UNKNOWN = """
try:
    ledger.open(CHAT, store=store).turn(request_id=turn)
except TurnUnknown:
    pass
"""


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    lengths = bench.sizes.lengths
    for turns in lengths:
        for name, script in SCRIPTS.items():
            at = f"new process, {turns:,} turns: {name}"
            make = appending(bench, turns, script)
            yield Row(2, at, make, None if script is MESSAGES else 10)
        yield Row(3, f"new process, {turns:,} turns: the last 10", last(bench, turns), 10)
    for turns in lengths[-1:]:
        for name, script in (("an unknown", ASK_UNKNOWN), ("a known", KNOWN)):
            at = f"new process, {turns:,} turns: {name} `request_id` looked up"
            yield Row(3, at, looking(bench, turns, script), 0.005)
            alone = looking(bench, turns, script, without=True)
            yield Row(3, f"{at}, without an index", alone, 0.5, repetitions=few(bench, turns))
        at = f"new process, {turns:,} turns: `chat()` under an unknown `request_id`, `last_turns(10)`"
        yield Row(3, at, looking(bench, turns, UNKNOWN))


def few(bench: Bench, turns: int) -> int | None:
    """Return fewer repetitions for what reads a very long log whole."""
    return 3 if turns == bench.sizes.huge else None


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


def looking(
    bench: Bench, turns: int, script: str, *, without: bool = False
) -> Callable[[], Mapping[str, Measure]]:
    """Return what prepares a new process that looks for a request id. Args: without: there is no index."""

    def make() -> dict[str, Measure]:
        measure, folder = new_process(bench, turns, script), bench.conversation(turns)[0]
        if not without:
            find_turns(folder)

        def alone() -> float:
            shutil.rmtree(folder / "indexes", ignore_errors=True)
            return measure()

        return {"ours": alone if without else measure}

    return make


def new_process(bench: Bench, turns: int, script: str) -> Measure:
    """Return what runs a script in a new process on a conversation that ends in two branches."""
    folder, names = bench.conversation(turns, name="shown" if "last_turns" in script else "kept")
    chat = ledger.open(CHAT, store=ledger.FolderStore(folder))
    ends = [chat.continue_from(names[-1]).record("asked", answer).id for answer in "ab"]
    code, middle, third = OPENED + script + END, names[len(names) // 2], names[len(names) // 3]
    return lambda: processes.number(code, folder, names[-1], middle, third, *ends)
