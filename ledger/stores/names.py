"""Names of a conversation's files, and which ids would share one. Decisions only; no I/O.

<id>.jsonl the log, <id>.lock the append lock (never deleted), <id>.torn-<n> bytes set aside,
<id>.repaired-<n> and <id>.undone-<n> what a repair changed, <id>.erase an open erasure,
<id>.forgotten the turns that were erased, <id>.new-<random> a file that has no name yet. No two ids
make the same name: an id is followed by exactly one of these endings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ledger.errors import ConversationIdInvalid
from ledger.records import ids

LOG = ".jsonl"
LOCK = ".lock"
INDEX = "catalog.sqlite"
"""An index of the whole folder: beside `conversations`, not in it, so that it is no conversation's file."""

OF_THE_INDEX = (INDEX, INDEX + "-journal", INDEX + "-wal", INDEX + "-shm")
"""It, and what SQLite keeps beside it."""

_SIDE = re.compile(r"\.((torn|repaired|undone)-[0-9]+|erase|forgotten|new-[0-9a-f]+)")
_BESIDE = re.compile(rf"(.+)({re.escape(LOCK)}|{_SIDE.pattern})")


def check(conversation: object, *, windows: bool) -> str:
    """Return the id if it can name files here, else raise conversation-id."""
    found = ids.check_conversation(conversation)
    if windows and ids.reserved_on_windows(found):
        raise ConversationIdInvalid(conversation=found, reason="is a name that Windows reserves")
    return found


def conversation_of(name: str) -> str | None:
    """Return the id whose log has this file name, or None for a foreign file."""
    if not name.endswith(LOG):
        return None
    try:
        return ids.check_conversation(name[: -len(LOG)])
    except ConversationIdInvalid:
        return None


def is_side_file(name: str, conversation: str) -> bool:
    """Say whether a file goes when the conversation is deleted, besides its log."""
    return name.startswith(conversation) and bool(_SIDE.fullmatch(name[len(conversation) :]))


def may_be_ours(name: str) -> bool:
    """Say whether some conversation has a file of this name besides its log."""
    found = _BESIDE.fullmatch(name)
    return found is not None and conversation_of(found[1] + LOG) is not None


def is_torn(name: str, conversation: str) -> bool:
    """Say whether a file holds bytes set aside from this conversation's log."""
    return is_side_file(name, conversation) and name[len(conversation) :].startswith(".torn-")


def holds_content(name: str, conversation: str) -> bool:
    """Say whether a side file tells of the log: bytes set aside or repaired, turns erased."""
    ending = name[len(conversation) :]
    return is_side_file(name, conversation) and ending.startswith(
        (".torn-", ".repaired-", ".undone-", ".forgotten")
    )


def taken_by(name: str, there: Iterable[str]) -> str | None:
    """Return the name that stands for this one in a folder that is blind to case, or None.

    None also when the name itself is there.
    """
    folded = name.casefold()
    found = None
    for other in there:
        if other == name:
            return None
        if other.casefold() == folded:
            found = other
    return found
