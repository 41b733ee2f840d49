"""Kinds: every record of the format, read from bytes and from dicts, never refused."""

import json
import sys
from importlib.resources import files
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import StoreCorrupt
from ledger.records import codec, kinds
from tests.records.examples import AT, NEW

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
RAW = {
    "program": {"interface", "fields"},
    "turn": {
        *("inputs", "settings", "reads", "made_by", "context", "saw", "messages", "source"),
        *("shown_entries", "approve", "remembers"),
    },
    "lease": set(),
    "ended": {"outputs", "value", "saw", "error", "usage", "messages", "shown_entries"},
    "waiting": {"approvals", "saw"},
    "approval": set(),
    "tool": {"input", "output_value", "error", "usage"},
    "reply": {"response", "error", "usage"},
    "call": {"program", "lmcc", "saw", "tools"},
    "stop": set(),
    "head": set(),
    "entry": {"data"},
}
REQUIRED = {
    "program": ["version"],
    "ended": ["turn", "state"],
    "entry": ["plugin", "entry"],
    **{kind: ["turn"] for kind in RAW if kind not in ("program", "ended", "entry")},
}


def line_of(record: dict[str, Any], seq: int = 7) -> bytes:
    """A record's line as another writer has it."""
    return json.dumps({**record, "seq": seq}).encode()


def fields(record: Any) -> dict[str, Any]:
    """The fields of a Struct, payloads read."""
    shown = {"": type(record)}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        shown[name] = kinds.payload(value) if isinstance(value, msgspec.Raw) else value
    return shown


# -- what we write ---------------------------------------------------------------------------------


def validator() -> Any:
    """The validator of the public schema, with the schemas that it refers to."""
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    folder = files(pytest.importorskip("functai")).joinpath("schema")
    schemas = [json.loads(f.read_text()) for f in folder.iterdir() if f.name.endswith(".json")]
    registry = referencing.Registry().with_resources(
        (schema["$id"], referencing.Resource.from_contents(schema)) for schema in schemas
    )
    main = next(s for s in schemas if s["$id"].endswith("/conversation.schema.json"))
    return jsonschema.Draft202012Validator(main, registry=registry)


@pytest.mark.parametrize("kind", NEW)
def test_new_record_fits_the_public_schema(kind: str) -> None:
    """One record of each kind that we write, our own keys included, is one of the public format."""
    line = codec.body(NEW[kind])
    covered = codec.Scanner(codec.first_chain("c")).covered
    lines, _ = codec.seal([line], 0, covered, [b"a" * 16])

    validator().validate(json.loads(lines))


def test_schema_refuses_what_is_wrong() -> None:
    """The validator at hand does look into its references."""
    wrong = {**NEW["turn"], "turn": "x"}

    assert not validator().is_valid(wrong)


def test_examples_cover_every_kind() -> None:
    """There is an example of each kind, and no kind beside."""
    assert set(NEW) == set(kinds._BY_KIND) == set(RAW)


def test_new_leaves_out_none() -> None:
    """A key that is None is not written, so that optional keys are absent, not null."""
    assert kinds.new("stop", AT, turn="t", x=None) == {
        "functai_conversation": 1,
        "kind": "stop",
        "at": AT,
        "turn": "t",
    }


@pytest.mark.parametrize(("kind", "name"), [("turn", "parent"), ("entry", "data")])
def test_new_keeps_a_null_that_the_format_requires(kind: str, name: str) -> None:
    """A root turn says that it has no parent; an entry may hold null."""
    assert kinds.new(kind, AT, **{name: None})[name] is None


# -- what we read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEW)
def test_record_reads_with_every_field(kind: str) -> None:
    """Each field of the Struct holds what the record holds; its payloads are left undecoded."""
    record = codec.decode_struct(line_of(NEW[kind]), 7)

    assert type(record).__name__.lower() == kind
    assert isinstance(record, kinds.KnownKind)
    assert record.seq == 7
    for name in record.__struct_fields__:
        value = getattr(record, name)
        assert isinstance(value, msgspec.Raw) == (name in RAW[kind])
        if name in NEW[kind]:
            assert kinds.payload(value) == NEW[kind][name]


