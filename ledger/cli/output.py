"""What the command line prints: JSON for programs, printable text for people."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ledger.cli.ending import fail, warn, writing
from ledger.cli.stores import default_store, named_store, new_store_of, opened_store, store_of
from ledger.conversation import Conversation
from ledger.errors import (
    ConversationUnknown,
    LedgerError,
    TurnUnknown,
)
from ledger.opening import open as open_conversation
from ledger.records import times, values
from ledger.sources.copying import place_of
from ledger.sources.new_file import new_file
from ledger.stores.folder import FolderStore
from ledger.stores.verify import Report
from ledger.turn import Turn
from ledger.turns.attachments import plain
from ledger.turns.view import SHORTEST_PART
from ledger.views import ratings
from ledger.views.text import (
    attachment_text,
    error_text,
    one_line,
    printable,
    value_text,
    without_text,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
TurnName = Annotated[
    str,
    typer.Argument(help="A turn: its number, its id, or a part of its id.", show_default=False),
]
MaybeTurn = Annotated[
    str | None,
    typer.Argument(
        help="A turn: its number, its id, or a part of its id; default: the head.",
        show_default=False,
    ),
]

T = TypeVar("T")


def opened(context: typer.Context, id: str) -> Conversation:
    """Open a conversation, new or not."""
    return open_conversation(id, store=new_store_of(context))


def conversation(context: typer.Context, id: str) -> Conversation:
    """Open a conversation that must be there, by its id or the beginning of it that only it has.

    Raises: conversation-unknown.
    """
    store = store_of(context)
    return open_conversation(whole_id(store, id), store=store)


def whole_id(store: Any, id: str) -> str:
    """Return the id of a conversation that must be there, given it or a beginning only it has.

    Raises: conversation-unknown.
    """
    if store.read_end(id):
        return id
    begin: list[str] = [name for name in store.conversations() if name.startswith(id)]
    if len(begin) != 1:
        raise ConversationUnknown(conversation=id, where=place_of(store), like=len(begin))
    return begin[0]


def complete_id(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of the store that begin so, for the shell's completion."""
    try:
        named = context.find_root().params.get("store")
        store = opened_store(named_store(named) if named else default_store())
        return [name for name in store.conversations() if name.startswith(incomplete)]
    except (LedgerError, typer.BadParameter):
        return []


Id = Annotated[
    str,
    typer.Argument(
        help="The conversation's id, or the beginning of it.",
        show_default=False,
        autocompletion=complete_id,
    ),
]
WholeId = Annotated[
    str,
    typer.Argument(
        help="The conversation's whole id.", show_default=False, autocompletion=complete_id
    ),
]


def of_each(names: list[str], work: Callable[[str], T], *, as_json: bool) -> tuple[list[T], int]:
    """Do something with each conversation; one that fails is told on stderr and hides no other.

    Returns: what came of the others, and the exit code of the last that failed, or 0.
    """
    done, code = [], 0
    for name in names:
        try:
            done.append(work(name))
        except LedgerError as error:
            code = fail(error, as_json=as_json, of=name)
    return done, code


def leave(failed: Mapping[str, LedgerError], *, as_json: bool = False) -> None:
    """Tell of the conversations that could not be read, and leave with the code of the last of them, if any."""
    code = 0
    for name, error in failed.items():
        code = fail(error, as_json=as_json, of=name)
    if code:
        raise typer.Exit(code)


def name_foreign_files(store: Any, *, as_json: bool) -> None:
    """Say on stderr what in the folder belongs to no conversation."""
    for name in store.foreign_files() if isinstance(store, FolderStore) else ():
        warn(f"passed over {name!r}: it belongs to no conversation", as_json=as_json)


def named(chat: Conversation, turn: str) -> Turn:
    """Return the turn a person names: a number is an ordinal, anything else an id or part of one."""
    if turn.isascii() and turn.isdigit() and len(turn) < SHORTEST_PART * 2:
        return chat.turn(int(turn))
    return chat.turn(turn)


