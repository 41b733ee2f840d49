"""What a callable is, found without calling it: its name and source, its kind, what it answers with.

A callable may stand for another: a partial for its function, a wrapper (`functools.wraps`) for what it
wraps, an object for its `__call__`. Its kind is that of the first of these, from the outside in, which
is more than a plain function: a plain wrapper is taken to hand through what it wraps gives.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

Kind = Literal["function", "async", "generator", "async-generator"]

RESULT = "result"
"""The name of the one output of a callable that does not name several."""

DEEPEST = 50
"""How many callables may stand for one another; an object that answers to every name has no end."""

_TESTS: tuple[tuple[Callable[[Any], bool], Kind], ...] = (
    (inspect.iscoroutinefunction, "async"),
    (inspect.isgeneratorfunction, "generator"),
    (inspect.isasyncgenfunction, "async-generator"),
)
_PIECES = {
    abc.Iterable,
    abc.Iterator,
    abc.Generator,
    abc.AsyncIterable,
    abc.AsyncIterator,
    abc.AsyncGenerator,
}
SAYS_NOTHING = (inspect.Parameter.empty, Any, object)
"""Annotations that allow any value."""


def layers(function: Any) -> Iterator[Any]:
    """Yield a callable, then what it stands for, from the outside in."""
    for _ in range(DEEPEST):
        yield function
        inner = _inside(function)
        if inner is None:
            return
        function = inner


def innermost(function: Any) -> Any:
    """Return what a callable stands for in the end."""
    return list(layers(function))[-1]


def _inside(function: Any) -> Any:
    if isinstance(function, functools.partial):
        return function.func
    if isinstance(
        function, type
    ):  # Called, a class makes an instance: its `__call__` is not asked.
        return None
    wrapped = getattr(function, "__wrapped__", None)
    if callable(wrapped):
        return wrapped
    if inspect.isroutine(function):
        return None
    return getattr(type(function), "__call__", None)  # noqa: B004


def kind_of(function: Callable[..., Any]) -> Kind:
    """Return what calling it gives: an answer, something to await, or pieces of text."""
    kinds = (kind for layer in layers(function) for test, kind in _TESTS if test(layer))
    return next(kinds, "function")


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return its signature; annotations given as text stay text where they cannot be evaluated."""
    try:
        return inspect.signature(function, eval_str=True)
    except Exception:
        return inspect.signature(function)


# -- what it answers with --------------------------------------------------------------------------


class Answer(NamedTuple):
    """The declared type of what a program answers with."""

    annotation: Any
    joined: bool
    """Whether its pieces, joined, are the answer where it returns None."""


def answer_of(function: Callable[..., Any], returned: Any) -> Answer:
    """Return the declared type of the answer, from what the signature says it returns.

    Raises: TypeError: the pieces of a generator are declared as something else than text.
    """
    kind = kind_of(function)
    if kind in ("function", "async"):
        return Answer(returned, joined=False)
    if returned in SAYS_NOTHING or isinstance(returned, str):
        return Answer(Any, joined=True)
    if returned is str:  # A generator around a function that answers with text.
        return Answer(str, joined=True)
    return _of_generator(name_of(function), returned)


def _of_generator(name: str, returned: Any) -> Answer:
    origin, given = typing.get_origin(returned) or returned, typing.get_args(returned)
    if origin not in _PIECES:
        raise TypeError(
            f"{name} is a generator: annotate it Iterator[str], AsyncIterator[str] or "
            f"Generator[str, None, <what it returns>], not {spelled(returned)}"
        )
    piece = given[0] if given else Any
    if piece is not str and piece not in SAYS_NOTHING:
        raise TypeError(
            f"{name} yields {spelled(piece)}; the pieces of an answer are text: yield str, and "
            "return a value of another type (Generator[str, None, <its type>])"
        )
    last = given[2] if origin is abc.Generator and len(given) == 3 else None
    if last in (None, types.NoneType):
        return Answer(piece, joined=True)
    return Answer(last, joined=last in SAYS_NOTHING)


def outputs_of(annotation: Any) -> dict[str, Any] | None:
    """Return the outputs that a NamedTuple names, with their types; None: it is one value."""
    if not (isinstance(annotation, type) and issubclass(annotation, tuple)):
        return None
    names = getattr(annotation, "_fields", None)
    if not names:
        return None
    hints = typing.get_type_hints(annotation)
    return {name: hints.get(name, Any) for name in names}


def spelled(annotation: Any) -> str:
    """Return how an annotation is spelled, for people."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


# -- what it is called, and its source -------------------------------------------------------------


def name_of(function: Any) -> str:
    """Return the name it is recorded under; an object goes by its class, a partial by its function."""
    function = _named(function)
    return str(getattr(function, "__name__", None) or type(function).__name__)


def module_of(function: Any) -> str:
    """Return the module it comes from."""
    function = _named(function)
    return str(getattr(function, "__module__", None) or type(function).__module__)


def source_of(function: Any) -> str | None:
    """Return its source text; None: it has none."""
    function = _named(function)
    try:
        return inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        pass
    try:
        return inspect.getsource(type(function))
    except (OSError, TypeError):
        return None


def _named(function: Any) -> Any:
    return _named(function.func) if isinstance(function, functools.partial) else function
