"""The kinds of records, as written down, with their payloads left undecoded until asked for.

One Struct per kind of the contract. `Recorded` is what a log holds: it has a place (`seq`). What is
about to be appended is a plain dict made by `new`, without a place. A kind, format or shape that is
not known here is `Other`: it keeps its place and says nothing. A line that cannot be handed out
(damaged, void) is `Unreadable`.

Reading never refuses: a field of the wrong type reads as absent, and a record that lacks what its
kind needs reads as `Other`. Payloads are `msgspec.Raw` when they come from bytes, and plain values
when they come from another store's dicts; `payload` gives either as a fresh value.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from ledger.errors import StoreCorrupt
from ledger.records import values

FORMAT = 1
Payload = msgspec.Raw
"""A value kept undecoded; read it with `payload`."""

ABSENT = msgspec.Raw()

Outcome = Literal["done", "failed", "stopped", "abandoned"]
"""How a turn ended."""


class _Common(msgspec.Struct, tag_field="kind", kw_only=True, gc=False):
    functai_conversation: Literal[1]
    at: str = ""
    seq: int = 0


class Program(_Common, tag="program"):
    """A version of a program: what a reader needs to show its turns."""

    version: str
    name: str = ""
    program_kind: str = ""
    module: str | None = None
    signature: str | None = None
    interface: Payload = ABSENT
    fields: Payload = ABSENT
    answer: str = "result"


class Turn(_Common, tag="turn"):
    """A turn is sent; recorded before its call."""

    turn: str
    parent: str | None = None
    program: str = ""
    inputs: Payload = ABSENT
    request_id: str | None = None
    settings: Payload = ABSENT
    reads: Payload = ABSENT
    made_by: Payload = ABSENT
    context: Payload = ABSENT
    saw: Payload = ABSENT
    saw_all: bool = False
    shown_entries: Payload = ABSENT
    messages: Payload = ABSENT
    source: Payload = ABSENT
    approve: Payload = ABSENT
    remembers: Payload = ABSENT
    redacted: bool = False
    erased: bool = False


class Lease(_Common, tag="lease"):
    """A process holds a running turn until a time."""

    turn: str
    holder: str = ""
    until: str = ""
    attempt: int = 1
    boot: str | None = None
    program: str | None = None


class Ended(_Common, tag="ended"):
    """A turn's call ended; the first one of a turn counts."""

    turn: str
    state: Outcome
    outputs: Payload = ABSENT
    value: Payload = ABSENT
    saw: Payload = ABSENT
    error: Payload = ABSENT
    model: str | None = None
    usage: Payload = ABSENT
    seconds: float | None = None
    attempt: int = 1
    messages: Payload = ABSENT
    partial: str | None = None
    shown_entries: Payload = ABSENT
    erased: bool = False


class Waiting(_Common, tag="waiting"):
    """A turn waits for a person's answers."""

    turn: str
    approvals: Payload = ABSENT
    saw: Payload = ABSENT
    attempt: int = 1


class Approval(_Common, tag="approval"):
    """A person's answer to one question of a waiting turn."""

    turn: str
    site: str | None = None
    invocation: int = 0
    plugin: str | None = None
    path: str | None = None
    verdict: str = ""
    by: str | None = None
    reason: str | None = None
    asked: str | None = None


class Tool(_Common, tag="tool"):
    """A tool call of a turn: started, done, given by a person, or to be run again."""

    turn: str
    site: str | None = None
    invocation: int = 0
    id: str | None = None
    name: str = ""
    state: str = ""
    input: Payload = ABSENT
    effects: str | None = None
    output: str | None = None
    output_value: Payload = ABSENT
    scope: str | None = None
    error: Payload = ABSENT
    model: str | None = None
    usage: Payload = ABSENT
    attempt: int = 1


class Reply(_Common, tag="reply"):
    """A model's reply, kept so that a resumed turn pays for none twice."""

    turn: str
    key: str = ""
    response: Payload = ABSENT
    error: Payload = ABSENT
    site: str | None = None
    scope: str | None = None
    model: str | None = None
    usage: Payload = ABSENT
    attempt: int = 1


class Call(_Common, tag="call"):
    """A remembered helper's call inside a turn."""

    turn: str
    call: str = ""
    site: str | None = None
    program: Payload = ABSENT
    lmcc: Payload = ABSENT
    saw: Payload = ABSENT
    tools: Payload = ABSENT
    attempt: int = 1


class Stop(_Common, tag="stop"):
    """Somebody asks a running turn to stop."""

    turn: str


class Head(_Common, tag="head"):
    """The head is moved, for everyone."""

    turn: str


class Entry(_Common, tag="entry"):
    """Something kept beside the turns: a title, a rating, a summary."""

    plugin: str
    entry: str
    data: Payload = ABSENT
    turn: str | None = None


