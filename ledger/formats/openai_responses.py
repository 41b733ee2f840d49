"""OpenAI Responses: the list of items that is sent as `input`. Pure.

A reply is several items: reasoning, messages, calls. They are parts of one assistant's message, and
each keeps its own item id, status and signature beside, for this dialect alone. The neutral id of a
call is its `call_id` (`call_…`), which the result repeats; the item's own id (`fc_…`) stays beside,
and is left out of a call that came from elsewhere.
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

name = "openai-responses"
title = "OpenAI Responses"
IDS = pairing.Ids(longest=64)
_ROLES = ("system", "developer", "user", "assistant")


def to_provider(
    messages: list[Message], *, strict: bool = False, read: Read | None = None
) -> Converted:
    """Say neutral messages as a list of Responses items.

    Args: strict: refuse rather than lose anything. read: gives an attachment's bytes by its SHA-256.
    Raises: record-invalid: they are no neutral messages. messages-lossy: as `strict` says.
    """
    losses = Losses(name)
    given = media.inlined(pairing.paired(lines(messages), IDS, losses), read, losses)
    return losses.converted([one for line in given for one in _items(line, losses)], strict=strict)


def from_provider(content: Any) -> list[Message]:
    """Return what a list of Responses items says: the items of a reply in a row are one message.

    Calls and results stay as they stand, paired or not. Raises: import-invalid: one is no item.
    record-invalid: one holds what cannot be recorded.
    """
    out: list[Message] = []
    for i, one in enumerate(listed(content, "input")):
        message = _neutral(item(one, f"input[{i}]"), f"input[{i}]")
        if out and out[-1]["role"] == message["role"] == "assistant":
            out[-1]["parts"] += message["parts"]
        else:
            out.append(message)
    return taken(out)


# -- to the provider -------------------------------------------------------------------------------


def _items(line: Line, losses: Losses) -> list[Raw]:
    if line.name is not None and line.role != "tool":
        losses.add(f"{line.path}.name", "who speaks has no name here")
    if line.role == "assistant":
        return _reply(line, losses)
    if line.role == "tool":
        return _result(line, losses)
    if all(is_whole(name, placed.part) for placed in line.parts):
        return [dict(placed.part["content"]) for placed in line.parts]
    blocks = [block for placed in line.parts if (block := _block(placed, losses))]
    if not blocks:
        return []
    kept = own({"only": line.only}, name)
    rest = {key: value for key, value in kept.items() if key != "as"}
    return [merged({"role": line.role, "content": spelled(blocks, "input_text", kept)}, rest)]


def _reply(line: Line, losses: Losses) -> list[Raw]:
    """Return the items of a reply; texts of one item, which say so, stand in one again."""
    items: list[Raw] = []
    for placed in line.parts:
        part, kept = placed.part, own(placed.part, name)
        if is_whole(name, part):
            items.append(dict(part["content"]))
        elif part["type"] == "tool_call":
            items.append(merged(_call(placed, losses), kept))
        elif part["type"] == "reasoning" and kept:
            items.append(merged({"type": "reasoning", "summary": _summary(part)}, kept))
        elif part["type"] == "text" and isinstance(kept.get("block"), dict):
            _add_said(items, merged(_said(part), kept["block"]), kept.get("item"))
        elif part["type"] == "text":
            items.append(merged({"role": "assistant", "content": part["content"]}, kept))
        elif part["type"] == "reasoning":
            losses.of(placed, "reasoning that was not signed here cannot be said")
        else:
            losses.of_role(placed, "assistant", by_user=_made(part) is not None)
    return items


def _add_said(items: list[Raw], said: Raw, own_item: Any) -> None:
    """Put a text into the item before it, where it says so, or into one of its own."""
    last = items[-1].get("content") if items and own_item == "same" else None
    if isinstance(last, list):
        last.append(said)
    else:
        rest = own_item if isinstance(own_item, dict) else {}
        items.append({**rest, "role": "assistant", "content": [said]})


def _summary(part: Part) -> list[Raw]:
    return [{"type": "summary_text", "text": part["content"]}] if part["content"] else []


def _said(part: Part) -> Raw:
    return {"type": "output_text", "text": part["content"]}


def _call(placed: Placed, losses: Losses) -> Raw:
    part = placed.part
    tool = pairing.tool_name(placed, losses)
    if own(part, name).get("type") == "custom_tool_call":
        made = {"type": "custom_tool_call", "input": dumped(part["arguments"])}
    else:
        made = {"type": "function_call", "arguments": dumped(part["arguments"])}
    return {**made, "call_id": part["id"], "name": tool}


def _result(line: Line, losses: Losses) -> list[Raw]:
    response = line.response
    if response is None:
        for placed in line.parts:
            if not is_whole(name, placed.part):
                losses.of(placed)
        return [dict(p.part["content"]) for p in line.parts if is_whole(name, p.part)]
    kept = own(response.part, name)
    text = dumped(response.part["response"])
    blocks = [block for placed in line.parts[1:] if (block := _block(placed, losses))]
    if response.part["response"] is not None or not blocks:
        blocks.insert(0, {"type": "input_text", "text": text})
    rest = {key: value for key, value in kept.items() if key != "as"}
    made = {"type": "function_call_output", "call_id": response.part["id"]}
    return [merged({**made, "output": spelled(blocks, "input_text", kept)}, rest)]


def _block(placed: Placed, losses: Losses) -> Raw | None:
    part = placed.part
    if is_whole(name, part):
        return dict(part["content"])
    made = _made(part)
    if made is None:
        losses.of(placed)
        return None
    return merged(made, own(part, name))


def _made(part: Part) -> Raw | None:
    kind, modality = part["type"], part.get("modality")
    if kind == "text":
        return {"type": "input_text", "text": part["content"]}
    if kind not in ("uri", "file"):
        return None
    if modality == "image":
        where = {"image_url": part["uri"]} if kind == "uri" else {"file_id": part["file_id"]}
        return {"type": "input_image", "detail": media.detail(part) or "auto", **where}
    if modality != "document":
        return None
    if kind == "file":
        return {"type": "input_file", "file_id": part["file_id"]}
    key = "file_data" if media.data_of(part["uri"]) else "file_url"
    named = {"filename": part["name"]} if part.get("name") else {}
    return {"type": "input_file", key: part["uri"], **named}


# -- from the provider -----------------------------------------------------------------------------


def _neutral(raw: Raw, path: str) -> Message:
    kind = raw.get("type", "message")
    if kind == "message" and raw.get("role") == "assistant":
        return {"role": "assistant", "parts": _texts(raw, path)}
    if kind == "message":
        return _asked(raw, path)
    if kind in ("function_call", "custom_tool_call"):
        return {"role": "assistant", "parts": [_tool_call(raw, path)]}
    if kind in ("function_call_output", "custom_tool_call_output"):
        return {"role": "tool", "parts": _answer(raw, path)}
    if kind == "reasoning":
        return {"role": "assistant", "parts": [_thought(raw)]}
    role = "user" if kind == "mcp_approval_response" else "assistant"
    if isinstance(kind, str) and kind.endswith("_output"):
        role = "tool"
    return {"role": role, "parts": [whole(name, raw)]}


def _asked(raw: Raw, path: str) -> Message:
    if raw.get("role") not in _ROLES:
        told = "this is a whole reply, its items are its output"
        asked = f"a message has a role: {', '.join(_ROLES)}"
        reason = told if raw.get("object") == "response" else asked
        raise ImportInvalid(source=path, reason=reason)
    parts, mark = read_content(raw.get("content"), "input_text", f"{path}.content", _part)
    if all(is_whole(name, part) for part in parts):
        return {"role": raw["role"], "parts": [whole(name, raw)]}
    rest = {key: value for key, value in raw.items() if key not in ("role", "content")}
    return with_own({"role": raw["role"], "parts": parts}, name, {**rest, **mark})


def _texts(raw: Raw, path: str) -> list[Part]:
    """Return the parts of one message of a reply: text each, or the message whole."""
    content = raw.get("content")
    rest = {key: value for key, value in raw.items() if key not in ("role", "content")}
    if isinstance(content, str):
        return [with_own({"type": "text", "content": content}, name, rest)]
    blocks = [item(b, f"{path}.content[{i}]") for i, b in enumerate(listed(content, path))]
    said = [block.get("text", block.get("refusal")) for block in blocks]
    if not blocks or not all(isinstance(text, str) for text in said):
        return [whole(name, raw)]
    parts = []
    for i, (block, text) in enumerate(zip(blocks, said, strict=True)):
        part = {"type": "text", "content": text}
        kept = {"item": "same" if i else rest, "block": beyond(block, _said(part))}
        parts.append(with_own(part, name, kept))
    return parts


def _thought(raw: Raw) -> Part:
    given = [raw[key] for key in ("summary", "content") if isinstance(raw.get(key), list)]
    pieces = [piece for listed in given for piece in listed if isinstance(piece, dict)]
    text = "\n\n".join(p["text"] for p in pieces if isinstance(p.get("text"), str))
    part = {"type": "reasoning", "content": text}
    return with_own(part, name, beyond(raw, {"type": "reasoning", "summary": _summary(part)}))


def _tool_call(raw: Raw, path: str) -> Part:
    custom = raw["type"] == "custom_tool_call"
    key = "input" if custom else "arguments"
    text = text_of(raw, key, path)
    given: Any = text if custom else arguments(text)
    tool, id = text_of(raw, "name", path), text_of(raw, "call_id", path)
    part = {"type": "tool_call", "id": id, "name": tool, "arguments": given}
    made = {"type": "function_call", key: dumped(given), "call_id": id, "name": tool}
    return with_own(part, name, beyond(raw, made))


def _answer(raw: Raw, path: str) -> list[Part]:
    id = text_of(raw, "call_id", path)
    beside, mark = read_content(raw.get("output"), "input_text", f"{path}.output", _part)
    response = None
    if beside and beside[0].keys() == {"type", "content"} and beside[0]["type"] == "text":
        response, beside = beside[0]["content"], beside[1:]
    made = {"type": "function_call_output", "call_id": id, "output": raw.get("output")}
    part = {"type": "tool_call_response", "id": id, "response": response}
    empty: Raw = {"output": []} if raw.get("output") == [] else {}
    return [with_own(part, name, {**beyond(raw, made), **mark, **empty}), *beside]


def _part(raw: Raw) -> Part:
    part = _read(raw)
    made = None if part is None else _made(part)
    return (
        whole(name, raw)
        if part is None or made is None
        else with_own(part, name, beyond(raw, made))
    )


def _read(raw: Raw) -> Part | None:
    """Return the neutral part of a block; None when it has none."""
    kind = raw.get("type")
    if kind == "input_text" and isinstance(raw.get("text"), str):
        return {"type": "text", "content": raw["text"]}
    if kind == "input_image" and isinstance(raw.get("image_url"), str):
        return media.uri_part(raw["image_url"], "image")
    if kind not in ("input_image", "input_file"):
        return None
    modality = "image" if kind == "input_image" else "document"
    if isinstance(raw.get("file_id"), str):
        return {"type": "file", "modality": modality, "file_id": raw["file_id"]}
    for key in ("file_data", "file_url"):
        uri = raw.get(key)
        if isinstance(uri, str) and (media.data_of(uri) is not None) == (key == "file_data"):
            named = {"name": raw["filename"]} if isinstance(raw.get("filename"), str) else {}
            return {**media.uri_part(uri, modality), **named}
    return None
