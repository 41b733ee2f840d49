"""Programs that are run as processes of their own, by name: they are interrupted, or simply end.

Each prints what a test waits for. `python -m tests.scenarios.scripts NAME FOLDER FACE KIND`.
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys
import threading
import time

import ledger
from tests.scenarios.stores import Coroutines

missing = {"program", "reader"}
lock = threading.Lock()


def here(who):
    """Say `running` once both are there: the program runs, and its caller is where an interrupt stops it.

    (Before `with` is entered, or left, an interrupt of a stream comes too early or too late for us.)
    """
    with lock:
        missing.discard(who)
        if not missing:
            print("running", flush=True)


def plain(message: str) -> str:
    """Say a piece, and sleep where nothing can wake it."""
    ledger.current().emit("once ")
    here("program")
    time.sleep(60)
    return "the end"


async def awaited(message: str) -> str:
    """Say a piece, and wait."""
    ledger.current().emit("once ")
    here("program")
    await asyncio.sleep(60)
    return "the end"


def generator(message: str):
    """Give a piece, and sleep."""
    yield "once "
    here("program")
    time.sleep(60)


async def generator_awaited(message: str):
    """Give a piece, and wait."""
    yield "once "
    here("program")
    await asyncio.sleep(60)


KINDS = {
    "plain": plain,
    "awaited": awaited,
    "generator": generator,
    "generator_awaited": generator_awaited,
}


def call_blocking(chat):
    """Wait for an answer."""
    here("reader")
    chat("hi")


def stream_blocking(chat):
    """Read a stream."""
    with chat.stream("hi") as stream:
        here("reader")
        for _ in stream:
            pass


def left_blocking(chat):
    """Begin a stream, and end while it runs."""
    here("reader")
    stream = chat.stream("hi")
    next(iter(stream))
    time.sleep(0.1)


def queued_blocking(chat):
    """Send behind a turn that runs elsewhere."""
    print("running", flush=True)
    chat("queued")


async def call_aio(chat):
    """Wait for an answer."""
    here("reader")
    await chat("hi")


async def stream_aio(chat):
    """Read a stream."""
    async with chat.stream("hi") as stream:
        here("reader")
        async for _ in stream:
            pass


async def left_aio(chat):
    """Begin a stream, and end while it runs."""
    here("reader")
    stream = await chat.stream("hi")
    async for _ in stream:
        break
    await asyncio.sleep(0.1)


async def queued_aio(chat):
    """Send behind a turn that runs elsewhere."""
    print("running", flush=True)
    await chat("queued")


async def ticking(work):
    """Await something on a loop that wakes now and then.

    A signal may come between CPython's last look for one and the system's wait: an event of the loop has it seen then.
    """
    loop = asyncio.get_running_loop()

    def tick():
        loop.call_later(0.2, tick)

    tick()
    await work


def main(name: str, folder: str, face: str, kind: str) -> None:
    """Do what is asked; `-` in place of a folder is a store of coroutines in this process."""
    faulthandler.dump_traceback_later(50, exit=True)
    store = Coroutines() if folder == "-" else folder
    work = globals()[f"{name}_{face}"]
    try:
        if face == "aio":
            asyncio.run(ticking(work(ledger.aio.open("alex", KINDS[kind], store=store))))
        else:
            work(ledger.open("alex", KINDS[kind], store=store))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print("over", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
