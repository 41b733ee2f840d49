"""Converters of messages: what a provider says comes back as it was, what is neutral survives, losses show."""

import contextlib
import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import ImportInvalid, MessagesLossy, RecordInvalid
from ledger.formats import dialects
from ledger.formats.converting import MISSING, beyond, merged
from tests.formats import provider_examples

NAMES = list(dialects.DIALECTS)
PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0xLjQ="
WAV = "data:audio/wav;base64,UklGRg=="


def flat(messages):
    """What was said, by whom, whatever the messages it is cut into."""
    return [(message["role"], part) for message in messages for part in message["parts"]]


def plain(messages):
    """The same, without what one provider alone understands."""
    return [(role, {k: v for k, v in part.items() if k != "only"}) for role, part in flat(messages)]


def there_and_back(name, messages, **options):
    dialect = dialects.named(name)
    sent = dialect.to_provider(messages, **options)
    return dialect.from_provider(json.loads(json.dumps(sent.content))), sent.losses


# -- a provider's own messages ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, content) for name in NAMES for content in provider_examples.OF[name].values()],
    ids=[f"{name}: {case}" for name in NAMES for case in provider_examples.OF[name]],
)
def test_a_providers_messages_come_back_as_they_were(name, content):
    """What a provider's messages say, neutral, is said to that provider again word for word, with no loss."""
    before = json.loads(json.dumps(content))

    sent = dialects.named(name).to_provider(dialects.named(name).from_provider(content))

    assert sent.losses == ()
    assert sent.content == before
    assert content == before


def objects_in(value):
    """Every object in a value, the outer ones first."""
    inner = list(value.values()) if isinstance(value, dict) else value
    found = [value] if isinstance(value, dict) else []
    return [*found, *(o for v in inner if isinstance(v, dict | list) for o in objects_in(v))]


def kind_of(thing):
    named = (thing.get(key) for key in ("role", "type", "part_kind", "kind"))
    return next((word for word in named if isinstance(word, str)), None)


def with_any_key(name):
    """A provider's examples, each with a key more: what any object of them says, at each kind of object."""
    known: dict = {}
    for thing in objects_in(list(provider_examples.OF[name].values())):
        for key, value in thing.items():
            known.setdefault(key, value)
    seen = set()
    for content in provider_examples.OF[name].values():
        for place, thing in enumerate(objects_in(content)):
            if kind_of(thing) in seen or "messages" in thing:
                continue  # What stands around the messages of Anthropic is no message.
            seen.add(kind_of(thing))
            for key, value in known.items():
                for odd in (value, None, 7):
                    changed = copy.deepcopy(content)
                    objects_in(changed)[place][key] = copy.deepcopy(odd)
                    yield changed


@pytest.mark.parametrize("name", NAMES)
def test_a_key_comes_back_is_refused_or_told_wherever_it_stands(name):
    """A key that a dialect knows, at an object where it means nothing, is kept, refused, or a loss: never dropped."""
    dialect = dialects.named(name)
    dropped = []
    for content in with_any_key(name):
        before = copy.deepcopy(content)
        with contextlib.suppress(ImportInvalid, RecordInvalid):
            sent = dialect.to_provider(dialect.from_provider(content))
            if sent.content != before and not sent.losses and not says_nothing(before):
                dropped.append((before, sent.content))

    assert dropped == []


def says_nothing(content):
    """Whether a reply has neither words nor calls: no provider takes one, so it is not sent again."""
    return any(
        thing.get("role") == "assistant"
        and not thing.get("content")
        and not thing.get("tool_calls")
        for thing in objects_in(content)
    )


