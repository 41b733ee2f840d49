"""What a program says of itself beside its signature: `ledger.program`.

Everything is declared by the names that the function has. A declaration stays with the callable and is
found through what stands for it: a partial, a wrapper, an object whose `__call__` it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

import msgspec

from ledger.turns import callables, content

F = TypeVar("F", bound=Callable[..., Any])

_DECLARED = "__ledger_program__"


class Declared(msgspec.Struct, frozen=True):
    """What a callable declares, by its own names."""

    settings: tuple[str, ...] = ()
    """The settings that are recorded with a turn, where they are given."""
    keep: Mapping[str, bool] = {}
    """Which of its inputs and outputs may be kept by a store that outlives the process."""
    rename: Mapping[str, str] = {}
    """Parameter or output -> the name it is recorded under."""


@overload
def program(function: F, /) -> F: ...
@overload
def program(
    *,
    settings: Iterable[str] = (),
    keep: Mapping[str, bool] | None = None,
    rename: Mapping[str, str] | None = None,
) -> Callable[[F], F]: ...
def program(
    function: Callable[..., Any] | None = None,
    /,
    *,
    settings: Iterable[str] = (),
    keep: Mapping[str, bool] | None = None,
    rename: Mapping[str, str] | None = None,
) -> Any:
    """Declare what a program wants recorded of it. The callable itself is returned, and is called as before.

    Used bare or with arguments; declared again, the later word counts for each name.

        @ledger.program(settings=("temperature",), keep={"photo": False})
        def tutor(message: str, photo: str) -> str: ...

    Args: settings: names of the settings (of the conversation or of one turn) that are recorded with
    each turn they are given for, as JSON has them; others are never recorded, `lm` always where it is
    text. keep: parameter or output -> whether a store that outlives the process may keep it. rename:
    parameter or output -> the name it is recorded under; what `open` is given counts before it.
    Raises: TypeError: a setting is called like a parameter; `keep` or `rename` names no parameter and
    no output; the callable cannot carry a declaration.
    """
    said = Declared(_names(settings), content.flags(keep or {}), dict(rename or {}))

    if function is not None:
        return _declare(function, said)
    return lambda given: _declare(given, said)


def declared(function: Callable[..., Any]) -> Declared:
    """Return what a callable, or one that it stands for, declares; nothing when none does."""
    for layer in callables.layers(function):
        found = getattr(layer, _DECLARED, None)
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


def _declare(function: Any, said: Declared) -> Any:
    if not callable(function) or isinstance(function, type):
        raise TypeError(
            f"ledger.program declares a function or a callable object, not {function!r}"
        )
    before = declared(function)
    whole = Declared(
        tuple(dict.fromkeys([*before.settings, *said.settings])),
        {**before.keep, **said.keep},
        {**before.rename, **said.rename},
    )
    check(function, whole, _outputs(function))
    try:
        setattr(function, _DECLARED, whole)
    except (AttributeError, TypeError):
        name = callables.name_of(function)
        raise TypeError(f"{name} cannot carry a declaration; declare a function") from None
    return function


def _outputs(function: Callable[..., Any]) -> list[str] | None:
    """Return the names of its outputs; None: its annotations name what is not defined yet."""
    returned = callables.signature_of(function).return_annotation
    if isinstance(returned, str):
        return None
    answer = callables.answer_of(function, returned)
    return list(callables.outputs_of(answer.annotation) or [callables.RESULT])


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _names(settings: Iterable[Any]) -> tuple[str, ...]:
    names = list(settings)
    if isinstance(settings, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"settings is a list of names, not {settings!r}")
    return tuple(dict.fromkeys(names))
