"""What a store is: two methods, `append` and `read`; the rest is optional.

A store keeps each conversation as an ordered list of records and never changes one. It does not know
what records mean. Other people's objects with these two methods are stores too, blocking or with
coroutines; ours also have `scan`, `looks`, `since`, `wait`, `conversations`, `delete`, `durability`,
`persistent`, `events`, `hold`, `is_dead`. A store that many machines share may have `now`: then its clock
decides about leases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from ledger.errors import StoreConflict
from ledger.records import kinds
from ledger.records.events import Answer, Event, Place
from ledger.records.undecoded import Part, Shallow, Undecoded

Incarnation = tuple[str, str | None]
"""(`at`, salt or None) of record 1: tells a conversation from one made anew under its id."""

T = TypeVar("T")


class Position(int):
    """How many records a conversation holds, and of which incarnation.

    An int in every other respect. Given back as `expect` or `after`, both are compared; a bare int
    compares the count only.
    """

    incarnation: Incarnation | None
    """None: the conversation held no record."""
    chain: str | None
    """What tells the log up to here from another of that length, where a store compares it; None: it does not say."""

    def __new__(
        cls, count: int, incarnation: Incarnation | None = None, chain: str | None = None
    ) -> Position:
        """Return a position of a count of records, in an incarnation."""
        position = super().__new__(cls, count)
        position.incarnation = incarnation
        position.chain = chain
        return position

    def __reduce__(self) -> tuple[Any, ...]:
        return Position, (int(self), self.incarnation, self.chain)


def agrees(given: int, found: Position) -> bool:
    """Say whether a position that a caller gives back is the one that is found.

    A bare int compares the count only, and so does a position of a conversation without records.
    """
    if not isinstance(given, Position) or given != found:
        return given == found
    if given.incarnation is not None and given.incarnation != found.incarnation:
        return False
    return None in (given.chain, found.chain) or given.chain == found.chain


def conflict(conversation: str, expect: int, found: int) -> StoreConflict:
    """Return the error for a log that is not where its caller expects it."""
    return StoreConflict(conversation=conversation, expected=int(expect), found=int(found))


def no_beginning(conversation: str, found: int) -> StoreConflict:
    """Return the error for a log that is no beginning of the one to be copied over it."""
    reason = (
        f"holds {found} records in the target that are no beginning of the source's: it went on there, or a "
        "turn was forgotten in one of the two; nothing was changed; to take the source's, delete it in the "
        "target and copy again"
    )
    return StoreConflict(conversation=conversation, expected=0, found=found, reason=reason)


def check_expected(conversation: str, expect: int | None, found: Position) -> None:
    """Refuse a position that is not the one that is found. Raises: store-conflict."""
    if expect is not None and not agrees(expect, found):
        raise conflict(conversation, expect, found)


class Records(list[T]):
    """The records a read gave, in order, and the position after the last of them."""

    position: Position

    def __init__(self, records: Iterable[T], position: Position) -> None:
        super().__init__(records)
        self.position = position


class Scanned(Undecoded):
    """The records that a scan gave, in order, made as they are asked for, and the position after the last of them."""

    def __init__(self, parts: Sequence[Part], position: Position, shallow: Shallow) -> None:
        super().__init__(parts, shallow)
        self.position = position


Scan = Records[kinds.Recorded] | Scanned
"""What a scan gives."""


class Since(NamedTuple):
    """What a log holds beyond a mark."""

    records: Scan
    look: str
    """How it looked before it was read; empty: these are not all, ask again with the mark."""
    mark: str
    """Where that ended, to be given back; empty: nothing is known of it, the next time all is given again."""
    whole: bool
    """Whether these are all records there are, since the mark was of another log."""


class Ends(NamedTuple):
    """How a long conversation begins and ends: what `scan_ends(conversation, last)` of a store gives that has it.

    `last` is how many of the last records are asked for; None where it has not many more, so that `scan` gives all.
    """

    first: list[kinds.Recorded]
    """As many as come without effort; perhaps none."""
    before: Position
    """How many records stand before `last`."""
    last: Scan
    log_index: Any = None
    """What answers questions about the records before `last`: a `ledger.views.late.Index`; None: nothing does."""


FEW = 4
"""A conversation of up to this many times the records that are asked for is not long."""


class Fed(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a store's feed gave."""

    position: str
    """Where the feed goes on after it: `feed(after=position)`."""
    conversation: str
    record: dict[str, Any]
    """As `read` gives it."""


# -- what was removed ------------------------------------------------------------------------------


class Erased(msgspec.Struct, kw_only=True):
    """What a store did to erase a turn. True when it changed anything."""

    conversation: str
    turn: str
    records: dict[str, int] = {}
    """How many lines were overwritten, by the kind they had."""
    size_bytes: int = 0
    """How many bytes of them are gone."""
    unsealed: list[int] = []
    """Places of those that other writers wrote: no seal says that they are as we left them."""
    entries: list[int] = []
    """Places of those that were entries."""
    stay: list[int] = []
    """Places of lines of the turn that stay: `head`, `stop`, and what holds nothing to remove."""
    unreadable: list[int] = []
    """Places of lines that cannot be read, and in which the turn's id stands. They stay."""
    files: list[str] = []
    """The files that were removed, as paths in the store's folder."""
    attachments: list[str] = []
    """The SHA-256 of the attachments that were removed."""
    attachments_kept: list[str] = []
    """Those that the lines named and that stay: another record names them, or a log cannot be read."""

    def __bool__(self) -> bool:
        return bool(self.records or self.files or self.attachments)


