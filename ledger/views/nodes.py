"""The tree of a conversation's turns, as far as its records were folded. Values; no rules of time.

Invariants: (1) `order` holds every turn once, in log order, and a turn's ordinal is its place
there, for ever. (2) A parent stands earlier in the log than its children, so there are no cycles.
(3) Nothing here is decoded: payloads stay in their records until a question needs one, and a turn's
records, where its log gave them so, in the lines of the log.

Only `history.History` changes a tree. Everything else in `views` is a function that reads one, and others may fold
what follows meanwhile, in another thread: a turn that is named anywhere here is in `nodes` by then, lists only grow,
and no dict is walked as it stands (`every`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from ledger.errors import StoreCorrupt, TurnUnknown
from ledger.records import kinds
from ledger.records.undecoded import Kept, Lines

MOST_VERSIONS = 64
"""How many programs of a branch are kept at each of its turns."""

Step = (
    kinds.Approval
    | kinds.Tool
    | kinds.Reply
    | kinds.Call
    | kinds.Stop
    | kinds.Waiting
    | kinds.Lease
)
"""A record made inside a turn, between its start and its end. Of leases: those that give it back."""


SUMMARY = ("ledger", "summary")
"""The plugin and kind of the entries that are summaries."""
INSTRUCTIONS = ("ledger", "instructions")
"""Of those that say which instructions came with a turn, where others were in force."""
LEFT = ("ledger", "left")
"""Of those that keep the messages behind a turn (none: before the first) that made no whole turn."""
CLEARED = ("ledger", "cleared")
"""Of those that move the head before the first turn."""
RATING = ("ledger", "rating")
"""Of those that rate a turn."""
LABEL = ("ledger", "label")
"""Of those that put a label on a turn or on the conversation, or take it off."""


class During(msgspec.Struct):
    """What happened inside a turn until it ended."""

    lease: kinds.Lease | None = None
    lease_seq: int = 0
    attempt: int = 0
    attempt_seq: int = 0
    waiting: kinds.Waiting | None = None
    waiting_seq: int = 0
    steps: list[tuple[int, Step]] = []


NOTHING = During()
"""Of the many turns inside which nothing happened. It stays as it is."""


class Node:
    """One turn: its record, its place in the tree, and what the log says of it since."""

    __slots__ = (
        "_children",
        "_during",
        "_ended",
        "_inputs",
        "_outputs",
        "_record",
        "depth",
        "ended_seq",
        "erased",
        "history",
        "id",
        "ordinal",
        "outcome",
        "parent",
        "program",
        "seq",
        "versions",
    )
    program: str
    """The version of the program that made it."""

    def __init__(
        self, record: kinds.Turn, seq: int, kept: Kept, ordinal: int, parent: Node | None
    ) -> None:
        """Args: record: its first. kept: that record, or its lines."""
        self.id = record.turn
        self._record = kept
        self._ended: Kept | None = None
        self.ended_seq = 0
        """The place of the record of its end; 0: it has not ended."""
        self.seq = seq
        """The place of its `turn` record in the log."""
        self.outcome: kinds.Outcome | None = None
        """The state in which it ended; None: it has not."""
        self.erased = record.erased
        """Whether what it said was taken out."""
        self._inputs = record.inputs
        self._outputs: kinds.Payload = kinds.ABSENT
        self._children: list[str] | str | None = None
        """No list is made for the many turns with one or none."""
        self._during = NOTHING
        self.ordinal = ordinal
        """1, 2, 3 in log order."""
        self.parent: str | None
        """None: a root; also when the parent that it names is not a turn that stands before it."""
        self.versions: frozenset[str] | None
        """The programs of its branch, itself included; shared with the parent when the same. None:
        so many that a set at every turn would cost too much: the branch has to be asked."""
        if parent is None:
            self.parent, self.depth = None, 0
            self.program, self.versions = record.program, frozenset((record.program,))
            return
        # What is equal is kept once: many turns are on a line, and made by one program.
        self.parent, depth = parent.id, parent.depth + 1
        self.depth = depth if depth != parent.ordinal else parent.ordinal
        if parent.program == record.program:
            self.program, self.versions = parent.program, parent.versions
        else:
            self.program, self.versions = record.program, _and(parent.versions, record.program)

    def end(self, record: kinds.Ended, seq: int, kept: Kept) -> None:
        """Set how it ended. Args: kept: that record, or the lines that it stands in."""
        self._ended = kept
        self._outputs = record.outputs
        self.ended_seq = seq
        self.outcome = record.state
        self.erased = self.erased or record.erased

    @property
    def record(self) -> kinds.Turn:
        """Its record. Where its line was kept, it is decoded when it is asked for first."""
        record = self._record  # Asked once: other threads ask, too.
        if type(record) is Lines:
            record = self._record = record.again(self.seq)
        return cast(kinds.Turn, record)

    @property
    def ended(self) -> kinds.Ended | None:
        """The record of its end, the first one; None: it has not ended."""
        ended = self._ended
        if type(ended) is Lines:
            ended = self._ended = ended.again(self.ended_seq)
        return cast(kinds.Ended, ended)

    def inputs(self) -> dict[str, Any]:
        """Return what was sent, by name, as fresh values; empty when it is no object. Raises: store-corrupt."""
        return kinds.mapping(self._inputs, self.seq, "inputs")

    def outputs(self) -> dict[str, Any]:
        """Return what came out, by name, as fresh values; empty when there is nothing. Raises: store-corrupt."""
        return kinds.mapping(self._outputs, self.ended_seq, "outputs")

    @property
    def children(self) -> Sequence[str]:
        """The turns that continue it, in log order."""
        found = self._children
        return () if found is None else (found,) if isinstance(found, str) else found

    def add_child(self, turn: str) -> None:
        """Add a turn that continues it: for the fold."""
        if self._children is None:
            self._children = turn
        elif isinstance(self._children, str):
            self._children = [self._children, turn]
        else:
            self._children.append(turn)

    @property
    def lease(self) -> kinds.Lease | None:
        """Its last lease before it ended."""
        return self._during.lease

    @property
    def lease_seq(self) -> int:
        """The place of that lease; 0: there is none."""
        return self._during.lease_seq

    @property
    def attempt(self) -> int:
        """The highest of its leases; 0 without one."""
        return self._during.attempt

    @property
    def attempt_seq(self) -> int:
        """The place of that attempt's first lease: only later stops count for it."""
        return self._during.attempt_seq

    @property
    def waiting(self) -> kinds.Waiting | None:
        """The last time it waited before it ended."""
        return self._during.waiting

    @property
    def waiting_seq(self) -> int:
        """The place of that record; 0: it never waited."""
        return self._during.waiting_seq

    @property
    def steps(self) -> list[tuple[int, Step]]:
        """(place, record) of what happened inside it, in log order."""
        return self._during.steps

    def during(self) -> During:
        """Return what happened inside it, to be added to: for the fold."""
        if self._during is NOTHING:
            self._during = During()
        return self._during

    def become(self, other: Node) -> None:
        """Become what another node of the same turn is."""
        for name in Node.__slots__:
            if name != "history":
                setattr(self, name, getattr(other, name))
        self.__class__ = Node

    @property
    def approvals(self) -> list[kinds.Approval]:
        """Return the answers that people gave, in log order."""
        return [step for _, step in self.steps if isinstance(step, kinds.Approval)]

    @property
    def waits(self) -> list[kinds.Waiting]:
        """Return the times it waited for people, in log order."""
        return [step for _, step in self.steps if isinstance(step, kinds.Waiting)]

    @property
    def tools(self) -> list[kinds.Tool]:
        """Return the records of its tools, in log order."""
        return [step for _, step in self.steps if isinstance(step, kinds.Tool)]

    @property
    def replies(self) -> list[kinds.Reply]:
        """Return its recorded model replies, in log order."""
        return [step for _, step in self.steps if isinstance(step, kinds.Reply)]

    @property
    def calls(self) -> list[kinds.Call]:
        """Return the calls of its remembered helpers, in log order."""
        return [step for _, step in self.steps if isinstance(step, kinds.Call)]

    @property
    def stops(self) -> list[int]:
        """Return the places of the requests to stop it, in log order."""
        return [seq for seq, step in self.steps if isinstance(step, kinds.Stop)]

    @property
    def given_back(self) -> set[int]:
        """Return the attempts that did not end it and gave it back."""
        return {step.attempt for _, step in self.steps if isinstance(step, kinds.Lease)}

    @property
    def done(self) -> bool:
        """Say whether it has an answer."""
        return self.outcome == "done"


