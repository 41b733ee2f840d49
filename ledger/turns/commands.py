"""What is appended, decided: history + intent -> the records to append, or a refusal. Pure.

Each command is a function of a history and returns new records; the shell appends them expecting
the history's position, and asks again when the log grew. So every rule is a test without a disk, and
a blocking and an awaiting shell cannot drift apart.

Commands that claim (start, end, abandon, record, merge, move the head) are conditional; what is true of any
log (a stop, an answer, an entry) is appended freely by the shells.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

import msgspec

from ledger.errors import (
    Cancelled,
    LeaseLost,
    RequestMismatch,
    SignatureChanged,
    TurnState,
    TurnUnknown,
)
from ledger.records import canonical, kinds, times, values
from ledger.records.kinds import NewRecord, new
from ledger.views import History, Rule, states
from ledger.views.nodes import Node
from ledger.views.states import Dead

LEASE_S = 30
"""How long a lease lasts."""
UNATTENDED = ("waiting", "interrupted")
"""The states of a turn that has not ended and that nobody runs."""
OWN = "ledger"
"""The `plugin` of the entries this package keeps itself."""
TITLE = "title"
ASIDE_NAMES = ("reasoning", "calls")
ASIDE_PURPOSES = ("reasoning", "tools.calls")
"""What outputs are called, or are for, that a program may begin to give in the middle of a conversation."""


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
    partial: str | None = None
    """What had been said when it was stopped or failed."""
    bare: bool = False
    """Whether all was left out that a record may refuse."""

    def keys(self) -> dict[str, Any]:
        """Return the keys of the record."""
        names = [name for name in self.__struct_fields__ if name != "bare"]
        return {name: getattr(self, name) for name in names}


class Sent(msgspec.Struct, kw_only=True):
    """A turn to be recorded: its place is decided by the caller, its keys here."""

    turn: str
    parent: str | None
    inputs: dict[str, Any]
    request_id: str | None = None
    settings: dict[str, Any] | None = None
    reads: list[str] | None = None
    made_by: dict[str, Any] | None = None
    messages: list[dict[str, Any]] | None = None
    source: dict[str, Any] | None = None
    remembers: list[dict[str, Any]] | None = None
    """What its helpers remember."""
    approve: Any = None
    """The rule by which a person is asked about its tools, as far as a record can say it."""

    def keys(self) -> dict[str, Any]:
        """Return the keys of the `turn` record."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


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


def check_signature(
    history: History,
    program: Described,
    parent: str | None,
    *,
    rule: Rule,
    earlier_without: Collection[str] = (),
) -> None:
    """Refuse a program whose fields differ from those of the earlier turns that it would be shown.

    Fields that the rule leaves out are not compared. A field of any shape (`{}`) fits every shape. An
    added output for reasoning or tool calls that `earlier_without` names is accepted. Turns made
    without a program known here are shown as they are.
    Raises: conversation-signature.
    """
    others = {}
    for version in history.versions(parent) - {program.version}:
        known = history.programs.get(version)
        fields = None if known is None else kinds.mappings(known.fields, known.seq)
        if fields is not None and fields != program.fields:
            others[version] = _compared(fields, rule)
    if not others:  # The usual case.
        return
    now = _compared(program.fields, rule)
    asides = {name for name, field in now.items() if _is_aside(field)}
    accepted = asides.intersection(earlier_without)
    found = {version: _differences(was, now, accepted) for version, was in others.items()}
    if not any(found.values()):  # Decided without a walk along the branch.
        return
    shown = {history.node(turn).record.program for turn in history.shown(parent, rule).turns}
    differences = set().union(*(found[version] for version in found.keys() & shown))
    if differences:
        acceptable = all(how == _LACKED and name in asides for how, name in differences)
        raise SignatureChanged(
            program=program.name,
            differences="; ".join(sorted(how.format(name) for how, name in differences)),
            earlier_without=tuple(sorted(n for _, n in differences)) if acceptable else (),
        )


_LACKED = "earlier turns lack {}"


def _differences(
    was: Mapping[str, Any], now: Mapping[str, Any], accepted: Collection[str]
) -> set[tuple[str, str]]:
    """Return how the fields differ: (in words, the field)."""
    shared = was.keys() & now.keys()
    return {
        *(("{} has another shape", name) for name in shared if not _fits(was[name], now[name])),
        *(("{} is no longer one of its fields", name) for name in was.keys() - now.keys()),
        *((_LACKED, name) for name in now.keys() - was.keys() - set(accepted)),
    }


