"""Values: equal on return, or refused with their path before anything is stored."""

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import importlib
import math
import pathlib
import time
import uuid
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import LedgerError, RecordInvalid, RecordTooLarge
from ledger.records import codec, kinds, values

AT = "2026-01-01T00:00:00.000000Z"
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
KEYS = TEXT.filter(lambda key: key != values.REFERENCE)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


class Plain(enum.Enum):
    """An Enum."""

    A = 1


class Text(str, enum.Enum):  # noqa: UP042 - the old spelling is what people have
    """An Enum whose members are texts."""

    A = "a"


class Number(enum.IntEnum):
    """An Enum whose members are numbers."""

    A = 1


class Name(str):
    """A text of its own type."""

    __slots__ = ()


@dataclasses.dataclass
class Made:
    """A dataclass whose field is not given."""

    x: int = dataclasses.field(init=False, default=1)


Pair = namedtuple("Pair", "a b")


def nested(depth: int) -> Any:
    """Lists in lists, `depth` of them."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def record(value: Any) -> dict[str, Any]:
    """A turn with one input."""
    return {
        "functai_conversation": 1,
        "kind": "turn",
        "at": AT,
        "turn": "t",
        "inputs": {"v": value},
    }


def kept(value: Any) -> Any:
    """What comes back of an input after it was written as a line and read."""
    line = codec.body(record(value))
    plain = codec.decode_plain(line)
    struct = codec.decode_struct(line, 1)
    assert plain is not None
    assert isinstance(struct, kinds.Turn)
    assert same(kinds.payload(struct.inputs), plain["inputs"])
    return plain["inputs"]["v"]


def same(a: Any, b: Any) -> bool:
    """Equal in type and value all the way down, signs of zero and order of keys too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return bool(a == b)


EXACT = {
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "next line": "a\u0085b",
    "NUL": "a\u0000b",
    "byte order mark": "\ufeffa",
    "controls": "".join(map(chr, range(32))) + "\x7f",
    "emoji": "😀👩‍👩‍👧",
    "right to left": "שלום \u202e abc",
    "combining": "e\u0301 is not é",
    "looks like a line end": '"}\n{"a":1}\r\n',
    "minus zero": -0.0,
    "zero": 0,
    "float one": 1.0,
    "int one": 1,
    "true": True,
    "none": None,
    "smallest float": 5e-324,
    "largest float": 1.7976931348623157e308,
    "1e16": 1e16,
    "largest integer": 2**53 - 1,
    "smallest integer": -(2**53) + 1,
    "empty list": [],
    "empty dict": {},
    "empty key": {"": 1},
    "digit keys": {"1": "a", "01": "b"},
    "keys of our own": {"seq": 1, "ledger": ["1/1", "x", "y"], "kind": "stop"},
    "keys in order": {"b": 1, "a": 2},
    "10 MB of text": "é" * 5_000_000,
    "198 deep": nested(198),
}

REFUSED = {
    "lone high surrogate": "a\ud83d",
    "lone low surrogate": "\ude00a",
    "surrogates of an emoji": "\ud83d\ude00",
    "nan": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "1e400": float("1e400"),
    "2**53": 2**53,
    "-2**53": -(2**53),
    "2**63": 2**63,
    "2**70": 2**70,
    "10**5000": 10**5000,
    "bytes": b"a",
    "bytearray": bytearray(b"a"),
    "memoryview": memoryview(b"a"),
    "naive datetime": dt.datetime(2026, 1, 1),  # noqa: DTZ001 - the naive one is the case
    "aware datetime": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "date": dt.date(2026, 1, 1),
    "time": dt.time(1),
    "timedelta": dt.timedelta(1),
    "Decimal": decimal.Decimal("1.10"),
    "Fraction": fractions.Fraction(1, 3),
    "complex": 1j,
    "UUID": uuid.UUID(int=1),
    "Path": pathlib.Path("/a"),
    "Enum": Plain.A,
    "str Enum": Text.A,
    "int Enum": Number.A,
    "Enum class": Plain,
    "str subclass": Name("a"),
    "set": {1},
    "frozenset": frozenset({1}),
    "tuple": (1, 2),
    "namedtuple": Pair(1, 2),
    "OrderedDict": OrderedDict(a=1),
    "defaultdict": defaultdict(list),
    "mapping proxy": MappingProxyType({"a": 1}),
    "range": range(3),
    "generator": (x for x in "a"),
    "dict view": {"a": 1}.keys(),
    "dataclass": Made(),
    "object": object(),
    "function": len,
    "Ellipsis": ...,
    "exception": ValueError("a"),
    "depth 2000": nested(2000),
}


