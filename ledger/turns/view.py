"""What both faces share of a conversation: where a caller stands, and how its turns are decided.

A `View` reads no log and writes none; it is given histories. A `Making`, such as
`Start`, is a decision in the making: a shell appends what `decide` answers, asks again on a conflict, waits when told
which turn to wait for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from inspect import BoundArguments
from types import EllipsisType
from typing import Any, Protocol, cast

from ledger.errors import Cancelled, HeadMoved, Nested, TurnUnknown, counted
from ledger.records import messages, redacting
from ledger.records.kinds import NewRecord
from ledger.records.redacting import Redact
from ledger.turns import approving, arrivals, beside, commands, current, programs
from ledger.turns.attachments import Attachment, lowered
from ledger.turns.beside import NOTHING, Beside
from ledger.turns.commands import Claim, Outcome, Sent
from ledger.turns.forgotten import Quoted
from ledger.turns.helping import Remembering
from ledger.turns.judging import Judge
from ledger.turns.log import Begun, Log
from ledger.turns.world import SYSTEM, World
from ledger.views import History, Rule, all_turns, signature
from ledger.views.place import Cursor, Place, Sends, nearest_alive, newest
from ledger.views.states import Dead, State
from ledger.views.summaries import Wanted


class IsTurn(Protocol):
    """A turn as an object: anything with these two."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def conversation(self) -> str:
        """The id of its conversation."""
        ...


class Outputs(dict[str, Any]):
    """What a merging program returns when it gives every output by name."""

    def __init__(self, outputs: Mapping[str, Any], model: str | None = None) -> None:
        super().__init__(outputs)
        self.model = model
        """The model whose answer it is, where it is one model's."""


TurnLike = IsTurn | str | int
"""What names a turn: the turn, its id or a part of it, its ordinal."""


SHORTEST_PART = 4
"""How many characters of an id name a turn, at least."""


