"""Checkpoints of LangGraph in a database (`SqliteSaver`): the states of each thread. Pure.

Each checkpoint holds all messages again, so what is new in one is what its parent's way has not. Two
checkpoints of one parent are branches; a message that was changed under its id is one from where it
stands, and a system's word that was changed is new context. What a state has dropped (summaries,
removals) stays on the way that led there.

Nothing is executed: MessagePack is read as plain values, and what was pickled is not read at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.formats import clean, each, langchain, plain_msgpack, tables
from ledger.formats import langchain_messages as messages
from ledger.formats.base import Draft, File, Notes, Row, Skipped, Unreadable, alone
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "langgraph"
home = None
together = alone

Raw = dict[str, Any]
_COLUMNS = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint")
_MAIN = "messages"
_OF_THREAD = "thread_id = ? and checkpoint_ns = '' and typeof(checkpoint_id) = 'text'"


def looks_like(sample: object) -> bool:
    """Say whether a database holds checkpoints."""
    return tables.with_columns(sample, *_COLUMNS) == "checkpoints"


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each thread; one that does not read is skipped, and the next one is read."""
    for file in files:
        try:
            has_writes = "writes" in tables.schema(file)
            threads = tables.texts(file, "checkpoints", "thread_id")
            for column in ("thread_id", "checkpoint_id"):
                yield from tables.nameless(file, "checkpoints", column)
        except Unreadable as error:
            yield Skipped(file.name, f"it cannot be read: {error}")
            continue
        for thread in threads:
            what = f"{file.name}: thread {clean.value(thread, Notes())}"
            try:
                yield _Thread(file, thread, has_writes).draft(what)
            except Unreadable as error:
                yield Skipped(what, f"it cannot be read: {error}")
            except RecursionError:
                yield Skipped(what, "what is said in it is nested too deep")


@dataclass(slots=True)
class _Said:
    """A message as a state holds it."""

    id: str
    """Its own id; without one, what it says and how often that was said before."""
    digest: str
    flat: Raw


