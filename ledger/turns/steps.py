"""The steps of a turn that survive a crash: replies of models, tools, questions to people.

Each step is recorded under the fence of its turn, so who lost the turn does nothing more: a tool that
changes things is recorded as started before it runs, and what it gave after. A run that goes on with a
turn makes the same calls again and is given what was recorded: nothing is paid or done twice. Each
record is used once; parallel calls may come in another order (`ledger.views.steps`).

What a step gave and could not be stored is kept here, by turn, and stored before anything else: at the
next step, at the end, or when this process resumes the turn.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple

from ledger.errors import LeaseLost, RecordInvalid, TurnChanged
from ledger.records import canonical, times, values
from ledger.records.kinds import NewRecord, new
from ledger.turns import approving, commands, loops, raising
from ledger.turns.approving import Rule
from ledger.turns.attachments import Attachment, lowered
from ledger.turns.before import Before
from ledger.turns.commands import Claim
from ledger.turns.here import Notes
from ledger.turns.log import Log
from ledger.turns.scribe import Scribe
from ledger.turns.sites import Making, Site
from ledger.turns.world import World
from ledger.views import History
from ledger.views import steps as recorded
from ledger.views.nodes import Node
from ledger.views.steps import MADE_UP, Invocation, Name, Noted, Place, Question

Effects = Literal["reads", "changes"]

PLAIN = "$ledger_value"
"""The one key of a recorded response that is no object."""

RULE = "rule"
"""The `plugin` of answers that a rule which is a function gave at once: they answer no question of a person."""
PATIENCE_S = 5.0
"""How long a new call that changes things waits for recorded ones to be come to."""

Key = tuple[Any, ...]
"""A turn in a store: its log's lane, and its id."""

_unsaved: dict[Key, list[NewRecord]] = {}
"""What steps of a turn gave and no store has yet."""


class Paused(BaseException):
    """A turn stops here to wait for a person. No program is to catch it and go on."""


class InTheWay(Exception):
    """A new call that changes things comes while others that changed things before were not come to.

    Parallel ones are about to be: who makes the call waits a while. If they are not, the program is not the
    one that made them, and nothing is done that may have been done already.
    """

    def __init__(self, left: list[str]) -> None:
        super().__init__(left)
        self.left = left


class Begun(NamedTuple):
    """A step that was begun: its result if it is known, else where it goes on."""

    site: Site
    known: bool
    value: Any = None
    noted: tuple[Noted, ...] = ()
    """What was noted while its call was made, in earlier attempts: by it and by the steps within."""
    inside: Site | None = None
    """Where its call is made."""
    records: Callable[[Any], list[NewRecord]] = lambda value: []
    """What to record of what it gives, as JSON has that."""
    told: Callable[[Any], None] = lambda value: None
    """What to tell watchers of what it gives, as JSON has that."""
    gives: str = ""
    """What that is called in messages."""
    given: Sequence[Attachment] = ()
    """The attachments that it was begun with, and that its records may name."""
    error: dict[str, Any] | None = None
    """What its call raised in an earlier attempt, in place of a value."""
    unmade: Callable[[], list[NewRecord]] = list
    """What to record when its call is not made after all."""
    left: Callable[[], list[NewRecord]] = list
    """What to record when its call is left where a step in it cannot go on: it is made again."""
    raised: Callable[[dict[str, Any]], list[NewRecord]] = lambda error: []
    """What to record when its call raised."""


