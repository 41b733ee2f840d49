"""opencode's database: `~/.local/share/opencode/opencode.db`. Pure.

Each step of the model is a message of its own that names the prompt: steps of one prompt follow each
other, and a prompt follows the last step of the one before it. A session that a task began is a side
line; the call names it. What was reverted is no longer in the database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from ledger.formats import clean, pieces
from ledger.formats.base import Draft, File, Message, Notes, Row, Schema, Skipped, alone
from ledger.formats.nodes import Node
from ledger.formats.pieces import Part, Raw, of, string
from ledger.formats.tree import Tree

name = "opencode"
home = re.compile(r"(.*/)?opencode[^/]*\.db", re.IGNORECASE)
together = alone

_SILENT = frozenset({"patch", "snapshot", "step-finish", "step-start"})


def looks_like(sample: object) -> bool:
    """Say whether a database is opencode's."""
    if not isinstance(sample, Schema) or "session" not in sample:
        return False
    return all(
        {"session_id", "data"} <= set(sample.get(table, ())) for table in ("message", "part")
    )


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read the sessions of each database, those first that no call began."""
    for file in files:
        sessions = list(file.rows("SELECT * FROM session ORDER BY rowid"))
        callers: dict[str, dict[str, Any]] = {}
        for row in sorted(sessions, key=lambda row: bool(_parent(row))):
            yield from _session(file, row, callers)


def _parent(row: Row) -> str:
    return string(row.get("parent_id")) or string(row.get("parentID"))


def _session(file: File, row: Row, callers: dict[str, dict[str, Any]]) -> Iterator[Draft | Skipped]:
    notes = Notes()
    id = string(row.get("id"))
    steps = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, rowid"
    pieces_of = "SELECT * FROM part WHERE session_id = ? ORDER BY rowid"
    rows = list(file.rows(steps, row.get("id")))
    parts: dict[str, list[Row]] = {}
    for part in file.rows(pieces_of, row.get("id")):
        parts.setdefault(string(part.get("message_id")), []).append(part)
    talk = _Talk(notes)
    for message in rows:
        talk.take(message, parts.get(string(message.get("id")), []))
    source_id = clean.record_id(id)
    tree = Tree(talk.nodes, format=name, conversation=source_id, notes=notes)
    if not tree.turns:
        yield Skipped(f"{file.name}: session {id}", "it has no message of a user or an answer")
        return
    for side, (node, call) in talk.sides.items():
        callers[side] = {"conversation": source_id, "turn": tree.turn_at(node), "call": call}
    told = [row, *(one for message in rows for one in (message, *parts.get(message["id"], [])))]
    parent = _parent(row)
    yield Draft(
        format=name,
        source_id=source_id,
        title=clean.text(string(row.get("title")).strip(), notes) or None,
        turns=tree.turns,
        current=tree.turn_at(talk.nodes[-1].id),
        raw=[b"".join(_dumped(one) + b"\n" for one in told)],
        notes=notes,
        raw_type="application/jsonl",
        blobs=pieces.blobs(tree.turns),
        side_of=callers.get(id, {"conversation": clean.record_id(parent)}) if parent else None,
        growing=file.growing(_last_time(told)),
    )


def _last_time(rows: list[Row]) -> datetime | None:
    """Return when the last of some rows was written."""
    told = (clean.moment(row.get(key)) for row in rows for key in ("time_created", "time_updated"))
    return max(filter(None, told), default=None)


def _dumped(row: Row) -> bytes:
    """Return a row as JSON; bytes, which are not expected, as hex."""
    return json.dumps(row, default=lambda value: value.hex(), ensure_ascii=False).encode(
        errors="replace"
    )


class _Talk:
    """The messages of a session, in order."""

    def __init__(self, notes: Notes) -> None:
        self.nodes: list[Node] = []
        self.sides: dict[str, tuple[str, str]] = {}
        """Sessions that calls began, each with the node and the id of the call."""
        self._notes = notes
        self._last: dict[str, str] = {}
        """The last step of each prompt, and the prompt itself where there is none."""
        self._asked: str | None = None

    def take(self, row: Row, parts: list[Row]) -> None:
        """Take the next message."""
        id, value = clean.record_id(string(row.get("id"))), _loaded(row, self._notes)
        role = value.get("role")
        given = [(string(part.get("id")), _loaded(part, self._notes)) for part in parts]
        asked = clean.record_id(string(value.get("parentID")))
        if role == "user":
            above = self._last.get(self._asked or "")
            self._asked = id
        else:
            asked = asked if asked in self._last else self._asked or id
            above = self._last.get(asked)
        self._last[id if role == "user" else asked] = id
        node = Node(id, above, "nothing")
        node.created = clean.moment(of(value, "time").get("created") or row.get("time_created"))
        node.updated = clean.moment(of(value, "time").get("completed")) or node.created
        if role == "user":
            self._prompt(node, [part for _, part in given])
        elif role == "assistant":
            self._answer(node, value, given)
        else:
            self._notes.unknown[f"role {clean.value(role, self._notes)}"] += 1
        self.nodes.append(node)

    def _prompt(self, node: Node, given: list[Raw]) -> None:
        typed = [one for one in given if not one.get("synthetic")]
        node.text = "\n".join(
            clean.text(string(one.get("text")), self._notes)
            for one in typed
            if one.get("type") == "text"
        )
        parts = [part for one in given for part in self._part(one)]
        if parts:
            node.kind = "prompt" if typed else "aside"
            node.messages = [pieces.message("user" if typed else "developer", parts)]

    def _answer(self, node: Node, value: Raw, given: list[tuple[str, Raw]]) -> None:
        parts: list[Part] = []
        results: list[Message] = []
        for id, one in given:
            if one.get("type") == "tool":
                parts.append(self._call(node.id, id, one, results))
            else:
                parts += self._part(one)
        failed = string(of(value, "error").get("name"))
        calls = any(part["type"] == "tool_call" for part in parts)
        node.text = pieces.said(parts)
        whole = of(value, "time").get("completed") or value.get("finish")
        node.kind = "answer" if node.text and not calls and not failed and whole else "step"
        node.closed = bool(failed)
        if failed:
            node.cut = "interrupted" if failed == "MessageAbortedError" else "error"
        node.model = clean.text(string(value.get("modelID")), self._notes) or None
        node.usage = _usage(of(value, "tokens"))
        own = {key: value[key] for key in ("providerID", "mode", "cost", "error") if value.get(key)}
        only = {name: clean.value(own, self._notes)} if own else None
        finish = clean.text(string(value.get("finish")), self._notes)
        node.messages = [
            pieces.message("assistant", parts, finish_reason=finish, only=only),
            *results,
        ]

    def _call(self, node: str, id: str, one: Raw, results: list[Message]) -> Part:
        state = of(one, "state")
        call = clean.text(string(one.get("callID")) or id, self._notes)
        part = pieces.call(call, one.get("tool"), state.get("input"), self._notes)
        side = string(of(state, "metadata").get("sessionId"))
        if side:
            self.sides[side] = node, call
            part["only"] = {name: {"side": clean.record_id(side)}}
        given = state.get("output") if state.get("output") is not None else state.get("error")
        if given is not None:
            results.append(pieces.message("tool", [pieces.response(call, given, self._notes)]))
        return part

    def _part(self, one: Raw) -> list[Part]:
        kind = one.get("type")
        if kind == "text":
            return pieces.text(one.get("text"), self._notes)
        if kind == "reasoning":
            return pieces.reasoning(one.get("text"), self._notes)
        if kind == "file" and string(one.get("url")):
            modality = "image" if string(one.get("mime")).startswith("image/") else "document"
            return pieces.link(one["url"], modality, self._notes)
        if kind in _SILENT:
            return []
        return pieces.unknown(name, "part", kind, one, self._notes)


def _loaded(row: Row, notes: Notes) -> Raw:
    """Return what a row says; an empty object where that is no JSON, which is counted."""
    data = row.get("data")
    raw = data.encode(errors="replace") if isinstance(data, str) else data
    try:
        value = clean.decoded(raw, notes) if isinstance(raw, bytes) else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    notes.counts[pieces.BAD_LINES] += 1
    return {}


def _usage(tokens: Raw) -> dict[str, int] | None:
    cache = of(tokens, "cache")
    if not tokens:
        return None
    return pieces.tokens(
        input_tokens=pieces.plus(tokens.get("input"), cache.get("read"), cache.get("write")),
        output_tokens=tokens.get("output"),
        cache_read_tokens=cache.get("read"),
        cache_write_tokens=cache.get("write"),
        reasoning_tokens=tokens.get("reasoning"),
    )
