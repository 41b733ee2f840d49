"""The commands that write conversations out for others: export, rated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.ending import warn
from ledger.cli.output import (
    complete_id,
    conversation,
    leave,
    name_foreign_files,
    named,
    write_out,
    writing_to,
)
from ledger.cli.stores import Output, named_path, store_of, store_told
from ledger.formats import jsonl
from ledger.formats.talks import Pairs
from ledger.sources import exporting
from ledger.sources.parquet import write_parquet
from ledger.sources.rated import rated as rated_rows


class ExportFormat(StrEnum):
    """What `export` can write."""

    json = "json"
    markdown = "markdown"
    openai_chat = "openai-chat"
    anthropic = "anthropic"
    sharegpt = "sharegpt"
    open_webui = "open-webui"
    preferences = "preferences"
    preferences_openai = "preferences-openai"


class ExportBranches(StrEnum):
    """Which branches `export` can write."""

    head = "head"
    all = "all"


class ExportPairs(StrEnum):
    """Which preference pairs `export` can write."""

    all = "all"
    extremes = "extremes"


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (export, rated):
        app.command()(command)


def export(
    context: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Conversations, each by its id or the beginning of it.",
            show_default=False,
            autocompletion=complete_id,
        ),
    ] = None,
    format: Annotated[
        ExportFormat,
        typer.Option(
            "--format", "-f", help="json: complete; markdown: to read; others: for that program."
        ),
    ] = ExportFormat.json,
    branches: Annotated[
        ExportBranches | None,
        typer.Option(
            "--branches", help="The head's alone, or all; formats that hold whole trees take all."
        ),
    ] = None,
    turn: Annotated[
        str | None,
        typer.Option("--turn", help="The branch through this turn instead of the head's."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All conversations of the store, into one file.")
    ] = False,
    pairs: Annotated[
        ExportPairs | None,
        typer.Option(
            "--pairs",
            help="Preferences: any two answers that were rated otherwise, or best and worst alone.",
        ),
    ] = None,
    tools: Annotated[
        Path | None,
        typer.Option(
            "--tools",
            metavar="FILE",
            parser=named_path,
            help="Definitions of tools, a JSON list as the format has them; default: what was called.",
        ),
    ] = None,
    instructions: Annotated[
        str | None,
        typer.Option(
            "--instructions",
            metavar="TEXT",
            help="What the system says in rows in which no instructions are recorded.",
        ),
    ] = None,
    min_rating: Annotated[
        float | None,
        typer.Option("--min-rating", help="Rows end with turns that are rated at least so."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="TEXT",
            help="Rows end with turns that have this label, and each one given, themselves or by "
            "their conversation.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Rows end with turns that this model answered; may be given again.",
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Write conversations out: whole as JSON, to read, for another program, or for training.

    What a format cannot say, and turns without an answer, are left out; how many is told on stderr.
    Example: turn-ledger export --all --format openai-chat --branches all -o train.jsonl
    """
    if bool(ids) == every:
        raise typer.BadParameter("name conversations, or say --all")
    _check(format, branches, turn, pairs, several=every or len(ids or []) > 1)
    chooses = min_rating is not None or bool(label or model)
    if chooses and format.value not in exporting.ROWS:
        raise typer.BadParameter(
            f"--min-rating, --label and --model choose rows; {format.value} is whole conversations"
        )
    if instructions and format in (ExportFormat.json, ExportFormat.markdown):
        raise typer.BadParameter(f"{format.value} has no rows to put --instructions into")
    if every:
        name_foreign_files(store_of(context), as_json=False)
    chats = [conversation(context, id) for id in ids or []]
    made = exporting.export(
        store_of(context) if every else chats[0] if len(chats) == 1 else chats,
        format.value,
        branches="all" if branches is ExportBranches.all else "head",
        turn=None if turn is None else named(chats[0], turn),
        tools=[] if tools is None else _tools(tools),
        pairs=_PAIRS[pairs or ExportPairs.all],
        instructions=instructions or "",
        min_rating=min_rating,
        labels=label or [],
        models=model or [],
    )
    write_out(made, output)
    _tell(made.notes)
    if not made.rows and not made.failed:
        _tell_nothing(_lacking(context, format, made.conversations, chooses=chooses))
    leave(made.failed)


def _lacking(
    context: typer.Context, format: ExportFormat, conversations: int, *, chooses: bool
) -> str:
    """Say why nothing was made."""
    if not conversations:
        return f"no conversations in {store_told(context)}"
    if format.value.startswith("preferences") and not chooses:
        return (
            "no question has two answers that were rated otherwise; `turn-ledger rate` rates them"
        )
    return "no turn fits" if chooses else "no turn has an answer"


def _tell_nothing(why: str) -> None:
    warn(f"nothing to write: {why}", as_json=False)


_PAIRS: dict[ExportPairs, Pairs] = {ExportPairs.all: "all", ExportPairs.extremes: "extremes"}


def _check(
    format: ExportFormat,
    branches: ExportBranches | None,
    turn: str | None,
    pairs: ExportPairs | None,
    *,
    several: bool,
) -> None:
    """Refuse options that do not go together."""
    if format.value in exporting.WHOLE and (turn is not None or branches is ExportBranches.head):
        raise typer.BadParameter(
            "--turn and --branches go with --format markdown, openai-chat, anthropic or sharegpt; "
            f"{format.value} is the whole conversation"
        )
    if turn is not None and branches is ExportBranches.all:
        raise typer.BadParameter("--turn names one branch; --branches all means every one")
    if turn is not None and several:
        raise typer.BadParameter("--turn goes with one conversation")
    if pairs is not None and not format.value.startswith("preferences"):
        raise typer.BadParameter("--pairs is for --format preferences")


def _tools(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path}: {error}") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise typer.BadParameter(f"{path}: definitions of tools are a JSON list of objects")
    return found


def _tell(notes: Counter[str]) -> None:
    """Say on stderr what was left out."""
    for what, count in sorted(notes.items()):
        if count:
            warn(f"{what}: {count:,}", as_json=False)


def rated(
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            parser=named_path,
            help="A new file, .jsonl or .parquet; default: lines on standard output.",
        ),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option("--program", help="Only turns of this program: its name or version."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="Only turns that have this label.")
    ] = None,
    min_rating: Annotated[
        float | None, typer.Option("--min-rating", help="Only turns rated at least so.")
    ] = None,
) -> None:
    """Write every rated turn of the store with what it rests on: inputs, outputs, ratings, what it saw.

    Example: turn-ledger rated --min-rating 0.5 -o rated.parquet
    """
    store = store_of(context)
    name_foreign_files(store, as_json=False)
    rows = _Counted(rated_rows(store, program=program, label=label, min_rating=min_rating))
    if output is None or output.suffix == ".jsonl":
        write_out(map(jsonl.line, rows), output)
    elif output.suffix == ".parquet":
        try:
            with writing_to(output):
                write_parquet(rows, output)
        except ModuleNotFoundError as error:
            raise typer.BadParameter(str(error)) from None
    else:
        raise typer.BadParameter(
            f"{output}: a name that ends in .jsonl or .parquet says what to write"
        )
    if not rows.count:
        fit = any(one is not None for one in (program, label, min_rating))
        _tell_nothing(
            f"no {'rated turn fits' if fit else 'turn is rated'} in {store_told(context)}"
        )


class _Counted:
    """Rows, counted as they are read."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self._rows:
            self.count += 1
            yield row
