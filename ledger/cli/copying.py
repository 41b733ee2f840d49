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
from ledger.errors import counted
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
        if len(done) > 1:
            say(f"together: {counted(len(done), 'conversation')}, {_counts(done)}")
        if not names:
            say(printable(f"no conversations in {place_of(given)}"))
    if code:
        raise typer.Exit(code)


def _text(done: Copied) -> str:
    lines = [f"{done.conversation}: {_counts([done])} copied"]
    lines += [f"  attachment {sha256}: its bytes are in neither store" for sha256 in done.missing]
    return "\n".join(lines)


def _counts(done: list[Copied]) -> str:
    """Return how many records were copied of those that there are, and how many attachments, if any."""
    added, records = sum(one.added for one in done), sum(one.records for one in done)
    put = len({sha256 for one in done for sha256 in one.attachments})
    with_them = f" and {counted(put, 'attachment')}" if put else ""
    return f"{added:,} of {records:,} records{with_them}"


def folder_of(context: typer.Context) -> Path:
    """Return the folder of the store. Raises: typer.BadParameter: it is in a database."""
    if is_url(context.obj):
        raise typer.BadParameter("the store is in a database, and this is done with a folder")
    return Path(context.obj)
