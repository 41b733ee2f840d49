"""Anthropic Messages: `{"system"?, "messages"}`, as they are given to one call. Pure.

Kept beside, for this dialect alone: the signature of thinking, redacted thinking, cache marks,
citations. The results of a reply stand together in one user's message behind it; what the user said
in that same message stays in it. A system message at the beginning is `system`; a later one stands
among the messages.
"""

from __future__ import annotations

import base64
import binascii
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

name = "anthropic"
title = "Anthropic Messages"
IDS = pairing.Ids(plain=True, once=True)
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_ROLES = ("system", "user", "assistant")


def to_provider(
    messages: list[Message], *, strict: bool = False, read: Read | None = None
) -> Converted:
    """Say neutral messages as the `system` and `messages` of a call; no `system` when there is none.

    Args: strict: refuse rather than lose anything. read: gives an attachment's bytes by its SHA-256.
    Raises: record-invalid: they are no neutral messages. messages-lossy: as `strict` says.
    """
    losses = Losses(name)
    paired = pairing.joined(pairing.paired(lines(messages), IDS, losses))
    given = media.inlined(paired, read, losses)
    said = [(line, blocks) for line in given if (blocks := _blocks(line, losses))]
    first = next((i for i, (line, _) in enumerate(said) if not _is_system(line)), len(said))
    system = [block for _, blocks in said[:first] for block in blocks]
    kept = own({"only": said[0][0].only}, name) if first == 1 else {}
    out: list[Raw] = []
    for line, blocks in said[first:]:
        _add(out, line, blocks)
    spoken = {"system": spelled(system, "text", kept)} if system else {}
    return losses.converted({**spoken, "messages": out}, strict=strict)


def from_provider(content: Any) -> list[Message]:
    """Return what `system` and `messages` say; a list is taken as `messages` alone.

    Calls and results stay as they stand, paired or not. Raises: import-invalid: one is no message.
    record-invalid: one holds what cannot be recorded.
    """
    given = {"messages": content} if isinstance(content, list) else item(content, "the content")
    out: list[Message] = []
    if given.get("system") not in (None, []):
        parts, mark = read_content(given["system"], "text", "system", _part)
        out.append(with_own({"role": "system", "parts": parts}, name, mark))
    for i, one in enumerate(listed(given.get("messages"), "messages")):
        said = _neutral(item(one, f"messages[{i}]"), f"messages[{i}]")
        among = said[0]["role"] == "system" and all(m["role"] == "system" for m in out)
        out += [with_own(said[0], name, {**own(said[0], name), "among": True})] if among else said
    return taken(out)


# -- to the provider -------------------------------------------------------------------------------


def _is_system(line: Line) -> bool:
    """Say whether a line may stand in `system`; one that came from among the messages may not."""
    among = own({"only": line.only}, name).get("among")
    return line.role in ("system", "developer") and not among


def _add(out: list[Raw], line: Line, blocks: list[Raw]) -> None:
    """Put a line behind what is there: results of one reply, and what was said with them, are one message."""
    role = {"tool": "user", "developer": "system"}.get(line.role, line.role)
    kept = own({"only": line.only}, name)
    last = out[-1] if out else None
    rest = {key: value for key, value in kept.items() if key not in ("as", "among")}
    results = last is not None and last.get("role") == "user" and _has_results(last)
    if last is not None and results and (line.role == "tool" or kept.get("as") == "joined"):
        out[-1] = merged({**last, "content": [*last["content"], *blocks]}, rest)
        return
    out.append(merged({"role": role, "content": spelled(blocks, "text", kept)}, rest))


def _has_results(raw: Raw) -> bool:
    content = raw.get("content")
    return isinstance(content, list) and any(_is_result(block) for block in content)


