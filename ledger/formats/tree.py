"""A source's tree of records, folded into turns. Pure; any format with parent pointers uses it.

A turn is a prompt and one whole answer to it. Below a prompt the answers form a small tree of their
own; every path through it is a turn:

    prompt ── A1 ── A2 ── A3            a leaf: one turn, path A1 A2 A3
                     ├─── B3            another path: A1 A2 B3, a sibling (same prompt, same parent)
                     └─── prompt        the user goes on from A2: path A1 A2, a sibling too

Structure comes from parent pointers alone. Records that are no part of the talk are walked through,
and what stands below them hangs on the nearest kept record above. Prompts that follow each other
with no answer between are one input: an unanswered prompt has nothing to continue from. Steps without
an answer are none, unless somebody closed the turn: the user went on below them, or stopped them.

**Which record names a path** ("the first record of the answer path that no sibling turn shares").
Where paths part, the oldest way on keeps the records above it as its own, and each younger one
begins with its own first record: above, A3 came first, so that turn is named by A1, the second by
B3, and the third, which has no record of its own, by the prompt that ends it. An answer that is
regenerated shares nothing, so it is named by its own first record. A path without an answer is
named by nothing (null).

Read so, the rule is stable. A source only grows at its leaves or by younger siblings: a longer path
keeps its first record, a younger sibling takes none away from an older one. Had a shared record
belonged to nobody, the first turn above would be named A1 until B3 appeared and A3 afterwards, and
the next import would add it again as its own sibling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ledger.formats.base import DraftTurn, Message, Notes, turn_id
from ledger.formats.nodes import Node, children_of, mended
from ledger.records import times


@dataclass(slots=True, eq=False)
class _Kept:
    """A record that is part of the talk, and what hangs below it."""

    node: Node
    above: _Kept | None
    asides: _Asides | None
    below: list[_Kept] = field(default_factory=list)
    answered: bool = False
    """Whether an answer stands between its prompt and here, itself included."""
    name: str | None = None
    """The record that names the path through here."""
    turn: str | None = None
    """The id of the turn whose path ends here."""

    eldest: _Kept | None = None
    """The oldest of `below`, once it was asked for."""

    @property
    def prompts(self) -> list[_Kept]:
        return [kept for kept in self.below if kept.node.kind == "prompt"]

    @property
    def way_on(self) -> _Kept | None:
        """The oldest record below: it continues the path that is named above."""
        if self.eldest is None and self.below:
            self.eldest = _oldest(self.below)
        return self.eldest


@dataclass(slots=True, eq=False)
class _Asides:
    """Hidden records on the way down, as a chain, so that a long one is shared and not copied."""

    node: Node
    before: _Asides | None


Pair = Callable[[list[Message]], list[Message]]
Identify = Callable[[Node | None, str | None], str]
"""Makes the id of a turn from its prompt and the name of its answer path, as `turn_id` does."""


class Tree:
    """The turns of one conversation.

    Args: nodes: in the order of the source; ids that come twice, parents that are not there and
    circles are mended, with a note. pair: gives tool results the ids of their calls, in the
    messages of one turn. identify: makes the ids of turns, where the source's ids of records hold
    in more than one conversation; default: they hold in this one.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        *,
        format: str,
        conversation: str,
        notes: Notes,
        pair: Pair = list,
        identify: Identify | None = None,
    ) -> None:
        self._format = format
        self._conversation = conversation
        self._pair = pair
        self._identify = identify
        at: dict[str, _Kept | None] = {}
        kept = list(_kept(mended(nodes, notes), at))
        for one in kept:
            _name(one)
        self.turns = list(self._turns(kept, notes))
        _let_go(kept)
        self._turn_at = {node: one.turn for node, one in at.items() if one is not None}

    def turn_at(self, node: str) -> str | None:
        """Return the id of the turn a record belongs to; the oldest one when several share it."""
        return self._turn_at.get(node)

    def _id(self, user: Node | None, name: str | None) -> str:
        made_of = (user.id, name, user.created) if user else (None, name, None)
        return turn_id(self._format, self._conversation, *made_of)

    # -- what becomes a turn

    def _turns(self, kept: list[_Kept], notes: Notes) -> Iterator[DraftTurn]:
        attempts = _attempts(kept, notes)
        counted_by = _counted_by(kept, attempts)
        for end, name in _ends(kept, attempts):
            yield self._turn(end, name, counted_by)
        for lost, first in attempts.items():
            if first is not None:
                lost.turn = first.turn

    def _turn(self, end: _Kept, name: str | None, counted_by: dict[_Kept, _Kept]) -> DraftTurn:
        prompts, path = _way(end)
        top = prompts[0] if prompts else path[0]
        user = prompts[-1].node if prompts else None
        end.turn = (self._identify or self._id)(user, name)
        nodes = [kept.node for kept in path]
        # What stands before an answer that nobody asked for is no part of the answer.
        before = [] if prompts else [m for node in _aside_nodes(path[0]) for m in node.messages]
        return DraftTurn(
            id=end.turn,
            parent=top.above.turn if top.above else None,
            inputs={"message": "\n\n".join(kept.node.text for kept in prompts)},
            outputs={"result": _joined(nodes, end.answered)} if name is not None else None,
            state="done" if name is not None else "abandoned",
            model=_last(node.model for node in nodes),
            usage=_usage(kept for kept in path if counted_by.get(kept) is end),
            messages_in=_messages(prompts) or before,
            messages_out=self._pair(_messages(path)[len(before) :]),
            source=self._source(prompts + path, user, _cut(nodes, end.answered)),
        )

    def _source(self, way: list[_Kept], user: Node | None, cut: str | None) -> dict[str, Any]:
        first, last = way[0].node, way[-1].node
        told = {
            "prompt": user.id if user else None,
            "context": [node.id for kept in way for node in _aside_nodes(kept)] or None,
            "created": _time(first.created),
            "updated": _time(last.updated or last.created),
            "cut": cut,
        }
        return {
            "format": self._format,
            "conversation": self._conversation,
            "records": [kept.node.id for kept in way],
            **{key: value for key, value in told.items() if value is not None},
        }


