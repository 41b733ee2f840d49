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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from ledger import stack
from ledger.errors import DamageWarning, StoreGone, StoreUnsupported
from ledger.records import canonical, codec, redacting, values
from ledger.records.kinds import NewRecord
from ledger.records.redacting import Redact
from ledger.stores.base import Erased, Position
from ledger.turns import attachments, loops
from ledger.turns.attachments import Attachment, Blobs
from ledger.views import History
from ledger.views.late import LateHistory, complete

LAST = 256
"""How many of its last records are read of a long log at first."""
POLL_S = 0.1
"""How often a store without `wait` is asked again."""
SHORTEST_HASH = 4
"""How many digits of a hash name an attachment, at least."""
PUTS = 10
"""How often attachments are put again that others removed before they were named."""


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


class Redacted:
    """Events whose content is redacted before they are kept."""

    def __init__(self, kept_in: Any, redact: Redact) -> None:
        self._kept_in = kept_in
        self._redact = redact

    def extend(self, events: Iterable[Mapping[str, Any]]) -> Any:
        """Add events of one turn at the end of its log, all or none. Raises: record-invalid: `redact` failed."""
        return self._kept_in.extend([redacting.event(event, self._redact) for event in events])

    @property
    def claim(self) -> Any:
        """Gives a later writer its number; None: they cannot be gone on with."""
        return getattr(self._kept_in, "claim", None)

    def read(self, tree: str, after: Any = None) -> list[dict[str, Any]]:
        """Return the events after a place, in order. Raises: event-unknown."""
        found: list[dict[str, Any]] = self._kept_in.read(tree, after)
        return found

    def wait(self, tree: str, after: Any, timeout: float) -> bool:
        """Block until there is an event after a place, or `timeout` seconds passed."""
        return bool(self._kept_in.wait(tree, after, timeout))


class Begun:
    """Which log a verb began with: what it records goes into no other that has the same id.

    So what was under way when a conversation was deleted does not make it anew; what begins afterwards may.
    """

    def __init__(self) -> None:
        self._at: int = 0

    def go_on(self, conversation: str, found: int) -> None:
        """Note the log as it is found. Raises: store-gone: it is not the one that was found before."""
        if _replaced(self._at, found):
            raise StoreGone(conversation=conversation, after=int(self._at), found=int(found))
        self._at = found


def _replaced(before: int, found: int) -> bool:
    """Say whether a log was deleted, or made anew, since it was found at a position.

    Record 1 tells; when it is erased its time stays, and its salt goes. Of a store that gives bare counts only a
    log that is shorter is known for another one.
    """
    if not before or not found:
        return bool(before)
    was, now = (getattr(place, "incarnation", None) for place in (before, found))
    if was is None or now is None:
        return found < before
    unreadable = "" in (was[0], now[0])  # Damaged, and mended since or yet to be.
    return not unreadable and was != now and now != (was[0], None)


