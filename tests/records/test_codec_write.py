"""Writing lines: the body of a record, and the seals of a batch."""

import copy
import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import RecordInvalid, RecordTooLarge
from ledger.records import codec, values
from tests.records import oracle

AT = "2026-01-01T00:00:00.000000Z"
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SALT = st.binary(min_size=16, max_size=16)


def record(**keys: Any) -> dict[str, Any]:
    """A stop record with keys besides."""
    return {"functai_conversation": 1, "kind": "stop", "at": AT, "turn": "t", **keys}


def sealed(bodies: list[bytes], salts: list[bytes], conversation: str = "c") -> bytes:
    """The lines of a first append."""
    covered = codec.Scanner(codec.first_chain(conversation)).covered
    return codec.seal(bodies, 0, covered, salts)[0]


@given(TEXT, TEXT)
def test_text_is_kept_whatever_it_holds(key: str, text: str) -> None:
    """Any text, as key or value, comes back from the line in msgspec and in the json module."""
    line = codec.body(record(data={"k" + key: text}))

    assert codec.decode_plain(line) == json.loads(line)
    assert json.loads(line)["data"] == {"k" + key: text}


@given(TEXT)
def test_line_breaks_of_other_tools_are_escaped(text: str) -> None:
    """A line holds no character at which some tool would break it; all else stands as it is."""
    line = codec.body(record(data=text)).decode()

    assert line.splitlines() == [line]
    for char in text:
        assert char in line or ord(char) < 0x20 or char in '"\\\u2028\u2029\x85'


@pytest.mark.parametrize(
    ("char", "written"),
    [("\u2028", b"\\u2028"), ("\u2029", b"\\u2029"), ("\u0085", b"\\u0085"), ("\0", b"\\u0000")],
    ids=ascii,
)
def test_separator_is_escaped_in_keys_and_values(char: str, written: bytes) -> None:
    """Separators and NUL are written as escapes, in keys too."""
    line = codec.body(record(data={char: char}))

    assert line.count(written) == 2


@pytest.mark.parametrize("text", ["😀", "שלום", "é", "\ufeff", "\u2027\u202a\u0084\u0086\u00a0"])
def test_other_text_is_written_as_itself(text: str) -> None:
    """Text of every script stays readable in the file."""
    assert text.encode() in codec.body(record(data=text))


def test_body_is_compact_and_keeps_the_order() -> None:
    """No space is written, and keys stand in the order in which they were given."""
    line = codec.body(record(data=[1, {"b": 1, "a": None}]))

    assert line == (
        b'{"functai_conversation":1,"kind":"stop","at":"2026-01-01T00:00:00.000000Z","turn":"t",'
        b'"data":[1,{"b":1,"a":null}]}'
    )


@pytest.mark.parametrize("given_value", [7, None, "x", 1j, ["1/1", "a", "b"]], ids=repr)
def test_given_place_and_seal_are_ignored(given_value: Any) -> None:
    """A record's own `seq` and `ledger` are not written, whatever they hold."""
    plain = codec.body(record())

    assert codec.body({"seq": given_value, **record(), "ledger": given_value}) == plain


def test_inner_keys_of_the_same_name_are_kept() -> None:
    """`seq` and `ledger` mean something at the top only."""
    line = codec.body(record(data={"seq": 5, "ledger": 6}))

    assert json.loads(line)["data"] == {"seq": 5, "ledger": 6}


def test_record_is_unchanged_by_encoding() -> None:
    """The caller's dict is not touched, `seq` and `ledger` included."""
    given_record = {"seq": 3, **record(data={"a": [1]}), "ledger": "x"}
    before = copy.deepcopy(given_record)

    codec.body(given_record)

    assert given_record == before


def test_change_after_encoding_does_not_matter() -> None:
    """What was encoded is bytes: the caller may go on with its dict."""
    given_record = record(data={"a": [1]})
    line = codec.body(given_record)

    given_record["data"]["a"].append(2)

    assert json.loads(line)["data"] == {"a": [1]}


def test_any_mapping_is_a_record() -> None:
    """The record itself may be any mapping; what it holds may not."""
    assert codec.body(MappingProxyType(record())) == codec.body(record())


