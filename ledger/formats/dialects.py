"""Every provider's messages that are spoken here, by name. Pure."""

from __future__ import annotations

from ledger.formats import anthropic_messages, openai_chat, openai_responses, pydantic_ai
from ledger.formats.converting import Converted, Dialect, Loss, Read
from ledger.formats.media import outlined

__all__ = ["DIALECTS", "Converted", "Dialect", "Loss", "Read", "named", "outlined"]

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (openai_chat, openai_responses, anthropic_messages, pydantic_ai)
}


def named(name: str) -> Dialect:
    """Return a dialect. Raises: ValueError: there is none of that name."""
    if name not in DIALECTS:
        raise ValueError(f"no messages are known by {name!r}; known: {', '.join(DIALECTS)}")
    return DIALECTS[name]