def _and(versions: frozenset[str] | None, version: str) -> frozenset[str] | None:
    if versions is None or version in versions:
        return versions
    return versions | {version} if len(versions) < MOST_VERSIONS else None


class Tree:
    """What a fold has made of a log so far. To be read; only the fold writes its attributes."""

    def __init__(self, conversation: str = "") -> None:
        self.conversation = conversation
        """What refusals call the conversation."""
        self.position = 0
        """How many records were folded: the place of the last one."""
        self.nodes: dict[str, Node] = {}
        self.order: list[str] = []
        """The ids of all turns in log order. It grows with the log; do not change it."""
        self.roots: list[str] = []
        self.head: str | None = None
        """The latest turn, or the turn to which the head was moved since; None: before the first."""
        self.cleared = 0
        """The place of the last record that moved the head before the first turn; 0: there is none."""
        self.programs: dict[str, kinds.Program] = {}
        """By version; the first record of each counts."""
        self.requests: dict[str, str] = {}
        self.unreadable: list[int] = []
        """The places of what could not be handed out: damaged or void lines."""
        self.kept: dict[tuple[str, str], list[kinds.Entry]] = {}
        """Entries by (plugin, kind of entry), in log order."""
        self.summaries: dict[int, kinds.Entry] = {}
        """The entries that are summaries, by place in the log."""
        self.annotated: dict[str | None, list[kinds.Entry]] = {}
        """The entries that are ratings and labels, by the turn they are of (None: of the conversation), in log
        order."""
        self.takes_their_word = False
        """Whether turns that say so (`saw_all`) saw all of their line: where the log is not known from its start."""
        self.proven: dict[Any, dict[str, str | None]] = {}
        """What `context` has proven, by rule. The fold empties it when that may have changed."""

    @property
    def is_damaged(self) -> bool:
        """Whether something that was folded could not be handed out: a damaged or void line."""
        return bool(self.unreadable)

    def found(self, turn: str) -> Node | None:
        """Return a turn's node if it is one that was folded; for the fold itself."""
        return dict.get(self.nodes, turn)

    def node(self, turn: str) -> Node:
        """Return a turn's node. Raises: turn-unknown."""
        try:
            return self.nodes[turn]
        except (KeyError, TypeError):
            raise TurnUnknown(conversation=self.conversation, turn=str(turn)) from None

    def every(self) -> list[Node]:
        """Return the nodes of all turns, in log order. Others may fold more meanwhile, and are not waited for."""
        return [self.nodes[turn] for turn in list(self.order)]

    def met(self, left: Node, right: Node) -> Node | None:
        """Return the nearest turn on the branches of two; None when their roots differ."""
        while left is not right:
            deeper = left if left.depth >= right.depth else right
            if deeper.parent is None:
                return None
            above = self.nodes[deeper.parent]
            left, right = (above, right) if deeper is left else (left, above)
        return left

    def at(self, ordinal: int) -> str | None:
        """Return the turn of an ordinal; None: there are not so many."""
        return self.order[ordinal - 1] if 0 < ordinal <= len(self.order) else None

    def first_done(self, turn: str | None) -> Node | None:
        """Return the first turn of a turn's branch that has an answer."""
        return next((n for n in reversed(list(self.upward(turn))) if n.done), None)

    def nearest(self, turn: str | None, among: Collection[str | None]) -> str | None:
        """Return the nearest turn on a turn's branch that has an answer and is one of some; None: there is none."""
        upward = self.upward(turn) if among else ()
        return next((node.id for node in upward if node.done and node.id in among), None)

    def upward(self, turn: str | None) -> Iterator[Node]:
        """Yield a turn, its parent, and so on to the root."""
        while turn is not None:
            node = self.node(turn)
            yield node
            turn = node.parent


