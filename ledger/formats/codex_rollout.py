"""One rollout of Codex: its lines in one shape, and what the session was forked from. Pure.

Three generations: flat lines with a role, items one a line, and today's `{type, payload}`. A fork's file
begins with its own `session_meta`, then a copy of all of its source's lines, whose own `session_meta` is
among them; so the first counts, and the others say what it was forked from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ledger.formats import clean, pieces
from ledger.formats.base import File, Notes
from ledger.formats.nodes import Node
from ledger.formats.pieces import Raw, of, string

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_VERSION_7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7", re.IGNORECASE)
_ITEMS = re.compile(r"message|reasoning|.*_call|.*_output|tool_result|ghost_snapshot")
_SILENT = frozenset({"ghost_snapshot", "compaction_trigger"})
ENVELOPES = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
)


class Line(NamedTuple):
    """A line in today's shape, whatever generation it is of."""

    type: str
    payload: Raw
    created: datetime | None
    value: Raw
    raw: bytes


@dataclass(slots=True)
class Rollout:
    """A file: where it belongs, and its nodes in the order in which they were made."""

    id: str
    """The session's."""
    root: str
    """The session that it was forked from, and that from, up to the first."""
    started: datetime | None
    """When the root began, by its id or its own first line."""
    parent: str | None
    """Of a sub-agent: the session that it works for."""
    is_side: bool
    title: str | None
    nodes: list[Node] = field(default_factory=list)
    at: str | None = None
    """The node that it stands at."""
    last: datetime | None = None
    growing: bool = False
    """Whether more of the last turn may come."""
    raw: bytes = b""
    agents: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Sub-agents that were begun here: their sessions, each with the node and id of the call."""


def lines(file: File, notes: Notes) -> Iterator[Line]:
    """Yield the lines of a file in today's shape."""
    for value, raw in pieces.lines(file, notes):
        kind, payload = string(value.get("type")), value.get("payload")
        created = clean.moment(value.get("timestamp"))
        if isinstance(payload, dict):
            yield Line(kind, payload, created, value, raw)
        elif string(value.get("role")) or _ITEMS.fullmatch(kind):
            yield Line("response_item", {"type": "message", **value}, created, value, raw)
        elif kind == "error":
            yield Line("event_msg", value, created, value, raw)
        elif not kind and "record_type" not in value and string(value.get("id")):
            yield Line("session_meta", value, created, value, raw)
        else:
            yield Line("", value, created, value, raw)


def is_known(value: Any) -> bool:
    """Say whether a decoded line is one of a rollout, of any generation."""
    if not isinstance(value, dict):
        return False
    kind = string(value.get("type"))
    if isinstance(value.get("payload"), dict):
        return kind in ENVELOPES
    if kind in ("function_call", "function_call_output", "reasoning", "local_shell_call"):
        return "uuid" not in value and ("call_id" in value or "summary" in value)
    if kind == "message":
        first = next(iter(pieces.objects(value.get("content"))), {})
        return first.get("type") in ("input_text", "output_text")
    if value.get("record_type") == "state":
        return True
    if {"id", "timestamp", "instructions"} <= value.keys():
        return True
    flat = {"timestamp", "role", "content"} <= value.keys() and isinstance(value["content"], str)
    return flat and not kind and isinstance(value["timestamp"], str)


def head(file: File, count: int) -> Rollout:
    """Return where a file belongs, by its first lines alone."""
    given = [line for line, _ in zip(lines(file, Notes()), range(count), strict=False)]
    return _placed(file, given)


# -- where a file belongs --------------------------------------------------------------------------


def _placed(file: File, given: list[Line]) -> Rollout:
    """Follow what a session was forked from: a copy brings the first lines of its sources along."""
    metas = [line.payload for line in given if line.type == "session_meta"]
    by_id = {string(meta.get("id")): meta for meta in reversed(metas)}
    own = metas[0] if metas else {}
    first = given[0].value if given else {}
    id = string(own.get("id")) or _id_in(file.path) or f"of-{pieces.named(first)}"
    id = clean.record_id(id)
    parent = _parent(own)
    root, meta, passed = id, own, {id}
    while above := _forked_from(meta, by_id):
        if above in passed:
            break
        passed.add(above)
        root, meta = above, by_id.get(above, {})
    started = _moment_of(root) or clean.moment(meta.get("timestamp"))
    side = isinstance(own.get("source"), dict)
    return Rollout(id, root, started, parent, side, None)


def _forked_from(meta: Raw, by_id: dict[str, Raw]) -> str:
    """Return the session whose history a session begins with; an empty text without one."""
    given = string(meta.get("forked_from_id"))
    parent = _parent(meta) or ""
    return clean.record_id(given) or (parent if parent in by_id else "")


def _parent(meta: Raw) -> str | None:
    spawned = of(of(of(meta, "source"), "subagent"), "thread_spawn")
    return clean.record_id(string(spawned.get("parent_thread_id"))) or None


def _id_in(path: str) -> str:
    found = _UUID.findall(path.rpartition("/")[2])
    return found[-1] if found else ""


def _moment_of(id: str) -> datetime | None:
    """Return the time in an id that carries one."""
    if _VERSION_7.match(id) is None:
        return None
    milliseconds = int(id.replace("-", "")[:12], 16)
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
