"""Ways to make one answer from several: given to `chat.merge(turns, by)`.

`by` is a callable that is given the answers: a list of dicts, one per merged turn, with `turn` (its
id), `model`, `inputs`, `outputs` and `result`. What it returns is the merged answer. If it has a second
parameter without a value, named `base`, that is given such a dict of the merge base: the nearest turn that is on
the branches of all merged turns, one of them where the others follow it; None where there is none.

It may be async, and it may ask a model: what it notes with `ledger.current().note(...)` (the model, its usage, its
messages) is recorded with the merge. `ledger.current()` has the conversation's `settings` too, and in `messages()`
what was asked; it is shown no earlier turns, and keeps no steps (`reply`, `tool`).
"""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from ledger.records import canonical
from ledger.turns import programs
from ledger.turns.attachments import plain
from ledger.turns.view import Outputs
from ledger.views import threeway
from ledger.views.threeway import Conflict

__all__ = ["Conflict", "majority", "pick", "text", "three_way"]

BASE = "base"
"""The parameter of a merging program that is given the merge base."""


class pick:
    """Keep the answer of one of the merged turns, every output of it, and the model that gave it.

    Args: turn: a Turn, its id or a part of it, or its ordinal. Called by yourself it knows a Turn or a whole id alone:
    only a conversation knows of the others.
    Raises: TypeError: that names no turn. When called: ValueError: it is not among the merged turns. By `merge`:
    turn-unknown.
    """

    def __init__(self, turn: Any) -> None:
        named = getattr(turn, "id", turn)
        if isinstance(named, bool) or not isinstance(named, str | int):
            raise TypeError(f"pick: a turn is named by a Turn, an id or an ordinal, not {turn!r}")
        self.turn = turn
        self.__name__ = "pick"

    def __call__(self, answers: list[dict[str, Any]]) -> Outputs:
        """Return the outputs of the picked turn."""
        named = getattr(self.turn, "id", self.turn)
        for answer in answers:
            if answer["turn"] == named:
                return Outputs(answer["outputs"], answer["model"])
        raise ValueError(f"pick: turn {named} is not among the merged turns")


