"""Whose turns are over though their leases are not: holders that are known dead.

A lease says until when its holder need not be missed. There are two ways to know better:

1. The holder ran on this machine since it started (its lease names the boot), and the store says that
   it ended. That is known at once.
2. The lease reaches further ahead than any lease does: its writer's clock is ahead of ours, or ours was
   set back. Then this process waits a lease's length by a clock that nobody sets, from when it first
   saw that lease; a holder that lives renews three times meanwhile.

Both say something of a log as it was read. A holder may have ended its turn and then itself, just before
it was asked about: so who is told of a death reads on, and asks the history about the state then; after
the death nothing more of that holder can come. `Judge.state` does so.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from ledger.records import kinds, times
from ledger.turns.commands import LEASE_S
from ledger.turns.identity import ByIdentity
from ledger.turns.log import Log, ReadsAndAppends
from ledger.turns.world import World
from ledger.views import History
from ledger.views.states import State

MOST = 1024
"""How many leases are watched; then all are forgotten, and watched anew from when they are seen."""

Death = frozenset[tuple[str, int]]
"""Holders known dead, each with the attempt that it held."""

_NOBODY: Death = frozenset()


class _Watched(NamedTuple):
    lease: tuple[int, str, int, str]
    """Its place, holder, attempt and `until`."""
    since: float
    """When it was first seen, by the monotonic clock."""


class Judge:
    """Says which holders are known dead. One for a store in a process; threads may share it."""

    def __init__(self, store: ReadsAndAppends, world: World) -> None:
        self._is_dead = getattr(store, "is_dead", None)
        self.world = world
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._stood: dict[tuple[str, str], _Watched] = {}

    def state(self, log: Log, turn: str) -> State:
        """Read the log, and return a turn's state with what is known of its holder.

        Raises: turn-unknown; and as reading does.
        """
        dead = self.dead(log.read(), turn)
        history = log.read() if dead else log.history
        return history.state(turn, now=self.world.now(), dead=dead)

    def dead(self, history: History, turn: str) -> Death:
        """Return the holder and attempt of a turn's last lease if they are known dead, else nothing.

        Nothing is asked or noted about a turn that does not run by its records.
        Args: history: as it was just read; read again when the answer is not empty (see above).
        Raises: turn-unknown.
        """
        node = history.node(turn)
        if node.lease is None or history.state(turn, now=self.world.now()) != "running":
            return _NOBODY
        return self.dead_holder(history.conversation, node.lease, node.lease_seq)

    def dead_holder(self, conversation: str, lease: kinds.Lease, seq: int) -> Death:
        """Return the holder and attempt of a lease if they are known dead, else nothing.

        Args: lease: the last one of a turn that runs by its records. seq: its place in the log.
        """
        until, now = times.from_text(lease.until), self.world.now()
        ahead = until is not None and until - now > timedelta(seconds=LEASE_S)
        over = self.ended_here(lease) or self._stood_still(conversation, lease, seq, ahead=ahead)
        return frozenset({(lease.holder, lease.attempt)}) if over else _NOBODY

    def ended_here(self, lease: kinds.Lease) -> bool:
        """Say whether a lease's holder ran on this machine since it started, and is known to have ended."""
        if lease.boot is None or not callable(self._is_dead) or lease.boot != self.world.boot():
            return False
        return self._is_dead(lease.holder) is True

    def stood_s(self, history: History, turn: str) -> float:
        """Return for how many seconds this process has known a turn's last lease to be the last."""
        lease = history.node(turn).lease
        if lease is None:
            return 0.0
        place, now = (history.conversation, turn), self.world.monotonic()
        this = history.node(turn).lease_seq, lease.holder, lease.attempt, lease.until
        watched = self._stood.get(place)
        if watched is None or watched.lease != this:
            if len(self._stood) >= MOST:
                self._stood = {}
            watched = self._stood[place] = _Watched(this, now)
        return now - watched.since

    def _stood_still(self, conversation: str, lease: kinds.Lease, seq: int, *, ahead: bool) -> bool:
        """Say whether a lease that reached too far ahead is still the last one a lease's length later."""
        place = conversation, lease.turn
        this = seq, lease.holder, lease.attempt, lease.until
        watched = self._watched.get(place)
        if watched is None or watched.lease != this:
            if ahead:
                self._watch(place, _Watched(this, self.world.monotonic()))
            return False
        return self.world.monotonic() - watched.since >= LEASE_S

    def _watch(self, place: tuple[str, str], watched: _Watched) -> None:
        if len(self._watched) >= MOST:
            self._watched = {}
        self._watched[place] = watched


_judges: ByIdentity[Judge] = ByIdentity()


def judge_for(log: Log, world: World) -> Judge:
    """Return the judge of a log's store in this process: what it watched is known to whoever asks next."""
    return judge_of(log.store, log.calls, world)


def judge_of(store: ReadsAndAppends, calls: Any, world: World) -> Judge:
    """Return the judge of a store. Args: calls: the store with methods that block."""
    known = _judges.get(store)
    if known is None or known.world is not world:
        known = Judge(calls, world)
        _judges.set(store, known)
    return known
