"""The suites of our stores and of those in simple_stores.py: where they are, and what each lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ledger.stores.memory import MemoryStore, _Log
from ledger.testing import StoreSuite
from tests.testing import places
from tests.testing.simple_stores import LinesStore


class FolderSuite(StoreSuite):
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


class MemorySuite(StoreSuite):
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


class SimpleSuite(StoreSuite):
    """Somebody else's store in memory."""

    lacks: ClassVar = {
        "reopening": "the records are gone with the store",
        "forking": "its lock is copied as it is",
        "raw": "it keeps no bytes",
        "scan": "it gives dicts only",
        "blobs": "it keeps records only",
    }
    open_store = staticmethod(places.open_simple)

    def make_place(self, folder: Path) -> None:
        return None


class LinesSuite(StoreSuite):
    """Somebody else's store with the bare two methods."""

    lacks: ClassVar = {
        "forking": "the child inherits the locked file",
        "incarnations": "it deletes nothing",
        "scan": "it gives dicts only",
        "wait": "ask again",
        "delete": "remove the file",
        "conversations": "list the folder",
        "seals": "its lines have another form",
        "blobs": "it keeps records only",
    }
    open_store = staticmethod(places.open_lines)

    def make_place(self, folder: Path) -> str:
        return str(folder / "store")

    def read_bytes(self, store: LinesStore, conversation: str) -> bytes:
        path = Path(store.path(conversation))
        return path.read_bytes() if path.exists() else b""

    def write_bytes(self, store: LinesStore, conversation: str, data: bytes) -> None:
        path = Path(store.path(conversation))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
