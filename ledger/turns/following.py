"""A turn is followed by its events, while it runs and after, from any process.

A follower that was cut off names the last event it has and gets the rest: no gap, nothing twice. A turn
of which no events are kept (its store keeps none, it was imported) is told by its records when it has
ended: that it started, its answer, how it ended. The same is done for the end alone when who wrote the
events died before it: then each reader makes the same events of the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ledger.errors import EventRefused, LedgerError
from ledger.records import events as rules
from ledger.records import kinds, times
from ledger.records.events import Event, Place, Writer
from ledger.turns import programs, scribe
from ledger.turns.commands import Outcome
from ledger.turns.log import Log
from ledger.turns.view import View
from ledger.views import History

LATE_S = 1.0
"""How long the last event may come after the record of the end, before it is made from that."""
LOOK_S = 0.2
"""How long to wait, at most, before looking again."""
MOST_SAID = 8_000_000
"""How many characters of what a turn said are given, at most: so many fit into a record, whatever they are."""


class Following:
    """One follower of one turn. `step` never waits for anything to happen."""

    def __init__(
        self, log: Log, view: View, turn: str, after: Mapping[str, Any] | str | None = None
    ) -> None:
        self._log = log
        self._view = view
        self._turn = turn
        self._after: Place | None = rules.place_of(after)
        self._over = False
        self._ended_since: float | None = None

    def step(self) -> tuple[list[Event], bool]:
        """Return the events that came since, and whether no more will come.

        No more come when the turn has ended, waits for a person, or was interrupted.
        Raises: event-unknown: there is no event at the place to go on after.
        """
        kept = self._kept()
        if kept:
            self._after = rules.position(kept[-1])
            return kept, rules.finished(kept[-1])
        state = self._view.state(self._log, self._turn)
        history = self._log.history
        if state == "running":
            return [], False
        if state in ("waiting", "interrupted"):
            return self._kept(), True
        if not self._late(history):
            return [], False
        return self._kept() or self._told(history), True

    def wait(self) -> None:
        """Block until there may be more."""
        events = self._log.events
        if events is not None:
            events.wait(self._turn, self._after, LOOK_S)
        else:
            self._log.wait(LOOK_S)

    def _kept(self) -> list[Event]:
        events = self._log.events
        if events is None:
            return []
        try:
            return events.read(self._turn, self._after)
        except EventRefused:
            if self._log.history.node(self._turn).outcome is None or events.read(self._turn):
                raise
            return []  # None are kept: what the follower has was made from the records.

    def _late(self, history: History) -> bool:
        """Whether whoever ran the turn has had time to write how it ended."""
        ended = history.node(self._turn).ended
        at = times.from_text(ended.at) if ended is not None else None
        now = self._view.world.monotonic()
        if self._ended_since is None:
            self._ended_since = now
        old = at is None or abs((self._view.world.now() - at).total_seconds()) > LATE_S
        return old or now - self._ended_since > LATE_S

    def _told(self, history: History) -> list[Event]:
        """Make from the records what is not kept as events."""
        events = self._log.events
        kept = events.read(self._turn) if events is not None else []
        made = told(history, self._turn, kept)
        if self._after is None or (kept and rules.same(self._after, rules.position(kept[-1]))):
            return made
        for place, event in enumerate(made):
            if rules.same(rules.position(event), self._after):
                return made[place + 1 :]
        if any(rules.same(rules.position(event), self._after) for event in kept):
            return made
        raise EventRefused(
            code="event-unknown", tree=self._turn, event=self._after, reason="there is none there"
        )


def said(log: Log, turn: str) -> str | None:
    """Return what a turn has said of its answer by now, as its events tell; None: nothing.

    What it said before it, or its model, was asked again does not count. Events that cannot be read are
    as good as none: they are for watching, and nothing rests on them.
    """
    with suppress(LedgerError, OSError):
        events = log.events.read(turn) if log.events is not None else []
        return pieces(events, turn)[:MOST_SAID] or None
    return None


def told(history: History, turn: str, kept: list[Event]) -> list[Event]:
    """Return the events that a turn's records tell, after those that are kept of it."""
    node = history.node(turn)
    if node.ended is None or (kept and rules.finished(kept[-1])):
        return []
    record = history.programs.get(node.program)
    program = programs.of_record(record) if record is not None else programs.recorded({}, {})
    ended = node.ended
    outcome = Outcome(
        state=ended.state,
        value=kinds.payload(ended.value, ended.seq),
        error=kinds.mapping(ended.error, ended.seq) or None,
    )
    answer = outcome.value if ended.state == "done" else ended.partial
    if kept:
        place = rules.position(kept[-1])
        writer = Writer(turn, program.name, writer=place["writer"], after=place)
        rest = _rest(writer, program.answer, pieces(kept, turn), answer, at=ended.at)
        return [*rest, scribe.last(writer, outcome, at=ended.at)]
    writer = Writer(turn, program.name)
    inputs = node.inputs()
    saw = kinds.mappings(node.record.saw, node.seq)
    made = [writer.started(scribe.described(program), inputs, saw=saw, at=node.record.at)]
    if isinstance(answer, str) and answer:
        made.append(writer.text(program.answer, answer, at=ended.at))
    return [*made, scribe.last(writer, outcome, at=ended.at)]


def pieces(events: list[Event], turn: str) -> str:
    """Return what a turn had said by its events: the pieces since its last request, joined."""
    said: list[str] = []
    for event in events:
        if event.get("call") != turn:
            continue
        if event["kind"] in ("request", "retry"):
            said = []
        elif event["kind"] == "text" and event.get("answer") is True:
            said.append(str(event.get("text", "")))
    return "".join(said)


def _rest(writer: Writer, field: str, shown: str, answer: Any, *, at: str) -> list[Event]:
    """Return the events of what was said and not written: what comes after, or all of it once more."""
    if not isinstance(answer, str) or not answer or answer == shown:
        return []
    if answer.startswith(shown):
        return [writer.text(field, answer[len(shown) :], at=at)]
    return [writer.request(1, None, at=at), writer.text(field, answer, at=at)]
