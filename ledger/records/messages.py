"""Provider-neutral messages: the OpenTelemetry GenAI shape, checked and made.

A message is `{"role", "parts"}` with optional `name`, `finish_reason`, `only`; a part has a `type`.
Parts of a type that is not known here are kept as they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ledger.errors import RecordInvalid
from ledger.records.values import REFERENCE, is_reference, references_in, replaced

ROLES = ("system", "developer", "user", "assistant", "tool")
USER_SIDE = ("system", "developer", "user")

Message = dict[str, Any]


def text(role: str, content: str) -> Message:
    """Return a message of one text part."""
    return {"role": role, "parts": [{"type": "text", "content": content}]}


PARTS: dict[str, dict[str, type[Any]]] = {
    "text": {"content": str},
    "reasoning": {"content": str},
    "tool_call": {"id": str, "name": str, "arguments": object},
    "tool_call_response": {"id": str, "response": object},
    "blob": {"modality": str, "mime_type": str, "content": dict},
    "uri": {"modality": str, "uri": str},
    "file": {"modality": str, "file_id": str},
}
"""What a part of each known type has at least."""
_KINDS = {str: "text", dict: "a reference to an attachment", object: "a value"}
MODALITIES = ("image", "audio", "video", "document")
_MEDIA = {"blob", "uri", "file"}
_SAID = {"text"} | _MEDIA
ALLOWED: dict[str, set[str]] = {
    "system": _SAID,
    "developer": _SAID,
    "user": _SAID,
    "assistant": _SAID | {"reasoning", "tool_call"},
    "tool": _SAID | {"tool_call_response"},
}
"""Which known parts a message of each role may have; parts of unknown types may stand anywhere."""


def check(messages: Any, path: str = "messages") -> list[Message]:
    """Return a list of messages if each is one that its role may say.

    (1) A message has a known role and a list of parts; only an assistant's list may be empty.
    (2) A part has a type; one of a known type has that type's keys, and its role allows it.
    (3) What a tool says begins with a result, or with a part of an unknown type.
    (4) `name` and `finish_reason` are text, `only` holds an object per provider.
    Raises: record-invalid naming the message or part, `messages[3].parts[1]`.
    Not promised: that calls and results are paired.
    """
    if not isinstance(messages, list):
        raise RecordInvalid(path=path, reason=f"messages are a list, not {_type(messages)}")
    for i, message in enumerate(messages):
        _check_message(message, f"{path}[{i}]")
    return messages


def _check_message(message: Any, where: str) -> None:
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        raise RecordInvalid(path=where, reason=f"a message has a role: {', '.join(ROLES)}")
    role, parts = message["role"], message.get("parts")
    if not isinstance(parts, list):
        raise RecordInvalid(path=f"{where}.parts", reason="a message has a list of parts")
    if not parts and role != "assistant":
        raise RecordInvalid(path=f"{where}.parts", reason=f"a {role} message has at least one part")
    for j, part in enumerate(parts):
        _check_part(part, role, f"{where}.parts[{j}]")
    if role == "tool" and parts[0]["type"] in _SAID:
        raise RecordInvalid(
            path=f"{where}.parts[0]", reason="a tool message begins with a tool_call_response"
        )
    for key in ("name", "finish_reason"):
        if key in message and not isinstance(message[key], str):
            raise RecordInvalid(path=f"{where}.{key}", reason=f"{key} is text")
    _check_only(message, where)


def _check_part(part: Any, role: str, where: str) -> None:
    if not _is_part(part):
        raise RecordInvalid(path=where, reason="a part has a type")
    kind = part["type"]
    _check_only(part, where)
    if kind not in PARTS:
        return
    if kind not in ALLOWED[role]:
        raise RecordInvalid(path=where, reason=f"a {role} message has no part of type {kind}")
    for key, expected in PARTS[kind].items():
        if key not in part or not isinstance(part[key], expected):
            what = _KINDS[expected]
            raise RecordInvalid(path=f"{where}.{key}", reason=f"`{key}` of a {kind} is {what}")
    if kind == "blob" and REFERENCE not in part["content"]:
        raise RecordInvalid(path=f"{where}.content", reason="`content` names an attachment")
    if kind in _MEDIA and part["modality"] not in MODALITIES:
        reason = f"a modality is one of {', '.join(MODALITIES)}"
        raise RecordInvalid(path=f"{where}.modality", reason=reason)
    if not isinstance(part.get("mime_type", ""), str):
        raise RecordInvalid(path=f"{where}.mime_type", reason="`mime_type` is text")


def _check_only(thing: dict[str, Any], where: str) -> None:
    only = thing.get("only", {})
    if not isinstance(only, dict) or not all(isinstance(own, dict) for own in only.values()):
        raise RecordInvalid(path=f"{where}.only", reason="`only` has an object for each provider")


def check_user_side(messages: Any, path: str = "messages") -> list[Message]:
    """Return the user side of a turn if it is one: what was said to the model, and nothing it said.

    (1) As `check`. (2) Each message is a system's, a developer's or a user's. (3) One is a user's.
    Raises: record-invalid naming the message or part.
    """
    for i, message in enumerate(check(messages, path)):
        if message["role"] not in USER_SIDE:
            reason = f"what is sent is said by {', '.join(USER_SIDE)}, not by {message['role']}"
            raise RecordInvalid(path=f"{path}[{i}].role", reason=reason)
    if not any(message["role"] == "user" for message in messages):
        raise RecordInvalid(path=path, reason="at least one message is a user's")
    return list(messages)


def check_answer_side(messages: Any, path: str = "messages") -> list[Message]:
    """Return what came after the user side, if it begins as that does: with the model's words.

    (1) As `check`. (2) The first message is the assistant's. Raises: record-invalid naming the message or part.
    """
    checked = check(messages, path)
    if checked and checked[0]["role"] != "assistant":
        reason = "what comes after the user side begins with the assistant"
        raise RecordInvalid(path=f"{path}[0].role", reason=reason)
    return checked


def readable(value: Any) -> list[Message] | None:
    """Return what can be read as messages of a recorded list; None when it is no list.

    What another writer left that is no message, or no part of one, is passed over.
    """
    if not isinstance(value, list):
        return None
    return [
        {**message, "parts": [part for part in message["parts"] if _is_part(part)]}
        for message in value
        if isinstance(message, dict)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("parts"), list)
    ]


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)


def split(messages: list[Message]) -> tuple[list[Message], list[Message]]:
    """Return the user side (all before the first assistant or tool message) and the rest."""
    for i, message in enumerate(messages):
        if message["role"] not in USER_SIDE:
            return messages[:i], messages[i:]
    return messages, []


def modality_of(media_type: str) -> str:
    """Return what kind of thing a media type is: `image`, `audio`, `video`, else `document`."""
    kind = media_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"


def blob(reference: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a reference to an attachment."""
    mime_type = reference[REFERENCE]["media_type"]
    modality = modality_of(mime_type)
    return {"type": "blob", "modality": modality, "mime_type": mime_type, "content": reference}


EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values of an input that say nothing."""


def from_inputs(inputs: dict[str, Any]) -> list[Message]:
    """Return the user side of a turn that recorded none: its inputs in order.

    (1) What is empty (null, "", [], {}) is left out, unless all are: then the first stands. (2) Where several have
    a text, each input begins with its name. (3) Else the text stands alone, and what is attachments only begins with
    its name where there are several such.
    """
    if not inputs:
        return []
    given = {name: _parts(value) for name, value in inputs.items() if value not in EMPTY}
    given = given or {"": _parts(next(iter(inputs.values())))}
    read = {name for name, parts in given.items() if any(part["type"] == "text" for part in parts)}
    named = set(given) if len(read) > 1 else set(given) - read
    if len(named) > 1:
        labelled = (_labelled(n, said) if n in named else said for n, said in given.items())
        return [{"role": "user", "parts": [part for said in labelled for part in said]}]
    return [{"role": "user", "parts": [part for said in given.values() for part in said]}]


def from_result(result: Any) -> list[Message]:
    """Return the assistant side of a turn that recorded none: its answer, as JSON has it."""
    return [{"role": "assistant", "parts": _parts(result)}]


def _parts(value: Any) -> list[dict[str, Any]]:
    """Return a value as parts: text and attachments in their order, anything else as JSON.

    Attachments deeper inside come after the JSON that names them.
    """
    if is_reference(value):
        return [blob(value)]
    if type(value) is list and any(map(is_reference, value)):
        return [part for item in value for part in _parts(item)]
    if type(value) is list and value and all(isinstance(item, str) for item in value):
        return [{"type": "text", "content": item} for item in value]
    shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return [{"type": "text", "content": shown}, *map(blob, references_in(value))]


def _labelled(name: str, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of one of several inputs, its name before them."""
    first, *rest = parts
    if first["type"] != "text":
        return [{"type": "text", "content": f"{name}:"}, *parts]
    return [{**first, "content": f"{name}: {first['content']}"}, *rest]


