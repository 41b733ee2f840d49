"""The catalog: what is in a store, asked of an index that is brought up to the logs first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, tzinfo
from typing import Any, NamedTuple, TypeVar, get_args

from msgspec import structs

from ledger.catalog import asked, texts
from ledger.catalog.answers import (
    Answer,
    Hit,
    Listed,
    Order,
    Place,
    Spent,
    Waiting,
    cursor,
    place_of,
)
from ledger.catalog.index import Found, Index, Sought, Wanted
from ledger.catalog.places import InFile, InMemory
from ledger.catalog.places import Place as Kept
from ledger.catalog.refreshing import logs_of, refresh
from ledger.catalog.rows import ConversationRow, TurnRow
from ledger.catalog.spending import By, spent
from ledger.errors import LedgerError
from ledger.records import times
from ledger.stores.folder import FolderStore
from ledger.stores.index_file import IndexFile
from ledger.stores.resolve import store_for
from ledger.turns import loops
from ledger.turns.identity import ByIdentity
from ledger.turns.judging import judge_of
from ledger.turns.world import SYSTEM, World
from ledger.views import states as turn_states

T = TypeVar("T")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Failed = dict[str, LedgerError]


def of(store: Any = None) -> Catalog:
    """Return the catalog of a store: what is in it, without opening each conversation.

        catalog = ledger.catalog.of("chats")
        catalog.search("parcel")

    Args: store: as for `ledger.open`; it must list its conversations.
    Raises: store-unsupported: it does not; TypeError.
    """
    return Catalog(store_for(store))


class Catalog:
    """What is in a store. Made by `ledger.catalog.of`. Threads may share it.

    Each question first brings an index up to the logs, which costs what has changed since. The index of a
    folder is a file in it, `catalog.sqlite`, that may be removed at any time; of a database, tables in it whose
    names begin with `ledger_catalog`, which may be dropped at any time; else it is in memory. A store
    that cannot tell whether its logs changed has all of them read, for each question.
    Times are aware datetimes; where one is asked for, a date stands for that day, in UTC. Conversations that
    cannot be read are in the answer's `failed`.
    """

    def __init__(self, store: Any, *, world: World = SYSTEM) -> None:
        self.store = store
        """The store it is of."""
        calls = loops.blocking(store)
        self._logs = logs_of(store, calls)
        self._judge = judge_of(store, calls, world)
        self._world = world
        self._kept = _kept_of(store)

    def __repr__(self) -> str:
        return f"<Catalog of {self.store!r}>"

    # -- listing

    def conversations(
        self,
        title: str | None = None,
        *,
        labels: Sequence[str] = (),
        states: Sequence[str] = (),
        models: Sequence[str] = (),
        since: datetime | date | None = None,
        until: datetime | date | None = None,
        min_turns: int = 0,
        order: Order = "last",
        limit: int | None = None,
        after: str | None = None,
    ) -> Answer[Listed]:
        """Return the conversations for which all holds that is asked for.

        Args: title: stands in its title, in whatever case. labels: it has all of these itself. states: a turn
        of it is in one of these now. models: one of these answered in it. since, until: of its last activity,
        both included. min_turns: it has as many. order: `last` activity, the newest first, or `id`. limit: at
        most so many; the answer's `after`, given back with everything else the same, goes on behind them.
        Raises: ValueError: there is no such state or order, a time has no zone, `after` is no cursor of this, a
        number is none. TypeError.
        Not promised: while others write, that a listing by `last` in parts shows what moves to its front
        meanwhile; nothing is shown twice. By `id` nothing moves.
        """
        states = asked.states(states)
        if limit is not None:
            asked.count("limit", limit, 1)
        if order not in get_args(Order):
            raise ValueError(f"the order is {' or '.join(get_args(Order))}, not {order!r}")
        wanted = Wanted(
            title=asked.text("title", title),
            labels=asked.names("labels", labels),
            states=states,
            models=asked.names("models", models),
            since=asked.moment("since", since),
            until=asked.moment("until", until, end=True),
            min_turns=asked.count("min_turns", min_turns, 0),
            order=order,
            limit=None if limit is None else limit + 1,
            after=None if after is None else place_of(after, order),
        )

        def ask(index: Index, failed: Failed, present: list[_Unended]) -> Answer[Listed]:
            ids = frozenset(each.conversation for each in present if each.state in states)
            rows = index.listed(structs.replace(wanted, ids=ids))
            more = limit is not None and len(rows) > limit
            rows = rows[:limit] if more else rows
            counted: dict[str, Counter[str]] = {}
            for each in present:
                counted.setdefault(each.conversation, Counter())[each.state] += 1
            found = [_listed(row, counted.get(row.id, Counter())) for row in rows]
            next_one = cursor(Place(order, rows[-1].last, rows[-1].id)) if more else None
            return Answer(found, after=next_one, failed=failed)

        return self._ask_now(ask)

    def waiting(self) -> Answer[Waiting]:
        """Return the turns that wait for a person, the longest waiting first, with what they ask.

        `ledger.open(found.conversation, ...).turn(found.turn)` can be answered.
        """

        def ask(index: Index, failed: Failed, present: list[_Unended]) -> Answer[Waiting]:
            found = [
                _waiting(row, each.turn)
                for each in present
                if each.state == "waiting" and (row := index.row(each.conversation)) is not None
            ]
            found.sort(key=lambda each: (each.since or _LONG_AGO, each.conversation, each.ordinal))
            return Answer(found, failed=failed)

        return self._ask_now(ask)

    # -- searching

    def search(
        self,
        query: str,
        *,
        conversation: str | Sequence[str] | None = None,
        labels: Sequence[str] = (),
        models: Sequence[str] = (),
        since: datetime | date | None = None,
        limit: int = 20,
    ) -> Answer[Hit]:
        """Return the turns in which all words of a query stand, the best first.

        What is searched is what was sent and answered, by inputs, outputs and messages; labels; and the
        titles of conversations. What tools were given and gave is not.
        Args: query: words; `"words in this order"`; `beg*`: any word that begins so. Case and accents do not
        count. In scripts without spaces, and in Korean, any characters side by side are found. Everything else
        is taken as text. conversation: only in this one, or these. labels: only in conversations that have all of
        these themselves. models: only turns that one of these answered. since:
        only turns sent then or later. limit: at most so many.
        Returns: none where there is no letter or digit in the query. A turn that is in several conversations
        is found in each.
        Raises: ValueError: a time has no zone, or the limit is none. TypeError.
        """
        asked.count("limit", limit, 1)
        if not isinstance(query, str):
            raise TypeError(f"query is text, not {type(query).__name__}")
        sought = Sought(
            query=query,
            conversations=asked.conversations(conversation),
            labels=asked.names("labels", labels),
            models=asked.names("models", models),
            since=asked.moment("since", since),
            limit=limit,
        )

        def ask(index: Index, failed: Failed) -> Answer[Hit]:
            found = index.sought(sought) if texts.match(query) else []
            return Answer(map(_hit, found), failed=failed)

        return self._ask(ask)

    # -- what was used

    def usage(
        self,
        by: By = "model",
        *,
        since: datetime | date | None = None,
        until: datetime | date | None = None,
        conversation: str | Sequence[str] | None = None,
        labels: Sequence[str] = (),
        timezone: tzinfo | str = UTC,
    ) -> Answer[Spent]:
        """Return what turns used, summed by model, day, month, conversation or label of the conversation.

        Each turn counts once, however many conversations it was copied into: for the one with the first id
        in which it says what it used; by label for each label of that one. What helpers used inside a turn is in
        the turn's counts already.
        Args: since, until: of when turns were sent, both included; dates are days of the timezone.
        conversation: only this one's, or these'. labels: only of conversations that have all of these themselves.
        timezone: whose days and months, or its name (`"Europe/Berlin"`).
        An imported turn whose source tells no time is of no day, so it counts only where neither is given.
        Returns: in order of the key for days and months (None: of no day), else those with the most tokens first.
        Raises: ValueError: it cannot be summed by this; a time has no zone; there is no such timezone. TypeError.
        """
        if by not in get_args(By):
            raise ValueError(f"usage is summed by {', '.join(get_args(By))}, not by {by!r}")
        only, put = asked.conversations(conversation), asked.names("labels", labels)
        zone = asked.zone_of(timezone)
        first = asked.moment("since", since, zone)
        last = asked.moment("until", until, zone, end=True)

        def ask(index: Index, failed: Failed) -> Answer[Spent]:
            used = index.used(only, put)
            return Answer(spent(used, by, since=first, until=last, zone=zone), failed=failed)

        return self._ask(ask)

    # -- the index

    def refresh(self) -> Answer[str]:
        """Bring the index up to the logs, as each question does. Returns: nothing but what `failed`."""
        return self._ask(lambda _, failed: Answer[str](failed=failed))

    def rebuild(self) -> Answer[str]:
        """Make the index anew from the logs. Returns: as `refresh`.

        There is no need to: what is damaged or of another version is found, and made anew by itself.
        """
        self._kept.rebuild()
        return self.refresh()

    # -- inside

    def _ask(self, ask: Callable[[Index, Failed], T]) -> T:
        def work(index: Index) -> T:
            failed = refresh(index, self._logs)
            with index.reading():
                return ask(index, failed)

        return self._kept.ask(work)

    def _ask_now(self, ask: Callable[[Index, Failed, list[_Unended]], T]) -> T:
        """Ask what depends on the states of turns that have not ended."""

        def work(index: Index) -> T:
            failed = refresh(index, self._logs)
            deaths = self._deaths(index)
            if deaths:
                # Who is dead may have ended its turn just before: read again, as resuming does.
                failed |= refresh(index, self._logs, {conversation for conversation, _ in deaths})
            now = self._world.now()
            with index.reading():
                present = [
                    _Unended(id, turn, _state(turn, now, {d for c, d in deaths if c == id}))
                    for id, turn in index.unended()
                ]
                return ask(index, failed, present)

        return self._kept.ask(work)

    def _deaths(self, index: Index) -> set[tuple[str, tuple[str, int]]]:
        """Return the holders that are known dead of turns that run by their records, by conversation."""
        now = self._world.now()
        return {
            (id, death)
            for id, turn in index.unended()
            if turn.lease is not None and _state(turn, now, set()) == "running"
            for death in self._judge.dead_holder(id, turn.lease, turn.lease_seq)
        }


class _Unended(NamedTuple):
    conversation: str
    turn: TurnRow
    state: str


_places: ByIdentity[Kept] = ByIdentity()


def _kept_of(store: Any) -> Kept:
    """Return where the index of a store is, the same for whoever asks in this process."""
    kept = _places.get(store)
    if kept is None:
        kept = _place_of(store)
        _places.set(store, kept)
    return kept


def _place_of(store: Any) -> Kept:
    if isinstance(store, FolderStore):
        return InFile(IndexFile(store.folder))
    room = getattr(store, "index_room", None)
    if room is None:
        return InMemory()
    from ledger.catalog.in_database import InDatabase  # It needs the extra `sql`.

    return InDatabase(room)


def _state(turn: TurnRow, now: datetime, dead: set[tuple[str, int]]) -> str:
    return turn_states.unended(turn.lease, waits=turn.waits, now=now, dead=dead)


def _listed(row: ConversationRow, present: Counter[str]) -> Listed:
    return Listed(
        id=row.id,
        title=row.title,
        preview=row.preview,
        labels=row.labels,
        turns=row.turns,
        heads=row.ends,
        states={
            state: n for state in asked.STATES if (n := row.states.get(state, 0) + present[state])
        },
        models=sorted(row.models, key=lambda model: (-row.models[model], model)),
        first=times.from_text(row.first),
        last=times.from_text(row.last),
        usage=row.usage,
        head=row.head,
        source=row.source,
        unreadable=row.unreadable,
    )


def _waiting(row: ConversationRow, turn: TurnRow) -> Waiting:
    return Waiting(
        conversation=row.id,
        title=row.title,
        turn=turn.turn,
        ordinal=turn.ordinal,
        since=times.from_text(turn.waiting_at),
        questions=turn.questions,
    )


def _hit(found: Found) -> Hit:
    row, turn = found.conversation, found.turn
    snippet, matches = texts.shown(found.piece)
    return Hit(
        conversation=row.id,
        title=row.title,
        turn=None if turn is None else turn.turn,
        ordinal=None if turn is None else turn.ordinal,
        at=times.from_text(row.last if turn is None else turn.started),
        model=None if turn is None else turn.model,
        snippet=snippet,
        matches=matches,
        rank=found.rank,
    )