def _blocks(line: Line, losses: Losses) -> list[Raw]:
    if line.role == "developer":
        losses.add(line.path, "what the developer says is said by the system")
    if line.name is not None and line.role != "tool":
        losses.add(f"{line.path}.name", "who speaks has no name here")
    response = line.response
    if response is not None:
        return [_result(response, line.parts[1:], losses)]
    return [block for placed in line.parts if (block := _block(placed, line.role, losses))]


def _block(placed: Placed, role: str, losses: Losses) -> Raw | None:
    """Return a part as a block; None, and a loss, when it cannot be one here."""
    part, kept = placed.part, own(placed.part, name)
    if is_whole(name, part):
        return dict(part["content"])
    if part["type"] == "tool_call":
        return merged(_call(placed, losses), kept)
    if part["type"] == "text" and not part["content"] and not kept and role != "tool":
        return None  # Refused there, and nothing is said with it.
    if part["type"] == "reasoning" and ("signature" in kept or "data" in kept):
        return merged({"type": "thinking", "thinking": part["content"]}, kept)
    made = _made(part)
    if made is None or (made["type"] != "text" and role not in ("user", "tool")):
        if part["type"] == "reasoning":
            losses.of(placed, "reasoning that was not signed here cannot be said")
        else:
            losses.of_role(placed, role, by_user=made is not None)
        return None
    return merged(made, kept)


def _call(placed: Placed, losses: Losses) -> Raw:
    part = placed.part
    given = part["arguments"]
    if not isinstance(given, dict):
        if given not in (None, ""):
            losses.of(placed, 'arguments that are no object are said as {"text": …}')
        given = {"text": dumped(given)} if given not in (None, "") else {}
    tool = pairing.tool_name(placed, losses)
    return {"type": "tool_use", "id": part["id"], "name": tool, "input": given}


def _result(response: Placed, beside: list[Placed], losses: Losses) -> Raw:
    part, kept = response.part, own(response.part, name)
    blocks = [block for placed in beside if (block := _block(placed, "tool", losses))]
    if part["response"] is not None:
        blocks.insert(0, {"type": "text", "text": dumped(part["response"])})
    content = {"content": spelled(blocks, "text", kept)} if blocks else {}
    rest = {key: value for key, value in kept.items() if key != "as"}
    return merged({"type": "tool_result", "tool_use_id": part["id"], **content}, rest)


def _made(part: Part) -> Raw | None:
    kind, modality = part["type"], part.get("modality")
    if kind == "text":
        return {"type": "text", "text": part["content"]}
    if modality not in ("image", "document"):
        return None
    source = {"type": "file", "file_id": part["file_id"]} if kind == "file" else _source(part)
    if source is None:
        return None
    titled = {"title": part["name"]} if modality == "document" and part.get("name") else {}
    return {"type": modality, "source": source, **titled}


def _source(part: Part) -> Raw | None:
    if part["type"] != "uri":
        return None
    data = media.data_of(part["uri"])
    if data is None:
        return None if part["uri"].startswith("data:") else {"type": "url", "url": part["uri"]}
    if data[0] == "text/plain" and part["modality"] == "document":
        text = _decoded(data[1])
        return None if text is None else {"type": "text", "media_type": data[0], "data": text}
    allowed = _IMAGES if part["modality"] == "image" else ("application/pdf",)
    if data[0] not in allowed:
        return None
    return {"type": "base64", "media_type": data[0], "data": data[1]}


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


# -- from the provider -----------------------------------------------------------------------------


