"""One message of LangChain in the neutral shape. Pure."""

from __future__ import annotations

from typing import Any

from ledger.formats import clean, media, talk
from ledger.formats.base import Message, Notes
from ledger.formats.converting import Part, Raw, arguments

_NAME = "langchain"
_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
    "chat": "",
    "remove": "",
}
_CLASSES = {
    f"{word}{chunk}": kind
    for word, kind in {
        "HumanMessage": "human",
        "AIMessage": "ai",
        "SystemMessage": "system",
        "ToolMessage": "tool",
        "FunctionMessage": "function",
        "ChatMessage": "chat",
        "RemoveMessage": "remove",
    }.items()
    for chunk in ("", "Chunk")
}
_SAID_BY = {"assistant": "tool_calls", "tool": "tool_call_id"}
"""The key that is read of a message of one role alone."""
_FINISH = ("finish_reason", "stop_reason", "done_reason")
_CUT = {"length": "length", "max_tokens": "length", "MAX_TOKENS": "length"}
_APART = frozenset(
    {
        "type",
        "content",
        "id",
        "name",
        "role",
        "usage_metadata",
        "example",
    }
)


def flat(raw: object) -> Raw | None:
    """Return a message of any shape with its keys side by side; None: it is none."""
    if not isinstance(raw, dict):
        return None
    if raw.get("lc") == 1 and isinstance(raw.get("kwargs"), dict):
        path = raw.get("id")
        word = path[-1] if isinstance(path, list) and path else None
        kind = _CLASSES.get(word) if isinstance(word, str) else None
        return _known({**raw["kwargs"], "type": kind or raw["kwargs"].get("type")})
    if isinstance(raw.get("data"), dict) and isinstance(raw.get("type"), str):
        return _known({**raw["data"], "type": raw["type"]})
    return _known(raw)


def _known(one: Raw) -> Raw | None:
    kind = one.get("type")
    if not isinstance(kind, str):
        return None
    kind = _CLASSES.get(kind, kind)
    has_content = "content" in one or kind == "remove"
    return {**one, "type": kind} if kind in _ROLES and has_content else None


def role(one: Raw) -> str:
    """Return who says a flat message."""
    given = one.get("role")
    said_by = _ROLES[one["type"]] or (_ROLES.get(given) if isinstance(given, str) else None)
    return said_by or "system"


def own_id(one: Raw) -> str | None:
    """Return the id a message has in its list."""
    given = one.get("id")
    return clean.record_id(given) if isinstance(given, str) and given else None


def identity(one: Raw) -> list[Any]:
    """Return what makes a message this one, the same in every shape: not when or by whom it is kept."""
    calls = one.get("tool_calls")
    made = [
        [call.get("id"), call.get("name"), call.get("args")] if isinstance(call, dict) else call
        for call in (calls if isinstance(calls, list) else [])
    ]
    return [one["type"], one.get("id"), one.get("content"), made, one.get("tool_call_id")]


def model(one: Raw, notes: Notes) -> str | None:
    """Return the model that answered."""
    given = _metadata(one).get("model_name") or _metadata(one).get("model")
    return clean.text(given, notes) if isinstance(given, str) and given else None


def cut(one: Raw) -> str | None:
    """Return why an answer is not whole, or None when it is."""
    found = _finish(one)
    return _CUT.get(found) if found else None


def _metadata(one: Raw) -> Raw:
    given = one.get("response_metadata")
    return given if isinstance(given, dict) else {}


def _finish(one: Raw) -> str | None:
    given = [_metadata(one).get(key) for key in _FINISH]
    return next((found for found in given if isinstance(found, str)), None)


