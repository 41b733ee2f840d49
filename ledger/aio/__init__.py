"""Conversations, awaitable: the same verbs as `ledger.open` gives, for code on an event loop.

    chat = ledger.aio.open("alex", answer, store="chats")
    async with chat.stream("Hi") as s:
        async for piece in s:
            ...

Nothing here reads or writes a file on the loop: what may wait for a store is done by a bounded number
of threads, and a store whose methods are coroutines is awaited on the caller's loop. A program that is
async runs on the caller's loop; one that is not, in a thread.

An attachment's bytes are read with `await ledger.aio.read(attachment)`, and large ones in pieces with
`async for piece in ledger.aio.chunks(attachment)`: its own `read` and `open` block.

Import it where your program is loaded (`import ledger.aio`): its first use would load it, on the loop.

Each verb is the blocking one of `ledger.conversation`, done elsewhere and awaited. Only what waits for
long is written here once more: a send that queues, an answer that is still being made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import ledger.stores.folder  # noqa: F401 - loaded with the first folder, it would hold up the loop
from ledger import opening, recovery
from ledger.aio import catalog
from ledger.aio.conversation import Conversation, finish
from ledger.aio.memories import Memory, memory
from ledger.aio.stream import Stream
from ledger.aio.turn import Turn
from ledger.records.redacting import Redact
from ledger.stores.resolve import store_for
from ledger.turns import approving, loops, running
from ledger.turns.attachments import Attachment
from ledger.turns.loops import over
from ledger.turns.pool import in_pool
from ledger.turns.resuming import Resumed
from ledger.views import Rule
from ledger.views.place import Sends
from ledger.views.rules import Chooser

__all__ = [
    "Conversation",
    "Memory",
    "Stream",
    "Turn",
    "catalog",
    "chunks",
    "drain",
    "memory",
    "open",
    "read",
    "resume_all",
]


def open(
    id: str | None = None,
    program: Callable[..., Any] | None = None,
    *,
    store: Any = None,
    context: Rule | Chooser | None = None,
    sends: Sends = "queue",
    rename: Mapping[str, str] | None = None,
    earlier_without: Sequence[str] = (),
    approve: approving.Rule | None = None,
    remembers: Mapping[Any, Any] | None = None,
    redact: Redact | Sequence[Redact] | None = None,
    **settings: Any,
) -> Conversation:
    """Open a conversation by id, again or for the first time. Nothing is written by opening.

    As `ledger.open`, for callers that await: `ledger.aio.open(...)`; to await it does no harm.
    Args, Raises: as `ledger.open`.
    """
    return Conversation(
        opening.open(
            id,
            program,
            store=store,
            context=context,
            sends=sends,
            rename=rename,
            earlier_without=earlier_without,
            approve=approve,
            remembers=_inner(remembers),
            redact=redact,
            **settings,
        )
    )


def _inner(remembers: Mapping[Any, Any] | None) -> dict[Any, Any]:
    said = remembers or {}
    return {getattr(who, "_inner", who): what for who, what in said.items()}


async def resume_all(
    store: Any, programs: Callable[..., Any] | Iterable[Callable[..., Any]], **how: Any
) -> Resumed[Turn]:
    """Go on with every interrupted turn in a store that one of some programs made: after a deploy, say.

    Args, Returns, Raises: as `ledger.resume_all`.
    """
    at_once = how.pop("at_once", 32)
    kept_in = store_for(store)
    loops.settle(kept_in, asyncio.get_running_loop())
    found, left = await loops.done(in_pool(lambda: recovery.interrupted(kept_in, programs, how)))
    crew = await finish([resumption for _, resumption in found], at_once)
    turns = [Conversation(chat)._turn(r.turn) for chat, r in found if r in crew.resumed]
    return Resumed(turns, {**left, **crew.left})


async def drain(timeout_s: float | None = None) -> list[str]:
    """Wait until none of this process's turns runs, or the time is up: before a worker goes.

    Returns: the ids of the turns that still run. Their programs are not stopped.
    """
    loop = asyncio.get_running_loop()
    deadline = None if timeout_s is None else loop.time() + timeout_s
    while left := running.all_here():
        wait_s = None if deadline is None else max(deadline - loop.time(), 0)
        ends = [asyncio.ensure_future(over(run.outcome)) for run in left]
        _, late = await asyncio.wait(ends, timeout=wait_s)
        for task in late:
            task.cancel()
        if late:
            return [run.turn for run in running.all_here()]
    return []


async def read(attachment: Attachment) -> bytes:
    """Return the bytes of an attachment. Raises: as `Attachment.read`."""
    return await loops.done(in_pool(attachment.read))


async def chunks(attachment: Attachment, *, size_bytes: int = 1 << 20) -> AsyncIterator[bytes]:
    """Yield the bytes of an attachment in pieces of at most `size_bytes`, in order.

    Raises: as `Attachment.open`; store-corrupt after the last piece: then what was given is not to be used.
    """
    stream = await loops.done(in_pool(attachment.open))
    try:
        while chunk := await loops.done(in_pool(partial(stream.read, size_bytes))):
            yield chunk
    finally:
        stream.close()


def __dir__() -> list[str]:
    return __all__
