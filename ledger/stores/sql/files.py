"""The file of a SQLite database: whether it is still the one that was opened, and how it can be opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another at its path; None: there is none. Raises: OSError: nobody can know."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def is_read_only(path: str) -> bool:
    """Say whether a file stands where this process can make no other beside it."""
    folder = os.path.dirname(os.path.abspath(path))
    return os.path.exists(path) and not os.access(folder, os.W_OK)


def opener(path: str) -> Callable[..., None]:
    """Return what SQLAlchemy calls before it opens a file: none is made, and it stays the one that was named.

    SQLite makes files beside it even to read. Where none can be made, and a write-ahead log stands there, that
    is needed; else the file is whole, and is read as one that nobody changes: each connection is used once.
    """
    path = os.path.abspath(path)  # Whoever changes the working directory later means no other file.

    def prepare(dialect: Any, record: Any, args: list[Any], options: dict[str, Any]) -> None:
        how = "mode=rw"
        if is_read_only(path):
            how = "mode=ro" if _has_log(path) else "immutable=1"
        args[0] = f"{Path(path).as_uri()}?{how}"
        options["uri"] = True

    return prepare


def _has_log(path: str) -> bool:
    try:
        return os.path.getsize(path + "-wal") > 0
    except OSError:
        return False
