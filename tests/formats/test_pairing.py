"""Calls and results: which belongs to which, by a twin that looks at everything again each time."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.formats.converting import Losses, lines
from ledger.formats.pairing import MISSING, Ids, joined, paired, respelled

ids = st.sampled_from(["a", "b", "é"])


@st.composite
def transcripts(draw):
    """Any calls and results, each result telling its own place."""
    out = []
    for i, role in enumerate(
        draw(st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=9))
    ):
        if role == "user":
            parts = [{"type": "text", "content": str(i)}]
        elif role == "tool":
            parts = [
                {"type": "tool_call_response", "id": id, "response": f"{i}.{j}"}
                for j, id in enumerate(draw(st.lists(ids, min_size=1, max_size=2)))
            ]
        else:
            parts = [
                {"type": "tool_call", "id": id, "name": "f", "arguments": f"{i}.{j}"}
                for j, id in enumerate(draw(st.lists(ids, max_size=3)))
            ]
        out.append({"role": role, "parts": parts})
    return out


def twin(messages):
    """Which result answers which call: for each result, look back for the latest reply with its id."""
    flat = [(m["role"], part) for m in messages for part in m["parts"] or [None]]
    answered: dict[str, str] = {}
    for at, (role, part) in enumerate(flat):
        if role != "tool":
            continue
        k = at - 1
        while k >= 0 and not (
            flat[k][0] == "assistant" and flat[k][1] and flat[k][1]["id"] == part["id"]
        ):
            k -= 1
        while k > 0 and flat[k - 1][0] == "assistant":
            k -= 1
        while 0 <= k < at and flat[k][0] == "assistant":
            call = flat[k][1]
            if call and call["id"] == part["id"] and call["arguments"] not in answered:
                answered[call["arguments"]] = part["response"]
                break
            k += 1
    return answered


def sent(messages, rule):
    """Each call that is sent with the result that is sent under its id behind it."""
    losses = Losses("x")
    found: dict[str, str] = {}
    waiting: dict[str, str] = {}
    for line in paired(lines(messages), rule, losses):
        for placed in line.parts:
            part = placed.part
            if part["type"] == "tool_call":
                assert part["id"] not in waiting
                waiting[part["id"]] = part["arguments"]
            elif part["type"] == "tool_call_response":
                found[waiting.pop(part["id"])] = part["response"]
    assert not waiting
    return found, losses.found


@given(transcripts(), st.sampled_from([Ids(), Ids(plain=True, once=True), Ids(longest=40)]))
def test_each_call_has_the_result_that_is_its_own(messages, rule):
    """What is sent pairs calls and results as the twin does; a call without one has the stand-in."""
    found, losses = sent(messages, rule)
    known = twin(messages)
    calls = [p["arguments"] for m in messages for p in m["parts"] if p["type"] == "tool_call"]
    results = [p for m in messages for p in m["parts"] if p["type"] == "tool_call_response"]

    assert found == {call: known.get(call, MISSING) for call in calls}
    told = [loss.reason for loss in losses]
    assert sum("no result" in reason for reason in told) == len(calls) - len(known)
    assert sum("no call" in reason for reason in told) == len(results) - len(known)


def test_what_was_put_in_makes_way():
    """A stand-in that was recorded as a tool's word, before the real result, is not what is sent."""
    call = {"type": "tool_call", "id": "a", "name": "f", "arguments": "0"}
    results = [{"type": "tool_call_response", "id": "a", "response": r} for r in (MISSING, "real")]
    said = [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": results}]

    found, losses = sent(said, Ids())

    assert found == {"0": "real"}
    assert [str(loss) for loss in losses] == [
        "messages[1].parts[0]: the result has no call and is left out"
    ]


@given(transcripts())
def test_what_stands_right_is_left_as_it_is(messages):
    """Pairing what was paired changes nothing and tells nothing."""
    once = joined(paired(lines(messages), Ids(), Losses("x")))
    losses = Losses("x")

    assert joined(paired(once, Ids(), losses)) == once
    assert losses.found == []


@given(st.lists(st.text(max_size=50), unique=True), st.integers(1, 3))
def test_ids_stay_apart(given, occurrence):
    """Different ids are respelled differently, into what is asked, and the same way each time."""
    rule = Ids(longest=40, plain=True)
    made = [respelled(id, occurrence, rule) for id in given]

    assert len(set(made)) == len(given)
    assert all(
        len(id) <= 40 and id.replace("_", "").replace("-", "").isalnum()
        for id in made
        if id.strip("_-")
    )
    assert all(id.isascii() and id for id in made)
    assert made == [respelled(id, occurrence, rule) for id in given]
