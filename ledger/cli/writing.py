"""The commands that write: import, add, merge, head, repair."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ledger import merging
from ledger.cli.copying import folder_of
from ledger.cli.ending import DAMAGE, tell
from ledger.cli.output import (
    Id,
    Json,
    WholeId,
    conversation,
    named,
    opened,
    read_text,
    report_text,
    say,
    say_json,
    turn_text,
    whole_id,
)
from ledger.cli.progress import Progress
from ledger.cli.stores import named_path, named_store, new_store_of, opened_store, store_at
from ledger.conversation import Conversation
from ledger.errors import ImportInvalid
from ledger.formats.base import Report
from ledger.records import healing, messages
from ledger.sources.belonging import belonging
from ledger.sources.copying import place_of
from ledger.sources.exporting import log_of
from ledger.sources.importing import import_conversations
from ledger.stores.repairing import Repaired
from ledger.stores.resolve import is_url
from ledger.turn import Turn
from ledger.turns.attachments import Attachment
from ledger.views.text import printable


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("import")(import_)
    for command in (add, merge, head, repair):
        app.command()(command)


def import_(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            parser=named_path,
            help="Files, zip files or folders.",
            show_default=False,
        ),
    ],
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix",
            metavar="TEXT",
            help="What ids of conversations begin with, as ann. for all that is Ann's.",
            show_default=False,
        ),
    ] = "",
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="TEXT", help="Put on what gains a turn; may be given again."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Import conversations: a file, zip or folder of a known program, or our own JSON.

    Formats are found by looking. Importing again adds only what is new; nothing is overwritten.
    All that can be imported is; then exit code 6 says that a path was not there, or held nothing.
    Example: turn-ledger import chatgpt-export.zip
    """
    shown = Progress(None if as_json else sys.stderr)
    try:
        belonging(prefix, label or [])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        report = import_conversations(
            paths,
            store=new_store_of(context),
            prefix=prefix,
            labels=label or [],
            progress=shown.show,
        )
    except ImportInvalid as error:
        shown.end()
        if error.report is not None and error.report.found:
            _say_report(error.report, as_json=as_json)
        raise
    finally:
        shown.end()
    _say_report(report, as_json=as_json)


def _say_report(report: Report, *, as_json: bool) -> None:
    if as_json:
        say_json(report.to_dict())
    else:
        say(printable(str(report), lines=True))


