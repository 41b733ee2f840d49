"""Which turns of a store's logs nobody runs, told without reading a log again that did not change.

A worker asks it all the time, and nearly always nothing is new. So this process remembers of each log how it looked
(`stores.marks`), how far it was read, and the last lease of each turn that has no end. A log that looks as it did is
not touched; of one that grew, what was added is read.

A turn can come to be interrupted though its log does not change: its lease runs out, its holder dies. So what is
remembered is no answer, but what the answer is made of; it is made anew each time, by the clock.

Must stay in step: `views.history` (which record of a turn counts) and `views.states.unended`. It may hold a turn for
one without an end that has one: then the log is read once more. Never the other way round.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ledger.errors import LedgerError, StoreUnsupported
from ledger.records import kinds
from ledger.stores.base import Since
from ledger.turns import loops
from ledger.turns.commands import UNATTENDED
from ledger.turns.identity import ByIdentity
from ledger.turns.judging import judge_of
from ledger.turns.world import world_of
from ledger.views import states


class Logs(Protocol):
    """Logs that tell whether they changed."""

    def looks(self) -> dict[str, str]:
        """Return how each log looks now, by conversation: see `stores.marks`."""
        ...

    def since(self, conversation: str, mark: str = "") -> Since:
        """Return what a conversation holds beyond a mark, or all of it."""
        ...


class Open(NamedTuple):
    """A turn without an end."""

    lease: kinds.Lease | None = None
    lease_seq: int = 0
    waits: bool = False
    """Whether it waited for a person after that."""


class Seen(NamedTuple):
    """What was seen of a log."""

    look: str
    mark: str
    records: int
    """How many were read."""
    open: dict[str, Open]
    asked: Hashable = None
    """For whom the turns in `left` are left."""
    left: Mapping[str, str] = {}
    """Those that cannot be gone on with as the log is, and why."""


_known: ByIdentity[dict[str, Seen]] = ByIdentity()
"""What this process has seen of the logs of a store."""


class Unended:
    """The turns without an end in a store's logs, as this process knows them."""

    def __init__(self, store: Any) -> None:
        calls = loops.blocking(store)
        self._store = store
        tells = all(callable(getattr(calls, name, None)) for name in ("looks", "since"))
        self._logs: Logs | None = calls if tells else None
        self._list = getattr(calls, "conversations", None)
        self._judge = judge_of(store, calls, world_of(store))
        seen = _known.get(store)
        if seen is None:
            _known.set(store, seen := {})
        self._seen = seen

    def looks(self) -> dict[str, str]:
        """Return how each log looks now, those without a record perhaps among them, in order of their names.

        Raises: store-unsupported: the store does not list its conversations.
        """
        if not callable(self._list):
            raise StoreUnsupported(store=type(self._store).__name__, method="conversations")
        if self._logs is None:
            return dict.fromkeys(self._list(), "")
        found = self._logs.looks()
        for name in list(self._seen):
            if name not in found:
                self._seen.pop(name, None)
        return dict(sorted(found.items()))

    def see(self, conversation: str, look: str) -> Seen | None:
        """Return what there is of a log that looks so, reading what was added; None: it has to be read otherwise."""
        known = self._seen.get(conversation)
        if self._logs is None or (known is not None and known.look == look):
            return known
        try:
            seen = _read(self._logs, conversation, known)
        except LedgerError:
            self._seen.pop(conversation, None)
            return None  # Whoever reads it is told why.
        self._seen[conversation] = seen
        return seen

    def left(self, conversation: str, seen: Seen, asked: Hashable) -> dict[str, str] | None:
        """Return the turns that nobody runs, and why they cannot be gone on with; None: that is not known of them all.

        Args: asked: who wants to know: by whom they could be gone on with.
        """
        nobody = [turn for turn, one in seen.open.items() if self._is_left(conversation, one)]
        if nobody and (seen.asked != asked or not all(turn in seen.left for turn in nobody)):
            return None
        return {turn: seen.left[turn] for turn in nobody}

    def note(self, conversation: str, seen: Seen, asked: Hashable, left: Mapping[str, str]) -> None:
        """Remember, until the log changes, which turns cannot be gone on with, and why.

        They are of the log as it was after it was seen so. If it was seen otherwise meanwhile, they may be older
        than that, and are not remembered.
        """
        if self._seen.get(conversation) is seen:
            self._seen[conversation] = seen._replace(asked=asked, left=left)

    def _is_left(self, conversation: str, one: Open) -> bool:
        now = self._judge.world.now()
        state = states.unended(one.lease, waits=one.waits, now=now)
        if state == "running" and one.lease is not None:
            return bool(self._judge.dead_holder(conversation, one.lease, one.lease_seq))
        return state in UNATTENDED


def _read(logs: Logs, conversation: str, known: Seen | None) -> Seen:
    """Read on in a log, some at a time if the store gives it so."""
    seen = known or Seen("", "", 0, {})
    while True:
        found = logs.since(conversation, seen.mark)
        before, count = ({}, 0) if found.whole else (dict(seen.open), seen.records)
        count = fold(before, found.records, count)
        is_part = not found.look and found.mark not in ("", seen.mark)
        seen = Seen(found.look, found.mark, count, before)
        if not is_part:
            return seen


def fold(turns: dict[str, Open], records: Iterable[Any], count: int) -> int:
    """Take in the records after so many. Returns: how many there are then."""
    for record in records:
        count += 1
        if isinstance(record, Mapping):
            record = kinds.of(record, count)
        if isinstance(record, kinds.Turn):
            turns.setdefault(record.turn, Open())
        elif isinstance(record, kinds.Ended):
            turns.pop(record.turn, None)
        elif isinstance(record, kinds.Lease) and record.turn in turns:
            turns[record.turn] = Open(record, count)
        elif isinstance(record, kinds.Waiting) and record.turn in turns:
            turns[record.turn] = turns[record.turn]._replace(waits=True)
    return count
