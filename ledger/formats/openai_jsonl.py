"""Chat messages of OpenAI, one conversation a line: training files, request logs, preferences. Pure.

A line is `{"messages": [...]}` with what else it has, or `{"input": {"messages"}, "preferred_output",
"non_preferred_output"}`: one prompt with two answers. Messages have no ids, so `chain` names them:
lines that begin alike are branches of one conversation, and a line that repeats is there once. A line
that stops before an answer and goes on in another line of the file (a log of requests) is part of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ledger.formats import chain, each, openai_chat, talk
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.chain import Link
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "openai-chat"
home = None
together = alone

Raw = dict[str, Any]
_OTHERS = frozenset({"history", "chat_messages", "conversationId", "sessionId"})
"""Keys of chats that hold messages of this kind among other things."""
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a line of this format."""
    if not isinstance(sample, dict):
        return False
    asked = sample.get("input")
    if not isinstance(asked, dict) or not isinstance(sample.get("preferred_output"), list):
        asked = sample
    messages = asked.get("messages")
    return bool(
        isinstance(messages, list)
        and messages
        and all(isinstance(one, dict) and _role(one) in _ROLES for one in messages[:5])
        and not sample.keys() & _OTHERS
    )


def _role(message: Raw) -> str | None:
    role = message.get("role")
    return role if isinstance(role, str) else None


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each line; one that does not read is skipped, and the next one is read.

    Each file is read twice; while it is read first, memory holds a name for each message.
    """
    for file in files:
        gone_on_with = _gone_on_with(file)
        yield from each.conversations([file], partial(_draft, gone_on_with))


def _gone_on_with(file: File) -> set[str]:
    """Return the names of the lists that stop before an answer, and go on in another line."""
    ends: set[str] = set()
    inside: set[str] = set()
    for element in file.elements():
        found = each.decoded(element, file.name, Notes())
        lists = _lists(found.value) if isinstance(found, each.Decoded) else ()
        for messages in lists:
            if isinstance(messages, list) and messages:
                *names, end = _open_prefixes(messages)
                inside.update(names)
                ends.add(end)
    return (ends & inside) - {""}


def _open_prefixes(messages: list[Any]) -> list[str]:
    """Return the name of each beginning of a list after which an answer is to come, else no text."""
    try:
        names = _prefixes(messages)
    except RecursionError:  # It is skipped with a reason when it is read.
        return [""]
    return [name if _is_open(raw) else "" for name, raw in zip(names, messages, strict=True)]


def _prefixes(messages: list[Any]) -> list[str]:
    return list(chain.prefixes(map(_identity, messages)))


def _is_open(raw: Any) -> bool:
    """Say whether an answer is to come after a message."""
    if not isinstance(raw, dict) or raw.get("role") != "assistant":
        return True
    return bool(raw.get("tool_calls") or raw.get("function_call")) or not raw.get("content")


def _draft(
    gone_on_with: set[str], value: Any, raw: bytes, what: str, notes: Notes
) -> Iterator[Draft | Skipped]:
    lists = [messages for messages in _lists(value) if isinstance(messages, list)]
    if not lists:
        yield Skipped(what, "it has no list of `messages`")
        return
    if all(messages and _prefixes(messages)[-1] in gone_on_with for messages in lists):
        return
    preferred = "preferred_output" in value
    linked = [links_of(messages, notes) for messages in lists]
    source_id = f"of-{chain.beginning(linked[0])}"
    tree = Tree(chain.branches(linked), format=name, conversation=source_id, notes=notes)
    heads = [tree.turn_at(chain.named(links)[-1].id) if links else None for links in linked]
    if preferred:
        for turn in tree.turns:
            if turn.id in heads:
                turn.source["preferred"] = turn.id == heads[0]
    yield each.draft(
        format=name,
        source_id=source_id,
        title=None,
        tree=tree,
        current=heads[0],
        raw=raw,
        notes=notes,
        what=what,
    )


def _lists(value: Any) -> Iterator[Any]:
    """Yield the conversations of a line: one, or one for each answer to choose from."""
    if not isinstance(value, dict):
        return
    asked = value.get("input")
    if "preferred_output" not in value or not isinstance(asked, dict):
        yield value.get("messages")
        return
    for key in ("preferred_output", "non_preferred_output"):
        before, answer = asked.get("messages"), value.get(key)
        if isinstance(before, list) and isinstance(answer, list):
            yield [*before, *answer]


def links_of(messages: list[Any], notes: Notes) -> list[Link]:
    """Return a list of chat messages as records of a chain, as they stand."""
    modern = zip(messages, _modern(messages), strict=True)
    return [_link(raw, spelled, notes) for raw, spelled in modern]


def _link(raw: Any, spelled: Any, notes: Notes) -> Link:
    said = talk.read(openai_chat, spelled, notes)
    node = Node("", None, talk.kind_of(said), messages=said, text=talk.text_of(said))
    return Link(node, _identity(raw))


def _identity(raw: Any) -> Any:
    """Return what makes a message this one: what is said, not how fully its keys are spelled."""
    if not isinstance(raw, dict):
        return raw
    calls = raw.get("tool_calls") or ([raw["function_call"]] if raw.get("function_call") else [])
    made = [
        [call.get("id"), call.get("function", call.get("custom", call))]
        if isinstance(call, dict)
        else call
        for call in (calls if isinstance(calls, list) else [calls])
    ]
    said = [raw.get("role"), raw.get("name"), raw.get("content") or None, raw.get("refusal")]
    return [*said, made, raw.get("tool_call_id")]


def _modern(messages: list[Any]) -> Iterator[Any]:
    """Yield messages with calls as they are said now: old ones called one `function`, without an id."""
    calls: dict[str, str] = {}
    for place, raw in enumerate(messages):
        call = raw.get("function_call") if isinstance(raw, dict) else None
        if isinstance(call, dict) and not raw.get("tool_calls"):
            id = f"call-{place}"
            calls[str(call.get("name"))] = id
            rest = {key: value for key, value in raw.items() if key != "function_call"}
            yield {**rest, "tool_calls": [{"id": id, "type": "function", "function": call}]}
        elif isinstance(raw, dict) and raw.get("role") == "function":
            id = calls.get(str(raw.get("name")), f"call-{place}")
            yield {**raw, "role": "tool", "tool_call_id": id}
        else:
            yield raw
