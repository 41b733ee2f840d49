"""One message of a ChatGPT export in the neutral shape, and tool rounds paired. Pure.

A tool call is an assistant's message whose recipient is not `all`; its result is a tool's message
below it. There is no call id in the source. Text stays as it was, citation marks included; what
they point to stands beside it under `only.chatgpt`.
"""

from __future__ import annotations

import json
from typing import Any

from ledger.formats import chatgpt_parts as parts
from ledger.formats import clean
from ledger.formats.base import Message, Notes
from ledger.formats.chatgpt_parts import Raw, Said, of

_KEPT_BESIDE = ("content_references", "citations")
_FINISH = {"max_tokens": "length"}


def visible(id: str, message: Said, notes: Notes) -> Message:
    """Return a message that a person saw."""
    if message.role == "assistant":
        return _assistant(id, message, notes)
    if message.role == "user":
        return _made(id, message, "user", parts.content(message, notes), notes)
    return _tool(id, message, notes)


def hidden(id: str, message: Said, notes: Notes) -> Message | None:
    """Return a hidden message, flagged as such; None when it says nothing."""
    role = message.role
    if role in ("assistant", "tool", "function"):
        made = visible(id, message, notes)
    else:
        shown = "system" if role == "system" else "developer"
        made = _made(id, message, shown, parts.context(message, notes), notes)
    if not made["parts"]:
        return None
    flags = {"hidden": True, "role": role, "content_type": message.kind}
    made["only"]["chatgpt"].update(clean.value(flags, notes))
    return made


def is_call(message: Said) -> bool:
    """Say whether an assistant's message is addressed to a tool."""
    recipient = message.raw.get("recipient")
    return isinstance(recipient, str) and recipient not in ("", "all")


def is_spinner(message: Said) -> bool:
    """Say whether a message is only the sign that a search was running."""
    return message.kind == "tether_browsing_display" and not (
        message.content.get("result") or message.content.get("summary")
    )


def is_made_image(message: Said) -> bool:
    """Say whether a tool's message shows an image that was made as the answer."""
    pieces = message.content.get("parts")
    return any(
        isinstance(piece, dict)
        and piece.get("content_type") == "image_asset_pointer"
        and any(of(piece, "metadata").get(key) for key in ("dalle", "generation"))
        for piece in (pieces if isinstance(pieces, list) else [])
    )


def cut(message: Said) -> str | None:
    """Return why an answer is not whole, or None when it is."""
    finish = _finish(message)
    if finish in ("length", "interrupted", "in_progress"):
        return finish
    return "partial" if message.raw.get("status") == "finished_partial_completion" else None


def paired(messages: list[Message]) -> list[Message]:
    """Give each tool result the id of its call, found by name and neighbourhood.

    A result goes to the first call to a tool of its name that has none yet, else to the last call
    of that name (a tool may answer in pieces); one without any call keeps its own id.
    """
    waiting: dict[str, list[str]] = {}
    latest: dict[str, str] = {}
    out: list[Message] = []
    for message in messages:
        pieces = []
        for part in message["parts"]:
            if part["type"] == "tool_call":
                tool = _family(part["name"])
                waiting.setdefault(tool, []).append(part["id"])
                latest[tool] = part["id"]
            elif part["type"] == "tool_call_response":
                tool = _family(message.get("name", ""))
                calls = waiting.get(tool)
                call = calls.pop(0) if calls else latest.get(tool, part["id"])
                part = {**part, "id": call}
            pieces.append(part)
        out.append({**message, "parts": pieces})
    return out


def _family(name: str) -> str:
    """Return the tool a function belongs to: `web.run` and `web` are one."""
    return name.partition(".")[0]


def _assistant(id: str, message: Said, notes: Notes) -> Message:
    if is_call(message):
        pieces = [_call(id, message, notes)]
    elif message.kind in parts.THINKING:
        pieces = parts.thinking(message, notes)
    else:
        pieces = parts.content(message, notes)
    made = _made(id, message, "assistant", pieces, notes)
    if finish := _finish(message):
        made["finish_reason"] = clean.text(finish, notes)
    return made


def _call(id: str, message: Said, notes: Notes) -> Raw:
    """Return a tool call; arguments that are no JSON object are `{"text", "language"?}`."""
    inner = message.content
    if message.kind in parts.PARTED:
        given = parts.said(parts.content(message, notes))
    else:
        parts.count(message.kind, notes)
        given = inner["text"] if isinstance(inner.get("text"), str) else ""
    arguments = _object(given)
    if arguments is None:
        arguments = {"text": given, "language": inner.get("language")}
        arguments = {key: value for key, value in arguments.items() if value is not None}
    name = clean.text(message.raw["recipient"], notes)
    return {"type": "tool_call", "id": id, "name": name, "arguments": clean.value(arguments, notes)}


def _tool(id: str, message: Said, notes: Notes) -> Message:
    response, beside = _response(message, notes)
    first = {"type": "tool_call_response", "id": id, "response": response}
    made = _made(id, message, "tool", [first, *beside], notes)
    name = of(message.raw, "author").get("name")
    if isinstance(name, str):
        made["name"] = clean.text(name, notes)
    return made


def _response(message: Said, notes: Notes) -> tuple[Any, list[Raw]]:
    """Return what a tool gave back: as text where it is text, and what stands beside it."""
    inner, kind = message.content, message.kind
    if kind in parts.PARTED:
        pieces = parts.content(message, notes)
        return parts.said(pieces), [part for part in pieces if part["type"] != "text"]
    if kind == "execution_output":
        return clean.value(inner.get("text"), notes), parts.output_images(message, notes)
    parts.count(kind, notes)
    return clean.value({k: v for k, v in inner.items() if k != "content_type"}, notes), []


def _made(id: str, message: Said, role: str, pieces: list[Raw], notes: Notes) -> Message:
    metadata = message.metadata
    beside: Raw = {"id": id}
    for key in _KEPT_BESIDE:
        if metadata.get(key):
            beside[key] = clean.value(metadata[key], notes)
    channel = message.raw.get("channel")
    if isinstance(channel, str):
        beside["channel"] = clean.text(channel, notes)
    pieces = parts.attached(pieces, metadata.get("attachments"), notes)
    return {"role": role, "parts": pieces, "only": {"chatgpt": beside}}


def _finish(message: Said) -> str | None:
    if message.raw.get("status") == "in_progress":
        return "in_progress"
    kind = of(message.metadata, "finish_details").get("type")
    return _FINISH.get(kind, kind) if isinstance(kind, str) else None


def _object(text: str) -> Raw | None:
    """Return the JSON object that a text is, or None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
