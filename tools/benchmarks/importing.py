"""Point 10: importing an export of ChatGPT's, beside decoding it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools.benchmarks import exports, processes
from tools.benchmarks.rows import Bench, Measure, Row, Runs

IMPORT = (
    processes.LOADED
    + processes.PEAK
    + """
import json
from ledger.sources.importing import import_conversations
store = ledger.FolderStore(sys.argv[2])
before, begun, worked = peak(), time.perf_counter(), time.process_time()
report = import_conversations(sys.argv[1], store=store)
assert report.turns
print(json.dumps({"seconds": time.perf_counter() - begun, "worked": time.process_time() - worked,
                  "peak": peak() - before}))
"""
)
DECODE = """
import json
import msgspec
begun, worked = time.perf_counter(), time.process_time()
with open(sys.argv[1], "rb") as file:
    msgspec.json.decode(file.read())
print(json.dumps({"seconds": time.perf_counter() - begun, "worked": time.process_time() - worked}))
"""
SOME = 20e6
"""The documented bound: this, and so many times the largest conversation."""
TIMES = 12


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    title = f"import a ChatGPT export of {bench.sizes.export_mb:g} MB"
    ours = Runs(lambda: processes.told(IMPORT, made(bench)[0], bench.new_place("imported")))
    bare = Runs(lambda: processes.told(DECODE, made(bench)[0]))

    def bound() -> float:
        return SOME + TIMES * made(bench)[1]

    def beside(key: str) -> Callable[[], Mapping[str, Measure]]:
        return lambda: {"ours": ours.figure(key), "floor": bare.figure(key)}

    yield Row(10, f"{title}, to decoding it", beside("seconds"), 8)
    yield Row(10, f"{title}, to decoding it: CPU", beside("worked"), 8)
    memory = f"{title}: memory, to 20 MB + 12 × its largest"
    yield Row(10, memory, lambda: {"ours": ours.figure("peak"), "floor": bound}, 1, "MiB")


def made(bench: Bench) -> tuple[Path, int]:
    """Return an export, made once, and the bytes of its largest conversation."""
    path = bench.folder / "conversations.json"
    talks = exports.talks_of(int(bench.sizes.export_mb * 1e6))
    if not path.exists():
        exports.write_chatgpt(path, talks)
    sizes = (len(json.dumps(exports.chatgpt_talk(n, longer=False))) for n in range(min(talks, 500)))
    return path, max(sizes)
