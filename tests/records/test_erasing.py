"""Erasing: what each line becomes, held to a dumb twin; what stays readable, sealed and valid."""

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest
import referencing
from hypothesis import given
from hypothesis import strategies as st

from ledger.records import codec, erasing, kinds
from tests.records import oracle
from tests.records.examples import AT, HASH, NEW

A, B, C = (f"0199c000-0000-7000-8000-00000000000{n}" for n in "abc")
CANARY = "canary-7Q"
SHA = "c" * 64
LAST = "0199c000-0000-7000-8000-0000000000ff"


def erased(data: bytes, turn: str) -> bytes:
    """A log after an erasure."""
    out = bytearray(data)
    for change in changes(data, turn):
        out[change.offset : change.offset + change.length] = change.tombstone
    return bytes(out)


def changes(data: bytes, turn: str) -> list[erasing.Change]:
    """What an erasure changes in a log."""
    return list(erasing.Eraser(turn).changes(lines_of(data)))


def lines_of(data: bytes) -> list[tuple[int, bytes]]:
    """The lines of a log with their offsets."""
    lines, start = [], 0
    for line in data.split(b"\n")[:-1]:
        lines.append((start, line))
        start += len(line) + 1
    return lines


# -- the dumb twin ---------------------------------------------------------------------------------


def twin(line: bytes, turn: str) -> bytes:
    """A line after an erasure, by the contract's words."""
    record = oracle.readable(line)
    if record is None or record["kind"] in ("head", "stop"):
        return line
    named = record["kind"] == "entry" and turn in json.dumps(record.get("data"))
    if record.get("turn") != turn and not named:
        return line
    kind = record["kind"] if record["kind"] in ("turn", "ended") else "erased"
    kept: dict[str, Any] = {"functai_conversation": 1, "kind": kind}
    more = {"turn": ["turn", "parent", "program", "reads", "inputs"]}
    more["ended"] = ["turn", "saw", "attempt", "state"]
    for key in ["at", *more.get(kind, [])]:
        if key in record:
            kept[key] = {"inputs": {}, "state": "abandoned"}.get(key, record[key])
    seal = oracle.find_seal(line)
    if seal is None:
        kept["seq"] = record["seq"]
    removed = {k: v for k, v in record.items() if k not in ("ledger", "erased")}
    if seal is not None:
        removed.pop("seq")
    if kept == removed:
        return line
    if seal is None:
        for more_keys in ({"erased": True}, {}):
            last = {"seq": kept.pop("seq")}
            text = dump({**kept, **more_keys, **last})
            kept.update(last)
            if len(text) <= len(line):
                return text.ljust(len(line))
        return line  # A failed end with nothing else: `abandoned` would not fit.
    end = f',"erased":true,"seq":{seal["seq"]},"ledger":["{seal["i"]}/{seal["n"]}",null,'
    text = dump(kept)[:-1] + end.encode() + b'"' + seal["chain"].encode() + b'"]}'
    assert len(text) <= len(line)
    return text.ljust(len(line))


def dump(record: dict[str, Any]) -> bytes:
    """A record as compact JSON."""
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


# -- logs by chance --------------------------------------------------------------------------------

