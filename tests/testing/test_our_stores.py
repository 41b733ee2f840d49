"""Our stores pass the suite that is shipped for everybody's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ledger.stores.memory import MemoryStore, _Log
from ledger.testing import StoreSuite
from tests.testing import places


class TestFolderStore(StoreSuite):
    """A folder lacks nothing."""

    open_store = staticmethod(places.open_folder)

    def make_place(self, folder: Path) -> str:
        return str(folder / "store")

    def read_bytes(self, store: Any, conversation: str) -> bytes:
        path = places.log_of(store, conversation)
        return path.read_bytes() if path.exists() else b""

    def write_bytes(self, store: Any, conversation: str, data: bytes) -> None:
        path = places.log_of(store, conversation)
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.write_bytes(data)


class TestMemoryStore(StoreSuite):
    """Memory is one process's, and gone with it."""

    lacks: ClassVar = {"reopening": "the records are gone with the store"}
    open_store = staticmethod(places.open_memory)

    def make_place(self, folder: Path) -> None:
        return None

    def read_bytes(self, store: MemoryStore, conversation: str) -> bytes:
        log = store._logs.get(conversation)
        return bytes(log.data) if log is not None else b""

    def write_bytes(self, store: MemoryStore, conversation: str, data: bytes) -> None:
        store._logs[conversation] = _Log(conversation, data)
