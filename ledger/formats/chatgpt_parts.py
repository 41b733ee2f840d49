"""The pieces of a ChatGPT message as neutral parts: text, pointers, thinking. Pure.

What is not understood is kept whole as a part of type `chatgpt:<its type>`, and counted. What only
this product understands about a part (sizes, how an image was made) stays under `only.chatgpt`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ledger.formats import clean
from ledger.formats.base import Notes

Raw = dict[str, Any]

CONTEXT = frozenset({"user_editable_context", "model_editable_context", "app_pairing_content"})
"""Contents that are hidden context, whatever their role says."""
THINKING = frozenset({"thoughts", "reasoning_recap"})
PARTED = frozenset({"text", "multimodal_text"})
_OTHER = frozenset(
    {
        "code",
        "execution_output",
        "tether_quote",
        "tether_browsing_display",
        "tether_browsing_code",
        "sonic_webpage",
        "computer_output",
        "system_error",
    }
)
_CONTEXT_KEYS = (
    "user_profile",
    "user_instructions",
    "model_set_context",
    "about_user_message",
    "about_model_message",
)


def of(record: Raw, key: str) -> Raw:
    """Return an object inside another; an empty one when it is missing or something else."""
    inner = record.get(key)
    return inner if isinstance(inner, dict) else {}


class Said(NamedTuple):
    """A message of the source, and what is asked of it again and again."""

    raw: Raw
    role: Any
    """The role that it is given; anything may stand there."""
    content: Raw
    kind: str | None
    """What its content says it is."""
    metadata: Raw


def read(message: Raw) -> Said:
    """Return a message as it is asked."""
    inner = of(message, "content")
    kind = inner.get("content_type")
    role = of(message, "author").get("role")
    return Said(
        message, role, inner, kind if isinstance(kind, str) else None, of(message, "metadata")
    )


def said(parts: list[Raw]) -> str:
    """Return the text of some parts: strings and transcripts, no pointers."""
    return "\n".join(part["content"] for part in parts if part["type"] == "text")


def content(message: Said, notes: Notes) -> list[Raw]:
    """Return the parts of a message that is said, not addressed to a tool."""
    inner, kind = message.content, message.kind
    if kind in PARTED:
        pieces = inner.get("parts")
        pieces = pieces if isinstance(pieces, list) else []
        return [part for piece in pieces for part in _piece(piece, notes)]
    if kind == "code" and isinstance(inner.get("text"), str):
        return text(inner["text"], notes)
    count(kind, notes)
    return [_opaque(kind, inner, notes)] if inner else []


def text(given: Any, notes: Notes) -> list[Raw]:
    """Return a text as a part; none when there is nothing in it."""
    if not isinstance(given, str) or not given:
        return []
    return [{"type": "text", "content": clean.text(given, notes)}]


def thinking(message: Said, notes: Notes) -> list[Raw]:
    """Return thoughts, or the note of how long they took, as reasoning parts."""
    inner = message.content
    thoughts = inner.get("thoughts")
    if not isinstance(thoughts, list):
        return _reasoning(inner.get("content"), {})
    return [
        part
        for thought in thoughts
        if isinstance(thought, dict)
        for part in _reasoning(
            clean.value(_thought(thought), notes), own(thought, notes, "content", "chunks")
        )
    ]


def context(message: Said, notes: Notes) -> list[Raw]:
    """Return hidden context as text parts: from the content, else from what it was made of."""
    inner, kind = message.content, message.kind
    parts = content(message, notes) if kind not in CONTEXT else _texts(inner, notes)
    parts = parts or _texts(of(message.metadata, "user_context_message_data"), notes)
    if not parts and kind in CONTEXT and any(v for k, v in inner.items() if k != "content_type"):
        return [_opaque(kind, inner, notes)]
    return parts


def attached(parts: list[Raw], listed: Any, notes: Notes) -> list[Raw]:
    """Return the parts and the attachments; one that a part points to already is told there."""
    out = list(parts)
    for one in listed if isinstance(listed, list) else []:
        if not isinstance(one, dict) or not isinstance(one.get("id"), str) or not one["id"]:
            continue
        id = clean.text(one["id"], notes)
        there = [part for part in out if part["type"] == "uri" and id in part["uri"]]
        new: Raw = {"type": "file", "modality": "document", "file_id": id}
        part = there[0] if there else new
        mime = one.get("mime_type")
        if isinstance(mime, str):
            part["mime_type"] = clean.text(mime, notes)
            kind = mime.partition("/")[0]
            part["modality"] = kind if kind in ("image", "audio", "video") else part["modality"]
        part.setdefault("only", {}).setdefault("chatgpt", {})["attachment"] = clean.value(
            one, notes
        )
        out += [] if there else [part]
    return out


def output_images(message: Said, notes: Notes) -> list[Raw]:
    """Return pointers to the images that a code run has drawn."""
    shown = of(message.metadata, "aggregate_result").get("messages")
    return [
        {"type": "uri", "modality": "image", "uri": clean.text(one["image_url"], notes)}
        for one in (shown if isinstance(shown, list) else [])
        if isinstance(one, dict) and isinstance(one.get("image_url"), str)
    ]


def own(piece: Raw, notes: Notes, *without: str) -> Raw:
    """Return what only this product understands about a part."""
    rest = {key: inner for key, inner in piece.items() if key not in without}
    return {"chatgpt": clean.value(rest, notes)}


def count(kind: str | None, notes: Notes) -> None:
    """Count a content type that this version does not know."""
    if kind not in PARTED | THINKING | CONTEXT | _OTHER:
        notes.unknown[f"content {clean.value(kind, notes)}"] += 1


def _texts(source: Raw, notes: Notes) -> list[Raw]:
    return [part for key in _CONTEXT_KEYS for part in text(source.get(key), notes)]


def _reasoning(given: Any, beside: Raw) -> list[Raw]:
    if not isinstance(given, str) or not given:
        return []
    part: Raw = {"type": "reasoning", "content": given}
    return [{**part, "only": beside} if beside else part]


def _thought(thought: Raw) -> Any:
    chunks = thought.get("chunks")
    joined = "".join(c for c in chunks if isinstance(c, str)) if isinstance(chunks, list) else ""
    return thought.get("content") or joined or thought.get("summary")


def _opaque(kind: Any, content: Raw, notes: Notes) -> Raw:
    named = clean.text(kind, notes) if isinstance(kind, str) else "unnamed"
    return {"type": f"chatgpt:{named}", "content": clean.value(content, notes)}


# -- one piece of a message's `parts` --------------------------------------------------------------


def _piece(piece: Any, notes: Notes) -> list[Raw]:
    if isinstance(piece, str) or piece is None:
        return text(piece, notes)
    if not isinstance(piece, dict):
        piece = {"value": piece}
    kind = piece.get("content_type")
    make = _PIECES.get(kind) if isinstance(kind, str) else None
    made = make(piece, notes) if make else None
    if made is None:
        notes.unknown[f"part {clean.value(kind, notes)}"] += 1
        return [_opaque(kind, piece, notes)]
    return made


def _transcript(piece: Raw, notes: Notes) -> list[Raw] | None:
    if not isinstance(piece.get("text"), str):
        return None
    return [{**part, "only": own(piece, notes, "text")} for part in text(piece["text"], notes)]


def _image(piece: Raw, notes: Notes) -> list[Raw] | None:
    return _pointer(piece, "image", notes)


def _audio(piece: Raw, notes: Notes) -> list[Raw] | None:
    return _pointer(piece, "audio", notes)


def _file(piece: Raw, notes: Notes) -> list[Raw] | None:
    return _pointer(piece, "document", notes)


def _live(piece: Raw, notes: Notes) -> list[Raw] | None:
    """Voice with video: a pointer to the sound, one to the film; the frames stay beside."""
    found: list[Raw] = []
    for key, modality in (
        ("audio_asset_pointer", "audio"),
        ("video_container_asset_pointer", "video"),
    ):
        inner = piece.get(key)
        inner = {"asset_pointer": inner} if isinstance(inner, str) else inner
        if isinstance(inner, dict):
            found += _pointer(inner, modality, notes) or []
    if found:
        found[0]["only"] = own(piece, notes)
    return found or None


def _pointer(piece: Raw, modality: str, notes: Notes) -> list[Raw] | None:
    uri = piece.get("asset_pointer")
    if not isinstance(uri, str):
        return None
    beside = own(piece, notes, "asset_pointer")
    return [{"type": "uri", "modality": modality, "uri": clean.text(uri, notes), "only": beside}]


_PIECES: dict[str, Callable[[Raw, Notes], list[Raw] | None]] = {
    "text": _transcript,
    "audio_transcription": _transcript,
    "image_asset_pointer": _image,
    "audio_asset_pointer": _audio,
    "file_asset_pointer": _file,
    "real_time_user_audio_video_asset_pointer": _live,
}
