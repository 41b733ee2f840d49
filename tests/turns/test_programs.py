"""Programs: a callable's inputs, interface and version."""

import functools
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, Literal, NamedTuple, Optional

import pytest
from functai import module

from ledger.errors import Opaque, RecordInvalid
from ledger.turns.programs import Program, check_returns, recorded
from ledger.turns.types import shape_of


def test_parameters_are_the_inputs_and_the_return_is_the_result():
    """A function's parameters are its inputs; its answer is the output `result`."""

    def tutor(message: str, tone: str = "kind") -> str:
        """Tutor a student."""
        return message + tone

    program = Program(tutor)

    assert program.inputs == ["message", "tone"]
    assert program.description.answer == "result"
    assert program.description.interface == {
        "description": "Tutor a student.",
        "inputs": [
            {"name": "message", "shape": {"type": "string"}, "type": "str"},
            {
                "name": "tone",
                "shape": {"type": "string", "default": "kind"},
                "type": "str",
                "optional": True,
            },
        ],
        "outputs": [{"name": "result", "shape": {"type": "string"}, "type": "str"}],
    }


ANNOTATIONS = [
    str,
    int,
    float,
    bool,
    list,
    dict,
    type(None),
    list[str],
    list[dict[str, int]],
    dict[str, int],
    dict[str, Any],
    Optional[str],  # noqa: UP045 - the older spelling must mean the same
    int | str,
    Literal["a", "b"],
    Literal[1],
]


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
def test_shapes_are_what_functai_writes(annotation):
    """A program with the same annotations has the same shapes in either library."""

    def program(x):
        return x

    program.__annotations__ = {"x": annotation, "return": annotation}

    assert shape_of(annotation) == module(program).interface["inputs"][0]["shape"]


def test_an_annotation_that_says_nothing_is_any_value():
    """No annotation, Any, object or text that names nothing give the shape {}."""

    def program(a, b: Any, c: object):
        return a

    def unknown(a: "Missing"):  # type: ignore[name-defined]  # noqa: F821
        return a

    for function in (program, unknown):
        assert all(f["shape"] == {} for f in Program(function).description.fields)


def test_inputs_are_bound_with_defaults_before_anything_else():
    """Inputs come by recorded name with defaults filled in; the call gets them as declared."""

    def program(message: str, /, tone: str = "kind", *, times: int = 1) -> str:
        return f"{message}/{tone}/{times}"

    made = Program(program, rename={"message": "question"})
    bound, inputs = made.bind(("hi",), {"times": 2})

    assert inputs == {"question": "hi", "tone": "kind", "times": 2}
    assert made.call(bound) == "hi/kind/2"


def test_a_wrong_input_is_named():
    """A call that does not fit says which input of which program is wrong."""

    def tutor(message):
        return message

    with pytest.raises(TypeError, match="tutor has no input 'mesage'; it takes message"):
        Program(tutor).bind((), {"mesage": "hi"})


def test_the_answer_can_be_renamed():
    """`rename` maps the result like any field."""

    def tutor(message):
        return message

    program = Program(tutor, rename={"message": "question", "result": "answer"})

    assert [f["name"] for f in program.description.fields] == ["question", "answer"]


def test_a_rename_of_nothing_is_refused():
    """A name in `rename` that is no parameter is an error, not ignored."""
    with pytest.raises(TypeError, match="no parameter 'nope'"):
        Program(lambda message: message, rename={"nope": "x"})


def test_two_fields_of_one_name_are_refused():
    """An input called like the answer, or like another input, is refused with the way out."""
    with pytest.raises(TypeError, match="would be called 'result'"):
        Program(lambda result: result)


def test_unnamed_inputs_are_refused():
    """*args and **kwargs stand for inputs without a name."""
    with pytest.raises(Opaque) as caught:
        Program(lambda *args: args)
    assert caught.value.code == "conversation-opaque"


def test_programs_of_every_kind_have_the_same_fields():
    """Answering at once, awaited, or in pieces of text is the same output; only the version differs."""

    def plain():
        def tutor(message: str) -> str:
            return message

        return tutor

    def awaited():
        async def tutor(message: str) -> str:
            return message

        return tutor

    def pieces():
        def tutor(message: str) -> Iterator[str]:
            yield message

        return tutor

    def awaited_pieces():
        async def tutor(message: str) -> AsyncIterator[str]:
            yield message

        return tutor

    made = [Program(make()) for make in (plain, awaited, pieces, awaited_pieces)]

    assert [p.kind for p in made] == ["function", "async", "generator", "async-generator"]
    assert all(p.description.interface == made[0].description.interface for p in made)
    assert all(p.description.fields == made[0].description.fields for p in made)
    assert len({p.description.version for p in made}) == 4


class Offer(NamedTuple):
    """Several outputs."""

    reasoning: str
    total: int


def test_an_answer_that_lacks_outputs_says_what_to_return():
    """An answer that is not the declared tuple is refused with the tuple's name, its parts, and what came."""

    class Pair(NamedTuple):
        why: str
        what: str

    def program(message: str) -> Pair:
        return Pair("because", "that")

    with pytest.raises(RecordInvalid) as caught:
        Program(program).outputs("that")

    assert caught.value.path == "outputs"
    assert caught.value.reason == (
        "an answer of program is Pair(why, what), or a tuple of these, not str"
    )


