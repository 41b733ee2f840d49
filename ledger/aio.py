"""Conversations, awaitable: the same verbs as `ledger.open` gives, for code on an event loop.

    chat = ledger.aio.open("alex", answer, store="chats")
    async with chat.stream("Hi") as s:
        async for piece in s:
            ...

Nothing here reads or writes a file on the loop: what may wait for a store is done by a bounded number
of threads, and a store whose methods are coroutines is awaited on the caller's loop. A program that is
async runs on the caller's loop; one that is not, in a thread.

Each verb is the blocking one of `ledger.conversation`, done elsewhere and awaited. Only what waits for
long is written here once more: a send that queues, an answer that is still being made.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from inspect import BoundArguments
from types import EllipsisType, TracebackType
from typing import Any, Self, TypeVar

from ledger import conversation as blocking
from ledger.turn import TurnBase, outcome_of
from ledger.turns import keeper, loops, running, stopping
from ledger.turns.following import Following
from ledger.turns.log import POLL_S, Log
from ledger.turns.receipts import Receipt
from ledger.turns.running import Run
from ledger.turns.view import Making, Siblings, Start, TurnLike
from ledger.views import Lineage, Rule, drawing
from ledger.views.place import Sends

T = TypeVar("T")
_Begun = tuple[bool, Run | None]
"""Whether a turn was recorded, and its run; None: it repeats a turn."""

_SHORTEST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.2


def open(
    id: str | None = None,
    program: Callable[..., Any] | None = None,
    *,
    store: Any = None,
    context: Rule | None = None,
    sends: Sends = "queue",
    rename: Mapping[str, str] | None = None,
    earlier_without: Sequence[str] = (),
    **settings: Any,
) -> Conversation:
    """Open a conversation by id, again or for the first time. Nothing is written by opening.

    As `ledger.open`, for callers that await: `ledger.aio.open(...)`; to await it does no harm.
    Args, Raises: as `ledger.open`.
    """
    return Conversation(
        blocking.open(
            id,
            program,
            store=store,
            context=context,
            sends=sends,
            rename=rename,
            earlier_without=earlier_without,
            **settings,
        )
    )


async def drain(timeout_s: float | None = None) -> list[str]:
    """Wait until none of this process's turns runs, or the time is up: before a worker goes.

    Returns: the ids of the turns that still run. Their programs are not stopped.
    """
    loop = asyncio.get_running_loop()
    deadline = None if timeout_s is None else loop.time() + timeout_s
    while left := running.all_here():
        wait_s = None if deadline is None else max(deadline - loop.time(), 0)
        over = [asyncio.ensure_future(_over(run.outcome)) for run in left]
        _, late = await asyncio.wait(over, timeout=wait_s)
        for task in late:
            task.cancel()
        if late:
            return [run.turn for run in running.all_here()]
    return []


class Conversation:
    """A conversation as one caller sees it, awaitable. Made by `ledger.aio.open` and `continue_from`.

    Tasks may share it. Called and awaited, it makes one turn with its program and gives the answer.
    """

    def __init__(self, inner: blocking.Conversation) -> None:
        self._inner = inner
        self._log = inner._log
        self._view = inner._view
        self._maker = inner._maker

    def __await__(self) -> Generator[Any, Any, Self]:
        """Give the conversation: there is nothing to wait for."""
        return self
        yield

    @property
    def id(self) -> str:
        """The conversation's id: the same id in the same store is the same conversation."""
        return self._inner.id

    @property
    def store(self) -> Any:
        """The store it is kept in."""
        return self._inner.store

    # -- reading

    @property
    async def turns(self) -> list[Turn]:
        """The turns from the first to where this view stands, in order."""
        return await self._turns(await self._do(lambda: self._inner.turns))

    async def all_turns(self) -> list[Turn]:
        """Return every turn of every branch, in log order."""
        return await self._turns(await self._do(self._inner.all_turns))

    async def turn(self, turn: TurnLike) -> Turn:
        """Return one turn: by id, by a part of an id that only one has, or by ordinal (1 is first).

        Raises: turn-unknown, saying how many fit.
        """
        return (await self._turns([await self._do(lambda: self._inner.turn(turn))]))[0]

    @property
    async def head(self) -> Turn | None:
        """The turn this view stands on; None: the conversation is empty."""
        found = await self._do(lambda: self._inner.head)
        return None if found is None else (await self._turns([found]))[0]

    async def set_head(self, turn: TurnLike) -> None:
        """Make a turn the head for everyone who opens the conversation; this view continues from it."""
        await self._do(lambda: self._inner.set_head(turn))

    async def heads(self) -> list[Turn]:
        """Return the leaves of the tree, newest first, without failed and merged ones."""
        return await self._turns(await self._do(self._inner.heads))

    async def lineage(self, turn: TurnLike) -> Lineage:
        """Return what a turn's answer rests on, how, and what it influenced."""
        return await self._do(lambda: self._inner.lineage(turn))

    async def tree(self, *, width: int = 100) -> drawing.Tree:
        """Return the tree of turns as text: states, models, merges, title, head; `str` of it."""
        return await self._do(lambda: self._inner.tree(width=width))

    async def render(self, *args: Any, **kwargs: Any) -> drawing.Rendered:
        """Return what the next turn would be shown; nothing is recorded. See `ledger.Conversation`."""
        return await self._do(lambda: self._inner.render(*args, **kwargs))

    # -- going on elsewhere

    async def continue_from(self, turn: TurnLike) -> Conversation:
        """Return a view that continues from exactly this turn, also when it is the newest."""
        return Conversation(await self._do(lambda: self._inner.continue_from(turn)))

    # -- making turns

    async def __call__(self, *args: Any, request_id: str | None = None, **kwargs: Any) -> Any:
        """Make one turn with the program and return its answer. Cancelled, its turn ends `stopped`.

        Raises: what the program raises, after the turn is recorded `failed`; the errors of `send`.
        """
        start, bound = self._maker.prepare(args, kwargs, request_id)
        return await self._answer(start, await self._begin(start, bound))

    async def send(self, *args: Any, request_id: str | None = None, **kwargs: Any) -> Turn:
        """Make one turn with the program and return the turn. Cancelled, it ends `stopped`.

        A send that still waits for its place is cancelled without a record.
        Args, Raises: as `ledger.Conversation.send`.
        """
        start, bound = self._maker.prepare(args, kwargs, request_id)
        await self._answer(start, await self._begin(start, bound))
        return self._turn(start.made)

    def stream(self, *args: Any, request_id: str | None = None, **kwargs: Any) -> Stream:
        """Make one turn and give its answer in pieces, as the program says them.

            async with chat.stream("Tell me a story.") as s:
                async for piece in s:
                    ...

        The turn is recorded when the stream is entered or awaited; then `s.turn` is it. Leaving
        `async with` before the end, also by being cancelled, stops the turn. Awaited only
        (`s = await chat.stream(...)`), the turn runs to its end, whoever reads.
        Args, Raises: as `ledger.Conversation.stream`.
        """
        start, bound = self._maker.prepare(args, kwargs, request_id)
        return Stream(self, start, bound)

    async def tries(
        self, *args: Any, settings: Sequence[Mapping[str, Any]], **kwargs: Any
    ) -> list[Turn]:
        """Ask the same once per settings, side by side: turns that share their parent.

        Args, Returns, Raises: as `ledger.Conversation.tries`. Cancelled, all of them end `stopped`.
        """
        under = Siblings()
        prepared = self._maker.tries(args, kwargs, settings, under)
        runs: list[Run] = []
        try:
            for start, bound in prepared:
                run = await self._begin(start, bound)
                runs += [run] if run is not None else []
            self._maker.stay(under)
            for run in runs:
                await _over(run.outcome)
        except BaseException:
            for run in runs:
                run.stop()
            for run in runs:
                await _over(run.outcome)
            raise
        return [self._turn(start.turn) for start, _ in prepared]

    async def record(
        self,
        inputs: Mapping[str, Any] | str,
        outputs: Mapping[str, Any] | str,
        *,
        parent: TurnLike | EllipsisType | None = ...,
        model: str | None = None,
        usage: Mapping[str, int] | None = None,
        saw: Iterable[TurnLike] | None = None,
        messages: list[dict[str, Any]] | None = None,
    ) -> Turn:
        """Record a turn that was made elsewhere; it is done at once.

        Args, Raises: as `ledger.Conversation.record`.
        """
        making = self._maker.recording(
            inputs, outputs, parent=parent, model=model, usage=usage, saw=saw, messages=messages
        )
        return await self._make(making)

    async def merge(
        self,
        turns: Sequence[TurnLike],
        by: Callable[..., Any],
        *,
        onto: TurnLike | EllipsisType | None = ...,
        **inputs: Any,
    ) -> Turn:
        """Make one turn from the answers of several; this view then continues from it.

        `by` may be async; else it runs in a thread.
        Args, Raises: as `ledger.Conversation.merge`.
        """
        merge = await self._do(lambda: self._maker.merging(turns, by, onto, inputs))
        if inspect.iscoroutinefunction(by):
            value = await by(**merge.arguments)
        else:
            value = await asyncio.to_thread(by, **merge.arguments)
            value = await value if inspect.isawaitable(value) else value
        return await self._make(merge.making(value))

    async def stop(self, turn: TurnLike | None = None, *, request_id: str | None = None) -> None:
        """Stop a turn, wherever it runs: within a second it ends `stopped`, its caller gets Cancelled.

        Args, Raises: as `ledger.Conversation.stop`.
        """
        await self._do(lambda: self._inner.stop(turn, request_id=request_id))

    # -- beside the turns

    @property
    async def title(self) -> str | None:
        """The conversation's title, or None."""
        return await self._do(lambda: self._inner.title)

    async def set_title(self, text: str) -> None:
        """Give the conversation a title; the old ones stay in its log."""
        await self._do(lambda: self._inner.set_title(text))

    async def entries(self, plugin: str, kind: str) -> list[dict[str, Any]]:
        """Return what a plugin kept on this view's branch, oldest first: `seq`, `at`, `turn`, `data`."""
        return await self._do(lambda: self._inner.entries(plugin, kind))

    async def keep_entry(
        self, plugin: str, kind: str, data: Any, *, turn: TurnLike | None = None
    ) -> None:
        """Keep something beside the turns. Args: as `ledger.Conversation.keep_entry`."""
        await self._do(lambda: self._inner.keep_entry(plugin, kind, data, turn=turn))

    # -- forgetting

    async def forget(self, turn: TurnLike) -> Receipt:
        """Take out what a turn said, for good. Returns, Raises: as `ledger.Conversation.forget`."""
        return await self._do(lambda: self._inner.forget(turn))

    # -- inside

    async def _do(self, work: Callable[[], T]) -> T:
        return await _do(self._log, work)

    async def _begin(self, start: Start, bound: BoundArguments) -> Run | None:
        """Record a turn once its place is free, and start its program; None: it repeats a turn.

        Recording and starting are one job, so that being cancelled meanwhile leaves no turn that
        nobody runs.
        """
        self._view.refuse_nested()
        loop, context = asyncio.get_running_loop(), copy_context()

        def begin() -> _Begun:
            if self._maker.step(start) is None:
                return False, None
            return True, self._maker.launch(start, bound, context, loop)

        with stopping.waiting(start, start.request_id):
            while True:
                loops.settle(self._log.store, loop)
                job = keeper.in_pool(begin)
                try:
                    await _over(job)
                except asyncio.CancelledError:
                    start.cancelled = True
                    # Not by this task: it may be cancelled again before the job is done.
                    job.add_done_callback(_stop_begun)
                    await self._undone(job)
                    raise
                made, run = job.result()
                if made:
                    return run
                await self._changed(blocking.WAIT_S)

    async def _undone(self, job: Future[_Begun]) -> None:
        await _over(job)
        run = _run_of(job)
        if run is not None:
            await _over(run.outcome)

    async def _make(self, making: Making) -> Turn:
        self._view.refuse_nested()
        while (turn := await self._do(lambda: self._maker.step(making))) is None:
            await self._changed(blocking.WAIT_S)
        return self._turn(turn)

    async def _changed(self, timeout_s: float) -> None:
        await _changed(self._log, timeout_s)

    async def _answer(self, start: Start, run: Run | None) -> Any:
        if run is not None:
            return await _result(run)
        turn = self._turn(start.made)
        await turn.wait()
        return outcome_of(turn)

    def _turn(self, turn: str) -> Turn:
        return Turn(self._log, self._view, turn)

    async def _turns(self, turns: Sequence[TurnBase]) -> list[Turn]:
        """Return turns as awaiting callers have them; of those that have not ended, the state as it is now."""
        found = [self._turn(turn.id) for turn in turns]
        for turn in found:
            if not turn.is_over:
                await turn.refresh()
        return found

    def __repr__(self) -> str:
        return f"<aio.Conversation {self.id}>"