@pytest.mark.parametrize("kind", NEW)
def test_dict_reads_as_its_line(kind: str) -> None:
    """A record from another store's dict equals the one from its line, field by field."""
    from_dict = kinds.of({**NEW[kind], "seq": 7})

    assert fields(from_dict) == fields(codec.decode_struct(line_of(NEW[kind]), 7))


@pytest.mark.parametrize("kind", NEW)
def test_record_with_required_keys_only_reads(kind: str) -> None:
    """What a record may lack reads as absent."""
    least = {
        k: v for k, v in NEW[kind].items() if k in ["functai_conversation", "kind", *REQUIRED[kind]]
    }
    record = codec.decode_struct(line_of(least), 7)

    assert type(record) is kinds._BY_KIND[kind]
    assert all(not kinds.has(getattr(record, name)) for name in RAW[kind])
    assert all(kinds.payload(getattr(record, name)) is None for name in RAW[kind])


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in REQUIRED for name in REQUIRED[kind]]
)
@pytest.mark.parametrize("value", ["absent", None, 5, [], True], ids=str)
def test_record_without_what_its_kind_needs_is_other(kind: str, name: str, value: Any) -> None:
    """A record whose required key is absent or of a wrong type keeps its place and says nothing."""
    record = {**NEW[kind], name: value}
    if value == "absent":
        del record[name]

    for read in (codec.decode_struct(line_of(record), 7), kinds.of({**record, "seq": 7})):
        assert read == kinds.Other(kind=kind, seq=7, at=AT)


@given(st.sampled_from(sorted(NEW)), st.data(), JSON)
def test_wrong_type_loses_that_field_only(kind: str, draws: st.DataObject, value: Any) -> None:
    """Whatever stands in a field, nothing raises, and every other field is as it was."""
    names = [
        n
        for n in kinds._BY_KIND[kind].__struct_fields__
        if n not in ("seq", "functai_conversation")
    ]
    name = draws.draw(st.sampled_from(names))
    record = {**NEW[kind], name: value}

    read = codec.decode_struct(line_of(record), 7)

    assert fields(read) == fields(kinds.of({**record, "seq": 7}))
    if type(read) is kinds.Other:
        assert name in REQUIRED[kind]
        return
    good = fields(codec.decode_struct(line_of(NEW[kind]), 7))
    got = fields(read)
    absent = fields(kinds.of({k: v for k, v in record.items() if k != name}, 7)).get(name)
    assert {**got, name: None} == {**good, name: None}
    assert got[name] == value or got[name] == absent


@given(
    st.dictionaries(
        TEXT | st.sampled_from(["seq", "at", "turn", "kind", "functai_conversation"]), JSON
    )
)
def test_any_object_reads_without_raising(extra: dict[str, Any]) -> None:
    """Any JSON object is a record, another one, or unreadable; bytes and dict agree."""
    for kind in ("turn", "lease", "ended"):
        record = {**NEW[kind], **extra}
        assert fields(codec.decode_struct(line_of(record), 7)) == fields(kinds.of(record, 7))


@pytest.mark.parametrize("kind", NEW)
def test_unknown_keys_are_ignored(kind: str) -> None:
    """Keys of a later writer change nothing."""
    more = {"later": {"a": [1]}, **NEW[kind], "ledger": ["1/1", "x", "y"], "zzz": None}

    assert fields(codec.decode_struct(line_of(more), 7)) == fields(
        codec.decode_struct(line_of(NEW[kind]), 7)
    )


OTHERS: dict[str, dict[str, Any]] = {
    "unknown kind": {**NEW["stop"], "kind": "later"},
    "erased": {**NEW["stop"], "kind": "erased"},
    "format 2": {**NEW["turn"], "functai_conversation": 2},
    "empty kind": {**NEW["stop"], "kind": ""},
    "no time": {"functai_conversation": 1, "kind": "later"},
    "time a number": {**NEW["stop"], "kind": "later", "at": 5},
}