def test_an_answer_of_another_type_names_its_place_once():
    """The refusal of an output that is not of its type names the output once."""

    def program(message: str) -> str:
        return message

    with pytest.raises(RecordInvalid) as caught:
        Program(program).outputs(object())

    assert caught.value.path == "outputs.result"
    assert str(caught.value).count("outputs.result") == 1


def test_a_generator_that_returns_several_outputs_has_them():
    """A NamedTuple that a generator declares to return gives an output for each of its fields."""

    def sell(message: str) -> Generator[str, None, Offer]:
        yield message
        return Offer("because", 3)

    program = Program(sell)

    assert [f["name"] for f in program.description.fields] == ["message", "reasoning", "total"]
    assert program.outputs(Offer("because", 3)) == {"reasoning": "because", "total": 3}


def _says_nothing(message):
    yield message


def _text(message) -> Iterator[str]:
    yield message


def _anything(message) -> Generator[str, None, Any]:
    yield message


def _number(message) -> Generator[str, None, int | None]:
    yield message
    return None


@pytest.mark.parametrize(
    ("function", "returned", "answer"),
    [
        (_says_nothing, None, "text"),
        (_says_nothing, 0, 0),
        (_text, None, "text"),
        (_text, "other", "other"),
        (_anything, None, "text"),
        (_number, 7, 7),
        (_number, None, None),
    ],
)
def test_a_generator_answers_with_its_text_or_with_what_it_returns(function, returned, answer):
    """What a generator returns is its answer; where it returns nothing, its joined pieces are,
    unless nothing is an answer that it declares."""
    assert Program(function).streamed("text", returned) == answer


def test_what_is_no_callable_is_refused():
    """A program is a callable."""
    with pytest.raises(TypeError, match="a program is a callable, not str"):
        Program("tutor")  # type: ignore[arg-type]


async def _says_nothing_async(message):
    yield message


@pytest.mark.parametrize("program", [_says_nothing_async, _says_nothing])
def test_a_merging_program_returns_its_answer(program):
    """A merging program that says its answer in pieces is refused, by name."""
    with pytest.raises(TypeError, match=r"is an?( async)? generator; a merging program returns"):
        check_returns(program)


def test_callable_objects_and_partials_have_names():
    """An object with __call__ goes by its class, a partial by its function."""

    class Tutor:
        def __call__(self, message):
            return message

    def add(a, b):
        return a + b

    assert Program(Tutor()).description.name == "Tutor"
    assert Program(functools.partial(add, 1)).description.name == "add"


def test_the_version_changes_with_the_source_only():
    """The same source gives the same version; another body gives another."""

    def one():
        def program(message: str) -> str:
            return message

        return program

    def two():
        def program(message: str) -> str:
            return message + "!"

        return program

    assert Program(one()).description.version == Program(one()).description.version
    assert Program(one()).description.version != Program(two()).description.version


def test_recorded_turns_have_one_program_per_set_of_fields():
    """Turns recorded without a program share a `recorded` program; message and result are text."""
    plain = recorded({"message": "a"}, {"result": "b"})

    assert plain.name == "recorded"
    assert [f["shape"] for f in plain.fields] == [{"type": "string"}] * 2
    assert recorded({"message": "a"}, {"result": "b"}).version == plain.version
    assert recorded({"q": "a"}, {"result": "b"}).version != plain.version


@pytest.mark.parametrize(
    ("inputs", "outputs", "path"),
    [
        (["bad name"], ["result"], "inputs['bad name']"),
        (["message"], [""], "outputs['']"),
        (["é"], ["result"], "inputs['\\xe9']"),
        (["1st"], ["result"], "inputs['1st']"),
        (["x"], ["x"], "inputs.x"),
        (["result"], [], "inputs.result"),
    ],
)
def test_recorded_names_are_names_of_fields(inputs, outputs, path):
    """A name that no field can have, or that stands on both sides, is refused with its place."""
    with pytest.raises(RecordInvalid) as caught:
        recorded(dict.fromkeys(inputs, ""), dict.fromkeys(outputs, ""))
    assert caught.value.path == path


def test_recorded_turns_without_outputs_have_a_result():
    """Turns recorded with no output are described as having `result`, of any shape."""
    described = recorded({"message": "a"}, {})

    assert described.answer == "result"
    assert described.interface["outputs"] == [{"name": "result", "shape": {}}]


def test_recorded_values_that_are_not_text_are_of_any_shape():
    """Only text is declared as text; other values under the same names have the shape {}."""
    described = recorded({"message": 5}, {"result": "b"})
    assert [field["shape"] for field in described.fields] == [{}, {}]


def test_defaults_that_have_no_json_form_are_left_out():
    """A default of NaN or beyond exact integers stays out of the shape, and the program is taken."""

    def program(a: float = float("nan"), b: int = 2**60) -> str:
        return "ok"

    inputs = Program(program).description.interface["inputs"]

    assert [field["shape"] for field in inputs] == [{"type": "number"}, {"type": "integer"}]
    assert all(field["optional"] for field in inputs)