CONTENT: st.SearchStrategy[Any] = st.one_of(
    st.just(CANARY),
    st.just({"deep": [CANARY, 1.5, None]}),
    st.just({"$attachment": {"sha256": SHA, "media_type": "text/plain", "size": 3}}),
    st.text(max_size=5).map(lambda text: text + CANARY),
)
SAW: st.SearchStrategy[Any] = st.lists(
    st.sampled_from([{"call": B}, {"saw_of": C}, {"call": C, "without": ["x"]}])
)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A record of some turn, or of none; the content of those of A holds the canary."""
    turn = draw(st.sampled_from([A, A, B]))
    kind = draw(st.sampled_from([*NEW, "novel", "bare turn", "bare end"]))
    said = draw(CONTENT) if turn == A else "fine"
    if kind == "program":
        return NEW["program"]
    if kind == "bare turn":
        return {**kinds.new("turn", AT, turn=turn, parent=B, program=HASH), "inputs": {}}
    if kind == "bare end":
        state = draw(st.sampled_from(["abandoned", "failed"]))
        return kinds.new("ended", AT, turn=turn, state=state)
    keys: dict[str, Any]
    if kind == "turn":
        parent = draw(st.sampled_from([None, B, C]))
        keys = {"inputs": {"m": said}, "reads": [B, C], "request_id": str(said)}
        return kinds.new("turn", AT, turn=turn, parent=parent, program=HASH, **keys)
    if kind == "ended":
        state = draw(st.sampled_from(["done", "failed", "stopped", "abandoned"]))
        keys = {"outputs": {"m": said}, "saw": draw(SAW), "attempt": 2, "partial": str(said)}
        return kinds.new("ended", AT, turn=turn, state=state, **keys)
    if kind == "entry":
        data = {"turns": [turn], "text": said}
        return kinds.new("entry", AT, plugin="p", entry=str(said), data=data)
    if kind in ("head", "stop"):
        return kinds.new(kind, AT, turn=turn)
    return {**NEW.get(kind, kinds.new(kind, AT)), "turn": turn, "extra": said}


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """A log of sealed batches and of other writers' lines, blank ones among them."""
    log = oracle.Log("c")
    salt = 0
    for _ in range(draw(st.integers(1, 5))):
        some = draw(st.lists(records(), min_size=1, max_size=3))
        if draw(st.booleans()):
            salts = [(salt + n).to_bytes(16, "big") for n in range(1, len(some) + 1)]
            salt += len(some)
            log.ours([codec.body(record) for record in some], salts)
        else:
            for record in some:
                line = dump({**record, "seq": log.count + 1})
                log.others(line)
            if draw(st.booleans()):
                log.others(b" ")
    return log.data


@given(logs())
def test_it_does_what_the_twin_does(data):
    """Every line becomes, byte for byte, what the contract's words say."""
    expected = b"".join(twin(line, A) + b"\n" for _, line in lines_of(data))

    assert erased(data, A) == expected


@given(logs())
def test_nothing_is_left_of_what_it_said(data):
    """No line but `head` and `stop` names the turn with content; the canary is nowhere."""
    assert CANARY.encode() not in erased(data, A)


@given(logs())
def test_lines_keep_their_places(data):
    """Offsets, lengths and line feeds stay, and each line is still a record with its `seq`."""
    after = erased(data, A)

    assert [(at, len(line)) for at, line in lines_of(after)] == [
        (at, len(line)) for at, line in lines_of(data)
    ]
    for (_, before), (_, now) in zip(lines_of(data), lines_of(after), strict=True):
        was, is_now = oracle.readable(before), oracle.readable(now)
        assert (was is None) == (is_now is None)
        if was is not None and is_now is not None:
            assert was["seq"] == is_now["seq"]
            for key in ("parent", "saw", "reads", "attempt", "at"):
                assert is_now.get(key, was.get(key)) == was.get(key)
            if was["kind"] in ("turn", "ended"):
                assert (was["turn"], was.get("parent")) == (is_now["turn"], is_now.get("parent"))


@given(logs())
def test_erasing_again_changes_nothing(data):
    """A second erasure finds nothing to remove."""
    once = erased(data, A)

    assert changes(once, A) == []


@given(logs())
def test_the_chain_stays_readable(data):
    """No line becomes suspect; seals that cover another writer's tombstone are unprovable, no others."""
    after = erased(data, A)
    judged = oracle.judge(after)
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(after)
    found = scanner.settled(at_end=True)

    assert [(line.start, line.end, line.seq, line.verdict) for line in found] == [
        line.key() for line in judged
    ]
    assert {line.verdict for line in judged} <= {"sealed", "unsealed", "erased", "unprovable"}
    log = oracle.Log("c")
    log.data, log.count = after, len(judged)
    sealed = [line for line in judged if line.seal is not None]
    log.chain = sealed[-1].seal["chain"] if sealed and sealed[-1].seal else log.chain
    log.sealed_to = sealed[-1].start + len(sealed[-1].line) + 1 if sealed else 0
    log.ours([codec.body(NEW["stop"])], [bytes(16)])
    assert oracle.judge(log.data)[-1].verdict == "sealed"


@given(logs())
def test_tombstones_are_valid_for_other_readers(data):
    """Every tombstone is valid by the schema that functai ships."""
    validator = schema()
    for change in changes(data, A):
        validator.validate(json.loads(change.tombstone))


def schema() -> Any:
    """The validator of functai's schema for records."""
    folder = resources.files("functai") / "schema"
    found = {}
    for name in ("conversation", "call", "interface"):
        found[name] = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
    registry: Any = referencing.Registry().with_resources(
        (document["$id"], referencing.Resource.from_contents(document))
        for document in found.values()
    )
    return jsonschema.Draft202012Validator(found["conversation"], registry=registry)


