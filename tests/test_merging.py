"""Ways to make one answer of several: the most frequent one, and what each changed."""

import asyncio
import unicodedata

import pytest

import ledger
from ledger import Attachment, merging
from ledger.merging import Conflict


@pytest.fixture
def chat():
    """A conversation in memory."""
    return ledger.open("alex", store=ledger.MemoryStore())


def tries(chat, *outputs, under=None):
    """Turns beside each other with these outputs."""
    return [chat.record("well?", out, parent=under) for out in outputs]


# -- pick


@pytest.mark.parametrize("named", [lambda t: t, lambda t: t.id, lambda t: t.id[-8:], lambda t: 2])
def test_one_answer_is_picked_however_the_turn_is_named(chat, named):
    """By a Turn, its id, a part of it, or its ordinal: as wherever a turn is asked for."""
    made = tries(chat, "a", "b")

    assert chat.merge(made, merging.pick(named(made[1]))).result == "b"


def test_what_is_picked_is_among_the_merged_turns(chat):
    """Another turn is refused by its id, none by what was given; what names no turn is refused when it is given."""
    made = tries(chat, "a", "b", "c")
    with pytest.raises(ValueError, match=f"{made[2].id} is not among"):
        chat.merge(made[:2], merging.pick(3))
    with pytest.raises(ledger.errors.TurnUnknown, match="it has 3 turns"):
        chat.merge(made[:2], merging.pick(99))
    for wrong in (None, True, 1.5):
        with pytest.raises(TypeError, match="named by a Turn, an id or an ordinal"):
            merging.pick(wrong)


@pytest.mark.parametrize("turns", [5, "5", None])
def test_what_is_merged_is_a_list(chat, turns):
    """One turn, named without a list, is refused by what merge takes."""
    with pytest.raises(TypeError, match=f"merge takes a list of turns.*not {turns!r}"):
        chat.merge(turns, merging.text("x"))


@pytest.mark.parametrize("by", [merging.majority, merging.three_way, merging.pick, merging.text])
def test_what_makes_merging_programs_is_none(chat, by):
    """A class that has to be called first is refused, saying so."""
    with pytest.raises(TypeError, match=rf"{by.__name__} is called first.*{by.__name__}\(\.\.\.\)"):
        chat.merge(tries(chat, "a", "b"), by)


# -- majority


def test_the_most_frequent_answer_is_kept(chat):
    """Of those who gave it the first one's outputs are taken, as they are."""
    made = tries(chat, "No.", "  YES,\n of course ", "yes, of course", "Maybe.")

    merged = chat.merge(made, merging.majority())

    assert merged.result == "  YES,\n of course "
    assert merged.made_by["name"] == "majority"
    assert [t.ordinal for t in merged.reads] == [1, 2, 3, 4]


def test_it_compares_as_json_and_texts_lightly(chat):
    """1 is 1.0 and not true; keys in any order; case, blanks and the spelling of accents say nothing."""
    composed, apart = "Café", unicodedata.normalize("NFD", "café")
    made = tries(
        chat,
        {"result": {"n": True, "t": "x"}},
        {"result": {"t": [composed], "n": 1}},
        {"result": {"n": 1.0, "t": [f" {apart} "]}},
    )

    assert chat.merge(made, merging.majority()).result == {"t": [composed], "n": 1}


def test_one_output_can_be_compared(chat):
    """With `field` the others may differ; a turn that lacks it is named."""
    made = tries(
        chat,
        {"reasoning": "r1", "result": "7"},
        {"reasoning": "r2", "result": "5"},
        {"reasoning": "r3", "result": "5"},
    )
    with pytest.raises(ValueError, match="3 answers have 1 vote each"):
        chat.merge(made, merging.majority())

    assert chat.merge(made, merging.majority(field="result")).outputs == {
        "reasoning": "r2",
        "result": "5",
    }
    with pytest.raises(
        ValueError, match=rf"{made[0].id[-8:]} has no output 'nope'.*reasoning, result"
    ):
        chat.merge(made, merging.majority(field="nope"))


def test_a_tie_is_refused_unless_the_first_is_wanted(chat):
    """The tied turns are named and nothing is recorded; `first` takes them in the order merged."""
    made = tries(chat, "a", "b", "b", "a", "c")
    before = chat.store.read("alex")

    with pytest.raises(ValueError, match="2 answers have 2 votes each") as caught:
        chat.merge(made, merging.majority())

    named = [turn.id[-8:] in str(caught.value) for turn in made]
    assert named == [True, True, True, True, False]
    assert chat.store.read("alex") == before
    assert chat.merge(made, merging.majority(ties="first")).result == "a"
    assert chat.merge(made[::-1], merging.majority(ties="first")).result == "a"
    assert chat.merge(made[1:], merging.majority()).result == "b"
    with pytest.raises(ValueError, match="'refuse' or 'first'"):
        merging.majority(ties="last")  # type: ignore[arg-type]


def test_attachments_are_compared_by_their_bytes(chat):
    """The same bytes are the same answer."""
    made = tries(
        chat,
        *({"result": Attachment(data, media_type="image/png")} for data in (b"1", b"2", b"2")),
    )
    assert chat.merge(made, merging.majority()).result.read() == b"2"


# -- three_way


PLAN = {"city": "Porto", "days": 2, "todo": ["book"], "notes": "first\n\nlast\n"}


