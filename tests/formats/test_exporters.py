"""What is exported for other programs: read back by our importers it says the same, and vendors' types fit."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from anthropic.types import MessageParam, ToolParam
from hypothesis import given, settings
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

from ledger.formats import (
    export_chat,
    export_open_webui,
    export_pairs,
    export_sharegpt,
    jsonl,
    open_webui,
    openai_jsonl,
    sharegpt,
    talks,
)
from ledger.formats.talks import How
from ledger.records import messages as neutral
from ledger.views import History
from tests.formats import told
from tests.formats.finds import checked, draft, drafts
from tests.formats.given import Given
from tests.formats.typed_dicts import fits
from tests.views import build

Raw = dict[str, Any]
FEW = settings(max_examples=30)


def rows(exporter: talks.Exporter, history: History, how: How | None = None) -> list[Raw]:
    """What an exporter makes of all branches, through the file."""
    found = exporter.rows(told.talk_of(history), how or How(), Counter())
    return [json.loads(jsonl.line(row)) for row in found]


def notes(exporter: talks.Exporter, history: History) -> dict[str, int]:
    counted: Counter[str] = Counter()
    list(exporter.rows(told.talk_of(history), How(), counted))
    return {what: n for what, n in counted.items() if n}


def read_back(format: Any, made: list[Raw]) -> Counter[told.Said]:
    if not made:
        return Counter()
    data = b"".join(map(jsonl.line, made))
    found = list(checked(format.drafts([Given(data)])))
    return told.of_turns(turn for one in found for turn in one.turns)


@FEW
@given(told.conversations(wordless=True))
def test_sharegpt_comes_back(history):
    """ShareGPT's lines are read back to the same turns, questions without a word and tool rounds too."""
    made = rows(export_sharegpt, history)

    assert set(told.of_history(history, unanswered=False)) == set(read_back(sharegpt, made))
    assert len(made) == len(talks.ends(history))


@FEW
@given(told.conversations(images=True))
def test_openai_chat_comes_back(history):
    """OpenAI's lines are read back to the same turns, images too."""
    made = rows(export_chat.openai, history)

    assert set(told.of_history(history, unanswered=False)) == set(read_back(openai_jsonl, made))


@FEW
@given(told.conversations(images=True, thoughts=True))
def test_open_webui_comes_back(history):
    """A chat of Open WebUI is read back to the same tree: siblings, failed turns, thoughts, images, the head."""
    (made,) = rows(export_open_webui, history)
    one = draft(open_webui, [made])

    assert told.of_history(history, unanswered=True) == told.of_turns(one.turns)
    assert "Ducks" == one.title
    assert told.of_history(history, unanswered=True, of=history.head) == told.of_turns(
        one.turns, of=one.current
    )


@FEW
@given(told.conversations(images=True, thoughts=True))
def test_what_is_made_fits_the_vendors_types(history):
    """Each line's messages and tools are of the types that the vendors publish."""
    for row in rows(export_chat.openai, history):
        assert all(fits(one, ChatCompletionMessageParam) for one in row["messages"])
        assert all(fits(one, ChatCompletionFunctionToolParam) for one in row.get("tools", []))
        assert "assistant" == row["messages"][-1]["role"]
    for row in rows(export_chat.anthropic, history):
        assert all(fits(one, MessageParam) for one in row["messages"])
        assert all(fits(one, ToolParam) for one in row.get("tools", []))


@given(told.conversations())
def test_every_answered_turn_is_on_a_branch(history):
    """The branches of a conversation have all its answered turns, and none is the beginning of another."""
    branches = [
        [node.id for node in told.talk_of(history).branch(end)] for end in talks.ends(history)
    ]
    answered = {turn for turn in history.order if history.node(turn).done}

    assert answered == {turn for branch in branches for turn in branch}
    assert not [(a, b) for a in branches for b in branches if a != b and a == b[: len(a)]]


# -- what is left out is counted -------------------------------------------------------------------


