"""What a message of the command `llm` holds, as neutral parts; texts and bytes stand in tables apart. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ledger.formats import clean, media, tables, talk, usage
from ledger.formats.base import File, Message, Notes, Row
from ledger.formats.converting import Part, Raw
from ledger.records.messages import ALLOWED, PARTS, modality_of

Rows = list[tuple[str, Row]]
_ROLES = ("system", "user", "assistant", "tool")
_APART = ("type", "text", "text_ref", "name", "arguments", "tool_call_id", "output")
_ATTACHMENTS = ("attachment", "attachments")


def message(
    file: File, row: Row, rows: Rows, blobs: dict[str, bytes], notes: Notes
) -> list[Message]:
    """Return what a row of `messages` says.

    Args: rows: takes the rows that were read. blobs: takes the bytes of attachments.
    """
    rows.append(("messages", row))
    role = row["role"]
    if role not in _ROLES:
        notes.unknown[f"role {clean.value(role, notes)}"] += 1
        role = "system"
    query = "select * from parts where message_hash = ? order by position"
    said: list[Message] = []
    for one in file.rows(query, row["hash"]):
        rows.append(("parts", one))
        made = list(_parts(file, one, rows, blobs, notes))
        result = made[0]["type"] == "tool_call_response"
        said.append({"role": "tool" if result else role, "parts": made})
    said = talk.joined(said) if role == "assistant" else _one(role, said)
    for one in said:
        talk.count_unknown(one, notes)
    return said


def _one(role: str, said: list[Message]) -> list[Message]:
    """Return what anybody but the assistant says as one message; each result is one of its own."""
    results = [one for one in said if one["role"] == "tool"]
    parts = [part for one in said if one["role"] != "tool" for part in one["parts"]]
    if role == "tool" and results:
        results[-1]["parts"] += [_of(role, part) for part in parts]
        return results
    role = "user" if role == "tool" else role
    parts = parts or ([] if results else [{"type": "text", "content": ""}])
    return [*results, *([{"role": role, "parts": [_of(role, p) for p in parts]}] if parts else [])]


def _of(role: str, part: Part) -> Part:
    """Return a part as it may stand in a message of a role: else whole."""
    kind = part["type"]
    may = kind in ALLOWED[role] or kind not in PARTS
    return part if may else {"type": f"llm:{kind}", "content": part}


def _parts(
    file: File, row: Row, rows: Rows, blobs: dict[str, bytes], notes: Notes
) -> Iterator[Part]:
    payload = tables.value(row["payload"])
    payload = clean.value(payload, notes) if isinstance(payload, dict) else {}
    kind, id = row["type"], f"{row['message_hash']}.{row['position']}"
    call = payload.get("tool_call_id")
    call = call if isinstance(call, str) and call else id
    made: Part
    if kind in ("text", "reasoning"):
        made = {"type": kind, "content": clean.text(_text(file, row, payload, rows), notes)}
    elif kind == "tool_call" and isinstance(payload.get("name"), str):
        made = {"type": "tool_call", "id": call, "name": payload["name"]}
        made["arguments"] = payload.get("arguments")
    elif kind == "tool_result":
        made = {"type": "tool_call_response", "id": call, "response": payload.get("output")}
    elif kind == "attachment" and isinstance(payload.get("attachment"), dict):
        yield from attached(file, [payload["attachment"].get("id")], rows, blobs, notes)
        return
    else:
        yield {
            "type": f"llm:{kind}",
            "content": {**payload, "text": clean.value(row["text"], notes)},
        }
        return
    kept = {key: v for key, v in payload.items() if key not in (*_APART, *_ATTACHMENTS)}
    yield {**made, "only": {"llm": kept}} if kept else made
    listed = payload.get("attachments")
    ids = (
        [one.get("id") for one in listed if isinstance(one, dict)]
        if isinstance(listed, list)
        else []
    )
    yield from attached(file, ids, rows, blobs, notes)


def _text(file: File, row: Row, payload: Raw, rows: Rows) -> str:
    """Return a part's text: its own, or put together of fragments, which are kept once."""
    pieces = payload.get("text_ref")
    if not isinstance(pieces, list):
        return str(row["text"] or "")
    out = []
    for piece in pieces:
        if isinstance(piece, dict) and "fragment" in piece:
            for one in file.rows("select * from fragments where id = ?", piece["fragment"]):
                rows.append(("fragments", one))
                out.append(str(one["content"] or ""))
        elif isinstance(piece, dict):
            out.append(str(piece.get("literal", "")))
    return "".join(out)


def attached(
    file: File, ids: Iterable[Any], rows: Rows, blobs: dict[str, bytes], notes: Notes
) -> Iterator[Part]:
    """Yield attachments; one that is not there is kept as what named it.

    The rows that were read are without the bytes: these are attachments here too.
    """
    for id in ids:
        found = list(file.rows("select * from attachments where id = ?", id))
        if not found:
            yield {"type": "llm:attachment", "content": {"id": clean.value(id, notes)}}
        for row in found:
            rows.append(("attachments", {**row, "content": None}))
            yield _attachment(row, blobs, notes)


def _attachment(row: Row, blobs: dict[str, bytes], notes: Notes) -> Part:
    mime = clean.text(str(row["type"] or "application/octet-stream"), notes)
    if isinstance(row["content"], bytes):
        return media.blob_part(row["content"], mime, blobs)
    typed = {"modality": modality_of(mime), "mime_type": mime}
    if row["url"]:
        return {"type": "uri", **typed, "uri": clean.text(str(row["url"]), notes)}
    return {"type": "file", **typed, "file_id": clean.text(str(row["path"] or row["id"]), notes)}


def model(row: Row, notes: Notes) -> str | None:
    """Return the model that answered: as it called itself, else as it was asked for."""
    given = row.get("resolved_model") or row.get("model")
    return clean.text(given, notes) if isinstance(given, str) and given else None


def counts(row: Row) -> dict[str, int] | None:
    """Return the token counts of a row with columns for input, output, and JSON for the rest."""
    rest = tables.value(row.get("token_details"))
    told = {key: row.get(key) for key in ("input_tokens", "output_tokens")}
    return usage.counts({**(rest if isinstance(rest, dict) else {}), **told})
