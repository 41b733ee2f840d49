"""The fold: a conversation's records, in order, become the tree of its turns.

Rules, each at its function below. The log's order decides, by place; what a record says of its own
place is not asked. The first record of a turn id counts, and the first `ended` of a turn; after
that its leases and waits are no news. A parent must stand earlier, else the turn is a root. A
record that names an unknown turn is skipped. A record of an unknown kind, or one that cannot be
read, moves the position and nothing else. So folding never fails, and folding in parts gives what
folding the whole gives.

Nothing is decoded and no clock is asked here: what a question needs, it reads when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Self

from ledger import collector
from ledger.records import kinds
from ledger.records.messages import Message
from ledger.records.undecoded import Kept, Lines, Undecoded
from ledger.views import branches, context, exchange, lineage, place, ratings, states
from ledger.views.nodes import CLEARED, LABEL, RATING, SUMMARY, Node, Step, Tree, reads
from ledger.views.ratings import Rating
from ledger.views.rules import Rule
from ledger.views.summaries import Summary

_NOBODY: states.Dead = frozenset()
Fold = Callable[[Any, Any, int, Kept], None]
"""Takes one record into a tree. Given: the tree, the record, its place, and what may be kept in its stead."""


class History(Tree):
    """What a conversation's records mean, as far as they were folded.

    Every question that names a turn raises turn-unknown when it is not one. Lists that are returned
    are fresh, except `order`.
    """

    @classmethod
    def of(
        cls, records: Iterable[kinds.Recorded | Mapping[str, Any]], *, conversation: str = ""
    ) -> Self:
        """Fold records from the first on: dicts from any store, or Structs, also mixed.

        Args: conversation: what refusals call it.
        """
        return cls(conversation).extend(records)

    def extend(self, more: Iterable[kinds.Recorded | Mapping[str, Any]]) -> Self:
        """Fold the records that follow, in place. Returns: itself."""
        if not isinstance(more, Undecoded):
            self._extend([(more, None)])
        else:
            collector.wait_for(lambda: self._extend(more.runs()), count=len(more))
        return self

    def _extend(self, runs: Iterable[tuple[Iterable[Any], Lines | None]]) -> None:
        folds, position = self._folds(), self.position
        for records, lines in runs:
            kept = lines if lines is not None and lines.first == position + 1 else None
            for record in records:
                self.position = position = position + 1
                fold = folds.get(type(record))
                if fold is None and isinstance(record, Mapping):
                    record = kinds.of(record, position)
                    fold = folds.get(type(record))
                if fold is not None:
                    fold(self, record, position, record if kept is None else kept)

    def _folds(self) -> Mapping[type, Fold]:
        return FOLDS

    def __contains__(self, turn: object) -> bool:
        """Say whether this is the id of a turn."""
        return turn in self.nodes

    def __len__(self) -> int:
        """Return how many turns there are."""
        return len(self.order)

    # -- the tree

    @property
    def turns(self) -> list[str]:
        """The branch of the head, the first turn first."""
        return self.branch(self.head) if self.head is not None else []

    def branch(self, turn: str) -> list[str]:
        """Return the turns from the first to this one, following parents."""
        return branches.branch(self, turn)

    def children(self, turn: str | None) -> list[str]:
        """Return the turns that continue this one, in log order; of None: the roots."""
        return list(self.roots if turn is None else self.node(turn).children)

    def siblings(self, turn: str) -> list[str]:
        """Return the turns that continue what this one does, itself among them, in log order."""
        return self.children(self.node(turn).parent)

    def latest(self, turn: str) -> str:
        """Return the latest turn in log order that is this one or descends from it."""
        return branches.latest(self, turn)

    def heads(self) -> list[str]:
        """Return the leaves, newest first, without those that ended unanswered or were merged."""
        return branches.heads(self)

    def merge_base(self, a: str, b: str) -> str | None:
        """Return the nearest turn on both branches; None when their roots differ."""
        return branches.merge_base(self, a, b)

    def meeting(self, turns: Iterable[str]) -> str | None:
        """Return the nearest turn on the branches of all these; None when their roots differ."""
        return branches.meeting(self, turns)

    def landing(self, turns: Iterable[str]) -> str | None:
        """Return where a merge of these turns lands: the parent they share, else the nearest
        common ancestor that is none of them, or a done turn above it; None: there is none."""
        return place.nearest_done(self, branches.meeting_place(self, turns))

    def versions(self, turn: str | None) -> frozenset[str]:
        """Return the programs' versions of a branch, this turn's included; of None: none."""
        if turn is None:
            return frozenset()
        kept = self.node(turn).versions
        if kept is not None:
            return kept
        return frozenset(node.program for node in self.upward(turn))

    def has_program(self, version: str) -> bool:
        """Say whether a program's record stands in the log."""
        return version in self.programs

    def request(self, request_id: str) -> str | None:
        """Return the first turn that was sent under a request id, or None."""
        return self.requests.get(request_id)

    def entries(self, plugin: str, kind: str, branch: str | None = None) -> list[kinds.Entry]:
        """Return what was kept beside the turns, oldest first.

        Args: branch: a turn: only entries of a turn on its branch, or of no turn; None: all.
        """
        kept = self.kept.get((plugin, kind), [])
        if branch is None:
            return list(kept)
        on_it: set[str | None] = {None, *self.branch(branch)}
        return [entry for entry in kept if entry.turn in on_it]

    def labels(self, turn: str | None = None) -> list[str]:
        """Return the labels of a turn, or the conversation's own, in the order in which they were put on."""
        return ratings.labels(self, turn)

    # -- one turn

    def ratings(self, turn: str) -> list[Rating]:
        """Return how a turn was rated: the last rating by each, the one that was given last at the end."""
        return ratings.ratings(self, turn)

    def state(self, turn: str, *, now: datetime, dead: states.Dead = _NOBODY) -> states.State:
        """Return a turn's state at a moment (an aware datetime).

        Args: dead: (holder, attempt) of those known dead: what they hold is `interrupted`.
        """
        return states.state(self.node(turn), now=now, dead=dead)

    def unanswered(self, turn: str) -> list[dict[str, Any]]:
        """Return a turn's open questions, as recorded, in order. Raises: store-corrupt."""
        return states.unanswered(self.node(turn))

    def unfinished(self, turn: str) -> list[kinds.Tool]:
        """Return the tools that started and have no later record: they may have run."""
        return states.unfinished(self.node(turn))

    def saw(self, turn: str) -> list[str]:
        """Return the turns that a turn was shown, oldest first, as recorded.

        Raises: record-invalid: the links come back to themselves. store-corrupt.
        """
        return context.saw(self, turn)

    def without(self, turn: str) -> dict[str, list[str]]:
        """Return what was left out of the turns that a turn was shown, by their ids: the names of fields, and
        `steps` of one that called tools and was shown without. Raises as `saw`."""
        return context.without(self, turn)

    def shown_again(self, turn: str) -> Rule:
        """Return the rule that shows what a turn was shown, as recorded, once more. Raises as `saw`."""
        return context.again(self, turn)

    def rows(self, turn: str) -> list[dict[str, Any]]:
        """Return what a turn was shown, as recorded: a summary, then inputs and outputs by name, oldest first."""
        return context.rows(self, turn)

    def shown_messages(self, turn: str) -> list[Message]:
        """Return what a turn was shown, as recorded, as messages. Raises as `saw`."""
        return context.messages(self, turn)

    def messages(self, turn: str) -> list[Message]:
        """Return everything a turn added, as messages: the user side, then all that came after.

        Raises: store-corrupt.
        """
        node = self.node(turn)
        return [*exchange.asked(node), *exchange.answered(self, node)]

    def asked(self, turn: str) -> list[Message]:
        """Return the user side of a turn, as messages. Raises: store-corrupt."""
        return exchange.asked(self.node(turn))

    def reads(self, turn: str) -> list[str]:
        """Return the turns that a merge reads, each once. Raises: store-corrupt."""
        return reads(self, self.node(turn))

    def answer_name(self, turn: str) -> str:
        """Return the name of the output that is a turn's answer, as its program says."""
        return exchange.answer_name(self, self.node(turn))

    def lineage(self, turn: str) -> lineage.Lineage:
        """Return where a turn's answer comes from and what it influenced."""
        return lineage.lineage(self, turn)

    # -- the next turn

    def place(
        self,
        *,
        now: datetime,
        sends: place.Sends = "queue",
        at: str | None = None,
        dead: states.Dead = _NOBODY,
    ) -> place.Place:
        """Decide where a new turn goes: continuing `at`, or the head when that is None."""
        return place.place(self, at, now=now, sends=sends, dead=dead)

    def shown(self, parent: str | None, rule: Rule, *, foresee: bool = False) -> context.Shown:
        """Return what a turn under `parent` (None: a first turn) is shown by a rule.

        Args: foresee: take a summary that is to be made first as made.
        """
        return context.shown(self, parent, rule, foresee=foresee)

    def summary_of(self, turn: str) -> Summary | None:
        """Return the summary that a turn was shown; None: none, or it was taken out. Raises: store-corrupt."""
        return context.summary_of(self, turn)


