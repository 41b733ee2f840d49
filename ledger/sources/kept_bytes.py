"""The bytes of attachments as an export takes them: what is not as it was kept is left out, and told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ledger.conversation import Conversation
from ledger.errors import AttachmentMissing, StoreCorrupt, StoreLink

CHUNK_BYTES = 3 << 18


class KeptBytes:
    """The attachments of a conversation. Args: notes: takes what is left out, by a phrase for people."""

    def __init__(self, chat: Conversation, notes: Counter[str]) -> None:
        self._chat = chat
        self._blobs: Any = getattr(chat._log.calls, "blobs", None)
        self._notes = notes
        self._left_out: set[str] = set()

    def read(self, sha256: str) -> bytes | None:
        """Return the bytes of an attachment; None: they are left out."""
        if self._blobs is None:
            return None
        with self._leaving_out(sha256):
            return bytes(self._blobs.get(sha256))
        return None

    def streams(self, sha256s: Iterable[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield attachments in pieces, each opened when it is its turn; less those that are left out.

        Each is read twice: that bytes were altered shows at their end, and what was given is not taken back.
        """
        for sha256 in sha256s:
            if self._is_as_kept(sha256):
                with self._blobs.open(sha256) as stream:
                    yield sha256, iter(partial(stream.read, CHUNK_BYTES), b"")

    def _is_as_kept(self, sha256: str) -> bool:
        with self._leaving_out(sha256), self._blobs.open(sha256) as stream:
            while stream.read(CHUNK_BYTES):
                pass
        return sha256 not in self._left_out

    @contextmanager
    def _leaving_out(self, sha256: str) -> Iterator[None]:
        try:
            yield
        except AttachmentMissing:
            self._leave_out(sha256, "are not in the store")
        except (StoreCorrupt, StoreLink):
            self._leave_out(sha256, "were altered")

    def _leave_out(self, sha256: str, why: str) -> None:
        """Note once, with the conversation and the name, that an attachment is left out."""
        if sha256 not in self._left_out:
            self._left_out.add(sha256)
            named = (each.name for each in self._chat.attachments() if each.sha256 == sha256)
            name = next(filter(None, named), None) or f"{sha256[:12]}…"
            self._notes[f"{self._chat.id}: attachment {name} left out, its bytes {why}"] += 1
