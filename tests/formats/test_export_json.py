"""Tests of `ledger.formats.export_json`: a conversation out and in, byte for byte."""

from __future__ import annotations

import hashlib
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import ImportInvalid
from ledger.formats import export_json
from ledger.formats.base import Element, Exported, Skipped
from ledger.formats.elements import split
from tests.formats.given import Given

LINES = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=20).map(lambda text: text.encode(errors="replace")),
    st.sampled_from([b"", b"\r", b"\x00", b"\xe2\x80\xa8", b"\xff", b"\xed\xa0\x80", b" \t"]),
)
LOGS = st.lists(LINES, max_size=8).map(b"\n".join)


def document(log: bytes = b"", blobs: list[bytes] | None = None) -> bytes:
    named = {hashlib.sha256(blob).hexdigest(): (blob[:1], blob[1:]) for blob in blobs or []}
    return b"".join(export_json.dump("talk-1", log, named.items()))


@given(LOGS, st.lists(st.binary(max_size=30), max_size=3))
def test_out_and_in_is_the_identity(log, blobs):
    """Any bytes of a log and of attachments come back exactly, through any cut of the file."""
    data = document(log, blobs)
    json.loads(data)
    (element,) = split([data[:7], data[7:]])

    found = export_json.load(element.raw)

    assert ("talk-1", log) == (found.conversation, found.raw_log)
    assert {hashlib.sha256(blob).hexdigest(): blob for blob in blobs} == dict(found.blobs)


def test_a_line_of_text_is_one_line_of_the_document():
    """What people can read stays readable: a line of text is a string on a line of its own."""
    record = '{"kind":"turn","text":"Grüße \\u2028"}'

    assert json.dumps(record, ensure_ascii=False) in document(record.encode() + b"\n").decode()


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"turn_ledger_export": 2}, "upgrade"),
        ({"turn_ledger_export": None}, "upgrade"),
        ({"conversation": "../x"}, "safe name"),
        ({"conversation": None}, "not text"),
        ({"log": "x"}, "no list"),
        ({"log": [1]}, "line 1"),
        ({"log": ["", {"base64": "?"}]}, "line 2"),
        ({"log": ["\ud800"]}, "line 1"),
        ({"attachments": []}, "no object"),
        ({"attachments": {"0" * 64: "AA=="}}, "other bytes"),
        ({"attachments": {"0" * 64: None}}, "does not read"),
    ],
)
def test_a_bad_document_is_refused_with_its_reason(change, reason):
    """A document that is altered, newer or half there is refused whole, and says where."""
    data = json.dumps({**json.loads(document(b"{}\n", [b"x"])), **change}).encode()

    with pytest.raises(ImportInvalid, match=reason):
        export_json.load(data)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"{}", b"\xff", b"[" * 100_000])
def test_what_is_no_document_is_refused(data):
    """Bytes that are no document of ours never load."""
    with pytest.raises(ImportInvalid):
        export_json.load(data)


def test_a_key_of_a_later_program_is_skipped():
    """A key that is not known here does not stop the document from loading."""
    data = json.dumps({**json.loads(document(b"{}\n")), "note": 1}).encode()

    assert b"{}\n" == export_json.load(data).raw_log


def test_documents_are_a_format_like_any_other():
    """A document among others is found by looking, and a bad one costs itself alone."""
    good = document(b"{}\n")
    assert export_json.looks_like(json.loads(good))
    assert not export_json.looks_like({"mapping": {}})

    found = list(export_json.drafts([Given([Element(b"{}", 0), Element(good, 3)])]))

    assert [Skipped, Exported] == [type(one) for one in found]


def test_a_flipped_byte_of_an_attachment_is_noticed():
    """An attachment whose bytes changed in the document is refused, never handed out."""
    blob = random.Random(1).randbytes(3000)
    good = json.loads(document(b"", [blob]))
    (sha256,) = good["attachments"]
    text = good["attachments"][sha256]
    good["attachments"][sha256] = ("B" if text[0] != "B" else "C") + text[1:]

    with pytest.raises(ImportInvalid, match=sha256):
        export_json.load(json.dumps(good).encode())
