"""Synthetic ChatGPT conversations with the quirks of real ones. Nothing here was said by anyone."""

from __future__ import annotations

import json
from typing import Any

from ledger.formats import chatgpt
from ledger.formats.base import Draft, DraftTurn, Element, Skipped
from tests.formats.given import Given

Raw = dict[str, Any]
START = 1_700_000_000.0


class Talk:
    """Builds one conversation; each node is a second later than the one before."""

    def __init__(self, **keys: Any) -> None:
        self.mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None}}
        self.keys: Raw = {"title": "Synthetic", "conversation_id": "talk", **keys}
        self.clock = START

    def node(self, id: str, parent: str | None, message: Raw | None, **keys: Any) -> str:
        self.mapping[id] = {"id": id, "parent": parent, "children": [], "message": message, **keys}
        if parent in self.mapping:
            self.mapping[parent].setdefault("children", []).append(id)
        return id

    def say(
        self,
        id: str,
        parent: str | None,
        role: str,
        content: Any = "",
        *,
        name: str | None = None,
        metadata: Raw | None = None,
        **keys: Any,
    ) -> str:
        if isinstance(content, str):
            content = {"content_type": "text", "parts": [content]}
        self.clock += 1
        message = {
            "id": id,
            "author": {"role": role, "name": name},
            "create_time": self.clock,
            "content": content,
            "metadata": metadata if metadata is not None else {},
            "recipient": "all",
            **keys,
        }
        return self.node(id, parent, message)

    def user(self, id: str, parent: str | None, text: Any = "", **keys: Any) -> str:
        return self.say(id, parent, "user", text or f"ask {id}", **keys)

    def bot(self, id: str, parent: str | None, text: Any = "", **keys: Any) -> str:
        return self.say(id, parent, "assistant", text or f"answer {id}", **keys)

    def call(self, id: str, parent: str, tool: str, text: str = "x") -> str:
        content = {"content_type": "code", "language": "unknown", "text": text}
        return self.say(id, parent, "assistant", content, recipient=tool)

    def result(self, id: str, parent: str, tool: str, text: str = "y") -> str:
        content = {"content_type": "execution_output", "text": text}
        return self.say(id, parent, "tool", content, name=tool)

    def value(self) -> Raw:
        return {**self.keys, "mapping": self.mapping}

    def draft(self) -> Draft:
        found = read(self.value())
        assert isinstance(found, Draft), found
        return found


def read(value: Any) -> Draft | Skipped:
    """Read one conversation."""
    (found,) = chatgpt.drafts([Given([Element(json.dumps(value).encode(), 0)])])
    return found


def shape(draft: Draft) -> list[tuple[str, str | None, str | None]]:
    """Return each turn as (input, answer or None, the answer it continues)."""
    by_id = {turn.id: turn for turn in draft.turns}
    return [
        (
            turn.inputs["message"],
            answer(turn),
            answer(by_id[turn.parent]) if turn.parent else None,
        )
        for turn in draft.turns
    ]


def answer(turn: DraftTurn) -> str | None:
    return turn.outputs["result"] if turn.outputs is not None else None
