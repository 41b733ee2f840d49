"""One message of Claude.ai in the neutral shape. Pure.

An assistant's message holds its tool rounds: calls and results are blocks among its texts. Their ids
are mostly absent; then a result belongs to the first call to its tool that has none yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.formats import clean, pieces, talk
from ledger.formats.base import Message, Notes
from ledger.formats.converting import Part, Raw
from ledger.records.messages import modality_of

_APART = {
    "text": ("text",),
    "thinking": ("thinking",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "name", "content"),
}


def listed(value: Raw) -> list[Raw]:
    """Return the messages of a conversation that are objects."""
    return [one for one in value["chat_messages"] if isinstance(one, dict)]


def neutral(id: str, raw: Raw, notes: Notes) -> list[Message]:
    """Return what a message says. A message of neither side is hidden context."""
    blocks = _blocks(raw, notes)
    if raw.get("sender") == "assistant":
        made = talk.joined(_reply(id, blocks, notes))
        if isinstance(raw.get("stop_reason"), str):
            made[-1]["finish_reason"] = clean.text(raw["stop_reason"], notes)
    else:
        role = "user" if raw.get("sender") == "human" else "system"
        parts = [_said(block, notes) for block in blocks]
        made = [{"role": role, "parts": parts}]
    made[0]["parts"] += [*_pasted(raw, notes), *_files(raw, notes)]
    if not made[0]["parts"] and made[0]["role"] != "assistant":
        made[0]["parts"].append({"type": "text", "content": ""})
    for message in made:
        message["only"] = {"claude-ai": {"id": id}}
        talk.count_unknown(message, notes)
    return made


def prompt_text(messages: list[Message]) -> str:
    """Return what a person wrote: what was pasted as a file with a name is no part of it."""
    parts = [part for message in messages for part in message["parts"]]
    return pieces.said([part for part in parts if not _own(part).get("file_name")])


def _own(part: Part) -> Raw:
    own: Raw = part.get("only", {}).get("claude-ai", {})
    return own


def _blocks(raw: Raw, notes: Notes) -> list[Raw]:
    """Return a message's blocks; where they say nothing, its text as one.

    In some exports `text` repeats what the blocks say, thinking included, so it comes second.
    """
    content = raw.get("content")
    blocks = []
    for block in content if isinstance(content, list) else []:
        blocks.append(block if isinstance(block, dict) else {"type": "text", "text": block})
    text = raw.get("text")
    if isinstance(text, str) and text and not any(block.get("text") for block in blocks):
        blocks.append({"type": "text", "text": text})
    return [block for block in blocks if block.get("type") != "text" or block.get("text")]


def _reply(id: str, blocks: list[Raw], notes: Notes) -> Iterator[Message]:
    """Yield what an assistant says, block by block, and each result of a tool."""
    waiting: list[Part] = []
    for place, block in enumerate(blocks):
        if block.get("type") == "tool_result":
            yield _result(f"{id}.{place}", block, waiting, notes)
            continue
        part = _call(f"{id}.{place}", block, notes) if block.get("type") == "tool_use" else None
        if part is not None:
            waiting.append(part)
        yield {"role": "assistant", "parts": [part or _said(block, notes)]}
    if not blocks:
        yield {"role": "assistant", "parts": []}


def _call(id: str, block: Raw, notes: Notes) -> Part | None:
    if not isinstance(block.get("name"), str):
        return None
    given = block.get("id")
    made: Part = {
        "type": "tool_call",
        "id": clean.text(given, notes) if isinstance(given, str) and given else id,
        "name": clean.text(block["name"], notes),
        "arguments": clean.value(block.get("input"), notes),
    }
    return _beside(made, block, notes)


def _result(id: str, block: Raw, waiting: list[Part], notes: Notes) -> Message:
    name, given = block.get("name"), block.get("tool_use_id")
    named = [call for call in waiting if call["name"] == name or not isinstance(name, str)]
    if isinstance(given, str) and given:
        call = next((call for call in waiting if call["id"] == given), None)
        id = clean.text(given, notes)
    else:
        call = named[0] if named else None
        id = call["id"] if call else id
    if call is not None:
        waiting.remove(call)
    response, beside = _response(block.get("content"), notes)
    part = _beside({"type": "tool_call_response", "id": id, "response": response}, block, notes)
    made: Message = {"role": "tool", "parts": [part, *beside]}
    if isinstance(name, str) and name:
        made["name"] = clean.text(name, notes)
    return made


def _response(content: Any, notes: Notes) -> tuple[Any, list[Part]]:
    """Return what a tool gave back: its texts as one, else as it stands."""
    if not isinstance(content, list):
        return clean.value(content, notes), []
    texts = [one.get("text") for one in content if isinstance(one, dict)]
    if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
        return clean.text("\n".join(map(str, texts)), notes), []
    return clean.value(content, notes), []


def _said(block: Raw, notes: Notes) -> Part:
    """Return a block as a part; one that is not known is kept whole."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return _beside({"type": "text", "content": clean.text(block["text"], notes)}, block, notes)
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        thought = clean.text(block["thinking"], notes)
        return _beside({"type": "reasoning", "content": thought}, block, notes)
    named = clean.text(kind, notes) if isinstance(kind, str) else "unnamed"
    return {"type": f"claude-ai:{named}", "content": clean.value(block, notes)}


def _beside(part: Part, block: Raw, notes: Notes) -> Part:
    """Return a part with what only this product understands of its block, where that says something."""
    apart = ("type", *_APART[str(block["type"])])
    kept = {
        key: value
        for key, value in block.items()
        if key not in apart and value not in (None, [], {}, "")
    }
    return {**part, "only": {"claude-ai": clean.value(kept, notes)}} if kept else part


# -- what was given with a prompt ------------------------------------------------------------------


def _pasted(raw: Raw, notes: Notes) -> Iterator[Part]:
    """Yield what was attached as text; a prompt that was pasted is in a file without a name."""
    for one in pieces.objects(raw.get("attachments")):
        text = one.get("extracted_content")
        rest = clean.value({k: v for k, v in one.items() if k != "extracted_content"}, notes)
        if isinstance(text, str) and text:
            only = {"claude-ai": rest}
            yield {"type": "text", "content": clean.text(text, notes), "only": only}
        elif rest:
            yield _file(rest)


def _files(raw: Raw, notes: Notes) -> Iterator[Part]:
    """Yield the files of a message; the newer list repeats those of the older one."""
    seen: list[Any] = []
    for one in [*pieces.objects(raw.get("files")), *pieces.objects(raw.get("files_v2"))]:
        key = one.get("file_uuid") or one
        if key not in seen:
            seen.append(key)
            yield _file(clean.value(one, notes))


def _file(kept: Raw) -> Part:
    named = [kept.get(key) for key in ("file_uuid", "id", "file_name")]
    id = next((one for one in named if isinstance(one, str) and one), "unnamed")
    kind, mime = kept.get("file_kind"), kept.get("file_type")
    modality = "image" if kind == "image" else modality_of(mime if isinstance(mime, str) else "")
    return {"type": "file", "modality": modality, "file_id": id, "only": {"claude-ai": kept}}
