"""A declared program that is called by itself, outside every turn: it is shown nothing, and leaves nothing behind.

What it asks of `ledger.current()` is as in the first turn of a conversation that nobody keeps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ledger.records import messages
from ledger.records.messages import Message
from ledger.turns import attachments, loops
from ledger.turns.attachments import Attachment, lowered
from ledger.turns.current import Running, check_piece
from ledger.turns.loops import asyncio
from ledger.turns.programs import Program
from ledger.turns.steps import Effects, check_tool
from ledger.turns.telling import Exchange


class Alone(Running):
    """What a program that is called by itself finds where others find their turn. Args: asked: gives its user side."""

    of_a_turn = False

    def __init__(self, asked: Callable[[], list[Message]], given: list[Attachment]) -> None:
        exchange = Exchange(asked, read=attachments.reading(given))
        super().__init__("", "", {}, list, exchange=exchange)

    def emit(self, text: str) -> None:
        """Say a piece to nobody. Raises: record-invalid: it is no text that can be kept."""
        check_piece(text)

    def reply(self, request: Any, call: Callable[[], Any]) -> Any:
        """Have a model called. Raises: what `call` raises; record-invalid: what no turn would keep."""
        lowered(request, "request", [])
        return _called(call, "response")

    def tool(
        self,
        name: str,
        input: Any,
        call: Callable[[], Any],
        *,
        id: str | None = None,
        effects: Effects | None = None,
    ) -> Any:
        """Have a tool run; nobody is asked. Raises: what `call` raises; record-invalid: what no turn would keep."""
        check_tool(name, id, effects)
        lowered(input, "input", [])
        try:
            made = _called(call, "output")
        except Exception as error:
            self.exchange.failed(id, name, input, error)
            raise
        return self.exchange.called(id, name, input, made)


def _called(call: Callable[[], Any], path: str) -> Any:
    """Return what a step's call gives, or on a loop what gives that when it is awaited, as `stepping.step`."""
    if loops.running_loop() is not None:
        return _awaited(call, path)
    value = call()
    if inspect.isawaitable(value):
        value = loops.result_of(value, loops.background())
    lowered(value, path, [])
    return value


async def _awaited(call: Callable[[], Any], path: str) -> Any:
    if inspect.iscoroutinefunction(call):
        value = await call()
    else:
        value = await asyncio.to_thread(call)
        value = await value if inspect.isawaitable(value) else value
    lowered(value, path, [])
    return value


class AloneCall:
    """One call of a declared program outside every turn: as a helper's (`helping.Call`), and kept nowhere."""

    keeps = False
    given: tuple[Attachment, ...] = ()
    lane = None

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        given: list[Attachment] = []

        def asked() -> list[Message]:
            # Only now: a program that asks for no messages may be given what no turn could keep.
            _, inputs = Program(function).bind(args, kwargs, given)
            return messages.from_inputs(inputs)

        self.helper = Alone(asked, given)

    def enter(self) -> AloneCall:
        """Return itself."""
        return self

    def say(self, piece: Any) -> None:
        """Say a piece of a generator's to nobody."""

    def record(self, value: Any) -> None:
        """Keep nothing."""

    def answer(self, returned: Any = None) -> Any:
        """Return what a generator returned."""
        return returned
