"""What a turn is shown, and how that is recorded: `saw`.

A record must not grow with the conversation, so a turn that saw exactly what its parent saw, and
then the parent, says so in two entries: `[{"saw_of": parent}, <the parent's entry>]`. To know it
without expanding the parent's whole list each time, `_saw_line` proves by induction along the
links: a turn saw the whole line up to a turn when its own entries are the end of that line and the
turn it links to saw the rest. What was proven is kept in the tree by rule, for turns that ended
only: their `saw` changes no more. The line itself changes when a turn ends late, with children: the
fold then empties `proven` (`history._ended`); these two must stay in step.

A list of one entry is written as it is: the short form would be the longer one, and other writers
do the same. After a merge, which saw none of its line, the next turn links to the nearest turn that did,
and names the merge and what lies between: the record stays as short.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from ledger.errors import StoreCorrupt
from ledger.records import kinds
from ledger.views.nodes import Node, Tree, mapping, payload
from ledger.views.place import nearest_done

Entry = dict[str, Any]
"""One entry of `saw`: `{"call": id}`, with `without` (sorted names) when fields were left out."""


# -- which turns are shown -------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Which earlier turns a new turn is shown. Made by `all_turns` and `last_turns`."""

    last: int | None = None
    """How many, at most; None: all."""
    without: tuple[str, ...] = ()
    """The names of the fields that are left out, sorted, each once."""


def all_turns(*, without: Iterable[str] = ()) -> Rule:
    """Show every `done` turn of the branch, without the named fields."""
    return Rule(None, _names(without))


def last_turns(n: int, *, without: Iterable[str] = ()) -> Rule:
    """Show the last n `done` turns of the branch, without the named fields. Raises: ValueError."""
    if type(n) is not int or n < 0:
        raise ValueError(f"last_turns takes a whole number that is not negative, not {n!r}")
    return Rule(n, _names(without))


def _names(without: Iterable[str]) -> tuple[str, ...]:
    names = list(without)
    if isinstance(without, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"without takes a list of names, not {without!r}")
    return tuple(sorted(set(names)))


class Shown:
    """What a turn under a parent is shown by a rule; each part is made when it is asked for."""

    def __init__(self, tree: Tree, parent: str | None, rule: Rule) -> None:
        self._tree = tree
        self._rule = rule
        newest = nearest_done(tree, parent)
        self._newest = newest if rule.last != 0 else None

    @cached_property
    def turns(self) -> list[str]:
        """The turns shown, oldest first."""
        return [node.id for node in self._nodes]

    @cached_property
    def saw(self) -> list[Entry]:
        """The entries for the new turn's record, in the short form where it applies."""
        newest, rule = self._newest, self._rule
        if rule.last is None:
            return self._line_entries()
        entries = [_entry(node, rule) for node in self._nodes]
        if newest is None or len(entries) < 2:
            return entries
        same = _saw_exactly(self._tree, newest, entries[:-1])
        return _short(self._tree.nodes[newest], rule) if same else entries

    def _line_entries(self) -> list[Entry]:
        """Link to the nearest turn that saw the whole line before it, and name those after it.

        That is the parent, but after turns that saw something else, such as merges.
        """
        named: list[Entry] = []
        for node in _line(self._tree, self._newest):
            named.append(_entry(node, self._rule))
            before = _before(self._tree, node.id)
            if before is not None and _saw_line(self._tree, self._rule, node.id, before):
                return [{"saw_of": node.id}, *reversed(named)]
        return named[::-1]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One fresh dict per shown turn, oldest first: its inputs and outputs by name.

        Raises: store-corrupt: one of these fields does not decode.
        """
        left_out = set(self._rule.without)
        return [
            {name: value for name, value in _fields(node).items() if name not in left_out}
            for node in self._nodes
        ]

    @property
    def _nodes(self) -> list[Node]:
        upward = _line(self._tree, self._newest)
        return list(islice(upward, self._rule.last))[::-1]


def shown(tree: Tree, parent: str | None, rule: Rule) -> Shown:
    """Return what a turn under `parent` (None: a first turn) is shown. Raises: turn-unknown."""
    return Shown(tree, parent, rule)


def _line(tree: Tree, turn: str | None) -> Iterator[Node]:
    """Yield the `done` turns from a turn to its root."""
    return (node for node in tree.upward(turn) if node.done)


def _before(tree: Tree, turn: str) -> str | None:
    return nearest_done(tree, tree.nodes[turn].parent)


def _fields(node: Node) -> dict[str, Any]:
    return {**mapping(node.record, "inputs"), **mapping(node.ended, "outputs")}


def _entry(node: Node, rule: Rule) -> Entry:
    """Return how a turn is named in `saw`: with the fields left out that it really has."""
    without = _left_out(node, rule.without) if rule.without else []
    return {"call": node.id, "without": without} if without else {"call": node.id}


def _left_out(node: Node, names: tuple[str, ...]) -> list[str]:
    """Return the names that a turn has. A damaged field has none: it cannot be shown anyway."""
    has: set[str] = set()
    for record, field in ((node.record, "inputs"), (node.ended, "outputs")):
        try:
            has.update(mapping(record, field))
        except StoreCorrupt:
            continue
    return [name for name in names if name in has]


# -- the short form --------------------------------------------------------------------------------


def _short(parent: Node, rule: Rule) -> list[Entry]:
    return [{"saw_of": parent.id}, _entry(parent, rule)]


def _saw_line(tree: Tree, rule: Rule, turn: str, upto: str | None) -> bool:
    """Say whether a turn saw exactly the done turns from the root to `upto`, shown by the rule.

    A "no" is not kept: it costs no more than the long list that is then written.
    """
    proven = tree.proven.setdefault(rule, {})
    walked: dict[str, str | None] = {}
    while turn not in proven:
        own = followed(tree, turn)
        if own is None or turn in walked:
            return False
        walked[turn] = upto
        for entry in reversed(own.entries):
            if upto is None or entry != _entry(tree.nodes[upto], rule):
                return False
            upto = _before(tree, upto)
        if own.of is None:
            break
        turn = own.of
    if proven.get(turn) != upto:
        return False
    if all(tree.nodes[link].ended is not None for link in walked):
        proven.update(walked)
    return True


def _saw_exactly(tree: Tree, turn: str, entries: list[Entry]) -> bool:
    """Say whether a turn saw exactly these; reads at most one entry more than they are."""
    if followed(tree, turn) is None:
        return False
    try:
        pairs = zip_longest(_backward(tree, turn), reversed(entries))
        return all(recorded == wanted for recorded, wanted in pairs)
    except StoreCorrupt:  # They go in a circle.
        return False


# -- what was recorded -----------------------------------------------------------------------------


class Saw(NamedTuple):
    """A turn's own list: the turn whose list it goes on from, if any, then its entries."""

    of: str | None
    entries: list[Entry]


