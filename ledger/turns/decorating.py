"""`ledger.program`: a program says of itself what its signature does not, and becomes a helper in turns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from ledger.turns import callables, content, helping
from ledger.turns.declaring import DECLARED, Declared, check, declared

F = TypeVar("F", bound=Callable[..., Any])


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
    """Declare what a program wants recorded of it, and that it is a helper where a turn's program calls it.

    Returned is a function that is called as before, of the same kind; an object is returned itself, and is no helper.
    Called outside every turn it has a turn of its own (`current`): it is shown nothing, and nothing of it is kept.

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
        setattr(function, DECLARED, whole)
    except (AttributeError, TypeError):
        name = callables.name_of(function)
        raise TypeError(f"{name} cannot carry a declaration; declare a function") from None
    if inspect.isfunction(function) and not hasattr(function, helping.AWARE):
        return helping.aware(function)
    return function


def _outputs(function: Callable[..., Any]) -> list[str] | None:
    """Return the names of its outputs; None: its annotations name what is not defined yet."""
    returned = callables.signature_of(function).return_annotation
    if isinstance(returned, str):
        return None
    answer = callables.answer_of(function, returned)
    return list(callables.outputs_of(answer.annotation) or [callables.RESULT])


def _names(settings: Iterable[Any]) -> tuple[str, ...]:
    names = list(settings)
    if isinstance(settings, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"settings is a list of names, not {settings!r}")
    return tuple(dict.fromkeys(names))
