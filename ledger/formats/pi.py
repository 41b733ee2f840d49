"""Pi's sessions: `~/.pi/agent/sessions/--<path>--/<time>_<id>.jsonl`. Pure.

A file is a tree of entries (`id`, `parentId`) below a header; the last entry is where the session stands.
The summary of a branch that was left, and of a history that was summed up, are context of what comes
below. A session that was forked names the file it came from, whose entries it begins with. The first
version has neither ids nor branches: the order of its lines is that of the talk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ledger.formats import clean, pieces
from ledger.formats.base import Draft, F, File, Message, Notes, Skipped, turn_id
from ledger.formats.nodes import Node
from ledger.formats.pieces import Part, Raw, of, string
from ledger.formats.tree import Tree

name = "pi"
home = re.compile(r"(.*/)?sessions/--.*--/[^/]+\.jsonl", re.IGNORECASE)

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SILENT = frozenset({"label", "model_change", "session", "session_info", "thinking_level_change"})
_ENTRIES = frozenset({"branch_summary", "compaction", "custom", "custom_message", "message"})
_STOPS = {"length": "length", "aborted": "interrupted", "error": "error"}
_EVERY_CONVERSATION = ""
"""Stands for the conversation in ids of turns: an entry's id and time hold in all forks of a session."""


def looks_like(sample: object) -> bool:
    """Say whether a decoded line is the header of a session, or an entry with a message."""
    if not isinstance(sample, dict):
        return False
    if sample.get("type") == "session":
        return isinstance(sample.get("id"), str) and ("cwd" in sample or "version" in sample)
    role = of(sample, "message").get("role")
    return sample.get("type") == "message" and "parentId" in sample and isinstance(role, str)


def together(files: Sequence[F]) -> Iterable[Sequence[F]]:
    """Join sessions with those they were forked from."""
    heads = [_head(file) for file in files]
    above = {id: source for id, source in heads if source}
    found: dict[str, list[F]] = {}
    for file, (id, _) in zip(files, heads, strict=True):
        passed = [id]
        while (up := above.get(passed[-1])) is not None and up not in passed:
            passed.append(up)
        found.setdefault(passed[-1], []).append(file)
    return found.values()


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read the sessions of a group, which are one conversation."""
    notes = Notes()
    talk = _Talk(notes)
    for file in files:
        talk.read(file)
    yield talk.draft() or Skipped(files[0].name, "it has no message of a user or an answer")


def _head(file: File) -> tuple[str, str | None]:
    """Return the id of a session, and of the one it was forked from."""
    for value, _ in pieces.lines(file, Notes()):
        if value.get("type") == "session":
            given = string(value.get("parentSession")) or string(value.get("branchedFrom"))
            found = _UUID.findall(given)
            own = clean.record_id(string(value.get("id"))) or file.path
            return own, found[-1] if found and found[-1] != own else None
        break
    return file.path, None


class _Talk:
    """The entries of a group of files."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._values: dict[str, Raw] = {}
        self._nodes: list[Node] = []
        self._raw: list[bytes] = []
        self._root: str | None = None
        self._title: str | None = None
        self._at: str | None = None
        self._last = ""
        self._growing = False

    def read(self, file: File) -> None:
        """Read a file; entries that another has too are taken once."""
        session, source = _head(file)
        if self._root is None or source is None:
            self._root = source or session
        own: dict[str, str] = {}
        below: list[tuple[Node, str]] = []
        at: str | None = None
        raw: list[bytes] = []
        last = ""
        for value, line in pieces.lines(file, self._notes):
            raw.append(line)
            kind = string(value.get("type"))
            if kind == "session_info":
                title = clean.text(string(value.get("name")).strip(), self._notes)
                self._title = title or self._title
            if kind == "session":
                continue
            given = clean.record_id(string(value.get("id")))
            before, count = at, len(self._nodes)
            at = self._entry(given or pieces.named(at, value), value, session)
            if given:
                own.setdefault(given, at)
            if len(self._nodes) > count:
                above = clean.record_id(string(value.get("parentId"))) if given else before or ""
                below.append((self._nodes[-1], above))
            last = string(value.get("timestamp")) or last
        for node, above in below:
            node.parent = own.get(above, above) or None
        self._raw.append(b"".join(line + b"\n" for line in raw))
        self._growing |= file.growing(clean.moment(last))
        if last >= self._last:
            self._at, self._last = at, last

    def draft(self) -> Draft | None:
        """Return the conversation; None when nothing is said in it."""
        id = self._root or "nothing"
        tree = Tree(
            self._nodes, format=name, conversation=id, notes=self._notes, identify=_identify
        )
        if not tree.turns:
            return None
        return Draft(
            format=name,
            source_id=id,
            title=self._title,
            turns=tree.turns,
            current=tree.turn_at(self._at) if self._at else None,
            raw=self._raw,
            notes=self._notes,
            raw_type="application/jsonl",
            blobs=pieces.blobs(tree.turns),
            growing=self._growing,
        )

    def _entry(self, id: str, value: Raw, session: str) -> str:
        """Take an entry, unless it is there: its short id may be another's in another session."""
        if id in self._values:
            if self._values[id] == value:
                return id
            id = f"{session}.{id}"
        if id in self._values:
            return id
        self._values[id] = value
        node = Node(id, None, "nothing")
        node.created = node.updated = clean.moment(value.get("timestamp"))
        self._fill(node, value)
        self._nodes.append(node)
        return id

    # -- entries

    def _fill(self, node: Node, value: Raw) -> None:
        kind = string(value.get("type"))
        if kind == "message":
            self._message(node, of(value, "message"))
        elif kind in ("compaction", "branch_summary"):
            own: Raw = {"hidden": True, "summary": True}
            own.update(
                {key: value[key] for key in ("fromId", "firstKeptEntryId") if value.get(key)}
            )
            self._aside(node, pieces.text(value.get("summary"), self._notes), own)
        elif kind == "custom_message":
            self._aside(node, _parts(value.get("content"), self._notes), {"hidden": True})
        elif kind not in _SILENT | _ENTRIES:
            parts = pieces.unknown(name, "entry", kind, value, self._notes)
            self._aside(node, parts, {"hidden": True})

    def _aside(self, node: Node, parts: list[Part], own: Raw) -> None:
        if parts:
            node.kind = "aside"
            only = {name: clean.value(own, self._notes)}
            node.messages = [pieces.message("developer", parts, only=only)]

    def _message(self, node: Node, inner: Raw) -> None:
        role = string(inner.get("role"))
        parts = _parts(inner.get("content"), self._notes)
        if role == "user":
            if parts:
                node.kind, node.text = "prompt", pieces.said(parts)
                node.messages = [pieces.message("user", parts)]
        elif role == "assistant":
            self._answer(node, inner, parts)
        elif role == "toolResult":
            node.kind = "step"
            node.messages = [_result(inner, parts, self._notes)]
        elif role == "bashExecution":
            part = pieces.opaque(name, role, inner, self._notes)
            self._aside(node, [part], {"hidden": True})
        else:
            rest = parts or [pieces.opaque(name, role, inner, self._notes)]
            self._aside(node, rest, {"hidden": True, "role": role})

    def _answer(self, node: Node, inner: Raw, parts: list[Part]) -> None:
        calls = any(part["type"] == "tool_call" for part in parts)
        node.text = pieces.said(parts)
        stop = string(inner.get("stopReason"))
        node.cut = _STOPS.get(stop)
        node.closed = stop in ("aborted", "error")
        ended = not node.closed and stop != "toolUse"
        node.kind = "answer" if node.text and not calls and ended else "step"
        node.model = clean.text(string(inner.get("model")), self._notes) or None
        node.usage = _usage(of(inner, "usage"))
        own = {key: inner[key] for key in ("provider", "api", "errorMessage") if inner.get(key)}
        only = {name: clean.value(own, self._notes)} if own else None
        finish = clean.text(stop, self._notes)
        node.messages = [pieces.message("assistant", parts, finish_reason=finish, only=only)]


