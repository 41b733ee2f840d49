"""What a program says of itself beside its signature: `ledger.program`.

Everything is declared by the names that the function has. A declaration stays with the callable and is
found through what stands for it: a partial, a wrapper, an object whose `__call__` it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ledger.turns import callables

DECLARED = "__ledger_program__"


class Declared(msgspec.Struct, frozen=True):
    """What a callable declares, by its own names."""

    settings: tuple[str, ...] = ()
    """The settings that are recorded with a turn, where they are given."""
    keep: Mapping[str, bool] = {}
    """Which of its inputs and outputs may be kept by a store that outlives the process."""
    rename: Mapping[str, str] = {}
    """Parameter or output -> the name it is recorded under."""


def declared(function: Callable[..., Any]) -> Declared:
    """Return what a callable, or one that it stands for, declares; nothing when none does."""
    for layer in callables.layers(function):
        found = getattr(layer, DECLARED, None)
        if isinstance(found, Declared):
            return found
    return Declared()


def check(function: Callable[..., Any], said: Declared, outputs: Iterable[str] | None) -> None:
    """Refuse what a callable cannot declare.

    Args: outputs: the names of what it returns; None: they are not known yet.
    Raises: TypeError naming what is wrong.
    """
    name = callables.name_of(function)
    taken = set(_parameters(function)).intersection(said.settings)
    if taken:
        raise TypeError(f"{name} takes {min(taken)!r} as an input: it cannot be a setting as well")
    if outputs is None:
        return
    # Also those that a partial has filled in: what was declared of them was no mistake.
    fields = {*outputs, *(p for layer in callables.layers(function) for p in _parameters(layer))}
    for what, names in (("keep", said.keep), ("rename", said.rename)):
        unknown = next((n for n in names if n not in fields), None)
        if unknown is not None:
            raise TypeError(f"{what}: {name} has no parameter and no output {unknown!r}")


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
