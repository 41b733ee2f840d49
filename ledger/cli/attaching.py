"""The command for the bytes in a conversation: attachment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ledger.cli.ending import NOT_FOUND, tell
from ledger.cli.output import Id, Json, conversation, say, say_json, write_out
from ledger.cli.stores import Output
from ledger.records.values import REFERENCE
from ledger.turns.attachments import Attachment
from ledger.views.text import attachment_text, printable

_CHUNK = 1 << 20


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(attachment)


def attachment(
    context: typer.Context,
    id: Id,
    name: Annotated[
        str | None,
        typer.Argument(
            help="The attachment: its file name, its SHA-256, or the beginning of that; default: list them.",
            show_default=False,
        ),
    ] = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Write the bytes of an attachment out, or list the attachments of a conversation.

    The bytes are checked as they are read; what is not as it was kept leaves no file.
    Example: turn-ledger attachment alex cat.png -o cat.png
    """
    chat = conversation(context, id)
    if name is None:
        if output is not None:
            raise typer.BadParameter("-o goes with the name of an attachment")
        _list(chat.attachments(), as_json=as_json)
        return
    try:
        found = chat.attachment(name)
    except LookupError as error:
        tell(str(error), "attachment-unknown", as_json=as_json)
        raise typer.Exit(NOT_FOUND) from None
    if output is None and sys.stdout is not None and sys.stdout.isatty():
        raise typer.BadParameter("bytes go into a file or a pipe: -o FILE")
    write_out(_chunks(found), output)
    if as_json and output is not None:
        say_json(_told(found))


def _chunks(found: Attachment) -> Iterator[bytes]:
    with found.open() as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _list(found: list[Attachment], *, as_json: bool) -> None:
    if as_json:
        say_json([_told(each) for each in found])
        return
    for each in found:
        say(printable(f"{each.sha256[:12]}  {attachment_text(each.reference)}"))
    if not found:
        say("no attachments")


def _told(each: Attachment) -> dict[str, Any]:
    told: dict[str, Any] = each.reference[REFERENCE]
    return told
