"""The files that lie beside conversations in an export, found by what messages point to.

ChatGPT names a file by its id and what it was called: `file-AbC12-photo.png` for `file-service://file-AbC12`.
A pointer finds the file whose name is its id, or begins with it. The bytes become an attachment; where a
message pointed to stays beside, so nothing is lost when a file is not there.
"""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

from ledger.formats.base import DraftTurn, Message, Notes
from ledger.records import messages
from ledger.turns.attachments import UNKNOWN_TYPE, Attachment, media_type_of

Keep = Callable[[Attachment], None]
"""Keeps the bytes of an attachment in a store."""

UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError)
"""What reading a file of an export may raise that is the export's fault."""

_POINTER = re.compile(r"(?:[a-z][a-z-]*://)?([A-Za-z0-9][A-Za-z0-9_-]{4,})(?:[?#].*)?", re.DOTALL)
_ENDS = "-_."
"""What comes after the id in a file's name."""


class Media:
    """The files of one export, by the ids that their names begin with."""

    def __init__(self, names: Iterable[str] = (), open: Callable[[str], Any] | None = None) -> None:
        self._open = open
        self.names = sorted((re.split(r"[/\\]", name)[-1], name) for name in names)
        """What each file is called, and its path in the export, sorted."""

    def find(self, pointer: str) -> str | None:
        """Return the path in the export of what a message points to; None: it is not there."""
        found = _POINTER.fullmatch(pointer)
        if found is None:
            return None
        id = found[1]
        for at in range(bisect_left(self.names, (id, "")), len(self.names)):
            base, name = self.names[at]
            if not base.startswith(id):
                return None
            if base == id or base[len(id)] in _ENDS:
                return name
        return None

    def take_in(self, turns: Iterable[DraftTurn], keep: Keep, notes: Notes) -> list[Attachment]:
        """Make attachments, kept, of what the messages of some turns point to. Returns: these.

        What cannot be read stays a pointer, and is counted. Raises: what `keep` raises of the store.
        """
        if not self.names:
            return []
        taken: dict[str, Attachment | None] = {}

        def part_of(part: dict[str, Any]) -> dict[str, Any]:
            pointer = part.get({"uri": "uri", "file": "file_id"}.get(part["type"], ""))
            if not isinstance(pointer, str) or (name := self.find(pointer)) is None:
                return part
            if name not in taken:
                taken[name] = self._taken(name, part, keep)
            found = taken[name]
            return part if found is None else _held(part, pointer, found)

        for turn in turns:
            turn.messages_in = _with_parts(turn.messages_in, part_of)
            turn.messages_out = _with_parts(turn.messages_out, part_of)
        kept = [found for found in taken.values() if found is not None]
        notes.counts["files of the export kept as attachments"] += len(kept)
        notes.counts["files of the export that cannot be read"] += len(taken) - len(kept)
        return kept

    def _taken(self, name: str, part: dict[str, Any], keep: Keep) -> Attachment | None:
        assert self._open is not None
        base = _own_name(part) or re.split(r"[/\\]", name)[-1]
        said = part.get("mime_type")
        media_type = said if isinstance(said, str) else media_type_of(base)
        media_type = media_type_of(name) if media_type == UNKNOWN_TYPE else media_type
        try:
            with self._open(name) as stream:
                found = Attachment(stream, name=base, media_type=media_type)
                keep(found)
        except UNREADABLE:
            return None
        return found


def _own_name(part: dict[str, Any]) -> str | None:
    """Return what the file was called when it was uploaded, where the message says so."""
    listed = part.get("only", {}).get("chatgpt", {}).get("attachment", {})
    name = listed.get("name") if isinstance(listed, dict) else None
    return os.path.basename(name) or None if isinstance(name, str) else None


def _held(part: dict[str, Any], pointer: str, found: Attachment) -> dict[str, Any]:
    """Return a pointer as the bytes it points to; where it pointed stays beside."""
    made = messages.blob(found.reference)
    if part["modality"] != "document":
        made["modality"] = part["modality"]
    only = part.get("only", {})
    beside = {**only, "chatgpt": {**only.get("chatgpt", {}), "pointer": pointer}}
    return {**made, "only": beside}


def _with_parts(
    said: list[Message], part_of: Callable[[dict[str, Any]], dict[str, Any]]
) -> list[Message]:
    return [{**message, "parts": [part_of(p) for p in message["parts"]]} for message in said]
