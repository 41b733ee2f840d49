"""Conversations copied from one store to another, byte for byte: a folder to a database, and back.

What is copied is the log, every line as it is, so its seals check there as here, and the attachments that
it names, which are there before it. What is not: the events of running turns, which are for who watches,
and what stands beside a log in a folder (bytes set aside, records of repairs).

A conversation that runs is not copied: whoever continues it in one place would be fenced by nothing in the
other. So the writers of a conversation stop, it is copied, and they go on with the copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ledger.errors import (
    AttachmentMissing,
    ConversationUnknown,
    StoreConflict,
    StoreUnsupported,
    TurnState,
)
from ledger.records import erasing, ids
from ledger.stores.resolve import store_for
from ledger.turns.judging import judge_for
from ledger.turns.log import Log
from ledger.turns.world import world_of


class Copied(msgspec.Struct, kw_only=True):
    """What copying a conversation did. True when it added anything."""

    conversation: str
    records: int
    """How many records the copy holds."""
    added: int
    """How many of them were not there before."""
    attachments: list[str] = []
    """The SHA-256 of the attachments that were put."""
    missing: list[str] = []
    """Those that the log names and whose bytes are in neither store."""

    def __bool__(self) -> bool:
        return bool(self.added or self.attachments)


def copy_conversations(
    source: Any, target: Any, conversations: Iterable[str] | None = None
) -> list[Copied]:
    """Copy conversations to another store, byte for byte, with their attachments.

    Where the target holds a beginning of a conversation, only the rest is added; where it holds all of
    it, nothing. Copying again goes on where it stopped.
    Args: source, target: stores, or what names them: folders, URLs of databases. conversations: their
    ids; None: all of the source.
    Returns: what was done, for each in order.
    Raises: conversation-unknown: the source has none of that id. turn-state: a turn of it runs.
    store-conflict: the target holds something else under the id. store-unsupported: one of them is no
    store of ours. Those before it are copied then.
    """
    given, taken = store_for(source), store_for(target)
    for store, methods in ((given, ("raw", "conversations")), (taken, ("raw", "grow"))):
        for method in methods:
            if not callable(getattr(store, method, None)):
                raise StoreUnsupported(store=type(store).__name__, method=method)
    names = given.conversations() if conversations is None else list(conversations)
    return [copy_conversation(given, taken, name) for name in names]


def copy_conversation(source: Any, target: Any, conversation: str) -> Copied:
    """Copy one conversation from a store to another: see `copy_conversations`."""
    ids.check_conversation(conversation)
    _refuse_running(source, conversation)
    data: bytes = source.raw(conversation)
    if not data:
        raise ConversationUnknown(conversation=conversation, where=place_of(source))
    before = int(target.append(conversation, []))
    held: bytes = target.raw(conversation)
    if not data.startswith(held):
        raise StoreConflict(conversation=conversation, expected=0, found=before)
    report = Copied(conversation=conversation, records=before, added=0)
    _copy_attachments(source, target, data, report)
    if len(held) < len(data):
        report.records = int(target.grow(conversation, data))
    report.added = report.records - before
    return report


def _refuse_running(source: Any, conversation: str) -> None:
    log = Log(source, conversation)
    judge = judge_for(log, world_of(source))
    for turn in log.read().order:
        if judge.state(log, turn) == "running":
            reason = "it would go on in one of the two places only; stop it, or wait for it"
            raise TurnState(turn=turn, state="running", reason=reason)


def _copy_attachments(source: Any, target: Any, data: bytes, report: Copied) -> None:
    for sha256 in dict.fromkeys(erasing.attachments(data)):
        if target.blobs.has(sha256):
            continue
        try:
            with source.blobs.open(sha256) as stream:
                target.blobs.put(stream)
        except AttachmentMissing:
            report.missing.append(sha256)
        else:
            report.attachments.append(sha256)


def place_of(store: Any) -> str:
    """Return where a store is, for a person: its folder, or its database without secrets."""
    return str(getattr(store, "folder", None) or getattr(store, "where", type(store).__name__))
