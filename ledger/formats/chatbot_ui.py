"""chatbot-ui's export: one object with all chats in its `history`. Pure.

Messages have no ids and no times, so `chain` names them; a chat has an id of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import chain, clean, each, openai_jsonl, pieces
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.chain import Link
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "chatbot-ui"
home = None
together = alone

Raw = dict[str, Any]


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is an export of chats."""
    chats = sample.get("history") if isinstance(sample, dict) else None
    return isinstance(chats, list) and any(_is_chat(chat) for chat in chats)


def _is_chat(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("messages"), list) and "name" in value


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each chat; one that does not read is skipped, and the next one is read."""
    return each.conversations(files, _drafts)


def _drafts(value: Any, raw: bytes, what: str, notes: Notes) -> Iterator[Draft | Skipped]:
    if not looks_like(value):
        yield Skipped(what, "it has no `history` of chats")
        return
    for number, chat in enumerate(value["history"], 1):
        which = f"{what}, chat {number}"
        yield _draft(chat, raw, which) if _is_chat(chat) else Skipped(which, "it has no `messages`")


def _draft(chat: Raw, raw: bytes, what: str) -> Draft | Skipped:
    notes = Notes()
    links = [*_prompt(chat, notes), *openai_jsonl.links_of(_plain(chat["messages"]), notes)]
    nodes = chain.named(links)
    given = chat.get("model")
    given = given.get("id") if isinstance(given, dict) else given
    for node in nodes:
        if node.kind == "answer" and isinstance(given, str):
            node.model = clean.text(given, notes)
    source_id = each.source_id(nodes, chat.get("id") or f"of-{chain.beginning(links)}")
    tree = Tree(nodes, format=name, conversation=source_id, notes=notes)
    return each.draft(
        format=name,
        source_id=source_id,
        title=each.title(chat.get("name"), notes),
        tree=tree,
        current=tree.turn_at(nodes[-1].id) if nodes else None,
        raw=raw,
        notes=notes,
        what=what,
    )


def _prompt(chat: Raw, notes: Notes) -> Iterator[Link]:
    """Yield the system prompt of a chat, above all its messages."""
    if parts := pieces.text(chat.get("prompt"), notes):
        message = {"role": "system", "parts": parts}
        yield Link(Node("", None, "aside", messages=[message]), chat["prompt"])


def _plain(messages: list[Any]) -> list[Any]:
    """Return messages without the word `text`, which says only that they are text."""
    return [
        {key: value for key, value in raw.items() if key != "type"}
        if isinstance(raw, dict)
        else raw
        for raw in messages
    ]
