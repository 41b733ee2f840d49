"""The commands that read: tree, log, show, lineage, heads, verify, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ledger.cli.copying import folder_of
from ledger.cli.ending import DAMAGE
from ledger.cli.output import (
    Id,
    Json,
    TurnName,
    conversation,
    heading,
    name_foreign_files,
    named,
    of_each,
    report_text,
    say,
    say_json,
    shown_text,
    turn_text,
    width,
)
from ledger.cli.stores import named_path, store_of, store_told
from ledger.stores.doctor import examine
from ledger.stores.verify import Report
from ledger.turn import Turn
from ledger.turns.attachments import plain
from ledger.views.text import one_line, printable, value_text


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (tree, log, show, lineage, heads, verify, doctor):
        app.command()(command)


def tree(
    context: typer.Context,
    id: Id,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print a flowchart for Markdown that draws Mermaid.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Draw a conversation: every turn of every branch, states, models, merges, ratings, labels, the head.

    Example: turn-ledger tree alex
    """
    if mermaid and as_json:
        raise typer.BadParameter("--mermaid is text; leave --json out")
    chat = conversation(context, id)
    if as_json:
        head = chat.head
        say_json(
            {
                "id": chat.id,
                "title": chat.title,
                "labels": chat.labels,
                "head": head.id if head else None,
                "heads": [turn.id for turn in chat.heads()],
                "turns": [_brief(turn) for turn in chat.all_turns()],
            }
        )
        return
    drawn = chat.tree(width=width())
    say(drawn.mermaid() if mermaid else str(drawn))


def _brief(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "ordinal": turn.ordinal,
        "parent": turn.parent.id if turn.parent else None,
        "state": turn.state,
        "erased": turn.erased,
        "model": turn.model,
        "reads": [read.id for read in turn.reads],
        "ratings": [rating.to_dict() for rating in turn.ratings],
        "labels": turn.labels,
    }


def log(
    context: typer.Context,
    id: Id,
    turn: Annotated[
        str | None, typer.Option("--turn", help="Another branch: the one through this turn.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", "-n", min=1, help="Only the last N.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a branch in full, from its first turn to the head.

    What each turn saw is told by `show --json` and `lineage`.
    Example: turn-ledger log alex --last 3
    """
    chat = conversation(context, id)
    view = chat if turn is None else chat.continue_from(named(chat, turn))
    turns = _last(view.head, last) if last else view.turns
    if as_json:
        say_json([t.to_dict(saw=False) for t in turns])
        return
    begun_anew = f"begun anew; `turn-ledger tree {chat.id}` shows the turns before"
    empty = begun_anew if not turns and chat.all_turns() else "no turns yet"
    say("\n\n".join(turn_text(t) for t in turns) or empty)


def _last(turn: Turn | None, count: int) -> list[Turn]:
    """Return the last turns of a branch, the last one last. The others are not read."""
    found: list[Turn] = []
    while turn is not None and len(found) < count:
        found.append(turn)
        turn = turn.parent
    return found[::-1]


def show(
    context: typer.Context,
    id: Id,
    turn: TurnName,
    shown: Annotated[
        bool, typer.Option("--shown", help="With all that it was shown of earlier turns.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print all that is known of one turn.

    Example: turn-ledger show alex 3
    """
    found = named(conversation(context, id), turn)
    if as_json:
        say_json({**found.to_dict(saw=True), **({"shown": found.shown} if shown else {})})
        return
    told = shown_text(found) if shown else []
    say("\n".join([turn_text(found, whole=True), *told]))


def lineage(context: typer.Context, id: Id, turn: TurnName, as_json: Json = False) -> None:
    """Explain what a turn's answer rests on, and what it influenced.

    Example: turn-ledger lineage alex 7
    """
    chat = conversation(context, id)
    found = chat.lineage(named(chat, turn))
    if as_json:
        say_json(found.to_dict())
        return
    say(printable(found.explain(), lines=True))


def heads(context: typer.Context, id: Id, as_json: Json = False) -> None:
    """List the ends of the branches, newest first.

    Example: turn-ledger heads alex
    """
    found = conversation(context, id).heads()
    if as_json:
        say_json([_brief(turn) for turn in found])
        return
    for turn in found:
        say(printable(heading(turn)))
        asked = " ".join(value_text(plain(value)) for value in turn.inputs.values())
        say("   " + one_line(asked, width() - 3))


def verify(
    context: typer.Context,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Default: all of the store.")
    ] = None,
    attachments: Annotated[
        bool,
        typer.Option("--attachments/--no-attachments", help="Read every attachment, too."),
    ] = True,
    as_json: Json = False,
) -> None:
    """Check the seals of logs, line by line, and all attachments; name what is not as it was written.

    This finds accidents. Somebody who can write the files can also write new seals.
    Example: turn-ledger verify
    """
    store = store_of(context)
    named = [conversation(context, name).id for name in ids or []]
    if not ids:
        name_foreign_files(store, as_json=as_json)
    verdicts: dict[str, str] = {}

    def check(name: str) -> Report:
        report: Report = store.verify(name)
        return report.check_attachments(store.blobs, verdicts) if attachments else report

    reports, code = of_each(named or store.conversations(), check, as_json=as_json)
    if as_json:
        say_json([msgspec.to_builtins(report) for report in reports])
    else:
        for report in reports:
            say(printable(report_text(report), lines=True))
        if not reports and not code:
            say(printable(f"no conversations in {store_told(context)}"))
    if code:
        raise typer.Exit(code)
    if any(report.damaged for report in reports):
        raise typer.Exit(DAMAGE)


def doctor(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            parser=named_path,
            help="Default: the folder of the store.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try whether a file system keeps what a store relies on: locks, flushes, shared appends.

    Example: turn-ledger doctor /mnt/shared/chats
    """
    found = examine(folder if folder is not None else folder_of(context))
    if as_json:
        say_json({**msgspec.to_builtins(found), "ok": found.ok})
    else:
        kind = f" ({found.file_system})" if found.file_system else ""
        say(printable(f"{found.folder}{kind}: {'yes, it is fit' if found.ok else 'NO'}"))
        for check in found.checks:
            say(
                f"  {'ok ' if check.ok else 'NO '} {check.what}{': ' * bool(check.detail)}{printable(check.detail)}"
            )
        for warning in found.warnings:
            say(f"  note: {printable(warning)}")
    if not found.ok:
        raise typer.Exit(5)
