"""The lines of Claude Code's sessions as nodes: one for each prompt and each message of the model. Pure.

A message of the model comes in several lines, each with an id and a parent of its own, and results
hang below the line of their call: folded as they stand, every two calls at once would be a fork. So

(1) all lines of one message are one node, and the results of its calls are part of it;
(2) what hangs below any of them hangs below that node;
(3) a copy of a message, known by the message's own id, is that message, and what was asked above the
    copy is what was asked above it;
(4) a prompt below an error, where the answer came after all, hangs below that answer.

What is left of a line with several children is a real fork: another prompt, or another answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ledger.formats import claude_code_messages as messages
from ledger.formats import pieces
from ledger.formats.base import Notes
from ledger.formats.claude_code_lines import ON_THE_WAY, Line, Lines, message_id
from ledger.formats.nodes import Kind, Node
from ledger.formats.pieces import Raw, string


@dataclass(slots=True, eq=False)
class Group:
    """One message of the model, and the results of its calls."""

    lines: list[Line] = field(default_factory=list)
    results: dict[str, tuple[Line, Raw]] = field(default_factory=dict)
    """By the id of the call, the first of each."""
    answers: bool = False

    @property
    def top(self) -> Line:
        """The line that the others follow; it names the message."""
        return self.lines[0]

    def calls(self) -> Iterator[Raw]:
        """Yield the calls of tools in it."""
        for line in self.lines:
            for block in line.blocks:
                if string(block.get("type")).endswith("tool_use") and string(block.get("id")):
                    yield block


class Talk:
    """All lines of a group of files, folded."""

    def __init__(self, found: Lines, notes: Notes) -> None:
        self._found = found
        self._notes = notes
        self._same: dict[Line, Line] = {}
        """Copies that have other ids, each with the line that it is a copy of."""
        self._group: dict[Line, Group] = {}
        self.groups = self._groups()
        self.by_call: dict[str, list[Group]] = {}
        for group in self.groups:
            for block in group.calls():
                self.by_call.setdefault(block["id"], []).append(group)
        self._take_results()
        self._below: dict[Line, list[Line]] = {}
        for line in found.lines:
            if self._named(line) is line and (above := self._above(line)) is not None:
                self._below.setdefault(above, []).append(line)
        self._mend_errors()

    def nodes(self, lines: list[Line], sides: dict[str, str]) -> list[Node]:
        """Return the nodes of some lines. Args: sides: side lines by the ids of their calls."""
        return [self._node(line, sides) for line in lines if self._named(line) is line]

    def id_of(self, line: Line) -> str:
        """Return the id of the node that a line is part of."""
        return self._named(line).id

    # -- messages of the model

    def _groups(self) -> list[Group]:
        groups: dict[tuple[str | None, str, str], Group] = {}
        for line in self._found.lines:
            if line.type == "assistant":
                message = message_id(line.value)
                request = string(line.value.get("requestId"))
                key = (line.side, message, request) if message else (line.side, "", line.id)
                group = groups.setdefault(key, Group())
                group.lines.append(line)
                self._group[line] = group
        for group in groups.values():
            group.lines.sort(key=lambda line: (line.file, line.depth, line.place))
            for line in group.lines[1:]:
                if line.file != group.top.file:
                    self._align(line, group.top)
        return list(groups.values())

    def _align(self, copy: Line, line: Line) -> None:
        """Take what was asked above a copy as what was asked above the message itself."""
        self._found.linked[copy.file].add(line.file)
        self._found.linked[line.file].add(copy.file)
        one, other = _asked_above(copy), _asked_above(line)
        while one is not None and other is not None and one is not other:
            if one in self._same or one.content != other.content:
                return
            self._same[one] = other
            one, other = _asked_above(one), _asked_above(other)

    def _take_results(self) -> None:
        for line in self._found.lines:
            if line.type == "user" and messages.said(line) == "result":
                results = [block for block in line.blocks if block.get("type") == "tool_result"]
                for block in results:
                    group = self._caller(line, string(block.get("tool_use_id")))
                    if group is not None:
                        group.results.setdefault(block["tool_use_id"], (line, block))
                        self._group.setdefault(line, group)

    def _caller(self, line: Line, call: str) -> Group | None:
        """Return the message that a result belongs to: of several, the nearest above it."""
        groups = [group for group in self.by_call.get(call, ()) if group.top.side == line.side]
        at = line.parent if len(groups) > 1 else None
        while at is not None:
            if (group := self._group.get(at)) in groups:
                return group
            at = at.parent
        return groups[0] if groups else None

    # -- where a node hangs

    def _named(self, line: Line) -> Line:
        """Return the line that names the node which a line is part of."""
        line = self._same.get(line, line)
        group = self._group.get(line)
        return group.top if group is not None else line

    def _above(self, line: Line) -> Line | None:
        above = line.parent
        while above is not None and self._named(above) is line:
            above = above.parent
        return self._named(above) if above is not None else None

    def _mend_errors(self) -> None:
        """Hang what stands below an error below the answer that came after all."""
        for line in self._found.lines:
            above = self._above(line) if line.value.get("subtype") == "api_error" else None
            beside = self._below.get(above, ()) if above is not None else ()
            answers = [one for one in beside if one.type == "assistant"]
            end = self._end(answers[-1]) if answers else None
            if above is not None and end is not None:
                self._below[above].remove(line)
                self._below.setdefault(end, []).append(line)
                line.parent = end

    def _end(self, answer: Line) -> Line | None:
        """Return the end of an answer; None when the user has gone on from it."""
        at = answer
        while below := list(self._said_below(at)):
            if any(line.type == "user" for line in below):
                return None
            at = below[-1]
        return at

    def _said_below(self, line: Line) -> Iterator[Line]:
        stack = list(self._below.get(line, ()))
        while stack:
            below = stack.pop()
            if below.type in ON_THE_WAY:
                stack += self._below.get(below, ())
            else:
                yield below

    # -- what a node is

    def _node(self, line: Line, sides: dict[str, str]) -> Node:
        above = self._above(line)
        node = Node(line.id, above.id if above is not None else None, "nothing")
        node.created = node.updated = line.created
        node.rank = None
        group = self._group.get(line)
        if group is not None:
            self._fill_answer(node, group, sides)
        elif line.type == "user" or (line.type == "attachment" and messages.queued(line)):
            self._fill_user(node, line)
        elif line.type == "attachment":
            self._fill(node, "aside", line)
        elif line.type not in ON_THE_WAY:
            self._notes.unknown[f"line {line.type}"] += 1
        return node

    def _fill_answer(self, node: Node, group: Group, sides: dict[str, str]) -> None:
        made = messages.assistant(group.lines, sides, self._notes)
        calls = {block["id"]: None for block in group.calls()}
        for call in calls:
            if (given := group.results.get(call)) is not None:
                made.append(messages.result(given[1], self._notes, beside=_beside(*given)))
        node.messages = made
        node.text = pieces.said(made[0]["parts"])
        moments = [line.created for line in group.lines if line.created is not None]
        moments += [line.created for line, _ in group.results.values() if line.created]
        node.updated = max(moments, default=None)
        if any(
            messages.stops(block) for given in group.results.values() for block in _beside(*given)
        ):
            node.cut, node.closed = "interrupted", True
        if messages.is_made_up(group.top):
            failed = bool(group.top.value.get("isApiErrorMessage"))
            node.kind = "step" if failed else "nothing"
            node.cut = "error" if failed else None
            node.closed = failed
            return
        ended = made[0].get("finish_reason") or self._found.growing.isdisjoint(group.lines)
        node.kind = "answer" if node.text and not calls and ended else "step"
        node.model = messages.model(group.lines, self._notes)
        node.usage = messages.usage(group.lines)
        if made[0].get("finish_reason") == "max_tokens":
            node.cut = "length"

    def _fill_user(self, node: Node, line: Line) -> None:
        what = "prompt" if line.type == "attachment" else messages.said(line)
        if what == "command":
            what = "prompt" if self._asks(line) else "context"
        if what == "prompt":
            node.kind = "prompt"
            node.text = messages.prompt_text(line, self._notes)
            node.messages = [messages.prompt(line, self._notes)]
        elif what == "result":
            node.kind = "step"
            given = [block for block in line.blocks if block.get("type") == "tool_result"]
            node.messages = [
                messages.result(block, self._notes, beside=_beside(line, block)) for block in given
            ]
        elif what == "stop":
            self._fill(node, "step", line)
            node.cut = "interrupted"
            node.closed = True
        elif what == "context":
            self._fill(node, "aside", line)

    def _fill(self, node: Node, kind: Kind, line: Line) -> None:
        made = messages.context(line, self._notes)
        if made is not None:
            node.kind = kind
            node.messages = [made]

    def _asks(self, command: Line) -> bool:
        """Say whether the model answers a command, before anybody says more."""
        stack = [command]
        while stack:
            for line in self._below.get(stack.pop(), ()):
                if line.type == "assistant" and not messages.is_made_up(line):
                    return True
                if line.type != "user" or messages.said(line) not in ("prompt", "command"):
                    stack.append(line)
        return False


def _beside(line: Line, result: Raw) -> list[Raw]:
    """Return what a line says beside its results, with the last of these."""
    results = [block for block in line.blocks if block.get("type") == "tool_result"]
    if result is not results[-1]:
        return []
    return [block for block in line.blocks if block.get("type") != "tool_result"]


def _asked_above(line: Line) -> Line | None:
    """Return the user's line right above, past what is no part of the talk."""
    at = line.parent
    while at is not None and (at.type in ON_THE_WAY or at.type == line.type == "assistant"):
        at = at.parent
    return at if at is not None and at.type == "user" else None
