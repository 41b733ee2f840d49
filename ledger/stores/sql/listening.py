"""Who waits in this process for a PostgreSQL database to change, and the one connection that hears of it.

One thread and one connection for each database, whatever number of turns wait. Who changes something says
so after the commit, never inside: a transaction that notifies makes all others that do wait for its flush.
So a word may be lost with a process that dies in between, and each thing that is waited for is looked at
once more every few seconds, all in one query. Where the database gives no word (a pooler between, a
connection that was lost) the same query is made more often, and the connection is sought again. That it
still answers is seen by these looks: who waits cuts it off where one is not answered.

What is known of a thing holds until the next word of it. That is a hint, for who looks after many turns: a word
comes a moment after the commit, so what must be true is asked of the database.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from sqlalchemy import exc, text
from sqlalchemy.engine import Connection

from ledger.errors import LedgerError
from ledger.stores import forks
from ledger.stores.base import Position
from ledger.stores.sql.database import Database
from ledger.stores.sql.failures import Again, Lost, Missing

CHANNEL = "turn_ledger"
LOOK_S = 5.0
"""How often what is waited for is looked at where the database gives word."""
POLL_S = 0.3
"""The same where it does not."""
SEEK_S = 5.0
"""How often a connection that gives word is sought where there is none."""
HEAR_S = 2.0
"""Within what time a word to itself must be heard."""
FORGET_S = 60.0
"""After what time that nobody asks a thing is forgotten."""

CONVERSATION, TREE, FEED = "c", "t", "f"
Thing = tuple[str, int, str]
"""What is waited for: one of these three, the tenant's key, its name (of the feed: none)."""

_TELL = f"SELECT pg_notify('{CHANNEL}', word) FROM unnest(CAST(:words AS text[])) AS word"
_HEADS = text(
    """SELECT head.tenant, head.id, head.count, head.first_at, head.first_salt,
        CASE WHEN head.count > 0 AND head.ready = 1 THEN head.chain END
    FROM unnest(CAST(:tenants AS bigint[]), CAST(:names AS text[])) AS asked(tenant, id)
    JOIN ledger_conversations AS head ON head.tenant = asked.tenant AND head.id = asked.id"""
)


class _Watched:
    """A thing that somebody asks about."""

    def __init__(self) -> None:
        self.version = 0
        """Grows with each word of it."""
        self.known: tuple[int, Position] | None = None
        """Where a conversation is, and the version for which that holds."""
        self.asked = time.monotonic()
        self.waiting: list[SimpleQueue[None]] = []

    def change(self) -> None:
        self.version += 1
        for woken in tuple(self.waiting):
            woken.put(None)


class _Line:
    """The socket of the connection that listens, to be cut by others while the database does not answer on it.

    A connection that a firewall forgot tells nothing: who asks on it waits. It has its own descriptor, so that
    what is cut is never somebody else's.
    """

    def __init__(self, number: int) -> None:
        self._socket = socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM)
        self._since: float | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask the database something on it, inside."""
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._since = None

    def cut_if_silent(self, after_s: float) -> None:
        """End it where an answer is waited for so long: who asked gets an error now."""
        since = self._since
        if since is not None and time.monotonic() - since >= after_s:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give up the descriptor."""
        self._socket.close()


