"""What forgetting a turn removed, what stays, and what nobody can promise."""

from __future__ import annotations

from typing import Any

import msgspec

from ledger.stores.base import Erased
from ledger.views import History
from ledger.views.nodes import readable_reads

_LISTED = 8


class Receipt(msgspec.Struct, kw_only=True):
    """What forgetting a turn did. `str` of it is text for people."""

    conversation: str
    turn: str
    erased: Erased
    """What the store removed, and what stayed where it was."""
    merges: list[str] = []
    """Turns that merged it: they keep their own copy of what it was asked, and what they made of its answer."""
    shown_to: list[str] = []
    """Other turns that rest on it: it was shown to them, so what they say may repeat it."""
    summaries: list[str] = []
    """Entries that named it and went with it, as `plugin/kind`."""
    had_request: bool = False
    """Whether it was sent under a request id, which is free again."""

    def to_dict(self) -> dict[str, Any]:
        """Return all this as JSON data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    @property
    def not_promised(self) -> list[str]:
        """What may still hold what the turn said, as sentences."""
        told = [
            "Backups, copies, exports, and the memory of processes that read it are not changed."
        ]
        if self.had_request:
            told.append("Its request id is free: the same request, if it comes again, runs anew.")
        if self.merges:
            told.append(f"Merges keep their own copy: {_listed(self.merges)}.")
        if self.shown_to:
            told.append(f"Turns that rest on it may repeat it: {_listed(self.shown_to)}.")
        erased = self.erased
        if erased.unsealed:
            places = _listed(erased.unsealed)
            told.append(f"Lines of another writer were overwritten but are not sealed: {places}.")
        if erased.unreadable:
            places = _listed(erased.unreadable)
            told.append(f"Lines that cannot be read name it, and stay: {places}.")
        if erased.attachments_kept:
            kept = _listed(erased.attachments_kept)
            told.append(f"Attachments stay that something else names: {kept}.")
        return told

    def __str__(self) -> str:
        erased = self.erased
        records = ", ".join(f"{count} {kind}" for kind, count in sorted(erased.records.items()))
        lines = [
            f"turn {self.turn} of {self.conversation} is forgotten",
            f"  records: {records or 'none were left to overwrite'}, {erased.size_bytes} bytes",
        ]
        lines += [f"  entry: {name}" for name in self.summaries]
        lines += [f"  file: {name}" for name in erased.files]
        lines += [f"  attachment: {sha256}" for sha256 in erased.attachments]
        return "\n".join([*lines, "not promised:", *(f"  {told}" for told in self.not_promised)])


def receipt(history: History, erased: Erased) -> Receipt:
    """Return the receipt of an erasure. Args: history: as it was before."""
    turn = erased.turn
    merges = [node.id for node in history.every() if turn in readable_reads(history, node)]
    influenced = history.lineage(turn).influenced
    return Receipt(
        conversation=erased.conversation,
        turn=turn,
        erased=erased,
        merges=merges,
        shown_to=[user for user in influenced if user not in merges],
        summaries=_summaries(history, erased),
        had_request=history.node(turn).record.request_id is not None,
    )


def _summaries(history: History, erased: Erased) -> list[str]:
    places = set(erased.entries)
    return [
        f"{entry.plugin}/{entry.entry}"
        for kept in history.kept.values()
        for entry in kept
        if entry.seq in places
    ]


def _listed(names: list[Any]) -> str:
    more = len(names) - _LISTED
    return ", ".join(map(str, names[:_LISTED])) + (f" and {more} more" if more > 0 else "")
