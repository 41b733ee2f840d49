"""Records for checks, and the table of values: what comes back equal, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from ledger.records import values

AT = "2026-01-01T00:00:00.000000Z"
CANARY = "canary-3b1f"
"""A word that stands in content only; where it turns up elsewhere, content has leaked."""


def note(text: Any, **more: Any) -> dict[str, Any]:
    """Return a short record: an entry that holds a value."""
    record = {"functai_conversation": 1, "kind": "entry", "at": AT, "plugin": "testing"}
    return {**record, "entry": "note", "data": text, **more}


def notes(*texts: Any) -> list[dict[str, Any]]:
    """Return a short record for each value."""
    return [note(text) for text in texts]


def texts(records: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the values of short records, in order; None for an unreadable one."""
    return [record.get("data") for record in records]


def same(found: Any, expected: Any) -> bool:
    """Say whether two values are equal and of the same types, all the way down (-0.0 is not 0)."""
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[k], expected[k]) for k in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return repr(found) == repr(expected)


def nested(depth: int) -> Any:
    """Return lists within lists, this many."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def _in_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class _Colour(enum.Enum):
    RED = "red"


class _Word(enum.StrEnum):
    YES = "yes"


class _Text(str):
    pass


class _Row(dict[str, Any]):
    pass


class _Thing:
    def __repr__(self) -> str:
        return CANARY


_ROOM = values.DEPTH_LIMIT - 1
"""How deep a record's value may be: the record is a container too."""

KEPT: dict[str, Any] = {
    "no text": "",
    "NUL": "a\x00b",
    "control characters": "".join(map(chr, range(32))) + "\x7f",
    "line ends": "a\nb\r\nc\rd\x0be\x0cf",
    "U+2028, U+2029, U+0085": "a\u2028b\u2029c\u0085d",
    "a byte order mark": "\ufeffa\ufeff",
    "right to left": "\u202eabc\u05d0\u0627\u200f",
    "emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f600",
    "other planes": "\U00010000\U0010ffff\ufffd\uffff",
    "composed and decomposed": ["\u00e9", "e\u0301"],
    "an escape as text": "\\ud83d\\ude00 \\u2028 \\n \\\\ \"'",
    "what ends a line": ',"seq":1,"ledger":["1/1","' + "A" * 22 + '","' + "A" * 22 + '"]}',
    "a quote for SQL": "'; --\" %s {0} $1",
    "null": None,
    "true and 1": [True, 1, 1.0, False, 0, 0.0],
    "minus zero": -0.0,
    "the smallest number": 5e-324,
    "the largest number": 1.7976931348623157e308,
    "numbers": [0.1, 1e-7, 1e21, 123456789012345680.0, 3.0],
    "2^53 - 1": values.INTEGER_LIMIT,
    "-(2^53 - 1)": -values.INTEGER_LIMIT,
    "empty": [[], {}, [{}], {"": []}],
    "order of keys": {"b": 1, "a": 2, "\U0001f600": 3, "\uffff": 4, "": 5},
    "keys that are hard text": {"\x00": 1, "a\u2028b": 2, "'\"\\": 3, "1": 4, "None": 5},
    "keys that we use": {"seq": 9, "ledger": ["1/1"], "kind": "unreadable", "at": 1},
    "a date as text": "2026-01-01T00:00:00Z",
    "as deep as can be": nested(_ROOM),
}
"""Values that come back equal, of the same type."""

REFUSED: dict[str, Any] = {
    "a lone surrogate": "a\ud800b",
    "two lone surrogates": "\udc00\ud83d",
    "a lone surrogate in a key": {"\udfff": 1},
    "NaN": float("nan"),
    "infinity": float("inf"),
    "-infinity": float("-inf"),
    "2^53": values.INTEGER_LIMIT + 1,
    "-2^53": -values.INTEGER_LIMIT - 1,
    "2^63": 2**63,
    "2^70": 2**70,
    "many digits": 10**5000,
    "bytes": b"a",
    "a bytearray": bytearray(b"a"),
    "an aware time": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "a naive time": datetime.datetime(2026, 1, 1),  # noqa: DTZ001
    "a date": datetime.date(2026, 1, 1),
    "a Decimal": decimal.Decimal("0.1"),
    "a UUID": uuid.UUID(int=1),
    "a path": pathlib.PurePosixPath("a"),
    "an Enum": _Colour.RED,
    "an Enum that is text": _Word.YES,
    "a set": {1},
    "a frozenset": frozenset({1}),
    "a tuple": (1,),
    "a generator": iter([1]),
    "an object": _Thing(),
    "text of a subclass": _Text("a"),
    "a dict of a subclass": _Row(a=1),
    "a key that is an integer": {1: "a"},
    "a key that is None": {None: "a"},
    "a key that is a boolean": {True: "a"},
    "a key of a subclass": {_Text("a"): 1},
    "a complex number": 1j,
    "one too deep": nested(_ROOM + 1),
    "much too deep": nested(2000),
    "in itself": _in_itself(),
    "the key of attachments": {"$attachment": 1},
}
"""Values that are refused: they would come back as another value, or not at all."""

NO_RECORDS: dict[str, Any] = {
    "no dict": ["kind", "entry"],
    "None": None,
    "text": "{}",
    "empty": {},
    "without a format": {"kind": "entry", "at": AT},
    "a format that is no number": {"functai_conversation": "1", "kind": "entry", "at": AT},
    "a format that is true": {"functai_conversation": True, "kind": "entry", "at": AT},
    "format 0": {"functai_conversation": 0, "kind": "entry", "at": AT},
    "a newer format": {**note(1), "functai_conversation": 2},
    "without a kind": {"functai_conversation": 1, "at": AT},
    "a kind that is no word": {"functai_conversation": 1, "kind": "An entry", "at": AT},
    "the kind of no record": {"functai_conversation": 1, "kind": "unreadable", "at": AT},
    "without a time": {"functai_conversation": 1, "kind": "entry"},
    "a time of another form": {"functai_conversation": 1, "kind": "entry", "at": "2026-01-01"},
    "a day that is none": {**note(1), "at": "2026-02-30T00:00:00.000000Z"},
    "a key that is a number": {**note(1), 1: 2},
}
"""What is no record, and is refused as a whole."""

BAD_IDS: list[Any] = [
    "",
    ".",
    "..",
    "../x",
    "../../x",
    "/etc/x",
    "a/b",
    "a\\b",
    "C:\\x",
    "a:b",
    ".a",
    "-a",
    "_a",
    " a",
    "a b",
    "a\n",
    "a\x00b",
    "a%2fb",
    "a'b",
    "a" * 201,
    "a" * 300,
    "\u00e9",
    "e\u0301",
    "\uff41",
    "\U0001f600",
    "\u0661",
    "\ud800",
    None,
    1,
    b"a",
    ("a",),
]
"""Ids that are refused wherever one is given."""

ODD_IDS = [
    *("a", "A", "aA", "Aa", "a.", "a..", "a-", "a_", "a.b", "a.B", "a.b.c"),
    *("0", "00", "01", "1", "1.0", "1e0", "0x1", "null", "None", "true", "NaN"),
    *("a.jsonl", "a.lock", "a.torn-1", "a.erase", "a.new-0a", "a.tmp", "a.jsonl.jsonl"),
    *("CON", "con", "nul.txt", "aux", "COM1", "lpt9.log", "conversations", "attachments"),
    *("x" * 199, "x" * 199 + "1", "x" * 199 + "2", "X" * 199 + "1"),
]
"""Ids that differ and look alike, to some system or other. Each is a conversation of its own, or
refused."""
