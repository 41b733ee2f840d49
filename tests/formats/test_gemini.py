"""Tests of `ledger.formats.gemini`: sessions, logs of events, and checkpoints."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import gemini
from ledger.formats.base import Draft, Skipped
from ledger.records import messages, values
from tests.formats.given import Given
from tests.formats.test_codex import shape

Raw = dict[str, Any]
HEAD: Raw = {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z"}


def user(id: str, content: Any = None) -> Raw:
    """Return a message of the user."""
    return {
        "id": id,
        "timestamp": f"2026-01-01T00:00:{len(id):02}Z",
        "type": "user",
        "content": content or f"ask {id}",
    }


def model(id: str, content: Any = "", **keys: Any) -> Raw:
    """Return a message of the model."""
    tokens = {"input": 10, "output": 5, "cached": 4, "thoughts": 2, "tool": 1, "total": 18}
    value = {"id": id, "type": "gemini", "content": content, "model": "flash", "tokens": tokens}
    return {**value, "timestamp": "2026-01-01T00:01:00Z", **keys}


def call(id: str | None, output: Any = "fine") -> Raw:
    """Return a call with its result in it."""
    response = {"functionResponse": {"name": "ls", "response": {"output": output}}}
    return {**({"id": id} if id else {}), "name": "ls", "args": {"a": 1}, "result": [response]}


def log(*events: Raw) -> Given:
    """Return a log of events."""
    return Given(b"\n".join(json.dumps(one).encode() for one in (HEAD, *events)), "session-1.jsonl")


def one(file: Given) -> Draft:
    """Read a file that is one session."""
    (found,) = gemini.drafts([file])
    assert isinstance(found, Draft), found
    return found


def test_a_session_and_its_log_are_the_same():
    """A session in one object gives the turns that its log of events gives."""
    said = [
        user("u"),
        model("c", toolCalls=[call("1")]),
        model("a", "done"),
        {"id": "i", "type": "info"},
    ]
    whole = Given(json.dumps({**HEAD, "messages": said}).encode(), "session-1.json")

    draft = one(log(*said))

    assert draft.turns == one(whole).turns
    assert shape(draft) == [("ask u", "done", None)]
    assert draft.source_id == "s"
    assert draft.turns[0].usage == {
        "input_tokens": 22,
        "output_tokens": 14,
        "cache_read_tokens": 8,
        "reasoning_tokens": 4,
    }


@pytest.mark.parametrize("id", ["1", None])
def test_a_call_and_its_result_are_two(id):
    """A call that carries its result is a call and a result under one id, also where it has none."""
    thoughts = [{"subject": "Plan", "description": "Look."}]
    asked = model("c", "looking", toolCalls=[call(id)], thoughts=thoughts)

    said, given, _ = one(log(user("u"), asked, model("a", "x"))).turns[0].messages_out

    assert [part["type"] for part in said["parts"]] == ["reasoning", "text", "tool_call"]
    assert said["parts"][0]["content"] == "Plan\nLook."
    assert given["parts"][0]["id"] == said["parts"][2]["id"] != ""
    assert given["parts"][0]["response"] == "fine"


def test_an_id_that_comes_again_replaces():
    """A message is written again as it grows: the last counts, once."""
    draft = one(log(user("u"), model("a", "do"), model("a", "done"), user("v"), model("b", "bye")))

    assert shape(draft) == [("ask u", "done", None), ("ask v", "bye", "ask u")]
    assert sum((turn.usage or {})["output_tokens"] for turn in draft.turns) == 14


def test_what_was_rewound_is_a_branch():
    """After a rewind the talk goes on from before that message; what came after stays."""
    events = [user("u"), model("a", "one"), user("v"), model("b", "two"), {"$rewindTo": "v"}]

    draft = one(log(*events, user("w"), model("c", "three")))

    assert shape(draft) == [
        ("ask u", "one", None),
        ("ask v", "two", "ask u"),
        ("ask w", "three", "ask u"),
    ]
    assert draft.current == draft.turns[2].id


def test_messages_that_are_set_stand_for_all_before():
    """A list that is set is the talk from then on; what it lacks stays as a branch."""
    kept = [user("u"), model("a", "one")]
    events = [*kept, user("v"), model("b", "two"), {"$set": {"summary": "Title", "messages": kept}}]

    draft = one(log(*events, user("w"), model("c", "three")))

    assert [asked for asked, _, above in shape(draft) if above == "ask u"] == ["ask v", "ask w"]
    assert draft.title == "Title"


def test_a_checkpoint_has_neither_ids_nor_times():
    """A saved list of contents: its head is context, its calls and results are paired by name."""
    history = [
        {"role": "user", "parts": [{"text": "This is the Gemini CLI. Today is Monday."}]},
        {"role": "model", "parts": [{"text": "Got it."}]},
        {"role": "user", "parts": [{"text": "list"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"o": 1}}}]},
        {"role": "model", "parts": [{"thought": True, "text": "hm"}, {"text": "one"}]},
    ]
    for value in (history, {"history": history, "authType": "x"}):
        draft = one(Given(json.dumps(value).encode(), "checkpoint-x.json"))
        assert shape(draft) == [("list", "one", None)]
        turn = draft.turns[0]
        assert len(turn.source["context"]) == 2
        assert (
            turn.messages_out[0]["parts"][0]["id"] == turn.messages_out[1]["parts"][0]["id"] != ""
        )
    assert gemini.looks_like(history[0])


def test_a_cancelled_turn_is_closed():
    """A request that was cancelled ends its turn."""
    info = {"id": "i", "type": "info", "content": "Request cancelled."}

    first, second = one(log(user("u"), info, user("v"), model("a", "x"))).turns

    assert (first.state, first.source["cut"], second.parent) == ("done", "interrupted", first.id)


EVENTS = st.lists(
    st.one_of(
        st.builds(user, st.sampled_from("abc")),
        st.builds(model, st.sampled_from("def"), st.sampled_from(["", "x"])),
        st.builds(lambda id: {"$rewindTo": id}, st.sampled_from("abcdz")),
        st.just({"$set": {"messages": [user("a"), model("d", "x")]}}),
    ),
    max_size=10,
)
JUNK = st.none() | st.integers() | st.text(max_size=2) | st.just([5]) | st.just({"a": []})


@given(EVENTS, st.data())
@settings(deadline=None, max_examples=80)
def test_any_events_are_read(events, data):
    """Whatever events come and whatever stands in them, what is read may be stored."""
    for event in data.draw(st.lists(st.sampled_from(events), max_size=4)) if events else ():
        event[data.draw(st.sampled_from(sorted(event)))] = copy.deepcopy(data.draw(JUNK))

    (found,) = gemini.drafts([log(*events)])

    for turn in found.turns if isinstance(found, Draft) else ():
        given = messages.check([*turn.messages_in, *turn.messages_out])
        values.check([turn.inputs, turn.outputs, turn.source, turn.usage, given])
    assert isinstance(found, Draft | Skipped)


def test_a_session_grows_by_when_it_was_updated():
    """Within two minutes after its last message, or its last update, what it said last may be no answer."""
    said = [user("u"), model("a", "done")]
    updated = {"$set": {"lastUpdated": "2026-01-01T01:00:00Z"}}

    for events, now, growing in (
        (said, "2026-01-01T00:02:59Z", True),
        (said, "2026-01-01T00:03:00Z", False),
        ([*said, updated], "2026-01-01T01:01:59Z", True),
        ([*said, updated], "2026-01-01T01:02:00Z", False),
    ):
        draft = one(log(*events).read_at(now))
        state = "abandoned" if growing else "done"
        assert (draft.growing, [turn.state for turn in draft.turns]) == (growing, [state])
