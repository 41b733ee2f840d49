"""What the call of a step raised is its outcome: recorded, and told again to a run that comes to it."""

import asyncio
import contextlib
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import errors
from ledger.turns import raising, steps
from tests.turns.test_within import Dying, World, left_by, opened


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    """Nobody waits long for calls that are not come to."""
    monkeypatch.setattr(steps, "PATIENCE_S", 0.2)
    yield
    steps._unsaved.clear()


def every_death(program, deeds, **how):
    """Resume the turn of a program that died after each number of appends. Yields: its turn, and its answer."""
    appends = 0
    while True:
        appends += 1
        deeds.clear()
        store = left_by(program, appends, **how)
        turn = opened(store, program, **how).turn(1)
        if turn.state == "done":
            return
        said = [tool["key"] for tool in turn.unfinished]
        yield turn, turn.resume(rerun=said), len(said)


# -- exceptions ------------------------------------------------------------------------------------------


class Odd(Exception):
    """One whose text is made of what it holds."""

    def __init__(self, place, *, code):
        super().__init__()
        self.place, self.code = place, code

    def __str__(self):
        return f"{self.place}: {self.code}"


class Wanting(Exception):
    """One that cannot be made without arguments."""

    def __new__(cls, first, second):
        return super().__new__(cls, first, second)


class Order(pydantic.BaseModel):
    """What a model is asked for."""

    count: int
    name: str

    @pydantic.field_validator("name")
    @classmethod
    def long_enough(cls, name):
        if len(name) < 3:
            raise ValueError("a name has three letters")
        return name


def raised_by(call):
    """The exception that a call raises."""
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


EXAMPLES = [
    lambda: {}["k"],
    lambda: int("x"),
    lambda: Path("/nowhere/at/all").read_text(),
    lambda: b"\xff".decode(),
    lambda: json.loads("{"),
    lambda: (_ for _ in ()).throw(Odd("here", code=7)),
    lambda: (_ for _ in ()).throw(errors.TurnState(turn="t", state="done", reason="r")),
    lambda: (_ for _ in ()).throw(ValueError("two", "parts")),
    lambda: (_ for _ in ()).throw(ValueError()),
    lambda: Order.model_validate({"count": "many", "name": "x"}),
    lambda: (_ for _ in ()).throw(HTTPError("http://model", 429, "slow down", Message(), None)),
    lambda: (_ for _ in ()).throw(ExceptionGroup("two", [ValueError("a"), KeyError("b")])),
    lambda: (_ for _ in ()).throw(
        ExceptionGroup("deep", [ExceptionGroup("one", [OSError(2, "c")])])
    ),
    lambda: (_ for _ in ()).throw(Wanting("first", "second")),
    lambda: (_ for _ in ()).throw(errors.Busy(conversation="c", turn="t")),
]


@pytest.mark.parametrize("call", EXAMPLES)
def test_an_exception_comes_back_as_its_class_with_its_text(call):
    """Whoever catches it by its class, or shows its text to a model, cannot tell."""
    error = raised_by(call)
    back = raising.again(json.loads(json.dumps(raising.recorded(error))))

    assert isinstance(back, type(error))
    assert (type(back).__name__, str(back)) == (type(error).__name__, str(error))
    assert raising.recorded(back)["message"] == raising.recorded(error)["message"]
    assert back.__notes__ == [raising.NOTE]
    assert repr(back)
    if isinstance(error, ExceptionGroup):
        assert [type(e).__name__ for e in back.exceptions] == [
            type(e).__name__ for e in error.exceptions
        ]
        with pytest.raises(ExceptionGroup), contextlib.suppress(KeyError):
            raise back


def test_what_cannot_be_told_again_is_left_out():
    """A refusal of a value that is no JSON, or long, and groups in groups without end: the text is kept."""
    for call in (
        lambda: Order.model_validate({"count": object(), "name": "xyz"}),
        lambda: Order.model_validate({"count": "m" * 20_000, "name": "xyz"}),
    ):
        error = raised_by(call)
        told = json.loads(json.dumps(raising.recorded(error)))
        assert set(told) == {"type", "module", "message"}
        assert isinstance(raising.again(told), ValueError)
        assert str(raising.again(told)) == told["message"]
    deep: Exception = ValueError("in")
    for _ in range(50):
        deep = ExceptionGroup("out", [deep])
    assert len(json.dumps(raising.recorded(deep))) < 2_000
    assert isinstance(raising.again(raising.recorded(deep)), ExceptionGroup)


@given(st.text(max_size=20), st.none() | st.text(max_size=20), st.text(max_size=20))
def test_any_record_of_an_error_is_raised(name, module, message):
    """Whatever a record says, an exception with that text comes of it; nothing is imported for it."""
    back = raising.again({"type": name, "module": module, "message": message})
    assert isinstance(back, Exception)
    assert str(back) == message


def test_a_class_that_is_not_known_here():
    """It is raised as an exception of that name; one that is no exception, or ends processes, never is."""
    unknown = raising.again({"type": "Gone.Deep", "module": "nowhere.at_all", "message": "m"})
    assert (type(unknown).__name__, str(unknown)) == ("Deep", "m")
    for module, name in (("builtins", "SystemExit"), ("builtins", "int"), ("os", "system")):
        assert type(raising.again({"type": name, "module": module})).__mro__[1] is Exception


# -- programs that go on after one ------------------------------------------------------------------------


