"""The turn that is running in this thread or task, as its program sees it.

Tasks and `asyncio.to_thread` carry it by themselves, since it is a context variable. Plain threads
and thread pools start with an empty context, so while a turn runs they are given it as well
(`_carry`): whoever starts a thread inside a program expects to be in the same turn.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context
from typing import Any

from ledger.bells import OwnLock
from ledger.errors import Cancelled, RecordInvalid
from ledger.formats.usage import taken
from ledger.records import values
from ledger.turns import here, loops, stepping
from ledger.turns.here import Here
from ledger.turns.pieces import Pieces
from ledger.turns.pool import in_pool
from ledger.turns.sites import Site
from ledger.turns.steps import Effects, Steps
from ledger.turns.telling import Exchange, told
from ledger.views import sites


class Running:
    """What a program may ask about the turn it answers, and add to it. Safe for threads."""

    of_a_turn = True
    """Whether it is a turn of a conversation, or inside one; else a declared program was called by itself."""

    def __init__(
        self,
        conversation: str,
        turn: str,
        settings: Mapping[str, Any],
        earlier: Callable[[], list[dict[str, Any]]],
        *,
        pieces: Pieces | None = None,
        steps: Steps | None = None,
        site: Site | None = None,
        remembering: Any = None,
        lookup: Any = None,
        exchange: Exchange | None = None,
    ) -> None:
        self.conversation = conversation
        """The conversation's id; empty where the program was called by itself."""
        self.turn = turn
        """The turn's id, recorded before the program was called; empty as the conversation's."""
        self.settings = dict(settings)
        """The conversation's settings with the turn's own over them."""
        self.model: str | None = None
        self.usage: dict[str, int] = {}
        self.pieces = pieces if pieces is not None else Pieces()
        """What it has said so far."""
        self.over = False
        """Whether the turn has ended; its program may still be at work after a stop."""
        self.steps = steps
        """Where its replies and tool calls are recorded; None: nowhere."""
        self.site = site if site is not None else Site(turn, "")
        """Where in the tree of calls it begins."""
        self.remembering = remembering
        """Who remembers what in its turns (`helping.Remembering`)."""
        self.lookup = lookup
        """Where helpers find what was before (`launching.Lookup`)."""
        self.exchange = exchange if exchange is not None else Exchange()
        """What it and its model say to each other."""
        self._earlier = earlier
        self._within: list[Callable[[], None]] = []
        self._stopped = False
        self._lock = threading.Lock()

    def earlier(self) -> list[dict[str, Any]]:
        """Return what the turn is shown: a dict per earlier turn, its inputs and outputs by name.

        Under `compacted(...)` the first may stand for many turns: `{"summary": text}`. A turn that
        called tools has them under `steps`, unless the conversation's `context` leaves them out.
        """
        return self._earlier()

    def messages(
        self, format: str | None = None, *, instructions: str | None = None, strict: bool = False
    ) -> Any:
        """Return what to send to a model now: what the turn is shown, its user side, what came after by now.

            reply = client.chat.completions.create(model=m, messages=turn.messages("openai"))

        Each earlier turn with its tool rounds, unless the conversation's `context` leaves them out. On an event loop
        it is awaited, since attachments are read from the store.
        Args: format: `openai`, `openai-responses`, `anthropic` or `pydantic-ai`; None: neutral messages.
        instructions: text to begin with, by the system; it is not recorded. strict: refuse what the provider
        cannot be told; else it is left out, with a `LossWarning`.
        Raises: ValueError: there is no such format. messages-lossy; store errors.
        """
        said = self._exchange().so_far
        how: dict[str, Any] = {"instructions": instructions, "strict": strict}
        read = self.exchange.read
        if loops.running_loop() is None:
            return told(said, format, read=read, **how)
        lane = None if self.steps is None else self.steps.lane
        return loops.done(in_pool(lambda: told(said, format, read=read, **how), lane))

    def note(
        self,
        *,
        model: str | None = None,
        usage: Any = None,
        messages: Any = None,
        format: str | None = None,
    ) -> None:
        """Say which model answered, add to the token counts of this turn, and to its messages.

        Args: usage: token counts by name, whole numbers, or the usage of a provider's reply, as its client gives
        it or as data. messages: what came after the user side: a message or a list of them, neutral or in a
        provider's `format` (as `messages` has them), or the object that the provider's client gave. Of a whole
        reply the model and the usage are taken too, where none is given. Results of tools need no note: a call
        without one gets what `tool` gave under its `id`.
        Raises: record-invalid, import-invalid: a count is not a whole number of at least 0, or something is no
        text or message that can be kept; nothing was added.
        TypeError: the model is no text. ValueError: there is no such format.
        """
        check_model(model)
        counts = None if usage is None else taken(usage)
        if messages is not None:
            said = self._exchange().note(messages, format)
            model = said.model if model is None else model
            counts = said.usage if counts is None else counts
        counts = counts or {}
        self.count(model, counts)
        around = here.get()
        if around is not None and around.notes is not None:
            around.notes.add(model if around.notes.by is self else None, counts)

    def count(self, model: str | None, counts: Mapping[str, int]) -> None:
        """Count what was noted: for the turn, and in no step's record."""
        with self._lock:
            if model is not None:
                self.model = model
            for name, count in counts.items():
                self.usage[name] = self.usage.get(name, 0) + count

    def emit(self, text: str) -> None:
        """Say a piece of the answer now, to whoever streams or follows the turn.

        The answer is what the program returns; the pieces are kept only where it has none (`partial`).
        Raises: turn-stopped: somebody stopped the turn. record-invalid: it is no text that can be kept.
        """
        if self.stopped:
            raise Cancelled(turn=self.turn)
        check_piece(text)
        if text:
            self.pieces.add(text)

    def reply(self, request: Any, call: Callable[[], Any]) -> Any:
        """Have a model called once for a request, and keep its reply: a resumed turn pays for none twice.

            text = turn.reply({"model": m, "messages": messages}, lambda: client.ask(m, messages))

        On an event loop it is awaited, and `call` may be async; elsewhere it blocks.
        Args: request: what the reply depends on, as JSON has it; the same request later in the turn is
        another call. call: asks the model, and returns what JSON can hold exactly.
        Returns: what it returned, now or before the turn was interrupted.
        Raises: what `call` raises; record-invalid; turn-stopped, lease-lost, store errors.
        Not promised: that a reply is paid once which came just before the process died.
        """
        steps = self._steps()
        site = self.where()
        begin = functools.partial(steps.begin_reply, site, request)
        return stepping.step(steps, site, begin, call, self)

    def tool(
        self,
        name: str,
        input: Any,
        call: Callable[[], Any],
        *,
        id: str | None = None,
        effects: Effects | None = None,
    ) -> Any:
        """Have a tool run once, and keep what it gave: a resumed turn runs none twice by itself.

            found = turn.tool("refund", {"order": 7}, lambda: refund(7), effects="changes")

        A tool that changes things is recorded as started before it runs. Should its process die in it, a
        person has to say what it gave, or that it is to run again (`Turn.resume`). Where the conversation's
        `approve` asks about it, the turn waits for a person first; a refusal is given back in place of an
        output, as text for the model. On an event loop it is awaited, and `call` may be async.
        Args: name, input: the tool and what it is given, as JSON has it: by these a resumed turn finds its
        record, of several that are the same the first first. call: runs it; returns what JSON can hold
        exactly. id: the model's own id for the call, where it has one. effects: `reads`, `changes`;
        None: not known, which counts as `changes`.
        Returns: what it gave, now or before the turn was interrupted.
        Raises: what `call` raises; record-invalid; turn-stopped, lease-lost, store errors.
        """
        steps = self._steps()
        site = self.where()
        begin = functools.partial(steps.begin_tool, site, name, input, id=id, effects=effects)
        if site is not self.site:
            return stepping.step(steps, site, begin, call, self)
        try:
            made = stepping.step(steps, site, begin, call, self)
        except Exception as error:
            self.exchange.failed(id, name, input, error)
            raise
        return self.exchange.called(id, name, input, made)

    def where(self) -> Site:
        """Return where in the tree of calls this code is: here, or in a call that was made from here."""
        around = here.get()
        if around is None or around.running.steps is not self.steps:
            return self.site
        return around.site if sites.holds(self.site.site, around.site.site) else self.site

    def _exchange(self) -> Exchange:
        if self.where() is not self.site:
            raise LookupError(
                "the call of a tool or of a model has no messages of its own: an agent that is called there is "
                "declared with ledger.program"
            )
        return self.exchange

    def _steps(self) -> Steps:
        if self.steps is None:
            raise LookupError("no conversation records the steps of this turn")
        return self.steps

    @property
    def stopped(self) -> bool:
        """Whether the turn was stopped, or is no longer this process's: return soon."""
        return self._stopped

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """While this is done, who stops the turn stops that too: it makes turns of another conversation, and waits."""
        self._within.append(stop)
        try:
            if self.stopped:
                stop()
            yield
        finally:
            self._within.remove(stop)

    def stop_within(self) -> None:
        """Stop what is done inside. Not so when the turn is lost: whoever has it now goes on with that, too."""
        for stop in list(self._within):
            stop()

    def ask_to_stop(self) -> None:
        """Make `stopped` true. What the program does about it is up to the program."""
        self._stopped = True


