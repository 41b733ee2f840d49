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
from typing import Any, NamedTuple

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
from ledger.views import History, Shown, signature, states, summaries
from ledger.views.nodes import CLEARED, SUMMARY, Node
from ledger.views.signature import Described
from ledger.views.states import Dead
from ledger.views.summaries import Wanted

LEASE_S = 30
"""How long a lease lasts."""
UNATTENDED = ("waiting", "interrupted")
"""The states of a turn that has not ended and that nobody runs."""
OWN = "ledger"
"""The `plugin` of the entries this package keeps itself."""
TITLE = "title"


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
    given: list[Any] = []
    """The attachments that it names: the store has them before the record."""

    def keys(self) -> dict[str, Any]:
        """Return the keys of the record."""
        names = [name for name in self.__struct_fields__ if name not in ("bare", "given")]
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
    redacted: bool | None = None
    """Whether its values were redacted before they were recorded."""
    approve: Any = None
    """The rule by which a person is asked about its tools, as far as a record can say it."""

    def keys(self) -> dict[str, Any]:
        """Return the keys of the `turn` record."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


# -- asked of a history before anything is decided ----------------------------------------------


def repeated(
    history: History,
    request_id: str | None,
    inputs: Mapping[str, Any],
    messages: list[dict[str, Any]] | None = None,
) -> str | None:
    """Return the turn that a request id already has, or None.

    Raises: request-mismatch: it was sent with other inputs, or other messages.
    """
    turn = history.request(request_id) if request_id is not None else None
    if turn is None or request_id is None:
        return None
    record = history.node(turn).record
    before = [kinds.mapping(record.inputs), kinds.payload(record.messages), history.reads(turn)]
    now = [dict(inputs), messages, []]
    if canonical.canonical(values.identity(before)) != canonical.canonical(values.identity(now)):
        raise RequestMismatch(turn=turn, request_id=request_id)
    return turn


def merged_as(history: History, request_id: str | None, merged: Sequence[str]) -> str | None:
    """Return the merge that was made under a request id, or None.

    Raises: request-mismatch: the id has another turn, or a merge of other turns.
    """
    turn = history.request(request_id) if request_id is not None else None
    if turn is None or request_id is None:
        return None
    if history.reads(turn) != list(merged):
        raise RequestMismatch(turn=turn, request_id=request_id)
    return turn


# -- commands ------------------------------------------------------------------------------------


def start(
    history: History,
    sent: Sent,
    *,
    program: Described,
    shown: Shown,
    claim: Claim,
    now: datetime,
    earlier_without: Collection[str] = (),
) -> list[NewRecord]:
    """Start a turn: its program when new, the turn, its first lease. Refuses as `signature.check`.

    Args: shown: under its parent, by a rule.
    """
    signature.check(history, program, shown, earlier_without=earlier_without)
    at = times.to_text(now)
    keys = {"saw": shown.saw, "shown_entries": shown.entries or None, **sent.keys()}
    keys["saw_all"] = shown.is_all or None
    return [
        *_program(history, program, at),
        new("turn", at, program=program.version, **keys),
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
    entries = kinds.payload(node.record.shown_entries)
    keys = {"turn": turn, "saw": saw, "shown_entries": entries, "attempt": claim.attempt}
    return [*renewed, new("ended", times.to_text(now), **keys, **outcome.keys())]


def fence(history: History, turn: str, claim: Claim) -> Node:
    """Return a running turn's node if a claim on it still stands: who lost it appends nothing.

    Raises: lease-lost: it ended, or another attempt holds it.
    """
    node = history.node(turn)
    if node.outcome is not None:
        raise LeaseLost(turn=turn, reason=f"it already ended {node.outcome}")
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
    history: History, turn: str, claim: Claim, *, program: str | None, now: datetime
) -> list[NewRecord]:
    """Give up a running turn without ending it: others may go on with it at once.

    Args: program: the version of the one that could not; None: any may. Raises: lease-lost.
    """
    fence(history, turn, claim)
    until = times.to_text(now - timedelta(microseconds=1))
    keys = claim._asdict() | ({"program": program} if program is not None else {})
    return [new("lease", times.to_text(now), turn=turn, until=until, **keys)]


def output_keys(output: Any) -> dict[str, Any]:
    """Return a tool's output, checked, as its record has it: as text, and as it is where it is no text."""
    if isinstance(output, str):
        return {"output": output}
    return {"output": canonical.canonical(output).decode(), "output_value": output}