class Deleted(msgspec.Struct, kw_only=True):
    """What a store removed with a conversation. True when there was a log."""

    conversation: str
    found: bool = False
    """Whether there was a log."""
    files: list[str] = []
    """The files that were removed, as paths in the store's folder."""
    attachments: list[str] = []
    """The SHA-256 of the attachments that were removed."""
    attachments_kept: list[str] = []
    """Those that the log named and that stay: another one names them, or cannot be read."""

    def __bool__(self) -> bool:
        return self.found


@runtime_checkable
class Store(Protocol):
    """What every store must have."""

    def append(
        self,
        conversation: str,
        records: Sequence[Mapping[str, Any]],
        *,
        expect: int | None = None,
    ) -> int:
        """Add records at the end, if the conversation still holds `expect` of them.

        All or none become visible, durable (as `durability` says) when this returns. Order within
        `records` is kept; each is given its `seq`. No records: nothing is written, `expect` is
        checked.
        Args: records: new records, as dicts; a `seq` or `ledger` in them is ignored. expect: how
        many records the caller has seen, as an int or a `Position`; None: do not ask.
        Returns: how many records the conversation holds now.
        Raises: store-conflict: the log grew, or was made anew. record-invalid, record-too-large:
        a value cannot be kept exactly. Nothing was written in either case.
        Not promised: that another conversation's append is ordered before or after this one.
        """
        ...

    def read(self, conversation: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the records after a position, in order, as fresh dicts.

        Exactly as many as the count says: a line that cannot be handed out (no record, damaged,
        void) is `{"kind": "unreadable", "seq": k}` in its place. A conversation that does not exist
        holds no records.
        Raises: store-gone: `after` is beyond the end, or of another incarnation; read from 0.
        Not promised: that a record is durable before its writer's append returned.
        """
        ...


class Events(Protocol):
    """The events of running turns, in logs of their own beside the records: what is watched.

    One log per turn; what an event is, and what may follow what, is `ledger.records.events`. Errors of
    the rules are `EventRefused`. Other implementations' (functai's) objects fit, but for `wait`, `remove`.
    Not promised: that events survive a fall of the machine. What must survive is in the records.
    """

    def append(self, event: Mapping[str, Any]) -> Answer:
        """Add an event at the end of its turn's log, or say that it is there already."""
        ...

    def extend(self, events: Iterable[Mapping[str, Any]]) -> Answer:
        """Add events of one turn, each judged as if it came alone; all or none."""
        ...

    def claim(self, tree: str) -> dict[str, Any]:
        """Give a later writer its number (`writer`) and the last place (`after`); fence earlier ones."""
        ...

    def read(self, tree: str, after: Place | None = None) -> list[Event]:
        """Return the events after a place, in order, as fresh dicts; None: all."""
        ...

    def wait(self, tree: str, after: Place | None, timeout: float) -> bool:
        """Block until there is an event after a place, or `timeout` seconds passed. Returns: whether."""
        ...

    def finished(self, tree: str) -> bool:
        """Say whether the log has its last event."""
        ...

    def remove(self, tree: str) -> bool:
        """Remove a log. Returns: whether there was one."""
        ...


class LedgerStore(Store, Protocol):
    """What our own stores have besides."""

    @property
    def events(self) -> Events:
        """The events of its running turns. Those of a turn go when it is erased."""
        ...

    durability: str
    """`memory` or `disk`: what an append has reached when it returns."""
    persistent: bool
    """Whether records outlive this process."""
    tells_at_once: bool
    """Whether `wait` with a timeout of 0 costs next to nothing: then running turns are looked at so."""

    def scan(self, conversation: str, after: int = 0) -> Scan:
        """Return what `read` returns, as Structs with their payloads undecoded."""
        ...

    def looks(self) -> dict[str, str]:
        """Return how each log looks now, by conversation: another text whenever the log is another.

        Those that hold no record, or cannot be read, may be among them.
        """
        ...

    def since(self, conversation: str, mark: str = "") -> Since:
        """Return what a conversation holds beyond a mark; all of it where it is no continuation of that.

        So it is after an erasure, a repair, and when it was made anew. It may be only the first of that, with an
        empty `look`. Raises: as `read`.
        """
        ...

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        """Block until the conversation is not at position `after`, or `timeout` seconds passed.

        Returns: whether it changed. Not promised: that a change that was undone is noticed.
        """
        ...

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that hold a record, sorted."""
        ...

    def delete(self, conversation: str) -> Deleted:
        """Remove a conversation, its side files, and attachments that nothing else names.

        What was under way in it makes it not anew: a turn that runs ends `lease-lost`, and what else began before
        (a send that waits, a merge) is refused, `store-gone`. What begins afterwards begins a new conversation.
        Returns: what went; true when there was a log.
        """
        ...

    def erase(self, conversation: str, turn: str, *, expect: int | None = None) -> Erased:
        """Overwrite what a turn's records say, in place, and remove what belongs to it alone.

        What the records mean is not asked, so not whether the turn has ended: that is the caller's.
        Args: expect: as for `append`.
        Returns: what went, and what did not.
        Raises: store-conflict; and as `append`. Once the erasure was decided it is seen by every
        reader, also when this raises; the next writer to the conversation finishes it.
        """
        ...

    def hold(self, holder: str) -> None:
        """Let other processes see at once when this one ends, under the name that its leases bear.

        To be called before the first lease is appended; again is no error, and does nothing. It lasts
        until the process ends, also when the store is closed. A child that is forked has to call it
        under a name of its own.
        Args: holder: a name that no other process has or had.
        Raises: nothing. Where it cannot be done, others go by the times in the leases.
        """
        ...

    def is_dead(self, holder: str) -> bool:
        """Say whether a holder is known to have ended; to be asked on the machine it ran on.

        False: it lives, or nobody knows. A holder of this process lives.
        Raises: nothing. Not promised: that what it last appended was read: read after asking.
        """
        ...
