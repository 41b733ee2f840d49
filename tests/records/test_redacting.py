"""What of a record is content, and that no text of it is missed."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import RecordInvalid
from ledger.records import kinds, redacting
from ledger.records.event_format import is_event
from tests.records import event_examples

CONTENT = {
    *("inputs", "settings", "messages", "source", "outputs", "value", "error", "partial", "input"),
    *("output", "output_value", "response", "approvals", "by", "reason", "data", "lmcc", "tools"),
    *("interface", "text", "question"),
}
"""Every key that records and events hold content under."""


def test_every_key_of_a_record_is_one_or_the_other():
    """A key that records gain is content until somebody says that it is structure; this names it."""
    known = {
        field.name
        for kind in kinds.KnownKind.__args__
        for field in msgspec.structs.fields(kind)
        if field.name != "functai_conversation"
    }
    assert known - redacting.STRUCTURE <= CONTENT


def test_every_key_of_an_event_is_one_or_the_other():
    """The same of events."""
    known = {key for event in event_examples.EXAMPLES for key in event} - {"anything"}
    assert known - redacting.STRUCTURE <= CONTENT


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)
)


def leaves_of(value):
    """All texts of a value that are no keys."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in leaves_of(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in leaves_of(inner)]
    return [value] if isinstance(value, str) else []


@given(values)
def test_every_text_is_redacted_and_nothing_else(value):
    """Each text is what the function makes of it, in its place; keys, numbers and shapes stay."""
    made = redacting.texts(value, lambda text: f"<{text}>", "value")

    assert leaves_of(made) == [f"<{text}>" for text in leaves_of(value)]
    assert redacting.texts(made, lambda text: text[1:-1], "value") == value


def test_what_says_how_to_read_a_message_stays():
    """Roles, types, ids, media types and bytes of a message stay; what it says is redacted, in every form of it."""
    data = "data:image/png;base64,iVBORw0KGgo="
    said = {
        "role": "assistant",
        "finish_reason": "stop",
        "name": "x",
        "only": {"openai": {"audio": {"transcript": "x"}}},
        "parts": [
            {"type": "text", "content": "x", "only": {"openai": {"y": "x"}}},
            {"type": "tool_call", "id": "x", "name": "x", "arguments": {"x": "x"}},
            {"type": "uri", "modality": "image", "uri": data},
            {"type": "uri", "modality": "image", "uri": "x"},
            {
                "type": "blob",
                "modality": "image",
                "mime_type": "x",
                "content": {"$attachment": {"sha256": "x", "media_type": "x", "name": "x"}},
            },
            {"type": "later", "content": ["x"]},
        ],
    }
    assert redacting.record({"kind": "turn", "messages": [said]}, lambda text: "-")["messages"] == [
        {
            "role": "assistant",
            "finish_reason": "stop",
            "name": "-",
            "only": {"openai": {"audio": {"transcript": "-"}}},
            "parts": [
                {"type": "text", "content": "-", "only": {"openai": {"y": "-"}}},
                {"type": "tool_call", "id": "x", "name": "x", "arguments": {"x": "-"}},
                {"type": "uri", "modality": "image", "uri": data},
                {"type": "uri", "modality": "image", "uri": "-"},
                {
                    "type": "blob",
                    "modality": "image",
                    "mime_type": "x",
                    "content": {"$attachment": {"sha256": "x", "media_type": "x", "name": "-"}},
                },
                {"type": "later", "content": ["-"]},
            ],
        }
    ]


def test_a_tools_output_is_the_text_of_its_redacted_value():
    """Where an output is no text, its text is made anew: a function that knows whole texts misses none in it."""
    made = redacting.record(
        {"kind": "tool", "output": '{"a":"x"}', "output_value": {"a": "x"}},
        lambda text: "-" if text == "x" else text,
    )
    assert made == {"kind": "tool", "output": '{"a":"-"}', "output_value": {"a": "-"}}


def test_a_summary_keeps_the_turns_it_stands_for():
    """The text of a summary is content, the ids that it names are not; another's entry is content throughout."""
    data = {"turns": ["x"], "text": "x", "made_by": {"name": "x"}}
    entry = {"kind": "entry", "plugin": "ledger", "entry": "summary", "data": data}

    assert redacting.record(entry, lambda text: "-")["data"] == {**data, "text": "-"}
    other = redacting.record({**entry, "plugin": "mine"}, lambda text: "-")["data"]
    assert other == {"turns": ["-"], "text": "-", "made_by": {"name": "-"}}


@pytest.mark.parametrize("broken", ["raises", "no text"])
def test_a_function_that_fails_is_told_by_the_place_alone(broken):
    """The refusal names the place and the type of what was raised, and carries nothing of the text with it."""

    def redact(text):
        if broken == "raises":
            raise ValueError(text)
        return len(text)

    with pytest.raises(RecordInvalid) as caught:
        redacting.record({"kind": "turn", "inputs": {"a": [1, "secret"]}}, redact)

    assert caught.value.path == "inputs.a[1]"
    assert "secret" not in str(caught.value)
    follows = caught.value.__context__  # What the test itself is run in may be one.
    while follows is not None:
        assert "secret" not in str(follows)
        follows = follows.__context__


def test_how_a_turn_ended_is_recorded_all_the_same():
    """Of an end without an answer what cannot be redacted is left out, and the rest stays."""

    def redact(text):
        raise ValueError(text)

    ended = {"kind": "ended", "state": "failed", "partial": "x", "usage": {"t": 1}}
    error = {"type": "ValueError", "message": "x"}
    assert redacting.record({**ended, "error": error}, redact) == {
        "kind": "ended",
        "state": "failed",
        "usage": {"t": 1},
        "error": {"type": "ValueError"},
    }
    with pytest.raises(RecordInvalid):
        redacting.record({"kind": "ended", "state": "done", "value": "x"}, redact)


def test_several_are_applied_in_order():
    """A list of functions is applied in order; what is no function of a text is refused."""
    both = redacting.of([lambda text: text + "a", lambda text: text + "b"])
    assert both is not None
    assert both("x") == "xab"
    assert redacting.of(None) is None
    for wrong in ("mask", [1], 7):
        with pytest.raises(TypeError, match="redact"):
            redacting.of(wrong)


def test_events_stay_events():
    """What is redacted of any event is an event still."""
    for event in event_examples.EXAMPLES:
        assert is_event(redacting.event(event, lambda text: text + "-"))


def test_errors_within_an_error():
    """What a group holds, and the lines of a refusal, are content, but for the names of their classes and kinds."""
    inner = {"type": "ValueError", "module": "builtins", "message": "secret"}
    lines = [
        {"type": "int_parsing", "loc": ["secret"], "input": "secret", "ctx": {"error": "secret"}}
    ]
    error = {
        "type": "secret.G",
        "module": "secret",
        "message": "secret",
        "errors": [{**inner, "errors": [inner]}],
    }
    said = kinds.new(
        "tool",
        "2026-01-01T00:00:00.000000Z",
        turn="t",
        error=error | {"title": "secret", "lines": lines},
    )
    found = redacting.record(said, lambda text: text.replace("secret", "***"))["error"]

    clean = {**inner, "message": "***"}
    assert found == {
        "type": "secret.G",
        "module": "secret",
        "message": "***",
        "title": "***",
        "errors": [{**clean, "errors": [clean]}],
        "lines": [{"type": "int_parsing", "loc": ["***"], "input": "***", "ctx": {"error": "***"}}],
    }
