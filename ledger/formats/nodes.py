"""The records of a source as nodes of a forest: mended, so that every walk ends. Pure.

Parent pointers alone make the structure. Sources hold parents that are not there, records that are
their own parents, circles, and ids twice (the first record is kept); each is mended in one way, and
counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ledger.formats.base import Message, Notes

Kind = Literal["prompt", "answer", "step", "aside", "nothing"]
"""`prompt`: what the user says. `answer`: what is said back. `step`: thinking, tool calls and
results. `aside`: hidden context, kept with the next turn below. `nothing`: walked through."""


@dataclass(slots=True, eq=False)
class Node:
    """One record of a source."""

    id: str
    parent: str | None
    kind: Kind
    rank: int | None = None
    """Its place in the parent's list of children; None when that does not list it."""
    created: datetime | None = None
    updated: datetime | None = None
    text: str = ""
    """What the user says, or what is said back, in a step also on the way to an answer."""
    messages: list[Message] = field(default_factory=list)
    model: str | None = None
    usage: dict[str, int] | None = None
    """The token counts of this record alone."""
    cut: str | None = None
    """Why this record is not whole: `length`, `in_progress`, ...; None when it is."""
    closed: bool = False
    """Whether a step ended its turn: nothing will answer it any more, since the user stopped it."""


def mended(nodes: Iterable[Node], notes: Notes) -> dict[str, Node]:
    """Return the records by id, each once, with no unknown parent and no circle."""
    by_id: dict[str, Node] = {}
    for node in nodes:
        if by_id.setdefault(node.id, node) is not node:
            notes.counts["records whose id came twice left out"] += 1
    for node in by_id.values():
        if node.parent is not None and node.parent not in by_id:
            notes.counts["records whose parent is not there made a start of their own"] += 1
            node.parent = None
    _cut_circles(by_id, notes)
    return by_id


def _cut_circles(by_id: dict[str, Node], notes: Notes) -> None:
    done: set[str] = set()
    for start in by_id:
        way: dict[str, None] = {}
        at: str | None = start
        while at is not None and at not in done and at not in way:
            way[at] = None
            at = by_id[at].parent
        if at is not None and at in way:
            circle = list(way)[list(way).index(at) :]
            by_id[min(circle)].parent = None
            notes.counts["circles of parents cut"] += 1
        done.update(way)


def children_of(nodes: Iterable[Node]) -> dict[str | None, list[Node]]:
    """Return the children of each record: as its list orders them, then the rest as they come."""
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    for siblings in children.values():
        siblings.sort(key=lambda node: (node.rank is None, node.rank or 0))
    return children
