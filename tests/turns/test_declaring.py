"""`ledger.program`: what a callable declares, and where it is found."""

import functools
import inspect
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger.errors import RecordInvalid
from ledger.records import values
from ledger.turns.callables import kind_of
from ledger.turns.programs import Declared, Program, declared


class Offer(NamedTuple):
    """Several outputs."""

    reasoning: str
    total: int


def plain(message: str, photo: str = "") -> str:
    return message


async def awaited(message: str, photo: str = "") -> str:
    return message


def pieces(message: str, photo: str = ""):
    yield message


async def awaited_pieces(message: str, photo: str = ""):
    yield message


@pytest.fixture(params=[plain, awaited, pieces, awaited_pieces])
def function(request):
    """A callable of each kind that nothing was declared of."""
    yield request.param
    vars(request.param).pop("__ledger_program__", None)


def test_what_comes_back_is_of_the_same_kind(function):
    """Bare or with arguments, the decorator gives a function of the same kind, name and parameters back."""
    for made in (ledger.program(function), ledger.program(settings=["temperature"])(function)):
        assert kind_of(made) == kind_of(function)
        assert made.__name__ == function.__name__
        assert inspect.signature(made) == inspect.signature(function)
        assert ledger.program(made) is made


def test_what_was_declared_is_found(function):
    """What was declared is readable; nothing declared reads as nothing."""
    assert declared(function) == Declared()

    ledger.program(settings=["a", "b", "a"], keep={"photo": False}, rename={"message": "question"})(
        function
    )

    assert declared(function) == Declared(("a", "b"), {"photo": False}, {"message": "question"})


def test_it_is_found_through_what_stands_for_it(function):
    """A partial and a wrapper of a declared callable declare the same."""
    ledger.program(settings=["temperature"])(function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    assert declared(functools.partial(function, photo="x")).settings == ("temperature",)
    assert declared(wrapper).settings == ("temperature",)
    assert declared(functools.partial(functools.partial(wrapper))).settings == ("temperature",)


def test_a_method_can_be_declared():
    """A declared `__call__` is found through the object, a declared method through its bound form."""

    class Tutor:
        @ledger.program(settings=("temperature",))
        def __call__(self, message):
            return message

        @ledger.program(settings=("lm",))
        def ask(self, message):
            return message

    assert declared(Tutor()).settings == ("temperature",)
    assert declared(Tutor().ask).settings == ("lm",)
    assert Program(Tutor()).settings == ("temperature",)


def test_an_object_can_be_declared():
    """An object that is called carries its own declaration."""

    class Tutor:
        def __call__(self, message):
            return message

    assert declared(ledger.program(keep={"message": False})(Tutor())).keep == {"message": False}
    assert declared(Tutor()) == Declared()


def test_declared_again_nothing_is_lost(function):
    """What is declared above a declaration adds to it; of one name the later word counts."""
    ledger.program(settings=["a"], keep={"photo": False, "message": False})(function)
    outer = functools.partial(function, photo="x")
    ledger.program(settings=["b"], keep={"message": True}, rename={"message": "question"})(outer)

    assert declared(outer) == Declared(
        ("a", "b"), {"photo": False, "message": True}, {"message": "question"}
    )
    assert declared(function).settings == ("a",)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"settings": ["photo"]}, "plain takes 'photo' as an input"),
        ({"keep": {"nope": False}}, "keep: plain has no parameter and no output 'nope'"),
        ({"rename": {"nope": "x"}}, "rename: plain has no parameter and no output 'nope'"),
        ({"settings": "temperature"}, "settings is a list of names, not 'temperature'"),
        ({"settings": [1]}, "settings is a list of names"),
        ({"keep": {"photo": 0}}, "True or False"),
    ],
    ids=str,
)
def test_what_is_no_name_of_it_is_refused(said, message):
    """Settings called like inputs, and names that it does not have, are refused where they stand."""
    with pytest.raises(TypeError, match=message):
        ledger.program(**said)(plain)
    assert declared(plain) == Declared()


def test_outputs_can_be_named():
    """`keep` and `rename` name the outputs too: `result`, or the fields of a NamedTuple."""

    def sell(message: str) -> Offer:
        return Offer(message, 1)

    ledger.program(keep={"reasoning": False}, rename={"total": "sum"})(sell)
    with pytest.raises(TypeError, match="no output 'result'"):
        ledger.program(keep={"result": False})(sell)

    assert Program(sell).keep == {"reasoning": False}
    assert [f["name"] for f in Program(sell).description.fields] == ["message", "reasoning", "sum"]


