"""Tests of `ledger.formats.sharegpt`: its many spellings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.formats import sharegpt
from ledger.formats.base import Draft, Skipped
from tests.formats.finds import answer, draft, drafts, found, part, shape, types
from tests.formats.given import Given

Raw = dict[str, Any]


def said(speaker: str, value: Any = "", **keys: Any) -> Raw:
    return {"from": speaker, "value": value or f"say {speaker}", **keys}


@pytest.mark.parametrize("key", ["conversations", "conversation", "items"])
@pytest.mark.parametrize(
    ("user", "bot"), [("human", "gpt"), ("user", "assistant"), ("Human", "bing")]
)
def test_every_spelling_is_a_line_of_turns(key, user, bot):
    """Whoever speaks under whatever name, a question and its answer are a turn."""
    one = draft(
        sharegpt, {"id": "x", key: [said(user), said(bot), said(user, "b"), said(bot, "c")]}
    )

    assert [(f"say {user}", f"say {bot}", None), ("b", "c", f"say {bot}")] == shape(one)
    assert one.current == one.turns[-1].id


def test_a_file_of_conversations_is_a_list():
    """A list of conversations gives each; an id that repeats in another file is another."""
    one = {"id": "0", "conversations": [said("human"), said("gpt")]}
    other = {"id": "0", "conversations": [said("human", "else"), said("gpt")]}
    items = found(sharegpt, [one, other, one, {"id": "1"}])

    ids = [item.source_id for item in items if isinstance(item, Draft)]
    assert ids[0] == ids[2] != ids[1]
    assert ids[0].startswith("0-")
    assert isinstance(items[3], Skipped)


def test_pieces_of_a_long_conversation_stay_apart():
    """Ids that count up are no promise that one goes on where another stopped."""
    pieces = [{"id": f"abc_{n}", "conversations": [said("human"), said("gpt")]} for n in range(2)]

    assert 2 == len({one.source_id for one in drafts(sharegpt, *pieces)})


@pytest.mark.parametrize("bare", [True, False])
def test_one_conversation_alone_in_a_file(bare):
    """A bare list of messages, or one object, is one conversation."""
    talk = [said("human"), said("gpt"), 7]
    value: Any = talk if bare else {"conversations": talk, "system": "Be brief."}

    (one,) = sharegpt.drafts([Given(json.dumps(value).encode())])

    assert isinstance(one, Draft)
    assert [("say human", "say gpt", None)] == shape(one)
    assert bare == (["system", "text"] != types(one.turns[0])[0])
    assert {"messages without `from` or `value` left out": 1} == one.notes.counts


def test_an_answer_may_stand_first():
    """A dump that begins with the bot is a turn without input."""
    one = draft(sharegpt, {"conversations": [said("gpt"), said("human"), said("gpt", "b")]})

    assert [("", "say gpt", None), ("say human", "b", "say gpt")] == shape(one)


def test_calls_and_observations_are_a_tool_round():
    """A call is read from its JSON; what was observed is its result."""
    talk = [
        said("human"),
        said("function_call", '{"name": "add", "arguments": {"a": 1}}'),
        said("observation", "2"),
        said("function_call", "no JSON"),
        said("gpt", "two", weight=1),
    ]
    given = {"conversations": talk, "system": "Be brief.", "tools": "[]"}
    (turn,) = draft(sharegpt, [given]).turns

    assert ["system", "text", "sharegpt:tools"] == types(turn)[0]
    assert ("add", {"a": 1}) == tuple(part(turn, "tool_call")[key] for key in ("name", "arguments"))
    assert part(turn, "tool_call")["id"] == part(turn, "tool_call_response")["id"]
    assert {"from": "gpt", "weight": 1} == turn.messages_out[-1]["only"]["sharegpt"]


def test_an_answer_that_was_chosen_is_the_head():
    """A ranked pair is one prompt with two answers, and the chosen one is current."""
    pair = {"chosen": said("gpt", "good"), "rejected": said("gpt", "bad")}
    one = draft(sharegpt, [{"conversations": [said("human")], **pair}])

    assert {"good", "bad"} == {answer(turn) for turn in one.turns}
    assert "good" == next(answer(turn) for turn in one.turns if turn.id == one.current)


def test_an_unknown_speaker_is_context_and_counted():
    """Who is not known is kept with the next turn."""
    one = draft(sharegpt, {"conversations": [said("narrator"), said("human"), said("gpt")]})

    assert ["system", "text"] == types(one.turns[0])[0]
    assert {"speaker narrator": 1} == one.notes.unknown


@pytest.mark.parametrize(
    "sample", [None, [], [{}], {"conversations": []}, {"conversations": [{"role": "x"}]}]
)
def test_other_values_do_not_look_like_it(sample):
    """Only lists of messages with `from` and `value` are of this format."""
    assert not sharegpt.looks_like(sample)