NO_RECORDS: dict[str, tuple[Any, str]] = {
    "list": ([], ""),
    "none": (None, ""),
    "text": ("{}", ""),
    "empty": ({}, "functai_conversation"),
    "no format": ({"kind": "stop", "at": AT}, "functai_conversation"),
    "format true": (record(functai_conversation=True), "functai_conversation"),
    "format text": (record(functai_conversation="1"), "functai_conversation"),
    "format float": (record(functai_conversation=1.0), "functai_conversation"),
    "format zero": (record(functai_conversation=0), "functai_conversation"),
    "format of a newer version": (record(functai_conversation=2), "functai_conversation"),
    "no kind": ({"functai_conversation": 1, "at": AT}, "kind"),
    "kind none": (record(kind=None), "kind"),
    "kind empty": (record(kind=""), "kind"),
    "kind upper": (record(kind="Turn"), "kind"),
    "kind with newline": (record(kind="turn\n"), "kind"),
    "kind unreadable": (record(kind="unreadable"), "kind"),
    "no time": ({"functai_conversation": 1, "kind": "stop"}, "at"),
    "time none": (record(at=None), "at"),
    "time without fraction": (record(at="2026-01-01T00:00:00Z"), "at"),
    "time of a zone": (record(at="2026-01-01T00:00:00.000000+00:00"), "at"),
    "time with newline": (record(at=AT + "\n"), "at"),
    "time in other digits": (record(at="٢٠٢٦-01-01T00:00:00.000000Z"), "at"),
    "30th of February": (record(at="2026-02-30T00:00:00.000000Z"), "at"),
    "year 0": (record(at="0000-01-01T00:00:00.000000Z"), "at"),
}


@pytest.mark.parametrize(("value", "path"), NO_RECORDS.values(), ids=NO_RECORDS.keys())
def test_what_is_no_record_is_refused(value: Any, path: str) -> None:
    """A record names its format, its kind and its time, in their exact forms."""
    with pytest.raises(RecordInvalid) as caught:
        codec.body(value)

    assert caught.value.path == path


def test_key_that_is_no_text_is_refused_at_the_top() -> None:
    """The record's own keys follow the rules of values."""
    with pytest.raises(RecordInvalid):
        codec.body({**record(), 1: 2})  # type: ignore[dict-item]


def test_size_limit_is_inclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of exactly the limit is accepted."""
    monkeypatch.setattr(values, "SIZE_LIMIT_BYTES", len(codec.body(record(data="é\u2028"))))

    codec.body(record(data="é\u2028"))


def test_record_over_the_size_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte more is refused, counted as written, with both sizes."""
    size = len(codec.body(record(data="é\u2028")))
    monkeypatch.setattr(values, "SIZE_LIMIT_BYTES", size - 1)

    with pytest.raises(RecordTooLarge) as caught:
        codec.body(record(data="é\u2028"))

    assert (caught.value.size_bytes, caught.value.limit_bytes) == (size, size - 1)


def test_record_of_64_mebibytes_is_the_limit() -> None:
    """The limit itself is the contract's."""
    assert values.SIZE_LIMIT_BYTES == 64 * 1024 * 1024


@given(
    st.lists(st.lists(st.tuples(TEXT, SALT), min_size=1, max_size=4), max_size=4),
    st.lists(st.sampled_from([b"", b" \t", b"{}", b"garbage\r", b"\xff\x00"]), max_size=4),
)
def test_seals_are_those_of_the_contract(
    batches: list[list[tuple[str, bytes]]], between: list[bytes]
) -> None:
    """Batches, with other writers' lines between them, are sealed byte for byte as the twin does."""
    twin = oracle.Log()
    log = b""
    for place, batch in enumerate(batches):
        bodies = [codec.body(record(data=text)) for text, _ in batch]
        salts = [salt for _, salt in batch]
        scanner = codec.Scanner(codec.first_chain("c"))
        scanner.feed(log)
        lines, chain = codec.seal(bodies, scanner.count, scanner.covered, salts)
        twin.ours(bodies, salts)

        assert chain.decode() == twin.chain
        log += lines
        for line in between[place : place + 1]:
            twin.others(line)
            log += line + b"\n"
        assert log == twin.data


def test_sealing_leaves_the_scanner_as_it_was() -> None:
    """Seals are made from a copy of the hash, so a failed append can be made again."""
    scanner = codec.Scanner(codec.first_chain("c"))
    bodies = [codec.body(record())]

    first = codec.seal(bodies, 0, scanner.covered, [b"a" * 16])

    assert codec.seal(bodies, 0, scanner.covered, [b"a" * 16]) == first


def test_sealed_line_is_json_with_its_place_last() -> None:
    """A sealed line is one JSON object whose last two keys are `seq` and `ledger`."""
    line = sealed([codec.body(record())], [b"\xff" * 16])

    assert line.endswith(b"\n")
    assert list(json.loads(line))[-2:] == ["seq", "ledger"]
    assert json.loads(line)["ledger"][:2] == ["1/1", "_" * 21 + "w"]


def test_first_chain_holds_the_conversation() -> None:
    """The chain before line 1 is made of the id, so two logs that were swapped are noticed."""
    assert codec.first_chain("a").decode() == oracle.first_chain("a")
    assert codec.first_chain("a") != codec.first_chain("b")


@pytest.mark.parametrize("size", [0, 15, 17])
def test_salt_of_another_size_is_refused(size: int) -> None:
    """A salt is 16 bytes."""
    with pytest.raises(ValueError, match="16 bytes"):
        sealed([codec.body(record())], [b"a" * size])


def test_missing_salt_is_refused() -> None:
    """There is one salt for each line."""
    with pytest.raises(ValueError, match="zip"):
        sealed([codec.body(record())] * 2, [b"a" * 16])
