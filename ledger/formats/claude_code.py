"""Claude Code's sessions: `~/.claude/projects/<folder>/<session>.jsonl`, and what it keeps beside. Pure.

A conversation is all lines that hang together, in whatever files and sessions they are: a file that
copies the beginning of another is a branch of it. It is named by its first line, and turns by lines
alone, so any of these files gives the same turns, whenever it is imported and with whatever others.

Sub-agents have lines of their own, in the session's file (`isSidechain`) or in files beside it
(`agent-<id>.jsonl`). Each is a conversation beside, a side line, that names the call it was made for.

    claude_code_files      which files tell of the same conversations
    claude_code_lines      lines once, each below the one it follows
    claude_code_talk       lines as nodes: a message of the model is one, with its results
    claude_code_messages   what is said in them
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import claude_code_lines as source
from ledger.formats import clean, pieces
from ledger.formats.base import Draft, File, Notes, Skipped, turn_id
from ledger.formats.claude_code_files import together as together
from ledger.formats.claude_code_lines import Line, Lines
from ledger.formats.claude_code_talk import Group, Talk
from ledger.formats.nodes import Node
from ledger.formats.pieces import of, string
from ledger.formats.tree import Tree

name = "claude-code"
home = re.compile(r"(.*/)?projects/.+\.jsonl", re.IGNORECASE)

_EVERY_CONVERSATION = ""
"""Stands for the conversation in ids of turns: ids of lines hold in all of them."""


def looks_like(sample: object) -> bool:
    """Say whether a decoded line is one of a session, or a value is a whole session of the web."""
    if not isinstance(sample, dict):
        return False
    if isinstance(sample.get("loglines"), list):
        return any(looks_like(line) for line in sample["loglines"])
    kind = string(sample.get("type"))
    if kind in source.TALK:
        return isinstance(of(sample, "message").get("content"), str | list)
    if kind == "summary":
        return "leafUuid" in sample
    if kind in ("file-history-snapshot", "queue-operation"):
        return True
    return bool(kind) and "sessionId" in sample and "payload" not in sample


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read the conversations of a group of files, then the side lines of their sub-agents."""
    notes = Notes()
    found = list(_Session(source.read(files, notes), notes).drafts())
    if not found:
        yield Skipped(files[0].name, "it has no message of a user or an answer")
        return
    found[0].notes = notes
    yield from found


