"""A branch as the list of messages that a framework hands over, and where such a list goes. Pure.

The list of a branch is: the instructions in force, what each of its `done` turns said, and what was left
over when the list was kept last. Three entries of plugin `ledger` say what turns do not:

- `instructions` at a turn: the instructions that were handed over with it, where others were in force;
- `left` at a turn (none: before the first): the messages behind it that made no whole turn;
- `cleared`: from here on the head is before the first turn, until there is a turn or the head is moved.

A line is seen through turns that ended without an answer, or were forgotten: they are no part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ledger.records import kinds, messages
from ledger.records.messages import Message
from ledger.records.transcripts import without_instructions
from ledger.views import exchange
from ledger.views.nodes import LEFT, Node, Tree
from ledger.views.place import nearest_done


def said(tree: Tree, node: Node) -> list[Message]:
    """Return what a turn said; of the first of a line without the instructions. Raises: store-corrupt."""
    every = [*exchange.asked(node), *exchange.answered(tree, node)]
    behind_another = nearest_done(tree, node.parent) is not None
    return every if behind_another else without_instructions(every)


def below(tree: Tree, turn: str | None) -> Iterator[str]:
    """Yield the done turns that continue a turn (None: begin a line), in no order."""
    todo = list(tree.roots if turn is None else tree.node(turn).children)
    while todo:
        node = tree.nodes[todo.pop()]
        if node.done:
            yield node.id
        else:
            todo.extend(node.children)


def followed(
    tree: Tree,
    start: str | None,
    wanted: Iterable[Any],
    fits: Callable[[str, Any], bool],
    prefer: Callable[[], Iterable[str]],
) -> tuple[str | None, int]:
    """Follow turns that say what is wanted, one after the other, from a turn (None: the beginning).

    Where several fit, the way is taken that leads furthest; of several such, one of those to prefer, else
    the latest. Returns: the last turn that fits, and how many did.
    """
    places: list[str | None] = [start]
    count = 0
    for want in wanted:
        found = [turn for at in places for turn in below(tree, at) if fits(turn, want)]
        if not found:
            break
        places, count = list(found), count + 1
    if len(places) == 1:
        return places[0], count
    preferred = set(prefer())
    best = max((p for p in places if p), key=lambda p: (p in preferred, tree.nodes[p].ordinal))
    return best, count


def left(tree: Tree, turn: str | None) -> list[Message]:
    """Return what was left over behind a turn when its list was kept last. Raises: store-corrupt."""
    found = [entry for entry in tree.kept.get(LEFT, ()) if entry.turn == turn]
    if not found or (turn is None and found[-1].seq < tree.cleared):
        return []
    return _messages(found[-1])


def listed(tree: Tree, turn: str | None) -> list[Message]:
    """Return the list of a branch up to a turn, what was left over behind it included. Raises: store-corrupt."""
    line = [node for node in tree.upward(turn) if node.done][::-1]
    out = exchange.instructions(tree, turn)
    for node in line:
        out += said(tree, node)
    return [*out, *left(tree, line[-1].id if line else None)]


def _messages(entry: kinds.Entry) -> list[Message]:
    return messages.readable(kinds.payload(entry.data, entry.seq)) or []
