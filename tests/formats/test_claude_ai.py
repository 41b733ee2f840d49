"""Tests of `ledger.formats.claude_ai`: the quirks of its exports, on synthetic conversations."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import claude_ai
from ledger.formats.base import Skipped
from tests.formats.finds import answer, draft, found, part, shape, tree, types

Raw = dict[str, Any]
ROOT = "00000000-0000-4000-8000-000000000000"


def message(uuid: str, parent: str | None = None, *content: Any, at: int = 0, **keys: Any) -> Raw:
    """Make a message; who says it shows in the first letter of its id. `parent` "": it names none."""
    said = {
        "uuid": uuid,
        "sender": {"h": "human", "a": "assistant"}.get(uuid[0], "critic"),
        "created_at": f"2026-03-01T10:{at // 60:02}:{at % 60:02}.000001Z",
        "text": "",
        "content": list(content) or [{"type": "text", "text": f"say {uuid}"}],
        **keys,
    }
    return said if parent == "" else {**said, "parent_message_uuid": parent or ROOT}


def talk(*messages: Any, **keys: Any) -> Raw:
    return {"uuid": "talk", "name": "Bread", "chat_messages": list(messages), **keys}


def retried() -> Raw:
    """A first prompt that was edited, an answer that was retried, and a talk that goes on there."""
    return talk(
        message("h1", at=1),
        message("a1", "h1", at=2),
        message("a1b", "a1", at=2),
        message("h2", "a1b", at=3),
        message("a2", "h2", at=4),
        message("a2b", "h2", at=5),
        message("h3", "a2", at=6),
        message("a3", "h3", at=7),
        message("h1b", at=8),
        message("a4", "h1b", at=9),
    )


# -- structure -------------------------------------------------------------------------------------


def test_parents_make_the_tree():
    """Edits and retries are siblings; an assistant's messages in a row are one answer."""
    assert {
        ("say h1", "say a1\n\nsay a1b", None),
        ("say h2", "say a2", "say a1\n\nsay a1b"),
        ("say h2", "say a2b", "say a1\n\nsay a1b"),
        ("say h3", "say a3", "say a2"),
        ("say h1b", "say a4", None),
    } == set(shape(draft(claude_ai, retried())))


@settings(max_examples=50)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_list_says_nothing_where_parents_are_named(chance: random.Random):
    """Shuffled messages give the same turns and the same head."""
    whole, mixed = retried(), retried()
    chance.shuffle(mixed["chat_messages"])

    assert tree(draft(claude_ai, whole)) == tree(draft(claude_ai, mixed))
    assert draft(claude_ai, whole).current == draft(claude_ai, mixed).current


def test_siblings_of_one_moment_are_told_apart_by_their_ids():
    """Where a prompt and all answers share one time, shuffling changes no name."""
    said = [message("h1"), message("a2", "h1"), message("a1", "h1"), message("h2", "a2")]

    assert tree(draft(claude_ai, talk(*said))) == tree(draft(claude_ai, talk(*reversed(said))))


def test_the_current_leaf_is_the_head_else_the_newest():
    """What the export calls current counts; without it, the record of the latest time."""
    one = draft(claude_ai, {**retried(), "current_leaf_message_uuid": "a3"})
    assert "say a3" == answer(tree(one)[str(one.current)])

    newest = draft(claude_ai, retried())
    assert "say a4" == answer(tree(newest)[str(newest.current)])

    gone = draft(claude_ai, {**retried(), "current_leaf_message_uuid": "nowhere"})
    assert gone.current is None
    assert {"current messages that are not there": 1} == gone.notes.counts


# -- without parents -------------------------------------------------------------------------------


def test_without_parents_the_list_is_the_talk():
    """Prompts and answers that alternate are a line of certain turns."""
    said = [message(id, "", at=at) for at, id in enumerate(["h1", "a1", "h2", "a2"])]
    one = draft(claude_ai, talk(*said))

    assert [("say h1", "say a1", None), ("say h2", "say a2", "say a1")] == shape(one)
    assert not any("order" in turn.source for turn in one.turns)


