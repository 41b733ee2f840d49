"""What a turn adds as messages, and what the next one is given: whole rounds, instructions, any provider's form."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

import ledger
from ledger import errors
from ledger.formats import dialects
from ledger.records import messages
from tests.formats import provider_examples, synthetic_chatgpt
from tests.formats.test_dialects import NAMES, conversations, flat
from tests.formats.test_dialects_vendors import refused

PNG = {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"}


def user(*parts: Any) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "parts": [_part(part) for part in parts]}


def assistant(*parts: Any) -> dict[str, Any]:
    """An assistant's message."""
    return {"role": "assistant", "parts": [_part(part) for part in parts]}


def _part(part: Any) -> Any:
    return {"type": "text", "content": part} if isinstance(part, str) else part


def call(id: str, name: str, arguments: Any) -> dict[str, Any]:
    """A call."""
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def result(id: str, response: Any) -> dict[str, Any]:
    """A tool's message."""
    part = {"type": "tool_call_response", "id": id, "response": response}
    return {"role": "tool", "parts": [part]}


def look(message: str) -> str:
    """Call two tools, and answer."""
    turn = ledger.current()
    found = turn.tool("look", {"at": message}, lambda: message.upper(), effects="reads")
    return str(turn.tool("say", [found], lambda: {"said": found}, id="own")["said"])


LOOKED = [
    user("a"),
    assistant(call("#1", "look", {"at": "a"})),
    result("#1", "A"),
    assistant(call("own", "say", ["A"])),
    result("own", {"said": "A"}),
    assistant("A"),
]


# -- what a turn added -----------------------------------------------------------------------------


def test_recorded_tools_are_rounds(face, store):
    """The tools that a program called stand between its user side and its answer, each call with its result."""
    chat = face.open("alex", look, store=store)
    turn = face.do(chat.send, "a")

    assert turn.messages == LOOKED
    assert face.do(chat.messages) == LOOKED
    assert (
        "messages" not in store.read("alex")[-1]
    )  # Its tools and its answer say it: nothing is kept twice.


def test_steps_can_be_left_out(face, store):
    """Without steps a turn is shown as its user side and its last reply, also what it noted itself."""

    def noted(message: str) -> str:
        turn = ledger.current()
        turn.note(messages=[assistant("One moment.", call("c", "look", {}))])
        turn.tool("look", {}, lambda: "seen", id="c")
        turn.note(messages=assistant("There."))
        return "There."

    face.do(face.open("alex", look, store=store).send, "a")
    chat = face.open("alex", noted, store=store)
    face.do(chat.send, "b")

    assert face.do(chat.messages, context=ledger.all_turns(steps=False)) == [
        *(user("a"), assistant("A")),
        *(user("b"), assistant("There.")),
    ]
    assert face.do(chat.messages, context=ledger.last_turns(1)) == [
        *(user("b"), assistant("One moment.", call("c", "look", {}))),
        *(result("c", "seen"), assistant("There.")),
    ]


def test_a_field_that_is_left_out_is_said_to_nobody(face, store):
    """Without an input the user's message is what the others say; without the answer nothing is answered."""

    def answer(message: str, secret: str) -> str:
        return message + secret

    chat = face.open("alex", answer, store=store)
    face.do(chat.send, "a", secret="b", messages=[user("a and b")])

    without = lambda *names: face.do(chat.messages, context=ledger.all_turns(without=names))  # noqa: E731
    assert without("secret") == [user("a"), assistant("ab")]
    assert without("result") == [user("a and b")]
    assert without("message", "secret", "result") == []


def test_what_is_noted_is_kept_with_the_results_of_its_tools(face, store):
    """A noted call gets what the tool gave under its id; an answer that was not noted is the last reply."""

    def agent(message: str) -> str:
        turn = ledger.current()
        turn.note(messages=assistant(call("a", "look", {"n": 1}), call("b", "look", {"n": 2})))
        turn.tool("look", {"n": 2}, lambda: "two", id="b")
        turn.tool("look", {"n": 1}, lambda: "one", id="a")
        return "Done."

    chat = face.open("alex", agent, store=store)
    turn = face.do(chat.send, "go")

    rounds = assistant(call("a", "look", {"n": 1}), call("b", "look", {"n": 2}))
    said = [user("go"), rounds, result("a", "one"), result("b", "two"), assistant("Done.")]
    assert turn.messages == said
    assert store.read("alex")[-1]["messages"] == said[1:]


