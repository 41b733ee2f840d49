"""Point 9: what importing costs."""

from __future__ import annotations

import compileall
from collections.abc import Callable, Iterator, Mapping

from tools.benchmarks import processes
from tools.benchmarks.rows import Bench, Measure, Row

END = "\nprint(time.perf_counter() - begun)\n"
BEGIN = "begun = time.perf_counter()\n"
STORE = "import ledger\nledger.FolderStore(sys.argv[1])"
CONVERSATION = "import ledger\nledger.open('a', store=sys.argv[1])"
HELP = """
import subprocess
subprocess.run([sys.executable, "-m", "ledger", "--help"], stdout=subprocess.DEVNULL, check=True)
"""
TYPER = """
import subprocess
subprocess.run([sys.executable, "-c", "import typer"], check=True)
"""


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    compiled()
    yield Row(
        9, "`import ledger`, to `import msgspec`", new(bench, "import ledger", "msgspec"), 1.6
    )
    three = new(bench, STORE, "msgspec, portalocker, filelock")
    yield Row(9, "open the first folder store, to its three imports", three, 1.3)
    conversation = new(bench, CONVERSATION, "msgspec, portalocker, filelock")
    yield Row(9, "open the first conversation, to the same imports", conversation)
    yield Row(9, "`turn-ledger --help`, to `import typer`, processes", shown(), 1.3)


def compiled() -> None:
    """Compile this checkout's modules, as installing a package does: those of the floors are."""
    compileall.compile_dir(processes.ROOT / "ledger", quiet=2)


def new(bench: Bench, ours: str, floor: str) -> Callable[[], Mapping[str, Measure]]:
    """Return what times a script and imports, each in a new process."""
    place = bench.folder / "new"
    return lambda: {
        "ours": lambda: processes.number(BEGIN + ours + END, place),
        "floor": lambda: processes.number(f"{BEGIN}import {floor}{END}"),
    }


def shown() -> Callable[[], Mapping[str, Measure]]:
    """Return what times whole processes: the command's help, and Python that imports typer."""
    return lambda: {
        "ours": lambda: processes.number(BEGIN + HELP + END),
        "floor": lambda: processes.number(BEGIN + TYPER + END),
    }
