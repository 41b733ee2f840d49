"""The frame every exporter stands in: what it is given, and what a person is told. Pure.

An exporter makes rows of a conversation: one for each branch, or one for the whole. What cannot be
said in its format is left out and counted, never silent. A branch is told as the next turn of it would
be shown it: the instructions in force, then each turn that has an answer, whole, once. A turn without an
answer (failed, stopped, erased, not over) is in no row, unless the format says otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ledger.formats.converting import Loss, Raw, Read
from ledger.records.messages import Message
from ledger.views import History, exchange
from ledger.views.nodes import Node
from ledger.views.place import nearest_done

Pairs = Literal["all", "extremes"]
"""Which preference pairs: of any two answers that differ, or of the best and the worst alone."""


@dataclass(frozen=True, slots=True)
class How:
    """What the person who exports has chosen."""

    tools: tuple[Raw, ...] = ()
    """Definitions of tools, as the format has them; none: those that were called are described."""
    pairs: Pairs = "all"


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation as exporters are given it."""

    id: str
    title: str | None
    history: History
    head: str | None
    """Where the view stands."""
    at: str | None
    """The turn whose branch is meant; None, unless `every`: there is none."""
    every: bool
    """Whether all branches are meant."""
    read: Read

    @property
    def ends(self) -> list[str]:
        """The last turns of the branches that are meant, in log order; each is done."""
        if self.every:
            return ends(self.history)
        end = nearest_done(self.history, self.at)
        return [] if end is None else [end]

    def branch(self, end: str) -> list[Node]:
        """Return the turns of a branch that are done, the first one first."""
        return [node for node in self.history.upward(end) if node.done][::-1]

    def messages(self, end: str | None, *, of: str | None = None) -> list[Message]:
        """Return what is said on a branch: the instructions in force there, then what each turn added.

        Args: of: a turn behind it that may have come with other instructions.
        """
        entries = [] if end is None else [_whole(node) for node in self.branch(end)]
        return exchange.window(self.history, end, entries, None, of=of)

    def unanswered(self) -> Iterator[Node]:
        """Yield the turns without an answer among those that are meant."""
        meant: Iterable[Node] = self.history.upward(self.at)
        if self.every:
            meant = map(self.history.node, self.history.order)
        return (node for node in meant if not node.done)


class Exporter(Protocol):
    """What an exporter is: a module with a name and a function."""

    @property
    def name(self) -> str:
        """The word for it."""

    def rows(self, talk: Talk, how: How, notes: Counter[str]) -> Iterator[Raw]:
        """Yield what is to be written of a conversation, and count what is left out.

        Args: notes: how often each thing was left out, by a phrase for people.
        """


def ends(history: History) -> list[str]:
    """Return every turn that is done and that no done turn goes on from, in log order."""
    done = [node for node in map(history.node, history.order) if node.done]
    above = {nearest_done(history, node.parent) for node in done}
    return [node.id for node in done if node.id not in above]


def note_unanswered(talk: Talk, notes: Counter[str]) -> None:
    """Count the turns that are left out since they have no answer, by what became of them."""
    for node in talk.unanswered():
        notes[f"turns left out, without an answer ({what_became(node)})"] += 1


def what_became(node: Node) -> str:
    """Return why a turn has no answer, in a word or two."""
    if node.erased:
        return "erased"
    return "not over" if node.outcome is None else node.outcome


def note_losses(format: str, losses: Sequence[Loss], notes: Counter[str]) -> None:
    """Count what a format cannot be told, by the reason alone."""
    for loss in losses:
        notes[f"{format}: {loss.reason}"] += 1


def _whole(node: Node) -> dict[str, Any]:
    return {"call": node.id, "steps": True}


# -- the tools that were called --------------------------------------------------------------------


def called(messages: Iterable[Message]) -> dict[str, dict[str, set[str]]]:
    """Return the tools that were called by name, each with its arguments and their kinds in JSON Schema."""
    found: dict[str, dict[str, set[str]]] = {}
    for part in (part for message in messages for part in message["parts"]):
        if part["type"] == "tool_call":
            seen = found.setdefault(str(part.get("name")), {})
            given = part.get("arguments")
            for name, value in given.items() if isinstance(given, dict) else ():
                seen.setdefault(name, set()).add(_KINDS[type(value)])
    return found


def schema(arguments: dict[str, set[str]]) -> Raw:
    """Return the JSON Schema of arguments as they were seen."""
    properties = {
        name: {"type": kind if len(kinds) == 1 else sorted(kinds)}
        for name, kinds in arguments.items()
        for kind in [min(kinds)]
    }
    return {"type": "object", "properties": properties}


_KINDS = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}
