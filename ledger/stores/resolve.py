"""From what a caller names as `store` to a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ledger.stores.memory import MemoryStore

if TYPE_CHECKING:
    from ledger.stores.folder import FolderStore

_memory: list[MemoryStore] = []
_folders: dict[str, FolderStore] = {}


def store_for(store: Any = None) -> Any:
    """Return the store that a `store=` value names.

    None: this process's memory, the same at each call. A path: the folder store of that folder, one
    per absolute path and process; a new one when the folder was removed or replaced since. An object
    with `append` and `read`: itself. Raises: TypeError for anything else; ValueError for an empty path.
    """
    if store is None:
        if not _memory:
            _memory.append(MemoryStore())
        return _memory[0]
    if isinstance(store, str | os.PathLike):
        if not os.fspath(store):
            raise ValueError("an empty path names no folder; '.' is the present one")
        return _folder(os.path.abspath(os.path.expanduser(os.fspath(store))))
    if callable(getattr(store, "append", None)) and callable(getattr(store, "read", None)):
        return store
    raise TypeError(
        "store is None (this process's memory), a folder, or an object with append and read; not "
        f"{type(store).__name__}"
    )


def _folder(path: str) -> FolderStore:
    # The lock libraries load with the first folder store, not before.
    from ledger.stores.folder import FolderStore

    found = _folders.get(path)
    if found is None or not found.is_here():
        found = _folders[path] = FolderStore(path)
    return found
