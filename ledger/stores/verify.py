"""Every line of a log checked, and what was found named by place.

Reads forward in bounded memory (lines that no seal covers yet are held, since the next seal judges
them). What is listed is what is not plainly sealed, and places that differ from the `seq` written.
"""

from __future__ import annotations

from typing import Literal, Self

import msgspec

from ledger.errors import AttachmentMissing, StoreCorrupt, StoreLink
from ledger.records import codec, erasing
from ledger.records.verdicts import HANDED_OUT, Line, Verdict
from ledger.stores import lines
from ledger.stores.blobs import Blobs

_CHUNK = 1 << 20
LISTED = 1000
"""How many findings a report lists; it counts all."""

What = Verdict | Literal["misplaced"]
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
    attachments: list[str] = []
    """The SHA-256 of what its good lines name, each once, in order."""
    missing: list[str] = []
    """Of these, what is not there. Known after `check_attachments`."""
    altered: list[str] = []
    """Of these, what is not the bytes that were kept, or leads elsewhere by a link."""

    @property
    def damaged(self) -> bool:
        """Whether a line that was once acknowledged, or an attachment, may be lost or altered."""
        lines = any(self.counts.get(what) for what in DAMAGE)
        return lines or bool(self.missing or self.altered)

    @property
    def damage(self) -> list[Finding]:
        """The findings among those listed that say so."""
        return [finding for finding in self.findings if finding.what in DAMAGE]

    def check_attachments(self, blobs: Blobs, verdicts: dict[str, str] | None = None) -> Self:
        """Read every attachment that the log names, and say which are missing or altered. Returns: itself.

        Args: blobs: the store's `blobs`. verdicts: what was found of each before, in this or another report;
        what is found is added, so that each is read once.
        Raises: store-denied, store-io and the like: what cannot be read is neither right nor wrong.
        """
        known = verdicts if verdicts is not None else {}
        for sha256 in self.attachments:
            if sha256 not in known:
                known[sha256] = _verdict(blobs, sha256)
            if known[sha256]:
                (self.missing if known[sha256] == "missing" else self.altered).append(sha256)
        return self


def _verdict(blobs: Blobs, sha256: str) -> str:
    try:
        with blobs.open(sha256) as stream:
            while stream.read(_CHUNK):
                pass
    except AttachmentMissing:
        return "missing"
    except (StoreCorrupt, StoreLink):
        return "altered"
    return ""


def verify(source: lines.Source, conversation: str) -> Report:
    """Check the bytes of a log from the start to the end they had."""
    report = Report(conversation=conversation, size_bytes=source.size)
    named: dict[str, None] = {}
    reader = lines.Reader(source, codec.Scanner(codec.first_chain(conversation)))
    for piece in reader.whole_lines():
        _judge(report, named, piece)
    if not reader.take_rest():
        report.torn_bytes = source.size - reader.scanner.offset
    _judge(report, named, reader.finish(in_flight=False))
    report.records = reader.scanner.count
    report.attachments = list(named)
    return report


def _judge(report: Report, named: dict[str, None], piece: lines.Piece) -> None:
    for line in piece.lines:
        written = line.written
        text = piece.text(line)
        verdict = codec.judged(line, text)
        if verdict in HANDED_OUT:
            named.update(dict.fromkeys(erasing.references(text)))
        report.counts[verdict] = report.counts.get(verdict, 0) + 1
        if verdict != "sealed":
            _list(report, verdict, line, written)
        elif written != line.seq:
            report.counts["misplaced"] = report.counts.get("misplaced", 0) + 1
            _list(report, "misplaced", line, written)


def _list(report: Report, what: What, line: Line, written: int | None) -> None:
    report.findings_total += 1
    if len(report.findings) < LISTED:
        report.findings.append(Finding(what, line.seq, line.start, line.end - line.start, written))
