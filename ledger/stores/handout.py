"""Lines handed out as records: plain dicts, or Structs with their payloads undecoded.

A line that cannot be handed out keeps its place as `unreadable`. JSON decoders give up when their
caller stands deep in its own stack, with the same error as for a line that is too deep; see `ledger.stack`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Protocol

from ledger import stack
from ledger.records import codec, kinds
from ledger.records.undecoded import Lines, Part
from ledger.records.verdicts import HANDED_OUT, Found, Line, Stretch
from ledger.stores.base import Incarnation, Records, Scanned

shallow, with_room = stack.shallow, stack.with_room
"""What a store does its work with."""
_RUN = 128
"""How many good lines are decoded at once; if that fails, this many are decoded one by one."""


class Settled(Protocol):
    """Lines with their verdicts, and their bytes."""

    @property
    def found(self) -> Sequence[Found]: ...

    @property
    def lines(self) -> list[Line]: ...

    @property
    def data(self) -> bytes: ...

    @property
    def base(self) -> int: ...


def plain(piece: Settled, after: int) -> list[dict[str, Any]]:
    """Return the records of lines beyond a place as fresh dicts, without `ledger`."""
    data, base = piece.data, piece.base
    records: list[dict[str, Any]] = []
    for line in _beyond(piece.lines, after):
        record = None
        if line.verdict in HANDED_OUT:
            record = codec.decode_plain(data[line.start - base : line.end - base])
        if record is None:
            record = {"kind": "unreadable"}
        record["seq"] = line.seq
        records.append(record)
    return records


def structs(piece: Settled, after: int) -> list[kinds.Recorded]:
    """Return the records of lines beyond a place as Structs."""
    data, base = piece.data, piece.base
    lines = _beyond(piece.lines, after)
    records: list[kinds.Recorded] = []
    for first in range(0, len(lines), _RUN):
        run = lines[first : first + _RUN]
        together = None
        if {line.verdict for line in run} <= HANDED_OUT:
            together = codec.decode_structs(
                data[run[0].start - base : run[-1].end - base], run[0].seq, len(run)
            )
        records.extend(
            together if together is not None else (_struct(line, data, base) for line in run)
        )
    return records


def undecoded(piece: Settled, after: int) -> list[Part]:
    """Return the records of lines beyond a place as the lines they are, where all are as most are; else as Structs."""
    good = _good(piece, after)
    if not good:
        records = structs(piece, after)
        return [records] if records else []
    data, base = piece.data, piece.base
    start, end = good[0].start - base, good[-1].end + 1 - base
    if end - start < len(data):  # What is not handed out is not kept.
        data, base = data[start:end], base + start
    return [
        Lines(data, array("Q", map((part.base - base).__add__, part.bounds)), part.seq)
        for part in good
    ]


def _good(piece: Settled, after: int) -> list[Stretch]:
    """Return the lines beyond a place as stretches; nothing where there is none, or not all are as most are."""
    stretches = [part for part in piece.found if isinstance(part, Stretch)]
    if len(stretches) == len(piece.found) and (not stretches or stretches[0].seq > after):
        return stretches
    lines = _beyond(piece.lines, after)
    starts = [line.start for line in lines if line.verdict == "sealed" and line.written == line.seq]
    ends = [line.end + 1 for line in lines]
    # Others' lines, blank ones, one without its line feed.
    if not lines or len(starts) < len(lines) or starts[1:] != ends[:-1]:
        return []
    if ends[-1] > piece.base + len(piece.data):
        return []
    return [Stretch(lines[0].seq, 0, [*starts, ends[-1]])]


def scanned(parts: Records[Part]) -> Scanned:
    """Return what a scan gives, of what `undecoded` gave."""
    return Scanned(parts, parts.position, shallow)


def _struct(line: Line, data: bytes, base: int) -> kinds.Recorded:
    if line.verdict not in HANDED_OUT:
        return kinds.Unreadable(seq=line.seq)
    return codec.decode_struct(data[line.start - base : line.end - base], line.seq)


def _beyond(lines: list[Line], after: int) -> list[Line]:
    if not lines or lines[0].seq > after:
        return lines
    return lines[after - lines[0].seq + 1 :]


def incarnation(line: bytes) -> Incarnation:
    """Return what tells a conversation, whose record 1 is this line, from one made anew."""
    record = codec.decode_plain(line)
    at = record.get("at") if record is not None else None
    seal = codec.find_seal(line)
    return at if isinstance(at, str) else "", seal.salt if seal is not None else None
