"""A turn's answer in pieces, awaitable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Self

from ledger.aio.turn import Turn
from ledger.turn import outcome_of
from ledger.turns.loops import in_the_end, over, teller
from ledger.turns.running import Run


class Stream:
    """The answer of one turn in pieces, awaitable. Made by `Conversation.stream`.

    Each iteration begins with the first piece.
    """

    def __init__(self, begin: Callable[[], Awaitable[tuple[Turn, Run | None]]]) -> None:
        self._make = begin
        self._beginning = asyncio.Lock()
        self._turn: Turn | None = None
        self._run: Run | None = None

    @property
    def turn(self) -> Turn:
        """The turn: recorded before its program was called. Raises: RuntimeError: not yet entered."""
        if self._turn is None:
            raise RuntimeError("the turn is made when the stream is entered: async with, or await")
        return self._turn

    @property
    def repeats(self) -> bool:
        """Whether its request was sent before: then the turn is not this stream's, and closing stops nothing."""
        return self._turn is not None and self._run is None

    @property
    async def result(self) -> Any:
        """The answer, when the turn has ended. Raises: what the program raised; turn-stopped."""
        await self._begin()
        if self._run is None:
            await self.turn.wait()
            return outcome_of(self.turn)
        await over(self._run.outcome)
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
        tell = teller(changed.set)
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
            await in_the_end(self._run.outcome)

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
        async with self._beginning:  # Two tasks that use it begin it once.
            if self._turn is None:
                self._turn, self._run = await self._make()


async def _texts(turn: Turn) -> AsyncIterator[str]:
    """Yield the pieces of a turn that runs elsewhere, or did."""
    async for event in turn.events():
        if event["kind"] == "text" and event["answer"] and event["call"] == turn.id:
            yield event["text"]
    outcome_of(await turn.refresh())
