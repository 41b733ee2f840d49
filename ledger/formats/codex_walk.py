"""What is said in a rollout of Codex, as a line of nodes with what they used. Pure.

Everything stands there twice: what was said as a `response_item` and as an `event_msg`. Content is
taken from items, and from events only where no item says the same. A prompt is a user's item that an
event repeats; what no event repeats was put in by the program, if it stands before the first prompt or
looks like it.

Items have no ids. A node is named by a hash of all that was said up to it, so that a file which begins
with a copy of another (a fork) has the same nodes up to where they part, without a look at the other.

Must stay in step: `_Walk.add` and docs/decisions/0047; names are compared for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ledger.formats import clean, pieces
from ledger.formats import codex_items as items
from ledger.formats.base import File, Message, Notes
from ledger.formats.codex_rollout import ENVELOPES, Line, Rollout, lines
from ledger.formats.nodes import Kind, Node
from ledger.formats.pieces import Raw, of, string

_SILENT = frozenset({"ghost_snapshot", "compaction_trigger"})
_ANSWER, _ON_THE_WAY, _UNKNOWN, _TOOL = "final_answer", "commentary", "unknown", "tool"
_PHASES = {_ANSWER: _ANSWER, _ON_THE_WAY: _ON_THE_WAY}
"""What an item of the model says it is; where it does not, its place in the turn does."""


def read(file: File, rollout: Rollout, notes: Notes) -> None:
    """Read the nodes of a file whose place is known."""
    given = list(lines(file, notes))
    rollout.last = next((line.created for line in reversed(given) if line.created), None)
    rollout.growing = file.growing(rollout.last)
    _Walk(rollout, given, notes).walk(growing=rollout.growing)
    rollout.raw = b"".join(line.raw + b"\n" for line in given)


class _Walk:
    """Goes through the lines of a file and makes its nodes."""

    def __init__(self, rollout: Rollout, given: list[Line], notes: Notes) -> None:
        self._rollout = rollout
        self._lines = given
        self._notes = notes
        self._prompts, self._told = _prompts(given)
        types = {string(line.payload.get("type")) for line in given if line.type == "response_item"}
        answered = any(
            line.payload.get("role") == "assistant"
            for line in given
            if line.type == "response_item"
        )
        self._events: dict[str, Callable[[Line], None]] = {
            "token_count": self._tokens,
            "turn.completed": self._tokens,
            "task_started": self._begins,
            "task_complete": self._ends,
            "turn_aborted": self._aborted,
            "thread_rolled_back": self._rolled_back,
            "thread_name_updated": self._renamed,
            "error": self._failed,
        }
        if not answered:
            self._events["agent_message"] = self._answered
        if "reasoning" not in types:
            self._events["agent_reasoning"] = self._thought
        self._model: str | None = None
        self._above: list[str | None] = []
        """What each prompt of the way here hangs below."""
        self._turn: list[tuple[Node, str]] = []
        """What was said or done since the last prompt, each with its phase."""
        self._is_open = False
        self._waiting: deque[tuple[str, str]] = deque()
        """Calls without an id that have no result yet: tool and id."""
        self._calls: dict[str, str] = {}
        """The nodes of calls."""
        self._total: Any = None
        self._carried: dict[str, int] = {}

    def walk(self, *, growing: bool) -> None:
        """Make the nodes. Args: growing: whether more of the last turn may come."""
        for number, line in enumerate(self._lines):
            if line.type == "response_item":
                self._item(number, line)
            elif line.type == "event_msg":
                self._event(number, line)
            elif line.type == "turn_context":
                self._take_model(line.payload)
            elif line.type == "compacted":
                parts = pieces.text(line.payload.get("message"), self._notes)
                parts = parts or [pieces.opaque(items.name, "compacted", line.payload, self._notes)]
                self.add("aside", line, items.hidden(parts, summary=True))
            elif line.type not in ENVELOPES and line.value.get("record_type") != "state":
                self._notes.unknown[f"line {clean.text(line.type, self._notes)}"] += 1
        told = any(string(line.payload.get("type")) == "task_started" for line in self._lines)
        self._close(whole=not (self._is_open if told else growing))

    def add(self, kind: Kind, line: Line, *said: Message, named: Any = None) -> Node:
        """Add a node below the last one. Args: named: what names it; default: the payload."""
        at = self._rollout.at
        id = pieces.named(at or self._rollout.root, line.payload if named is None else named)
        node = Node(id, at, kind, created=line.created, updated=line.created)
        node.messages = [
            message for message in said if message["parts"] or message["role"] == "assistant"
        ]
        if not node.messages:
            node.kind = "nothing"
        self._rollout.at = id
        self._rollout.nodes.append(node)
        return node

    # -- items

    def _item(self, number: int, line: Line) -> None:
        payload, kind = line.payload, string(line.payload.get("type"))
        self._take_model(line.value)
        if kind == "message":
            self._message(number, line)
        elif kind == "reasoning":
            self._step(line, items.reasoning(payload, self._notes))
        elif items.is_call(payload):
            self._call(line)
        elif items.is_result(payload):
            self._result(line)
        elif kind not in _SILENT:
            self._notes.unknown[f"item {clean.text(kind, self._notes)}"] += 1
            self._step(line, items.opaque(kind, payload, self._notes))

    def _message(self, number: int, line: Line) -> None:
        made = items.said(line.payload, self._notes)
        if number in self._prompts:
            text = items.typed("\n".join(items.texts(line.payload)))
            self._ask(line, made, text)
        elif made["role"] == "assistant":
            phase = string(line.payload.get("phase"))
            self._step(line, made, phase=_PHASES.get(phase, _UNKNOWN)).text = pieces.said(
                made["parts"]
            )
        else:
            hidden = (
                made if made["role"] == "developer" else items.hidden(made["parts"], role="user")
            )
            self.add("aside", line, hidden)

    def _ask(self, line: Line, made: Message, text: str) -> None:
        self._close(whole=True)
        self._above.append(self._rollout.at)
        self.add("prompt", line, made, named=["prompt", text]).text = clean.text(text, self._notes)

    def _step(self, line: Line, made: Message, *, phase: str = "", named: Any = None) -> Node:
        node = self.add("step", line, made, named=named)
        node.model = self._model
        node.usage = self._carried or None
        self._carried = {}
        self._turn.append((node, phase))
        return node

    def _call(self, line: Line) -> None:
        id = items.call_id(line.payload)
        made_up = f"call-{pieces.named(self._rollout.at, line.payload)[:12]}"
        node = self._step(line, items.call(line.payload, id or made_up, self._notes), phase=_TOOL)
        self._calls[id or made_up] = node.id
        if not id:
            self._waiting.append((items.tool_of(line.payload), made_up))

    def _result(self, line: Line) -> None:
        id = items.call_id(line.payload)
        if not id and self._waiting:
            tool = string(line.payload.get("name"))
            same = [one for one in self._waiting if one[0] == tool] or list(self._waiting)
            self._waiting.remove(same[0])
            id = same[0][1]
        made = items.result(line.payload, id, self._notes)
        self._step(line, made, phase=_TOOL)
        agent = string(of(_object(made["parts"][0]["response"]), "value").get("agent_id"))
        if agent and id in self._calls:
            self._rollout.agents[agent] = self._calls[id], id

    # -- events

    def _event(self, number: int, line: Line) -> None:
        if number in self._told:
            made = items.asked(line.payload, self._notes)
            self._ask(line, made, items.typed(string(line.payload.get("message"))))
        elif (does := self._events.get(string(line.payload.get("type")))) is not None:
            does(line)

    def _answered(self, line: Line) -> None:
        given = {"role": "assistant", "content": line.payload.get("message")}
        made = items.said(given, self._notes)
        self._step(line, made, phase=_UNKNOWN).text = pieces.said(made["parts"])

    def _thought(self, line: Line) -> None:
        self._step(line, items.reasoning(line.payload, self._notes))

    def _begins(self, line: Line) -> None:
        self._is_open = True

    def _ends(self, line: Line) -> None:
        self._is_open = False

    def _aborted(self, line: Line) -> None:
        """Close the turn: the user stopped it."""
        self._is_open = False
        reason = string(line.payload.get("reason")) or "interrupted"
        made = items.opaque("turn_aborted", {"reason": reason}, self._notes)
        node = self._step(line, made, named=["turn_aborted", reason])
        node.cut, node.closed = "interrupted", True

    def _failed(self, line: Line) -> None:
        given = {key: line.payload.get(key) for key in ("message", "text") if line.payload.get(key)}
        node = self._step(line, items.opaque("error", given, self._notes), named=["error", given])
        node.cut = "error"

    def _rolled_back(self, line: Line) -> None:
        """Go on from before the last prompts: what came of them stays as a branch."""
        count = line.payload.get("num_turns")
        count = count if isinstance(count, int) and not isinstance(count, bool) else 1
        if 0 < count <= len(self._above):
            self._close(whole=True)
            self._rollout.at = self._above[-count]
            del self._above[-count:]

    def _renamed(self, line: Line) -> None:
        title = string(line.payload.get("thread_name")).strip()
        self._rollout.title = clean.text(title, self._notes) or self._rollout.title

    def _tokens(self, line: Line) -> None:
        """Add what the last call used: events repeat the total, which begins again after a summary."""
        info = of(line.payload, "info")
        total = info.get("total_token_usage") or line.payload.get("usage")
        if not isinstance(total, dict) or total == self._total:
            return
        before, self._total = items.counts(self._total) or {}, total
        counts = items.counts(total) or {}
        if any(count < before.get(key, 0) for key, count in counts.items()):
            before = {}
        grown = {key: count - before.get(key, 0) for key, count in counts.items()}
        used = items.counts(info.get("last_token_usage")) or grown
        target = self._turn[-1][0].usage or {} if self._turn else self._carried
        for key, count in used.items():
            target[key] = target.get(key, 0) + count
        if self._turn:
            self._turn[-1][0].usage = target

    def _take_model(self, payload: Raw) -> None:
        if given := string(payload.get("model")):
            self._model = clean.text(given, self._notes)

    # -- turns

    def _close(self, *, whole: bool) -> None:
        """Say which of what was said is the answer: where no phase says so, the last if nothing follows."""
        last = next(reversed([node for node, phase in self._turn if phase]), None)
        for node, phase in self._turn:
            if phase == _ANSWER or (phase == _UNKNOWN and node is last and whole):
                node.kind = "answer"
        self._turn = []


def _prompts(given: list[Line]) -> tuple[set[int], set[int]]:
    """Return which items are prompts, and which events tell of one that no item tells of."""
    users = {
        n: line.payload
        for n, line in enumerate(given)
        if line.type == "response_item"
        and (line.payload.get("type"), line.payload.get("role")) == ("message", "user")
    }
    by_text: dict[str, deque[int]] = {}
    for n, payload in users.items():
        said = items.texts(payload)
        for text in {text.strip() for text in (*said, "\n".join(said))}:
            by_text.setdefault(text, deque()).append(n)
    mirrored: set[int] = set()
    alone: set[int] = set()
    for n, line in enumerate(given):
        if line.type == "event_msg" and line.payload.get("type") == "user_message":
            same = by_text.get(string(line.payload.get("message")).strip(), deque())
            while same and same[0] in mirrored:
                same.popleft()
            if same:
                mirrored.add(same.popleft())
            else:
                alone.add(n)
    first = min(mirrored | alone, default=-1)
    typed = {n for n, payload in users.items() if n > first and not items.is_injected(payload)}
    return mirrored | typed, alone


def _object(given: Any) -> Raw:
    """Return what a tool gave back as `{"value"}`, read where it is JSON."""
    call = pieces.call("", "", given, Notes())["arguments"] if isinstance(given, str) else given
    return {"value": call}
