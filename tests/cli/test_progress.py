"""Tests of `ledger.cli.progress`."""

import io

from ledger.cli.progress import EVERY_S, Progress
from ledger.formats.base import Report


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


def test_a_line_is_written_over_and_taken_away():
    """Each report stands where the one before it stood, not more often than asked; the end is blank."""
    terminal, now = Terminal(), [0.0]
    progress = Progress(terminal, clock=lambda: now[0])
    for files_read in range(3):
        progress.show("id", Report(files=2000, files_read=files_read, turns=1234))
        now[0] += EVERY_S / 2
    progress.end()

    first, *more, blank, end = terminal.getvalue().split("\r")[1:]

    assert first == "0 of 2,000 files · 0 conversations · 1,234 new turns"
    assert [line.split()[0] for line in more] == ["2"]
    assert (blank.strip(), end, len(blank)) == ("", "", len(first))


def test_no_terminal_no_line():
    """Where nobody looks, nothing is written."""
    stream = io.StringIO()
    for progress in (Progress(stream), Progress(None)):
        progress.show("id", Report())
        progress.end()

    assert stream.getvalue() == ""
