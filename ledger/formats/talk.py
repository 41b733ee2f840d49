"""What neutral messages are in a talk: a prompt, an answer, a step or context, and what they say. Pure.

A source's record may be several neutral messages: a call and its result in one. What it is follows
from who speaks: a user's is a prompt, a system's an aside; an assistant's that says or shows
something is an answer, and one of calls, results and thoughts alone is a step.
"""

from __future__ import annotations

from collections.abc import Iterable

from ledger.errors import LedgerError
from ledger.formats import clean, pieces
from ledger.formats.base import Message, Notes
from ledger.formats.converting import Dialect, Part, Raw
from ledger.formats.nodes import Kind
from ledger.records.messages import PARTS, ROLES

_SHOWN = ("uri", "blob", "file")


def kind_of(messages: list[Message]) -> Kind:
    """Return what a record is that says these messages."""
    roles = {message["role"] for message in messages}
    if "user" in roles:
        return "prompt"
    if not roles & {"assistant", "tool"}:
        return "aside" if messages else "nothing"
    spoken = (part for m in messages if m["role"] == "assistant" for part in m["parts"])
    return "answer" if any(map(_says, spoken)) else "step"


def _says(part: Part) -> bool:
    return part["type"] in _SHOWN or (part["type"] == "text" and part["content"] != "")


def text_of(messages: list[Message]) -> str:
    """Return what messages say, without what tools gave back."""
    texts = [pieces.said(message["parts"]) for message in messages if message["role"] != "tool"]
    return "\n\n".join(text for text in texts if text)


def joined(messages: Iterable[Message]) -> list[Message]:
    """Return messages with what an assistant says in a row as one."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1]["role"] == message["role"] == "assistant":
            out[-1] = {**out[-1], "parts": [*out[-1]["parts"], *message["parts"]]}
        else:
            out.append(message)
    return out


def read(dialect: Dialect, raw: object, notes: Notes) -> list[Message]:
    """Return what one message of a provider says; one that does not read is kept whole.

    What has no neutral form is a part `<dialect>:<type>`, and is counted.
    """
    given = clean.value(raw, notes)
    try:
        messages = dialect.from_provider([given])
    except LedgerError:
        messages = [kept_whole(dialect.name, given)]
    for message in messages:
        count_unknown(message, notes)
    return messages


def kept_whole(name: str, raw: object) -> Message:
    """Return a message that is not understood, as it is, said by whom it says."""
    role = raw.get("role") if isinstance(raw, dict) else None
    known = isinstance(role, str) and role in ROLES
    content = raw if isinstance(raw, dict) else {"value": raw}
    part: Raw = {"type": f"{name}:message", "content": content}
    return {"role": role if known else "system", "parts": [part]}


def count_unknown(message: Message, notes: Notes) -> None:
    """Count the parts of a message whose type is not known."""
    for part in message["parts"]:
        if part["type"] not in PARTS:
            notes.unknown[f"part {part['type']}"] += 1
