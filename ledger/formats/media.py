"""Bytes in messages: as an attachment where they are kept, as a `data:` address on the way. Pure.

A dialect writes and reads `data:<type>;base64,<text>` alone. `inlined` gives it the bytes of the
attachments, `outlined` takes the bytes out again for the store.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any

from ledger.formats.converting import Line, Losses, Part, Placed, Read
from ledger.records.messages import Message, modality_of
from ledger.records.values import REFERENCE

_DATA = re.compile(r"data:([^;,]+);base64,([A-Za-z0-9+/]*={0,2})")


def data_uri(mime_type: str, text: str) -> str:
    """Return base64 text as an address."""
    return f"data:{mime_type};base64,{text}"


def data_of(uri: str) -> tuple[str, str] | None:
    """Return the media type and base64 text of a `data:` address; None of any other."""
    found = _DATA.fullmatch(uri)
    return (found[1], found[2]) if found else None


def uri_part(uri: str, modality: str) -> dict[str, Any]:
    """Return the part of an address; a `data:` one says its media type."""
    data = data_of(uri)
    typed = {"mime_type": data[0]} if data else {}
    return {"type": "uri", "modality": modality, **typed, "uri": uri}


def inlined(lines: list[Line], read: Read | None, losses: Losses) -> list[Line]:
    """Return the lines with each attachment as a `data:` address; without bytes it is lost."""
    for line in lines:
        line.parts = [
            new
            for placed in line.parts
            if (new := _inlined(placed, read, losses) if placed.type == "blob" else placed)
        ]
    return lines


def _inlined(placed: Placed, read: Read | None, losses: Losses) -> Placed | None:
    part = placed.part
    sha256 = (part["content"].get(REFERENCE) or {}).get("sha256", "")
    data = read(sha256) if read else None
    if data is None:
        losses.of(placed, "the bytes of the attachment are not at hand")
        return None
    uri = data_uri(part["mime_type"], base64.b64encode(data).decode())
    rest = {key: value for key, value in part.items() if key != "content"}
    name = part["content"][REFERENCE].get("name")
    named = {"name": name} if name else {}
    options = part["content"][REFERENCE].get("options")
    told = {"options": options} if isinstance(options, dict) else {}
    return Placed(placed.path, {**rest, "type": "uri", "uri": uri, **named, **told})


def detail(part: Part) -> str | None:
    """Return how closely an image is to be looked at, where its attachment says so (`options`)."""
    said = (part.get("options") or {}).get("detail")
    return said if isinstance(said, str) else None


def outlined(messages: list[Message]) -> tuple[list[Message], dict[str, bytes]]:
    """Return messages with their `data:` addresses as attachments, and the bytes by hex SHA-256.

    The bytes are to be kept before the messages are recorded. What is no clean base64 stays.
    """
    blobs: dict[str, bytes] = {}
    if not any(part["type"] == "uri" for message in messages for part in message["parts"]):
        return list(messages), blobs
    made = [
        {**message, "parts": [_outlined(part, blobs) for part in message["parts"]]}
        for message in messages
    ]
    return made, blobs


def _outlined(part: dict[str, Any], blobs: dict[str, bytes]) -> dict[str, Any]:
    data = data_of(part["uri"]) if part["type"] == "uri" else None
    if data is None:
        return part
    try:
        found = base64.b64decode(data[1], validate=True)
    except binascii.Error:
        return part
    if base64.b64encode(found).decode() != data[1]:
        return part
    kept = blob_part(found, data[0], blobs, name=part.get("name"))
    rest = {key: value for key, value in part.items() if key not in ("uri", "name")}
    return {**rest, **kept, "modality": part["modality"]}


def blob_part(
    data: bytes, mime_type: str, blobs: dict[str, bytes], *, name: str | None = None
) -> dict[str, Any]:
    """Return the part that names bytes which are to be kept, and put them among the others."""
    sha256 = hashlib.sha256(data).hexdigest()
    blobs[sha256] = data
    reference = {"sha256": sha256, "media_type": mime_type, "size": len(data)}
    named = {"name": name} if name else {}
    return {
        "type": "blob",
        "modality": modality_of(mime_type),
        "mime_type": mime_type,
        "content": {REFERENCE: {**reference, **named}},
    }
