"""The program of a recorded turn is started: for the first time, or again by who goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Context
from inspect import BoundArguments
from typing import Any, NamedTuple

from ledger.errors import EventRefused
from ledger.records import kinds
from ledger.records.events import Writer
from ledger.records.messages import Message
from ledger.turns import approving, calling, loops
from ledger.turns.commands import Claim
from ledger.turns.current import Running
from ledger.turns.helping import Remembering
from ledger.turns.log import Events, Log
from ledger.turns.pieces import Pieces
from ledger.turns.programs import Program
from ledger.turns.running import Run
from ledger.turns.scribe import Scribe
from ledger.turns.sites import Site
from ledger.turns.steps import Steps
from ledger.turns.telling import Exchange, reading
from ledger.turns.view import View
from ledger.views import History


class Launch(NamedTuple):
    """A turn that this process holds, and how its program is to be called."""

    turn: str
    program: Program
    bound: BoundArguments
    settings: Mapping[str, Any]
    claim: Claim
    rule: approving.Rule | None = None
    """Which of its tools a person is asked about."""
    remembering: Remembering = Remembering()
    """What its helpers remember."""
    asked: list[Message] | None = None
    """Its user side as it was given; None: as it is recorded."""


class Lookup(NamedTuple):
    """Where the helpers of a turn find what was before, and their ids."""

    history: Callable[[], History]
    new_call: Callable[[], str]


def launch(
    log: Log, view: View, launch: Launch, context: Context, loop: loops.Loop | None = None
) -> Run:
    """Start the program of a turn. What goes wrong in starting it is how the turn ends."""
    turn, claim, world = launch.turn, launch.claim, view.world
    pieces = Pieces(redacted=log.redact is not None)
    scribe = _scribe(log, view, launch, pieces)
    node = log.history.node(turn) if claim.attempt > 1 else None
    steps = Steps(log, turn, claim, world, rule=launch.rule, node=node, scribe=scribe)
    asked = launch.asked if launch.asked is not None else log.history.asked(turn)
    exchange = Exchange(lambda: log.history.shown_messages(turn), asked, reading(log))
    name = launch.program.description.name
    running = Running(
        view.conversation,
        turn,
        launch.settings,
        lambda: log.raised(log.history.rows(turn)),
        pieces=pieces,
        steps=steps,
        site=Site(turn, steps.numbered("", name), trail=name),
        remembering=launch.remembering,
        lookup=Lookup(lambda: log.history, world.turn_id),
        exchange=exchange,
    )
    run = Run(log, launch.program, running, claim, world, steps, scribe)
    try:
        calling.start(run, launch.bound, context, loop)
    except Exception as error:  # No thread can be had: then that is how the turn ended.
        run.fail(error)
    return run


def _scribe(log: Log, view: View, launch: Launch, pieces: Pieces) -> Scribe | None:
    events = log.events
    if events is None:
        return None
    described = launch.program.description
    writer = None if launch.claim.attempt == 1 else _next_writer(events, launch)
    scribe = Scribe(
        events, launch.turn, described, pieces, view.world, writer, log.lane, redacted=log.redacted
    )
    if writer is not None:
        scribe.begin_again(launch.claim.attempt)
    else:
        record = log.history.node(launch.turn).record
        inputs = kinds.mapping(record.inputs, record.seq)
        scribe.begin(inputs, kinds.mappings(record.saw, record.seq))
    return scribe


def _next_writer(events: Events, launch: Launch) -> Writer | None:
    """Claim the events of a turn that was resumed; None: there are none yet, or none can be had."""
    claim: Callable[[str], Mapping[str, Any]] | None = getattr(events, "claim", None)
    if claim is None:
        return None
    try:
        claimed = claim(launch.turn)
    except EventRefused:
        return None
    name = launch.program.description.name
    return Writer(launch.turn, name, writer=claimed["writer"], after=claimed["after"])
