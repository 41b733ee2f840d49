"""Provider-neutral messages: the OpenTelemetry GenAI shape, checked and made.

A message is `{"role", "parts"}` with optional `name`, `finish_reason`, `only`; a part has a `type`.
Parts of a type that is not known here are kept as they are.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ledger.errors import RecordInvalid

ROLES = ("system", "developer", "user", "assistant", "tool")
USER_SIDE = ("system", "developer", "user")

Message = dict[str, Any]


def text(role: str, content: str) -> Message:
    """Return a message of one text part."""
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def check(messages: Any, path: str = "messages") -> list[Message]:
    """Return a list of messages if each has a known role and parts with a type.

    Raises: record-invalid naming the message or part.
    """
    if not isinstance(messages, list):
        raise RecordInvalid(path=path, reason=f"messages are a list, not {_type(messages)}")
    for i, message in enumerate(messages):
        where = f"{path}[{i}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise RecordInvalid(path=where, reason=f"a message has a role: {', '.join(ROLES)}")
        parts = message.get("parts")
        if not isinstance(parts, list):
            raise RecordInvalid(path=f"{where}.parts", reason="a message has a list of parts")
        for j, part in enumerate(parts):
            if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                raise RecordInvalid(path=f"{where}.parts[{j}]", reason="a part has a type")
    return messages


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


def from_inputs(inputs: dict[str, Any]) -> list[Message]:
    """Return the user side of a turn that recorded none: its text, or its inputs by name."""
    if not inputs:
        return []
    if len(inputs) == 1:
        return [text("user", _shown(next(iter(inputs.values()))))]
    parts = [
        {"type": "text", "content": f"{name}: {_shown(value)}"} for name, value in inputs.items()
    ]
    return [{"role": "user", "parts": parts}]


def from_result(result: Any) -> list[Message]:
    """Return the assistant side of a turn that recorded none: its answer."""
    return [text("assistant", _shown(result))]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _type(value: Any) -> str:
    return type(value).__name__
