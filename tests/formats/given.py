"""Files as formats are given them, out of memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats.base import Broken, Element, Row, Unreadable
from ledger.formats.elements import split


class Given:
    """A file of these values, or of these bytes; or a database."""

    def __init__(
        self,
        content: bytes | sqlite3.Connection | Sequence[Element | Broken] = b"",
        path: str = "given.json",
        *,
        growing: bool = False,
    ) -> None:
        self.path = path
        self.name = path
        self.growing = growing
        self._content = content

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
