"""Every provider's messages that are spoken here, by name. Pure."""

from __future__ import annotations

from typing import Any

from ledger.errors import RecordInvalid
from ledger.formats import anthropic_messages, openai_chat, openai_responses, pydantic_ai
from ledger.formats.converting import Converted, Dialect, Loss, Read
from ledger.formats.media import outlined
from ledger.records import messages
from ledger.records.messages import Message

__all__ = ["DIALECTS", "Converted", "Dialect", "Loss", "Read", "as_neutral", "named", "outlined"]

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (openai_chat, openai_responses, anthropic_messages, pydantic_ai)
}


def named(name: str) -> Dialect:
    """Return a dialect. Raises: ValueError: there is none of that name."""
    if name not in DIALECTS:
        raise ValueError(f"no messages are known by {name!r}; known: {', '.join(DIALECTS)}")
    return DIALECTS[name]


def as_neutral(said: Any) -> list[Message]:
    """Return neutral messages. Raises: record-invalid; of what has no parts, as a provider's, with the next step."""
    try:
        return messages.check(said)
    except RecordInvalid as error:
        if isinstance(said, list) and all(isinstance(one, dict) and "parts" in one for one in said):
            raise
        reason = f"{error.reason}; what a provider's client gave goes with its `format`: {', '.join(DIALECTS)}"
        raise RecordInvalid(path=error.path, reason=reason) from None


def __dir__() -> list[str]:
    return __all__
