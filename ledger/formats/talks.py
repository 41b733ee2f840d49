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
from ledger.records.messages import Message, text
from ledger.records.transcripts import without_instructions
from ledger.views import History, exchange
from ledger.views.nodes import Node, model_of
from ledger.views.ratings import mean

Pairs = Literal["all", "extremes"]
"""Which preference pairs: of any two answers that differ, or of the best and the worst alone."""


@dataclass(frozen=True, slots=True)
class How:
    """What the person who exports has chosen."""

    tools: tuple[Raw, ...] = ()
    """Definitions of tools, as the format has them; none: those that were called are described."""
    pairs: Pairs = "all"
    instructions: str = ""
    """Said by the system in each row in which no instructions are recorded."""
    min_rating: float | None = None
    """The least mean rating of a turn that fits."""
    labels: tuple[str, ...] = ()
    """A turn that fits has all of these, itself or by its conversation."""
    models: tuple[str, ...] = ()
    """One of these answered a turn that fits; none: any."""

    @property
    def chooses(self) -> bool:
        """Whether not every turn that has an answer fits."""
        return self.min_rating is not None or bool(self.labels or self.models)

    def fits(self, history: History, node: Node) -> bool:
        """Say whether a row may end with a turn: it has an answer, and all holds that is asked for."""
        if not node.done or (self.models and model_of(node) not in self.models):
            return False
        if self.labels and not {*history.labels(), *history.labels(node.id)}.issuperset(
            self.labels
        ):
            return False
        if self.min_rating is None:
            return True
        value = mean(history.ratings(node.id))
        return value is not None and value >= self.min_rating

    def instructed(self, messages: list[Message]) -> list[Message]:
        """Return messages with the instructions before them, where they begin with none of their own."""
        if not self.instructions or len(without_instructions(messages)) < len(messages):
            return messages
        return [text("system", self.instructions), *messages]


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

    def ends(self, how: How, notes: Counter[str]) -> list[str]:
        """Return the last turns of the rows, in log order: those that fit with none behind them that does.

        Args: notes: counts the turns with an answer that are in no row for that.
        """
        meant = [node for node in self._meant() if node.done]
        found = ends(self.history, (node for node in meant if how.fits(self.history, node)))
        if how.chooses:
            inside = {node.id for end in found for node in self.history.upward(end)}
            if left_out := sum(node.id not in inside for node in meant):
                notes["turns left out, which do not fit, nor does one behind them"] += left_out
        return found

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
        return (node for node in self._meant() if not node.done)

    def _meant(self) -> Iterable[Node]:
        """Return the turns of the branches that are meant, a parent before those below it."""
        if self.every:
            return map(self.history.node, self.history.order)
        return reversed(list(self.history.upward(self.at)))


class Exporter(Protocol):
    """What an exporter is: a module with a name and a function."""

    @property
    def name(self) -> str:
        """The word for it."""

    def rows(self, talk: Talk, how: How, notes: Counter[str]) -> Iterator[Raw]:
        """Yield what is to be written of a conversation, and count what is left out.

        Args: notes: how often each thing was left out, by a phrase for people.
        """


def ends(history: History, fitting: Iterable[Node] | None = None) -> list[str]:
    """Return the turns that no other of them goes on from, in their order.

    Args: fitting: turns, a parent before those below it; None: all that are done.
    """
    if fitting is None:
        fitting = (node for node in map(history.node, history.order) if node.done)
    found = {node.id: node for node in fitting}
    above = {history.nearest(node.parent, found) for node in found.values()}
    return [turn for turn in found if turn not in above]


def note_unanswered(talk: Talk, notes: Counter[str]) -> None:
    """Count the turns that are left out since they have no answer, by what became of them."""
    for node in talk.unanswered():
        notes[f"turns left out, without an answer ({what_became(node)})"] += 1


def what_became(node: Node) -> str:
    """Return why a turn has no answer, in a word or two."""
    if node.erased:
        return "erased"
    return "not over" if node.outcome is None else node.outcome


def note_unasked(messages: Iterable[Message], notes: Counter[str]) -> None:
    """Count a row in which no user says anything: not every trainer takes it."""
    if not any(message["role"] == "user" for message in messages):
        notes["rows in which no user says anything"] += 1


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
