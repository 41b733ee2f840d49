"""The rule by which a person is asked about tools goes with the turn: who resumes it asks about the same."""

import asyncio
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import errors
from ledger.turns import approving


def pays_twice(message: str) -> str:
    """Pay, and pay again."""
    turn = ledger.current()
    return " ".join(
        turn.tool("pay", {"n": n}, lambda n=n: f"paid {n}", effects="changes") for n in (1, 2)
    )


@pytest.fixture
def store():
    """A store in memory."""
    return ledger.MemoryStore()


async def got(value):
    """What a verb gives, awaited where it has to be."""
    return await value if inspect.isawaitable(value) else value


def waits(turn):
    """Go on with a turn that comes to a question."""
    with pytest.raises(errors.TurnWaiting):
        turn.resume()


@pytest.mark.parametrize("rule", ["changes", "all", ["pay"], ["pays_twice/pay"]])
def test_who_resumes_without_a_rule_asks_about_the_same(store, rule):
    """A turn that asked about its first tool asks about its second, whoever goes on with it."""
    with pytest.raises(errors.TurnWaiting):
        ledger.open("c", pays_twice, store=store, approve=rule)("x")
    turn = ledger.open("c", pays_twice, store=store).turn(1)

    waits(turn.approve())
    assert [question["input"] for question in turn.waiting] == [{"n": 2}]

    assert turn.approve().resume() == "paid 1 paid 2"


def test_another_rule_may_be_given(store):
    """Who resumes may say otherwise: an empty list asks about nothing."""
    with pytest.raises(errors.TurnWaiting):
        ledger.open("c", pays_twice, store=store, approve="all")("x")

    turn = ledger.open("c", pays_twice, store=store, approve=[]).turn(1)
    assert turn.approve().resume() == "paid 1 paid 2"


def test_a_function_has_to_be_given_again(store):
    """A rule that is a function is no record: without one, the turn is not gone on with."""

    def ask(question):
        return None

    with pytest.raises(errors.TurnWaiting):
        ledger.open("c", pays_twice, store=store, approve=ask)("x")
    turn = ledger.open("c", pays_twice, store=store).turn(1).approve()

    with pytest.raises(errors.TurnState, match="approve"):
        turn.resume()

    waits(ledger.open("c", pays_twice, store=store, approve=ask).turn(1))


RULES = st.sampled_from([None, "changes", "all"]) | st.lists(st.text(min_size=1), unique=True)


@given(RULES)
def test_a_recorded_rule_reads_back(rule):
    """What a record says of a rule reads back as that rule, in any order of its names."""
    found = approving.of_record(approving.recorded(rule), None)

    assert found == (sorted(rule) if isinstance(rule, list) else rule)


@pytest.mark.parametrize("rule", ["changes", "all", ["pay"]])
@pytest.mark.parametrize("face", [ledger, ledger.aio], ids=["blocking", "aio"])
def test_a_rule_given_with_a_turn_is_that_turns(store, rule, face):
    """It asks in this turn and no other, and who goes on with the turn has no other rule, whatever theirs is."""

    async def scenario():
        chat = face.open("c", pays_twice, store=store, approve=["other"])
        with pytest.raises(errors.TurnWaiting):
            await got(chat.send("x", approve=rule))
        turn = await got(chat.turn(1))
        await got(turn.approve())
        with pytest.raises(errors.TurnWaiting):
            await got(turn.resume())
        await got(turn.approve())
        await got(turn.resume())
        return await got(chat("y"))

    assert asyncio.run(scenario()) == "paid 1 paid 2"


def test_a_turns_own_rule_may_ask_nobody(store):
    """`[]` asks about nothing in this turn; None is the conversation's own rule."""
    chat = ledger.open("c", pays_twice, store=store, approve="all")
    assert chat.send("x", approve=[]).state == "done"
    with pytest.raises(errors.TurnWaiting):
        chat.send("x", approve=None)


def test_a_turns_own_function_is_replaced_by_a_function(store):
    """Another rule, `[]` too, is not what its turn was sent with: the refusal asks for a function."""
    chat = ledger.open("c", pays_twice, store=store, approve=["other"])
    with pytest.raises(errors.TurnWaiting):
        chat.send("x", approve=lambda question: None)
    chat.turn(1).approve()
    for rule in (["other"], [], "all", None):
        turn = ledger.open("c", pays_twice, store=store, approve=rule).turn(1)
        with pytest.raises(errors.TurnState, match="give a function") as refused:
            turn.resume()
        assert "[]" not in str(refused.value)
    waits(ledger.open("c", pays_twice, store=store, approve=lambda question: None).turn(1))


@pytest.mark.parametrize("wrong", ["chnages", 5, [1]])
def test_what_is_no_rule_is_refused_with_the_turn(store, wrong):
    """As by `open`; nothing is recorded."""
    with pytest.raises((TypeError, ValueError), match="approve is"):
        ledger.open("c", pays_twice, store=store).send("x", approve=wrong)
    assert store.read("c") == []
