"""The log of the command `llm`, a database: its threads, and the conversations of older versions. Pure.

Since 0.32 messages are kept by their content: a message's hash covers its parent's, threads point at
the last message, and a row of `turns` is one call of a model. Threads that were forked, or that hold
one answer in common, are branches of one conversation, named by the oldest. What an older version
wrote stays in tables of its own (`llm_older`); a conversation that went on since is whole in its thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.formats import each, llm_older, tables, talk, usage
from ledger.formats import llm_parts as parts
from ledger.formats.base import Draft, File, Notes, Row, Skipped, Unreadable, alone
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "llm"
home = re.compile(r"(.*/)?io\.datasette\.llm/logs\.db", re.IGNORECASE)
together = alone


def looks_like(sample: object) -> bool:
    """Say whether the tables of a database are those of this log, of either generation."""
    return _is_new(sample) or llm_older.looks_like(sample)


def _is_new(sample: object) -> bool:
    threads = tables.with_columns(sample, "id", "tip_message_hash", "forked_from")
    return threads == "threads" and "turns" in sample and "messages" in sample  # type: ignore[operator]


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each conversation; one that does not read is skipped, and the next one is read."""
    for file in files:
        try:
            schema = tables.schema(file)
            known: set[str] = set()
            if _is_new(schema):
                log = _Log(file)
                known = {id for id, tips in log.tips.items() if tips}
                yield from _threads(file, log)
            if llm_older.looks_like(schema):
                yield from llm_older.drafts(file, schema, known)
        except Unreadable as error:
            yield Skipped(file.name, f"it cannot be read on: {error}")


@dataclass(slots=True)
class _Log:
    """What belongs where: the shape of the messages, without what they say."""

    file: File
    names: dict[str, str | None] = field(default_factory=dict)
    """Of each thread."""
    tips: dict[str, list[str]] = field(default_factory=dict)
    """The last messages of what belongs to a thread; the one that it points at comes last."""
    above: dict[str, str | None] = field(default_factory=dict)
    """The parent of each message."""
    families: dict[str, list[str]] = field(default_factory=dict)
    """The threads of each conversation, the oldest first, by its id."""

    def __post_init__(self) -> None:
        spoken = set()
        for row in self.file.rows("select hash, parent_hash, role from messages"):
            self.above[row["hash"]] = row["parent_hash"]
            if row["role"] == "assistant":
                spoken.add(row["hash"])
        parents: dict[str, str] = {}
        threads = list(self.file.rows("select * from threads order by id"))
        for row in threads:
            self.names[row["id"]], self.tips[row["id"]] = row["name"], []
        for row in self.file.rows("select id, thread_id, tip_message_hash from turns order by id"):
            if row["tip_message_hash"] in self.above and row["thread_id"] in self.tips:
                self.tips[row["thread_id"]].append(row["tip_message_hash"])
        holder: dict[str, str] = {}
        for row in threads:
            if row["tip_message_hash"] in self.above:
                self.tips[row["id"]].append(row["tip_message_hash"])
            if row["forked_from"] in self.tips:
                _join(parents, row["id"], row["forked_from"])
            for hash in self.chains(self.tips[row["id"]]):
                if hash in spoken:
                    _join(parents, row["id"], holder.setdefault(hash, row["id"]))
        for row in threads:
            self.families.setdefault(_root(parents, row["id"]), []).append(row["id"])

    def chains(self, tips: list[str]) -> list[str]:
        """Return all messages from the roots to these tips, each once, parents first."""
        seen: dict[str, None] = {}
        for tip in tips:
            way = []
            at: str | None = tip
            while at is not None and at not in seen and at in self.above:
                way.append(at)
                seen[at] = None
                at = self.above[at]
            for hash in way:
                del seen[hash]
            seen.update(dict.fromkeys(reversed(way)))
        return list(seen)


def _join(parents: dict[str, str], one: str, other: str) -> None:
    old, young = sorted((_root(parents, one), _root(parents, other)))
    if old != young:
        parents[young] = old


def _root(parents: dict[str, str], thread: str) -> str:
    while thread in parents:
        thread = parents[thread]
    return thread


# -- a conversation --------------------------------------------------------------------------------


def _threads(file: File, log: _Log) -> Iterator[Draft | Skipped]:
    for id, family in log.families.items():
        what = f"{file.name}: thread {id}"
        try:
            yield _draft(file, log, id, family, what)
        except Unreadable as error:
            yield Skipped(what, f"it cannot be read: {error}")
    told = {hash for tips in log.tips.values() for hash in log.chains(tips)}
    if left := len(log.above.keys() - told):
        yield Skipped(f"{file.name}: {left:,} messages", "no thread leads to them")


def _draft(file: File, log: _Log, id: str, family: list[str], what: str) -> Draft | Skipped:
    notes = Notes()
    blobs: dict[str, bytes] = {}
    rows: list[tuple[str, Row]] = []
    nodes: dict[str, Node] = {}
    for hash in log.chains([tip for thread in family for tip in log.tips[thread]]):
        node = Node(hash, log.above[hash], "nothing")
        (row,) = file.rows("select * from messages where hash = ?", hash)
        node.messages = parts.message(file, row, rows, blobs, notes)
        node.kind = talk.kind_of(node.messages)
        node.text = talk.text_of(node.messages)
        nodes[hash] = node
    calls = [
        row
        for thread in family
        for row in file.rows("select * from turns where thread_id = ?", thread)
    ]
    for row in sorted(calls, key=lambda row: str(row["id"])):
        rows.append(("turns", row))
        _note_call(row, nodes, log, notes)
    title = each.title(log.names[id], notes)
    tree = Tree(nodes.values(), format=name, conversation=id, notes=notes)
    newest = [tip for thread in family for tip in log.tips[thread][-1:]]
    return each.draft(
        format=name,
        source_id=id,
        title=title,
        tree=tree,
        current=tree.turn_at(newest[-1]) if newest else None,
        raw=tables.record(rows),
        raw_type="application/jsonl",
        notes=notes,
        what=what,
        blobs=blobs,
    )


def _note_call(row: Row, nodes: dict[str, Node], log: _Log, notes: Notes) -> None:
    """Tell the messages of a call its time, model and counts."""
    moment = tables.utc(row.get("datetime_utc"))
    at: Any = row.get("tip_message_hash")
    tip = nodes.get(at)
    while at in nodes and nodes[at].created is None:
        nodes[at].created = moment
        at = log.above[at]
    if tip is None or tip.kind == "prompt":
        return
    if tip.usage is not None:
        notes.counts["model calls with the very answer of another, added to it"] += 1
    tip.usage = usage.added(tip.usage, parts.counts(row))
    tip.model = parts.model(row, notes)
