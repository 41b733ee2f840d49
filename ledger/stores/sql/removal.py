"""What is taken out: what a turn says, a whole conversation, attachments that no line names any more.

Each is one transaction, so nothing is ever half removed. An attachment's row is locked before the lines
that name it are looked for, and whoever adds such a line locks it too: so none is removed that a line names.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection

from ledger.errors import ConversationIdInvalid, StoreVersion
from ledger.records import erasing, ids
from ledger.stores import blobs, plans
from ledger.stores.base import Deleted, Erased
from ledger.stores.sql import index_room, pieces, rows
from ledger.stores.sql.database import NOW
from ledger.stores.sql.writing import Locked

_UNMENTION = text("DELETE FROM ledger_mentions WHERE conversation = :key AND seq = :seq")
_ASIDE = text("SELECT n, data FROM ledger_aside WHERE conversation = :key ORDER BY n")
_DROP_ASIDE = text("DELETE FROM ledger_aside WHERE conversation = :key AND n = :n")
_DROP_ALL = [
    text("DELETE FROM ledger_lines WHERE conversation = :key"),
    text("DELETE FROM ledger_mentions WHERE conversation = :key"),
    text("DELETE FROM ledger_aside WHERE conversation = :key"),
    text("DELETE FROM ledger_conversations WHERE key = :key"),
]
_DROP_EVENTS = [
    text(
        """DELETE FROM ledger_event_lines WHERE log IN
        (SELECT key FROM ledger_events WHERE tenant = :tenant AND tree = :tree)"""
    ),
    text("DELETE FROM ledger_events WHERE tenant = :tenant AND tree = :tree"),
]
_ATTACHMENT = text("SELECT key FROM ledger_attachments WHERE tenant = :tenant AND sha256 = :sha256")
_ATTACHMENT_LOCKED = text(f"{_ATTACHMENT.text} FOR UPDATE")
_NAMED = text("SELECT 1 FROM ledger_mentions WHERE tenant = :tenant AND sha256 = :sha256 LIMIT 1")
_DROP_ATTACHMENT = [
    text("DELETE FROM ledger_parts WHERE attachment = :key"),
    text("DELETE FROM ledger_attachments WHERE key = :key"),
]
_OLD = {
    postgres: text(
        f"""SELECT sha256 FROM ledger_attachments AS kept
        WHERE tenant = :tenant AND made <= {now} - :older AND sha256 NOT LIKE 'new-%'
        AND NOT EXISTS (SELECT 1 FROM ledger_mentions AS named
            WHERE named.tenant = kept.tenant AND named.sha256 = kept.sha256)
        ORDER BY sha256"""
    )
    for postgres, now in NOW.items()
}
_OLD_PIECES = {
    postgres: text(
        f"""SELECT key FROM ledger_attachments
        WHERE tenant = :tenant AND made <= {now} - :older AND sha256 LIKE 'new-%'"""
    )
    for postgres, now in NOW.items()
}


class Swept(NamedTuple):
    """What became of some attachments."""

    removed: list[str]
    kept: list[str]
    """Those that are here and that a line names."""


# -- a turn ----------------------------------------------------------------------------------------


def erase(
    connection: Connection,
    log: Locked,
    tenant: int,
    id: str,
    turn: str,
    where: str,
    *,
    postgres: bool,
) -> Erased:
    """Overwrite what a turn's lines say, and remove what belongs to it alone."""
    if not log.head.key:
        return Erased(conversation=id, turn=turn)
    if log.head.newer:
        raise StoreVersion(where=where, reason="it holds records of a newer format")
    log.tidy()
    source = rows.source(connection, log.head)
    changes, report = plans.changes_of(plans.lines_of(source), id, turn)
    changed = [(change.seq, _overwritten(connection, log, change)) for change in changes]
    if changed:
        head = _head_with(log.head, changed)
        log.change(changed, head._replace(erased=head.erased + 1))
    common = {"key": log.head.key, "tenant": tenant}
    for seq, _ in changed:
        connection.execute(_UNMENTION, {**common, "seq": seq})
    log.mention(changed)
    _remove_events(connection, tenant, [turn])
    for n, data in connection.execute(_ASIDE, common).all():
        if erasing.piece_concerns(bytes(data), turn):
            connection.execute(_DROP_ASIDE, {**common, "n": n})
    swept = sweep(connection, tenant, erasing.named(changes), postgres=postgres)
    report.attachments, report.attachments_kept = swept
    index_room.forget(connection, tenant, id, postgres=postgres)
    return report


