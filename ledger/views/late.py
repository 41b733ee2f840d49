"""A history known from a place of the log on; what stands before is read when it is asked for.

The end of a long log answers most of what the next turn needs: where the head is, whether it runs, what the last
turns said. So a conversation is opened at its end, and the rest is read when a question needs it, once, whatever the
question: the history becomes a whole one then, in place, and answers as it would have from the start.

What is known of a turn that was sent behind the place is all there is, since all that is said of a turn follows its
first record; but for its parent, if that is not known, and for what is counted from the beginning (`ordinal`, `depth`,
`versions`). How it works: what is not known is not there. An attribute that is missing, a turn or program that is not
found, is looked for by an index, if the log has one: it gives the few records that tell. Where it cannot, the
history becomes whole, and the question is asked again of that.

Taken for granted, until it is whole: that no turn is recorded again under an id that stands before the place (a whole
history keeps the first), and that a program's record stands before the turns that it made.

Several threads may ask, and what one asks may make it whole while another is in the middle. So whatever asks for what
may not be known holds the lock, under which alone that happens, and has the whole history answer if there is one by
now. What a method here calls of its own it calls by the class: its object may be of another one after any call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from ledger.records import ids, kinds
from ledger.records.undecoded import Kept
from ledger.views.history import FOLDS, Fold, History
from ledger.views.nodes import CLEARED, Node

V = TypeVar("V")

_TOMBSTONE = b'"erased":true'
"""What stands in a line that was erased."""

_FEW_FOUND, _SHARE_FOUND = 64, 64
"""How often an index is asked at most: so often, or once for so many records that reading everything would read."""

_OF_THE_WHOLE = frozenset(
    {
        "order",
        "roots",
        "head",
        "cleared",
        "requests",
        "unreadable",
        "kept",
        "summaries",
        "annotated",
    }
)
"""What is not there before a history is whole; the head, as long as what is known does not tell it."""


class Index(Protocol):
    """What finds records that stand before a place of a log. Every answer may be None: it cannot tell."""

    def turn(self, turn: str) -> list[kinds.Recorded] | None:
        """Return what is recorded of a turn, its first record first; nothing: there is no such turn."""
        ...

    def children(self, turn: str) -> list[str] | None:
        """Return the turns that continue a turn, in log order."""
        ...

    def request(self, request_id: str) -> list[str] | None:
        """Return the turns that were sent under a request id, in log order."""
        ...

    def program(self, version: str) -> list[kinds.Program] | None:
        """Return the records of a program, the first one first."""
        ...

    def head(self) -> list[kinds.Recorded] | None:
        """Return the last turn's first record, and what moved the head since."""
        ...

    @property
    def erased(self) -> bool:
        """Whether something was erased."""
        ...

    def meeting(self, a: str, b: str) -> list[str] | None:
        """Return the nearest turn on the branches of two turns that are there; nothing: there is none."""
        ...

    def depth(self, turn: str) -> int | None:
        """Return how many turns stand above one that is there."""
        ...


