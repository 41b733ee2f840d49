"""What a callable is, found without calling it: its name and source, its kind, what it answers with.

A callable may stand for another: a partial for its function, a wrapper (`functools.wraps`) for what it
wraps, an object for its `__call__`. Its kind is that of the first of these, from the outside in, which
is more than a plain function: a plain wrapper is taken to hand through what it wraps gives.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from ledger.turns.identity import ByIdentity

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
_ODD = re.compile(r"\t|\\[^\\\n'\"abfnrtvxNuU0-7]")
"""What is indented otherwise than by spaces, and escapes of which the parser would warn."""
_DEF = re.compile(r" *(async +def|def|class)\b")
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
    for found in (inspect.unwrap(function), type(function)):
        try:
            return _read_source(found)
        except (OSError, TypeError):
            pass
    return None


_sources: ByIdentity[str] = ByIdentity()
"""Of what was compiled, what it was compiled of: a server opens a conversation for every request."""


def _read_source(named: Any) -> str:
    code = getattr(named, "__code__", None)
    known = _sources.get(code) if code is not None else None
    if known is None:
        known = _plain_source(named) or inspect.getsource(named)
        if code is not None:
            _sources.set(code, known)
    return known


def _plain_source(named: Any) -> str | None:
    """Return what `inspect.getsource` does, where that is plain to see; None: ask that.

    It takes lines apart by regular expressions that take 10 ms to be made, the first time in a process. Here the
    parser says where a `def` or `class` ends, given the lines up to the next that is indented no further.
    """
    if not inspect.isfunction(named) and not inspect.isclass(named):
        return None
    lines, start = _plain_class(named) or inspect.findsource(named)
    first = next((n for n in range(start, len(lines)) if _DEF.match(lines[n])), start)
    indent = _indent(lines[start])
    behind = (n for n in range(first + 1, len(lines)) if _is_behind(lines[n], indent))
    block = lines[start : next(behind, len(lines))]
    if any(map(_ODD.search, block)):
        return None
    try:
        tree = ast.parse("if 1:\n" + "".join([f" {line}" for line in block]))
    except (SyntaxError, ValueError):
        return None
    found = tree.body[0].body if isinstance(tree.body[0], ast.If) else []
    if len(tree.body) + len(found) != 2:
        return None
    last = _last_line(found[0], block)
    return "".join(block[:last]) if last else None


def _plain_class(named: Any) -> tuple[list[str], int] | None:
    """Return a module's lines and which begins a class, where one line alone may, and no decorator stands before it.

    None: ask `inspect`, which parses the whole module for a class.
    """
    if not inspect.isclass(named) or named.__qualname__ != named.__name__:
        return None
    file = inspect.getsourcefile(named) or inspect.getfile(named)
    linecache.checkcache(file)
    lines = linecache.getlines(file, getattr(sys.modules.get(named.__module__), "__dict__", None))
    begins = re.compile(rf"\s*class\s+{re.escape(named.__name__)}\b")
    found = [number for number, line in enumerate(lines) if begins.match(line)]
    if len(found) != 1 or not lines[found[0]].startswith("class"):
        return None
    before = lines[found[0] - 1].strip() if found[0] else ""
    return (lines, found[0]) if not before else None


def _last_line(found: ast.stmt, block: list[str]) -> int:
    """Return how many lines of a block are of its `def`, or `class`: comments behind it that are indented as it is
    inside are of it."""
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return 0
    last, inside = (found.end_lineno or 0) - 1, found.body[0].col_offset - 1
    if last and found.body[0].lineno > found.lineno:
        for number, line in enumerate(block[last:], last + 1):
            if line.lstrip().startswith("#") and _indent(line) >= inside:
                last = number
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_behind(line: str, indent: int) -> bool:
    """Say whether a line stands behind a block, if it does not begin inside of a string or of brackets."""
    return (
        _indent(line) <= indent and not line.lstrip().startswith((")", "#")) and bool(line.strip())
    )


def _named(function: Any) -> Any:
    return _named(function.func) if isinstance(function, functools.partial) else function