def test_a_prompt_far_from_its_answer_is_found_by_their_time():
    """A prompt that stands first, and an answer without a prompt of the very time, are one turn."""
    said = [
        message("h2", "", at=5),
        message("h1", "", at=1),
        message("a1", "", at=1),
        message("a2", "", at=5),
        message("h3", "", at=6),
        message("a3", "", at=6),
    ]
    one = draft(claude_ai, talk(*said))

    assert [
        ("say h1", "say a1", None),
        ("say h2", "say a2", "say a1"),
        ("say h3", "say a3", "say a2"),
    ] == shape(one)
    assert not one.notes.counts


def test_neighbours_of_one_side_are_siblings_of_uncertain_order():
    """Two prompts or two answers in a row are turns side by side, marked and counted."""
    ids = ["h1", "a1", "a1b", "h2", "h2b", "a2"]
    said = [message(id, "", at=at) for at, id in enumerate(ids)]
    one = draft(claude_ai, talk(*said))

    assert [
        ("say h1", "say a1", None, "uncertain"),
        ("say h1", "say a1b", None, "uncertain"),
        ("say h2", None, "say a1b", "uncertain"),
        ("say h2b", "say a2", "say a1b", "uncertain"),
    ] == [(*row, turn.source.get("order")) for row, turn in zip(shape(one), one.turns, strict=True)]
    assert {"messages whose place in the talk is uncertain": 4} == one.notes.counts


# -- what is said ----------------------------------------------------------------------------------


def test_text_counts_only_where_blocks_say_nothing():
    """A newer message's `text` repeats its thoughts; an older one has nothing else."""
    thought = {
        "type": "thinking",
        "thinking": "hm",
        "summaries": [{"summary": "s"}],
        "cut_off": False,
    }
    said = {"type": "text", "text": "yes", "citations": []}
    new = draft(claude_ai, talk(message("h1"), message("a1", "h1", thought, said, text="hm yes")))
    old = {**message("a1", "h1", text="yes"), "content": None}

    assert "yes" == answer(new.turns[0])
    assert {"summaries": [{"summary": "s"}], "cut_off": False} == part(new.turns[0], "reasoning")[
        "only"
    ]["claude-ai"]
    assert "yes" == answer(draft(claude_ai, talk(message("h1"), old)).turns[0])


def test_calls_and_results_without_ids_are_paired_by_name():
    """A result goes to the first call of its tool that has none yet; they are one turn."""
    blocks = [
        {"type": "tool_use", "name": "search", "input": {"q": 1}},
        {"type": "tool_use", "name": "repl", "input": {"code": "2"}},
        {"type": "tool_result", "name": "repl", "content": [{"type": "text", "text": "two"}]},
        {"type": "tool_result", "name": "search", "content": [{"type": "link"}], "is_error": True},
        {"type": "text", "text": "done"},
    ]
    (turn,) = draft(claude_ai, talk(message("h1"), message("a1", "h1", *blocks))).turns
    calls = {p["name"]: p["id"] for m in turn.messages_out for p in m["parts"] if "name" in p}
    results = {m["name"]: m["parts"][0] for m in turn.messages_out if m["role"] == "tool"}

    assert calls == {name: part["id"] for name, part in results.items()}
    assert ("two", [{"type": "link"}]) == (
        results["repl"]["response"],
        results["search"]["response"],
    )
    assert {"is_error": True} == results["search"]["only"]["claude-ai"]
    assert "done" == answer(turn)


def test_ids_of_calls_count_where_there_are_some():
    """A result with an id belongs to its call, whatever stands before."""
    blocks = [
        {"type": "tool_use", "id": "t1", "name": "search", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "search", "input": {}},
        {"type": "tool_result", "tool_use_id": "t2", "name": "search", "content": "second"},
        {"type": "tool_result", "tool_use_id": "t1", "name": "search", "content": "first"},
    ]
    (turn,) = draft(claude_ai, talk(message("h1"), message("a1", "h1", *blocks))).turns
    results = [m["parts"][0] for m in turn.messages_out if m["role"] == "tool"]

    assert [("t2", "second"), ("t1", "first")] == [(p["id"], p["response"]) for p in results]


