"""OpenAI Chat Completions: the list that is sent as `messages`. Pure.

Kept beside, for this dialect alone: an image's `detail`, cache marks, refusals, audio answers, how
arguments were spelled, `custom` calls, and every key of a message that says nothing in its role (a
user's `tool_calls`). What a call's own message says stands before the calls.
"""

from __future__ import annotations

from typing import Any

from ledger.errors import ImportInvalid
from ledger.formats import media, pairing
from ledger.formats.converting import (
    Converted,
    Line,
    Losses,
    Part,
    Placed,
    Raw,
    Read,
    arguments,
    beyond,
    dumped,
    is_whole,
    item,
    lines,
    listed,
    merged,
    own,
    read_content,
    spelled,
    taken,
    text_of,
    whole,
    with_own,
)
from ledger.records.messages import Message

name = "openai"
title = "OpenAI Chat Completions"
IDS = pairing.Ids(longest=40)
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_ROLES = ("system", "developer", "user", "assistant", "tool")


def to_provider(
    messages: list[Message], *, strict: bool = False, read: Read | None = None
) -> Converted:
    """Say neutral messages as a list of Chat Completions messages.

    Args: strict: refuse rather than lose anything. read: gives an attachment's bytes by its SHA-256.
    Raises: record-invalid: they are no neutral messages. messages-lossy: as `strict` says.
    """
    losses = Losses(name)
    given = media.inlined(pairing.paired(lines(messages), IDS, losses), read, losses)
    made = [_message(line, losses) for line in pairing.joined(given)]
    return losses.converted([one for one in made if one is not None], strict=strict)


def from_provider(content: Any) -> list[Message]:
    """Return what a list of Chat Completions messages says; one message for each.

    Calls and results stay as they stand, paired or not. Raises: import-invalid: one is no message.
    record-invalid: one holds what cannot be recorded.
    """
    return taken(
        _neutral(item(one, f"messages[{i}]"), f"messages[{i}]")
        for i, one in enumerate(listed(content, "messages"))
    )


# -- to the provider -------------------------------------------------------------------------------


def _message(line: Line, losses: Losses) -> Raw | None:
    if line.role == "tool":
        return _result(line, losses)
    kept = own({"only": line.only}, name)
    who = pairing.speaker(line, losses)
    named = {"name": who} if who is not None else {}
    if line.role == "assistant":
        made = _assistant(line, kept, losses)
    else:
        blocks = [b for placed in line.parts if (b := _block(placed, line.role, losses))]
        made = {"content": spelled(blocks, "text", kept)} if blocks else {}
    rest = {key: value for key, value in kept.items() if key != "as"}
    return merged({"role": line.role, **made, **named}, rest) if made or rest else None


def _assistant(line: Line, kept: Raw, losses: Losses) -> Raw:
    made: Raw = {}
    calls: list[Raw] = []
    blocks: list[Raw] = []
    for placed in line.parts:
        if placed.type == "tool_call":
            calls.append(_call(placed, losses))
        elif placed.type == "text" and own(placed.part, name).get("as") == "refusal":
            made["refusal"] = placed.part["content"]
        elif block := _block(placed, "assistant", losses):
            if calls:
                losses.of(placed, "what is said after a call is said before it")
            blocks.append(block)
    made["content"] = spelled(blocks, "text", kept) if blocks else None
    if not blocks and kept.get("as") == "list":
        made["content"] = []
    if calls:
        made["tool_calls"] = calls
    return made if any(made.values()) or kept or blocks else {}


def _call(placed: Placed, losses: Losses) -> Raw:
    part, kept = placed.part, own(placed.part, name)
    tool = pairing.tool_name(placed, losses)
    if kept.get("type") == "custom":
        made: Raw = {"type": "custom", "custom": {"name": tool, "input": dumped(part["arguments"])}}
    else:
        text = dumped(part["arguments"])
        made = {"type": "function", "function": {"name": tool, "arguments": text}}
    return merged({"id": part["id"], **made}, kept)


def _result(line: Line, losses: Losses) -> Raw | None:
    response = line.response
    if response is None:
        for placed in line.parts:
            losses.of(placed)
        return None
    kept = own(response.part, name)
    text = dumped(response.part["response"])
    blocks = [b for placed in line.parts[1:] if (b := _block(placed, "tool", losses))]
    first = [] if response.part["response"] is None and blocks else [{"type": "text", "text": text}]
    content = spelled([*first, *blocks], "text", kept)
    rest = {key: value for key, value in kept.items() if key != "as"}
    return merged({"role": "tool", "tool_call_id": response.part["id"], "content": content}, rest)


def _block(placed: Placed, role: str, losses: Losses) -> Raw | None:
    """Return a part as a block of content; None, and a loss, when it cannot be one here."""
    part = placed.part
    if is_whole(name, part):
        return dict(part["content"])
    made = _made(part)
    if made is None or (made["type"] not in ("text", "refusal") and role != "user"):
        losses.of_role(placed, role, by_user=made is not None)
        return None
    return merged(made, own(part, name))