def recorded(node: Node) -> Saw | None:
    """Return the list that counts for a turn, not expanded; None when none is recorded.

    `ended`'s, else `waiting`'s, else `turn`'s; an empty one yields to `turn`'s. `saw_of` counts as
    the first entry only, so a list has one link; entries of other shapes are skipped.
    Raises: store-corrupt.
    """
    last = _list(node.ended)
    if last is None:
        last = _list(node.waiting)
    value = last or _list(node.record)
    if value is None:
        value = last
    if value is None:
        return None
    of = _link(value[0]) if value else None
    return Saw(of, [entry for entry in value if _is_entry(entry)])


def expand(tree: Tree, turn: str) -> list[Entry]:
    """Return the entries of what a turn saw, oldest first, each `saw_of` replaced by its entries.

    A link that cannot be followed (to no turn of this log, or to one whose list is not recorded or
    damaged) stays as the first entry, as it is: what stood before is not known.
    Raises: turn-unknown. store-corrupt: the turn's own list does not decode, or the links come back
    to themselves.
    """
    recorded(tree.node(turn))
    return list(_backward(tree, turn))[::-1]


def saw(tree: Tree, turn: str) -> list[str]:
    """Return the ids of the turns that a turn saw, oldest first. Raises as `expand`."""
    return [entry["call"] for entry in expand(tree, turn) if "call" in entry]


def rows(tree: Tree, turn: str) -> list[dict[str, Any]]:
    """Return what a turn was shown, as recorded: fresh dicts of inputs and outputs by name, oldest first.

    What is not known any more is left out. Raises as `expand`.
    """
    found = []
    for entry in expand(tree, turn):
        node = tree.nodes.get(entry.get("call", ""))
        if node is None or not node.done:
            continue
        names = entry.get("without")
        left_out = set(names) if isinstance(names, list) else set()
        found.append({name: v for name, v in _fields(node).items() if name not in left_out})
    return found


def followed(tree: Tree, turn: str) -> Saw | None:
    """Return a turn's own list; None when there is no such turn, or no list of it that reads."""
    node = tree.nodes.get(turn)
    try:
        return recorded(node) if node is not None else None
    except StoreCorrupt:
        return None


def _backward(tree: Tree, turn: str) -> Iterator[Entry]:
    """Yield the expanded entries from the last to the first, reading no more than is asked for."""
    seen = {turn}
    own = followed(tree, turn)
    while own is not None:
        yield from reversed(own.entries)
        link = own.of
        if link is None:
            return
        if link in seen:
            raise StoreCorrupt(
                where=f"turn {turn}",
                seq=tree.node(turn).record.seq,
                reason=f"what it saw comes back to {link}",
            )
        seen.add(link)
        own = followed(tree, link)
        if own is None:
            yield {"saw_of": link}


def _list(record: kinds.Turn | kinds.Waiting | kinds.Ended | None) -> list[Any] | None:
    if record is None or not kinds.has(record.saw):
        return None
    value = payload(record, "saw")
    return value if isinstance(value, list) else None


def _link(entry: Any) -> str | None:
    if isinstance(entry, dict) and len(entry) == 1 and isinstance(entry.get("saw_of"), str):
        return str(entry["saw_of"])
    return None


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("call"), str) and "saw_of" not in entry
