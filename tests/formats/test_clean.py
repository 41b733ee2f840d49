"""Tests of `ledger.formats.clean`: foreign bytes are read as `json` reads them, whoever reads them."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.formats import clean
from ledger.formats.base import Notes

ODD = [
    "NaN",
    "-Infinity",
    "1e400",
    "-0",
    "-0.0",
    "1E2",
    str(2**70),
    '"\\ud800"',
    '{"a":1,"b":2,"a":3}',
    "[1,]",
    "01",
    "",
]
TOKENS = st.sampled_from(
    [*ODD, "[", "]", "{", "}", ",", ":", '"a"', '"\\u0000"', " ", "1.5", "null", "\ufeff"]
)


def read(text: str) -> str:
    """What `json` reads, spelled out; or that it refuses."""
    try:
        return repr(json.loads(text))
    except ValueError:
        return "refused"


@given(
    st.lists(TOKENS, max_size=8).map("".join)
    | st.recursive(
        st.none() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    ).map(json.dumps)
)
@example("9" * 5000)
def test_bytes_are_read_as_json_reads_them(text):
    """Numbers of any size, keys that come twice, NaN, lone surrogates, and what is refused: all as in `json`."""
    try:
        found = repr(clean.decoded(text.encode(), Notes()))
    except ValueError:
        found = "refused"

    assert read(text) == found


@pytest.mark.parametrize("odd", ODD[:8])
def test_an_odd_value_among_others_is_read(odd):
    """One value that another reader would refuse costs nothing around it."""
    text = f'{{"before": "ä", "odd": [{odd}], "after": 1}}'

    assert read(text) == repr(clean.decoded(text.encode(), Notes()))


def test_what_is_no_utf_8_is_replaced_and_counted():
    """Bytes that are no text cost these characters alone."""
    notes = Notes()

    assert {"a": "x\ufffdy"} == clean.decoded(b'{"a": "x\xffy"}', notes)
    assert {clean.NOT_UTF8: 1} == notes.counts
