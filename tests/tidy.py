"""Databases that tests open and leave: closed with the last reference, which Python 3.13 wants said."""

import sqlite3
from pathlib import Path
from typing import Any


class Connection(sqlite3.Connection):
    """A connection that closes itself."""

    def __del__(self) -> None:
        self.close()


def connect(path: str | Path, **options: Any) -> Connection:
    """Open a database; the garbage collector may close it in any thread."""
    return sqlite3.connect(path, factory=Connection, check_same_thread=False, **options)
