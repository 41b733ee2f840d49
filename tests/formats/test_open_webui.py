"""Tests of `ledger.formats.open_webui`: trees, models side by side, and nodes that are broken."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import open_webui
from ledger.formats.base import Skipped
from tests.formats.finds import answer, draft, found, part, shape, tree, types

Raw = dict[str, Any]


def message(id: str, parent: str | None = None, *, at: int = 0, **keys: Any) -> Raw:
    """Make a message; who says it shows in the first letter of its id."""
    role = {"u": "user", "a": "assistant", "s": "system"}[id[0]]
    said = {"id": id, "role": role, "content": f"say {id}", "timestamp": 1_750_000_000 + at}
    return {**said, "parentId": parent, "childrenIds": [], **keys}


def chat(*messages: Raw, current: Any = None, **keys: Any) -> Raw:
    history = {one["id"]: dict(one) for one in messages}
    for one in messages:
        if one["parentId"] in history:
            history[one["parentId"]]["childrenIds"] = [
                *history[one["parentId"]]["childrenIds"],
                one["id"],
            ]
    inner = {"title": "Ducks", "history": {"messages": history, "currentId": current}, **keys}
    return {"id": "chat-1", "chat": inner, "title": "Ducks", "created_at": 1}


def side_by_side() -> Raw:
    """One question to two models, and a second one below the second's answer."""
    return chat(
        message("u1"),
        message("a2", "u1", at=1, model="two", modelIdx=1),
        message("a1", "u1", at=1, model="one", modelIdx=0),
        message("u2", "a2", at=2),
        message("a3", "u2", at=3, model="two", usage={"prompt_tokens": 7, "completion_tokens": 2}),
        current="a3",
    )


def test_models_asked_at_once_are_sibling_turns():
    """Each answer is a turn with the same input; the chat goes on below one of them."""
    one = draft(open_webui, side_by_side())

    assert {
        ("say u1", "say a1", None),
        ("say u1", "say a2", None),
        ("say u2", "say a3", "say a2"),
    } == set(shape(one))
    assert {"one", "two"} == {turn.model for turn in one.turns if turn.parent is None}
    assert {"input_tokens": 7, "output_tokens": 2} == tree(one)[str(one.current)].usage


def test_without_lists_of_children_the_page_order_is_that_of_the_models():
    """`modelIdx` says which answer stands first."""
    value = side_by_side()
    for one in value["chat"]["history"]["messages"].values():
        del one["childrenIds"]

    assert ["say a1", "say a2"] == [
        answer(t) for t in draft(open_webui, value).turns if not t.parent
    ]


@settings(max_examples=50)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_map_says_nothing(chance: random.Random):
    """Shuffled messages give the same turns and the same head."""
    whole, mixed = side_by_side(), side_by_side()
    items = list(mixed["chat"]["history"]["messages"].items())
    chance.shuffle(items)
    mixed["chat"]["history"]["messages"] = dict(items)

    assert draft(open_webui, whole).turns == draft(open_webui, mixed).turns
    assert draft(open_webui, whole).current == draft(open_webui, mixed).current


def test_a_chat_may_come_without_what_is_around_it():
    """The inner object of one chat reads too; its id may be empty, and the ids of messages counted."""
    inner = {**side_by_side()["chat"], "id": ""}

    one = draft(open_webui, inner)

    assert ("of-u1-1750000000000", "Ducks", 3) == (one.source_id, one.title, len(one.turns))


def test_broken_nodes_lose_nothing_else():
    """Nodes without role or parent, unknown children, circles and a wrong current are mended."""
    value = chat(
        message("u1"), message("a1", "u1"), message("u2", "a1"), message("a2", "u2"), current="gone"
    )
    history = value["chat"]["history"]["messages"]
    history["u1"]["childrenIds"] = ["nowhere", 7]
    history["empty"] = {"id": "empty"}
    history["no object"] = "an error"
    history["nameless"] = {"role": "robot", "content": "beep", "parentId": "a1"}
    del history["a1"]["childrenIds"]
    one = draft(open_webui, value)

    assert [("say u1", "say a1", None), ("say u2", "say a2", "say a1")] == shape(one)
    assert one.current is None
    assert {"role robot": 1} == one.notes.unknown
    assert {
        "messages without a role or content walked through": 1,
        "messages that are no object left out": 1,
        "current messages that are not there": 1,
    } == one.notes.counts


