"""Tests of `ledger.formats.chatgpt`: every quirk of the export, on synthetic conversations."""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import chatgpt, chatgpt_parts, clean
from ledger.formats.base import Broken, Draft, Element, Skipped
from ledger.records import ids, values
from tests.formats.given import Given
from tests.formats.synthetic_chatgpt import START, Talk, answer, read, shape


def straight() -> Talk:
    talk = Talk()
    talk.bot("a1", talk.user("u1", "root"))
    talk.bot("a2", talk.user("u2", "a1"))
    return talk


def named(draft: Draft, name: str) -> dict[str, Any]:
    """Return the message made from one record."""
    return next(
        message
        for turn in draft.turns
        for message in turn.messages_in + turn.messages_out
        if message["only"]["chatgpt"]["id"] == name
    )


# -- structure -------------------------------------------------------------------------------------


def test_a_line_of_exchanges_is_a_line_of_turns():
    """A question and its answer are one turn, and the next question continues it."""
    assert [("ask u1", "answer a1", None), ("ask u2", "answer a2", "answer a1")] == shape(
        straight().draft()
    )


def test_an_edited_prompt_is_another_turn_on_the_same_parent():
    """Two user messages under one answer are two turns that continue that answer."""
    talk = straight()
    talk.bot("a3", talk.user("u3", "a1"))

    assert ("ask u3", "answer a3", "answer a1") == shape(talk.draft())[2]


def test_a_regenerated_answer_is_a_sibling_turn():
    """Two answers to one message are two turns with the same input and parent."""
    talk = straight()
    talk.bot("b2", "u2")

    assert [("ask u2", "answer a2", "answer a1"), ("ask u2", "answer b2", "answer a1")] == shape(
        talk.draft()
    )[1:]


def test_going_on_from_the_middle_of_an_answer_is_a_shorter_turn():
    """Where the user goes on before the answer's end, both lengths are turns of the same input."""
    talk = Talk()
    talk.bot("a2", talk.bot("a1", talk.user("u1", "root")))
    talk.bot("a3", talk.user("u2", "a1"))

    assert {
        ("ask u1", "answer a1", None),
        ("ask u1", "answer a1\n\nanswer a2", None),
        ("ask u2", "answer a3", "answer a1"),
    } == set(shape(talk.draft()))


def test_messages_in_a_row_are_one_input():
    """User messages with no answer between are one prompt, joined in order."""
    talk = Talk()
    talk.bot("a1", talk.user("u2", talk.user("u1", "root")))

    (turn,) = talk.draft().turns

    assert "ask u1\n\nask u2" == turn.inputs["message"]
    assert ["u1", "u2", "a1"] == turn.source["records"]
    assert "u2" == turn.source["prompt"]


def test_an_unanswered_message_is_an_abandoned_turn():
    """A last message without an answer is a turn without outputs, and no model answered it."""
    talk = straight()
    talk.user("u3", "a2")

    last = talk.draft().turns[-1]

    assert ("abandoned", None, None, []) == (
        last.state,
        last.outputs,
        last.model,
        last.messages_out,
    )


def test_children_lists_may_be_absent_wrong_or_dangling():
    """Structure comes from the parents: children lists only order siblings."""
    talk = straight()
    talk.bot("b2", "u2")
    whole = talk.draft()
    for node in talk.mapping.values():
        node.pop("children", None)
    assert whole.turns == talk.draft().turns
    talk.mapping["u1"]["children"] = ["nowhere", "u2", 7, None]
    talk.mapping["root"]["children"] = "u1"
    assert whole.turns == talk.draft().turns


def test_children_lists_order_siblings():
    """Siblings come in the order of their parent's list, whatever the order of the mapping."""
    talk = straight()
    talk.bot("b2", "u2")
    talk.mapping["u2"]["children"] = ["b2", "a2"]

    assert ["answer a1", "answer b2", "answer a2"] == [answer(t) for t in talk.draft().turns]


def test_the_first_key_need_not_be_the_root():
    """A child may stand before its parent in the mapping."""
    talk = straight()
    whole = talk.draft()
    talk.mapping = dict(reversed(talk.mapping.items()))

    assert whole.turns == talk.draft().turns