def test_what_each_changed_is_put_together(chat):
    """Field by field against the outputs of the turn where they part; texts by lines, objects by keys."""
    base = chat.record("plan", {"plan": PLAN, "text": "draft"})
    one = chat.continue_from(base).record(
        "warmer", {"plan": {**PLAN, "city": "Faro"}, "text": "draft"}
    )
    notes = {"notes": "first\n\nlast, really\n", "todo": ["book", "pack"]}
    other = chat.continue_from(base).record("longer", {"plan": {**PLAN, **notes}, "text": "better"})

    merged = chat.merge([one, other], merging.three_way())

    assert merged.outputs == {"plan": {**PLAN, **notes, "city": "Faro"}, "text": "better"}
    assert merged.parent == base
    assert merged.made_by["name"] == "three_way"


def test_conflicts_are_named_and_nothing_is_recorded(chat):
    """All of them, with their places; `on_conflict` settles each."""
    base = chat.record("plan", {"plan": PLAN})
    one = chat.continue_from(base).record("a", {"plan": {**PLAN, "city": "Faro", "days": 3}})
    other = chat.continue_from(base).record("b", {"plan": {**PLAN, "city": "Braga", "days": 5}})
    before = chat.store.read("alex")

    with pytest.raises(ValueError, match=r"each otherwise: plan\.city, plan\.days;") as caught:
        chat.merge([one, other], merging.three_way())
    assert one.id[-8:] in str(caught.value)
    assert chat.store.read("alex") == before

    seen = []

    def settle(conflict):
        seen.append(conflict)
        return max(conflict.one, conflict.other)

    merged = chat.merge([one, other], merging.three_way(on_conflict=settle))
    assert merged.outputs["plan"] == {**PLAN, "city": "Faro", "days": 5}
    assert seen[0] == Conflict("plan.city", "Porto", "Faro", "Braga")
    with pytest.raises(TypeError, match="on_conflict is a plain function"):
        merging.three_way(on_conflict="mine")  # type: ignore[arg-type]


def test_more_than_two_are_put_together_in_order(chat):
    """Each against the same base, one after the other."""
    base = chat.record("x", {"a": 1, "b": 1, "c": 1})
    made = tries(
        chat,
        {"a": 2, "b": 1, "c": 1},
        {"a": 1, "b": 2, "c": 1},
        {"a": 2, "b": 1, "c": 3},
        under=base,
    )

    assert chat.merge(made, merging.three_way()).outputs == {"a": 2, "b": 2, "c": 3}


def test_a_turn_that_follows_the_other_wins(chat):
    """Where one merged turn is on the other's branch it is the base itself: the later outputs are taken."""
    one = chat.record("x", {"a": 1, "b": 1})
    other = chat.record("y", {"a": 2, "b": 1})

    assert chat.merge([one, other], merging.three_way()).outputs == {"a": 2, "b": 1}


def test_without_a_base_everything_is_a_change(chat):
    """Lines of their own have nothing in common: what both have otherwise is a conflict."""
    one, other = tries(chat, {"a": 1, "b": 1}, {"a": 1, "c": 2})
    assert chat.merge([one, other], merging.three_way()).outputs == {"a": 1, "b": 1, "c": 2}
    with pytest.raises(ValueError, match="otherwise: a"):
        chat.merge([one, chat.record("z", {"a": 9}, parent=None)], merging.three_way())


def test_a_base_that_was_forgotten_says_nothing(chat):
    """Its outputs are gone: then too everything is a change."""
    base = chat.record("x", {"a": 1})
    one, other = tries(chat, {"a": 1}, {"a": 2}, under=base)
    chat.forget(base)
    with pytest.raises(ValueError, match="otherwise: a"):
        chat.merge([one, other], merging.three_way())


# -- what a merging program is given


def test_a_program_with_a_base_is_given_it(chat):
    """The answer of the turn where they part, as the others are given; None where there is none."""
    base = chat.record("x", "b")
    made = tries(chat, "1", "2", under=base)
    given = []

    def by(answers, base):
        given.append(base)
        return "both"

    chat.merge(made, by)
    chat.merge([made[0], chat.record("y", "3", parent=None)], by)
    chat.merge(made, by, base="mine")
    assert given[0] == {
        "turn": base.id,
        "model": None,
        "inputs": {"message": "x"},
        "outputs": {"result": "b"},
        "result": "b",
    }
    assert given[1:] == [None, "mine"]


def test_a_parameter_named_base_is_else_what_it_was(chat):
    """The only free parameter takes the answers whatever its name; a default of `base` stays."""
    made = tries(chat, "1", "2")
    assert chat.merge(made, lambda base: str(len(base))).result == "2"
    assert chat.merge(made, lambda answers, base="kept": base).result == "kept"
    with pytest.raises(TypeError, match="one parameter left"):
        chat.merge(made, lambda answers, base, more: "x")


def test_both_faces_merge_so():
    """The awaitable face gives the same."""

    async def main():
        chat = ledger.aio.open("alex", store=ledger.MemoryStore())
        base = await chat.record("x", {"a": 1, "b": 1})
        made = [
            await chat.record("y", outputs, parent=base)
            for outputs in ({"a": 2, "b": 1}, {"a": 1, "b": 2})
        ]
        both = await chat.merge(made, merging.three_way())
        with pytest.raises(ValueError, match="majority"):
            await chat.merge(made, merging.majority())
        first = await chat.merge(made, merging.majority(ties="first"))
        return both.outputs, first.outputs

    assert asyncio.run(main()) == ({"a": 2, "b": 2}, {"a": 2, "b": 1})
