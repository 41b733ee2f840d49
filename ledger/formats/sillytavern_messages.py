"""One message of SillyTavern in the neutral shape, and the swipes beside it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from ledger.formats import clean, media
from ledger.formats.base import Message, Notes
from ledger.formats.converting import Part, Raw
from ledger.formats.nodes import Kind

_NAME = "sillytavern"
_PROGRAM = "SillyTavern System"
_APART = frozenset({"mes", "swipes", "swipe_info", "extra", "name"})


@dataclass(slots=True, frozen=True)
class Swipe:
    """One of the texts that a message may be."""

    text: str
    extra: Raw
    """How it was made."""
    beside: Raw = field(default_factory=dict)
    """What else is told of it alone: its times."""


def is_message(value: Raw) -> bool:
    """Say whether a line is a message."""
    return isinstance(value.get("mes"), str) and ("is_user" in value or "send_date" in value)


def kind(raw: Raw) -> Kind:
    """Return what a message is. One that is hidden from the model was said all the same."""
    made_by_program = raw.get("is_system") is True and raw.get("name") == _PROGRAM
    if made_by_program or _extra(raw).get("type") in ("narrator", "help", "welcome", "comment"):
        return "aside"
    return "prompt" if raw.get("is_user") is True else "answer"


def chosen(raw: Raw) -> Swipe:
    """Return what a message says now."""
    return Swipe(raw["mes"], _extra(raw))


def swipes(raw: Raw) -> list[Swipe]:
    """Return the other texts of a message; an edit of the chosen one need not be among them."""
    listed, told = raw.get("swipes"), raw.get("swipe_info")
    told = told if isinstance(told, list) else []
    found: dict[str, Swipe] = {}
    for place, one in enumerate(listed if isinstance(listed, list) else []):
        text = one.get("message", one.get("mes")) if isinstance(one, dict) else one
        beside = told[place] if place < len(told) and isinstance(told[place], dict) else {}
        if isinstance(text, str) and text != raw["mes"]:
            found.setdefault(text, Swipe(text, _extra(beside), beside))
    return list(found.values())


def neutral(raw: Raw, swipe: Swipe, notes: Notes) -> Message:
    """Return what a message says, by the name of who says it."""
    role = {"prompt": "user", "answer": "assistant"}.get(kind(raw), "system")
    parts: list[Part] = [{"type": "text", "content": clean.text(swipe.text, notes)}]
    thought = swipe.extra.get("reasoning")
    if role == "assistant" and isinstance(thought, str) and thought:
        parts.insert(0, {"type": "reasoning", "content": clean.text(thought, notes)})
    image = swipe.extra.get("image")
    if isinstance(image, str) and image:
        parts.append(media.uri_part(clean.text(image, notes), "image"))
    kept = {key: value for key, value in raw.items() if key not in _APART}
    rest = {key: value for key, value in swipe.extra.items() if key not in ("reasoning", "image")}
    kept = {**kept, **{key: v for key, v in swipe.beside.items() if key != "extra"}, "extra": rest}
    message: Message = {"role": role, "parts": parts, "only": {_NAME: clean.value(kept, notes)}}
    if isinstance(raw.get("name"), str) and raw["name"]:
        message["name"] = clean.text(raw["name"], notes)
    return message


def _extra(told: Raw) -> Raw:
    given = told.get("extra")
    return given if isinstance(given, dict) else {}
