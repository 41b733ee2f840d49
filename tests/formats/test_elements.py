"""Tests of `ledger.formats.elements`: a JSON file cut into its top-level values."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.formats import jsonl
from ledger.formats.base import Broken, Element
from ledger.formats.elements import split

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(['"', "\\", "[", "}"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut bytes at some places."""
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def elements(data: bytes, places: list[int] | None = None) -> list[Element]:
    """Split a text, given in pieces cut at some places."""
    found = list(split(cut(data, places or [])))
    assert all(isinstance(one, Element) for one in found), found
    return found  # type: ignore[return-value]


@given(st.lists(VALUES, max_size=6), st.lists(st.integers(0, 10**6)), st.booleans(), st.booleans())
def test_a_list_gives_its_elements(values, places, escaped, indented):
    """Whatever stands in a list, and wherever the bytes are cut, its elements come out in order."""
    text = json.dumps(values, ensure_ascii=escaped, indent=2 if indented else None)
    data = text.encode(errors="surrogatepass")

    found = elements(data, places)

    assert values == [json.loads(one.raw.decode(errors="surrogatepass")) for one in found]
    assert all(data[one.at : one.at + len(one.raw)] == one.raw for one in found)


@given(st.lists(VALUES, max_size=4), st.dictionaries(st.text(), VALUES, max_size=3), st.data())
def test_a_wrapper_gives_its_elements(values, rest, data):
    """A `conversations` list inside one object is read as the list, whatever stands beside it."""
    rest.pop("conversations", None)
    keys = data.draw(st.permutations([*rest.items(), ("conversations", values)]))
    text = json.dumps(dict(keys)).encode()

    found = elements(text, data.draw(st.lists(st.integers(0, 10**6))))

    assert values == [json.loads(one.raw) for one in found]


@given(st.dictionaries(st.text(), VALUES), st.lists(st.integers(0, 10**6)))
def test_one_object_is_one_element(value, places):
    """A file that is one object gives that object, byte for byte."""
    value.pop("conversations", None)
    data = json.dumps(value).encode()

    assert [data] == [one.raw for one in elements(b"\r\n " + data + b"\n", places)]


@given(st.lists(VALUES, min_size=1, max_size=5), st.integers(0, 10**6), st.lists(st.integers(0)))
def test_a_cut_file_gives_what_is_whole(values, end, places):
    """A file cut off anywhere gives its whole elements, then says that it broke off."""
    data = json.dumps(values).encode()
    data = data[: end % len(data)]

    *found, last = split(cut(data, places))

    assert isinstance(last, Broken)
    assert values[: len(found)] == [json.loads(one.raw) for one in found]


@given(st.binary(max_size=60), st.lists(st.integers(0)))
def test_any_bytes_end(data, places):
    """Any bytes at all are read to an end, and cutting them differently changes nothing."""
    assert list(split([data])) == list(split(cut(data, places)))


def test_byte_order_mark_and_carriage_returns():
    """A byte order mark and CRLF line ends are no part of an element."""
    data = b'\xef\xbb\xbf[\r\n {"a": 1},\r\n {"b": 2}\r\n]\r\n'

    assert [b'{"a": 1}', b'{"b": 2}'] == [one.raw for one in elements(data)]
    assert b"{" == data[elements(data)[0].at :][:1]


@pytest.mark.parametrize(
    "data, at, reason",
    [
        (b"", 0, "empty"),
        (b"  hello", 2, "no JSON"),
        (b'[{"a": 1]', 8, "closes nothing"),
        (b'[{"a": 1}] x', 11, "more after"),
        (b'[{"a": 1}, {"b": "', 18, "inside the value that begins at byte 10"),
    ],
)
def test_a_broken_file_names_the_byte(data, at, reason):
    """What breaks a file is told with the byte it stands at."""
    *_, last = split([data])

    assert isinstance(last, Broken)
    assert at == last.at
    assert reason in last.reason


def test_an_element_that_is_no_json_costs_itself_alone():
    """Between two good elements a bad one comes out as its bytes; nothing else is lost."""
    assert [b"{}", b"{bad}", b"", b"{}"] == [one.raw for one in elements(b"[{}, {bad}, , {}]")]


def test_a_quote_that_is_never_closed_is_bounded():
    """An element over the limit ends the reading instead of the memory."""
    chunks = [b'[{"a": "'] + [b"x" * 1000] * 1000

    *_, last = split(chunks, limit_bytes=10_000)

    assert isinstance(last, Broken)
    assert "10,000" in last.reason


OBJECTS = st.lists(st.dictionaries(st.text(), VALUES, min_size=1), min_size=2, max_size=5)


@given(
    OBJECTS, st.lists(st.integers(0, 10**6)), st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n"])
)
def test_objects_one_a_line_are_elements(values, places, escaped, end):
    """A file of lines gives each line's value, byte for byte, blank lines or not, wherever cut."""
    lines = [json.dumps(value, ensure_ascii=escaped) for value in values]
    data = end.join(lines).encode(errors="surrogatepass") + b"\n"

    found = elements(data, places)

    assert values == [json.loads(one.raw.decode(errors="surrogatepass")) for one in found]
    assert all(data[one.at : one.at + len(one.raw)] == one.raw for one in found)


@given(st.integers(0, 3), st.sampled_from([b'{"a": "cut', b"\0\0\0", b"hello", b"}", b'{"a": 1']))
def test_a_bad_line_costs_itself_alone(place, bad):
    """A line that is cut, empty of sense or never closed loses no other line."""
    lines = [b'{"n": %d}' % n for n in range(3)]
    lines.insert(place, bad)

    assert lines == [one.raw for one in elements(b"\xef\xbb\xbf" + b"\n".join(lines))]


def test_a_first_line_without_end_in_sight_is_followed_by_its_brackets():
    """A first line that is longer than what is looked at is read as an object; lines follow it."""
    first = json.dumps({"image": "x" * jsonl.HEAD_BYTES}).encode()
    lines = [first, b'{"n": 1}', b"{bad", b'{"n": 2}']

    assert lines == [one.raw for one in elements(b"\n".join(lines), [*range(0, 10**6, 9999)])]


def test_a_line_without_end_is_bounded():
    """A line over the limit ends the reading instead of the memory."""
    *_, last = split([b'{"a": 1}\n{"b": "'] + [b"x" * 1000] * 1000, limit_bytes=10_000)

    assert isinstance(last, Broken)
    assert "10,000" in last.reason


def test_depth_costs_no_stack():
    """Nesting far beyond any interpreter's stack is followed."""
    data = b"[" + b"[" * 200_000 + b"]" * 200_000 + b"]"

    assert [data[1:-1]] == [one.raw for one in elements(data)]


@given(st.lists(st.integers(0, 10**6)), st.booleans())
def test_an_object_whose_conversations_are_messages_is_one_value(places, turned):
    """It is no wrapper: nothing of what stands beside the messages is lost, wherever it is cut."""
    message = {"value": "a", "from": "b"} if turned else {"from": "a", "value": "b"}
    value = {"id": 1, "conversations": [message, message], "system": "c"}
    data = json.dumps(value).encode()

    assert [data] == [one.raw for one in elements(data, places)]
    assert [b'{"x": 1}', b'{"from": 1}'] == [
        one.raw for one in elements(b'{"conversations": [{"x": 1}, {"from": 1}]}', places)
    ]
    assert [b'{"value": null}'] == [
        one.raw for one in elements(b'{"conversations": [{"value": null}]}', places)
    ]