def test_an_answer_with_an_attachment_is_the_last_reply(face, store):
    """An attachment in an answer, or in what a tool gave, is named by its bytes in the messages that were noted."""
    shot = ledger.Attachment(b"\x89PNG\r\n\x1a\n", media_type="image/png")

    def agent(message: str) -> Any:
        turn = ledger.current()
        turn.note(messages=assistant(call("c", "shoot", {})))
        turn.tool("shoot", {}, lambda: shot, id="c")
        return ["Look:", ledger.Attachment(b"%PDF-1.4", media_type="application/pdf")]

    chat = face.open("alex", agent, store=store)
    turn = face.do(chat.send, "go")

    parts = [part for message in turn.messages for part in message["parts"]]
    blobs = [part["content"]["$attachment"]["sha256"] for part in parts if part["type"] == "blob"]
    assert [store.blobs.get(sha256) for sha256 in blobs] == [shot.bytes, b"%PDF-1.4"]


def test_a_turn_that_failed_keeps_what_was_noted(face, store):
    """What a program noted before it raised is in the turn's messages, and no later turn is shown it."""

    def agent(message: str) -> str:
        ledger.current().note(messages=assistant("Hm."))
        raise ValueError("no")

    chat = face.open("alex", agent, store=store)
    with pytest.raises(ValueError, match="no"):
        face.do(chat.send, "go")

    (turn,) = face.do(chat.all_turns)
    assert turn.messages == [user("go"), assistant("Hm.")]
    assert face.do(chat.messages) == []


def test_a_helpers_calls_are_not_the_turns(face, store):
    """The tools of a helper are rounds of its own exchange; it is given its own earlier calls."""
    given: list[Any] = []

    @ledger.program
    def helper(message: str) -> str:
        turn = ledger.current()
        turn.tool("inner", message, lambda: message * 2)
        given.append(turn.messages())
        return message.upper()

    def outer(message: str) -> str:
        return helper(message)

    chat = face.open("alex", outer, store=store, remembers={helper: "conversation"})
    face.do(chat.send, "a")
    turn = face.do(chat.send, "b")

    assert turn.messages == [user("b"), assistant("B")]
    inner = [user("b"), assistant(call("#1", "inner", "b")), result("#1", "bb")]
    assert given[1] == [user("a"), assistant("A"), *inner]


# -- inside a program ------------------------------------------------------------------------------


def test_a_loop_needs_nothing_but_the_turn(face, store):
    """`messages` gives a program what to send at each step: what it is shown, what was asked, the rounds by now."""
    sent: list[Any] = []

    def model(given: list[Any]) -> dict[str, Any]:
        sent.append(json.loads(json.dumps(given)))
        if given[-1]["role"] == "tool":
            return {"role": "assistant", "content": f"It is {given[-1]['content']}."}
        function = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
        made = {"id": "call_1", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [made]}

    def agent(message: str) -> str:
        turn = ledger.current()
        while True:
            reply = model(turn.messages("openai", instructions="Add."))
            turn.note(messages=reply, format="openai")
            if not reply.get("tool_calls"):
                return str(reply["content"])
            for made in reply["tool_calls"]:
                given = json.loads(made["function"]["arguments"])
                turn.tool("add", given, lambda given=given: sum(given.values()), id=made["id"])

    chat = face.open("alex", agent, store=store)
    assert face.do(chat, "1 + 2?") == "It is 3."
    assert face.do(chat, "Again!") == "It is 3."

    assert [m["role"] for m in sent[0]] == ["system", "user"]
    assert [m["role"] for m in sent[1]] == ["system", "user", "assistant", "tool"]
    first = ["user", "assistant", "tool", "assistant"]
    assert [m["role"] for m in sent[3]] == ["system", *first, "user", "assistant", "tool"]
    assert sent[1][2] == model([{"role": "user"}])  # As the provider said it, key for key.
    assert face.do(chat.messages, "openai")[1]["tool_calls"] == sent[1][2]["tool_calls"]


