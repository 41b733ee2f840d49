"""An earlier turn as a context rule sees it: what it said, and how a new turn would be shown it.

Nothing is decoded until it is asked for. How a turn is named in `saw` (`entry`) decides what is shown of it
(`row`), so what was shown can be told from the record alone. Fields left out and steps exclude each other
there, as for other writers of the format: a turn is shown whole with its steps, or without some fields.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ledger.errors import StoreCorrupt
from ledger.records import kinds
from ledger.views import exchange
from ledger.views import steps as turn_steps
from ledger.views.nodes import Node, Tree, mapping, model_of

Entry = dict[str, Any]
"""One entry of `saw`: `{"call": id}`, with `without` (sorted names) when fields were left out, or `steps`."""
STEPS = "steps"
"""The name in a row under which a turn's tool calls stand; a field of that name comes first."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """One earlier turn that is done, as context rules are given it. Read only; values are fresh copies."""

    _tree: Tree
    _node: Node
    without: frozenset[str] = frozenset()
    """The names of the fields that are left out of it, whether it has them or not."""
    steps: bool = True
    """Whether it is shown with its tool calls."""

    @property
    def id(self) -> str:
        """Its id."""
        return self._node.id

    @property
    def ordinal(self) -> int:
        """Its number among the conversation's turns in log order."""
        return self._node.ordinal

    @property
    def inputs(self) -> dict[str, Any]:
        """What was sent, by name; all of it. Raises: store-corrupt."""
        return self._node.inputs()

    @property
    def outputs(self) -> dict[str, Any]:
        """Every output by name; all of them. Raises: store-corrupt."""
        return self._node.outputs()

    @property
    def result(self) -> Any:
        """The answer, as JSON has it. Raises: store-corrupt."""
        return exchange.result(self._tree, self._node)

    @property
    def model(self) -> str | None:
        """The model that answered, or the one it was sent to."""
        return model_of(self._node)

    @property
    def usage(self) -> dict[str, int]:
        """Token counts, summed over every model call inside it, each once. Raises: store-corrupt."""
        return usage_of(self._node)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Its tool calls that gave something, in order: `name`, `input`, `output`. Raises: store-corrupt."""
        return exchange.tools(self._node)

    @property
    def program(self) -> str:
        """The version of the program that made it."""
        return self._node.program

    @property
    def row(self) -> dict[str, Any]:
        """What is shown of it: inputs and outputs by name, less those left out. Raises: store-corrupt."""
        return row_of(self._node, self.entry)

    @property
    def entry(self) -> Entry:
        """How it is named in `saw`: with the fields left out that it really has."""
        return entry_of(self._node, sorted(self.without), steps=self.steps)

    def leaving_out(self, *names: str) -> Earlier:
        """Return it without these fields, beside those left out already."""
        return replace(self, without=self.without.union(names)) if names else self

    def as_in(self, entry: Mapping[str, Any]) -> Earlier:
        """Return it as an entry of `saw` says that it was shown."""
        names = entry.get("without")
        without = frozenset(names) if isinstance(names, list) else frozenset[str]()
        return replace(self, without=without, steps=entry.get("steps") is True)

    def with_steps(self, steps: bool = True) -> Earlier:
        """Return it with its tool calls, as it comes, or without; where fields are left out, without."""
        return self if steps == self.steps else replace(self, steps=steps)

    def __repr__(self) -> str:
        return f"<Earlier {self.ordinal} {self.id[-8:]}>"


def entry_of(node: Node, names: Collection[str], *, steps: bool = False) -> Entry:
    """Return how a turn is named in `saw`.

    Args: names: the fields to leave out, sorted. steps: whether with its tool calls, if it has any.
    """
    without = _had(node, names) if names else []
    if without:
        return {"call": node.id, "without": without}
    return (
        {"call": node.id, "steps": True}
        if steps and exchange.has_rounds(node)
        else {"call": node.id}
    )


def row_of(node: Node, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a turn that is named so in `saw`. Raises: store-corrupt."""
    names = entry.get("without")
    left_out = set(names) if isinstance(names, list) else set()
    fields = {**node.inputs(), **node.outputs()}
    row = {name: value for name, value in fields.items() if name not in left_out}
    if entry.get("steps") is True and not left_out:
        row.setdefault(STEPS, exchange.tools(node))
    return row


def usage_of(node: Node) -> dict[str, int]:
    """Return a turn's token counts: those of its end, else those noted in its steps. Raises: store-corrupt."""
    if node.ended is not None and kinds.has(node.ended.usage):
        return dict(mapping(node.ended, "usage"))
    return turn_steps.usage(node)


def _had(node: Node, names: Collection[str]) -> list[str]:
    """Return the names that a turn has. A damaged field has none: it cannot be shown anyway."""
    has: set[str] = set()
    for record, field in ((node.record, "inputs"), (node.ended, "outputs")):
        try:
            has.update(mapping(record, field))
        except StoreCorrupt:
            continue
    return [name for name in names if name in has]
