"""functai's conversations kept in a store of ours.

    tutor.conversation("alex", store=ledger.adapters.functai.store(s))

functai tells a conflict by its own error class, so ours are raised again as that class, with the
same code. Folders need no adapter: both libraries read and write the same files.

What is watched of a running turn (`turn.events()`) is kept in the store's own events. A store whose
place for them cannot be used, or that has none, only lacks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from functai.errors import ConversationError
from functai.errors import EventRefused as FunctaiEventRefused

from ledger.errors import EventRefused, LedgerError, RecordInvalid, RecordTooLarge
from ledger.records import values
from ledger.records.events import Answer, Event, Place
from ledger.stores.base import Events, LedgerStore

_CONTENT = frozenset({"inputs", "input", "question", "output", "reason", "value"})
"""The keys of events that hold what a turn holds."""


def store(kept_in: LedgerStore) -> FunctaiStore:
    """Return a store of ours as functai takes one (`store=`)."""
    return FunctaiStore(kept_in)


class FunctaiStore:
    """A store of ours under functai's protocol and with its errors."""

    def __init__(self, kept_in: LedgerStore) -> None:
        self.kept_in = kept_in
        self.durability = kept_in.durability
        self.persistent = kept_in.persistent

    @cached_property
    def events(self) -> FunctaiEvents | None:
        """The event logs of its turns; None where none can be kept."""
        kept_in: Events | None = getattr(self.kept_in, "events", None)
        try:
            if kept_in is not None:
                kept_in.read("any")
        except LedgerError:
            return None
        return FunctaiEvents(kept_in) if kept_in is not None else None

    def append(
        self,
        conversation: str,
        records: Sequence[Mapping[str, Any]],
        *,
        expect: int | None = None,
    ) -> int:
        """Add records at the end; see `ledger.stores.base.Store.append`.

        The end of a turn whose answer cannot be kept exactly is kept as `failed`, saying why, so that
        nobody waits for a turn that ended: functai itself would give the end up.
        Raises: functai's ConversationError with the code of ours.
        """
        with _as_functai():
            try:
                return int(self.kept_in.append(conversation, records, expect=expect))
            except (RecordInvalid, RecordTooLarge) as error:
                if len(records) == 1 and records[0].get("kind") == "ended":
                    failed = _failed(records[0], error)
                    self.kept_in.append(conversation, [failed], expect=expect)
                raise

    def read(self, conversation: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the records after a position; see `ledger.stores.base.Store.read`."""
        with _as_functai():
            return list(self.kept_in.read(conversation, after))

    def wait(self, conversation: str, after: int, timeout: float) -> None:
        """Block until a record after `after` exists, or the time (in seconds) is up."""
        with _as_functai():
            self.kept_in.wait(conversation, after, timeout)

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that hold a record."""
        with _as_functai():
            return self.kept_in.conversations()

    def __repr__(self) -> str:
        return f"<{self.kept_in!r} for functai>"


class FunctaiEvents:
    """The events of a store of ours under functai's protocol and with its errors.

    An event whose content cannot be kept exactly is kept without it (`content: false`), so that who
    watches sees the turn end.
    """

    batches = True
    writer = None

    def __init__(self, kept_in: Events) -> None:
        self.kept_in = kept_in

    def append(self, event: Mapping[str, Any]) -> Answer:
        """Add an event; see `ledger.stores.base.Events.append`."""
        return self.extend([event])

    def extend(self, events: Sequence[Mapping[str, Any]]) -> Answer:
        """Add events of one tree; see `ledger.stores.base.Events.extend`."""
        with _as_functai():
            return self.kept_in.extend([_keepable(event) for event in events])

    def claim(self, tree: str) -> dict[str, Any]:
        """Give a later writer its number; see `ledger.stores.base.Events.claim`."""
        with _as_functai():
            return self.kept_in.claim(tree)

    def read(self, tree: str, after: Place | None = None) -> list[Event]:
        """Return the events after a place; see `ledger.stores.base.Events.read`."""
        with _as_functai():
            return self.kept_in.read(tree, after)

    def finished(self, tree: str) -> bool:
        """Say whether the log has its last event."""
        with _as_functai():
            return self.kept_in.finished(tree)


def _failed(ended: Mapping[str, Any], error: LedgerError) -> dict[str, Any]:
    """Return the record of a turn's end without what the program gave, as a failure."""
    kept = ("functai_conversation", "kind", "at", "turn", "saw", "model", "seconds", "attempt")
    told = {"type": type(error).__name__, "code": error.code, "message": error.message()}
    return {
        **{name: ended[name] for name in kept if name in ended},
        "state": "failed",
        "error": told,
        "usage": ended.get("usage", {}),
    }


def _keepable(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event, without its content if that is no value that we keep."""
    try:
        values.check(event)
    except (RecordInvalid, RecordTooLarge):
        if isinstance(event, dict):
            return _without_content(event)
    return event


def _without_content(event: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in event.items() if name not in _CONTENT}
    if isinstance(event.get("inputs"), dict):
        kept["omitted"] = {"inputs": list(event["inputs"]), "outputs": []}
    if isinstance(event.get("error"), dict):
        error = event["error"]
        kept["error"] = {name: error[name] for name in ("type", "code") if name in error}
    return {**kept, "content": False}


@contextmanager
def _as_functai() -> Iterator[None]:
    try:
        yield
    except EventRefused as error:
        raise FunctaiEventRefused(error.code, error.message(), event=error.event) from error
    except LedgerError as error:
        raise ConversationError(error.code, error.message()) from error
