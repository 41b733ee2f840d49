"""The command that goes on with turns: resume."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from ledger.cli.ending import OutputClosed, warn
from ledger.cli.output import (
    Json,
    complete_id,
    conversation,
    handles,
    heading,
    may_have_run,
    named_or_head,
    opened,
    say,
    say_json,
    say_now,
    width,
)
from ledger.cli.reader import while_read
from ledger.cli.running import beginning, standing
from ledger.cli.screen import Screen
from ledger.cli.stores import store_of
from ledger.conversation import Conversation
from ledger.opening import open as open_conversation
from ledger.records import kinds
from ledger.recovery import resume_all
from ledger.turn import Turn
from ledger.turns import carrying
from ledger.turns.programs import Program
from ledger.turns.resuming import WATCH_S, Resumption, begun
from ledger.turns.running import Run
from ledger.views.text import one_line, printable

SETTLED = ("done", "failed", "stopped", "abandoned", "waiting")
"""States in which a turn that was gone on with is left; any other has its reason in an error."""


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(resume)


def resume(
    context: typer.Context,
    id: Annotated[
        str | None,
        typer.Argument(
            help="The conversation's id, or the beginning of it; none: all, with --all.",
            show_default=False,
            autocompletion=complete_id,
        ),
    ] = None,
    turn: Annotated[
        str | None,
        typer.Argument(
            help="A turn: its number, its id, or a part of its id; default: the head.",
            show_default=False,
        ),
    ] = None,
    program: Annotated[
        str,
        typer.Option(
            "--program",
            metavar="MODULE:FUNCTION",
            help="The program that made the turn; modules of the current folder are found.",
        ),
    ] = "",
    results: Annotated[
        list[str] | None,
        typer.Option(
            "--result",
            metavar="ID=JSON",
            help="What a tool gave that may have run.",
            show_default=False,
        ),
    ] = None,
    rerun: Annotated[
        list[str] | None,
        typer.Option("--rerun", metavar="ID", help="A tool to run again.", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting, JSON or else text; what was recorded with the turn counts before it.",
            show_default=False,
        ),
    ] = None,
    approve: Annotated[
        str | None,
        typer.Option(
            "--approve",
            metavar="changes|all|none|NAMES",
            help="Which tools a person is asked about first; names with commas between.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every turn that can be gone on with.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Go on with a turn whose process died, or that waited and has its answers. Shows it like `watch`.

    The program runs here, from its beginning; calls that were recorded are not made again.
    Tools are asked about as when the turn was sent; --approve says otherwise.
    The exit code says whether it was gone on with, not how it ended. Ctrl-C stops the turn.
    Example: turn-ledger resume alex --program app:answer
    """
    if not program:
        raise typer.BadParameter("--program MODULE:FUNCTION is missing: who answers?")
    if every and (turn is not None or results or rerun):
        raise typer.BadParameter("--all goes with no turn, --result or --rerun")
    if id is None and not every:
        raise typer.BadParameter("name a conversation, or give --all")
    function = load(program)
    how = {**_settings(settings or []), "approve": _rule(approve)}
    if every:
        _resume_all(context, id, function, how, approve, as_json=as_json)
        return
    chat = conversation(context, id or "")
    asked = named_or_head(chat, turn)
    _need_rule([asked], approve)
    chat = open_conversation(chat.id, function, store=chat.store, **how)
    _resume(chat, chat.turn(asked.id), results or [], rerun or [], as_json=as_json)


# -- what was given ----------------------------------------------------------------------------------


def load(path: str) -> Callable[..., Any]:
    """Return the callable at an import path, `module:function`. Raises: typer.BadParameter."""
    module_name, _, names = path.partition(":")
    if not module_name or not names:
        raise typer.BadParameter(f"--program is a module and a function, app:answer, not {path!r}")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        what = one_line(f"{type(error).__name__}: {error}", 300)
        raise typer.BadParameter(f"--program {module_name} cannot be imported: {what}") from error
    for name in names.split("."):
        if not hasattr(found, name):
            raise typer.BadParameter(f"--program {path}: there is no {name!r} in it")
        found = getattr(found, name)
    if not callable(found) or isinstance(found, Conversation):
        raise typer.BadParameter(f"--program {path} is no program: it is {type(found).__name__}")
    try:
        Program(found)
    except TypeError as error:
        raise typer.BadParameter(f"--program {path}: {error}") from error
    function: Callable[..., Any] = found
    return function


