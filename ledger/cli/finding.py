"""The commands that ask the whole store: list, search, usage."""

from __future__ import annotations

import re
import textwrap
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Annotated, Any

import typer

from ledger.catalog import Answer, Hit, Listed, Spent, Waiting, of
from ledger.catalog.asked import MOST, zone_of
from ledger.cli.output import (
    Json,
    leave,
    name_foreign_files,
    opened,
    question,
    say,
    say_json,
    whole_id,
    width,
)
from ledger.cli.stores import own_store_of, store_told
from ledger.records import times
from ledger.views.text import one_line, printable

Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME", help="That this model answered; may be given again."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="TEXT", help="Of conversations with this label, and each one given."
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--in",
        metavar="ID",
        help="Only in this conversation; may be given again.",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="WHEN", help="A date, an RFC 3339 time, or how long ago: 7d, 24h, 30m."
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="As --since; that day included.")
]

_AGO = re.compile(r"([0-9]{1,6})([wdhm])")
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}


class State(StrEnum):
    """What a turn can be doing."""

    done = "done"
    failed = "failed"
    stopped = "stopped"
    abandoned = "abandoned"
    waiting = "waiting"
    running = "running"
    interrupted = "interrupted"


class By(StrEnum):
    """What usage is summed by."""

    model = "model"
    day = "day"
    month = "month"
    conversation = "conversation"
    label = "label"


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("list")(list_)
    for command in (search, usage):
        app.command()(command)


def when(text: str | None, zone: tzinfo = UTC, *, end: bool = False) -> datetime | None:
    """Return the moment that a text names. Args: end: of a date the end of that day, else its beginning.

    Raises: typer.BadParameter.
    """
    if text is None:
        return None
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(text)
        if len(text) == len("2026-01-31"):
            found = found.replace(tzinfo=zone) + timedelta(days=end, microseconds=-int(end))
        if found.tzinfo is not None:
            return found.astimezone(UTC)
        reason = f"{text!r} has no zone; append Z, or +01:00"
    except (ValueError, OverflowError):
        reason = f"{text!r} is no date (2026-01-31), no time (2026-01-31T12:00:00Z), and not 7d, 24h or 30m"
    raise typer.BadParameter(reason)


# -- list ----------------------------------------------------------------------------------------------


