"""What is appended to go on with a turn, and to answer what it asks: history + wish -> records. Pure.

A tool call is named by a person in several ways: its own id, its number, its place (`support#1:2`), or the
tool's name. A name that fits several is refused, whichever way it fits: what was said of one tool must
never become another's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from ledger.errors import QuestionUnknown, TurnState, TurnUnfinished, TurnWaiting
from ledger.records import kinds, times
from ledger.records.kinds import NewRecord, new
from ledger.turns import commands
from ledger.turns.commands import UNATTENDED, Claim
from ledger.views import History, sites, states
from ledger.views.nodes import Node
from ledger.views.states import Dead
from ledger.views.steps import MADE_UP


def resume(
    history: History,
    turn: str,
    claim: Claim,
    *,
    results: Mapping[Any, Any],
    rerun: Collection[Any],
    now: datetime,
    dead: Dead = frozenset(),
    kept: Sequence[NewRecord] = (),
) -> list[NewRecord]:
    """Claim a turn that was interrupted, or that waited and has its answers.

    Args: claim: of its next attempt. results: tool call -> what it gave; rerun: tool calls to make again;
    each named by its id, its number, or the tool's name where only one is open. kept: what its steps gave
    and could not be stored then: that comes first.
    Raises: turn-state: it runs, or has ended. turn-waiting: questions are open. turn-unfinished.
    """
    state = history.state(turn, now=now, dead=dead)
    refuse_attended(turn, state)
    if state == "waiting" and (asked := history.unanswered(turn)):
        raise TurnWaiting(turn=turn, questions=tuple(asked))
    node, at = history.node(turn), times.to_text(now)
    _refuse_both(node, results, rerun)
    said = [
        *_said(node, results, at, "given", claim.attempt),
        *_said(node, dict.fromkeys(rerun), at, "rerun", claim.attempt),
    ]
    told = [record for record in (*kept, *said) if record["kind"] == "tool"]
    settled = {(record["site"], record["invocation"]) for record in told}
    over = [
        sites.of_tool(r["site"], r["name"], r["invocation"])
        for r in told
        if r["state"] in states.OVER
    ]
    left = [
        tool
        for tool in history.unfinished(turn)
        if (tool.site or "", tool.invocation) not in settled
        and not sites.held(over, tool.site or "")
    ]
    if left:
        keys = tuple(call_name(node, tool) for tool in left)
        raise TurnUnfinished(turn=turn, tools=keys, names=tuple(tool.name for tool in left))
    return [*kept, *said, commands.lease(turn, claim, now=now)]


def call_name(node: Node, tool: kinds.Tool) -> str:
    """Return the name of an unfinished tool call that fits no other: its own id, else its place."""
    fits = [other for other in states.unfinished(node) if tool.id in _names(other)]
    own = tool.id is not None and not tool.id.startswith(MADE_UP) and len(fits) == 1
    return str(tool.id) if own else f"{tool.site}:{tool.invocation}"


def unfinished(node: Node) -> list[dict[str, Any]]:
    """Return a turn's tool calls that may have run, as a person is told of them."""
    found = []
    for tool in states.unfinished(node):
        first = states.first(node, tool)
        found.append(
            {
                "key": call_name(node, tool),
                "id": tool.id,
                "name": tool.name,
                "input": kinds.payload(first.input, node.seq, f"turn {node.id}"),
                "invocation": tool.invocation,
                "site": tool.site,
                "at": first.at,
            }
        )
    return found


def refuse_attended(turn: str, state: states.State) -> None:
    """Refuse to go on with a turn that somebody runs, or that has ended. Raises: turn-state."""
    if state not in UNATTENDED:
        reason = (
            "another process goes on with it; wait for it, or stop it first"
            if state == "running"
            else "only a turn that has not ended is resumed"
        )
        raise TurnState(turn=turn, state=state, reason=reason)


def _refuse_both(node: Node, results: Mapping[Any, Any], rerun: Collection[Any]) -> None:
    """Refuse what is said twice of a tool call, or of one within a call that is over. Raises: turn-state."""
    given = [unfinished_call(node, call) for call in results]
    named = [*given, *(unfinished_call(node, call) for call in rerun)]
    over = [states.inside(tool) for tool in given]
    for tool in named:
        name = call_name(node, tool)
        if sum(tool is other for other in named) > 1:
            reason = f"{name} is named twice: what it gave, or that it runs again"
        elif sites.held(over, tool.site or ""):
            reason = f"{name} was made within a call whose result is said; say nothing of it"
        else:
            continue
        raise TurnState(turn=node.id, state="interrupted", reason=reason)


