"""What a turn is doing, from its records in order: its state, its open questions, its open tools.

The four rules of a state stand in `state`, in order; the contract's section has the same four.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Any, Literal

from ledger.records import kinds, times
from ledger.views import sites
from ledger.views.nodes import Node, payload

State = Literal["done", "failed", "stopped", "abandoned", "waiting", "running", "interrupted"]

OVER = ("done", "given")
"""The states of a tool call of which it is known what it gave."""
SETTLED = (*OVER, "rerun")
"""The states of a tool call of which it is known how to go on."""

Dead = Set[tuple[str, int]]
"""Holders known dead, each with the attempt that it held."""


def state(node: Node, *, now: datetime, dead: Dead = frozenset()) -> State:
    """Return a turn's state at a moment (an aware datetime).

    A time in a lease that does not read counts as past.
    """
    if now.tzinfo is None:
        raise ValueError("a time without a zone names no moment")
    if node.outcome is not None:
        return node.outcome
    return unended(node.lease, waits=node.waiting_seq > node.lease_seq, now=now, dead=dead)


def unended(
    lease: kinds.Lease | None, *, waits: bool, now: datetime, dead: Dead = frozenset()
) -> Literal["waiting", "running", "interrupted"]:
    """Return the state of a turn without an end, at a moment (an aware datetime).

    Args: lease: its last one. waits: whether it waited for a person after that.
    """
    if waits:
        return "waiting"
    if lease is None or (lease.holder, lease.attempt) in dead:
        return "interrupted"
    until = times.from_text(lease.until)
    return "running" if until is not None and until >= now else "interrupted"


def released(lease: kinds.Lease) -> bool:
    """Say whether a lease gives a turn back: it ended before it was made. A time that does not read says no."""
    if (
        lease.until >= lease.at
    ):  # As text, which is the order of times as records write them: the usual case.
        return False
    at, until = times.from_text(lease.at), times.from_text(lease.until)
    return at is not None and until is not None and until < at


def unanswered(node: Node) -> list[dict[str, Any]]:
    """Return the questions of a turn's last wait that no later approval names, in order, with their keys.

    A turn that ended has none: its end closed them. Raises: store-corrupt: they do not decode.
    """
    if node.waiting is None or node.outcome is not None:
        return []
    asked = payload(node.waiting, "approvals")
    answers = [
        step
        for seq, step in node.steps
        if seq > node.waiting_seq and isinstance(step, kinds.Approval)
    ]
    questions = asked if isinstance(asked, list) else []
    return [
        keyed(question)
        for question in questions
        if isinstance(question, dict) and not any(answers_to(a, question) for a in answers)
    ]


def keyed(question: dict[str, Any]) -> dict[str, Any]:
    """Return a question with its `key`: its place, which names no other question of its turn."""
    return {**question, "key": f"{question.get('site') or ''}:{question.get('invocation')}"}


def answers_to(answer: kinds.Approval, question: dict[str, Any]) -> bool:
    """Say whether an answer is to a question: by its place, and where both say it by the call's hash."""
    if (answer.site, answer.invocation, answer.plugin or "approval") != question_name(question):
        return False
    asked = question.get("asked")
    return answer.asked is None or not isinstance(asked, str) or answer.asked == asked


def asked_before(node: Node) -> list[Any]:
    """Return all questions that a turn ever asked, with their keys. Raises: store-corrupt."""
    return [keyed(asked) for waiting in node.waits for asked in kinds.mappings(waiting.approvals)]


def unfinished(node: Node) -> list[kinds.Tool]:
    """Return the tools that started and have no later record: they may have run.

    What was made within a call of which it is known by now what came of it is not asked about. A state that is
    not known here says nothing of what the tool did either.
    """
    last = _last(node).values()
    found = [tool for tool in last if tool.state not in SETTLED and not is_known(tool)]
    if not found:
        return []
    over = [inside(tool) for tool in last if is_known(tool)]
    return [tool for tool in found if not sites.held(over, tool.site or "")]


def inside(tool: kinds.Tool) -> str:
    """Return the site of what is made within a tool's call."""
    return sites.of_tool(tool.site or "", tool.name, tool.invocation)


def is_known(tool: kinds.Tool) -> bool:
    """Say whether it is known what came of a tool's call: what it gave, or what it raised."""
    return tool.state in OVER or bool(kinds.mapping(tool.error, tool.seq))


def _last(node: Node) -> dict[tuple[str | None, int], kinds.Tool]:
    return {(tool.site, tool.invocation): tool for tool in node.tools}


def first(node: Node, tool: kinds.Tool) -> kinds.Tool:
    """Return the first record of a tool's call."""
    place = tool.site, tool.invocation
    return next(t for t in node.tools if (t.site, t.invocation) == place)


def question_name(asked: dict[str, Any]) -> tuple[str | None, float, str]:
    """Name a question as approvals name it; a name of a wrong type reads as absent, as in them."""
    site, invocation, plugin = asked.get("site"), asked.get("invocation"), asked.get("plugin")
    return (
        site if isinstance(site, str) else None,
        invocation if isinstance(invocation, (int, float)) and invocation is not True else 0,
        plugin if isinstance(plugin, str) and plugin else "approval",
    )
