"""pydantic-ai's messages as JSON, as its `ModelMessagesTypeAdapter` reads and writes them. Pure.

A request is what is said to the model: system and user prompts and tool results, each a neutral
message. A response is one assistant's message. What else a request, response or part tells (times,
usage, model, instructions, signatures) is kept beside, for this dialect alone.
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
    is_whole,
    item,
    lines,
    listed,
    merged,
    own,
    taken,
    text_of,
    whole,
    with_own,
)
from ledger.records.messages import Message, modality_of

name = "pydantic-ai"
title = "pydantic-ai, as JSON"
IDS = pairing.Ids()
_FINISHED = ("stop", "length", "content_filter", "tool_call", "error")
_URLS = {f"{modality}-url": modality for modality in ("image", "audio", "video", "document")}
_FILES = (*_URLS, "binary", "uploaded-file")
_URL_SAFE = str.maketrans("+/", "-_")
_PLAIN = str.maketrans("-_", "+/")


def to_provider(
    messages: list[Message], *, strict: bool = False, read: Read | None = None
) -> Converted:
    """Say neutral messages as the JSON data of a list of `ModelMessage`s.

    Args: strict: refuse rather than lose anything. read: gives an attachment's bytes by its SHA-256.
    Raises: record-invalid: they are no neutral messages. messages-lossy: as `strict` says.
    """
    losses = Losses(name)
    paired = pairing.joined(pairing.paired(lines(messages), IDS, losses))
    tools: dict[str, str] = {}
    out: list[Raw] = []
    for line in media.inlined(paired, read, losses):
        _note_calls(line, tools)
        _add(out, line, tools, losses)
    return losses.converted(out, strict=strict)


def from_provider(content: Any) -> list[Message]:
    """Return what a list of messages says, as JSON data has them.

    Calls and results stay as they stand, paired or not. Raises: import-invalid: one is no message.
    record-invalid: one holds what cannot be recorded.
    """
    tools: dict[str, str] = {}
    out: list[Message] = []
    for i, one in enumerate(listed(content, "messages")):
        path = f"messages[{i}]"
        raw = item(one, path)
        if raw.get("kind") == "response":
            out.append(_response(raw, path))
            tools.update(
                (part["id"], part["name"])
                for part in out[-1]["parts"]
                if part["type"] == "tool_call"
            )
        elif raw.get("kind") == "request":
            out += _request(raw, path, tools)
        else:
            raise ImportInvalid(source=path, reason="`kind` is request or response")
    return taken(out)


# -- to the provider -------------------------------------------------------------------------------


def _note_calls(line: Line, tools: dict[str, str]) -> None:
    for placed in line.parts:
        if placed.type == "tool_call":
            tools[placed.part["id"]] = placed.part["name"]


def _add(out: list[Raw], line: Line, tools: dict[str, str], losses: Losses) -> None:
    """Put a line behind what is there: what is said to the model in a row is one request."""
    if line.name is not None and line.role != "tool":
        losses.add(f"{line.path}.name", "who speaks has no name here")
    kept = own({"only": line.only}, name)
    if line.role == "assistant":
        out.append(_made_response(line, losses))
        return
    if len(line.parts) == 1 and line.parts[0].type == f"{name}:request":
        out.append(dict(line.parts[0].part["content"]))
        return
    parts = _request_parts(line, tools, losses)
    begins = kept.get("request")
    if parts and (isinstance(begins, dict) or not out or out[-1].get("kind") != "request"):
        rest = begins if isinstance(begins, dict) else {}
        out.append({**rest, "kind": "request", "parts": []})
    if parts:
        out[-1] = {**out[-1], "parts": [*(out[-1].get("parts") or ()), *parts]}


def _made_response(line: Line, losses: Losses) -> Raw:
    parts = [made for placed in line.parts if (made := _response_part(placed, losses))]
    ended = {"finish_reason": line.finish_reason} if line.finish_reason in _FINISHED else {}
    rest = own({"only": line.only}, name)
    return merged({"kind": "response", "parts": parts, **ended}, rest)


def _request_parts(line: Line, tools: dict[str, str], losses: Losses) -> list[Raw]:
    kept = own({"only": line.only}, name).get("part")
    kept = kept if isinstance(kept, dict) else {}
    if line.role == "tool":
        return [_result(line, tools, losses)] if line.response else _others(line, losses)
    if all(
        is_whole(name, placed.part) and "part_kind" in placed.part["content"]
        for placed in line.parts
    ):
        return _others(line, losses)
    if line.role == "user":
        items = [made for placed in line.parts if (made := _content(placed, losses)) is not None]
        if not items:
            return []
        one = len(items) == 1 and isinstance(items[0], str) and kept.get("as") != "list"
        prompt: Raw = {"part_kind": "user-prompt", "content": items[0] if one else items}
        return [merged(prompt, {key: value for key, value in kept.items() if key != "as"})]
    if line.role == "developer":
        losses.add(line.path, "what the developer says is said by the system")
    return [_system(placed, kept) for placed in line.parts if _is_text(placed, line.role, losses)]


def _system(placed: Placed, kept: Raw) -> Raw:
    return merged({"part_kind": "system-prompt", "content": placed.part["content"]}, kept)


def _is_text(placed: Placed, role: str, losses: Losses) -> bool:
    if placed.type != "text":
        losses.of_role(placed, role, by_user=_may_be_content(placed.part))
    return placed.type == "text"


def _others(line: Line, losses: Losses) -> list[Raw]:
    for placed in line.parts:
        if not is_whole(name, placed.part):
            losses.of(placed)
    return [dict(p.part["content"]) for p in line.parts if is_whole(name, p.part)]


def _result(line: Line, tools: dict[str, str], losses: Losses) -> Raw:
    part = line.parts[0].part
    beside = [made for p in line.parts[1:] if (made := _content(p, losses)) is not None]
    kept = own(part, name)
    content = part["response"]
    if beside and kept.get("as") == "one":
        content = beside[0]
    elif beside:
        first = content if isinstance(content, list) else [] if content is None else [content]
        content = [*first, *beside]
    made = _made_result(part["id"], content, tools)
    return merged(made, {key: value for key, value in kept.items() if key != "as"})


def _made_result(id: str, content: Any, tools: dict[str, str]) -> Raw:
    made = {"part_kind": "tool-return", "tool_name": tools.get(id, "unknown")}
    return {**made, "content": content, "tool_call_id": id}


def _response_part(placed: Placed, losses: Losses) -> Raw | None:
    part = placed.part
    if is_whole(name, part):
        return dict(part["content"])
    made = _made_part(part)
    if made is None or (
        part["type"] == "reasoning" and not part["content"] and not own(part, name)
    ):
        losses.of_role(placed, "assistant", by_user=_may_be_content(part))
        return None
    return merged(made, own(part, name))


def _made_part(part: Part) -> Raw | None:
    kind = part["type"]
    if kind == "text":
        return {"part_kind": "text", "content": part["content"]}
    if kind == "reasoning":
        return {"part_kind": "thinking", "content": part["content"]}
    if kind == "tool_call":
        given = part["arguments"]
        given = given if isinstance(given, dict | str) else None if given is None else str(given)
        called = {"tool_name": part["name"], "tool_call_id": part["id"]}
        return {"part_kind": "tool-call", **called, "args": given}
    if kind == "uri" and media.data_of(part["uri"]):
        return {"part_kind": "file", "content": _made_file(part)}
    return None


def _content(placed: Placed, losses: Losses) -> Any:
    """Return a part as an item of content: a text, or an object; None, and a loss, when it is none."""
    part, kept = placed.part, own(placed.part, name)
    if is_whole(name, part):
        return dict(part["content"])
    if part["type"] == "text":
        text = part["content"]
        return merged({"kind": "text-content", "content": text}, kept) if kept else text
    if not _may_be_content(part):
        losses.of(placed)
        return None
    return merged(_made_file(part) or {}, kept)


def _may_be_content(part: Part) -> bool:
    """Say whether a part that is no text may stand in what a user says, or a tool gave."""
    known = part["type"] != "file" or "provider_name" in own(part, name)
    return known and _made_file(part) is not None


def _made_file(part: Part) -> Raw | None:
    if part["type"] == "file":
        typed = {"media_type": part["mime_type"]} if "mime_type" in part else {}
        return {"kind": "uploaded-file", "file_id": part["file_id"], **typed}
    if part["type"] != "uri":
        return None
    data = media.data_of(part["uri"])
    if data:
        return {"kind": "binary", "media_type": data[0], "data": data[1].translate(_URL_SAFE)}
    typed = {"media_type": part["mime_type"]} if "mime_type" in part else {}
    return {"kind": f"{part['modality']}-url", "url": part["uri"], **typed}


# -- from the provider -----------------------------------------------------------------------------


def _request(raw: Raw, path: str, tools: dict[str, str]) -> list[Message]:
    """Return a message for each part; the first keeps what the request says beside its parts."""
    rest: Any = {key: value for key, value in raw.items() if key not in ("kind", "parts")}
    parts = listed(raw.get("parts"), f"{path}.parts")
    if not parts:
        return [{"role": "user", "parts": [whole(name, raw, "kind")]}]
    out = []
    for j, one in enumerate(parts):
        message = _said(item(one, f"{path}.parts[{j}]"), f"{path}.parts[{j}]", tools)
        kept = {**own(message, name), "request": "same" if j else rest}
        out.append(with_own(message, name, kept))
    return out


def _said(raw: Raw, path: str, tools: dict[str, str]) -> Message:
    kind, content = raw.get("part_kind"), raw.get("content")
    if kind == "tool-return" or (kind == "retry-prompt" and raw.get("tool_name")):
        return {"role": "tool", "parts": _answer(raw, path, tools)}
    if kind == "system-prompt" and isinstance(content, str):
        return _prompt("system", [{"type": "text", "content": content}], {}, raw)
    if kind == "user-prompt" and isinstance(content, str):
        return _prompt("user", [{"type": "text", "content": content}], {}, raw)
    if kind == "user-prompt" and isinstance(content, list) and content:
        mark = {"as": "list"} if len(content) == 1 and isinstance(content[0], str) else {}
        parts = [_item(one, f"{path}.content[{k}]") for k, one in enumerate(content)]
        return _prompt("user", parts, mark, raw)
    return {"role": "user", "parts": [whole(name, raw, "part_kind")]}


def _prompt(role: str, parts: list[Part], mark: Raw, raw: Raw) -> Message:
    made = {"part_kind": f"{role}-prompt", "content": raw["content"]}
    kept = {**beyond(raw, made), **mark}
    return with_own({"role": role, "parts": parts}, name, {"part": kept} if kept else {})


def _answer(raw: Raw, path: str, tools: dict[str, str]) -> list[Part]:
    id, content = text_of(raw, "tool_call_id", path), raw.get("content")
    response, beside, mark = _split(content)
    part = {"type": "tool_call_response", "id": id, "response": response}
    kept = {**beyond(raw, _made_result(id, content, tools)), **mark}
    return [with_own(part, name, kept), *(_item(one, f"{path}.content") for one in beside)]


def _split(content: Any) -> tuple[Any, list[Any], Raw]:
    """Return a result's value, what stands from its first file on, and the mark it needs to be put together again."""
    if _is_file(content):
        return None, [content], {"as": "one"}
    if not isinstance(content, list):
        return content, [], {}
    first = next((i for i, one in enumerate(content) if _is_file(one)), len(content))
    said, beside = content[:first], content[first:]
    if not beside or not all(isinstance(one, str) or _is_file(one) for one in beside):
        return content, [], {}
    if len(said) == 1 and not isinstance(said[0], list) and said[0] is not None:
        return said[0], beside, {}
    return said or None, beside, {}


