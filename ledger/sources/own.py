"""What is a store of ours, or a file of one: no source, though its records hold messages of providers."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

from ledger.stores.names import INDEX, LOG

IMPORTS = "imports.json"
"""In a store's folder: the files that were imported into it; see `sources.seen`."""
_LOGS = "conversations"
_PARTS = frozenset({_LOGS, "trees", "holders", "indexes", "attachments"})
_FILES = frozenset({IMPORTS, INDEX})
_MARKS = ("functai_conversation", "functai_event")
_BEGINS = tuple(f'{{"{mark}":'.encode() for mark in _MARKS)
_NEXT = "of turn-ledger, which is no source: use `turn-ledger copy`, or `turn-ledger export` and import that"
STORE = f"this is a store {_NEXT}"
LINES = f"this is a log {_NEXT}"


def is_record(value: object) -> bool:
    """Say whether a decoded value is a line that a store of ours wrote."""
    return isinstance(value, dict) and any(type(value.get(mark)) is int for mark in _MARKS)


def is_database(schema: Container[str]) -> bool:
    """Say whether a database is a store, by the names of its tables."""
    return all(table in schema for table in ("ledger_conversations", "ledger_lines"))


def is_store(folder: str | os.PathLike[str]) -> bool:
    """Say whether a folder is a store: a log of ours lies where a store has them."""
    logs = os.path.join(folder, _LOGS)
    if not os.path.isdir(logs):
        return False
    try:
        with os.scandir(logs) as entries:
            return any(entry.name.endswith(LOG) and _begins_as_ours(entry) for entry in entries)
    except OSError:
        return False


def why_none(path: Path) -> str | None:
    """Return why a path is no source: it is a store, or lies in one; None: it may be one."""
    below = Path(os.path.abspath(path))
    if is_store(below):
        return STORE
    is_its_own = below.name in _FILES
    for above in below.parents:
        if (is_its_own or below.name in _PARTS) and is_store(above):
            return f"it lies in {above}: {STORE}"
        below, is_its_own = above, False
    return None


def taken_out(folders: list[str], files: list[str]) -> list[str]:
    """Return the files in a store's folder that are not the store's; take its folders from those below it."""
    folders[:] = [name for name in folders if name not in _PARTS]
    return [name for name in files if name not in _FILES]


def _begins_as_ours(entry: os.DirEntry[str]) -> bool:
    if not entry.is_file():
        return False
    with open(entry.path, "rb") as log:
        return log.read(max(map(len, _BEGINS))).startswith(_BEGINS)
