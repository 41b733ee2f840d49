"""Open WebUI's export of chats: the list of all, or the inner object of one. Pure.

A chat's `history` maps ids to messages with parents. Chats in the wild hold nodes without a role or
parent, children that are not there and a current message that leads nowhere: none loses the chat.
Models that were asked side by side are siblings, in the order in which they stand on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import clean, each, pieces, talk, usage
from ledger.formats import open_webui_messages as messages
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree
from ledger.records import times

name = "open-webui"
home = None
together = alone

Raw = dict[str, Any]
_SYSTEM = "the-system-prompt"


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a chat of this export, with or without what is around it."""
    return _history(sample) is not None


def _history(value: object) -> Raw | None:
    """Return the messages of a chat by their ids."""
    inner = value.get("chat", value) if isinstance(value, dict) else None
    history = inner.get("history") if isinstance(inner, dict) else None
    found = history.get("messages") if isinstance(history, dict) else None
    return found if isinstance(found, dict) else None


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each chat; one that does not read is skipped, and the next one is read."""
    return each.conversations(files, _draft)


def _draft(value: Any, raw: bytes, what: str, notes: Notes) -> Iterator[Draft | Skipped]:
    history = _history(value)
    if history is None:
        yield Skipped(what, "it has no `history` of messages")
        return
    chat = value.get("chat", value)
    title = each.title(value.get("title") or chat.get("title"), notes)
    system = list(_system(chat, notes))
    nodes = [*system, *_nodes(history, _SYSTEM if system else None, notes)]
    source_id = _source_id(value.get("id") or chat.get("id"), nodes)
    tree = Tree(nodes, format=name, conversation=source_id, notes=notes)
    current = chat["history"].get("currentId")
    yield each.draft(
        format=name,
        source_id=source_id,
        title=title,
        tree=tree,
        current=each.turn_at(current, tree, notes) if isinstance(current, str) else None,
        raw=raw,
        notes=notes,
        what=f"{what} {title!r}" if title else what,
    )


def _system(chat: Raw, notes: Notes) -> Iterator[Node]:
    """Yield the system prompt of a chat, above all its messages."""
    params = chat.get("params")
    given = params.get("system") if isinstance(params, dict) else None
    if parts := pieces.text(given or chat.get("system"), notes):
        message = {"role": "system", "parts": parts}
        yield Node(_SYSTEM, None, "aside", messages=[message])


def _source_id(given: Any, nodes: list[Node]) -> str:
    """Return a chat's id; without one, its first message's id and time: converters count their ids."""
    oldest = each.oldest(nodes)
    if given or oldest is None or oldest.created is None:
        return each.source_id(nodes, given)
    return f"of-{oldest.id}-{times.to_milliseconds(oldest.created)}"


def _nodes(history: Raw, root: str | None, notes: Notes) -> Iterator[Node]:
    listed = {
        key: raw.get("childrenIds") if isinstance(raw, dict) else None
        for key, raw in history.items()
    }
    ranks = each.ranks(listed)
    for key, raw in history.items():
        if not isinstance(raw, dict):
            notes.counts["messages that are no object left out"] += 1
            continue
        node = _node(key, raw, root, notes)
        rank, side = ranks.get((node.parent, node.id)), raw.get("modelIdx")
        node.rank = rank if rank is not None else side if isinstance(side, int) else None
        yield node


def _node(key: str, raw: Raw, root: str | None, notes: Notes) -> Node:
    parent = raw.get("parentId")
    above = clean.record_id(parent) if isinstance(parent, str) else root
    node = Node(clean.record_id(key), above, "nothing")
    node.created = clean.moment(raw.get("timestamp"))
    node.messages = messages.neutral(node.id, raw, notes)
    node.kind = talk.kind_of(node.messages)
    node.text = talk.text_of(node.messages)
    if raw.get("role") == "assistant":
        model = raw.get("model")
        node.model = clean.text(model, notes) if isinstance(model, str) and model else None
        node.usage = usage.counts(raw.get("usage")) or usage.counts(raw.get("info"))
        node.cut = _cut(raw)
    return node


def _cut(raw: Raw) -> str | None:
    if raw.get("error"):
        return "error"
    return "in_progress" if raw.get("done") is False else None