class View:
    """Where a caller stands in a conversation, and what its next turn would be made with."""

    def __init__(
        self,
        conversation: str,
        program: programs.Program | None,
        *,
        rule: Rule | None = None,
        sends: Sends = "queue",
        settings: Mapping[str, Any] | None = None,
        world: World = SYSTEM,
        cursor: Cursor | None = None,
        judge: Judge | None = None,
        earlier_without: Collection[str] = (),
        approve: approving.Rule | None = None,
        remembering: Remembering | None = None,
        redact: Redact | None = None,
    ) -> None:
        self.conversation = conversation
        self.program = program
        self.rule = rule if rule is not None else all_turns()
        self.sends = sends
        self.settings = dict(settings or {})
        self.world = world
        self.cursor = cursor if cursor is not None else Cursor()
        self.judge = judge
        self.earlier_without = tuple(earlier_without)
        self.approve = approve
        self.remembering = remembering if remembering is not None else Remembering()
        self.redact = redact
        """What replaces each text before it is recorded; None: nothing. (Its log does so.)"""

    def dead(self, history: History, turn: str | None) -> Dead:
        """Return who is known dead of those that hold a turn.

        What is decided with it is to be appended on the condition that the log is as it was read: a
        holder may have ended the turn just before it ended itself.
        """
        if self.judge is None or turn is None:
            return frozenset()
        return self.judge.dead(history, turn)

    def judged(self, log: Log) -> tuple[History, Dead]:
        """Read a log, and return it with who is known dead of those that hold any turn of it."""
        history = log.read()
        unended = [turn for turn in history.order if history.node(turn).outcome is None]
        dead: Dead = frozenset().union(*(self.dead(history, turn) for turn in unended))
        return (log.read() if dead else history), dead

    def state(self, log: Log, turn: str) -> State:
        """Read a log, and return a turn's state now. Raises: turn-unknown."""
        if self.judge is not None:
            return self.judge.state(log, turn)
        return log.read().state(turn, now=self.world.now())

    def place(self, history: History, sends: Sends, at: Cursor | None = None) -> Place:
        """Decide where this view's next turn goes. Args: at: where it would stand; None: where it does."""
        cursor = self.cursor if at is None else at
        if cursor.kind == "start":
            return Place("parent")
        stands = cursor.resolve(history)
        now, dead = self.world.now(), self.dead(history, stands)
        return history.place(now=now, sends=sends, at=stands, dead=dead)

    def check_newest(self, history: History, expect: TurnLike | EllipsisType | None) -> None:
        """Refuse a turn whose caller did not see the newest one here; what ended without an answer does not count.

        Raises: conversation-moved, turn-unknown.
        """
        if isinstance(expect, EllipsisType):
            return
        seen = None if expect is None else self.find(history, expect)
        now = newest(history, self.cursor)
        if nearest_alive(history, seen) != now:
            raise HeadMoved(conversation=self.conversation, expected=seen, found=now)

    def claim(self, attempt: int = 1) -> Claim:
        """Return this process's claim on a turn."""
        return Claim(self.world.holder(), attempt, self.world.boot())

    def at(self, cursor: Cursor) -> View:
        """Return the same view standing elsewhere."""
        return View(
            self.conversation,
            self.program,
            rule=self.rule,
            sends=self.sends,
            settings=self.settings,
            world=self.world,
            cursor=cursor,
            judge=self.judge,
            earlier_without=self.earlier_without,
            approve=self.approve,
            remembering=self.remembering,
            redact=self.redact,
        )

    def find(self, history: History, turn: TurnLike) -> str:
        """Return the id of the turn that a caller names. Raises: turn-unknown, TypeError."""
        if isinstance(turn, int) and not isinstance(turn, bool):
            return self._by_ordinal(history, turn)
        if isinstance(turn, str):
            return self._by_text(history, turn)
        named, of = (getattr(turn, name, None) for name in ("id", "conversation"))
        if not isinstance(named, str) or not isinstance(of, str):
            raise TypeError(f"a turn is named by a Turn, an id or an ordinal, not {turn!r}")
        if of != self.conversation:
            reason = (
                f"is a turn of conversation {of}, and what is asked is asked of one conversation"
            )
            raise TurnUnknown(conversation=self.conversation, turn=named, reason=reason)
        if named not in history:
            raise TurnUnknown(conversation=self.conversation, turn=named)
        return named

    def _by_ordinal(self, history: History, ordinal: int) -> str:
        turn = history.at(ordinal)
        if turn is not None:
            return turn
        reason = f"is no ordinal; it has {counted(len(history), 'turn')}"
        raise TurnUnknown(conversation=self.conversation, turn=str(ordinal), reason=reason)

    def _by_text(self, history: History, text: str) -> str:
        if text in history:
            return text
        if len(text) < SHORTEST_PART:
            reason = f"is no turn id, and too short to be a part of one ({SHORTEST_PART} or more)"
            raise TurnUnknown(conversation=self.conversation, turn=text, reason=reason)
        fits = [turn for turn in history.order if text in turn]
        if len(fits) == 1:
            return fits[0]
        reason = f"is part of {len(fits)} turn ids" if fits else "is not a turn of it"
        raise TurnUnknown(conversation=self.conversation, turn=text, reason=reason)

    def sent_as(self, history: History, request_id: str) -> str:
        """Return the id of the turn that was sent under a request id. Raises: turn-unknown."""
        sent = history.request(request_id)
        if sent is None:
            reason = "was sent under no turn of it"
            raise TurnUnknown(conversation=self.conversation, turn=request_id, reason=reason)
        return sent

    def done(self, history: History, turn: TurnLike | None, reason: str) -> str | None:
        """Return the id of a turn that must be done; of None: None. Raises: turn-state."""
        if turn is None:
            return None
        return commands.done_parent(history, self.find(history, turn), reason)

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], given: list[Attachment]
    ) -> tuple[BoundArguments, dict[str, Any], dict[str, Any]]:
        """Return the program's bound call, its inputs by recorded name, and the turn's settings.

        Args: given: takes the attachments in the inputs, to be kept before these are recorded.
        Raises: TypeError: there is no program, or the inputs do not fit. record-invalid.
        """
        if self.program is None:
            raise TypeError("this conversation was opened without a program: record turns into it")
        settings = {k: v for k, v in kwargs.items() if k in self._known_settings()}
        rest = {k: v for k, v in kwargs.items() if k not in settings}
        unknown = [name for name in rest if not self.program.parameter(name)]
        if unknown:
            takes = ", ".join(self.program.signature.parameters) or "nothing"
            known = ", ".join(sorted(self._known_settings()))
            raise TypeError(
                f"{self.program.description.name} has no input {unknown[0]!r}; it takes {takes}; and no setting: "
                f"this conversation knows {known}, and others once `open` or `ledger.program` names them"
            )
        bound, inputs = self.program.bind(args, rest, given)
        return bound, inputs, {**self.settings, **settings}

    def take_beside(
        self, kwargs: Mapping[str, Any], given: list[Attachment]
    ) -> tuple[Beside, dict[str, Any]]:
        """Return what a send is given beside its inputs and settings, checked, and its other keywords.

        Args, Raises: as `beside.take`.
        """
        return beside.take(kwargs, self._taken(), given)

    @property
    def takes_messages(self) -> bool:
        """Whether a send may be given its user side: `messages` is no input and no setting."""
        return beside.MESSAGES not in self._taken()

    def check_settings(self, names: Iterable[str]) -> None:
        """Refuse settings that a turn cannot be given, as `bind` does. Raises: TypeError."""
        known = self._known_settings()
        for name in names:
            if self.program is not None and self.program.parameter(name):
                raise TypeError(f"{name!r} is an input of the program, and no setting")
            if name not in known:
                told = ", ".join(sorted(known))
                raise TypeError(f"{name!r} is no setting of this conversation; it knows {told}")

    def _taken(self) -> set[str]:
        """Return the keywords of a send that are inputs or settings."""
        inputs = self.program.signature.parameters if self.program is not None else ()
        return {*inputs, *self._known_settings()}

    def _known_settings(self) -> set[str]:
        """Return the settings that a turn may be given: those named at `open` or by the program, and `lm`."""
        declared = self.program.settings if self.program is not None else ()
        inputs = self.program.signature.parameters if self.program is not None else ()
        return {"lm", *self.settings, *declared}.difference(inputs)

    def refuse_nested(self) -> None:
        """Refuse to make a turn inside a turn: it could wait for itself. Raises: conversation-nested."""
        outer = current.recorded_turn()
        if outer is None:
            return
        if outer.remembering is None or self.conversation not in outer.remembering.own:
            raise Nested(conversation=self.conversation, turn=outer.turn, inside=outer.conversation)

    def recorded_program(
        self, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> programs.Description:
        """Return the program of a recorded turn: this view's when the fields are its, else `recorded`."""
        if self.program is not None:
            own = self.program.description
            if sorted(f["name"] for f in own.fields) == sorted([*inputs, *outputs]):
                return own
        return programs.recorded(inputs, outputs)

    def merged_outputs(
        self, program: programs.Description, value: Any, given: list[Attachment]
    ) -> dict[str, Any]:
        """Return what a merging program returned as the outputs of the merge, by name.

        Args: given: as for `bind`.
        Raises: record-invalid: it is not what this view's program declares, or cannot be kept.
        """
        if self.program is not None and not isinstance(value, Outputs):
            return self.program.outputs(value, given)
        outputs = dict(value) if isinstance(value, Outputs) else {program.answer: value}
        return cast(dict[str, Any], lowered(outputs, "outputs", given))

    def merged_program(self, history: History, merged: str) -> programs.Description:
        """Return the program a merge belongs to: this view's, else that of the first merged turn."""
        if self.program is not None:
            return self.program.description
        node = history.node(merged)
        known = history.programs.get(node.program)
        if known is not None:
            return programs.of_record(known)
        inputs = node.inputs()
        outputs = node.outputs()
        return programs.recorded(inputs, outputs)


def check_request_id(request_id: object) -> None:
    """Refuse what cannot be a request id. Raises: TypeError, ValueError."""
    if request_id is not None and not isinstance(request_id, str):
        raise TypeError(f"request_id is text, not {type(request_id).__name__}")
    if request_id == "":
        raise ValueError("request_id is empty; leave it out where a message has none of its own")


class Making(ABC):
    """A turn in the making: asked with each newer history until its records are appended."""

    def __init__(self, view: View, request_id: str | None = None) -> None:
        check_request_id(request_id)
        self.view = view
        self.turn = view.world.turn_id()
        self.begun = Begun()
        """Which log it goes into."""
        self.request_id = request_id
        """The request id that it is made under."""
        self.repeats: str | None = None
        """The turn that was already made for the same request."""
        self.waits = False
        """Whether a turn that runs, or a send that came before, is to be waited for before asking again."""
        self.rests: float | None = None
        """Since when it does nothing but wait to ask again, on the monotonic clock; None: it is at work."""
        self.wants: Wanted | None = None
        """The summary to make before asking again."""
        self.cancelled = False
        """Whether it is no longer wanted: nothing is recorded then."""
        self.at: Cursor | None = None
        """Where it is made as if the view stood there; None: where the view stands."""
        self.expect: TurnLike | EllipsisType | None = ...
        """The turn that is to be the newest where the view stands; None: none; `...`: whichever is."""
        self.given: list[Attachment] = []
        """The attachments that its records name: the store has them before."""
        self.quoted = Quoted()
        """The turns whose words its records say once more: none of them may be forgotten by then."""

    @property
    def made(self) -> str:
        """The turn that was made, or the one it repeats."""
        return self.repeats if self.repeats is not None else self.turn

    @property
    def moves_view(self) -> bool:
        """Whether the view goes on from it."""
        return True

    def cancel(self) -> None:
        """Say that it is no longer wanted."""
        self.cancelled = True

    def decide(self, history: History) -> list[NewRecord]:
        """Return the records to append; none while it repeats a turn, waits for one, or wants
        a summary.

        Raises: turn-stopped: it was cancelled before it was recorded.
        """
        if self.cancelled:
            raise Cancelled(turn=self.turn)
        if history.found(self.turn) is not None:
            raise RuntimeError(f"turn {self.turn} was recorded already; a send is made once")
        self.wants = None
        self.repeats = self._repeats(history)
        if self.repeats is not None:
            return []
        self.quoted.refuse(history)
        parent, self.waits = self._parent(history)
        return [] if self.waits else self._records(history, parent)

    def unsend(self, history: History) -> list[NewRecord]:
        """Return the end of a turn that was recorded and that nobody runs; none when it was not, or has ended."""
        return []

    @abstractmethod
    def _repeats(self, history: History) -> str | None:
        """Return the turn that its request id already has, or None. Raises: request-mismatch."""

    def _sent_before(
        self,
        history: History,
        inputs: dict[str, Any],
        said: list[messages.Message] | None,
    ) -> str | None:
        """Return the turn that was sent with its request id, these inputs and this user side, or None."""
        sent: dict[str, Any] = {"inputs": inputs, "messages": said or []}
        if self.view.redact is not None and self.request_id is not None:
            sent = redacting.record(sent, self.view.redact)
        kept = None if said is None else sent["messages"]
        return commands.repeated(history, self.request_id, sent["inputs"], kept)

    def queues_at(self, history: History) -> str | None:
        """Return the turn that it waits to continue, empty before the first one; None: it stands behind nobody."""
        cursor = self.view.cursor if self.at is None else self.at
        if self.view.sends != "queue" or cursor.kind == "start":
            return None
        return cursor.resolve(history) or ""

    def _parent(self, history: History) -> tuple[str | None, bool]:
        """Return where the turn goes, and whether it is to wait first; or refuse."""
        self.view.check_newest(history, self.expect)
        place = self.view.place(history, self.view.sends, self.at)
        if place.refusal is not None:
            raise place.refusal
        waits = place.waits_for is not None
        return place.parent, waits or arrivals.is_behind(self, self.view.conversation, history)

    @abstractmethod
    def _records(self, history: History, parent: str | None) -> list[NewRecord]:
        """Return the records of the turn, its parent decided."""


class Siblings:
    """The place that several turns share: decided with the first of them, the same for all."""

    def __init__(self) -> None:
        self.placed = False
        self.parent: str | None = None
        self.begun = Begun()


class Start(Making):
    """A turn that a program is about to run."""

    def __init__(
        self,
        view: View,
        program: programs.Program,
        inputs: dict[str, Any],
        *,
        settings: Mapping[str, Any],
        given: Sequence[Attachment] = (),
        request_id: str | None = None,
        beside: Beside = NOTHING,
        under: Siblings | None = None,
        at: Cursor | None = None,
    ) -> None:
        super().__init__(view, request_id)
        if under is not None:
            self.begun = under.begun
        self.given += given
        self.at = at
        self.expect = beside.expect
        self._program = program.description
        self._inputs = inputs
        self._settings = program.settings_to_record(settings)
        self._messages = beside.messages
        self._rule = view.rule if beside.rule is None else beside.rule
        self._under = under
        self.claim = view.claim()
        """This process's claim on the turn."""
        self.summarized = False
        """Whether a summary was made for it: one is all that it has made, whatever its rule says next."""
        self.settings = dict(settings)
        """What the program finds in `current().settings`."""
        self._asks = beside.approve is not None
        self.approve = beside.approve if self._asks else view.approve
        """Which of its tools a person is asked about."""

    @property
    def inputs(self) -> dict[str, Any]:
        """Its inputs, as they are recorded."""
        return self._inputs

    @property
    def asked(self) -> list[messages.Message]:
        """Its user side, as messages."""
        said = self._messages
        return said if said is not None else messages.from_inputs(self._inputs)

    @property
    def moves_view(self) -> bool:
        """Whether the view goes on from it: not when it is one of several."""
        return self._under is None

    def queues_at(self, history: History) -> str | None:
        """As any other; of several the first queues for all."""
        placed = self._under is not None and self._under.placed
        return None if placed else super().queues_at(history)

    def _parent(self, history: History) -> tuple[str | None, bool]:
        if self._under is None:
            return super()._parent(history)
        if not self._under.placed:
            self._under.parent, waits = super()._parent(history)
            self._under.placed = not waits
            return self._under.parent, waits
        return self._under.parent, False

    def unsend(self, history: History) -> list[NewRecord]:
        if self.turn not in history or history.node(self.turn).outcome is not None:
            return []
        outcome, now = Outcome(state="stopped"), self.view.world.now()
        return commands.end(history, self.turn, outcome, self.claim, now=now)

    def _repeats(self, history: History) -> str | None:
        sent = self._sent_before(history, self._inputs, self._messages)
        if sent is not None and self._under is not None and not self._under.placed:
            # Others of them may not be recorded: they go beside it.
            self._under.parent, self._under.placed = history.node(sent).parent, True
        return sent

    def _records(self, history: History, parent: str | None) -> list[NewRecord]:
        view = self.view
        shown = history.shown(parent, self._rule, foresee=not self.summarized)
        if shown.wants is not None and not self.summarized:
            # Refused before anything is paid for a summary.
            signature.check(history, self._program, shown, earlier_without=view.earlier_without)
            self.wants = shown.wants
            return []
        sent = Sent(
            turn=self.turn,
            parent=parent,
            inputs=self._inputs,
            request_id=self.request_id,
            messages=self._messages,
            approve=approving.recorded(self.approve, own=self._asks),
            remembers=view.remembering.recorded(),
            settings=self._settings or None,
            redacted=True if view.redact is not None else None,
        )
        return commands.start(
            history,
            sent,
            program=self._program,
            shown=shown,
            claim=self.claim,
            now=view.world.now(),
            earlier_without=view.earlier_without,
        )
