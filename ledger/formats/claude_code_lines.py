"""The lines of Claude Code's session files: each with an id that holds everywhere, once. Pure.

A line is a piece of the talk (`user`, `assistant`, `attachment`), something on the way that later
lines hang below (`system`, `progress`), or a fact about the session. Files are copied: a session that
is resumed or forked may begin a new file with the old lines, so a line is known by its uuid, whatever
session and file it is in; one that says what it is a copy of (`forkedFrom`) by that. Lines without a
uuid are named by what was said up to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ledger.formats import clean, pieces
from ledger.formats.base import File, Notes
from ledger.formats.pieces import Raw, of, string

_EVERYWHERE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LONG = 16
"""Ids of messages that vendors make have more letters; some gateways count from 1."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
TALK = frozenset({"user", "assistant"})
ON_THE_WAY = frozenset({"attachment", "progress", "system"})
_FACTS = frozenset(
    {
        *(
            "agent-name",
            "agent-setting",
            "ai-title",
            "bridge-session",
            "custom-title",
            "frame-link",
        ),
        *("file-history-snapshot", "last-prompt", "mode", "permission-mode", "pr-link"),
        *("queue-operation", "relocated", "summary", "tag", "worktree-state"),
    }
)
COPIES = "lines that are copies of others, taken once"
MENDED = "lines whose parent is not there hung below the line before them"


@dataclass(slots=True, eq=False)
class Line:
    """One line of the talk, or on its way."""

    value: Raw
    """As it stands where it was found first."""
    id: str
    place: int
    """Its number among the lines of a group of files."""
    file: int
    """The number of its file in the group."""
    side: str | None
    """The sub-agent it is of; "" while that is not known; None: the main line."""
    created: datetime | None
    parent: Line | None = None
    depth: int = 0
    """How many lines are above it."""

    @property
    def type(self) -> str:
        """What kind of line it says it is."""
        return string(self.value.get("type"))

    @property
    def content(self) -> Any:
        """What is said in it: a text, or a list of blocks."""
        return of(self.value, "message").get("content")

    @property
    def blocks(self) -> list[Raw]:
        """What is said in it, as blocks."""
        content = self.content
        if isinstance(content, str):
            return [{"type": "text", "text": content}] if content else []
        return pieces.objects(content)


@dataclass(slots=True)
class Lines:
    """What the files of a group hold."""

    lines: list[Line] = field(default_factory=list)
    """Each once, in the order of the files."""
    facts: list[tuple[int, Raw]] = field(default_factory=list)
    """Facts about sessions, each with the number of its file."""
    files: list[list[tuple[Line | None, Raw, bytes]]] = field(default_factory=list)
    """Each file, line by line: what it tells (None: a fact), as it stands there, and its bytes."""
    by_id: dict[str, Line] = field(default_factory=dict)
    linked: list[set[int]] = field(default_factory=list)
    """For each file, the files that it shares lines with."""
    growing: set[Line] = field(default_factory=set)
    """Last lines of files that were written to just now: more of their messages may come."""


def read(files: Sequence[File], notes: Notes) -> Lines:
    """Read the lines of a group of files, and hang each below the one it follows."""
    found = Lines()
    for number, file in enumerate(files):
        found.files.append([])
        found.linked.append({number})
        _read_file(found, number, file, notes)
        if file.growing(_last_time(found, number)):
            _note_end(found, number)
    for number in range(len(files)):
        _hang(found, number, notes)
    _deepen(found.lines, notes)
    return found


def values(file: File, notes: Notes) -> Iterator[pieces.Line]:
    """Yield the lines of a file: also of one that is a single object with `loglines`."""
    for line in pieces.lines(file, notes):
        inner = line.value.get("loglines")
        if isinstance(inner, list):
            yield pieces.Line({"type": "loglines"}, line.raw)
            yield from (pieces.Line(value, b"") for value in pieces.objects(inner))
        else:
            yield line


def is_whole(value: Raw) -> bool:
    """Say whether this stands for a file that is one object: its bytes are all of it."""
    return value.get("type") == "loglines"


def identity(value: Raw, before: str) -> str:
    """Return the id of a line. Args: before: the id of the line before it in its file."""
    uuid = string(of(value, "forkedFrom").get("messageUuid")) or string(value.get("uuid"))
    if not uuid:
        return pieces.named(before, value.get("type"), value.get("timestamp"), value.get("message"))
    return qualified(uuid, value.get("sessionId"))


