"""One message of LibreChat in the neutral shape. Pure.

Who speaks is told by `isCreatedByUser`; `sender` is a name for people. What an answer consists of is
in `content`, a tool's result with its call; older answers have `text` alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledger.formats import clean, media, pieces, talk
from ledger.formats import usage as counts
from ledger.formats.base import Message, Notes
from ledger.formats.converting import Part, Raw, arguments
from ledger.records.messages import modality_of

_NAME = "librechat"
_BESIDE = ("sender", "isEdited", "plugin", "plugins", "feedback", "iconURL")


def is_asked(raw: Raw) -> bool:
    """Say whether a user speaks."""
    asked = raw.get("isCreatedByUser")
    return asked if isinstance(asked, bool) else str(raw.get("sender", "")).lower() == "user"


def neutral(id: str, raw: Raw, notes: Notes) -> list[Message]:
    """Return what a message says."""
    said = list(_said(id, raw, notes))
    if is_asked(raw):
        parts = [part for message in said for part in message["parts"]]
        said = [{"role": "user", "parts": parts or [{"type": "text", "content": ""}]}]
    said = talk.joined(said) or [{"role": "assistant", "parts": []}]
    said[0]["parts"] = [*said[0]["parts"], *_files(raw, notes)]
    if isinstance(raw.get("finish_reason"), str):
        said[-1]["finish_reason"] = clean.text(raw["finish_reason"], notes)
    kept = {key: clean.value(raw[key], notes) for key in _BESIDE if raw.get(key)}
    for message in said:
        message["only"] = {_NAME: {"id": id}}
        talk.count_unknown(message, notes)
    said[-1]["only"][_NAME].update(kept)
    return said


def usage(raw: Raw) -> dict[str, int] | None:
    """Return the counts of an answer: its own tokens, and those of what it was given."""
    told = {"input_tokens": raw.get("promptTokens"), "output_tokens": raw.get("tokenCount")}
    return counts.counts(told)


def cut(raw: Raw) -> str | None:
    """Return why an answer is not whole, or None when it is."""
    if raw.get("error") is True:
        return "error"
    if raw.get("finish_reason") in ("length", "max_tokens"):
        return "length"
    return "partial" if raw.get("unfinished") is True else None


def _said(id: str, raw: Raw, notes: Notes) -> Iterator[Message]:
    role = "user" if is_asked(raw) else "assistant"
    content = raw.get("content")
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    if raw.get("error") is True and not blocks:
        blocks = [{"type": "error", "error": raw.get("text")}]
    elif not blocks:
        blocks = [{"type": "text", "text": raw.get("text")}]
    for place, block in enumerate(blocks):
        if role == "assistant" and block.get("type") == "tool_call":
            yield from _round(f"{id}.{place}", block, notes)
        else:
            yield {"role": role, "parts": list(_block(block, role, notes))}


def _block(block: Raw, role: str, notes: Notes) -> Iterator[Part]:
    """Yield the part of a block; one that is not known is kept whole."""
    kind = block.get("type")
    inner = block.get(kind) if isinstance(kind, str) else None
    text = inner.get("value") if isinstance(inner, dict) else inner
    if kind == "text" and (isinstance(text, str) or inner is None):
        yield from pieces.text(text, notes)
    elif kind == "think" and role == "assistant" and isinstance(text, str):
        yield {"type": "reasoning", "content": clean.text(text, notes)}
    elif kind == "image_file" and isinstance(inner, dict):
        yield _file(clean.value(inner, notes), "image")
    elif kind == "image_url":
        url = inner.get("url") if isinstance(inner, dict) else inner
        yield media.uri_part(clean.text(str(url), notes), "image")
    else:
        named = clean.text(kind, notes) if isinstance(kind, str) else "unnamed"
        yield {"type": f"{_NAME}:{named}", "content": clean.value(block, notes)}


def _round(id: str, block: Raw, notes: Notes) -> Iterator[Message]:
    """Yield a call, and its result where there is one."""
    call = block.get("tool_call")
    call = call.get("function", call) if isinstance(call, dict) else {}
    inner = block.get("tool_call")
    given = inner.get("id") if isinstance(inner, dict) else None
    id = clean.text(given, notes) if isinstance(given, str) and given else id
    tool = clean.text(str(call.get("name") or "unknown"), notes)
    asked = call.get("args", call.get("arguments"))
    asked = arguments(asked) if isinstance(asked, str) else asked
    part: Part = {
        "type": "tool_call",
        "id": id,
        "name": tool,
        "arguments": clean.value(asked, notes),
    }
    yield {"role": "assistant", "parts": [part]}
    if call.get("output") is not None:
        answer = {
            "type": "tool_call_response",
            "id": id,
            "response": clean.value(call["output"], notes),
        }
        yield {"role": "tool", "name": tool, "parts": [answer]}


def _files(raw: Raw, notes: Notes) -> Iterator[Part]:
    for key in ("files", "attachments"):
        listed = raw.get(key)
        for one in listed if isinstance(listed, list) else []:
            if isinstance(one, dict):
                kind = one.get("type")
                yield _file(
                    clean.value(one, notes),
                    modality_of(kind if isinstance(kind, str) else ""),
                )


def _file(kept: Raw, modality: str) -> Part:
    names = [kept.get(key) for key in ("file_id", "filepath", "filename")]
    id = next((one for one in names if isinstance(one, str) and one), "unnamed")
    return {"type": "file", "modality": modality, "file_id": id, "only": {_NAME: kept}}