def _settings(given: list[str]) -> dict[str, Any]:
    taken = inspect.signature(open_conversation).parameters
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.isidentifier() and equals) or name in taken:
            raise typer.BadParameter(f"--set is a setting and its value, lm=model-a, not {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _rule(approve: str | None) -> str | list[str] | None:
    if approve is None or approve == "none":
        return None if approve is None else []
    if approve in ("changes", "all"):
        return approve
    names = [name.strip() for name in approve.split(",")]
    if not all(names):
        raise typer.BadParameter(f"--approve is changes, all, none or names, not {approve!r}")
    return names


def _need_rule(turns: list[Turn], approve: str | None) -> None:
    """Refuse to go on without a word on approval where a person was asked before.

    Else the tools after the one that was approved would run without anybody's yes. Turns of ours say by
    which rule they were sent; other writers' do not.
    """
    for turn in turns:
        node = turn._node
        says = kinds.has(node.record.approve)
        if approve is None and not says and (node.waits or node.approvals):
            raise typer.BadParameter(
                f"turn {turn.ordinal} of {turn.conversation} asks a person about its tools: say which with "
                "--approve changes, all, their names, or none"
            )


def _given(turn: Turn, results: list[str], rerun: list[str]) -> tuple[dict[Any, Any], list[Any]]:
    """Return what a person says of tools that may have run, by what their turn knows them by."""
    said = {}
    for text in results:
        name, output = _result(turn, text)
        said[_tool(turn, name)] = output
    return said, [_tool(turn, name) for name in rerun]


def _result(turn: Turn, text: str) -> tuple[str, Any]:
    """Return a tool call and what it gave, of NAME=JSON: a name may have `=` in it. Raises: typer.BadParameter."""
    known = {name for tool in may_have_run(turn) for name in handles(tool)}
    found = []
    for place in (at for at, sign in enumerate(text) if sign == "="):
        with suppress(ValueError):
            found.append((text[:place], json.loads(text[place + 1 :])))
    if not found:
        raise typer.BadParameter(
            f"--result is a tool call and JSON, with quotes around text: call_1='\"done\"', not {text!r}"
        )
    return next((each for each in found if each[0] in known), found[0])


def _tool(turn: Turn, name: str) -> Any:
    fits = [tool for tool in may_have_run(turn) if name in handles(tool)]
    if len(fits) != 1:
        return name
    return fits[0]["key"]


# -- one turn ----------------------------------------------------------------------------------------


def _resume(
    chat: Conversation, turn: Turn, results: list[str], rerun: list[str], *, as_json: bool
) -> None:
    said, again = _given(turn, results, rerun)
    resumption = Resumption(chat._log, chat._view, turn.id, results=said, rerun=again)
    told = False

    def wait(wait_s: float) -> None:
        nonlocal told
        if not told:
            warn(f"looking for {WATCH_S:.0f} s whether anybody runs it", as_json=as_json)
        told = True
        chat._log.wait(wait_s)

    def go() -> None:
        run = begun(resumption, wait)
        try:
            if not as_json:
                _show(turn)
        except OutputClosed:
            run.wait()  # Whether anybody reads is nothing to the turn.
            raise
        _conclude(turn, run)

    carrying.through([resumption], go)
    if as_json:
        say_json(turn.to_dict(saw=True))


def _show(turn: Turn) -> None:
    screen = Screen(width=width())
    say_now(beginning(turn))
    try:
        for event in while_read(turn.events()):
            say_now(screen.show(event))
    except KeyboardInterrupt:
        say_now(screen.end())
        raise
    say_now(screen.end() + standing(turn))


def _conclude(turn: Turn, run: Run) -> None:
    """Raise why a turn was not gone on with to its end or its next question."""
    run.wait()
    if run.error is not None and turn.state not in SETTLED:
        raise run.error


# -- all of them -------------------------------------------------------------------------------------


def _resume_all(
    context: typer.Context,
    id: str | None,
    function: Callable[..., Any],
    how: dict[str, Any],
    approve: str | None,
    *,
    as_json: bool,
) -> None:
    store = store_of(context)
    chats = (
        [conversation(context, id)] if id else [opened(context, n) for n in store.conversations()]
    )
    for chat in chats:
        _need_rule([t for t in chat.all_turns() if not t.is_over], approve)
    if id is None:
        turns = resume_all(store, function, **how)
    else:
        turns = open_conversation(chats[0].id, function, store=store, **how).resume_all()
    for name, why in turns.left.items():
        warn(f"{name} is left: {why}", as_json=as_json)
    if as_json:
        say_json([{"conversation": turn.conversation, **turn.to_dict(saw=True)} for turn in turns])
        return
    for turn in turns:
        say(printable(f"{turn.conversation}  {heading(turn)}"))
        say(printable("  " + one_line(_came_of(turn), width() - 2)))
    if not turns:
        say("no turn can be gone on with by this program")


def _came_of(turn: Turn) -> str:
    if turn.state == "done":
        return f"< {turn.result}"
    if turn.error:
        return f"! {turn.error.get('type')}: {turn.error.get('message', '')}"
    return f"[{turn.state}]"
