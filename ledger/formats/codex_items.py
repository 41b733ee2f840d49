"""One item of a Codex rollout as a neutral message: what is said, thought, called, given back. Pure."""

from __future__ import annotations

import re
from typing import Any

from ledger.formats import clean, pieces
from ledger.formats.base import Message, Notes
from ledger.formats.pieces import Part, Raw, of, string

name = "codex-cli"
OPENAI = "openai-responses"
"""Who understands what is encrypted."""

_INJECTED = re.compile(r"\s*(<[a-zA-Z_][^>]*>|# AGENTS\.md instructions)")
_REQUEST = re.compile(r"^#+ My request for Codex:[ \t]*\n?", re.MULTILINE)
_NAMES = {"local_shell_call": "local_shell", "tool_call": ""}
_CALL_KEYS = frozenset(
    {"type", "call_id", "id", "name", "function", "arguments", "input", "action", "status"}
)


def texts(payload: Raw) -> list[str]:
    """Return the texts of a message's content."""
    content = payload.get("content")
    if isinstance(content, str):
        return [content]
    return [string(one["text"]) for one in pieces.objects(content) if "text" in one]


def is_injected(payload: Raw) -> bool:
    """Say whether a user's message was put in by the program: it begins with a tag, or a known head."""
    said = texts(payload)
    return bool(said) and all(_INJECTED.match(text) for text in said)


def typed(text: str) -> str:
    """Return what a person typed of a prompt to which an editor added where they are."""
    found = _REQUEST.search(text)
    return text[found.end() :].strip() if found else text


def said(payload: Raw, notes: Notes) -> Message:
    """Return a message of the user, the model, or the program (which is flagged as hidden)."""
    role = payload.get("role")
    parts = _content(payload.get("content"), notes)
    if role in ("user", "assistant"):
        return pieces.message(role, parts, only=_own(payload, "phase", notes=notes))
    return hidden(parts)


def hidden(parts: list[Part], **flags: Any) -> Message:
    """Return what a person did not see."""
    return pieces.message("developer", parts, only={name: {"hidden": True, **flags}})


def reasoning(payload: Raw, notes: Notes) -> Message:
    """Return a thought: its summary, or what there is of it; what is encrypted stays for its vendor."""
    told = [string(one.get("text")) for one in pieces.objects(payload.get("summary"))]
    told = told or [string(one.get("text")) for one in pieces.objects(payload.get("content"))]
    sealed = {"encrypted_content": payload["encrypted_content"]} if _sealed(payload) else {}
    text = "\n\n".join(filter(None, told)) or string(payload.get("text"))
    return pieces.message("assistant", pieces.reasoning(text, notes, **{OPENAI: sealed}))


def is_call(payload: Raw) -> bool:
    """Say whether an item calls a tool."""
    return string(payload.get("type")).endswith("_call")


def is_result(payload: Raw) -> bool:
    """Say whether an item is what a tool gave back."""
    return string(payload.get("type")).endswith(("_call_output", "_result", "_output"))


def tool_of(payload: Raw) -> str:
    """Return the name of the tool that is called, or has answered."""
    kind = string(payload.get("type"))
    given = string(payload.get("name")) or string(of(payload, "function").get("name"))
    return given or _NAMES.get(kind) or kind.removesuffix("_call")


def call_id(payload: Raw) -> str:
    """Return the id of a call; an empty one where there is none."""
    return string(payload.get("call_id")) or string(payload.get("id"))


def call(payload: Raw, id: str, notes: Notes) -> Message:
    """Return the call of a tool."""
    keys = ("arguments", "input", "action")
    given: Any = next((payload[key] for key in keys if payload.get(key) is not None), {})
    part = pieces.call(id, tool_of(payload), given, notes)
    rest = {key: value for key, value in payload.items() if key not in _CALL_KEYS and value}
    parts = [part, *_made_image(rest, notes)]
    if rest:
        part["only"] = {name: clean.value(rest, notes)}
    return pieces.message("assistant", parts)


def result(payload: Raw, id: str, notes: Notes) -> Message:
    """Return what a tool gave back: as text where it is text."""
    given = next((payload[key] for key in ("output", "result", "tools") if key in payload), None)
    beside: list[Part] = []
    if isinstance(given, list) and all(isinstance(one, dict) and "type" in one for one in given):
        beside = _content(given, notes)
        given = pieces.said(beside)
        beside = [part for part in beside if part["type"] != "text"]
    return pieces.message("tool", [pieces.response(id, given, notes), *beside])


def opaque(kind: str, payload: Any, notes: Notes) -> Message:
    """Keep what is no message, as a part of its own type."""
    return pieces.message("assistant", [pieces.opaque(name, kind, payload, notes)])


def asked(payload: Raw, notes: Notes) -> Message:
    """Return a prompt that is told by an event alone."""
    parts = pieces.text(payload.get("message"), notes)
    for uri in payload.get("images") or [] if isinstance(payload.get("images"), list) else []:
        parts += pieces.link(uri, "image", notes)
    return pieces.message("user", parts)


def counts(given: Any) -> dict[str, int] | None:
    """Return the token counts of a call: what was cached is part of the input, thoughts of the output."""
    return pieces.tokens(
        input_tokens=of({"u": given}, "u").get("input_tokens"),
        output_tokens=of({"u": given}, "u").get("output_tokens"),
        cache_read_tokens=of({"u": given}, "u").get("cached_input_tokens"),
        reasoning_tokens=of({"u": given}, "u").get("reasoning_output_tokens"),
    )


def _content(content: Any, notes: Notes) -> list[Part]:
    if isinstance(content, str):
        return pieces.text(content, notes)
    return [part for one in pieces.objects(content) for part in _piece(one, notes)]


def _piece(piece: Raw, notes: Notes) -> list[Part]:
    kind = piece.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text"):
        return pieces.text(piece.get("text"), notes)
    if kind in ("input_image", "image"):
        url = piece.get("image_url")
        return pieces.link(url.get("url") if isinstance(url, dict) else url, "image", notes)
    return pieces.unknown(name, "content", kind, piece, notes)


def _made_image(rest: Raw, notes: Notes) -> list[Part]:
    """Take the image that a call has made out of it."""
    return (
        pieces.image("image/png", rest.pop("result"), notes) if string(rest.get("result")) else []
    )


def _sealed(payload: Raw) -> bool:
    return bool(string(payload.get("encrypted_content")))


def _own(payload: Raw, *keys: str, notes: Notes) -> Raw | None:
    kept = {key: clean.value(payload[key], notes) for key in keys if payload.get(key)}
    return {name: kept} if kept else None
