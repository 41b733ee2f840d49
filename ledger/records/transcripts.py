"""A whole list of messages, cut into turns, and what two turns are compared by. Pure.

(1) The system and developer messages at the beginning are the instructions; they belong to no turn.
(2) A turn begins with a user's side (user, and system or developer between turns) and goes up to the next
    user's side behind a message of the assistant or a tool.
(3) A call and its result are in one turn: where a result comes late, what stands between belongs to it.
(4) What follows closes a turn. The last one is whole when it ends with a message of the assistant that calls
    nothing, whether or not the calls before it have results; else it is left over.

Two turns say the same when the same parts follow each other, each by the same role and name. How parts are
grouped into messages, what one provider alone understands (`only`), why a reply ended, and how the ids of
calls are spelled, is not compared: these change on the way through a provider and back.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from ledger.records.messages import USER_SIDE, Message

LEADING = ("system", "developer")
"""Who gives instructions."""


class Cut(NamedTuple):
    """A list of messages in its pieces: in order, they are the list."""

    instructions: list[Message]
    turns: list[list[Message]]
    """Each is whole."""
    left: list[Message]
    """The last turn, when it is not whole."""


def cut(messages: list[Message], *, begun: bool = False) -> Cut:
    """Return the pieces of a list of checked messages. Args: begun: it goes on behind a turn."""
    body = messages if begun else without_instructions(messages)
    starts = _starts(body)
    turns = [body[a:b] for a, b in pairwise([*starts, len(body)])]
    left = turns.pop() if turns and not is_whole(turns[-1]) else []
    return Cut(messages[: len(messages) - len(body)], turns, left)


def _starts(body: list[Message]) -> list[int]:
    """Return where each turn begins."""
    starts = [0] if body else []
    ends = _results(body)
    reach, before = -1, "user"
    for i, message in enumerate(body):
        if message["role"] in USER_SIDE and before not in USER_SIDE and i > reach:
            starts.append(i)
        reach = max(reach, ends.get(i, -1))
        before = message["role"]
    return starts


def _results(body: list[Message]) -> dict[int, int]:
    """Return for each message that calls where the last result of its calls stands."""
    ends: dict[int, int] = {}
    calls: dict[str, list[int]] = {}
    for i, message in enumerate(body):
        for part in message["parts"]:
            if part["type"] == "tool_call":
                # A reply that calls under an id again closes the earlier calls of that id.
                calls[part["id"]] = [c for c in calls.get(part["id"], []) if c == i] + [i]
            elif part["type"] == "tool_call_response" and calls.get(part["id"]):
                ends[calls[part["id"]].pop()] = i
    return ends


def is_whole(turn: list[Message]) -> bool:
    """Say whether a turn that nothing follows has its answer."""
    if not turn or turn[-1]["role"] != "assistant":
        return False
    return all(part["type"] != "tool_call" for part in turn[-1]["parts"])


def begins_turn(messages: list[Message]) -> bool:
    """Say whether a list of messages that follows an answer begins the next turn."""
    return bool(messages) and messages[0]["role"] in USER_SIDE


def without_instructions(turn: list[Message]) -> list[Message]:
    """Return the messages behind the instructions with which a list begins."""
    first = next((i for i, m in enumerate(turn) if m["role"] not in LEADING), len(turn))
    return turn[first:]


def asked(turn: list[Message]) -> str:
    """Return what the user says in a turn, as text."""
    side = []
    for message in turn:
        if message["role"] not in USER_SIDE:
            break
        if message["role"] == "user":
            side.append(_text(message))
    return "\n\n".join(filter(None, side))


def answered(turn: list[Message]) -> str:
    """Return what the assistant says last in a turn, as text."""
    said = (_text(m) for m in reversed(turn) if m["role"] == "assistant")
    return next(filter(None, said), "")


def _text(message: Message) -> str:
    return "\n".join(part["content"] for part in message["parts"] if part["type"] == "text")


def digest(turn: list[Message]) -> bytes:
    """Return what a turn is known by: 16 bytes, the same for turns that say the same."""
    said = msgspec.json.encode(_said(turn), order="deterministic")
    return hashlib.sha256(said).digest()[:16]


def _said(turn: list[Message]) -> list[Any]:
    ids: dict[str, int] = {}
    return [
        [message["role"], message.get("name"), _bare(part, ids)]
        for message in turn
        for part in message["parts"]
    ]


def _bare(part: dict[str, Any], ids: dict[str, int]) -> dict[str, Any]:
    bare = {key: value for key, value in part.items() if key != "only"}
    if part["type"] in ("tool_call", "tool_call_response") and "id" in part:
        bare["id"] = ids.setdefault(str(part["id"]), len(ids))
    return bare