class Other(msgspec.Struct, kw_only=True, gc=False):
    """A record of a kind, format or shape that is not known here: its place counts, no more."""

    kind: str
    seq: int = 0
    at: str = ""
    functai_conversation: int = 1


class Unreadable(msgspec.Struct, kw_only=True, gc=False):
    """The place of a line that cannot be handed out: damaged, suspect, void, or no record."""

    seq: int = 0


KnownKind = (
    Program | Turn | Lease | Ended | Waiting | Approval | Tool | Reply | Call | Stop | Head | Entry
)
Recorded = KnownKind | Other | Unreadable
"""A record in a log, with its place."""

_decoder = msgspec.json.Decoder()

_KEPT_NULL = frozenset({"parent", "data"})
"""Keys that the format requires and whose value may be null: a turn's parent, an entry's data."""

NewRecord = dict[str, Any]
"""A record about to be appended: no place yet. Made by `new`."""

_BY_KIND: dict[str, type[Any]] = {cls.__struct_config__.tag: cls for cls in KnownKind.__args__}


@cache  # Asked first when a record comes as a dict: to ask it of all kinds is slow, and a folder never needs it.
def _fields(kind: str) -> list[tuple[str, Any, bool]]:
    """Return the keys of a kind, the type of each (None: a payload), and whether it must be there."""
    found = msgspec.structs.fields(_BY_KIND[kind])
    return [(f.name, None if f.type is msgspec.Raw else f.type, f.required) for f in found]


def new(kind: str, at: str, **keys: Any) -> NewRecord:
    """Return a record to append; keys that are None are left out, except those that must be there."""
    record: NewRecord = {"functai_conversation": FORMAT, "kind": kind, "at": at}
    for key, value in keys.items():
        if value is not None or key in _KEPT_NULL:
            record[key] = value
    return record


def is_record(value: object) -> bool:
    """Say whether a decoded line is a record at all: an object with a format number and a kind."""
    return (
        isinstance(value, dict)
        and type(value.get("functai_conversation")) is int
        and type(value.get("kind")) is str
        and value["kind"] != "unreadable"
    )


def of(record: object, seq: int | None = None) -> Recorded:
    """Return the Struct of a record read as a dict. Never raises, whatever a store hands over.

    Args: seq: its place; None: the one it names.
    """
    value = dict(record) if isinstance(record, Mapping) else {}
    place = seq if seq is not None else _whole(value.get("seq"))
    if not is_record(value):
        return Unreadable(seq=place)
    cls = _BY_KIND.get(value["kind"])
    if cls is None or value["functai_conversation"] != FORMAT:
        return _other(value, place)
    known: dict[str, Any] = {"functai_conversation": FORMAT}
    for name, kind, required in _fields(value["kind"]):
        if name not in value:
            continue
        if kind is None:
            known[name] = value[name]
            continue
        try:
            known[name] = msgspec.convert(value[name], kind)
        except (msgspec.ValidationError, ValueError, OverflowError):
            # ValueError, OverflowError: an integer too large to be spelled, or to be a float.
            if required:
                return _other(value, place)
    known["seq"] = place
    try:
        result: Recorded = cls(**known)
    except TypeError:
        return _other(value, place)
    return result


def payload(value: Any, seq: int = 0, where: str = "") -> Any:
    """Return a payload as a fresh value; None when the record has none.

    Raises: store-corrupt: these bytes do not decode; the rest of the record stays usable.
    RecursionError: the bytes are fine, but the caller stands too deep in its own stack.
    """
    if type(value) is not msgspec.Raw:
        return copy.deepcopy(value)
    try:
        return _decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not has(value):
            return None
        if isinstance(error, RecursionError) and not values.too_deep(bytes(value)):
            raise
        raise StoreCorrupt(where=where or "a field", seq=seq, reason=str(error)) from error


def mapping(value: Any, seq: int = 0, where: str = "") -> dict[str, Any]:
    """Return a payload that is an object; an empty one when it is anything else. Raises as `payload`."""
    found = payload(value, seq, where)
    return found if isinstance(found, dict) else {}


def mappings(value: Any, seq: int = 0, where: str = "") -> list[dict[str, Any]]:
    """Return the objects in a payload that is a list; none when it is no list. Raises as `payload`."""
    found = payload(value, seq, where)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def has(value: Any) -> bool:
    """Say whether a payload field stands in its record."""
    return value is not ABSENT and (type(value) is not msgspec.Raw or len(memoryview(value)) > 0)


def _other(value: dict[str, Any], place: int) -> Other:
    at = value.get("at")
    return Other(
        kind=value["kind"],
        seq=place,
        at=at if type(at) is str else "",
        functai_conversation=value["functai_conversation"],
    )


def _whole(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
