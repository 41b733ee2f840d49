"""An index is brought up to the logs: what looks otherwise is read from where it was left, the rest is not touched.

A log is read inside the transaction that writes what it says. So who erases from a log and then takes the
conversation out of the index comes after who had read it before, and nothing forgotten comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from ledger.catalog.index import Index
from ledger.catalog.projection import project
from ledger.catalog.rows import ConversationRow, TurnRow
from ledger.errors import LedgerError, StoreUnsupported
from ledger.stores.base import Position, Records, Since

_AT_ONCE = 4_000
"""How many records are taken, at least, before others may write to the index."""


class Logs(Protocol):
    """Logs as a refresh needs them."""

    def looks(self) -> dict[str, str]:
        """Return how each log looks now, by conversation: see `stores.marks`."""
        ...

    def since(self, conversation: str, mark: str = "") -> Since:
        """Return what a conversation holds beyond a mark, or all of it."""
        ...


class _Read:
    """The logs of a store that cannot tell whether they changed: all is read, each time."""

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self._times = 0

    def looks(self) -> dict[str, str]:
        self._times += 1
        return {name: str(self._times) for name in self._calls.conversations()}

    def since(self, conversation: str, mark: str = "") -> Since:
        records = getattr(self._calls, "scan", self._calls.read)(conversation, 0)
        found: Records[Any] = Records(records, Position(len(records)))
        return Since(found, str(self._times), "", whole=True)


def logs_of(store: Any, calls: Any) -> Logs:
    """Return the logs of a store. Args: calls: the store with methods that block.

    Raises: store-unsupported: it does not list its conversations.
    """
    if all(callable(getattr(calls, name, None)) for name in ("looks", "since")):
        told: Logs = calls
        return told
    if not callable(getattr(calls, "conversations", None)):
        raise StoreUnsupported(store=type(store).__name__, method="conversations")
    return _Read(calls)


def refresh(index: Index, logs: Logs, only: Iterable[str] | None = None) -> dict[str, LedgerError]:
    """Bring an index up to the logs. Returns: the conversations that cannot be read, and why.

    Args: only: conversations that are read, whatever the others are; None: all that changed.
    """
    changed, gone = index.stale(logs.looks)
    if only is not None:
        wanted = set(only)
        changed, gone = [n for n in changed if n in wanted], [n for n in gone if n in wanted]
    failed: dict[str, LedgerError] = {}
    if gone:
        with index.writing():
            index.remove(gone)
    left = changed[::-1]
    while left:
        with index.writing():
            taken = 0
            while left and taken < _AT_ONCE:
                name = left.pop()
                try:
                    read, is_all = _take(index, logs, name)
                    taken += read
                    if not is_all:
                        left.append(name)
                except LedgerError as error:
                    failed[name] = error
                    index.remove([name])
    return failed


def _take(index: Index, logs: Logs, conversation: str) -> tuple[int, bool]:
    """Take what a log holds beyond what was taken. Returns: how many records that were, and a little; if it was all."""
    _, mark = index.place(conversation)
    found = logs.since(conversation, mark)
    before = None if found.whole else index.row(conversation)
    if before is None:
        changes = project(ConversationRow(id=conversation), found.records, _nothing)
    else:
        changes = project(before, found.records, lambda turn: index.turn(conversation, turn))
    index.write(changes, found.look, found.mark, whole=before is None)
    is_part = not found.look and found.mark not in ("", mark)
    return len(found.records) + 10, not is_part


def _nothing(turn: str) -> TurnRow | None:
    return None