@pytest.mark.parametrize("record", OTHERS.values(), ids=OTHERS.keys())
def test_unknown_record_keeps_its_place(record: dict[str, Any]) -> None:
    """A kind or format that is not known here is another record in its place."""
    at = record.get("at")
    expected = kinds.Other(
        kind=record["kind"],
        seq=7,
        at=at if isinstance(at, str) else "",
        functai_conversation=record["functai_conversation"],
    )

    assert codec.decode_struct(line_of(record), 7) == expected
    assert kinds.of({**record, "seq": 7}) == expected


NO_RECORDS: dict[str, Any] = {
    "no format": {"kind": "stop", "turn": "t"},
    "no kind": {"functai_conversation": 1, "turn": "t"},
    "format true": {**NEW["stop"], "functai_conversation": True},
    "format float": {**NEW["stop"], "functai_conversation": 1.0},
    "format text": {**NEW["stop"], "functai_conversation": "1"},
    "kind number": {**NEW["stop"], "kind": 5},
    "kind null": {**NEW["stop"], "kind": None},
    "unreadable": {"kind": "unreadable", "seq": 7},
    "unreadable in format 1": {**NEW["stop"], "kind": "unreadable"},
    "empty": {},
    "list": [],
    "null": None,
    "number": 5,
    "text": "turn",
}


@pytest.mark.parametrize("value", NO_RECORDS.values(), ids=NO_RECORDS.keys())
def test_what_is_no_record_is_unreadable(value: Any) -> None:
    """An object without format and kind, and what is no object, is unreadable in its place."""
    assert codec.decode_struct(json.dumps(value).encode(), 7) == kinds.Unreadable(seq=7)
    assert codec.decode_plain(json.dumps(value).encode()) is None
    assert kinds.of(value, 7) == kinds.Unreadable(seq=7)


NO_JSON = [
    b"",
    b"{",
    b'{"functai_conversation":1,"kind":"stop","turn":"t"',
    b'{"functai_conversation":1,"kind":"stop","turn":"t"}}',
    b'{"functai_conversation":1,"kind":"stop","turn":"t"} {}',
    b'\xef\xbb\xbf{"functai_conversation":1,"kind":"stop","turn":"t"}',
    b'{"functai_conversation":1,"kind":"stop","turn":"\xff"}',
    b'{"functai_conversation":1,"kind":"stop","turn":"\\ud800"}',
    b'{"functai_conversation":1,"kind":"stop","turn":"t","x":NaN}',
    b'{"functai_conversation":01,"kind":"stop","turn":"t"}',
    b"\0" * 50,
    b"[" * 100_000,
    b"9" * 1_000_000,
]


@pytest.mark.parametrize("line", NO_JSON, ids=lambda line: repr(line[:70]))
def test_line_that_is_no_json_is_unreadable(line: bytes) -> None:
    """A line that does not decode is unreadable in its place and raises nothing."""
    assert codec.decode_struct(line, 7) == kinds.Unreadable(seq=7)
    assert codec.decode_plain(line) is None


def test_number_beyond_floats_makes_a_line_unreadable() -> None:
    """1e400 in another writer's line never reads as infinity."""
    line = b'{"functai_conversation":1,"kind":"stop","turn":"t","seconds":1e400}'

    assert codec.decode_plain(line) is None


def test_plain_record_has_no_seal() -> None:
    """Read as a dict, a record keeps all its keys but `ledger`."""
    record = {**NEW["stop"], "seq": 7}

    assert codec.decode_plain(line_of({**record, "ledger": ["1/1", "a", "b"]})) == record


def test_escaped_surrogate_pair_reads_as_its_character() -> None:
    """Another writer's `\\ud83d\\ude00` is an emoji."""
    line = b'{"functai_conversation":1,"kind":"entry","plugin":"p","entry":"e","data":"\\ud83d\\ude00"}'
    record = codec.decode_struct(line, 1)

    assert isinstance(record, kinds.Entry)
    assert kinds.payload(record.data) == "😀"


HUGE: list[Any] = [
    10**5000,
    -(10**5000),
    10**400,
    2**64,
    float("nan"),
    float("inf"),
    object(),
    b"a",
    (1,),
]