def agent_loop(world, effects, ids):
    """A model calls a tool, which raises; it is told so, and calls it again."""

    def program(message: str) -> str:
        turn, told = ledger.current(), []
        for n in range(2):
            call = turn.reply({"told": told}, lambda: world.do("think") and "charge")
            id = f"call_{n}" if ids else None
            try:
                told.append(turn.tool(call, {"n": 5}, charge, id=id, effects=effects))
            except ConnectionError as error:
                told.append(f"failed: {error}")
        return turn.reply({"told": told}, lambda: f"{told} {world.do('end')}")

    def charge():
        if world.do("charge") == "charge 1":
            raise ConnectionError("no line")
        return "paid"

    return program


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("effects", ["reads", "changes"])
def test_a_tool_that_raised_is_not_made_again(effects, ids):
    """A program that was told of it is told again, and goes on as it did: nothing is done or paid twice."""
    world = World()
    for _, answer, reran in every_death(agent_loop(world, effects, ids), world.deeds):
        assert answer.startswith("['failed: no line', 'paid']") or reran or effects == "reads"
        assert world.deeds["charge"] <= 2 + reran + (effects == "reads")
        assert world.deeds["think"] <= 3


def test_a_model_that_failed_is_not_asked_again():
    """A program that asked another model then goes on with that one's reply."""
    world = World()

    def fails():
        world.do("first")
        raise TimeoutError("too slow")

    def program(message: str) -> str:
        turn = ledger.current()
        try:
            found = turn.reply({"m": 1}, fails)
        except TimeoutError as error:
            found = turn.reply({"m": 2, "since": str(error)}, lambda: world.do("second"))
        return turn.tool("look", {"f": found}, lambda: found, effects="reads")

    for turn, answer, _ in every_death(program, world.deeds):
        assert answer.startswith("second")
        assert max(world.deeds["first"], world.deeds["second"]) <= 2
        assert [r["response"] for r in turn._log.store.read("c") if "error" in r] == [{}]


@pytest.mark.parametrize("side_by_side", [False, True])
def test_equal_calls_of_which_one_raised(side_by_side):
    """Each of two equal calls keeps its own outcome, one after the other and side by side."""
    world = World()

    def charge():
        if world.do("charge") == "charge 1":
            raise ConnectionError("no line")
        return "paid"

    def program(message: str) -> list:
        turn = ledger.current()

        def once(_):
            try:
                return turn.tool("charge", {"n": 5}, charge, effects="changes")
            except ConnectionError:
                return "failed"

        if side_by_side:
            with ThreadPoolExecutor(2) as pool:
                found = list(pool.map(once, range(2)))
        else:
            found = [once(n) for n in range(2)]
        return [*found, turn.reply({"end": 1}, lambda: world.do("end"))]

    for _, answer, reran in every_death(program, world.deeds):
        assert world.deeds["charge"] <= 2 + reran
        if not reran:
            assert Counter(answer[:2]) == {"failed": 1, "paid": 1}


def test_what_was_noted_by_calls_that_raised_counts():
    """Tokens are paid for whatever came of the call, and counted once."""

    def note(what):
        ledger.current().note(usage={what: 1})

    def program(message: str) -> str:
        turn, tries, found = ledger.current(), [], ""

        def agent():
            note("own")
            turn.reply({"r": len(tries)}, lambda: note("reply"))
            tries.append(1)
            if len(tries) == 1:
                raise ValueError("again")
            return "ok"

        while True:
            try:
                found = turn.tool("agent", {"n": 1}, agent, effects="reads")
                break
            except ValueError:
                tries.append(0)
        return found + turn.reply({"end": 1}, lambda: note("end") or "")

    deeds = Counter()
    whole = Dying()
    opened(whole, program)("hi")
    usage = opened(whole, program).turn(1).usage
    assert usage == {"own": 2, "reply": 2, "end": 1}
    appends = len([r for r in whole.read("c") if r["kind"] in ("tool", "reply")])
    store = left_by(program, appends)
    turn = opened(store, program).turn(1)
    if turn.state != "done":
        turn.resume()
    assert turn.usage == usage
    assert not deeds


# -- questions and changes that a call swallows -----------------------------------------------------------


def collecting(world):
    """An agent as a tool that takes exceptions for results."""

    async def agent():
        turn = ledger.current()
        found = await asyncio.gather(
            turn.tool("pay", {"n": 1}, lambda: world.do("pay"), effects="changes"),
            turn.tool("look", {}, lambda: "seen", effects="reads"),
            return_exceptions=True,
        )
        return [str(each) if isinstance(each, str) else "error" for each in found]

    async def program(message: str) -> list:
        return await ledger.current().tool("agent", {}, agent, effects="reads")

    return program


def test_a_question_that_a_call_swallows_leaves_it_to_be_made_again():
    """What an agent made of the pause is no output of it: once answered, it is called again."""
    world = World()
    chat = opened(Dying(), collecting(world), approve=["pay"])
    with pytest.raises(errors.TurnWaiting):
        chat("hi")
    assert chat.turn(1).approve().resume() == ["pay 1", "seen"]


def test_a_change_that_a_call_swallows_gives_the_turn_back():
    """A program that is not the one that made the steps answers nothing, whatever its agents catch."""

    def agent_of(name, world):
        def program(message: str) -> str:
            turn = ledger.current()

            def agent():
                try:
                    return turn.tool(name, {"n": 1}, lambda: world.do(name), effects="changes")
                except Exception as error:
                    return f"the tool failed: {type(error).__name__}"

            found = turn.tool("agent", {}, agent, effects="reads")
            return found + turn.reply({"end": 1}, lambda: world.do("end"))

        return program

    world = World()
    store = left_by(agent_of("pay", world), 3)
    turn = opened(store, agent_of("pay", world)).turn(1)
    turn_other = opened(store, agent_of("mail", world)).turn(1)
    assert turn.unfinished == []
    with pytest.raises(errors.TurnChanged):
        turn_other.resume()
    assert turn.resume() == "pay 1end 1"
    assert world.deeds == {"pay": 1, "end": 1}
