"""Neutral messages: what each role may say, and where it is told that it may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import RecordInvalid
from ledger.records import messages

TEXT = {"type": "text", "content": "hi"}
CALL = {"type": "tool_call", "id": "1", "name": "f", "arguments": {}}
RESULT = {"type": "tool_call_response", "id": "1", "response": None}
THOUGHT = {"type": "reasoning", "content": ""}
IMAGE = {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"}
FILE = {"type": "file", "modality": "document", "file_id": "f"}
BLOB = {
    "type": "blob",
    "modality": "audio",
    "mime_type": "audio/wav",
    "content": {"$attachment": {"sha256": "0" * 64}},
}
OTHER = {"type": "some:thing"}
SAID = [TEXT, IMAGE, FILE, BLOB, OTHER]
ALL = [*SAID, THOUGHT, CALL, RESULT]

# Written out, not derived: what each role may say.
MAY = {
    "system": SAID,
    "developer": SAID,
    "user": SAID,
    "assistant": [*SAID, THOUGHT, CALL],
    "tool": [*SAID, RESULT],
}


def said(role, *parts):
    return {"role": role, "parts": [RESULT, *parts] if role == "tool" else list(parts)}


def refused(given):
    with pytest.raises(RecordInvalid) as caught:
        messages.check(given)
    return caught.value.path, caught.value.reason


@pytest.mark.parametrize("role", MAY)
def test_each_role_says_what_it_may(role):
    """A message of a role may have the parts of that role, and parts of unknown types."""
    given = [said(role, *MAY[role])]

    assert messages.check(given) is given


@pytest.mark.parametrize(
    ("role", "part"), [(role, part) for role in MAY for part in ALL if part not in MAY[role]]
)
def test_no_role_says_what_it_may_not(role, part):
    """A part that a role may not say is refused at its place: no tool call is a user's."""
    kind = part["type"]

    path, reason = refused([said("user", TEXT), said(role, TEXT, part)])

    assert path == f"messages[1].parts[{2 if role == 'tool' else 1}]"
    assert reason == f"a {role} message has no part of type {kind}"


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (None, "messages[0]"),
        ({"role": "robot", "parts": [TEXT]}, "messages[0]"),
        ({"role": ["user"], "parts": [TEXT]}, "messages[0]"),
        ({"role": "user"}, "messages[0].parts"),
        ({"role": "user", "parts": []}, "messages[0].parts"),
        ({"role": "system", "parts": []}, "messages[0].parts"),
        ({"role": "tool", "parts": []}, "messages[0].parts"),
        ({"role": "user", "parts": ["hi"]}, "messages[0].parts[0]"),
        ({"role": "user", "parts": [TEXT, {"content": "hi"}]}, "messages[0].parts[1]"),
        ({"role": "tool", "parts": [TEXT]}, "messages[0].parts[0]"),
        (said("user", {"type": "text"}), "messages[0].parts[0].content"),
        (said("user", {"type": "text", "content": None}), "messages[0].parts[0].content"),
        (said("assistant", CALL | {"id": 1}), "messages[0].parts[0].id"),
        (said("assistant", {"type": "tool_call", "id": "1"}), "messages[0].parts[0].name"),
        (said("user", IMAGE | {"modality": "smell"}), "messages[0].parts[0].modality"),
        (said("user", IMAGE | {"mime_type": 3}), "messages[0].parts[0].mime_type"),
        (said("user", BLOB | {"content": "aGk="}), "messages[0].parts[0].content"),
        (said("user", BLOB | {"content": {"url": "x"}}), "messages[0].parts[0].content"),
        (said("user", TEXT | {"only": []}), "messages[0].parts[0].only"),
        (said("user", TEXT | {"only": {"openai": 1}}), "messages[0].parts[0].only"),
        (said("user", TEXT) | {"only": {"openai": 1}}, "messages[0].only"),
        (said("user", TEXT) | {"name": 1}, "messages[0].name"),
        (said("assistant", TEXT) | {"finish_reason": 1}, "messages[0].finish_reason"),
    ],
)
def test_what_is_no_message_is_refused_at_its_place(message, path):
    """What is no message, or no part of one, is refused with the path of what is wrong."""
    assert refused([message])[0] == path


def test_an_assistant_may_say_nothing():
    """A model may answer with nothing; a message of another role says something."""
    assert messages.check([said("assistant")])


@given(
    st.recursive(
        st.none() | st.text() | st.sampled_from([*ALL, "user"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["role", "parts", "type", "content", "only", "name"]),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_nothing_else_is_raised(given):
    """Whatever is given is returned as it is, or refused as no message; nothing else happens."""
    path = "messages"
    try:
        found = messages.check(given)
    except RecordInvalid as error:
        path, found = error.path, given

    assert found is given
    assert path.startswith("messages")