class Unrecorded(Running):
    """A merge while its program is at work: it has a record once that is over.

    It is shown the answers that are merged and no earlier turns; it keeps no steps. `stopped` is true once it is not
    wanted any more.
    """

    def __init__(
        self,
        conversation: str,
        turn: str,
        settings: Mapping[str, Any],
        exchange: Exchange,
        cancelled: Callable[[], bool],
    ) -> None:
        super().__init__(conversation, turn, settings, list, exchange=exchange)
        self.inside = recorded_turn()
        """The turn in which it is made; None: in none."""
        self._cancelled = cancelled

    @property
    def stopped(self) -> bool:
        """Whether it is not wanted any more."""
        return super().stopped or self._cancelled()


def check_piece(text: object) -> None:
    """Refuse what is no piece of an answer. Raises: record-invalid."""
    if not isinstance(text, str):
        raise RecordInvalid(path="emit", reason=f"a piece is text, not {type(text).__name__}")
    values.check(text, "emit", references=False)


def check_model(model: object) -> None:
    """Refuse a model that readers would not find again: it is named by text. Raises: TypeError."""
    if model is not None and not isinstance(model, str):
        raise TypeError(f"a model is named by text, not {type(model).__name__}")
    values.check(model, "model", references=False)


def current() -> Running:
    """Return the turn that this code runs in.

    A program that is declared with `ledger.program` and called by itself, outside every turn, has one of its own: it is
    shown nothing (`earlier()` is empty, `messages()` has its own inputs), `settings` are empty, a reply or tool is
    called and nothing is recorded, a piece is told to nobody.
    Raises: LookupError: no turn is running here.
    """
    around = here.get()
    if around is None:
        raise LookupError(
            "no turn is running here; ledger.current() is for use inside a program: one that is called by itself "
            "is declared with @ledger.program"
        )
    return _running(around)


