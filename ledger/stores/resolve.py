"""From what a caller names as `store` to a store."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ledger.stores.memory import MemoryStore

if TYPE_CHECKING:
    from ledger.stores.folder import FolderStore
    from ledger.stores.sql import SQLStore

_memory: list[MemoryStore] = []
_folders: dict[str, FolderStore] = {}
_databases: dict[str, SQLStore] = {}
_URL = re.compile(r"(?![A-Za-z]:)[^/\\]*:/|\s*(postgres(ql)?|sqlite)(\+\w+)?:", re.IGNORECASE)
"""What looks like a URL, though it may be misspelt: it may hold a password, and is made no folder."""


def is_url(named: object) -> bool:
    """Say whether what names a store is the URL of a database, and no folder."""
    return isinstance(named, str) and _URL.match(named) is not None


def default_place() -> str:
    """Return the store of who names none: that of TURN_LEDGER_STORE, else the folder under XDG_DATA_HOME."""
    named = os.environ.get("TURN_LEDGER_STORE")
    data = os.environ.get("XDG_DATA_HOME", "")
    above = data if os.path.isabs(data) else os.path.expanduser("~/.local/share")
    return named or os.path.join(above, "turn-ledger")


def store_for(store: Any = None) -> Any:
    """Return the store that a `store=` value names.

    None: this process's memory, the same at each call. True: what `default_place` names. A path: the folder
    store of that folder, one per absolute path and process; a new one when the folder was removed or replaced
    since. The URL of a database (`postgresql://...`, `sqlite:///...`): the SQL store there, one per URL and
    process. An object with `append` and `read`: itself. Raises: TypeError for anything else; ValueError for an
    empty path, and for a URL of no database that can hold one; ModuleNotFoundError: the extra `sql` is missing.
    """
    store = default_place() if store is True else store
    if isinstance(store, str) and "\0" in store:
        raise ValueError("what names a store holds a NUL")
    if store is None:
        if not _memory:
            _memory.append(MemoryStore())
        return _memory[0]
    if isinstance(store, str) and is_url(store):
        return _database(store)
    if isinstance(store, str | os.PathLike):
        if not os.fspath(store):
            raise ValueError("an empty path names no folder; '.' is the present one")
        return _folder(os.path.abspath(os.path.expanduser(os.fspath(store))))
    if callable(getattr(store, "append", None)) and callable(getattr(store, "read", None)):
        return store
    raise TypeError(
        "store is None (this process's memory), True (the default folder), a folder, the URL of a database, or "
        "an object with append and read; not "
        f"{type(store).__name__}"
    )


def _folder(path: str) -> FolderStore:
    # The lock libraries load with the first folder store, not before.
    from ledger.stores.folder import FolderStore

    found = _folders.get(path)
    if found is None or not found.is_here():
        found = _folders[path] = FolderStore(path)
    return found


def _database(url: str) -> SQLStore:
    # SQLAlchemy loads with the first store in a database.
    from ledger.stores.sql import SQLStore

    found = _databases.get(url)
    if found is None:
        found = _databases[url] = SQLStore(url)
    return found
