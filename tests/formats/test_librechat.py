"""Tests of `ledger.formats.librechat` and `ledger.formats.chatbot_ui`."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import chatbot_ui, librechat
from ledger.formats.base import Draft, Skipped
from tests.formats.finds import answer, draft, drafts, found, part, shape, tree, types
from tests.formats.given import Given

Raw = dict[str, Any]
ROOT = "00000000-0000-0000-0000-000000000000"


def message(
    id: str, parent: str | None = None, *children: Raw, at: int | None = None, **keys: Any
) -> Raw:
    """Make a message; who says it shows in the first letter of its id."""
    said: Raw = {
        "messageId": id,
        "parentMessageId": parent or ROOT,
        "isCreatedByUser": id[0] == "u",
    }
    said |= {"text": f"say {id}", "sender": "GPT" if id[0] == "a" else "User", **keys}
    if at is not None:
        said["createdAt"] = f"2026-03-01T10:00:{at:02}.000Z"
    return {**said, "children": list(children)} if children else said


def talk(*messages: Any, **keys: Any) -> Raw:
    return {"conversationId": "talk", "title": "Ponds", "messages": list(messages), **keys}


def nested() -> Raw:
    """A retried answer and an edited prompt, nested in what they reply to."""
    retried = [message("a2", "u2"), message("a3", "u2", message("u4", "a3", message("a5", "u4")))]
    below = [message("u2", "a1", *retried), message("u3", "a1", message("a4", "u3"))]
    return talk(message("u1", None, message("a1", "u1", *below)))


def flat(*, timed: bool = True) -> Raw:
    said = [("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("a3", "u2")]
    said += [("u4", "a3"), ("a5", "u4"), ("u3", "a1"), ("a4", "u3")]
    return talk(*(message(*one, at=i if timed else None) for i, one in enumerate(said)))


def test_replies_nested_in_each_other_are_a_tree():
    """Siblings are branches, at both levels."""
    assert {
        ("say u1", "say a1", None),
        ("say u2", "say a2", "say a1"),
        ("say u2", "say a3", "say a1"),
        ("say u4", "say a5", "say a3"),
        ("say u3", "say a4", "say a1"),
    } == set(shape(draft(librechat, nested())))


def test_nested_or_in_a_list_is_the_same():
    """The same messages give the same turns, whichever way they were exported."""
    assert (
        tree(draft(librechat, nested())).keys() == tree(draft(librechat, flat(timed=False))).keys()
    )


@settings(max_examples=50)
@given(st.randoms(use_true_random=False))
def test_the_order_of_a_list_says_nothing(chance: random.Random):
    """Shuffled messages give the same turns, and the newest is the head."""
    mixed = flat()
    chance.shuffle(mixed["messages"])

    assert tree(draft(librechat, flat())) == tree(draft(librechat, mixed))
    assert "say a4" == answer(tree(one := draft(librechat, mixed))[str(one.current)])


def test_a_reply_without_a_parent_hangs_on_the_one_around_it():
    """Nesting counts where a message names no parent, or one that is not there."""
    inner = message("a1", "gone")
    del inner["isCreatedByUser"]

    assert [("say u1", "say a1", None)] == shape(draft(librechat, talk(message("u1", None, inner))))


def test_a_long_conversation_nests_deeper_than_any_stack():
    """A thousand replies in each other are read, all of them."""
    text = "%s"
    for n in range(1000):
        role, parent = ("u", f"a{n - 1}") if n % 2 == 0 else ("a", f"u{n - 1}")
        inner = '{"messageId": "%s%d", "parentMessageId": "%s", "isCreatedByUser": %s, "text": "x"'
        said = inner % (role, n, parent if n else ROOT, "true" if role == "u" else "false")
        text = text % (said + ', "children": [%s]}')
    value = '{"conversationId": "deep", "messages": [' + text % "" + "]}"

    (one,) = librechat.drafts([Given(value.encode())])

    assert isinstance(one, Draft)
    assert 500 == len(one.turns)


def test_the_system_prompt_stands_above_all():
    """`promptPrefix` is context of the first turn; who is called what says nothing."""
    one = draft(librechat, {**nested(), "options": {"promptPrefix": "Be brief."}})

    assert ["system", "text"] == types(one.turns[0])[0]
    assert "GPT" == one.turns[0].messages_out[0]["only"]["librechat"]["sender"]


def test_an_answer_is_what_its_content_lists():
    """Thoughts, calls with their results, texts and what is not known, in order; `text` is not said twice."""
    content = [
        {"type": "think", "think": "hm"},
        {
            "type": "tool_call",
            "tool_call": {"id": "c", "name": "add", "args": '{"a": 1}', "output": "2"},
        },
        {"type": "text", "text": {"value": "two"}},
        {"type": "image_file", "image_file": {"file_id": "f"}},
        {"type": "agent_update", "agent_update": {"index": 1}},
    ]
    said = message(
        "a1", "u1", content=content, tokenCount=3, promptTokens=9, model="m", finish_reason="length"
    )
    (turn,) = draft(librechat, talk(message("u1"), said)).turns

    assert [
        ["assistant", "reasoning", "tool_call"],
        ["tool", "tool_call_response"],
        ["assistant", "text", "file", "librechat:agent_update"],
    ] == types(turn)[1:]
    assert ("c", {"a": 1}) == tuple(part(turn, "tool_call")[key] for key in ("id", "arguments"))
    assert ("two", "m", "length") == (answer(turn), turn.model, turn.source["cut"])
    assert {"input_tokens": 9, "output_tokens": 3} == turn.usage


@pytest.mark.parametrize(
    ("keys", "state", "cut"),
    [
        ({"error": True, "text": "no key"}, "abandoned", "error"),
        ({"unfinished": True}, "done", "partial"),
        ({"text": ""}, "abandoned", "no_answer"),
    ],
)
def test_an_answer_that_failed_says_so(keys, state, cut):
    """An error is kept, and is no answer; one that was stopped is."""
    (turn,) = draft(librechat, talk(message("u1"), message("a1", "u1", **keys))).turns

    assert (state, cut) == (turn.state, turn.source["cut"])


def test_files_are_parts():
    """What was attached is named, on either side."""
    said = message("u1", files=[{"file_id": "f1", "type": "image/png"}, 7])
    one = draft(librechat, talk(said, message("a1", "u1", attachments=[{"filename": "b"}])))

    assert [("image", "f1"), ("document", "b")] == [
        (p["modality"], p["file_id"])
        for m in one.turns[0].messages_in + one.turns[0].messages_out
        for p in m["parts"]
        if p["type"] == "file"
    ]


def test_other_values_cost_themselves_alone():
    """Empty conversations and other objects are skipped, and messages that are no object."""
    items = found(librechat, talk(), {"conversationId": "x"}, talk(7, message("u1")))

    assert [True, True, False] == [isinstance(item, Skipped) for item in items]
    assert not any(librechat.looks_like(one) for one in (None, {}, {"messages": []}))


# -- chatbot-ui ------------------------------------------------------------------------------------


def chats(*chats: Any) -> Raw:
    return {"version": 4, "history": list(chats), "folders": [], "prompts": []}


def said(*texts: str) -> list[Raw]:
    return [
        {"role": "assistant" if i % 2 else "user", "type": "text", "content": text}
        for i, text in enumerate(texts)
    ]


def test_an_export_of_chats_gives_each():
    """Each chat is a conversation with its prompt and model; a broken one costs itself alone."""
    one: Raw = {
        "id": "c1",
        "name": "One",
        "messages": said("a", "b", "c", "d"),
        "prompt": "Be brief.",
    }
    one["model"] = {"id": "m"}
    other = {"name": "Two", "messages": said("a", "b")}
    first, broken, second, empty = found(
        chatbot_ui, chats(one, {"id": "x"}, other, {**other, "messages": []})
    )

    assert not isinstance(first, Skipped)
    assert [("a", "b", None), ("c", "d", "b")] == shape(first)
    assert ("c1", "One", "m") == (first.source_id, first.title, first.turns[0].model)
    assert ["system", "text"] == types(first.turns[0])[0]
    assert first.current == first.turns[1].id
    assert isinstance(broken, Skipped)
    assert isinstance(empty, Skipped)
    assert not isinstance(second, Skipped)
    assert second.source_id.startswith("of-")


def test_a_chat_that_went_on_or_was_edited_keeps_what_was_there():
    """A longer export adds turns; an edited message is a branch."""
    before, edited, longer = (
        drafts(chatbot_ui, chats({"id": "c", "name": "x", "messages": said(*texts)}))[0]
        for texts in ("abcd", "abed", "abcdef")
    )

    assert before.turns == longer.turns[:2]
    assert before.turns[0] == edited.turns[0]
    assert before.turns[1].id != edited.turns[1].id
