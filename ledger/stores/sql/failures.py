"""What a driver's error means here. Text of a driver's error is never passed on.

It may hold what must not leave: a connection string with its password, the values of a statement. So it
is told by its code (SQLSTATE, or SQLite's name), and never chained to the error that is raised.
"""

from __future__ import annotations

import re
from typing import Any

from ledger.errors import (
    LedgerError,
    StoreBusy,
    StoreCorrupt,
    StoreDenied,
    StoreFull,
    StoreIO,
    StoreReadOnly,
)


class Lost(Exception):
    """Raised when the connection was lost: what it was to do may have been done.

    Args: sent: whether there was a connection; without one, nothing was done.
    """

    def __init__(self, *, sent: bool) -> None:
        super().__init__()
        self.sent = sent


class Again(Exception):
    """Raised when the database gave a transaction up in favour of another: nothing of it was done."""


class Missing(Exception):
    """Raised when the tables are not there."""


_LOST = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03"})
"""The server ends, starts or ends the session. (Class 08 besides.)"""

UNOPENED = (
    "the database cannot be opened (where its folder can only be read, no -wal with anything in it may "
    "be left beside it)"
)

_BY_STATE: dict[str, tuple[type[LedgerError], str]] = {
    "53100": (StoreFull, "the database has no room"),
    "53200": (StoreIO, "the database is out of memory"),
    "53300": (StoreBusy, "the database takes no more connections"),
    "55P03": (StoreBusy, "another transaction held the lock for the whole waiting time"),
    "57014": (StoreBusy, "the database gave the statement up after the time it is given"),
    "25006": (StoreReadOnly, "the database can only be read here"),
    "42501": (StoreDenied, "the database refuses this user that right"),
    "XX001": (StoreIO, "the database found its own data damaged"),
    "XX002": (StoreIO, "the database found its own index damaged"),
    "3D000": (StoreIO, "there is no such database on that server"),
}

_BY_NAME: dict[str, tuple[type[LedgerError], str]] = {
    "SQLITE_BUSY": (StoreBusy, "another process held the database for the whole waiting time"),
    "SQLITE_LOCKED": (StoreBusy, "another connection held the database"),
    "SQLITE_FULL": (StoreFull, "there is no room for the database"),
    "SQLITE_READONLY": (StoreReadOnly, "the database can only be read here"),
    "SQLITE_PERM": (StoreDenied, "the system refuses access to the database"),
    "SQLITE_AUTH": (StoreDenied, "the system refuses access to the database"),
    "SQLITE_CANTOPEN": (StoreIO, UNOPENED),
    "SQLITE_IOERR": (StoreIO, "reading or writing the database failed"),
}


def of(driver: Any, where: str, *, lost: bool, connected: bool) -> Exception:
    """Return what a driver's error means.

    Args: driver: its exception. where: the database, without secrets. lost: the connection is gone.
    connected: there was one, so that this is not about making one.
    """
    state = getattr(driver, "sqlstate", None)
    name = getattr(driver, "sqlite_errorname", None)
    if name is not None or type(driver).__module__ == "sqlite3":
        return _of_sqlite(driver, str(name), where)
    if state in _LOST or (state or "").startswith("08"):
        return Lost(sent=connected)
    if state in ("40001", "40P01"):
        return Again()
    if state in ("42P01", "3F000"):
        return Missing()
    if state in _BY_STATE:
        kind, reason = _BY_STATE[state]
        return _failure(kind, where, reason)
    if (state or "").startswith("28"):
        return StoreDenied(where=where, reason="the database does not accept these credentials")
    if state is None and not connected:
        refused = _of_greeting(str(driver), where)
        if refused is not None:
            return refused
    if lost or (state is None and type(driver).__name__ == "OperationalError"):
        return Lost(sent=connected)
    told = f"the database refused ({type(driver).__name__}{f', SQLSTATE {state}' if state else ''})"
    return StoreIO(where=where, reason=told)


_CREDENTIALS = re.compile(
    r'FATAL: .*(authentication failed|role ".*" does not exist|no pg_hba\.conf entry|not permitted to log in'
    r"|permission denied for database)|no password supplied"
)
_NO_DATABASE = re.compile(r'FATAL:  database ".*" does not exist')


def _of_greeting(said: str, where: str) -> LedgerError | None:
    """Return why a server does not let this process in, which it tells by no code; None: not known."""
    if _CREDENTIALS.search(said):
        return StoreDenied(where=where, reason="the database does not accept these credentials")
    if _NO_DATABASE.search(said):
        return StoreIO(where=where, reason="there is no such database on that server")
    return None


def _of_sqlite(driver: Any, name: str, where: str) -> Exception:
    if name == "SQLITE_ERROR" and str(driver).startswith("no such table: ledger_"):
        return Missing()
    if name in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
        return StoreCorrupt(where=where, seq=0, reason="it is damaged, or is no SQLite database")
    for known, (kind, reason) in _BY_NAME.items():
        if name == known or name.startswith(known + "_"):
            return _failure(kind, where, reason)
    return StoreIO(where=where, reason=f"the database refused ({type(driver).__name__}, {name})")


def _failure(kind: type[LedgerError], where: str, reason: str) -> LedgerError:
    return kind(where=where, reason=reason)