def _compared(fields: list[dict[str, Any]], rule: Rule) -> dict[str, dict[str, Any]]:
    """Return the fields that a rule shows, by name."""
    named = {str(field.get("name")): field for field in fields}
    return {name: field for name, field in named.items() if name not in rule.without}


def _is_aside(field: Mapping[str, Any]) -> bool:
    """Say whether a field is an output beside the answer, which earlier turns can be shown without."""
    aside = field.get("name") in ASIDE_NAMES or field.get("purpose") in ASIDE_PURPOSES
    return field.get("direction") == "output" and aside


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
    claim: Claim,
    now: datetime,
    earlier_without: Collection[str] = (),
) -> list[NewRecord]:
    """Start a turn: its program when new, the turn, its first lease. Refuses as `check_signature`."""
    check_signature(history, program, sent.parent, rule=rule, earlier_without=earlier_without)
    saw = history.shown(sent.parent, rule).saw
    at = times.to_text(now)
    return [
        *_program(history, program, at),
        new("turn", at, program=program.version, saw=saw, **sent.keys()),
        lease(sent.turn, claim, now=now),
    ]


class Claim(NamedTuple):
    """Who runs a turn, and in which attempt."""

    holder: str
    attempt: int = 1
    boot: str | None = None
    """The boot of the machine it runs on, where there is such a thing."""


def renew(history: History, turn: str, claim: Claim, *, now: datetime) -> list[NewRecord]:
    """Hold a running turn for another 30 s; also when the lease ran out, if nobody claimed it.

    Raises: lease-lost.
    """
    fence(history, turn, claim)
    return [lease(turn, claim, now=now)]


def end(
    history: History, turn: str, outcome: Outcome, claim: Claim, *, now: datetime
) -> list[NewRecord]:
    """End a running turn, if it is still this holder's; an expired lease is renewed with it.

    Raises: lease-lost: it ended already, or another attempt holds it.
    """
    node = fence(history, turn, claim)
    until = times.from_text(node.lease.until) if node.lease is not None else None
    renewed = [lease(turn, claim, now=now)] if until is None or until < now else []
    saw = kinds.mappings(node.record.saw)
    keys = {"turn": turn, "saw": saw, "attempt": claim.attempt, **outcome.keys()}
    return [*renewed, new("ended", times.to_text(now), **keys)]


def fence(history: History, turn: str, claim: Claim) -> Node:
    """Return a running turn's node if a claim on it still stands: who lost it appends nothing.

    Raises: lease-lost: it ended, or another attempt holds it.
    """
    node = history.node(turn)
    if node.ended is not None:
        raise LeaseLost(turn=turn, reason=f"it already ended {node.ended.state}")
    held = node.lease
    if held is None or (held.holder, held.attempt) != (claim.holder, claim.attempt):
        raise LeaseLost(turn=turn, reason="another process holds it now")
    if node.waiting_seq > node.lease_seq:
        raise LeaseLost(turn=turn, reason="it waits for a person, and nobody holds it")
    if states.released(held):
        raise LeaseLost(turn=turn, reason="it was given back")
    return node


def step(
    history: History,
    turn: str,
    claim: Claim,
    records: Sequence[NewRecord],
    *,
    results: bool = False,
) -> list[NewRecord]:
    """Record what a running turn does, if it is still this holder's.

    Args: results: they say what was done already: that is recorded also of a turn that is to stop.
    Raises: lease-lost. turn-stopped: somebody asked it to stop.
    """
    fence(history, turn, claim)
    if not results and asked_to_stop(history, turn):
        raise Cancelled(turn=turn)
    return list(records)


def wait(
    history: History,
    turn: str,
    questions: Sequence[Mapping[str, Any]],
    claim: Claim,
    *,
    now: datetime,
) -> list[NewRecord]:
    """Have a running turn wait for people; nobody holds it meanwhile. Raises: lease-lost, turn-stopped."""
    node = fence(history, turn, claim)
    if asked_to_stop(history, turn):
        raise Cancelled(turn=turn)
    saw = kinds.mappings(node.record.saw)
    keys = {"turn": turn, "approvals": [dict(q) for q in questions], "saw": saw}
    return [new("waiting", times.to_text(now), attempt=claim.attempt, **keys)]


