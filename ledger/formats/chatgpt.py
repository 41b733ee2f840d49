"""ChatGPT's data export: `conversations.json`, its shards, or one conversation. Pure.

A conversation is a `mapping` of nodes with parent pointers; a node has a message or none. Children
lists serve the order of siblings only: they may be absent, incomplete or wrong. This file decides
what each node is (`nodes.Kind`); `tree` makes the turns, `chatgpt_messages` reads the messages.

Hidden is: marked so, weight 0, the system's (custom instructions too), editable context. Such nodes
have role `user` in newer files and are never a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import chatgpt_messages as messages
from ledger.formats import chatgpt_parts as parts
from ledger.formats import clean, each
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.chatgpt_parts import Said
from ledger.formats.nodes import Kind, Node
from ledger.formats.tree import Tree

name = "chatgpt"
home = re.compile(r"(.*/)?conversations([-_ .]?\d+)?\.json", re.IGNORECASE)
together = alone

Raw = dict[str, Any]
_NODE_KEYS = frozenset({"message", "parent", "children"})


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a conversation of this export."""
    mapping = sample.get("mapping") if isinstance(sample, dict) else None
    if not isinstance(mapping, dict):
        return False
    return any(isinstance(node, dict) and _NODE_KEYS & node.keys() for node in mapping.values())


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each conversation; one that does not read is skipped, and the next one is read."""
    return each.conversations(files, _draft)


def _draft(value: Any, raw: bytes, what: str, notes: Notes) -> Iterator[Draft | Skipped]:
    if not isinstance(value, dict):
        yield Skipped(what, "not an object")
        return
    title = each.title(value.get("title"), notes)
    what = f"{what} {title!r}" if title else what
    if not isinstance(value.get("mapping"), dict):
        yield Skipped(what, "it has no `mapping` of messages")
        return
    nodes = _nodes(value, notes)
    source_id = each.source_id(nodes, value.get("conversation_id"), value.get("id"))
    tree = Tree(nodes, format=name, conversation=source_id, notes=notes, pair=messages.paired)
    current = value.get("current_node")
    yield each.draft(
        format=name,
        source_id=source_id,
        title=title,
        tree=tree,
        current=each.turn_at(current, tree, notes) if isinstance(current, str) else None,
        raw=raw,
        notes=notes,
        what=what,
    )


# -- nodes -----------------------------------------------------------------------------------------


def _nodes(value: Raw, notes: Notes) -> list[Node]:
    default = value.get("default_model_slug")
    model = clean.text(default, notes) if isinstance(default, str) and default else None
    nodes = []
    ranks = each.ranks(
        {key: parts.of(value["mapping"], key).get("children") for key in value["mapping"]}
    )
    for key, raw in value["mapping"].items():
        if not isinstance(raw, dict):
            notes.counts["nodes that are no object left out"] += 1
            continue
        node = _node(key, raw, notes, model)
        node.rank = ranks.get((node.parent, node.id))
        nodes.append(node)
    return nodes


def _node(key: str, raw: Raw, notes: Notes, default: str | None) -> Node:
    given = raw.get("message")
    parent = raw.get("parent")
    above = clean.record_id(parent) if isinstance(parent, str) else None
    node = Node(clean.record_id(key), above, "nothing")
    if not isinstance(given, dict):
        return node
    message = parts.read(given)
    node.kind = _kind(message, notes)
    node.created = clean.moment(given.get("create_time"))
    node.updated = clean.moment(given.get("update_time"))
    if node.kind == "aside":
        _hide(node, message, notes)
    elif node.kind != "nothing":
        node.messages = [messages.visible(node.id, message, notes)]
        node.text = parts.said(node.messages[0]["parts"])
    if message.role == "assistant":
        slug = message.metadata.get("model_slug")
        node.model = clean.text(slug, notes) if isinstance(slug, str) and slug else default
        node.cut = messages.cut(message)
    return node


def _hide(node: Node, message: Said, notes: Notes) -> None:
    aside = messages.hidden(node.id, message, notes)
    if aside is None:
        node.kind = "nothing"
    else:
        node.messages = [aside]


def _kind(message: Said, notes: Notes) -> Kind:
    role = message.role
    if role not in ("system", "user", "assistant", "tool", "function"):
        notes.unknown[f"role {clean.value(role, notes)}"] += 1
        return "aside"
    if role == "system" or _hidden(message):
        return "aside"
    if role == "user":
        return "prompt"
    if messages.is_spinner(message):
        return "nothing"
    if role != "assistant":
        return "answer" if messages.is_made_image(message) else "step"
    return "step" if messages.is_call(message) else _said_to_all(message)


def _said_to_all(message: Said) -> Kind:
    """Say what an assistant's message to everyone is: an answer, a step, or an empty shell."""
    content, kind = message.content, message.kind
    if kind in ("text", "multimodal_text"):
        pieces = content.get("parts")
        return "answer" if isinstance(pieces, list) and any(pieces) else "nothing"
    if kind == "code":
        return "answer" if content.get("text") else "nothing"
    return "step" if content else "nothing"


def _hidden(message: Said) -> bool:
    metadata = message.metadata
    weight = message.raw.get("weight")
    return bool(
        metadata.get("is_visually_hidden_from_conversation")
        or metadata.get("is_user_system_message")
        or (weight == 0 and not isinstance(weight, bool))
        or message.kind in parts.CONTEXT
    )
