"""A conversation drawn as text: its tree.

The line that leads to the head (else the newest) goes straight down the column; every other child
begins a branch, indented, before the line goes on. So a long conversation with abandoned answers
stays flat, and no depth of it costs recursion. Lines that begin on their own (several first turns) are
drawn apart, with an empty line between.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from ledger.errors import StoreCorrupt
from ledger.records import kinds
from ledger.views import ratings
from ledger.views.flowchart import Drawn, flowchart
from ledger.views.history import History
from ledger.views.nodes import Node, model_of, readable_reads
from ledger.views.states import Dead
from ledger.views.text import one_line, value_text

_SHORTEST_TITLE = 8
"""With less room than this the title is left out."""
_DEEPEST = 30
"""Characters of branch lines that are drawn; deeper branches are marked, not indented further."""
_UNREADABLE = "(unreadable)"


class Tree(msgspec.Struct, frozen=True):
    """The tree of a conversation, as lines of text; `str` joins them."""

    lines: list[str]
    turns: list[Drawn] = []
    """What is drawn of each turn, in log order."""

    def mermaid(self) -> str:
        """Return the tree as a Mermaid flowchart: a box for each turn, dotted arrows from what a merge read.

        It can stand in a block of Markdown as it is: no text of a turn can end its box.
        Not promised: that a page draws a large one: Mermaid's own limits are 500 arrows and 50,000 characters.
        """
        return flowchart(self.turns)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__


def tree(
    history: History,
    *,
    conversation: str,
    title: str | None,
    head: str | None,
    now: datetime,
    width: int,
    dead: Dead = frozenset(),
) -> Tree:
    """Draw every turn: ordinal, what was asked and answered, state, model, merges, ratings, labels, the head.

    Args: dead: (holder, attempt) of those known dead: what they hold is `interrupted`.
    """
    count, heads = len(history.order), len(history.heads())
    turns = "turn" if count == 1 else "turns"
    counts = f" · {count} {turns}, {heads} head{'' if heads == 1 else 's'}"
    counts += "".join(f" · {mark}" for mark in ratings.marks(history, None, width=24))
    room = width - len(conversation) - len(counts) - 3
    named = f" · {one_line(title, room)}" if title and room >= _SHORTEST_TITLE else ""
    digits = len(str(count))
    lines = [one_line(conversation + named + counts, width)]
    drawn = {}
    for turn in history.order:
        state = history.state(turn, now=now, dead=dead)
        drawn[turn] = _drawn(history, history.node(turn), state, turn == head, max(width, 100))
    for turn, start, prefix in _walk(history, head):
        if drawn[turn].parent is None and len(lines) > 1:
            lines.append("")
        lines.append(start + _turn(drawn[turn], digits, width - len(prefix)))
    return Tree(lines, list(drawn.values()))


def _drawn(history: History, node: Node, state: str, is_head: bool, width: int) -> Drawn:
    asked, answered = spoken(history, node)
    model = model_of(node)
    return Drawn(
        ordinal=node.ordinal,
        parent=None if node.parent is None else history.node(node.parent).ordinal,
        asked=one_line(asked, width),
        answered=None if answered is None else one_line(answered, width),
        state="erased" if node.erased else state,
        model=one_line(model, 24) if model else None,
        reads=[history.node(t).ordinal for t in readable_reads(history, node)],
        noted=ratings.marks(history, node.id, width=24),
        is_head=is_head,
    )


def _walk(history: History, head: str | None) -> Iterator[tuple[str, str, str]]:
    """Give each turn with what its line begins with, depth first, without recursion."""
    main = set(history.branch(head)) if head is not None else set()
    stack = [(root, "", "") for root in reversed(_ordered(history.children(None), main))]
    while stack:
        turn, start, prefix = stack.pop()
        yield turn, start, prefix
        children = _ordered(history.children(turn), main)
        branch, inner = prefix + "├─ ", prefix + "│  "
        if len(prefix) >= _DEEPEST:
            branch, inner = prefix[:-1] + "⋯", prefix
        if children:
            stack.append((children[-1], prefix, prefix))
        stack += [(child, branch, inner) for child in reversed(children[:-1])]


def _ordered(turns: list[str], main: set[str]) -> list[str]:
    """Put the child that the line goes on with last."""
    return sorted(turns, key=lambda turn: turn in main)


def _turn(turn: Drawn, digits: int, width: int) -> str:
    marks = _marks(turn)
    tail = ("  " + " ".join(marks)) if marks else ""
    number = f"{turn.ordinal:>{digits}}  "
    room = max(16, width - len(number) - len(tail))
    if turn.answered is None:
        return number + one_line(turn.asked, room) + tail
    left = one_line(turn.asked, max(8, min(len(turn.asked), room // 2 - 3)))
    return f"{number}{left} → {one_line(turn.answered, room - len(left) - 3)}{tail}"


def _marks(turn: Drawn) -> list[str]:
    marks = [] if turn.state == "done" else [f"[{turn.state}]"]
    marks += [f"({turn.model})"] if turn.model else []
    marks += ["merges " + ", ".join(map(str, turn.reads))] if turn.reads else []
    return [*marks, *turn.noted, *["◂ head"] * turn.is_head]


def spoken(history: History, node: Node) -> tuple[str, str | None]:
    """Return what was asked and what was answered, as text; a damaged value says so."""
    inputs = _named(node.record.inputs, node.record.seq)
    asked = _UNREADABLE if inputs is None else inputs_text(inputs)
    if node.ended is None or not node.done:
        return asked, None
    outputs = _named(node.ended.outputs, node.ended.seq)
    if outputs is None:
        return asked, _UNREADABLE
    answer = history.answer_name(node.id)
    return asked, value_text(outputs.get(answer)) if answer in outputs else value_text(outputs)


def inputs_text(inputs: dict[str, Any]) -> str:
    """Return inputs as one text: the first as it is, those after it with their names."""
    parts = [value_text(value) for value in inputs.values()]
    after = [f"{name}: {part}" for name, part in zip(inputs, parts, strict=True)][1:]
    return " · ".join([*parts[:1], *after])


def _named(payload: Any, seq: int) -> dict[str, Any] | None:
    """Return values by name; None when they do not decode, or are no object."""
    try:
        found = kinds.payload(payload, seq)
    except StoreCorrupt:
        return None
    return found if isinstance(found, dict) else {} if found is None else None
