"""LibreChat's export of one conversation: its messages nested in each other, or in a list. Pure.

Nested or not, a message names its parent; where it does not, the one around it is meant. A path of
replies that nest in each other is followed without recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import clean, each, pieces, talk
from ledger.formats import librechat_messages as messages
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "librechat"
home = None
together = alone

Raw = dict[str, Any]
_NO_PARENT = "00000000-0000-0000-0000-000000000000"
_SYSTEM = "options.promptPrefix"


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a conversation of this export."""
    return isinstance(sample, dict) and "conversationId" in sample and _listed(sample) is not None


def _listed(value: Raw) -> list[Any] | None:
    for key in ("messages", "messagesTree"):
        if isinstance(value.get(key), list):
            found: list[Any] = value[key]
            return found
    return None


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each conversation; one that does not read is skipped, and the next one is read."""
    return each.conversations(files, _draft)


def _draft(value: Any, raw: bytes, what: str, notes: Notes) -> Iterator[Draft | Skipped]:
    if not looks_like(value):
        yield Skipped(what, "it has no `conversationId`, or no list of `messages`")
        return
    title = each.title(value.get("title"), notes)
    system = list(_system(value, notes))
    root = _SYSTEM if system else None
    nodes = [*system, *(_node(*one, root, notes) for one in _walked(_listed(value) or [], notes))]
    source_id = each.source_id(nodes, value["conversationId"])
    tree = Tree(nodes, format=name, conversation=source_id, notes=notes)
    newest = each.newest(nodes)
    yield each.draft(
        format=name,
        source_id=source_id,
        title=title,
        tree=tree,
        current=tree.turn_at(newest.id) if newest else None,
        raw=raw,
        notes=notes,
        what=f"{what} {title!r}" if title else what,
    )


def _system(value: Raw, notes: Notes) -> Iterator[Node]:
    """Yield the system prompt of the conversation, above all its messages."""
    options = value.get("options")
    given = options.get("promptPrefix") if isinstance(options, dict) else None
    if parts := pieces.text(given, notes):
        yield Node(_SYSTEM, None, "aside", messages=[{"role": "system", "parts": parts}])


def _walked(listed: list[Any], notes: Notes) -> Iterator[tuple[Raw, str, str | None]]:
    """Yield each message with its id and the id of the one around it, as they stand."""
    stack: list[tuple[Any, str | None]] = [(one, None) for one in reversed(listed)]
    count = 0
    while stack:
        raw, around = stack.pop()
        if not isinstance(raw, dict):
            notes.counts["messages that are no object left out"] += 1
            continue
        count += 1
        given = raw.get("messageId") or raw.get("_id")
        id = clean.record_id(given) if isinstance(given, str) and given else f"message-{count}"
        yield raw, id, around
        below = raw.get("children")
        stack += [(one, id) for one in reversed(below if isinstance(below, list) else [])]


def _node(raw: Raw, id: str, around: str | None, root: str | None, notes: Notes) -> Node:
    parent = raw.get("parentMessageId")
    named = clean.record_id(parent) if isinstance(parent, str) and parent != _NO_PARENT else None
    node = Node(id, around or named or root, "nothing")
    node.created = clean.moment(raw.get("createdAt"))
    node.updated = clean.moment(raw.get("updatedAt"))
    node.messages = messages.neutral(id, raw, notes)
    node.kind = talk.kind_of(node.messages)
    node.text = talk.text_of(node.messages)
    if node.kind != "prompt":
        model = raw.get("model")
        node.model = clean.text(model, notes) if isinstance(model, str) and model else None
        node.usage = messages.usage(raw)
        node.cut = messages.cut(raw)
    return node
