"""Tests of `ledger.formats.sillytavern`: swipes, copies of a chat, and who speaks."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.formats import sillytavern
from ledger.formats.base import Draft, Skipped
from tests.formats.finds import answer, draft, found, shape, tree, types

Raw = dict[str, Any]
HEADER = {
    "user_name": "Alex",
    "character_name": "Sera",
    "create_date": "2026-9-1 @18h",
    "chat_metadata": {},
}


def said(text: str, *swipes: Any, user: bool = False, **keys: Any) -> Raw:
    line: Raw = {
        "name": "Alex" if user else "Sera",
        "is_user": user,
        "mes": text,
        "send_date": f"on {text}",
    }
    if swipes:
        told = [{"send_date": f"on {one}", "extra": {"model": f"m-{one}"}} for one in swipes]
        line |= {"swipes": list(swipes), "swipe_id": 0, "swipe_info": told}
    return {**line, **keys}


def chat() -> list[Raw]:
    """A greeting that was chosen from two, two exchanges; the last answer was chosen from three."""
    return [
        HEADER,
        said("hi", "hi", "ho"),
        said("who?", user=True),
        said("me"),
        said("where?", user=True),
        said("here", "there", "here", "nowhere"),
    ]


def test_swipes_are_turns_and_the_chosen_one_goes_on():
    """Alternate greetings are answers to nothing; the chat's last message is the head."""
    one = draft(sillytavern, *chat())

    assert {
        ("", "hi", None),
        ("", "ho", None),
        ("who?", "me", "hi"),
        ("where?", "here", "me"),
        ("where?", "there", "me"),
        ("where?", "nowhere", "me"),
    } == set(shape(one))
    assert "here" == answer(tree(one)[str(one.current)])
    assert {"m-there", "m-nowhere"} == {
        turn.model for turn in one.turns if turn.parent and turn.model
    }


def test_choosing_another_swipe_adds_nothing_but_what_follows():
    """What was an alternative is the same turn once it is chosen."""
    later = chat()
    later[-1] = said("there", "there", "here", "nowhere")
    later += [said("why?", user=True), said("so", user=False)]
    before, after = draft(sillytavern, *chat()), draft(sillytavern, *later)

    assert before.source_id == after.source_id
    assert tree(before).keys() < tree(after).keys()
    assert ("why?", "so", "there") == next(row for row in shape(after) if row[0] == "why?")


def test_a_branch_file_joins_the_chat_it_copies():
    """A file that repeats a chat's beginning gives the same turns, and its own from there on."""
    copy = [
        {**HEADER, "chat_metadata": {"main_chat": "x"}},
        *chat()[1:4],
        said("else?", user=True),
        said("no"),
    ]
    one, other = draft(sillytavern, *chat()), draft(sillytavern, *copy)

    assert one.source_id == other.source_id
    assert {("else?", "no", "me")} == {row for row in shape(other) if row not in shape(one)}
    shared = tree(one).keys() & tree(other).keys()
    assert {"hi", "ho", "me"} == {answer(tree(one)[id]) for id in shared}


def test_copies_without_a_date_are_known_by_their_first_message():
    """Newer headers name nobody and no date."""
    bare = {"chat_metadata": {"integrity": "x"}, "user_name": "unused", "character_name": "unused"}
    one = draft(sillytavern, bare, *chat()[1:])
    other = draft(sillytavern, {**bare, "chat_metadata": {"integrity": "y"}}, *chat()[1:4])

    assert (None, one.source_id) == (one.title, other.source_id)


def test_two_characters_in_a_row_are_one_answer():
    """In a group the answers to one prompt are one turn, by the names of who speaks."""
    one = draft(sillytavern, HEADER, said("a", user=True), said("b"), said("c", name="Brom"))

    assert [("a", "b\n\nc", None)] == shape(one)
    assert ["Sera", "Brom"] == [message["name"] for message in one.turns[0].messages_out]


def test_a_swipe_in_the_middle_of_an_answer_is_a_shorter_turn():
    """An alternative to the first of two answers is a turn of its own."""
    one = draft(sillytavern, HEADER, said("a", user=True), said("b", "b", "x"), said("c"))

    assert {("a", "b\n\nc", None), ("a", "x", None)} == set(shape(one))


def test_hidden_messages_were_said_and_the_programs_own_were_not():
    """A message that is hidden from the model keeps its place; narration and help are context."""
    lines = [
        HEADER,
        said("Help!", is_system=True, name="SillyTavern System"),
        said("a", user=True, is_system=True),
        said("b", is_system=True, extra={"reasoning": "hm", "image": "https://example.com/a.png"}),
        said("Night fell.", extra={"type": "narrator"}),
        said("c", user=True),
        said("d"),
    ]
    one = draft(sillytavern, *lines)

    assert [("a", "b", None), ("c", "d", "b")] == shape(one)
    assert [
        ["system", "text"],
        ["user", "text"],
        ["assistant", "reasoning", "text", "uri"],
    ] == types(one.turns[0])
    assert ["system", "text"] == types(one.turns[1])[0]
    assert one.turns[0].messages_out[0]["only"]["sillytavern"]["is_system"]


@pytest.mark.parametrize(
    ("sent", "created"),
    [
        ("July 19, 2024 3:30pm", None),
        ("2023-6-2 @21h 09m 51s 363ms", None),
        (1_690_000_000_123, "2023-07-22T04:26:40.123000Z"),
        ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000000Z"),
    ],
)
def test_times_without_a_zone_name_no_moment(sent, created):
    """Only a number or a text with its zone is a time; the others are kept as text."""
    one = draft(sillytavern, HEADER, said("a", user=True, send_date=sent), said("b"))

    assert created == one.turns[0].source.get("created")
    assert sent == one.turns[0].messages_in[0]["only"]["sillytavern"]["send_date"]


def test_swipes_of_other_programs_nest_their_text():
    """A swipe may be an object; an edit of the chosen text stands beside what it was."""
    one = draft(
        sillytavern, HEADER, said("a", user=True), said("b!", {"message": "b"}, {"mes": "c"}, 7)
    )

    assert {"b!", "b", "c"} == {answer(turn) for turn in one.turns}


def test_a_line_that_does_not_read_costs_itself_alone():
    """Other lines are skipped; a header alone is no conversation."""
    *skipped, one = found(sillytavern, HEADER, {"x": 1}, said("a", user=True), said("b"))
    (empty,) = found(sillytavern, HEADER)

    assert 1 == len(skipped)
    assert isinstance(one, Draft)
    assert [("a", "b", None)] == shape(one)
    assert isinstance(empty, Skipped)


@pytest.mark.parametrize("sample", [None, [], {}, {"mes": "x"}, {"chat_metadata": []}])
def test_other_values_do_not_look_like_it(sample):
    """A chat begins with a header, or a message."""
    assert not sillytavern.looks_like(sample)
