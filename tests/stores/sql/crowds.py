"""Many processes at one database whose connections and server die under them. Without pytest."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import sqlalchemy

from ledger.errors import LedgerError, StoreIO
from ledger.stores.sql import SQLStore
from ledger.testing.children import Say, children
from ledger.testing.examples import notes, texts
from tests import postgres

LONGEST_S = 120.0
CONVERSATIONS = 3


def add(say: Say, number: int, url: str, tenant: str, each: int) -> dict[str, list[str]]:
    """Append to conversations that others append to; say how each append came out."""
    outcomes: dict[str, list[str]] = {"acknowledged": [], "in doubt": [], "refused": []}
    chance = random.Random(number)
    with SQLStore(url, tenant=tenant) as store:
        postgres.until(lambda: _is_up(store))
        for i in range(each):
            name = f"{number}-{i}"
            conversation = f"c{chance.randrange(CONVERSATIONS)}"
            expect = int(store.read(conversation).position) if i % 3 == 0 else None
            try:
                store.append(conversation, notes(*([name] * (1 + i % 2))), expect=expect)
            except LedgerError as error:
                known = {"store-unknown": "in doubt", "store-conflict": "refused"}
                outcomes[known[error.code]].append(name)
            else:
                outcomes["acknowledged"].append(name)
            say(name)
    return outcomes


def _is_up(store: SQLStore) -> bool:
    """Say whether a first connection can be had: who begins while the server restarts is soon told that it cannot."""
    try:
        store.conversations()
    except StoreIO:
        return False
    return True


def survive(
    url: str, restart: Callable[[], Any], *, processes: int, each: int, pause_s: float
) -> Counter[str]:
    """Have processes append while connections are ended at random, and the server restarts half-way.

    Raises: AssertionError: a record that was acknowledged is not there exactly once, or another is there
    twice, in part, or though it was refused. Returns: how many appends came out how.
    """
    tenant = f"crowd-{time.monotonic_ns()}"
    with SQLStore(url, tenant=tenant) as store:
        store.append("begun", notes("x"))
    killer = _Killer(url)
    with children(processes) as lent:
        for number, child in enumerate(lent):
            child.prepare(add, number, url, tenant, each)
        for child in lent:
            child.begin(LONGEST_S)
        left, restarted = dict.fromkeys(lent, each), False
        while any(left.values()):
            for child in lent:
                while left[child] and child.said_within(0):
                    child.hear(LONGEST_S)
                    left[child] -= 1
            killer.kill()
            if not restarted and sum(left.values()) * 2 < processes * each:
                restart()
                restarted = True
            time.sleep(pause_s)
        outcomes = [child.result(LONGEST_S) for child in lent]
    killer.close()
    total = Counter({"connections ended": killer.killed, "restarts": int(restarted)})
    with SQLStore(url, tenant=tenant) as store:
        found = Counter(text for n in range(CONVERSATIONS) for text in texts(store.read(f"c{n}")))
        fed = Counter(one.record["data"] for one in _fed(store) if one.conversation != "begun")
        damaged = [n for n in range(CONVERSATIONS) if store.verify(f"c{n}").findings_total]
    for told in outcomes:
        total.update({how: len(names) for how, names in told.items()})
        for how, names in told.items():
            for name in names:
                whole = 1 + int(name.partition("-")[2]) % 2
                allowed = {"acknowledged": {whole}, "in doubt": {0, whole}, "refused": {0}}[how]
                assert found[name] in allowed, f"{how}: {name} is there {found[name]} times"
    assert damaged == []
    assert fed == found, "the feed is not what is there"
    return total


def _fed(store: SQLStore) -> list[Any]:
    every, after = [], None
    while step := store.feed(after, limit=100):
        every += step
        after = step[-1].position
    return every


class _Killer:
    """Ends connections of others to a database."""

    def __init__(self, url: str) -> None:
        self.killed = 0
        pool = sqlalchemy.pool.NullPool
        self._engine = sqlalchemy.create_engine(postgres.psycopg_url(url), poolclass=pool)

    def kill(self) -> None:
        """End two connections at random."""
        try:
            with self._engine.connect() as connection:
                found = connection.exec_driver_sql(
                    """SELECT count(pg_terminate_backend(pid)) FROM (
                        SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()
                        AND backend_type = 'client backend' ORDER BY random() LIMIT 2) AS picked"""
                )
                self.killed += int(found.scalar_one())
        except sqlalchemy.exc.OperationalError:
            pass  # It is being restarted.

    def close(self) -> None:
        """End its own."""
        self._engine.dispose()