class Turn(TurnBase):
    """One turn of a conversation, as its log was read last. Equal to any other view of the same turn.

    Its properties never wait: what happens to a turn that runs elsewhere is seen after
    `await turn.refresh()`. Values are fresh copies. Every output is also an attribute.
    """

    _state: str | None = None

    async def refresh(self) -> Self:
        """Read the log again. Returns: the turn itself."""
        await self._now()
        return self

    async def _now(self) -> str:
        self._state = await _do(self._log, lambda: self._view.state(self._log, self._id))
        return self._state

    def _present(self) -> str:
        """As it was found last; no lock of another process is tried here."""
        return self._state if self._state is not None else super()._present()

    async def wait(self, timeout_s: float | None = None) -> str:
        """Wait until it no longer runs, or the time is up. Returns: its state then."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        while (state := await self._now()) == "running":
            left = blocking.WAIT_S
            if deadline is not None:
                left = min(left, deadline - loop.time())
            if left <= 0:
                break
            await _changed(self._log, left)
        return state

    async def events(self, after: Mapping[str, Any] | None = None) -> AsyncIterator[dict[str, Any]]:
        """Yield its events: those so far, then each as it comes, until it ends, waits or is interrupted.

        Args, Raises: as `ledger.Turn.events`.
        """
        following = Following(self._log, self._view, self._id, after)
        pause = _SHORTEST_PAUSE_S
        while True:
            events, over = await _do(self._log, following.step)
            for event in events:
                yield event
            if over:
                return
            pause = _SHORTEST_PAUSE_S if events else min(pause * 1.5, _LONGEST_PAUSE_S)
            await asyncio.sleep(pause)

    async def stop(self) -> None:
        """Stop it, wherever it runs: within a second it ends `stopped`. See `Conversation.stop`."""
        await _do(self._log, lambda: stopping.stop(self._log, self._view, self._id))

    async def abandon(self) -> None:
        """End it `abandoned`: a turn that waits or was interrupted, and that nobody will go on with.

        Raises: turn-state: it runs, or has ended otherwise.
        """
        await _do(self._log, lambda: stopping.abandon(self._log, self._view, self._id))


class Stream:
    """The answer of one turn in pieces, awaitable. Made by `Conversation.stream`.

    Each iteration begins with the first piece.
    """

    def __init__(self, chat: Conversation, start: Start, bound: BoundArguments) -> None:
        self._chat = chat
        self._start = start
        self._bound = bound
        self._begun = False
        self._run: Run | None = None

    @property
    def turn(self) -> Turn:
        """The turn: recorded before its program was called. Raises: RuntimeError: not yet entered."""
        if not self._begun:
            raise RuntimeError("the turn is made when the stream is entered: async with, or await")
        return self._chat._turn(self._start.made)

    @property
    def repeats(self) -> bool:
        """Whether its request was sent before: then the turn is not this stream's, and closing stops nothing."""
        return self._begun and self._run is None

    @property
    async def result(self) -> Any:
        """The answer, when the turn has ended. Raises: what the program raised; turn-stopped."""
        await self._begin()
        if self._run is None:
            return await self._chat._answer(self._start, None)
        await _over(self._run.outcome)
        return self._run.outcome.result()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the pieces, then raise what the program raised, if it did."""
        await self._begin()
        if self._run is None:
            async for piece in _texts(self.turn):
                yield piece
            return
        pieces, place, closed = self._run.running.pieces, 0, False
        changed = asyncio.Event()
        tell = _teller(changed.set)
        pieces.listen(tell)
        try:
            while True:
                changed.clear()
                more, closed = pieces.after(place)
                place += len(more)
                for piece in more:
                    yield piece
                if closed:
                    break
                await changed.wait()
        finally:
            pieces.unlisten(tell)
        self._run.outcome.result()

    async def close(self) -> None:
        """Stop the turn if it still runs, and wait until that is recorded. Again is no error."""
        if self._run is not None and not self._run.outcome.done():
            self._run.stop()
            await _over(self._run.outcome)

    def __await__(self) -> Generator[Any, Any, Self]:
        """Make the turn; then give the stream."""
        yield from self._begin().__await__()
        return self

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _begin(self) -> None:
        if not self._begun:
            self._run = await self._chat._begin(self._start, self._bound)
            self._begun = True


# -- waiting without blocking ----------------------------------------------------------------------


async def _do(log: Log, work: Callable[[], T]) -> T:
    """Have work that may wait for a store done by a thread."""
    loops.settle(log.store, asyncio.get_running_loop())
    job = keeper.in_pool(work)
    await _over(job)
    return job.result()


async def _over(future: Future[Any]) -> None:
    """Wait until something is done elsewhere, whatever came of it."""
    over = asyncio.Event()
    future.add_done_callback(_teller(over.set))
    await over.wait()


def _teller(tell: Callable[[], None]) -> Callable[..., None]:
    """Return what calls back on the present loop, from any thread; nothing once that loop is closed."""
    loop = asyncio.get_running_loop()

    def call(*_: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell)

    return call


def _run_of(job: Future[_Begun]) -> Run | None:
    return None if job.exception() is not None else job.result()[1]


def _stop_begun(job: Future[_Begun]) -> None:
    run = _run_of(job)
    if run is not None:
        run.stop()


async def _result(run: Run) -> Any:
    """Wait for a turn's program; cancelled, stop the turn and wait until that is recorded."""
    try:
        await _over(run.outcome)
    except asyncio.CancelledError:
        run.stop()
        await _over(run.outcome)
        raise
    return run.outcome.result()


async def _changed(log: Log, timeout_s: float) -> None:
    """Wait until a log may have grown, or the time is up."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + timeout_s, _SHORTEST_PAUSE_S
    if not log.tells_at_once:
        await asyncio.sleep(min(timeout_s, POLL_S))
        return
    while (left := deadline - loop.time()) > 0:
        await asyncio.sleep(min(pause, left))
        if await _do(log, log.moved):
            return
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


async def _texts(turn: Turn) -> AsyncIterator[str]:
    """Yield the pieces of a turn that runs elsewhere, or did."""
    async for event in turn.events():
        if event["kind"] == "text" and event["answer"] and event["call"] == turn.id:
            yield event["text"]
    outcome_of(await turn.refresh())