def test_a_dangling_parent_starts_a_tree_of_its_own():
    """A message whose parent is not there is kept, with a note; nothing below it is lost."""
    talk = straight()
    del talk.mapping["a1"]

    draft = talk.draft()

    assert [("ask u1", None, None), ("ask u2", "answer a2", None)] == shape(draft)
    assert 1 == sum(draft.notes.counts.values())


@pytest.mark.parametrize("circle", [["u1"], ["u1", "a1"], ["u1", "a1", "u2", "a2"]])
def test_circles_and_self_parents_are_cut(circle):
    """A circle of parents is cut once, with a note, and every message is still there."""
    talk = straight()
    talk.mapping["u1"]["parent"] = circle[-1]

    draft = talk.draft()

    kept = {id for turn in draft.turns for id in turn.source["records"]}
    assert {"u1", "a1", "u2", "a2"} == kept
    assert 1 == draft.notes.counts["circles of parents cut"]


@pytest.mark.parametrize("broken", [None, 7, "x", [], {"message": 7}, {"parent": 1}, {}])
def test_a_broken_node_costs_itself_alone(broken):
    """A node of any shape does no harm to the others."""
    talk = straight()
    talk.mapping["odd"] = broken

    assert straight().draft().turns == talk.draft().turns


def test_depth_costs_no_stack():
    """A conversation of twenty thousand messages in one line is read."""
    talk = Talk()
    last = "root"
    for i in range(10_000):
        last = talk.bot(f"a{i}", talk.user(f"u{i}", last))

    assert 10_000 == len(talk.draft().turns)


def test_ten_thousand_siblings():
    """Ten thousand answers, in the middle of a path and to one question, are ten thousand turns."""
    talk = Talk()
    talk.bot("a", talk.user("u1", "root"))
    for i in range(10_000):
        talk.bot(f"m{i}", "a")
        talk.bot(f"r{i}", "u1")

    assert 20_000 == len(talk.draft().turns)


# -- what is walked through ------------------------------------------------------------------------


def test_hidden_context_is_no_prompt():
    """Custom instructions have role user in newer files; they are context."""
    talk = Talk()
    context = {
        "content_type": "user_editable_context",
        "user_profile": "P",
        "user_instructions": "I",
    }
    hidden = {"is_visually_hidden_from_conversation": True}
    talk.say("ctx", "root", "user", context, metadata=hidden)
    talk.bot("a1", talk.user("u1", "ctx"))

    draft = talk.draft()

    assert [("ask u1", "answer a1", None)] == shape(draft)
    assert ["developer", "user"] == [m["role"] for m in draft.turns[0].messages_in]
    message = named(draft, "ctx")
    assert ["P", "I"] == [part["content"] for part in message["parts"]]
    assert message["only"]["chatgpt"]["hidden"] is True
    assert ["ctx"] == draft.turns[0].source["context"]


@pytest.mark.parametrize(
    "keys",
    [
        {"role": "system", "metadata": {}},
        {"role": "user", "metadata": {"is_visually_hidden_from_conversation": True}},
        {"role": "user", "metadata": {}, "weight": 0},
        {"role": "user", "metadata": {"is_user_system_message": True}},
        {"role": "critic", "metadata": {}},
    ],
)
def test_what_is_hidden_is_walked_through(keys):
    """Hidden messages never part a conversation: what stands below hangs on what stands above."""
    talk = Talk()
    talk.bot("a1", talk.user("u1", "root"))
    talk.say("h", "a1", keys.pop("role"), "hidden words", **keys)
    talk.bot("a2", talk.user("u2", "h"))

    draft = talk.draft()

    assert [("ask u1", "answer a1", None), ("ask u2", "answer a2", "answer a1")] == shape(draft)
    assert "hidden words" == draft.turns[1].messages_in[0]["parts"][0]["content"]


def test_old_custom_instructions_are_read_from_their_data():
    """A system message with empty parts keeps the instructions that its metadata holds."""
    talk = Talk()
    data = {"about_user_message": "about me", "about_model_message": "be brief"}
    metadata = {"is_user_system_message": True, "user_context_message_data": data}
    talk.say("ctx", "root", "system", "", metadata=metadata)
    talk.bot("a1", talk.user("u1", "ctx"))

    message = named(talk.draft(), "ctx")

    assert "system" == message["role"]
    assert ["about me", "be brief"] == [part["content"] for part in message["parts"]]


