"""What a turn did before: its tools and the answers it was given, as a resumed run finds them again.

A run that goes on makes the same calls, but parallel ones in another order, so a place (`invocation`)
names no call. A tool call is known by its caller's own id, its name and its input; of several that are
the same, the first comes first. A question is known the same way; an answer names its question by place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from ledger.records import canonical, kinds, values
from ledger.views import sites, states
from ledger.views.nodes import Node
from ledger.views.states import answers_to, question_name

MADE_UP = "#"
"""How an id begins that is no caller's own."""

Name = tuple[str | None, str | None, str, str]
"""A tool call: in which helper's call (its scope; None: the turn's program), the caller's own id or None,
the tool's name, the hash of name and input."""


class Noted(NamedTuple):
    """What was noted while the call of a step was made."""

    usage: dict[str, int]
    model: str | None


_NOTHING = Noted({}, None)


class Invocation(msgspec.Struct, frozen=True):
    """One tool call of a turn, as its last record says."""

    site: str
    """The place in the tree of calls: `support#1/answer#1`."""
    invocation: int
    """Its number there."""
    id: str
    name: str
    input: Any
    """None where no record of it says."""
    state: str
    """`started`: it may have run; `done`; `given`: a person said its output; `rerun`: to be run again."""
    output: Any
    effects: str | None
    attempt: int = 1
    """The one that made it first."""
    scope: str | None = None
    """The helper's or tool's call that made it."""
    error: dict[str, Any] | None = None
    """What its call raised."""
    noted: Noted = _NOTHING
    ended_by: int = 1
    """The attempt that recorded it last."""
    seq: int = 0
    """The place of its last record."""

    @property
    def known_as(self) -> Name:
        """What a later run finds it by."""
        return named(self.id, self.name, self.input, self.scope)

    @property
    def known(self) -> bool:
        """Whether it is known what came of it: what it gave, or what it raised."""
        return self.state in states.OVER or self.error is not None

    @property
    def inside(self) -> str:
        """The site of what is made within its call."""
        return sites.of_tool(self.site, self.name, self.invocation)


class Question(msgspec.Struct, frozen=True):
    """What a person was asked, and what they said."""

    asked: dict[str, Any]
    """As the `waiting` record has it."""
    verdict: str | None
    """`yes`, `no`; None: nobody has answered."""
    by: str | None = None
    reason: str | None = None
    at: str | None = None
    """When they said it, as recorded."""

    @property
    def known_as(self) -> Name:
        """What a later run finds it by: the exact call that was asked about."""
        own = self.asked.get("id")
        hashed = self.asked.get("asked")
        name = str(self.asked.get("name"))
        id = own if isinstance(own, str) and not own.startswith(MADE_UP) else None
        scope = self.asked.get("scope")
        within = scope if isinstance(scope, str) else None
        if isinstance(hashed, str):
            return within, id, name, hashed
        return named(id, name, self.asked.get("input"), within)


class Place(NamedTuple):
    """Where a tool call is recorded, and what is recorded there."""

    site: str
    """The place in the tree of calls: `support#1/answer#1`."""
    invocation: int
    """Its number there."""
    tool: Invocation | None = None
    """The call, where it was begun."""
    asked: Question | None = None
    """The question about it, where a person was asked."""


def named(id: str | None, name: str, input: Any, scope: str | None) -> Name:
    """Return what a tool call is known by."""
    own = id if id is not None and not id.startswith(MADE_UP) else None
    return scope, own, name, hashed(name, input)


def hashed(name: str, input: Any) -> str:
    """Return the hash of a tool's name and input (`asked`)."""
    return canonical.sha256([name, values.identity(input)])


def invocations(node: Node) -> list[Invocation]:
    """Return a turn's tool calls, in the order in which they were first recorded. Raises: store-corrupt."""
    found: dict[tuple[str, int], Invocation] = {}
    for tool in node.tools:
        place = tool.site or "", tool.invocation
        before = found.get(place)
        found[place] = _merged(before, tool)
    return list(found.values())


def _merged(before: Invocation | None, tool: kinds.Tool) -> Invocation:
    input, output = kinds.payload(tool.input, tool.seq), tool.output
    if kinds.has(tool.output_value):
        output = kinds.payload(tool.output_value, tool.seq)
    if before is not None and not kinds.has(tool.input):
        input = before.input
    return Invocation(
        site=tool.site or "",
        invocation=tool.invocation,
        id=tool.id or (before.id if before is not None else ""),
        name=tool.name or (before.name if before is not None else ""),
        input=input,
        state=tool.state,
        output=output,
        effects=tool.effects or (before.effects if before is not None else None),
        attempt=before.attempt if before is not None else tool.attempt,
        error=kinds.mapping(tool.error, tool.seq) or None,
        noted=Noted(kinds.mapping(tool.usage, tool.seq), tool.model),
        ended_by=tool.attempt,
        seq=tool.seq,
        scope=tool.scope or (before.scope if before is not None else None),
    )


