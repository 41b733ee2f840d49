"""Which files an import has seen, so that the next one reads only what is new.

    <store's folder>/imports.json    {"turn_ledger_imports": "<version>", "seen": {...}}

Never the truth: turn ids decide what is added. Files that are as they were (size and time), and whose
conversations are all there, are not read again; another version of this package reads all of them. A
store without a folder remembers nothing, and a file that is missing or damaged only costs time.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from ledger._version import __version__
from ledger.sources.files import Source
from ledger.sources.own import IMPORTS

_MARK = "turn_ledger_imports"

Stamp = dict[str, list[int]]
"""The files of a source by path, each with its size, its time, and those of what is beside it."""


def stamp(source: Source, prefix: str = "") -> Stamp:
    """Return what tells whether the files of a source have changed. Args: prefix: that of the import."""
    format = source.format.name if source.format else ""
    read_as = f"{prefix}:{format}" if prefix else format
    return {f"{read_as}:{os.path.abspath(file.name)}": file.stamp() for file in source.files}


class Seen:
    """What earlier imports into a store have seen; kept when the `with` ends."""

    def __init__(self, store: Any) -> None:
        folder = getattr(store, "folder", None)
        self._path = os.path.join(folder, IMPORTS) if isinstance(folder, str) else None
        self._seen: dict[str, Any] = {}
        self._there: frozenset[str] = frozenset()
        self._grown = False
        if self._path is not None:
            self._seen = _read(self._path)
            self._there = frozenset(store.conversations()) if self._seen else frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._path is not None and self._grown and os.path.isdir(os.path.dirname(self._path)):
            with suppress(OSError):  # only time is lost
                _write(self._path, self._seen)

    def of(self, stamp: Stamp) -> Mapping[str, int] | None:
        """Return the conversations of files that are unchanged, each with its turns; else None."""
        found = self._seen.get(min(stamp, default=""))
        if not isinstance(found, dict) or found.get("files") != stamp:
            return None
        turns = found.get("turns")
        if not isinstance(turns, dict) or not self._there.issuperset(turns):
            return None
        return turns

    def add(self, stamp: Stamp, turns: Mapping[str, int]) -> None:
        """Remember what files gave."""
        if stamp and self._path is not None:
            self._seen[min(stamp)] = {"files": stamp, "turns": dict(turns)}
            self._grown = True


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as opened:
            value = json.load(opened)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict) or value.get(_MARK) != __version__:
        return {}
    seen = value.get("seen")
    return seen if isinstance(seen, dict) else {}


def _write(path: str, seen: dict[str, Any]) -> None:
    """Put the file in place whole, readable by its owner only."""
    folder = os.path.dirname(path)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as opened:
        json.dump({_MARK: __version__, "seen": seen}, opened)
    try:
        os.replace(opened.name, path)
    except OSError:
        os.unlink(opened.name)
        raise
