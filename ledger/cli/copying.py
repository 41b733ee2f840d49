"""The command that copies conversations from one store to another; what a folder alone can do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ledger.cli.output import (
    Json,
    of_each,
    say,
    say_json,
    whole_id,
)
from ledger.cli.stores import named_store, opened_store, store_at
from ledger.sources.copying import Copied, copy_conversation, place_of
from ledger.stores.resolve import is_url
from ledger.views.text import printable


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(copy)


def copy(
    source: Annotated[
        str,
        typer.Argument(metavar="FROM", help="A store: a folder, or the URL of a database."),
    ],
    target: Annotated[str, typer.Argument(metavar="TO", help="The other store.")],
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Which conversations: their ids, or the beginnings of them.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: Json = False,
) -> None:
    """Copy conversations to another store, byte for byte, with their attachments.

    Where the other holds a beginning of one, the rest is added; where it holds something else under the
    id, or a turn is running, that conversation is refused and the others are copied.
    Example: turn-ledger copy chats postgresql://db.example/chats --all
    """
    if everything == bool(ids):
        raise typer.BadParameter("name the conversations, or say --all")
    taken, given = opened_store(named_store(target)), store_at(named_store(source))
    names = given.conversations() if everything else list(dict.fromkeys(ids or ()))

    def copied(name: str) -> Copied:
        return copy_conversation(given, taken, name if everything else whole_id(given, name))

    done, code = of_each(names, copied, as_json=as_json)
    if as_json:
        say_json(msgspec.to_builtins(done))
    else:
        for one in done:
            say(printable(_text(one), lines=True))
        if not names:
            say(printable(f"no conversations in {place_of(given)}"))
    if code:
        raise typer.Exit(code)


def _text(done: Copied) -> str:
    lines = [f"{done.conversation}: {done.added} of {done.records} records copied"]
    lines += [f"  attachment: {sha256}" for sha256 in done.attachments]
    lines += [f"  its bytes are in neither store: {sha256}" for sha256 in done.missing]
    return "\n".join(lines)


def folder_of(context: typer.Context) -> Path:
    """Return the folder of the store. Raises: typer.BadParameter: it is in a database."""
    if is_url(context.obj):
        raise typer.BadParameter("the store is in a database, and this is done with a folder")
    return Path(context.obj)
