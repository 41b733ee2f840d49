"""The events of running turns beside a store: the rules, asked about a log that is held still, and
logs in memory. `event_files` has those in files; `ledger.records.events` says what the rules are.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ledger.records import events as rules
from ledger.records.events import Answer, Event, Place
from ledger.stores import forks, handout, waking

T = TypeVar("T")


LOOK_S = 0.02
"""How often a log is looked at by who waits for events of another process."""


class Log(Protocol):
    """One log, as it is now."""

    def newest(self) -> Iterator[Event]:
        """Give its events, the last first."""

    def last(self) -> Event | None:
        """Return its last event, or the `outline` of it."""

    def writer(self) -> int:
        """Return the last writer number that was given for it."""

    def add(self, events: list[Event]) -> None:
        """Put events at its end."""

    def hand_to(self, writer: int) -> None:
        """Note the writer number that is given now."""


Fresh = Callable[[Log], list[Event]]
"""Decides which events a log is to keep now."""


class Waits(Protocol):
    """Who waits for a log to grow."""

    def wait(self, tree: str, moved: Callable[[], bool], timeout: float, /) -> bool:
        """Block until `moved` says so, or `timeout` seconds passed. Returns: whether it moved."""

    def wake(self, tree: str, /) -> None:
        """Have those who wait for a log look now."""


class EventLogs(ABC):
    """What both kinds are: the rules, asked about a log that is held still."""

    writes_at_once = False
    """Whether `write` waits for nobody, and for nothing that is far: then one thread may do it for many turns."""

    def __init__(self) -> None:
        self._waiters: Waits = waking.Waiters(LOOK_S)
        forks.join(self)

    @abstractmethod
    def _look(self, tree: str, work: Callable[[Log], T]) -> T:
        """Do work with a log to read."""

    @abstractmethod
    def _change(self, tree: str, work: Callable[[Log], T], *, waits: bool = True) -> T:
        """Do work with a log that nobody else changes meanwhile; nothing of it counts when it raises.

        Args: waits: whether others who change it are waited for; False counts only where it `writes_at_once`.
        """

    def append(self, event: Mapping[str, Any]) -> Answer:
        """Add an event at the end of its tree's log; see `extend`."""
        return self.extend([event])

    def extend(self, events: Iterable[Mapping[str, Any]]) -> Answer:
        """Add events of one tree at the end of its log, each judged as if it came alone; all or none.

        Returns: "kept"; "duplicate" when each is there already, so sending again does no harm.
        Raises: EventRefused, naming the first event that is refused. A store's errors: whether the
        events are kept is not known; send them again.
        Not promised: that they survive a fall of the machine; that of a batch whose write the system
        cut short no beginning is read.
        """
        batch: list[Any] = list(events)
        if not batch:
            return "duplicate"
        first = batch[0]
        tree = rules.check_tree(first.get("tree") if isinstance(first, Mapping) else None)

        def fresh(log: Log) -> list[Event]:
            return rules.fresh(batch, tree, log.newest, log.writer())

        # Again is harmless: what the first attempt kept is a duplicate for the second.
        new = handout.with_room(lambda: handout.shallow(lambda: self._extend(tree, fresh)))
        return self._told(tree, new)

    def write(self, events: Sequence[Event]) -> Answer:
        """Add events that one `Writer` made, as `extend`: they are not checked again, and nobody is waited for.

        Raises: as `extend`; store-busy at once.
        """
        if not events:
            return "duplicate"
        tree = events[0]["tree"]

        def fresh(log: Log) -> list[Event]:
            return rules.following(events, log.last(), log.newest, log.writer())

        new = handout.with_room(
            lambda: handout.shallow(lambda: self._extend(tree, fresh, waits=False))
        )
        return self._told(tree, new)

    def _told(self, tree: str, new: list[Event]) -> Answer:
        if not new:
            return "duplicate"
        self._waiters.wake(tree)
        return "kept"

    def _extend(self, tree: str, fresh: Fresh, *, waits: bool = True) -> list[Event]:
        def extend(log: Log) -> list[Event]:
            new = fresh(log)
            if new:
                log.add(new)
            return new

        return self._change(tree, extend, waits=waits)

    def claim(self, tree: str) -> dict[str, Any]:
        """Give a later writer its number, and refuse every earlier one from now on.

        Returns: `writer`, and `after`: the place of the last event, to go on from.
        Raises: event-unknown: there is no log. event-after-end: it has ended.
        """
        rules.check_tree(tree)
        return handout.with_room(lambda: self._claim(tree))

    def _claim(self, tree: str) -> dict[str, Any]:
        def claim(log: Log) -> dict[str, Any]:
            last = rules.check_claim(tree, handout.shallow(lambda: next(log.newest(), None)))
            writer = log.writer() + 1
            log.hand_to(writer)
            return {"writer": writer, "after": rules.position(last)}

        return self._change(tree, claim)

    def read(self, tree: str, after: Place | None = None) -> list[Event]:
        """Return the events after a place, in order, as fresh dicts; None: all. Never waits for a writer.

        Raises: event-unknown: the log has no event there; read from the beginning.
        """
        rules.check_tree(tree)
        return self._look(
            tree, lambda log: handout.shallow(lambda: rules.beyond(after, tree, log.newest()))
        )

    def wait(self, tree: str, after: Place | None, timeout: float) -> bool:
        """Block until there is an event after a place, or `timeout` seconds passed. Returns: whether.

        A place that the log does not have is answered as if there were one: `read` tells.
        """
        rules.check_tree(tree)
        seen: object = None

        def moved() -> bool:
            nonlocal seen
            before, seen = seen, self._sign(tree)
            if seen is not None and seen == before:
                return False
            last = self._last(tree)
            return last is not None and not rules.same(rules.position(last), after)

        return self._waiters.wait(tree, moved, timeout)

    def _sign(self, tree: str) -> object:
        """Return what is another value once the log is another, where that costs less than a look; else None."""
        return None

    def finished(self, tree: str) -> bool:
        """Say whether the log has its last event."""
        return rules.finished(self._last(rules.check_tree(tree)))

    def _last(self, tree: str) -> Event | None:
        return self._look(tree, lambda log: handout.shallow(lambda: next(log.newest(), None)))

    @abstractmethod
    def remove(self, tree: str) -> bool:
        """Remove a log. Returns: whether there was one.

        A writer that goes on with it is refused `event-gap`; only a `started` begins it anew.
        """

    @abstractmethod
    def before_fork(self) -> None:
        """Take what must not change while the process is copied."""

    def after_fork(self, *, child: bool) -> None:
        """In the child, leave to the parent who waits there."""
        if child:
            self._waiters = waking.Waiters(LOOK_S)