def questions(node: Node) -> list[Question]:
    """Return what was asked in all waits of a turn, in order, with the answers. Raises: store-corrupt."""
    found: dict[tuple[Any, ...], Question] = {}
    for seq, step in node.steps:
        if isinstance(step, kinds.Waiting):
            # Asked again, what was said before is no answer to it.
            for asked in kinds.mappings(step.approvals, seq):
                found[question_name(asked)] = Question(asked, None)
        elif isinstance(step, kinds.Approval):
            place = step.site, step.invocation, step.plugin or "approval"
            question = found.get(place)
            # Of two answers the first counts, and only one to exactly that call.
            if (
                question is not None
                and question.verdict is None
                and answers_to(step, question.asked)
            ):
                answer = step.verdict, step.by, step.reason, step.at
                found[place] = Question(question.asked, *answer)
    return list(found.values())


def places(node: Node) -> list[tuple[Name, Place]]:
    """Return the places of a turn's tool calls with what each is known by, a call and its question as one.

    By number, and of one number in log order. Raises: store-corrupt.
    """
    found: dict[tuple[Name, str, int], Place] = {}
    for tool in invocations(node):
        found[tool.known_as, tool.site, tool.invocation] = Place(tool.site, tool.invocation, tool)
    for question in questions(node):
        site, number, _ = question_name(question.asked)
        at = question.known_as, site or "", int(number)
        begun = found.get(at, Place(at[1], at[2]))
        found[at] = begun._replace(asked=question)
    every = [(known_as, place) for (known_as, _, _), place in found.items()]
    return sorted(every, key=lambda each: each[1].invocation)


def missing(node: Node, kept: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the new records of steps that a turn's log lacks still, and that may be added to it.

    A store that failed may have kept one all the same. And what an attempt gave that somebody went on after
    may not be added: a person may have said since what its tools gave.
    """
    kept = list(kept)
    if not kept:
        return []
    stored = {tuple(getattr(step, key, None) for key in _NAMED_BY) for _, step in node.steps}
    return [
        record
        for record in kept
        if record["attempt"] == node.attempt
        and tuple(record.get(key) for key in _NAMED_BY) not in stored
    ]


_NAMED_BY = ("at", "site", "invocation", "state", "key", "call")
"""What tells the record of a tool, reply or call from every other of its turn."""


def used_places(node: Node) -> list[tuple[str, int]]:
    """Return the places that answers name, also those that nobody asked for: they are not given away again."""
    return [(answer.site or "", answer.invocation) for answer in node.approvals]


class Reply(NamedTuple):
    """A model's reply."""

    key: str
    """The hash of the request."""
    response: Any
    attempt: int
    """The one that paid for it."""
    error: dict[str, Any] | None
    """What its call raised, in place of a response."""
    noted: Noted
    site: str | None
    """Where it was made; None: its writer does not say."""
    scope: str | None
    """The helper's or tool's call that made it."""
    seq: int
    """The place of its record."""


def replies(node: Node) -> list[Reply]:
    """Return a turn's model replies, in log order. Raises: store-corrupt."""
    return [
        Reply(
            reply.key,
            kinds.payload(reply.response, reply.seq),
            reply.attempt,
            kinds.mapping(reply.error, reply.seq) or None,
            Noted(kinds.mapping(reply.usage, reply.seq), reply.model),
            reply.site,
            reply.scope,
            reply.seq,
        )
        for reply in node.replies
    ]


def usage(node: Node) -> dict[str, int]:
    """Return the token counts noted in a turn's steps, each once, summed. Raises: store-corrupt."""
    total: Counter[str] = Counter()
    for noted in [s.noted for s in replies(node)] + [s.noted for s in invocations(node)]:
        total.update({name: n for name, n in noted.usage.items() if type(n) is int})
    return dict(total)


def calls(node: Node) -> list[kinds.Call]:
    """Return the calls of remembered helpers on which the end of a turn stands, in log order."""
    return [] if node.ended is None else standing(node, node.ended.attempt)


def standing(node: Node, last: int) -> list[kinds.Call]:
    """Return the calls of remembered helpers on which an attempt stands, in log order. Raises: store-corrupt.

    Those that it made, and those that an earlier one made within a tool's call of which it saw the end.
    """
    over = {(tool.inside, tool.ended_by) for tool in invocations(node) if tool.known}
    return [
        call
        for call in node.calls
        if call.attempt == last
        or any(by == call.attempt and sites.holds(inside, call.site or "") for inside, by in over)
    ]


def call_said(call: kinds.Call) -> dict[str, Any]:
    """Return what a remembered helper's call says to later ones. Raises: store-corrupt."""
    where = call.seq, f"turn {call.turn}"
    return {
        "call": call.call,
        "program": kinds.mapping(call.program, *where),
        "lmcc": kinds.mapping(call.lmcc, *where),
        "tools": kinds.mappings(call.tools, *where),
    }


def call_row(said: dict[str, Any], *, steps: bool) -> dict[str, Any]:
    """Return a helper's call as a later one is shown it: inputs and outputs by name, and the tools it called.

    Args: said: as `call_said`. steps: whether with the tools.
    """
    sides = (said["lmcc"].get(side) for side in ("inputs", "outputs"))
    row = {name: value for side in sides if isinstance(side, dict) for name, value in side.items()}
    return {**row, "steps": list(said["tools"])} if steps else row