def _made(part: Part) -> Raw | None:
    kind, modality = part["type"], part.get("modality")
    if kind == "text":
        refused = own(part, name).get("type") == "refusal"
        key = "refusal" if refused else "text"
        return {"type": key, key: part["content"]}
    if kind == "file" and modality == "document":
        return {"type": "file", "file": {"file_id": part["file_id"]}}
    if kind != "uri":
        return None
    data = media.data_of(part["uri"])
    if modality == "image":
        how = {"detail": said} if (said := media.detail(part)) else {}
        return {"type": "image_url", "image_url": {"url": part["uri"], **how}}
    if modality == "audio" and data and data[0] in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": data[1], "format": _SOUNDS[data[0]]}}
    if modality == "document" and data:
        named = {"filename": part["name"]} if part.get("name") else {}
        return {"type": "file", "file": {"file_data": part["uri"], **named}}
    return None


# -- from the provider -----------------------------------------------------------------------------


def _neutral(raw: Raw, path: str) -> Message:
    role = raw.get("role")
    if role not in _ROLES:
        told = "this is a whole reply, its message is choices[0].message"
        asked = f"a message has a role: {', '.join(_ROLES)}"
        raise ImportInvalid(source=path, reason=told if "choices" in raw else asked)
    if role == "tool":
        return _answer(raw, path)
    parts: list[Part] = []
    mark: Raw = {}
    if raw.get("content") is not None:
        parts, mark = read_content(raw["content"], "text", f"{path}.content", _part)
        mark = {"as": "list"} if raw["content"] == [] else mark
    if role == "assistant":
        if isinstance(raw.get("refusal"), str):
            refusal: Part = {"type": "text", "content": raw["refusal"]}
            parts.append({**refusal, "only": {name: {"as": "refusal"}}})
        for j, call in enumerate(listed(raw.get("tool_calls") or [], f"{path}.tool_calls")):
            parts.append(
                _tool_call(item(call, f"{path}.tool_calls[{j}]"), f"{path}.tool_calls[{j}]")
            )
    made = {"role": role, "parts": parts}
    if isinstance(raw.get("name"), str):
        made["name"] = raw["name"]
    return with_own(made, name, {**_message_own(raw, role), **mark})


def _message_own(raw: Raw, role: str) -> Raw:
    """Return what of a message no part of it and no name says; also that its content is not there."""
    said = {"role", "content"}
    if isinstance(raw.get("name"), str):
        said.add("name")
    if role == "assistant" and isinstance(raw.get("refusal"), str):
        said.add("refusal")
    if role == "assistant" and raw.get("tool_calls"):
        said.add("tool_calls")
    kept = {key: value for key, value in raw.items() if key not in said}
    if role == "assistant" and "content" not in raw:
        kept["without"] = ["content"]
    return kept


def _answer(raw: Raw, path: str) -> Message:
    id = text_of(raw, "tool_call_id", path)
    beside, mark = read_content(raw.get("content", ""), "text", f"{path}.content", _part)
    response = None
    if beside and beside[0].keys() == {"type", "content"} and beside[0]["type"] == "text":
        response, beside = beside[0]["content"], beside[1:]
    rest = {
        key: value for key, value in raw.items() if key not in ("role", "content", "tool_call_id")
    }
    if raw.get("content") == []:
        rest["content"] = []
    elif "content" not in raw:
        rest["without"] = ["content"]
    part = {"type": "tool_call_response", "id": id, "response": response}
    return {"role": "tool", "parts": [with_own(part, name, {**rest, **mark}), *beside]}


def _tool_call(raw: Raw, path: str) -> Part:
    id = text_of(raw, "id", path)
    kind = "custom" if raw.get("type") == "custom" else "function"
    inner = item(raw.get(kind), f"{path}.{kind}")
    given: Any = text_of(inner, "input" if kind == "custom" else "arguments", f"{path}.{kind}")
    given = given if kind == "custom" else arguments(given)
    tool = text_of(inner, "name", f"{path}.{kind}")
    part = {"type": "tool_call", "id": id, "name": tool, "arguments": given}
    key = "input" if kind == "custom" else "arguments"
    made = {"id": id, "type": "function", kind: {"name": tool, key: dumped(given)}}
    return with_own(part, name, beyond(raw, made))


def _part(raw: Raw) -> Part:
    part = _read(raw)
    made = None if part is None else _made(part)
    if part is None or made is None:
        return whole(name, raw)
    return with_own(part, name, beyond(raw, made))


def _read(raw: Raw) -> Part | None:
    """Return the neutral part of a block; None when it has none."""
    kind = raw.get("type")
    if kind in ("text", "refusal") and isinstance(raw.get(kind), str):
        return {"type": "text", "content": raw[kind]}
    inner = raw.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, dict):
        return None
    if kind == "image_url" and isinstance(inner.get("url"), str):
        return media.uri_part(inner["url"], "image")
    if kind == "input_audio" and isinstance(inner.get("data"), str):
        mime = {"wav": "audio/wav", "mp3": "audio/mpeg"}.get(str(inner.get("format")))
        return media.uri_part(media.data_uri(mime, inner["data"]), "audio") if mime else None
    if kind == "file" and isinstance(inner.get("file_id"), str):
        return {"type": "file", "modality": "document", "file_id": inner["file_id"]}
    if kind == "file" and media.data_of(str(inner.get("file_data"))):
        named = {"name": inner["filename"]} if isinstance(inner.get("filename"), str) else {}
        return {**media.uri_part(inner["file_data"], "document"), **named}
    return None
