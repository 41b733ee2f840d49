"""Rated turns as rows: what somebody who trains or evaluates a program has of each. Pure.

What counts for a turn is the mean of its ratings: of each person what they said last. True is 1, False is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.records import kinds
from ledger.views import context, exchange, steps
from ledger.views.nodes import Node, Tree, model_of, payload, reads
from ledger.views.ratings import Rating, mean
from ledger.views.ratings import labels as labels_of
from ledger.views.ratings import ratings as ratings_of

Row = dict[str, Any]
KEYS = (
    *("conversation", "group", "turn", "parent", "state", "inputs", "outputs", "rating", "ratings"),
    *("earlier", "model", "labels", "program", "version", "helpers", "made_by", "reads"),
)
"""What a row has, in its order."""


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
    name = program.name if program is not None else None
    version: str | None = node.program
    made_by = _object(payload(node.record, "made_by"))
    if made_by is not None:
        # How good a merge is says how good what made it is, and not the turn's program.
        name, version = (_text(made_by.get(key)) for key in ("name", "version"))
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
        "program": name,
        "version": version,
        "helpers": _helpers(tree, node),
        "made_by": made_by,
        "reads": [_answer(tree, tree.node(turn)) for turn in reads(tree, node)],
    }


def _answer(tree: Tree, node: Node) -> Row:
    """Return a turn that a merge reads, as its program was given it; one that was forgotten says nothing."""
    return {
        "turn": node.id,
        "model": model_of(node),
        "inputs": node.inputs(),
        "outputs": node.outputs(),
        "result": exchange.result(tree, node),
    }


def _object(value: Any) -> Row | None:
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _helpers(tree: Tree, node: Node) -> list[Row]:
    """Return the calls of remembered helpers in a turn, each with the earlier calls that it was shown."""
    standing = steps.standing(node, max(1, node.attempt))
    told = [_helper(call) for call in standing]
    shown = [_shown(call) for call in standing]
    wanted = {name for each in shown for name in each}
    found: dict[str, dict[str, Any]] = {}
    at: Node | None = node
    while at is not None and wanted - found.keys():
        # Also what an attempt that came to nothing called: it was shown all the same.
        found |= {call.call: steps.call_said(call) for call in at.calls if call.call in wanted}
        at = tree.nodes.get(at.parent or "")
    for row, each in zip(told, shown, strict=True):
        row["earlier"] = [
            steps.call_row(found[name], steps=tools)
            for name, tools in each.items()
            if name in found
        ]
    return told


def _shown(call: kinds.Call) -> dict[str, bool]:
    """Return the calls that a helper's call saw, by their ids, in order: whether with their tools."""
    saw = kinds.mappings(call.saw, call.seq, f"turn {call.turn}")
    return {entry["call"]: entry.get("steps") is True for entry in saw if _text(entry.get("call"))}


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
