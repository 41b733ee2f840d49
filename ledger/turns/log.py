"""One conversation's log as the shells use it: read, fold, decide, append, again on conflict.

The condition of an append guards what was decided: the decision is made again whenever the log grew
meanwhile. A conflict is known by its `code`, never by its class, since other people's stores raise
their own.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from ledger.errors import DamageWarning, StoreUnsupported
from ledger.records.kinds import NewRecord
from ledger.stores.base import Erased
from ledger.turns import loops
from ledger.views import History

POLL_S = 0.1
"""How often a store without `wait` is asked again."""


class ReadsAndAppends(Protocol):
    """The two methods that make a store."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> int:
        """See `ledger.stores.base.Store.append`."""
        ...

    def read(self, conversation: str, after: int = 0) -> Any:
        """See `ledger.stores.base.Store.read`."""
        ...


class Events(Protocol):
    """Where a store keeps the events of running turns (`ledger.stores.events`)."""

    def extend(self, events: Iterable[Mapping[str, Any]]) -> Any:
        """Add events of one turn at the end of its log, all or none."""
        ...

    def read(self, tree: str, after: Any = None) -> list[dict[str, Any]]:
        """Return the events after a place, in order. Raises: event-unknown."""
        ...

    def wait(self, tree: str, after: Any, timeout: float) -> bool:
        """Block until there is an event after a place, or `timeout` seconds passed."""
        ...


class Log:
    """A conversation in a store, with what was folded of it so far. Safe to share by threads."""

    def __init__(self, store: ReadsAndAppends, conversation: str) -> None:
        self.store = store
        """The store as the caller gave it."""
        self.calls: Any = loops.blocking(store)
        """The store with methods that block, whatever the caller gave."""
        self.conversation = conversation
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.history = History(conversation)
        self._position: int = 0
        self._scan = getattr(self.calls, "scan", self.calls.read)
        self._warned = False

    def read(self) -> History:
        """Fold what was appended since the last read, and return the history.

        A log that was deleted or replaced meanwhile is read again from its start.
        """
        with self.lock:
            history = self.history
            try:
                records = self._scan(self.conversation, self._position)
            except Exception as error:
                if getattr(error, "code", None) != "store-gone":
                    raise
                history = History(self.conversation)
                records = self._scan(self.conversation, 0)
            try:
                history.extend(records)
                position = getattr(records, "position", history.position)
                # Only now: the history is looked at without the lock, and is to be whole.
                self.history, self._position = history, position
            except BaseException:  # An interrupt, say: some of them are folded, nobody knows which.
                self.history, self._position = History(self.conversation), 0
                raise
            if history.unreadable and not self._warned:
                self._warn()
            return history

    def _warn(self) -> None:
        """Tell once of lines that are damaged. What cannot be read for another reason is no damage."""
        self._warned = True
        damage = getattr(self.calls, "damage", None)
        found = damage(self.conversation) if callable(damage) else ()
        if found:
            lines = ", ".join(str(finding.seq) for finding in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            warnings.warn(
                f"conversation {self.conversation}: damaged and left out: record {lines}{more}; "
                "the rest is usable; `turn-ledger verify` tells more",
                DamageWarning,
                stacklevel=3,
            )

    def append(self, decide: Callable[[History], list[NewRecord]]) -> History:
        """Append what `decide` answers to the log as it is, and return the history with it.

        `decide` is asked again, with a newer history, as long as others append first; it refuses by
        raising, and then nothing is appended. No records: nothing is appended.
        """
        while True:
            with self.lock:
                history = self.read()
                records = decide(history)
                if not records:
                    return history
                try:
                    self.calls.append(self.conversation, records, expect=self._position)
                except Exception as error:
                    if getattr(error, "code", None) != "store-conflict":
                        raise
                    continue
                return self.read()

    def hold(self, holder: str) -> None:
        """Have others see at once when this process dies, where the store can show that."""
        hold = getattr(self.calls, "hold", None)
        if callable(hold):
            hold(holder)

    @property
    def events(self) -> Events | None:
        """Where the store keeps the events of running turns; None: it keeps none, or not this way."""
        found = getattr(self.store, "events", None)
        methods = [getattr(found, name, None) for name in ("extend", "read", "wait")]
        fits = all(map(callable, methods)) and not any(map(inspect.iscoroutinefunction, methods))
        return found if fits else None

    def confirm(self) -> None:
        """Return when all that was read is as durable as the store makes it, whoever recorded it."""
        self.calls.append(self.conversation, [])

    def erase(
        self, turn: str, decide: Callable[[History], list[NewRecord]]
    ) -> tuple[History, Erased]:
        """Append what `decide` answers, then erase a turn from the log as it is.

        Everything is decided again as long as others append in between.
        Returns: the history as it was before, and what the store removed.
        Raises: store-unsupported: the store cannot erase; nothing was appended.
        """
        erase = getattr(self.calls, "erase", None)
        if not callable(erase):
            raise StoreUnsupported(store=type(self.store).__name__, method="erase")
        while True:
            with self.lock:
                history = self.append(decide)
                try:
                    erased: Erased = erase(self.conversation, turn, expect=self._position)
                except Exception as error:
                    if getattr(error, "code", None) == "store-conflict":
                        continue
                    self.forget()
                    raise
                self.forget()
                return history, erased

    def forget(self) -> None:
        """Forget what was folded, and fold the log anew; what cannot be read now, at the next read."""
        with self.lock:
            history, position = History(self.conversation), 0
            with suppress(Exception):
                records = self._scan(self.conversation, 0)
                history.extend(records)
                position = getattr(records, "position", history.position)
            self.history, self._position = history, position

    def add(self, records: list[NewRecord]) -> History:
        """Append records whatever the log holds: what is true of any log, such as a stop."""
        self.calls.append(self.conversation, records)
        return self.read()

    @property
    def lock(self) -> threading.RLock:
        """What threads that share this take turns by.

        In a fork's child it may be held by a thread that is not there: it is made anew, and what was
        folded, perhaps half, is forgotten.
        """
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = threading.RLock()
            self.history, self._position = History(self.conversation), 0
        return self._lock

    @property
    def lane(self) -> tuple[int, str]:
        """Where jobs that may wait for this log stand in line: one that hangs holds up no other."""
        return id(self.store), self.conversation

    @property
    def position(self) -> int:
        """How many records were read."""
        return self._position

    @property
    def tells_at_once(self) -> bool:
        """Whether `moved` knows."""
        return bool(getattr(self.store, "tells_at_once", False))

    def moved(self) -> bool:
        """Say at once whether the log may be otherwise than it was read; a store that is slow to tell may."""
        if not self.tells_at_once:
            return True
        return bool(self.calls.wait(self.conversation, self._position, 0))

    def wait(self, timeout_s: float) -> None:
        """Block until the log grew past what was read, or the time is up."""
        wait = getattr(self.calls, "wait", None)
        if callable(wait):
            wait(self.conversation, self._position, timeout_s)
        else:
            time.sleep(min(timeout_s, POLL_S))