# -- tool rounds -----------------------------------------------------------------------------------


class Called(NamedTuple):
    """A tool call that gave something."""

    id: str
    name: str
    input: Any
    output: Any


def round_of(calls: Sequence[Called]) -> list[Message]:
    """Return a tool round: a reply of the assistant that makes these calls, and their results."""
    made = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.input}
        for call in calls
    ]
    return [{"role": "assistant", "parts": made}, *(_result(c.id, c.output) for c in calls)]


def answered(messages: Sequence[Message], calls: Iterable[Called]) -> list[Message]:
    """Return messages in which each call without a result has what a tool gave under its id, if one did.

    A result is put behind the reply that called, and behind the results that stand there. Of several calls
    under one id, each has its own, in order.
    """
    known: dict[str, deque[Any]] = {}
    for call in calls:
        known.setdefault(call.id, deque()).append(call.output)
    out: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] != "tool":
            out += _given(waiting, known)
            waiting = []
        for part in message["parts"]:
            if part["type"] == "tool_call":
                waiting.append(part["id"])
            elif part["type"] == "tool_call_response" and part["id"] in waiting:
                waiting.remove(part["id"])
                list(_given([part["id"]], known))
        out.append(message)
    return [*out, *_given(waiting, known)]


def _given(ids: Iterable[str], known: dict[str, deque[Any]]) -> Iterator[Message]:
    """Yield the results that are known of calls, each taken once."""
    for id in ids:
        if known.get(id):
            yield _result(id, known[id].popleft())


def called(messages: Iterable[Message]) -> list[Called]:
    """Return the tool calls that have a result, in the order of the results; what is none is passed over."""
    made: dict[str, deque[dict[str, Any]]] = {}
    found = []
    for part in (part for message in messages for part in message["parts"]):
        id = part.get("id")
        if not isinstance(id, str):
            continue
        if part["type"] == "tool_call":
            made.setdefault(id, deque()).append(part)
        elif part["type"] == "tool_call_response" and made.get(id):
            call = made[id].popleft()
            said = str(call.get("name", "")), call.get("arguments"), part.get("response")
            found.append(Called(id, *said))
    return found


def without_rounds(messages: Sequence[Message]) -> list[Message]:
    """Return what was said after the last tool round; a round never goes in part."""
    last = max((i for i, message in enumerate(messages) if _in_round(message)), default=-1)
    return list(messages[last + 1 :])


def has_rounds(messages: Iterable[Message]) -> bool:
    """Say whether tools were called."""
    return any(map(_in_round, messages))


def _in_round(message: Message) -> bool:
    calls = any(part["type"] == "tool_call" for part in message["parts"])
    return bool(message["role"] == "tool" or calls)


def _result(id: str, output: Any) -> Message:
    response = {"type": "tool_call_response", "id": id, "response": replaced(output, _named)}
    return {"role": "tool", "parts": [response, *map(blob, references_in(output))]}


def _named(reference: dict[str, Any]) -> str:
    """Return what stands in a result for bytes that come behind it."""
    named = reference[REFERENCE]
    return f"[{named.get('name') or named['media_type']}]"


def _type(value: Any) -> str:
    return type(value).__name__