# -- what is kept ----------------------------------------------------------------------------------


def _kept(nodes: dict[str, Node], at: dict[str, _Kept | None]) -> Iterator[_Kept]:
    """Yield the records that are part of the talk, parents first, and hang them together.

    Args: at: takes for each record the nearest one that is kept, from it upwards.
    """
    children = children_of(nodes.values())
    stack: list[tuple[Node, _Kept | None, _Asides | None]] = [
        (node, None, None) for node in reversed(children.get(None, []))
    ]
    while stack:
        node, above, asides = stack.pop()
        kind = node.kind
        if kind == "aside" or (kind == "step" and above is None):
            asides = _Asides(node, asides)
        elif kind != "nothing":
            above = _Kept(node, above, asides)
            asides = None
            if above.above is not None:
                above.above.below.append(above)
            yield above
        at[node.id] = above
        stack += [(child, above, asides) for child in reversed(children.get(node.id, []))]


def _let_go(kept: list[_Kept]) -> None:
    """Give each record the turn that it belongs to, and have none hold those below it.

    So what was read is gone as soon as it is not needed: a circle would wait for the garbage collector.
    """
    for one in reversed(kept):  # What is below was done before.
        if one.turn is None and one.way_on is not None:
            one.turn = one.way_on.turn
        one.below = []
        one.eldest = None


# -- naming paths ----------------------------------------------------------------------------------


def _name(kept: _Kept) -> None:
    """Say what names the path through a record; its parent was named before."""
    node, above = kept.node, kept.above
    if node.kind == "prompt":
        return
    if above is None or above.node.kind == "prompt":
        kept.name = node.id
        kept.answered = node.kind == "answer"
    else:
        kept.name = above.name if above.way_on is kept else node.id
        kept.answered = above.answered or node.kind == "answer"


def _oldest(siblings: list[_Kept]) -> _Kept:
    """Return the oldest sibling: by time when all have one, else (and when equal) the first.

    Time, because lists of children may be absent in one export and there in the next, and the order
    of the records may be any; it says here who was first, never what follows what.
    """
    if len(siblings) == 1:
        return siblings[0]
    moments = [kept.node.created for kept in siblings]
    known = [moment for moment in moments if moment is not None]
    if len(known) < len(siblings):
        return siblings[0]
    return siblings[moments.index(min(known))]