def _overwritten(connection: Connection, log: Locked, change: erasing.Change) -> bytes:
    row = rows.one(connection, log.head, change.seq) or b""
    return change.tombstone + row[change.length :]


def _head_with(head: pieces.Head, changed: list[tuple[int, bytes]]) -> pieces.Head:
    if changed[0][0] == 1:
        at, salt = pieces.first_of(pieces.line_of(changed[0][1]))
        return head._replace(first_at=at, first_salt=salt)
    return head


def _remove_events(connection: Connection, tenant: int, turns: Iterable[str]) -> None:
    for turn in turns:
        with suppress(ConversationIdInvalid):  # What could be no log's name, has none.
            given = {"tenant": tenant, "tree": ids.check_conversation(turn)}
            for statement in _DROP_EVENTS:
                connection.execute(statement, given)


# -- a conversation --------------------------------------------------------------------------------


def delete(connection: Connection, log: Locked, tenant: int, id: str, *, postgres: bool) -> Deleted:
    """Remove a log and all that belongs to it."""
    report = Deleted(conversation=id, found=bool(log.head.key))
    if not report.found:
        return report
    named: dict[str, None] = {}
    source = rows.source(connection, log.head)
    _remove_events(connection, tenant, list(plans.contents(source, named)))
    for statement in _DROP_ALL:
        connection.execute(statement, {"key": log.head.key})
    swept = sweep(connection, tenant, named, postgres=postgres)
    report.attachments, report.attachments_kept = swept
    index_room.forget(connection, tenant, id, postgres=postgres)
    return report


# -- attachments -----------------------------------------------------------------------------------


def sweep(connection: Connection, tenant: int, sha256s: Iterable[str], *, postgres: bool) -> Swept:
    """Remove those of some attachments that no line names."""
    swept = Swept([], [])
    order = list(dict.fromkeys(sha256s))
    for sha256 in sorted(order):  # Who locks several does so in one order.
        given = {"tenant": tenant, "sha256": sha256}
        find = _ATTACHMENT_LOCKED if postgres else _ATTACHMENT
        key = connection.execute(find, given).scalar()
        if key is None:
            continue
        if connection.execute(_NAMED, given).first() is not None:
            swept.kept.append(sha256)
            continue
        drop(connection, [key])
        swept.removed.append(sha256)
    return Swept(*(sorted(part, key=order.index) for part in swept))


def sweep_old(
    connection: Connection, tenant: int, older_than_s: float, *, postgres: bool
) -> list[str]:
    """Remove attachments that no line names and that are not young, and pieces of some never whole."""
    given = {"tenant": tenant, "older": older_than_s}
    found = connection.execute(_OLD[postgres], given).scalars().all()
    removed = sweep(connection, tenant, found, postgres=postgres).removed
    given["older"] = max(older_than_s, blobs.PIECE_S)
    drop(connection, connection.execute(_OLD_PIECES[postgres], given).scalars().all())
    return removed


def drop(connection: Connection, keys: Iterable[int]) -> None:
    """Remove attachments by their keys."""
    for key in keys:
        for statement in _DROP_ATTACHMENT:
            connection.execute(statement, {"key": key})


def events(connection: Connection, tenant: int, tree: str) -> bool:
    """Remove the events of a turn. Returns: whether there were any."""
    given = {"tenant": tenant, "tree": tree}
    return [connection.execute(statement, given).rowcount for statement in _DROP_EVENTS][-1] > 0


def pieces_set_aside(connection: Connection, key: int) -> list[str]:
    """Return the names of what stood torn at the end of a log, as a folder would call them."""
    return [f"torn-{row[0]}" for row in connection.execute(_ASIDE, {"key": key})]
