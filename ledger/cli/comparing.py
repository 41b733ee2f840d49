"""The command that compares: diff."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ledger.cli.output import Id, Json, conversation, named, say, say_json, width
from ledger.views.words import Op

_COLOURS: dict[Op, str] = {"removed": "\x1b[31m", "added": "\x1b[32m"}
_PLAIN = "\x1b[0m"

First = Annotated[
    str,
    typer.Argument(
        metavar="A", help="A turn: its number, its id, or a part of its id.", show_default=False
    ),
]
Second = Annotated[
    str, typer.Argument(metavar="B", help="The turn it is compared with.", show_default=False)
]


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(diff)


def diff(context: typer.Context, id: Id, a: First, b: Second, as_json: Json = False) -> None:
    """Compare two turns word by word: what was asked and answered, models, settings, what each saw.

    A terminal shows in red what only A has, in green what only B has; else they stand in [-...-] and {+...+}.
    Example: turn-ledger diff alex 2 3
    """
    chat = conversation(context, id)
    found = chat.diff(named(chat, a), named(chat, b))
    if as_json:
        say_json(found.to_dict())
    elif sys.stdout.isatty():
        mark = None if os.environ.get("NO_COLOR") else coloured
        say("\n".join(found.told(mark, width=width())))
    else:
        say(str(found))


def coloured(op: Op, text: str) -> str:
    """Return text in its colour, line by line; blanks that would not be seen as signs."""
    colour = _COLOURS.get(op)
    if colour is None:
        return text
    seen = text if text.strip() else text.replace(" ", "·").replace("\t", "→").replace("\n", "↵\n")
    return "\n".join(f"{colour}{line}{_PLAIN}" if line else "" for line in seen.split("\n"))
