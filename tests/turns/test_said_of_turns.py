"""What is said of turns that wait, are interrupted or were abandoned: usage, states, and what to do next."""

import asyncio
import contextlib
import os
import signal

import pytest

import ledger
from ledger import errors


def paid(message: str) -> str:
    """Pay a model, then do something that changes things."""
    turn = ledger.current()

    def ask():
        turn.note(usage={"tokens": 7}, model="m-1")
        return "thought"

    thought = turn.reply({"a": message}, ask)
    return thought + turn.tool("pay", {"n": 1}, lambda: "paid", effects="changes")


def waiting(store, program=paid):
    """A turn that waits for a person."""
    chat = ledger.open("c", program, store=store, approve="changes")
    with pytest.raises(errors.TurnWaiting):
        chat("hi")
    return chat.turn(1)


def test_a_model_noted_in_a_reply_is_noted_again():
    """The model that a reply's call named is the turn's, also when the reply came from the records."""
    turn = waiting(ledger.MemoryStore())
    assert turn.approve().resume() == "thoughtpaid"
    assert (turn.model, turn.usage) == ("m-1", {"tokens": 7})


def test_usage_before_the_end_and_without_one():
    """What was noted in recorded steps is the usage of a turn that waits, and of one that was abandoned."""
    turn = waiting(ledger.MemoryStore())
    assert turn.usage == {"tokens": 7}
    turn.abandon()
    assert turn.state == "abandoned"
    assert turn.usage == {"tokens": 7}


def test_yes_is_no_number():
    """True is 1 in Python: neither it nor what is no name answers a question."""
    turn = waiting(ledger.MemoryStore())
    for wrong in (True, False, 1.5, [1]):
        with pytest.raises(TypeError, match=r"approve\(\) says yes"):
            turn.approve(wrong)
    assert len(turn.waiting) == 1
    assert turn.approve(1).resume() == "thoughtpaid"


def test_results_of_another_type():
    """`results` maps calls to outputs, and says so."""
    turn = waiting(ledger.MemoryStore()).approve()
    with pytest.raises(TypeError, match="results maps each tool call to what it gave, not"):
        turn.resume(results=["x"])
    assert turn.resume() == "thoughtpaid"


def test_a_name_that_was_never_asked_about():
    """An unknown name is unknown, also once everything was answered; a known one was answered."""
    turn = waiting(ledger.MemoryStore()).approve()
    with pytest.raises(errors.QuestionUnknown, match="names no open question"):
        turn.deny("elsewhere")
    for again in ("paid/pay", 1, None):
        with pytest.raises(errors.QuestionUnknown, match="answered already"):
            turn.deny(again)


def test_waiting_says_about_what_and_what_to_do():
    """The error that a turn waits names what is asked about and the next step."""
    store = ledger.MemoryStore()
    chat = ledger.open("c", paid, store=store, approve="changes")
    with pytest.raises(errors.TurnWaiting) as caught:
        chat("hi")
    assert "about paid/pay" in str(caught.value)
    assert "approve or deny each, then resume" in str(caught.value)


def test_outputs_that_cannot_be_kept_name_their_tool():
    """What has no JSON form is refused by the name of its tool, and of a reply as such."""

    def tool(message: str) -> str:
        return ledger.current().tool("look", {}, lambda: {"a": {1}}, effects="reads")

    def reply(message: str) -> str:
        return ledger.current().reply({}, lambda: {"a": {1}})

    for program, path in ((tool, "look: output.a"), (reply, "reply: response.a")):
        with pytest.raises(errors.RecordInvalid, match=path):
            ledger.open("c", program, store=ledger.MemoryStore())("hi")


def test_a_rule_that_answers_something_else_is_told_about_what():
    """A function that approves and answers what is no answer is told which call it was asked about."""
    chat = ledger.open("c", paid, store=ledger.MemoryStore(), approve=lambda question: 1.5)
    with pytest.raises(
        TypeError, match=r"asked about paid/pay, answered 1\.5; .*True, False, None"
    ):
        chat("hi")


