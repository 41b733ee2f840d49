"""Canonical JSON: against another implementation of RFC 8785."""

import hashlib
import importlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.records.canonical import canonical, sha256

rfc8785 = importlib.import_module("rfc8785")

BASIC_TEXT = st.text(st.characters(max_codepoint=0xD7FF))
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)


def values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """JSON values made of such texts."""
    return st.recursive(
        st.none() | st.booleans() | NUMBERS | text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=12,
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
@example(1e21)
@example(1e-6)
@example(1e-7)
@example(123456789012345680000.0)
@example(-0.0)
@example(0.000001234)
@example(100.0)
def test_float_is_written_as_ecmascript_does(value: float) -> None:
    """Every finite float has the digits that RFC 8785 gives it."""
    assert canonical(value) == rfc8785.dumps(value)


@given(values(BASIC_TEXT))
def test_value_is_written_as_rfc8785(value: Any) -> None:
    """Values whose keys lie in the basic plane are written as RFC 8785 says."""
    assert canonical(value) == rfc8785.dumps(value)


@given(values(TEXT))
def test_keys_are_sorted_by_code_point(value: Any) -> None:
    """Beyond the basic plane too, keys stand in the order of their code points."""
    written = canonical(value)

    assert written == _by_code_point(value)


def test_code_point_order_differs_from_rfc8785_beyond_the_basic_plane() -> None:
    """RFC 8785 sorts by UTF-16 units, so U+1F600 before U+FB33; the contract by code point."""
    value = {"\U0001f600": 1, "\ufb33": 2}

    assert rfc8785.dumps(value) == '{"😀":1,"\ufb33":2}'.encode()
    assert canonical(value) == '{"\ufb33":2,"😀":1}'.encode()


@given(st.dictionaries(TEXT, st.integers(-5, 5)))
def test_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    """Equal dicts have equal bytes, whatever the order in which their keys were put in."""
    assert canonical(value) == canonical(dict(reversed(value.items())))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, b"true"),
        (None, b"null"),
        (1, b"1"),
        (1.0, b"1"),
        ([], b"[]"),
        ({}, b"{}"),
        (
            '\x00\x1f\x7f\b\f\n\r\t"\\/\u2028',
            b'"\\u0000\\u001f\x7f\\b\\f\\n\\r\\t\\"\\\\/\xe2\x80\xa8"',
        ),
    ],
    ids=repr,
)
def test_small_values(value: Any, text: bytes) -> None:
    """The plain cases, by hand."""
    assert canonical(value) == text


def test_hash_names_its_algorithm() -> None:
    """A hash is `sha256:` and the hex digest of the canonical bytes."""
    assert sha256({"b": 1, "a": []}) == "sha256:" + hashlib.sha256(b'{"a":[],"b":1}').hexdigest()


def _by_code_point(value: Any) -> bytes:
    if isinstance(value, dict):
        parts = [
            rfc8785.dumps(k) + b":" + _by_code_point(value[k]) for k in sorted(value, key=_points)
        ]
        return b"{" + b",".join(parts) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(_by_code_point, value)) + b"]"
    written: bytes = rfc8785.dumps(value)
    return written


def _points(text: str) -> list[int]:
    return [ord(c) for c in text]
