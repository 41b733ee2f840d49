"""Files as formats are given them, out of memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from ledger.formats.base import Broken, Element, Row, Unreadable
from ledger.formats.elements import split
from ledger.sources.opened import is_recent


class Given:
    """A file of these values, or of these bytes; or a database."""

    def __init__(
        self,
        content: bytes | sqlite3.Connection | Sequence[Element | Broken] = b"",
        path: str = "given.json",
    ) -> None:
        self.path = path
        self.name = path
        self._now: datetime | None = None
        self._content = content

    def read_at(self, now: str) -> Given:
        """Say that it was copied just now, and what time it is; else it was written long ago."""
        self._now = datetime.fromisoformat(now)
        return self

    def growing(self, last: datetime | None) -> bool:
        """Say whether its last line is of the last minutes before `now`; without a time it is."""
        if self._now is None:
            return False
        return last is None or is_recent(last, self._now)

    def elements(self) -> Iterator[Element | Broken]:
        """Yield its values."""
        if isinstance(self._content, sqlite3.Connection):
            return iter(())
        return split([self._content]) if isinstance(self._content, bytes) else iter(self._content)

    def rows(self, query: str, *values: Any) -> Iterator[Row]:
        """Yield rows of the database."""
        if not isinstance(self._content, sqlite3.Connection):
            raise Unreadable("no database")
        try:
            found = self._content.execute(query, values)
            names = [column[0] for column in found.description]
            for row in found:
                yield dict(zip(names, row, strict=True))
        except sqlite3.Error as error:
            raise Unreadable(str(error)) from error