@pytest.mark.parametrize(
    ("role", "key", "value"),
    [
        ("user", "tool_calls", [{"id": "1", "type": "function", "function": {"name": "f"}}]),
        ("user", "tool_call_id", "1"),
        ("user", "refusal", "no"),
        ("system", "tool_calls", []),
        ("assistant", "tool_call_id", "1"),
        ("assistant", "name", None),
        ("tool", "tool_calls", [1]),
    ],
)
def test_a_key_that_says_nothing_in_its_role_is_kept_for_openai(role, key, value):
    """OpenAI's messages keep a key that another role's have, and no other provider is told of it."""
    message = {"role": role, "content": "a", key: value}
    before = []
    if role == "tool":
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        before = [{"role": "assistant", "content": None, "tool_calls": [call]}]
        message["tool_call_id"] = "1"
    neutral = dialects.named("openai").from_provider([*before, message])

    assert dialects.named("openai").to_provider(neutral).content == [*before, message]
    plain = dialects.named("openai").from_provider([*before, {**message, key: None}])
    for other in NAMES[1:]:
        told = dialects.named(other)
        assert told.to_provider(neutral).content == told.to_provider(plain).content


def test_what_stands_beside_anthropics_results_comes_back():
    """A key of a user's message that holds results goes back with it, also where another message is joined to it."""
    calls = [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ("a", "b")]
    result = {"type": "tool_result", "content": "r"}
    said = {"role": "user", "content": [{**result, "tool_use_id": "a"}], "x": 1}
    more = {"role": "user", "content": [{**result, "tool_use_id": "b"}], "y": 2}
    first = [{"role": "user", "content": "q"}, {"role": "assistant", "content": calls}]
    dialect = dialects.named("anthropic")

    sent = dialect.to_provider(dialect.from_provider([*first, said, more]))

    joined = {**said, **more, "content": [*said["content"], *more["content"]]}
    assert sent.content["messages"] == [*first, joined]
    assert sent.losses == ()


@pytest.mark.parametrize("other", NAMES)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_one_provider_goes_to_another(name, other):
    """No signature, encrypted reasoning, cache mark or item id of one provider is sent to another."""
    for content in provider_examples.OF[name].values():
        sent = dialects.named(other).to_provider(dialects.named(name).from_provider(content))
        text = json.dumps(sent.content)
        if other != name:
            assert not [secret for secret in provider_examples.SECRETS if secret in text]


