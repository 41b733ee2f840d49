"""The rule by which a person is asked about tools goes with the turn: who resumes it asks about the same."""

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