# -- rule by rule ----------------------------------------------------------------------------------


def one_of_ours(record: dict[str, Any]) -> bytes:
    """A record as the only line of a log."""
    log = oracle.Log("c")
    log.ours([codec.body(record)], [bytes(range(16))])
    return log.data


@pytest.mark.parametrize("kind", sorted(set(NEW) - {"program", "head", "stop"}))
def test_each_kind_as_the_table_says(kind):
    """A sealed tombstone of each kind keeps the keys of the table, the place and the chain."""
    turn = NEW[kind]["turn"]
    data = one_of_ours(NEW[kind])
    (change,) = changes(data, turn)
    record = json.loads(change.tombstone)
    seal = oracle.find_seal(data[:-1])

    expected: dict[str, Any] = {"functai_conversation": 1, "kind": "erased", "at": AT}
    if kind == "turn":
        keys = {key: NEW["turn"][key] for key in ("turn", "parent", "program", "reads")}
        expected = {**expected, **keys, "kind": "turn", "inputs": {}}
    if kind == "ended":
        keys = {key: NEW["ended"][key] for key in ("turn", "saw", "attempt")}
        expected = {**expected, **keys, "kind": "ended", "state": "abandoned"}
    place: dict[str, Any] = {"erased": True, "seq": 1, "ledger": ["1/1", None, seal["chain"]]}
    assert record == {**expected, **place}
    assert list(record)[-3:] == ["erased", "seq", "ledger"]
    assert (change.kind, change.seq, change.sealed) == (kind, 1, True)


@pytest.mark.parametrize("kind", ["head", "stop"])
def test_head_and_stop_stay(kind):
    """A `head` or `stop` of the turn stays, and is named."""
    eraser = erasing.Eraser(NEW[kind]["turn"])

    assert list(eraser.changes(lines_of(one_of_ours(NEW[kind])))) == []
    assert eraser.stay == [1]


def test_an_end_for_which_there_is_no_room_keeps_its_state():
    """Another writer's end without content stays as it is where `abandoned` does not fit."""
    line = dump(kinds.new("ended", AT, turn=A, state="failed") | {"seq": 1})
    longer = dump(kinds.new("ended", AT, turn=A, state="done") | {"outputs": {}, "seq": 1})

    assert changes(line + b"\n", A) == []
    assert json.loads(changes(longer + b"\n", A)[0].tombstone)["state"] == "abandoned"


def test_content_goes_where_nothing_else_fits():
    """Where no tombstone fits, kind and state stay and the content goes: `inputs` becomes {}."""
    line = b'{"functai_conversation":1,"kind":"ended","turn":"t","state":"done","outputs":{"a":1}}'
    (change,) = changes(line + b"\n", "t")
    short = b'{"functai_conversation":1,"kind":"x","turn":"t","y":3}'
    (other,) = changes(short + b"\n", "t")
    shortest = b'{"functai_conversation":1,"kind":"ended","turn":"t","state":"done","e":1}'
    (last,) = changes(shortest + b"\n", "t")

    assert json.loads(change.tombstone)["state"] == "abandoned"
    assert json.loads(other.tombstone) == {"functai_conversation": 1, "kind": "erased"}
    assert json.loads(last.tombstone)["state"] in ("abandoned", "done")
    assert all(change.tombstone.endswith(b" ") for change in (change, other, last))


def test_what_hides_in_kept_keys_goes():
    """A kept key whose value is not of its form goes, also a key that stands twice."""
    odd: dict[str, Any] = {"parent": {"x": CANARY}, "program": [CANARY], "reads": [{"x": CANARY}]}
    odd |= {"at": CANARY, "inputs": {}, "seq": 1}
    hidden = dump({"functai_conversation": 1, "kind": "turn", "turn": A, **odd})
    twice = dump(kinds.new("turn", AT, turn=A, parent=None, program=HASH))[:-1]
    twice += b',"inputs":{"m":"canary-7Q"},"inputs":{},"seq":1}'
    entry = {"call": B, "note": CANARY}
    saw = dump(kinds.new("ended", AT, turn=A, state="done", saw=[entry], outputs={}) | {"seq": 1})
    data = b"".join(line + b"\n" for line in (hidden, twice, saw))

    assert CANARY.encode() not in erased(data, A)
    assert changes(erased(data, A), A) == []


