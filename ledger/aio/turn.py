"""A turn, awaitable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextvars import copy_context
from typing import Any, Self

from ledger import conversation as blocking
from ledger.aio.waiting import (
    LONGEST_PAUSE_S,
    SHORTEST_PAUSE_S,
    begin,
    changed,
    do,
    result,
)
from ledger.turn import TurnBase
from ledger.turns import annotating, answering, following, stopping
from ledger.turns.following import Following
from ledger.turns.resuming import Resumption
from ledger.views.ratings import Value


class Turn(TurnBase):
    """One turn of a conversation, as its log was read last. Equal to any other view of the same turn.

    Its properties wait for no turn: what happens to one that runs elsewhere is seen after
    `await turn.refresh()`. Values are fresh copies. Every output is also an attribute.
    Not promised: that they read nothing. Of a long log the end was read alone; what an earlier turn says is read when
    it is asked, and for `saw`, `shown` or the `siblings` of a first turn that may be most of the log. Have a thread
    ask these where that would hold up the loop: `await asyncio.to_thread(lambda: turn.saw)`.
    """

    _state: str | None = None
    _said: str | None = None

    async def refresh(self) -> Self:
        """Read the log again. Returns: the turn itself."""
        await self._now()
        return self

    async def _now(self) -> str:
        state, self._said = await do(self._log, self._look)
        self._state = state
        return state

    def _look(self) -> tuple[str, str | None]:
        state = self._view.state(self._log, self._id)
        return state, None if self.is_over else following.said(self._log, self._id)

    def _present(self) -> str:
        """As it was found last; no lock of another process is tried here."""
        return self._state if self._state is not None else super()._present()

    def _said_by_now(self) -> str | None:
        return self._said

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
            await changed(self._log, left)
        return state

    async def events(
        self, after: Mapping[str, Any] | str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield its events: those so far, then each as it comes, until it ends, waits or is interrupted.

        Args, Raises: as `ledger.Turn.events`.
        """
        following = Following(self._log, self._view, self._id, after)
        pause = SHORTEST_PAUSE_S
        while True:
            events, over = await do(self._log, following.step)
            for event in events:
                yield event
            if over:
                return
            pause = SHORTEST_PAUSE_S if events else min(pause * 1.2, LONGEST_PAUSE_S)
            await asyncio.sleep(pause)

    async def resume(
        self, *, results: Mapping[Any, Any] | None = None, rerun: Iterable[Any] = ()
    ) -> Any:
        """Go on with it in this process: it was interrupted, or waited and has its answers.

        Cancelled, it ends `stopped`. Args, Returns, Raises: as `ledger.Turn.resume`.
        """
        self._view.refuse_nested()
        resumption = Resumption(self._log, self._view, self._id, results=results, rerun=rerun)
        context = copy_context()
        while (wait_s := await begin(resumption, self._log, context)) is not None:
            await changed(self._log, wait_s)
        assert resumption.run is not None
        return await result(resumption.run)

    async def approve(
        self, question: Any = None, *, by: str | None = None, reason: str | None = None
    ) -> Self:
        """Say yes to a question it waits for. Args, Returns, Raises: as `ledger.Turn.approve`."""
        return await self._answer(question, "yes", by=by, reason=reason)

    async def deny(
        self, question: Any = None, *, reason: str | None = None, by: str | None = None
    ) -> Self:
        """Say no to a question it waits for. Args, Returns, Raises: as `ledger.Turn.deny`."""
        return await self._answer(question, "no", by=by, reason=reason)

    async def _answer(self, question: Any, verdict: str, **said: Any) -> Self:
        log, view, turn = self._log, self._view, self._id
        await do(log, lambda: answering.answer(log, view, turn, question, verdict, **said))
        return await self.refresh()

    async def rate(
        self, value: Value | None, *, by: str | None = None, why: str | None = None
    ) -> Self:
        """Say how good it is. Args, Returns, Raises: as `ledger.Turn.rate`."""
        log, view, turn = self._log, self._view, self._id
        await do(log, lambda: annotating.rate(log, view, turn, value, by=by, why=why))
        return self

    async def label(self, text: str) -> Self:
        """Put a label on it. Returns, Raises: as `ledger.Turn.label`."""
        return await self._label(text, on=True)

    async def unlabel(self, text: str) -> Self:
        """Take a label off it. Returns, Raises: as `ledger.Turn.label`."""
        return await self._label(text, on=False)

    async def _label(self, text: str, *, on: bool) -> Self:
        log, view, turn = self._log, self._view, self._id
        await do(log, lambda: annotating.label(log, view, turn, text, on=on))
        return self

    async def stop(self) -> None:
        """Stop it, wherever it runs: within a second it ends `stopped`. See `Conversation.stop`."""
        await do(self._log, lambda: stopping.stop(self._log, self._view, self._id))

    async def abandon(self) -> None:
        """End it `abandoned`: a turn that waits or was interrupted, and that nobody will go on with.

        Raises: turn-state: it runs, or has ended otherwise.
        """
        await do(self._log, lambda: stopping.abandon(self._log, self._view, self._id))
