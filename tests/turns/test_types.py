"""Typed values: written by their declared type, read back equal, or refused before anything is stored."""

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
from functai import module
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import errors
from ledger.turns.programs import Program
from ledger.turns.types import Field, opaque, shape_of


class Tone(enum.Enum):
    """An enum by value."""

    KIND = "kind"
    STRICT = "strict"


@dataclasses.dataclass
class Step:
    """A dataclass with a default."""

    text: str
    points: int = 0


@dataclasses.dataclass
class Late:
    """A dataclass with a field that is not in its constructor."""

    text: str
    count: int = dataclasses.field(init=False, default=0)


@dataclasses.dataclass
class Branch:
    """A dataclass that holds its own kind."""

    name: str
    below: list["Branch"] = dataclasses.field(default_factory=list)


class Score(msgspec.Struct):
    """A Struct."""

    value: decimal.Decimal
    step: Step | None = None


class Row(TypedDict):
    """A TypedDict."""

    a: int
    b: str


class Model(pydantic.BaseModel):
    """A pydantic model."""

    n: int
    at: dt.datetime


class Answer(NamedTuple):
    """Several outputs; the last is the answer."""

    reasoning: str
    answer: int


UTC2 = dt.timezone(dt.timedelta(hours=2))
late = Late("x")
late.count = 7
KEPT = [
    (dt.datetime, dt.datetime(2026, 1, 2, 3, 4, 5, 6)),  # noqa: DTZ001 - a naive one, too
    (dt.datetime, dt.datetime(2026, 1, 2, tzinfo=UTC2)),
    (dt.date, dt.date(2026, 1, 2)),
    (dt.timedelta, dt.timedelta(days=1, microseconds=3)),
    (decimal.Decimal, decimal.Decimal("1.10")),
    (uuid.UUID, uuid.UUID(int=5)),
    (Tone, Tone.STRICT),
    (Step, Step("a", 2)),
    (Late, late),
    (Branch, Branch("a", [Branch("b")])),
    (Score, Score(decimal.Decimal("0.1"), Step("b"))),
    (Row, {"a": 1, "b": "x"}),
    (Model, Model(n=1, at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))),
    (list[Model], [Model(n=1, at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))]),
    (set[int], {3, 1}),
    (frozenset[str], frozenset({"a"})),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2, 3)),
    (dict[int, str], {1: "a"}),
    (dict[str, Step], {"k": Step("a")}),
    (Step | None, None),
    (int | str, "5"),
    (Literal["a", "b"], "b"),
    (float, 1.5),
]


@pytest.mark.parametrize(("annotation", "value"), KEPT, ids=lambda item: str(item)[:40])
def test_a_typed_value_comes_back_equal(annotation, value):
    """Written as JSON and read by its type, a value is equal and of the same type."""
    field = Field(annotation)
    written = field.write(value, "inputs.x")
    back = field.read(msgspec.json.decode(msgspec.json.encode(written)))

    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(("annotation", "value"), KEPT, ids=lambda item: str(item)[:40])
def test_a_program_gets_and_gives_typed_values(annotation, value, tmp_path):
    """Through a store and another view, the answer has its type again; inputs arrive as given."""
    got = []

    def program(x):
        got.append(x)
        return x

    program.__annotations__ = {"x": annotation, "return": annotation}
    ledger.open("c", program, store=tmp_path)(value)
    again = ledger.open("c", program, store=ledger.FolderStore(tmp_path)).turns[-1]

    assert got == [value]
    assert again.result == value
    assert type(again.result) is type(value)


