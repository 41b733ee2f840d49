"""A row of the table, and how it is measured: ours and its floor in turn, medians of both."""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tools.benchmarks import logs, processes

Measure = Callable[[], float]
"""Runs something once and says what it took, in seconds or in the unit of its row."""

OURS, FLOOR = "ours", "floor"

Unit = Literal["ms", "MiB", "bytes", "share", "times", "count"]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    repetitions: int
    short: int
    """Turns of a short conversation."""
    long: int
    """Turns of a long one."""
    huge: int
    """Turns of a very long one; 0: none is made."""
    read: int
    """Turns of the conversation that is read whole."""
    appends: int
    """How many appends one figure is the median of."""
    each: int
    """Appends of each of several processes or threads."""
    running: int
    """Turns that run at once."""
    seconds: float
    """How long they run."""
    pieces: int
    """Pieces of the turn that is watched."""
    export_mb: float
    """Size of the export that is imported, in MB."""
    at_once: int = 8
    """Processes or threads that append at once."""

    @property
    def lengths(self) -> list[int]:
        """The lengths at which what must not depend on it is measured."""
        return sorted({self.short, self.long, self.huge or self.long})


TINY = Sizes(1, 12, 12, 0, 12, 1, 2, 3, 0.2, 3, 0.02, at_once=2)
"""To see that everything can be measured."""
QUICK = Sizes(5, 1_000, 20_000, 0, 10_000, 20, 50, 1_000, 2.0, 100, 3)
"""Some four minutes."""
FULL = Sizes(5, 1_000, 100_000, 500_000, 100_000, 100, 200, 1_000, 10.0, 400, 200)
"""Long conversations, and a million records."""


@dataclass
class Bench:
    """Where to measure, how much, and the conversations that were made for it."""

    folder: Path
    sizes: Sizes
    peers: bool = False
    _made: dict[int, list[str]] = field(default_factory=dict)
    _count: int = 0

    def conversation(self, turns: int, *, name: str = "kept") -> tuple[Path, list[str]]:
        """Return a folder store with one conversation of a line of turns, and their ids; made once.

        Args: name: who shares it. What is appended to it stays: after turns that were shown a window, a turn that
        is shown all names each of them.
        """
        made, place = self.folder / f"made-{turns}", self.folder / f"{name}-{turns}"
        if turns not in self._made:
            self._made[turns] = logs.make(made, turns)
        if not place.exists():
            shutil.copytree(made, place)
            logs.find_turns(place)
        return place, self._made[turns]

    def new_place(self, name: str) -> Path:
        """Return a path where nothing is yet."""
        self._count += 1
        return self.folder / f"{name}-{self._count}"


Make = Callable[[], Mapping[str, Measure]]


@dataclass(frozen=True)
class Row:
    """One thing that is measured."""

    point: int
    """Which point of the targets it belongs to; 0: none, it stands there to be compared."""
    name: str
    make: Make
    """Prepares it. Returns: `ours`, perhaps `floor`, and others by their names."""
    target: float | None = None
    """Ours over the floor at most; where there is no floor, ours at most, in the row's unit."""
    unit: Unit = "ms"
    repetitions: int | None = None

    @property
    def title(self) -> str:
        """The text that `--only` is looked for in."""
        return f"{self.point} {self.name}"


@dataclass(frozen=True)
class Result:
    """A row that was measured."""

    point: int
    name: str
    unit: Unit
    target: float | None
    medians: dict[str, float]

    @property
    def ours(self) -> float:
        """Our median."""
        return self.medians[OURS]

    @property
    def floor(self) -> float | None:
        """The floor's median."""
        return self.medians.get(FLOOR)

    @property
    def ratio(self) -> float | None:
        """Ours over the floor."""
        return None if not self.floor else self.ours / self.floor

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None: there is none."""
        if self.target is None:
            return None
        compared = self.ours if FLOOR not in self.medians else self.ratio
        return compared is not None and compared <= self.target


class Runs:
    """What runs tell of themselves: one run answers for several rows, once for each."""

    def __init__(self, run: Callable[[], Mapping[str, float]]) -> None:
        self._run = run
        self._told: list[Mapping[str, float]] = []
        self._asked: dict[str, int] = {}

    def figure(self, key: str) -> Measure:
        """Return what gives a figure: of a run that was not asked for it yet, else of a new one."""

        def next_one() -> float:
            number = self._asked.get(key, 0)
            self._asked[key] = number + 1
            if number == len(self._told):
                self._told.append(self._run())
            return self._told[number][key]

        return next_one


def timed(work: Callable[[], Any]) -> float:
    """Return how many seconds some work took."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def often(work: Callable[[], Any], times: int) -> float:
    """Return the median seconds of some work done several times."""
    return statistics.median(timed(work) for _ in range(times))


def measure(row: Row, repetitions: int) -> Result:
    """Run a row's measures in turn, and return the medians."""
    measures = row.make()
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(row.repetitions or repetitions):
        # The order turns too: who comes first in a round finds another cache than who comes last.
        names = list(measures)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            taken[name].append(measures[name]())
    medians = {name: statistics.median(values) for name, values in taken.items()}
    return Result(row.point, row.name, row.unit, row.target, medians)


def measured(
    rows: Iterator[Row], only: str, repetitions: int, failed: list[str]
) -> Iterator[Result]:
    """Measure the rows whose titles hold a text; say on stderr which one is at work.

    Args: failed: is given the names of those of which a process failed; the others go on.
    """
    for row in rows:
        if only.lower() not in row.title.lower():
            continue
        print(f"... {row.title}", file=sys.stderr, flush=True)
        try:
            result = measure(row, repetitions)
        except processes.Failed as error:
            print(f"... {row.title}: FAILED: {error}", file=sys.stderr, flush=True)
            failed.append(row.title)
        else:
            yield result
