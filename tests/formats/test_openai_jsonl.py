"""Tests of `ledger.formats.openai_jsonl`: lines of chat messages, and how lines belong together."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import openai_jsonl
from ledger.formats.base import Draft, Skipped
from tests.formats.finds import answer, draft, drafts, found, part, shape, types
from tests.formats.given import Given

Raw = dict[str, Any]


def line(*said: str | Raw, **keys: Any) -> Raw:
    """Make a line; texts are the user's and the assistant's in turn, `s:` begins the system's."""
    messages: list[Raw] = []
    role = "user"
    for one in said:
        if isinstance(one, dict):
            messages.append(one)
        elif one.startswith("s:"):
            messages.append({"role": "system", "content": one[2:]})
        else:
            messages.append({"role": role, "content": one})
            role = "assistant" if role == "user" else "user"
    return {"messages": messages, **keys}


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "2"}


def test_a_line_is_a_conversation():
    """Context, prompt, tool round and answer are one turn; the next prompt continues it."""
    one = draft(openai_jsonl, line("s:Be brief.", "1+1?", CALL, RESULT, "2.", "Sure?", "Yes."))

    assert [("1+1?", "2.", None), ("Sure?", "Yes.", "2.")] == shape(one)
    assert [["system", "text"], ["user", "text"], ["assistant", "tool_call"]] == types(
        one.turns[0]
    )[:3]
    assert ("c1", {"a": 1}) == tuple(
        part(one.turns[0], "tool_call")[key] for key in ("id", "arguments")
    )
    assert one.current == one.turns[-1].id


def test_a_line_without_a_user_is_an_answer_to_nothing():
    """An assistant that speaks first is a turn without input."""
    assert [("", "Hello!", None)] == shape(
        draft(openai_jsonl, line("s:Hi", {"role": "assistant", "content": "Hello!"}))
    )


def test_lines_that_begin_alike_are_branches_of_one_conversation():
    """Same context and first prompt: one conversation; what they share is there once."""
    one, other, apart = drafts(
        openai_jsonl, line("a", "b", "c", "d"), line("a", "b", "e", "f"), line("g", "b")
    )

    assert one.source_id == other.source_id != apart.source_id
    assert one.turns[0] == other.turns[0]
    assert one.turns[1].id != other.turns[1].id
    assert one.turns[1].parent == other.turns[1].parent


def log() -> list[Raw]:
    """A request log: each line is all that was sent, one with the answer at its end."""
    whole = [*line("a")["messages"], CALL, RESULT, {"role": "assistant", "content": "two"}]
    more = [*whole, {"role": "user", "content": "b"}]
    return [{"messages": whole[:n]} for n in (1, 2, 3, 4)] + [{"messages": more}]


@settings(max_examples=50)
@given(st.randoms(use_true_random=False))
def test_a_log_of_growing_lists_gives_each_turn_once(chance: random.Random):
    """A line that stops before an answer is part of the line that goes on, in whatever order."""
    lines = log()
    chance.shuffle(lines)
    turns = {turn.id: turn for one in drafts(openai_jsonl, *lines) for turn in one.turns}

    assert [("a", "two", "done"), ("b", None, "abandoned")] == sorted(
        (turn.inputs["message"], answer(turn), turn.state) for turn in turns.values()
    )


def test_a_preference_is_one_prompt_with_two_answers():
    """The preferred answer is the head; both are siblings that say which they are."""
    pair = {
        "input": {"messages": line("s:x", "a", "b", "Which?")["messages"], "tools": []},
        "preferred_output": [{"role": "assistant", "content": "this"}],
        "non_preferred_output": [{"role": "assistant", "content": "that"}],
    }
    one = draft(openai_jsonl, pair)

    assert [("a", "b", None), ("Which?", "this", "b"), ("Which?", "that", "b")] == shape(one)
    assert [None, True, False] == [turn.source.get("preferred") for turn in one.turns]
    assert one.current == one.turns[1].id


def test_old_function_calls_are_calls_with_a_result():
    """A `function_call` and the `function` that answers it have one id, and are one round."""
    old = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "add", "arguments": "{}"},
    }
    given = line("a", old, {"role": "function", "name": "add", "content": "2"}, "two")
    (turn,) = draft(openai_jsonl, given).turns

    assert part(turn, "tool_call")["id"] == part(turn, "tool_call_response")["id"]
    assert "two" == answer(turn)


def test_a_message_that_does_not_read_is_kept_whole():
    """A broken call, a nameless role and a block of a new type cost nothing else."""
    broken = {"role": "assistant", "content": "so", "tool_calls": [{"id": 7}]}
    block = {
        "role": "user",
        "content": [{"type": "hologram", "x": 1}, {"type": "text", "text": "hi"}],
    }
    one = draft(openai_jsonl, {"messages": [block, broken, {"role": "assistant", "content": "ok"}]})

    assert [["user", "openai:hologram", "text"], ["assistant", "openai:message"]] == types(
        one.turns[0]
    )[:2]
    assert ("hi", "ok") == (one.turns[0].inputs["message"], answer(one.turns[0]))
    assert {"part openai:hologram": 1, "part openai:message": 1} == one.notes.unknown


def test_text_that_is_not_exact_is_replaced_and_counted():
    """A lone surrogate becomes U+FFFD; the line's own bytes are kept."""
    one = draft(openai_jsonl, line("a\ud800", "b"))

    assert "a\ufffd" == one.turns[0].inputs["message"]
    assert {"lone surrogates replaced by U+FFFD": 1} == one.notes.counts
    assert b"\\ud800" in one.raw[0]


def test_a_line_without_messages_costs_itself_alone():
    """Other lines, and empty ones, are skipped with a reason."""
    items = found(openai_jsonl, line("a", "b"), {"messages": []}, {"x": 1}, line("c", "d"))

    assert [False, True, True, False] == [isinstance(item, Skipped) for item in items]


@pytest.mark.parametrize(
    "sample",
    [
        None,
        {"messages": []},
        {"messages": [{"content": "x"}]},
        {"messages": [{"role": "user"}], "history": {}},
        {"role": "user", "content": "x"},
    ],
)
def test_other_values_do_not_look_like_it(sample):
    """Only an object with a list of messages that have roles is of this format."""
    assert not openai_jsonl.looks_like(sample)


def test_a_message_without_a_bottom_costs_its_line_alone():
    """What is nested deeper than can be named is skipped; the other lines are read."""
    deep = b'{"messages": [{"role": "user", "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"
    data = b"\n".join(
        [json.dumps(line("a", "b")).encode(), deep, json.dumps(line("c", "d")).encode()]
    )
    one, skipped, other = openai_jsonl.drafts([Given(data)])

    assert isinstance(skipped, Skipped)
    assert isinstance(one, Draft)
    assert isinstance(other, Draft)


def test_the_system_before_an_answer_nobody_asked_for_is_no_part_of_it():
    """It stands on the side of the user, as it does before a question."""
    said = [{"role": "system", "content": "Be kind."}, {"role": "assistant", "content": "Hello!"}]
    (turn,) = draft(openai_jsonl, {"messages": said}).turns

    assert turn.outputs == {"result": "Hello!"}
    assert [message["role"] for message in turn.messages_in] == ["system"]
    assert [message["role"] for message in turn.messages_out] == ["assistant"]