@pytest.mark.parametrize("value", HUGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", ["attempt", "seconds", "state", "turn", "at", "seq"])
def test_dict_of_another_store_never_raises(name: str, value: Any) -> None:
    """A store of other people may hand over any Python value in any field."""
    read = kinds.of({**NEW["ended"], name: value}, 7)

    assert read.seq == 7


@pytest.mark.parametrize("seq", [None, True, "7", -1, 0, 1.0, []], ids=repr)
def test_place_that_is_no_number_reads_as_none(seq: Any) -> None:
    """A dict that names no place has place 0 unless one is given."""
    assert kinds.of({**NEW["stop"], "seq": seq}).seq == 0
    assert kinds.of({**NEW["stop"], "seq": seq}, 7).seq == 7


# -- payloads --------------------------------------------------------------------------------------


@given(JSON)
def test_payload_is_fresh_each_time(value: Any) -> None:
    """A payload from bytes or from a dict is a value of the caller's own."""
    for source in (msgspec.Raw(json.dumps([value]).encode()), [value]):
        first = kinds.payload(source)
        first.append("changed")

        assert kinds.payload(source) == [value]


def test_payload_of_a_dict_is_not_the_stores() -> None:
    """What a view changes inside a payload does not change another store's record."""
    record = {**NEW["turn"], "inputs": {"a": [1]}}
    read = kinds.of(record, 1)
    assert isinstance(read, kinds.Turn)

    kinds.payload(read.inputs)["a"].append(2)

    assert record["inputs"] == {"a": [1]}


def test_null_payload_is_there() -> None:
    """A payload that is null stands in its record; one that is absent does not."""
    null = codec.decode_struct(line_of({**NEW["ended"], "value": None}), 1)
    assert isinstance(null, kinds.Ended)

    assert kinds.has(null.value)
    assert kinds.payload(null.value) is None
    assert not kinds.has(kinds.ABSENT)
    assert kinds.payload(kinds.ABSENT) is None


DAMAGED = {
    "invalid UTF-8": b'{"a":"\xff"}',
    "lone surrogate": b'"\\ud800"',
    "1e400": b"1e400",
    "cut": b'{"a":',
    "nested too deep": b"[" * 100_000 + b"]" * 100_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_payload_is_corrupt(text: bytes) -> None:
    """A payload that does not decode is reported with its place."""
    with pytest.raises(StoreCorrupt) as caught:
        kinds.payload(msgspec.Raw(text), 7, "inputs")

    assert (caught.value.seq, caught.value.where) == (7, "inputs")


def test_damaged_payload_leaves_the_rest_usable() -> None:
    """Invalid UTF-8 inside one payload costs that payload; the other fields read."""
    line = line_of({**NEW["ended"], "value": "@@"}).replace(b"@@", b"\xff\xff")
    record = codec.decode_struct(line, 7)
    assert isinstance(record, kinds.Ended)

    with pytest.raises(StoreCorrupt):
        kinds.payload(record.value, record.seq, "value")
    assert kinds.payload(record.outputs) == NEW["ended"]["outputs"]


# -- many at once ----------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(sorted(NEW)), max_size=6), st.integers(1, 100), st.booleans())
def test_many_at_once_read_as_one_by_one(drawn: list[str], first: int, carriage: bool) -> None:
    """Good lines decoded together equal the same lines decoded each alone."""
    lines = [line_of(NEW[kind], first + i) + b"\r" * carriage for i, kind in enumerate(drawn)]
    together = codec.decode_structs(b"".join(line + b"\n" for line in lines), first, len(lines))

    assert together is not None
    apart = [codec.decode_struct(line, first + i) for i, line in enumerate(lines)]
    assert list(map(fields, together)) == list(map(fields, apart))


ONE, TWO, THREE = (line_of(NEW["stop"], seq) for seq in (1, 2, 3))
BY_ONE: dict[str, tuple[list[bytes], int]] = {
    "two objects on a line": ([ONE + TWO, THREE], 2),
    "two objects on a line, one elsewhere cut": ([ONE + TWO, THREE[:-5]], 3),
    "fewer than said": ([ONE], 2),
    "more than said": ([ONE, TWO], 1),
    "wrong place": ([ONE, THREE], 2),
    "places swapped": ([TWO, ONE], 2),
    "no place": ([json.dumps(NEW["stop"]).encode()], 1),
    "place of a wrong type": ([line_of(NEW["stop"]).replace(b"7", b'"7"')], 1),
    "unknown kind": ([line_of({**NEW["stop"], "kind": "later"}, 1)], 1),
    "format 2": ([line_of({**NEW["stop"], "functai_conversation": 2}, 1)], 1),
    "field of a wrong type": ([line_of({**NEW["stop"], "at": 5}, 1)], 1),
    "no record": ([b"[]"], 1),
    "garbage": ([ONE, b"garbage"], 2),
    "invalid UTF-8": ([ONE.replace(b"stop", b"st\xffp")], 1),
    "blank line of other kinds": ([ONE, b"\x0b"], 1),
    "blank line counted": ([ONE, b""], 2),
    "NULs": ([ONE, b"\0\0"], 1),
}


@pytest.mark.parametrize(("lines", "count"), BY_ONE.values(), ids=BY_ONE.keys())
def test_lines_that_must_be_read_one_by_one(lines: list[bytes], count: int) -> None:
    """Where lines and records may not agree, the answer is none, so that no place shifts."""
    assert codec.decode_structs(b"".join(line + b"\n" for line in lines), 1, count) is None


# -- depth and the caller's stack ------------------------------------------------------------------


def from_depth(levels: int, call: Any) -> Any:
    """What a call gives from so many frames further down."""
    return from_depth(levels - 1, call) if levels else call()


def nested(depth: int) -> bytes:
    """A turn's line whose containers go so deep, the record being the first."""
    inner = b"[" * (depth - 1) + b"]" * (depth - 1)
    return b'{"functai_conversation":1,"kind":"turn","turn":"t","inputs":%b,"seq":7}' % inner


@pytest.mark.parametrize("depth", [201, 300, 990, 2000, 100_000])
def test_line_over_the_depth_limit_is_unreadable_from_any_stack(depth: int) -> None:
    """A line nested too deep is unreadable, however much of the stack is left; it never raises."""
    line = nested(depth)

    for levels in (0, 300, 600, 800):
        assert from_depth(levels, lambda: codec.decode_struct(line, 7)) == kinds.Unreadable(seq=7)
        assert from_depth(levels, lambda: codec.decode_plain(line)) is None


@pytest.mark.parametrize("depth", [150, 200])
def test_line_within_the_depth_limit_reads_or_tells_the_stack(depth: int) -> None:
    """A line within the limit reads the same from every stack, or RecursionError says: try afresh."""
    line = nested(depth)
    expected = fields(codec.decode_struct(line, 7)), codec.decode_plain(line)
    assert expected[1] is not None

    for levels in range(500, sys.getrecursionlimit(), 7):
        try:
            got = from_depth(
                levels, lambda: (codec.decode_struct(line, 7), codec.decode_plain(line))
            )
        except RecursionError:
            continue
        assert (fields(got[0]), got[1]) == expected


def test_good_payload_is_never_corrupt_from_a_deep_stack() -> None:
    """A payload within the limit reads, or RecursionError is raised; store-corrupt would be a lie."""
    record = codec.decode_struct(nested(200), 7)
    assert isinstance(record, kinds.Turn)

    for levels in range(500, sys.getrecursionlimit(), 7):
        try:
            got = from_depth(levels, lambda: kinds.payload(record.inputs))
        except RecursionError:
            continue
        assert got == kinds.payload(record.inputs)


def test_many_at_once_from_a_deep_stack_are_read_one_by_one() -> None:
    """Decoding together gives up on a deep stack; it never loses a record."""
    for levels in range(500, sys.getrecursionlimit(), 7):
        try:
            got = from_depth(levels, lambda: codec.decode_structs(nested(200) + b"\n", 7, 1))
        except RecursionError:
            continue
        assert got is None or got[0].seq == 7