def named_or_head(chat: Conversation, turn: str | None) -> Turn:
    """Return the turn a person names, or the head. Raises: turn-unknown."""
    found = chat.head if turn is None else named(chat, turn)
    if found is None:
        raise TurnUnknown(
            conversation=chat.id, turn="head", reason="is none: no turns yet, or begun anew"
        )
    return found


def width() -> int:
    """Return how many columns there are; 80 where nobody says."""
    return shutil.get_terminal_size((80, 24)).columns


def say(text: str) -> None:
    """Print text for people."""
    with writing():
        sys.stdout.write(text + "\n")


def say_now(text: str) -> None:
    """Print text as it is, at once: what is said is not held back for more to come."""
    with writing():
        sys.stdout.write(text)
        sys.stdout.flush()


def say_json(value: Any) -> None:
    """Print a value as JSON, its attachments as references."""
    say(json.dumps(plain(value), indent=2, ensure_ascii=True))


def turn_text(turn: Turn, *, whole: bool = False) -> str:
    """Return a turn for a person: a heading, what was asked, what was answered."""
    lines = [heading(turn), *asked(turn)]
    if turn.state == "done":
        for name, value in turn.outputs.items():
            lines += block(answer_mark(name), value)
        lines += _beside(turn)
    elif turn.partial:
        lines += block("<… ", turn.partial)
    if turn.error:
        lines += block("! ", error_text(turn.error))
    lines += needs(turn)
    if whole:
        lines += [*_took(turn), *_facts(turn)]
    return "\n".join(printable(line, lines=True) for line in lines)


def shown_text(turn: Turn) -> list[str]:
    """Return the lines of what a turn was shown: its earlier turns' fields, as it had them, numbered."""
    rows = turn.shown
    lines = [
        line
        for number, row in enumerate(rows, 1)
        for name, value in row.items()
        for line in block(f"  {number} {name}: ", value)
    ]
    return [printable(line, lines=True) for line in ["  was shown:", *lines] if rows]


def asked(turn: Turn) -> list[str]:
    """Return the lines of what was asked."""
    return [
        line
        for name, value in turn.inputs.items()
        for line in block("> " if name == "message" else f"{name} > ", value)
    ]


def _beside(turn: Turn) -> list[str]:
    """Return the lines of the attachments that stand in a turn's messages alone."""
    shown = {r[values.REFERENCE]["sha256"] for r in _references([turn.inputs, turn.outputs])}
    beside = {r[values.REFERENCE]["sha256"]: r for r in _references(turn.messages)}
    return [
        f"  attachment: {attachment_text(reference)}"
        for sha256, reference in beside.items()
        if sha256 not in shown
    ]


def _references(value: Any) -> list[dict[str, Any]]:
    return list(values.references_in(plain(value)))


def needs(turn: Turn) -> list[str]:
    """Return the lines of what a turn needs a person for: open questions, tools that may have run."""
    questions, tools = turn.waiting, may_have_run(turn)
    ever = turn.questions if questions else []
    asked = [line for q in questions for line in question(q, ever)]
    ran = [line for tool in tools for line in _unfinished(turn, tool, handle(tool, tools))]
    return [*asked, *ran]


def _unfinished(turn: Turn, tool: Mapping[str, Any], name: str) -> list[str]:
    says = f"; --result {name}=JSON says what it gave, --rerun {name} runs it again"
    told = f"  it may have run, begun {tool['at']}{'' if turn.is_over else says}"
    return [*block("* ", called(tool)), told]