def release(
    history: History, turn: str, claim: Claim, *, program: str, now: datetime
) -> list[NewRecord]:
    """Give up a running turn without ending it: others may go on with it at once, with another program.

    Args: program: the version of the one that could not. Raises: lease-lost.
    """
    fence(history, turn, claim)
    until = times.to_text(now - timedelta(microseconds=1))
    return [
        new("lease", times.to_text(now), turn=turn, until=until, program=program, **claim._asdict())
    ]


def output_keys(output: Any, path: str) -> dict[str, Any]:
    """Return a tool's output as its record has it: as text, and as it is where it is no text.

    Raises: record-invalid naming the path.
    """
    values.check(output, path, references=False)
    if isinstance(output, str):
        return {"output": output}
    return {"output": canonical.canonical(output).decode(), "output_value": output}


def check_fields(history: History, turn: str, program: Described) -> None:
    """Refuse to go on with a turn by a program that has other fields. Raises: conversation-signature."""
    known = history.programs.get(history.node(turn).record.program)
    if known is None:
        return
    was = {str(f.get("name")): f for f in kinds.mappings(known.fields, known.seq)}
    now = {field["name"]: field for field in program.fields}
    named = was.keys() ^ now.keys() | {
        n for n in was.keys() & now.keys() if not _fits(was[n], now[n])
    }
    if named:
        told = f"the turn was sent to a program with other fields: {', '.join(sorted(named))}"
        raise SignatureChanged(program=program.name, differences=told)


def asked_to_stop(history: History, turn: str) -> bool:
    """Say whether somebody asked the present attempt of a turn to stop."""
    node = history.node(turn)
    return any(seq > node.attempt_seq for seq in node.stops)


def stop(
    history: History, turn: str, *, now: datetime, dead: Dead = frozenset(), said: str | None = None
) -> list[NewRecord]:
    """Ask a running turn to stop; end one that nobody runs `abandoned`; leave one that ended.

    Args: said: what one that nobody runs had said. Raises: turn-unknown.
    """
    state = history.state(turn, now=now, dead=dead)
    if state == "running":
        already = asked_to_stop(history, turn)
        return [] if already else [new("stop", times.to_text(now), turn=turn)]
    return _abandoned(history, turn, said, now=now) if state in UNATTENDED else []


def abandon(
    history: History, turn: str, *, now: datetime, dead: Dead = frozenset(), said: str | None = None
) -> list[NewRecord]:
    """End a turn that waits or was interrupted `abandoned`, which closes its questions.

    Nothing when it is abandoned already.
    Args: said: what it had said. Raises: turn-unknown. turn-state: it runs, or ended otherwise.
    """
    state = history.state(turn, now=now, dead=dead)
    if state == "abandoned":
        return []
    if state not in UNATTENDED:
        reason = "only a turn that waits or was interrupted can be abandoned; " + (
            "stop it" if state == "running" else "it has ended"
        )
        raise TurnState(turn=turn, state=state, reason=reason)
    return _abandoned(history, turn, said, now=now)


def settle(
    history: History, turn: str, *, now: datetime, dead: Dead = frozenset()
) -> list[NewRecord]:
    """End an interrupted turn `abandoned`, so that it can be erased; nothing when it has ended.

    Raises: turn-unknown. turn-state: it runs, or waits for a person.
    """
    state = history.state(turn, now=now, dead=dead)
    if state in ("running", "waiting"):
        raise TurnState(turn=turn, state=state, reason="only a turn that ended can be forgotten")
    return _abandoned(history, turn, None, now=now) if state == "interrupted" else []


def _abandoned(history: History, turn: str, said: str | None, *, now: datetime) -> list[NewRecord]:
    node = history.node(turn)
    saw = kinds.payload(node.record.saw, node.seq) or []
    keys = {"turn": turn, "state": "abandoned", "saw": saw, "partial": said}
    return [new("ended", times.to_text(now), attempt=max(node.attempt, 1), **keys)]


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


def lease(turn: str, claim: Claim, *, now: datetime) -> NewRecord:
    """Return the record that holds a turn for 30 s."""
    until = times.to_text(now + timedelta(seconds=LEASE_S))
    return new("lease", times.to_text(now), turn=turn, until=until, **claim._asdict())
