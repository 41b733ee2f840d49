"""Conversations in a database that many machines share: PostgreSQL, or one file of SQLite.

A log is kept in rows that joined are exactly the bytes a folder keeps (`pieces`), so the same code seals,
checks and erases them. What is known of a log's end makes an append one statement (`writing`); it is a
help, and may be dropped at any moment. The tables are made by the first append, not before.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Self, TypeVar

from sqlalchemy import text
from sqlalchemy.engine import URL, Connection, Engine

from ledger.errors import (
    LedgerError,
    StoreCorrupt,
    StoreGone,
    StoreUnknown,
)
from ledger.records import codec, erasing, ids, kinds
from ledger.stores import handout, lines, waking
from ledger.stores import verify as verifying
from ledger.stores.base import (
    Deleted,
    Erased,
    Fed,
    Position,
    Records,
    agrees,
    check_expected,
)
from ledger.stores.events import Waits
from ledger.stores.sql import (
    attachments,
    feed,
    holders,
    pieces,
    removal,
    rows,
    turn_events,
    writing,
)
from ledger.stores.sql.database import Database, database_of
from ledger.stores.sql.failures import Again, Lost
from ledger.stores.sql.feed import At
from ledger.stores.sql.listening import CONVERSATION, Listener, TreeWaits
from ledger.stores.sql.pieces import Head, Sealed

T = TypeVar("T")

_REMEMBERED = 4096
"""Of how many logs the end is remembered; then all are forgotten, and found again as they are asked for."""
_HOLD_AGAIN_S = 12 * 60 * 60
_TRIES = 3
"""How often an append is tried at the end that was found; then it stands in line for the row."""
_FEED_PAUSE_S = 0.2

_TENANT = text("SELECT key FROM ledger_tenants WHERE name = :name")
_NEW_TENANT = text("INSERT INTO ledger_tenants (name) VALUES (:name) ON CONFLICT DO NOTHING")
_LIST = text("SELECT id FROM ledger_conversations WHERE tenant = :tenant AND count > 0")


class SQLStore:
    """Conversations in a database, durable when an append returns, for many processes and machines at once.

    Args: database: a URL as SQLAlchemy takes it (`postgresql://user:password@host/name`,
    `sqlite:///path/to/file`), whose pooling, TLS and credentials are its options; or an Engine. Stores of one
    URL share their connections. tenant: whose conversations these are; nothing of another's is seen. None:
    those of nobody in particular. lock_timeout_s: how long a change waits for others before store-busy.
    strict: reading refuses a damaged line (store-corrupt) in place of handing out `unreadable`.
    Raises: ValueError: no store can be in such a database. ModuleNotFoundError: the driver is missing.
    Nothing is asked of the database, or made in it, by opening.
    Not promised: durability where the database is told to do without (`synchronous_commit = off`).
    """

    durability = "disk"
    persistent = True

    def __init__(
        self,
        database: str | URL | Engine,
        *,
        tenant: str | None = None,
        lock_timeout_s: float = 30.0,
        strict: bool = False,
    ) -> None:
        if tenant == "" or not isinstance(tenant, str | None):
            raise ValueError(f"tenant is a name, or None, not {tenant!r}")
        self.tenant = tenant
        self._database = database_of(database, lock_timeout_s)
        self._strict = strict
        self._tenant_key: tuple[int, int] | None = None
        """The tenant's key, and the number of losses of the connection at which it held."""
        self._known: dict[str, Head] = {}
        self._held: dict[str, float] = {}
        self._polls = waking.Waiters()
        self._listener = self._shared_listener()
        self.blobs = attachments.SQLBlobs(self._database, self._tenant)
        """The attachments, by the SHA-256 of their bytes."""
        self.events = turn_events.SQLEvents(self._database, self._tenant, self._tree_waits)
        """The events of running turns."""
        self._release = weakref.finalize(self, _released, self._database)

    def __repr__(self) -> str:
        tenant = f", tenant={self.tenant!r}" if self.tenant is not None else ""
        return f"SQLStore({self.where!r}{tenant})"

    @property
    def where(self) -> str:
        """Which database it is, without user, password and options."""
        return self._database.where

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections, if no other store of this process uses them; the store stays usable."""
        self._release()

    def _shared_listener(self) -> Listener | None:
        database = self._database
        if database.is_postgres and database.listener is None:
            database.listener = Listener(database)
        database.users += 1
        listener: Listener | None = database.listener
        return listener

    def _tree_waits(self) -> Waits:
        if self._listener is not None:
            return TreeWaits(self._listener, self._tenant)
        return waking.Waiters()

    # -- whose

    def _tenant(self, make: bool) -> int | None:
        """Return the tenant's key; None: it has nothing here yet. Args: make: give it one then."""
        losses = self._database.losses
        if self._tenant_key is not None and self._tenant_key[1] == losses:
            return self._tenant_key[0]
        if make:
            self._database.make_schema()
        elif not self._database.has_schema():
            return None
        key = self._database.run(lambda c: self._find_tenant(c, make))
        if key is not None:
            self._tenant_key = key, losses
        return key

    def _find_tenant(self, connection: Connection, make: bool) -> int | None:
        given = {"name": self.tenant or ""}
        key: int | None = connection.execute(_TENANT, given).scalar()
        if key is None and make:
            connection.execute(_NEW_TENANT, given)
            key = connection.execute(_TENANT, given).scalar_one()
        if key is not None and make and self._database.is_postgres:
            feed.begin_era_if_restored(connection, key, self._database)
        return key

    # -- adding

    def append(
        self,
        conversation: str,
        records: Sequence[Mapping[str, Any]],
        *,
        expect: int | None = None,
    ) -> Position:
        """Add records at the end, if the conversation still holds `expect` of them.

        All or none become visible, durable as the database promises when this returns. Order within
        `records` is kept; each is given its `seq`. No records: nothing is written, `expect` is checked.
        Where the end is known, from reading or appending before, it takes one round trip on PostgreSQL.
        A connection that was lost is sought for half a minute; whether the records are there is looked
        at then, and they are never added twice.
        Args: expect: how many records the caller has seen, as an int or a `Position`; None: do not ask.
        Returns: how many records the conversation holds now, as a `Position`.
        Raises: store-conflict: the log grew, or was made anew; read again, decide again, retry.
        record-invalid, record-too-large, store-full, store-busy, store-io, store-denied,
        store-read-only, store-version: nothing of it counts. store-unknown: the connection was lost and
        did not come back; read before retrying. attachment-missing: a record names an attachment that
        was here and has been removed since; put it again.
        Not promised: that another conversation's append is ordered before or after this one.
        """
        ids.check_conversation(conversation)
        bodies = handout.shallow(lambda: [codec.body(record) for record in records])
        if not bodies:
            head = self._head(conversation)
            check_expected(conversation, expect, head.position)
            return head.position
        position = handout.with_room(lambda: self._append(conversation, bodies, expect))
        self._wake(conversation)
        return position

    def _append(self, id: str, bodies: list[bytes], expect: int | None) -> Position:
        tenant = self._need_tenant()
        named = {name for body in bodies for name in erasing.attachments(body)}
        if self._database.is_postgres and not named:
            for _ in range(_TRIES):
                found = self._append_where_known(tenant, id, bodies, expect)
                if found is not None:
                    return found
        return self._append_locked(tenant, id, bodies, expect, named)

    def _append_where_known(
        self, tenant: int, id: str, bodies: list[bytes], expect: int | None
    ) -> Position | None:
        """Append at the end as it is known. Returns: None: it was not the end, or is an odd one."""
        known = self._known.pop(id, None)
        if known is None or (expect is not None and not agrees(expect, known.position)):
            known = self._head(id)
            check_expected(id, expect, known.position)
        if known.newer or not known.ready:
            return None
        new = writing.at_end(known, bodies)
        key = self._write(tenant, id, known, new)
        if key is None:
            return None
        if key:
            self._remember(id, new.head._replace(key=key))
        return new.head.position

    def _write(self, tenant: int, id: str, known: Head, new: Sealed) -> int | None:
        """Add lines in one statement. Returns: the log's key, 0 where it is not known; None: not added."""
        sent = False
        try:
            return self._database.once(lambda c: writing.in_one(c, tenant, id, known, new))
        except Again:
            return None
        except Lost as lost:
            sent = lost.sent

        def settle(connection: Connection) -> int | None:
            # At most one of all these statements adds lines: the end that they name comes once.
            nonlocal sent
            if writing.stands(connection, tenant, id, known, new):
                return 0
            sent = True
            key = writing.in_one(connection, tenant, id, known, new)
            return 0 if key is None and writing.stands(connection, tenant, id, known, new) else key

        return self._settled(lambda: self._database.run(settle), lambda: sent)

    def _settled(self, work: Callable[[], T], in_doubt: Callable[[], bool]) -> T:
        """Do what finds out how a change came out. Raises: store-unknown: it cannot be found out."""
        try:
            return work()
        except LedgerError as error:
            if not in_doubt() or error.code not in ("store-io", "store-busy"):
                raise
        reason = (
            "the connection was lost while something was changed, and did not come back in time"
        )
        raise StoreUnknown(where=self.where, reason=reason)

    def _append_locked(
        self, tenant: int, id: str, bodies: list[bytes], expect: int | None, named: set[str]
    ) -> Position:
        """Append in a transaction, the log's row locked."""
        self._known.pop(id, None)
        tried: list[tuple[Head, Sealed]] = []

        def work(connection: Connection) -> Head:
            with self._database.transaction(connection):
                log = self._locked(connection, tenant, id)
                for (
                    head,
                    new,
                ) in (
                    tried
                ):  # An attempt whose end was not heard is over, now that this has the lock.
                    if writing.stands(connection, tenant, id, head, new):
                        return new.head
                log.check(expect)
                log.keep(self.blobs.seen(named))
                before = log.head
                new = log.add(bodies, self._named(id))
                tried.append((before._replace(records=new.head.records - len(bodies)), new))
                return new.head._replace(key=log.head.key)

        head = self._settled(lambda: self._database.run(work), lambda: bool(tried))
        if head.key:
            self._remember(id, head)
        return head.position

    def _locked(self, connection: Connection, tenant: int, id: str) -> writing.Locked:
        self._database.check_version(connection)
        return writing.Locked(connection, tenant, id, postgres=self._database.is_postgres)

    def _named(self, id: str) -> str:
        return f"{self.where}, conversation {id}"

    def _need_tenant(self) -> int:
        tenant = self._tenant(True)
        assert tenant is not None
        return tenant

    def adopt(self, conversation: str, data: bytes) -> Position:
        """Make a conversation of the bytes of a whole log, as `raw` gave them; all or nothing.

        The bytes are kept as they are, damage included. No bytes: nothing is made.
        Raises: store-conflict: the conversation holds records. Otherwise as `append`.
        Not promised: that the seals check under another id than the log had; `verify` tells.
        """
        return self._place(conversation, data, lambda log: log.check(0))

    def grow(self, conversation: str, data: bytes) -> Position:
        """Make a conversation what a copy of its log is, of which it holds a beginning, or nothing yet.

        Raises: store-conflict: it holds something else. Otherwise as `adopt`.
        """
        return self._place(conversation, data, lambda log: log.check_begins(data))

    def _place(
        self, conversation: str, data: bytes, check: Callable[[writing.Locked], None]
    ) -> Position:
        ids.check_conversation(conversation)
        if not data:
            return self.append(conversation, [], expect=0)
        cut = handout.shallow(lambda: pieces.cut(conversation, data))
        tenant = self._need_tenant()
        self._known.pop(conversation, None)
        tried: list[bool] = []

        def work(connection: Connection) -> None:
            with self._database.transaction(connection):
                log = self._locked(connection, tenant, conversation)
                if tried and (log.head.records, log.head.chain) == (
                    cut.head.records,
                    cut.head.chain,
                ):
                    return
                check(log)
                log.replace(cut)
                tried.append(True)

        self._settled(lambda: self._database.run(work), lambda: bool(tried))
        self._wake(conversation)
        return cut.head.position

    # -- removing

    def delete(self, conversation: str) -> Deleted:
        """Remove a conversation: its log, its turns' events, and attachments that no other log names.

        Returns: what went; true when there was a log. Raises: as `append`.
        """
        ids.check_conversation(conversation)
        tenant = self._tenant(False)
        if tenant is None:
            return Deleted(conversation=conversation)
        postgres = self._database.is_postgres

        def work(connection: Connection) -> Deleted:
            log = self._locked(connection, tenant, conversation)
            return removal.delete(connection, log, tenant, conversation, postgres=postgres)

        return self._removed(conversation, work)

    def erase(self, conversation: str, turn: str, *, expect: int | None = None) -> Erased:
        """Overwrite what a turn's records say, in place, and remove what belongs to it alone.

        Lines keep their places and lengths; the seals that follow still check. The turn's events, what
        was set aside of the log and may be of it, and attachments that no other record names go too.
        What the records mean is not asked here, so not whether the turn has ended.
        Args: expect: as for `append`.
        Returns: what went, and what did not.
        Raises: store-conflict; and as `append`. It is done whole or not at all.
        Not promised: that the bytes are gone from what the database has not cleaned up yet (VACUUM), from
        its write-ahead log, replicas and backups.
        """
        ids.check_conversation(conversation)
        tenant = self._tenant(False)
        postgres = self._database.is_postgres
        if tenant is None:
            check_expected(conversation, expect or None, Position(0))
            return Erased(conversation=conversation, turn=turn)

        def work(connection: Connection) -> Erased:
            log = self._locked(connection, tenant, conversation)
            log.check(expect if log.head.key else expect or None)
            where = self._named(conversation)
            return removal.erase(
                connection, log, tenant, conversation, turn, where, postgres=postgres
            )

        return handout.with_room(lambda: self._removed(conversation, work))

    def _removed(self, conversation: str, work: Callable[[Connection], T]) -> T:
        """Remove in a transaction; done once more after a lost connection, the first receipt counts."""
        self._known.pop(conversation, None)
        tried: list[T] = []

        def remove(connection: Connection) -> T:
            with self._database.transaction(connection):
                report = work(connection)
                if report or not tried:
                    tried.append(report)
            return tried[-1]

        report = self._settled(lambda: self._database.run(remove), lambda: bool(tried))
        self._database.clean_up()
        self._wake(conversation)
        return report

    def sweep(self, *, older_than_s: float = 86_400.0) -> list[str]:
        """Remove attachments that no log names, and that are not young: what refused sends left.

        One that a writer is about to name it puts again.
        Args: older_than_s: seconds. Returns: their SHA-256. Raises: ValueError; store-busy, store-io and the like.
        """
        if not older_than_s >= 0:
            raise ValueError(f"older_than_s is a number of seconds, not {older_than_s!r}")
        tenant = self._tenant(False)
        if tenant is None:
            return []
        postgres = self._database.is_postgres

        def work(connection: Connection) -> list[str]:
            with self._database.transaction(connection):
                return removal.sweep_old(connection, tenant, older_than_s, postgres=postgres)

        return self._database.run(work)

    # -- reading

    def read(self, conversation: str, after: int = 0) -> Records[dict[str, Any]]:
        """Return the records after a position, in order, as fresh dicts without `ledger`.

        Exactly as many as the count says: a line that cannot be handed out (no record, damaged, void)
        is `{"kind": "unreadable", "seq": k}` in its place. A conversation that does not exist holds
        no records. Never waits for a writer.
        Raises: store-gone: `after` is beyond the end, or of another incarnation; read from 0.
        store-corrupt: the store is strict and a line is damaged. store-io, store-denied.
        """
        return self._read(conversation, after, handout.plain)

    def scan(self, conversation: str, after: int = 0) -> Records[kinds.Recorded]:
        """Return what `read` returns, as Structs with their payloads undecoded."""
        return self._read(conversation, after, handout.structs)

    def _read(
        self, conversation: str, after: int, decode: Callable[[lines.Piece, int], list[T]]
    ) -> Records[T]:
        ids.check_conversation(conversation)
        if after < 0:
            raise ValueError("a position is not negative")
        tenant = self._tenant(False)
        log, window = None, pieces.Window(1, [])
        if tenant is not None:
            version = self._word(tenant, conversation)
            log, window = self._database.run(
                lambda c: rows.read(c, tenant, conversation, int(after))
            )
            if self._listener is not None and log is not None:
                thing = (CONVERSATION, tenant, conversation)
                self._listener.note(thing, version, log.position)
        position = log.position if log is not None else Position(0)
        beyond = after > position or not agrees(after, Position(after, position.incarnation))
        if after and beyond:
            raise StoreGone(conversation=conversation, after=int(after), found=int(position))
        if log is None:
            return Records([], position)
        records = handout.shallow(lambda: self._decoded(window, conversation, int(after), decode))
        self._remember(conversation, log)
        return Records(records, position)

    def _word(self, tenant: int, conversation: str) -> int | None:
        if self._listener is None:
            return None
        return self._listener.version((CONVERSATION, tenant, conversation))

    def _decoded(
        self,
        window: pieces.Window,
        id: str,
        after: int,
        decode: Callable[[lines.Piece, int], list[T]],
    ) -> list[T]:
        reader = window.reader(id)
        records: list[T] = []
        for piece in reader.whole_lines():
            records += self._checked(piece, after, decode)
        return records + self._checked(reader.finish(in_flight=False), after, decode)

    def _checked(
        self, piece: lines.Piece, after: int, decode: Callable[[lines.Piece, int], list[T]]
    ) -> list[T]:
        for line in piece.lines if self._strict else ():
            if line.verdict in ("suspect", "unreadable") and line.seq > after:
                reason = "the line, or one beside it, was altered"
                raise StoreCorrupt(where=self.where, seq=line.seq, reason=reason)
        return decode(piece, after) if not piece.lines or piece.lines[-1].seq > after else []

    def read_end(self, conversation: str) -> Position:
        """Return the position of the end."""
        ids.check_conversation(conversation)
        return self._head(conversation).position

    def _head(self, conversation: str) -> Head:
        tenant = self._tenant(False)
        head = None
        if tenant is not None:
            head = self._database.run(lambda c: rows.head(c, tenant, conversation))
        return head if head is not None else pieces.nothing(conversation)

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        """Block until the conversation is not at position `after`, or `timeout` seconds passed.

        On PostgreSQL one connection of this process hears of all changes, whatever number of threads wait;
        where it cannot hear, and on SQLite, the database is looked at within 0.3 s.
        Returns: whether it changed. Not promised: that a change that was undone is noticed.
        """
        ids.check_conversation(conversation)
        tenant, listener = self._tenant(False), self._listener
        if listener is None or tenant is None:
            return self._polls.wait(
                conversation, lambda: not agrees(after, self.read_end(conversation)), timeout
            )
        thing = (CONVERSATION, tenant, conversation)

        def moved() -> bool:
            version = listener.version(thing)
            found = self.read_end(conversation)
            listener.note(thing, version, found)
            return not agrees(after, found)

        return listener.wait(thing, moved, timeout)

    def has_word(self, conversation: str, after: int) -> bool:
        """Say whether the conversation may not be at a position, asking nothing of the database.

        For who looks after many turns: False is what was heard, which comes a moment after a commit.
        """
        tenant, listener = self._tenant_key, self._listener
        if listener is None or tenant is None:
            return True
        listener.start()
        known = listener.known((CONVERSATION, tenant[0], conversation))
        return known is None or not agrees(after, known)

    @property
    def tells_at_once(self) -> bool:
        """Whether `wait` with a timeout of 0 costs next to nothing: so it is with a file, not over a network."""
        return self._listener is None

    def _wake(self, conversation: str) -> None:
        self._polls.wake(conversation)
        if self._listener is not None:
            self._listener.wake((CONVERSATION, self._need_tenant(), conversation))

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that hold a record, sorted."""
        tenant = self._tenant(False)
        if tenant is None:
            return []
        found = self._database.run(lambda c: c.execute(_LIST, {"tenant": tenant}).scalars().all())
        return sorted(found)

    def feed(self, after: str | None = None, *, limit: int = 1000, wait: float = 0.0) -> list[Fed]:
        """Return the next records of all conversations, in the order in which they were committed.

        Each has a position; the last one's, given as `after`, goes on from there, in any process and at any
        time. None is left out, whatever transaction commits last: one that runs holds the feed back until
        it ends. Records of one conversation come in their order. A line that cannot be handed out is
        `unreadable`, a record that was erased comes as its tombstone, and those of a conversation that
        was deleted come no more; who keeps copies learns of both from what erases and deletes.
        Args: after: None: from the beginning. limit: how many at most. wait: how many seconds to wait for
        one where there is none. It costs a query, and one or two for each run of records of one conversation.
        Raises: ValueError: `after` is no position of a feed.
        """
        at = feed.place_of(after if after is not None else feed.START)
        if limit < 1:
            raise ValueError(f"limit is at least 1, not {limit}")
        deadline = time.monotonic() + wait
        while True:
            found = self._fed(at, limit)
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(left, _FEED_PAUSE_S))

    def _fed(self, at: At, limit: int) -> list[Fed]:
        tenant = self._tenant(False)
        if tenant is None:
            return []
        postgres = self._database.is_postgres
        return self._database.run(lambda c: feed.read(c, tenant, at, limit, postgres=postgres))

    def raw(self, conversation: str) -> bytes:
        """Return the whole log as it is, for `adopt`; no bytes when there is none."""
        ids.check_conversation(conversation)
        tenant = self._tenant(False)
        if tenant is None:
            return b""
        return self._database.run(lambda c: rows.raw(c, tenant, conversation))

    def damage(self, conversation: str) -> list[verifying.Finding]:
        """Return the lines that are lost or altered, in order; at most the first thousand."""
        return self.verify(conversation).damage

    def verify(self, conversation: str) -> verifying.Report:
        """Check every line of a log, in bounded memory, and report all that is not sealed."""
        ids.check_conversation(conversation)
        tenant = self._tenant(False)
        if tenant is None:
            return verifying.Report(conversation=conversation)
        return self._database.run(lambda c: self._verified(c, tenant, conversation))

    def _verified(self, connection: Connection, tenant: int, id: str) -> verifying.Report:
        with self._database.snapshot(connection):
            log = rows.head(connection, tenant, id)
            if log is None:
                return verifying.Report(conversation=id)
            source = rows.source(connection, log)
            report = handout.shallow(lambda: verifying.verify(source, id))
            report.set_aside = removal.pieces_set_aside(connection, log.key)
            return report

    # -- who lives, and what time it is

    def hold(self, holder: str) -> None:
        """Let others see that this process lives, until it ends: see `LedgerStore` and `holders`."""
        named, now = holders.process(), time.monotonic()
        if named is None or now - self._held.get(holder, -_HOLD_AGAIN_S) < _HOLD_AGAIN_S:
            return
        postgres = self._database.is_postgres
        with suppress(LedgerError):
            tenant = self._need_tenant()
            self._database.run(lambda c: holders.hold(c, tenant, holder, named, postgres=postgres))
            self._held[holder] = now

    def is_dead(self, holder: str) -> bool:
        """Say whether a holder is known to have ended: see `LedgerStore` and `holders`."""
        with suppress(LedgerError):
            tenant = self._tenant(False)
            if tenant is not None:
                named = self._database.run(lambda c: holders.of(c, tenant, holder))
                return named is not None and holders.is_over(named)
        return False

    def now(self) -> datetime:
        """Return the time by the database's clock: that of all who share it."""
        return self._database.now()

    # -- what is remembered

    def _remember(self, conversation: str, head: Head) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known = {}
        self._known[conversation] = head


def _released(database: Database) -> None:
    database.users -= 1
    if not database.users:
        if database.listener is not None:
            database.listener.stop()
        database.close()