# -- in memory -------------------------------------------------------------------------------------


class MemoryLog:
    """The lines of one log, and its writer. Lines are only ever added, so reading needs no lock."""

    def __init__(self, tree: str) -> None:
        self.lines: list[bytes] = []
        self._tree = tree
        self._writer = rules.FIRST_WRITER

    def newest(self) -> Iterator[Event]:
        for at in range(len(self.lines) - 1, -1, -1):
            event = rules.of_line(self.lines[at], self._tree)
            if event is not None:
                yield event

    def writer(self) -> int:
        return self._writer

    def last(self) -> Event | None:
        return next(self.newest(), None)

    def add(self, events: list[Event]) -> None:
        self.lines += map(rules.line, events)

    def hand_to(self, writer: int) -> None:
        self._writer = writer


class MemoryEvents(EventLogs):
    """The events of running turns in this process's memory. For any number of threads."""

    writes_at_once = True

    def __init__(self) -> None:
        self._logs: dict[str, MemoryLog] = {}
        self._lock = threading.Lock()
        super().__init__()

    def _look(self, tree: str, work: Callable[[Log], T]) -> T:
        return work(self._logs.get(tree) or MemoryLog(tree))

    def _change(self, tree: str, work: Callable[[Log], T], *, waits: bool = True) -> T:
        with self._lock:
            log = self._logs.get(tree) or MemoryLog(tree)
            done = work(log)
            if log.lines:
                self._logs[tree] = log
            return done

    def remove(self, tree: str) -> bool:
        """Remove a log. Returns: whether there was one."""
        with self._lock:
            return self._logs.pop(tree, None) is not None

    def before_fork(self) -> None:
        """Let no thread be half-way through a change when the process is copied."""
        self._lock.acquire()

    def after_fork(self, *, child: bool) -> None:
        """Go on; in the child with a lock of its own, since who waited on the old one is not there."""
        super().after_fork(child=child)
        if child:
            self._lock = threading.Lock()
        else:
            self._lock.release()