def qualified(uuid: str, session: Any) -> str:
    """Return an id that holds everywhere: one that is no UUID holds in its session alone."""
    uuid = clean.record_id(uuid)
    if is_everywhere(uuid):
        return uuid.lower()
    return _UNSAFE.sub("_", f"{clean.record_id(string(session))}.{uuid}".lstrip("."))


def is_everywhere(id: str) -> bool:
    """Say whether an id is a UUID."""
    return _EVERYWHERE.fullmatch(id) is not None


def message_id(value: Raw) -> str:
    """Return the id of the model's message that a line is part of; a short one holds in its session."""
    id = string(of(value, "message").get("id"))
    session = string(value.get("sessionId"))
    return id if len(id) >= _LONG or not id else f"{session}.{id}"


def is_boundary(value: Raw) -> bool:
    """Say whether a line only marks that the history above it was summed up."""
    return value.get("subtype") in ("compact_boundary", "microcompact_boundary") or bool(
        value.get("isCompactSummary")
    )


def _read_file(found: Lines, number: int, file: File, notes: Notes) -> None:
    before = ""
    for value, raw in values(file, notes):
        kind = string(value.get("type"))
        if kind not in TALK and not (string(value.get("uuid")) and kind not in _FACTS):
            if kind not in _FACTS and kind != "loglines":
                notes.unknown[f"line {clean.text(kind, notes)}"] += 1
            found.facts.append((number, value))
            found.files[number].append((None, value, raw))
            continue
        before = identity(value, before)
        line = found.by_id.get(before)
        if line is None:
            side = string(value.get("agentId")) if value.get("isSidechain") else None
            created = clean.moment(value.get("timestamp"))
            line = Line(value, before, len(found.lines), number, side, created)
            found.lines.append(line)
            found.by_id[before] = line
        else:
            notes.counts[COPIES] += 1
            _link(found, line.file, number)
        if uuid := string(value.get("uuid")):
            found.by_id.setdefault(qualified(uuid, value.get("sessionId")), line)
        found.files[number].append((line, value, raw))


def _last_time(found: Lines, number: int) -> datetime | None:
    """Return the time of the last line of a file that tells one."""
    told = (clean.moment(value.get("timestamp")) for _, value, _ in reversed(found.files[number]))
    return next(filter(None, told), None)


def _note_end(found: Lines, number: int) -> None:
    last = next((line for line, _, _ in reversed(found.files[number]) if line is not None), None)
    if last is not None:
        found.growing.add(last)


def _link(found: Lines, one: int, other: int) -> None:
    found.linked[one].add(other)
    found.linked[other].add(one)


def _hang(found: Lines, number: int, notes: Notes) -> None:
    """Say below which line each of a file stands.

    Without any parent in the file, its order is the only one. A parent that is not there is the line
    before, and so is that of a boundary, where the history above it is not named.
    """
    own = [(line, value) for line, value, _ in found.files[number] if line is not None]
    ordered = not any(string(value.get("parentUuid")) for _, value in own)
    before: dict[str | None, Line] = {}
    for line, value in own:
        above = before.get(line.side)
        before[line.side] = line
        if line.value is not value:
            continue
        named = [
            qualified(uuid, value.get("sessionId"))
            for key in ("parentUuid", "logicalParentUuid")
            if (uuid := string(value.get(key)))
        ]
        parent = next((found.by_id[id] for id in named if id in found.by_id), None)
        if parent is not None:
            _link(found, number, parent.file)
        elif ordered or is_boundary(value):
            parent = above
        elif named and line.side != "":
            parent = above
            notes.counts[MENDED] += 1
        if parent is not None and (parent.side is None) == (line.side is None):
            line.parent = parent


def _deepen(lines: list[Line], notes: Notes) -> None:
    """Count how deep each line stands, cut circles, and name the side lines that have no agent."""
    done: set[Line] = set()
    for start in lines:
        way = _way(start, done, notes)
        for line in reversed(way):
            line.depth = line.parent.depth + 1 if line.parent else 0
            if line.side == "":
                line.side = line.parent.side if line.parent else line.id
        done.update(way)


def _way(start: Line, done: set[Line], notes: Notes) -> list[Line]:
    """Return the lines from here up to one that is done; what goes in a circle is cut."""
    while True:
        way: dict[Line, None] = {}
        at: Line | None = start
        while at is not None and at not in done and at not in way:
            way[at] = None
            at = at.parent
        if at is None or at in done:
            return list(way)
        circle = list(way)[list(way).index(at) :]
        min(circle, key=lambda line: (str(line.created or "9"), line.id)).parent = None
        notes.counts["circles of parents cut"] += 1