def _attempts(kept: list[_Kept], notes: Notes) -> dict[_Kept, _Kept | None]:
    """Return the leaves with steps and no answer; each but a prompt's oldest yields to that one.

    They have one name, null. What the others hold is in the source's own record.
    """
    by_prompt: dict[_Kept, list[_Kept]] = {}
    for one in kept:
        if not one.below and one.node.kind == "step" and not (one.answered or one.node.closed):
            prompt = one.above
            while prompt is not None and prompt.node.kind != "prompt":
                prompt = prompt.above
            if prompt is not None:
                by_prompt.setdefault(prompt, []).append(one)
    found: dict[_Kept, _Kept | None] = {}
    for leaves in by_prompt.values():
        first = _oldest(leaves)
        notes.counts["unanswered attempts beside another left out"] += len(leaves) - 1
        found.update((leaf, None if leaf is first else first) for leaf in leaves)
    return found


def _ends(
    kept: list[_Kept], attempts: dict[_Kept, _Kept | None]
) -> Iterator[tuple[_Kept, str | None]]:
    """Yield where turns end, each with what names its answer path; parents first."""
    for end in kept:
        if end.node.kind == "prompt":
            if not end.below:
                yield end, None
        elif prompts := end.prompts:
            named_above = end.way_on is not None and end.way_on.node.kind == "prompt"
            yield end, end.name if named_above else _oldest(prompts).node.id
        elif not end.below and (end.answered or end.node.closed):
            yield end, end.name
        elif not end.below and attempts.get(end) is None:
            yield end, None


def _counted_by(kept: list[_Kept], attempts: dict[_Kept, _Kept | None]) -> dict[_Kept, _Kept]:
    """Return for each record below a prompt where the turn ends that counts what it has used.

    That is the oldest of the turns that share it: the one that it names, unless that one is an attempt left out.
    """
    found: dict[_Kept, _Kept] = {}
    for one in reversed(kept):  # What is below was done before.
        if one.node.kind == "prompt":
            continue
        if not one.below:
            if attempts.get(one) is None:
                found[one] = one
        elif ways := [way for way in one.below if way.node.kind == "prompt" or way in found]:
            way = one.way_on if one.way_on in ways else _oldest(ways)
            found[one] = found.get(way, one)
    return found


# -- one turn --------------------------------------------------------------------------------------


def _way(end: _Kept) -> tuple[list[_Kept], list[_Kept]]:
    """Return the prompts and the answer path of the turn that ends here, each from the top."""
    path: list[_Kept] = []
    prompts: list[_Kept] = []
    at: _Kept | None = end
    while at is not None and at.node.kind != "prompt":
        path.append(at)
        at = at.above
    while at is not None and at.node.kind == "prompt":
        prompts.append(at)
        at = at.above
    return prompts[::-1], path[::-1]


def _aside_nodes(kept: _Kept) -> list[Node]:
    asides = kept.asides
    if asides is None:
        return []
    nodes: list[Node] = []
    while asides is not None:
        nodes.append(asides.node)
        asides = asides.before
    return nodes[::-1]


def _messages(path: list[_Kept]) -> list[Message]:
    messages: list[Message] = []
    for kept in path:
        for node in _aside_nodes(kept):
            messages += node.messages
        messages += kept.node.messages
    return messages


def _joined(path: list[Node], answered: bool) -> str:
    """Join what was said back; a piece that only ran out of room goes on without a gap.

    Without an answer it is what was said last on the way to one.
    """
    if not answered:
        return _last(node.text for node in path) or ""
    out = ""
    whole = True
    for node in path:
        if node.kind == "answer" and node.text:
            out += ("\n\n" if out and whole else "") + node.text
            whole = node.cut != "length"
    return out


def _usage(path: Iterable[_Kept]) -> dict[str, int] | None:
    """Add up what records have used."""
    total: dict[str, int] = {}
    for kept in path:
        for key, count in (kept.node.usage or {}).items():
            total[key] = total.get(key, 0) + count
    return total or None


def _cut(path: list[Node], answered: bool) -> str | None:
    if path and not answered:
        return _last(node.cut for node in path) or "no_answer"
    return path[-1].cut if path else None


def _last(values: Iterable[str | None]) -> str | None:
    found = None
    for value in values:
        found = value or found
    return found


def _time(moment: datetime | None) -> str | None:
    return times.to_text(moment) if moment else None
