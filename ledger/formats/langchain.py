"""LangChain's messages as JSON, in its three shapes: `{type, data}`, constructors, and flat. Pure.

The class path in a constructor is read as words; nothing is imported or made of it. A conversation is
a file with a list of them (`FileChatMessageHistory`), or a line that is such a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import langchain_messages as messages
from ledger.formats import lists, talk, usage
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.chain import Link
from ledger.formats.nodes import Node

name = "langchain"
home = None
together = alone


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a message of LangChain, or a list of them."""
    return lists.looks_like(sample, _is_surely_message)


def _is_surely_message(value: object) -> bool:
    """Say whether a value can be nothing else: other programs too have a `type` and `content`."""
    one = messages.flat(value)
    if one is None or not isinstance(value, dict):
        return False
    wrapped = value.get("lc") == 1 or isinstance(value.get("data"), dict)
    return wrapped or "additional_kwargs" in one or one["type"] in ("human", "ai")


def _is_message(value: object) -> bool:
    return messages.flat(value) is not None


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each file as a conversation; a message that does not read costs itself alone."""
    return lists.drafts(files, format=name, is_message=_is_message, links=links_of)


def links_of(listed: list[Any], notes: Notes) -> list[Link]:
    """Return a list of messages as records of a chain."""
    links = []
    for raw in listed:
        one = messages.flat(raw)
        if one is None:
            notes.counts["entries that are no message left out"] += 1
        elif one["type"] != "remove":
            links.append(Link(node(one, notes), messages.identity(one), messages.own_id(one)))
    return links


def node(one: dict[str, Any], notes: Notes) -> Node:
    """Return the record of a flat message, without its id and parent."""
    said = messages.neutral(one, notes)
    made = Node("", None, talk.kind_of(said), messages=said, text=talk.text_of(said))
    if messages.role(one) == "assistant":
        made.model = messages.model(one, notes)
        made.usage = usage.counts(one.get("usage_metadata"))
        made.cut = messages.cut(one)
    return made