@pytest.mark.parametrize("value", EXACT.values(), ids=EXACT.keys())
def test_value_comes_back_equal(value: Any) -> None:
    """An accepted value comes back equal in type and value."""
    assert same(kept(value), value)


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_inexact_value_is_refused_with_its_path(value: Any) -> None:
    """A value that would come back as something else is refused, and the path says where it is."""
    with pytest.raises(RecordInvalid) as caught:
        codec.body(record(value))

    assert caught.value.path.startswith("inputs.v")
    assert caught.value.code == "record-invalid"


BAD_KEYS = {
    "int": 1,
    "None": None,
    "bool": True,
    "float": 1.5,
    "tuple": (1,),
    "bytes": b"a",
    "str subclass": Name("a"),
    "enum": Text.A,
    "surrogate": "\ud800",
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_key_that_is_no_text_is_refused(key: Any) -> None:
    """A dict with a key that JSON would change is refused by the dict's path."""
    with pytest.raises(RecordInvalid) as caught:
        codec.body(record([{"a": 1}, {key: 1}]))

    assert caught.value.path == "inputs.v[1]"


def test_two_keys_that_would_become_one_are_refused() -> None:
    """`{1: ..., "1": ...}` never loses one of its entries."""
    with pytest.raises(RecordInvalid):
        codec.body(record({1: "a", "1": "b"}))


def test_numpy_values_are_refused() -> None:
    """A numpy number would come back as a plain one, so it is refused, also where it is a float."""
    numpy = importlib.import_module("numpy")
    for value in (numpy.float64(1.5), numpy.int64(1), numpy.bool_(True), numpy.array([1])):
        with pytest.raises(RecordInvalid) as caught:
            codec.body(record(value))

        assert caught.value.path == "inputs.v"


def test_pydantic_model_is_refused() -> None:
    """A pydantic model would come back as a dict, so it is refused."""
    pydantic = importlib.import_module("pydantic")

    class Model(pydantic.BaseModel):  # type: ignore[name-defined]
        x: int = 1

    with pytest.raises(RecordInvalid):
        codec.body(record(Model()))


ADVICE = [
    (Plain.A, "value.value"),
    (Text.A, "value.value"),
    (Name("a"), "str(value)"),
    ((1,), "use a list"),
    (b"", "attachment"),
    (decimal.Decimal(1), "str(value)"),
    (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "isoformat()"),
]


@pytest.mark.parametrize(("value", "advice"), ADVICE, ids=lambda v: type(v).__name__)
def test_refusal_says_what_to_do(value: Any, advice: str) -> None:
    """The reason of a refusal tells how to convert the value without losing any of it."""
    with pytest.raises(RecordInvalid) as caught:
        values.check(value)

    assert advice in caught.value.reason


PATHS = [
    ({"items": [0, 0, 0, {"price": 1j}]}, "inputs.items[3].price"),
    ({"a b": 1j}, "inputs['a b']"),
    ({"": 1j}, "inputs['']"),
    ({"0": [1j]}, "inputs['0'][0]"),
    ({"é": 1j}, "inputs['\\xe9']"),
    ({"a\n": 1j}, "inputs['a\\n']"),
    ([[[1j]]], "inputs[0][0][0]"),
    (1j, "inputs"),
]


@pytest.mark.parametrize(("value", "path"), PATHS, ids=[path for _, path in PATHS])
def test_path_is_spelled_as_python_would(value: Any, path: str) -> None:
    """A path reads as the expression that finds the value; odd keys are quoted."""
    with pytest.raises(RecordInvalid) as caught:
        values.check(value, "inputs")

    assert caught.value.path == path


@given(JSON)
def test_what_looks_plain_is_just_what_is_kept(value: Any) -> None:
    """The quick look says yes of every JSON tree."""
    assert values.is_plain({"v": value})


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_does_not_look_plain(value: Any) -> None:
    """The quick look says yes of nothing that is refused, but for text, of which an encoder says it."""
    assert values.is_plain({"v": [value]}) is (type(value) is str)


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_dict_with_a_key_that_is_refused_does_not_look_plain(key: Any) -> None:
    """Nor of a dict with a key that JSON would change."""
    assert values.is_plain({"v": {"b": 1, key: 1}}) is (type(key) is str)


def test_what_takes_a_closer_look_does_not_look_plain() -> None:
    """Depth, cycles, shared parts and references are for `check`: the quick look says no, quickly."""
    part = [0] * 100_000
    loop: list[Any] = []
    loop.extend([loop] * 9_000)

    assert values.is_plain({"v": nested(199)})
    assert not values.is_plain({"v": nested(200)})
    assert not values.is_plain({"v": loop})
    assert not values.is_plain({"v": [part] * 100_000})
    assert not values.is_plain({"v": part, "w": [part]})
    assert not values.is_plain({"v": {values.REFERENCE: 1}})


def test_long_path_is_cut() -> None:
    """A path is for reading: keys of any length cannot fill the message."""
    with pytest.raises(RecordInvalid) as caught:
        values.check({"a" * 100_000: {"b c" * 100_000: 1j}})

    assert len(str(caught.value)) < 1000


@given(JSON)
def test_any_json_value_comes_back(value: Any) -> None:
    """Every JSON value comes back equal in type and value, -0.0 and 1 against 1.0 too."""
    assert same(kept(value), value)


@given(st.data(), JSON)
def test_one_foreign_leaf_is_refused_at_its_path(data: st.DataObject, value: Any) -> None:
    """Wherever one foreign leaf stands, the refusal names exactly that place."""
    holder = {"v": value}
    path, parent, step = "", holder, "v"
    while True:
        path = f"{path}{spelled(step)}" if path else str(step)
        inner = parent[step]
        steps = (
            list(inner)
            if type(inner) is dict
            else list(range(len(inner)))
            if type(inner) is list
            else []
        )
        if not steps or data.draw(st.booleans()):
            break
        parent, step = inner, data.draw(st.sampled_from(steps))
    parent[step] = 1j

    with pytest.raises(RecordInvalid) as caught:
        values.check(holder)

    assert caught.value.path == (path if len(path) <= 400 else path[:400] + "...")


def spelled(step: Any) -> str:
    """One step of a path."""
    if isinstance(step, str) and step.isascii() and step.isidentifier():
        return f".{step}"
    shown = ascii(step)
    return f"[{shown if len(shown) <= 60 else shown[:57] + '...'}]"


def test_depth_200_is_accepted_counting_the_record() -> None:
    """A record is 1 deep itself; containers 200 deep are kept and read."""
    deepest = nested(198)

    assert same(kept(deepest), deepest)


def test_depth_201_is_refused() -> None:
    """One more is refused before anything is written."""
    with pytest.raises(RecordInvalid, match="200 deep"):
        codec.body(record(nested(199)))


def test_cycle_is_refused() -> None:
    """A list in itself is refused as too deep, quickly, however often it holds itself."""
    for times in (1, 100_000):
        loop: list[Any] = []
        loop.extend([loop] * times)

        with pytest.raises(RecordInvalid, match="in itself"):
            values.check(loop)


def test_cycle_through_a_dict_is_refused() -> None:
    """A dict in itself by way of a list is refused too."""
    loop: dict[str, Any] = {}
    loop["a"] = [loop]

    with pytest.raises(RecordInvalid, match="in itself"):
        values.check(loop)


def test_shared_part_is_kept_in_each_place() -> None:
    """A part that stands in two places is written twice and comes back as two."""
    part = {"a": [1]}
    back = kept([part, part, {"b": part}])

    assert back == [part, part, {"b": part}]
    assert back[0] is not back[1]


def test_small_graph_of_shared_parts_is_kept() -> None:
    """Ten levels of two equal references are a thousand leaves, which is no harm."""
    assert same(kept(doubled(10)), doubled(10))


def test_large_graph_of_shared_parts_is_refused_quickly() -> None:
    """A graph whose text would be 2^60 leaves is refused by size, without walking each path."""
    with pytest.raises(RecordTooLarge):
        codec.body(record(doubled(60)))


def test_bad_leaf_in_a_shared_graph_is_found_quickly() -> None:
    """A foreign leaf below 2^60 paths is named by one of them."""
    with pytest.raises(RecordInvalid) as caught:
        values.check(doubled(60, 1j))

    assert caught.value.path.startswith("[")


def test_shared_part_is_too_deep_at_its_deepest_place() -> None:
    """A part that fits near the top is still refused where it stands too deep."""
    part = nested(100)
    deep = part
    for _ in range(101):
        deep = [deep]

    with pytest.raises(RecordInvalid, match="200 deep"):
        values.check([part, deep])
    with pytest.raises(RecordInvalid, match="200 deep"):
        values.check([deep, part])


@given(JSON, JSON)
def test_size_of_shared_parts_is_a_lower_bound(part: Any, other: Any) -> None:
    """The size that is added up for shared parts never exceeds what is written."""
    value = [part, {"a": part, "é": [part, other]}, other]

    assert values._least_size(value) <= len(codec._encoder.encode(value))


def doubled(levels: int, leaf: Any = 0) -> Any:
    """A list that holds one list twice, which holds one list twice, and so on."""
    value: Any = [leaf]
    for _ in range(levels):
        value = [value, value]
    return value


LONG: dict[str, Callable[[], Any]] = {
    "numbers": lambda: [1.5] * 1_000_000,
    "texts": lambda: ["a"] * 1_000_000,
    "lists": lambda: [[] for _ in range(300_000)],
    "dicts": lambda: [{"a": 1} for _ in range(300_000)],
    "one list": lambda: [[]] * 1_000_000,
}


@pytest.mark.parametrize("make", LONG.values(), ids=LONG.keys())
def test_long_list_is_checked_quickly(make: Callable[[], Any]) -> None:
    """A million items cost about a second."""
    items = make()
    began = time.process_time()

    values.check(items)

    assert time.process_time() - began < 5


HASH = "a" * 64
REFERENCES = {
    "least": {"sha256": HASH, "media_type": "image/png", "size": 0},
    "all": {"sha256": HASH, "media_type": "a/b", "size": 5, "name": "é", "options": {"x": [1]}},
}
NOT_REFERENCES: dict[str, Any] = {
    "text": "x",
    "empty": {},
    "no size": {"sha256": HASH, "media_type": "a/b"},
    "short hash": {"sha256": "a", "media_type": "a/b", "size": 1},
    "upper hash": {"sha256": "A" * 64, "media_type": "a/b", "size": 1},
    "hash and newline": {"sha256": HASH + "\n", "media_type": "a/b", "size": 1},
    "negative size": {"sha256": HASH, "media_type": "a/b", "size": -1},
    "true size": {"sha256": HASH, "media_type": "a/b", "size": True},
    "float size": {"sha256": HASH, "media_type": "a/b", "size": 1.0},
    "media type none": {"sha256": HASH, "media_type": None, "size": 1},
    "name none": {"sha256": HASH, "media_type": "a/b", "size": 1, "name": None},
    "options list": {"sha256": HASH, "media_type": "a/b", "size": 1, "options": []},
    "other key": {"sha256": HASH, "media_type": "a/b", "size": 1, "x": 1},
    "int key": {"sha256": HASH, "media_type": "a/b", "size": 1, 1: 1},
}


@pytest.mark.parametrize("inner", REFERENCES.values(), ids=REFERENCES.keys())
def test_attachment_reference_is_kept(inner: Any) -> None:
    """A reference in its whole form stands anywhere in a record."""
    value = [{"a": {"$attachment": inner}}]

    assert same(kept(value), value)


@pytest.mark.parametrize("inner", NOT_REFERENCES.values(), ids=NOT_REFERENCES.keys())
def test_other_use_of_the_reference_key_is_refused(inner: Any) -> None:
    """The key `$attachment` means a reference and nothing else."""
    with pytest.raises(RecordInvalid) as caught:
        codec.body(record([{"$attachment": inner}]))

    assert caught.value.path == "inputs.v[0]"


def test_reference_has_no_key_beside_it() -> None:
    """What stands beside a reference would be lost, so it is refused."""
    with pytest.raises(RecordInvalid):
        codec.body(record({"$attachment": REFERENCES["least"], "b": 1}))


def test_reference_options_are_checked_too() -> None:
    """Options of a reference are values like any other."""
    inner = {**REFERENCES["least"], "options": {"x": math.nan}}

    with pytest.raises(RecordInvalid) as caught:
        codec.body(record({"$attachment": inner}))

    assert caught.value.path == "inputs.v['$attachment'].options.x"


def test_caller_value_holds_no_reference() -> None:
    """Where references may not stand, a perfect one is refused as well."""
    with pytest.raises(RecordInvalid, match="reserved"):
        values.check({"a": {"$attachment": REFERENCES["least"]}}, references=False)


@given(JSON | st.just(nested(250)))
def test_nesting_of_text_is_that_of_the_value(value: Any) -> None:
    """The depth read off a text is the depth of the value, whatever its texts hold."""
    try:
        values.check(value)
        deep = False
    except LedgerError:
        deep = True

    assert values.too_deep(codec._encoder.encode(value)) == deep


BRACKETS = "[" * 300
TEXTS = {
    "brackets in text": (b'{"a":"' + BRACKETS.encode() + b'"}', False),
    "after an escaped quote": (b'{"a":"\\"' + BRACKETS.encode() + b'"}', False),
    "after an escaped backslash": (
        b'{"a":"\\\\",' + b'"b":' + b"[" * 300 + b"]" * 300 + b"}",
        True,
    ),
    "after three backslashes": (b'{"a":"\\\\\\"' + BRACKETS.encode() + b'"}', False),
    "side by side": (b"[" + b"[]," * 300 + b"[]]", False),
    "closed first": (b"]" * 300 + b"[" * 300, False),
    "never closed": (b"[" * 100_000, True),
    "200": (b"[" * 200 + b"]" * 200, False),
    "201": (b"[" * 201 + b"]" * 201, True),
    "201 by turns": (b'{"a":[' * 100 + b"[]" + b"]}" * 100, True),
    "in a text only": (b'"' + b"[" * 300, False),
}


@pytest.mark.parametrize(("text", "deep"), TEXTS.values(), ids=TEXTS.keys())
def test_nesting_counts_brackets_outside_texts(text: bytes, deep: bool) -> None:
    """Only brackets outside of texts nest; a text that is no JSON gets an answer too."""
    assert values.too_deep(text) is deep
