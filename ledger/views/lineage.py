"""Where an answer comes from: what its turn saw and read, and what those rested on, and so on.

A turn's answer rests on the turns that it was shown (`saw`), those that it merged (`read`), and those for
which a summary stands that it was shown (`summary`).
Lists of `saw` are linked (`saw_of`), so the walks below go over three kinds of places, answers,
lists and summaries, each visited once: linear in the size of the records, however long the expanded lists are.
`rests_on` walks from an answer down, `influenced` from an answer up; they must stay in step.

One turn's damage must not hide the others': on these walks a field that does not read adds nothing.
What is named but is no turn of this log is reported in `missing`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import msgspec

from ledger.errors import StoreCorrupt
from ledger.views import summaries
from ledger.views.branches import branch
from ledger.views.context import followed, saw, shown_entries, without
from ledger.views.nodes import Node, Tree, model_of, payload, readable_reads, reads
from ledger.views.text import runs_text, without_text

How = Literal["saw", "read", "summary", "through"]


class Rest(msgspec.Struct, frozen=True):
    """One turn on which an answer rests, and how."""

    turn: str
    how: How
    """`saw`: it was shown. `read`: it was merged. `summary`: it is one of those for which a shown summary stands.
    `through`: another such turn rests on it so."""
    through: str | None = None
    """The turn that rests on it itself, on a shortest way; None unless `how` is `through`."""


class Lineage:
    """Where one turn's answer comes from and went to; each part is worked out when asked for."""

    def __init__(self, tree: Tree, turn: str) -> None:
        self._tree = tree
        self._node = tree.node(turn)
        self.turn = turn

    @cached_property
    def ancestors(self) -> list[str]:
        """The turns of its branch before it, the first one first."""
        return branch(self._tree, self.turn)[:-1]

    @cached_property
    def saw(self) -> list[str]:
        """The turns that it was shown, oldest first, as recorded. Raises as `History.saw`."""
        return saw(self._tree, self.turn)

    @cached_property
    def without(self) -> dict[str, list[str]]:
        """What was left out of the turns that it was shown, by their ids; one that was shown whole is not named.

        The names of fields, and `steps` of a turn that called tools. Raises as `History.saw`.
        """
        return without(self._tree, self.turn)

    @cached_property
    def read(self) -> list[str]:
        """The turns that it merged, in the order given. Raises: store-corrupt."""
        return reads(self._tree, self._node)

    @cached_property
    def summaries(self) -> list[int]:
        """The places in the log of the summaries that it was shown, also of those taken out since.

        Raises: store-corrupt.
        """
        return shown_entries(self._node)

    @cached_property
    def made_by(self) -> dict[str, Any] | None:
        """The program that merged (`name`, `version`, `call`), or None. Raises: store-corrupt."""
        value = payload(self._node.record, "made_by")
        return value if isinstance(value, dict) else None

    @cached_property
    def rests_on(self) -> list[Rest]:
        """Every turn on which its answer rests, each once, in log order; not itself.

        Of `saw`, `read` and `summary` the first that is true is told.
        """
        return self._closure[0]

    @cached_property
    def missing(self) -> list[str]:
        """The ids named on the way that are no turns of this log: void, damaged, or elsewhere."""
        return self._closure[1]

    @cached_property
    def influenced(self) -> list[str]:
        """Every turn whose answer rests on this one's, in log order; not itself."""
        return influenced(self._tree, self.turn)

    @cached_property
    def _closure(self) -> tuple[list[Rest], list[str]]:
        return rests_on(self._tree, self.turn)

    def to_dict(self) -> dict[str, Any]:
        """Return all this as JSON data; turns are named by id."""
        return {
            "turn": self.turn,
            "ancestors": self.ancestors,
            "saw": self.saw,
            "without": self.without,
            "read": self.read,
            "summaries": self.summaries,
            "made_by": self.made_by,
            "rests_on": [
                {"turn": rest.turn, "how": rest.how, "through": rest.through}
                for rest in self.rests_on
            ],
            "influenced": self.influenced,
            "missing": self.missing,
        }

    def __repr__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """Return all this as text for people: ordinals, short ids, models; long runs as ranges."""
        return "\n".join(_explained(self._tree, self))