REFUSED = [
    (str, 5, TypeError),
    (int, True, TypeError),
    (int, "5", TypeError),
    (Step, {"text": 5}, TypeError),
    (Tone, "nope", TypeError),
    (float, float("nan"), errors.RecordInvalid),
    (int, 2**53, errors.RecordInvalid),
    (str, "\ud800", (TypeError, errors.RecordInvalid)),
    (Score, Score(0.5), errors.RecordInvalid),  # type: ignore[arg-type]
    (list[Step], [Step(5)], TypeError),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(
    ("annotation", "value", "error"), REFUSED, ids=lambda item: ascii(item)[:40]
)
def test_a_value_of_another_type_is_refused_by_path(annotation, value, error):
    """What does not fit its type, or would not come back, is refused with its path."""
    with pytest.raises(error, match=r"inputs\.x"):
        Field(annotation).write(value, "inputs.x")


class Own:
    """A class of somebody's own."""


@pytest.mark.parametrize("annotation", [str, int, str | None, list[ledger.Attachment]])
def test_an_attachment_where_none_is_declared_is_named(annotation):
    """It is called what it is, and what takes one is said; within another value it is told that there is one."""
    given = ledger.Attachment(b"x", media_type="text/plain")
    with pytest.raises(TypeError, match=r"it is an Attachment.*`ledger.Attachment` is declared"):
        Field(annotation).write(given, "inputs.message", [])
    with pytest.raises(TypeError, match="an Attachment stands in it"):
        Field(list[str]).write(["x", given], "inputs.message", [])


@pytest.mark.parametrize(
    "annotation", [bytes, Own, list[Own], dict[str, bytes], Callable, bytes | None], ids=str
)
def test_a_field_without_a_json_form_is_refused(annotation):
    """A program with an opaque field is refused by field and reason, before anything is recorded."""

    def program(x):
        return x

    program.__annotations__ = {"x": annotation}
    with pytest.raises(errors.Opaque) as caught:
        ledger.open("c", program, store=ledger.MemoryStore())
    assert (caught.value.code, caught.value.field) == ("conversation-opaque", "x")


class Mixed(enum.Enum):
    """An enum of text and a number."""

    TEXT = "text"
    NUMBER = 1


@pytest.mark.parametrize("annotation", [Mixed, list[Mixed], dict[str, list[Mixed]], Mixed | None])
def test_an_enum_of_several_kinds_is_named(annotation):
    """An enum whose values are of several kinds is refused as that, wherever it stands."""
    with pytest.raises(ValueError, match="is Mixed, an enum whose values are neither all text nor"):
        Field(annotation)


@pytest.mark.parametrize("annotation", [list, dict, list[Any], str], ids=str)
def test_a_value_that_is_nested_too_deep_is_refused(annotation):
    """A typed value nested thousands deep, or in itself, is refused with its path, as an input and as an answer."""
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    itself: list[Any] = []
    itself.append(itself)
    for value in (deep, itself):
        given: Any = {"a": value} if annotation is dict else value
        with pytest.raises(errors.RecordInvalid, match=r"x\W.*nested more than 200 deep"):
            Field(annotation).write(given, "inputs.x")


@pytest.mark.parametrize("annotation", [Any, object, "Missing"], ids=str)
def test_an_annotation_that_says_nothing_takes_any_json(annotation):
    """Any, object and unknown names take every JSON value as it is."""
    field = Field(annotation)
    assert (field.shape, opaque(annotation) if annotation != "Missing" else None) == ({}, None)
    assert field.write({"a": [1, None]}, "x") == {"a": [1, None]}
    with pytest.raises(errors.RecordInvalid):
        field.write((1, 2), "x")


SAME_SHAPES = [
    a for a, _ in KEPT if a not in (Score, Late, Branch, Model, list[Model], dt.timedelta)
]


@pytest.mark.parametrize("annotation", SAME_SHAPES, ids=str)
def test_shapes_are_those_that_functai_writes(annotation):
    """Types that functai knows have its shape; those it calls opaque have {} in both."""

    def program(x):
        return x

    program.__annotations__ = {"x": annotation, "return": annotation}
    theirs = module(program).interface["inputs"][0]

    assert shape_of(annotation) == theirs["shape"]


def test_a_shape_that_holds_itself_ends():
    """A recursive type has a finite shape."""
    assert shape_of(Branch)["properties"]["below"] == {"type": "array"}


def test_several_outputs_by_name():
    """A NamedTuple gives an output for each field; the last is the answer."""

    def tutor(message: str) -> Answer:
        return Answer("because", 42)

    chat = ledger.open("c", tutor, store=ledger.MemoryStore())
    turn = chat.send("hi")

    assert turn.outputs == {"reasoning": "because", "answer": 42}
    assert (turn.result, turn.reasoning) == (42, "because")
    assert [f["name"] for f in Program(tutor).description.fields] == [
        "message",
        "reasoning",
        "answer",
    ]


def test_outputs_can_be_renamed():
    """`rename` maps outputs like inputs."""

    def tutor(message: str) -> Answer:
        return Answer("because", 42)

    renamed = Program(tutor, rename={"answer": "result", "reasoning": "why"})
    assert renamed.outputs(Answer("b", 1)) == {"why": "b", "result": 1}
    assert renamed.description.answer == "result"


def test_an_answer_that_is_not_what_was_declared_fails_the_turn():
    """A program that breaks its own annotation ends failed, with the path."""

    def tutor(message: str) -> Step:
        return "not a step"  # type: ignore[return-value]

    chat = ledger.open("c", tutor, store=ledger.MemoryStore())
    with pytest.raises(errors.RecordInvalid) as caught:
        chat("hi")

    assert caught.value.path == "outputs.result"
    assert chat.turn(1).state == "failed"


def test_a_typed_merge(tmp_path):
    """A merging program gives what the conversation's program declares."""

    def tutor(message: str) -> Step:
        return Step(message)

    chat = ledger.open("c", tutor, store=tmp_path)
    first = chat.send("a")
    second = chat.continue_from(first).send("b")
    merged = chat.merge([first, second], lambda answers: Step(answers[1]["result"].text, 5))

    assert merged.result == Step("b", 5)


@given(st.lists(st.builds(Step, st.text(), st.integers(-(2**53), 2**53))))
def test_lists_of_dataclasses_come_back_or_are_refused(steps):
    """Any such value is either equal on return or refused."""
    field = Field(list[Step])
    try:
        written = field.write(steps, "x")
    except errors.RecordInvalid:
        assert any(abs(step.points) == 2**53 for step in steps)
    else:
        assert field.read(msgspec.json.decode(msgspec.json.encode(written))) == steps
