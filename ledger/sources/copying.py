"""Conversations copied from one store to another, byte for byte: a folder to a database, and back.

What is copied is the log, every line as it is, so its seals check there as here, and the attachments that
it names, which are there before it. What is not: the events of running turns, which are for who watches,
and what stands beside a log in a folder (bytes set aside, records of repairs).

A conversation that runs is not copied: whoever continues it in one place would be fenced by nothing in the
other. So the writers of a conversation stop, it is copied, and they go on with the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from ledger.errors import (
    AttachmentMissing,
    ConversationUnknown,
    LedgerError,
    StoreFailure,
    StoreUnsupported,
    TurnState,
)
from ledger.records import erasing, ids
from ledger.stores.base import no_beginning
from ledger.stores.resolve import store_for
from ledger.turns.judging import judge_for
from ledger.turns.log import PUTS, Log
from ledger.turns.world import world_of

T = TypeVar("T")


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
    refused: LedgerError | None = None
    """Why the conversation was not copied; None: it was."""

    def __bool__(self) -> bool:
        return bool(self.added or self.attachments)


def copy_conversations(
    source: Any,
    target: Any,
    conversations: Iterable[str] | None = None,
    *,
    strict: bool = False,
) -> list[Copied]:
    """Copy conversations to another store, byte for byte, with their attachments.

    Where the target holds a beginning of a conversation, only the rest is added; where it holds all of
    it, nothing. Copying again goes on where it stopped.
    Args: source, target: stores, or what names them: folders, URLs of databases. conversations: their
    ids; None: all of the source. strict: raise the first refusal; those before it are copied then.
    Returns: what was done, for each in order; one that was refused says why in `refused`, and hides no
    other: conversation-unknown: the source has none of that id. turn-state: a turn of it runs.
    store-conflict: the target holds something else under the id. attachment-missing: one that the target had was
    removed there meanwhile, and the source has it no more.
    Raises: store-io and the like: a store fails. store-unsupported: one of them is no store of ours.
    TypeError: `conversations` is a text: one conversation is a list of one.
    """
    if isinstance(conversations, str | bytes):
        raise TypeError(f"conversations is a list of ids, such as [{conversations!r}], not a text")
    given, taken = store_for(source), store_for(target)
    for store, methods in ((given, ("raw", "conversations")), (taken, ("raw", "grow"))):
        for method in methods:
            if not callable(getattr(store, method, None)):
                raise StoreUnsupported(store=type(store).__name__, method=method)
    names = given.conversations() if conversations is None else list(conversations)
    return [_copied(given, taken, name, strict=strict) for name in names]


def _copied(source: Any, target: Any, conversation: str, *, strict: bool) -> Copied:
    try:
        return copy_conversation(source, target, conversation)
    except StoreFailure:
        raise
    except LedgerError as error:
        if strict:
            raise
        return Copied(conversation=conversation, records=0, added=0, refused=error)


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
        raise no_beginning(conversation, before)
    report = Copied(conversation=conversation, records=before, added=0)

    def put() -> None:
        _copy_attachments(source, target, data, report)

    if len(held) < len(data):
        report.records = int(placed(put, lambda: target.grow(conversation, data)))
    else:
        put()
    report.added = report.records - before
    return report


def placed(put: Callable[[], None], place: Callable[[], T]) -> T:
    """Put attachments, and place the log that names them; again where others removed some in between.

    Raises: attachment-missing: they did so each time, or cannot be put again.
    """
    puts = PUTS
    while True:
        put()
        try:
            return place()
        except AttachmentMissing:  # Whoever forgot the last turn that named it came in between.
            if not (puts := puts - 1):
                raise


def _refuse_running(source: Any, conversation: str) -> None:
    log = Log(source, conversation)
    judge = judge_for(log, world_of(source))
    for turn in log.read().order:
        if judge.state(log, turn) == "running":
            reason = "it would go on in one of the two places only; stop it, or wait for it"
            raise TurnState(turn=turn, state="running", reason=reason)


def _copy_attachments(source: Any, target: Any, data: bytes, report: Copied) -> None:
    put, missing = list[str](), list[str]()
    for sha256 in dict.fromkeys(erasing.attachments(data)):
        if target.blobs.has(sha256):
            continue
        try:
            with source.blobs.open(sha256) as stream:
                target.blobs.put(stream)
        except AttachmentMissing:
            if any(sha256 in erasing.references(line) for line in data.split(b"\n")):
                missing.append(sha256)
        else:
            put.append(sha256)
    report.attachments = list(dict.fromkeys((*report.attachments, *put)))
    report.missing = missing


def place_of(store: Any) -> str:
    """Return where a store is, for a person: its folder, or its database without secrets."""
    return str(getattr(store, "folder", None) or getattr(store, "where", type(store).__name__))
