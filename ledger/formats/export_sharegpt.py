"""Branches as ShareGPT: `{"id", "conversations": [{"from", "value"}], "system"?, "tools"?}`. Pure.

What the user says is said by `human`, the answer by `gpt`, a call by `function_call` (its value is JSON
with `name` and `arguments`), its result by `observation`, right behind it. `formats.sharegpt` reads it back
to the same turns. A turn that was asked nothing has an empty question, so that it stays a turn.

Left out, and counted: thinking, images and other files, who speaks by name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from ledger.formats import converting, pairing, talks
from ledger.formats.converting import Line, Losses, Raw
from ledger.formats.talks import How, Talk
from ledger.records.messages import Message
from ledger.records.transcripts import without_instructions
from ledger.views import exchange
from ledger.views.nodes import Node

name = "sharegpt"
_IDS = pairing.Ids()


def rows(talk: Talk, how: How, notes: Counter[str]) -> Iterator[Raw]:
    """Yield one conversation for each branch."""
    talks.note_unanswered(talk, notes)
    for end in talk.ends(how, notes):
        yield _row(talk, end, how, notes)


def _row(talk: Talk, end: str, how: How, notes: Counter[str]) -> Raw:
    losses = Losses(name)
    system = _system(how.instructed(exchange.instructions(talk.history, end)), losses)
    said: list[Raw] = []
    messages: list[Message] = []
    for place, node in enumerate(talk.branch(end)):
        turn = _turn(talk, node, first=place == 0)
        messages += turn
        said += _spoken(turn, losses)
    talks.note_losses(name, losses.found, notes)
    tools = _tools(messages, how)
    return {
        "id": talk.id,
        **({"system": system} if system else {}),
        **({"tools": tools} if tools else {}),
        "conversations": said,
    }


def _turn(talk: Talk, node: Node, *, first: bool) -> list[Message]:
    """Return what a turn added, with a question."""
    asked = exchange.asked(node)
    asked = without_instructions(asked) if first else asked
    if not any(message["role"] == "user" for message in asked):
        asked = [*asked, {"role": "user", "parts": [{"type": "text", "content": ""}]}]
    return [*asked, *exchange.answered(talk.history, node)]


def _spoken(messages: list[Message], losses: Losses) -> list[Raw]:
    """Return what the messages of a turn say: each call with its result behind it, an answer at the end."""
    lines = pairing.joined(pairing.paired(converting.lines(messages), _IDS, losses))
    out: list[Raw] = []
    for at, line in enumerate(lines):
        if line.response is None:
            out += _said(line, lines[at + 1 :], losses)
    return out if out and out[-1]["from"] == "gpt" else [*out, {"from": "gpt", "value": ""}]


def _said(line: Line, following: list[Line], losses: Losses) -> Iterator[Raw]:
    if line.name is not None:
        losses.add(line.path, "who speaks has no name here")
    text: list[str] = []
    for placed in line.parts:
        if placed.type == "text":
            text.append(placed.part["content"])
        elif placed.type == "tool_call":
            yield from _values("gpt", text)
            text = []
            call = {"name": placed.part["name"], "arguments": placed.part["arguments"]}
            yield {"from": "function_call", "value": json.dumps(call, ensure_ascii=False)}
            yield from _observed(placed.part["id"], following, losses)
        else:
            losses.of(placed)
    speaker = _SPEAKERS.get(line.role, "")
    yield from _values(speaker, text or ([""] if speaker == "human" else []))


_SPEAKERS = {"user": "human", "assistant": "gpt", "system": "system", "developer": "system"}


def _values(speaker: str, text: list[str]) -> Iterator[Raw]:
    if text:
        yield {"from": speaker, "value": "\n".join(text)}


def _observed(call: str, following: list[Line], losses: Losses) -> Iterator[Raw]:
    """Yield the result of a call: the first under its id that follows."""
    for line in following:
        if line.response is None:
            continue
        if line.response.part["id"] == call:
            yield {
                "from": "observation",
                "value": converting.dumped(line.response.part["response"]),
            }
            for placed in line.parts[1:]:
                losses.of(placed)
            return


def _tools(messages: list[Message], how: How) -> str:
    """Return the definitions of the tools that are called, as JSON in a text; none when none is."""
    called = talks.called(messages)
    if not called:
        return ""
    seen = [{"name": tool, "parameters": talks.schema(args)} for tool, args in called.items()]
    return json.dumps(list(how.tools) or seen, ensure_ascii=False)


def _system(instructions: list[Message], losses: Losses) -> str:
    """Return instructions as one text."""
    texts = []
    for placed in (placed for line in converting.lines(instructions) for placed in line.parts):
        if placed.type == "text":
            texts.append(placed.part["content"])
        else:
            losses.of(placed)
    return "\n\n".join(texts)
