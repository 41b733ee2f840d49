"""Every record of every conversation, in the order in which they were committed.

The place of a line is (era, place, conversation, seq). On PostgreSQL `place` is the number of the transaction
that added it, and lines are given only once no transaction with a lower or equal number can still commit:
so nothing comes to stand before what was given already. On SQLite one writer at a time moves a clock on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection

from ledger.stores import handout
from ledger.stores.base import Fed
from ledger.stores.sql import rows
from ledger.stores.sql.database import Database

_SETTLED = {
    True: """(line.era < meta.era OR line.place <
        CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint))""",
    False: "line.place <= meta.clock",
}
_NEXT = {
    postgres: text(
        f"""SELECT line.era, line.place, line.conversation, line.seq, head.id
        FROM ledger_lines AS line
        JOIN ledger_conversations AS head ON head.key = line.conversation
        CROSS JOIN ledger_meta AS meta
        WHERE line.tenant = :tenant AND line.seq > 0 AND {settled}
            AND (line.era, line.place, line.conversation, line.seq)
                > (:era, :place, :conversation, :seq)
        ORDER BY line.era, line.place, line.conversation, line.seq LIMIT :limit"""
    )
    for postgres, settled in _SETTLED.items()
}
_ANY = text(
    """SELECT 1 FROM ledger_lines WHERE tenant = :tenant AND seq > 0
    AND (era, place, conversation, seq) > (:era, :place, :conversation, :seq) LIMIT 1"""
)
_TEXT = re.compile(r"([0-9]{1,10})-([0-9]{1,20})-([0-9]{1,20})-([0-9]{1,20})")
_BEHIND = text(
    """SELECT 1 FROM ledger_lines AS line, ledger_meta AS meta
    WHERE line.tenant = :tenant AND line.era = meta.era AND line.place >=
        CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint) LIMIT 1"""
)

START = "0-0-0-0"
"""The position before the first record."""


class At(NamedTuple):
    """The place of a line in the feed."""

    era: int
    place: int
    conversation: int
    seq: int

    def text(self) -> str:
        """Write it as a position."""
        return "-".join(map(str, self))


def place_of(after: object) -> At:
    """Return the place that a position names. Raises: ValueError: it is no position of a feed."""
    found = _TEXT.fullmatch(after) if isinstance(after, str) else None
    if found is None:
        raise ValueError(f"a position of a feed is what one of its records had, not {after!r:.60}")
    return At(*map(int, found.groups()))


def read(
    connection: Connection, tenant: int, after: At, limit: int, *, postgres: bool
) -> list[Fed]:
    """Return the next records after a place, at most so many."""
    given = {"tenant": tenant, "limit": limit, **after._asdict()}
    found = [tuple(row) for row in connection.execute(_NEXT[postgres], given)]
    fed: list[Fed] = []
    for id, run in _runs(found):
        first, last = run[0].seq, run[-1].seq
        records = _records(connection, tenant, id, run[0].conversation, first, last)
        fed += [
            Fed(position=at.text(), conversation=id, record=records[at.seq])
            for at in run
            if at.seq in records
        ]
    return fed


def has_more(connection: Connection, tenant: int, after: At) -> bool:
    """Say whether there are lines after a place, to be given or held back: nobody gives word when these may come."""
    given = {"tenant": tenant, **after._asdict()}
    return connection.execute(_ANY, given).first() is not None


def begin_era_if_restored(connection: Connection, tenant: int, database: Database) -> None:
    """Begin a new era where this server counts its transactions from below what lines say.

    So it is after a dump was restored into another server. Writers wait meanwhile: none of the old era comes later.
    """
    given = {"tenant": tenant}
    if connection.execute(_BEHIND, given).first() is None:
        return
    with database.transaction(connection):
        connection.exec_driver_sql("LOCK TABLE ledger_lines IN SHARE ROW EXCLUSIVE MODE")
        if connection.execute(_BEHIND, given).first() is not None:
            connection.exec_driver_sql("UPDATE ledger_meta SET era = era + 1")


def _runs(found: list[tuple[Any, ...]]) -> Iterator[tuple[str, list[At]]]:
    """Yield lines that follow each other in one log together."""
    for (_, id), run in groupby(found, key=lambda row: (row[2], row[4])):
        yield id, [At(*row[:4]) for row in run]


def _records(
    connection: Connection, tenant: int, id: str, key: int, first: int, last: int
) -> dict[int, dict[str, Any]]:
    """Return records of a log by their places, as reading the log gives them."""
    log = rows.head(connection, tenant, id)
    if log is None or log.key != key:
        return {}  # It was deleted at this moment.
    reader = rows.between(connection, log, first, last).reader(id)
    records: dict[int, dict[str, Any]] = {}
    for piece in [*reader.whole_lines(), reader.finish(in_flight=False)]:
        for record in handout.shallow(lambda piece=piece: handout.plain(piece, 0)):  # type: ignore[misc]
            records[record["seq"]] = record
    return records