def test_on_a_loop_messages_are_awaited(store):
    """An async program awaits its messages, since attachments are read from the store."""

    async def agent(message: str) -> str:
        turn = ledger.current()
        sent = await turn.messages("openai")
        await turn.tool("look", 1, lambda: 2)
        return f"{sent[-1]['content']} {len(await turn.messages())}"

    assert ledger.open("alex", agent, store=store)("a") == "a 3"


def test_a_resumed_turn_is_given_the_same(store):
    """Who goes on with a turn finds what it was shown, its user side as it was sent, and its rounds."""
    given: list[Any] = []

    def agent(message: str) -> str:
        turn = ledger.current()
        given.append(turn.messages())
        turn.tool("book", {"n": 1}, lambda: "booked", id="c", effects="changes")
        given.append(turn.messages())
        return message

    ledger.open("alex", store=store).record("before", "x")
    chat = ledger.open("alex", agent, store=store, approve="changes")
    with pytest.raises(errors.TurnWaiting):
        chat.send("a", messages=[user("a", PNG)])
    turn = chat.head
    assert turn is not None
    turn.approve()
    ledger.open("alex", agent, store=store, context=ledger.last_turns(0))
    turn.resume()

    before = [user("before"), assistant("x"), user("a", PNG)]
    assert given == [
        before,
        before,
        [*before, assistant(call("c", "book", {"n": 1})), result("c", "booked")],
    ]


@pytest.mark.parametrize(
    ("noted", "path"),
    [
        ([user("x")], "messages[0].role"),
        ([result("c", 1)], "messages[0].role"),
        ([assistant(), assistant({"type": "text"})], "messages[1].parts[0].content"),
        ("text", "messages"),
        ([assistant({"type": "later", "n": float("nan")})], "messages[0].parts[0].n"),
    ],
)
def test_what_is_no_message_is_not_noted(noted, path):
    """A note that cannot be kept is refused where it is made, by its place, and adds nothing."""
    caught: list[errors.RecordInvalid] = []

    def agent(message: str) -> str:
        try:
            ledger.current().note(messages=noted, usage={"tokens": 1})
        except errors.RecordInvalid as error:
            caught.append(error)
        return message

    turn = ledger.open("alex", agent, store=ledger.MemoryStore()).send("a")

    assert [error.path for error in caught] == [path]
    assert (turn.messages, turn.usage) == ([user("a"), assistant("a")], {})


