"""A whole list of messages is handed over: which turns of it are new, and where they go.

Frameworks hand over all they have, each time. The list is read into turns (`ledger.records.transcripts`),
followed down the tree as far as turns say the same (`ledger.views.transcript`), and the rest is appended
there, in one append. So a list that goes on gives new turns, one that departs gives a branch, and one that
says nothing new gives nothing.

What costs: of a list that was handed over before, only comparing it with a copy is done for each message;
reading it into turns, and all that asks the log, is done for what follows the last turn that both share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Generic, Literal, TypeVar, get_args

from ledger.errors import HeadMoved, LedgerError, RecordInvalid
from ledger.formats import dialects
from ledger.formats.converting import Dialect
from ledger.formats.handed import Before, Handed, ends_of, neutral, parts
from ledger.maker import Maker
from ledger.records import redacting, transcripts, values
from ledger.records.kinds import NewRecord
from ledger.records.messages import Message, has_rounds
from ledger.turns import commands, telling
from ledger.turns.attachments import Attachment
from ledger.turns.forgotten import Quoted
from ledger.turns.log import Begun, Log
from ledger.turns.recording import Record
from ledger.turns.view import TurnLike, View
from ledger.views import History, Rule, all_turns, exchange, transcript
from ledger.views.nodes import INSTRUCTIONS, LEFT
from ledger.views.place import Cursor, nearest_done

Moved = Literal["refuse", "branch"]
"""What is done with new turns when others added turns behind the one that they go on from."""
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Synced(Generic[T]):
    """What came of a list of messages."""

    turns: list[T]
    """The turns that are new, in order."""
    head: T | None
    """The last whole turn of the list; the conversation goes on from it. None: there is none."""
    left: list[Message]
    """The messages behind it, neutral: they make no whole turn yet, and are not recorded."""
    branched: bool
    """Whether the new turns stand beside others: the list departs from what was known."""

    def map(self, of: Callable[[T], U]) -> Synced[U]:
        """Return the same with each turn as something else."""
        head = None if self.head is None else of(self.head)
        return Synced(list(map(of, self.turns)), head, self.left, self.branched)


@dataclass(frozen=True)
class Wish:
    """What a caller asks of a list of messages."""

    content: Any
    dialect: Dialect | None
    moved: Moved = "refuse"
    expect: TurnLike | EllipsisType | None = ...
    model: str | None = None
    usage: Any = None
    keep: bool = False
    """Whether what is left over is kept, and the list's last turn is to be the head for everyone."""
    behind: Callable[[History], str | None] | None = None
    """Gives the turn that the messages follow, where they are not the whole list."""
    whole: bool = False
    """Whether the messages are to be whole turns."""
    rule: Rule | None = None
    """By which the turn was shown what was before; None: all of it."""
    lead: Sequence[Any] = ()
    """The instructions that are in force for messages which follow a turn."""
    begun: Begun = field(default_factory=Begun)
    """Which log they go into."""
    quoted: Quoted = field(default_factory=Quoted)
    """The turns whose words they were made of."""


def wish_of(content: Any, format: str | None, moved: Moved, **how: Any) -> Wish:
    """Return what a caller asks, checked. Raises: ValueError."""
    if moved not in get_args(Moved):
        raise ValueError(f"moved is 'refuse' or 'branch', not {moved!r}")
    return Wish(content, None if format is None else dialects.named(format), moved, **how)