class LateHistory(History):
    """A history known from a place on. It becomes a `History` when it is asked for what stands before.

    Args: before: how many records stand before the first that will be folded. beginning: records of the log's
    beginning: their programs are known. complete: reads the log from its start, and has `become` make this whole.
    erased_from: whether turns were taken out, so that what a turn says it was shown may be more than there is now.
    mentions: says whether bytes stand anywhere in the log. sent: returns what is recorded of the first turn that was
    sent under a request id; nothing: there is none; None: it cannot tell. index: finds records before the place.
    lock: gives what is held meanwhile; others may fold, or have it become whole, and do that under it alone.
    """

    def __init__(
        self,
        conversation: str,
        before: int,
        beginning: Iterable[kinds.Recorded],
        complete: Callable[[LateHistory], None],
        *,
        erased_from: bool = False,
        mentions: Callable[[bytes], bool] | None = None,
        sent: Callable[[str], list[kinds.Recorded] | None] | None = None,
        index: Index | None = None,
        lock: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        super().__init__(conversation)
        self.is_late = True
        """Whether it did not become whole yet."""
        self._mentions, self._sent = mentions, sent
        self.lock = lock
        self.index = index
        self.before = self.position = before
        self._left = max(_FEW_FOUND, before // _SHARE_FOUND)
        """How many turns are looked for before reading everything is the better way."""
        self.orphans: dict[str, list[tuple[kinds.Recorded, int]]] = {}
        """Records of turns that are not known, in log order, with their places."""
        self.continued: dict[str, list[str]] = {}
        """The turns that are known and continue one that stands before the place."""
        self.with_children: set[str] = set()
        """The turns before the place that know which turns continue them."""
        self.requested: dict[str, str] = {}
        """The first turn that is known of each request id."""
        self.moves: list[kinds.Head | kinds.Entry] = []
        """What may have moved the head since it was known, which the turns that are known do not tell."""
        self.headed: list[str | None] = []
        """The head before those; empty: it stands before the place."""
        if erased_from or (mentions is None and index is None):
            self.takes_their_word = not erased_from
        else:  # A log that was copied may hold what was erased elsewhere: it is looked for.
            del self.takes_their_word
        self.nodes = _Known(self, "nodes", self._found_turn)
        self.programs = _Known(self, "programs", self._found_program)
        self.complete = complete
        """Reads what stands before. Raises: store-gone: the log was made anew since; and as the store's `read`."""
        self.meets_damage = False
        self.meets_tombstone = False
        for name in _OF_THE_WHOLE:
            delattr(self, name)
        for record in beginning:
            if isinstance(record, kinds.Program):
                self.programs.setdefault(record.version, record)

    def __getattr__(self, name: str) -> Any:
        if name == "takes_their_word" and "_mentions" in vars(self):
            with self.lock():
                if name not in vars(self):
                    self.takes_their_word = not LateHistory._has_tombstones(self)
                return vars(self)[name]
        if name not in _OF_THE_WHOLE:
            raise AttributeError(name)
        if name != "head" or not LateHistory._finds_head(self):
            complete(self)
        return getattr(self, name)

    def become(self, records: Iterable[kinds.Recorded | Mapping[str, Any]]) -> None:
        """Become the whole history of these records: all up to `position` at least. The lock is held.

        Nodes stay the same objects: who holds one goes on with it.
        """
        whole = History.of(records, conversation=self.conversation)
        for turn, node in dict.items(self.nodes):
            if turn in whole.nodes:
                node.become(whole.nodes[turn])
                whole.nodes[turn] = node
        vars(self).update(vars(whole))
        self.is_late, self.index = False, None
        self.orphans, self.continued, self.requested = {}, {}, {}
        self.__class__ = History  # type: ignore[assignment]

    @property
    def is_damaged(self) -> bool:
        """Whether something of what is known could not be handed out."""
        return self.meets_damage

    def request(self, request_id: str) -> str | None:
        """Return the first turn that was sent under a request id."""
        with self.lock():
            if self.is_late:
                found = LateHistory._asked(self, lambda index: index.request(request_id))
                if found is not None:
                    return found[0] if found else self.requested.get(request_id)
                found = LateHistory._searched(self, request_id)
                if found is not None:
                    return found[0] if found else None
            return History.request(self, request_id)

    def branch(self, turn: str) -> list[str]:
        """Return the turns from the first to this one. Of a long branch all is read at once, which is quicker."""
        with self.lock():
            node = self.node(turn)
            while self.is_late and node.seq > self.before and node.parent is not None:
                node = self.nodes[node.parent]
            if self.is_late and node.seq <= self.before:
                name = node.id
                depth = LateHistory._asked(self, lambda index: index.depth(name))
                if depth is None or depth > self._left:
                    complete(self)
            return History.branch(self, turn)

    def has_program(self, version: str) -> bool:
        """Say whether a program's record stands in the log: it does before each turn that was made by it."""
        with self.lock():
            if self.is_late:
                made_by = {node.program for node in dict.values(self.nodes)}
                if version in made_by or dict.__contains__(self.programs, version):
                    return True
                if self.index is None and not LateHistory._may_name(self, version):
                    return False
            return History.has_program(self, version)

    def met(self, left: Node, right: Node) -> Node | None:
        """Return the nearest turn on the branches of two."""
        with self.lock():
            while self.is_late and left is not right and max(left.seq, right.seq) > self.before:
                if left.seq < right.seq:
                    left, right = right, left
                if left.parent is None:
                    return None
                left = self.nodes[left.parent]
            if self.is_late and left is not right:
                a, b = left.id, right.id
                found = LateHistory._asked(self, lambda index: index.meeting(a, b))
                if found is not None:
                    return self.nodes[found[0]] if found else None
                complete(self)
            return History.met(self, left, right)

    def _searched(self, request_id: str) -> list[str] | None:
        """Look for the turn that was sent under a request id first; nothing: none was; None: it cannot be told."""
        sent = None if self._sent is None else self._sent(request_id)
        if sent is None:
            return None if LateHistory._may_name(self, request_id) else []
        known = [record for record in sent if record.seq <= self.position]
        if not known or not isinstance(known[0], kinds.Turn):
            return []
        turn = known[0].turn
        if self.found(turn) is None:
            # What stands behind the place waits to be found, if an index is there; else it was passed over.
            last = self.before if self.index is not None else self.position
            node = LateHistory._node_of(self, [record for record in known if record.seq <= last])
            if node is None:
                return None
            self.nodes[turn] = node
        return [turn]

    def _may_name(self, text: str) -> bool:
        """Say whether a log may hold a text. Its bytes are looked through, which is quicker than reading it."""
        if self._mentions is None or not ids.is_spelled_alike(text):
            return True
        return self._mentions(f'"{text}"'.encode())

    def _folds(self) -> Mapping[type, Fold]:
        return _FOLDS

    # -- what an index finds

    def _asked(self, ask: Callable[[Index], V | None]) -> V | None:
        """Return what the index answers; None: there is none, it cannot tell, or it was asked often enough."""
        if self.index is None or self._left <= 0:
            return None
        self._left -= 1
        return ask(self.index)

    def _has_tombstones(self) -> bool:
        if self.index is not None:
            return self.index.erased or self.meets_tombstone
        return self._mentions is None or self._mentions(_TOMBSTONE)

    def _found_turn(self, turn: str) -> list[Node] | None:
        """Return a turn's node; nothing: there is no such turn; None: only the whole log tells."""
        records = self._asked(lambda index: index.turn(turn))
        if not records:
            return None if records is None else []
        node = LateHistory._node_of(self, records)
        return None if node is None else [node]

    def _node_of(self, records: list[kinds.Recorded]) -> Node | None:
        """Return the node of a turn of which all is given that is recorded before the place, its first record first."""
        first, *more = records
        if not isinstance(first, kinds.Turn):
            return None
        node = LateNode(first, first.seq, first, self)
        alone = History(self.conversation)  # Nobody sees it before it is whole.
        alone.nodes[first.turn] = node
        for record, seq in [*((r, r.seq) for r in more), *self.orphans.pop(first.turn, ())]:
            fold = FOLDS.get(type(record))
            if fold is not None:
                fold(alone, record, seq, record)
        del node._children
        return node

    def finds_of(self, node: LateNode, name: str) -> bool:
        """Find out what a turn lacks, if an index tells. Says whether it is there: so it is once all is whole."""
        with self.lock():
            if not self.is_late or _has(node, name):
                return True
            if self.index is None or name not in ("parent", "_children"):
                return False
            if name == "parent":
                parent = self.nodes.get(node.record.parent or "")
                if self.is_late:
                    is_one = parent is not None and parent.seq < node.seq
                    node.parent = node.record.parent if is_one else None
                return True
            found = LateHistory._asked(self, lambda index: index.children(node.id))
            if found is not None:
                children = [*dict.fromkeys(found), *self.continued.pop(node.id, ())]
                node._children = children if len(children) > 1 else (children or [None])[0]
                self.with_children.add(node.id)
            return found is not None

    def _found_program(self, version: str) -> list[kinds.Program] | None:
        return self._asked(lambda index: index.program(version))

    def _finds_head(self) -> bool:
        """Find out where the head is, if an index tells. Says whether."""
        with self.lock():
            if "head" in vars(self):
                return True
            moves: list[Any] = list(self.moves)
            head: str | None = None
            if self.headed:
                head = self.headed[0]
            else:
                found = LateHistory._asked(self, lambda index: index.head())
                if found is None:
                    return False
                if found and isinstance(found[0], kinds.Turn):
                    head = found[0].turn
                moves = [*found, *moves]
            for move in moves:
                if isinstance(move, kinds.Turn):
                    continue
                node = self.nodes.get(move.turn) if move.turn is not None else None
                if move.turn is None or (node is not None and node.seq < move.seq):
                    head = move.turn if isinstance(move, kinds.Head) else None
            if self.is_late:
                self.head, self.headed, self.moves = head, [], []
            return True

    def lacks_head(self, move: kinds.Head | kinds.Entry) -> None:
        """Take in what moved the head to, or at, a turn that is not known: it may be one, or none."""
        if "head" in vars(self):
            self.headed = [vars(self).pop("head")]
        self.moves.append(move)

    def has_head(self, turn: str | None) -> None:
        """Take in where the head is."""
        self.head = turn
        if self.moves:
            self.headed, self.moves = [], []


def complete(history: History) -> None:
    """Have a history become whole, if it is not yet."""
    if isinstance(history, LateHistory):
        history.complete(history)


def _has(node: Node, name: str) -> bool:
    """Say whether something of a turn is known."""
    try:
        object.__getattribute__(node, name)
    except AttributeError:
        return False
    return True


class _Known(dict[str, V]):
    """What is known by name, before a history is whole. What is asked for and not here makes it so."""

    def __init__(
        self, history: LateHistory, name: str, find: Callable[[str], list[Any] | None]
    ) -> None:
        super().__init__()
        self._history, self._name, self._find = history, name, find

    @property
    def _all(self) -> dict[str, V]:
        complete(self._history)
        found: dict[str, V] = getattr(self._history, self._name)
        return found

    def __missing__(self, key: str) -> V:
        found = self._found(key)
        if found is None:
            return self._all[key]
        if not found:
            raise KeyError(key)
        return found[0]

    def _found(self, key: object) -> list[V] | None:
        """Return what has a name, found; nothing: nothing has it; None: only the whole tells."""
        with self._history.lock():
            if not self._history.is_late or not isinstance(key, str):
                return None
            if super().__contains__(key):
                return [super().__getitem__(key)]
            found = self._find(key)
            if found:
                self[key] = found[0]
            return found

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        found = self._found(key)
        return key in self._all if found is None else bool(found)

    def get(self, key: str, default: Any = None) -> Any:
        """Return what has a name, or the default."""
        if super().__contains__(key):
            return self[key]
        found = self._found(key)
        if found is None:
            return self._all.get(key, default)
        return found[0] if found else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def keys(self) -> Any:
        """Return all names."""
        return self._all.keys()

    def values(self) -> Any:
        """Return all there is."""
        return self._all.values()

    def items(self) -> Any:
        """Return all there is, with names."""
        return self._all.items()


class LateNode(Node):
    """A turn of a late history. It lacks what is counted from the beginning, and a parent that is not known; one
    that was found, also the turns that continue it."""

    __slots__ = ()

    def __init__(self, record: kinds.Turn, seq: int, kept: Kept, history: LateHistory) -> None:
        super().__init__(record, seq, kept, 0, None)
        del self.ordinal, self.parent, self.depth, self.versions
        self.history = history
        parent = history.found(record.parent) if record.parent is not None else None
        if record.parent is None or (parent is not None and parent.seq < seq):
            self.parent = record.parent

    def __getattr__(self, name: str) -> Any:
        if name not in Node.__slots__:
            raise AttributeError(name)
        if not LateHistory.finds_of(self.history, self, name):
            complete(self.history)
        return object.__getattribute__(self, name)  # Missing still: the log has it no more.


# -- the fold, where it differs ------------------------------------------------------------------------


def _turn(tree: LateHistory, record: kinds.Turn, seq: int, kept: Kept) -> None:
    tree.meets_tombstone = tree.meets_tombstone or record.erased
    if tree.found(record.turn) is not None:
        return
    if record.parent is not None:
        parent = tree.found(record.parent)
        if parent is not None and (parent.seq > tree.before or parent.id in tree.with_children):
            parent.add_child(record.turn)
        else:
            tree.continued.setdefault(record.parent, []).append(record.turn)
    tree.nodes[record.turn] = LateNode(record, seq, kept, tree)
    if record.request_id is not None:
        tree.requested.setdefault(record.request_id, record.turn)
    tree.has_head(record.turn)


def _ended(tree: LateHistory, record: kinds.Ended, seq: int, kept: Kept) -> None:
    tree.meets_tombstone = tree.meets_tombstone or record.erased
    node = tree.found(record.turn)
    if node is None or node.outcome is not None:
        return
    node.end(record, seq, kept)
    tree.proven.clear()


def _or_kept(fold: Fold) -> Fold:
    """Return a fold that keeps the records of a turn that is not known, until it is found."""

    def folds(tree: LateHistory, record: Any, seq: int, kept: Kept) -> None:
        if tree.found(record.turn) is None and tree.index is not None:
            tree.orphans.setdefault(record.turn, []).append((record, seq))
        else:
            fold(tree, record, seq, kept)

    return folds


def _head(tree: LateHistory, record: kinds.Head, _seq: int, _kept: Kept) -> None:
    if tree.found(record.turn) is not None:
        tree.has_head(record.turn)
    else:
        tree.lacks_head(record)  # That may be a turn, or none.


def _entry(tree: LateHistory, record: kinds.Entry, _seq: int, _kept: Kept) -> None:
    if (record.plugin, record.entry) != CLEARED:
        return
    if record.turn is None or tree.found(record.turn) is not None:
        tree.has_head(None)
    else:
        tree.lacks_head(record)


def _other(tree: LateHistory, record: kinds.Other, _seq: int, _kept: Kept) -> None:
    tree.meets_tombstone = tree.meets_tombstone or record.kind == "erased"


def _unreadable(tree: LateHistory, _record: kinds.Unreadable, _seq: int, _kept: Kept) -> None:
    tree.meets_damage = True


_OF_A_TURN = (
    kinds.Lease,
    kinds.Waiting,
    kinds.Approval,
    kinds.Tool,
    kinds.Reply,
    kinds.Call,
    kinds.Stop,
)

_FOLDS: dict[type, Fold] = {
    **FOLDS,
    **{kind: _or_kept(FOLDS[kind]) for kind in _OF_A_TURN},
    kinds.Turn: _turn,
    kinds.Ended: _or_kept(_ended),
    kinds.Head: _head,
    kinds.Entry: _entry,
    kinds.Other: _other,
    kinds.Unreadable: _unreadable,
}
