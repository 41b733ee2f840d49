"""One conversation object, shared by threads, or by tasks of one loop: what is asked is told while others record."""

import asyncio
import sys
import threading

import pytest

import ledger
from ledger import aio

BEFORE, MEANWHILE = 100, 150

ASKED = {
    "tree": lambda chat: str(chat.tree()),
    "mermaid": lambda chat: chat.tree().mermaid(),
    "lineage": lambda chat: chat.lineage(1).to_dict(),
    "explain": lambda chat: chat.lineage(1).explain(),
    "influenced": lambda chat: chat.lineage(1).influenced,
    "diff": lambda chat: str(chat.diff(3, 4)),
    "heads": lambda chat: chat.heads(),
    "all_turns": lambda chat: [turn.ordinal for turn in chat.all_turns()],
    "messages": lambda chat: chat.messages(),
    "webui": lambda chat: list(ledger.export(chat, "open-webui")),
}


@pytest.fixture
def hurried():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def recorded(count):
    """A conversation with turns on two branches."""
    chat = ledger.open("alex", store=ledger.MemoryStore())
    root = chat.record("root", "x")
    for i in range(count):
        chat.record(f"{i}", "x", parent=root if i % 9 == 0 else ...)
    return chat


def test_threads_ask_while_another_records(hurried):
    """Each has its answer, and a tree shows each turn as it is: none that is half recorded."""
    chat = recorded(BEFORE)
    begin = threading.Barrier(2)

    def record():
        begin.wait(20)
        for i in range(MEANWHILE):
            chat.record(f"more {i}", "x")

    writer = threading.Thread(target=record)
    writer.start()
    begin.wait(20)
    shown = []
    while writer.is_alive():
        for ask in ASKED.values():
            shown.append(ask(chat))
    writer.join()
    assert shown
    assert not any("[" in each for each in shown if isinstance(each, str) and "└" in each)
    assert len(chat.lineage(1).influenced) > MEANWHILE


def test_tasks_ask_while_another_sends():
    """On an event loop too: a server draws the tree while an answer comes."""

    async def program(message: str) -> str:
        return "x"

    async def main():
        store = recorded(BEFORE).store
        chat = aio.open("alex", program, store=store, context=ledger.last_turns(1))

        async def send():
            for i in range(MEANWHILE // 10):
                await chat.send(f"more {i}")

        sending = asyncio.create_task(send())
        while not sending.done():
            await chat.tree()
            (await chat.lineage(1)).to_dict()
        await sending

    asyncio.run(main())


def test_what_was_handed_out_is_asked_while_others_record():
    """A lineage that was handed out works out its parts when they are asked for, as the log is by then."""
    chat = recorded(5)
    lineage = chat.lineage(1)
    newest = chat.record("more", "x")
    assert newest.id in lineage.influenced
