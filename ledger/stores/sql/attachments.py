"""Attachments in a database: bytes kept once for each tenant, under the SHA-256 of what they are.

What fits into one part is kept in one transaction. More is kept part by part under a name that no
attachment has, and named in the end: so a long stream is no long transaction, and what a process leaves
that dies in the middle is a piece, which sweeping removes after a day.
"""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, BinaryIO

from sqlalchemy import text
from sqlalchemy.engine import Connection

from ledger.errors import LedgerError, StoreCorrupt, StoreIO
from ledger.stores import blobs
from ledger.stores.sql import removal
from ledger.stores.sql.database import NOW, Database
from ledger.stores.sql.failures import Again

_FIND = text("SELECT key, size FROM ledger_attachments WHERE tenant = :tenant AND sha256 = :sha256")
_HERE = text("""SELECT 1 FROM ledger_attachments WHERE tenant = :tenant AND sha256 = :sha256""")
_MAKE = {
    postgres: text(
        f"""INSERT INTO ledger_attachments (tenant, sha256, size, made)
        VALUES (:tenant, :sha256, :size, {now}) ON CONFLICT DO NOTHING RETURNING key"""
    )
    for postgres, now in NOW.items()
}
_TOUCH = {
    postgres: text(
        f"UPDATE ledger_attachments SET made = {now} WHERE key = :key AND made < {now} - 60"
    )
    for postgres, now in NOW.items()
}
_NAME = text(
    """UPDATE ledger_attachments SET sha256 = :sha256, size = :size
    WHERE key = :key AND tenant = :tenant AND sha256 = :new"""
)
_ADD_LONG = text(
    """INSERT INTO ledger_parts (attachment, n, data)
    SELECT key, :n, :data FROM ledger_attachments
    WHERE key = :key AND tenant = :tenant AND sha256 = :sha256 ON CONFLICT DO NOTHING"""
)
_ADD = text(
    "INSERT INTO ledger_parts (attachment, n, data) VALUES (:key, :n, :data) ON CONFLICT DO NOTHING"
)
_PART = text(
    """SELECT part.data FROM ledger_attachments AS head JOIN ledger_parts AS part
        ON part.attachment = head.key
    WHERE head.tenant = :tenant AND head.sha256 = :sha256 AND part.n = :n"""
)


