"""What is appended, decided: history + intent -> the records to append, or a refusal. Pure.

Each command is a function of a history and returns new records; the shell appends them expecting
the history's position, and asks again when the log grew. So every rule is a test without a disk, and
a blocking and an awaiting shell cannot drift apart.

Commands that claim (start, end, abandon, record, merge, move the head) are conditional; what is true of any
log (a stop, an answer, an entry) is appended freely by the shells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from ledger.errors import (
    LeaseLost,
    RequestMismatch,
    SignatureChanged,
    TurnState,
    TurnUnknown,
)
from ledger.records import canonical, kinds, times
from ledger.records.kinds import NewRecord, new
from ledger.views import History, Rule

LEASE_S = 30
"""How long a lease lasts."""
OWN = "ledger"
"""The `plugin` of the entries this package keeps itself."""
TITLE = "title"


class Described(Protocol):
    """A program, as far as records go (`turns.programs.Description`)."""

    @property
    def version(self) -> str:
        """`sha256:` and 64 hex digits."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def fields(self) -> list[dict[str, Any]]:
        """Its inputs and outputs, with direction, purpose and shape."""
        ...

    def keys(self) -> dict[str, Any]:
        """Return the keys of its `program` record."""
        ...


class Outcome(msgspec.Struct, kw_only=True):
    """How a turn's call ended, as its `ended` record says it."""

    state: str
    outputs: dict[str, Any] | None = None
    value: Any = None
    error: dict[str, Any] | None = None
    model: str | None = None
    usage: dict[str, int] = {}
    seconds: float | None = None
    messages: list[dict[str, Any]] | None = None

    def keys(self) -> dict[str, Any]:
        """Return the keys of the record."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Sent(msgspec.Struct, kw_only=True):
    """A turn to be recorded: its place is decided by the caller, its keys here."""

    turn: str
    parent: str | None
    inputs: dict[str, Any]
    request_id: str | None = None
    lm: str | None = None
    reads: list[str] | None = None
    made_by: dict[str, Any] | None = None
    messages: list[dict[str, Any]] | None = None
    source: dict[str, Any] | None = None

    def keys(self) -> dict[str, Any]:
        """Return the keys of the `turn` record."""
        keys = {name: getattr(self, name) for name in self.__struct_fields__ if name != "lm"}
        keys["settings"] = {"lm": self.lm} if self.lm is not None else None
        return keys


# -- asked of a history before anything is decided ----------------------------------------------


def repeated(history: History, request_id: str | None, inputs: Mapping[str, Any]) -> str | None:
    """Return the turn that a request id already has, or None.

    Raises: request-mismatch: it was sent with other inputs.
    """
    turn = history.request(request_id) if request_id is not None else None
    if turn is None or request_id is None:
        return None
    before = kinds.mapping(history.node(turn).record.inputs)
    if canonical.canonical(before) != canonical.canonical(dict(inputs)):
        raise RequestMismatch(turn=turn, request_id=request_id)
    return turn


def check_signature(history: History, program: Described, parent: str | None) -> None:
    """Refuse a program whose fields differ from those of the earlier turns of a branch.

    A field of any shape (`{}`) fits every shape. Turns made without a program known here are shown
    as they are.
    Raises: conversation-signature.
    """
    now = {field["name"]: field for field in program.fields}
    for version in sorted(history.versions(parent)):
        known = history.programs.get(version)
        if version == program.version or known is None:
            continue
        listed = kinds.mappings(known.fields, known.seq)
        was = {str(field.get("name")): field for field in listed}
        different = [
            f"{n} has another shape" for n in was.keys() & now.keys() if not _fits(was[n], now[n])
        ]
        gone = [f"{n} is no longer one of its fields" for n in was.keys() - now.keys()]
        added = [f"earlier turns lack {n}" for n in now.keys() - was.keys()]
        if different or gone or added:
            raise SignatureChanged(
                program=program.name, differences="; ".join(sorted(different + gone + added))
            )


def _fits(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    same = was.get("direction") == now["direction"]
    anything = not was.get("shape") or not now["shape"]
    return same and (anything or was.get("shape") == now["shape"])


# -- commands ------------------------------------------------------------------------------------


def start(
    history: History,
    sent: Sent,
    *,
    program: Described,
    rule: Rule,
    now: datetime,
    holder: str,
    boot: str | None = None,
) -> list[NewRecord]:
    """Start a turn: its program when new, the turn, its first lease.

    Args: boot: the id of the boot of the machine that the holder runs on, if it has one.
    """
    check_signature(history, program, sent.parent)
    saw = history.shown(sent.parent, rule).saw
    at = times.to_text(now)
    return [
        *_program(history, program, at),
        new("turn", at, program=program.version, saw=saw, **sent.keys()),
        _lease(sent.turn, holder=holder, attempt=1, now=now, boot=boot),
    ]


def end(
    history: History,
    turn: str,
    outcome: Outcome,
    *,
    holder: str,
    attempt: int,
    now: datetime,
    boot: str | None = None,
) -> list[NewRecord]:
    """End a running turn, if it is still this holder's; an expired lease is renewed with it.

    Raises: lease-lost: it ended already, or another attempt holds it.
    """
    node = history.node(turn)
    if node.ended is not None:
        raise LeaseLost(turn=turn, reason=f"it already ended {node.ended.state}")
    lease = node.lease
    if lease is None or (lease.holder, lease.attempt) != (holder, attempt):
        raise LeaseLost(turn=turn, reason="another process holds it now")
    at = times.to_text(now)
    until = times.from_text(lease.until)
    expired = until is None or until < now
    again = _lease(turn, holder=holder, attempt=attempt, now=now, boot=boot)
    renewed = [again] if expired else []
    saw = kinds.mappings(node.record.saw)
    return [*renewed, new("ended", at, turn=turn, saw=saw, attempt=attempt, **outcome.keys())]


def abandon(history: History, turn: str, *, now: datetime) -> list[NewRecord]:
    """End an interrupted turn `abandoned`, so that it can be erased; nothing when it has ended.

    Raises: turn-unknown. turn-state: it runs, or waits for a person.
    """
    state = history.state(turn, now=now)
    if state in ("running", "waiting"):
        raise TurnState(turn=turn, state=state, reason="only a turn that ended can be forgotten")
    if state != "interrupted":
        return []
    node = history.node(turn)
    saw = kinds.payload(node.record.saw, node.seq) or []
    attempt = max(node.attempt, 1)
    keys = {"turn": turn, "state": "abandoned", "saw": saw, "attempt": attempt}
    return [new("ended", times.to_text(now), **keys)]


def record(
    history: History,
    sent: Sent,
    outcome: Outcome,
    *,
    program: Described,
    saw: list[dict[str, Any]],
    now: datetime,
) -> list[NewRecord]:
    """Record a turn made elsewhere, or by a merge: the turn and its end, in one append."""
    at = times.to_text(now)
    return [
        *_program(history, program, at),
        new("turn", at, program=program.version, saw=saw, **sent.keys()),
        new("ended", at, turn=sent.turn, saw=saw, attempt=1, **outcome.keys()),
    ]


def move_head(history: History, turn: str, *, now: datetime) -> list[NewRecord]:
    """Make a turn the head, for everyone; nothing when it is the head already."""
    if history.head == turn:
        return []
    return [new("head", times.to_text(now), turn=turn)]


def entry(
    plugin: str, kind: str, data: Any, *, now: datetime, turn: str | None = None
) -> list[NewRecord]:
    """Keep something beside the turns: at a turn (its branches) or for every branch."""
    named: tuple[tuple[str, Any], ...] = (("plugin", plugin), ("kind", kind))
    for name, value in named:
        if not isinstance(value, str) or not value:
            raise TypeError(f"an entry's {name} is a name, not {value!r}")
    record = new("entry", times.to_text(now), plugin=plugin, entry=kind, turn=turn)
    return [{**record, "data": data}]


def mergeable(history: History, turns: Sequence[str]) -> None:
    """Refuse turns that have no answer to merge.

    Raises: turn-state; ValueError: none, or one twice.
    """
    if not turns:
        raise ValueError("merge needs the turns to merge")
    if len(set(turns)) != len(turns):
        raise ValueError("merge is given the same turn twice")
    for turn in turns:
        done_parent(history, turn, "only a turn that is done has an answer to merge")


def done_parent(history: History, turn: str, reason: str) -> str:
    """Return a turn if it ended done, else refuse it.

    Raises: turn-unknown; turn-state with the reason.
    """
    if turn not in history:
        raise TurnUnknown(conversation=history.conversation, turn=turn)
    node = history.node(turn)
    if node.ended is None or node.ended.state != "done":
        state = node.ended.state if node.ended is not None else "not ended"
        raise TurnState(turn=turn, state=state, reason=reason)
    return turn


# -- parts -----------------------------------------------------------------------------------------


def _program(history: History, program: Described, at: str) -> list[NewRecord]:
    return [] if program.version in history.programs else [new("program", at, **program.keys())]


def _lease(turn: str, *, holder: str, attempt: int, now: datetime, boot: str | None) -> NewRecord:
    keys = {"turn": turn, "holder": holder, "attempt": attempt, "boot": boot}
    until = times.to_text(now + timedelta(seconds=LEASE_S))
    return new("lease", times.to_text(now), until=until, **keys)
