"""A yes is to exactly one call, a result of exactly one call, and nothing that may have been done is done again."""

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

import ledger
from ledger import errors
from ledger.records import kinds
from ledger.turns import commands, steps
from ledger.turns.commands import Claim


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    """Nobody waits long for calls that are not come to."""
    monkeypatch.setattr(steps, "PATIENCE_S", 0.2)


class Crash(ledger.MemoryStore):
    """A store that takes no more records of a kind, as if its process had died, until it is mended."""

    refuses: Callable[[Any], bool] | None = None

    def append(self, conversation, records, *, expect=None):
        """Append, if it takes such records."""
        if self.refuses is not None and any(map(self.refuses, records)):
            raise OSError("died")
        return super().append(conversation, records, expect=expect)


def interrupt(store, conversation="c"):
    """Have the running turn of a conversation be interrupted, as after its process died."""
    lease = [r for r in store.read(conversation) if r["kind"] == "lease"][-1]
    gone = {k: lease[k] for k in ("turn", "holder", "attempt")}
    at = "2026-01-01T00:00:00.000000Z"
    store.append(conversation, [kinds.new("lease", at, until=at, **gone)])


def note(where, what):
    """Note what was done to the world."""
    where.append(what)
    return "paid"


def pay(n, **how):
    """Pay, as a tool that changes things."""
    return ledger.current().tool("pay", {"n": n}, lambda: f"paid {n}", effects="changes", **how)


# -- answers -------------------------------------------------------------------------------------------


def test_an_answer_of_a_rule_is_no_answer_of_a_person():
    """What a function said yes to, in an attempt that died, answers no question that a person is asked."""
    store, ran = Crash(), []

    def program(message: str) -> str:
        turn = ledger.current()
        return turn.tool("pay", {"n": 5}, lambda: note(ran, 5), effects="changes")

    store.refuses = lambda record: record["kind"] in ("tool", "ended")
    with pytest.raises(OSError, match="died"):
        ledger.open("c", program, store=store, approve=lambda question: True)("x")
    store.refuses = None
    interrupt(store)

    turn = ledger.open("c", program, store=store, approve="all").turn(1)
    with pytest.raises(errors.TurnWaiting):
        turn.resume()
    assert "not allowed" in turn.deny(reason="no").resume()
    assert ran == []


def test_an_answer_to_another_call_is_none():
    """An answer whose hash is of another call leaves the question open, and nothing runs."""
    store = ledger.MemoryStore()

    def program(message: str) -> str:
        return pay(5)

    with pytest.raises(errors.TurnWaiting) as caught:
        ledger.open("c", program, store=store, approve="all")("x")
    asked = caught.value.questions[0]
    said = {k: asked[k] for k in ("site", "invocation", "path")}
    at = "2026-01-01T00:00:00.000000Z"
    answer = kinds.new(
        "approval", at, turn=caught.value.turn, verdict="yes", asked="sha256:" + "0" * 64
    )
    store.append("c", [{**answer, **said}])

    turn = ledger.open("c", program, store=store).turn(1)
    assert len(turn.waiting) == 1
    with pytest.raises(errors.TurnWaiting):
        turn.resume()


def test_what_is_asked_about_is_what_was_given_then():
    """A program that changes its input after the call changes neither the question nor what is recorded."""
    store = ledger.MemoryStore()

    def program(message: str) -> str:
        given = {"amount": 5}
        try:
            return ledger.current().tool("pay", given, lambda: "paid", effects="changes")
        finally:
            given["amount"] = 500

    with pytest.raises(errors.TurnWaiting) as caught:
        ledger.open("c", program, store=store, approve="all")("x")

    assert [question["input"] for question in caught.value.questions] == [{"amount": 5}]
    assert ledger.open("c", program, store=store).turn(1).approve().resume() == "paid"


def slow(order):
    """Ask a model that takes longer for one order than for the other."""
    time.sleep(0.05 if order % 2 else 0)
    return "r"


# -- helpers side by side ----------------------------------------------------------------------------


@ledger.program
def payout(order: int) -> str:
    """Pay a bonus for an order: the same call of a tool for each."""
    turn = ledger.current()
    turn.reply({"order": order}, lambda: slow(order))
    amount = {"amount": 5}
    return f"{order}: " + turn.tool("bonus", amount, lambda: f"paid {order}", effects="changes")