class _Session:
    """What a group of files holds."""

    def __init__(self, found: Lines, notes: Notes) -> None:
        self._found = found
        self._talk = Talk(found, notes)
        self._notes = notes
        self._sides: dict[str, list[Line]] = {}
        for line in found.lines:
            if line.side is not None:
                self._sides.setdefault(line.side, []).append(line)
        self._callers = self._find_callers()
        self._turns: dict[str, tuple[str, str]] = {}
        """The conversation and the turn of each node, as far as they were made."""

    def drafts(self) -> Iterator[Draft]:
        """Yield the conversations, then the side lines in the order in which they began."""
        for files in _components(self._found.linked):
            lines = [one for one in self._found.lines if one.side is None and one.file in files]
            yield from self._draft(lines, None, files)
        for side, lines in self._sides.items():
            yield from self._draft(lines, side, {line.file for line in lines})

    def _draft(self, lines: list[Line], side: str | None, files: set[int]) -> Iterator[Draft]:
        if not lines:
            return
        id = _first(lines).id
        sides = {
            call: _first(self._sides[other]).id
            for other, (_, call) in self._callers.items()
            if other != side
        }
        nodes = self._talk.nodes(lines, sides)
        tree = Tree(nodes, format=name, conversation=id, notes=self._notes, identify=_identify)
        if not tree.turns:
            return
        for node in nodes:
            if (turn := tree.turn_at(node.id)) is not None:
                self._turns[node.id] = id, turn
        yield Draft(
            format=name,
            source_id=id,
            title=self._title(files) if side is None else self._side_title(side),
            turns=tree.turns,
            current=tree.turn_at(self._talk.id_of(self._last(lines, files, side))),
            raw=self._raw(files, side),
            notes=Notes(),
            raw_type=self._raw_type(files),
            blobs=pieces.blobs(tree.turns),
            side_of=self._side_of(side) if side is not None else None,
            growing=bool(self._found.growing),
        )

    def _last(self, lines: list[Line], files: set[int], side: str | None) -> Line:
        """Return the line that the session stands at: that of the file which was written last."""
        talk = [line for line in lines if line.type in source.TALK] or lines
        newest = max(talk, key=lambda line: (str(line.created or ""), line.place))
        file = newest.file if newest.file in files else max(files)
        for line, value, _ in reversed(self._found.files[file]):
            if line is not None and line.side == side and line.type in source.TALK:
                return line
            leaf = string(value.get("leafUuid")) if value.get("type") == "last-prompt" else ""
            found = self._found.by_id.get(source.qualified(leaf, value.get("sessionId")))
            if side is None and leaf and found is not None and found.side is None:
                return found
        return newest

    # -- the source's own records

    def _raw(self, files: set[int], side: str | None) -> list[bytes]:
        """Return the lines of a conversation, as they stand in each file; facts go with the main line."""
        found = []
        for number in sorted(files):
            own = self._found.files[number]
            alone = {line.side for line, _, _ in own if line is not None} == {side}
            taken = [
                raw + (b"" if source.is_whole(value) else b"\n")
                for line, value, raw in own
                if raw and (alone or (line.side if line is not None else None) == side)
            ]
            found.append(b"".join(taken))
        return [raw for raw in found if raw]

    def _raw_type(self, files: set[int]) -> str:
        whole = any(source.is_whole(value) for n in files for _, value, _ in self._found.files[n])
        return "application/json" if whole else "application/jsonl"

    # -- titles

    def _title(self, files: set[int]) -> str | None:
        """Return the title that a person gave, else the program's, else a summary of this session."""
        best: dict[str, str] = {}
        for number, value in self._found.facts:
            kind, leaf = string(value.get("type")), string(value.get("leafUuid"))
            line = self._found.by_id.get(source.qualified(leaf, value.get("sessionId")))
            if (line.file if line is not None else number) in files:
                given = value.get("customTitle") or value.get("aiTitle") or value.get("summary")
                if string(given).strip():
                    best[kind] = string(given)
        titles = (best.get(kind) for kind in ("custom-title", "ai-title", "summary"))
        title = next(filter(None, titles), None)
        return clean.text(title, self._notes) if title else None

    def _side_title(self, side: str) -> str | None:
        group, call = self._callers.get(side, (None, ""))
        block = next((one for one in group.calls() if one["id"] == call), {}) if group else {}
        told = string(of(block, "input").get("description"))
        return clean.text(f"sub-agent: {told}", self._notes) if told else None

    # -- sub-agents

    def _side_of(self, side: str) -> dict[str, Any]:
        """Return what a side line was made for; without its call, the session it was made in."""
        group, call = self._callers.get(side, (None, ""))
        if group is None or (node := self._talk.id_of(group.top)) not in self._turns:
            session = string(self._sides[side][0].value.get("sessionId"))
            return {"session": clean.text(session, self._notes), "agent": clean.record_id(side)}
        conversation, turn = self._turns[node]
        return {"conversation": conversation, "turn": turn, "call": clean.text(call, self._notes)}

    def _find_callers(self) -> dict[str, tuple[Group, str]]:
        """Return the call that each side line was made for: as its result says, else by what it asks."""
        by_agent: dict[str, tuple[Group, str]] = {}
        by_prompt: dict[str, list[tuple[Group, str]]] = {}
        for group in self._talk.groups:
            for block in group.calls():
                asked = string(of(block, "input").get("prompt"))
                result, _ = group.results.get(block["id"], (None, None))
                agent = string(of(result.value, "toolUseResult").get("agentId")) if result else ""
                if agent:
                    by_agent[agent] = group, block["id"]
                elif asked:
                    by_prompt.setdefault(asked, []).append((group, block["id"]))
        found: dict[str, tuple[Group, str]] = {}
        for side, lines in self._sides.items():
            first = _first(lines)
            asked = "\n".join(string(block.get("text")) for block in first.blocks)
            same = by_prompt.get(asked) or []
            if side in by_agent:
                found[side] = by_agent[side]
            elif same:
                found[side] = same.pop(0)
        return found


def _identify(user: Node | None, first: str | None) -> str:
    created = user.created if user is not None else None
    return turn_id(name, _EVERY_CONVERSATION, user.id if user else None, first, created)


def _first(lines: list[Line]) -> Line:
    """Return the line that names a conversation: of those that begin a file, the oldest."""
    begin = {line.file: line for line in reversed(lines)}.values()
    starts = [line for line in begin if line.parent is None] or list(begin)
    return min(starts, key=lambda line: (str(line.created or "9"), line.id))


def _components(linked: list[set[int]]) -> list[set[int]]:
    """Return the files that share lines, together."""
    found: list[set[int]] = []
    for number in range(len(linked)):
        if any(number in one for one in found):
            continue
        reached, stack = {number}, [number]
        while stack:
            for other in linked[stack.pop()] - reached:
                reached.add(other)
                stack.append(other)
        found.append(reached)
    return found