def check_fields(history: History, turn: str, program: Described) -> None:
    """Refuse to go on with a turn by a program that has other fields. Raises: conversation-signature."""
    known = history.programs.get(history.node(turn).program)
    if known is None:
        return
    was = {str(f.get("name")): f for f in kinds.mappings(known.fields, known.seq)}
    now = {field["name"]: field for field in program.fields}
    named = was.keys() ^ now.keys() | {
        n for n in was.keys() & now.keys() if not signature.fits(was[n], now[n])
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
    entries = kinds.payload(node.record.shown_entries, node.seq)
    keys = {"turn": turn, "state": "abandoned", "saw": saw, "shown_entries": entries}
    keys["partial"] = said
    return [new("ended", times.to_text(now), attempt=max(node.attempt, 1), **keys)]


def record(
    history: History,
    sent: Sent,
    outcome: Outcome,
    *,
    program: Described,
    saw: list[dict[str, Any]],
    saw_all: bool = False,
    entries: list[int] | None = None,
    now: datetime,
) -> list[NewRecord]:
    """Record a turn made elsewhere, or by a merge: the turn and its end, in one append.

    Args: saw_all: whether that is every done turn of its line, whole. entries: the places of the entries that it
    was shown.
    """
    at, what = times.to_text(now), {"saw": saw, "shown_entries": entries or None}
    told = saw_all or None
    return [
        *_program(history, program, at),
        new("turn", at, program=program.version, **what, saw_all=told, **sent.keys()),
        new("ended", at, turn=sent.turn, **what, attempt=1, **outcome.keys()),
    ]


def summarize(
    history: History, wanted: Wanted, text: str, made_by: Mapping[str, Any], *, now: datetime
) -> list[NewRecord]:
    """Keep a summary at the last turn it stands for; nothing where one of the same turns is kept already,
    or where one of them was taken out since."""
    turns = wanted.turns
    if not all(turn in history and history.node(turn).done for turn in turns):
        return []
    here = [place for place, entry in history.summaries.items() if entry.turn == turns[-1]]
    kept = (summaries.at(history, place) for place in here)
    if any(s is not None and (s.turns, s.name) == (turns, wanted.name) for s in kept):
        return []
    plugin, kind = SUMMARY
    return entry(plugin, kind, wanted.data(text, made_by), now=now, turn=turns[-1])


def move_head(history: History, turn: str | None, *, now: datetime) -> list[NewRecord]:
    """Make a turn the head, for everyone; nothing when it is the head already.

    Args: turn: None: the place before the first turn, so that the next one starts a line of its own.
    Raises: turn-unknown.
    """
    if turn is not None:
        history.node(turn)
    if history.head == turn:
        return []
    if turn is None:
        return entry(*CLEARED, None, now=now)
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


def title(history: History) -> str | None:
    """Return the title that a history was given last; None: it has none."""
    for one in reversed(history.entries(OWN, TITLE)):
        if isinstance(data := kinds.payload(one.data, one.seq), str):
            return data
    return None


def mergeable(
    history: History, turns: Sequence[str], *, now: datetime, dead: Dead = frozenset()
) -> str | None:
    """Refuse turns that have no answer to merge, and will have none.

    Returns: the first of them that still runs; None: all are done.
    Raises: turn-state; ValueError: none, or one twice.
    """
    if not turns:
        raise ValueError("merge needs the turns to merge")
    if len(set(turns)) != len(turns):
        raise ValueError("merge is given the same turn twice")
    runs = []
    for turn in turns:
        state = history.state(turn, now=now, dead=dead)
        if state == "running":
            runs.append(turn)
        elif state != "done":
            reason = "only a turn that is done has an answer to merge"
            raise TurnState(turn=turn, state=state, reason=reason)
    return runs[0] if runs else None


def done_parent(history: History, turn: str, reason: str) -> str:
    """Return a turn if it ended done, else refuse it.

    Raises: turn-unknown; turn-state with the reason.
    """
    if turn not in history:
        raise TurnUnknown(conversation=history.conversation, turn=turn)
    node = history.node(turn)
    if not node.done:
        state = node.outcome if node.outcome is not None else "not ended"
        raise TurnState(turn=turn, state=state, reason=reason)
    return turn


# -- parts -----------------------------------------------------------------------------------------


def _program(history: History, program: Described, at: str) -> list[NewRecord]:
    return [] if history.has_program(program.version) else [new("program", at, **program.keys())]


def lease(turn: str, claim: Claim, *, now: datetime) -> NewRecord:
    """Return the record that holds a turn for 30 s."""
    until = times.to_text(now + timedelta(seconds=LEASE_S))
    return new("lease", times.to_text(now), turn=turn, until=until, **claim._asdict())