def side_by_side(message: str) -> str:
    """Pay out two orders at once."""
    with ThreadPoolExecutor(4) as pool:
        return str(list(pool.map(payout, [1, 2])))


def test_a_yes_to_one_helpers_call_is_not_anothers():
    """Of two helpers that make the same call of a tool, the approved one pays, in any order."""
    for _ in range(3):
        store = ledger.MemoryStore()
        with pytest.raises(errors.TurnWaiting):
            ledger.open("c", side_by_side, store=store, approve=["bonus"])("x")
        turn = ledger.open("c", side_by_side, store=store).turn(1)
        for question in turn.waiting:
            assert question["within"]["name"] == "payout"
            order = question["within"]["inputs"]["order"]
            (turn.approve if order == 2 else turn.deny)(question)

        assert turn.resume() == "['1: This call was not allowed.', '2: paid 2']"


def test_results_stay_with_the_helper_that_had_them():
    """Gone on with, each of two helpers is given what its own call had given."""
    for _ in range(3):
        store = Crash()
        store.refuses = lambda record: record["kind"] == "ended"
        with pytest.raises(OSError, match="died"):
            ledger.open("c", side_by_side, store=store)("x")
        store.refuses = None
        interrupt(store)

        assert (
            ledger.open("c", side_by_side, store=store).turn(1).resume()
            == "['1: paid 1', '2: paid 2']"
        )


# -- nothing twice ---------------------------------------------------------------------------------------


def unfinished_turn(program, refuses):
    """A conversation whose turn was interrupted when a record was refused. Returns: its store."""
    store = Crash()
    store.refuses = refuses
    with pytest.raises(OSError, match="died"):
        ledger.open("c", program, store=store)("x")
    store.refuses = None
    interrupt(store)
    return store


@pytest.mark.parametrize("id", ["call_1", None])
@pytest.mark.parametrize("face", ["blocking", "aio"])
def test_a_changed_call_is_not_made_while_the_recorded_one_is_open(id, face):
    """A program whose call has another input now pays no second time, and is told so before it would."""
    paid = []

    def program(message: str) -> str:
        n = len(paid)
        return ledger.current().tool(
            "pay", {"n": n}, lambda: note(paid, n), id=id, effects="changes"
        )

    async def awaited(message: str) -> str:
        return await program(message)

    given = program if face == "blocking" else awaited
    store = unfinished_turn(given, lambda record: record["kind"] == "ended")
    chat = ledger.open("c", given, store=store)
    for _ in range(3):
        with pytest.raises(errors.TurnChanged):
            chat.turn(1).resume()

    assert paid == [0]
    left = chat.resume_all()
    assert (left, list(left.left)) == ([], [chat.turn(1).id])


def test_a_call_that_raised_and_was_made_again_is_no_question():
    """A program that tries a tool again after it raised goes on after a crash without anybody's word."""
    calls = []

    def once():
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("try again")
        return "paid"

    def program(message: str) -> str:
        turn = ledger.current()
        try:
            return turn.tool("pay", {"n": 1}, once, effects="changes")
        except ConnectionError:
            return turn.tool("pay", {"n": 1}, once, effects="changes")

    store = unfinished_turn(program, lambda record: record["kind"] == "ended")
    turn = ledger.open("c", program, store=store).turn(1)

    assert turn.unfinished == []
    assert (turn.resume(), len(calls)) == ("paid", 2)


def test_a_call_beside_a_question_that_was_not_made_is_none():
    """In a group of tasks one of which waits for a person, the others are made or not: nobody is asked which."""

    async def program(message: str) -> str:
        turn = ledger.current()
        tasks = []
        async with asyncio.TaskGroup() as group:
            for name in ("pay", "mail"):
                call = turn.tool(name, {"x": 1}, lambda name=name: name, effects="changes")
                tasks.append(group.create_task(call))
        return "".join(task.result() for task in tasks)

    for _ in range(10):
        store = ledger.MemoryStore()
        with pytest.raises(errors.TurnWaiting):
            ledger.open("c", program, store=store, approve=["pay"])("x")
        turn = ledger.open("c", program, store=store).turn(1)
        assert turn.unfinished == []
        assert turn.approve().resume() == "paymail"