@pytest.mark.parametrize("role", ["system", "assistant"])
def test_empty_messages_leave_nothing(role):
    """An empty system or assistant message is walked through and makes no message."""
    talk = Talk()
    talk.say("e", "root", role, {"content_type": "text", "parts": [""]})
    talk.bot("a1", talk.user("u1", "e"))

    draft = talk.draft()

    assert [("ask u1", "answer a1", None)] == shape(draft)
    assert ["u1", "a1"] == draft.turns[0].source["records"]
    assert "context" not in draft.turns[0].source


def test_two_edited_first_prompts_have_the_same_context():
    """Context above a fork belongs to the first turn below it on each path."""
    talk = Talk()
    talk.say("ctx", "root", "system", "rules")
    for i in (1, 2):
        talk.bot(f"a{i}", talk.user(f"u{i}", "ctx"))

    assert [["ctx"], ["ctx"]] == [turn.source["context"] for turn in talk.draft().turns]


def test_an_answer_without_a_prompt_is_a_turn():
    """A conversation that the assistant begins keeps its greeting, with an empty input."""
    talk = Talk()
    talk.bot("a2", talk.user("u1", talk.bot("a1", "root")))

    assert [("", "answer a1", None), ("ask u1", "answer a2", "answer a1")] == shape(talk.draft())


# -- messages --------------------------------------------------------------------------------------


def test_a_tool_round_is_a_call_and_its_result():
    """Code sent to a tool and the tool's output are paired, and neither is the answer."""
    talk = Talk()
    talk.bot("a", talk.user("u", "root"), "first")
    talk.result("r", talk.call("c", "a", "python", "1+1"), "python", "2")
    talk.bot("b", "r", "then")

    (turn,) = talk.draft().turns

    assert {"result": "first\n\nthen"} == turn.outputs
    assert ["assistant", "assistant", "tool", "assistant"] == [m["role"] for m in turn.messages_out]
    call, result = turn.messages_out[1], turn.messages_out[2]
    arguments = {"text": "1+1", "language": "unknown"}
    assert [{"type": "tool_call", "id": "c", "name": "python", "arguments": arguments}] == call[
        "parts"
    ]
    assert [{"type": "tool_call_response", "id": "c", "response": "2"}] == result["parts"]
    assert "python" == result["name"]


def test_parallel_calls_are_paired_in_order():
    """Results go to the first waiting call of their tool; more results to the last call."""
    talk = Talk()
    talk.call("c2", talk.call("c1", talk.user("u", "root"), "web.run"), "web.run")
    talk.call("p1", "c2", "python")
    last = "p1"
    for id, tool in (("w1", "web"), ("x1", "python"), ("w2", "web.run"), ("w3", "web.run")):
        last = talk.result(id, last, tool)
    talk.bot("a", talk.result("n", last, "never_called"))

    draft = talk.draft()

    pairs = {id: named(draft, id)["parts"][0]["id"] for id in ("w1", "w2", "w3", "x1", "n")}
    assert {"w1": "c1", "w2": "c2", "w3": "c2", "x1": "p1", "n": "n"} == pairs


def test_json_sent_to_a_tool_is_its_arguments():
    """Text to a tool that is a JSON object becomes the arguments of the call."""
    talk = Talk()
    text = json.dumps({"name": "draft", "content": "words"})
    talk.bot("c", talk.user("u", "root"), text, recipient="canmore.create_textdoc")
    talk.bot("a", "c")

    part = named(talk.draft(), "c")["parts"][0]

    assert ("canmore.create_textdoc", {"name": "draft", "content": "words"}) == (
        part["name"],
        part["arguments"],
    )


def test_thoughts_are_reasoning():
    """Thoughts and the note of their length are reasoning parts, never the answer."""
    talk = Talk()
    thoughts = [{"summary": "S", "content": "C"}, {"summary": "only"}, {"chunks": ["x", "y"]}, 7]
    talk.bot("t", talk.user("u", "root"), {"content_type": "thoughts", "thoughts": thoughts})
    talk.bot("n", "t", {"content_type": "reasoning_recap", "content": "Thought for 4s"})
    talk.bot("a", "n")

    draft = talk.draft()

    assert "answer a" == answer(draft.turns[0])
    assert ["C", "only", "xy"] == [part["content"] for part in named(draft, "t")["parts"]]
    assert "S" == named(draft, "t")["parts"][0]["only"]["chatgpt"]["summary"]
    assert [{"type": "reasoning", "content": "Thought for 4s"}] == named(draft, "n")["parts"]


