"""What a callable is: found without calling it."""

import argparse
import functools
import inspect
import queue
import textwrap
import typing
from collections import abc
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.turns import callables
from ledger.turns.callables import Answer, answer_of, kind_of, layers, source_of


def plain(message):
    return message


async def awaited(message):
    return message


def pieces(message):
    yield message


async def awaited_pieces(message):
    yield message


KINDS: dict[str, Callable[..., Any]] = {
    "function": plain,
    "async": awaited,
    "generator": pieces,
    "async-generator": awaited_pieces,
}


def in_partial(function):
    return functools.partial(function)


def in_wrapper(function):
    @functools.wraps(function)
    def hand_through(*args, **kwargs):
        return function(*args, **kwargs)

    return hand_through


def in_object(function):
    class Tutor:
        __call__ = staticmethod(function)

    return Tutor()


def in_method(function):
    class Tutor:
        def ask(self, message):
            return message

    Tutor.ask = function  # type: ignore[method-assign]
    return Tutor().ask


WAYS = [in_partial, in_wrapper, in_object, in_method]


@given(
    st.sampled_from(sorted(KINDS)), st.lists(st.sampled_from([in_partial, in_wrapper, in_object]))
)
def test_the_kind_is_found_through_what_stands_for_it(kind, ways):
    """Partials, wrappers and objects that are called, in any order, have the kind of their function."""
    function = KINDS[kind]
    for way in ways:
        function = way(function)
    assert kind_of(function) == kind


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_method_has_its_kind(kind):
    """A bound method is what its function is."""
    assert kind_of(in_method(KINDS[kind])) == kind


def test_a_wrapper_that_is_more_than_plain_counts():
    """An async wrapper of a plain function is async; a plain wrapper is what it wraps."""

    @functools.wraps(plain)
    async def later(message):
        return plain(message)

    assert kind_of(later) == "async"
    assert kind_of(in_wrapper(later)) == "async"


def test_a_class_makes_instances():
    """Calling a class gives an instance, however instances are called."""

    class Tutor:
        async def __call__(self, message):
            return message

    assert kind_of(Tutor) == "function"
    assert kind_of(Tutor()) == "async"


def test_an_object_that_answers_to_every_name_has_an_end():
    """Unwrapping stops also where something stands for something for ever."""
    endless = Mock()
    assert len(list(layers(endless))) <= 50
    assert kind_of(endless) == "function"


# -- what it answers with


class Offer(NamedTuple):
    """Several outputs."""

    reasoning: str
    total: int


ANNOTATIONS = [
    (typing.Iterator[str], Answer(str, True)),
    (abc.Iterator[str], Answer(str, True)),
    (typing.Iterable[str], Answer(str, True)),
    (abc.Iterable[str], Answer(str, True)),
    (typing.AsyncIterator[str], Answer(str, True)),
    (abc.AsyncIterator[str], Answer(str, True)),
    (abc.AsyncIterable[str], Answer(str, True)),
    (typing.AsyncGenerator[str, int], Answer(str, True)),
    (abc.AsyncGenerator[str, None], Answer(str, True)),
    (typing.Generator[str, None, None], Answer(str, True)),
    (abc.Generator[str, int, None], Answer(str, True)),
    (typing.Generator[str, Any, int], Answer(int, False)),
    (abc.Generator[str, None, Offer], Answer(Offer, False)),
    (abc.Generator[str, None, Any], Answer(Any, True)),
    (abc.Iterator[Any], Answer(Any, True)),
    (typing.Iterator, Answer(Any, True)),
    (abc.Generator, Answer(Any, True)),
    (Any, Answer(Any, True)),
    ("Missing", Answer(Any, True)),
    (str, Answer(str, True)),
]


@pytest.mark.parametrize(("annotation", "answer"), ANNOTATIONS, ids=str)
@pytest.mark.parametrize("function", [pieces, awaited_pieces])
def test_a_generator_answers_with_text_or_with_what_it_declares_to_return(
    function, annotation, answer
):
    """The answer of a generator is text, or what its annotation says that it returns."""
    assert answer_of(function, annotation) == answer


@pytest.mark.parametrize(
    "annotation",
    [abc.Iterator[int], typing.AsyncGenerator[bytes, None], abc.Generator[dict, None, str]],
    ids=str,
)
def test_pieces_are_text(annotation):
    """A generator that declares pieces of another type is refused at once, with the way out."""
    with pytest.raises(TypeError, match=r"pieces yields \w+; the pieces of an answer are text"):
        answer_of(pieces, annotation)


def test_a_generator_is_annotated_as_one():
    """A generator that declares to give something else is refused with the spellings to use."""
    with pytest.raises(TypeError, match=r"pieces is a generator: annotate it Iterator\[str\].*int"):
        answer_of(pieces, int)


@pytest.mark.parametrize("function", [plain, awaited])
@pytest.mark.parametrize("annotation", [str, Offer, Any, int])
def test_any_other_callable_answers_with_what_it_returns(function, annotation):
    """The annotation of a function, async or not, is the type of its answer."""
    assert answer_of(function, annotation) == Answer(annotation, False)


def named_in(module):
    """The classes of a module, its functions, and those of its classes."""
    own = [c for c in vars(module).values() if getattr(c, "__module__", "") == module.__name__]
    classes = [found for found in own if inspect.isclass(found)]
    functions = [f for place in (module, *classes) for f in vars(place).values()]
    return [*classes, *(found for found in functions if inspect.isfunction(found))]


@pytest.mark.parametrize("module", [argparse, queue, textwrap])
def test_the_source_of_a_callable_is_what_inspect_says(module):
    """Found in another way, to the last comment: a program's version is a hash of it."""
    found = [inspect.unwrap(named) for named in named_in(module)]
    assert [source_of(named) for named in found] == list(map(inspect.getsource, found))
    plain_to_see = [callables._plain_source(named) for named in found]
    assert plain_to_see.count(None) <= len(found) // 5


# fmt: off
def one_line(message): return message

def text_at_the_margin(message):
    said = """
no code, though it begins where code would
"""
    return said + message
    # Indented as what it says: of the function.
  # Indented less: not.

@functools.lru_cache(
    maxsize=3,
)
def decorated(
    message,
):  # with a comment
    def inner(): return message

    return inner
# fmt: on


@pytest.mark.parametrize(
    "function", [one_line, text_at_the_margin, decorated.__wrapped__, lambda message: message]
)
def test_the_source_of_an_odd_function_is_what_inspect_says(function):
    """However it is written."""
    assert source_of(function) == inspect.getsource(function)


def test_a_source_is_what_a_function_was_made_of(tmp_path):
    """Once read it is kept: a file that is changed under a process that runs is no source of what runs there."""
    path = tmp_path / "later.py"
    path.write_text("def answer(message):\n    return message\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    before = source_of(space["answer"])
    path.write_text("def another(message):\n    return 'another'\n")

    assert source_of(space["answer"]) == before == "def answer(message):\n    return message\n"