def test_an_answer_to_a_turn_whose_process_was_killed(tmp_path):
    """To who would answer or stop it, a turn whose process is known dead is interrupted, not running."""

    def dies(message: str) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return message

    pid = os.fork()
    if pid == 0:
        ledger.open("c", dies, store=tmp_path)("hi")
    os.waitpid(pid, 0)

    turn = ledger.open("c", dies, store=tmp_path).turn(1)
    for answer in (turn.approve, turn.deny):
        with pytest.raises(errors.TurnState, match="is interrupted: it waits for no answer"):
            answer()


async def asks_at_once(message: str) -> str:
    """Ask about three tools at once, two of one name."""
    tool = ledger.current().tool
    found = [tool("pay", {"n": n}, lambda: "paid", effects="changes") for n in (1, 2)]
    found.append(tool("mail", {}, lambda: "sent", effects="changes"))
    return " ".join(await asyncio.gather(*found))


def test_a_tools_name_is_an_answer_where_it_names_one():
    """A question is answered by its tool's name; where several are open under it, the refusal says which."""
    turn = waiting(ledger.MemoryStore(), asks_at_once)
    keys = [question["key"] for question in turn.waiting if question["name"] == "pay"]

    for name in ("pay", "post"):
        with pytest.raises(errors.QuestionUnknown) as caught:
            turn.approve(name)
        assert all(f"{key} (pay)" in str(caught.value) for key in keys)
    turn.approve("mail")

    assert [question["name"] for question in turn.waiting] == ["pay", "pay"]
    for key in keys:
        turn.approve(key)
    assert turn.resume() == "paid paid sent"


def raises(message: str) -> str:
    """Try tools that raise: one that changes things, one that reads."""
    tool = ledger.current().tool
    for effects in ("changes", "reads"):
        with contextlib.suppress(ValueError):
            tool(effects, {}, lambda: int("x"), effects=effects)
    return tool("last", {}, lambda: "told", effects="changes")


def test_a_call_that_raised_failed():
    """What a tool's call raised is its outcome in `steps`, whatever became of the turn."""
    turn = ledger.open("c", raises, store=ledger.MemoryStore()).send("x")

    states = [(step["state"], step["error"] is not None) for step in turn.steps]
    assert states == [("failed", True), ("failed", True), ("done", False)]
    assert [step["state"] for step in turn.to_dict()["steps"]] == ["failed", "failed", "done"]


def asks_in_turn(message: str) -> str:
    """Ask twice about the same tool, one after the other, each in a helper of its own."""
    return refunder(1) + refunder(2)


@ledger.program
def refunder(order: int) -> str:
    """Refund an order."""
    pay = {"order": order}
    return ledger.current().tool("refund", pay, lambda: f"paid {order}", effects="changes")


def test_a_name_that_was_another_questions_is_no_answer():
    """Who names a question by what also named one that was answered may have seen that one: it is refused."""
    turn = waiting(ledger.MemoryStore(), asks_in_turn)
    (first,) = turn.waiting
    turn.deny(first)
    with pytest.raises(errors.TurnWaiting):
        turn.resume()

    (second,) = turn.waiting
    assert (second["id"], second["path"]) == (first["id"], first["path"])
    number = first["invocation"]
    for name in (first["id"], first["path"], first["name"], number, str(number)):
        with pytest.raises(
            errors.QuestionUnknown, match="answered before; open by key: asks_in_turn#1/"
        ):
            turn.approve(name)
    for stale in (first, first["key"]):
        with pytest.raises(errors.QuestionUnknown, match="answered already"):
            turn.approve(stale)
    assert first["key"] != second["key"]
    assert turn.approve(second["key"]).resume().endswith("paid 2")


class Later:
    """Something to be awaited, which nobody minds if it is not."""

    def __await__(self):
        yield


def test_an_awaitable_that_was_not_awaited_is_called_one():
    """An async program that forgets to await what it gives is told so."""

    async def program(message: str) -> str:
        return Later()  # type: ignore[return-value]

    with pytest.raises(errors.RecordInvalid, match="was not awaited"):
        ledger.open("c", program, store=ledger.MemoryStore())("hi")


def test_a_request_id_is_not_empty():
    """An empty form field is no request id: two messages would be taken for one."""
    chat = ledger.open("c", lambda message: message, store=ledger.MemoryStore())
    with pytest.raises(ValueError, match="request_id is empty"):
        chat.send("hi", request_id="")