def _took(turn: Turn) -> list[str]:
    """Return the lines of the tools that a turn called and of the answers that people gave, one for each."""
    lines = []
    for asked in turn.questions:
        if asked["verdict"] is not None:
            by = f", by {asked['by']}" if asked["by"] else ""
            why = f": {asked['reason']}" if asked["reason"] else ""
            told = f"{called(asked)} - {asked['verdict']}{by}{why} ({asked['answered']})"
            lines.append("? " + told)
    for step in turn.steps:
        if step["error"] is not None:
            lines.append(f"* {called(step)} raised {error_text(step['error'])}")
        elif step["state"] in ("done", "given"):
            said = " said by a person:" if step["state"] == "given" else ""
            lines.append(f"* {called(step)} ->{said} {_compact(step['output'])}")
    return ["  " + one_line(line, width() - 2) for line in lines]


def question(asked: Mapping[str, Any], among: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a question: exactly the call that it is about, and what names it."""
    does = {"changes": "changes things", "reads": "only reads"}.get(str(asked.get("effects")))
    told = [
        f"question {handle(asked, among)}",
        f"path {one_line(str(asked.get('path')), 200)}",
        *([does] if does else []),
        *([str(asked["question"])] if asked.get("question") else []),
    ]
    return [*block("? ", called(asked)), "  " + " · ".join(told)]


def called(asked: Mapping[str, Any]) -> str:
    """Return a tool call as recorded, its name and input."""
    return f"{asked.get('name')} {_compact(asked.get('input'))}"


def may_have_run(turn: Turn) -> list[dict[str, Any]]:
    """Return the tool calls of which a person has to say what became of them; none of a turn that runs."""
    return [] if turn.state == "running" else turn.unfinished


def handle(step: Mapping[str, Any], among: Iterable[Mapping[str, Any]]) -> str:
    """Return what names a step of a turn, and no other of them, on a command line."""
    others = [handles(other) for other in among]
    mine = handles(step)
    return one_line(
        next((n for n in mine if sum(n in names for names in others) == 1), mine[-1]), 500
    )


def handles(step: Mapping[str, Any]) -> list[str]:
    """Return what names a question or tool call: its own id, its number, its path, the tool's name, its place.

    An id that a shell would read otherwise is left out: `#1` would be a comment.
    """
    id, number = str(step.get("id") or ""), str(step.get("invocation"))
    own = [id] if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*", id) else []
    path = [str(step["path"])] if step.get("path") else []
    name = [str(step["name"])] if step.get("name") else []
    return [*own, number, *path, *name, f"{step.get('site')}:{number}"]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def answer_mark(name: str) -> str:
    """Return what stands before an output."""
    return "< " if name == "result" else f"{name} < "


def heading(turn: Turn) -> str:
    """Return the first line of a turn: number, id, state, model, time, what it merges."""
    parts = [f"{turn.ordinal}", turn.id]
    if turn.state != "done":
        parts.append("[erased]" if turn.erased else f"[{turn.state}]")
    if turn.model:
        parts.append(f"({turn.model})")
    if turn.started:
        parts.append(f"{turn.started:%Y-%m-%d %H:%M}")
    if turn.reads:
        parts.append("merges " + ", ".join(str(read.ordinal) for read in turn.reads))
    return "  ".join(parts)


def block(mark: str, value: Any) -> list[str]:
    """Return a value as lines behind a mark: text as it is, attachments by name, anything else as JSON."""
    told = plain(value)
    text = value_text(told) if _references(told) or isinstance(value, str) else _compact(value)
    first, *rest = [part for line in text.split("\n") for part in _wrapped(line, len(mark))]
    return [mark + first, *(" " * len(mark) + line for line in rest)]


def _wrapped(line: str, indent: int) -> list[str]:
    """Break a line between words for a terminal; what goes into a pipe stays as it is."""
    if sys.stdout is None or not sys.stdout.isatty():
        return [line]
    room = max(20, width() - indent)
    return textwrap.wrap(line, room, drop_whitespace=False, break_on_hyphens=False) or [""]


def _facts(turn: Turn) -> list[str]:
    facts = {
        "parent": turn.parent.ordinal if turn.parent else "none",
        "children": ", ".join(str(c.ordinal) for c in turn.children) or "none",
        "saw": _saw(turn),
        "settings": _named(turn.settings),
        "usage": _named(turn.usage),
        "seconds": turn.seconds,
        "request": turn.request_id,
        "made by": turn.made_by.get("name") if turn.made_by else None,
        "source": _source(turn.source),
    }
    lines = [f"  {name}: {value}" for name, value in facts.items() if value is not None]
    return [*lines, *noted(turn)]


def _saw(turn: Turn) -> str:
    """Return the turns that one saw, as numbers, and what was left out of them."""
    lacking: dict[tuple[str, ...], list[int]] = {}
    without = turn.without
    for seen in turn.saw:
        lacking.setdefault(tuple(without.get(seen.id, ())), []).append(seen.ordinal)
    parts = [runs(ordinals) + without_text(names) for names, ordinals in lacking.items()]
    return "; ".join(parts) or "nothing"


def noted(turn: Turn) -> list[str]:
    """Return the lines of what was said of a turn: each rating with who and why, and the labels."""
    lines = []
    for rating in turn.ratings:
        by = f" by {one_line(rating.by, 100)}" if rating.by else ""
        when = f" ({times.told(rating.at)})" if rating.at else ""
        told = f"  rated {ratings.value_text(rating.value)}{by}{when}"
        lines += block(f"{told}: ", rating.why) if rating.why else [told]
    return [*lines, *([labelled(turn.labels)] if turn.labels else [])]


def labelled(labels: list[str]) -> str:
    """Return labels as a line."""
    return "  labels: " + ", ".join(one_line(label, 100) for label in labels)


def _named(values: dict[str, Any]) -> str | None:
    return ", ".join(f"{name} {one_line(value, 60)}" for name, value in values.items()) or None


def _source(source: dict[str, Any] | None) -> str | None:
    if not source:
        return None
    return f"{source.get('format')} conversation {source.get('conversation')}"


def report_text(report: Report) -> str:
    """Return what checking a log found as text: one line when all is well, else a line each."""
    sealed = report.counts.get("sealed", 0)
    state = "DAMAGED" if report.damaged else "ok"
    lines = [f"{report.conversation}: {state}, {sealed} of {report.records} records sealed"]
    for found in report.findings:
        place = f"line {found.seq} at byte {found.offset}"
        written = f", written as {found.written_seq}" if found.what == "misplaced" else ""
        lines.append(f"  {found.what}: {place}, {found.size_bytes} bytes{written}")
    more = report.findings_total - len(report.findings)
    if more:
        lines.append(f"  and {more} more")
    if report.torn_bytes:
        lines.append(f"  torn: {report.torn_bytes} bytes at the end, set aside by the next append")
    lines += [f"  missing: attachment {sha256}" for sha256 in report.missing]
    lines += [f"  altered: attachment {sha256}" for sha256 in report.altered]
    lines += [f"  set aside: {name}" for name in report.set_aside]
    lines += [f"  open to others: {name}; chmod 600 closes it" for name in report.wide]
    return "\n".join(lines)


def runs(numbers: list[int]) -> str:
    """Return numbers with runs joined: 1-57, 60."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)


def read_text(value: str) -> str:
    """Return a text given on the command line; `-` is standard input.

    Raises: typer.BadParameter: it is not UTF-8.
    """
    if value != "-":
        return value
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is not UTF-8: {error}") from None


def write_out(text: str | bytes | Iterable[bytes], path: Path | None) -> None:
    """Write to a new file, readable by its owner only, or to standard output.

    The file is there whole or not at all; what fails leaves none.
    """
    data = text.encode() if isinstance(text, str) else text
    pieces = [data] if isinstance(data, bytes) else data
    if path is None:
        with writing():
            sys.stdout.flush()
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.flush()
        return
    with writing_to(path), new_file(path) as file:
        for piece in pieces:
            file.write(piece)


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a new file into errors for people."""
    with writing(str(path)):
        try:
            yield
        except FileExistsError:
            raise typer.BadParameter(f"{path} exists; choose another name") from None
