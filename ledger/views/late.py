"""A history known from a place of the log on; what stands before is read when it is asked for.

The end of a long log answers most of what the next turn needs: where the head is, whether it runs, what the last
turns said. So a conversation is opened at its end, and the rest is read when a question needs it, once, whatever the
question: the history becomes a whole one then, in place, and answers as it would have from the start.

What is known of a turn that was sent behind the place is all there is, since all that is said of a turn follows its
first record; but for its parent, if that is not known, and for what is counted from the beginning (`ordinal`, `depth`,
`versions`). How it works: what is not known is not there. An attribute that is missing, a turn or program that is not
found, makes the history whole, and is looked for again.

Taken for granted, until it is whole: that no turn is recorded again under an id that stands before the place (a whole
history keeps the first), and that a program's record stands before the turns that it made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from ledger.records import kinds
from ledger.views.history import FOLDS, Fold, History
from ledger.views.nodes import CLEARED, Node

V = TypeVar("V")

_PLAIN = re.compile(r"[A-Za-z0-9._:@+-]{1,200}")
"""What every writer of JSON spells in the same way."""

_TOMBSTONE = b'"erased":true'
"""What stands in a line that was erased."""

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


class LateHistory(History):
    """A history known from a place on. It becomes a `History` when it is asked for what stands before.

    Args: before: how many records stand before the first that will be folded. beginning: records of the log's
    beginning: their programs are known. complete: reads the log from its start, and has `become` make this whole.
    erased_from: whether turns were taken out, so that what a turn says it was shown may be more than there is now.
    mentions: says whether bytes stand anywhere in the log.
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
    ) -> None:
        super().__init__(conversation)
        self._mentions = mentions
        if erased_from or mentions is None:
            self.takes_their_word = not erased_from
        else:
            del (
                self.takes_their_word
            )  # A log that was copied may hold what was erased elsewhere: it is looked for.
        self.position = before
        self.nodes = _Known(self, "nodes")
        self.programs = _Known(self, "programs")
        self.complete = complete
        """Reads what stands before. Raises: store-gone: the log was made anew since; and as the store's `read`."""
        self.meets_damage = False
        for name in _OF_THE_WHOLE:
            delattr(self, name)
        for record in beginning:
            if isinstance(record, kinds.Program):
                self.programs.setdefault(record.version, record)

    def __getattr__(self, name: str) -> Any:
        if name == "takes_their_word" and self._mentions is not None:
            self.takes_their_word = not self._mentions(_TOMBSTONE)
            return self.takes_their_word
        if name not in _OF_THE_WHOLE:
            raise AttributeError(name)
        _complete(self)
        return getattr(self, name)

    def become(self, records: Iterable[kinds.Recorded | Mapping[str, Any]]) -> None:
        """Become the whole history of these records: all up to `position` at least.

        Nodes stay the same objects: who holds one goes on with it.
        """
        whole = History.of(records, conversation=self.conversation)
        for turn, node in dict.items(self.nodes):
            if turn in whole.nodes:
                node.become(whole.nodes[turn])
                whole.nodes[turn] = node
        vars(self).update(vars(whole))
        self.__class__ = History  # type: ignore[assignment]

    @property
    def is_damaged(self) -> bool:
        """Whether something of what is known could not be handed out."""
        return self.meets_damage

    def request(self, request_id: str) -> str | None:
        """Return the first turn that was sent under a request id."""
        return super().request(request_id) if self._may_name(request_id) else None

    def has_program(self, version: str) -> bool:
        """Say whether a program's record stands in the log: it does before each turn that was made by it."""
        made_by = {node.record.program for node in dict.values(self.nodes)}
        if version in made_by or dict.__contains__(self.programs, version):
            return True
        return self._may_name(version) and super().has_program(version)

    def _may_name(self, text: str) -> bool:
        """Say whether a log may hold a text. Its bytes are looked through, which is quicker than reading it."""
        if self._mentions is None or not _PLAIN.fullmatch(text):
            return True
        return self._mentions(f'"{text}"'.encode())

    def _folds(self) -> Mapping[type, Fold]:
        return _FOLDS


def _complete(history: History) -> None:
    """Have a history become whole, if it is not yet."""
    if isinstance(history, LateHistory):
        history.complete(history)


class _Known(dict[str, V]):
    """What is known by name, before a history is whole. What is asked for and not here makes it so."""

    def __init__(self, history: LateHistory, name: str) -> None:
        super().__init__()
        self._history, self._name = history, name

    @property
    def _all(self) -> dict[str, V]:
        _complete(self._history)
        found: dict[str, V] = getattr(self._history, self._name)
        return found

    def __missing__(self, key: str) -> V:
        return self._all[key]

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._all

    def get(self, key: str, default: Any = None) -> Any:
        """Return what has a name, or the default."""
        return self[key] if super().__contains__(key) else self._all.get(key, default)

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
    """A turn of a late history. It lacks what is counted from the beginning, and a parent that is not known."""

    __slots__ = ()

    def __init__(self, record: kinds.Turn, seq: int, history: LateHistory) -> None:
        self._begin(record, seq)
        self.history = history
        if record.parent is None or dict.__contains__(history.nodes, record.parent):
            self.parent = record.parent

    def __getattr__(self, name: str) -> Any:
        if name not in Node.__slots__:
            raise AttributeError(name)
        _complete(self.history)
        if isinstance(self, LateNode):  # The log has it no more.
            raise AttributeError(name)
        return getattr(self, name)


# -- the fold, where it differs ------------------------------------------------------------------------


def _turn(tree: LateHistory, record: kinds.Turn, seq: int) -> None:
    if tree.found(record.turn) is not None:
        return
    parent = tree.found(record.parent) if record.parent is not None else None
    tree.nodes[record.turn] = LateNode(record, seq, tree)
    if parent is not None:
        parent.children = [*parent.children, record.turn]
    tree.head = record.turn


def _head(tree: LateHistory, record: kinds.Head, _seq: int) -> None:
    if tree.found(record.turn) is not None:
        tree.head = record.turn
    else:
        vars(tree).pop("head", None)  # That may be a turn, or none.


def _entry(tree: LateHistory, record: kinds.Entry, _seq: int) -> None:
    if (record.plugin, record.entry) != CLEARED:
        return
    if record.turn is None or tree.found(record.turn) is not None:
        tree.head = None
    else:
        vars(tree).pop("head", None)


def _unreadable(tree: LateHistory, _record: kinds.Unreadable, _seq: int) -> None:
    tree.meets_damage = True


_FOLDS: dict[type, Fold] = {
    **FOLDS,
    kinds.Turn: _turn,
    kinds.Head: _head,
    kinds.Entry: _entry,
    kinds.Unreadable: _unreadable,
}
