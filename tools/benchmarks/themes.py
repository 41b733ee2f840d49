"""All rows, theme by theme."""

from __future__ import annotations

from collections.abc import Iterator

from tools.benchmarks import (
    appending,
    branching,
    databases,
    importing,
    opening,
    peers,
    reading,
    running,
    starting,
    working,
    writers,
)
from tools.benchmarks.rows import Bench, Row

THEMES = (appending, opening, reading, branching, writers, running, starting, importing, working)


def rows(bench: Bench) -> Iterator[Row]:
    """Give every row, in the order of the targets, then what stands beside."""
    for theme in (*THEMES, databases):
        yield from theme.rows(bench)
    if bench.peers:
        yield from peers.rows(bench)