class SQLBlobs:
    """Attachments in a database, of one tenant.

    Args: tenant: gives its key, or None when it has nothing yet; asked with True, it makes one.
    """

    def __init__(self, database: Database, tenant: Callable[[bool], int | None]) -> None:
        self._database = database
        self._tenant = tenant
        self._seen: set[str] = set()
        """What was here when this object looked. It grows with what a process puts and reads."""
        self._bad: set[str] = set()
        """What was found to be other bytes than its name says."""

    def put(self, content: bytes | BinaryIO) -> tuple[str, int]:
        """Keep bytes; they are durable under their name when this returns.

        Returns: their SHA-256 and their size. Raises: store-full, store-io and the like.
        """
        tenant = self._tenant(True)
        parts = _parts(content)
        first = next(parts, b"")
        second = next(parts, None)
        if second is None:
            sha256, size = hashlib.sha256(first).hexdigest(), len(first)
            self._database.run(lambda c: self._keep(c, tenant, sha256, first))
        else:
            sha256, size = self._keep_long(tenant, chain([first, second], parts))
        self._seen.add(sha256)
        self._bad.discard(sha256)
        return sha256, size

    def _keep(self, connection: Connection, tenant: Any, sha256: str, data: bytes) -> None:
        with self._database.transaction(connection):
            if self._stands(connection, tenant, sha256, len(data)):
                return
            given = {"tenant": tenant, "sha256": sha256, "size": len(data)}
            key = connection.execute(_MAKE[self._database.is_postgres], given).scalar()
            if key is None:
                raise Again  # Another put it at the same moment.
            connection.execute(_ADD, {"key": key, "n": 0, "data": data})

    def _stands(self, connection: Connection, tenant: Any, sha256: str, size: int) -> bool:
        """Say whether an attachment is there; one whose bytes are known to be bad is removed."""
        found = connection.execute(_FIND, {"tenant": tenant, "sha256": sha256}).first()
        if found is None:
            return False
        if found[1] == size and sha256 not in self._bad:
            connection.execute(_TOUCH[self._database.is_postgres], {"key": found[0]})
            return True
        removal.drop(connection, [found[0]])
        return False

    def _keep_long(self, tenant: Any, parts: Iterator[bytes]) -> tuple[str, int]:
        postgres = self._database.is_postgres
        given = {"tenant": tenant, "sha256": f"new-{secrets.token_hex(16)}", "size": 0}
        key = self._database.run(lambda c: c.execute(_MAKE[postgres], given).scalar_one())
        try:
            digest, size = hashlib.sha256(), 0
            for n, part in enumerate(parts):
                digest.update(part)
                size += len(part)
                row = {**given, "key": key, "n": n, "data": part}
                self._database.run(lambda c, row=row: c.execute(_ADD_LONG, row) and None)  # type: ignore[misc]
            sha256 = digest.hexdigest()
            self._database.run(lambda c: self._name(c, given, key, sha256, size))
        except BaseException:
            with suppress(LedgerError):
                self._database.run(lambda c: self._drop_piece(c, given), patience_s=0)
            raise
        return sha256, size

    def _drop_piece(self, connection: Connection, given: dict[str, Any]) -> None:
        found = connection.execute(_FIND, given).first()
        removal.drop(connection, [found[0]] if found is not None else [])

    def _name(
        self, connection: Connection, piece: dict[str, Any], key: int, sha256: str, size: int
    ) -> None:
        tenant = piece["tenant"]
        with self._database.transaction(connection):
            found = connection.execute(_FIND, {"tenant": tenant, "sha256": sha256}).first()
            if found is not None and found[0] == key:
                return  # It was named before the connection was lost.
            if self._stands(connection, tenant, sha256, size):
                removal.drop(connection, [key])
            else:
                given = {"key": key, "tenant": tenant, "sha256": sha256, "size": size}
                named = connection.execute(_NAME, {**given, "new": piece["sha256"]})
                if not named.rowcount:
                    reason = "a part of the attachment was removed while it was put"
                    raise StoreIO(where=self._database.where, reason=reason)

    def get(self, sha256: str) -> bytes:
        """Return the bytes. Raises: attachment-missing. store-corrupt: they are other bytes now."""
        with self.open(sha256) as stream:
            return stream.read()

    def open(self, sha256: str) -> BinaryIO:
        """Return the bytes as a stream, to be read once from the start to the end.

        Raises: attachment-missing; and when the end is reached, store-corrupt: they are other bytes
        now, and what was read is not to be used.
        """
        tenant = self._tenant(False) if blobs.is_name(sha256) else None
        if tenant is None:
            raise blobs.missing(sha256)
        given = {"tenant": tenant, "sha256": sha256}
        found = self._database.run(lambda c: c.execute(_FIND, given).first())
        if found is None:
            raise blobs.missing(sha256)
        self._seen.add(sha256)
        return io.BufferedReader(_Parts(self._database, tenant, sha256, self._bad), blobs.CHUNK)

    def has(self, sha256: str) -> bool:
        """Say whether there are bytes under this name. Not promised: that they are right."""
        tenant = self._tenant(False) if blobs.is_name(sha256) else None
        if tenant is None:
            return False
        given = {"tenant": tenant, "sha256": sha256}
        there = self._database.run(lambda c: c.execute(_HERE, given).first()) is not None
        if there:
            self._seen.add(sha256)
        return there

    def seen(self, sha256s: Iterable[str]) -> list[str]:
        """Return those of some attachments that were here when this object looked."""
        return [sha256 for sha256 in sha256s if sha256 in self._seen]

    def lost(self, sha256s: Iterable[str]) -> list[str]:
        """Return those of some attachments that were here, as far as this object saw, and are not."""
        return [sha256 for sha256 in self.seen(sha256s) if not self.has(sha256)]

    def remove(self, sha256s: Iterable[str]) -> None:
        """Remove attachments, durably; those that are not here are passed over."""
        tenant = self._tenant(False)
        if tenant is None:
            return

        def work(connection: Connection) -> None:
            with self._database.transaction(connection):
                for sha256 in names:
                    found = connection.execute(_FIND, {"tenant": tenant, "sha256": sha256}).first()
                    removal.drop(connection, [found[0]] if found is not None else [])

        names = sorted(sha256s)
        self._database.run(work)


class _Parts(io.RawIOBase):
    """The parts of an attachment one after another, hashed as they are read and compared at the end."""

    def __init__(self, database: Database, tenant: int, sha256: str, bad: set[str]) -> None:
        self._database = database
        self._tenant = tenant
        self._sha256 = sha256
        self._bad = bad
        self._digest = hashlib.sha256()
        self._rest = b""
        self._next: int | None = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        while not self._rest and self._next is not None and len(view):
            self._fetch(self._next)
        data, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(data)] = data
        self._digest.update(data)
        if not data and len(view) and self._digest.hexdigest() != self._sha256:
            self._bad.add(self._sha256)
            reason = f"the bytes of attachment {self._sha256} are not those it is named after"
            raise StoreCorrupt(where=self._database.where, seq=0, reason=reason)
        return len(data)

    def _fetch(self, n: int) -> None:
        given = {"tenant": self._tenant, "sha256": self._sha256, "n": n}
        found = self._database.run(lambda c: c.execute(_PART, given).scalar())
        self._rest = bytes(found) if found is not None else b""
        self._next = n + 1 if found is not None else None


def _parts(content: bytes | BinaryIO) -> Iterator[bytes]:
    """Yield what is to be kept in parts of one size."""
    if isinstance(content, bytes | bytearray | memoryview):
        view = memoryview(content)
        for start in range(0, len(view), blobs.CHUNK):
            yield bytes(view[start : start + blobs.CHUNK])
        return
    yield from blobs.chunks(content)
