"""OpenAssistant's trees: one a line with replies in each other, or a line for each message. Pure.

Prompts and answers both have siblings, ranked by people: rank 0 is the best, and its way the head. A
message that was deleted, or failed its review, is kept; a turn says the rank of its last message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import clean, each, tables, talk
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.nodes import Node, children_of
from ledger.formats.tree import Tree

name = "oasst"
home = None
together = alone

Raw = dict[str, Any]
_ROLES = {"prompter": "user", "assistant": "assistant"}
_APART = frozenset(
    {"message_id", "message_tree_id", "parent_id", "text", "role", "replies", "created_date"}
)


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a tree, or a message of one."""
    return _root(sample) is not None


def _root(value: object) -> Raw | None:
    """Return the message a tree begins with, or the message that a line is."""
    inner = value.get("prompt", value) if isinstance(value, dict) else None
    if not isinstance(inner, dict) or _role(inner) is None:
        return None
    return inner if isinstance(inner.get("message_id"), str) else None


def _role(raw: Raw) -> str | None:
    role = raw.get("role")
    return _ROLES.get(role) if isinstance(role, str) else None


def _above(raw: Raw) -> str | None:
    parent = raw.get("parent_id")
    return parent if isinstance(parent, str) else None


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each tree; one that does not read is skipped, and the next one is read.

    A file with a line for each message is held in memory: a tree's messages may stand anywhere in it.
    """
    for file in files:
        single: list[tuple[Raw, bytes]] = []
        for number, element in enumerate(file.elements(), 1):
            what, notes = f"{file.name}: tree {number}", Notes()
            found = each.decoded(element, what, notes)
            if isinstance(found, Skipped):
                yield found
            elif (root := _root(found.value)) is None:
                yield Skipped(what, "it has no message of a prompter or assistant")
            elif "replies" in root:
                yield _draft(list(_walked(root, notes)), found.raw, what, notes)
            else:
                single.append((root, found.raw))
        yield from _together(file, single)


def _together(file: File, single: list[tuple[Raw, bytes]]) -> Iterator[Draft | Skipped]:
    """Yield the trees of messages that stand in lines of their own, in whatever order."""
    parents = {raw["message_id"]: _above(raw) for raw, _ in single}
    roots: dict[str, str] = {}
    trees: dict[str, list[tuple[Raw, bytes]]] = {}
    for raw, line in single:
        way = []
        at: Any = raw["message_id"]
        while at not in roots and at not in way and parents.get(at) in parents:
            way.append(at)
            at = parents[at]
        root = roots.get(at, at)
        roots.update(dict.fromkeys([*way, at], root))
        trees.setdefault(root, []).append((raw, line))
    for root, lines in trees.items():
        told = [
            (raw, _above(raw)) for raw, _ in sorted(lines, key=lambda one: one[0]["message_id"])
        ]
        whole = b"\n".join(line for _, line in lines)
        what = f"{file.name}: tree {root}"
        yield _draft(told, whole, what, Notes(), "application/jsonl")


def _walked(root: Raw, notes: Notes) -> Iterator[tuple[Raw, Any]]:
    """Yield the messages of a tree, each with the id of the one that it replies to."""
    stack: list[tuple[Any, Any]] = [(root, None)]
    while stack:
        raw, parent = stack.pop()
        if not isinstance(raw, dict) or not isinstance(raw.get("message_id"), str):
            notes.counts["messages without an id left out"] += 1
            continue
        yield raw, parent
        replies = raw.get("replies")
        below = replies if isinstance(replies, list) else []
        stack += [(one, raw["message_id"]) for one in reversed(below)]


def _draft(
    told: list[tuple[Raw, Any]],
    raw: bytes,
    what: str,
    notes: Notes,
    raw_type: str = "application/json",
) -> Draft | Skipped:
    nodes = [_node(one, parent, notes) for one, parent in told]
    ranks = {node.id: node.rank for node in nodes}
    source_id = clean.record_id(_first(nodes))
    tree = Tree(nodes, format=name, conversation=source_id, notes=notes)
    for turn in tree.turns:
        rank = ranks.get(turn.source["records"][-1])
        if rank is not None:
            turn.source["rank"] = rank
    best = _best(nodes)
    return each.draft(
        format=name,
        source_id=source_id,
        title=None,
        tree=tree,
        current=tree.turn_at(best) if best else None,
        raw=raw,
        raw_type=raw_type,
        notes=notes,
        what=what,
    )


def _first(nodes: list[Node]) -> str:
    ids = {node.id for node in nodes}
    return next((node.id for node in nodes if node.parent not in ids), nodes[0].id)


def _best(nodes: list[Node]) -> str | None:
    """Return the last message of the way that was ranked best at each step."""
    ids = {node.id for node in nodes}
    below = children_of(nodes)
    at = next((node.id for node in nodes if node.parent not in ids), None)
    seen = set()
    while at is not None and at not in seen and below.get(at):
        seen.add(at)
        at = below[at][0].id
    return at


def _node(raw: Raw, parent: Any, notes: Notes) -> Node:
    id = clean.record_id(raw["message_id"])
    node = Node(id, clean.record_id(parent) if isinstance(parent, str) else None, "nothing")
    node.created = clean.moment(raw.get("created_date")) or tables.utc(raw.get("created_date"))
    rank, role = raw.get("rank"), _role(raw)
    node.rank = rank if type(rank) is int and 0 <= rank < 1 << 31 else None
    if role is None:
        notes.unknown[f"role {clean.value(raw.get('role'), notes)}"] += 1
    kept = {
        key: value
        for key, value in raw.items()
        if key not in _APART and value not in (None, {}, [])
    }
    text = raw.get("text")
    text = clean.text(text, notes) if isinstance(text, str) else ""
    only = {name: {"id": id, **clean.value(kept, notes)}}
    parts = [{"type": "text", "content": text}]
    node.messages = [{"role": role or "system", "parts": parts, "only": only}]
    node.kind, node.text = talk.kind_of(node.messages), text
    model = raw.get("model_name")
    if node.kind in ("answer", "step") and isinstance(model, str):
        node.model = clean.text(model, notes)
    return node