class Dumped:
    """An object of a provider's client."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def model_dump(self, **_how: Any) -> dict[str, Any]:
        """The JSON that it stands for."""
        return self._data


@pytest.mark.parametrize(
    "noted",
    [
        {"role": "assistant", "content": "x"},
        Dumped({"role": "assistant", "content": "x"}),
        [Dumped({"choices": [{"message": {"role": "assistant", "content": "x"}}]})],
    ],
)
def test_a_providers_message_without_its_format_is_told_to_name_it(noted):
    """What is not neutral is refused with the formats that are known; what is, and is wrong, without."""
    refusals: list[str] = []

    def agent(message: str) -> str:
        for said in (noted, {"role": "none", "parts": []}):
            with pytest.raises(errors.RecordInvalid) as caught:
                ledger.current().note(messages=said)
            refusals.append(caught.value.message())
        return message

    ledger.open("alex", agent, store=ledger.MemoryStore()).send("a")

    assert "goes with its `format`: openai, openai-responses, anthropic" in refusals[0]
    assert "format" not in refusals[1]


# -- the user side ---------------------------------------------------------------------------------


def test_the_user_side_can_be_given(face, store):
    """`messages=` of a send is the turn's user side, as its program and every later turn are given it."""
    given: list[Any] = []

    def see(message: str) -> str:
        given.append(ledger.current().messages())
        return "A cat."

    said = [{"role": "system", "parts": [{"type": "text", "content": "Look."}]}, user("What?", PNG)]
    chat = face.open("alex", see, store=store)
    turn = face.do(chat.send, "What?", messages=said)

    assert given == [said]
    assert turn.messages == [*said, assistant("A cat.")]
    assert turn.inputs == {"message": "What?"}
    face.do(chat.send, "And?", request_id="r", messages=[user("And?", PNG)])
    assert face.do(chat.send, "And?", request_id="r", messages=[user("And?", PNG)]).ordinal == 2
    with pytest.raises(errors.RequestMismatch):
        face.do(chat.send, "And?", request_id="r")


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ([], "messages"),
        ([{"role": "system", "parts": [{"type": "text", "content": "x"}]}], "messages"),
        ([user("x"), assistant("y")], "messages[1].role"),
        ([user("x", call("a", "b", {}))], "messages[0].parts[1]"),
        ([user()], "messages[0].parts"),
        ([{"role": "usr", "parts": []}], "messages[0]"),
        ("x", "messages"),
    ],
)
def test_what_is_no_user_side_is_refused(face, said, path):
    """A user side with no user, an assistant, a tool call or no parts is refused by its place; nothing is recorded."""
    store = ledger.MemoryStore()
    chat = face.open("alex", look, store=store)

    with pytest.raises(errors.RecordInvalid) as caught:
        face.do(chat.send, "x", messages=said)

    assert caught.value.path == path
    assert store.read("alex") == []


def test_an_input_of_that_name_is_an_input(face, store):
    """A program whose own input is called `messages` is given it."""

    def answer(messages: list[str]) -> str:
        return " ".join(messages)

    assert face.do(face.open("alex", answer, store=store), messages=["a", "b"]) == "a b"


# -- the window ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(7))
def test_every_window_is_whole_and_keeps_the_instructions(store, n):
    """Recipe T27: `last_turns(n)` over turns with several tool steps is n whole turns behind the instructions,
    however their messages came: noted, told by their tools, or recorded as they are."""
    rule = "Be brief."
    said = [{"role": "developer", "parts": [{"type": "text", "content": rule}]}, user("0")]

    def noted(message: str) -> str:
        turn = ledger.current()
        for k in range(3):
            turn.note(messages=assistant(call(f"c{k}", "look", {"k": k})))
            turn.tool("look", {"k": k}, lambda k=k: k, id=f"c{k}")
        return message

    ledger.open("alex", noted, store=store).send("0", messages=said)
    chat = ledger.open("alex", look, store=store)
    for i in range(1, 5):
        if i % 2:
            chat.send(str(i))
        else:
            exchange = [user(str(i)), assistant(call("r", "f", {})), result("r", i), assistant("x")]
            chat.record(str(i), "x", messages=exchange)

    turns = chat.turns
    window = chat.messages(context=ledger.last_turns(n))
    whole = [m for turn in turns[max(0, 5 - n) :] for m in turn.messages]
    assert window == (whole if n >= 5 else [said[0], *whole])
    for name in NAMES:  # Of the vendors' own types, and whole where they know developers.
        strict = name.startswith("openai")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if not strict else "error", errors.LossWarning)
            sent = chat.messages(name, context=ledger.last_turns(n), strict=strict)
        assert refused(name, sent["messages"] if name == "anthropic" else sent) == []


