"""A conversation drawn as text: its tree, and what a next turn would be shown.

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
from ledger.views.context import Shown
from ledger.views.history import History
from ledger.views.nodes import Node, model_of, readable_reads
from ledger.views.states import Dead
from ledger.views.text import one_line, value_text

_SHORTEST_TITLE = 8
"""With less room than this the title is left out."""
_DEEPEST = 30
_UNREADABLE = "(unreadable)"
"""Characters of branch lines that are drawn; deeper branches are marked, not indented further."""


class Rendered(msgspec.Struct, frozen=True):
    """What a next turn would be shown."""

    parent: str | None
    """The turn it would continue."""
    inputs: dict[str, Any]
    """Its own inputs, by name."""
    saw: list[dict[str, Any]]
    """The entries of its record."""
    rows: list[dict[str, Any]]
    """Each earlier turn's inputs and outputs by name, in order: what `earlier()` gives. A summary's row is
    the first, `{"summary": text}`; its text is None where it is still to be made."""
    summary: str | None = None
    """The text of the summary that it would be shown; None: none, or it is still to be made."""
    shown_entries: list[int] = []
    """The places of the entries that it would be shown: that of the summary."""
    to_summarize: list[str] = []
    """The turns that a summary would be made of first: those it is to stand for, by id."""

    def __str__(self) -> str:
        lines = []
        if self.to_summarize:
            lines.append(f"first a summary is made of {len(self.to_summarize)} turns")
        for number, row in enumerate([*self.rows, self.inputs] if self.inputs else self.rows, 1):
            label = "next" if number > len(self.rows) else f"{number:>4}"
            lines += [f"{label}  {name}: {one_line(value, 100)}" for name, value in row.items()]
        return "\n".join(lines) or "nothing"


def rendered(shown: Shown, rows: list[dict[str, Any]], inputs: dict[str, Any]) -> Rendered:
    """Return what a next turn would be shown. Args: shown: foreseen. rows: its rows, with attachments."""
    summary, wants = shown.summary, shown.wants
    return Rendered(
        parent=shown.parent,
        inputs=inputs,
        saw=list(shown.saw),
        rows=rows,
        summary=summary.text if summary is not None else None,
        shown_entries=shown.entries,
        to_summarize=list(wants.turns) if wants is not None else [],
    )


class Tree(msgspec.Struct, frozen=True):
    """The tree of a conversation, as lines of text; `str` joins them."""

    lines: list[str]

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
    """Draw every turn: ordinal, what was asked and answered, state, model, merges, the head.

    Args: dead: (holder, attempt) of those known dead: what they hold is `interrupted`.
    """
    count, heads = len(history.order), len(history.heads())
    turns = "turn" if count == 1 else "turns"
    counts = f" · {count} {turns}, {heads} head{'' if heads == 1 else 's'}"
    room = width - len(conversation) - len(counts) - 3
    named = f" · {one_line(title, room)}" if title and room >= _SHORTEST_TITLE else ""
    digits = len(str(count))
    lines = [one_line(conversation + named + counts, width)]
    for turn, start, prefix in _walk(history, head):
        if history.node(turn).parent is None and len(lines) > 1:
            lines.append("")
        node = history.node(turn)
        marks = _marks(history, node, history.state(turn, now=now, dead=dead))
        marks += ["◂ head"] if turn == head else []
        lines.append(start + _turn(history, node, marks, digits, width - len(prefix)))
    return Tree(lines)


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


def _turn(history: History, node: Node, marks: list[str], digits: int, width: int) -> str:
    tail = ("  " + " ".join(marks)) if marks else ""
    number = f"{node.ordinal:>{digits}}  "
    room = max(16, width - len(number) - len(tail))
    asked, answered = spoken(history, node)
    if answered is None:
        return number + one_line(asked, room) + tail
    left = one_line(asked, max(8, min(len(asked), room // 2 - 3)))
    return f"{number}{left} → {one_line(answered, room - len(left) - 3)}{tail}"


def _marks(history: History, node: Node, state: str) -> list[str]:
    state = "erased" if node.erased else state
    marks = [] if state == "done" else [f"[{state}]"]
    if model := model_of(node):
        marks.append(f"({one_line(model, 24)})")
    reads = [history.node(t).ordinal for t in readable_reads(history, node)]
    if reads:
        marks.append("merges " + ", ".join(map(str, reads)))
    return marks


def spoken(history: History, node: Node) -> tuple[str, str | None]:
    """Return what was asked and what was answered, as text; a damaged value says so."""
    inputs = _named(node.record.inputs, node.record.seq)
    asked = _UNREADABLE if inputs is None else inputs_text(inputs)
    if node.ended is None or node.ended.state != "done":
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
