"""Erasing a turn: which lines of a log say something of it, and what is left of each. Pure; no I/O.

A line is overwritten where it stands, by a tombstone of the same length: what the tree and the seals
need, then spaces. So places, offsets and counts stay, for every reader. The chain value stays too, so
the seals that follow still check; the salt goes, so nobody can guess content and confirm it by hashing.

What is kept, by kind:

    all      functai_conversation, kind, at, turn, seq
    turn     parent, program, reads, inputs {}
    ended    saw, attempt, state "abandoned"
    others   become `erased`, without `turn`

A kept key is kept only if its value has the form that the key is for: what an odd writer hid in it goes.
Lines with nothing to remove stay as they are, and so do `head` and `stop`; hence erasing twice changes
nothing. A line that is no record stays, since nobody can say whose it is: `Eraser.unreadable` names it.

Must stay in step: the table above, `_kept` and the contract; `_IMPORT` and `sources.importing`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ledger.records import codec, ids, kinds, times, values

_STAY = frozenset({"head", "stop"})
_IMPORT = ("ledger", "import")
"""An entry whose `raw` attachment holds a whole source conversation, as it was imported."""
_ESCAPE = b"\\u00"
"""How a writer would have to begin to spell an id in another way than we look for."""
_ATTACHMENT = re.compile(rb'"sha256"[ \t]*:[ \t]*"([0-9a-f]{64})"')
LONGEST_NAME = 512
"""More bytes than the name of an attachment takes in a line."""
_TURN_OF_PIECE = re.compile(rb'"turn"[ \t]*:[ \t]*"')

_encode = msgspec.json.Encoder().encode


class Change(msgspec.Struct, frozen=True):
    """A line that is erased: where it is, and the tombstone that takes its place."""

    offset: int
    length: int
    """Without the line feed."""
    text: str
    """The tombstone without the spaces that follow it, up to `length`."""
    kind: str = ""
    """What kind of record it was."""
    seq: int = 0
    """Its place among the lines that are not blank."""
    sealed: bool = True
    """Whether it is one of ours."""
    attachments: tuple[str, ...] = ()
    """The SHA-256 of what the line named."""

    @property
    def tombstone(self) -> bytes:
        """The bytes that the line becomes."""
        return self.text.encode().ljust(self.length)


def named(changes: Iterable[Change]) -> list[str]:
    """Return the attachments that erased lines named, each once."""
    return list(dict.fromkeys(sha256 for change in changes for sha256 in change.attachments))


class Eraser:
    """Goes through a log from its start and says what each line becomes when a turn is erased.

    Lines that concern a turn are those with its `turn`, and entries whose data name it. An import's
    entry concerns it when the turn came by that import and the entry names an attachment: that is the
    source as it was, with the turn in it.
    """

    def __init__(self, turn: str) -> None:
        self.turn = turn
        self.stay: list[int] = []
        """Places of lines of the turn that stay as they are: there is nothing in them to remove."""
        self.unreadable: list[int] = []
        """Places of lines that are no records, and in which the turn's id stands."""
        self._count = 0
        self._needle = _encode(turn)[1:-1]
        self._sources: set[tuple[str, str]] = set()

    def changes(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[Change]:
        """Yield the changes of the next lines, each given as its offset and its bytes without LF."""
        for offset, line in lines:
            change = self._line(offset, line)
            if change is not None:
                yield change

    def _line(self, offset: int, line: bytes) -> Change | None:
        if codec.is_blank(line):
            return None
        self._count += 1
        if not (self._needle in line or _ESCAPE in line or self._may_be_import(line)):
            return None
        record = codec.decode_plain(line)
        if record is None:
            if self._needle in line:
                self.unreadable.append(self._count)
            return None
        if not self._concerns(record):
            return None
        text = _erased(line, record)
        if text is None:
            if record.get("erased") is True:
                return None
            self.stay.append(self._count)
            return None
        sealed = codec.find_seal(line) is not None
        named = tuple(dict.fromkeys(attachments(line)))
        kind = record["kind"]
        return Change(offset, len(line), text.decode(), kind, self._count, sealed, named)

    def _may_be_import(self, line: bytes) -> bool:
        return bool(self._sources) and b'"import"' in line

    def _concerns(self, record: dict[str, Any]) -> bool:
        if concerns(record, self.turn):
            source = record.get("source")
            if record["kind"] == "turn" and isinstance(source, dict):
                self._sources.add(_source(source))
            if record["kind"] in _STAY:
                self.stay.append(self._count)
                return False
            return True
        if (record.get("plugin"), record.get("entry")) != _IMPORT or record["kind"] != "entry":
            return False
        data = record.get("data")
        return isinstance(data, dict) and bool(data.get("raw")) and _source(data) in self._sources


def _source(named: dict[str, Any]) -> tuple[str, str]:
    return str(named.get("format")), str(named.get("conversation"))


def concerns(record: dict[str, Any], turn: str) -> bool:
    """Say whether a record is of a turn, or is an entry whose data name it."""
    if record["functai_conversation"] != kinds.FORMAT:
        return False
    if record.get("turn") == turn:
        return True
    return record["kind"] == "entry" and _names(record.get("data"), turn)


def _names(value: Any, turn: str) -> bool:
    """Say whether a turn's id stands anywhere in a value; inside a text only if it is a proper id."""
    inside = ids.is_turn(turn)
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if item == turn or (inside and turn in item):
                return True
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


# -- one tombstone ---------------------------------------------------------------------------------


def _erased(line: bytes, record: dict[str, Any]) -> bytes | None:
    """Return what a line becomes, without the spaces; None when there is nothing in it to remove."""
    found = codec.find_seal(line)
    if found is None:
        body, seal = line.strip(b" \t\r"), b""
    else:
        start = line.rindex(b',"seq":', 0, found.quote_at)
        body = line[:start] + b"}"
        seal = b',"seq":%d,"ledger":["%d/%d",null,"%b"]}' % (
            found.seq,
            found.i,
            found.n,
            found.chain,
        )
        record = {key: value for key, value in record.items() if key != "seq"}
    if _is_bare(record, body):
        return None
    for kept in _candidates(record):
        text = codec.escaped(_encode(kept))
        text = text[:-1] + seal if seal else text
        if len(text) <= len(line):
            break
    else:
        return None  # Cannot be: the last one is the line without some of it.
    return None if text == line.rstrip(b" \t\r") else text


def _is_bare(record: dict[str, Any], body: bytes) -> bool:
    """Say whether a line holds what a tombstone keeps, spelled once and shortly, and no more."""
    rest = {key: value for key, value in record.items() if key != "erased"}
    spelled = _encode(record)
    return (
        rest == _kept(record)
        and record.get("erased", True) is True
        and body in (spelled, codec.escaped(spelled))
    )


def _candidates(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what may be left of a record, the best first; the last is never longer than it was."""
    kept = _kept(record)
    last = {"seq": kept.pop("seq")} if "seq" in kept else {}
    yield {**kept, "erased": True, **last}
    yield {**kept, **last}
    yield {
        key: {} if key in ("inputs", "outputs") else value
        for key, value in record.items()
        if key in ("functai_conversation", "kind") or _has_form(key, value)
    }


def _kept(record: dict[str, Any]) -> dict[str, Any]:
    kind = record["kind"]
    named = {key: value for key, value in record.items() if _has_form(key, value)}
    keys = ["at"]
    if kind == "turn":
        keys += ["turn", "parent", "program", "reads", "inputs"]
    elif kind == "ended":
        keys += ["turn", "saw", "attempt", "state"]
    kept = {
        "functai_conversation": record["functai_conversation"],
        "kind": kind if kind in ("turn", "ended") else "erased",
        **{key: named[key] for key in keys if key in named},
    }
    if "inputs" in kept:
        kept["inputs"] = {}
    if "state" in kept:
        kept["state"] = "abandoned"
    if "seq" in named:
        kept["seq"] = named["seq"]
    return kept


def _has_form(key: str, value: Any) -> bool:
    match key:
        case "at":
            return isinstance(value, str) and len(value) <= 40 and bool(times.from_text(value))
        case "turn" | "program" | "state":
            return isinstance(value, str)
        case "parent":
            return value is None or isinstance(value, str)
        case "reads":
            return isinstance(value, list) and all(isinstance(turn, str) for turn in value)
        case "saw":
            return isinstance(value, list) and all(map(_is_saw_entry, value))
        case "inputs" | "outputs":
            return isinstance(value, dict)
        case "attempt" | "seq":
            return type(value) is int
    return False


def _is_saw_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and all(
        (key in ("call", "saw_of") and isinstance(value, str))
        or (key == "steps" and isinstance(value, bool))
        or (key == "without" and isinstance(value, list) and all(isinstance(n, str) for n in value))
        for key, value in entry.items()
    )


# -- found again -----------------------------------------------------------------------------------


def is_place(line: bytes, text: bytes, turn: str) -> bool:
    """Say whether a line may be the one for which a tombstone was made: as it was, overwritten, or half.

    Half overwritten, it may be anything that is not plainly another's: a line with another seal, a
    program, a record of another turn.
    """
    if line == text.ljust(len(line)):
        return True
    planned, found = codec.find_seal(text), codec.find_seal(line)
    record = codec.decode_plain(line)
    if found is not None:
        if planned is None or (found.seq, found.i, found.n) != (planned.seq, planned.i, planned.n):
            return False
        # Half overwritten, the chain may be of both; then the line still says whose it is.
        return found.chain == planned.chain or (record is not None and concerns(record, turn))
    if record is None or record["kind"] == "erased" or concerns(record, turn):
        return True
    other = record.get("turn")
    of_another = ids.is_turn(other) and other != turn and record["kind"] != "entry"
    return planned is None and record["kind"] != "program" and not of_another


def piece_concerns(piece: bytes, turn: str) -> bool:
    """Say whether a torn piece of a log may be of a turn: it names it, or names none at all."""
    return _encode(turn)[1:-1] in piece or _TURN_OF_PIECE.search(piece) is None


def references(line: bytes) -> list[str]:
    """Return the SHA-256 of the attachments that a record refers to, each once, in order.

    `attachments` finds every hash that stands under that name, also where it is that of something else: it is for what
    must not miss one.
    """
    if not _ATTACHMENT.search(line):
        return []
    try:
        found = values.references_in(codec.decode_plain(line))
        return list(dict.fromkeys(one[values.REFERENCE]["sha256"] for one in found))
    except RecursionError:
        return list(dict.fromkeys(attachments(line)))


def attachments(data: bytes | bytearray) -> Iterator[str]:
    """Yield the SHA-256 of every attachment that stands in a part of a log, also more than once.

    Looks at bytes, so damaged and void lines name attachments too. A part may end inside a name: give
    the last `LONGEST_NAME` bytes again with the next.
    """
    for found in _ATTACHMENT.finditer(data):
        yield found[1].decode()