def neutral(one: Raw, notes: Notes) -> list[Message]:
    """Return what a flat message says."""
    who = role(one)
    content = one.get("content")
    if who == "tool":
        made = _result(one, notes)
    else:
        parts = _parts(content, who, notes)
        if who == "assistant":
            parts = _with_calls(parts, one, notes)
        made = {"role": who, "parts": parts or ([] if who == "assistant" else [_text("", notes)])}
        if isinstance(one.get("name"), str) and one["name"]:
            made["name"] = clean.text(one["name"], notes)
    if finish := _finish(one):
        made["finish_reason"] = clean.text(finish, notes)
    rest = {
        key: value
        for key, value in one.items()
        if key not in _APART and key != _SAID_BY.get(who) and value not in (None, [], {}, "")
    }
    made["only"] = {_NAME: clean.value({"id": one.get("id"), **rest}, notes)}
    talk.count_unknown(made, notes)
    return [made]


def _text(content: str, notes: Notes) -> Part:
    return {"type": "text", "content": clean.text(content, notes)}


def _parts(content: Any, who: str, notes: Notes) -> list[Part]:
    if isinstance(content, str):
        return [_text(content, notes)] if content else []
    blocks = content if isinstance(content, list) else [content] if content is not None else []
    return [_part(block, who, notes) for block in blocks]


def _part(block: Any, who: str, notes: Notes) -> Part:
    """Return a block as a part; one that is not known is kept whole."""
    if isinstance(block, str):
        return _text(block, notes)
    block = clean.value(block if isinstance(block, dict) else {"value": block}, notes)
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return _text(block["text"], notes)
    thought = block.get("reasoning", block.get("thinking"))
    if kind in ("reasoning", "thinking") and who == "assistant" and isinstance(thought, str):
        rest = {key: value for key, value in block.items() if key not in ("type", kind)}
        part: Part = {"type": "reasoning", "content": thought}
        return {**part, "only": {_NAME: rest}} if rest else part
    url = block.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if kind == "image_url" and isinstance(url, str):
        return media.uri_part(url, "image")
    if kind in ("image", "audio", "video", "file") and (uri := _address(block)):
        return media.uri_part(uri, "document" if kind == "file" else kind)
    return {"type": f"{_NAME}:{kind if isinstance(kind, str) else 'unnamed'}", "content": block}


def _address(block: Raw) -> str | None:
    """Return the address of a block of media: its own, or one made of its data."""
    if isinstance(block.get("url"), str):
        return str(block["url"])
    data, mime = block.get("data", block.get("base64")), block.get("mime_type")
    if isinstance(data, str) and isinstance(mime, str):
        uri = media.data_uri(mime, data)
        return uri if media.data_of(uri) else None
    return None


def _with_calls(parts: list[Part], one: Raw, notes: Notes) -> list[Part]:
    """Return an assistant's parts with its calls; blocks that only repeat them are left out."""
    listed = one.get("tool_calls")
    calls = [
        call for call in (listed if isinstance(listed, list) else []) if isinstance(call, dict)
    ]
    if calls:
        repeats = (f"{_NAME}:tool_use", f"{_NAME}:tool_call", f"{_NAME}:function_call")
        parts = [part for part in parts if part["type"] not in repeats]
    for place, call in enumerate(calls):
        given, asked = call.get("id"), call.get("args")
        parts.append(
            {
                "type": "tool_call",
                "id": clean.text(given, notes) if isinstance(given, str) else f"call-{place}",
                "name": clean.text(str(call.get("name") or "unknown"), notes),
                "arguments": clean.value(
                    arguments(asked) if isinstance(asked, str) else asked, notes
                ),
            }
        )
    return parts


def _result(one: Raw, notes: Notes) -> Message:
    given = one.get("tool_call_id")
    id = (
        clean.text(given, notes)
        if isinstance(given, str) and given
        else str(one.get("name") or "call")
    )
    content = one.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    if blocks and all(isinstance(text, str) for text in texts):
        content = "\n".join(map(str, texts))
    part = {"type": "tool_call_response", "id": id, "response": clean.value(content, notes)}
    made: Message = {"role": "tool", "parts": [part]}
    if isinstance(one.get("name"), str) and one["name"]:
        made["name"] = clean.text(one["name"], notes)
    return made
