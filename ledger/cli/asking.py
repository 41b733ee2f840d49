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
)
from ledger.cli.running import going_on
from ledger.errors import QuestionUnknown
from ledger.turn import Turn
from ledger.views.text import one_line, printable

QuestionName = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUESTION]",
        help="What is answered: its number, id or path, or the tool's name; default: the only question that is open "
        "now, which may be another than was seen.",
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
    Raises: question-unknown: which is meant is not clear. Whoever gives a name that also fits a question that was
    answered by now may have seen that one.
    """
    still_open, ever = turn.waiting, turn.questions
    fits = [q for q in ever if question is None or question in handles(q)]
    meant = [q for q in still_open if q["key"] in [f["key"] for f in fits]]
    if len(meant) > 1 or (meant and question is not None and len(fits) > 1):
        told = [f"{handle(q, ever)} is {one_line(called(q), 60)}" for q in still_open]
        what = (
            f"{len(meant)} questions are open" if len(meant) > 1 else "others were answered before"
        )
        raise QuestionUnknown(turn=turn.id, reason=f"{what}, name one: {'; '.join(told)}")
    return meant[0] if meant else question


def _tell(turn: Turn, asked: Any, verdict: str, *, as_json: bool) -> None:
    if as_json:
        say_json({**turn.to_dict(saw=True), "answered": asked, "verdict": verdict})
        return
    left = turn.waiting
    next_step = f"{len(left)} more open:" if left else f"nothing else is open; {going_on(turn)}"
    lines = [
        heading(turn),
        *question(asked, turn.questions),
        f"  {'approved' if verdict == 'yes' else 'denied'}; {next_step}",
        *(needs(turn) if left else []),
    ]
    say("\n".join(printable(line, lines=True) for line in lines))
