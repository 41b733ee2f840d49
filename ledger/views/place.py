"""Where a new turn goes: under a parent, after a turn that still runs, or nowhere for now.

Only a turn that ended `done` is ever a parent: the others have no answer to show.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from ledger.errors import Busy, BusyWaiting, StoreCorrupt
from ledger.views.branches import latest
from ledger.views.nodes import Node, Tree
from ledger.views.states import Dead, state, unanswered

Sends = Literal["queue", "refuse", "branch"]


class Place(msgspec.Struct, frozen=True):
    """Where a new turn goes. `kind` says which one of the other fields is meaningful."""

    kind: Literal["parent", "waits_for", "refusal"]
    parent: str | None = None
    """The turn to continue; None: the new turn is a root."""
    waits_for: str | None = None
    """The running turn to wait for; then ask again."""
    refusal: Busy | None = None
    """The error to raise: Busy, or BusyWaiting with the open questions."""


def place(
    tree: Tree,
    at: str | None = None,
    *,
    now: datetime,
    sends: Sends = "queue",
    dead: Dead = frozenset(),
) -> Place:
    """Decide where a new turn goes.

    Args: at: continue from exactly this turn; None: from the head. now: an aware datetime. sends:
    what to do when that turn still runs: wait for it, refuse, or go beside it.
    Raises: turn-unknown.
    """
    if sends not in get_args(Sends):
        raise ValueError(f"sends is one of {', '.join(get_args(Sends))}, not {sends!r}")
    turn = at if at is not None else tree.head
    if turn is None:
        return Place("parent")
    node = tree.node(turn)
    doing = state(node, now=now, dead=dead)
    if doing == "running" and sends == "queue":
        return Place("waits_for", waits_for=turn)
    if doing == "running" and sends == "refuse":
        return Place("refusal", refusal=Busy(conversation=tree.conversation, turn=turn))
    if doing == "waiting" and sends != "branch":
        return Place("refusal", refusal=_waiting(tree, node))
    return Place("parent", parent=nearest_done(tree, turn))


class Cursor(msgspec.Struct, frozen=True):
    """Where a view stands, before the log says which turn that is now."""

    kind: Literal["head", "start", "exactly", "branch"] = "head"
    turn: str | None = None

    @classmethod
    def exactly(cls, turn: str) -> Cursor:
        """Stand on this very turn, whatever follows it."""
        return cls("exactly", turn)

    @classmethod
    def start(cls) -> Cursor:
        """Stand before the first turn: the next one starts a line of its own."""
        return cls("start")

    @classmethod
    def branch_of(cls, turn: str) -> Cursor:
        """Stand on the latest turn that is this one or descends from it."""
        return cls("branch", turn)

    def resolve(self, tree: Tree) -> str | None:
        """Return the turn a view stands on now; None: there is none yet.

        A log that was made anew no longer has the turn: then the head is followed.
        """
        if self.kind == "start":
            return None
        if self.turn is None or self.turn not in tree.nodes:
            return tree.head
        return latest(tree, self.turn) if self.kind == "branch" else self.turn


def newest(tree: Tree, cursor: Cursor) -> str | None:
    """Return the newest turn where a view stands that did not end without an answer; None: there is none.

    Of a view on an exact turn that is not the head it is the newest behind that turn.
    """
    at = cursor.resolve(tree)
    if at is not None and cursor.kind == "exactly" and at != tree.head:
        at = latest(tree, at)
    return nearest_alive(tree, at)


def nearest_alive(tree: Tree, turn: str | None) -> str | None:
    """Return the turn if it is done or did not end yet, else its nearest ancestor that is; None: there is none."""
    alive = (node.id for node in tree.upward(turn) if node.done or node.outcome is None)
    return next(alive, None)


def nearest_done(tree: Tree, turn: str | None) -> str | None:
    """Return the turn if it is done, else its nearest ancestor that is; None: there is none."""
    return next((node.id for node in tree.upward(turn) if node.done), None)


def _waiting(tree: Tree, node: Node) -> BusyWaiting:
    """Make the refusal. Questions that do not decode are left out: the next step is the same."""
    questions: list[Any] = []
    with suppress(StoreCorrupt):
        questions = unanswered(node)
    return BusyWaiting(conversation=tree.conversation, turn=node.id, questions=tuple(questions))
