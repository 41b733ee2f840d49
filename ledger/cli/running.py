"""The commands for a turn that runs: watch, stop, abandon."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Annotated

import typer

from ledger.cli.ending import warn
from ledger.cli.output import (
    Id,
    Json,
    MaybeTurn,
    TurnName,
    asked,
    conversation,
    heading,
    may_have_run,
    named,
    needs,
    say,
    say_json,
    say_now,
    width,
)
from ledger.cli.reader import while_read
from ledger.cli.screen import Screen
from ledger.conversation import Conversation
from ledger.errors import TurnUnknown, counted
from ledger.records.events import Event, Place, place_of, position
from ledger.turn import Turn
from ledger.turns.commands import LEASE_S
from ledger.views.text import printable

RECORD_S = 1.0
"""How long the record of a turn's end may come after its last event."""
STOP_S = 5.0
"""How long `stop` waits for the end: several times what a stop takes that arrives."""


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (watch, stop, abandon):
        app.command()(command)


def watch(
    context: typer.Context,
    id: Id,
    turn: MaybeTurn = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="W:S",
            help="Go on after this event: its writer and its seq.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event as JSON, one a line, for programs.")
    ] = False,
) -> None:
    """Follow a turn, live, from any process: what it says, its tools, how it ends.

    It ends when the turn has ended, waits for a person, or was interrupted.
    Ctrl-C ends the watching, not the turn. A turn that has ended is told from its beginning.
    Example: turn-ledger watch alex
    """
    place = None if after is None else _place(after)
    chat = conversation(context, id)
    found = chat.head if turn is None else named(chat, turn)
    if found is None:
        say_now("" if as_json else "no turns yet\n")
        return
    events = while_read(found.events(place))
    if as_json:
        for event in events:
            say_now(json.dumps(event) + "\n")
    else:
        _show(found, events, place)


def _place(text: str) -> Place | None:
    try:
        return place_of(text)
    except ValueError:
        message = f"--after is a writer and a seq, such as 1:17, not {text!r}"
        raise typer.BadParameter(message) from None


def _show(turn: Turn, events: Iterator[Event], place: Place | None) -> None:
    """Print a turn from its heading on, or what comes after a place: then the heading was printed before."""
    screen = Screen(width=width(), from_start=place is None)
    if place is None:
        say_now(beginning(turn))
    try:
        for event in events:
            say_now(screen.show(event))
            place = position(event)
    except KeyboardInterrupt:
        say_now(screen.end())
        rest = "" if place is None else "; --after {writer:.0f}:{seq:.0f} shows the rest"
        warn(f"turn {turn.ordinal} is no longer watched{rest.format(**place or {})}", as_json=False)
        raise
    say_now(screen.end() + standing(turn))


def beginning(turn: Turn) -> str:
    """Return what is printed of a turn before its events."""
    return _lines([heading(turn), *asked(turn)])


def standing(turn: Turn) -> str:
    """Return what is printed of a turn after its events: how it stands, what it needs a person for."""
    state = turn.wait(RECORD_S)
    lines, told = needs(turn), f"[{state}]"
    if state == "waiting":
        told += f" for {counted(len(turn.waiting), 'answer')} of a person"
        told += f"; {going_on(turn)}" if not turn.waiting else ""
    elif state == "interrupted":
        told += f" its process died; {going_on(turn)}, {_way_out(turn)}"
    return _lines([*lines, told])


def _lines(lines: list[str]) -> str:
    return "".join(printable(line, lines=True) + "\n" for line in lines)


def going_on(turn: Turn) -> str:
    """Return how a person goes on with a turn."""
    command = f"turn-ledger resume {turn.conversation} {turn.ordinal} --program MODULE:FUNCTION"
    said = ", with what is said of each tool above," if may_have_run(turn) else ""
    return f"`{command}`{said} goes on with it"


def stop(
    context: typer.Context,
    id: Id,
    turn: MaybeTurn = None,
    request_id: Annotated[
        str | None,
        typer.Option(
            "--request-id", help="The turn that was sent under this id.", show_default=False
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for its end."),
    ] = STOP_S,
    as_json: Json = False,
) -> None:
    """Stop a turn, wherever it runs; says what became of it.

    One that nobody runs, as it waits for a person or its process died, is abandoned.
    One that has ended stays as it is.
    Example: turn-ledger stop alex
    """
    if turn is not None and request_id is not None:
        raise typer.BadParameter("name a turn or a --request-id, not both")
    if math.isnan(wait):
        raise typer.BadParameter("--wait is a number of seconds")
    chat = conversation(context, id)
    found = _sent(chat, request_id) if request_id is not None else chat.head
    found = named(chat, turn) if turn is not None else found
    before = found.state if found is not None else ""
    if found is not None:
        chat.stop(found)
        found.wait(wait)
    _tell(found, before, as_json=as_json)


def _sent(chat: Conversation, request_id: str) -> Turn:
    for turn in chat.all_turns():
        if turn.request_id == request_id:
            return turn
    reason = "is the request id of no turn of it"
    raise TurnUnknown(conversation=chat.id, turn=request_id, reason=reason)


def abandon(context: typer.Context, id: Id, turn: TurnName, as_json: Json = False) -> None:
    """End a turn that nobody goes on with: one that waits for a person, or whose process died.

    One that runs is refused: stop it.
    Example: turn-ledger abandon alex 3
    """
    found = named(conversation(context, id), turn)
    before = found.state
    found.abandon()
    _tell(found, before, as_json=as_json)


def _tell(turn: Turn | None, before: str, *, as_json: bool) -> None:
    """Say what became of a turn; in JSON `before` is its state before."""
    if turn is None:
        say_json(None) if as_json else say("no turns yet")
    elif as_json:
        say_json({**turn.to_dict(saw=True), "before": before})
    else:
        say(printable(heading(turn)))
        say("  " + _became(turn, before))


def _became(turn: Turn, before: str) -> str:
    state = turn.state
    if state == "running":
        return (
            "it was asked to stop and still runs: its process is held up or out of reach; if that died, "
            f"the turn is interrupted within {LEASE_S:.0f} seconds; then {_way_out(turn)}"
        )
    if before == "running":
        return (
            "it ran, and is stopped" if state == "stopped" else f"it ran, and ended {state} first"
        )
    if before in ("waiting", "interrupted"):
        why = "it waited for a person" if before == "waiting" else "its process had died"
        return f"{why}; it is {state}"
    return f"it had ended before, {state}; nothing was changed"


def _way_out(turn: Turn) -> str:
    return f"`turn-ledger abandon {turn.conversation} {turn.ordinal}` ends it"