def _said(
    node: Node, calls: Mapping[Any, Any], at: str, state: str, attempt: int
) -> list[NewRecord]:
    """Return what a person says of tool calls that may have run."""
    found = []
    for call, output in calls.items():
        tool = unfinished_call(node, call)
        keys = {"turn": node.id, "site": tool.site or "", "invocation": tool.invocation}
        keys |= {"id": tool.id or MADE_UP, "name": tool.name, "state": state, "attempt": attempt}
        if state == "given":
            keys |= commands.output_keys(output)
        found.append(new("tool", at, **keys))
    return found


def unfinished_call(node: Node, call: Any) -> kinds.Tool:
    """Return the one tool call that a person means. Raises: turn-state: it fits none, or several."""
    fits = [tool for tool in states.unfinished(node) if call in _names(tool)]
    if len(fits) != 1:
        what = "names several tool calls" if fits else "names no tool call"
        known = ", ".join(call_name(node, tool) for tool in states.unfinished(node)) or "none"
        reason = f"{call!r} {what} that may have run; they are: {known}"
        raise TurnState(turn=node.id, state="interrupted", reason=reason)
    return fits[0]


def _names(tool: kinds.Tool) -> list[Any]:
    number = tool.invocation
    return [tool.id, tool.name, number, str(number), f"{tool.site}:{number}", (tool.site, number)]


def answer(
    history: History,
    turn: str,
    question: Any,
    verdict: str,
    *,
    by: str | None,
    reason: str | None,
    now: datetime,
    dead: Dead = frozenset(),
) -> list[NewRecord]:
    """Answer an open question of a waiting turn: exactly the call that was asked about.

    Args: question: as the turn's record has it; its key, id, number, path or tool's name; None: the only one that
    is open.
    Raises: question-unknown: it was answered, or is none of them. turn-state: the turn does not wait.
    """
    node = history.node(turn)
    state = history.state(turn, now=now, dead=dead)
    if state != "waiting":
        raise TurnState(turn=turn, state=state, reason="it waits for no answer")
    asked = _asked(node, question)
    keys = {name: asked.get(name) for name in ("site", "invocation", "path", "asked")}
    plugin = asked.get("plugin") or "approval"
    keys |= {"plugin": plugin, "verdict": verdict, "by": by, "reason": reason}
    if not isinstance(keys["asked"], str):
        del keys["asked"]
    return [new("approval", times.to_text(now), turn=turn, **keys)]


def _asked(node: Node, question: Any) -> Mapping[str, Any]:
    """Return the open question that a caller means."""
    still_open = states.unanswered(node)
    answered = [asked for asked in states.asked_before(node) if asked not in still_open]
    fits = [asked for asked in still_open if _is_meant(asked, question)]
    before = [asked for asked in answered if _is_meant(asked, question)]
    if len(fits) == 1 and (not before or question is None):
        return fits[0]
    keys = ", ".join(f"{asked['key']} ({asked.get('name')})" for asked in still_open)
    if not fits:
        known = f"; open by key: {keys}" if keys else ""
        none = f"the answer names no open question{known}"
        reason = "that question was answered already" if before else none
    elif before:
        # Whoever names one may have seen the other: a yes is to exactly one call.
        reason = f"the answer also names a question that was answered before; open by key: {keys}"
    else:
        reason = f"the answer names several questions; open by key: {keys}"
    raise QuestionUnknown(turn=node.id, reason=reason)


def _is_meant(asked: Mapping[str, Any], question: Any) -> bool:
    """Say whether a question is meant: by what its record holds, its key, id, number, path or name; by None any is."""
    if question is None:
        return True
    if isinstance(question, Mapping):
        return asked == {"key": asked["key"], **question}
    number = asked.get("invocation")
    names = (asked["key"], str(number), *map(asked.get, ("id", "path", "name")))
    return question == number if type(question) is int else question in names