# -- neutral messages ------------------------------------------------------------------------------

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
texts = st.builds(lambda text: {"type": "text", "content": text}, words)
said_texts = texts.filter(lambda part: part["content"])
images = st.sampled_from(
    [
        {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": PNG},
        {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
    ]
)
pdfs = st.just({"type": "uri", "modality": "document", "mime_type": "application/pdf", "uri": PDF})
objects = st.dictionaries(
    words, st.none() | st.booleans() | st.integers(-99, 99) | words, max_size=3
)


def file_names(name):
    named = st.just({"type": "file", "modality": "document", "file_id": "file-1"})
    return st.nothing() if name == "pydantic-ai" else named


@st.composite
def conversations(draw, name):
    """Messages of which a dialect can say everything."""
    out = []
    if draw(st.booleans()):
        out.append({"role": "system", "parts": draw(st.lists(said_texts, min_size=1, max_size=1))})
    for turn in range(draw(st.integers(1, 3))):
        asked = said_texts | images | pdfs | file_names(name)
        out.append({"role": "user", "parts": draw(st.lists(asked, min_size=1, max_size=3))})
        ids = [f"call_{turn}_{k}" for k in range(draw(st.integers(0, 3)))]
        said = draw(st.lists(said_texts, max_size=1))
        calls = [
            {"type": "tool_call", "id": id, "name": "look_up", "arguments": draw(objects)}
            for id in ids
        ]
        if calls or said:
            out.append({"role": "assistant", "parts": [*said, *calls]})
        for id in draw(st.permutations(ids)):
            part = {"type": "tool_call_response", "id": id, "response": draw(words)}
            out.append({"role": "tool", "parts": [part, *draw(st.lists(beside(name), max_size=1))]})
        if ids:
            out.append({"role": "assistant", "parts": [draw(said_texts)]})
    return out


def beside(name):
    return {"openai": texts, "pydantic-ai": images}.get(name, texts | images)


@given(st.data())
@pytest.mark.parametrize("name", NAMES)
def test_what_a_format_covers_comes_back_equal(name, data):
    """Text, media, calls and results survive a way through each provider's form, without loss."""
    messages = data.draw(conversations(name))

    back, losses = there_and_back(name, messages, strict=True)

    assert losses == ()
    assert flat(back) == flat(messages)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=5,
)
parts = st.one_of(
    texts,
    images,
    pdfs,
    st.builds(lambda t: {"type": "reasoning", "content": t}, words),
    st.builds(
        lambda id, name, given: {"type": "tool_call", "id": id, "name": name, "arguments": given},
        st.sampled_from(["a", "b", "c:1", "", "x" * 70]),
        st.sampled_from(["f", "web.run", ""]),
        anything,
    ),
    st.just({"type": "uri", "modality": "audio", "mime_type": "audio/wav", "uri": WAV}),
    st.just({"type": "uri", "modality": "video", "uri": "https://example.org/v.mp4"}),
    st.just({"type": "elsewhere:thing", "content": {"type": "thing"}}),
)
results = st.builds(
    lambda id, response: {"type": "tool_call_response", "id": id, "response": response},
    st.sampled_from(["a", "b", "c:1", "", "x" * 70]),
    anything,
)


@st.composite
def any_messages(draw):
    out = []
    for role in draw(
        st.lists(st.sampled_from(["system", "developer", "user", "assistant", "tool"]), max_size=7)
    ):
        said = draw(st.lists(parts, max_size=3))
        if role != "assistant":
            said = [p for p in said if p["type"] not in ("reasoning", "tool_call")]
        said = said or ([] if role == "assistant" else [{"type": "text", "content": "x"}])
        out.append({"role": role, "parts": [draw(results), *said] if role == "tool" else said})
    return out


def pairs(name, content):
    """Of each dialect: calls, results, in order, as ("call" | "result", id), and breaks between."""
    out = []
    if name == "openai":
        for m in content:
            out += [("call", c["id"]) for c in m.get("tool_calls") or []]
            out.append(("result", m["tool_call_id"]) if m["role"] == "tool" else (m["role"], None))
    elif name == "openai-responses":
        kinds = {"function_call": "call", "function_call_output": "result"}
        out = [(kinds.get(i.get("type"), i.get("role")), i.get("call_id")) for i in content]
    elif name == "anthropic":
        for m in content["messages"]:
            for b in m["content"] if isinstance(m["content"], list) else [{}]:
                kinds = {"tool_use": "call", "tool_result": "result"}
                out.append((kinds.get(b.get("type"), m["role"]), b.get("id", b.get("tool_use_id"))))
    else:
        kinds = {"tool-call": "call", "tool-return": "result"}
        for m in content:
            role = "assistant" if m["kind"] == "response" else "user"
            out += [(kinds.get(p["part_kind"], role), p.get("tool_call_id")) for p in m["parts"]]
    return out


@given(any_messages())
@pytest.mark.parametrize("name", NAMES)
def test_calls_and_results_are_sent_in_pairs(name, messages):
    """Whatever is given, each call sent has its one result behind it before anybody else speaks."""
    open_calls = []
    for kind, id in pairs(name, dialects.named(name).to_provider(messages).content):
        if kind == "call":
            assert id not in open_calls
            open_calls.append(id)
        elif kind == "result":
            assert id in open_calls
            open_calls.remove(id)
        elif kind != "assistant":
            assert open_calls == []
    assert open_calls == []


@given(any_messages())
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_in_silence(name, messages):
    """Every text is sent, or a loss names its place; a strict conversion refuses exactly when there is a loss."""
    sent = dialects.named(name).to_provider(messages)
    lost = {loss.path for loss in sent.losses}
    again = dialects.named(name).from_provider(json.loads(json.dumps(sent.content)))
    found = [part["content"] for _, part in flat(again) if part["type"] in ("text", "reasoning")]
    for i, message in enumerate(messages):
        beside_lost = any(path.startswith(f"messages[{i}]") for path in lost)
        for part in message["parts"]:
            if (
                part["type"] in ("text", "reasoning")
                and not beside_lost
                and message["role"] != "tool"
            ):
                assert part["content"] in [*found, ""]
    if lost:
        with pytest.raises(MessagesLossy):
            dialects.named(name).to_provider(messages, strict=True)
    else:
        assert dialects.named(name).to_provider(messages, strict=True) == sent


@given(any_messages())
@pytest.mark.parametrize("name", NAMES)
def test_what_was_sent_once_is_sent_the_same_again(name, messages):
    """What came out of a dialect goes through it unchanged, and nothing more is lost: results that nobody gave
    are put in anew."""
    first = dialects.named(name).to_provider(messages)

    again = dialects.named(name).to_provider(dialects.named(name).from_provider(first.content))

    put_in = [loss for loss in first.losses if "put in" in loss.reason]
    assert len(again.losses) == len(put_in)
    assert all("put in" in loss.reason for loss in again.losses)
    assert again.content == first.content


@given(any_messages())
@pytest.mark.parametrize("name", NAMES)
def test_what_is_put_in_is_taken_out(name, messages):
    """No result that a dialect put in is read again as somebody's."""
    sent = dialects.named(name).to_provider(messages)

    again = dialects.named(name).from_provider(json.loads(json.dumps(sent.content)))

    results = [part for _, part in flat(again) if part["type"] == "tool_call_response"]
    assert MISSING not in [part["response"] for part in results]
    calls = [part for _, part in flat(again) if part["type"] == "tool_call"]
    put_in = [loss for loss in sent.losses if "put in" in loss.reason]
    assert len(results) == len(calls) - len(put_in)


keys = st.sampled_from(
    [
        "as",
        "without",
        "item",
        "block",
        "part",
        "request",
        "type",
        "content",
        "signature",
        "function",
    ]
)
strange = st.dictionaries(
    keys,
    st.sampled_from(
        ["same", "list", "one", "joined", "refusal", "custom", [], ["content"], {}, 1, None]
    )
    | st.dictionaries(keys, st.sampled_from(["x", 1, [], {}, None]), max_size=2),
    max_size=3,
)


@given(st.data(), any_messages())
@pytest.mark.parametrize("name", NAMES)
def test_whatever_stands_beside_is_borne(name, data, messages):
    """What another writer left under `only` may make a message odd, but breaks nothing; nothing given is changed."""
    messages = copy.deepcopy(messages)
    for thing in [*messages, *(part for message in messages for part in message["parts"])]:
        if data.draw(st.booleans()):
            thing["only"] = {name: data.draw(strange)}
    before = copy.deepcopy(messages)

    sent = dialects.named(name).to_provider(messages)

    assert messages == before
    assert sent == dialects.named(name).to_provider(messages)


@given(st.dictionaries(words, anything, max_size=4), st.dictionaries(words, anything, max_size=4))
def test_what_is_kept_beside_gives_the_object_again(raw, made):
    """Whatever was made of an object, what is beyond it laid over it is the object."""
    raw.pop("without", None)

    assert merged(made, beyond(raw, made)) == raw


# -- losses ----------------------------------------------------------------------------------------

AUDIO = {"type": "uri", "modality": "audio", "mime_type": "audio/wav", "uri": WAV}


@pytest.mark.parametrize(
    ("name", "role", "part", "reason"),
    [
        ("anthropic", "user", AUDIO, "an attached audio (audio/wav) cannot be said in anthropic"),
        (
            "openai-responses",
            "user",
            AUDIO,
            "an attached audio (audio/wav) cannot be said in openai-responses",
        ),
        (
            "anthropic",
            "user",
            {"type": "uri", "modality": "video", "uri": "https://a.b/c"},
            "a video uri cannot be said in anthropic",
        ),
        (
            "openai",
            "system",
            AUDIO,
            "an attached audio (audio/wav) in what the system says cannot be said in openai; "
            "one that the user sends can",
        ),
        *(
            (
                name,
                "assistant",
                {"type": "uri", "modality": "image", "uri": "https://a.b/c.png"},
                f"an image uri in an answer cannot be said in {name}; one that the user sends can",
            )
            for name in NAMES
        ),
        (
            "openai",
            "assistant",
            {"type": "reasoning", "content": "hm"},
            "a reasoning cannot be said in openai",
        ),
        (
            "anthropic",
            "assistant",
            {"type": "reasoning", "content": "hm"},
            "reasoning that was not signed here cannot be said",
        ),
        (
            "openai",
            "user",
            {"type": "x:y", "content": {}},
            "a part of type 'x:y' cannot be said in openai",
        ),
        (
            "pydantic-ai",
            "user",
            {"type": "file", "modality": "image", "file_id": "f"},
            "an image file cannot be said in pydantic-ai",
        ),
    ],
)
def test_a_loss_names_its_place(name, role, part, reason):
    """What a provider cannot be told is named with its place; strict refuses with the same words."""
    said = {"type": "text", "content": "listen"}
    messages = [{"role": "user", "parts": [said]}, {"role": role, "parts": [said, part]}]

    sent = dialects.named(name).to_provider(messages)

    assert sent.losses == (("messages[1].parts[1]", reason),)
    with pytest.raises(MessagesLossy) as caught:
        dialects.named(name).to_provider(messages, strict=True)
    assert caught.value.losses == (f"messages[1].parts[1]: {reason}",)
    assert f"messages[1].parts[1]: {reason}" in str(caught.value)


def test_an_attachment_in_a_tools_result_is_named_as_one():
    """Where a provider takes a document from the user alone, the loss says what it is, where it stands, and that."""
    file = "data:application/pdf;base64,JVBERg=="
    pdf = {"type": "uri", "modality": "document", "mime_type": "application/pdf", "uri": file}
    call = {"type": "tool_call", "id": "a", "name": "get", "arguments": {}}
    gave = {"type": "tool_call_response", "id": "a", "response": "[r.pdf]"}
    messages = [
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [gave, pdf]},
    ]

    (loss,) = dialects.named("openai").to_provider(messages).losses

    assert loss == (
        "messages[1].parts[1]",
        "an attached document (application/pdf) in a tool's result cannot be said in openai; "
        "one that the user sends can",
    )
    assert not dialects.named("openai").to_provider([{"role": "user", "parts": [pdf]}]).losses