def test_images_and_voice_are_kept():
    """Pointers become uris, transcripts become text, an attachment is told once."""
    talk = Talk()
    pieces = [
        {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 3},
        {"content_type": "audio_transcription", "text": "spoken words", "direction": "in"},
        {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_2"},
        {
            "content_type": "real_time_user_audio_video_asset_pointer",
            "audio_asset_pointer": {"asset_pointer": "sediment://file_3"},
            "frames_asset_pointers": [],
        },
        "typed words",
    ]
    attachments = [
        {"id": "file_1", "name": "a.png", "mime_type": "image/png"},
        {"id": "file_9", "name": "b.pdf", "mime_type": "application/pdf"},
    ]
    content = {"content_type": "multimodal_text", "parts": pieces}
    talk.user("u", "root", content, metadata={"attachments": attachments})
    talk.bot("a", "u")

    draft = talk.draft()

    assert "spoken words\ntyped words" == draft.turns[0].inputs["message"]
    parts = named(draft, "u")["parts"]
    assert ["uri", "text", "uri", "uri", "text", "file"] == [part["type"] for part in parts]
    assert ["image", "audio", "audio", "document"] == [
        p["modality"] for p in parts if "modality" in p
    ]
    assert "image/png" == parts[0]["mime_type"]
    assert "a.png" == parts[0]["only"]["chatgpt"]["attachment"]["name"]
    assert "file_9" == parts[-1]["file_id"]
    assert not draft.notes.unknown


def test_an_image_made_by_a_tool_is_an_answer():
    """A picture that was asked for answers the turn, though nothing was said."""
    talk = Talk()
    talk.call("c", talk.user("u", "root"), "dalle.text2im", '{"prompt": "a cat"}')
    piece = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-1",
        "metadata": {"dalle": {"prompt": "a cat"}},
    }
    content = {"content_type": "multimodal_text", "parts": [piece]}
    talk.say("i", "c", "tool", content, name="dalle.text2im")

    (turn,) = talk.draft().turns

    assert ("done", {"result": ""}) == (turn.state, turn.outputs)
    assert ["tool_call_response", "uri"] == [p["type"] for p in turn.messages_out[1]["parts"]]


def test_drawn_images_stand_beside_the_output():
    """Images that a code run drew are pointers beside its text."""
    talk = Talk()
    shown = {"messages": [{"message_type": "image", "image_url": "file-service://x"}, 7, {}]}
    output = {"content_type": "execution_output", "text": "<<ImageDisplayed>>"}
    talk.call("c", talk.user("u", "root"), "python")
    talk.say("r", "c", "tool", output, name="python", metadata={"aggregate_result": shown})
    talk.bot("a", "r")

    parts = named(talk.draft(), "r")["parts"]

    assert {"type": "uri", "modality": "image", "uri": "file-service://x"} == parts[1]


def test_browsing_results_are_kept_and_spinners_are_not():
    """A quote from a page is a tool result with its address; a running sign is nothing."""
    talk = Talk()
    talk.call("c", talk.user("u", "root"), "browser", "search('x')")
    spinner = {"content_type": "tether_browsing_display", "result": "", "summary": ""}
    talk.say("s", "c", "tool", spinner, name="browser", metadata={"command": "spinner"})
    quote = {"content_type": "tether_quote", "url": "https://example.org", "text": "T"}
    talk.say("q", "s", "tool", quote, name="browser")
    talk.bot("a", "q")

    draft = talk.draft()

    part = named(draft, "q")["parts"][0]
    assert ("c", {"url": "https://example.org", "text": "T"}) == (part["id"], part["response"])
    assert ["u", "c", "q", "a"] == draft.turns[0].source["records"]


