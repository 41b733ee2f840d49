"""T25: a store that takes 200 ms for each call keeps nobody's event loop waiting."""

import asyncio
from contextlib import suppress

import pytest

import ledger
from ledger import merging
from tests.scenarios.stores import Slow
from tests.scenarios.support import SOON_S, asked, states

CALL_S = 0.2
TICK_S = 0.01
LATE_S = 0.15
"""How late a tick may be. A busy machine makes ticks late, too, but not each time: see `punctual`."""
TRIES = 10
CONVERSATIONS = 50


def echo(message: str) -> str:
    """Answer at once."""
    return f"re {message}"


async def echo_awaited(message: str) -> str:
    """Answer soon."""
    await asyncio.sleep(0.01)
    return f"re {message}"


async def _tick(late):
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + TICK_S
        await asyncio.sleep(TICK_S)
        late.append(loop.time() - due)


def punctual(scenario):
    """Run a scenario on a loop beside a ticker until no tick was late; raise when each time one was.

    A call of the store on the loop would make a tick late by 200 ms, each time.
    """
    found = []
    for _ in range(TRIES):
        late: list[float] = []

        async def all_(late=late):
            ticking = asyncio.ensure_future(_tick(late))
            await scenario()
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking

        asyncio.run(all_())
        found.append(max(late))
        if found[-1] <= LATE_S:
            return
    raise AssertionError(f"the loop was blocked: the latest tick of each try was {found} s late")


@pytest.mark.parametrize("program", [echo, echo_awaited])
def test_fifty_conversations_do_not_block_the_loop(program):
    """While fifty conversations wait for a slow store, a ticker on their loop is never late."""

    async def scenario():
        store = Slow(ledger.MemoryStore(), CALL_S)
        chats = [ledger.aio.open(f"c{n}", program, store=store) for n in range(CONVERSATIONS)]
        turns = await asyncio.gather(*(chat.send("hi") for chat in chats))
        assert [turn.result for turn in turns] == ["re hi"] * CONVERSATIONS

    punctual(scenario)


def test_what_is_shown_does_not_block_the_loop():
    """An async program that asks for the earlier turns is not kept waiting by reads of the store."""

    async def program(message: str) -> str:
        for _ in range(100):
            assert len(ledger.current().earlier()) == 1
            await asyncio.sleep(0.01)
        return "done"

    async def scenario():
        inner = ledger.MemoryStore()
        ledger.open("alex", store=inner).record("first", "1")
        chat = ledger.aio.open("alex", program, store=Slow(inner, CALL_S))
        assert await chat("hi") == "done"

    punctual(scenario)


def test_no_verb_blocks_the_loop():
    """Each verb of the awaiting face, and each property of its turns, leaves the loop alone."""

    async def scenario():
        store = Slow(ledger.MemoryStore(), CALL_S / 2)
        chat = ledger.aio.open("alex", echo_awaited, store=store)
        first = await chat.record("first", "1")
        async with chat.stream("second") as stream:
            assert [piece async for piece in stream] == []
            assert await stream.result == "re second"
            told = repr(stream.turn), stream.turn.messages, stream.turn.saw, stream.turn.parent
        assert told[3] == first
        tries = await chat.tries("third", settings=[{"lm": "a"}, {"lm": "b"}])
        await chat.merge(tries, merging.pick(tries[0]))
        await chat.render("fourth")
        await chat.tree()
        await chat.lineage(first)
        await (await chat.continue_from(first)).send("beside", request_id="r")
        await chat.set_title("slow")
        assert await chat.title == "slow"
        assert len(await chat.heads()) == 2
        assert [turn.state for turn in await chat.all_turns()] == ["done"] * 6
        assert [event["kind"] async for event in first.events()] == ["started", "text", "done"]
        await chat.stop(request_id="r")
        await first.refresh()
        assert await first.wait(SOON_S) == "done"

    punctual(scenario)


# -- one of them is cancelled


@pytest.mark.parametrize("after_s", [0.0, 0.03, 0.08, 0.13, 0.2, 0.3])
def test_one_send_is_cancelled(after_s):
    """One send of fifty is cancelled, whatever it was doing: the others and its log know nothing of it.

    Its turn ended `stopped`, or was never recorded; the next send of its conversation works at once.
    """
    inner = ledger.MemoryStore()
    store = Slow(inner, CALL_S / 4)

    async def program(message: str) -> str:
        if message == "slow":
            await asyncio.sleep(30)
        return f"re {message}"

    async def scenario():
        chats = [ledger.aio.open(f"c{n}", program, store=store) for n in range(10)]
        sends = [
            asyncio.ensure_future(chat.send("slow" if n == 7 else "hi"))
            for n, chat in enumerate(chats)
        ]
        await asyncio.sleep(after_s)
        sends[7].cancel()
        done = await asyncio.gather(*sends, return_exceptions=True)
        assert isinstance(done.pop(7), asyncio.CancelledError)
        assert {turn.result for turn in done} == {"re hi"}
        return await asyncio.wait_for(chats[7].send("next"), SOON_S)

    turn = asyncio.run(scenario())

    assert (turn.state, turn.parent) == ("done", None)
    turns = ledger.open("c7", store=inner).all_turns()
    assert asked(turns) in (["next"], ["slow", "next"])
    assert states(turns) in (["done"], ["stopped", "done"])


@pytest.mark.parametrize("after_s", [0.02, 0.07, 0.12])
def test_a_send_that_is_cancelled_twice(after_s):
    """A task that is cancelled again while its turn is being stopped leaves no turn that runs on."""
    inner = ledger.MemoryStore()

    async def program(message: str) -> str:
        if message == "slow":
            await asyncio.sleep(30)
        return f"re {message}"

    async def scenario():
        chat = ledger.aio.open("alex", program, store=Slow(inner, CALL_S / 4))
        send = asyncio.ensure_future(chat.send("slow"))
        await asyncio.sleep(after_s)
        send.cancel()
        await asyncio.sleep(0.02)
        send.cancel()
        with suppress(asyncio.CancelledError):
            await send
        return await asyncio.wait_for(chat.send("next"), SOON_S)

    turn = asyncio.run(scenario())

    assert turn.state == "done"
    turns = ledger.open("alex", store=inner).all_turns()
    assert states(turns) in (["done"], ["stopped", "done"])
