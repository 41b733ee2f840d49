"""One message of Open WebUI in the neutral shape. Pure.

An answer's `output` lists what the model did, as OpenAI Responses items. Without it, thoughts and
tool rounds stand in `content` as `<details type="...">` elements, which are read back out of it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from ledger.formats import clean, media, openai_responses, pieces, talk
from ledger.formats.base import Message, Notes
from ledger.formats.converting import Part, Raw, arguments

_NAME = "open-webui"
_DETAILS = re.compile(r'<details\s+type="(reasoning|tool_calls|code_interpreter)"')
_END = "</details>"
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_SUMMARY = re.compile(r"\s*<summary>.*?</summary>\s*", re.DOTALL)
_ROLES = {"user": "user", "assistant": "assistant", "system": "system"}
_BESIDE = (
    "sources",
    "citations",
    "annotation",
    "merged",
    "modelName",
    "statusHistory",
    "code_executions",
)


def neutral(id: str, raw: Raw, notes: Notes) -> list[Message]:
    """Return what a message says; none when it is no message of anybody."""
    role = raw.get("role") if isinstance(raw.get("role"), str) else None
    if role not in _ROLES:
        if not raw.get("content"):
            notes.counts["messages without a role or content walked through"] += 1
            return []
        notes.unknown[f"role {clean.value(raw.get('role'), notes)}"] += 1
    if role == "assistant":
        made = talk.joined(_reply(id, raw, notes)) or [{"role": "assistant", "parts": []}]
    else:
        parts = pieces.text(_text(raw.get("content")), notes)
        made = [{"role": _ROLES.get(role or "", "system"), "parts": parts}]
    made[0]["parts"] += _files(raw, notes)
    if not made[0]["parts"] and role != "assistant":
        made[0]["parts"].append({"type": "text", "content": ""})
    kept = {key: clean.value(raw[key], notes) for key in _BESIDE if raw.get(key)}
    for message in made:
        message.setdefault("only", {})[_NAME] = {"id": id}
        talk.count_unknown(message, notes)
    made[-1]["only"][_NAME].update(kept)
    return made


def _text(content: Any) -> str:
    """Return a message's content as text: it may be a list of blocks, as a provider takes them."""
    if isinstance(content, list):
        texts = [one.get("text") for one in content if isinstance(one, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _reply(id: str, raw: Raw, notes: Notes) -> Iterator[Message]:
    output = raw.get("output")
    if isinstance(output, list) and output:
        for one in output:
            yield from talk.read(openai_responses, one, notes)
    else:
        yield from told(id, _text(raw.get("content")), notes)
    if error := raw.get("error"):
        content = error if isinstance(error, dict) else {"content": error}
        part = {"type": f"{_NAME}:error", "content": clean.value(content, notes)}
        yield {"role": "assistant", "parts": [part]}


# -- thoughts and tools in a text ------------------------------------------------------------------


def told(id: str, content: str, notes: Notes) -> Iterator[Message]:
    """Yield what a text tells: its own words, thoughts, and calls with their results."""
    at = 0
    for place, found in enumerate(_DETAILS.finditer(content)):
        opened = content.find(">", found.end())
        closed = content.find(_END, opened)
        if opened < 0 or closed < 0:
            break
        if found.start() < at:
            continue
        yield from _words(content[at : found.start()], notes)
        at = closed + len(_END)
        kind, inner = found[1], _SUMMARY.sub("", content[opened + 1 : closed], count=1)
        attributes = _ATTRIBUTE.findall(content[found.end() : opened])
        given = {key: html.unescape(value) for key, value in attributes}
        if kind == "reasoning":
            yield _assistant({"type": "reasoning", "content": clean.text(_thought(inner), notes)})
        elif kind == "tool_calls":
            yield from _round(given.get("id") or f"{id}.{place}", given, notes)
        else:
            made = {"name": kind, "arguments": inner, "result": given.get("output", "")}
            yield from _round(f"{id}.{place}", {**given, **made}, notes)
    yield from _words(content[at:], notes)


def _words(text: str, notes: Notes) -> Iterator[Message]:
    text = text.strip("\n")
    if text.strip():
        yield _assistant({"type": "text", "content": clean.text(text, notes)})


def _assistant(part: Part) -> Message:
    return {"role": "assistant", "parts": [part]}


def _thought(inner: str) -> str:
    """Return a thought without the marks of a quotation that it is shown with."""
    lines = html.unescape(inner).strip("\n").split("\n")
    return "\n".join(re.sub(r"^> ?", "", line) for line in lines)


def _round(id: str, given: dict[str, str], notes: Notes) -> Iterator[Message]:
    call: Part = {"type": "tool_call", "id": clean.text(id, notes)}
    call["name"] = clean.text(given.get("name", "unknown"), notes)
    call["arguments"] = clean.value(_spoken(given.get("arguments", "")), notes)
    yield _assistant(call)
    if given.get("result") or given.get("done") == "true":
        response = clean.value(_spoken(given.get("result", "")), notes)
        part = {"type": "tool_call_response", "id": call["id"], "response": response}
        yield {"role": "tool", "name": call["name"], "parts": [part]}


def _spoken(text: str) -> Any:
    """Return what a text in an attribute is: JSON within a JSON text, mostly."""
    value = arguments(text)
    if isinstance(value, str) and value.startswith('"'):
        try:
            value = arguments(json.loads(value))
        except (ValueError, RecursionError):
            return text
    return value


# -- files -----------------------------------------------------------------------------------------


def _files(raw: Raw, notes: Notes) -> Iterator[Part]:
    listed = raw.get("files")
    for one in listed if isinstance(listed, list) else []:
        if not isinstance(one, dict):
            continue
        url, kind = one.get("url"), one.get("type")
        modality = "image" if kind == "image" else "document"
        if isinstance(url, str) and (media.data_of(url) or kind == "image"):
            yield media.uri_part(clean.text(url, notes), modality)
            continue
        names = [one.get(key) for key in ("id", "name", "url")]
        id = next((given for given in names if isinstance(given, str) and given), "unnamed")
        rest = {key: value for key, value in one.items() if key != "file"}
        part = {"type": "file", "modality": modality, "file_id": clean.text(id, notes)}
        yield {**part, "only": {_NAME: clean.value(rest, notes)}}