def test_unknown_types_are_kept_and_counted():
    """What this version does not know is kept whole, counted by name, and is no error."""
    talk = Talk()
    new = {"content_type": "hologram", "rays": [1, 2]}
    talk.bot(
        "x", talk.user("u", "root", {"content_type": "text", "parts": ["t", {"smell": 1}]}), new
    )
    talk.bot("a", "x")

    draft = talk.draft()

    assert {"content hologram": 1, "part None": 1} == dict(draft.notes.unknown)
    assert [{"type": "chatgpt:hologram", "content": new}] == named(draft, "x")["parts"]
    assert "answer a" == answer(draft.turns[0])


def test_citation_marks_stay_and_their_targets_are_kept():
    """The text keeps its private-use marks; what they point to stands beside it."""
    talk = Talk()
    text = "It is so \ue200cite\ue202turn0search3\ue201."
    reference = {"matched_text": " ", "start_idx": 9, "end_idx": 10}
    talk.bot("a", talk.user("u", "root"), text, metadata={"content_references": [reference]})

    draft = talk.draft()

    assert text == answer(draft.turns[0])
    assert [reference] == named(draft, "a")["only"]["chatgpt"]["content_references"]


def test_lone_surrogates_are_replaced_and_counted():
    """Half a character becomes U+FFFD, one for one, in texts, titles, ids and keys."""
    talk = Talk(title="bad \ud800 title", conversation_id="talk-\udfff")
    talk.bot("a\ud800", talk.user("u", "root", "ask \udc00\udc00"), "fine \U0001f600")

    draft = talk.draft()

    assert ("ask \ufffd\ufffd", "fine \U0001f600") == shape(draft)[0][:2]
    assert "bad \ufffd title" == draft.title
    assert 3 <= draft.notes.counts[clean.SURROGATES]
    assert ["u", "a\\ud800"] == draft.turns[0].source["records"]


# -- what is said about a turn ---------------------------------------------------------------------


def test_the_model_is_the_messages_own_or_the_conversations():
    """The model comes from the answer, else from the conversation; a tool's does not count."""
    talk = Talk(default_model_slug="default-1")
    talk.bot("a1", talk.user("u1", "root"))
    talk.bot("a2", talk.user("u2", "a1"), metadata={"model_slug": "own-2"})

    assert ["default-1", "own-2"] == [turn.model for turn in talk.draft().turns]


@pytest.mark.parametrize(
    "keys, cut",
    [
        ({"status": "in_progress"}, "in_progress"),
        ({"metadata": {"finish_details": {"type": "max_tokens"}}}, "length"),
        ({"metadata": {"finish_details": {"type": "interrupted"}}}, "interrupted"),
        ({"status": "finished_partial_completion"}, "partial"),
        ({"status": "finished_successfully"}, None),
        ({"metadata": {"finish_details": {"type": "stop"}}}, None),
    ],
)
def test_a_cut_answer_is_done_and_says_so(keys, cut):
    """An answer that was cut off is an answer; why it is not whole stands in its source."""
    talk = Talk()
    talk.bot("a", talk.user("u", "root"), **keys)

    (turn,) = talk.draft().turns

    assert ("done", cut) == (turn.state, turn.source.get("cut"))


def test_a_continued_answer_goes_on_without_a_gap():
    """An answer that ran out of room and was continued is one text."""
    talk = Talk()
    full = {"finish_details": {"type": "max_tokens"}}
    talk.bot("a", talk.user("u", "root"), "The quick br", metadata=full)
    talk.bot("b", "a", "own fox")

    (turn,) = talk.draft().turns

    assert ("The quick brown fox", None) == (answer(turn), turn.source.get("cut"))


def test_steps_without_an_answer_are_no_answer():
    """A turn that was cut while thinking is unanswered; its steps are kept."""
    talk = Talk()
    talk.call("c", talk.user("u", "root"), "python")

    (turn,) = talk.draft().turns

    assert ("abandoned", "no_answer") == (turn.state, turn.source["cut"])
    assert ["c"] == [m["only"]["chatgpt"]["id"] for m in turn.messages_out]


def test_going_on_after_steps_alone_closes_the_turn():
    """Where the user goes on below steps alone, that turn is done, with an empty text."""
    talk = Talk()
    talk.bot("a", talk.user("u2", talk.call("c", talk.user("u1", "root"), "python")))

    assert [("ask u1", "", None), ("ask u2", "answer a", "")] == shape(talk.draft())