@pytest.mark.parametrize("n", range(4))
def test_imported_turns_are_shown_whole(tmp_path, store, n):
    """The rule holds for what was imported: no window cuts a round of it, and providers are told all of it."""
    talk = synthetic_chatgpt.Talk()
    at = talk.say("s", "root", "system", "Be brief.", metadata={"is_user_system_message": True})
    for i in range(3):
        at = talk.user(f"u{i}", at)
        for k in range(2):
            at = talk.result(f"r{i}.{k}", talk.call(f"c{i}.{k}", at, "python"), "python")
        at = talk.bot(f"a{i}", at)
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps([talk.value()]), encoding="utf-8")
    ledger.import_conversations(export, store=store)
    chat = ledger.open("talk", store=store)

    whole = [m for turn in chat.turns[max(0, 3 - n) :] for m in turn.messages]
    window = chat.messages(context=ledger.last_turns(n))
    leading = [m for m in chat.turns[0].messages if m["role"] == "system"]
    assert window == (whole if n == 3 else [*leading, *whole])
    assert [part["type"] for m in whole for part in m["parts"]].count("tool_call") == 2 * n
    for name in NAMES:
        chat.messages(name, context=ledger.last_turns(n), strict=True)
    plain = chat.messages(context=ledger.all_turns(steps=False))
    assert [m["role"] for m in plain if m["role"] != "system"] == ["user", "assistant"] * 3


def test_a_summary_is_said_by_the_user(store):
    """Under `compacted` a message tells the summary, behind the instructions, before the turns that stay."""
    said = [{"role": "system", "parts": [{"type": "text", "content": "Be brief."}]}, user("0")]

    def answer(message: str) -> str:
        return message

    rule = ledger.compacted(lambda earlier, rows: f"{earlier}{len(rows)}", keep_last=1, every=1)
    chat = ledger.open("alex", answer, store=store, context=rule)
    chat.send("0", messages=said)
    for i in range(1, 4):
        chat(str(i))

    assert chat.turns[-1].saw_summary == "11"
    assert chat.continue_from(3).messages() == [
        said[0],
        user("What was said before, in short:\n\n11"),
        *(user("2"), assistant("2")),
    ]
    assert len(chat.messages()) == 1 + 1 + 4  # What is still to be summarized stands there whole.


def test_what_a_provider_cannot_be_told_is_said(face, store):
    """A loss is a warning, and with `strict` a refusal; both name the place."""
    chat = face.open("alex", store=store)
    audio = {"type": "uri", "modality": "audio", "uri": "https://example.org/a.wav"}
    face.do(chat.record, "x", "y", messages=[user("x", audio), assistant("y")])

    with pytest.warns(errors.LossWarning, match=r"anthropic: messages\[0\].parts\[1\]"):
        sent = face.do(chat.messages, "anthropic")
    assert sent["messages"][0]["content"] == "x"
    with pytest.raises(errors.MessagesLossy, match=r"messages\[0\].parts\[1\]"):
        face.do(chat.messages, "anthropic", strict=True)
    with pytest.raises(ValueError, match="known: openai"):
        face.do(chat.messages, "other")


def test_bytes_are_read_from_the_store(store):
    """An attachment of a message is sent with its bytes; where they are gone that part is a loss."""
    sha256, size = store.blobs.put(b"\x89PNG\r\n\x1a\n")
    kept = {"$attachment": {"sha256": sha256, "media_type": "image/png", "size": size}}
    blob = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": kept}
    chat = ledger.open("alex", store=store)
    chat.record("x", "y", messages=[user("x", blob), assistant("y")])

    (sent, _) = chat.messages("openai", strict=True)
    assert sent["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    store.blobs.remove([sha256])
    with pytest.warns(errors.LossWarning, match="not at hand"):
        assert chat.messages("openai")[0]["content"] == "x"


# -- what providers say ----------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("name", NAMES)
def test_what_a_format_covers_goes_through_a_conversation(name, data):
    """Neutral messages that were recorded, turn by turn, are read again of what a provider would be sent."""
    said = data.draw(conversations(name))
    starts = [i for i, message in enumerate(said) if message["role"] == "user"]
    starts[0] = 0
    chat = ledger.open("alex", store=ledger.MemoryStore())
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        chat.record("x", "y", messages=said[start:end])

    back = dialects.named(name).from_provider(chat.messages(name, strict=True))
    assert flat(back) == flat(said)


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, content) for name in NAMES for content in provider_examples.OF[name].values()],
    ids=[f"{name}: {case}" for name in NAMES for case in provider_examples.OF[name]],
)
def test_what_a_provider_said_goes_back_to_it_alone(name, content):
    """What a turn noted in a provider's form reaches that provider again as it was, and no secret of it another."""
    said = dialects.named(name).from_provider(content)
    asked, _ = messages.split(said)
    whole = content["messages"] if name == "anthropic" else content

    def agent(message: str) -> str:
        ledger.current().note(messages=said[len(asked) :])
        return "x"

    chat = ledger.open("alex", agent, store=ledger.MemoryStore())
    start = asked if any(m["role"] == "user" for m in asked) else [user("x")]
    chat.send("x", messages=start)
    sent = chat.messages(name, context=ledger.all_turns())

    if start is asked and said[-1]["role"] == "assistant":
        got = sent["messages"] if name == "anthropic" else sent
        assert got[: len(whole)] == whole
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.LossWarning)
        for other in set(NAMES) - {name}:
            text = json.dumps(chat.messages(other))
            assert not [secret for secret in provider_examples.SECRETS if secret in text]


