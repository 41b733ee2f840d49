"""A history known from a place of the log on; what stands before is read when it is asked for.

The end of a long log answers most of what the next turn needs: where the head is, whether it runs, what the last
turns said. So a conversation is opened at its end, and the rest is read when a question needs it, once, whatever the
question: the history becomes a whole one then, in place, and answers as it would have from the start.

What is known of a turn that was sent behind the place is all there is, since all that is said of a turn follows its
first record; but for its parent, if that is not known, and for what is counted from the beginning (`ordinal`, `depth`,
`versions`). How it works: what is not known is not there. An attribute that is missing, a turn or program that is not
found, is looked for by an index, if the log has one: it gives the few records that tell, also what is counted and
what is kept beside the turns. Where it cannot, the history becomes whole, and the question is asked again of that.

Taken for granted, until it is whole: that no turn is recorded again under an id that stands before the place (a whole
history keeps the first), and that a program's record stands before the turns that it made.

Several threads may ask, and what one asks may make it whole while another is in the middle. So whatever asks for what
may not be known holds the lock, under which alone that happens, and has the whole history answer if there is one by
now. What a method here calls of its own it calls by the class: its object may be of another one after any call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import methodcaller
from types import NoneType
from typing import Any, TypeVar

from ledger.records import ids, kinds
from ledger.records.undecoded import Kept
from ledger.views.finding import Index, Known
from ledger.views.history import FOLDS, Fold, History
from ledger.views.nodes import CLEARED, LABEL, RATING, Node

K = TypeVar("K")
V = TypeVar("V")

_TOMBSTONE = b'"erased":true'
"""What stands in a line that was erased."""

_FEW_FOUND, _SHARE_FOUND = 64, 64
"""How often an index is asked at most: so often, or once for so many records that reading everything would read."""

_FIRST = 8
"""How many turns are looked at for the first of a branch that has an answer: most often it is the very first; and for
the nearest of some, whether each stands on it."""

_OF_THE_WHOLE = frozenset(
    {
        "order",
        "roots",
        "head",
        "cleared",
        "requests",
        "unreadable",
        "summaries",
    }
)
"""What is not there before a history is whole; the head, as long as what is known does not tell it."""


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
        self.behind: dict[str, int] = {}
        """The turns that stand behind the place, numbered from 1."""
        self.entries_behind: list[tuple[kinds.Entry, int]] = []
        """What is kept beside the turns of what stands there, with its places."""
        self.firsts: dict[str, Node] = {}
        """The first turn with an answer of the branch of a turn before the place."""
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
        self.nodes = Known(self, "nodes", str, self._found_turn)
        self.programs = Known(self, "programs", str, self._found_program)
        self.kept = Known(self, "kept", tuple, self._found_kept)
        self.annotated = Known(self, "annotated", (str, NoneType), self._found_notes)
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
        self.orphans, self.continued, self.requested, self.firsts = {}, {}, {}, {}
        self.behind, self.entries_behind = {}, []
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
                place = LateHistory._asked(self, lambda index: index.place(name))
                if place is None or place[1] > self._left:
                    complete(self)
            return History.branch(self, turn)

    def __len__(self) -> int:
        """Return how many turns there are."""
        with self.lock():
            before = LateHistory._before(self) if self.is_late else None
            return before + len(self.behind) if before is not None else History.__len__(self)

    def at(self, ordinal: int) -> str | None:
        """Return the turn of an ordinal; None: there are not so many."""
        with self.lock():
            before = LateHistory._before(self) if self.is_late else None
            if before is not None and ordinal > before:
                return next(
                    (turn for turn, n in self.behind.items() if n == ordinal - before), None
                )
            if before is not None:
                found = LateHistory._asked(self, lambda index: index.at(ordinal))
                if found is not None:
                    return found[0] if found else None
            return History.at(self, ordinal)

    def first_done(self, turn: str | None) -> Node | None:
        """Return the first turn of a turn's branch that has an answer."""
        with self.lock():
            if self.is_late and turn is not None:
                found = LateHistory._first_done(self, turn)
                if found is not None:
                    return found[0] if found else None
                complete(self)
            return History.first_done(self, turn)

    def nearest(self, turn: str | None, among: Collection[str | None]) -> str | None:
        """Return the nearest turn on a turn's branch that has an answer and is one of some."""
        with self.lock():
            if (
                self.is_late
                and self.index is not None
                and turn is not None
                and len(among) <= _FIRST
            ):
                node = self.node(turn)
                named = [self.nodes.get(name) for name in among if name is not None]
                found = [n for n in named if n is not None and n.done and self.met(n, node) is n]
                return max(found, key=lambda n: n.seq).id if found else None
            return History.nearest(self, turn, among)

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
        records = LateHistory._asked(self, lambda index: index.turn(turn))
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
            if self.index is None or name not in ("parent", "_children", "ordinal", "depth"):
                return False
            if name in ("ordinal", "depth"):
                place = LateHistory._placed(self, node)
                if place is not None and self.is_late:
                    node.ordinal, node.depth = place
                return place is not None
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

    def _before(self) -> int | None:
        """Return how many turns stand before the place, if an index tells."""
        return LateHistory._asked(self, lambda index: index.count())

    def _placed(self, node: Node) -> tuple[int, int] | None:
        """Return a turn's ordinal, and how many turns stand above it, if an index tells."""
        if node.seq <= self.before:
            return LateHistory._asked(self, lambda index: index.place(node.id))
        before = LateHistory._before(self)
        steps, above = 0, node
        while before is not None and above.seq > self.before:
            if above.parent is None:
                return before + self.behind[node.id], steps
            above, steps = self.nodes[above.parent], steps + 1
        place = LateHistory._placed(self, above) if before is not None and self.is_late else None
        return (before + self.behind[node.id], place[1] + steps) if before and place else None

    def _first_done(self, turn: str) -> list[Node] | None:
        """Return the first turn of a branch that has an answer; nothing: none has; None: only the whole tells."""
        node, line = self.node(turn), []
        while self.is_late and node.seq > self.before:
            line.append(node)
            if node.parent is None:
                break
            node = self.nodes[node.parent]
        else:
            if node.id not in self.firsts:
                found: list[str] | None = None
                for depth in range(_FIRST):
                    found = LateHistory._asked(self, methodcaller("above", node.id, depth))
                    if not found:
                        break
                    first = self.nodes[found[0]]
                    if first.done:
                        self.firsts[node.id] = first
                        break
                else:
                    return None
                if found is None:
                    return None
            if node.id in self.firsts:
                return [self.firsts[node.id]]
        return [node for node in reversed(line) if node.done][:1]

    def _found_kept(self, kind: tuple[str, str]) -> list[list[kinds.Entry]] | None:
        entries = LateHistory._asked(self, lambda index: index.kept(*kind))
        return LateHistory._stand(self, entries, lambda one: (one.plugin, one.entry) == kind)

    def _found_notes(self, turn: str | None) -> list[list[kinds.Entry]] | None:
        entries = LateHistory._asked(self, lambda index: index.noted(turn))
        return LateHistory._stand(
            self,
            entries,
            lambda one: one.turn == turn and (one.plugin, one.entry) in (RATING, LABEL),
        )

    def _stand(
        self, before: list[kinds.Entry] | None, fits: Callable[[kinds.Entry], bool]
    ) -> list[list[kinds.Entry]] | None:
        """Return entries before the place, and those behind it that fit, but for such of what was no turn then."""
        if before is None:
            return None
        found = []
        behind = [(entry, seq) for entry, seq in self.entries_behind if fits(entry)]
        for entry, seq in [*((entry, entry.seq) for entry in before), *behind]:
            node = self.nodes.get(entry.turn) if entry.turn is not None else None
            if entry.turn is None or (node is not None and node.seq < seq):
                found.append(entry)
        return [found] if self.is_late else None

    def _found_program(self, version: str) -> list[kinds.Program] | None:
        return LateHistory._asked(self, lambda index: index.program(version))

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
    parent = tree.found(record.parent) if record.parent is not None else None
    tree.nodes[record.turn] = LateNode(record, seq, kept, tree)
    if parent is not None and (parent.seq > tree.before or parent.id in tree.with_children):
        parent.add_child(record.turn)
    elif record.parent is not None:
        tree.continued.setdefault(record.parent, []).append(record.turn)
    tree.behind[record.turn] = len(tree.behind) + 1
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
    if node.seq <= tree.before:
        tree.firsts.clear()


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


def _entry(tree: LateHistory, record: kinds.Entry, seq: int, _kept: Kept) -> None:
    tree.entries_behind.append((record, seq))
    # Asked for again, they are found again.
    tree.kept.pop((record.plugin, record.entry), None)
    tree.annotated.pop(record.turn, None)
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
