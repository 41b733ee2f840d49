"""Who lives, told by processes of one machine of each other.

A row names a holder's process as its machine's kernel knows it: the namespace its number counts in, the
number, and when it started. Whoever is asked about a holder, on the machine it ran on, looks whether that
process is there. Nothing is asked of a connection: one that is lost tells nothing of the process behind
it, and taking a living holder for dead would run its turn twice. In another namespace (a container beside),
and where there is no Linux, nothing is known; then the times in the leases decide.
"""

from __future__ import annotations

import os
from contextlib import suppress

from sqlalchemy import text
from sqlalchemy.engine import Connection

from ledger.stores.sql.database import NOW

_OLD_S = 24 * 60 * 60
"""How old a row is before it is removed: leases that name its holder ran out long before."""

_ADD = {
    postgres: text(
        f"""INSERT INTO ledger_holders (tenant, holder, process, made)
        VALUES (:tenant, :holder, :process, {now}) ON CONFLICT DO NOTHING"""
    )
    for postgres, now in NOW.items()
}
_DROP_OLD = {
    postgres: text(f"DELETE FROM ledger_holders WHERE tenant = :tenant AND made < {now} - {_OLD_S}")
    for postgres, now in NOW.items()
}
_FIND = text("SELECT process FROM ledger_holders WHERE tenant = :tenant AND holder = :holder")


def process() -> str | None:
    """Return what names this process on its machine; None: nothing does here."""
    with suppress(OSError):
        started = _started(os.getpid())
        if started is not None:
            return f"{os.stat('/proc/self/ns/pid').st_ino}:{os.getpid()}:{started}"
    return None


def is_over(named: str) -> bool:
    """Say whether a process that is named so has ended. False: it runs, or nobody here can know."""
    space, _, rest = named.partition(":")
    number, _, started = rest.partition(":")
    try:
        if space != str(os.stat("/proc/self/ns/pid").st_ino):
            return False
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    found = _started(int(number))
    return found is not None and found != started


def _started(number: int) -> str | None:
    """Return when a process started, or `over` for one that ended and was not waited for; None: unknown."""
    try:
        with open(f"/proc/{number}/stat", encoding="ascii", errors="replace") as file:
            state, *fields = file.read(2000).rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return "over" if state in ("Z", "X") else fields[18] if len(fields) > 18 else None


def hold(connection: Connection, tenant: int, holder: str, named: str, *, postgres: bool) -> None:
    """Say which process a holder is."""
    given = {"tenant": tenant, "holder": holder, "process": named}
    connection.execute(_ADD[postgres], given)
    connection.execute(_DROP_OLD[postgres], given)


def of(connection: Connection, tenant: int, holder: str) -> str | None:
    """Return which process a holder is, as it said; None: it did not."""
    found = connection.execute(_FIND, {"tenant": tenant, "holder": holder}).scalar()
    return str(found) if found is not None else None