# -- the fold, one function per kind ---------------------------------------------------------------


def _program(tree: Tree, record: kinds.Program, _seq: int, _kept: Kept) -> None:
    tree.programs.setdefault(record.version, record)


def _turn(tree: Tree, record: kinds.Turn, seq: int, kept: Kept) -> None:
    turn, nodes, order = record.turn, tree.nodes, tree.order
    if turn in nodes:
        return
    parent = nodes.get(record.parent) if record.parent is not None else None
    nodes[turn] = Node(record, seq, kept, len(order) + 1, parent)
    order.append(turn)
    if parent is None:
        tree.roots.append(turn)
    else:
        parent.add_child(turn)
    tree.head = turn
    if record.request_id is not None:
        tree.requests.setdefault(record.request_id, record.turn)


def _lease(tree: Tree, record: kinds.Lease, seq: int, kept: Kept) -> None:
    node = tree.found(record.turn)
    if node is None or node.outcome is not None:
        return
    during = node.during()
    during.lease, during.lease_seq = record, seq
    if record.attempt > during.attempt:
        during.attempt, during.attempt_seq = record.attempt, seq
    if states.released(record):
        _step(tree, record, seq, kept)


def _waiting(tree: Tree, record: kinds.Waiting, seq: int, kept: Kept) -> None:
    node = tree.found(record.turn)
    if node is not None and node.outcome is None:
        during = node.during()
        during.waiting, during.waiting_seq = record, seq
        _step(tree, record, seq, kept)