def payload(record: Any, name: str) -> Any:
    """Return a record's field as a fresh value; None when it is absent.

    Raises: store-corrupt: this field does not decode; everything else stays usable.
    """
    return kinds.payload(getattr(record, name), record.seq, name)


def mapping(record: Any, name: str) -> Mapping[str, Any]:
    """Return a record's field that is an object; an empty one when it is anything else."""
    return kinds.mapping(getattr(record, name), record.seq, name) if record is not None else {}


def model_of(node: Node) -> str | None:
    """Return the model that answered, else the one the turn was sent to; None: neither is known.

    Settings that do not decode name no model.
    """
    if node.ended is not None and node.ended.model is not None:
        return node.ended.model
    try:
        model = mapping(node.record, "settings").get("lm")
    except StoreCorrupt:
        return None
    return model if isinstance(model, str) else None


def reads(tree: Tree, node: Node) -> list[str]:
    """Return the turns that a merge reads, each once. Turns that stand after it are not among them.

    Raises: store-corrupt.
    """
    if not kinds.has(node.record.reads):
        return []
    value = payload(node.record, "reads")
    named = [turn for turn in value if isinstance(turn, str)] if isinstance(value, list) else []
    known = (tree.nodes.get(turn) for turn in dict.fromkeys(named))
    return [found.id for found in known if found is not None and found.seq < node.seq]


def readable_reads(tree: Tree, node: Node) -> list[str]:
    """Return `reads`, or nothing when it is damaged: that must not stop questions about others."""
    try:
        return reads(tree, node)
    except StoreCorrupt:
        return []