def add(
    context: typer.Context,
    id: WholeId,
    message: Annotated[str, typer.Argument(help="What was asked; - reads standard input.")],
    result: Annotated[str, typer.Argument(help="What was answered; - reads standard input.")],
    parent: Annotated[
        str | None, typer.Option("--parent", help="The turn it continues; default: the head.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Who answered.")] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option(
            "--attach",
            metavar="FILE",
            parser=named_path,
            help="A file that was asked about; its bytes are kept. May be given again.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Record a turn made elsewhere; a new id begins a new conversation.

    Example: turn-ledger add alex "What is 1/2 + 1/3?" "5/6"
    """
    if message == result == "-":
        raise typer.BadParameter("only one of the two can be standard input")
    chat = opened(context, id)
    asked, answered = read_text(message), read_text(result)
    after = ... if parent is None else named(chat, parent)
    exchange = _with_files(asked, answered, attach) if attach else None
    try:
        turn = chat.record(asked, answered, parent=after, model=model, messages=exchange)
    except OSError as error:
        raise typer.BadParameter(f"{error.filename}: {error.strerror}") from None
    say_json(turn.to_dict(saw=True)) if as_json else say(turn_text(turn))


def _with_files(asked: str, answered: str, files: list[Path]) -> list[dict[str, Any]]:
    """Return the messages of a turn about files."""
    question = messages.text("user", asked)
    question["parts"] += [Attachment(path=path).part() for path in files]
    return [question, messages.text("assistant", answered)]


def merge(
    context: typer.Context,
    id: Id,
    turns: Annotated[list[str], typer.Argument(help="The turns to merge.", show_default=False)],
    pick: Annotated[str | None, typer.Option("--pick", help="Keep the answer of this one.")] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="The merged answer; - reads standard input.")
    ] = None,
    majority: Annotated[
        bool, typer.Option("--majority", help="Keep the answer that most of them gave.")
    ] = False,
    field: Annotated[
        str | None,
        typer.Option("--field", metavar="NAME", help="With --majority: compare this output alone."),
    ] = None,
    three_way: Annotated[
        bool,
        typer.Option(
            "--three-way", help="Put together what each changed since they parted, field by field."
        ),
    ] = False,
    onto: Annotated[
        str | None, typer.Option("--onto", help="The turn it lands on; default: where they fork.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make one turn from several competing answers: keep one, give the text, or put them together.

    Turns that still run are waited for.
    Example: turn-ledger merge alex 2 3 --pick 3
    """
    if [pick is not None, text is not None, majority, three_way].count(True) != 1:
        raise typer.BadParameter("give one of --pick TURN, --text TEXT, --majority and --three-way")
    if field is not None and not majority:
        raise typer.BadParameter("--field is for --majority")
    chat = conversation(context, id)
    merged = [named(chat, turn) for turn in turns]
    if len(set(merged)) != len(merged):
        raise typer.BadParameter("a turn is named twice")
    by: Callable[..., Any]
    if majority:
        by = merging.majority(field=field)
    elif three_way:
        by = merging.three_way()
    else:
        by = _by(chat, merged, pick, text or "")
    landing = ... if onto is None else named(chat, onto)
    try:
        turn = chat.merge(merged, by, onto=landing)
    except ValueError as error:  # The answers are tied, or in conflict.
        tell(f"{error}; here --pick TURN keeps one", "merge", as_json=as_json)
        raise typer.Exit(4) from None
    say_json(turn.to_dict(saw=True)) if as_json else say(turn_text(turn))


def _by(
    chat: Conversation, merged: list[Turn], pick: str | None, text: str
) -> merging.pick | merging.text:
    if pick is None:
        return merging.text(read_text(text))
    chosen = named(chat, pick)
    if chosen not in merged:
        raise typer.BadParameter(f"--pick {pick} is not one of the merged turns")
    return merging.pick(chosen)


def head(
    context: typer.Context,
    id: Id,
    turn: Annotated[
        str | None, typer.Argument(help="Make this turn the head, for everyone.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the head of a conversation, or move it.

    Example: turn-ledger head alex 3
    """
    chat = conversation(context, id)
    if turn is not None:
        chat.head = named(chat, turn)
    found = chat.head
    if as_json:
        say_json(found.to_dict(saw=True) if found else None)
    else:
        say(turn_text(found) if found else "no turns yet")


def repair(
    context: typer.Context,
    id: Id,
    copy: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="COPY",
            help="Its log from a backup, an export of it as JSON, or a store: a folder, or the URL of a database.",
            show_default=False,
        ),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Put back what the last repair did.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
    as_json: Json = False,
) -> None:
    """Mend a damaged log, as far as it can be proven; what it replaced is kept.

    A seal that was altered is put right by itself; other damage, and lines that are lost, need a copy that has them.
    Exit code 8 says that damage is left.
    Example: turn-ledger repair alex --from backup/conversations/alex.jsonl
    """
    if undo and (copy is not None or dry_run):
        raise typer.BadParameter("--undo goes alone")
    store = store_at(folder_of(context))
    name = whole_id(store, id)
    if undo:
        done = store.undo_repair(name)
    else:
        done = store.repair(
            name, copy=None if copy is None else _copy(named_store(copy), name), really=not dry_run
        )
    if as_json:
        say_json({**_without_bytes(done), "damaged": done.report.damaged})
    else:
        say(printable(_repaired_text(done, undo=undo, dry_run=dry_run), lines=True))
    if done.report.damaged:
        raise typer.Exit(DAMAGE)


def _copy(named: Path | str, conversation: str) -> bytes:
    """Return the log of a conversation that a file holds, or a store."""
    source = place_of(opened_store(named)) if is_url(named) else str(named)
    try:
        if isinstance(named, str) or stat.S_ISDIR(found := named.stat().st_mode):
            held: bytes = opened_store(named).raw(conversation)
            if not held:
                give = f"give its log, {conversation}.jsonl, an export of it as JSON, or a store that holds it"
                raise ImportInvalid(
                    source=source, reason=f"the store there holds no {conversation}; {give}"
                )
            return held
        if not stat.S_ISREG(found):
            raise ImportInvalid(source=source, reason="it is neither a file nor a folder")
        return log_of(named.read_bytes(), conversation, source=source)
    except OSError as error:
        raise ImportInvalid(source=source, reason=error.strerror or str(error)) from error
    except MemoryError as error:
        raise ImportInvalid(source=source, reason="it does not fit into memory") from error


def _without_bytes(done: Repaired) -> dict[str, Any]:
    changes = [
        {
            "offset": c.offset,
            "size_bytes": len(c.after),
            "in_place_of_bytes": len(c.before),
            "why": c.why,
        }
        for c in done.changes
    ]
    report = msgspec.to_builtins(done.report)
    return {
        "conversation": done.conversation,
        "changes": changes,
        "record": done.record,
        "report": report,
        "left": msgspec.to_builtins(done.left),
        "further": done.further,
    }


_LEFT = {
    "alone": "it takes a copy: --from a log of a backup, an export as JSON, or a store",
    "other": "the copy has no line of this log; is it one of this conversation?",
    "before": "the copy lacks the line before it; another copy may have it",
    "older": "the copy ends before this does, so nothing proves what stood here; a newer copy may",
    "damaged": "the copy is damaged there too; another copy may not be",
    "after": "no line behind it proves what stood here, or one was appended on the damage",
    "forgotten": "something stands here that forgetting leaves, and the copy has none of it",
}
_LISTED = 10
_INSTEAD = "  the rest of it can be read; `import` of an export of a copy adds turns that are lost, at the end"


def _size(change: healing.Change) -> str:
    size = f"{len(change.after)} bytes"
    return f"{size} in place of {len(change.before)}" if change.grows_by else size


def _repaired_text(done: Repaired, *, undo: bool, dry_run: bool) -> str:
    what = "put back" if undo else "would mend" if dry_run else "mended"
    by = {"chain": "by its own seals", "copy": "from the copy", "forgotten": "as forgotten"}
    lines = [
        f"  {what}: {_size(change)} at byte {change.offset}"
        + ("" if undo else f", {by.get(change.why, change.why)}")
        for change in done.changes
    ]
    if not lines:
        lines = ["  no repair to undo" if undo else "  nothing that can be mended"] * (
            undo or done.report.damaged
        )
    if done.record is not None:
        lines.append(f"  the bytes that stood there are kept in {done.record}")
    lines += [
        f"  left: {left.size_bytes} bytes at byte {left.offset}: {_LEFT[left.why]}"
        for left in done.left[:_LISTED]
    ]
    if len(done.left) > _LISTED:
        lines.append(f"  and {len(done.left) - _LISTED} more")
    if any(left.why != "alone" for left in done.left):
        lines.append(_INSTEAD)
    if done.further:
        records = "1 record" if done.further == 1 else f"{done.further} records"
        lines.append(
            f"  behind the end, the copy has {records} more; `import` of an export of it adds them"
        )
    now = report_text(done.report)
    return "\n".join([f"{done.conversation}:", *lines, now] if lines else [now])
