"""What names a database: read, checked, and made an engine. A URL is never repeated: it may hold a password."""

from __future__ import annotations

import os

from sqlalchemy import create_engine, event, exc
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.pool import StaticPool

from ledger.stores.sql import files

_ALIVE = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""What psycopg is told where a URL does not: a connection that nobody answers on is lost within half a minute."""
_DRIVERS = {"postgresql": "psycopg", "sqlite": "pysqlite"}


def parsed(named: str | URL) -> URL:
    """Return the URL that a text is. Raises: ValueError: it is none that names a database of a store."""
    if isinstance(named, str):
        _check_text(named)
    try:
        url = make_url(named)
    except (exc.ArgumentError, ValueError):
        url = None
    if url is None:
        raise ValueError("the URL of a database does not read: postgresql://user@host/name is one")
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    _check_parts(url)
    return url


def _check_text(named: str) -> None:
    if not named.isprintable():
        raise ValueError("the URL of a database holds a character that none may hold")
    if named.lstrip().lower().startswith("sqlite"):
        return
    rest = named.partition("://")[2].partition("@")[2].partition("?")[0]
    if "@" in rest:
        raise ValueError("the URL of a database holds two '@': in a user or password, write %40")


def _check_parts(url: URL) -> None:
    backend = url.get_backend_name()
    if backend not in _DRIVERS:
        known = " and ".join(_DRIVERS)
        raise ValueError(f"no store knows databases of the kind {backend!r}; known are {known}")
    if url.drivername.partition("+")[2] not in ("", _DRIVERS[backend]):
        raise _other_driver(*url.drivername.split("+", 1))
    if url.port is not None and not 0 < url.port < 65536:
        raise ValueError("the URL of a database names a port that is none: it is 1 to 65535")
    if backend != "sqlite":
        return
    if url.database in (None, "", ":memory:"):
        raise ValueError(
            "a SQLite store is in a file: sqlite:///path/to/file; memory is MemoryStore"
        )
    if url.host or url.username or url.password or url.port:
        raise ValueError("a SQLite store is in a file, on no host: sqlite:///path/to/file")


def _other_driver(backend: str, driver: str) -> ValueError:
    return ValueError(
        "a store is in PostgreSQL by psycopg (postgresql+psycopg://) or in SQLite (sqlite:///), "
        f"not in {backend} by {driver}"
    )


def engine_of(url: URL) -> Engine:
    """Return an engine for a URL that was checked. Raises: ModuleNotFoundError: the driver is missing."""
    is_sqlite = url.get_backend_name() == "sqlite"
    try:
        given = {} if is_sqlite else _alive(url)
        engine = create_engine(url, hide_parameters=True, connect_args=given)
    except ModuleNotFoundError as error:
        told = f"{error.name} is missing: python -m pip install 'turn-ledger[sql]'"
        raise ModuleNotFoundError(told, name=error.name) from None
    if is_sqlite and not str(url.database).startswith("file:"):
        event.listen(engine, "do_connect", files.opener(str(url.database)))
    check(engine)
    return engine


def _alive(url: URL) -> dict[str, int]:
    given = {name: value for name, value in _ALIVE.items() if name not in url.query}
    if "PGCONNECT_TIMEOUT" in os.environ:
        given.pop("connect_timeout", None)
    return given


def check(engine: Engine) -> None:
    """Refuse an engine that no store can use. Raises: ValueError."""
    if _DRIVERS.get(engine.dialect.name) != engine.dialect.driver:
        raise _other_driver(engine.dialect.name, engine.dialect.driver)
    if isinstance(engine.pool, StaticPool):
        raise ValueError(
            "a store needs a connection for each thread, and this engine has one for all"
        )


def where(url: URL) -> str:
    """Return which database a URL names, for errors: without user, password and options."""
    host = (
        None if "@" in (url.host or "") else url.host
    )  # What stands before it may be a password's.
    bare = URL.create(url.get_backend_name(), host=host, port=url.port, database=url.database)
    return bare.render_as_string(hide_password=True)
