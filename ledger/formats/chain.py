"""Records named by what was said up to them: for sources whose records have no ids. Pure.

A line of a training file or an agent's saved history is a list of messages without ids, or with ids
that hold in that list alone. A prompt is named by all that was said up to it, itself included; a
record of an answer by all that was said up to the end of that answer, and its place in it. So

(1) the same list gives the same names wherever it is read, and a longer one keeps those of its turns;
(2) two lists that begin alike share the turns they have in common and are branches from there on,
    although each is read alone: in one file, in two, today or next year.

Must stay in step: docs/decisions/0055-records-named-by-what-was-said.md. Names are compared for ever.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ledger.formats.nodes import Node

_LENGTH = 24
"""Hex digits of a name: 96 bits, so that no two records of a store have one by chance."""


@dataclass(slots=True, frozen=True)
class Link:
    """One record of a list, before it has its name."""

    node: Node
    """Without its id and parent."""
    key: Any
    """What makes it this record and no other: JSON, as the source has it."""
    own: str | None = None
    """The id it has in its list; it is put before its name, for people."""


def named(links: Sequence[Link]) -> list[Node]:
    """Return the records of a list as a line of nodes."""
    before, parent = "", None
    out: list[Node] = []
    for turn in turns_of(links):
        nodes, before = name_turn(turn, before, parent)
        out += nodes
        parent = nodes[-1].id
    return out


def branches(lists: Sequence[Sequence[Link]]) -> list[Node]:
    """Return the records of lists that begin alike as a tree: each once."""
    by_id: dict[str, Node] = {}
    for links in lists:
        for node in named(links):
            by_id.setdefault(node.id, node)
    return list(by_id.values())


def beginning(links: Sequence[Link]) -> str:
    """Return the name of a list's beginning: all up to the first answer, or the answer without a prompt.

    Lists that begin alike are branches of one conversation.
    """
    digest = ""
    for i, link in enumerate(links):
        asked = any(before.node.kind == "prompt" for before in links[:i])
        if asked and link.node.kind in ("answer", "step"):
            break
        digest = _digest(digest, link.key)
    return digest[:_LENGTH]


def prefixes(keys: Iterable[Any]) -> Iterator[str]:
    """Yield the name of each beginning of a list of records: of the first, of the first two, ..."""
    digest = ""
    for key in keys:
        digest = _digest(digest, key)
        yield digest[:_LENGTH]


def turns_of(links: Sequence[Link]) -> list[list[Link]]:
    """Return a list cut into turns: context and prompts, then all up to the next prompt.

    Context that nothing follows is a turn of its own: it belongs to what is said next.
    """
    turns: list[list[Link]] = []
    waiting: list[Link] = []
    for link in links:
        waiting.append(link)
        if link.node.kind in ("aside", "nothing"):
            continue
        if not turns or (link.node.kind == "prompt" and turns[-1][-1].node.kind != "prompt"):
            turns.append([])
        turns[-1] += waiting
        waiting = []
    return [*turns, waiting] if waiting else turns


def name_turn(turn: Sequence[Link], before: str, parent: str | None) -> tuple[list[Node], str]:
    """Return the nodes of a turn, and the name of all up to its end.

    Args: before: the name of all before it. parent: the last record before it.
    """
    answered = (i for i, link in enumerate(turn) if link.node.kind in ("answer", "step"))
    first = next(answered, len(turn))
    names = []
    for link in turn[:first]:
        before = _digest(before, link.key)
        names.append(before)
    for link in turn[first:]:
        before = _digest(before, link.key)
    names += [_digest(before, place) for place in range(len(turn) - first)]
    nodes = []
    for link, name in zip(turn, names, strict=True):
        own = f"{link.own}." if link.own else ""
        nodes.append(replace(link.node, id=own + name[:_LENGTH], parent=parent))
        parent = nodes[-1].id
    return nodes, before


def _digest(before: str, key: Any) -> str:
    text = json.dumps([before, key], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
