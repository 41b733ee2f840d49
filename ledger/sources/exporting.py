"""Exporting: a conversation as one complete JSON document, or a branch of it as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.conversation import Conversation
from ledger.errors import AttachmentMissing, ImportInvalid
from ledger.formats import export_json as document
from ledger.formats import markdown
from ledger.records import codec, times, values
from ledger.turn import Turn
from ledger.turns.attachments import plain


def export_json(chat: Conversation) -> bytes:
    """Return everything of a conversation: every line of its log as it is, and its attachments.

    Imported into an empty store it gives the identical log. An attachment whose bytes are missing
    is left out; what names it stays.
    Raises: TypeError: the store is not one of ours, so it has no lines; store errors.
    """
    raw = getattr(chat.store, "raw", None)
    if raw is None:
        raise TypeError(f"{type(chat.store).__name__} keeps no lines to export")
    log: bytes = raw(chat.id)
    return b"".join(document.dump(chat.id, log, _blobs(chat.store, log)))


def log_of(data: bytes, conversation: str, *, source: str = "the copy") -> bytes:
    """Return the bytes of a log from a copy of its file, or from what `export_json` wrote.

    Raises: import-invalid: it is an export of another conversation, or one that does not read.
    """
    if not document.begins(data):
        return data
    exported = document.load(data, source=source)
    if exported.conversation != conversation:
        raise ImportInvalid(
            source=source, reason=f"an export of {exported.conversation}, not of {conversation}"
        )
    return exported.raw_log


def export_markdown(chat: Conversation) -> str:
    """Return the branch that a view stands on as Markdown, to be read by people."""
    return "".join(markdown.document(chat.title or chat.id, map(_row, chat.turns)))


def _blobs(store: Any, log: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for sha256 in _named(log):
        if sha256 not in found:
            try:
                found[sha256] = store.blobs.get(sha256)
            except AttachmentMissing:
                continue
    return found


def _named(log: bytes) -> Iterator[str]:
    for line in log.split(b"\n"):
        if values.REFERENCE.encode() in line:
            yield from values.references(codec.decode_plain(line))


def _row(turn: Turn) -> markdown.Row:
    return {
        "ordinal": turn.ordinal,
        "id": turn.id,
        "inputs": plain(turn.inputs),
        "outputs": plain(turn.outputs) if turn.state == "done" else None,
        "model": turn.model,
        "state": "erased" if turn.erased else turn.state,
        "started": times.to_text(turn.started) if turn.started is not None else None,
        "messages": turn.messages,
    }