def talked(*messages: Raw, name: str = "a", parent: str | None = None, **keys: Any) -> list[Raw]:
    """The records of a turn that was asked "ask <name>" and answered so."""
    return [
        build.turn(name, parent, inputs={"message": f"ask {name}"}, **keys),
        build.ended(name, outputs={"result": "x"}, messages=list(messages) or said(f"say {name}")),
    ]


def said(text: str, *before: Raw) -> list[Raw]:
    return [{"role": "assistant", "parts": [*before, {"type": "text", "content": text}]}]


def history(*records: list[Raw] | Raw) -> History:
    flat = [one for r in records for one in (r if isinstance(r, list) else [r])]
    return History.of(build.placed(flat))


@pytest.mark.parametrize("exporter", [export_chat.openai, export_chat.anthropic, export_sharegpt])
def test_turns_without_an_answer_are_counted(exporter):
    """Failed turns, turns that are not over and erased ones are in no line; how many is told, by kind."""
    h = history(
        talked(name="a"),
        [build.turn("b", "a"), build.ended("b", "failed")],
        build.turn("c", "a"),
        [build.turn("e", "a"), build.ended("e", "abandoned", erased=True)],
        talked(name="d", parent="e"),
    )
    made = rows(exporter, h)

    assert 1 == len(made)
    assert {
        f"turns left out, without an answer ({what})": 1
        for what in ("failed", "not over", "erased")
    } == notes(exporter, h)
    assert "ask a" in json.dumps(made)
    assert "ask d" in json.dumps(made)


def test_what_cannot_be_said_is_counted_by_its_reason():
    """Thinking that OpenAI and ShareGPT have no place for is counted, not silent."""
    h = history(talked(*said("x", {"type": "reasoning", "content": "hm"})))

    assert {"openai-chat: a reasoning cannot be said in openai": 1} == notes(export_chat.openai, h)
    assert {"sharegpt: a reasoning cannot be said in sharegpt": 1} == notes(export_sharegpt, h)
    assert {} == notes(export_open_webui, h)


def test_a_line_that_would_end_with_the_question_is_left_out():
    """An answer that is only an image cannot be said by OpenAI's assistant: the line is left out, and told."""
    h = history(talked({"role": "assistant", "parts": [told.PNG]}))

    assert [] == rows(export_chat.openai, h)
    assert "branches left out, whose last answer cannot be said" in notes(export_chat.openai, h)


def call(**arguments: Any) -> list[Raw]:
    made = {"type": "tool_call", "id": "c", "name": "add", "arguments": arguments}
    result = {"type": "tool_call_response", "id": "c", "response": 3}
    return [{"role": "assistant", "parts": [made]}, {"role": "tool", "parts": [result]}, *said("3")]


def test_tools_are_described_as_they_were_called():
    """Without definitions each tool that was called is described by the arguments that were seen."""
    h = history(talked(*call(a=1, b="x")), talked(*call(a=None), name="b", parent="a"))
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "string"}},
    }
    (ours,), (theirs,) = rows(export_chat.openai, h), rows(export_chat.anthropic, h)
    (shared,) = rows(export_sharegpt, h)

    assert [{"type": "function", "function": {"name": "add", "parameters": schema}}] == ours[
        "tools"
    ]
    assert [{"name": "add", "input_schema": schema}] == theirs["tools"]
    assert [{"name": "add", "parameters": schema}] == json.loads(shared["tools"])


def test_definitions_that_were_given_are_taken_as_they_are():
    """Given definitions stand in lines that call tools, and in no other."""
    h = history(talked(*call(a=1)), talked(name="b"))
    given = How(tools=({"type": "function", "function": {"name": "add"}},))

    assert [list(given.tools), None] == [
        row.get("tools") for row in rows(export_chat.openai, h, given)
    ]


