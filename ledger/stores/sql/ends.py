"""The ends of logs as a store knows them, and records added there; what changed since it was looked at.

What is known of a log's end makes an append one statement (`writing.in_one`). It is a help, used only under
the condition that it is so, and may be dropped at any moment.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.engine import Connection

from ledger.errors import LedgerError, StoreCorrupt, StoreGone, StoreIO, StoreUnknown
from ledger.records import erasing, ids, kinds
from ledger.stores import handout, lines
from ledger.stores.base import FEW, Ends, Position, Records, Since, agrees, check_expected
from ledger.stores.log_index import CannotTell
from ledger.stores.log_search import MOST_LINES
from ledger.stores.sql import attachments, feed, pieces, rows, writing
from ledger.stores.sql.database import Database
from ledger.stores.sql.failures import Again, Lost, Missing
from ledger.stores.sql.pieces import Head, Sealed

T = TypeVar("T")

_REMEMBERED = 4096
"""Of how many logs the end is remembered; then all are forgotten, and found again as they are asked for."""
_TRIES = 3
"""How often an append is tried at the end that was found; then it stands in line for the row."""

_SOME = 4000
"""How many records `since` gives at once."""
_FIRST = 64
"""How many of the first lines of a long log are read with its end."""

_MENTIONS = {
    postgres: text(
        f"""SELECT 1 FROM ledger_conversations AS head
        WHERE head.tenant = :tenant AND head.id = :id AND (
            {found.format("head.torn")} OR EXISTS (SELECT 1 FROM ledger_lines AS line
                WHERE line.conversation = head.key AND {found.format("line.data")}))"""
    )
    for postgres, found in {
        True: "position(CAST(:text AS bytea) IN {}) > 0",
        False: "instr({}, :text) > 0",
    }.items()
}

_NAMED = {
    postgres: text(
        f"""SELECT seq FROM ledger_lines WHERE conversation = :key AND seq BETWEEN :first AND :last
        AND {found} ORDER BY seq LIMIT {MOST_LINES + 1}"""
    )
    for postgres, found in {
        True: "position(CAST(:text AS bytea) IN data) > 0",
        False: "instr(data, :text) > 0",
    }.items()
}

_TENANT = text(
    """SELECT (SELECT name FROM ledger_tenants WHERE key = :key),
        EXISTS (SELECT 1 FROM ledger_conversations WHERE tenant = :key)"""
)
_NEW_TENANT = text(
    "INSERT INTO ledger_tenants (key, name) VALUES (:key, :name) ON CONFLICT DO NOTHING"
)


class KnownEnds(ABC):
    """The logs of one tenant in a database, as far as their ends are concerned."""

    blobs: attachments.SQLBlobs

    def __init__(self, database: Database, tenant: str | None, *, strict: bool) -> None:
        self.tenant = tenant
        self._strict = strict
        self._database = database
        self._tenant_key: tuple[int, int] | None = None
        """The tenant's key, and the number of losses of the connection at which it held."""
        self._may_add_at: int | None = None
        """The number of losses at which the era of the feed was last found to be the present one."""
        self._known: dict[str, Head] = {}

    @property
    def where(self) -> str:
        """Which database it is, without user, password and options."""
        return self._database.where

    # -- whose

    def _tenant(self, make: bool) -> int | None:
        """Return the tenant's key; None: it has nothing here yet. Args: make: give it a row then."""
        losses = self._database.losses
        known = self._tenant_key is not None and self._tenant_key[1] == losses
        if self._tenant_key is not None and known and (self._may_add_at == losses or not make):
            return self._tenant_key[0]
        if make:
            self._database.make_schema()
        elif not self._database.has_schema():
            return None
        name = self.tenant or ""
        key = tenant_key(name)
        if not self._database.run(lambda c: self._find_tenant(c, key, name, make)):
            return None
        self._tenant_key = key, losses
        self._may_add_at = losses if make else self._may_add_at
        return key

    def _find_tenant(self, connection: Connection, key: int, name: str, make: bool) -> bool:
        """Say whether a tenant has anything here; its row may be missing in what was restored meanwhile."""
        given = {"key": key, "name": name}
        found, has_logs = connection.execute(_TENANT, given).one()
        if found is None and make:
            connection.execute(_NEW_TENANT, given)
            found = connection.execute(_TENANT, given).one()[0]
        if found not in (None, name):
            raise StoreIO(where=self.where, reason="another tenant has the key of this one's name")
        if make and self._database.is_postgres:
            feed.begin_era_if_restored(connection, key, self._database)
        return found is not None or bool(has_logs)

    # -- adding

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
        sent = gone = False
        try:
            return self._database.once(lambda c: writing.in_one(c, tenant, id, known, new))
        except Again:
            return None
        except Missing:
            gone = True
        except Lost as lost:
            sent = lost.sent
        if gone:
            raise self._database.emptied()

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

    # -- what changed

    def erasures(self, conversation: str) -> str:
        """Return a text that is another one whenever a turn was erased; an empty one where none was."""
        log = self._head(ids.check_conversation(conversation))
        return _identity_of(log) if log.erased else ""

    def looks(self) -> dict[str, str]:
        """Return how each log looks now, by conversation: another text whenever the log is another."""
        tenant = self._tenant(False)
        found = self._database.run(lambda c: rows.heads(c, tenant)) if tenant is not None else []
        return {name: _look_of(log) for name, log in found}

    def since(self, conversation: str, mark: str = "") -> Since:
        """Return what a conversation holds beyond a mark, or of that the first thousands of records.

        All of it where it is no continuation of what was read.
        """
        log = self._head(ids.check_conversation(conversation))
        of, at, chain = [*mark.split(":"), "", ""][:3]
        after = Position(int(at), None, chain or None) if of == _identity_of(log) else 0
        try:
            records = self._next(conversation, log, after)
        except StoreGone:
            after, records = 0, self._next(conversation, log, 0)
        look = _look_of(log) if records.position >= log.records else ""
        mark = f"{_identity_of(log)}:{int(records.position)}:{records.position.chain or ''}"
        return Since(records, look, mark, whole=not after)

    def _next(self, conversation: str, log: Head, after: int) -> Records[kinds.Recorded]:
        """Return the next records of a log; so many at once that who writes them elsewhere holds up nobody for long."""
        if log.records - after <= _SOME:
            return self.scan(conversation, after)
        window = self._database.run(lambda c: rows.between(c, log, after + 1, after + _SOME))
        if not agrees(after, Position(after, None, window.chain_at(after))):
            raise StoreGone(conversation=conversation, after=int(after), found=log.records)
        records = handout.shallow(
            lambda: self._decoded(window, conversation, after, handout.structs)
        )
        end = after + len(records)
        return Records(records, Position(end, log.incarnation, window.chain_at(end)))

    # -- how a log ends

    def scan_ends(self, conversation: str, last: int) -> Ends | None:
        """Return some of the first records, and the last ones; None: `scan` gives all. See `LedgerStore`."""
        ids.check_conversation(conversation)
        tenant = self._tenant(False)
        if self._strict or tenant is None:
            return None

        def work(connection: Connection) -> tuple[Position, pieces.Window] | None:
            log = rows.head(connection, tenant, conversation)
            if log is None or log.records <= FEW * last:
                return None
            return log.position, rows.between(connection, log, 1, _FIRST)

        found = self._database.run(work)
        if found is None:
            return None
        end, window = found
        place = Position(end - last, end.incarnation)
        last_ones = self.scan(conversation, place)
        return Ends(handout.shallow(lambda: _settled(window, conversation)), place, last_ones)

    def mentions(self, conversation: str, text: bytes) -> bool:
        """Say whether some bytes stand anywhere in a log, in whatever line. The database looks, so nothing is sent."""
        tenant = self._tenant(False)
        given = {"tenant": tenant, "id": ids.check_conversation(conversation), "text": text}
        asked = _MENTIONS[self._database.is_postgres]
        return tenant is not None and self._database.run(
            lambda connection: connection.execute(asked, given).first() is not None
        )

    def sent(self, conversation: str, request_id: str) -> list[kinds.Recorded] | None:
        """Return what is recorded of the first turn that was sent under a request id, its first record first.

        The database looks for it, so little is sent. Nothing: there is none. None: it cannot tell, since an id
        stands in many lines, or may be spelled in several ways, or a line that it stands in is damaged.
        """
        tenant, id = self._tenant(False), ids.check_conversation(conversation)
        if tenant is None:
            return []
        try:
            return self._database.run(lambda c: self._sent(c, tenant, id, request_id))
        except CannotTell:
            return None

    def _sent(
        self, connection: Connection, tenant: int, id: str, request_id: str
    ) -> list[kinds.Recorded]:
        log = rows.head(connection, tenant, id)
        if log is None:
            return []
        for record in self._naming(connection, log, id, request_id, 1):
            if isinstance(record, kinds.Turn) and record.request_id == request_id:
                named = self._naming(connection, log, id, record.turn, record.seq)
                told = [one for one in named if getattr(one, "turn", None) == record.turn]
                now = rows.head(connection, tenant, id)
                if now is None or _identity_of(now) != _identity_of(log):
                    raise CannotTell  # It may be this turn that was erased meanwhile.
                return told
        return []

    def _naming(
        self, connection: Connection, log: Head, id: str, name: str, first: int
    ) -> Iterator[kinds.Recorded]:
        """Yield the records from a place on in whose lines a name stands. Raises CannotTell."""
        if not ids.is_spelled_alike(name):
            raise CannotTell
        given = {"key": log.key, "first": first, "last": log.records}
        asked = _NAMED[self._database.is_postgres]
        found = connection.execute(asked, {**given, "text": f'"{name}"'.encode()}).all()
        if len(found) > MOST_LINES:
            raise CannotTell
        for row in found:
            yield self._record(rows.between(connection, log, row[0], row[0]), id, row[0])

    def _record(self, window: pieces.Window, id: str, seq: int) -> kinds.Recorded:
        """Return the record of a line. Raises CannotTell: it is damaged, or void."""
        try:
            found = handout.shallow(lambda: self._decoded(window, id, seq - 1, handout.structs))
        except StoreCorrupt:
            raise CannotTell from None
        if not found or isinstance(found[0], kinds.Unreadable):
            raise CannotTell
        return found[0]

    @abstractmethod
    def _decoded(
        self,
        window: pieces.Window,
        id: str,
        after: int,
        decode: Callable[[lines.Piece, int], list[T]],
    ) -> list[T]:
        """Return the records of some lines."""

    @abstractmethod
    def scan(self, conversation: str, after: int = 0) -> Records[kinds.Recorded]:
        """Return the records after a position, as Structs."""

    # -- what is known

    def _head(self, conversation: str) -> Head:
        tenant = self._tenant(False)
        head = None
        if tenant is not None:
            head = self._database.run(lambda c: rows.head(c, tenant, conversation))
        return head if head is not None else pieces.nothing(conversation)

    def _remember(self, conversation: str, head: Head) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known = {}
        self._known[conversation] = head


def check_tenant(name: object) -> None:
    """Refuse what is no name that a database can keep. Raises: ValueError."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"tenant is a name, or None, not {name!r}")
    if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise ValueError("the name of the tenant holds a NUL, or half of a character")


def tenant_key(name: str) -> int:
    """Return the number of a tenant, 63 bits that follow from its name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def _settled(window: pieces.Window, conversation: str) -> list[kinds.Recorded]:
    """Return the records of a log's beginning of which nothing that follows can say otherwise."""
    pieces_of_it = window.reader(conversation).whole_lines()
    return [record for piece in pieces_of_it for record in handout.structs(piece, 0)]


def _look_of(log: Head) -> str:
    """Return another text whenever a log is another; the database writes the same (`rows.LOOK`)."""
    return f"{_identity_of(log)}:{log.records}:{log.chain}"


def _identity_of(log: Head) -> str:
    """Return what tells a log from one made anew, and from what it was before something was erased."""
    return f"{log.key}.{log.erased}"
