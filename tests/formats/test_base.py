"""Tests of `ledger.formats.base`: ids of imported turns, and the report."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.formats.base import MOST_LISTED, MOST_TOLD, Counted, Notes, Report, Skipped, turn_id
from ledger.records import ids
from ledger.records.canonical import canonical

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def test_an_id_never_changes():
    """These ids were written into logs; they stay what they are."""
    assert "018cc4e5-2200-7b0e-bfe1-63803877a966" == turn_id("chatgpt", "c", "u", "a", NOON)
    assert "00000000-0000-7790-a5aa-d678aed841b0" == turn_id("chatgpt", "c", None, "a", None)


@pytest.mark.parametrize(
    "moment", [None, datetime(1, 1, 1, tzinfo=UTC), NOON - timedelta(days=30_000)]
)
def test_a_time_that_does_not_fit_counts_as_none(moment):
    """Without a time, or with one before 1970, an id has zero in its place."""
    found = turn_id("f", "c", "u", "a", moment)

    assert ids.is_turn(found)
    assert turn_id("f", "c", "u", "a", None) == found


def test_each_name_counts():
    """Another format, conversation, prompt or answer, or none, is another id."""
    names: list[tuple[str, str, str | None, str | None]]
    names = [("f", "c", "u", "a"), ("g", "c", "u", "a"), ("f", "d", "u", "a")]
    names += [("f", "c", "v", "a"), ("f", "c", None, "a"), ("f", "c", "", "a")]
    names += [("f", "c", "u", "b"), ("f", "c", "u", None), ("f", "c", "u", "")]

    assert len(names) == len({turn_id(*four, NOON) for four in names})


@given(*[st.text()] * 2, *[st.none() | st.text()] * 2)
def test_an_id_is_made_of_canonical_json(format, conversation, user, first):
    """Whatever the names are, what is hashed is their canonical JSON, as the rule says."""
    digest = hashlib.sha256(canonical([format, conversation, user, first])).digest()
    expected = ids.uuid7(0, int.from_bytes(digest[:10], "big") >> 6)

    assert expected == turn_id(format, conversation, user, first, None)


def test_a_report_says_all_that_happened():
    """Imported, already there, skipped with reasons, unknown types and notes, each on a line."""
    notes = Notes()
    notes.unknown["content hologram"] = 3
    notes.counts["circles of parents cut"] = 1
    notes.counts["nothing of this kind"] = 0
    notes.skipped.append(Skipped("conversation 2", "no mapping"))
    report = Report(conversations=1, turns=1200, conversations_known=2, turns_known=9)
    report.notes.add(notes)

    assert [
        "imported 1 conversation, 1,200 turns",
        "already there: 2 whole conversations, 9 turns",
        "skipped conversation 2: no mapping",
        "unknown type content hologram: 3, kept as it is",
        "circles of parents cut: 1",
    ] == report.lines()
    assert ["imported 0 conversations, 0 turns"] == Report().lines()


def test_several_sources_are_told_by_format_and_file():
    """Each format, with what its files hold; each file that had something new; of very many, formats alone."""
    report = Report()
    report.sources = [
        Counted("a.json", "chatgpt", 1, 2, 5, 5),
        Counted("b.json", "chatgpt", 1, 1, 1, 0),
        Counted("c.jsonl", "codex", 3, 1, 1200, 7),
        Counted("d.jsonl", "codex", 1),
    ]

    assert [
        "imported 0 conversations, 0 turns",
        "chatgpt, 2 files: 3 conversations, 6 turns, 5 new",
        "  a.json: 2 conversations, 5 turns, all new",
        "  nothing new in 1 other",
        "codex, 4 files: 1 conversation, 1,200 turns, 7 new",
        "  c.jsonl and 2 more files: 1 conversation, 1,200 turns, 7 new",
        "  nothing new in 1 other",
    ] == report.lines()
    report.sources *= MOST_LISTED
    assert 3 == len(report.lines())
    assert {"what": "a.json", "new": 5} == {
        key: report.to_dict()["sources"][0][key] for key in ("what", "new")
    }


def test_many_skipped_for_one_reason_are_told_in_short():
    """Of a thousand files that were skipped for one reason a report names ten, and counts the rest."""
    report = Report()
    report.notes.skipped = [Skipped(f"file {n}", "empty") for n in range(1000)]
    report.notes.skipped.append(Skipped("other", "broken"))

    lines = report.lines()

    assert len(lines) == 1 + MOST_TOLD + 2
    assert "skipped 990 more: empty" in lines
    assert "skipped other: broken" in lines
    assert len(report.to_dict()["skipped"]) == 1001
