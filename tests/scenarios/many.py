"""A thousand turns that run in one process at once, and are stopped by another. Without pytest."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import ledger
from ledger.testing.children import Say, children
from tests.scenarios.support import set_to, until, view

LONGEST_S = 120.0


class Told(NamedTuple):
    """What came of it."""

    slowest_renewal_s: float
    """The longest time between the leases of one turn."""
    slowest_stop_s: float
    """The longest time from the stop of one turn, among all the others, to its end."""
    codes: list[str]
    """What the callers got, each once."""
    threads: int
    """How many threads the process had."""


def run_many(say: Say, folder: str, count: int, renew_s: float) -> tuple[list[str], int]:
    """In another process: turns that wait for ever. Returns: what their callers got, and the threads."""
    begun = 0

    async def program(message: str) -> str:
        nonlocal begun
        begun += 1
        await asyncio.Event().wait()
        return "never"

    async def all_() -> tuple[list[str], int]:
        store = ledger.FolderStore(folder)
        chats = [ledger.aio.open(f"c{n}", program, store=store) for n in range(count)]
        sends = [asyncio.ensure_future(chat.send("hi")) for chat in chats]
        while begun < count:
            await asyncio.sleep(0.05)
        say("all run")
        done = await asyncio.gather(*sends, return_exceptions=True)
        return sorted({getattr(error, "code", repr(error)) for error in done}), _threads()

    with set_to(RENEW_S=renew_s):
        return asyncio.run(all_())


def _threads() -> int:
    return sum(thread.name.startswith("ledger") for thread in threading.enumerate())


def leases(store: ledger.FolderStore, conversation: str) -> list[float]:
    """Return when the leases of a conversation were written, in seconds."""
    return [
        time.mktime(time.strptime(record["at"][:19], "%Y-%m-%dT%H:%M:%S"))
        + float(record["at"][19:26])
        for record in store.read(conversation)
        if record["kind"] == "lease"
    ]


def _stop(store: ledger.FolderStore, name: str) -> float:
    turn = view(store, name).turn(1)
    begun = time.monotonic()
    turn.stop()
    until(lambda: turn.state == "stopped")
    return time.monotonic() - begun


def many(place: Path | str, *, count: int, renew_s: float) -> Told:
    """Run turns in another process until each was renewed; stop a few, then all at once."""
    store = ledger.FolderStore(place)
    names = [f"c{n}" for n in range(count)]
    with children(1) as (child,):
        child.prepare(run_many, store.folder, count, renew_s)
        child.begin(LONGEST_S)
        child.hear(LONGEST_S)
        for name in names:
            until(lambda name=name: len(leases(store, name)) > 1, "a renewal", LONGEST_S)
        stops = [_stop(store, names[place]) for place in (0, count // 2, count - 1)]
        for name in names:
            view(store, name).stop()
        codes, threads = child.result(LONGEST_S)
    gaps = [later - earlier for name in names for earlier, later in pairwise(leases(store, name))]
    wrong = {view(store, name).turn(1).state for name in names} - {"stopped"}
    if wrong:
        raise AssertionError(f"turns that are {wrong}")
    return Told(max(gaps), max(stops), codes, threads)
