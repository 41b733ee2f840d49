"""May a program continue a branch: decided by the fields of the turns that it would be shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from ledger.errors import SignatureChanged
from ledger.records import kinds
from ledger.views.context import Shown
from ledger.views.history import History

ASIDE_NAMES = ("reasoning", "calls")
ASIDE_PURPOSES = ("reasoning", "tools.calls")
"""What outputs are called, or are for, that a program may begin to give in the middle of a conversation."""


class Described(Protocol):
    """A program, as far as records go (`turns.programs.Description`)."""

    @property
    def version(self) -> str:
        """`sha256:` and 64 hex digits."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def fields(self) -> list[dict[str, Any]]:
        """Its inputs and outputs, with direction, purpose and shape."""
        ...

    def keys(self) -> dict[str, Any]:
        """Return the keys of its `program` record."""
        ...


def check(
    history: History,
    program: Described,
    shown: Shown,
    *,
    earlier_without: Collection[str] = (),
) -> None:
    """Refuse a program whose fields differ from those of the earlier turns that it would be shown.

    Fields that are left out of a turn are not compared with it, and turns that a summary stands for not at
    all. A field of any shape (`{}`) fits every shape. An added output for reasoning or tool calls that
    `earlier_without` names is accepted. Turns made without a program known here are shown as they are.
    Raises: conversation-signature.
    """
    others = {}
    for version in _shown_versions(history, shown) - {program.version}:
        known = history.programs.get(version)
        fields = None if known is None else kinds.mappings(known.fields, known.seq)
        if fields is not None and fields != program.fields:
            others[version] = fields
    if not others:  # The usual case.
        return
    asides = {field["name"] for field in program.fields if _is_aside(field)}
    accepted = asides.intersection(earlier_without)

    def told(version: str, left_out: frozenset[str]) -> set[tuple[str, str]]:
        was, now = _named(others[version], left_out), _named(program.fields, left_out)
        return _differences(was, now, accepted)

    if not any(told(version, shown.rule.left_out) for version in others):
        return  # Decided without a walk along the branch.
    met = {(turn.program, turn.without) for turn in shown.earlier if turn.program in others}
    differences = set().union(*(told(*each) for each in met))
    if differences:
        names = {name for _, name in differences}
        acceptable = all(how == _LACKED and name in asides for how, name in differences)
        left = {field["direction"] for field in program.fields if field["name"] not in names}
        fit_without = not acceptable and len(left) == 2
        raise SignatureChanged(
            program=program.name,
            differences="; ".join(sorted(how.format(name) for how, name in differences)),
            earlier_without=tuple(sorted(names)) if acceptable else (),
            without=tuple(sorted(names | shown.rule.left_out)) if fit_without else (),
        )


def _shown_versions(history: History, shown: Shown) -> frozenset[str]:
    """Return the programs of the turns that are shown; where all are, those of the branch, without a walk along it."""
    if shown.is_whole:
        return history.versions(shown.parent)
    return frozenset(turn.program for turn in shown.earlier)


_LACKED = "earlier turns lack {}"


def _differences(
    was: Mapping[str, Any], now: Mapping[str, Any], accepted: Collection[str]
) -> set[tuple[str, str]]:
    """Return how the fields differ: (in words, the field)."""
    shared = was.keys() & now.keys()
    return {
        *(("{} has another shape", name) for name in shared if not fits(was[name], now[name])),
        *(("{} is no longer one of its fields", name) for name in was.keys() - now.keys()),
        *((_LACKED, name) for name in now.keys() - was.keys() - set(accepted)),
    }


def _named(fields: list[dict[str, Any]], left_out: frozenset[str]) -> dict[str, dict[str, Any]]:
    """Return the fields that are shown, by name."""
    named = {str(field.get("name")): field for field in fields}
    return {name: field for name, field in named.items() if name not in left_out}


def _is_aside(field: Mapping[str, Any]) -> bool:
    """Say whether a field is an output beside the answer, which earlier turns can be shown without."""
    aside = field.get("name") in ASIDE_NAMES or field.get("purpose") in ASIDE_PURPOSES
    return field.get("direction") == "output" and aside


def fits(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Say whether a field may go on as another: of the same direction, and shape where both say one."""
    same = was.get("direction") == now["direction"]
    anything = not was.get("shape") or not now["shape"]
    return same and (anything or was.get("shape") == now["shape"])