def _identify(user: Node | None, first: str | None) -> str:
    created = user.created if user is not None else None
    return turn_id(name, _EVERY_CONVERSATION, user.id if user else None, first, created)


def _parts(content: Any, notes: Notes) -> list[Part]:
    if isinstance(content, str):
        return pieces.text(content, notes)
    return [part for block in pieces.objects(content) for part in _part(block, notes)]


def _part(block: Raw, notes: Notes) -> list[Part]:
    kind = block.get("type")
    if kind == "text":
        return pieces.text(block.get("text"), notes)
    if kind == "thinking":
        sealed = block.get("thinkingSignature")
        return pieces.reasoning(
            block.get("thinking"), notes, pi={"signature": sealed} if sealed else {}
        )
    if kind == "toolCall":
        return [pieces.call(block.get("id"), block.get("name"), block.get("arguments"), notes)]
    if kind == "image":
        return pieces.image(block.get("mimeType"), string(block.get("data")), notes)
    return pieces.unknown(name, "block", kind, block, notes)


def _result(inner: Raw, parts: list[Part], notes: Notes) -> Message:
    part = pieces.response(inner.get("toolCallId"), pieces.said(parts), notes)
    if inner.get("isError"):
        part["only"] = {name: {"is_error": True}}
    rest = [one for one in parts if one["type"] != "text"]
    tool = clean.text(string(inner.get("toolName")), notes)
    return pieces.message("tool", [part, *rest], name=tool)


def _usage(usage: Raw) -> dict[str, int] | None:
    """Return counts: what was read from a cache, or put into it, is counted beside the input."""
    read, written = usage.get("cacheRead"), usage.get("cacheWrite")
    if not usage:
        return None
    return pieces.tokens(
        input_tokens=pieces.plus(usage.get("input"), read, written),
        output_tokens=usage.get("output"),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
