"""A turn as its records say: its values decoded when asked for, its neighbours as turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Self

from ledger.errors import TurnUnknown
from ledger.records import kinds, times
from ledger.turns import annotating, answering, claims, following, outcomes, resuming, stopping
from ledger.turns.attachments import plain
from ledger.turns.following import Following
from ledger.turns.log import Log
from ledger.turns.programs import Program
from ledger.turns.resuming import Resumption
from ledger.turns.view import View
from ledger.views import History, Rule, states
from ledger.views import steps as turn_steps
from ledger.views.drawing import inputs_text
from ledger.views.earlier import usage_of
from ledger.views.nodes import Node, model_of
from ledger.views.ratings import Rating, Value, mean
from ledger.views.text import one_line

WAIT_S = 0.25
"""How long to wait before looking again whether a turn's holder died."""


class TurnBase:
    """One turn of a conversation, as its log was read last. Equal to any other view of the same turn.

    Values are fresh copies: changing them changes nothing. Every output is also an attribute.
    """

    def __init__(self, log: Log, view: View, turn: str) -> None:
        self._log = log
        self._view = view
        self._id = turn

    # -- what it is

    @property
    def id(self) -> str:
        """Its id, known before its program was called: a lower-case UUIDv7."""
        return self._id

    @property
    def conversation(self) -> str:
        """The id of its conversation."""
        return self._log.conversation

    @property
    def ordinal(self) -> int:
        """Its number among the conversation's turns in log order: 1, 2, 3, for ever."""
        return self._node.ordinal

    @property
    def parent(self) -> Self | None:
        """The turn that it continues; None for the first of a line."""
        parent = self._node.parent
        return None if parent is None else self._other(parent)

    @property
    def children(self) -> list[Self]:
        """The turns that continue it, in log order."""
        return [self._other(child) for child in self._history.children(self._id)]

    @property
    def siblings(self) -> list[Self]:
        """The turns that continue what it continues, itself among them, in log order: the first is 1 of n.

        Of the first of a line: all that are one; to know them the whole log is read.
        """
        return [self._other(turn) for turn in self._history.siblings(self._id)]

    @property
    def latest(self) -> Self:
        """The newest turn that is this one or descends from it: `chat.head = sibling.latest` goes to its branch."""
        return self._other(self._history.latest(self._id))

    @property
    def request_id(self) -> str | None:
        """The request id it was sent with."""
        return self._node.record.request_id

    @property
    def source(self) -> dict[str, Any] | None:
        """Where an imported turn comes from: format, conversation, source ids and times."""
        return self._object(self._node.record.source)

    @property
    def erased(self) -> bool:
        """Whether what it said was taken out: it has no inputs, outputs or messages any more."""
        return self._node.erased

    # -- what went in and came out

    @property
    def inputs(self) -> dict[str, Any]:
        """What was sent, by name."""
        inputs: dict[str, Any] = self._log.raised(self._node.inputs())
        return inputs

    @property
    def outputs(self) -> dict[str, Any]:
        """Every output by name; empty until it is done."""
        outputs: dict[str, Any] = self._log.raised(self._node.outputs())
        return outputs

    @property
    def _attached(self) -> Callable[[Any], Any]:
        """What gives a recorded value with the attachments in it."""
        return self._log.raised

    @property
    def result(self) -> Any:
        """The answer; None until it is done. Of several outputs it is the one that is the answer, the last.

        As the type that the view's program declares, when that program's fields are the turn's;
        else as JSON has it. (Calling a conversation gives what its program returned: all outputs.)
        """
        ended = self._node.ended
        if ended is None or ended.state != "done":
            return None
        program = self._own_program
        if program is None:
            return self._attached(self._plain_answer)
        return program.answer(self._plain_answer, self._attached)

    @property
    def _plain_answer(self) -> Any:
        """The answer of a turn that is done, as JSON has it."""
        ended = self._node.ended
        if ended is not None and kinds.has(ended.value):
            return self._value(ended.value)
        return self._node.outputs().get(self._log.history.answer_name(self._id))

    @property
    def _returned(self) -> Any:
        """What its program returned: several outputs as the NamedTuple that the view's program declares."""
        program = self._own_program
        if program is None:
            return self.result
        return program.returned(self._plain_answer, self._node.outputs(), self._attached)

    @property
    def _own_program(self) -> Program | None:
        """The view's program, if its fields are the turn's."""
        program = self._view.program
        recorded = self._log.history.programs.get(self._node.program)
        if program is None or recorded is None:
            return None
        return program if self._value(recorded.fields) == program.description.fields else None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Everything it added to the conversation: the user side, then all that came after.

        Provider-neutral messages. Made of its inputs, its tool calls and its answer where none were recorded.
        """
        return self._log.history.messages(self._node.id)

    @property
    def error(self) -> dict[str, Any] | None:
        """How it failed: `type`, and `code` and `message` where known."""
        ended = self._node.ended
        return None if ended is None else self._object(ended.error)

    # -- how it went

    @property
    def state(self) -> str:
        """`running`, `waiting`, `interrupted`, `done`, `failed`, `stopped` or `abandoned`, now."""
        outcome = self._node.outcome
        return outcome if outcome is not None else self._present()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, as the log was read last; then nothing more comes of it."""
        history = self._log.history
        return self._id in history and history.node(self._id).outcome is not None

    @property
    def waiting(self) -> list[dict[str, Any]]:
        """What a turn that waits asks a person: the questions nobody has answered yet, as recorded.

        Each has `id`, `name` and `input` of the tool call, its `effects`, its `path` in the tree of calls, and
        its `key`, which names no other question of the turn.
        """
        return self._log.history.unanswered(self._node.id)

    @property
    def unfinished(self) -> list[dict[str, Any]]:
        """Tool calls that started and have no result: they may have run. Each: `key`, `name`, `input`, `at`.

        Before the turn goes on a person says by its `key` what each gave, or that it is to run again: see `resume`.
        """
        return claims.unfinished(self._node)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The tool calls recorded of it, helpers' and those within other tools' too, in the order in which they began.

        Each: `key` (its place in the tree of calls), `name`, `input`, `effects`, and what came of it: `state`
        (`started`: it may have run; `done`; `failed`: its call raised; `given`: a person said its output; `rerun`: to
        be made again), `output`, `error` (of one that failed: `type`, `module`, `message`), `attempt`. Attachments are
        references.
        """
        return [
            {
                "key": f"{call.site}:{call.invocation}",
                "name": call.name,
                "input": call.input,
                "effects": call.effects,
                "state": call.state if call.error is None else "failed",
                "output": call.output,
                "error": call.error,
                "attempt": call.attempt,
            }
            for call in turn_steps.invocations(self._node)
        ]

    @property
    def questions(self) -> list[dict[str, Any]]:
        """Everything that it ever asked a person, in order, as `waiting` has them, with what was answered.

        Each has `verdict` (`yes`, `no`; None: nobody has answered), `by`, `reason` and `answered` (when) besides.
        """
        return [
            {
                **states.keyed(each.asked),
                "verdict": each.verdict,
                "by": each.by,
                "reason": each.reason,
                "answered": each.at,
            }
            for each in turn_steps.questions(self._node)
        ]

    @property
    def partial(self) -> str | None:
        """What a turn without an answer has said: one that ended without, or has not ended, by now.

        Of one that has not ended it is what its events tell; None where its store keeps none. It is never
        shown to a later turn.
        """
        ended = self._node.ended
        return self._said_by_now() if ended is None else ended.partial

    @property
    def settings(self) -> dict[str, Any]:
        """What was recorded of its settings: `lm`, the model it was sent to, and those its program declares."""
        return kinds.mapping(self._node.record.settings, *self._where)

    @property
    def model(self) -> str | None:
        """The model that answered, or the one it was sent to."""
        return model_of(self._node)

    @property
    def usage(self) -> dict[str, int]:
        """Token counts, summed over every model call inside it, each once.

        Before it ended, or where it ended without (abandoned): those noted in its recorded steps.
        """
        return usage_of(self._node)

    @property
    def started(self) -> datetime | None:
        """When it was sent: an imported turn by its source's clock, where that tells; any other by the record's."""
        return self._source_time("created") or times.from_text(self._node.record.at)

    @property
    def ended(self) -> datetime | None:
        """When it ended, by the same clock as `started`; None before."""
        ended = self._node.ended
        own = self._source_time("updated")
        return None if ended is None else own or times.from_text(ended.at)

    @property
    def seconds(self) -> float | None:
        """How long its program ran, in seconds: of a turn that was gone on with, in its last attempt."""
        ended = self._node.ended
        return None if ended is None else ended.seconds

    # -- what is said of it

    @property
    def ratings(self) -> list[Rating]:
        """How it was rated: the last rating by each who rated, the one that was given last at the end."""
        return self._history.ratings(self._node.id)

    @property
    def rating(self) -> Value | None:
        """The value of the rating that was given last, whoever gave it; None: it is not rated."""
        return next((given.value for given in reversed(self.ratings)), None)

    @property
    def mean_rating(self) -> float | None:
        """The mean of `ratings`, True as 1: what `min_rating` and `rated` go by. None: it is not rated."""
        return mean(self.ratings)

    @property
    def labels(self) -> list[str]:
        """The labels on it, in the order in which they were put on."""
        return self._history.labels(self._node.id)

    # -- what it rests on

    @property
    def saw(self) -> list[Self]:
        """The earlier turns it was shown, in order."""
        history = self._history
        return [self._other(turn) for turn in history.saw(self._id) if turn in history]

    @property
    def shown(self) -> list[dict[str, Any]]:
        """What it was shown, as recorded: the rows that its program found in `current().earlier()`.

        Inputs and outputs by name of each turn that it saw, less what was left out; first a summary, if it had one.
        Values are as JSON has them, attachments `Attachment`. Not promised: what was forgotten since.
        """
        shown: list[dict[str, Any]] = self._log.raised(self._history.rows(self._id))
        return shown

    @property
    def without(self) -> dict[str, list[str]]:
        """What was left out of turns that it saw, by their ids: names of fields, and `steps` of tool calls."""
        return self._history.without(self._id)

    @property
    def as_shown(self) -> Rule:
        """The context that shows just this once more, as in `chat.regenerate(turn, context=turn.as_shown)`.

        A send to where not all of it is on the branch, or after some was forgotten, raises ValueError.
        """
        return self._history.shown_again(self._id)

    @property
    def saw_summary(self) -> str | None:
        """The summary of still earlier turns that it was shown; None: none, or it was taken out since."""
        summary = self._history.summary_of(self._id)
        return None if summary is None else summary.text

    @property
    def reads(self) -> list[Self]:
        """A merge: the turns it was made from."""
        named = self._value(self._node.record.reads)
        listed = named if isinstance(named, list) else []
        history = self._log.history
        return [self._other(t) for t in listed if isinstance(t, str) and t in history]

    @property
    def made_by(self) -> dict[str, Any] | None:
        """A merge: the program that made it: `name`, `version`, `call`."""
        return self._object(self._node.record.made_by)

    # -- as Python sees it

    def to_dict(self, *, saw: bool = False) -> dict[str, Any]:
        """Return all about it as JSON data: turns by their ids, attachments as references, times as text.

        Args: saw: also the turns that it saw (`saw`, `without`): a list that grows with the conversation.
        """
        special = {
            "result": plain(self._plain_answer) if self._node.done else None,
            "unfinished": [] if self.state == "running" else self.unfinished,
        }
        names = [name for name in _TOLD if saw or name not in ("saw", "without")]
        return {n: special[n] if n in special else _data(getattr(self, n)) for n in names}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        outputs = self.outputs
        if name in outputs:
            return outputs[name]
        named = ", ".join(outputs) or "none"
        raise AttributeError(
            f"a turn has no attribute {name!r}, and this one no such output: {named}"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TurnBase):
            return NotImplemented
        return (self._id, self.conversation) == (other._id, other.conversation)

    def __hash__(self) -> int:
        return hash((self._id, self.conversation))

    def __repr__(self) -> str:
        state = self.state
        asked = one_line(inputs_text(self._node.inputs()), 40)
        answer = one_line(self.result, 50) if state == "done" else f"[{state}]"
        return f"<Turn {self.ordinal} {self._id[-8:]} {asked} -> {answer}>"

    # -- inside

    @property
    def _node(self) -> Node:
        node = dict.get(self._log.history.nodes, self._id)
        if node is not None and node.outcome is not None:
            return node
        history = self._history
        if self._id not in history:
            raise TurnUnknown(conversation=self.conversation, turn=self._id)
        return history.node(self._id)

    def _other(self, turn: str) -> Self:
        return type(self)(self._log, self._view, turn)

    @property
    def _history(self) -> History:
        """What its neighbours are read from."""
        return self._log.history

    def _present(self) -> str:
        """The state of a turn that has not ended."""
        return self._log.history.state(self._id, now=self._view.world.now())

    def _said_by_now(self) -> str | None:
        """What a turn that has not ended has said."""
        return None

    @property
    def _where(self) -> tuple[int, str]:
        return self._node.seq, f"turn {self._id}"

    def _value(self, payload: Any) -> Any:
        return kinds.payload(payload, *self._where)

    def _object(self, payload: Any) -> dict[str, Any] | None:
        """Return a payload that is an object; what another writer left in its place reads as absent."""
        value = self._value(payload)
        return value if isinstance(value, dict) else None

    def _source_time(self, key: str) -> datetime | None:
        source = self.source
        text = source.get(key) if source is not None else None
        return times.from_text(text) if isinstance(text, str) else None


_TOLD = (
    *("id", "ordinal", "parent", "children", "state", "erased", "inputs", "outputs", "result"),
    *("partial", "model", "settings", "usage", "error", "waiting", "unfinished", "steps"),
    *("questions", "started", "ended", "seconds", "request_id", "saw", "without", "reads"),
    *("made_by", "source", "ratings", "labels", "messages"),
)
"""What `to_dict` tells, in order."""


def _data(value: Any) -> Any:
    if isinstance(value, TurnBase):
        return value.id
    if isinstance(value, Rating):
        return value.to_dict()
    if isinstance(value, datetime):
        return times.told(value)
    return list(map(_data, value)) if isinstance(value, list) else plain(value)


class Turn(TurnBase):
    """One turn of a conversation. Equal to any other view of the same turn.

    Asked of a turn that has not ended, the log is read again, so its state is the present one.
    Values are fresh copies: changing them changes nothing. Every output is also an attribute.
    """

    @property
    def _history(self) -> History:
        return self._log.read()

    def _present(self) -> str:
        return self._view.state(self._log, self._id)

    def _said_by_now(self) -> str | None:
        return following.said(self._log, self._id)

    def refresh(self) -> Self:
        """Read the log again. Returns: the turn itself. (Most of what is asked of it does so anyway.)"""
        self._log.read()
        return self

    def wait(self, timeout_s: float | None = None) -> str:
        """Block until it no longer runs, or the time is up. Returns: its state then."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while (state := self.state) == "running":
            left = WAIT_S if deadline is None else min(WAIT_S, deadline - time.monotonic())
            if left <= 0:
                break
            self._log.wait(left)
        return state

    def events(self, after: Mapping[str, Any] | str | None = None) -> Iterator[dict[str, Any]]:
        """Yield its events: those so far, then each as it comes, until it ends, waits or is interrupted.

        Works from any process, and after the end. Events are dicts in functai's event format 2: `kind`
        (`started`, `text`, `tool_call`, `tool_result`, `approval`, `approved`, `request`, `retry`, `done`,
        `failed`), `writer`, `seq`, `at`, `call`, and what belongs to the kind, such as `text`.
        Args: after: an event that you have, or its place, `{"writer": 1, "seq": 17}` or `"1:17"`: those
        after it.
        Raises: event-unknown: no such event is known of this turn. TypeError, ValueError: it is no place.
        Not promised: that pieces come one by one as the program said them: they may be joined; nor that
        what was shown before a `request` or `retry` is part of the answer.
        """
        following = Following(self._log, self._view, self._node.id, after)
        while True:
            events, over = following.step()
            yield from events
            if over:
                return
            if not events:
                following.wait()

    def resume(self, *, results: Mapping[Any, Any] | None = None, rerun: Iterable[Any] = ()) -> Any:
        """Go on with it in this process: it was interrupted, or waited and has its answers.

        The program runs again with the same inputs and the same earlier turns. Replies and tool results
        that were recorded are given to it: nothing is paid or done twice. Unless its holder is known dead,
        its log is watched for 12 s first. One of those who try at the same time wins.
        Args: results: of tool calls that may have run (`unfinished`), what they gave, by their id or number,
        or the tool's name where it is the only one. rerun: those to be made again.
        Returns: the answer. Raises: what the program raises. turn-state: it runs, or has ended.
        turn-waiting: a question is open. turn-unfinished: of a tool call nothing was said. turn-changed: the
        program did not make the calls that it had made before; it can be resumed again. TypeError: the
        conversation was opened without a program. conversation-signature: the program has other fields.
        """
        self._view.refuse_nested()
        resumption = Resumption(self._log, self._view, self._id, results=results, rerun=rerun)
        return resuming.go_on(resumption, self._log.wait)

    def approve(
        self, question: Any = None, *, by: str | None = None, reason: str | None = None
    ) -> Self:
        """Say yes to a question it waits for: the tool call may run, exactly as it was asked about.

        From any process. When nothing else is open the turn can go on (`resume`), anywhere.
        Args: question: one of `waiting`, its key, id, number or path, or the tool's name; None: the only one that is
        open now, which may be another than was seen. by: who answers.
        Returns: the turn. Raises: question-unknown: it was answered, is none of them, or its name also fits
        one that was answered before. turn-state: the turn does not wait.
        """
        answering.answer(self._log, self._view, self._id, question, "yes", by=by, reason=reason)
        return self

    def deny(
        self, question: Any = None, *, reason: str | None = None, by: str | None = None
    ) -> Self:
        """Say no to a question it waits for: the tool call is not made, and the program is told, with the reason.

        Args, Returns, Raises: as `approve`.
        """
        answering.answer(self._log, self._view, self._id, question, "no", by=by, reason=reason)
        return self

    def rate(self, value: Value | None, *, by: str | None = None, why: str | None = None) -> Self:
        """Say how good it is. Of the ratings by each the last counts; `redact` applies to all its texts.

        Args: value: a number on a scale of your own, True or False; None takes the rating back. by: who rates: a
        person, a program; one line of at most 100 characters. why: the reason.
        Returns: the turn. Raises: TypeError, ValueError: one of these cannot be. turn-state: it was erased.
        Not promised: that a scale is known: who compares ratings of several `by` must know theirs.
        """
        annotating.rate(self._log, self._view, self._id, value, by=by, why=why)
        return self

    def label(self, text: str) -> Self:
        """Put a label on it: one line of at most 100 characters. One that it has stays as it is.

        Returns: the turn. Raises: TypeError, ValueError: this cannot be a label. turn-state: it was erased.
        """
        annotating.label(self._log, self._view, self._id, text, on=True)
        return self

    def unlabel(self, text: str) -> Self:
        """Take a label off it; one that it does not have is no error. Returns, Raises: as `label`."""
        annotating.label(self._log, self._view, self._id, text, on=False)
        return self

    def stop(self) -> None:
        """Stop it, wherever it runs: within a second it ends `stopped`. See `Conversation.stop`."""
        stopping.stop(self._log, self._view, self._id)

    def abandon(self) -> None:
        """End it `abandoned`: a turn that waits or was interrupted, and that nobody will go on with.

        Raises: turn-state: it runs, or has ended otherwise.
        """
        stopping.abandon(self._log, self._view, self._id)


def outcome_of(turn: TurnBase) -> Any:
    """Return what the program of a turn that no longer runs returned, or raise why there is nothing."""
    state = turn.state
    if state == "done":
        return turn._returned
    raise outcomes.missing(turn.id, state, turn.error, turn.waiting if state == "waiting" else ())
