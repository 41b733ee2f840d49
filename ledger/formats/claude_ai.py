"""Claude.ai's data export (`conversations.json`), and the object its web page saves. Pure.

A conversation is a list of messages. In newer exports each names its parent, and the list is all
branches mixed. Older ones name none: there the order of the list is all there is, although it is not
always that of the talk. Then a prompt that stands apart from its answer is found by the time they
share to the microsecond; neighbours of one side that nothing explains are siblings, and the turns
made of them say `"order": "uncertain"`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from ledger.formats import claude_ai_messages as messages
from ledger.formats import clean, each, talk
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "claude-ai"
home = None
together = alone

Raw = dict[str, Any]
_NO_PARENT = "00000000-0000-4000-8000-000000000000"
_CUT = {"max_tokens": "length", "user_canceled": "interrupted"}


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a conversation of this export."""
    return isinstance(sample, dict) and isinstance(sample.get("chat_messages"), list)


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each conversation; one that does not read is skipped, and the next one is read."""
    return each.conversations(files, _draft)


def _draft(value: Any, raw: bytes, what: str, notes: Notes) -> Iterator[Draft | Skipped]:
    if not looks_like(value):
        yield Skipped(what, "it has no `chat_messages`")
        return
    title = each.title(value.get("name"), notes)
    what = f"{what} {title!r}" if title else what
    nodes = _nodes(value, notes)
    doubtful: set[str] = set()
    if any("parent_message_uuid" in one for one in messages.listed(value)):
        _rank(nodes)
    else:
        nodes = _in_line(nodes, doubtful, notes)
    source_id = each.source_id(nodes, value.get("uuid"))
    tree = Tree(nodes, format=name, conversation=source_id, notes=notes)
    for turn in tree.turns:
        if doubtful.intersection(turn.source["records"]):
            turn.source["order"] = "uncertain"
    yield each.draft(
        format=name,
        source_id=source_id,
        title=title,
        tree=tree,
        current=_current(value, nodes, tree, notes),
        raw=raw,
        notes=notes,
        what=what,
    )


def _current(value: Raw, nodes: list[Node], tree: Tree, notes: Notes) -> str | None:
    given = value.get("current_leaf_message_uuid")
    if isinstance(given, str):
        return each.turn_at(given, tree, notes)
    newest = each.newest(nodes)
    return tree.turn_at(newest.id) if newest else None


# -- nodes -----------------------------------------------------------------------------------------


def _nodes(value: Raw, notes: Notes) -> list[Node]:
    model = value.get("model")
    nodes = []
    for place, raw in enumerate(value["chat_messages"]):
        if not isinstance(raw, dict):
            notes.counts["messages that are no object left out"] += 1
            continue
        nodes.append(_node(raw, f"message-{place}", model, notes))
    return nodes


def _node(raw: Raw, unnamed: str, default: Any, notes: Notes) -> Node:
    given, parent = raw.get("uuid"), raw.get("parent_message_uuid")
    id = clean.record_id(given) if isinstance(given, str) and given else unnamed
    parent = parent if isinstance(parent, str) and parent != _NO_PARENT else None
    node = Node(id, clean.record_id(parent) if parent else None, "nothing")
    node.created = clean.moment(raw.get("created_at"))
    node.updated = clean.moment(raw.get("updated_at"))
    sender = raw.get("sender")
    if sender not in ("human", "assistant"):
        notes.unknown[f"sender {clean.value(sender, notes)}"] += 1
    node.messages = messages.neutral(id, raw, notes)
    node.kind = talk.kind_of(node.messages)
    node.text = (
        messages.prompt_text(node.messages) if sender == "human" else talk.text_of(node.messages)
    )
    if sender == "assistant":
        model = raw.get("model") or default
        node.model = clean.text(model, notes) if isinstance(model, str) and model else None
        node.cut = _cut(raw)
    return node


def _cut(raw: Raw) -> str | None:
    reason = raw.get("stop_reason")
    cut = _CUT.get(reason) if isinstance(reason, str) else None
    return cut or ("partial" if raw.get("truncated") is True else None)


def _rank(nodes: list[Node]) -> None:
    """Order siblings by their times: the list holds all branches mixed, in no promised order."""
    for rank, node in enumerate(sorted(nodes, key=lambda n: (_time(n), n.id))):
        node.rank = rank


def _time(node: Node) -> str:
    return node.created.isoformat() if node.created else ""


# -- without parents -------------------------------------------------------------------------------


def _in_line(nodes: list[Node], doubtful: set[str], notes: Notes) -> list[Node]:
    """Give each record its parent from the order of the list; tell what is uncertain."""
    nodes = _beside_their_answers(nodes)
    answer: Node | None = None
    prompt: Node | None = None
    before: Node | None = None
    for node in nodes:
        if node.kind == "prompt":
            if before is not None and before is prompt:
                doubtful |= {before.id, node.id}
            node.parent = answer.id if answer else None
            prompt = node
        elif node.kind in ("answer", "step"):
            if before is not None and before is answer:
                doubtful |= {before.id, node.id}
            node.parent = prompt.id if prompt else None
            answer = node
        else:
            node.parent = before.id if before else None
            continue
        before = node
    if doubtful:
        notes.counts["messages whose place in the talk is uncertain"] += len(doubtful)
    return nodes


def _beside_their_answers(nodes: list[Node]) -> list[Node]:
    """Return the records with each lonely prompt moved to the lonely answer of its very time."""
    lonely = [node for i, node in enumerate(nodes) if not _answered(nodes, i)]
    counts = Counter(_key(node) for node in lonely)
    prompts = {
        node.created: node
        for node in lonely
        if node.kind == "prompt" and node.created and counts[_key(node)] == 1
    }
    moved: dict[int, Node] = {}
    for node in lonely:
        if node.kind == "answer" and node.created in prompts and counts[_key(node)] == 1:
            moved[id(node)] = prompts[node.created]
    gone = {id(prompt) for prompt in moved.values()}
    out: list[Node] = []
    for node in nodes:
        if id(node) in moved:
            out.append(moved[id(node)])
        if id(node) not in gone:
            out.append(node)
    return out


def _key(node: Node) -> tuple[str, datetime | None]:
    return node.kind, node.created


def _answered(nodes: list[Node], at: int) -> bool:
    """Say whether a prompt stands right before an answer, or an answer right behind a prompt."""
    if nodes[at].kind == "prompt":
        return at + 1 < len(nodes) and nodes[at + 1].kind != "prompt"
    return at > 0 and nodes[at - 1].kind == "prompt"
