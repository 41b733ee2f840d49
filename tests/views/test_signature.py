"""May a program continue a branch: decided by the fields of the turns that it would be shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger.errors import SignatureChanged
from ledger.records import kinds
from ledger.turns import commands
from ledger.turns.programs import Description, Program
from ledger.views import History, all_turns, last_turns, signature
from ledger.views.nodes import MOST_VERSIONS
from tests.views.build import AT, NOW, ended, turn

TEXT = {"type": "string"}


def field(name: str, direction: str = "output", shape: Any = TEXT, purpose: str = "plain") -> Any:
    """A field as a `program` record has it."""
    return {"name": name, "direction": direction, "purpose": purpose, "shape": shape}


MESSAGE, RESULT = field("message", "input"), field("result")
REASONING = field("reasoning", purpose="reasoning")


def described(version: str, *fields: Any) -> Description:
    """A program of these fields."""
    return Description(version, "tutor", "m", {}, list(fields), "result")


def branch(*programs: Description, states: list[str] | None = None) -> tuple[History, str]:
    """A branch with a turn by each program, and its last turn."""
    records: list[Any] = []
    for i, program in enumerate(programs):
        records.append(kinds.new("program", AT, **program.keys()))
        made = turn(f"t{i}", f"t{i - 1}" if i else None)
        records.append({**made, "program": program.version})
        records.append(ended(f"t{i}", states[i] if states else "done"))
    return History.of(records), f"t{len(programs) - 1}"


OLD = described("old", MESSAGE, RESULT)
OTHER = described("other", field("question", "input"), RESULT)
NEW = described("new", MESSAGE, RESULT)
THINKING = described("thinking", MESSAGE, REASONING, RESULT)


def check(history: History, program: Any, parent: str | None, *, rule: Any, **how: Any) -> None:
    """Check a program by what a rule shows under a parent."""
    signature.check(history, program, history.shown(parent, rule), **how)


def test_only_the_turns_that_are_shown_count():
    """A program that fits the last turns may continue when no others are shown."""
    history, parent = branch(OTHER, OLD, OLD)

    check(history, NEW, parent, rule=last_turns(2))
    for rule in (last_turns(3), all_turns()):
        with pytest.raises(SignatureChanged):
            check(history, NEW, parent, rule=rule)


def test_turns_without_an_answer_do_not_count():
    """A turn that is not shown, since it has no answer any more, refuses no program."""
    history, parent = branch(OTHER, OLD, states=["abandoned", "done"])
    check(history, NEW, parent, rule=all_turns())


def test_nothing_shown_refuses_nothing():
    """A program that is shown no turn may continue any."""
    history, parent = branch(OTHER)
    check(history, NEW, parent, rule=last_turns(0))
    check(history, NEW, None, rule=all_turns())


def test_fields_that_are_left_out_are_not_compared():
    """A field that the rule leaves out may come, go, or change its shape."""
    photo = field("photo", "input")
    history, parent = branch(OLD, described("v", MESSAGE, photo, RESULT))
    now = described("w", MESSAGE, field("photo", "input", {"type": "object"}), RESULT)

    check(history, now, parent, rule=all_turns(without=["photo"]))
    check(history, NEW, parent, rule=all_turns(without=["photo"]))
    with pytest.raises(SignatureChanged):
        check(history, now, parent, rule=all_turns(without=["message"]))


def test_added_reasoning_is_accepted_when_named():
    """Earlier turns may be shown without a reasoning or calls output, where that was said."""
    history, parent = branch(OLD)
    both = described("both", MESSAGE, REASONING, field("calls", shape={}), RESULT)
    accept = ("reasoning", "calls")

    check(history, both, parent, rule=all_turns(), earlier_without=accept)
    with pytest.raises(SignatureChanged) as caught:
        check(history, both, parent, rule=all_turns(), earlier_without=["calls"])
    assert caught.value.earlier_without == ("reasoning",)
    assert "earlier_without=['reasoning']" in str(caught.value)


def test_an_output_for_reasoning_may_have_any_name():
    """What counts is the name, or what the output is for."""
    history, parent = branch(OLD)
    thoughts = described("v", MESSAGE, field("thoughts", purpose="reasoning"), RESULT)
    check(history, thoughts, parent, rule=all_turns(), earlier_without=["thoughts"])


@pytest.mark.parametrize("added", [field("summary"), field("reasoning", "input")])
def test_no_other_field_is_accepted(added):
    """An input, or an output that is part of the answer, is refused also when it is named."""
    history, parent = branch(OLD)
    program = described("v", MESSAGE, added, RESULT)
    with pytest.raises(SignatureChanged) as caught:
        check(history, program, parent, rule=all_turns(), earlier_without=[added["name"]])
    assert caught.value.earlier_without == ()
    assert "earlier_without" not in str(caught.value)


def test_the_refusal_names_the_way_out_only_where_it_is_one():
    """Where more than reasoning differs, `earlier_without` would not help and is not named."""
    history, parent = branch(OTHER, OLD)
    with pytest.raises(SignatureChanged) as caught:
        check(history, THINKING, parent, rule=all_turns())
    assert caught.value.earlier_without == ()
    assert caught.value.differences == (
        "earlier turns lack message; earlier turns lack reasoning; "
        "question is no longer one of its fields"
    )


def test_fields_without_which_it_fits_are_named():
    """What was added, lost or changed is named where the turns keep an input and an output without it, and it fits."""
    history, parent = branch(described("v", MESSAGE, field("old", "input"), RESULT))
    now = described("w", MESSAGE, field("image", "input"), RESULT)
    with pytest.raises(SignatureChanged) as caught:
        check(history, now, parent, rule=last_turns(3, without=["b"]))

    assert caught.value.without == ("b", "image", "old")
    assert "all_turns(without=['b', 'image', 'old'])" in str(caught.value)
    check(history, now, parent, rule=last_turns(3, without=caught.value.without))


@pytest.mark.parametrize("now", [OTHER, described("v", MESSAGE, field("text"))])
def test_turns_that_would_say_nothing_are_no_way_out(now):
    """Where no input, or no output, is left that both have, nothing is to be left out."""
    history, parent = branch(OLD)
    with pytest.raises(SignatureChanged) as caught:
        check(history, now, parent, rule=all_turns())
    assert caught.value.without == ()
    assert "without" not in str(caught.value)


def test_starting_a_turn_asks_with_the_rule_and_what_is_accepted():
    """`start` refuses by what the turn would be shown, and takes what is accepted."""
    history, parent = branch(OLD)
    sent = commands.Sent(turn="t9", parent=parent, inputs={})

    def start(rule: Any, **keys: Any) -> list[Any]:
        shown, claim = history.shown(parent, rule), commands.Claim("h:1:x")
        return commands.start(
            history, sent, program=THINKING, shown=shown, now=NOW, claim=claim, **keys
        )

    with pytest.raises(SignatureChanged):
        start(rule=all_turns())
    for records in (
        start(rule=last_turns(0)),
        start(rule=all_turns(), earlier_without=["reasoning"]),
    ):
        assert [record["kind"] for record in records] == ["program", "turn", "lease"]


def test_each_kind_continues_the_others():
    """A function, an async function and a generator of text may continue each other's turns."""

    def one(message: str) -> str:
        return message

    async def two(message: str) -> str:
        return message

    def three(message: str):
        yield message

    made = [Program(function).description for function in (one, two, three)]
    history, parent = branch(*made)
    for program in made:
        check(history, program, parent, rule=all_turns())


