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
    index_room,
    pieces,
    removal,
    rows,
    turn_events,
    writing,
)
from ledger.stores.sql.database import Database, database_of
from ledger.stores.sql.ends import KnownEnds, check_tenant
from ledger.stores.sql.feed import At
from ledger.stores.sql.listening import CONVERSATION, FEED, Listener, TreeWaits

T = TypeVar("T")

_HOLD_AGAIN_S = 12 * 60 * 60
_FEED_PAUSE_S = 0.2

_LIST = text("SELECT id FROM ledger_conversations WHERE tenant = :tenant AND count > 0")


class SQLStore(KnownEnds):
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
        if tenant is not None:
            check_tenant(tenant)
        super().__init__(database_of(database, lock_timeout_s), tenant, strict=strict)
        self._held: dict[str, float] = {}
        self._polls = waking.Waiters()
        self._listener = self._shared_listener()
        self.blobs = attachments.SQLBlobs(self._database, self._tenant)
        """The attachments, by the SHA-256 of their bytes."""
        self.events = turn_events.SQLEvents(self._database, self._tenant, self._tree_waits)
        """The events of running turns."""
        self.index_room = index_room.IndexRoom(self._database, self._tenant)
        """Where an index of the logs is kept (`ledger.catalog`)."""
        self._release = weakref.finalize(self, _released, self._database)

    def __repr__(self) -> str:
        tenant = f", tenant={self.tenant!r}" if self.tenant is not None else ""
        return f"SQLStore({self.where!r}{tenant})"

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
        named = dict.fromkeys(erasing.attachments(data))
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
                log.keep(self.blobs.seen(named))
                log.replace(cut)
                tried.append(True)

        self._settled(lambda: self._database.run(work), lambda: bool(tried))
        self._wake(conversation)
        return cut.head.position

    # -- removing

    def delete(self, conversation: str) -> Deleted:
        """Remove a conversation: its log, its turns' events, and attachments that no other log names.

        What runs or waits in it is refused, as in `Store`.
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
        Raises: store-gone: `after` is beyond the end, or of another incarnation, or of a history that is
        no more (an older database was restored); read from 0. store-corrupt: the store is strict and a
        line is damaged. store-io, store-denied.
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
        there = Position(after, position.incarnation, window.chain_at(int(after)))
        if after and (after > position or not agrees(after, there)):
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

    def exists(self) -> bool:
        """Say whether there is a store in its database: whether anything was ever written there."""
        return self._database.has_schema()

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
        one where there is none; on PostgreSQL the connection that listens wakes it, else it looks every 0.2 s.
        It costs a query, and one or two for each run of records of one conversation.
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
            if not self._heard_of(at, left):
                time.sleep(min(left, _FEED_PAUSE_S))

    def _heard_of(self, at: At, timeout: float) -> bool:
        """Block until there is a line after a place. Returns: False: look often, no word comes of what is next."""
        tenant, listener = self._tenant(False), self._listener
        if listener is None or tenant is None:
            return False

        def there() -> bool:
            return self._database.run(lambda c: feed.has_more(c, tenant, at))

        # What was there before is held back, for a transaction of somebody who will say nothing.
        return not there() and listener.wait((FEED, tenant, ""), there, timeout)

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


def _released(database: Database) -> None:
    database.users -= 1
    if not database.users:
        if database.listener is not None:
            database.listener.stop()
        database.close()