def test_what_was_pasted_is_the_prompt_and_a_named_file_is_not():
    """Pasted text has no file name and is said; a file's text is shown to the model only."""
    pasted = {"file_name": "", "file_type": "txt", "extracted_content": "a long question"}
    named = {"file_name": "notes.txt", "file_type": "text/plain", "extracted_content": "notes"}
    said = message("h1", attachments=[pasted, named, {"file_name": "x.pdf"}])
    said["content"] = []
    (turn,) = draft(claude_ai, talk(said, message("a1", "h1"))).turns

    assert "a long question" == turn.inputs["message"]
    assert ["user", "text", "text", "file"] == types(turn)[0]


def test_a_file_that_is_listed_twice_is_one():
    """`files_v2` repeats the files of `files`; a file without an id goes by its name."""
    image = {"file_uuid": "f1", "file_kind": "image", "file_name": "a.png"}
    said = message("h1", files=[image, {"file_name": "b.csv"}], files_v2=[{**image, "more": 1}])
    (turn,) = draft(claude_ai, talk(said, message("a1", "h1"))).turns

    assert [("image", "f1"), ("document", "b.csv")] == [
        (p["modality"], p["file_id"]) for p in turn.messages_in[0]["parts"][1:]
    ]


def test_an_emptied_talk_keeps_its_shape():
    """Messages whose words were deleted stay: each is a turn, and none runs into the next."""
    said = [message("h1"), message("a1", "h1"), message("h2", "a1"), message("a2", "h2")]
    for one in said:
        one["content"] = []

    assert [("", "", None), ("", None, "")] == shape(draft(claude_ai, talk(*said)))


def test_what_is_not_known_is_kept_and_counted():
    """A new type of block, on either side, and a new sender lose nothing."""
    note = {"type": "voice_note", "title": "hm"}
    said = [
        message("h1", None, note),
        message("x1", "h1"),
        message("a1", "x1", note, {"text": "?"}),
    ]
    one = draft(claude_ai, talk(*said))

    assert [["user", "claude-ai:voice_note"], ["system", "text"]] == types(one.turns[0])[:2]
    assert {
        "part claude-ai:voice_note": 2,
        "part claude-ai:unnamed": 1,
        "sender critic": 1,
    } == one.notes.unknown


@pytest.mark.parametrize(
    ("keys", "cut"),
    [
        ({"stop_reason": "max_tokens"}, "length"),
        ({"stop_reason": "user_canceled"}, "interrupted"),
        ({"truncated": True}, "partial"),
        ({"stop_reason": "stop_sequence"}, None),
    ],
)
def test_an_answer_says_why_it_is_not_whole(keys, cut):
    """A stopped answer is done, with the reason beside; the page's own object names the model."""
    said = talk(message("h1"), message("a1", "h1", **keys), model="claude-x")
    (turn,) = draft(claude_ai, said).turns

    assert ("done", cut, "claude-x") == (turn.state, turn.source.get("cut"), turn.model)


def test_an_element_that_is_no_conversation_costs_itself_alone():
    """Empty conversations, other objects and broken ones are skipped with a reason."""
    given = [talk(), {"uuid": "x"}, talk(message("h1"), 7, message("a1", "h1"))]
    empty, other, whole = found(claude_ai, *given)

    assert isinstance(empty, Skipped)
    assert isinstance(other, Skipped)
    assert not isinstance(whole, Skipped)
    assert [("say h1", "say a1", None)] == shape(whole)


@pytest.mark.parametrize("sample", [None, [], {}, {"chat_messages": {}}, {"mapping": {}}])
def test_other_values_do_not_look_like_it(sample):
    """Only an object with a list of chat messages is of this format."""
    assert not claude_ai.looks_like(sample)
