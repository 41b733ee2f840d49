"""Points 7 and 8: many turns that run on one event loop, and a turn that another process watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tools.benchmarks import processes
from tools.benchmarks.rows import Bench, Measure, Row, Runs

EVERY_S = 0.05
"""Twenty pieces a second."""

TICKING = """
import asyncio, json, threading
count, seconds, every = int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
late = []
async def ticking():
    while True:
        due = time.perf_counter() + 0.01
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - due)
def reset():
    late.clear()
    return time.perf_counter(), time.process_time(), time.thread_time()
def tell(start):
    took = time.perf_counter() - start[0]
    loop = time.thread_time() - start[2]
    elsewhere = time.process_time() - start[1] - loop
    late.sort()
    names = [thread.name for thread in threading.enumerate()]
    print(json.dumps({
        "p99": late[int((len(late) - 1) * 0.99)], "loop": loop / took, "elsewhere": elsewhere / took,
        "keepers": names.count("ledger-keeper"), "threads": len(names),
    }))
"""
"""Defines what measures an event loop. Arguments: a folder, how many turns, for how long, how often a piece."""

RUNNING = (
    processes.LOADED
    + TICKING
    + """
import ledger.aio
store = ledger.FolderStore(sys.argv[1])
began = 0
ended = asyncio.Event()
everyone = asyncio.Event()
async def talking(message):
    global began
    began += 1
    if began == count:
        everyone.set()
    while not ended.is_set():
        ledger.current().emit("some words ")
        await asyncio.sleep(every)
    return "said"
async def main():
    chats = [ledger.aio.open(f"c{number}", talking, store=store) for number in range(count)]
    tasks = [asyncio.create_task(chat.send("talk")) for chat in chats]
    await everyone.wait()
    ticks = asyncio.create_task(ticking())
    await asyncio.sleep(min(1, seconds))
    start = reset()
    await asyncio.sleep(seconds)
    tell(start)
    ended.set()
    await asyncio.gather(*tasks)
    ticks.cancel()
asyncio.run(main())
"""
)
BARE = (
    TICKING
    + """
pieces = []
async def talking():
    while True:
        pieces.append("some words ")
        await asyncio.sleep(every)
async def main():
    tasks = [asyncio.create_task(talking()) for _ in range(count)]
    ticks = asyncio.create_task(ticking())
    await asyncio.sleep(min(1, seconds))
    start = reset()
    await asyncio.sleep(seconds)
    tell(start)
asyncio.run(main())
"""
)
"""As many coroutines that wake as often, without a ledger."""

TALKING = (
    processes.LOADED
    + """
def talking(message):
    for _ in range(int(sys.argv[2])):
        ledger.current().emit(f"{time.time()} ")
        time.sleep(float(sys.argv[3]))
    return "said"
chat = ledger.open("watched", talking, store=ledger.FolderStore(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
chat("talk")
"""
)
WATCHING = (
    processes.LOADED
    + """
store = ledger.FolderStore(sys.argv[1])
chat = ledger.open("watched", store=store)
print("ready", flush=True)
while chat.head is None:
    time.sleep(0.001)
late = []
for event in chat.head.events():
    if event["kind"] == "text":
        shown = time.time()
        late += [shown - float(said) for said in event["text"].split()]
late.sort()
assert len(late) == int(sys.argv[2])
print(late[int((len(late) - 1) * 0.99)])
"""
)


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    title = f"{bench.sizes.running:,} running async turns"
    ours, bare = runs(bench, RUNNING), runs(bench, BARE)
    late = {"ours": ours.figure("p99"), "bare coroutines": bare.figure("p99")}
    keeping = {"ours": ours.figure("elsewhere")}
    loop = {"ours": ours.figure("loop"), "bare coroutines": bare.figure("loop")}
    yield Row(7, f"{title}: lateness of the loop, p99", as_they_are(late), 0.010)
    yield Row(7, f"{title}: keeping, of one core", as_they_are(keeping), 0.25, "share")
    yield Row(7, f"{title}: the loop itself, of one core", as_they_are(loop), None, "share")
    keepers = as_they_are({"ours": ours.figure("keepers")})
    yield Row(7, f"{title}: keeper threads", keepers, 1, "count")
    threads = as_they_are({"ours": ours.figure("threads")})
    yield Row(7, f"{title}: threads", threads, None, "count")
    watched = f"{bench.sizes.pieces} pieces, from emitted to shown by another process, p99"
    yield Row(8, watched, lambda: {"ours": lambda: watch(bench)}, 0.100)


def as_they_are(measures: Mapping[str, Measure]) -> Callable[[], Mapping[str, Measure]]:
    """Return measures that need nothing prepared."""
    return lambda: measures


def runs(bench: Bench, code: str) -> Runs:
    """Return runs of one event loop, with a ledger or without."""
    sizes = bench.sizes
    return Runs(
        lambda: processes.told(
            code, bench.new_place("running"), sizes.running, sizes.seconds, EVERY_S
        )
    )


def watch(bench: Bench) -> float:
    """Return how late the latest in a hundred pieces of a turn was shown in another process."""
    folder, pieces = bench.new_place("watched"), bench.sizes.pieces
    talking = processes.start(TALKING, folder, pieces, EVERY_S / 2)
    watching = processes.start(WATCHING, folder, pieces)
    for each in (talking, watching):  # Python starts, and imports, before the first piece is said.
        assert each.stdout is not None
        each.stdout.readline()
    talking.communicate("go\n")
    out, _ = watching.communicate()
    if talking.returncode or watching.returncode:
        raise processes.Failed("one of two processes")
    return float(out.splitlines()[-1])
