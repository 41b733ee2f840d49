"""Every line of a log checked, and what was found named by place.

Reads forward in bounded memory (lines that no seal covers yet are held, since the next seal judges
them). What is listed is what is not plainly sealed, and places that differ from the `seq` written.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ledger.records import codec
from ledger.stores import lines

LISTED = 1000
"""How many findings a report lists; it counts all."""

What = codec.Verdict | Literal["misplaced"]
"""A verdict, or `misplaced`: a good line whose `seq` is not its place (lines were removed, doubled or
moved)."""


DAMAGE = frozenset({"suspect", "unreadable", "misplaced"})
"""What means that a line that was once acknowledged may be lost or altered."""


class Finding(msgspec.Struct, frozen=True):
    """One thing to know about one line."""

    what: What
    seq: int
    """Its place among the records; the first is 1."""
    offset: int
    """Where its first byte is in the file."""
    size_bytes: int
    """Its length without the line feed."""
    written_seq: int | None = None
    """The `seq` that its seal names, if it has one."""


class Report(msgspec.Struct):
    """What checking a log found."""

    conversation: str
    records: int = 0
    size_bytes: int = 0
    counts: dict[str, int] = {}
    """How many lines have each verdict; `misplaced` is counted besides."""
    findings: list[Finding] = []
    """The lines that are not plainly sealed, at most `LISTED`, in order."""
    findings_total: int = 0
    torn_bytes: int = 0
    """Bytes after the last line feed that are no whole line: an append that never finished, or one
    that is being written. The next append sets them aside."""
    set_aside: list[str] = []
    """Names of the side files that hold such bytes from before."""
    wide: list[str] = []
    """Its files that others may read or write, each with its mode: `alex.jsonl 0644`."""

    @property
    def damaged(self) -> bool:
        """Whether a line that was once acknowledged may be lost or altered."""
        return any(self.counts.get(what) for what in DAMAGE)

    @property
    def damage(self) -> list[Finding]:
        """The findings among those listed that say so."""
        return [finding for finding in self.findings if finding.what in DAMAGE]


def verify(source: lines.Source, conversation: str) -> Report:
    """Check the bytes of a log from the start to the end they had."""
    report = Report(conversation=conversation, size_bytes=source.size)
    reader = lines.Reader(source, codec.Scanner(codec.first_chain(conversation)))
    for piece in reader.whole_lines():
        _judge(report, piece)
    if not reader.take_rest():
        report.torn_bytes = source.size - reader.scanner.offset
    _judge(report, reader.finish(in_flight=False))
    report.records = reader.scanner.count
    return report


def _judge(report: Report, piece: lines.Piece) -> None:
    for line in piece.lines:
        written = line.written
        verdict = codec.judged(line, piece.text(line))
        report.counts[verdict] = report.counts.get(verdict, 0) + 1
        if verdict != "sealed":
            _list(report, verdict, line, written)
        elif written != line.seq:
            report.counts["misplaced"] = report.counts.get("misplaced", 0) + 1
            _list(report, "misplaced", line, written)


def _list(report: Report, what: What, line: codec.Line, written: int | None) -> None:
    report.findings_total += 1
    if len(report.findings) < LISTED:
        report.findings.append(Finding(what, line.seq, line.start, line.end - line.start, written))