@dataclass(slots=True)
class _Thread:
    """The tree of one thread, as it is read checkpoint by checkpoint."""

    file: File
    thread: Any
    has_writes: bool
    notes: Notes = field(default_factory=Notes)
    nodes: dict[str, Node] = field(default_factory=dict)
    said: dict[str, _Said] = field(default_factory=dict)
    """The message of each record."""
    below: dict[tuple[str | None, str, str], str] = field(default_factory=dict)
    """The record of a message, by the record above it."""
    rows: list[tuple[str, Row]] = field(default_factory=list)

    def draft(self, what: str) -> Draft | Skipped:
        ends: dict[str, str | None] = {}
        order = self._order()
        parents = {row["parent_checkpoint_id"] for row in order}
        for row in order:
            id, parent = row["checkpoint_id"], row["parent_checkpoint_id"]
            ends[id] = self._read(row, ends.get(parent), id not in parents)
        self._count_inner()
        for id, said in self.said.items():
            self.rows.append(("messages", {"record": id, **said.flat}))
        source_id = f"{clean.record_id(str(self.thread))}-{self._beginning()}"
        nodes = list(self.nodes.values())
        tree = Tree(nodes, format=name, conversation=source_id, notes=self.notes)
        end = ends[max(ends)] if ends else None
        return each.draft(
            format=name,
            source_id=source_id,
            title=None,
            tree=tree,
            current=tree.turn_at(end) if end else None,
            raw=tables.record(self.rows),
            raw_type="application/jsonl",
            notes=self.notes,
            what=what,
            growing=self.file.growing(each.last_time(nodes)),
        )

    def _beginning(self) -> str:
        first = each.oldest([*self.nodes.values()])
        return self.said[first.id].digest[:12] if first else "nothing"

    def _order(self) -> list[Row]:
        """Return the checkpoints without their states, parents first."""
        query = f"select checkpoint_id, parent_checkpoint_id from checkpoints where {_OF_THREAD} order by 1"
        rows = {row["checkpoint_id"]: row for row in self.file.rows(query, self.thread)}
        below: dict[Any, list[Row]] = {}
        for row in rows.values():
            parent = row["parent_checkpoint_id"]
            below.setdefault(parent if parent in rows else None, []).append(row)
        out: list[Row] = []
        stack = below.pop(None, [])[::-1]
        while stack:
            row = stack.pop()
            out.append(row)
            stack += below.pop(row["checkpoint_id"], [])[::-1]
        return out + [row for rest in below.values() for row in rest]

    def _count_inner(self) -> None:
        query = "select count(*) as n from checkpoints where thread_id = ? and checkpoint_ns != ''"
        for row in self.file.rows(query, self.thread):
            if row["n"]:
                self.notes.counts["checkpoints of graphs within the graph left out"] += row["n"]

    # -- one checkpoint

    def _read(self, row: Row, end: str | None, is_leaf: bool) -> str | None:
        """Take what is new in a checkpoint. Returns: the record at which it ends."""
        query = f"select * from checkpoints where {_OF_THREAD} and checkpoint_id = ?"
        whole = next(self.file.rows(query, self.thread, row["checkpoint_id"]))
        state = self._loaded(whole.get("type"), whole.pop("checkpoint"))
        self.rows.append(("checkpoints", whole))
        if not isinstance(state, dict):
            return end
        values = state.get("channel_values")
        values = values if isinstance(values, dict) else {}
        listed = _listed(values)
        if listed is None:
            listed = self._written(row["parent_checkpoint_id"])
        start = values.get("__start__")
        if is_leaf and isinstance(start, dict):
            listed += _listed(start) or []
        return self._on(listed, end, clean.moment(state.get("ts")), row["checkpoint_id"])

    def _loaded(self, kind: Any, data: Any) -> Any:
        try:
            if kind == "msgpack" and isinstance(data, bytes):
                return plain_msgpack.loads(data)
            if kind in ("json", None):
                return tables.value(data)
            self.notes.counts[f"states kept as {clean.value(kind, self.notes)} not read"] += 1
        except ValueError:
            self.notes.counts["states that do not read left out"] += 1
        return None

    def _written(self, parent: Any) -> list[Raw]:
        """Return the messages that were written at a checkpoint: states may tell increments alone."""
        if not self.has_writes or parent is None:
            return []
        query = (
            f"select * from writes where {_OF_THREAD} and checkpoint_id = ? order by task_id, idx"
        )
        found: list[Raw] = []
        for row in self.file.rows(query, self.thread, parent):
            if not str(row["channel"]).startswith("__"):
                value = self._loaded(row.get("type"), row["value"])
                listed = value if isinstance(value, list) else [value]
                flat = [_flat(one) for one in listed]
                found += [one for one in flat if one is not None] if None not in flat else []
        return found

    def _on(self, listed: list[Raw], end: str | None, moment: Any, checkpoint: str) -> str | None:
        """Go on from a record with the messages of a state. Returns: the record at which it ends."""
        way = self._way(end)
        given = list(_named(listed))
        for place, one in enumerate(given):
            if self._changed(one, way) and one.flat["type"] != "system":
                end, given = self.nodes[way[one.id]].parent, given[place:]
                way = self._way(end)
                break
        for one in given:
            new = one.id not in way or self._changed(one, way)
            if new and one.flat["type"] != "remove":
                end = self._below(end, one, moment, checkpoint)
        return end

    def _changed(self, one: _Said, way: dict[str, str]) -> bool:
        return one.id in way and self.said[way[one.id]].digest != one.digest

    def _way(self, end: str | None) -> dict[str, str]:
        """Return the latest record on the way to one for each id of a message."""
        way: dict[str, str] = {}
        while end is not None:
            way.setdefault(self.said[end].id, end)
            end = self.nodes[end].parent
        return way

    def _below(self, above: str | None, one: _Said, moment: Any, checkpoint: str) -> str:
        key = (above, one.id, one.digest)
        if key not in self.below:
            id = one.id
            if id in self.nodes:
                id = f"{one.id}@{checkpoint}"
            if id in self.nodes:
                id += f".{len(self.nodes)}"
            node = langchain.node(one.flat, self.notes)
            node.id, node.parent, node.created = id, above, moment
            self.nodes[id], self.said[id], self.below[key] = node, one, id
        return self.below[key]


def _listed(values: Raw) -> list[Raw] | None:
    """Return the messages of a state: of the channel of that name, else of the first that holds any."""
    for channel in sorted(values, key=lambda channel: (channel != _MAIN, channel)):
        listed = values[channel]
        if not channel.startswith("__") and isinstance(listed, list) and listed:
            flat = [_flat(one) for one in listed]
            if found := [one for one in flat if one is not None]:
                return found
    return None


def _flat(value: Any) -> Raw | None:
    """Return a message with its keys side by side, whichever way a state holds it."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("class"), str) and isinstance(value.get("value"), dict):
        word = value["class"].rpartition(".")[2]
        return messages.flat({"type": word, **value["value"]})
    if isinstance(value.get("role"), str) and "content" in value and "type" not in value:
        return messages.flat({**value, "type": value["role"]})
    return messages.flat(value)


def _named(listed: list[Raw]) -> Iterator[_Said]:
    seen: dict[str, int] = {}
    for flat in listed:
        text = json.dumps(messages.identity(flat), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        seen[digest] = seen.get(digest, 0) + 1
        yield _Said(messages.own_id(flat) or f"{digest[:24]}.{seen[digest]}", digest, flat)