class Listener:
    """Threads that wait, and the thread that listens for them. Begun with the first that waits."""

    def __init__(self, database: Database) -> None:
        self.hears = False
        """Whether the database gives word."""
        self._database = database
        self._begin()
        forks.join(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._things: dict[Thing, _Watched] = {}
        self._to_tell: list[str] = []
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._pipe: tuple[int, int] | None = None
        self._line: _Line | None = None
        self.hears = False

    # -- asking

    def wait(self, thing: Thing, moved: Callable[[], bool], timeout: float) -> bool:
        """Block until `moved` says so, or `timeout` seconds passed. Returns: whether it moved."""
        deadline = time.monotonic() + timeout
        watched = self._watch(thing)
        woken: SimpleQueue[None] = SimpleQueue()
        watched.waiting.append(woken)
        try:
            while True:
                if moved():
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.start()
                self._sleep(woken, left)
        finally:
            watched.asked = time.monotonic()
            with suppress(ValueError):
                watched.waiting.remove(woken)

    def _sleep(self, woken: SimpleQueue[None], seconds: float) -> None:
        """Sleep until woken, and see meanwhile that the database still answers who listens."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                woken.get(timeout=min(left, HEAR_S))
            except Empty:
                self._cut_if_silent(HEAR_S)
            else:
                return

    def _cut_if_silent(self, after_s: float) -> None:
        line = self._line
        if line is not None:
            line.cut_if_silent(after_s)

    def _watch(self, thing: Thing) -> _Watched:
        with self._lock:
            watched = self._things.setdefault(thing, _Watched())
            watched.asked = time.monotonic()
            return watched

    def version(self, thing: Thing) -> int | None:
        """Return which word of a thing was the last; None: nobody asks about it."""
        watched = self._things.get(thing)
        return watched.version if watched is not None else None

    def note(self, thing: Thing, version: int | None, position: Position) -> None:
        """Note where a conversation was found, asked after the word that is named."""
        watched = self._things.get(thing)
        if watched is not None and version is not None:
            watched.known = version, position

    def known(self, thing: Thing) -> Position | None:
        """Return where a conversation is, as far as was heard; None: nothing was, ask. Watched from now on."""
        watched = self._watch(thing)
        self._cut_if_silent(HEAR_S)
        known = watched.known
        return known[1] if known and known[0] == watched.version and self.hears else None

    def wake(self, thing: Thing) -> None:
        """Have those who wait for a thing look now, here and in other processes."""
        self._changed(thing)
        word = f"{thing[1]}:{thing[0]}:{thing[2]}"
        if self.hears:
            with self._lock:
                self._to_tell.append(word)
            self._nudge()
            return
        with suppress(LedgerError, Lost, Again, Missing):
            self._database.once(lambda c: _tell(c, [word]))

    # -- the thread

    def start(self) -> None:
        """Begin to listen, if nobody does."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                if self._pipe is None:
                    self._pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                self._stopping = False
                self._thread = threading.Thread(target=self._run, name="ledger-listen", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread and its connection; who waits next begins anew."""
        thread = self._thread
        self._stopping = True
        self._nudge()
        self._cut_if_silent(0)
        if thread is not None and thread is not threading.current_thread():
            thread.join(HEAR_S)
        with self._lock:
            if self._pipe is not None and (thread is None or not thread.is_alive()):
                for end in self._pipe:
                    os.close(end)
                self._pipe = None

    def _nudge(self) -> None:
        pipe = self._pipe
        if pipe is not None:
            with suppress(OSError):
                os.write(pipe[1], b"!")

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._database.once(self._listen)
            except (LedgerError, Lost, Again, Missing):
                pass
            finally:
                self.hears = False
            self._poll(time.monotonic() + SEEK_S)

    def _poll(self, until: float) -> None:
        """Look at what is waited for, often, while nobody gives word."""
        while not self._stopping and time.monotonic() < until:
            with suppress(LedgerError, Lost, Again, Missing):
                self._database.once(self._look)
            self._pause(POLL_S, ())

    def _listen(self, connection: Connection) -> None:
        """Hear what the database says, until the connection is lost or this ends."""
        driver: Any = connection.connection.driver_connection
        connection.detach()  # It is no part of the pool: it is kept for as long as this listens.
        line = self._line = _Line(driver.fileno())
        try:
            with line.asking():
                connection.exec_driver_sql(f"LISTEN {CHANNEL}")
            if self._is_heard(connection, driver):
                self._hear(connection, driver, line)
        finally:
            self._line = None
            line.close()

    def _hear(self, connection: Connection, driver: Any, line: _Line) -> None:
        look_at = 0.0
        while not self._stopping:
            if time.monotonic() >= look_at:
                with line.asking():
                    connection.exec_driver_sql("SELECT 1")  # `_look` may have nothing to ask.
                    self._look(connection)
                self.hears = True
                look_at = time.monotonic() + LOOK_S
            self._pause(max(0.0, look_at - time.monotonic()), (driver.fileno(),))
            self._take_words(driver)
            with self._lock:
                words, self._to_tell = self._to_tell, []
            if words:
                with line.asking():
                    _tell(connection, list(dict.fromkeys(words)))
                self._take_words(driver)

    def _is_heard(self, connection: Connection, driver: Any) -> bool:
        """Say whether a word to itself comes back: through some poolers none does."""
        word = f"hear:{os.getpid()}:{time.monotonic_ns()}"
        _tell(connection, [word])
        deadline = time.monotonic() + HEAR_S
        while not self._stopping and time.monotonic() < deadline:
            if word in self._take_words(driver, 0.1):
                return True
        return False

    def _take_words(self, driver: Any, timeout_s: float = 0.0) -> list[str]:
        try:
            words = [said.payload for said in driver.notifies(timeout=timeout_s)]
        except driver_errors() as error:
            raise exc.OperationalError("", None, error, connection_invalidated=True) from None
        for word in words:
            tenant, kind, name = [*word.split(":", 2), "", ""][:3]
            if tenant.isdecimal():
                self._changed((kind, int(tenant), name))
        return words

    def _changed(self, thing: Thing) -> None:
        for one in (thing, (FEED, thing[1], "")):
            watched = self._things.get(one)
            if watched is not None:
                watched.change()

    def _pause(self, seconds: float, also: tuple[int, ...]) -> None:
        pipe = self._pipe
        if pipe is None:
            return
        with suppress(OSError, ValueError):
            if pipe[0] in select.select([pipe[0], *also], [], [], seconds)[0]:
                os.read(pipe[0], 4096)

    def _look(self, connection: Connection) -> None:
        """Find out what of all that is asked about changed, in one query."""
        now = time.monotonic()
        with self._lock:
            for thing, watched in list(self._things.items()):
                if not watched.waiting and now - watched.asked > FORGET_S:
                    del self._things[thing]
            things = list(self._things.items())
        asked = [thing for thing, _ in things if thing[0] == CONVERSATION]
        found: dict[Thing, Position] = {}
        if asked:
            given = {"tenants": [t for _, t, _ in asked], "names": [name for *_, name in asked]}
            for tenant, name, count, at, salt, chain in connection.execute(_HEADS, given):
                position = Position(count, (at or "", salt) if count else None, chain)
                found[(CONVERSATION, tenant, name)] = position
        for thing, watched in things:
            if thing[0] != CONVERSATION or (
                watched.known is not None
                and not _same(watched.known[1], found.get(thing, Position(0)))
            ):
                watched.change()

    # -- forks

    def before_fork(self) -> None:
        """Nothing is taken: the child begins anew."""

    def after_fork(self, *, child: bool) -> None:
        if child:
            self._begin()


class TreeWaits:
    """Who waits for the events of turns: what `EventLogs` asks."""

    def __init__(self, listener: Listener, tenant: Callable[[bool], int | None]) -> None:
        self._listener = listener
        self._tenant = tenant

    def wait(self, tree: str, moved: Callable[[], bool], timeout: float) -> bool:
        """Block until `moved` says so, or `timeout` seconds passed. Returns: whether it moved."""
        return self._listener.wait((TREE, self._tenant(True) or 0, tree), moved, timeout)

    def wake(self, tree: str) -> None:
        """Have those who wait for a log look now."""
        self._listener.wake((TREE, self._tenant(True) or 0, tree))


def driver_errors() -> tuple[type[BaseException], ...]:
    """Return what psycopg raises when a connection is lost."""
    import psycopg

    return (psycopg.OperationalError, psycopg.InterfaceError)


def _tell(connection: Connection, words: list[str]) -> None:
    connection.execute(text(_TELL), {"words": words})


def _same(a: Position, b: Position) -> bool:
    return a == b and (a.incarnation, a.chain) == (b.incarnation, b.chain)