def test_names_that_are_not_known_yet_are_checked_when_they_are():
    """Where what it returns is defined further down, its outputs are checked as it becomes a program."""

    @ledger.program(keep={"reasoning": False})
    def sell(message: str) -> "Later":  # type: ignore[name-defined]  # noqa: F821
        return message

    with pytest.raises(TypeError, match="keep: sell has no parameter and no output 'reasoning'"):
        Program(sell)

    inspect.unwrap(sell).__globals__["Later"] = Offer
    try:
        assert Program(sell).keep == {"reasoning": False}
    finally:
        del inspect.unwrap(sell).__globals__["Later"]


def test_a_partial_may_fill_in_what_was_declared():
    """What was declared of an input that a partial fills in is no mistake, and of no field any more."""

    @ledger.program(keep={"message": False}, rename={"message": "question"})
    def tutor(message: str, tone: str) -> str:
        return message

    program = Program(functools.partial(tutor, "hi"))

    assert (program.inputs, program.keep) == (["tone"], {})


@pytest.mark.parametrize("wrong", [int, type("Tutor", (), {"__call__": plain}), "text", 5])
def test_only_what_can_be_called_as_a_program_is_declared(wrong):
    """A class, and what is no callable, are refused."""
    with pytest.raises(TypeError, match="declares a function or a callable object"):
        ledger.program()(wrong)


def test_what_cannot_carry_a_declaration_is_refused():
    """A bound method has no place for it; the error says so."""

    class Tutor:
        def ask(self, message):
            return message

    with pytest.raises(TypeError, match="ask cannot carry a declaration"):
        ledger.program(Tutor().ask)


# -- as a program


def test_names_are_the_functions_own_and_follow_its_renames():
    """`keep` names a field as the function does, and holds under the name it is recorded by, whoever
    renamed it; a rename given at opening counts before the declared one."""

    @ledger.program(keep={"a": False, "b": True}, rename={"a": "b", "b": "a", "result": "text"})
    def swap(a: str, b: str) -> str:
        return a

    assert Program(swap).keep == {"b": False, "a": True}
    assert Program(swap).description.answer == "text"
    renamed = Program(swap, rename={"a": "secret", "b": "open"})
    assert renamed.keep == {"secret": False, "open": True}
    assert renamed.inputs == ["secret", "open"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["lm", "temperature", "top_p", "api_key"])


@given(st.lists(NAMES.filter(lambda n: n != "api_key")), st.dictionaries(NAMES, JSON))
def test_only_the_declared_settings_are_recorded(names, settings):
    """What is recorded: `lm` when it is text, each declared setting that is given; nothing else, and
    what JSON cannot hold exactly is refused by its name."""

    @ledger.program(settings=names)
    def program(message: str) -> str:
        return message

    expected = {
        name: value
        for name, value in settings.items()
        if (name == "lm" and isinstance(value, str)) or (name != "lm" and name in names)
    }
    if all(map(_exact, expected.values())):
        assert Program(program).settings_to_record(settings) == expected
    else:
        with pytest.raises(RecordInvalid, match=r"^settings\."):
            Program(program).settings_to_record(settings)


def _exact(value):
    try:
        values.check(value, references=False)
    except RecordInvalid:
        return False
    return True


def test_declared_settings_are_recorded_with_their_turn():
    """A declared setting stands in the turn's record, where it was given; others never do."""
    store = ledger.MemoryStore()

    @ledger.program(settings=("temperature",))
    def program(message: str) -> str:
        return message

    chat = ledger.open("alex", program, store=store, temperature=0.2, api_key="s3cr3t", lm=object())
    chat("one")
    chat("two", temperature=0.9, lm="a model")
    ledger.open("alex", program, store=store)("three")

    turns = [record for record in store.read("alex") if record["kind"] == "turn"]
    assert [turn.get("settings") for turn in turns] == [
        {"temperature": 0.2},
        {"temperature": 0.9, "lm": "a model"},
        None,
    ]
    assert b"s3cr3t" not in store.raw("alex")


def test_a_setting_that_cannot_be_kept_is_refused_before_anything_is_recorded():
    """The refusal names the setting; nothing was recorded."""
    store = ledger.MemoryStore()

    @ledger.program(settings=("temperature",))
    def program(message: str) -> str:
        return message

    with pytest.raises(RecordInvalid) as caught:
        ledger.open("alex", program, store=store, temperature=float("nan"))("one")
    assert caught.value.path == "settings.temperature"
    assert store.read("alex") == []
