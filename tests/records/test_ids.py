"""Ids: which names are safe, and the layout of turn ids."""

import enum
import importlib
import json
import unicodedata
import uuid
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import ConversationIdInvalid
from ledger.records import ids

UNSAFE = {
    "empty": "",
    "parent folder": "..",
    "this folder": ".",
    "absolute": "/etc/x",
    "drive": "C:\\x",
    "stream": "a:b",
    "300 characters": "a" * 300,
    "201 characters": "a" * 201,
    "composed letter": unicodedata.normalize("NFC", "é"),
    "decomposed letter": unicodedata.normalize("NFD", "é"),
    "full-width letter": "ａ",
    "digit of another script": "٣",
    "emoji": "😀",
    "trailing newline": "a\n",
    "leading newline": "\na",
    "NUL": "a\0",
    "space": "a b",
    "trailing space": "a ",
    "slash": "a/b",
    "backslash": "a\\b",
    "percent": "%2e%2e",
    "leading dot": ".a",
    "leading dash": "-a",
    "leading underscore": "_a",
    "lone surrogate": "a\ud800",
    "invisible joiner": "a\u200db",
}
SAFE = ["a", "A", "0", "a.b_c-d", "CON", "nul.txt", "a.", "a..b", "a" * 200, "9" * 200]


@pytest.mark.parametrize("conversation", UNSAFE.values(), ids=UNSAFE.keys())
def test_unsafe_conversation_id_is_refused(conversation: str) -> None:
    """A name that could leave the folder or collide on some file system is refused by code."""
    with pytest.raises(ConversationIdInvalid) as caught:
        ids.check_conversation(conversation)

    assert caught.value.code == "conversation-id"


@pytest.mark.parametrize("conversation", [None, 5, b"a", ["a"]], ids=repr)
def test_conversation_id_that_is_no_text_is_refused(conversation: Any) -> None:
    """Only text names a conversation."""
    with pytest.raises(ConversationIdInvalid):
        ids.check_conversation(conversation)


@pytest.mark.parametrize("conversation", SAFE, ids=lambda c: c[:12])
def test_safe_conversation_id_is_returned(conversation: str) -> None:
    """A safe name is returned as it is, also one that only Windows reserves."""
    assert ids.check_conversation(conversation) == conversation


@given(st.text(max_size=220))
def test_conversation_id_follows_the_contract(conversation: str) -> None:
    """Accepted is exactly: 1 to 200 of the letters, starting with a letter or digit."""
    start = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    safe = (
        1 <= len(conversation) <= 200
        and conversation[0] in start
        and all(c in start + "._-" for c in conversation)
    )
    try:
        ids.check_conversation(conversation)
        accepted = True
    except ConversationIdInvalid:
        accepted = False

    assert accepted == safe


def test_conversation_id_is_the_text_that_was_checked() -> None:
    """A subclass of str that prints something else cannot smuggle it into a file name."""

    class Name(str, enum.Enum):  # noqa: UP042
        A = "good"

        def __str__(self) -> str:
            return "../bad"

    checked = ids.check_conversation(Name.A)

    assert type(checked) is str
    assert f"{checked}.jsonl" == "good.jsonl"


def test_the_id_of_a_memorys_key_is_named() -> None:
    """What is refused may be a memory's key; the error says under which id that is kept."""
    with pytest.raises(ConversationIdInvalid, match="as a memory's key it is 'user_3a42'"):
        ids.check_conversation("user:42")


def test_refused_conversation_id_is_shortened() -> None:
    """A refusal shows no more than the start of a long id."""
    with pytest.raises(ConversationIdInvalid) as caught:
        ids.check_conversation("/" * 100_000)

    assert len(str(caught.value)) < 300


RESERVED = ["CON", "con", "nul.txt", "COM1", "lpt9.a.b", "Aux", "PRN.", "COM0", "a."]


@pytest.mark.parametrize("conversation", RESERVED)
def test_reserved_name_is_known(conversation: str) -> None:
    """Names that Windows keeps for devices, and names whose last dot it drops, are told."""
    assert ids.reserved_on_windows(conversation)


@pytest.mark.parametrize("conversation", ["cons", "a.con", "COM10", "nul-1", "com", "a.b"])
def test_ordinary_name_is_not_reserved(conversation: str) -> None:
    """A name that only looks like a device's is free."""
    assert not ids.reserved_on_windows(conversation)


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_uuid7_holds_its_time_and_bits(milliseconds: int, bits: int) -> None:
    """The layout is UUIDv7's: 48 bits of time, version 7, 12 bits, variant 2, 62 bits."""
    made = uuid.UUID(ids.uuid7(milliseconds, bits))

    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert made.int >> 80 == milliseconds
    assert (made.int >> 64 & 0xFFF) << 62 | made.int & (1 << 62) - 1 == bits


@pytest.mark.parametrize(
    ("milliseconds", "bits", "text"),
    [
        (0, 0, "00000000-0000-7000-8000-000000000000"),
        (2**48 - 1, 2**74 - 1, "ffffffff-ffff-7fff-bfff-ffffffffffff"),
        (1, 1, "00000000-0001-7000-8000-000000000001"),
        (0, 1 << 62, "00000000-0000-7001-8000-000000000000"),
    ],
)
def test_uuid7_at_the_boundaries(milliseconds: int, bits: int, text: str) -> None:
    """The lowest and highest times and bits land where the layout says."""
    assert ids.uuid7(milliseconds, bits) == text


@pytest.mark.parametrize(
    ("milliseconds", "bits"), [(-1, 0), (2**48, 0), (0, -1), (0, 2**74)], ids=str
)
def test_uuid7_refuses_what_does_not_fit(milliseconds: int, bits: int) -> None:
    """A time or bits outside the layout are refused, not cut."""
    with pytest.raises(ValueError, match="UUIDv7"):
        ids.uuid7(milliseconds, bits)


@given(st.lists(st.integers(0, 2**48 - 1), min_size=2, unique=True))
def test_uuid7_sorts_by_time(times: list[int]) -> None:
    """Ids in order of time are in order of text."""
    made = [ids.uuid7(t, 0) for t in sorted(times)]

    assert made == sorted(made)


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_uuid7_fits_the_public_schema(milliseconds: int, bits: int) -> None:
    """The schema of the public format accepts our turn ids."""
    jsonschema = importlib.import_module("jsonschema")
    made = ids.uuid7(milliseconds, bits)

    jsonschema.Draft202012Validator(_definition("uuid")).validate(made)
    assert ids.is_turn(made)


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "",
        "00000000-0000-7000-8000-00000000000G",
        "00000000-0000-7000-8000-000000000000\n",
        "00000000-0000-7000-8000-0000000000000",
        "00000000-0000-4000-8000-000000000000",
        "00000000-0000-7000-c000-000000000000",
        "00000000-0000-7000-8000-00000000000A",
        "00000000000070008000000000000000",
    ],
    ids=repr,
)
def test_other_text_is_no_turn_id(value: Any) -> None:
    """Only a lower-case UUIDv7 in its usual form is a turn id."""
    assert not ids.is_turn(value)


def _definition(name: str) -> Any:
    functai = importlib.import_module("functai")
    text = files(functai).joinpath("schema/call.schema.json").read_text()
    return json.loads(text)["$defs"][name]