def test_the_system_prompt_stands_above_all():
    """A chat's own system prompt is context of its first turns."""
    one = draft(
        open_webui, chat(message("u1"), message("a1", "u1"), params={"system": "Be brief."})
    )

    assert ["system", "text"] == types(one.turns[0])[0]


def test_what_the_model_did_is_read_from_output():
    """Items of `output` count; the copy of them in `content` is not said twice."""
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c", "output": "2"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "two"}],
        },
    ]
    said = message("a1", "u1", output=output, content="<details>...</details>two")
    (turn,) = draft(open_webui, chat(message("u1"), said)).turns

    assert [
        ["assistant", "reasoning", "tool_call"],
        ["tool", "tool_call_response"],
        ["assistant", "text"],
    ] == types(turn)[1:]
    assert "two" == answer(turn)


def test_thoughts_and_tools_are_read_back_out_of_a_text():
    """Details elements become reasoning and tool rounds; the words around them are the answer."""
    arguments = json.dumps(json.dumps({"a": 1})).replace('"', "&quot;")
    content = (
        '<details type="reasoning" done="true" duration="2">\n<summary>Thought</summary>\n'
        "&gt; first\n> second\n</details>\nLet me see.\n"
        f'<details type="tool_calls" done="true" id="c" name="add" arguments="{arguments}"'
        ' result="&quot;2&quot;" files="">\n<summary>Done</summary>\n</details>\n'
        '<details type="code_interpreter" done="true" output="">\n<summary>Ran</summary>\nx = 1\n</details>\n'
        "<details><summary>Mine</summary>stays</details> Two."
    )
    (turn,) = draft(open_webui, chat(message("u1"), message("a1", "u1", content=content))).turns

    assert [
        ["assistant", "reasoning", "text", "tool_call"],
        ["tool", "tool_call_response"],
        ["assistant", "tool_call"],
        ["tool", "tool_call_response"],
        ["assistant", "text"],
    ] == types(turn)[1:]
    assert "first\nsecond" == part(turn, "reasoning")["content"]
    assert ("c", {"a": 1}) == tuple(part(turn, "tool_call")[key] for key in ("id", "arguments"))
    assert "2" == part(turn, "tool_call_response")["response"]
    assert "Let me see.\n\n<details><summary>Mine</summary>stays</details> Two." == answer(turn)


@pytest.mark.parametrize(
    ("keys", "state", "cut"),
    [
        ({"error": {"content": "no"}, "content": ""}, "abandoned", "error"),
        ({"error": True, "content": "half"}, "done", "error"),
        ({"done": False}, "done", "in_progress"),
    ],
)
def test_an_answer_that_failed_says_so(keys, state, cut):
    """An error is kept as a part; a failed answer without a word is none."""
    (turn,) = draft(open_webui, chat(message("u1"), message("a1", "u1", **keys))).turns

    assert (state, cut) == (turn.state, turn.source["cut"])
    assert ("error" not in keys) == ("open-webui:error" not in types(turn)[-1])


def test_files_of_a_message_are_parts():
    """An image in the chat is kept as its bytes, another file as what names it."""
    image = {
        "type": "image",
        "url": "data:image/png;base64," + base64.b64encode(b"pixels").decode(),
    }
    files = [image, {"type": "file", "id": "f1", "name": "a.pdf", "file": {"data": "x"}}, 7]
    one = draft(open_webui, chat(message("u1", files=files), message("a1", "u1")))

    assert ["user", "text", "blob", "file"] == types(one.turns[0])[0]
    assert [b"pixels"] == list(one.blobs.values())


def test_other_values_cost_themselves_alone():
    """What has no history is skipped; it does not look like a chat either."""
    items = found(
        open_webui, {"chat": {"history": []}}, side_by_side(), {"history": {"messages": {}}}
    )

    assert [True, False, True] == [isinstance(item, Skipped) for item in items]
    assert not any(open_webui.looks_like(one) for one in (None, [], {"history": {"messages": []}}))