def test_where_every_program_fits_the_branch_is_not_walked(monkeypatch):
    """Deciding costs no walk along the branch in the usual case, however long it is."""
    history, parent = branch(*[OLD] * 50, NEW)
    shown = history.shown(parent, all_turns())
    monkeypatch.setattr(History, "upward", lambda *_: pytest.fail("walked"))
    signature.check(history, NEW, shown)


def test_under_a_window_only_its_turns_are_asked(monkeypatch):
    """Whatever stands before them on the branch."""
    history, parent = branch(THINKING, *[OLD] * 5)
    monkeypatch.setattr(History, "versions", lambda *_: pytest.fail("the branch was asked"))
    signature.check(history, OLD, history.shown(parent, last_turns(3)))


# -- the dumb twin

SHAPES = st.sampled_from([{}, TEXT, {"type": "integer"}])
FIELDS = st.lists(
    st.builds(
        field,
        st.sampled_from(["a", "b", "reasoning", "calls"]),
        st.sampled_from(["input", "output"]),
        SHAPES,
        st.sampled_from(["plain", "reasoning", "tools.calls"]),
    ),
    max_size=4,
    unique_by=lambda f: str(f["name"]),
)
NAMES = st.lists(st.sampled_from(["a", "b", "reasoning", "calls"]), unique=True)


