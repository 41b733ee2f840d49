"""A file of a source as formats are given it: on disk, in a zip, packed by gzip, or a database."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

from ledger.formats.base import Broken, Element, Row, Schema, Unreadable
from ledger.formats.elements import split
from ledger.records import times
from ledger.sources import databases
from ledger.sources.media import UNREADABLE, Media
from ledger.turns.world import SYSTEM

FIRST_BYTES = 64 << 10
"""How much is read at first: most files are known by little."""
PIECE_BYTES = 1 << 20
GROWING = timedelta(seconds=120)
"""How long after the last writing a file may still be in the middle of a turn."""
Clock = Callable[[], datetime]
_GZIP = b"\x1f\x8b"


@dataclass(slots=True, eq=False)
class Opened:
    """One file; see `ledger.formats.base.File`."""

    name: str
    path: str
    open: Callable[[], IO[bytes]]
    disk: Path
    """The file itself, or the zip that it is in."""
    media: Media = field(default_factory=Media, repr=False)
    """The files beside it in its zip or folder."""
    in_zip: bool = False
    known_by_name: bool = True
    """Whether conversations are expected in it, so that it is told when there are none."""
    now: Clock = SYSTEM.now
    """This machine's clock."""
    database: databases.Database | None = field(default=None, repr=False)

    def growing(self, last: datetime | None) -> bool:
        """Say whether it was written to within the last minutes: by its last line, else by its own time.

        A line from the future tells nothing, nor does the time of a zip.
        """
        if last is not None and last - self.now() < GROWING:
            return is_recent(last, self.now())
        return not self.in_zip and self.touched

    @property
    def touched(self) -> bool:
        """Whether the file was written to, or copied, within the last minutes."""
        written = times.from_unix(max(self.stamp()[1::2]) / 1e9)
        return written is not None and is_recent(written, self.now())

    def elements(self) -> Iterator[Element | Broken]:
        """Yield its values; where the system or the zip refuses to read on, it is broken."""
        read = 0

        def pieces() -> Iterator[bytes]:
            nonlocal read
            size = FIRST_BYTES
            with self._unpacked() as opened:
                while piece := opened.read(size):
                    read += len(piece)
                    size = PIECE_BYTES
                    yield piece

        try:
            yield from split(pieces())
        except UNREADABLE as error:
            yield Broken(read, f"it cannot be read on: {said(error)}")

    def schema(self) -> Schema | None:
        """Return what the database holds; None when it is none.

        Raises: Unreadable: it is one, and does not read.
        """
        try:
            with self.open() as opened:
                start = opened.read(len(databases.START))
        except UNREADABLE:
            return None
        return self._data().schema() if start == databases.START else None

    def rows(self, query: str, *values: Any) -> Iterator[Row]:
        """Yield rows of the database."""
        return self._data().rows(query, *values)

    def close(self) -> None:
        """Let go of the database; it is opened again when it is asked again."""
        if self.database is not None:
            self.database.close()
            self.database = None

    def stamp(self) -> list[int]:
        """Return what changes when it is written to."""
        return databases.stamp(self.disk)

    def _data(self) -> databases.Database:
        if self.in_zip:
            raise Unreadable("a database in a zip; unpack it and give the folder")
        if self.database is None:
            self.database = databases.Database(self.disk)
        return self.database

    def _unpacked(self) -> IO[bytes]:
        with self.open() as opened:
            packed = opened.read(len(_GZIP)) == _GZIP
        return gzip.GzipFile(fileobj=self.open()) if packed else self.open()  # type: ignore[return-value]


def is_recent(moment: datetime, now: datetime) -> bool:
    """Say whether what was written at a moment may still go on."""
    return abs(now - moment) < GROWING


def said(error: BaseException) -> str:
    """Return an error in words for people."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or "damaged"
