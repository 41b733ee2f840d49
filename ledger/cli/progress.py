"""How far an import has come, as one line on a terminal that is written over and over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from ledger.formats.base import Report

EVERY_S = 0.1


class Progress:
    """Shows a report on a stream that is a terminal; on any other it says nothing."""

    def __init__(self, stream: TextIO | None, *, clock: Callable[[], float] = time.monotonic):
        self._stream = stream if stream is not None and stream.isatty() else None
        self._clock = clock
        self._next = clock()
        self._width = 0

    def show(self, _: str, report: Report) -> None:
        """Show the report so far, at most ten times a second."""
        if self._clock() >= self._next:
            self._next = self._clock() + EVERY_S
            known = report.conversations + report.conversations_known
            self._write(
                f"{report.files_read:,} of {report.files:,} files · {known:,} conversations · "
                f"{report.turns:,} new turns"
            )

    def end(self) -> None:
        """Take the line away."""
        if self._width:
            self._write("")

    def _write(self, line: str) -> None:
        if self._stream is not None:
            self._stream.write(f"\r{line.ljust(self._width)}" + ("" if line else "\r"))
            self._stream.flush()
            self._width = len(line)
