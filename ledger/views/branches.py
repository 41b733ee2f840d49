"""Branches, heads, and where branches meet: questions about the shape of the tree. No recursion."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.views.nodes import Tree, readable_reads


def branch(tree: Tree, turn: str) -> list[str]:
    """Return the turns from the first to a turn, following parents. Raises: turn-unknown."""
    found = [tree.node(turn).id]
    while (parent := tree.nodes[found[-1]].parent) is not None:
        found.append(parent)
    return found[::-1]


def latest(tree: Tree, turn: str) -> str:
    """Return the latest turn in log order that is this one or descends from it.

    Costs as much as the turn has descendants. Raises: turn-unknown.
    """
    best = tree.node(turn)
    below = list(best.children)
    while below:
        node = tree.nodes[below.pop()]
        below.extend(node.children)
        if node.seq > best.seq:
            best = node
    return best.id


def heads(tree: Tree) -> list[str]:
    """Return the leaves that a person may continue, newest first.

    Left out: a turn that ended without an answer and has no kept descendant (its parent is then a
    leaf, if nothing else is below it), and a leaf that a done merge reads.
    """
    leaves: list[str] = []
    continued: set[str | None] = set()
    merged: set[str] = set()
    for turn in reversed(tree.order):  # children before their parents
        node = tree.nodes[turn]
        answerless = node.outcome is not None and not node.done
        if answerless and turn not in continued:
            continue
        if turn not in continued:
            leaves.append(turn)
        continued.add(node.parent)
        if node.done:
            merged.update(readable_reads(tree, node))
    return [turn for turn in leaves if turn not in merged]


def merge_base(tree: Tree, a: str, b: str) -> str | None:
    """Return the nearest turn that is on both branches; None when their roots differ.

    A turn is on its own branch. Raises: turn-unknown.
    """
    met = tree.met(tree.node(a), tree.node(b))
    return met.id if met is not None else None


def meeting(tree: Tree, turns: Iterable[str]) -> str | None:
    """Return the nearest turn that is on the branches of all these turns; None when there is none.

    Raises: turn-unknown. ValueError: no turns.
    """
    first, *others = dict.fromkeys(turns)
    at: str | None = tree.node(first).id
    for other in others:
        at = merge_base(tree, at, other) if at is not None else None
    return at


def meeting_place(tree: Tree, turns: Iterable[str]) -> str | None:
    """Return where a merge of these turns lands: the parent that they share, else the nearest
    common ancestor that is none of them; None when there is none.

    Raises: turn-unknown. ValueError: no turns.
    """
    nodes = [tree.node(turn) for turn in dict.fromkeys(turns)]
    if not nodes:
        raise ValueError("a merge names the turns that it merges")
    if len({node.parent for node in nodes}) == 1:
        return nodes[0].parent
    merged = [node.id for node in nodes]
    place = meeting(tree, merged)
    while place is not None and place in merged:
        place = tree.nodes[place].parent
    return place
