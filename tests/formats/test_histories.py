"""Tests of saved histories: `ledger.formats.langchain` and `ledger.formats.pydantic_ai_json`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.formats import langchain, pydantic_ai_json
from ledger.formats.base import Draft, Skipped
from tests.formats.finds import answer, checked, draft, drafts, found, part, shape, types
from tests.formats.given import Given

Raw = dict[str, Any]


def read(format: Any, data: bytes) -> list[Draft | Skipped]:
    return list(checked(format.drafts([Given(data)])))


# -- LangChain -------------------------------------------------------------------------------------

FLAT: list[Raw] = [
    {"type": "system", "content": "Be brief.", "id": "s"},
    {"type": "human", "content": "1+1?", "id": "h", "name": "alex"},
    {
        "type": "ai",
        "content": [{"type": "tool_use", "id": "c"}, {"type": "text", "text": "Let me see."}],
        "tool_calls": [{"name": "add", "args": {"a": 1}, "id": "c", "type": "tool_call"}],
        "usage_metadata": {
            "input_tokens": 9,
            "output_tokens": 2,
            "input_token_details": {"cache_read": 4},
        },
        "response_metadata": {"model_name": "m", "finish_reason": "tool_calls"},
        "id": "a",
    },
    {
        "type": "tool",
        "content": "2",
        "tool_call_id": "c",
        "name": "add",
        "status": "success",
        "id": None,
    },
    {"type": "ai", "content": "Two.", "id": None},
    {"type": "human", "content": "Sure?", "id": None},
    {
        "type": "AIMessageChunk",
        "content": [{"type": "reasoning", "reasoning": "hm"}, "Yes."],
        "response_metadata": {"stop_reason": "max_tokens"},
    },
]
_WORDS = {
    "human": "HumanMessage",
    "ai": "AIMessage",
    "system": "SystemMessage",
    "tool": "ToolMessage",
}


def shaped(one: Raw, way: str) -> Raw:
    if way == "flat":
        return one
    if way == "data":
        return {"type": one["type"], "data": one}
    path = ["langchain", "schema", "messages", _WORDS.get(one["type"], one["type"])]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": one}


@pytest.mark.parametrize("way", ["flat", "data", "constructor"])
@pytest.mark.parametrize("lines", [False, True])
def test_every_shape_is_the_same_conversation(way, lines):
    """The same messages give the same turns in each of three shapes, as a list or one a line."""
    listed = [shaped(one, way) for one in FLAT]
    one = draft(langchain, *listed) if lines else draft(langchain, listed)

    assert draft(langchain, FLAT).turns == one.turns
    assert [
        ("1+1?", "Let me see.\n\nTwo.", None),
        ("Sure?", "Yes.", "Let me see.\n\nTwo."),
    ] == shape(one)
    assert one.current == one.turns[1].id


def test_a_turn_of_langchain_has_its_round_model_and_counts():
    """A call and its result have one id; blocks that repeat a call are left out."""
    first, second = draft(langchain, FLAT).turns

    assert [
        ["system", "text"],
        ["user", "text"],
        ["assistant", "text", "tool_call"],
        ["tool", "tool_call_response"],
        ["assistant", "text"],
    ] == types(first)
    assert part(first, "tool_call")["id"] == part(first, "tool_call_response")["id"] == "c"
    assert ("m", {"input_tokens": 9, "output_tokens": 2, "cache_read_tokens": 4}) == (
        first.model,
        first.usage,
    )
    assert first.source["records"][0].startswith("h.")
    assert ["assistant", "reasoning", "text"] == types(second)[1]
    assert "length" == second.source["cut"]


def test_a_history_that_went_elsewhere_is_a_branch():
    """Two files that begin alike share what they have in common, and no more."""
    other = [*FLAT[:-1], {"type": "ai", "content": "No."}]
    one, two = draft(langchain, FLAT), draft(langchain, other)

    assert (one.source_id, one.turns[0]) == (two.source_id, two.turns[0])
    assert one.turns[1].id != two.turns[1].id


def test_what_langchain_does_not_tell_is_kept():
    """Chat roles, removals, unknown blocks and entries that are no message lose nothing else."""
    listed = [
        {"type": "chat", "role": "user", "content": "hi"},
        {"type": "remove", "id": "x"},
        {
            "type": "ai",
            "content": [{"type": "hologram"}, "ok"],
            "invalid_tool_calls": [{"error": "x"}],
        },
        {"type": "function", "content": "2", "name": "old"},
    ]
    (one,) = (item for item in found(langchain, listed) if isinstance(item, Draft))

    assert [
        ["user", "text"],
        ["assistant", "langchain:hologram", "text"],
        ["tool", "tool_call_response"],
    ] == types(one.turns[0])
    assert {"part langchain:hologram": 1} == one.notes.unknown
    assert [{"error": "x"}] == one.turns[0].messages_out[0]["only"]["langchain"][
        "invalid_tool_calls"
    ]


def test_an_entry_that_does_not_read_costs_itself_alone():
    """Broken JSON and other objects in a list are skipped; the conversation is read."""
    data = (
        b"["
        + json.dumps(FLAT[1]).encode()
        + b", {oops}, {}, "
        + json.dumps(FLAT[4]).encode()
        + b"]"
    )
    *skipped, one = read(langchain, data)

    assert 2 == len(skipped)
    assert isinstance(one, Draft)
    assert [("1+1?", "Two.", None)] == shape(one)


def test_a_line_may_be_a_list():
    """A list of lists is one conversation each."""
    assert 2 == len(drafts(langchain, [[FLAT[1], FLAT[4]], [FLAT[5], FLAT[4]]]))


def test_media_of_messages_are_parts():
    """An address, data with a type, and data in an address."""
    blocks = [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image", "source_type": "base64", "data": "cGl4", "mime_type": "image/png"},
        {"type": "file", "url": "https://example.com/a.pdf"},
    ]
    one = draft(langchain, [{"type": "human", "content": blocks}, FLAT[4]])

    assert ["user", "uri", "blob", "uri"] == types(one.turns[0])[0]
    assert [b"pix"] == list(one.blobs.values())


@pytest.mark.parametrize(
    "sample",
    [
        None,
        [],
        {},
        {"type": "human"},
        {"type": "text", "content": "x"},
        {"role": "user", "content": "x"},
    ],
)
def test_other_values_do_not_look_like_langchain(sample):
    """A message has a type of theirs and content."""
    assert not langchain.looks_like(sample)


# -- pydantic-ai -----------------------------------------------------------------------------------


def request(*parts: Raw, **keys: Any) -> Raw:
    return {"kind": "request", "parts": list(parts), "instructions": "Be brief.", **keys}


def response(*parts: Raw, **keys: Any) -> Raw:
    usage = {"input_tokens": 5, "output_tokens": 1, "cache_read_tokens": 0}
    return {"kind": "response", "parts": list(parts), "usage": usage, "model_name": "m", **keys}


def asked(text: Any) -> Raw:
    return {"part_kind": "user-prompt", "content": text, "timestamp": "2026-03-01T10:00:00Z"}


def said(text: str) -> Raw:
    return {"part_kind": "text", "content": text}


CALL = {"part_kind": "tool-call", "tool_name": "add", "args": '{"a": 1}', "tool_call_id": "c"}
RETURN = {"part_kind": "tool-return", "tool_name": "add", "content": 2, "tool_call_id": "c"}
RETRY = {"part_kind": "retry-prompt", "content": "Try again.", "tool_call_id": "c"}


def test_a_run_is_a_turn_with_its_tool_rounds():
    """Results stand in requests, and a new prompt beside them begins the next turn."""
    history = [
        request(
            {"part_kind": "system-prompt", "content": "Hi."}, asked("1+1?"), conversation_id="conv"
        ),
        response({"part_kind": "thinking", "content": "hm"}, CALL),
        request(RETURN, RETRY),
        response(said("Two."), finish_reason="length"),
        request(asked(["Sure?", {"kind": "binary", "data": "cGl4", "media_type": "image/png"}])),
        response(said("Yes."), usage={"request_tokens": 7, "response_tokens": 3}),
    ]
    one = draft(pydantic_ai_json, history)
    first, second = one.turns

    assert [("1+1?", "Two.", None), ("Sure?", "Yes.", "Two.")] == shape(one)
    assert ("conv", second.id) == (one.source_id, one.current)
    assert [
        ["system", "text"],
        ["user", "text"],
        ["assistant", "reasoning", "tool_call"],
        ["tool", "tool_call_response"],
        ["user", "pydantic-ai:retry-prompt"],
        ["assistant", "text"],
    ] == types(first)
    assert ({"input_tokens": 10, "output_tokens": 2}, "m", "length") == (
        first.usage,
        first.model,
        first.source["cut"],
    )
    assert {"input_tokens": 7, "output_tokens": 3} == second.usage
    assert [b"pix"] == list(one.blobs.values())
    assert "2026-03-01T10:00:00.000000Z" == second.source["created"]


def test_output_that_is_a_call_is_the_answer():
    """A run whose output was given as a tool's arguments is answered by them."""
    output = {
        "part_kind": "tool-call",
        "tool_name": "final_result",
        "args": {"n": 2},
        "tool_call_id": "f",
    }
    returned = {**RETURN, "tool_name": "final_result", "tool_call_id": "f"}
    (turn,) = draft(
        pydantic_ai_json, [request(asked("1+1?")), response(output), request(returned)]
    ).turns

    assert ("done", '{"n": 2}') == (turn.state, answer(turn))


def test_what_a_newer_version_tells_beside_changes_no_name():
    """The same history, saved again with more keys, is the same conversation."""
    old = [request(asked("a")), response(said("b"))]
    new = [{**one, "run_id": "r", "state": "complete"} for one in old]

    assert [turn.id for turn in draft(pydantic_ai_json, old).turns] == [
        turn.id for turn in draft(pydantic_ai_json, new).turns
    ]


def test_a_message_of_pydantic_ai_that_does_not_read_is_kept_whole():
    """A part that is no object, and requests without parts, cost nothing else."""
    history = [request(asked("a")), request(), response(7), response(said("b"))]  # type: ignore[arg-type]
    one = draft(pydantic_ai_json, history)

    assert [("a", "b", None)] == shape(one)
    assert {"part pydantic-ai:request", "part pydantic-ai:message"} == one.notes.unknown.keys()


@pytest.mark.parametrize("sample", [None, [], {}, {"kind": "request"}, {"kind": "x", "parts": []}])
def test_other_values_do_not_look_like_pydantic_ai(sample):
    """A message is a request or a response with parts."""
    assert not pydantic_ai_json.looks_like(sample)
