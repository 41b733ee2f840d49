"""What an index keeps of a conversation and of each turn: what a listing tells, and what the fold needs.

A row holds all that the projection has to know to take the next record, and nothing that depends on the
time of asking: of a turn that has not ended, its last lease and whether it waits.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, overload

import msgspec

from ledger.records import kinds


class TurnRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A turn, as far as its records were taken."""

    turn: str
    ordinal: int
    parent: str | None = None
    started: str | None = None
    """When it was sent, as a record's time."""
    undated: bool = False
    """Whether it was imported and its source tells no time: `started` is when it was recorded."""
    updated: str | None = None
    """When it ended by an import's source, whose clock then counts."""
    ended: str | None = None
    state: str | None = None
    """Of its end; None: it has not ended."""
    sent_to: str | None = None
    """The model it was sent to."""
    answered_by: str | None = None
    reads: list[str] = []
    """A merge: the turns it reads."""
    usage: dict[str, int] | None = None
    """Token counts of its end; None: its end has none, and those of its steps count."""
    replied: dict[str, int] = {}
    """Those of its replies, summed."""
    tools: dict[str, dict[str, int]] = {}
    """Those of its tool calls, by their places."""
    kept_children: int = 0
    """How many turns below it are kept, so that it is no end of a branch."""
    merged: bool = False
    """Whether a merge that is done reads it."""
    labels: list[str] = []
    lease: kinds.Lease | None = None
    """The last one of a turn without an end."""
    lease_seq: int = 0
    waiting_seq: int = 0
    waiting_at: str | None = None
    """When it began to wait."""
    questions: list[dict[str, Any]] = []
    """What it asks a person and nobody has answered."""

    @property
    def model(self) -> str | None:
        """The model that answered, or the one it was sent to."""
        return self.answered_by if self.answered_by is not None else self.sent_to

    @property
    def waits(self) -> bool:
        """Whether it stopped to wait for a person, and nobody went on with it since."""
        return self.waiting_seq > self.lease_seq

    @property
    def is_kept(self) -> bool:
        """Whether it counts for the ends of branches: it may have an answer still, or something below it has."""
        return self.state in (None, "done") or self.kept_children > 0

    @property
    def is_end(self) -> bool:
        """Whether a branch ends here."""
        return self.is_kept and not self.kept_children and not self.merged

    @property
    def tokens(self) -> dict[str, int]:
        """Its token counts, each model call inside it once."""
        if self.usage is not None:
            return self.usage
        total = Counter(self.replied)
        for counts in self.tools.values():
            total.update(counts)
        return dict(total)


class ConversationRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A conversation: what its turns come to."""

    id: str
    position: int = 0
    """How many records were taken."""
    turns: int = 0
    ends: int = 0
    """How many branches it has."""
    states: dict[str, int] = {}
    """How many turns ended in each state."""
    models: dict[str, int] = {}
    """How many turns each model answered."""
    usage: dict[str, int] = {}
    first: str | None = None
    """When its first turn was sent, as a record's time."""
    last: str | None = None
    """When a turn was sent or ended last."""
    head: str | None = None
    title: str | None = None
    preview: str | None = None
    """What was asked first, on one line, shortened."""
    labels: list[str] = []
    source: dict[str, str] | None = None
    """Where an imported one comes from: `format`, `conversation`."""
    unreadable: int = 0
    """How many records cannot be read."""

    def count(self, row: TurnRow, sign: int) -> None:
        """Count what a turn comes to, or (with -1) take it out again."""
        self.turns += sign
        self.ends += sign * row.is_end
        if row.state is not None:
            _add(self.states, row.state, sign)
        if row.model is not None:
            _add(self.models, row.model, sign)
        for kind, number in row.tokens.items():
            _add(self.usage, kind, sign * number)


class Changes(msgspec.Struct):
    """What some records change of a conversation's rows."""

    conversation: ConversationRow
    turns: dict[str, TurnRow] = {}
    """The turns that are new or changed, as they are now."""
    asked: dict[str | None, str] = {}
    """By turn: the text of what was sent."""
    answered: dict[str | None, str] = {}
    """By turn: the text of what came of it."""
    about: dict[str | None, str] = {}
    """By turn: the text of its labels; of None: the conversation's title and labels."""


def _add(counts: dict[str, int], name: str, number: int) -> None:
    total = counts.get(name, 0) + number
    if total:
        counts[name] = total
    else:
        counts.pop(name, None)


# -- as text ---------------------------------------------------------------------------------------


def encoded(row: ConversationRow | TurnRow) -> str:
    """Write a row as JSON that a database can keep."""
    try:
        return msgspec.json.encode(row).decode()
    except UnicodeEncodeError:
        return storable(json.dumps(msgspec.to_builtins(row), ensure_ascii=False))


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
@overload
def storable(text: str | None) -> str | None: ...
def storable(text: str | None) -> str | None:
    """Return a text as a database can keep it: others write what is no Unicode text, and NUL."""
    return None if text is None else text.encode(errors="replace").decode().replace("\0", "\ufffd")