REPLIES: list[Any] = [
    (
        "openai",
        ChatCompletion.model_validate(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": "Hello."},
                    }
                ],
            }
        ),
        {"role": "assistant", "content": "Hello."},
    ),
    (
        "anthropic",
        AnthropicMessage.model_validate(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "text", "text": "Hello."},
                ],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ),
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "text", "text": "Hello."},
            ],
        },
    ),
    (
        "openai-responses",
        Response.model_validate(
            {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "model": "m",
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                "output": [
                    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "x"},
                    {
                        "id": "msg_1",
                        "type": "message",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
                    },
                ],
            }
        ),
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "x"},
    ),
]


@pytest.mark.parametrize(("name", "reply", "expected"), REPLIES, ids=[r[0] for r in REPLIES])
@pytest.mark.parametrize("plain", [False, True], ids=["object", "data"])
def test_a_clients_reply_is_noted_as_it_is(name, reply, expected, plain):
    """A reply may be noted as the object that the vendor's client gave, or as its data; it goes back as it was."""

    def agent(message: str) -> str:
        given = reply.model_dump(mode="json", exclude_unset=True) if plain else reply
        ledger.current().note(messages=given, format=name)
        return "Hello."

    chat = ledger.open("alex", agent, store=ledger.MemoryStore())
    turn = chat.send("Hi")

    sent = chat.messages(name)
    assert (sent["messages"] if name == "anthropic" else sent)[1] == expected
    assert len([m for m in turn.messages if m["role"] == "assistant"]) == 1
    ends = {"openai": "stop", "anthropic": "end_turn"}
    assert turn.messages[-1].get("finish_reason") == ends.get(name)


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("openai", {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}),
        ("openai-responses", {"object": "response", "output": []}),
        ("anthropic", {"type": "message", "role": "assistant", "content": "Hello."}),
        ("pydantic-ai", {"kind": "response", "parts": [], "model_name": "m"}),
    ],
)
@pytest.mark.parametrize("named", [{}, {"model": "mine", "usage": {"tokens": 1}}])
def test_a_replys_model_and_usage_are_taken(name, reply, named):
    """Of a whole reply, where none is named; what is named is taken in their place."""
    used = {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}

    def agent(message: str) -> str:
        ledger.current().note(messages={"model": "m", "usage": used, **reply}, format=name, **named)
        return "Hello."

    turn = ledger.open("alex", agent, store=ledger.MemoryStore()).send("Hi")

    told = {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 1}} | named
    assert {"model": turn.model, "usage": turn.usage} == told


def test_a_message_alone_tells_no_model():
    """What is no whole reply says neither, whatever stands in it."""

    def agent(message: str) -> str:
        said = {"role": "assistant", "content": "Hello.", "model": "m", "usage": {"tokens": 1}}
        ledger.current().note(messages=said, format="openai")
        return "Hello."

    turn = ledger.open("alex", agent, store=ledger.MemoryStore()).send("Hi")

    assert (turn.model, turn.usage) == (None, {})


