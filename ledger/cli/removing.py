"""The commands that remove: forget and delete, which ask first, and sweep."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer

from ledger.cli.output import (
    Id,
    Json,
    TurnName,
    WholeId,
    conversation,
    heading,
    named,
    say,
    say_json,
)
from ledger.cli.stores import store_of
from ledger.errors import ConversationUnknown
from ledger.sources.copying import place_of
from ledger.stores.base import Deleted
from ledger.views.text import printable

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

NOT_PROMISED = [
    "Backups, copies, exports, and the memory of processes that read it are not changed.",
    "Importing one of them, or what it was imported from, brings it back, turns forgotten in it included.",
]
"""What may still hold a conversation that was deleted, and bring it back."""
REFUSED = 4
"""The exit code of who is asked and does not agree."""


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (forget, delete, sweep):
        app.command()(command)


def forget(
    context: typer.Context, id: Id, turn: TurnName, yes: Yes = False, as_json: Json = False
) -> None:
    """Take out what a turn said, for good; its place in the tree stays.

    Prints what went, and what nobody can promise. This cannot be undone.
    Example: turn-ledger forget alex 3
    """
    chat = conversation(context, id)
    found = named(chat, turn)
    _agree(f"forget what turn {heading(found)} of {chat.id} said", yes)
    receipt = chat.forget(found)
    if as_json:
        say_json(receipt.to_dict() | {"not_promised": receipt.not_promised})
    else:
        say(printable(str(receipt), lines=True))


def delete(context: typer.Context, id: WholeId, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a conversation with all its turns, and the attachments that only it names.

    This cannot be undone. But importing it again brings it back, with turns that were forgotten in it:
    what was deleted is not remembered.
    Example: turn-ledger delete alex
    """
    store = store_of(context)
    there = bool(store.read(id))
    if there:
        _agree(f"delete conversation {id}", yes)
    report = store.delete(id)
    if not there and not report:
        begin = [name for name in store.conversations() if name.startswith(id)]
        meant = begin[0] if len(begin) == 1 else None
        raise ConversationUnknown(
            conversation=id, where=place_of(store), like=len(begin), meant=meant
        )
    if as_json:
        say_json({**msgspec.to_builtins(report), "not_promised": NOT_PROMISED})
    else:
        say(printable(_text(report), lines=True))


def sweep(
    context: typer.Context,
    older_than: Annotated[
        float,
        typer.Option(
            "--older-than", metavar="HOURS", help="Leave what was put since alone.", min=0
        ),
    ] = 24.0,
    as_json: Json = False,
) -> None:
    """Remove attachments that no conversation names: what refused sends and processes that died left.

    What a log names is never removed.
    Example: turn-ledger sweep
    """
    removed = store_of(context).sweep(older_than_s=older_than * 3600)
    if as_json:
        say_json({"removed": removed})
        return
    for sha256 in removed:
        say(sha256)
    if not removed:
        say("nothing to remove")


def _agree(what: str, yes: bool) -> None:
    """Go on if the person agrees, else leave."""
    if yes:
        return
    print(printable(f"{what}? This cannot be undone. [y/N] "), end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip().lower()
    if answer not in ("y", "yes"):
        print("turn-ledger: nothing was changed; --yes does it without asking", file=sys.stderr)
        raise typer.Exit(REFUSED)


def _text(report: Deleted) -> str:
    lines = [f"conversation {report.conversation} is deleted"]
    lines += [f"  file: {name}" for name in report.files]
    lines += [f"  attachment: {sha256}" for sha256 in report.attachments]
    lines += [f"  stays, named elsewhere: {sha256}" for sha256 in report.attachments_kept]
    return "\n".join([*lines, "not promised:", *(f"  {told}" for told in NOT_PROMISED)])