def lineage(tree: Tree, turn: str) -> Lineage:
    """Return where a turn's answer comes from. Raises: turn-unknown."""
    return Lineage(tree, turn)


def rests_on(tree: Tree, turn: str) -> tuple[list[Rest], list[str]]:
    """Return the turns on which an answer rests, in log order, and ids that are no turns here."""
    found: dict[str, Rest] = {}
    missing: dict[str, None] = {}
    opened: set[str | int] = set()
    queue = deque([turn])
    while queue:
        user = queue.popleft()
        for how, used in _uses(tree, user, opened):
            if used not in tree.nodes:
                missing[used] = None
            elif used != turn and used not in found:
                found[used] = Rest(used, how) if user == turn else Rest(used, "through", user)
                queue.append(used)
    rests = sorted(found.values(), key=lambda rest: tree.nodes[rest.turn].ordinal)
    return rests, list(missing)


def _uses(tree: Tree, user: str, opened: set[str | int]) -> Iterator[tuple[How, str]]:
    """Yield what a turn saw, then what it read, then what its summary stands for, but for the lists and
    summaries that were opened before."""
    link: str | None = user
    while link is not None and link not in opened:
        opened.add(link)
        if link not in tree.nodes:
            yield "saw", link
        own = followed(tree, link)
        for entry in own.entries if own is not None else ():
            yield "saw", entry["call"]
        link = own.of if own is not None else None
    for read in readable_reads(tree, tree.nodes[user]):
        yield "read", read
    for place in _summaries_of(tree, tree.nodes[user]):
        summary = summaries.at(tree, place) if place not in opened else None
        opened.add(place)
        for turn in summary.turns if summary is not None else ():
            yield "summary", turn


def _summaries_of(tree: Tree, node: Node) -> list[int]:
    try:
        return shown_entries(node)
    except StoreCorrupt:
        return []


def influenced(tree: Tree, turn: str) -> list[str]:
    """Return the turns whose answers rest on a turn's, in log order. Reads every turn's list."""
    named, linked, read = _users(tree)
    stands, shown = _summary_users(tree)
    told: set[int] = set()
    reached: set[str] = set()
    lists: set[str] = set()
    answers = [turn]
    while answers:
        used = answers.pop()
        holders = list(named[used])
        fresh = set(read[used])
        for place in stands[used]:
            if place not in told:
                told.add(place)
                fresh.update(shown[place])
        while holders:
            holder = holders.pop()
            if holder not in lists:
                lists.add(holder)
                fresh.add(holder)
                holders.extend(linked[holder])
        answers.extend(fresh - reached)
        reached |= fresh
    reached.discard(turn)
    return sorted(reached, key=lambda user: tree.nodes[user].ordinal)


_Users = defaultdict[str, list[str]]


def _users(tree: Tree) -> tuple[_Users, _Users, _Users]:
    """Return by turn: whose own list names it, whose list goes on from its list, who read it."""
    named: _Users = defaultdict(list)
    linked: _Users = defaultdict(list)
    read: _Users = defaultdict(list)
    for node in tree.every():
        own = followed(tree, node.id)
        for entry in own.entries if own is not None else ():
            named[entry["call"]].append(node.id)
        if own is not None and own.of is not None:
            linked[own.of].append(node.id)
        for used in readable_reads(tree, node):
            read[used].append(node.id)
    return named, linked, read


def _summary_users(tree: Tree) -> tuple[defaultdict[str, list[int]], defaultdict[int, list[str]]]:
    """Return by turn: the summaries that stand for it; and by summary: the turns that were shown it."""
    stands: defaultdict[str, list[int]] = defaultdict(list)
    shown: defaultdict[int, list[str]] = defaultdict(list)
    for node in tree.every() if tree.summaries else ():
        for place in _summaries_of(tree, node):
            shown[place].append(node.id)
    for place in shown:
        summary = summaries.at(tree, place)
        for turn in summary.turns if summary is not None else ():
            stands[turn].append(place)
    return stands, shown


