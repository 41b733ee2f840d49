"""Programs called inside a turn: helpers. They start fresh unless the conversation says that they remember.

A helper runs in its caller's turn, at a place of its own in the tree of calls: its steps are recorded
there, what it uses counts for the turn, and what it says in pieces is nobody's answer. One that
remembers is shown its own earlier calls: those of the turns of this branch that are done, as their last
attempts made them, and then those of this turn; or the latter alone.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, Self, get_args

from ledger.records import canonical, messages, values
from ledger.records.messages import Called, Message
from ledger.turns import callables, current, loops
from ledger.turns.alone import AloneCall
from ledger.turns.attachments import Attachment
from ledger.turns.current import Running
from ledger.turns.pool import in_pool
from ledger.turns.programs import Program
from ledger.turns.sites import Site
from ledger.turns.steps import Steps
from ledger.turns.telling import Exchange
from ledger.views import History
from ledger.views import steps as turn_steps

Mode = Literal["conversation", "turn"]
AWARE = "__ledger_helper__"
"""Under which a declared function has the function that was declared."""
Key = tuple[str, str]
"""A program, by its name and module."""


class Memory(NamedTuple):
    """What a helper is shown of its own earlier calls. Made by `remember`."""

    mode: Mode
    steps: bool = False
    """Whether with the tools they called."""


def remember(mode: Mode, *, steps: bool = False) -> Memory:
    """Say what a helper is shown of its own earlier calls (`remembers=` of `open`).

    Args: mode: `conversation`: those on this branch, in earlier turns and this one; `turn`: those in this
    turn. steps: with the tool calls that they made, under `steps` in each row.
    """
    if mode not in get_args(Mode):
        raise ValueError(f"a helper remembers 'conversation' or 'turn', not {mode!r}")
    return Memory(mode, steps)


class Remembering(NamedTuple):
    """Who remembers what in the turns of a conversation."""

    helpers: Mapping[Key, Memory] = {}
    own: frozenset[str] = frozenset()
    """The conversations that may be used inside its turns, as conversations of their own."""

    @classmethod
    def of(cls, remembers: Mapping[Any, Any]) -> Remembering:
        """Read what a caller says: helper -> mode or Memory; conversation -> "own". Raises: TypeError."""
        if not isinstance(remembers, Mapping):
            raise TypeError(f"remembers maps programs to what they remember, not {remembers!r}")
        helpers: dict[Key, Memory] = {}
        own = set()
        for who, what in remembers.items():
            if what == "own":
                own.add(_conversation(who))
                continue
            memory = what if isinstance(what, Memory) else remember(what)
            key = key_of(_declared(who))
            if helpers.setdefault(key, memory) != memory:
                raise TypeError(f"remembers says two things of {'.'.join(reversed(key))}")
        return cls(helpers, frozenset(own))

    def recorded(self) -> list[dict[str, Any]] | None:
        """Return it as a turn's record says it, so that who goes on with the turn shows helpers the same."""
        helpers = [
            {"name": name, "module": module, "mode": memory.mode, "steps": memory.steps}
            for (name, module), memory in sorted(self.helpers.items())
        ]
        return [*helpers, *({"conversation": name} for name in sorted(self.own))] or None

    @classmethod
    def of_record(cls, said: Any) -> Remembering:
        """Read what a turn's record says; what is not understood is left out."""
        helpers: dict[Key, Memory] = {}
        own = set()
        for each in filter(_is_object, said if isinstance(said, list) else []):
            name, module, mode = (each.get(k) for k in ("name", "module", "mode"))
            if isinstance(each.get("conversation"), str):
                own.add(each["conversation"])
            elif isinstance(name, str) and isinstance(module, str) and mode in get_args(Mode):
                helpers[name, module] = Memory(mode, each.get("steps") is True)
        return cls(helpers, frozenset(own))

    def __bool__(self) -> bool:
        return bool(self.helpers or self.own)


def _declared(who: Any) -> Callable[..., Any]:
    """Return the function that a helper is, found through what stands for it. Raises: TypeError: it is no helper."""
    if hasattr(who, "continue_from"):
        raise TypeError(f'remembers: {who!r} is a conversation, which remembers its "own"')
    if not callable(who):
        raise TypeError(f"remembers maps programs to what they remember, not {who!r}")
    for layer in callables.layers(who):
        found = getattr(layer, AWARE, None)
        if inspect.isfunction(found):
            return found
    raise TypeError(
        f"remembers: {callables.name_of(who)} is no helper, so it would remember nothing: "
        "declare it with @ledger.program, or a function that calls it"
    )