def _is_file(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("kind") in _FILES
        and any(isinstance(value.get(key), str) for key in ("url", "data", "file_id"))
        and _file(value) is not None
    )


def _item(one: Any, path: str) -> Part:
    """Return an item of a prompt, or a file of a result, as a part.

    Raises: import-invalid: it is neither text nor an object.
    """
    if isinstance(one, str):
        return {"type": "text", "content": one}
    one = item(one, path)
    if one.get("kind") == "text-content" and isinstance(one.get("content"), str):
        part: Part = {"type": "text", "content": one["content"]}
        made: Raw | None = {"content": one["content"]}
    else:
        found = _file(one)
        part, made = (found, _made_file(found)) if found else ({}, None)
    return whole(name, one, "kind") if made is None else with_own(part, name, beyond(one, made))


def _file(raw: Raw) -> Part | None:
    kind, mime = raw.get("kind"), raw.get("media_type")
    typed = {"mime_type": mime} if isinstance(mime, str) else {}
    if isinstance(kind, str) and kind in _URLS and isinstance(raw.get("url"), str):
        if media.data_of(raw["url"]):
            return None
        return {"type": "uri", "modality": _URLS[kind], **typed, "uri": raw["url"]}
    if kind == "binary" and isinstance(raw.get("data"), str) and isinstance(mime, str):
        uri = media.data_uri(mime, raw["data"].translate(_PLAIN))
        return media.uri_part(uri, modality_of(mime)) if media.data_of(uri) else None
    if kind == "uploaded-file" and isinstance(raw.get("file_id"), str):
        modality = modality_of(mime if isinstance(mime, str) else "")
        return {"type": "file", "modality": modality, **typed, "file_id": raw["file_id"]}
    return None


