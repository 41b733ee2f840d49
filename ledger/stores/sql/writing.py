"""Records added to a log: in one statement where its end is known, else under the lock of its row.

`in_one` (PostgreSQL) is one statement that changes the conversation's row only where count, chain and
incarnation are what the caller knew, and adds the lines only if it did. A chain never comes again, so the
same statement may be sent twice: at most one of the two adds anything. That is how a lost connection is
dealt with (`settled`): the same bytes, the same condition, and a look at whose line stands there.

Places of the feed grow along a log. With `in_one` they do since the end that it knows was committed before
its transaction began; `locked` compares with the last line's place, and begins anew when its own is lower.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from ledger.errors import AttachmentMissing, StoreVersion
from ledger.records import codec
from ledger.stores.base import check_expected, no_beginning
from ledger.stores.sql import pieces, rows
from ledger.stores.sql.failures import Again
from ledger.stores.sql.pieces import Cut, Head, Sealed
from ledger.stores.sql.tables import VERSION

_PLACE = {
    True: "CAST(CAST(pg_current_xact_id() AS text) AS bigint)",
    False: "(SELECT clock FROM ledger_meta)",
}
_HEAD_COLUMNS = "tenant, id, count, size, chain, ready, newer, first_at, first_salt, erased, torn"
_HEAD_VALUES = (
    ":tenant, :id, :records, :size, :chain, :ready, :newer, :first_at, :first_salt, :erased, :torn"
)
_ADD_MANY = """INSERT INTO ledger_lines (conversation, seq, tenant, era, place, data)
        SELECT head.key, line.seq, CAST(:tenant AS bigint), meta.era, {place}, line.data
        FROM head, ledger_meta AS meta,
            unnest(CAST(:seqs AS bigint[]), CAST(:datas AS bytea[])) AS line(seq, data)"""

_GROW = text(
    f"""WITH head AS (
        UPDATE ledger_conversations
        SET count = :records, size = :size, chain = :chain, newer = :newer
        WHERE tenant = :tenant AND id = :id AND count = :before AND chain = :known AND ready = 1
            AND newer = 0 AND first_at = :first_at
            AND first_salt IS NOT DISTINCT FROM CAST(:first_salt AS text)
            AND EXISTS (SELECT 1 FROM ledger_meta WHERE version = {VERSION})
        RETURNING key),
    added AS ({_ADD_MANY.format(place=_PLACE[True])})
    SELECT key FROM head"""
)
_BEGIN = text(
    f"""WITH head AS (
        INSERT INTO ledger_conversations ({_HEAD_COLUMNS})
        SELECT :tenant, :id, :records, :size, :chain, :ready, :newer, :first_at, :first_salt, :erased, NULL
        FROM ledger_meta WHERE version = {VERSION}
        ON CONFLICT (tenant, id) DO NOTHING RETURNING key),
    added AS ({_ADD_MANY.format(place=_PLACE[True])})
    SELECT key FROM head"""
)
_NEW_HEAD = text(
    f"""INSERT INTO ledger_conversations ({_HEAD_COLUMNS}) VALUES ({_HEAD_VALUES})
    ON CONFLICT (tenant, id) DO NOTHING"""
)
_CHANGE_HEAD = text(
    """UPDATE ledger_conversations SET count = :records, size = :size, chain = :chain, ready = :ready,
        newer = :newer, first_at = :first_at, first_salt = :first_salt, erased = :erased, torn = :torn
    WHERE key = :key"""
)
_ADD = {
    postgres: text(
        f"""INSERT INTO ledger_lines (conversation, seq, tenant, era, place, data)
        SELECT :key, :seq, :tenant, era, {place}, :data FROM ledger_meta"""
    )
    for postgres, place in _PLACE.items()
}
_TICK = text("UPDATE ledger_meta SET clock = clock + 1")
_LAST_PLACE = text(
    f"""SELECT 1 FROM ledger_lines AS line, ledger_meta AS meta
    WHERE line.conversation = :key AND line.seq = :seq AND line.era = meta.era
        AND line.place > {_PLACE[True]}"""
)
_CHANGE = text("UPDATE ledger_lines SET data = :data WHERE conversation = :key AND seq = :seq")
_MENTION = text(
    """INSERT INTO ledger_mentions (tenant, sha256, conversation, seq)
    VALUES (:tenant, :sha256, :key, :seq) ON CONFLICT DO NOTHING"""
)
_LINE_OF = text(
    """SELECT line.data FROM ledger_lines AS line JOIN ledger_conversations AS head
        ON head.key = line.conversation
    WHERE head.tenant = :tenant AND head.id = :id AND line.seq = :seq"""
)
_KEPT = text("SELECT sha256 FROM ledger_attachments WHERE tenant = :tenant AND sha256 = :sha256")
_KEPT_LOCKED = text(f"{_KEPT.text} FOR KEY SHARE")
_CLEAR = text("DELETE FROM ledger_lines WHERE conversation = :key")
_NEXT_ASIDE = text("SELECT coalesce(max(n), 0) + 1 FROM ledger_aside WHERE conversation = :key")
_PUT_ASIDE = text("INSERT INTO ledger_aside (conversation, n, data) VALUES (:key, :n, :data)")


def at_end(head: Head, bodies: Sequence[bytes]) -> Sealed:
    """Seal records to follow a log that ends in a sealed line, or is not there."""
    covered = codec.Scanner(head.chain.encode()).covered
    return pieces.seal(head, bodies, os.urandom(16 * len(bodies)), covered)


# -- in one statement ------------------------------------------------------------------------------


def in_one(connection: Connection, tenant: int, id: str, known: Head, new: Sealed) -> int | None:
    """Add lines to a log if it ends as is known. Returns: its key; None: it does not. One round trip."""
    seqs = list(range(known.records + 1, new.head.records + 1))
    given = _values(tenant, id, new.head) | {"seqs": seqs, "datas": new.rows}
    if not known.key:
        return connection.execute(_BEGIN, given).scalar()
    given |= {"before": known.records, "known": known.chain}
    return connection.execute(_GROW, given).scalar()


def stands(connection: Connection, tenant: int, id: str, known: Head, new: Sealed) -> bool:
    """Say whether lines that may have been added were."""
    given = {"tenant": tenant, "id": id, "seq": known.records + 1}
    found = connection.execute(_LINE_OF, given).scalar()
    seal = codec.find_seal(pieces.line_of(bytes(found))) if found is not None else None
    return seal is not None and seal.chain == new.chain_of_first


def _values(tenant: int, id: str, head: Head) -> dict[str, Any]:
    values = head._asdict() | {"tenant": tenant, "id": id}
    return values | {"ready": int(head.ready), "newer": int(head.newer)}


# -- under the lock of the row ---------------------------------------------------------------------


class Locked:
    """A log that nobody else changes until the transaction ends."""

    def __init__(self, connection: Connection, tenant: int, id: str, *, postgres: bool) -> None:
        self._connection = connection
        self._tenant = tenant
        self._id = id
        self._postgres = postgres
        self._ticked = False
        found = rows.head_locked(connection, tenant, id, postgres=postgres)
        self.head = found if found is not None else pieces.nothing(id)
        """What is said of the log."""

    def check(self, expect: int | None) -> None:
        """Refuse unless the log is where it is expected. Raises: store-conflict."""
        check_expected(self._id, expect, self.head.position)

    def add(self, bodies: Sequence[bytes], where: str) -> Sealed:
        """Add records at the end. Raises: store-version."""
        if self.head.newer:
            raise StoreVersion(where=where, reason="it holds records of a newer format")
        if self._postgres and self.head.key:
            given = {"key": self.head.key, "seq": self.head.records}
            if self._connection.execute(_LAST_PLACE, given).first() is not None:
                raise Again
        new = at_end(self.head, bodies) if self.head.ready else self._add_after_odd_end(bodies)
        self.place(enumerate(new.rows, self.head.records + 1), new.head)
        return new

    def check_begins(self, data: bytes) -> None:
        """Refuse unless the log holds a beginning of these bytes. Raises: store-conflict."""
        if not data.startswith(rows.raw(self._connection, self._tenant, self._id)):
            raise no_beginning(self._id, self.head.records)

    def replace(self, cut: Cut) -> None:
        """Put the rows of a whole log in the place of these, of which it is the continuation."""
        last = self.head.records
        cut = cut._replace(head=cut.head._replace(erased=self.head.erased))
        if not last:
            self._connection.execute(_CLEAR, {"key": self.head.key})
            self.place(cut.rows.items(), cut.head)
            return
        # Of the rows that are here, only the last may be otherwise: by its line feed, and blank lines.
        self.change([(last, cut.rows[last])], self.head)
        self.place(((seq, row) for seq, row in cut.rows.items() if seq > last), cut.head)

    def place(self, added: Iterable[tuple[int, bytes]], head: Head) -> None:
        """Put rows into their places, which are free, and say of the log what is given."""
        values = _values(self._tenant, self._id, head)
        if not self.head.key:
            made = self._connection.execute(_NEW_HEAD, values)
            if not made.rowcount:
                raise Again  # Another made it at the same moment.
            found = rows.head(self._connection, self._tenant, self._id)
            self.head = self.head._replace(key=found.key if found is not None else 0)
        else:
            self._connection.execute(_CHANGE_HEAD, values | {"key": self.head.key})
        self._tick()
        added = list(added)
        common = {"key": self.head.key, "tenant": self._tenant}
        given = [{**common, "seq": seq, "data": row} for seq, row in added]
        if given:
            self._connection.execute(_ADD[self._postgres], given)
        self.mention(added)

    def mention(self, added: Iterable[tuple[int, bytes]]) -> None:
        """Note which attachments rows name."""
        common = {"key": self.head.key, "tenant": self._tenant}
        named = [{**common, "sha256": s, "seq": seq} for s, seq in pieces.mentions(added)]
        if named:
            self._connection.execute(_MENTION, named)

    def change(self, changed: Iterable[tuple[int, bytes]], head: Head) -> None:
        """Put other bytes in the place of some rows', and say of the log what is given."""
        values = _values(self._tenant, self._id, head) | {"key": self.head.key}
        self._connection.execute(_CHANGE_HEAD, values)
        self.head = head._replace(key=self.head.key)
        given = [{"key": self.head.key, "seq": seq, "data": row} for seq, row in changed]
        if given:
            self._connection.execute(_CHANGE, given)

    def _tick(self) -> None:
        if not self._postgres and not self._ticked:
            self._connection.execute(_TICK)
            self._ticked = True

    def tidy(self) -> None:
        """End the last line with the line feed that it may lack, and set aside what stands torn after it."""
        log = self.head
        changed = []
        if log.records and not log.ready:
            last = rows.one(self._connection, log, log.records)
            if last is not None and not last.endswith(b"\n"):
                changed = [(log.records, last + b"\n")]
                log = log._replace(size=log.size + 1)
        if log.torn is not None:
            self._set_aside(log.torn)
            log = log._replace(size=log.size - len(log.torn), torn=None)
        if log != self.head:
            self.change(changed, log)

    def _add_after_odd_end(self, bodies: Sequence[bytes]) -> Sealed:
        """Seal records to follow what is no sealed line: of another writer, blank, torn, without line feed."""
        self.tidy()
        last = rows.between(self._connection, self.head, self.head.records, self.head.records)
        reader = last.reader(self._id)
        for _ in reader.whole_lines():
            pass
        salts = os.urandom(16 * len(bodies))
        return pieces.seal(self.head, bodies, salts, reader.scanner.covered)

    def _set_aside(self, torn: bytes) -> None:
        number = self._connection.execute(_NEXT_ASIDE, {"key": self.head.key}).scalar_one()
        given = {"key": self.head.key, "n": number, "data": torn}
        self._connection.execute(_PUT_ASIDE, given)

    def keep(self, seen: Iterable[str]) -> None:
        """Let nobody remove attachments while a record that names them is added.

        Args: seen: those that this process has seen here. Raises: attachment-missing: one has gone.
        """
        for sha256 in sorted(seen):
            statement = _KEPT_LOCKED if self._postgres else _KEPT
            given = {"tenant": self._tenant, "sha256": sha256}
            if self._connection.execute(statement, given).first() is None:
                raise AttachmentMissing(sha256=sha256)