def _conversation(who: Any) -> str:
    name = getattr(who, "id", None)
    if not isinstance(name, str) or not hasattr(who, "continue_from"):
        raise TypeError(f"only a conversation remembers its own, not {who!r}")
    return name


def key_of(function: Callable[..., Any]) -> Key:
    """Return what a program is remembered under."""
    return callables.name_of(function), callables.module_of(function)


class Helper(Running):
    """A helper's call, as its code sees it: the turn of its caller, its own memory."""

    def __init__(
        self,
        outer: Running,
        steps: Steps,
        site: Site,
        rows: list[dict[str, Any]],
        exchange: Exchange,
    ) -> None:
        super().__init__(
            outer.conversation,
            outer.turn,
            outer.settings,
            lambda: steps.raised(copy.deepcopy(rows)),
            steps=steps,
            site=site,
            remembering=outer.remembering,
            lookup=outer.lookup,
            exchange=exchange,
        )
        self._outer = outer
        self._within = outer._within  # Who stops the turn stops what is done inside, here too.

    def count(self, model: str | None, counts: Mapping[str, int]) -> None:
        """Count for the turn too; its model is for the turn's own program to say."""
        super().count(model, counts)
        self._outer.count(None, counts)

    @property
    def stopped(self) -> bool:
        """Whether the turn was stopped."""
        return self._outer.stopped

    @property
    def over(self) -> bool:
        """Whether the turn has ended."""
        return self._outer.over

    @over.setter
    def over(self, over: bool) -> None:
        """It ends with its caller's turn."""


class _Remembered(NamedTuple):
    """An earlier call that a helper is shown."""

    call: str
    row: dict[str, Any]
    messages: list[Message]