# -- text for people -------------------------------------------------------------------------------

_MOST_LINES = 20
_MOST_MODELS = 4


def _explained(tree: Tree, line: Lineage) -> Iterator[str]:
    node = tree.nodes[line.turn]
    ended = node.outcome if node.outcome is not None else "not ended"
    state = "erased" if node.erased else ended
    maker = _maker(line)
    yield f"{_turns(tree, [line.turn])}: {state}" + (f", made by {maker}" if maker else "")
    if line.ancestors:
        yield f"  continues {_turns(tree, line.ancestors)}"
    elif node.record.parent is None:
        yield "  is a first turn"
    else:
        yield "  continues a turn that cannot be read here"
    count = len(line.rests_on)
    yield f"  rests on {count} other turn{'' if count == 1 else 's'}" + (":" if count else "")
    groups = _groups(tree, line)
    for how, turns, lacking in groups[:_MOST_LINES]:
        yield f"    {how} {_turns(tree, turns)}{_models(tree, turns)}{lacking}"
    if groups[_MOST_LINES:]:
        rest = [turn for _, turns, _ in groups[_MOST_LINES:] for turn in turns]
        yield f"    and {_turns(tree, rest)}{_models(tree, rest)}"
    erased = [rest.turn for rest in line.rests_on if tree.nodes[rest.turn].erased]
    if erased:
        yield f"    erased since: {_turns(tree, erased)}"
    if line.missing:
        count = len(line.missing)
        yield f"  names {count} turn{'' if count == 1 else 's'} that cannot be read here"
    if line.influenced:
        yield f"  influenced {_turns(tree, line.influenced)}"


def _groups(tree: Tree, line: Lineage) -> list[tuple[str, list[str], str]]:
    """Return lines of turns by how they were used, and without what: seen together, less the same, merged alone,
    summarized, then the rest by the turn through which they came, the newest first."""
    rests, lacked = line.rests_on, _lacked(line)
    seen: dict[tuple[str, ...], list[str]] = {}
    passed: dict[int, list[str]] = defaultdict(list)
    for rest in rests:
        if rest.how == "saw":
            seen.setdefault(tuple(lacked.get(rest.turn, ())), []).append(rest.turn)
        if rest.through is not None:
            passed[tree.nodes[rest.through].ordinal].append(rest.turn)
    lines = [("saw", turns, without_text(names)) for names, turns in seen.items()]
    lines += [("read", [rest.turn], "") for rest in rests if rest.how == "read"]
    folded = [rest.turn for rest in rests if rest.how == "summary"]
    lines += [("was shown a summary of", folded, "")] if folded else []
    through = sorted(passed, reverse=True)
    return lines + [(f"through turn {by}:", passed[by], "") for by in through]


def _lacked(line: Lineage) -> dict[str, list[str]]:
    """Return what was left out of the turns that it was shown, as far as its list reads."""
    try:
        return line.without
    except StoreCorrupt:
        return {}


def _maker(line: Lineage) -> str:
    try:
        name = (line.made_by or {}).get("name")
    except StoreCorrupt:
        return ""
    return name if isinstance(name, str) else ""


def _models(tree: Tree, turns: list[str]) -> str:
    named = (model_of(tree.nodes[turn]) for turn in turns)
    models = list(dict.fromkeys(model for model in named if model))
    more = len(models) - _MOST_MODELS
    shown = ", ".join(models[:_MOST_MODELS]) + (f" and {more} more" if more > 0 else "")
    return f" ({shown})" if models else ""


def _turns(tree: Tree, turns: list[str]) -> str:
    """Name turns by ordinal, runs as ranges; one turn alone also by the end of its id."""
    if len(turns) == 1:
        return f"turn {tree.nodes[turns[0]].ordinal} {turns[0][-8:]}"
    return "turns " + runs_text(sorted(tree.nodes[turn].ordinal for turn in turns))
