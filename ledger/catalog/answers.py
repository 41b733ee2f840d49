"""What the catalog answers: conversations, questions that wait, hits, token counts. Values, no I/O."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from ledger.errors import LedgerError

T = TypeVar("T")

Order = Literal["last", "id"]


class Answer(list[T], Generic[T]):
    """What was found, as a list, and what could not be looked at."""

    def __init__(
        self,
        found: Iterable[T] = (),
        *,
        after: str | None = None,
        failed: dict[str, LedgerError] | None = None,
    ) -> None:
        super().__init__(found)
        self.after = after
        """Given back as `after`, it gives what follows; None: nothing does."""
        self.failed = failed or {}
        """Conversations that cannot be read, and why: of these nothing is among what was found."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a listing."""

    id: str
    title: str | None
    preview: str | None
    """What was asked first, on one line of at most 100 characters: what to show of one without a title.

    None: nothing was asked in words. What was forgotten is never in it: then it is what was asked next.
    """
    labels: list[str]
    """Those on the conversation itself."""
    turns: int
    heads: int
    """How many ends its branches have: what `chat.heads()` gives."""
    states: dict[str, int]
    """How many turns are in which state, now."""
    models: list[str]
    """Those that answered, the most used first."""
    first: datetime | None
    """When its first turn was sent; of an import by its source's clock."""
    last: datetime | None
    """When a turn was sent or ended last."""
    usage: dict[str, int]
    """Token counts, summed over its turns."""
    head: str | None
    source: dict[str, str] | None
    """Where an imported one comes from: `format`, `conversation`."""
    unreadable: int
    """How many of its records cannot be read; `turn-ledger verify` tells more."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that waits for a person."""

    conversation: str
    title: str | None
    turn: str
    ordinal: int
    since: datetime | None
    """When it began to wait."""
    questions: list[dict[str, Any]]
    """What nobody has answered, as `Turn.waiting` has it; none: it only has to be resumed."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, or a conversation's title and labels, in which the words of a search stand."""

    conversation: str
    title: str | None
    turn: str | None
    """None: they stand in the title or the labels of the conversation."""
    ordinal: int | None
    at: datetime | None
    """When the turn was sent; of a conversation its last activity."""
    model: str | None
    snippet: str
    """A piece of the text around what was found, as it was said: control characters and all."""
    matches: list[tuple[int, int]]
    """Where in the snippet: the first character, and the one after the last."""
    rank: float
    """How well it fits: more is better. To be compared within one answer."""

    def marked(self, before: str = "[", after: str = "]") -> str:
        """Return the snippet with something around what was found."""
        parts, done = [], 0
        for begin, end in self.matches:
            parts += [self.snippet[done:begin], before, self.snippet[begin:end], after]
            done = end
        return "".join([*parts, self.snippet[done:]])


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What turns came to."""

    key: str | None
    """The model, day, month, conversation or label; None: it is not known, or there is no label."""
    turns: int
    tokens: dict[str, int]
    """By kind, as they were recorded (`input_tokens`, ...)."""


# -- cursors -----------------------------------------------------------------------------------------


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Behind which conversation a page begins."""

    order: Order
    last: str | None
    id: str


def cursor(place: Place) -> str:
    """Return a place as opaque text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place_of(after: str, order: Order) -> Place:
    """Return the place of a cursor. Raises: ValueError: it is none, or one of another order."""
    try:
        data = base64.urlsafe_b64decode(after + "=" * (-len(after) % 4))
        place = msgspec.json.decode(data, type=Place)
    except (ValueError, UnicodeError, msgspec.MsgspecError):
        raise ValueError(f"{after!r} is no `after` that a listing gave") from None
    if place.order != order:
        raise ValueError(f"this `after` is of a listing by {place.order!r}, not by {order!r}")
    return place