class Log:
    """A conversation in a store, with what was folded of it so far. Safe to share by threads.

    All that a conversation writes goes through it: records by `append`, events by `events`. So here, and nowhere
    else, `redact` is applied to what is written.
    """

    def __init__(
        self, store: ReadsAndAppends, conversation: str, redact: Redact | None = None
    ) -> None:
        self.store = store
        """The store as the caller gave it."""
        self.calls: Any = loops.blocking(store)
        """The store with methods that block, whatever the caller gave."""
        self.conversation = conversation
        self.redact = redact
        """What replaces each text before it is written; None: nothing."""
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.history = History(conversation)
        self._position: int = 0
        self._erasures: str | None = None
        """What the store says of turns that were taken out; None: it does not say."""
        self._seen: str | None = None
        """How the log looked before it was read from its start; None: it was not looked at."""
        self._scan = getattr(self.calls, "scan", self.calls.read)
        self._warned = False

    def read(self) -> History:
        """Fold what was appended since the last read, and return the history.

        A log that was deleted or replaced meanwhile is read again from its start.
        """
        with self.lock:
            if self._was_erased_from() or self._may_be_mended():  # Looked first, then read.
                self.history, self._position = History(self.conversation), 0
            history = self.history
            if self._position and not self.moved():
                return history
            look = None if self._position else self._look()
            try:
                history, records = self._news(history)
            except Exception as error:
                if getattr(error, "code", None) != "store-gone":
                    raise
                history = History(self.conversation)
                records = self._scan(self.conversation, 0)
            try:
                history.extend(records)
                position = getattr(records, "position", history.position)
                # Only now: the history is looked at without the lock, and is to be whole.
                self.history, self._position, self._seen = history, position, look
            except BaseException:  # An interrupt, say: some of them are folded, nobody knows which.
                self.history, self._position = History(self.conversation), 0
                raise
            if not self._warned and history.is_damaged:
                self._warn()
            return history

    def read_at_once(self) -> History | None:
        """As `read`, for who may not wait: None where another thread is at this log, which may take long."""
        lock = self.lock
        if not lock.acquire(blocking=False):
            return None
        try:
            return self.read()
        finally:
            lock.release()

    def read_anew(self) -> History:
        """As `read`, but what was taken out meanwhile is seen also where the store does not tell of it."""
        with self.lock:
            if self._tells_of_erasures() is None:
                self.forget()
            return self.read()

    def _tells_of_erasures(self) -> Callable[[str], str] | None:
        ask: Callable[[str], str] | None = getattr(self.store, "erasures", None)
        return None if inspect.iscoroutinefunction(ask) else ask

    def _was_erased_from(self) -> bool:
        """Say whether a turn was taken out since this was asked last: what was folded of it is to be forgotten."""
        ask = self._tells_of_erasures()
        if ask is None:
            return False
        before, self._erasures = self._erasures, ask(self.conversation)
        return before not in (None, self._erasures)

    def _may_be_mended(self) -> bool:
        """Say whether lines that were lost may be there again: so each change of a damaged log says but our appends.

        Seals and positions do not tell, since those behind a line that is mended stay as they are.
        """
        if not self.history.is_damaged:
            return False
        look = self._look()
        return look is not None and look != self._seen

    def _look(self) -> str | None:
        """Return how the log looks now; None: the store does not say."""
        ask = getattr(self.store, "look", None)
        if ask is None or inspect.iscoroutinefunction(ask):
            return None
        return str(ask(self.conversation))

    def _news(self, history: History) -> tuple[History, Any]:
        """Return what was appended since the last read, and the history to fold it into.

        The first read of a long log is of its end; what stands before is read when a question needs it.
        """
        ends = getattr(self.calls, "scan_ends", None)
        found = None if self._position or ends is None else ends(self.conversation, LAST)
        if found is None:
            return history, self._scan(self.conversation, self._position)
        complete = partial(self._complete, found.before)
        late = LateHistory(
            self.conversation,
            found.before,
            found.first,
            complete,
            erased_from=self._erasures != "",
            mentions=self._asks("mentions"),
            sent=self._asks("sent"),
            index=found.log_index,
            lock=lambda: self.lock,
        )
        return late, found.last

    def _asks(self, name: str) -> Callable[[Any], Any] | None:
        ask = getattr(self.calls, name, None)
        return partial(ask, self.conversation) if callable(ask) else None

    def _complete(self, before: Position, history: LateHistory) -> None:
        """Read a log from its start, for a history that was begun at a place."""
        with self.lock:
            if not isinstance(history, LateHistory):
                return  # Another thread did, meanwhile.
            look = self._look()
            records = self._scan(self.conversation, 0)
            found: Position = records.position
            if found.incarnation != before.incarnation:
                place = history.position
                raise StoreGone(conversation=self.conversation, after=place, found=int(found))
            if history is self.history:
                self._scan(self.conversation, self._position)  # Or it was replaced: store-gone.
            # All of them: where lines were lost, the places that seals name at the end are not those that are counted.
            history.become(records)
            if history is self.history:
                self._position, self._seen = found, look
            if not self._warned and history.is_damaged:
                self._warn()

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

    def append(
        self,
        decide: Callable[[History], list[NewRecord]],
        given: Sequence[Attachment] = (),
        *,
        last: bool = False,
        begun: Begun | None = None,
    ) -> History:
        """Append what `decide` answers to the log as it is, and return the history with it.

        `decide` is asked again, with a newer history, as long as others append first; it refuses by
        raising, and then nothing is appended. No records: nothing is appended.
        Args: given: the attachments that the records name: the store has them before. last: nothing is
        asked afterwards: the history is returned as it was decided on, and what was appended is folded when it is read.
        begun: which log it is to go into; None: into any, as what names a turn of it, and asks whether that is there.
        Raises: store-gone: that log was deleted, or replaced.
        """
        puts = PUTS
        if given and begun is not None:
            self.begin(begun)  # To keep them may take long.
        while True:
            self.keep(given)
            with self.lock:
                history = self.read()
                position = self._position
                if begun is not None:
                    begun.go_on(self.conversation, position)
                records = self._redacted(decide(history))
                if position != self._position:
                    continue  # It became whole meanwhile, and newer with it.
                if not records:
                    return history
                stack.check_room()
                try:
                    count = self.calls.append(self.conversation, records, expect=self._position)
                except Exception as error:
                    code = getattr(error, "code", None)
                    if code == "attachment-missing" and given and puts:
                        puts -= 1  # Whoever forgot the last turn that named them came in between.
                    elif code != "store-conflict":
                        raise
                    continue
                return history if last else self._add_own(records, count)

    def begin(self, begun: Begun) -> History:
        """Read the log that a verb begins with, or goes on with, and return its history. Raises: store-gone."""
        with self.lock:
            history = self.read()
            begun.go_on(self.conversation, self._position)
            return history

    def _add_own(self, records: list[NewRecord], count: int) -> History:
        """Fold records that were appended just now; they are as they were given, so they are not read again."""
        history = self.history
        if history.position != self._position or count != self._position + len(records):
            return self.read()
        try:
            # Its caller may stand deep in its own stack, and what was appended stands.
            own = stack.shallow(lambda: codec.structs_of(records, history.position))
            history.extend(own)
            self._position = count
            if history.is_damaged:
                self._seen = self._look()
        except BaseException:
            self.history, self._position = History(self.conversation), 0
            raise
        return history

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
        if not fits:
            return None
        return found if self.redact is None else Redacted(found, self.redact)

    def confirm(self) -> None:
        """Return when all that was read is as durable as the store makes it, whoever recorded it."""
        self.calls.append(self.conversation, [])

    def erase(
        self, turn: str, decide: Callable[[History], list[NewRecord]]
    ) -> tuple[History, Erased]:
        """Append what `decide` answers, then erase a turn from the log as it is.

        Everything is decided again as long as others append in between.
        Returns: the history as it was before, whole, and what the store removed.
        Raises: store-unsupported: the store cannot erase; nothing was appended.
        """
        erase = getattr(self.calls, "erase", None)
        if not callable(erase):
            raise StoreUnsupported(store=type(self.store).__name__, method="erase")

        def decide_on_all(history: History) -> list[NewRecord]:
            complete(history)  # Afterwards what went can be read no more.
            return decide(history)

        while True:
            with self.lock:
                history = self.append(decide_on_all)
                if isinstance(history, LateHistory):
                    continue  # Somebody else erased in between: it is read anew.
                stack.check_room()
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

    # -- attachments

    @property
    def blobs(self) -> Blobs | None:
        """Where the store keeps attachments; None: it keeps none, or not this way."""
        found = getattr(self.store, "blobs", None)
        methods = [getattr(found, name, None) for name in ("put", "open", "has")]
        fits = all(map(callable, methods)) and not any(map(inspect.iscoroutinefunction, methods))
        return found if fits else None

    def keep(self, given: Iterable[Attachment]) -> None:
        """Have the store keep attachments, durably; those that it was seen to keep cost next to nothing.

        Raises: store-unsupported: it keeps none; as `Attachment.keep`.
        """
        for attachment in given:
            blobs = self.blobs
            if blobs is None:
                raise StoreUnsupported(store=type(self.store).__name__, method="blobs")
            attachment.keep(blobs)

    def attachments(self) -> list[Attachment]:
        """Return every attachment that a record names, each once, in log order."""
        found: dict[bytes, Any] = {}
        for record in self.calls.read(self.conversation):
            for reference in values.references_in(record):
                found.setdefault(canonical.canonical(reference), reference)
        return [self.raised(reference) for reference in found.values()]

    def attachment(self, named: str | Mapping[str, Any]) -> Attachment:
        """Return the attachment that a reference, hash, part of a hash, or file name means.

        Raises: LookupError: none, or several.
        """
        if isinstance(named, Mapping):
            if not values.is_reference(plain := dict(named)):
                raise LookupError("this is no reference to an attachment")
            only: Attachment = self.raised(plain)
            return only
        every = self.attachments()
        fits = [each for each in every if named in (each.sha256, each.name)]
        if not fits and len(named) >= SHORTEST_HASH:
            fits = [each for each in every if each.sha256.startswith(named)]
        if len({each.sha256 for each in fits}) == 1:
            return fits[0]
        told = (
            f"{len(fits)} attachments; name one by its SHA-256" if fits else "no attachment of it"
        )
        known = ", ".join(f"{each.sha256[:12]} {each.name or ''}".strip() for each in fits or every)
        raise LookupError(
            f"conversation {self.conversation}: {named!r} names {told}: {known or 'it has none'}"
        )

    def raised(self, value: Any, given: Iterable[Attachment] = ()) -> Any:
        """Return a recorded value with an `Attachment` for each reference, read from this store."""
        return (
            attachments.raised(value, self.blobs, given) if values.has_references(value) else value
        )

    # -- redacting

    def redacted(self, value: Any, path: str) -> Any:
        """Return a value as it will be written, for who needs to know before: to compare, or to hash.

        Raises: record-invalid: `redact` failed.
        """
        return value if self.redact is None else redacting.texts(value, self.redact, path)

    def _redacted(self, records: list[NewRecord]) -> list[NewRecord]:
        redact = self.redact
        return records if redact is None else [redacting.record(r, redact) for r in records]

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

    def has_word(self) -> bool:
        """Say at once whether there may be news: as the store has heard, where it listens; else as `moved`."""
        told = getattr(self.store, "has_word", None)
        if self.tells_at_once or not callable(told):
            return self.moved()
        return bool(told(self.conversation, self._position))

    def wait(self, timeout_s: float) -> None:
        """Block until the log grew past what was read, or the time is up."""
        wait = getattr(self.calls, "wait", None)
        if callable(wait):
            wait(self.conversation, self._position, timeout_s)
        else:
            time.sleep(min(timeout_s, POLL_S))