def test_an_attachment_is_sent_when_its_bytes_are_at_hand():
    """A blob is sent as data by its bytes; without them it is a loss."""
    came = [
        {
            "role": "user",
            "parts": [{"type": "uri", "modality": "image", "mime_type": "image/png", "uri": PNG}],
        }
    ]
    messages, blobs = dialects.outlined(came)

    assert messages[0]["parts"][0]["type"] == "blob"
    assert [len(data) for data in blobs.values()] == [8]
    for name in NAMES:
        back, losses = there_and_back(name, messages, read=blobs.get)
        assert (flat(back), losses) == (flat(came), ())
        assert "bytes" in dialects.named(name).to_provider(messages).losses[0].reason


# -- calls and results -----------------------------------------------------------------------------


def call(id, name="f"):
    return {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": id, "name": name, "arguments": {}}],
    }


def result(id, response="ok"):
    return {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": id, "response": response}],
    }


def user(text="hi"):
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


@pytest.mark.parametrize(
    ("messages", "losses"),
    [
        ([user(), call("a")], [("messages[1].parts[0]", "has no result")]),
        ([user(), result("a"), user()], [("messages[1].parts[0]", "has no call")]),
        ([call("a"), user(), result("a")], [("messages[2].parts[0]", "is moved")]),
        ([call("a"), result("a"), result("a")], [("messages[2].parts[0]", "has no call")]),
        ([call("a"), call("a"), result("a"), result("a")], []),
        ([call("a"), user(), call("a"), result("a")], [("messages[0].parts[0]", "has no result")]),
        ([call("a"), result("a"), call("a"), result("a")], []),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_what_stands_unpaired_is_mended_and_told(name, messages, losses):
    """A missing result is put in, a stray one left out, a far one moved, each told with its place."""
    sent = dialects.named(name).to_provider(messages)

    assert [(path, reason) for path, reason in sent.losses] == [
        (path, next(r for p, r in sent.losses if p == path and words in r))
        for path, words in losses
    ]


def test_ids_that_anthropic_refuses_are_respelled_the_same_each_time():
    """An id outside a provider's letters becomes one inside them, for call and result, always the same."""
    messages = [call("fc:1|x"), result("fc:1|x"), call("fc:1|x"), result("fc:1|x")]

    sent = dialects.named("anthropic").to_provider(messages).content["messages"]

    ids = [m["content"][0].get("id", m["content"][0].get("tool_use_id")) for m in sent]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert ids == ["fc_1_x_" + ids[0][-16:]] * 2 + ["fc_1_x_" + ids[2][-16:]] * 2
    assert sent == dialects.named("anthropic").to_provider(messages).content["messages"]


def test_long_ids_fit_openai():
    """Chat Completions takes ids of 40 characters, Responses of 64."""
    messages = [call("i" * 65), result("i" * 65)]

    chat = dialects.named("openai").to_provider(messages).content
    items = dialects.named("openai-responses").to_provider(messages).content

    assert len(chat[0]["tool_calls"][0]["id"]) <= 40
    assert chat[0]["tool_calls"][0]["id"] == chat[1]["tool_call_id"]
    assert len(items[0]["call_id"]) <= 64
    assert items[0]["call_id"] == items[1]["call_id"]
    assert "id" not in items[0]


def test_a_tools_name_is_respelled_and_told():
    """A tool's name with a dot is taken by no provider: it is respelled, and that is a loss."""
    sent = dialects.named("openai").to_provider([call("a", "web.run"), result("a")])

    assert sent.content[0]["tool_calls"][0]["function"]["name"] == "web_run"
    assert [loss.path for loss in sent.losses] == ["messages[0].parts[0]"]


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("openai", {"role": "user"}, "messages"),
        ("openai", [{"role": "robot", "content": "x"}], "messages[0]"),
        ("openai", [{"role": "user", "content": ["x"]}], "messages[0].content[0]"),
        ("openai", [{"role": "tool", "content": "x"}], "messages[0]"),
        (
            "openai",
            [{"role": "assistant", "tool_calls": [{"id": "a"}]}],
            "messages[0].tool_calls[0].function",
        ),
        ("openai-responses", [{"role": "robot", "content": "x"}], "input[0]"),
        ("openai-responses", [{"type": "function_call", "call_id": "c"}], "input[0]"),
        ("anthropic", {"messages": [{"role": "tool", "content": "x"}]}, "messages[0]"),
        ("anthropic", {"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ("pydantic-ai", [{"kind": "neither"}], "messages[0]"),
        ("pydantic-ai", [{"kind": "request", "parts": {}}], "messages[0].parts"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(name, content, where):
    """What is not of a provider's form is refused, and the refusal names the place."""
    with pytest.raises(ImportInvalid) as caught:
        dialects.named(name).from_provider(content)
    assert caught.value.source == where


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_neutral_is_refused(name):
    """Messages that their role may not say are refused before anything is made of them."""
    with pytest.raises(RecordInvalid) as caught:
        dialects.named(name).to_provider([user(), {"role": "user", "parts": call("a")["parts"]}])
    assert caught.value.path == "messages[1].parts[0]"


def test_an_unknown_name_is_refused():
    """A name that no dialect has is refused with those that there are."""
    with pytest.raises(ValueError, match="known: openai, openai-responses, anthropic, pydantic-ai"):
        dialects.named("morse")


# -- the page --------------------------------------------------------------------------------------


def test_the_page_tells_every_dialect():
    """docs/reference/dialects.md has every dialect's name, and every limit of its ids."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "dialects.md").read_text("utf-8")
    for dialect in dialects.DIALECTS.values():
        assert f"`{dialect.name}`" in page
