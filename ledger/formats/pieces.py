"""What the formats of coding agents share: lines as objects, parts of messages, counts. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ledger.formats import clean, media
from ledger.formats.base import Broken, DraftTurn, File, Message, Notes
from ledger.records.messages import modality_of

Raw = dict[str, Any]
Part = dict[str, Any]

BAD_LINES = "lines that are no JSON object left out"


class Line(NamedTuple):
    """One value of a file, and its bytes."""

    value: Raw
    raw: bytes


def lines(file: File, notes: Notes) -> Iterator[Line]:
    """Yield the objects of a file; what is none is counted, and costs itself alone."""
    for element in file.elements():
        if isinstance(element, Broken):
            notes.counts[f"files that break off: {element.reason}"] += 1
            continue
        try:
            value = clean.decoded(element.raw, notes)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            yield Line(value, element.raw)
        else:
            notes.counts[BAD_LINES] += 1


def of(record: Any, key: str) -> Raw:
    """Return an object inside another; an empty one when it is missing or something else."""
    inner = record.get(key) if isinstance(record, dict) else None
    return inner if isinstance(inner, dict) else {}


def string(given: Any) -> str:
    """Return a text; an empty one for anything else."""
    return given if isinstance(given, str) else ""


def objects(given: Any) -> list[Raw]:
    """Return the objects of a list; none of anything else."""
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def named(*given: Any) -> str:
    """Return the name of records that have no id: a hash of what they are, exact or not."""
    text = json.dumps(given, sort_keys=True)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]


# -- parts -----------------------------------------------------------------------------------------


def text(given: Any, notes: Notes) -> list[Part]:
    """Return a text as a part; none when there is nothing in it."""
    content = clean.text(string(given), notes)
    return [{"type": "text", "content": content}] if content else []


def reasoning(given: Any, notes: Notes, **only: Raw) -> list[Part]:
    """Return thinking as a part, with what only its provider understands; none without either."""
    content = clean.text(string(given), notes)
    beside = {name: clean.value(value, notes) for name, value in only.items() if value}
    if not content and not beside:
        return []
    return [{"type": "reasoning", "content": content, **({"only": beside} if beside else {})}]


def call(id: Any, name: Any, arguments: Any, notes: Notes) -> Part:
    """Return a tool call; arguments that are no object, also not as JSON text, are `{"text"}`."""
    if isinstance(arguments, str):
        found = _object(arguments)
        arguments = {"text": arguments} if found is None else found
    return {
        "type": "tool_call",
        "id": clean.text(string(id), notes),
        "name": clean.text(string(name), notes),
        "arguments": clean.value(arguments if isinstance(arguments, dict) else {}, notes),
    }


def response(id: Any, given: Any, notes: Notes) -> Part:
    """Return what a tool gave back."""
    id = clean.text(string(id), notes)
    return {"type": "tool_call_response", "id": id, "response": clean.value(given, notes)}


def image(mime_type: Any, base64: Any, notes: Notes) -> list[Part]:
    """Return bytes in base64 as the part of a `data:` address."""
    given = string(mime_type) or "image/png"
    uri = media.data_uri(given, string(base64))
    return link(uri, modality_of(given), notes) if string(base64) else []


def link(uri: Any, modality: str, notes: Notes) -> list[Part]:
    """Return an address as a part."""
    given = clean.text(string(uri), notes)
    return [media.uri_part(given, modality)] if given else []


def opaque(format: str, kind: Any, value: Any, notes: Notes) -> Part:
    """Keep what is not understood, whole."""
    named = clean.text(kind, notes) if isinstance(kind, str) and kind else "unnamed"
    return {"type": f"{format}:{named}", "content": clean.value(value, notes)}


def unknown(format: str, what: str, kind: Any, value: Any, notes: Notes) -> list[Part]:
    """Keep what this version does not know, whole and counted."""
    notes.unknown[f"{what} {clean.value(kind, notes)}"] += 1
    return [opaque(format, kind, value, notes)]


def message(role: str, parts: list[Part], **more: Any) -> Message:
    """Return a message; keys without a value are left out."""
    return {"role": role, "parts": parts, **{k: v for k, v in more.items() if v}}


def said(parts: list[Part]) -> str:
    """Return the text of some parts."""
    return "\n".join(part["content"] for part in parts if part["type"] == "text")


def blobs(turns: Iterable[DraftTurn]) -> dict[str, bytes]:
    """Take the bytes in `data:` addresses out of the messages of turns. Returns: those to keep."""
    found: dict[str, bytes] = {}
    for turn in turns:
        turn.messages_in, asked = media.outlined(turn.messages_in)
        turn.messages_out, answered = media.outlined(turn.messages_out)
        found.update({**asked, **answered})
    return found


# -- counts ----------------------------------------------------------------------------------------


def tokens(**given: Any) -> dict[str, int] | None:
    """Return counts of tokens by their names (`input_tokens`); what is no count is left out.

    None when there is none, or nothing was used.
    """
    counts = {
        name: count
        for name, count in given.items()
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1 << 40
    }
    return counts if any(counts.values()) else None


def plus(*counts: Any) -> int:
    """Return the sum of what are counts."""
    return sum((tokens(count=count) or {"count": 0})["count"] for count in counts)


def _object(given: str) -> Raw | None:
    if not given.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
