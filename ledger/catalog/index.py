"""What an index is: rows, kept and asked for. The projection says what changes; an index knows no records.

`sqlite.SQLiteIndex` is one, in a file or in memory; `postgres.PostgresIndex` another, in the database of the logs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import msgspec

from ledger.catalog.answers import Order, Place
from ledger.catalog.rows import Changes, ConversationRow, TurnRow
from ledger.catalog.texts import spelled


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations are asked for; what is not said does not matter. Times are as records have them."""

    title: str = ""
    """Stands in the title, in whatever case."""
    labels: tuple[str, ...] = ()
    """All of them."""
    states: tuple[str, ...] = ()
    """At least one turn ended in one of these, or it is one of `ids`."""
    ids: frozenset[str] = frozenset()
    """Those that have a turn that has not ended and is in one of `states` now."""
    models: tuple[str, ...] = ()
    """At least one of them."""
    since: str | None = None
    until: str | None = None
    min_turns: int = 0
    order: Order = "last"
    limit: int | None = None
    after: Place | None = None


class Sought(msgspec.Struct, frozen=True, kw_only=True):
    """Which texts are asked for."""

    query: str
    """As a person wrote it, with a word in it at least: see `texts`."""
    conversations: tuple[str, ...] | None = None
    """Only in these; None: in all."""
    labels: tuple[str, ...] = ()
    """All of them, on the conversation."""
    models: tuple[str, ...] = ()
    since: str | None = None
    limit: int = 20


class Found(NamedTuple):
    """A text that fits."""

    conversation: ConversationRow
    turn: TurnRow | None
    piece: str
    """A part of it, with `texts.BEGIN` and `texts.END` around what was found."""
    rank: float


class Used(NamedTuple):
    """A turn's token counts, and what they are summed by."""

    turn: str
    conversation: str
    started: str | None
    """None: an import's source does not tell."""
    model: str | None
    tokens: dict[str, int]
    labels: Sequence[str]
    """Those of the conversation."""


class Stale(NamedTuple):
    """What an index has otherwise than the logs."""

    changed: list[str]
    """Conversations that look otherwise than when they were taken, sorted."""
    gone: list[str]


class Said(NamedTuple):
    """The texts of a turn, or of a conversation, as an index keeps them."""

    asked: str = ""
    answered: str = ""
    about: str = ""


def said_in(changes: Changes, before: Callable[[int], Said]) -> dict[int, Said]:
    """Return the texts that have changed, by ordinal (0: the conversation's), each with what of it has not.

    Empty ones are to go. Args: before: returns what is kept.
    """
    parts = (changes.asked, changes.answered, changes.about)
    found: dict[int, Said] = {}
    for turn in dict.fromkeys(name for part in parts for name in part):
        ordinal = changes.turns[turn].ordinal if turn is not None else 0
        kept = Said() if turn in changes.asked else before(ordinal)
        said = Said(
            *(
                spelled(part[turn]) if turn in part else old
                for part, old in zip(parts, kept, strict=True)
            )
        )
        if any(said) or any(kept):
            found[ordinal] = said
    return found


class Index(Protocol):
    """Rows of conversations and turns, and their texts."""

    def stale(self, looks: Callable[[], dict[str, str]]) -> Stale:
        """Return which conversations look otherwise than when they were taken, and which are gone.

        Args: looks: returns how each log looks now; an index beside the logs may find out by itself.
        """
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Write all that is written inside, or none; nobody else writes meanwhile."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Have all that is asked inside answered as of one moment."""
        ...

    def place(self, conversation: str) -> tuple[str, str]:
        """Return the look and the mark to which a conversation was taken; empty ones where it was not."""
        ...

    def row(self, conversation: str) -> ConversationRow | None:
        """Return a conversation's row."""
        ...

    def turn(self, conversation: str, turn: str) -> TurnRow | None:
        """Return a turn's row."""
        ...

    def write(self, changes: Changes, look: str, mark: str, *, whole: bool = False) -> None:
        """Keep what has changed, and to where the log was taken.

        Args: whole: these are all turns there are; what else is kept of the conversation goes, for good.
        """
        ...

    def remove(self, conversations: Iterable[str]) -> None:
        """Remove all that is kept of conversations, for good: no byte of their texts stays in a file."""
        ...

    def listed(self, wanted: Wanted) -> list[ConversationRow]:
        """Return the conversations that fit, in order; no more than `limit`."""
        ...

    def unended(self, conversations: Collection[str] | None = None) -> list[tuple[str, TurnRow]]:
        """Return the turns that have not ended, with their conversations; None: of all."""
        ...

    def sought(self, sought: Sought) -> list[Found]:
        """Return the texts that fit, the best first."""
        ...

    def used(
        self, conversations: Collection[str] | None = None, labels: Collection[str] = ()
    ) -> Iterator[Used]:
        """Yield what each turn used, in the order of the conversations' ids.

        Args: conversations: only of these; None: of all. labels: only of those that have all of them.
        """
        ...