def test_what_is_said_of_a_tool_is_said_of_one():
    """A name that fits two tool calls, by whichever way, is refused, and so is saying both of one."""
    store = ledger.MemoryStore()

    def program(message: str) -> str:
        turn = ledger.current()
        turn.tool("refund", {"n": 1}, lambda: "r", id="call_1", effects="changes")
        return turn.tool("mail", {"n": 1}, lambda: "m", id="refund", effects="changes")

    ledger.open("c", program, store=store)("x")
    records = [r for r in store.read("c") if r["kind"] != "ended" and r.get("state") != "done"]
    other = ledger.MemoryStore()
    other.append("c", records)
    interrupt(other)
    turn = ledger.open("c", program, store=other).turn(1)

    keys = [tool["key"] for tool in turn.unfinished]
    with pytest.raises(errors.TurnState, match="names several"):
        turn.resume(results={"refund": "x"})
    with pytest.raises(errors.TurnState, match="twice"):
        turn.resume(results={keys[0]: "x"}, rerun=[keys[0]])
    with pytest.raises(TypeError):
        turn.resume(rerun=keys[0])
    assert turn.resume(results=dict(zip(keys, ["R", "M"], strict=True))) == "M"


# -- who may ----------------------------------------------------------------------------------------------


def test_a_renewal_after_the_wait_is_refused():
    """A turn that waits for a person is held by nobody: a late renewal of its lease is refused."""
    store = ledger.MemoryStore()
    with pytest.raises(errors.TurnWaiting) as caught:
        ledger.open("c", lambda message: pay(1), store=store, approve="all")("x")
    history = ledger.History.of(store.read("c"))
    lease = history.node(caught.value.turn).lease

    now, claim = datetime.now(UTC), Claim(lease.holder, 1)

    with pytest.raises(errors.LeaseLost, match="waits"):
        commands.renew(history, caught.value.turn, claim, now=now)


@pytest.mark.parametrize("said", [None, [{"name": "b"}], [5], 7, "function"])
def test_a_rule_that_is_not_understood_lets_nothing_run(said):
    """A turn that asked people, and whose rule nobody knows, is gone on with by nobody who gives none."""
    store = ledger.MemoryStore()

    def program(message: str) -> str:
        return pay(1)

    with pytest.raises(errors.TurnWaiting):
        ledger.open("c", program, store=store, approve="all")("x")
    other = ledger.MemoryStore()
    records = [
        {
            k: said if k == "approve" else v
            for k, v in r.items()
            if k != "approve" or said is not None
        }
        for r in store.read("c")
    ]
    other.append("c", records)

    turn = ledger.open("c", program, store=other).turn(1).approve()
    with pytest.raises(errors.TurnState, match="approve"):
        turn.resume()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forks_child_makes_no_steps_of_its_parents_turn(tmp_path):
    """A child that a program forks can record no step of the turn, and runs no tool of it."""

    def program(message: str) -> str:
        child = os.fork()
        if not child:
            try:
                pay(1)
            except errors.LeaseLost:
                os._exit(7)
            os._exit(0)
        return str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    assert ledger.open("c", program, store=ledger.FolderStore(tmp_path / "s"))("x") == "7"


def test_helpers_remember_the_same_when_a_turn_goes_on():
    """Who goes on with a turn and says nothing of memory shows its helpers what the turn began with."""

    @ledger.program
    def helper(message: str) -> str:
        return str(len(ledger.current().earlier()))

    def program(message: str) -> str:
        return helper("a") + helper("b") + pay(1)

    store = ledger.MemoryStore()
    with pytest.raises(errors.TurnWaiting):
        ledger.open("c", program, store=store, approve="all", remembers={helper: "turn"})("x")

    assert ledger.open("c", program, store=store).turn(1).approve().resume() == "01paid 1"


@pytest.mark.parametrize("name", ["aprove", "approves", "remember", "contex", "stores", "results"])
def test_a_misspelt_word_is_no_setting(name):
    """A setting that is called like what `open` takes is refused: a misspelt `approve` would ask nobody."""
    with pytest.raises(TypeError):
        ledger.open("c", store=ledger.MemoryStore(), **{name: "changes"})  # type: ignore[arg-type]
