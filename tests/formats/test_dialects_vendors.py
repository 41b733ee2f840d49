"""What the converters make is of the vendors' own types."""

import json

import pytest
from anthropic.types import MessageParam
from hypothesis import given
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic_ai.messages import ModelMessagesTypeAdapter

from ledger.formats import dialects
from tests.formats import provider_examples
from tests.formats.test_dialects import NAMES, any_messages
from tests.formats.typed_dicts import fits

TYPES = {
    "openai": ChatCompletionMessageParam,
    "openai-responses": ResponseInputItemParam,
    "anthropic": MessageParam,
}


def refused(name, messages):
    """Those of some messages that the vendor's own types do not take."""
    if name in TYPES:
        return [one for one in messages if not fits(one, TYPES[name])]
    ModelMessagesTypeAdapter.validate_json(json.dumps(messages))
    return []


def sent(name, messages):
    """What is sent, as JSON data; the part of it that a vendor's type is for."""
    content = json.loads(json.dumps(dialects.named(name).to_provider(messages).content))
    return content["messages"] if name == "anthropic" else content


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, content) for name in NAMES for content in provider_examples.OF[name].values()],
    ids=[f"{name}: {case}" for name in NAMES for case in provider_examples.OF[name]],
)
def test_our_examples_are_what_the_vendor_reads(name, content):
    """The examples that the other tests use are messages by the vendor's own types."""
    messages = content["messages"] if name == "anthropic" else content
    assert refused(name, messages) == []


@pytest.mark.parametrize("other", NAMES)
@pytest.mark.parametrize("name", NAMES)
def test_one_vendors_messages_are_read_by_each_other(name, other):
    """What came from one vendor is sent to each other as messages by that vendor's own types."""
    for content in provider_examples.OF[name].values():
        messages = dialects.named(name).from_provider(content)
        assert refused(other, sent(other, messages)) == []


@given(any_messages())
@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_said_is_read_by_the_vendor(name, messages):
    """Whatever neutral messages are given, what is sent is messages by the vendor's own types."""
    assert refused(name, sent(name, messages)) == []


@given(any_messages())
def test_pydantic_ais_own_writing_is_read_as_what_was_sent(messages):
    """pydantic-ai reads what is sent and writes it again; that says the same to us."""
    first = sent("pydantic-ai", messages)
    written = ModelMessagesTypeAdapter.dump_json(
        ModelMessagesTypeAdapter.validate_json(json.dumps(first))
    )
    dialect = dialects.named("pydantic-ai")

    back, again = dialect.from_provider(first), dialect.from_provider(json.loads(written))

    def told(said):
        kept = ("role", "type", "content", "id", "name", "arguments", "response", "uri")
        return [
            (m["role"], [{k: v for k, v in p.items() if k in kept} for p in m["parts"]])
            for m in said
        ]

    assert told(again) == told(back)