@given(
    st.lists(
        st.tuples(FIELDS, st.sampled_from(["done", "done", "failed", "abandoned"])), max_size=5
    ),
    FIELDS,
    st.none() | st.integers(0, 4),
    NAMES,
    NAMES,
)
def test_the_decision_is_that_of_each_shown_turn(turns, fields, last, without, accepted):
    """A program is refused exactly when it differs from one of the turns that it would be shown."""
    programs = [described(f"v{i}", *listed) for i, (listed, _) in enumerate(turns)]
    history, parent = branch(*programs, states=[state for _, state in turns])
    now = described("now", *fields)
    rule = all_turns(without=without) if last is None else last_turns(last, without=without)

    shown = [listed for listed, state in turns if state == "done"]
    shown = shown if last is None else shown[max(0, len(shown) - last) :]
    refused = any(differs(listed, fields, without, accepted) for listed in shown)

    how: dict[str, Any] = {"rule": rule, "earlier_without": accepted}
    if not refused:
        check(history, now, parent if turns else None, **how)
        return
    with pytest.raises(SignatureChanged) as caught:
        check(history, now, parent, **how)
    more = caught.value.earlier_without
    helps = not any(differs(listed, fields, without, ALL) for listed in shown)
    if leave := caught.value.without:
        fits = all_turns(without=leave) if last is None else last_turns(last, without=leave)
        check(history, now, parent, rule=fits, earlier_without=accepted)
    assert bool(more) == helps
    if helps:
        check(history, now, parent, rule=rule, earlier_without=[*accepted, *more])


ALL = ["a", "b", "reasoning", "calls"]


def differs(was, now, without, accepted) -> bool:
    """Say whether one turn's fields refuse a program's: field by field, as the rules are told."""
    for name in ALL:
        if name in without:
            continue
        before = [f for f in was if f["name"] == name]
        after = [f for f in now if f["name"] == name]
        if not before and not after:
            continue
        if before and after:
            shapes = [before[0]["shape"], after[0]["shape"]]
            if before[0]["direction"] != after[0]["direction"]:
                return True
            if {} not in shapes and shapes[0] != shapes[1]:
                return True
            continue
        if before:
            return True
        aside = name in ("reasoning", "calls") or after[0]["purpose"] != "plain"
        if not (aside and after[0]["direction"] == "output" and name in accepted):
            return True
    return False


def test_very_many_programs_are_compared_as_few_are():
    """A branch of more programs than are kept at each turn decides the same."""
    many = [described(f"v{i}", MESSAGE, RESULT) for i in range(MOST_VERSIONS + 5)]
    history, parent = branch(OTHER, *many)
    check(history, NEW, parent, rule=last_turns(10))
    with pytest.raises(SignatureChanged):
        check(history, NEW, parent, rule=all_turns())


def test_a_conversation_that_shows_less_takes_a_changed_program():
    """Opened to show no earlier turn, or without a field, a conversation goes on with a new program."""
    store = ledger.MemoryStore()
    ledger.open("alex", lambda question: question, store=store)("one")

    def tutor(message):
        return message

    with pytest.raises(SignatureChanged):
        ledger.open("alex", tutor, store=store)("two")
    assert ledger.open("alex", tutor, store=store, context=ledger.last_turns(0))("two") == "two"
    assert ledger.open("alex", tutor, store=store, context=ledger.last_turns(1))("three") == "three"
