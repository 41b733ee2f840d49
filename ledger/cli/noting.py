"""The commands that say something of turns and conversations: rate, label, title."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ledger.cli.output import (
    Id,
    Json,
    TurnName,
    conversation,
    heading,
    labelled,
    named,
    noted,
    say,
    say_json,
)
from ledger.turn import Turn
from ledger.views.ratings import Value
from ledger.views.text import printable

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("yes", "true"), True),
    **dict.fromkeys(("no", "false"), False),
    "none": None,
}


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    # So that -1 is a rating and no option.
    app.command(context_settings={"ignore_unknown_options": True})(rate)
    for command in (label, title):
        app.command()(command)


def rate(
    context: typer.Context,
    id: Id,
    turn: TurnName,
    value: Annotated[
        str,
        typer.Argument(
            help="A number on your own scale, yes, no, or none: take the rating back.",
            show_default=False,
        ),
    ],
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHO", help="Who rates.", show_default=False)
    ] = None,
    why: Annotated[
        str | None, typer.Option("--why", help="The reason, for the record.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Rate a turn. Of several ratings by the same the last counts.

    Example: turn-ledger rate alex 3 5 --by maria --why "asks back"
    """
    given = _value(value)
    found = named(conversation(context, id), turn)
    with _refusing():
        found.rate(given, by=by, why=why)
    _tell(found, as_json=as_json)


def label(
    context: typer.Context,
    id: Id,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TURN] TEXT",
            help="The label, and before it the turn it is put on; default: the conversation itself.",
            show_default=False,
        ),
    ],
    remove: Annotated[bool, typer.Option("--remove", help="Take the label off.")] = False,
    as_json: Json = False,
) -> None:
    """Put a label on a turn or on a conversation, or take it off.

    Example: turn-ledger label alex 3 "to publish"
    """
    if len(words) > 2:
        raise typer.BadParameter("give a turn and one label; a label with blanks goes in quotes")
    *turn, text = words
    chat = conversation(context, id)
    found = named(chat, turn[0]) if turn else None
    if found is not None:
        with _refusing():
            found.unlabel(text) if remove else found.label(text)
        _tell(found, as_json=as_json)
        return
    with _refusing():
        chat.unlabel(text) if remove else chat.label(text)
    if as_json:
        say_json({"id": chat.id, "labels": chat.labels})
    else:
        say(printable("\n".join([chat.id, labelled(chat.labels or ["none"])]), lines=True))


def title(
    context: typer.Context,
    id: Id,
    text: Annotated[str | None, typer.Argument(help="The new title.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Show the title of a conversation, or give it one.

    Example: turn-ledger title alex "Fractions with Alex"
    """
    chat = conversation(context, id)
    if text is not None:
        with _refusing():
            chat.title = text
    found = chat.title
    if as_json:
        say_json({"id": chat.id, "title": found})
    else:
        say(printable(found if found is not None else "no title yet"))


def _value(text: str) -> Value | None:
    """Return a rating as it was typed. Raises: typer.BadParameter."""
    word = text.strip().casefold()
    if word in _WORDS:
        return _WORDS[word]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    raise typer.BadParameter(f"a rating is a number, yes, no or none, not {text!r}")


@contextmanager
def _refusing() -> Iterator[None]:
    """Tell what cannot be a rating, a label or a title as wrong usage."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _tell(turn: Turn, *, as_json: bool) -> None:
    if as_json:
        say_json(turn.to_dict(saw=True))
        return
    lines = [heading(turn), *(noted(turn) or ["  neither rated nor labelled"])]
    say("\n".join(printable(line, lines=True) for line in lines))
