"""Where our stores are kept while they are tested; other processes open them from here, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore


def open_folder(place: str) -> FolderStore:
    """Return the folder store at a path."""
    return FolderStore(place)


def open_memory(place: Any) -> MemoryStore:
    """Return a new store: there is no place to come back to."""
    return MemoryStore()


def log_of(store: FolderStore, conversation: str) -> Path:
    """Return where the format puts a log."""
    return Path(store.folder, "conversations", f"{conversation}.jsonl")