def _response(raw: Raw, path: str) -> Message:
    parts = [
        _replied(item(one, f"{path}.parts[{j}]"))
        for j, one in enumerate(listed(raw.get("parts"), f"{path}.parts"))
    ]
    rest = {key: value for key, value in raw.items() if key not in ("kind", "parts")}
    ended = (
        {"finish_reason": rest.pop("finish_reason")}
        if rest.get("finish_reason") in _FINISHED
        else {}
    )
    return with_own({"role": "assistant", "parts": parts, **ended}, name, rest)


def _replied(raw: Raw) -> Part:
    kind, content = raw.get("part_kind"), raw.get("content")
    part: Part | None = None
    if kind in ("text", "thinking") and isinstance(content, str):
        part = {"type": "text" if kind == "text" else "reasoning", "content": content}
    elif kind == "tool-call" and all(
        isinstance(raw.get(k), str) for k in ("tool_name", "tool_call_id")
    ):
        part = {"type": "tool_call", "id": raw["tool_call_id"], "name": raw["tool_name"]}
        part["arguments"] = (
            arguments(raw.get("args")) if isinstance(raw.get("args"), str) else raw.get("args")
        )
    elif kind == "file" and isinstance(content, dict):
        part = _file(content)
    made = _made_part(part) if part else None
    if part is None or made is None:
        return whole(name, raw, "part_kind")
    return with_own(part, name, beyond(raw, made))