@pytest.mark.parametrize(
    "given, text",
    [
        (START, "2023-11-14T22:13:20.000000Z"),
        (int(START), "2023-11-14T22:13:20.000000Z"),
        (str(START), "2023-11-14T22:13:20.000000Z"),
        (START * 1000, "2023-11-14T22:13:20.000000Z"),
        ("2023-11-14T23:13:20+01:00", "2023-11-14T22:13:20.000000Z"),
        (None, None),
        (True, None),
        ("yesterday", None),
        ("nan", None),
        (10**400, None),
        (-1e18, None),
    ],
)
def test_times_in_any_spelling(given, text):
    """Seconds, milliseconds, text and ISO are read; what is no time is no time, and no error."""
    talk = straight()
    talk.mapping["u1"]["message"]["create_time"] = given

    first = talk.draft().turns[0]

    assert text == first.source.get("created")
    milliseconds = int(START * 1000) if text else 0
    assert milliseconds == uuid.UUID(first.id).int >> 80


def test_times_reversed_change_no_order():
    """Order never comes from times: a question may be later than its answer."""
    talk = straight()
    for place, node in enumerate(talk.mapping.values()):
        if node["message"]:
            node["message"]["create_time"] = START - place

    assert [("ask u1", "answer a1", None), ("ask u2", "answer a2", "answer a1")] == shape(
        talk.draft()
    )


@pytest.mark.parametrize(
    "current, message",
    [("a2", "ask u2"), ("a1", "ask u1"), ("h", "ask u2"), ("u2", "ask u2"), ("root", None)],
)
def test_the_current_message_names_a_turn(current, message):
    """The current turn is the one that ends at, or holds, the source's current message."""
    talk = straight()
    talk.say("h", "a2", "system", "hidden")
    talk.keys["current_node"] = current

    draft = talk.draft()

    texts = {turn.id: turn.inputs["message"] for turn in draft.turns}
    assert message == texts.get(draft.current or "")


@pytest.mark.parametrize("current", [None, 7, "nowhere"])
def test_a_current_message_may_be_missing(current):
    """Without a usable current message no turn is called current."""
    talk = straight()
    talk.keys["current_node"] = current

    assert talk.draft().current is None


@pytest.mark.parametrize("title", [None, "", " ", 7])
def test_a_title_may_be_missing(title):
    """A conversation without a title has none."""
    talk = straight()
    talk.keys["title"] = title

    assert talk.draft().title is None


def test_a_conversation_may_have_no_id():
    """Without an id a conversation is named by its oldest prompt, also in a longer export."""
    talk = straight()
    del talk.keys["conversation_id"]
    before = talk.draft()
    talk.bot("a3", talk.user("u0", "root"))

    assert ("of-u1", "of-u1") == (before.source_id, talk.draft().source_id)
    talk.keys["id"] = "other"
    assert "other" == talk.draft().source_id


# -- ids -------------------------------------------------------------------------------------------


def test_ids_are_made_as_the_rule_says():
    """An id is the prompt's time, version 7, variant, and 74 bits of the hash of four names."""
    talk = Talk()
    talk.bot("a1", talk.user("u1", "root"))
    talk.user("u2", "a1")

    for turn, (user, first) in zip(talk.draft().turns, [("u1", "a1"), ("u2", None)], strict=True):
        text = json.dumps(["chatgpt", "talk", user, first], separators=(",", ":"))
        bits = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big") >> (256 - 74)
        found = uuid.UUID(turn.id).int
        assert ids.is_turn(turn.id)
        assert bits == (found >> 64 & 0xFFF) << 62 | found & (1 << 62) - 1


def test_an_answer_that_comes_later_is_a_new_turn():
    """A turn unanswered at one export and answered at the next has another id."""
    talk = Talk()
    talk.user("u", "root")
    before = talk.draft().turns[0].id
    talk.bot("a", "u")

    assert [before] != [turn.id for turn in talk.draft().turns]


def test_raw_is_the_sources_own_bytes():
    """The source's record is kept byte for byte, however it is spelled."""
    raw = b' {"mapping" : ' + json.dumps(straight().mapping, indent=3).encode() + b', "id":"x"}'

    (draft,) = chatgpt.drafts([Given([Element(raw, 5)])])

    assert isinstance(draft, Draft)
    assert (raw,) == draft.raw