def running_turn() -> Running | None:
    """Return the turn that this code runs in and that has not ended, or None."""
    around = here.get()
    return _running(around) if around is not None and _lasts(around) and not alone() else None


def alone() -> bool:
    """Say whether this code is outside every turn, those that ended included."""
    around = here.get()
    return around is None or not around.running.of_a_turn


def _lasts(around: Here | None) -> bool:
    return around is not None and not around.running.over


def recorded_turn() -> Running | None:
    """Return the turn that this code runs in, that is recorded and has not ended, or None."""
    running = running_turn()
    return running.inside if isinstance(running, Unrecorded) else running


def _running(around: Here) -> Running:
    running: Running = around.running
    return running


def enter(running: Running) -> None:
    """Make a turn the running one for the rest of this context."""
    _carry()
    here.enter(Here(running, running.site))


def being(running: Running) -> AbstractContextManager[None]:
    """Be in a turn for a while."""
    _carry()
    return here.being(Here(running, running.site))


def within(running: Running) -> AbstractContextManager[None]:
    """Be in a call inside the turn."""
    _carry()
    around = here.get()
    return here.being(Here(running, running.site, around.notes if around is not None else None))


# -- threads that a program starts -----------------------------------------------------------------

_carrying = OwnLock()


def _carry() -> None:
    """From the first turn on, let threads and pools that a program uses be in its turn.

    Outside a turn the two methods do what they did. Nothing but this one variable is carried.
    """
    with _carrying.lock:
        start: Any = threading.Thread.start
        if getattr(start, "carries_turns", False):
            return

        @functools.wraps(start)
        def start_inside(thread: threading.Thread) -> None:
            if _lasts(here.get()):
                thread.run = _inside(here.get(), thread.run)  # type: ignore[method-assign]
            start(thread)

        start_inside.carries_turns = True  # type: ignore[attr-defined]
        setattr(threading.Thread, "start", start_inside)  # noqa: B010 - mypy takes no assignment
        _carry_into_pools()


def _carry_into_pools() -> None:
    try:
        from concurrent.futures import ThreadPoolExecutor
    except RuntimeError:
        return  # The main thread has returned, and nobody can have loaded it before: so there are no pools.
    submit: Any = ThreadPoolExecutor.submit

    @functools.wraps(submit)
    def submit_inside(
        pool: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        if not _lasts(here.get()):
            return submit(pool, fn, *args, **kwargs)
        # The pool's own threads serve other turns later: they are started outside this one.
        work = functools.partial(submit, pool, _inside(here.get(), fn), *args, **kwargs)
        return Context().run(work)

    setattr(ThreadPoolExecutor, "submit", submit_inside)  # noqa: B010 - mypy takes no assignment


def _inside(around: Here | None, fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def inside(*args: Any, **kwargs: Any) -> Any:
        token = here.enter(around)
        try:
            return fn(*args, **kwargs)
        finally:
            here.leave(token)

    return inside
