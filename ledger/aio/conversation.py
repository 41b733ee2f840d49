"""Conversations, awaitable: each verb is the blocking one, done by threads and awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextvars import copy_context
from types import EllipsisType
from typing import Any, Self, TypeVar

from ledger import conversation as blocking
from ledger.aio.rendering import Rendered
from ledger.aio.stream import Stream
from ledger.aio.turn import Turn
from ledger.aio.waiting import awaited_first, begin, changed, do, result
from ledger.maker import Sending
from ledger.syncing import Moved, Synced, wish_of
from ledger.turn import TurnBase, outcome_of
from ledger.turns import callables, loops, rendering, resuming, stopping
from ledger.turns.attachments import Attachment
from ledger.turns.loops import in_the_end, over
from ledger.turns.pool import in_pool
from ledger.turns.receipts import Receipt
from ledger.turns.resuming import Crew, Resumed, Resumption
from ledger.turns.running import Run
from ledger.turns.view import Making, Siblings, TurnLike
from ledger.views import Diff, Lineage, Rule, drawing
from ledger.views.rules import Chooser

T = TypeVar("T")


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

    async def turn(self, turn: TurnLike | None = None, *, request_id: str | None = None) -> Turn:
        """Return one turn: by id, by a part of an id that only one has, or by ordinal (1 is first); or the
        one that was sent under a request id.

        Raises: turn-unknown, saying how many fit. TypeError: not exactly one of the two is given.
        """
        found = await self._do(lambda: self._inner.turn(turn, request_id=request_id))
        return (await self._turns([found]))[0]

    @property
    async def head(self) -> Turn | None:
        """The turn this view stands on; None: the conversation is empty."""
        found = await self._do(lambda: self._inner.head)
        return None if found is None else (await self._turns([found]))[0]

    @head.setter
    def head(self, turn: object) -> None:
        raise _awaited("set_head")

    async def set_head(self, turn: TurnLike | None) -> None:
        """Make a turn the head for everyone who opens the conversation; this view continues from it.

        Args: as `ledger.Conversation.set_head`.
        """
        await self._do(lambda: self._inner.set_head(turn))

    async def heads(self) -> list[Turn]:
        """Return the leaves of the tree, newest first, without failed and merged ones."""
        return await self._turns(await self._do(self._inner.heads))

    async def lineage(self, turn: TurnLike) -> Lineage:
        """Return what a turn's answer rests on, how, and what it influenced."""
        return await self._do(lambda: self._inner.lineage(turn))

    async def diff(self, a: TurnLike, b: TurnLike) -> Diff:
        """Compare two turns. Returns, Raises: as `ledger.Conversation.diff`."""
        return await self._do(lambda: self._inner.diff(a, b))

    async def tree(self, *, width: int = 100) -> drawing.Tree:
        """Return the tree of turns as text: states, models, merges, ratings, labels, title, head; `str` of it."""
        return await self._do(lambda: self._inner.tree(width=width))

    async def render(self, *args: Any, **kwargs: Any) -> Rendered:
        """Return what the next turn would be shown; nothing is recorded. See `ledger.Conversation`."""
        made = await self._do(lambda: rendering.parts(self._log, self._view, args, kwargs))
        return Rendered(**made)

    async def messages(
        self,
        format: str | None = None,
        *,
        context: Rule | Chooser | None = None,
        instructions: str | None = None,
        strict: bool = False,
    ) -> Any:
        """Return what the next turn would be shown, as messages for a model; nothing is recorded.

        Args, Raises: as `ledger.Conversation.messages`.
        """
        how: dict[str, Any] = {"instructions": instructions, "strict": strict}
        return await self._do(lambda: self._inner.messages(format, context=context, **how))

    # -- going on elsewhere

    @awaited_first
    async def continue_from(self, turn: TurnLike | None) -> Conversation:
        """Return a view that continues from exactly this turn; None: from before the first turn."""
        return Conversation(await self._do(lambda: self._inner.continue_from(turn)))

    # -- making turns

    async def __call__(self, *args: Any, request_id: str | None = None, **kwargs: Any) -> Any:
        """Make one turn with the program and return its answer. Cancelled, its turn ends `stopped`.

        Raises: what the program raises, after the turn is recorded `failed`; the errors of `send`.
        """
        return await self._answer(self._maker.prepare(args, kwargs, request_id))

    async def send(self, *args: Any, request_id: str | None = None, **kwargs: Any) -> Turn:
        """Make one turn with the program and return the turn. Cancelled, it ends `stopped`.

        A send that still waits for its place is cancelled without a record.
        Args, Raises: as `ledger.Conversation.send`.
        """
        sending = self._maker.prepare(args, kwargs, request_id)
        await self._answer(sending)
        return self._turn(sending.start.made)

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
        sending = self._maker.prepare(args, kwargs, request_id)

        async def prepared() -> Sending:
            return sending

        return self._streamed(prepared)

    async def regenerate(
        self, turn: TurnLike, /, *args: Any, request_id: str | None = None, **kwargs: Any
    ) -> Turn:
        """Ask again what a turn was asked, beside it, and return the new turn. Cancelled, that ends `stopped`.

        Args, Raises: as `ledger.Conversation.regenerate`.
        """
        sending = await self._do(lambda: self._maker.again(turn, args, kwargs, request_id))
        await self._answer(sending)
        return self._turn(sending.start.made)

    def regenerate_stream(
        self, turn: TurnLike, /, *args: Any, request_id: str | None = None, **kwargs: Any
    ) -> Stream:
        """Ask again what a turn was asked, as `regenerate`, and give the answer in pieces, as `stream`."""
        return self._streamed(
            lambda: self._do(lambda: self._maker.again(turn, args, kwargs, request_id))
        )

    async def tries(
        self,
        *args: Any,
        settings: Sequence[Mapping[str, Any]],
        request_id: str | None = None,
        **kwargs: Any,
    ) -> list[Turn]:
        """Ask the same once per settings, side by side: turns that share their parent.

        Args, Returns, Raises: as `ledger.Conversation.tries`. Cancelled, all of them end `stopped`.
        """
        if not settings:
            return []
        under = Siblings()
        sendings = self._maker.tries(args, kwargs, settings, under, request_id)
        runs: list[Run] = []
        try:
            for sending in sendings:
                await self._begin(sending)
                runs += [sending.run] if sending.run is not None else []
            self._maker.stay(under)
            for run in runs:
                await over(run.outcome)
        except BaseException:
            for run in runs:
                run.stop()
            for run in runs:
                await in_the_end(run.outcome)
            raise
        turns = [self._turn(sending.start.made) for sending in sendings]
        for turn in turns:
            if not turn.is_over:  # One that was sent before under its request id.
                await turn.wait()
        return turns

    async def record(
        self,
        inputs: Mapping[str, Any] | str,
        outputs: Mapping[str, Any] | str,
        *,
        parent: TurnLike | EllipsisType | None = ...,
        expect: TurnLike | EllipsisType | None = ...,
        model: str | None = None,
        usage: Any = None,
        saw: Iterable[TurnLike] | None = None,
        messages: list[dict[str, Any]] | None = None,
        request_id: str | None = None,
    ) -> Turn:
        """Record a turn that was made elsewhere; it is done at once.

        Args, Raises: as `ledger.Conversation.record`.
        """
        how: dict[str, Any] = {"parent": parent, "model": model, "usage": usage, "saw": saw}
        how |= {"messages": messages, "request_id": request_id, "expect": expect}
        making = self._maker.recording(inputs, outputs, **how)
        return await self._make(making)

    async def sync(
        self,
        messages: Any,
        *,
        format: str | None = None,
        moved: Moved = "refuse",
        expect: TurnLike | EllipsisType | None = ...,
        model: str | None = None,
        usage: Any = None,
    ) -> Synced[Turn]:
        """Hand over a whole list of messages, as frameworks do each time; what it has that is new is recorded.

        Args, Returns, Raises: as `ledger.Conversation.sync`. The list is not to be changed meanwhile.
        """
        self._view.refuse_nested()
        wish = wish_of(messages, format, moved, expect=expect, model=model, usage=usage)
        synced = await self._do(lambda: self._inner._syncer.sync(self._view, wish))
        return synced.map(self._turn)

    async def merge(
        self,
        turns: Sequence[TurnLike],
        by: Callable[..., Any],
        *,
        onto: TurnLike | EllipsisType | None = ...,
        request_id: str | None = None,
        **inputs: Any,
    ) -> Turn:
        """Make one turn from the answers of several; this view then continues from it.

        `by` may be async; else it runs in a thread. Cancelled before it is over, nothing is recorded.
        Args, Raises: as `ledger.Conversation.merge`.
        """
        self._view.refuse_nested()
        merging = await self._do(lambda: self._maker.merging(turns, by, onto, inputs, request_id))
        with merging.waiting() as queued:
            if queued is not None:
                await over(queued.free)
                queued.begin()
            while not await self._do(merging.is_ready):
                await self._changed(blocking.WAIT_S)
            if merging.making.repeats is None:
                with merging.at_work():
                    value = await called(merging.by, **merging.arguments)
                await self._do(lambda: merging.making.give(value))
            return await self._make(merging.making)

    async def stop(self, turn: TurnLike | None = None, *, request_id: str | None = None) -> None:
        """Stop a turn, wherever it runs: within a second it ends `stopped`, its caller gets Cancelled.

        Args, Raises: as `ledger.Conversation.stop`.
        """
        await self._do(lambda: self._inner.stop(turn, request_id=request_id))

    async def resume_all(self, *, at_once: int = 32) -> Resumed[Turn]:
        """Go on with every turn that was interrupted, or that waited and has its answers.

        Args, Returns: as `ledger.Conversation.resume_all`.
        """
        self._view.refuse_nested()
        found, left = await self._do(lambda: resuming.resumable(self._log, self._view))
        crew = await finish([Resumption(self._log, self._view, turn) for turn in found], at_once)
        return Resumed([self._turn(each.turn) for each in crew.resumed], {**left, **crew.left})

    # -- beside the turns

    @property
    async def title(self) -> str | None:
        """The conversation's title, or None."""
        return await self._do(lambda: self._inner.title)

    @title.setter
    def title(self, text: object) -> None:
        raise _awaited("set_title")

    async def set_title(self, text: str) -> None:
        """Give the conversation a title. Raises: as `ledger.Conversation.set_title`."""
        await self._do(lambda: self._inner.set_title(text))

    @property
    async def labels(self) -> list[str]:
        """The labels on the conversation itself, in the order in which they were put on."""
        return await self._do(lambda: self._inner.labels)

    async def label(self, text: str) -> None:
        """Put a label on the conversation. Raises: as `ledger.Conversation.label`."""
        await self._do(lambda: self._inner.label(text))

    async def unlabel(self, text: str) -> None:
        """Take a label off the conversation. Raises: as `ledger.Conversation.label`."""
        await self._do(lambda: self._inner.unlabel(text))

    async def entries(self, plugin: str, kind: str) -> list[dict[str, Any]]:
        """Return what a plugin kept on this view's branch, oldest first: `seq`, `at`, `turn`, `data`."""
        return await self._do(lambda: self._inner.entries(plugin, kind))

    async def keep_entry(
        self, plugin: str, kind: str, data: Any, *, turn: TurnLike | None = None
    ) -> None:
        """Keep something beside the turns. Args: as `ledger.Conversation.keep_entry`."""
        await self._do(lambda: self._inner.keep_entry(plugin, kind, data, turn=turn))

    # -- attachments

    async def attachments(self) -> list[Attachment]:
        """Return every attachment that the conversation's records name, each once, oldest first."""
        return await self._do(self._inner.attachments)

    async def attachment(self, named: str | Mapping[str, Any]) -> Attachment:
        """Return an attachment of the conversation. Args, Raises: as `ledger.Conversation.attachment`."""
        return await self._do(lambda: self._inner.attachment(named))

    # -- forgetting

    async def forget(self, turn: TurnLike) -> Receipt:
        """Take out what a turn said, for good. Returns, Raises: as `ledger.Conversation.forget`."""
        return await self._do(lambda: self._inner.forget(turn))

    # -- inside

    async def _do(self, work: Callable[[], T]) -> T:
        return await do(self._log, work)

    async def _begin(self, sending: Sending) -> None:
        """Record a turn once its place is free, and start its program; or find the turn it repeats."""
        self._view.refuse_nested()
        context = copy_context()
        with stopping.waiting(sending.start, self._log):
            while not await begin(sending, self._log, context):
                await self._until_next(sending.start)

    def _streamed(self, prepare: Callable[[], Awaitable[Sending]]) -> Stream:
        async def begun() -> tuple[Turn, Run | None]:
            sending = await prepare()
            await self._begin(sending)
            return self._turn(sending.start.made), sending.run

        return Stream(begun)

    async def _make(self, making: Making) -> Turn:
        self._view.refuse_nested()
        with stopping.waiting(making, self._log):
            while (turn := await self._do(lambda: self._maker.step(making))) is None:
                await self._until_next(making)
        made = self._turn(turn)
        if making.repeats is not None:
            await made.wait()
            outcome_of(made)
        return made

    async def _until_next(self, making: Making) -> None:
        """Wait until it is worth asking again: the log changed, or the summary is made that it wants."""
        if making.wants is None:
            await self._changed(blocking.WAIT_S)
            making.rests = None
            return
        summarizing = await self._do(lambda: self._maker.summarizing(making))
        with summarizing.making():
            text = await called(summarizing.by, *summarizing.arguments)
        await self._do(lambda: summarizing.keep(text))

    async def _changed(self, timeout_s: float) -> None:
        await changed(self._log, timeout_s)

    async def _answer(self, sending: Sending) -> Any:
        await self._begin(sending)
        if sending.run is not None:
            return await result(sending.run)
        turn = self._turn(sending.start.made)
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


async def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of a caller's: on the loop if it is async, else in a thread. Returns: what it gives."""
    if callables.kind_of(function) == "async":
        value = function(*args, **kwargs)
    else:
        value = await asyncio.to_thread(function, *args, **kwargs)
    return await value if inspect.isawaitable(value) else value


def _awaited(verb: str) -> AttributeError:
    return AttributeError(f"on an event loop this is written by a verb: await chat.{verb}(...)")


async def finish(resumptions: list[Resumption], at_once: int) -> Crew:
    """Go on with turns until all are over; cancelled, stop them first."""
    crew = Crew(resumptions, copy_context(), asyncio.get_running_loop(), at_once=at_once)
    try:
        while not await loops.done(in_pool(crew.step)):
            await asyncio.sleep(resuming.LOOK_S)
    except BaseException:
        crew.stop()
        raise
    return crew
