"""A declared program that is called by itself, outside every turn, on both faces."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import ledger
from ledger import errors

PNG = b"\x89PNG"


def asked(message: str) -> dict[str, Any]:
    """Return what the turn that is running says of itself."""
    turn = ledger.current()
    turn.note(model="m", usage={"tokens": 1})
    turn.emit("a piece")
    where = [turn.conversation, turn.turn, turn.settings, turn.stopped]
    return {"earlier": turn.earlier(), "where": where, "says": turn.messages("openai")}


NOTHING: dict[str, Any] = {
    "earlier": [],
    "where": ["", "", {}, False],
    "says": [{"role": "user", "content": "hi"}],
}


@ledger.program
def plain(message: str) -> dict:
    """Answer."""
    said = asked(message)
    assert ledger.current().reply({"m": message}, lambda: "replied") == "replied"
    assert ledger.current().tool("look", {}, lambda: 7, id="c1", effects="changes") == 7
    return said


@ledger.program
async def awaited(message: str) -> dict:
    """Answer on a loop."""
    turn = ledger.current()

    async def reply() -> str:
        return "replied"

    assert await turn.reply({"m": message}, reply) == "replied"
    assert await turn.tool("look", {}, lambda: 7) == 7
    return {
        "earlier": turn.earlier(),
        "where": [turn.conversation, turn.turn, turn.settings, turn.stopped],
        "says": (await turn.messages("openai"))[:1],
    }


@ledger.program
def pieces(message: str):
    """Answer in pieces."""
    yield str(ledger.current().earlier())
    yield message
    return "whole"


@ledger.program
async def async_pieces(message: str):
    """Answer in pieces on a loop."""
    yield str(ledger.current().earlier())
    yield message


def test_it_is_shown_nothing_and_leaves_nothing():
    """It is shown nothing but its own inputs; no conversation is made, and outside of it there is no turn."""
    before = ledger.open().store.conversations()

    assert NOTHING == plain("hi")
    assert NOTHING == asyncio.run(awaited("hi"))
    assert before == ledger.open().store.conversations()
    with pytest.raises(LookupError, match=r"declared with @ledger\.program"):
        ledger.current()


def test_pieces_come_as_they_did():
    """A generator says its pieces and returns its value, and who takes them is in no turn meanwhile."""
    said = pieces("hi")
    assert "[]" == next(said)
    with pytest.raises(LookupError):
        ledger.current()
    assert "hi" == next(said)
    with pytest.raises(StopIteration, match="whole"):
        next(said)

    async def every() -> list[str]:
        return [piece async for piece in async_pieces("hi")]

    assert ["[]", "hi"] == asyncio.run(every())


def test_one_that_is_called_inside_has_a_turn_of_its_own():
    """A declared program that another one calls is asked by its own inputs, and remembers nothing of its calls."""

    @ledger.program
    def inner(message: str) -> list:
        return [ledger.current().earlier(), ledger.current().messages("openai")]

    @ledger.program
    def outer(message: str) -> list:
        return [inner("a"), inner("b"), [], ledger.current().messages("openai")]

    first, second, *own = outer("hi")

    for (earlier, says), word in zip((first, second, own), ["a", "b", "hi"], strict=True):
        assert [] == earlier
        assert [{"role": "user", "content": word}] == says


def test_threads_that_it_starts_are_in_it():
    """A thread and a pool of its own find its turn, as in a conversation's turn."""
    found: list[Any] = []

    @ledger.program
    def program(message: str) -> str:
        thread = threading.Thread(target=lambda: found.append(ledger.current()))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            found.append(pool.submit(ledger.current).result())
        found.append(ledger.current())
        return message

    program("x")

    assert found[0] is found[1] is found[2]


def test_a_conversation_that_it_uses_is_in_no_turn():
    """It may send to a conversation, whose turns are recorded; a turn inside of which it runs stays that turn."""
    store = ledger.MemoryStore()

    @ledger.program
    def program(message: str) -> str:
        return str(ledger.open("c", plain, store=store).send(message).result["where"][0])

    assert "c" == program("hi")
    assert ["hi"] == [turn.inputs["message"] for turn in ledger.open("c", store=store).turns]


def test_what_no_turn_would_keep_is_refused():
    """A reply or tool whose value a turn would refuse is refused, also by itself; any input may be given."""

    @ledger.program
    def program(given: Any, step: str) -> Any:
        turn = ledger.current()
        steps = {"tool": lambda: turn.tool("t", {}, object), "reply": lambda: turn.reply({}, set)}
        return steps[step]() if step else given

    thing = object()
    assert thing is program(thing, "")
    for step in ("tool", "reply"):
        with pytest.raises(errors.RecordInvalid):
            program(thing, step)


def test_attachments_are_told_to_the_model():
    """An attachment among its inputs is read for the model, though no store has it."""

    @ledger.program
    def look(message: str, picture: ledger.Attachment) -> Any:
        return ledger.current().messages("openai")

    (said,) = look("What is it?", ledger.Attachment(PNG, media_type="image/png"))

    assert "data:image/png;base64,iVBORw==" in str(said)


def test_what_a_tool_raises_is_raised():
    """What a tool raises reaches the program, and its model is told."""

    @ledger.program
    def program(message: str) -> Any:
        turn = ledger.current()
        with pytest.raises(ZeroDivisionError):
            turn.tool("t", {}, lambda: 1 // 0)
        return turn.messages()

    assert "ZeroDivisionError" in str(program("x"))
