"""Where the index of a store is that keeps its logs in a database: in that database, in tables of its own.

What is damaged, or of another version, is dropped and made anew. Where that cannot be done (this user may not make
tables or write, others keep it busy) memory serves as well, and is as right.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from ledger.catalog import postgres, sqlite
from ledger.catalog.index import Index
from ledger.catalog.places import BY_DAMAGE, TRIES, InMemory, is_damage
from ledger.errors import LedgerError
from ledger.stores.sql.failures import Missing
from ledger.stores.sql.index_room import IndexRoom, Room

T = TypeVar("T")


class InDatabase:
    """An index in the database of a store, for every process and machine; else in memory."""

    def __init__(self, room: IndexRoom) -> None:
        self._room = room
        self._instead = InMemory()

    def ask(self, work: Callable[[Index], T]) -> T:
        """Do something with the index; again with a new one where it is found to be damaged."""
        mend: Callable[[Room], object] | None = None
        for _ in range(TRIES):
            try:
                if mend is not None:
                    self._room.use(mend)
                found = self._room.use(lambda room: [work(_index(room))])
                if found is None:  # There is nothing here, and nothing is made.
                    break
                return found[0]
            except sqlite.Anew:
                mend = None
            except (Missing, sqlite.Foreign):
                mend = _make
            except (msgspec.MsgspecError, *BY_DAMAGE):
                mend = _doubt
            except sqlite3.Error as error:
                if not is_damage(error):
                    break
                mend = _make
            except LedgerError:
                break
        return self._instead.ask(work)

    def rebuild(self) -> None:
        """Have all that is in the index read anew; others are answered meanwhile from what is there."""
        self._instead.rebuild()
        with suppress(Missing, sqlite3.Error, LedgerError):  # There is none, or memory will serve.
            self._room.use(_doubt)


def _index(room: Room) -> Index:
    return postgres.PostgresIndex(room) if room.is_postgres else sqlite.BesideLogs(room)


def _make(room: Room) -> None:
    if room.is_postgres:
        postgres.make(room)
    else:
        sqlite.discard(room)


def _doubt(room: Room) -> None:
    if room.is_postgres:
        postgres.doubt(room)
    else:
        sqlite.doubt(room)