def test_instructions_in_force_lead_each_branch():
    """Instructions that changed later stand first; those of the beginning are not said twice."""
    first = [{"role": "system", "parts": [{"type": "text", "content": "old"}]}]
    asked = [*first, {"role": "user", "parts": [{"type": "text", "content": "ask"}]}]
    new = [{"role": "system", "parts": [{"type": "text", "content": "new"}]}]
    h = history(
        talked(name="a", messages=asked),
        talked(name="b", parent="a"),
        build.new("entry", plugin="ledger", entry="instructions", turn="b", data=new),
    )
    (row,), (shared,) = rows(export_chat.openai, h), rows(export_sharegpt, h)

    assert ["system", "user", "assistant", "user", "assistant"] == [
        m["role"] for m in row["messages"]
    ]
    assert "new" == row["messages"][0]["content"] == shared["system"]


# -- Open WebUI ------------------------------------------------------------------------------------


def test_open_webui_shares_a_question_asked_again():
    """An answer made again stands beside the first below one question; the view's place is current."""
    h = history(
        talked(name="a"),
        [
            build.turn("b", inputs={"message": "ask a"}),
            build.ended("b", outputs={"result": "y"}, model="m2"),
        ],
        build.new("head", turn="a"),
    )
    (row,) = rows(export_open_webui, h)
    chat = row["chat"]
    (question,) = [m for m in chat["history"]["messages"].values() if m["role"] == "user"]

    assert ["a", "b"] == question["childrenIds"]
    assert "a" == chat["history"]["currentId"] == chat["messages"][-1]["id"]
    assert ["m2"] == chat["models"]
    assert ("talk", "Ducks") == (row["id"], row["title"])


def test_open_webui_shows_thoughts_and_calls_as_it_does():
    """What is no plain text is in `output`, and in `content` as elements that fold, which read the same."""
    h = history(talked(*said("x", {"type": "reasoning", "content": "a <b>"}), *call(a='"')))
    (row,) = rows(export_open_webui, h)
    messages = row["chat"]["history"]["messages"]
    exact = draft(open_webui, [row]).turns
    del messages["a"]["output"]

    assert told.of_turns(exact) == told.of_turns(draft(open_webui, [row]).turns)


def test_open_webui_leaves_erased_turns_out():
    """What stood behind an erased turn hangs on what stood before it."""
    h = history(
        talked(name="a"),
        [build.turn("b", "a"), build.ended("b", "abandoned", erased=True)],
        talked(name="c", parent="b"),
    )
    (row,) = rows(export_open_webui, h)
    one = draft(open_webui, [row])

    assert ["ask a", "ask c"] == [turn.inputs["message"] for turn in one.turns]
    assert one.turns[1].parent == one.turns[0].id
    assert {"turns left out, without an answer (erased)": 1} == notes(export_open_webui, h)


def test_what_the_system_says_within_an_answer_is_not_the_assistants():
    """Open WebUI has no place for it: it is left out, and counted."""
    said = [neutral.text("system", "Be brief."), neutral.text("assistant", "Hi")]
    ended = {**build.ended("a", outputs={"result": "Hi"}), "messages": said}
    h = history([build.turn("a"), ended])
    (row,) = rows(export_open_webui, h)

    (answer,) = (m for m in row["chat"]["messages"] if m["role"] == "assistant")
    assert "Hi" == answer["content"]
    assert {"open-webui: what the system says within an answer cannot be said": 1} == notes(
        export_open_webui, h
    )


def test_an_empty_conversation_is_an_empty_chat():
    """No turn is no message, and no line."""
    (row,) = rows(export_open_webui, history())

    assert ({}, None) == (
        row["chat"]["history"]["messages"],
        row["chat"]["history"]["currentId"],
    )
    assert [] == rows(export_chat.openai, history()) == rows(export_pairs.trl, history())


# -- preferences -----------------------------------------------------------------------------------


def rating(turn: str, value: Any, by: str | None = None) -> Raw:
    data = {"value": value, "by": by, "why": None}
    return build.new("entry", plugin="ledger", entry="rating", turn=turn, data=data)


