"""Whose an import is: a prefix that keeps the conversations of one from those of another, and labels.

Sources that have no ids are named by what was said, so two people whose chats begin alike would share a
conversation. Under a prefix a conversation has another id, and so have its turns: what is told of a turn by its
id (what it used, how it was rated) is told of each of them.

Must stay in step: `under` and docs/decisions/0080-imports-of-several-people.md. Ids that were written once are
compared for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ledger.errors import ConversationIdInvalid
from ledger.formats.base import Draft, DraftTurn
from ledger.records import ids
from ledger.views.ratings import label_data

LONGEST_PREFIX = 100
"""How many characters a prefix has at most: the id of an import stands behind it."""
_ENDS = "._-"
"""One of these ends a prefix, so that `ann` is not how Anna's ids begin."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """Whose an import is."""

    prefix: str = ""
    """What the ids of its conversations begin with."""
    labels: tuple[str, ...] = ()
    """What is put on the conversations that gain a turn by it."""


def belonging(prefix: Any, labels: Sequence[str]) -> Belonging:
    """Return whose an import is. Raises: conversation-id: no id can begin so; TypeError; ValueError."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix is text, not {type(prefix).__name__}")
    if len(prefix) > LONGEST_PREFIX:
        reason = f"is longer than the {LONGEST_PREFIX} characters that a prefix has at most"
        raise ConversationIdInvalid(conversation=prefix[:57] + "...", reason=reason)
    if prefix and ids.check_conversation(prefix)[-1] not in _ENDS:
        reason = "would also begin ids of others; a prefix ends in '.', '_' or '-'"
        raise ConversationIdInvalid(conversation=prefix, reason=reason)
    if isinstance(labels, str):
        raise TypeError(f"labels is a list of labels, not {labels!r}")
    told = (label_data(label, on=True)["label"] for label in labels)
    return Belonging(prefix, tuple(dict.fromkeys(told)))


def conversation_id(draft: Draft, prefix: str = "") -> str:
    """Return the id of an imported conversation: the source's own where it can be one, behind the prefix."""
    try:
        return ids.check_conversation(prefix + ids.check_conversation(draft.source_id))
    except ConversationIdInvalid:
        digest = hashlib.sha256(draft.source_id.encode("utf-8", "replace")).hexdigest()
        return f"{prefix}{draft.format}-{digest[:32]}"


def under(prefix: str, draft: Draft) -> Draft:
    """Return a draft with the ids that its turns have under a prefix; without one, as it is.

    A turn's id is then the UUIDv7 of the same time and the first 74 bits of SHA-256 of the JSON
    `[prefix, the id it has without]`.
    """
    if not prefix:
        return draft
    side = draft.side_of
    if side and side.get("turn") is not None:
        side = {**side, "turn": _id(prefix, side["turn"])}
    return replace(
        draft,
        turns=[_turn(prefix, turn) for turn in draft.turns],
        current=None if draft.current is None else _id(prefix, draft.current),
        held=frozenset(_id(prefix, turn) for turn in draft.held),
        side_of=side,
        prefix=prefix,
    )


def _turn(prefix: str, turn: DraftTurn) -> DraftTurn:
    parent = None if turn.parent is None else _id(prefix, turn.parent)
    return replace(turn, id=_id(prefix, turn.id), parent=parent)


def _id(prefix: str, turn: str) -> str:
    digest = hashlib.sha256(msgspec.json.encode([prefix, turn])).digest()
    milliseconds = int(turn.replace("-", "")[:12], 16)
    return ids.uuid7(milliseconds, int.from_bytes(digest[:10], "big") >> 6)