def _ended(tree: Tree, record: kinds.Ended, seq: int, kept: Kept) -> None:
    node = dict.get(tree.nodes, record.turn)
    if node is None or node.outcome is not None:
        return
    node.end(record, seq, kept)
    if tree.proven and node.children:
        # The line of the turns below it has one turn more now: what was proven of it is void.
        tree.proven.clear()


def _step(tree: Tree, record: Step, seq: int, _kept: Kept) -> None:
    node = tree.found(record.turn)
    if node is not None:
        node.during().steps.append((seq, record))


def _head(tree: Tree, record: kinds.Head, _seq: int, _kept: Kept) -> None:
    if tree.found(record.turn) is not None:
        tree.head = record.turn


def _unreadable(tree: Tree, _record: kinds.Unreadable, seq: int, _kept: Kept) -> None:
    tree.unreadable.append(seq)


def _entry(tree: Tree, record: kinds.Entry, seq: int, _kept: Kept) -> None:
    if record.turn is not None and tree.found(record.turn) is None:
        return
    name = record.plugin, record.entry
    tree.kept.setdefault(name, []).append(record)
    if name == SUMMARY:
        tree.summaries[seq] = record
    elif name in (RATING, LABEL):
        tree.annotated.setdefault(record.turn, []).append(record)
    elif name == CLEARED:
        tree.head, tree.cleared = None, seq


FOLDS: dict[type, Fold] = {
    kinds.Program: _program,
    kinds.Turn: _turn,
    kinds.Lease: _lease,
    kinds.Ended: _ended,
    kinds.Waiting: _waiting,
    kinds.Approval: _step,
    kinds.Tool: _step,
    kinds.Reply: _step,
    kinds.Call: _step,
    kinds.Stop: _step,
    kinds.Head: _head,
    kinds.Entry: _entry,
    kinds.Unreadable: _unreadable,
}