def test_an_escaped_id_is_found():
    """A line whose writer spelled the id with escapes is found."""
    line = dump(kinds.new("ended", AT, turn=A, state="done", outputs={"m": CANARY}))
    line = line.replace(A.encode(), b"\\u0030" + A[1:].encode())

    assert CANARY.encode() not in erased(line + b"\n", A)


def test_entries_about_the_turn_go_and_others_stay():
    """An entry goes when its data name the turn, in a list, as a key, or inside a text."""
    about = [{"turns": [B, A]}, {A: 1}, f"of {A} and others", [[{"x": A}]]]
    others = [{"turns": [B]}, "nothing", None, A[:-1]]
    data = b""
    for value in about + others:
        data += one_of_ours({**NEW["entry"], "turn": B, "data": value})

    assert [change.seq for change in changes(data, A)] == [1, 2, 3, 4]


def test_the_import_that_brought_the_turn_goes():
    """An import's entry with the raw source in it goes with a turn that came by it, no other."""
    turn = {**NEW["turn"], "turn": A, "source": {"format": "f", "conversation": "s", "ids": []}}
    raw = {"$attachment": {"sha256": SHA, "media_type": "application/json", "size": 2}}
    data = {"format": "f", "conversation": "s", "raw": raw}
    rest = [
        kinds.new("entry", AT, plugin="ledger", entry="import", data=data),
        kinds.new("entry", AT, plugin="ledger", entry="import", data={**data, "raw": None}),
        kinds.new("entry", AT, plugin="ledger", entry="import", data={**data, "format": "g"}),
        kinds.new("entry", AT, plugin="other", entry="import", data=data),
    ]
    log = b"".join(map(one_of_ours, [*rest, turn, *rest]))

    found = changes(log, A)
    assert [change.seq for change in found] == [5, 6]
    assert found[1].attachments == (SHA,)
    assert changes(log, B) == []


def test_what_cannot_be_read_is_named():
    """A line that is no record stays, and is named when the turn's id stands in it."""
    eraser = erasing.Eraser(A)
    data = b'{"kind":\n{"turn":"%b"\n\n' % A.encode()

    assert list(eraser.changes(lines_of(data))) == []
    assert eraser.unreadable == [2]


def test_a_newer_record_is_left_alone():
    """A record of a newer format means what this version does not know."""
    line = dump({"functai_conversation": 2, "kind": "turn", "turn": A, "inputs": {"m": "x"}})

    assert changes(line + b"\n", A) == []


# -- found again -----------------------------------------------------------------------------------


@given(logs(), st.data())
def test_a_line_half_overwritten_is_its_place(data, draw):
    """Before, after, torn at any byte, or with a block overwritten, a line is its tombstone's place."""
    found = changes(data, A)
    for change in found:
        line = data[change.offset : change.offset + change.length]
        cut = draw.draw(st.integers(0, len(line)))
        block = draw.draw(st.integers(0, len(line) // 16)) * 16
        torn = change.tombstone[:cut] + line[cut:]
        holed = line[:block] + change.tombstone[block : block + 16]
        holed += line[len(holed) :]
        for now in (line, change.tombstone, torn, holed):
            assert erasing.is_place(now, change.text.encode(), A)


def test_another_record_is_no_place():
    """A record of another turn, sealed or not, is not the place of a tombstone."""
    ours = one_of_ours({**NEW["turn"], "turn": A})
    other = one_of_ours({**NEW["turn"], "turn": B})[:-1]
    foreign = dump({**NEW["turn"], "turn": B, "seq": 1})
    (sealed,) = changes(ours, A)
    (unsealed,) = changes(dump({**NEW["turn"], "turn": A, "seq": 1}) + b"\n", A)

    for text in (sealed.text.encode(), unsealed.text.encode()):
        assert not erasing.is_place(other, text, A)
        assert not erasing.is_place(foreign, text, A)


def test_torn_pieces():
    """A torn piece goes unless it names turns and this one is not among them."""
    assert erasing.piece_concerns(b'{"functai_conversation":1,"kind":"tu', A)
    assert erasing.piece_concerns(b'{"turn":"%b","inputs' % A.encode(), A)
    assert not erasing.piece_concerns(b'{"turn":"%b","inputs' % B.encode(), A)
    assert erasing.piece_concerns(b'{"turn":"%b","parent":"%b"' % (B.encode(), A.encode()), A)
