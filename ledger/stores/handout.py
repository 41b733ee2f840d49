"""Lines handed out as records: plain dicts, or Structs with their payloads undecoded.

A line that cannot be handed out keeps its place as `unreadable`. JSON decoders give up when their
caller stands deep in its own stack, with the same error as for a line that is too deep; see `ledger.stack`.
"""

from __future__ import annotations

from array import array
from typing import Any, Protocol

from ledger import stack
from ledger.records import codec, kinds
from ledger.records.undecoded import Lines, Part
from ledger.stores.base import Incarnation, Records, Scanned

shallow, with_room = stack.shallow, stack.with_room
"""What a store does its work with."""
_RUN = 128
"""How many good lines are decoded at once; if that fails, this many are decoded one by one."""


class Settled(Protocol):
    """Lines with their verdicts, and their bytes."""

    @property
    def lines(self) -> list[codec.Line]: ...

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
        if line.verdict in codec.HANDED_OUT:
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
        if {line.verdict for line in run} <= codec.HANDED_OUT:
            together = codec.decode_structs(
                data[run[0].start - base : run[-1].end - base], run[0].seq, len(run)
            )
        records.extend(
            together if together is not None else (_struct(line, data, base) for line in run)
        )
    return records


def undecoded(piece: Settled, after: int) -> list[Part]:
    """Return the records of lines beyond a place as the lines they are, where all are as most are; else as Structs."""
    lines = _beyond(piece.lines, after)
    if not lines:
        return []
    base, data = piece.base, piece.data
    starts = [
        line.start - base for line in lines if line.verdict == "sealed" and line.written == line.seq
    ]
    ends = [line.end + 1 - base for line in lines]
    whole = len(starts) == len(lines) and starts[1:] == ends[:-1] and ends[-1] <= len(data)
    if not whole:  # Others' lines, blank ones, one without its line feed.
        return [structs(piece, after)]
    start = starts[0]
    if ends[-1] - start < len(data):  # What is not handed out is not kept.
        data = data[start : ends[-1]]
    bounds = array("Q", [bound - start for bound in (*starts, ends[-1])])
    return [Lines(data, bounds, lines[0].seq)]


def scanned(parts: Records[Part]) -> Scanned:
    """Return what a scan gives, of what `undecoded` gave."""
    return Scanned(parts, parts.position, shallow)


def _struct(line: codec.Line, data: bytes, base: int) -> kinds.Recorded:
    if line.verdict not in codec.HANDED_OUT:
        return kinds.Unreadable(seq=line.seq)
    return codec.decode_struct(data[line.start - base : line.end - base], line.seq)


def _beyond(lines: list[codec.Line], after: int) -> list[codec.Line]:
    if not lines or lines[0].seq > after:
        return lines
    return lines[after - lines[0].seq + 1 :]


def incarnation(line: bytes) -> Incarnation:
    """Return what tells a conversation, whose record 1 is this line, from one made anew."""
    record = codec.decode_plain(line)
    at = record.get("at") if record is not None else None
    seal = codec.find_seal(line)
    return at if isinstance(at, str) else "", seal.salt if seal is not None else None
