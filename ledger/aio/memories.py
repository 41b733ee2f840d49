"""An agent's memory, awaitable: each verb is the blocking one, done by threads and awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from ledger import memories
from ledger.aio.conversation import Conversation
from ledger.aio.turn import Turn
from ledger.aio.waiting import changed, do
from ledger.conversation import WAIT_S
from ledger.memories import Busy, MemoryTurnBase
from ledger.records.redacting import Redact
from ledger.turn import TurnBase
from ledger.turns import loops
from ledger.turns.log import Begun
from ledger.turns.loops import over
from ledger.turns.pool import in_pool
from ledger.views import Rule
from ledger.views.rules import Chooser

T = TypeVar("T")


def memory(
    store: Any = None,
    *,
    format: str | None = None,
    context: Rule | Chooser | None = None,
    busy: Busy = "queue",
    redact: Redact | Sequence[Redact] | None = None,
) -> Memory:
    """Return the memory of an agent, kept in a store, awaitable. Args, Raises: as `ledger.memory`."""
    inner = memories.memory(store, format=format, context=context, busy=busy, redact=redact)
    return Memory(inner)


class Memory:
    """The conversations of an agent, each by an id of any text (`user:42`), awaitable. Tasks may share it.

    As `ledger.memory(...)` gives; made by `ledger.aio.memory`.
    """

    def __init__(self, inner: memories.Memory) -> None:
        self._inner = inner
        self.store = inner.store
        """The store it is kept in."""

    async def get(self, id: str | None) -> list[Any] | None:
        """Return the list that was saved last; None: there is none, or it was cleared since."""
        return await self._do(id, lambda: self._inner.get(id)) if id else None

    async def save(
        self, id: str | None, messages: Any, *, model: str | None = None, usage: Any = None
    ) -> None:
        """Keep a whole list. Args, Raises: as the blocking one. The list is not to be changed meanwhile."""
        if id:
            save = self._inner.save
            await self._do(id, lambda: save(id, messages, model=model, usage=usage))

    async def pop(self, id: str | None) -> Any:
        """Take the last message, or item, off the list, and return it. As the blocking one."""
        return await self._do(id, lambda: self._inner.pop(id)) if id else None

    async def load(self, id: str | None, *, context: Rule | Chooser | None = None) -> list[Any]:
        """Return the messages of a conversation that `context` shows; none of one that is new, or was cleared."""
        load = partial(self._inner.load, id, context=context)
        return await self._do(id, load) if id else load()

    async def append(
        self,
        id: str | None,
        messages: Any,
        *,
        model: str | None = None,
        usage: Any = None,
        context: Rule | Chooser | None = None,
    ) -> list[Turn]:
        """Record what a turn added, once it succeeded. Args, Returns, Raises: as the blocking one."""
        inner, begun = self._inner, Begun()
        rule = inner._rule_for(context)
        if not id:
            return []
        await self._until_free(id, begun)
        made = await self._do(id, lambda: inner._append(id, messages, model, usage, rule, begun))
        return self._turns(id, made)

    async def clear(self, id: str | None) -> None:
        """Begin anew: from now on there is nothing to load. Nothing is deleted."""
        if id:
            await self._do(id, lambda: self._inner.clear(id))

    async def delete(self, id: str | None) -> Any:
        """Remove all that is stored under an id, for good. Returns, Raises: as the blocking one."""
        if not id:
            return None
        queued = self._inner._queued(id)
        try:
            await over(queued.free)
            return await self._of_store(lambda: self._inner._delete(id))
        finally:
            queued.end()

    def turn(
        self, id: str | None, *, history: Any = None, context: Rule | Chooser | None = None
    ) -> MemoryTurn:
        """Return one turn to be made by code of your own, for `async with`.

        Args, Raises: as the blocking one. A task that is cancelled while it waits, or makes the turn,
        records nothing.
        """
        return MemoryTurn(self, id, history, self._inner._rule_for(context))

    def conversation(self, id: str) -> Conversation:
        """Return the conversation of an id, awaitable, for all that is not said here."""
        return Conversation(self._inner.conversation(id))

    async def ids(self) -> list[str]:
        """Return the ids that conversations in the store were made by here, sorted."""
        return await self._of_store(self._inner.ids)

    # -- inside

    async def _of_store(self, work: Callable[[], T]) -> T:
        """Have the store asked, by a thread."""
        loops.settle(self.store, asyncio.get_running_loop())
        job = in_pool(work)
        await over(job)
        return job.result()

    async def _do(self, id: str, work: Callable[[], T]) -> T:
        return await do(self._inner._chat(id)._log, work)

    async def _until_free(self, id: str, begun: Begun) -> None:
        while not await self._do(id, lambda: self._inner._is_free(id, begun)):
            await changed(self._inner._chat(id)._log, WAIT_S)

    def _turns(self, id: str, made: Sequence[TurnBase]) -> list[Turn]:
        chat = Conversation(self._inner._chat(id))
        return [chat._turn(turn.id) for turn in made]


class MemoryTurn(MemoryTurnBase):
    """One turn of an agent's loop, for `async with`. Made by `Memory.turn`."""

    def __init__(self, memory: Memory, id: str | None, history: Any, rule: Rule | None) -> None:
        super().__init__(memory._inner, id, history, rule)
        self._awaiting = memory
        self.turns: list[Turn] = []
        """What was recorded of it, when `async with` is left: one turn, usually."""

    async def __aenter__(self) -> Self:
        if self._id is None:
            return self
        self._queued = self._memory._queued(self._id)
        try:
            await self._awaiting._do(self._id, self._arrive)
            await over(self._queued.free)
            await self._awaiting._until_free(self._id, self._begun)
            await self._awaiting._do(self._id, self._begin)
        except BaseException:
            self._queued.end()
            raise
        self._queued.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._id is None or self._queued is None:
            return
        try:
            if kind is None:
                made = await self._awaiting._do(self._id, self._store)
                self.turns = self._awaiting._turns(self._id, made)
        finally:
            self._queued.end()