class Call:
    """One call of a helper, from its beginning to its record: made, then entered, then recorded."""

    helper: Helper
    """The call as its code sees it, once it is entered."""

    def __init__(
        self, outer: Running, steps: Steps, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        self._outer = outer
        self._steps = steps
        self._function = function
        self._program = _program(function)
        self.given: list[Attachment] = []
        """The attachments in its inputs: keeping them may take its time."""
        _, self._inputs = self._program.bind(args, kwargs, self.given)

    def enter(self) -> Self:
        """Give the call its place and its memory. Raises: as `Log.keep`."""
        outer, steps, function = self._outer, self._steps, self._function
        steps.keep(self.given)
        name = self._program.description.name
        around = outer.where()
        kept = steps.redacted(copy.deepcopy(self._inputs), "inputs")
        scope = canonical.sha256([around.scope, *key_of(function), values.identity(kept)])
        within = {"name": name, "inputs": kept}
        place = steps.numbered(around.site, name)
        site = Site(
            outer.lookup.new_call(), place, scope, within, around.making, trail=around.path(name)
        )
        self._memory = outer.remembering.helpers.get(key_of(function))
        self._shown = self._remembered(outer) if self._memory is not None else []
        rows = [row for _, row, _ in self._shown]
        said = [message for _, _, told in self._shown for message in told]
        exchange = Exchange(lambda: said, messages.from_inputs(self._inputs), outer.exchange.read)
        self.helper = Helper(outer, steps, site, rows, exchange)
        return self

    @property
    def lane(self) -> Hashable:
        """Where the jobs of its conversation stand in line."""
        return self._steps.lane

    def _remembered(self, outer: Running) -> list[_Remembered]:
        assert self._memory is not None
        history = outer.lookup.history()
        before = earlier_calls(history, outer.turn) if self._memory.mode == "conversation" else []
        description = self._program.description
        key = description.name, description.module
        mine = [c for c in (*before, *self._steps.calls()) if _made_by(c) == key]
        steps, answer = self._memory.steps, description.answer
        return [
            _Remembered(
                call["call"],
                turn_steps.call_row(call, steps=steps),
                _told(call, answer, steps=steps),
            )
            for call in mine
        ]

    @property
    def keeps(self) -> bool:
        """Whether it is kept for later: its helper is remembered."""
        return self._memory is not None

    def say(self, piece: str) -> None:
        """Say a piece of a generator's, as `emit`."""
        self.helper.emit(piece)

    def record(self, value: Any) -> None:
        """Keep the call for later, if it is remembered. Raises: record-invalid, and as a step."""
        if self._memory is None:
            return
        given: list[Attachment] = []
        outputs = self._program.outputs(value, given)
        self._steps.keep(given)
        description = self._program.description
        mark = {"steps": True} if self._memory.steps else {}
        program = {"name": description.name, "module": description.module}
        self._steps.keep_call(
            self.helper.site,
            program={**program, "signature": canonical.sha256(description.fields)},
            lmcc={"inputs": self._inputs, "outputs": outputs, "steps": []},
            saw=[{"call": call, **mark} for call, _, _ in self._shown],
            given=[*self.given, *given],
        )

    def answer(self, returned: Any = None) -> Any:
        """Return what a helper that is a generator answered."""
        return self._program.streamed(self.helper.pieces.text, returned)


@functools.lru_cache(maxsize=256)
def _program(function: Callable[..., Any]) -> Program:
    return Program(function)


def earlier_calls(history: History, turn: str) -> list[dict[str, Any]]:
    """Return the helpers' calls in the turns that are done before a turn."""
    parent = history.node(turn).parent
    found = []
    for before in history.branch(parent) if parent is not None else []:
        node = history.node(before)
        if not node.done:
            continue
        found += [turn_steps.call_said(call) for call in turn_steps.calls(node)]
    return found


def _made_by(call: Mapping[str, Any]) -> Key:
    program = call["program"]
    return str(program.get("name")), str(program.get("module"))


def _told(call: Mapping[str, Any], answer: str, *, steps: bool) -> list[Message]:
    """Return a helper's call as messages."""
    inputs, outputs = (_object(call["lmcc"].get(side)) for side in ("inputs", "outputs"))
    tools = list(call.get("tools") or []) if steps else []
    rounds = [
        messages.round_of([Called(f"#{n}", t.get("name", ""), t.get("input"), t.get("output"))])
        for n, t in enumerate(tools, 1)
    ]
    before = [*messages.from_inputs(inputs), *(m for each in rounds for m in each)]
    return [*before, *messages.from_result(outputs.get(answer))]


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# -- what a declared program does when it is called --------------------------------------------------

_ROOT: ContextVar[Any] = ContextVar("ledger_root", default=None)
"""The program of a turn that is about to be called as such: its first call is no helper's."""


def entering(function: Callable[..., Any]) -> None:
    """Say in the present context that the next call of this program is the turn's own."""
    _ROOT.set(callables.innermost(function))


def begin(function: Callable[..., Any], args: Any, kwargs: Any) -> Call | AloneCall | None:
    """Return the call that a program makes as a helper, or by itself; None: it is a turn's own, or in a merge."""
    if current.alone():
        return AloneCall(function, args, kwargs)
    running = current.running_turn()
    if running is None or running.steps is None:
        return None
    if _ROOT.get() is not None and _ROOT.get() is callables.innermost(function):
        _ROOT.set(None)
        return None
    return Call(running, running.steps, function, args, kwargs)


def aware(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is a helper where it is called inside a turn, and outside has a turn of its own."""
    kind = callables.kind_of(function)
    made = {"async": _async, "generator": _generator, "async-generator": _async_generator}
    helper = functools.wraps(function)(made.get(kind, _plain)(function))
    setattr(helper, AWARE, function)
    return helper


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        helped = begin(function, args, kwargs)
        if helped is None:
            return function(*args, **kwargs)
        helped.enter()
        with current.within(helped.helper):
            value = function(*args, **kwargs)
        helped.record(value)
        return value

    return call


def _async(function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        helped = begin(function, args, kwargs)
        if helped is None:
            return await function(*args, **kwargs)
        await _enter(helped)
        with current.within(helped.helper):
            value = await function(*args, **kwargs)
        await _record(helped, value)
        return value

    return call


async def _record(call: Call | AloneCall, value: Any) -> None:
    if call.keeps:
        await loops.done(in_pool(lambda: call.record(value), call.lane))


async def _enter(call: Call | AloneCall) -> None:
    """Enter a call; by a thread where its attachments may have to be written."""
    if call.given:
        await loops.done(in_pool(call.enter, call.lane))
    else:
        call.enter()


def _generator(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        helped = begin(function, args, kwargs)
        if helped is None:
            return (yield from function(*args, **kwargs))
        helped.enter()
        pieces, value = function(*args, **kwargs), None
        while True:
            with current.within(helped.helper):
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    value = end.value
                    break
                helped.say(piece)
            yield piece
        helped.record(helped.answer(value))
        return value

    return call


def _async_generator(function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        helped = begin(function, args, kwargs)
        pieces = function(*args, **kwargs)
        if helped is None:
            async for piece in pieces:
                yield piece
            return
        await _enter(helped)
        while True:
            with current.within(helped.helper):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    break
                helped.say(piece)
            yield piece
        await _record(helped, helped.answer())

    return call
