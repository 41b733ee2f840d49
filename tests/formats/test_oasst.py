"""Tests of `ledger.formats.oasst`: ranked trees, nested and in lines of their own."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import oasst
from ledger.formats.base import Skipped
from tests.formats.finds import answer, draft, drafts, found, shape, tree

Raw = dict[str, Any]


def message(id: str, *replies: Raw, rank: int | None = None, **keys: Any) -> Raw:
    """Make a message; who says it shows in the first letter of its id."""
    said: Raw = {"message_id": id, "text": f"say {id}", "rank": rank, "lang": "en"}
    said["role"] = "prompter" if id[0] == "p" else "assistant"
    return {**said, "replies": list(replies), **keys}


def whole() -> Raw:
    """A prompt with three ranked answers; below the best, two prompts, one of them answered."""
    below = [message("p2", message("a4"), labels={"spam": {"value": 0.1}}), message("p3")]
    return message(
        "p1",
        message("a2", rank=2),
        message("a1", *below, rank=0, model_name="m", review_result=False),
        message("a3", rank=1, deleted=True),
    )


def flat(value: Raw, parent: str | None = None) -> list[Raw]:
    """Return a tree as a line for each message."""
    own = {key: inner for key, inner in value.items() if key != "replies"}
    lines = [{**own, "parent_id": parent, "message_tree_id": "p1"}]
    return lines + [line for one in value["replies"] for line in flat(one, value["message_id"])]


def test_ranked_siblings_are_turns_and_the_best_way_is_the_head():
    """Answers come in the order of their ranks; what was deleted or failed its review is kept."""
    one = draft(oasst, {"message_tree_id": "p1", "prompt": whole()})

    assert {
        ("say p1", "say a1", None),
        ("say p1", "say a3", None),
        ("say p1", "say a2", None),
        ("say p2", "say a4", "say a1"),
        ("say p3", None, "say a1"),
    } == set(shape(one))
    assert [0, 1, 2] == [turn.source["rank"] for turn in one.turns if turn.parent is None]
    assert "say a4" == answer(tree(one)[str(one.current)])
    assert "m" == one.turns[0].model
    assert not one.turns[0].messages_out[0]["only"]["oasst"]["review_result"]


@settings(max_examples=50)
@given(st.randoms(use_true_random=False))
def test_lines_in_any_order_are_the_same_tree(chance: random.Random):
    """A dump with a line for each message gives the same turns and head, however it is ordered."""
    lines = [*flat(whole()), *flat(message("p9", message("a9")))]
    chance.shuffle(lines)
    found = {one.source_id: one for one in drafts(oasst, *lines)}

    assert tree(draft(oasst, whole())) == tree(found["p1"])
    assert draft(oasst, whole()).current == found["p1"].current
    assert {"p1", "p9"} == found.keys()


def test_a_line_may_be_the_tree_itself():
    """The dump of messages nests replies too, without the tree around them."""
    assert (
        draft(oasst, whole()).turns
        == draft(oasst, {"message_tree_id": "x", "prompt": whole()}).turns
    )


def test_a_message_without_its_parent_begins_a_tree():
    """Lines whose parent is not in the file, or is below them, are not lost."""
    lines = [
        {**message("p1"), "parent_id": "gone"},
        {**message("a1"), "parent_id": "p1"},
        {**message("p2"), "parent_id": "a2"},
        {**message("a2"), "parent_id": "p2"},
    ]
    for line in lines:
        del line["replies"]

    turns = [row for one in drafts(oasst, *lines) for row in shape(one)]

    assert ("say p1", "say a1", None) in turns
    assert {"say p1", "say p2"} == {asked for asked, _, _ in turns if asked}


def test_other_lines_cost_themselves_alone():
    """What is no tree is skipped; unknown roles in a tree are context, and replies without an id are left out."""
    robot = message("x1", message("a1"))
    robot["role"] = "robot"
    items = found(oasst, {"message_id": "x"}, message("p1", robot, {"text": "?"}))
    skipped, one = items

    assert isinstance(skipped, Skipped)
    assert not isinstance(one, Skipped)
    assert [("say p1", "say a1", None)] == shape(one)
    assert {"role robot": 1} == one.notes.unknown
    assert {"messages without an id left out": 1} == one.notes.counts


@pytest.mark.parametrize("sample", [None, {}, {"prompt": {}}, {"message_id": "x", "role": "user"}])
def test_other_values_do_not_look_like_it(sample):
    """Only a message of a prompter or assistant is of this format."""
    assert not oasst.looks_like(sample)
