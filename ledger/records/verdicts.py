"""What the lines of a log are found to be: each by itself, or as one many of which all is well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Literal, NamedTuple

import msgspec

Verdict = Literal["sealed", "unsealed", "erased", "unprovable", "suspect", "void", "unreadable"]
"""What a line is: `sealed` (its seal checks), `unsealed` (another writer's), `erased` (a tombstone),
`unprovable` (its seal covers a tombstone), `suspect` (its seal, or the one covering it, does not
check), `void` (of a batch that was never finished), `unreadable` (no record)."""

HANDED_OUT = frozenset({"sealed", "unsealed", "erased", "unprovable"})
"""The verdicts whose lines are read; the others keep their place and are `unreadable`."""


class Line(msgspec.Struct, gc=False):
    """One line of a log that is not blank: where it is, its place, and what it is."""

    start: int
    end: int
    """Offset of its line feed (or of the end of the data, when that is missing)."""
    seq: int
    """Its place among the lines that are not blank; the first is 1."""
    verdict: Verdict
    written: int | None
    """The place that its seal names; None: it has none."""

    @property
    def last(self) -> int:
        """Its place."""
        return self.seq


class Stretch(NamedTuple):
    """Good lines, one behind the other, all of batches that are whole: nothing that follows has a say about them."""

    seq: int
    """The place of the first, among all lines of the log and as its seal names it."""
    base: int
    """What makes offsets in the log of the bounds, when it is added."""
    bounds: Sequence[int]
    """Where each begins, and the place behind the line feed of the last."""

    @property
    def start(self) -> int:
        """Offset of the first."""
        return self.base + self.bounds[0]

    @property
    def end(self) -> int:
        """Offset of the last one's line feed."""
        return self.base + self.bounds[-1] - 1

    @property
    def last(self) -> int:
        """The place of the last."""
        return self.seq + len(self.bounds) - 2


Found = Line | Stretch


def each(found: Iterable[Found]) -> list[Line]:
    """Return lines, each by itself."""
    lines: list[Line] = []
    for part in found:
        if isinstance(part, Line):
            lines.append(part)
            continue
        starts, ends = part.base.__add__, (part.base - 1).__add__
        seqs = range(part.seq, part.last + 1)
        sealed: repeat[Verdict] = repeat("sealed")
        bounds = part.bounds
        lines += map(Line, map(starts, bounds), map(ends, bounds[1:]), seqs, sealed, seqs)
    return lines