def again(name: str, parent: str | None = None) -> list[Raw]:
    """A turn that was asked the same as others, and answered by its name."""
    return [
        build.turn(name, parent, inputs={"message": "ask"}),
        build.ended(name, outputs={"result": name}),
    ]


def pairs(*records: Any, how: How | None = None) -> list[tuple[str, str]]:
    made = rows(export_pairs.trl, history(*records), how)
    return [(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in made]


def test_siblings_rated_otherwise_are_pairs():
    """Of any two answers to the same, the one that is rated higher is chosen; equal ones are no pair."""
    tried = [again(name) for name in "abcd"]
    rated = [rating("a", 1), rating("b", 3.5), rating("c", True), rating("d", False)]

    assert [("b", "a"), ("b", "c"), ("b", "d"), ("a", "d"), ("c", "d")] == pairs(*tried, *rated)
    assert [("b", "d")] == pairs(*tried, *rated, how=How(pairs="extremes"))


def test_a_rating_is_the_mean_of_what_each_said_last():
    """Each person counts once, by the last that is not withdrawn."""
    tried = [again("a"), again("b")]
    first = [rating("a", 1, "x"), rating("a", 5, "x"), rating("a", 4, "y"), rating("b", 4.4, "z")]

    assert [("a", "b")] == pairs(*tried, *first)
    assert [("b", "a")] == pairs(*tried, *first, rating("a", None, "x"))
    assert [] == pairs(*tried, *first, rating("b", None, "z"))


def test_others_are_no_pair():
    """Other questions, other places, and turns without an answer are not compared."""
    other = [build.turn("o", inputs={"message": "else"}), build.ended("o", outputs={"result": "o"})]
    failed = [build.turn("f", inputs={"message": "ask"}), build.ended("f", "failed")]
    rated = [rating(name, n) for n, name in enumerate("abof")]

    assert [] == pairs(again("a"), again("b", "a"), other, failed, *rated)
    h = history(again("a"), again("b", "a"), other, failed, *rated)
    assert {"rated turns left out, with none beside that was rated otherwise": 3} == notes(
        export_pairs.trl, h
    )


def test_answers_that_nobody_rated_are_told():
    """Two answers to the same are looked at; one alone is not."""
    h = history(again("a"), again("b"), talked(name="c"))

    assert {"answers to the same left out, of which none is rated": 2} == notes(export_pairs.trl, h)


def test_a_rank_of_the_source_is_a_preference():
    """The lowest rank is the best."""
    tried = [
        [{**build.turn(name, inputs={"message": "ask"}), "source": {"rank": rank}}, ended]
        for rank, name in ((1, "a"), (0, "b"))
        for ended in [build.ended(name, outputs={"result": name})]
    ]

    assert [("b", "a")] == pairs(*tried)


@FEW
@given(told.conversations())
def test_rows_that_are_chosen_hold_every_turn_that_fits(history):
    """Each turn that fits is in a row; a row ends with one; and no row is the beginning of another."""
    fitting = {n.id for n in history.nodes.values() if n.done and n.ordinal % 2}
    ends = talks.ends(history, (n for n in history.nodes.values() if n.id in fitting))
    lines = [{node.id for node in history.upward(end)} for end in ends]

    assert fitting == fitting & set().union(*lines)
    assert fitting.issuperset(ends)
    assert not any(one < other for one in lines for other in lines)


def test_a_pair_in_openais_spelling_is_read_back():
    """The prompt has what was said before; the preferred answer is the head of what is read back."""
    h = history(talked(name="r"), again("a", "r"), again("b", "r"), rating("a", 0), rating("b", 1))
    (row,) = rows(export_pairs.openai, h)
    one = draft(openai_jsonl, row)

    assert ["ask r", "ask", "ask"] == [turn.inputs["message"] for turn in one.turns]
    assert {"a": False, "b": True} == {
        turn.outputs["result"]: turn.source["preferred"] for turn in one.turns if turn.parent
    }
    assert one.current == next(t.id for t in one.turns if t.source.get("preferred"))
    assert drafts(openai_jsonl, row)
