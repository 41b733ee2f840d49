"""What a provider's client gives back: a message, a list of them, a whole reply. Pure.

A whole reply says which model answered and what it used besides; so does each answer in a list of Pydantic AI's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ledger.errors import ImportInvalid
from ledger.formats import dialects, usage
from ledger.records.messages import Message


class Said(NamedTuple):
    """What is said, and by whom."""

    messages: list[Message]
    """Neutral."""
    model: str | None
    """The model that answered; of several the last; None: that is not told."""
    usage: dict[str, int]
    """Token counts, summed; empty: none are told."""


def read(format: str | None, content: Any) -> Said:
    """Return what is given as neutral messages: one or a list; an object of a client's own counts as its JSON.

    Args: format: the dialect in which it is said; None: neutral. content: besides messages also the whole reply
    to a request, of which the first choice is taken; how it ended becomes `finish_reason`.
    Raises: ValueError: there is no such format. import-invalid, record-invalid: it is none of that.
    """
    if format is None:
        return Said(dialects.as_neutral(_listed(plain(content))), None, {})
    dialect = dialects.named(format)
    raw = plain(content)
    said, ended = _REPLIES.get(format, _no_reply)(raw) if isinstance(raw, dict) else (raw, None)
    whole = isinstance(said, dict) and "messages" in said
    found = dialect.from_provider(said if whole else _listed(said))
    if ended is not None and found and found[-1]["role"] == "assistant":
        found[-1]["finish_reason"] = ended
    return _told(found, _answers(format, raw, is_reply=said is not raw))


def _answers(format: str, raw: Any, *, is_reply: bool) -> list[Any]:
    """Return what tells which model answered."""
    if format == "pydantic-ai":
        answers = [one for one in _listed(raw) if one.get("kind") == "response"]
        return [{**one, "model": one.get("model_name")} for one in answers]
    return [raw] if is_reply else []


def _told(said: list[Message], answers: list[Any]) -> Said:
    models = [model for one in answers if isinstance(model := one.get("model"), str)]
    used: dict[str, int] | None = None
    for one in answers:
        used = usage.added(used, usage.counts(one.get("usage")))
    return Said(said, models[-1] if models else None, used or {})


def items(format: str | None, content: Any) -> list[Any]:
    """Return what a provider's client gave as items of a list in its form: a whole reply as the message that it is."""
    raw = plain(content)
    if format is not None and isinstance(raw, dict):
        raw = _REPLIES.get(format, _no_reply)(raw)[0]
    return list(_listed(raw))


def plain(content: Any) -> Any:
    """Return an object of a provider's client as the JSON data it stands for, what it did not set left out."""
    if isinstance(content, list):
        return [plain(one) for one in content]
    dump = getattr(content, "model_dump", None)
    return dump(mode="json", exclude_unset=True) if callable(dump) else content


def _listed(said: Any) -> Any:
    return [said] if isinstance(said, dict) else said


def _openai(raw: dict[str, Any]) -> tuple[Any, str | None]:
    if "choices" not in raw:
        return raw, None
    choices = raw["choices"]
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ImportInvalid(source="choices", reason="a reply has at least one choice")
    return choices[0].get("message"), choices[0].get("finish_reason")


def _openai_responses(raw: dict[str, Any]) -> tuple[Any, str | None]:
    return (raw["output"], None) if raw.get("object") == "response" else (raw, None)


def _anthropic(raw: dict[str, Any]) -> tuple[Any, str | None]:
    if raw.get("type") != "message":
        return raw, None
    return {"role": raw.get("role"), "content": raw.get("content")}, raw.get("stop_reason")


def _no_reply(raw: dict[str, Any]) -> tuple[Any, str | None]:
    return raw, None


_REPLIES: dict[str, Callable[[dict[str, Any]], tuple[Any, str | None]]] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
}
