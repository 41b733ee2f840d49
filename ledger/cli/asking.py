"""The commands for a turn that asks a person: approve, deny."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ledger.cli.output import (
    Id,
    Json,
    MaybeTurn,
    called,
    conversation,
    handle,
    handles,
    heading,
    named_or_head,
    needs,
    question,
    say,
    say_json,
    turn_json,
)
from ledger.cli.running import going_on
from ledger.errors import QuestionUnknown
from ledger.turn import Turn
from ledger.views.text import one_line, printable

QuestionName = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUESTION]",
        help="What is answered: its number, id or path; default: the only question that is open.",
        show_default=False,
    ),
]
By = Annotated[
    str | None, typer.Option("--by", metavar="WHO", help="Who answers.", show_default=False)
]


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (approve, deny):
        app.command()(command)


def approve(
    context: typer.Context,
    id: Id,
    turn: MaybeTurn = None,
    question: QuestionName = None,
    by: By = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why, for the record.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Say yes to what a waiting turn asks: the tool call may run, exactly as it is shown.

    Nothing runs by this. When nothing else is open, the turn can go on: see `resume`.
    Example: turn-ledger approve alex --by maria
    """
    found = named_or_head(conversation(context, id), turn)
    asked = _meant(found, question)
    found.approve(asked, by=by, reason=reason)
    _tell(found, asked, "yes", as_json=as_json)


def deny(
    context: typer.Context,
    id: Id,
    turn: MaybeTurn = None,
    question: QuestionName = None,
    by: By = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", help="Why; the program is told.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say no to what a waiting turn asks: the tool call is not made, and the program is told so.

    When nothing else is open, the turn can go on: see `resume`.
    Example: turn-ledger deny alex --reason "ask for the receipt first"
    """
    found = named_or_head(conversation(context, id), turn)
    asked = _meant(found, question)
    found.deny(asked, by=by, reason=reason)
    _tell(found, asked, "no", as_json=as_json)


def _meant(turn: Turn, question: str | None) -> Any:
    """Return the question as it is recorded, so that what is answered is what is shown.

    Where it is none of the open ones, what was given: the turn refuses it and says why.
    Raises: question-unknown: several are open, and which is meant is not clear.
    """
    still_open = turn.waiting
    fits = [q for q in still_open if question is None or question in handles(q)]
    if len(fits) > 1:
        calls = [(handle(q, still_open), called(q)) for q in fits]
        told = [f"{name} is {one_line(call, 60)}" for name, call in calls]
        reason = f"{len(fits)} questions are open, name one: {'; '.join(told)}"
        raise QuestionUnknown(turn=turn.id, reason=reason)
    return fits[0] if fits else question


def _tell(turn: Turn, asked: Any, verdict: str, *, as_json: bool) -> None:
    if as_json:
        say_json({**turn_json(turn), "answered": asked, "verdict": verdict})
        return
    left = turn.waiting
    next_step = f"{len(left)} more open:" if left else f"nothing else is open; {going_on(turn)}"
    lines = [
        heading(turn),
        *question(asked, [asked]),
        f"  {'approved' if verdict == 'yes' else 'denied'}; {next_step}",
        *(needs(turn) if left else []),
    ]
    say("\n".join(printable(line, lines=True) for line in lines))