class text:
    """Give the merged answer as text, written by a person or made elsewhere."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.__name__ = "text"

    def __call__(self, answers: list[dict[str, Any]]) -> str:
        """Return the text."""
        return self.answer


class majority:
    """Keep the answer that most of the merged turns gave; of those who gave it, the first one's outputs.

    Two answers are one when all outputs are, as JSON has them; texts, at any depth, when they differ in nothing but
    case, blanks, and how an accent is spelled. The most frequent answer need not be that of more than half.
    Args: field: the one output to compare, such as `result`, where the others (a reasoning) always differ; None:
    all. ties: when several answers are the most frequent: `refuse`, or take the `first` of them in the order merged.
    Raises: ValueError. When called: ValueError: answers are tied, or one lacks the field.
    """

    def __init__(
        self, *, field: str | None = None, ties: Literal["refuse", "first"] = "refuse"
    ) -> None:
        if ties not in ("refuse", "first"):
            raise ValueError(f"ties is 'refuse' or 'first', not {ties!r}")
        self.field = field
        self.ties = ties
        self.__name__ = "majority"

    def __call__(self, answers: list[dict[str, Any]]) -> Outputs:
        """Return the outputs of the first turn that gave the most frequent answer."""
        given: dict[bytes, list[dict[str, Any]]] = {}
        for answer in answers:
            given.setdefault(_key(_light(self._compared(answer))), []).append(answer)
        most = max(map(len, given.values()))
        first, *others = (each for each in given.values() if len(each) == most)
        if others and self.ties == "refuse":
            groups = "; ".join(_named(each) for each in (first, *others))
            votes = "1 vote" if most == 1 else f"{most} votes"
            raise ValueError(
                f"majority: {1 + len(others)} answers have {votes} each: {groups}; pick one, merge more turns, "
                "compare one output alone (field), or take the first of them (ties='first')"
            )
        return Outputs(first[0]["outputs"], first[0]["model"])

    def _compared(self, answer: dict[str, Any]) -> Any:
        outputs = answer["outputs"]
        if self.field is None:
            return outputs
        if self.field not in outputs:
            told = ", ".join(outputs) or "none"
            raise ValueError(
                f"majority: {_named([answer])} has no output {self.field!r}, but: {told}"
            )
        return outputs[self.field]


class three_way:
    """Put the outputs of the merged turns together, field by field: what only one of them changed wins.

    Changed means: against the outputs of the merge base. Objects are merged key by key, at any depth; texts of
    several lines by lines, where these are apart; everything else, lists too, is changed or not as one. More than
    two turns are put together one after the other, in the order merged, against the same base. Without a merge
    base everything that a turn has is a change.
    Args: on_conflict: called with a `Conflict` for each value that two changed otherwise; what it returns is taken.
    Raises: TypeError. When called: ValueError naming every field in conflict; what `on_conflict` raises.
    """

    def __init__(self, *, on_conflict: threeway.Settle | None = None) -> None:
        if on_conflict is not None and (
            inspect.iscoroutinefunction(on_conflict) or not callable(on_conflict)
        ):
            raise TypeError(f"on_conflict is a plain function of a Conflict, not {on_conflict!r}")
        self.on_conflict = on_conflict
        self.__name__ = "three_way"

    def __call__(self, answers: list[dict[str, Any]], base: dict[str, Any] | None) -> Outputs:
        """Return the outputs put together."""
        first, *others = answers
        before = {} if base is None else base["outputs"]
        whole = first["outputs"]
        found: dict[str, None] = {}

        def refuse(conflict: Conflict) -> Any:
            found.setdefault(conflict.field)
            return conflict.one

        settle = self.on_conflict if self.on_conflict is not None else refuse
        for other in others:
            whole = threeway.merged(before, whole, other["outputs"], key=_key, settle=settle)
        if found:
            raise ValueError(
                f"three_way: {_named(answers)} changed the same, each otherwise: {', '.join(found)}; "
                "settle each (on_conflict), or pick one"
            )
        return Outputs(whole)


def _key(value: Any) -> bytes:
    return canonical.canonical(plain(value))


def _light(value: Any) -> Any:
    """Return a value without what says nothing in its texts: their case, their blanks, how accents are spelled."""
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).casefold().split())
    if isinstance(value, dict):
        return {key: _light(inner) for key, inner in value.items()}
    return [_light(inner) for inner in value] if isinstance(value, list) else value


def _named(answers: list[dict[str, Any]]) -> str:
    ids = ", ".join(answer["turn"][-8:] for answer in answers)
    return f"turn{'' if len(answers) == 1 else 's'} {ids}"


def made_by(by: Callable[..., Any]) -> dict[str, Any]:
    """Return what a merge's record says of the program that made it."""
    return {"name": programs.name_of(by), "version": programs.version_of(by), "call": None}


def in_conversation(by: Callable[..., Any], find: Callable[[Any], str]) -> Callable[..., Any]:
    """Return a merging program that knows the turn that it names.

    Args: find: gives the id of a turn that a caller names. Raises: as `find`.
    """
    return pick(find(by.turn)) if isinstance(by, pick) else by


class Taken(NamedTuple):
    """What a merging program takes, beside the inputs that it is given by name."""

    answers: str
    """The parameter that takes the answers."""
    base: bool
    """Whether it takes the merge base's as well."""


def taken(by: Callable[..., Any], inputs: Iterable[str]) -> Taken:
    """Return what a merging program takes: the answers go to its one free parameter.

    A second one that is free and named `base` gets the merge base's answer.
    Raises: TypeError: it is not callable, lacks a parameter, or leaves none or several free; it makes merging
    programs, and is none; it says its answer in pieces.
    """
    if inspect.isclass(by) and any("__call__" in vars(each) for each in by.__mro__):
        raise TypeError(f"{by.__name__} is called first, and gives what merges: {by.__name__}(...)")
    programs.check_returns(by)
    try:
        parameters = inspect.signature(by).parameters
    except ValueError:
        name = programs.name_of(by)
        raise TypeError(f"{name} does not say what it takes; wrap it in a function") from None
    named = list(inputs)
    unknown = next((name for name in named if name not in parameters), None)
    if unknown is not None:
        raise TypeError(f"{programs.name_of(by)} has no parameter {unknown!r}")
    free = [p.name for p in parameters.values() if p.name not in named and p.default is p.empty]
    base = len(free) == 2 and BASE in free
    if base:
        free.remove(BASE)
    if len(free) != 1:
        raise TypeError(
            f"{programs.name_of(by)} must have one parameter left for the answers, not {len(free)}"
        )
    return Taken(free[0], base)


def __dir__() -> list[str]:
    return __all__