def test_a_vendors_usage_is_taken_wherever_counts_are_given():
    """By `record`, `sync`, `note` and a memory's `append`, in our spelling."""
    used = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    store = ledger.MemoryStore()

    def agent(message: str) -> str:
        ledger.current().note(usage=used)
        return "Hello."

    made = [
        ledger.open("a", agent, store=store).send("Hi"),
        ledger.open("b", store=store).record("Hi", "Hello.", usage=used),
        *ledger.open("c", store=store).sync(said, format="openai", usage=used).turns,
        *ledger.memory(store, format="openai").append("d", said, usage=used),
    ]

    assert [turn.usage for turn in made] == [{"input_tokens": 3, "output_tokens": 1}] * 4


# -- whatever the rule ---------------------------------------------------------------------------------


RULES = {
    "none": None,
    "last": ledger.last_turns(5),
    "within": ledger.within(tokens=10_000, count=lambda row: 1),
    "only": ledger.only(lambda turn: True),
    "own": lambda turns: turns,
    "compacted": ledger.compacted(lambda turns: "s"),
}


@pytest.mark.parametrize("rule", list(RULES))
def test_rounds_are_shown_by_every_rule(rule):
    """No rule drops the tools that a turn called, unless it says so."""

    def program(message: str) -> str:
        return str(ledger.current().tool("w", {"c": 1}, lambda: 21, effects="reads"))

    chat = ledger.open("c", program, store=ledger.MemoryStore(), context=RULES[rule])
    chat("hi")
    assert [m["role"] for m in chat.messages()] == ["user", "assistant", "tool", "assistant"]


def test_a_model_is_told_what_a_tool_raised():
    """A call that raised has a result: the kind and the text of what it raised; so in the turn, and after."""
    seen = []

    def program(message: str) -> str:
        turn = ledger.current()

        def fails():
            raise ConnectionError("no line")

        try:
            turn.tool("call", {"n": 1}, fails, effects="reads")
        except ConnectionError:
            seen.append(turn.messages())
        return "sorry"

    chat = ledger.open("c", program, store=ledger.MemoryStore())
    chat("hi")
    for said in (seen[0], chat.messages()):
        (response,) = [p for m in said for p in m["parts"] if p["type"] == "tool_call_response"]
        assert response["response"] == "ConnectionError: no line"


def test_bytes_that_a_tool_gave_stand_behind_its_result():
    """In the text of the result is a name for them, and no reference of the store."""

    def program(message: str) -> str:
        shot = ledger.Attachment(b"PNG", media_type="image/png", name="s.png")
        ledger.current().tool("shot", {}, lambda: ["here", shot], effects="reads")
        return "seen"

    chat = ledger.open("c", program, store=ledger.MemoryStore())
    chat("hi")
    (tool,) = [m for m in chat.messages() if m["role"] == "tool"]
    assert tool["parts"][0]["response"] == ["here", "[s.png]"]
    assert tool["parts"][1]["type"] == "blob"


def test_lists_of_text_are_texts_and_nothing_is_not_said():
    """A list of texts is shown as texts, and an input that is None not at all."""

    def several(message: list[str]) -> str:
        return "ok"

    def optional(message: str, image: ledger.Attachment | None = None) -> str:
        return "ok"

    chat = ledger.open("c", several, store=ledger.MemoryStore())
    chat(["and", "now?"])
    assert [p["content"] for p in chat.messages()[0]["parts"]] == ["and", "now?"]
    chat = ledger.open("d", optional, store=ledger.MemoryStore())
    chat("hi")
    assert [p["content"] for p in chat.messages()[0]["parts"]] == ["hi"]


@pytest.mark.parametrize("format", ["openai", "openai-responses"])
def test_how_closely_an_image_is_looked_at(format):
    """An attachment's `detail` reaches the providers that know it."""
    image = ledger.Attachment(b"PNG", media_type="image/png", options={"detail": "low"})

    def program(message: list[str | ledger.Attachment]) -> str:
        return "ok"

    chat = ledger.open("c", program, store=ledger.MemoryStore())
    chat(["look", image])
    assert '"detail": "low"' in json.dumps(chat.messages(format))