def _neutral(raw: Raw, path: str) -> list[Message]:
    """Return a message; a user's that holds results is a tool's, and what stands beside them the user's."""
    role = raw.get("role")
    if role not in _ROLES:
        raise ImportInvalid(source=path, reason=f"a message has a role: {', '.join(_ROLES)}")
    given = raw.get("content")
    results = isinstance(given, list) and any(_is_result(block) for block in given)
    rest = {key: value for key, value in raw.items() if key not in ("role", "content")}
    if role == "user" and results:
        return _with_results(listed(given, path), rest, f"{path}.content")
    parts, mark = read_content(given, "text", f"{path}.content", _part)
    return [with_own({"role": role, "parts": parts}, name, {**rest, **mark})]


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _with_results(blocks: list[Any], rest: Raw, path: str) -> list[Message]:
    out: list[Message] = []
    for i, block in enumerate(blocks):
        role = "tool" if _is_result(block) else "user"
        if not out or out[-1]["role"] != role:
            joined = {"as": "joined"} if role == "user" and out else {}
            kept = joined if out else rest
            out.append(with_own({"role": role, "parts": []}, name, kept))
        place = f"{path}[{i}]"
        made = _answer(block, place) if role == "tool" else [_part(item(block, place))]
        out[-1]["parts"] += made
    return out


def _answer(raw: Raw, path: str) -> list[Part]:
    id = text_of(raw, "tool_use_id", path)
    beside, mark = read_content(raw.get("content", []), "text", f"{path}.content", _part)
    response = None
    if beside and beside[0].keys() == {"type", "content"} and beside[0]["type"] == "text":
        response, beside = beside[0]["content"], beside[1:]
    made = {"type": "tool_result", "tool_use_id": id}
    rest = beyond({key: value for key, value in raw.items() if key != "content"}, made)
    empty: Raw = {"content": []} if raw.get("content") == [] else {}
    part = {"type": "tool_call_response", "id": id, "response": response}
    return [with_own(part, name, {**rest, **mark, **empty}), *beside]


def _part(raw: Raw) -> Part:
    part = _read(raw)
    if part is None:
        return whole(name, raw)
    made = _plain(part)
    return whole(name, raw) if made is None else with_own(part, name, beyond(raw, made))


def _plain(part: Part) -> Raw | None:
    """Return the block of a part that has nothing beside it yet."""
    if part["type"] == "tool_call":
        made = {"type": "tool_use", "id": part["id"], "name": part["name"]}
        return {**made, "input": part["arguments"]}
    if part["type"] == "reasoning":
        return {"type": "thinking", "thinking": part["content"]}
    return _made(part)


def _read(raw: Raw) -> Part | None:
    """Return the neutral part of a block; None when it has none."""
    kind = raw.get("type")
    if kind == "text" and isinstance(raw.get("text"), str):
        return {"type": "text", "content": raw["text"]}
    if kind == "thinking" and isinstance(raw.get("thinking"), str):
        return {"type": "reasoning", "content": raw["thinking"]}
    if kind == "redacted_thinking":
        return {"type": "reasoning", "content": ""}
    if kind == "tool_use" and isinstance(raw.get("input"), dict):
        if isinstance(raw.get("id"), str) and isinstance(raw.get("name"), str):
            made = {"type": "tool_call", "id": raw["id"], "name": raw["name"]}
            return {**made, "arguments": raw["input"]}
    elif kind in ("image", "document") and isinstance(raw.get("source"), dict):
        part = _from_source(raw["source"], kind)
        named = {"name": raw["title"]} if part and isinstance(raw.get("title"), str) else {}
        return {**part, **named} if part else None
    return None


def _from_source(source: Raw, modality: str) -> Part | None:
    kind, data = source.get("type"), source.get("data")
    mime = source.get("media_type")
    if kind == "url" and isinstance(source.get("url"), str):
        return media.uri_part(source["url"], modality)
    if kind == "file" and isinstance(source.get("file_id"), str):
        return {"type": "file", "modality": modality, "file_id": source["file_id"]}
    if kind == "base64" and isinstance(data, str) and isinstance(mime, str):
        return media.uri_part(media.data_uri(mime, data), modality)
    if kind == "text" and isinstance(data, str) and mime == "text/plain":
        encoded = base64.b64encode(data.encode()).decode()
        return media.uri_part(media.data_uri(mime, encoded), modality)
    return None
