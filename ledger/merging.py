"""Ways to make one answer from several: given to `chat.merge(turns, by)`.

`by` is a callable that is given the answers: a list of dicts, one per merged turn, with `turn` (its
id), `model`, `inputs`, `outputs` and `result`. What it returns is the merged answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ledger.turns import programs
from ledger.turns.view import Outputs


class pick:
    """Keep the answer of one of the merged turns, every output of it.

    Args: turn: a Turn or the id of one.
    Raises when called: ValueError: it is not among the merged turns.
    """

    def __init__(self, turn: Any) -> None:
        self.turn: str = getattr(turn, "id", turn)
        self.__name__ = "pick"

    def __call__(self, answers: list[dict[str, Any]]) -> Outputs:
        """Return the outputs of the picked turn."""
        for answer in answers:
            if answer["turn"] == self.turn:
                return Outputs(answer["outputs"])
        raise ValueError(f"pick: turn {self.turn} is not among the merged turns")


class text:
    """Give the merged answer as text, written by a person or made elsewhere."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.__name__ = "text"

    def __call__(self, answers: list[dict[str, Any]]) -> str:
        """Return the text."""
        return self.answer


def made_by(by: Callable[..., Any]) -> dict[str, Any]:
    """Return what a merge's record says of the program that made it."""
    return {"name": programs.name_of(by), "version": programs.version_of(by), "call": None}


def arguments(
    by: Callable[..., Any], answers: list[dict[str, Any]], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the keyword arguments of a merging program: the answers go to its one free parameter.

    Raises: TypeError: it is not callable, lacks a parameter, or leaves none or several free.
    """
    programs.check_returns(by)
    try:
        parameters = inspect.signature(by).parameters
    except ValueError:
        name = programs.name_of(by)
        raise TypeError(f"{name} does not say what it takes; wrap it in a function") from None
    unknown = next((name for name in inputs if name not in parameters), None)
    if unknown is not None:
        raise TypeError(f"{programs.name_of(by)} has no parameter {unknown!r}")
    free = [p.name for p in parameters.values() if p.name not in inputs and p.default is p.empty]
    if len(free) != 1:
        raise TypeError(
            f"{programs.name_of(by)} must have one parameter left for the answers, not {len(free)}"
        )
    return {free[0]: answers, **inputs}
