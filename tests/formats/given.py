"""Files as formats are given them, out of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats.base import Broken, Element, Row, Unreadable
from ledger.formats.elements import split


class Given:
    """A file of these values, or of these bytes."""

    def __init__(
        self,
        content: bytes | Sequence[Element | Broken] = b"",
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
        return split([self._content]) if isinstance(self._content, bytes) else iter(self._content)

    def rows(self, query: str, *values: Any) -> Iterator[Row]:
        """It is no database."""
        raise Unreadable("no database")
