"""What verify names: every line that is not plainly sealed, by place."""

from __future__ import annotations

import pytest

import ledger
from ledger.records import kinds
from ledger.stores import lines
from ledger.stores.memory import MemoryStore
from ledger.stores.verify import LISTED, Finding, verify
from tests.stores.support import foreign, stop

AT = "2026-01-01T00:00:00.000000Z"


@pytest.fixture
def rows():
    """Return the lines of a log of five records, the last two of one batch."""
    store = MemoryStore()
    for name in "abc":
        store.append("c", [stop(name)])
    store.append("c", [stop("d"), stop("e")])
    return store.raw("c").split(b"\n")[:-1]


def check(rows, conversation="c", end=b"\n"):
    """Verify a log made of lines."""
    return verify(lines.BytesSource(b"\n".join(rows) + end), conversation)


def found(report) -> list[tuple[str, int]]:
    """Return what was found, and where."""
    return [(finding.what, finding.seq) for finding in report.findings]


def test_a_good_log(rows):
    """A log that only we wrote has nothing to report."""
    report = check(rows)

    assert report.counts == {"sealed": 5}
    assert (report.records, report.findings, report.findings_total) == (5, [], 0)
    assert report.torn_bytes == 0
    assert not report.damaged


def test_a_changed_line(rows):
    """A changed line is suspect, named with its place, offset and length; the rest stays good."""
    rows[1] = rows[1].replace(b'"turn":"b"', b'"turn":"B"')
    report = check(rows)

    assert report.counts == {"sealed": 4, "suspect": 1}
    assert report.findings == [Finding("suspect", 2, len(rows[0]) + 1, len(rows[1]), 2)]
    assert report.damaged


def test_a_missing_line(rows):
    """Where a line is missing, the next one does not check, and later ones are not at their places."""
    del rows[1]
    report = check(rows)

    assert found(report) == [("suspect", 2), ("misplaced", 3), ("misplaced", 4)]
    assert report.findings[1].written_seq == 4
    assert report.damaged


def test_doubled_and_reordered_lines(rows):
    """A doubled line and lines that changed places are named."""
    doubled = check([rows[0], rows[0], *rows[1:]])
    assert doubled.findings[0].what == "suspect"
    assert doubled.findings[0].seq == 2
    assert doubled.damaged
    swapped = check([rows[0], rows[2], rows[1], *rows[3:]])
    assert [what for what, _ in found(swapped)][:3] == ["suspect"] * 3


def test_another_conversations_log(rows):
    """A log under another id does not check from its first line."""
    assert found(check(rows, "other")) == [("suspect", 1)]


def test_a_line_that_nothing_vouches_for(rows):
    """A line that is no record is named, also where a tombstone keeps its seal from saying so."""
    stone = foreign("f", 2)[:-1] + b" "
    unsealed = rows[1].replace(b'"turn":"b"', b'"turn":"B"')
    assert found(check([rows[0], stone, unsealed]))[1:] == [("unprovable", 3)]

    report = check([rows[0], stone, unsealed.replace(b'"turn":', b'"turn"?')])

    assert found(report)[1:] == [("unreadable", 3)]
    assert report.damaged


def test_a_void_batch_and_foreign_lines(rows):
    """Void and foreign lines are listed and are no damage."""
    report = check([*rows[:4], foreign("f", 5)[:-1]])

    assert found(report) == [("void", 4), ("unsealed", 5)]
    assert not report.damaged


def test_garbage(rows):
    """A line that is no record is unreadable."""
    report = check([*rows, b"[]"])

    assert found(report) == [("unreadable", 6)]
    assert report.damaged


def test_a_torn_tail(rows):
    """Bytes after the last line feed are counted; a whole last line without it is a line."""
    assert check(rows[:3], end=b"\n{torn").torn_bytes == 5
    whole = check(rows, end=b"")
    assert (whole.torn_bytes, whole.counts) == (0, {"sealed": 5})


def test_a_report_is_bounded(rows):
    """However many lines are damaged, a bounded number is listed and all are counted."""
    report = check([*rows, *[b"x"] * (LISTED + 50)])

    assert len(report.findings) == LISTED
    assert report.findings_total == LISTED + 50
    assert report.counts["unreadable"] == LISTED + 50


def test_an_empty_log():
    """No bytes, or blank lines only, hold no records."""
    for data in (b"", b"\n \n"):
        report = verify(lines.BytesSource(data), "c")
        assert (report.records, report.counts, report.damaged) == (0, {}, False)


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_a_hash_that_is_no_attachments_is_not_missing(kind, tmp_path):
    """A checksum of something else, in what was asked, answered, or kept beside, by whatever name."""
    store = ledger.FolderStore(tmp_path) if kind == "folder" else ledger.MemoryStore()
    told = {"digests": {"sha256": "5e" * 32}, "$attachments": {"sha256": "5f" * 32}}
    kept = ledger.Attachment(b"a")
    ledger.open("c", store=store).record({"message": kept, "told": told}, {"result": [told, kept]})
    store.append("c", [kinds.new("entry", AT, plugin="x", entry="y", data=told)])
    report = store.verify("c").check_attachments(store.blobs)
    assert (report.attachments, report.missing, report.damaged) == ([kept.sha256], [], False)


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_attachments_are_read_when_they_are_asked_for(kind, tmp_path):
    """What good lines name is looked for: gone, or other bytes now, it is damage; each is read once."""
    store = ledger.FolderStore(tmp_path) if kind == "folder" else ledger.MemoryStore()
    chat = ledger.open("c", store=store)
    names = [
        chat.record({"message": ledger.Attachment(data)}, "x").inputs["message"].sha256
        for data in (b"a", b"b", b"c")
    ]
    chat.record({"message": ledger.Attachment(b"a")}, "x")
    assert not store.verify("c").check_attachments(store.blobs).damaged

    store.blobs.remove([names[0]])
    if kind == "folder":
        (kept,) = (path for path in tmp_path.rglob(names[1]))
        kept.write_bytes(b"?")
    report = store.verify("c")
    assert (report.damaged, report.attachments) == (False, names)
    verdicts: dict[str, str] = {}
    report.check_attachments(store.blobs, verdicts)
    assert report.damaged
    assert (report.missing, report.altered) == (names[:1], names[1:2] if kind == "folder" else [])
    store.blobs.put(b"a")
    assert store.verify("c").check_attachments(store.blobs, verdicts).missing == names[:1]
    assert store.verify("c").check_attachments(store.blobs).missing == []
