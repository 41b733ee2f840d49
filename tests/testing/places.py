"""Where our stores are kept while they are tested; other processes open them from here, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from tests.testing import broken_stores
from tests.testing.simple_stores import LinesStore, SimpleStore


def open_folder(place: str) -> FolderStore:
    """Return the folder store at a path."""
    return FolderStore(place)


def open_memory(place: Any) -> MemoryStore:
    """Return a new store: there is no place to come back to."""
    return MemoryStore()


def log_of(store: FolderStore, conversation: str) -> Path:
    """Return where the format puts a log."""
    return Path(store.folder, "conversations", f"{conversation}.jsonl")


def open_simple(place: Any) -> SimpleStore:
    """Return a new store of somebody else's, in memory."""
    return SimpleStore()


def open_lines(place: str) -> LinesStore:
    """Return somebody else's store of the bare two methods."""
    return LinesStore(place)


def open_broken(fault: str, place: Any) -> Any:
    """Return a store that has a fault."""
    store = getattr(broken_stores, fault)
    return store() if issubclass(store, MemoryStore) else store(place)