class Syncer:
    """Hands lists of messages over to one conversation. Threads may share it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._history: History | None = None
        self._digests: dict[tuple[str, str], bytes | None] = {}
        self._before = Before()
        self._spoken: Dialect | None = None
        """Whose form the list before had."""

    def sync(self, view: View, wish: Wish) -> Synced[str]:
        """Append what a list has that is new. Returns: turns by their ids.

        Raises: conversation-moved, conversation-busy, import-invalid, record-invalid, store errors.
        """
        with self._log.lock:
            plan = _Plan(self, view, wish)
            self._log.append(plan.decide, plan.given, begun=wish.begun)
            wish.quoted.refuse_behind(self._log, plan.new, lambda _: [])
            self._remember(plan)
            view.cursor = plan.cursor
            return Synced(plan.new, plan.head, plan.left, plan.branched)

    # -- reading the list

    def read(self, history: History, wish: Wish) -> Handed:
        """Read a list, from the last turn that the list before it had as well."""
        self._fresh(history, wish.dialect)
        if wish.behind is not None:
            return self._as_kept(self._read_behind(history, wish, wish.behind(history)))
        rest, lead, body = parts(wish.content)
        common = self._before.common(body)
        try:
            handed = self._read(history, wish.dialect, rest, lead, body, common)
        except LedgerError:
            neutral(wish.content, wish.dialect)  # Names the place in the whole list.
            raise
        return self._as_kept(handed)

    def _as_kept(self, handed: Handed) -> Handed:
        """Return a list as it would be recorded: redacted, its data as attachments where the store keeps any."""

        def kept(said: list[Message]) -> list[Message]:
            if self._log.redact is not None:  # First: in an attachment a text is no text any more.
                said = redacting.messages(said, self._log.redact)
            if self._log.blobs is not None:
                said, data = dialects.outlined(said)
                handed.data.update(data)
            return said

        handed.turns = [kept(said) for said in handed.turns]
        handed.instructions, handed.left = kept(handed.instructions), kept(handed.left)
        return handed

    def _read(
        self,
        history: History,
        dialect: Dialect | None,
        rest: Mapping[str, Any] | None,
        lead: list[Any],
        body: list[Any],
        common: int,
    ) -> Handed:
        first = lead if rest is None else {**rest, "messages": lead}
        told = neutral(first, dialect) if first else []
        end, at, tail = self._behind(history, dialect, body, common)
        pieces = transcripts.cut(tail, begun=at is not None)
        begin = end + len(pieces.instructions)
        ends = ends_of(body, begin, pieces, dialect)
        instructions = [*told, *pieces.instructions]
        return Handed(body, common, at, end, instructions, pieces.turns, pieces.left, ends)

    def _behind(
        self, history: History, dialect: Dialect | None, body: list[Any], common: int
    ) -> tuple[int, str | None, list[Message]]:
        """Return the last turn that the list before had as well, where it ends, and what follows it."""
        for end, turn in self._before.places(common):
            if turn not in history or not history.node(turn).done:
                continue
            tail = neutral(body[end:], dialect)
            if not tail or transcripts.begins_turn(tail):
                return end, turn, tail
        return 0, None, neutral(body, dialect)

    def _read_behind(self, history: History, wish: Wish, at: str | None) -> Handed:
        """Read messages that follow a turn, and what was left over behind it."""
        messages = [*transcript.left(history, at), *neutral(wish.content, wish.dialect)]
        pieces = transcripts.cut(messages, begun=at is not None)
        if wish.whole and pieces.left:
            path = f"messages[{max(len(wish.content) - 1, 0)}]"
            reason = "the turn ends without the assistant's answer; append it when it has one"
            raise RecordInvalid(path=path, reason=reason)
        ends: list[int | None] = [None] * len(pieces.turns)
        lead = neutral(list(wish.lead), wish.dialect) if wish.lead else []
        said = [*lead, *pieces.instructions]
        return Handed([], 0, at, 0, said, pieces.turns, pieces.left, ends)

    def _remember(self, plan: _Plan) -> None:
        handed = plan.handed
        if plan.wish.behind is not None:
            return
        ends = [(e, t) for e, t in zip(handed.ends, plan.turns, strict=True) if e is not None]
        self._before.take(handed, ends)

    def _fresh(self, history: History, dialect: Dialect | None) -> None:
        """Forget what was known of another log, or of this one before something was taken out of it, and
        the list before, if it had another form."""
        if history is not self._history:
            self._history, self._digests, self._before = history, {}, Before()
        if dialect is not self._spoken:
            self._spoken, self._before = dialect, Before()

    # -- comparing turns

    def fits(self, history: History, dialect: Dialect | None) -> Callable[[str, bytes], bool]:
        """Return what says whether a recorded turn says what a turn of the list says.

        A turn that came another way may lose something when it is told in a dialect: it is compared as
        that dialect tells it, too, so that a list that was given out is known when it comes back.
        """

        def fit(turn: str, wanted: bytes) -> bool:
            if self._digest(history, turn, None) == wanted:
                return True
            return dialect is not None and self._digest(history, turn, dialect) == wanted

        return fit

    def _digest(self, history: History, turn: str, dialect: Dialect | None) -> bytes | None:
        key = (turn, dialect.name if dialect is not None else "")
        if key not in self._digests:
            found = None
            with suppress(LedgerError):
                said = transcript.said(history, history.node(turn))
                if dialect is not None:
                    told = dialect.to_provider(said, read=telling.reading(self._log))
                    said, _ = dialects.outlined(dialect.from_provider(told.content))
                found = transcripts.digest(said)
            self._digests[key] = found
        return self._digests[key]


class _Plan:
    """One list being handed over: decided anew with each newer history."""

    def __init__(self, syncer: Syncer, view: View, wish: Wish) -> None:
        self._syncer = syncer
        self._view = view
        self.wish = wish
        self._maker = Maker(syncer._log, view)
        self._made: dict[tuple[int, bool], Record] = {}
        self.given: list[Attachment] = []
        """The attachments that its records name: the store has them before."""
        self.handed: Handed
        self.turns: list[str] = []
        """The turns of the list from `handed.at` on, the new ones included."""
        self.new: list[str] = []
        self.head: str | None = None
        self.left: list[Message] = []
        self.branched = False
        self.cursor = view.cursor

    def decide(self, history: History) -> list[NewRecord]:
        """Return the records of what is new. Raises as `Syncer.sync`."""
        wish, view = self.wish, self._view
        handed = self.handed = self._syncer.read(history, wish)
        newest = view.cursor.resolve(history)
        at, count = handed.at, 0
        if wish.behind is None:
            at, count = self._follow(history, newest, at, handed.turns)
        fresh = handed.turns[count:]
        self.branched = bool(fresh) and any(True for _ in transcript.below(history, at))
        if fresh:
            self._check_place(history, at, newest)
        made = self._recordings(at, fresh)
        records = self._records(history, at, made)
        self.new = [record.turn for record, _ in made]
        self.turns = [*_last_done(history, at, count), *self.new]
        self.head = self.turns[-1] if self.turns else handed.at
        self.left = handed.left
        if handed.left and not fresh and wish.behind is None:
            # A turn that was closed by what followed, at the end of a list that was cut behind it.
            last, found = self._follow(history, newest, at, [handed.left])
            self.head, self.left = (last, []) if found else (self.head, self.left)
        self._stand(history, newest)
        records += self._kept(history) if wish.keep else []
        if records:
            wish.quoted.refuse(history)
        self._keep_data(records)
        return records

    def _keep_data(self, records: list[NewRecord]) -> None:
        """Have the store keep the data that records name."""
        data = self.handed.data
        named = (
            {sha256 for record in records for sha256 in values.references(record)} if data else ()
        )
        self.given[:] = [Attachment(data[sha256]) for sha256 in named if sha256 in data]
        self._syncer._log.keep(self.given)

    def _follow(
        self,
        history: History,
        newest: str | None,
        at: str | None,
        turns: Sequence[list[Message]],
    ) -> tuple[str | None, int]:
        """Follow turns from a known one, as far as known turns say the same."""
        return transcript.followed(
            history,
            at,
            map(transcripts.digest, turns),
            self._syncer.fits(history, self.wish.dialect),
            prefer=lambda: history.branch(newest) if newest is not None else [],
        )

    # -- where it goes

    def _check_place(self, history: History, at: str | None, newest: str | None) -> None:
        """Refuse new turns where somebody else adds turns, or did, unless a branch is wished for."""
        if self.wish.moved == "branch":
            return
        now = nearest_done(history, newest)
        stood = self._stood(history)
        if not isinstance(stood, EllipsisType) and at == nearest_done(history, stood) != now:
            raise HeadMoved(conversation=history.conversation, expected=stood, found=now)
        if at == now:
            refusal = self._view.place(history, "refuse").refusal
            if refusal is not None:
                raise refusal

    def _stood(self, history: History) -> str | EllipsisType | None:
        """Return the turn after which others may have added some; `...`: it is not known."""
        wish, cursor = self.wish, self._view.cursor
        if wish.expect is None:
            return None
        if not isinstance(wish.expect, EllipsisType):
            return self._view.find(history, wish.expect)
        known = cursor.kind == "branch" and cursor.turn in history
        return cursor.turn if known else ...

    def _stand(self, history: History, newest: str | None) -> None:
        """Have the view stand on the last turn of the list."""
        cursor = self._view.cursor
        if self.new:
            self.cursor = Cursor.branch_of(self.new[-1])
        elif self.head == nearest_done(history, newest):
            followed = self.head is not None and cursor.kind == "head"
            self.cursor = Cursor.branch_of(self.head) if self.head and followed else cursor
        elif self.head is None:
            self.cursor = Cursor.start()
        elif cursor.turn != self.head:
            self.cursor = Cursor.exactly(self.head)

    # -- what is recorded

    def _recordings(
        self, at: str | None, fresh: Sequence[list[Message]]
    ) -> list[tuple[Record, list[Message]]]:
        """Return the new turns in the making, each with its messages; the same when it is decided anew."""
        made = []
        for i, said in enumerate(fresh):
            first, last = at is None and i == 0, i == len(fresh) - 1
            messages = [*self.handed.instructions, *said] if first else said
            key = len(fresh) - i, first
            if key not in self._made:
                model, usage = (self.wish.model, self.wish.usage) if last else (None, None)
                inputs = {"message": transcripts.asked(messages)}
                outputs = {"result": transcripts.answered(messages)}
                self._made[key] = self._maker.recording(
                    inputs, outputs, messages=messages, model=model, usage=usage
                )
            made.append((self._made[key], messages))
        return made

    def _records(
        self, history: History, at: str | None, made: Sequence[tuple[Record, list[Message]]]
    ) -> list[NewRecord]:
        """Return the records of new turns, one behind the other: the first saw what the wish says, each of the
        others all that the one before it saw, and that one."""
        if not made:
            return []
        programs: set[str] = set()
        records: list[NewRecord] = []
        rule = self.wish.rule if self.wish.rule is not None else all_turns()
        parent, saw = at, history.shown(at, rule).saw
        for making, messages in made:
            for record in making.records(history, parent, saw):
                if record["kind"] != "program" or record["version"] not in programs:
                    records.append(record)
                programs |= {record["version"]} if record["kind"] == "program" else set()
            saw = [{"saw_of": making.turn}] if parent is not None else []
            whole = {"steps": True} if has_rounds(messages) else {}
            saw.append({"call": making.turn, **whole})
            parent = making.turn
        told = self.handed.instructions
        if at is not None and told:
            in_force = transcripts.digest(exchange.instructions(history, at))
            if transcripts.digest(told) != in_force:
                now, first = self._view.world.now(), made[0][0].turn
                records += commands.entry(*INSTRUCTIONS, told, now=now, turn=first)
        return records

    def _kept(self, history: History) -> list[NewRecord]:
        """Return what makes the list's last turn the head, and keeps what is left over behind it."""
        now, head = self._view.world.now(), self.head
        records: list[NewRecord] = []
        whole = self.wish.behind is None
        if whole and not self.new and nearest_done(history, history.head) != head:
            records = commands.move_head(history, head, now=now)
        left = self.left
        if head is None and left:
            left = [*self.handed.instructions, *left]
        before = [] if self.new else transcript.left(history, head)
        if bool(records) and head is None:
            before = []  # Nothing is left before a line that begins now.
        if left != before:
            records += commands.entry(*LEFT, left, now=now, turn=head)
        return records


def _last_done(history: History, turn: str | None, count: int) -> list[str]:
    """Return the last done turns up to a turn, in order."""
    found: list[str] = []
    for node in history.upward(turn):
        if len(found) == count:
            break
        found += [node.id] if node.done else []
    return found[::-1]
