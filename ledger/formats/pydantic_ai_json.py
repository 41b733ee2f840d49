"""Saved histories of pydantic-ai: the JSON of a list of its messages, a file or a line each. Pure.

A request holds several records: prompts, context, and the results of tools, which the next response
answers. A tool that gives the output of a run has no words after it: its arguments are the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import clean, lists, pydantic_ai, talk, usage
from ledger.formats.base import Draft, File, Message, Notes, Skipped, alone
from ledger.formats.chain import Link
from ledger.formats.nodes import Node

name = "pydantic-ai"
home = None
together = alone

Raw = dict[str, Any]
_OUTPUT = "final_result"
_ASIDES = frozenset({"pydantic-ai:instruction", "pydantic-ai:request"})


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a message of pydantic-ai, or a list of them."""
    return lists.looks_like(sample, _is_message)


def _is_message(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("kind") in ("request", "response")
        and isinstance(value.get("parts"), list)
    )


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each file as a conversation; a message that does not read costs itself alone."""
    return lists.drafts(
        files, format=name, is_message=_is_message, links=_links, id_of=_conversation
    )


def _conversation(messages: list[Any]) -> Any:
    named = [raw.get("conversation_id") for raw in messages if isinstance(raw, dict)]
    return next((id for id in named if isinstance(id, str) and id), None)


def _links(messages: list[Any], notes: Notes) -> list[Link]:
    links: list[Link] = []
    for raw in messages:
        if not _is_message(raw):
            notes.counts["entries that are no message left out"] += 1
        elif raw["kind"] == "response":
            links.append(Link(_response(raw, notes), [_identity(part) for part in raw["parts"]]))
        else:
            links += _request(raw, notes)
    return links


def _request(raw: Raw, notes: Notes) -> Iterator[Link]:
    """Yield a record for each part of a request, each with its own time."""
    parts = raw["parts"]
    said = talk.read(pydantic_ai, raw, notes)
    whole = len(said) != len(parts)
    for place, message in enumerate(said):
        part = parts[place] if not whole and isinstance(parts[place], dict) else {}
        node = Node("", None, _kind(message), messages=[message], text=talk.text_of([message]))
        node.created = clean.moment(part.get("timestamp") or raw.get("timestamp"))
        yield Link(node, _identity(parts[place]) if not whole else [place, parts])


def _identity(part: Any) -> Any:
    """Return what makes a part this one, whatever a version of the library tells beside it."""
    keys = ("part_kind", "content", "tool_name", "args", "tool_call_id")
    return [part.get(key) for key in keys] if isinstance(part, dict) else part


def _kind(message: Message) -> Any:
    """Return what a part of a request is: what is no word of a user is a step, or context."""
    types = {part["type"] for part in message["parts"]}
    if types & _ASIDES:
        return "aside"
    unknown = all(kind.startswith(f"{name}:") for kind in types)
    return "step" if message["role"] == "user" and unknown else talk.kind_of([message])


def _response(raw: Raw, notes: Notes) -> Node:
    said = talk.read(pydantic_ai, raw, notes)
    node = Node("", None, talk.kind_of(said), messages=said, text=talk.text_of(said))
    node.created = clean.moment(raw.get("timestamp"))
    model = raw.get("model_name")
    node.model = clean.text(model, notes) if isinstance(model, str) and model else None
    node.usage = usage.counts(raw.get("usage"))
    node.cut = "length" if raw.get("finish_reason") == "length" else None
    if raw.get("state") == "interrupted":
        node.cut = "interrupted"
    if node.kind == "step" and (output := _output(raw)) is not None:
        node.kind, node.text = "answer", clean.text(output, notes)
    return node


def _output(raw: Raw) -> str | None:
    """Return the output of a run that was given as the arguments of a call."""
    for part in raw["parts"]:
        if isinstance(part, dict) and part.get("part_kind") == "tool-call":
            tool = str(part.get("tool_name"))
            if part.get("tool_kind") == "output" or tool.startswith(_OUTPUT):
                given = part.get("args")
                return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return None
