"""What a turn added to a conversation, as messages: as recorded, else as its inputs, tools and answer tell.

The user side is what the turn's record has, the rest what its end has. Where none are recorded, the inputs
stand for the user's message; each tool call of the turn's own program, with its result, for a round; the
answer for the last reply. A helper's calls are no part of the exchange: its program had one of its own.

How a turn is shown to later turns is told by its entry in `saw`: whole; without its tool rounds, and then
what stands behind the last of them is shown; or without some fields. A round is shown whole or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from ledger.errors import StoreCorrupt
from ledger.records import kinds, messages
from ledger.records.messages import Called, Message
from ledger.records.transcripts import without_instructions
from ledger.views import sites, states, steps
from ledger.views.nodes import INSTRUCTIONS, Node, Tree, mapping, payload


def asked(node: Node) -> list[Message]:
    """Return a turn's user side. Raises: store-corrupt."""
    return _asked(node, ())


def answered(tree: Tree, node: Node) -> list[Message]:
    """Return all that came after a turn's user side; nothing before it ended. Raises: store-corrupt."""
    recorded = _recorded(node)
    return [*_rounds(node), *_answer(tree, node)] if recorded is None else recorded


def shown(tree: Tree, node: Node, entry: Mapping[str, Any]) -> list[Message]:
    """Return what is shown of a turn that is named so in `saw`. Raises: store-corrupt."""
    names = entry.get("without")
    left_out = set(names) if isinstance(names, list) else set()
    before = _asked(node, left_out)
    if answer_name(tree, node) in left_out:
        return before
    if entry.get("steps") is True and not left_out:
        return [*before, *answered(tree, node)]
    recorded = _recorded(node)
    if recorded == []:
        return before
    return [*before, *(messages.without_rounds(recorded or []) or _answer(tree, node))]


def window(
    tree: Tree,
    after: str | None,
    entries: Iterable[Mapping[str, Any]],
    summary: str | None,
    *,
    of: str | None = None,
) -> list[Message]:
    """Return what a turn is shown: the instructions, a summary, then what each turn's entry says.

    Args: after: the turn that it continues, whose instructions stay, whichever turns are shown. entries: of
    `saw`, expanded, oldest first. of: the turn itself, when it was recorded.
    Raises: store-corrupt.
    """
    out, first = instructions(tree, after, of=of), tree.first_done(after)
    if summary is not None:
        # By the user: what users said is not to gain the word of a system by being summarized.
        out.append(messages.text("user", f"{SUMMARY}\n\n{summary}"))
    for entry in entries:
        node = tree.nodes.get(entry.get("call", ""))
        if node is None or not node.done:
            continue
        said = shown(tree, node, entry)
        out += without_instructions(said) if node is first else said
    return out


SUMMARY = "What was said before, in short:"
"""What a summary begins with, as a message."""


def instructions(tree: Tree, turn: str | None, *, of: str | None = None) -> list[Message]:
    """Return the instructions in force at a turn; none before the first. Raises: store-corrupt.

    Those are the messages of a system or developer with which the branch's first done turn begins, until a
    list was handed over that others led: an `instructions` entry at the first turn that was new of it.
    Args: of: a turn behind it that may have come with others.
    """
    told = {entry.turn: entry for entry in tree.kept.get(INSTRUCTIONS, ())}
    entry = told.get(of)
    if entry is None and (at := tree.nearest(turn, told)) is not None:
        entry = told[at]
    if entry is not None:
        return messages.readable(kinds.payload(entry.data, entry.seq)) or []
    first = tree.first_done(turn)
    said = asked(first) if first is not None else []
    return said[: len(said) - len(without_instructions(said))]


def has_rounds(node: Node) -> bool:
    """Say whether a turn called tools, as far as its records can be read."""
    if any(map(states.is_known, node.tools)):
        return True
    said: Any = node.ended.messages if node.ended is not None else kinds.ABSENT
    if type(said) is msgspec.Raw and b"tool_call" not in bytes(said):
        return False  # It is asked of every turn of a branch, and most need not be decoded for it.
    try:
        return messages.has_rounds(_recorded(node) or [])
    except StoreCorrupt:
        return False


def tools(node: Node) -> list[dict[str, Any]]:
    """Return a turn's tool calls that gave something, helpers' too, in order; none that were made in a tool's.

    Each has `name`, `input` and `output`. By its records, else by its messages. Raises: store-corrupt.
    """
    found: list[Any] = [
        call
        for call in steps.invocations(node)
        if call.state in states.OVER and not sites.is_in_tool(call.site)
    ]
    return [
        {"name": call.name, "input": call.input, "output": call.output}
        for call in found or messages.called(_recorded(node) or [])
    ]


def calls(node: Node) -> list[Called]:
    """Return the tool calls of a turn's own program that gave something, in order. Raises: store-corrupt."""
    return [
        Called(call.id, call.name, call.input, _came_of(call))
        for call in steps.invocations(node)
        if call.known and call.scope is None and "/" not in call.site
    ]


def _came_of(call: steps.Invocation) -> Any:
    """Return what a model is told of a call: what it gave, or the kind and text of what it raised."""
    if call.error is None:
        return call.output
    return f"{str(call.error.get('type')).rpartition('.')[2]}: {call.error.get('message', '')}"


def answer_name(tree: Tree, node: Node) -> str:
    """Return the name of the output that is a turn's answer, as its program says."""
    program = tree.programs.get(node.program)
    return program.answer if program is not None else "result"


def result(tree: Tree, node: Node) -> Any:
    """Return a turn's answer, as JSON has it; None without one. Raises: store-corrupt."""
    ended = node.ended
    if ended is not None and kinds.has(ended.value):
        return payload(ended, "value")
    return mapping(ended, "outputs").get(answer_name(tree, node))


def _asked(node: Node, left_out: Collection[str]) -> list[Message]:
    inputs = node.inputs()
    kept = {name: value for name, value in inputs.items() if name not in left_out}
    recorded = messages.readable(payload(node.record, "messages"))
    if recorded is None or len(kept) < len(inputs):
        return messages.from_inputs(kept)
    return recorded


def _recorded(node: Node) -> list[Message] | None:
    return messages.readable(payload(node.ended, "messages")) if node.outcome is not None else None


def _rounds(node: Node) -> list[Message]:
    """Return the tool rounds that a turn's records tell of: which calls one reply made is not known."""
    return [message for call in calls(node) for message in messages.round_of([call])]


def _answer(tree: Tree, node: Node) -> list[Message]:
    return messages.from_result(result(tree, node)) if node.outputs() else []