# -- a bad one never loses the file ----------------------------------------------------------------


def test_bad_conversations_are_skipped_and_the_next_is_read():
    """Each conversation that does not read is skipped with its reason; the others are there."""
    good = json.dumps(straight().value()).encode()
    corrupt = json.dumps({"title": "Gone", "id": "x"}).encode()
    nothing = json.dumps(Talk().value()).encode()
    bad = [b"", b"{", b"[]", b"7", b"{}", corrupt, nothing, b"[" * 10_000, b"\xff\xfe"]

    found = list(
        chatgpt.drafts(
            [Given([*(Element(b, 9) for b in bad), Element(good, 9), Broken(12, "cut")])]
        )
    )

    assert [Skipped] * len(bad) + [Draft, Skipped] == [type(one) for one in found]
    assert "given.json: conversation 6 'Gone'" == found[5].what
    assert "cut (at byte 12)" == found[-1].reason


def test_bytes_that_are_not_utf8_are_replaced_and_counted():
    """A conversation with a broken byte in a text is read, with a note."""
    raw = json.dumps(straight().value()).encode().replace(b"answer a1", b"answer \xff")

    (draft,) = chatgpt.drafts([Given([Element(raw, 0)])])

    assert isinstance(draft, Draft)
    assert "answer \ufffd" == answer(draft.turns[0])
    assert 1 == sum(draft.notes.counts.values())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["text", "user", "assistant", "all", "\ud800", "$attachment"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content_type", "parts", "text", "x", "$attachment"]), inner
        )
    ),
    max_leaves=8,
)
MESSAGE_KEYS = ["author", "content", "metadata", "recipient", "weight", "status", "create_time"]
CONTENT_TYPES = [*chatgpt_parts.CONTEXT, *chatgpt_parts.THINKING, *chatgpt_parts.PARTED, "code"]


@settings(max_examples=300)
@given(st.data())
def test_any_message_is_read_and_may_be_stored(data):
    """Whatever stands in a message, it is read, and every value made of it may be stored."""
    talk = straight()
    talk.say("x", "a1", data.draw(st.sampled_from(["user", "assistant", "tool", "system"])))
    message = talk.mapping["x"]["message"]
    for key in data.draw(st.lists(st.sampled_from(MESSAGE_KEYS))):
        message[key] = data.draw(JSON)
    if isinstance(message["content"], dict):
        message["content"]["content_type"] = data.draw(st.sampled_from(CONTENT_TYPES) | JSON)
        message["content"][data.draw(st.sampled_from(["parts", "thoughts", "text"]))] = data.draw(
            JSON
        )
    talk.bot("b", talk.user("y", "x"))

    draft = read(talk.value())

    assert isinstance(draft, Draft)
    for turn in draft.turns:
        values.check([turn.inputs, turn.outputs, turn.messages_in, turn.messages_out, turn.source])
        assert (turn.outputs is None) == (turn.state == "abandoned")
    values.check([draft.title, draft.source_id])


@pytest.mark.parametrize("sample", [None, 7, [], {}, {"mapping": []}, {"mapping": {"a": 1}}])
def test_other_values_do_not_look_like_it(sample):
    """Only an object whose mapping holds nodes looks like a conversation."""
    assert not chatgpt.looks_like(sample)
    assert chatgpt.looks_like(straight().value())


def test_deep_values_are_cut_short():
    """A value nested beyond what a record may hold is replaced by a note, and counted."""
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    talk = straight()
    talk.bot("x", "a2", {"content_type": "hologram", "deep": deep})

    draft = talk.draft()

    values.check(draft.turns[-1].messages_out)
    assert 1 == draft.notes.counts["values nested too deep replaced by a note"]


def test_shuffled_keys_give_the_same_turns():
    """The order of the mapping decides nothing where children lists are whole."""
    talk = straight()
    talk.bot("b2", "u2")
    whole = talk.draft()
    items = list(talk.mapping.items())
    for seed in range(20):
        random.Random(seed).shuffle(items)
        talk.mapping = dict(items)
        assert whole.turns == talk.draft().turns
