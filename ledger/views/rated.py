"""Rated turns as rows: what somebody who trains or evaluates a program has of each. Pure.

What counts for a turn is the mean of its ratings: of each person what they said last. True is 1, False is 0.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from ledger.records import kinds
from ledger.views import context, steps
from ledger.views.nodes import Node, Tree, model_of
from ledger.views.ratings import Rating
from ledger.views.ratings import labels as labels_of
from ledger.views.ratings import ratings as ratings_of

Row = dict[str, Any]
KEYS = (
    *("conversation", "group", "turn", "parent", "state", "inputs", "outputs", "rating", "ratings"),
    *("earlier", "model", "labels", "program", "version", "helpers"),
)
"""What a row has, in its order."""


def mean(given: Iterable[Rating]) -> float | None:
    """Return the mean of ratings, exact as far as a float is; None: there is none."""
    values = [rating.value + 0 for rating in given]
    return statistics.mean(values) if values else None


def rows(tree: Tree, conversation: str, group: str) -> Iterator[Row]:
    """Yield a row for each rated turn, in log order. Raises: store-corrupt.

    Args: group: what the conversation belongs together with is called.
    """
    where = {"conversation": conversation, "group": group}
    for turn in list(tree.order):
        given = ratings_of(tree, turn)
        if given:
            yield {**where, **_row(tree, tree.node(turn), given)}


def _row(tree: Tree, node: Node, given: list[Rating]) -> Row:
    program = tree.programs.get(node.program)
    return {
        "turn": node.id,
        "parent": node.parent,
        "state": "not over" if node.outcome is None else node.outcome,
        "inputs": node.inputs(),
        "outputs": node.outputs(),
        "rating": mean(given),
        "ratings": [rating.to_dict() for rating in given],
        "earlier": context.rows(tree, node.id),
        "model": model_of(node),
        "labels": labels_of(tree, node.id),
        "program": program.name if program is not None else None,
        "version": node.program,
        "helpers": [_helper(call) for call in steps.standing(node, max(1, node.attempt))],
    }


def _helper(call: kinds.Call) -> Row:
    """Return a remembered helper's call."""
    said = steps.call_said(call)
    exchange = said["lmcc"]
    return {
        "call": call.call,
        "site": call.site,
        "program": dict(said["program"]),
        "inputs": exchange.get("inputs", {}),
        "outputs": exchange.get("outputs", {}),
        "steps": exchange.get("steps", []),
        "tools": list(said["tools"]),
    }
