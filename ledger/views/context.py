"""What a turn is shown, and how that is recorded: `saw`, and `shown_entries` for a summary.

A record must not grow with the conversation, so a turn that saw exactly what its parent saw, and
then the parent, says so in two entries: `[{"saw_of": parent}, <the parent's entry>]`. To know it
without expanding the parent's whole list each time, `_saw_line` proves by induction along the
links: a turn saw the whole line up to a turn when its own entries are the end of that line and the
turn it links to saw the rest. What was proven is kept in the tree by rule, for turns that ended
only: their `saw` changes no more. The line itself changes when a turn ends late, with children: the
fold then empties `proven` (`history._ended`); these two must stay in step. Other rules compare as many
entries as they show.

A list of one entry is written as it is: the short form would be the longer one, and other writers
do the same. After a merge, which saw none of its line, the next turn links to the nearest turn that did,
and names the merge and what lies between: the record stays as short.

A summary is no entry of `saw`, since it is no turn: the place of its entry stands in `shown_entries`, in
each record anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

from ledger.errors import StoreCorrupt
from ledger.records import kinds
from ledger.records.messages import Message
from ledger.views import exchange, summaries
from ledger.views.earlier import STEPS, Earlier, Entry, entry_of, row_of
from ledger.views.nodes import Node, Tree, payload
from ledger.views.place import nearest_done
from ledger.views.rules import Again, Pick, Rule, Window
from ledger.views.summaries import Summary, Wanted

# -- what a new turn is shown ----------------------------------------------------------------------


class Shown:
    """What a turn under a parent is shown by a rule; each part is made when it is asked for, once.

    A rule's own functions are asked then, and what they raise is raised.
    """

    def __init__(
        self, tree: Tree, parent: str | None, rule: Rule, *, foresee: bool = False
    ) -> None:
        self._tree = tree
        self._foresee = foresee
        self._newest = nearest_done(tree, parent)
        self.parent = parent
        """The turn that it continues; None: it is a first turn."""
        self.rule = rule

    @property
    def turns(self) -> list[str]:
        """The turns shown, oldest first."""
        return [turn.id for turn in self.earlier]

    @cached_property
    def earlier(self) -> list[Earlier]:
        """The turns shown, oldest first, as rules see them."""
        return list(self._pick.turns)[::-1]

    @property
    def is_all(self) -> bool:
        """Whether every turn of the branch is shown as it is: by `all_turns()`, with nothing left out."""
        return self.rule == Window()

    @property
    def is_whole(self) -> bool:
        """Whether the rule shows every turn of the branch, and need not be asked which."""
        return isinstance(self.rule, Window) and self.rule.last is None

    @property
    def summary(self) -> Summary | None:
        """The summary that is shown before them. Its `text` is None where it is still to be made."""
        return self._pick.summary

    @property
    def wants(self) -> Wanted | None:
        """The summary that is to be made before the turn is sent."""
        return self._pick.wants

    @property
    def entries(self) -> list[int]:
        """The places of the entries that are shown: that of the summary."""
        return [self.summary.seq] if self.summary is not None and self.summary.seq else []

    @cached_property
    def saw(self) -> list[Entry]:
        """The entries for the new turn's record, in the short form where it applies."""
        newest, rule = self._newest, self.rule
        if isinstance(rule, Window) and self.is_whole:
            return self._line_entries(rule)
        entries = [turn.entry for turn in self.earlier]
        if newest is None or len(entries) < 2 or entries[-1]["call"] != newest:
            return entries
        same = _saw_exactly(self._tree, newest, entries[:-1])
        return [{"saw_of": newest}, entries[-1]] if same else entries

    def _line_entries(self, rule: Window) -> list[Entry]:
        """Link to the nearest turn that saw the whole line before it, and name those after it.

        That is the parent, but after turns that saw something else, such as merges.
        """
        named: list[Entry] = []
        did_not: set[str] = set()
        for node in _line(self._tree, self._newest):
            named.append(_entry(node, rule))
            before = _before(self._tree, node.id)
            told = self.is_all and self._tree.takes_their_word and node.record.saw_all
            if before is not None and (
                told or _saw_line(self._tree, rule, node.id, before, did_not)
            ):
                return [{"saw_of": node.id}, *reversed(named)]
        return named[::-1]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What `earlier()` gives: the summary's row, if there is one, then one fresh dict per shown turn,
        oldest first: its inputs and outputs by name.

        Raises: store-corrupt: one of these fields does not decode.
        """
        first = [self.summary.row] if self.summary is not None else []
        return [*first, *(turn.row for turn in self.earlier)]

    @property
    def messages(self) -> list[Message]:
        """The same as messages: the instructions, the summary, then what each turn added. Raises: store-corrupt."""
        text = self.summary.text if self.summary is not None else None
        entries = [turn.entry for turn in self.earlier]
        return exchange.window(self._tree, self._newest, entries, text)

    @cached_property
    def _pick(self) -> Pick:
        line = (Earlier(self._tree, node) for node in _line(self._tree, self._newest))
        return self.rule.pick(Pick(line, lambda: self._tree.summaries, self._foresee))


def shown(tree: Tree, parent: str | None, rule: Rule, *, foresee: bool = False) -> Shown:
    """Return what a turn under `parent` (None: a first turn) is shown.

    Args: foresee: take a summary that is to be made first as made; else the turns are shown in its place.
    Raises: turn-unknown.
    """
    return Shown(tree, parent, rule, foresee=foresee)


def _line(tree: Tree, turn: str | None) -> Iterator[Node]:
    """Yield the `done` turns from a turn to its root."""
    return (node for node in tree.upward(turn) if node.done)


def _before(tree: Tree, turn: str) -> str | None:
    return nearest_done(tree, tree.nodes[turn].parent)


def _entry(node: Node, rule: Window) -> Entry:
    return entry_of(node, rule.without, steps=rule.steps)


# -- the short form --------------------------------------------------------------------------------


def _saw_line(tree: Tree, rule: Window, turn: str, upto: str | None, did_not: set[str]) -> bool:
    """Say whether a turn saw exactly the done turns from the root to `upto`, shown by the rule.

    A "no" holds as long as one line is asked about; it is not kept beyond that, since it costs no more than the long
    list that is then written.
    Args: did_not: the turns of the line of which that is known; takes those that are found, since who goes on from the
    list of one did not either.
    """
    proven = tree.proven.setdefault(rule, {})
    walked: dict[str, str | None] = {}
    while turn not in proven:
        own = followed(tree, turn) if turn not in did_not else None
        if own is None or turn in walked:
            did_not.update(walked, (turn,))
            return False
        walked[turn] = upto
        for entry in reversed(own.entries):
            if upto is None or entry != _entry(tree.nodes[upto], rule):
                did_not.update(walked)
                return False
            upto = _before(tree, upto)
        if own.of is None:
            break
        turn = own.of
    if proven.get(turn) != upto:
        did_not.update(walked)
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


def without(tree: Tree, turn: str) -> dict[str, list[str]]:
    """Return what was left out of the turns that a turn was shown, by their ids; those shown whole are not named.

    The names of fields, as recorded; and `steps`, of a turn that called tools and was shown without. (Of an import
    nobody knows how its turns were shown, so there it is not told.) Raises as `expand`.
    """
    tells_steps = not kinds.has(tree.node(turn).record.source)
    found: dict[str, list[str]] = {}
    for entry in expand(tree, turn):
        node = tree.nodes.get(entry.get("call", ""))
        if node is not None and (names := _left_out(node, entry, tells_steps)):
            found[node.id] = names
    return found


def _left_out(node: Node, entry: Entry, tells_steps: bool) -> list[str]:
    named = entry.get("without")
    names = [n for n in named if isinstance(n, str)] if isinstance(named, list) else []
    bare = tells_steps and entry.get("steps") is not True and STEPS not in names
    return [*names, STEPS] if bare and exchange.has_rounds(node) else names


def again(tree: Tree, turn: str) -> Rule:
    """Return the rule that shows what a turn was shown once more. Raises as `expand`."""
    return Again(turn, tuple(expand(tree, turn)), tuple(shown_entries(tree.node(turn))))


def rows(tree: Tree, turn: str) -> list[dict[str, Any]]:
    """Return what a turn was shown, as recorded: fresh dicts of inputs and outputs by name, oldest first.

    A summary that it was shown comes first. What is not known any more is left out. Raises as `expand`.
    """
    summary = summary_of(tree, turn)
    found = [summary.row] if summary is not None else []
    for entry in expand(tree, turn):
        node = tree.nodes.get(entry.get("call", ""))
        if node is not None and node.done:
            found.append(row_of(node, entry))
    return found


def messages(tree: Tree, turn: str) -> list[Message]:
    """Return what a turn was shown, as recorded, as messages (`Shown.messages`). Raises as `expand`."""
    summary = summary_of(tree, turn)
    text = summary.text if summary is not None else None
    after = nearest_done(tree, tree.node(turn).parent)
    return exchange.window(tree, after, expand(tree, turn), text, of=turn)


def shown_entries(node: Node) -> list[int]:
    """Return the places of the entries that a turn was shown: `ended`'s, else `turn`'s. Raises: store-corrupt."""
    for record in (node.ended, node.record):
        if record is not None and kinds.has(record.shown_entries):
            value = payload(record, "shown_entries")
            if isinstance(value, list):
                return [place for place in value if type(place) is int]
    return []


def summary_of(tree: Tree, turn: str) -> Summary | None:
    """Return the summary that a turn was shown; None: none, or it was taken out since.

    Raises: turn-unknown, store-corrupt.
    """
    found = (summaries.at(tree, place) for place in shown_entries(tree.node(turn)))
    return next((summary for summary in found if summary is not None), None)


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
