"""Codex's rollouts: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`. Pure.

A conversation is a session with all that was forked from it: a fork's file begins with a copy of its
source's, whose nodes have the same names (`codex_walk`). A sub-agent's session is a side line; what
it was given of its parent's history is left out of it where the parent is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ledger.formats import codex_rollout as source
from ledger.formats import codex_walk, pieces
from ledger.formats.base import Draft, F, File, Notes, Skipped, turn_id
from ledger.formats.codex_rollout import Rollout
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "codex-cli"
home = re.compile(r"(.*/)?rollout-[^/]*\.jsonl", re.IGNORECASE)

_HEAD = 20
"""How many lines of a file are looked at to find what it was forked from."""


def looks_like(sample: object) -> bool:
    """Say whether a decoded line is one of a rollout, of any generation."""
    return source.is_known(sample)


def together(files: Sequence[F]) -> Iterable[Sequence[F]]:
    """Join sessions with what they were forked from, and sub-agents with those they work for."""
    heads = [source.head(file, _HEAD) for file in files]
    above = {head.id: head.parent or head.root for head in heads}
    found: dict[str, list[F]] = {}
    for file, head in zip(files, heads, strict=True):
        at, passed = head.id, set[str]()
        while (up := above.get(at, at)) != at and at not in passed:
            passed.add(at)
            at = up
        found.setdefault(min(passed) if at in passed else at, []).append(file)
    return found.values()


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read the sessions of a group of files, then the side lines of their sub-agents."""
    notes = Notes()
    rollouts = [source.head(file, _HEAD) for file in files]
    _settle(rollouts)
    for file, rollout in zip(files, rollouts, strict=True):
        codex_walk.read(file, rollout, notes)
    found = list(_Sessions(rollouts, notes).drafts())
    if not found:
        yield Skipped(files[0].name, "it has no message of a user or an answer")
        return
    found[0].notes = notes
    yield from found


def _settle(rollouts: list[Rollout]) -> None:
    """Follow over the files what sessions were forked from, where a file does not say all of it."""
    by_id = {rollout.id: rollout for rollout in reversed(rollouts)}
    for rollout in rollouts:
        passed = {rollout.id}
        while rollout.root not in passed and rollout.root in by_id:
            passed.add(rollout.root)
            above = by_id[rollout.root]
            rollout.root, rollout.started = above.root, above.started


class _Sessions:
    """What a group of files holds."""

    def __init__(self, rollouts: list[Rollout], notes: Notes) -> None:
        self._rollouts = rollouts
        self._notes = notes
        self._turns: dict[str, tuple[str, str]] = {}
        """The conversation and the turn of each node, as far as they were made."""

    def drafts(self) -> Iterator[Draft]:
        """Yield the conversations, then the side lines."""
        by_root: dict[str, list[Rollout]] = {}
        for rollout in self._rollouts:
            if not rollout.is_side:
                by_root.setdefault(rollout.root, []).append(rollout)
        for root, rollouts in by_root.items():
            yield from self._draft(root, rollouts, None)
        for rollout in self._rollouts:
            if rollout.is_side:
                yield from self._draft(rollout.id, [rollout], self._side_of(rollout))

    def _draft(
        self, id: str, rollouts: list[Rollout], side_of: dict[str, Any] | None
    ) -> Iterator[Draft]:
        nodes: dict[str, Node] = {}
        for node in (node for rollout in rollouts for node in rollout.nodes):
            if side_of is None or node.id not in self._turns:
                nodes.setdefault(node.id, node)
        for node in nodes.values():
            node.parent = node.parent if node.parent in nodes else None
        root, started = rollouts[0].root, rollouts[0].started

        def identify(user: Node | None, first: str | None) -> str:
            return turn_id(name, root, user.id if user else None, first, started)

        tree = Tree(
            nodes.values(), format=name, conversation=id, notes=self._notes, identify=identify
        )
        if not tree.turns:
            return
        for node_id in nodes:
            if (turn := tree.turn_at(node_id)) is not None:
                self._turns[node_id] = id, turn
        last = max(rollouts, key=lambda rollout: str(rollout.last or ""))
        yield Draft(
            format=name,
            source_id=id,
            title=next((one.title for one in rollouts if one.title), None),
            turns=tree.turns,
            current=tree.turn_at(last.at) if last.at else None,
            raw=[rollout.raw for rollout in rollouts],
            notes=Notes(),
            raw_type="application/jsonl",
            blobs=pieces.blobs(tree.turns),
            side_of=side_of,
            growing=any(rollout.growing for rollout in self._rollouts),
        )

    def _side_of(self, side: Rollout) -> dict[str, Any]:
        """Return what a sub-agent's session was made for, as far as known."""
        for rollout in self._rollouts:
            node, call = rollout.agents.get(side.id, ("", ""))
            if node in self._turns:
                conversation, turn = self._turns[node]
                return {"conversation": conversation, "turn": turn, "call": call}
        return {"session": side.parent} if side.parent else {}
