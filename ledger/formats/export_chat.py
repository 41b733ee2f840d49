"""Branches as the requests of a provider, one a line: fine-tuning files and request logs. Pure.

    openai-chat   {"messages": [...], "tools"?: [...]}               OpenAI Chat Completions
    anthropic     {"system"?: ..., "messages": [...], "tools"?: [...]}   Anthropic Messages

Definitions of tools are not recorded. Where a branch calls tools, `tools` are those that were given,
else each tool that was called, with the arguments that were seen and their kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ledger.formats import anthropic_messages, openai_chat, talks
from ledger.formats.converting import Loss, Losses, Placed, Raw, Read
from ledger.formats.pairing import tool_name
from ledger.formats.talks import How, Talk
from ledger.records.messages import Message

Request = Callable[[list[Message], Read], tuple[Raw, tuple[Loss, ...]]]


@dataclass(frozen=True, slots=True)
class Requests:
    """An exporter of one provider's requests."""

    name: str
    request: Request
    """Says messages as a request, and what it cannot say."""
    tool: Callable[[str, Raw], Raw]
    """Defines a tool by its name and the JSON Schema of its arguments."""

    def rows(self, talk: Talk, how: How, notes: Counter[str]) -> Iterator[Raw]:
        """Yield one request for each branch."""
        talks.note_unanswered(talk, notes)
        for end in talk.ends(how, notes):
            messages = how.instructed(talk.messages(end))
            row, losses = self.request(messages, talk.read)
            talks.note_losses(self.name, losses, notes)
            if not row["messages"] or row["messages"][-1]["role"] != "assistant":
                notes["branches left out, whose last answer cannot be said"] += 1
                continue
            talks.note_unasked(messages, notes)
            tools = self.tools(messages, how)
            yield {**row, "tools": tools} if tools else row

    def tools(self, messages: list[Message], how: How) -> list[Raw]:
        """Return the definitions of the tools that messages call; none when they call none."""
        called = talks.called(messages)
        if not called or how.tools:
            return list(how.tools) if called else []
        named = {_as_said(name): talks.schema(seen) for name, seen in called.items()}
        return [self.tool(name, seen) for name, seen in named.items()]


def _as_said(name: str) -> str:
    """Return a tool's name as providers take it."""
    return tool_name(Placed("", {"type": "tool_call", "name": name}), Losses(""))


def _openai(messages: list[Message], read: Read) -> tuple[Raw, tuple[Loss, ...]]:
    converted = openai_chat.to_provider(messages, read=read)
    return {"messages": converted.content}, converted.losses


def _openai_tool(name: str, parameters: Raw) -> Raw:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def _anthropic(messages: list[Message], read: Read) -> tuple[Raw, tuple[Loss, ...]]:
    converted = anthropic_messages.to_provider(messages, read=read)
    return dict(converted.content), converted.losses


def _anthropic_tool(name: str, input_schema: Raw) -> Raw:
    return {"name": name, "input_schema": input_schema}


openai = Requests("openai-chat", _openai, _openai_tool)
anthropic = Requests("anthropic", _anthropic, _anthropic_tool)