def list_(
    context: typer.Context,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="What waits for an answer: turns and their questions.")
    ] = False,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Whose title has this in it.")
    ] = None,
    state: Annotated[
        list[State] | None,
        typer.Option("--state", help="With a turn in this state, or in one of these."),
    ] = None,
    model: Models = None,
    label: Labels = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, max=MOST, help="At most so many.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the conversations: id, turns, heads, last activity, title, labels; the newest first.

    In place of a title that nobody gave, after `>`, stands what was asked first.
    --waiting lists the questions instead, the oldest first: answer with approve or deny.
    Example: turn-ledger list --state failed --since 7d
    """
    store = own_store_of(context)
    name_foreign_files(store, as_json=as_json)
    catalog = of(store)
    found = catalog.conversations(
        title,
        states=["waiting"] if waiting else [str(each) for each in state or []],
        models=model or [],
        labels=label or [],
        since=when(since),
        until=when(until, end=True),
        limit=None if waiting else limit,
    )
    if waiting:
        if state:
            raise typer.BadParameter("--waiting says the state; leave --state out")
        ids = {row.id for row in found}
        asked = [each for each in catalog.waiting() if each.conversation in ids]
        _say_waiting(asked[:limit], as_json=as_json)
    elif as_json:
        say_json([_row(row) for row in found])
    elif found:
        _say_table(found)
    else:
        narrowed = any((title, state, model, label, since, until))
        say(printable(f"no conversations{' fit' if narrowed else ''} in {store_told(context)}"))
    for row in found:
        if row.unreadable:
            _ = opened(context, row.id).head  # Reading warns of damage, in its own words.
    leave(found.failed, as_json=as_json)


def _say_table(rows: Answer[Listed]) -> None:
    longest = min(36, max(len(row.id) for row in rows))
    say(f"{'id':<{longest}}  turns  heads  last        title")
    for row in rows:
        last = (times.told(row.last) or "")[:10]
        line = f"{row.id:<{longest}}  {row.turns:>5}  {row.heads:>5}  {last:<10}  "
        say((line + _named(row, max(10, width() - len(line)))).rstrip())
    if rows.after is not None:
        say("and more; --limit shows them")


def _named(row: Listed, room: int) -> str:
    """Return a title and labels as far as there is room; of one without a title what was asked first, after `>`."""
    labels = "  ".join(f"#{label}" for label in row.labels)
    title = row.title or ""
    if not title.strip() and row.preview:
        title = "> " + one_line(row.preview, max(10, room - 2 - len(labels) - 2 * bool(labels)))
    return one_line("  ".join([title, labels]).strip(), room)


def _row(row: Listed) -> dict[str, Any]:
    return {
        "id": row.id,
        "title": row.title,
        "preview": row.preview,
        "labels": row.labels,
        "turns": row.turns,
        "heads": row.heads,
        "states": row.states,
        "models": row.models,
        "usage": row.usage,
        "first": times.told(row.first),
        "last": times.told(row.last),
        "head": row.head,
        "source": row.source,
    }


def _say_waiting(found: list[Waiting], *, as_json: bool) -> None:
    if as_json:
        say_json([{**_fields(each), "since": times.told(each.since)} for each in found])
        return
    for each in found:
        since = f"  since {each.since:%Y-%m-%d %H:%M}" if each.since else ""
        heading = f"{each.conversation} {each.ordinal}  {each.turn}{since}"
        told = [_headed(heading, each.title)]
        told += [line for asked in each.questions for line in question(asked, each.questions)]
        if not each.questions:
            told.append(f"  all is answered: turn-ledger resume {each.conversation} {each.ordinal}")
        say("\n".join(printable(line, lines=True) for line in told))
    if not found:
        say("nothing waits for an answer")


# -- search --------------------------------------------------------------------------------------------


def search(
    context: typer.Context,
    query: Annotated[
        str,
        typer.Argument(
            help='Words, "words in this order", beg* for what begins so; all have to be there.',
            show_default=False,
        ),
    ],
    conversation: Only = None,
    label: Labels = None,
    model: Models = None,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST, help="At most so many.")] = 20,
    as_json: Json = False,
) -> None:
    """Search everything that was ever asked and answered, and titles and labels; the best first.

    Example: turn-ledger search 'parcel "in the rain"' --since 30d
    """
    store = own_store_of(context)
    found = of(store).search(
        query,
        conversation=_only(store, conversation),
        labels=label or [],
        models=model or [],
        since=when(since),
        limit=limit,
    )
    if as_json:
        say_json([{**_fields(hit), "at": times.told(hit.at)} for hit in found])
    else:
        for hit in found:
            say(_hit_text(hit))
        if not found:
            why = "" if any(map(str.isalnum, query)) else ": there is no word in it"
            say(printable(f"nothing found for {query!r} in {store_told(context)}{why}"))
    leave(found.failed, as_json=as_json)


def _hit_text(hit: Hit) -> str:
    parts = [hit.conversation + ("" if hit.ordinal is None else f" {hit.ordinal}")]
    parts += [f"({hit.model})"] if hit.model else []
    parts += [f"{hit.at:%Y-%m-%d %H:%M}"] if hit.at else []
    snippet = one_line(hit.marked(), max(20, width() - 3))
    return f"{_headed('  '.join(parts), hit.title)}\n   {snippet}"


# -- usage ---------------------------------------------------------------------------------------------


def usage(
    context: typer.Context,
    by: Annotated[By, typer.Option("--by", help="What it is summed by.")] = By.model,
    conversation: Only = None,
    label: Labels = None,
    since: Since = None,
    until: Until = None,
    timezone: Annotated[
        str, typer.Option("--timezone", metavar="NAME", help="Whose days: Europe/Berlin.")
    ] = "UTC",
    as_json: Json = False,
) -> None:
    """Sum what turns used, in tokens: each turn once, however often it was copied or imported.

    Example: turn-ledger usage --by day --since 30d
    """
    try:
        zone = zone_of(timezone)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    first, last = when(since, zone), when(until, zone, end=True)
    store = own_store_of(context)
    found = of(store).usage(
        by.value,
        conversation=_only(store, conversation),
        labels=label or [],
        since=first,
        until=last,
        timezone=zone,
    )
    if as_json:
        say_json(
            [{by.value: each.key, "turns": each.turns, "tokens": each.tokens} for each in found]
        )
    elif found:
        _say_usage(found, by.value)
    else:
        say(printable(f"no turns in {store_told(context)}"))
    leave(found.failed, as_json=as_json)


_UNNAMED = {By.label.value: "no label", By.day.value: "no date", By.month.value: "no date"}
"""What turns are of that have no key."""


def _say_usage(found: Answer[Spent], by: str) -> None:
    named = sorted({kind for each in found for kind in each.tokens})
    total = {kind: sum(each.tokens.get(kind, 0) for each in found) for kind in named}
    kinds = [kind for kind in named if total[kind]]
    rows = [(each.key or _UNNAMED.get(by, "not known"), each.turns, each.tokens) for each in found]
    if by != By.label:  # A turn counts for each of its labels.
        rows.append(("together", sum(each.turns for each in found), total))
    table = [[by, "turns", *(one_line(kind, 30) for kind in kinds)]]
    table += [
        [one_line(name, 40), f"{turns:,}", *(f"{tokens.get(kind, 0):,}" for kind in kinds)]
        for name, turns, tokens in rows
    ]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    if sum(widths) + 2 * len(kinds) + 2 > width():
        _say_stacked(table)
        return
    for name, *numbers in table:
        told = [f"{text:>{wide}}" for text, wide in zip(numbers, widths[1:], strict=True)]
        say("  ".join([f"{name:<{widths[0]}}", *told]).rstrip())


def _say_stacked(table: list[list[str]]) -> None:
    """Say a table that is wider than the terminal: of each row, below its name, what is not 0."""
    (_, _, *kinds), *rows = table
    for name, count, *numbers in rows:
        say(f"{name}  {count} {'turn' if count == '1' else 'turns'}")
        told = [f"{kind}\xa0{n}" for kind, n in zip(kinds, numbers, strict=True) if n != "0"]
        for line in textwrap.wrap(" · ".join(told), max(20, width() - 2)):
            say("  " + line.replace("\xa0", " "))


# -- shared --------------------------------------------------------------------------------------------


def _only(store: Any, ids: list[str] | None) -> list[str] | None:
    """Return the ids that are meant, each given whole or by its beginning; None: all are."""
    return [whole_id(store, id) for id in ids] if ids else None


def _headed(heading: str, title: str | None) -> str:
    """Return a line that begins with what names something, and ends with a title as far as there is room."""
    told = one_line(title or "", max(10, width() - len(heading) - 2))
    return f"{printable(heading)}  {told}".rstrip()


def _fields(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}
