"""Tests of `ledger.formats.deep`: it reads what `json` reads, and deeper."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import deep

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
INDENTS = st.sampled_from([None, 1])


@settings(max_examples=40)
@given(VALUES, INDENTS, st.booleans())
def test_it_reads_what_json_reads(value, indent, escaped):
    """Every value comes back as it does from `json.loads`."""
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)

    assert repr(json.loads(text)) == repr(deep._Reader(text).value())


@settings(max_examples=60)
@given(VALUES, st.data())
def test_it_refuses_what_json_refuses(value, data):
    """A text with one character taken out or put in reads, or does not, as in `json`."""
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    text = (
        text[:at]
        + data.draw(st.sampled_from(["", ",", "]", "}", ":", '"', "0", " ", "-"]))
        + text[at + 1 :]
    )
    results: list[Any] = []
    for read in (json.loads, lambda given: deep._Reader(given).value()):
        try:
            results.append(repr(read(text)))
        except ValueError:
            results.append("refused")

    assert results[0] == results[1]


def test_depth_costs_no_stack():
    """Objects and lists in each other, far beyond the interpreter's stack, are read."""
    depth = 20_000
    value = deep.loads('{"a":[' * depth + "1" + "]}" * depth)

    for _ in range(depth):
        (value,) = value["a"]
    assert 1 == value
    with pytest.raises(ValueError, match="delimiter"):
        deep.loads("[" * depth + "1 2")
