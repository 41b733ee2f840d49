"""functai's conversations kept in a store of ours.

    tutor.conversation("alex", store=ledger.adapters.functai.store(s))

functai tells a conflict by its own error class, so ours are raised again as that class, with the
same code. Folders need no adapter: both libraries read and write the same files.

What is watched of a running turn (`turn.events()`) is kept as functai keeps it: beside a folder
store in `<folder>/trees`, else in memory. Like the store itself, it makes nothing before it is
needed, and a folder that cannot be written only lacks it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from functai.errors import ConversationError
from functai.eventlog import MemoryStore
from functai.stores import FolderEvents

from ledger.errors import LedgerError, RecordInvalid, RecordTooLarge
from ledger.stores import files
from ledger.stores.base import LedgerStore

_in_memory: WeakKeyDictionary[LedgerStore, Any] = WeakKeyDictionary()
"""The event logs beside stores in memory: the same whoever asks."""


def store(kept_in: LedgerStore) -> FunctaiStore:
    """Return a store of ours as functai takes one (`store=`)."""
    return FunctaiStore(kept_in)


class FunctaiStore:
    """A store of ours under functai's protocol and with its errors."""

    def __init__(self, kept_in: LedgerStore) -> None:
        self.kept_in = kept_in
        self.durability = kept_in.durability
        self.persistent = kept_in.persistent

    @cached_property
    def events(self) -> Any:
        """The event logs of its turns, as functai keeps them; None where none can be kept."""
        folder = getattr(self.kept_in, "folder", None)
        if folder is None:
            return _in_memory.setdefault(self.kept_in, MemoryStore())
        trees = os.path.join(folder, "trees")
        try:
            files.Files().make_folder(trees)
        except (OSError, LedgerError):
            if not os.path.isdir(trees):
                return None
        return FolderEvents(trees)

    def append(
        self,
        conversation: str,
        records: Sequence[Mapping[str, Any]],
        *,
        expect: int | None = None,
    ) -> int:
        """Add records at the end; see `ledger.stores.base.Store.append`.

        The end of a turn whose answer cannot be kept exactly is kept as `failed`, saying why, so that
        nobody waits for a turn that ended: functai itself would give the end up.
        Raises: functai's ConversationError with the code of ours.
        """
        with _as_functai():
            try:
                return int(self.kept_in.append(conversation, records, expect=expect))
            except (RecordInvalid, RecordTooLarge) as error:
                if len(records) == 1 and records[0].get("kind") == "ended":
                    failed = _failed(records[0], error)
                    self.kept_in.append(conversation, [failed], expect=expect)
                raise

    def read(self, conversation: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the records after a position; see `ledger.stores.base.Store.read`."""
        with _as_functai():
            return list(self.kept_in.read(conversation, after))

    def wait(self, conversation: str, after: int, timeout: float) -> None:
        """Block until a record after `after` exists, or the time (in seconds) is up."""
        with _as_functai():
            self.kept_in.wait(conversation, after, timeout)

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that hold a record."""
        with _as_functai():
            return self.kept_in.conversations()

    def __repr__(self) -> str:
        return f"<{self.kept_in!r} for functai>"


def _failed(ended: Mapping[str, Any], error: LedgerError) -> dict[str, Any]:
    """Return the record of a turn's end without what the program gave, as a failure."""
    kept = ("functai_conversation", "kind", "at", "turn", "saw", "model", "seconds", "attempt")
    told = {"type": type(error).__name__, "code": error.code, "message": error.message()}
    return {
        **{name: ended[name] for name in kept if name in ended},
        "state": "failed",
        "error": told,
        "usage": ended.get("usage", {}),
    }


@contextmanager
def _as_functai() -> Iterator[None]:
    try:
        yield
    except LedgerError as error:
        raise ConversationError(error.code, error.message()) from error
