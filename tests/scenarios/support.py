"""What the scenarios share: the two faces behind one verb, programs that wait for a sign, other processes.

A scenario is written once and run in both faces: `face.begin(chat.send, "hi")` starts a send in a thread,
or as a task of a loop in another thread, and gives a future. What came of it is read with `view`, always
by a fresh blocking conversation, so that nothing a face remembers can hide what the log says.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ledger
from ledger.turns import commands, keeper, running

SOON_S = 60.0
"""How long anything may take on a busy machine before a scenario gives up."""


class Blocking:
    """The blocking face: what is begun runs in a thread of its own."""

    name = "blocking"

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(128, "caller")

    def open(self, *args: Any, **kwargs: Any) -> Any:
        """Open a conversation."""
        return ledger.open(*args, **kwargs)

    def begin(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a verb, and go on."""
        return self._threads.submit(verb, *args, **kwargs)

    def begin_all(self, verb: Callable[..., Any], messages: list[str]) -> Future[Any]:
        """Call a verb with one message after another, and go on."""
        return self.begin(lambda: [verb(message) for message in messages])

    def do(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a verb and give what it gives."""
        return self.begin(verb, *args, **kwargs).result(SOON_S)

    def read(self, stream: Any, count: int) -> list[str]:
        """Give the first pieces of a stream."""
        pieces = iter(stream)
        return [next(pieces) for _ in range(count)]

    def enter(self, stream: Any) -> Any:
        """Begin a stream."""
        return stream.__enter__()

    def leave(self, stream: Any) -> None:
        """Leave a stream's `with`."""
        self.do(stream.__exit__, None, None, None)

    def result(self, stream: Any) -> Any:
        """Give a stream's result."""
        return self.do(lambda: stream.result)

    def close(self) -> None:
        """Wait for what was begun."""
        self._threads.shutdown(cancel_futures=True)


class Awaiting:
    """The awaiting face: what is begun is a task of one loop, which runs in another thread."""

    name = "aio"

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="tasks", daemon=True)
        self._thread.start()

    def open(self, *args: Any, **kwargs: Any) -> Any:
        """Open a conversation."""
        return ledger.aio.open(*args, **kwargs)

    def begin(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a task that awaits a verb, and go on; cancelling the future cancels the task."""

        async def awaited() -> Any:
            return await verb(*args, **kwargs)

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop)

    def begin_all(self, verb: Callable[..., Any], messages: list[str]) -> Future[Any]:
        """Await a verb with one message after another, in a task, and go on."""

        async def all_() -> list[Any]:
            return [await verb(message) for message in messages]

        return self.begin(all_)

    def do(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Await a verb and give what it gives."""
        return self.begin(verb, *args, **kwargs).result(SOON_S)

    def read(self, stream: Any, count: int) -> list[str]:
        """Give the first pieces of a stream."""

        async def some() -> list[str]:
            pieces = stream.__aiter__()
            try:
                return [await anext(pieces) for _ in range(count)]
            finally:
                await pieces.aclose()

        return self.do(some)

    def enter(self, stream: Any) -> Any:
        """Begin a stream."""
        return self.do(stream.__aenter__)

    def leave(self, stream: Any) -> None:
        """Leave a stream's `async with`."""
        self.do(stream.__aexit__, None, None, None)

    def result(self, stream: Any) -> Any:
        """Give a stream's result."""

        async def result() -> Any:
            return await stream.result

        return self.do(result)

    def close(self) -> None:
        """Cancel what was begun and end the loop."""

        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self.do(end)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(SOON_S)
        self.loop.close()


Face = Blocking | Awaiting
FACES: dict[str, type[Face]] = {"blocking": Blocking, "aio": Awaiting}


# -- what came of it -------------------------------------------------------------------------------


def view(store: Any, conversation: str = "alex") -> ledger.Conversation:
    """Open a conversation anew, to look at it."""
    return ledger.open(conversation, store=store)


def asked(turns: Any) -> list[str]:
    """Return what was sent, turn by turn."""
    return [turn.inputs["message"] for turn in turns]


def states(turns: Any) -> list[str]:
    """Return the states, turn by turn."""
    return [turn.state for turn in turns]


def raw(store: Any, conversation: str = "alex") -> bytes:
    """Return the bytes of a log."""
    return store.raw(conversation)


def until(
    true: Callable[[], Any], what: str = "what was waited for", limit_s: float = SOON_S
) -> Any:
    """Wait until something is true and return it; what other processes do has no other sign."""
    deadline = time.monotonic() + limit_s
    while not (found := true()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {limit_s:g} s")
        time.sleep(0.005)
    return found


class Sign:
    """A file that comes to be once: seen by every process."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)

    def give(self) -> None:
        """Give the sign."""
        os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))

    @property
    def given(self) -> bool:
        """Whether it was given."""
        return os.path.exists(self.path)

    def await_(self) -> None:
        """Wait for it."""
        until(lambda: self.given, f"the sign {self.path}")


@contextmanager
def set_to(**values: float) -> Iterator[None]:
    """Have this process renew leases at other times for a while.

    Args: values: by name, what the keeper and running turns go by: LEASE_S, MARGIN_S, RENEW_S.
    """
    places = [
        (module, name)
        for module in (commands, keeper, running)
        for name in values
        if hasattr(module, name)
    ]
    before = [getattr(module, name) for module, name in places]
    for module, name in places:
        setattr(module, name, values[name])
    try:
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)