class Steps:
    """The steps of one run of a turn. Safe for threads; each of its methods may wait for the store."""

    def __init__(
        self,
        log: Log,
        turn: str,
        claim: Claim,
        world: World,
        *,
        rule: Rule | None = None,
        node: Node | None = None,
        scribe: Scribe | None = None,
    ) -> None:
        self._log = log
        self.turn = turn
        """The turn's id."""
        self._claim = claim
        self._world = world
        self._rule = rule
        self._scribe = scribe
        self._before = Before(node)
        self._process = os.getpid()
        self._key = (*log.lane, turn)
        self._lock = threading.Lock()
        self._storing = threading.Lock()
        self._under_way = 0
        self._closed = False
        self._calls: list[dict[str, Any]] = []
        self._made: dict[str, list[dict[str, Any]]] = {}
        """The tools that each call in the tree had called, with what they gave."""
        self.questions: list[dict[str, Any]] = []
        """What a person has to answer before the turn goes on."""
        self.changed: TurnChanged | None = None
        """Why the program is not the one that made the recorded steps."""
        self.at_work: set[Any] = set()
        """The tasks of steps that go on beside a question, whoever awaited them."""

    @property
    def key(self) -> Key:
        """Under what is kept what could not be stored."""
        return self._key

    @property
    def lane(self) -> Hashable:
        """Where the jobs of its conversation stand in line."""
        return self._log.lane

    def redacted(self, value: Any, path: str) -> Any:
        """Return a value as it is recorded. Raises: record-invalid."""
        return self._log.redacted(value, path)

    # -- one step

    def begin_reply(self, site: Site, request: Any) -> Begun:
        """Find the recorded reply to a request, or say what to record of it."""
        _refuse_in_reply(site)
        plain, _ = self._kept(request, "request")
        key = canonical.sha256(values.identity(self.redacted(plain, "request")))
        with self._lock:
            self._refuse_closed(site)
            found = self._before.reply(key, site)
        if found is not None:
            value = None if found.error else self.raised(_unwrapped(found.response))
            return Begun(site, True, value, (found.noted,), error=found.error)

        def record(**said: Any) -> list[NewRecord]:
            return [self._new("reply", key=key, site=site.site, **_scope(site), **said)]

        return Begun(
            site,
            False,
            inside=site.of_reply(),
            records=lambda response: record(response=_wrapped(response)),
            gives="reply: response",
            raised=lambda error: record(response={}, error=error),
        )

    def begin_tool(
        self, site: Site, name: str, input: Any, *, id: str | None, effects: Effects | None
    ) -> Begun:
        """Find what a tool gave before, ask whether it may run, and record that it starts.

        Raises: Paused: a person has to answer first. turn-stopped, lease-lost, record-invalid.
        """
        _refuse_in_reply(site)
        check_tool(name, id, effects)
        plain, attached = self._kept(input, "input")
        given = copy.deepcopy(plain)  # What is asked about and recorded is what it was then.
        input = self.redacted(given, "input")
        known_as = recorded.named(id, name, input, site.scope)
        place = self._find(known_as, site, effects)
        found = place.tool
        if found is not None and found.known:
            noted = (found.noted, *self._pass_over(found))
            if found.error is not None:
                return Begun(site, True, noted=noted, error=found.error)
            self._make(site, name, input, found.output)
            return Begun(site, True, self.raised(found.output), noted)
        call = _Call(site, place, id or f"{MADE_UP}{place.invocation}", name, input, effects, given)
        denied = self._denied(call, place.asked)
        if denied is not None:
            return Begun(site, True, denied)
        changes = effects != "reads"
        if changes:
            started = self._tool(call, "started", input=input, effects=effects)
            self.append([started], site, given=attached)
        # One that only reads has a record before its end where steps are made within it.
        again = self._tool(
            call, "rerun", **({} if changes else {"input": input, "effects": effects})
        )
        making = Making(site.making, again, known=changes)
        inside = site.of_tool(place, name, input, known_as, making)
        self._say("tool_call", call, input=input)

        def records(output: Any) -> list[NewRecord]:
            kept = commands.output_keys(output)
            if effects == "reads":  # No record says yet what it was given.
                kept |= {"input": input, "effects": effects}
            return [self._tool(call, "done", **kept)]

        def told(output: Any) -> None:
            output = self.redacted(output, "output")
            self._make(site, name, input, output)
            self._say("tool_result", call, output=commands.output_keys(output)["output"])

        def unmade() -> list[NewRecord]:
            return [again] if changes else []

        def raised(error: dict[str, Any]) -> list[NewRecord]:
            # To writers that know no `error` it says the same as when the process had died in it.
            return [{**again, "state": "started" if changes else "rerun", "error": error}]

        return Begun(
            site,
            False,
            inside=inside,
            records=records,
            told=told,
            unmade=unmade,
            left=lambda: [again],
            raised=raised,
            gives=f"{name}: output",
            given=attached,
        )

    def _pass_over(self, tool: Invocation) -> list[Noted]:
        """Take what was made within a tool's call as come to: nobody makes it again.

        Returns: what was noted there.
        """
        with self._lock:
            within = self._before.within(tool)
            self._calls += within.calls
        return within.noted

    def change(self, site: Site, left: list[str]) -> TurnChanged:
        """Return the error of a program that is another than the one that made the recorded steps."""
        self.changed = TurnChanged(turn=self.turn, left=tuple(left))
        site.leave(self.changed)
        return self.changed

    def _find(self, known_as: Name, site: Site, effects: Effects | None) -> Place:
        """Return the place of a call: where it is recorded, else a new one.

        Raises: InTheWay: it is a new one, and recorded ones were not come to.
        """
        with self._lock:
            self._refuse_closed(site)
            left = self._before.in_the_way(known_as, site.site, effects)
            if left:
                raise InTheWay(left)
            return self._before.tool(known_as, site.site)

    def end(self, begun: Begun, value: Any, notes: Notes) -> Any:
        """Record what a step gave, and what was noted meanwhile.

        Returns: what it gave. Raises as `append`; record-invalid: it cannot be kept; why a step within could not
        go on, whatever the call made of it.
        """
        if (left := _left(begun)) is not None:
            self.failed(begun, left, notes)
            raise left
        plain, given = self._kept(value, begun.gives)
        records = [{**record, **notes.recorded()} for record in begun.records(plain)]
        self._over(begun, records, [*begun.given, *given])
        begun.told(plain)
        return value

    def _kept(self, value: Any, path: str) -> tuple[Any, list[Attachment]]:
        """Return a caller's value as it is recorded, its attachments kept; and these.

        Raises: record-invalid, record-too-large; as `Log.keep`.
        """
        given: list[Attachment] = []
        plain = lowered(value, path, given)
        self._log.keep(given)
        return plain, given

    def keep(self, given: Sequence[Attachment]) -> None:
        """Have the store keep attachments, as `Log.keep`."""
        self._log.keep(given)

    def raised(self, value: Any) -> Any:
        """Return a recorded value with the attachments in it."""
        return self._log.raised(value)

    def failed(self, begun: Begun, error: BaseException, notes: Notes) -> None:
        """Record that the call of a step raised: a run that comes to it again is told the same.

        One that was left since a step in it could not go on is made again.
        """
        with suppress(Exception):
            if _leaves(error) or _left(begun) is not None:
                said = begun.left()
            elif isinstance(error, Exception):
                said = begun.raised(raising.recorded(error))
            else:
                return
            self._over(begun, [{**record, **notes.recorded()} for record in said])

    def undo(self, begun: Begun) -> None:
        """Record that the call of a step was not made: nobody has to be asked what it did."""
        with suppress(Exception):
            self._over(begun, begun.unmade())

    def _over(
        self, begun: Begun, records: list[NewRecord], given: Sequence[Attachment] = ()
    ) -> None:
        making = begun.inside.making if begun.inside is not None else None
        self.append(records, begun.site, ends=making, results=True, given=given)

    def append(
        self,
        records: list[NewRecord],
        site: Site,
        *,
        ends: Making | None = None,
        results: bool = False,
        given: Sequence[Attachment] = (),
    ) -> None:
        """Record steps, and before them what could not be recorded yet, and the tools in whose calls they are.

        Args: ends: the call that is over with this. results: they say what a call gave: should the store fail,
        they are kept for the next time. given: the attachments that they name.
        Raises: turn-stopped, lease-lost, store errors.
        """
        if os.getpid() != self._process:
            raise LeaseLost(turn=self.turn, reason="it runs in the process that started it")
        with self._storing:
            if ends is not None:  # What is made in it from now on is no reason to make it again.
                ends.known = True
            around = site.untold() if records else []
            records = [*(making.begun for making in around if making.begun), *records]
            waiting = list(_unsaved.get(self._key, ()))

            def decide(history: History) -> list[NewRecord]:
                every = [*unsaved(history, self._key), *records]
                return commands.step(history, self.turn, self._claim, every, results=results)

            try:
                self._log.append(decide, given)
            except Exception as error:
                if results and getattr(error, "code", None) not in _UNFIT:
                    _unsaved[self._key] = [*waiting, *records]
                    _tell(around)
                raise
            _tell(around)
            saved(self._key)

    # -- helpers

    def calls(self) -> list[dict[str, Any]]:
        """Return the calls of remembered helpers in this run so far, oldest first."""
        with self._lock:
            return list(self._calls)

    def keep_call(self, site: Site, *, given: Sequence[Attachment] = (), **said: Any) -> None:
        """Record the call of a remembered helper. Raises as `append`.

        Args: given: the attachments that it names, kept already.
        """
        with self._lock:
            tools = list(self._made.get(site.call, ()))
        keys = {"call": site.call, "site": site.site, **said}
        record = self._new("call", **keys, **({"tools": tools} if tools else {}))
        if loops.running_loop() is None:
            self.append([record], site, results=True, given=given)
        else:  # On a loop nothing waits for the store: it is stored before anything that comes.
            with self._lock:
                around = site.untold()
                begun = [making.begun for making in around if making.begun]
                _unsaved[self._key] = [*_unsaved.get(self._key, ()), *begun, record]
                _tell(around)
        with self._lock:
            self._calls.append({**keys, "tools": tools})

    def _make(self, site: Site, name: str, input: Any, output: Any) -> None:
        if site.in_tool:  # What a tool calls is its own affair: only what the tool gave was seen.
            return
        with self._lock:
            made = {"name": name, "input": input, "output": output}
            self._made.setdefault(site.call, []).append(made)

    # -- all of them

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """While a step is made: a turn waits for people when its other steps are over."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """A step is under way from now on, until `leave`."""
        with self._lock:
            self._under_way += 1

    def leave(self) -> None:
        """A step is over."""
        with self._lock:
            self._under_way -= 1

    @property
    def settled(self) -> bool:
        """Whether nothing was asked, or nothing else is under way: what the run ends by is known."""
        return not self.questions or self._under_way == 0

    def close(self) -> None:
        """Make no more steps."""
        with self._lock:
            self._closed = True

    def left(self) -> list[str]:
        """Return the recorded steps that the run did not come to."""
        with self._lock:
            return self._before.left()

    def numbered(self, site: str, name: str) -> str:
        """Return the site of a call made at a site: the first `answer` in `support#1` is `support#1/answer#1`."""
        with self._lock:
            return self._before.numbered(f"{site}/{name}" if site else name)

    # -- asking

    def _denied(self, call: _Call, asked: Question | None) -> str | None:
        """Return what the program is told where a tool may not run; None: it may."""
        question = self._question(call) if asked is None else asked.asked
        if asked is None and not approving.asks(self._rule, question):
            return None
        if asked is not None and asked.verdict is not None:
            self._say("approved", call, verdict=asked.verdict, by=asked.by, reason=asked.reason)
            return None if asked.verdict == "yes" else approving.denial(asked.reason)
        self._say("approval", call, input=call.input, path=question["path"], effects=call.effects)
        verdict = approving.answered_at_once(
            self._rule, copy.deepcopy({**question, "input": call.given})
        )
        if verdict is None:
            with self._lock:
                self.questions.append(question)
            paused = Paused(f"{question['path']} waits for a person")
            call.site.leave(paused)
            raise paused
        said = {name: question.get(name) for name in ("site", "invocation", "path", "asked")}
        keys = {**said, "plugin": RULE, "verdict": verdict.word, "reason": verdict.reason}
        self.append([self._new("approval", **keys)], call.site)
        self._say("approved", call, verdict=verdict.word, by=None, reason=verdict.reason)
        return None if verdict.word == "yes" else approving.denial(verdict.reason)

    def _question(self, call: _Call) -> dict[str, Any]:
        within = {"scope": call.site.scope, "within": call.site.within} if call.site.scope else {}
        return {
            **within,
            "call": call.site.call,
            "invocation": call.place.invocation,
            "id": call.id,
            "name": call.name,
            "input": call.input,
            "effects": call.effects,
            "path": call.site.path(call.name),
            "site": call.place.site,
            "plugin": "approval",
            "asked": recorded.hashed(call.name, call.input),
        }

    # -- parts

    def _tool(self, call: _Call, state: str, **keys: Any) -> NewRecord:
        place = {"site": call.place.site, "invocation": call.place.invocation, "id": call.id}
        return self._new("tool", name=call.name, state=state, **place, **_scope(call.site), **keys)

    def _new(self, kind: str, **keys: Any) -> NewRecord:
        at = times.to_text(self._world.now())
        record = new(kind, at, turn=self.turn, attempt=self._claim.attempt)
        return {**record, **keys}

    def _say(self, kind: str, call: _Call, **keys: Any) -> None:
        if self._scribe is not None:
            number = call.place.invocation
            self._scribe.step(kind, id=call.id, invocation=number, name=call.name, **keys)

    def _refuse_closed(self, site: Site) -> None:
        if os.getpid() != self._process:
            raise LeaseLost(turn=self.turn, reason="it runs in the process that started it")
        if self._closed:
            paused = Paused("the turn waits for a person")
            site.leave(paused)
            raise paused


class _Call(NamedTuple):
    """A tool call that is about to be made."""

    site: Site
    place: Place
    id: str
    name: str
    input: Any
    effects: Effects | None
    given: Any
    """The input as the tool itself is given it, where `input` is what is recorded of it."""


_UNFIT = ("record-invalid", "record-too-large", "turn-stopped", "lease-lost")
"""Refusals that trying again does not change."""


def unsaved(history: History, key: Key) -> list[NewRecord]:
    """Return what steps of a turn gave in this process and its log still has to be told."""
    kept = _unsaved.get(key, ())
    return recorded.missing(history.node(key[-1]), kept) if kept else []


def saved(key: Key) -> None:
    """Say that what steps of a turn gave is stored."""
    _unsaved.pop(key, None)


def _tell(around: list[Making]) -> None:
    for making in around:
        making.known = True


def _left(begun: Begun) -> BaseException | None:
    """Return why a step in a call could not go on, if one could not."""
    making = begun.inside.making if begun.inside is not None else None
    return making.left if making is not None else None


def _leaves(error: BaseException) -> bool:
    """Say whether an error leaves a call where a step in it cannot go on, whatever a group of tasks made of it."""
    if isinstance(error, BaseExceptionGroup):
        return all(_leaves(each) for each in error.exceptions)
    return isinstance(error, Paused | TurnChanged)


def _scope(site: Site) -> dict[str, str]:
    return {"scope": site.scope} if site.scope else {}


def _refuse_in_reply(site: Site) -> None:
    if site.in_reply:
        raise LookupError(
            "the call of `reply` makes no steps of its own: what it gave is kept whole. Have a call that makes "
            "steps made by `tool`, with effects='reads' where only they change things"
        )


def check_tool(name: Any, id: Any, effects: Any) -> None:
    """Refuse what names no tool call. Raises: record-invalid, ValueError."""
    if not isinstance(name, str) or not name:
        raise RecordInvalid(path="name", reason="a tool's name is text that is not empty")
    if id is not None and (not isinstance(id, str) or not id or id.startswith(MADE_UP)):
        reason = f"a tool call's own id is text that is not empty and begins with no {MADE_UP}"
        raise RecordInvalid(path="id", reason=reason)
    if effects not in ("reads", "changes", None):
        raise ValueError(f"effects is 'reads', 'changes' or None (not known), not {effects!r}")


def _wrapped(response: Any) -> dict[str, Any]:
    plain = isinstance(response, dict) and set(response) != {PLAIN}
    return response if plain else {PLAIN: response}


def _unwrapped(response: Any) -> Any:
    if isinstance(response, Mapping) and set(response) == {PLAIN}:
        return response[PLAIN]
    return response
