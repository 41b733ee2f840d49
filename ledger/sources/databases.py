"""Opens SQLite databases that belong to other programs, and never writes to them.

A database with nothing beside it is read where it is, without a lock or a file beside it. One whose
last writes stand in a file of their own (`-wal`, `-journal`) is copied with that and read as a copy.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from ledger.formats.base import Row, Schema, Unreadable

START = b"SQLite format 3\0"
BESIDE = ("-wal", "-journal")
_TRIES = 3
_SETTINGS = ("PRAGMA query_only = ON", "PRAGMA trusted_schema = OFF")


class Database:
    """One database, open until `close`.

    Raises: Unreadable: it cannot be opened, or another program does not stop writing to it.
    """

    def __init__(self, path: Path) -> None:
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        try:
            self._connection = self._opened(path)
        except (sqlite3.Error, OSError) as error:
            self._remove()
            raise Unreadable(f"the database cannot be opened: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it, and remove the copy if there is one."""
        self._connection.close()
        self._remove()

    def schema(self) -> Schema:
        """Return what it holds."""
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        tables = [row["name"] for row in self.rows(query)]
        columns = "SELECT name FROM pragma_table_info(?)"
        return Schema(
            {table: tuple(row["name"] for row in self.rows(columns, table)) for table in tables}
        )

    def rows(self, query: str, *values: Any) -> Iterator[Row]:
        """Yield the rows of a query."""
        try:
            yield from self._connection.execute(query, values)
        except sqlite3.Error as error:
            raise Unreadable(f"the database cannot be read on: {error}") from error

    def _opened(self, path: Path) -> sqlite3.Connection:
        mode = "mode=ro&immutable=1"
        if any(_size(beside) for beside in _beside(path)):
            self._copy = tempfile.TemporaryDirectory(prefix="turn-ledger-")
            path = _copied(path, Path(self._copy.name))
            mode = "mode=rw"
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
        connection.row_factory = _row
        connection.text_factory = _text
        for setting in _SETTINGS:
            connection.execute(setting)
        return connection

    def _remove(self) -> None:
        if self._copy is not None:
            self._copy.cleanup()


def stamp(path: Path) -> list[int]:
    """Return what changes when a database is written to: sizes and times, of what is beside it too."""
    return [number for one in (path, *_beside(path)) for number in _moment(one)]


def _copied(path: Path, folder: Path) -> Path:
    """Copy a database with what is beside it, all of the same moment."""
    for _ in range(_TRIES):
        before = stamp(path)
        for one in (path, *_beside(path)):
            target = folder / one.name
            target.unlink(missing_ok=True)
            if one.exists():
                shutil.copyfile(one, target)
        if stamp(path) == before:
            return folder / path.name
    raise OSError("another program is writing to it; try again when that has ended")


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in BESIDE]


def _size(path: Path) -> int:
    return _moment(path)[0]


def _moment(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
