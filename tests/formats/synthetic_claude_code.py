"""Synthetic Claude Code sessions with the quirks of real ones. Nothing here was said by anyone."""

from __future__ import annotations

import json
import uuid
from typing import Any

from ledger.formats import claude_code
from ledger.formats.base import Draft, DraftTurn, Skipped
from tests.formats.given import Given

Raw = dict[str, Any]
SESSION = "00000000-0000-4000-8000-0000000000aa"
OTHER = "00000000-0000-4000-8000-0000000000bb"


def id_of(name: str) -> str:
    """Return a UUID that stands for a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


class Session:
    """Builds the lines of a file; each is a second later than the one before."""

    def __init__(self, session: str = SESSION, *, clock: int = 0) -> None:
        self.lines: list[Raw] = []
        self.session = session
        self.clock = clock

    def line(self, kind: str, name: str | None, above: str | None, **keys: Any) -> str:
        """Add a line; ids are made from names."""
        self.clock += 1
        value = {"type": kind, "sessionId": self.session, "timestamp": self.time(), **keys}
        if name is not None:
            value |= {"uuid": id_of(name), "parentUuid": id_of(above) if above else None}
            value.setdefault("isSidechain", False)
        self.lines.append(value)
        return name or ""

    def time(self) -> str:
        minutes, seconds = divmod(self.clock, 60)
        return f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.000Z"

    def user(self, name: str, above: str | None, content: Any = None, **keys: Any) -> str:
        content = f"ask {name}" if content is None else content
        return self.line("user", name, above, message={"role": "user", "content": content}, **keys)

    def model(
        self,
        name: str,
        above: str,
        *blocks: Any,
        message: str | None = None,
        used: int = 5,
        model: str = "opus",
        **keys: Any,
    ) -> str:
        """Add one line of a message of the model: its texts and calls."""
        inner = {
            "id": message or f"msg_0000000000_{name}",
            "role": "assistant",
            "model": model,
            "content": [text(one) if isinstance(one, str) else one for one in blocks],
            "usage": {
                "input_tokens": 10,
                "output_tokens": used,
                "cache_read_input_tokens": 7,
                "cache_creation_input_tokens": 3,
            },
        }
        return self.line("assistant", name, above, message=inner, **keys)

    def result(self, name: str, above: str, call: str, content: Any = "fine", **keys: Any) -> str:
        """Add a line with the result of a call."""
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        return self.user(name, above, [block], **keys)

    def parallel(self, name: str, above: str, count: int = 3) -> str:
        """Add a message that calls several tools, each result below its own call."""
        message = f"msg_0000000000_{name}"
        at = self.model(f"{name}-say", above, "working", message=message, used=1)
        calls = []
        for n in range(count):
            at = self.model(f"{name}-{n}", at, call(f"{name}-{n}"), message=message, used=n + 2)
            calls.append(at)
            self.line("progress", f"{at}-p", at, data={"type": "hook_progress"})
        ends = [self.result(f"{one}-r", one, one) for one in calls]
        return ends[-1] if ends else at

    def data(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)

    def file(self, path: str | None = None) -> Given:
        return Given(self.data(), path or f"{self.session}.jsonl")


def text(words: str) -> Raw:
    """Return a block of text."""
    return {"type": "text", "text": words}


def call(id: str, name: str = "Bash", **given: Any) -> Raw:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def read(*files: Given) -> list[Draft]:
    """Read files as an import does: grouped, each group at once."""
    found = [item for group in claude_code.together(files) for item in claude_code.drafts(group)]
    assert not [item for item in found if isinstance(item, Skipped)]
    return [item for item in found if isinstance(item, Draft)]


def one(*files: Given) -> Draft:
    """Read files that hold one conversation."""
    (found,) = read(*files)
    return found


def shape(draft: Draft) -> list[tuple[str, str | None, str | None]]:
    """Return each turn as (input, answer or None, the input of the turn it continues)."""
    by_id = {turn.id: turn for turn in draft.turns}
    return [
        (
            turn.inputs["message"],
            turn.outputs["result"] if turn.outputs is not None else None,
            by_id[turn.parent].inputs["message"] if turn.parent else None,
        )
        for turn in draft.turns
    ]


def calls(turn: DraftTurn) -> list[str]:
    """Return the ids of calls, and of results with a `!` before."""
    parts = [part for message in turn.messages_out for part in message["parts"]]
    return [
        part["id"] if part["type"] == "tool_call" else f"!{part['id']}"
        for part in parts
        if part["type"] in ("tool_call", "tool_call_response")
    ]
