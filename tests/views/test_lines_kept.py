"""A history keeps the lines it was folded from, and says what it says of records."""

import gc
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.records import codec, kinds
from ledger.records.undecoded import Lines, Undecoded
from ledger.stores import handout, lines
from ledger.views import History
from tests.records import oracle
from tests.views import build
from tests.views.test_history import snapshot


def written(records: list[build.Record], cuts: set[int], foreign: set[int]) -> bytes:
    """A log of records in batches that end at `cuts`; those in `foreign` were added by another writer."""
    log = oracle.Log("c")
    batch: list[bytes] = []
    for at, record in enumerate(records, 1):
        body = {k: v for k, v in record.items() if v is not build.DAMAGED and k != "seq"}
        text = json.dumps(body, separators=(",", ":")).encode()
        if at in foreign or len(text) < 3:
            log.ours(batch, [bytes(16)] * len(batch))
            log.others(text)
            batch = []
            continue
        batch.append(text)
        if at in cuts:
            log.ours(batch, [bytes(16)] * len(batch))
            batch = []
    log.ours(batch, [bytes(16)] * len(batch))
    return log.data


def pieces(data: bytes) -> list[lines.Piece]:
    """A log as it is read."""
    reader = lines.Reader(lines.BytesSource(data), codec.Scanner(codec.first_chain("c")))
    return [*reader.whole_lines(), reader.finish(in_flight=False)]


def scan(data: bytes, after: int = 0) -> Undecoded:
    """What a folder store's scan gives."""
    parts = [part for piece in pieces(data) for part in handout.undecoded(piece, after)]
    return Undecoded(parts, handout.shallow)


def structs(data: bytes) -> list[kinds.Recorded]:
    """The same, decoded at once."""
    return [record for piece in pieces(data) for record in handout.structs(piece, 0)]


def plain(record: Any) -> Any:
    """A record in a form that compares: its payloads as bytes."""
    if not hasattr(record, "__struct_fields__"):
        return record
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    return type(record), {
        k: bytes(v) if type(v).__name__ == "Raw" else v for k, v in values.items()
    }


@given(build.logs, st.sets(st.integers(1, 25)), st.sets(st.integers(1, 25), max_size=2), st.data())
@settings(max_examples=150)
def test_lines_say_what_records_say(
    records: list[build.Record], cuts: set[int], foreign: set[int], draws: st.DataObject
) -> None:
    """Of any log, also with a byte that was altered: the same records, and the same history."""
    data = written(records, cuts, foreign)
    if data and draws.draw(st.booleans()):
        at = draws.draw(st.integers(0, len(data) - 2))
        data = data[:at] + bytes([data[at] ^ draws.draw(st.integers(1, 255))]) + data[at + 1 :]
        data = data[: data.rfind(b"\n") + 1]
    found, told = scan(data), structs(data)

    assert list(map(plain, found)) == list(map(plain, told))
    assert len(found) == len(told)
    for after in range(len(told) + 1):
        assert list(map(plain, scan(data, after))) == list(map(plain, told[after:]))
    kept, whole = History.of(found), History.of(told)
    assert snapshot(kept) == snapshot(whole)
    for turn in whole.order:
        node, other = kept.node(turn), whole.node(turn)
        assert plain(node.record) == plain(other.record)
        assert plain(node.ended) == plain(other.ended)
        assert (node.seq, node.ended_seq) == (other.seq, other.ended_seq)
        assert (node.outcome, node.erased, node.program, node.done) == (
            (other.ended.state if other.ended else None),
            other.record.erased or (other.ended is not None and other.ended.erased),
            other.record.program,
            other.ended is not None and other.ended.state == "done",
        )
        assert said(node.inputs) == said(lambda other=other: kinds.mapping(other.record.inputs))
        assert said(node.outputs) == said(
            lambda other=other: kinds.mapping(other.ended.outputs) if other.ended else {}
        )
    assert snapshot(kept) == snapshot(whole)


def said(ask: Any) -> Any:
    """What is answered, or that it is refused."""
    try:
        return ask()
    except Exception as error:
        return type(error)


DATA = written(build.line("a", "b", "c"), {2, 3}, set())


def test_good_lines_are_kept_as_they_were_read() -> None:
    """No record of them is made before it is asked for, and none is kept that was."""
    (part,) = handout.undecoded(pieces(DATA)[0], 0)

    assert isinstance(part, Lines)
    assert part.data.obj == DATA
    assert scan(DATA)[3] is not scan(DATA)[3]


def test_a_few_lines_do_not_keep_the_many_before_them() -> None:
    """Of a piece of which little is asked, little is kept."""
    (part,) = handout.undecoded(pieces(DATA)[0], 8)

    assert isinstance(part, Lines)
    assert bytes(part.data) == DATA.split(b"\n")[8] + b"\n"


def test_it_is_a_sequence() -> None:
    """By place, also from the end, and by slice; equal to a list of the same."""
    found = scan(DATA)

    assert [found[at].seq for at in range(-9, 9)] == [*range(1, 10)] * 2
    assert [record.seq for record in found[2:-3:2]] == [3, 5]
    assert [record.seq for record in found] == list(range(1, 10))
    assert len(scan(b"")) == 0
    assert scan(b"") == []
    assert found != [1]
    assert repr(scan(b"")) == "[]"
    with pytest.raises(IndexError):
        found[9]
    with pytest.raises(TypeError):
        hash(found)


def test_records_that_are_folded_elsewhere_are_kept_themselves() -> None:
    """Where places do not agree, a line could not be found again by its place."""
    history = History.of([build.new("stop", turn="x")]).extend(scan(DATA))

    assert history.node("b").record.turn == "b"
    assert history.node("b").seq == 5


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was(enabled: bool) -> None:
    """It waits while many records are folded, and then is on or off as before, also when they cannot be read."""

    class Watched(Undecoded):
        """Says whether the collector was on while it was read, and fails."""

        during: bool

        def runs(self) -> Any:
            """The records, and then an error."""
            yield from super().runs()
            self.during = gc.isenabled()
            raise OSError("gone")

    many = Watched([[kinds.Unreadable(seq=at) for at in range(1, 5001)]], handout.shallow)
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(OSError, match="gone"):
            History.of(many)
        assert (many.during, gc.isenabled()) == (False, enabled)
    finally:
        (gc.enable if was else gc.disable)()
