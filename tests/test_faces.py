"""The two faces are one: the same verbs, the same signatures, and one scenario that both go through."""

import asyncio
import inspect
import threading
from typing import Any

import pytest

import ledger
from ledger import aio, catalog, conversation, errors, memories, merging, stream, turn
from ledger.aio import rendering as aio_rendering
from ledger.turns import rendering
from tests.catalog.test_catalog import Awaited

PAIRS = [
    (conversation.Conversation, aio.Conversation),
    (turn.Turn, aio.Turn),
    (stream.Stream, aio.Stream),
    (rendering.Rendered, aio_rendering.Rendered),
    (memories.Memory, aio.Memory),
    (catalog.Catalog, aio.catalog.Catalog),
]
NEEDLESS = {"__await__", "__aenter__", "__aexit__", "__aiter__"}
"""What only code on a loop needs; its blocking twins have other names by the language's rule."""


def public(cls):
    """The public names of a class, and the special ones that it defines itself."""
    return {name for name in dir(cls) if not name.startswith("_")} | ({"__call__"} & set(dir(cls)))


def parameters(method):
    """A method's parameters, with names, kinds and defaults."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]


@pytest.mark.parametrize("one, other", PAIRS, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_same_verbs(one, other):
    """Each public name of one face is one of the other."""
    assert public(one) == public(other)


@pytest.mark.parametrize("one, other", PAIRS, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_same_signatures(one, other):
    """A method is a method in both, with the same parameters; a property is one in both."""
    for name in sorted(public(one)):
        here, there = (inspect.getattr_static(cls, name, None) for cls in (one, other))
        assert isinstance(here, property) == isinstance(there, property), name
        if callable(here):
            assert parameters(here) == parameters(there), name


def test_a_view_that_was_not_awaited_says_so():
    """`chat.continue_from(turn)` is a coroutine, which has a `send` too: who means the view's is told to await it."""

    async def scenario() -> None:
        chat = aio.open("alex", lambda message: message, store=ledger.MemoryStore())
        await chat("one")
        with pytest.raises(TypeError, match=r"continue_from is awaited first: .*\.send"):
            await chat.continue_from(1).send("x")
        with pytest.raises(TypeError, match=r"continue_from is awaited first: .*\)\(\.\.\.\)"):
            await chat.continue_from(1)("x")  # type: ignore[operator]
        coming: Any = chat.continue_from(1)
        with pytest.raises(AttributeError, match=r"continue_from is awaited first: .*\.record"):
            coming.record("x", "y")
        assert await (await coming)("2") == "2"
        assert await (await asyncio.create_task(chat.continue_from(1)))("3") == "3"
        await (await asyncio.wait_for(chat.continue_from(1), 30)).send("4")
        asked = [turn.inputs["message"] for turn in await chat.all_turns()]
        assert asked == ["one", "2", "3", "4"]

    asyncio.run(scenario())


def test_open_is_the_same():
    """Both faces are opened with the same arguments."""
    assert parameters(ledger.open) == parameters(aio.open)


def test_memory_is_the_same():
    """Both faces of an agent's memory are made with the same arguments."""
    assert parameters(ledger.memory) == parameters(aio.memory)


def test_catalog_is_the_same():
    """Both faces of a store's catalog are made with the same arguments."""
    assert parameters(ledger.catalog.of) == parameters(aio.catalog.of)


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_a_catalog_is_asked_through_both(face):
    """Every question of a catalog is answered on either face, also of a store with coroutines."""

    async def main():
        store = Awaited()
        ledger.open("c", store=store.inner).record("parcel", "told", model="m", usage={"n": 2})
        asked = face.catalog.of(store if face is aio else store.inner)
        seen: list = [[row.id for row in await got(asked.conversations(limit=1))]]
        seen += [len(await got(asked.search("parcel"))), await got(asked.waiting())]
        seen += [(await got(asked.usage()))[0].tokens, (await got(asked.rebuild())).failed]
        return seen

    assert asyncio.run(main()) == [["c"], 1, [], {"n": 2}, {}]


def test_drain_is_the_same():
    """Both faces wait for this process's turns with the same verb."""
    assert parameters(ledger.drain) == parameters(aio.drain)


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_drain_waits_for_every_turn(face):
    """It returns when all turns of this process have ended, or names those that run on when the time is up."""
    go_on = threading.Event()

    def slow(message: str) -> str:
        go_on.wait(30)
        return message

    async def main():
        s = ledger.open("drained", slow, store=ledger.MemoryStore()).stream("x")
        assert s.turn.id in await got(face.drain(0.05))
        threading.Timer(0.05, go_on.set).start()
        assert s.turn.id not in await got(face.drain(30))
        return s.turn.state

    assert asyncio.run(main()) == "done"


# -- one scenario -----------------------------------------------------------------------------------


async def got(value):
    """What a verb gives, awaited where it has to be."""
    return await value if inspect.isawaitable(value) else value


class Entered:
    """A stream entered as its face wants it."""

    def __init__(self, stream):
        self.stream = stream

    async def __aenter__(self):
        if hasattr(self.stream, "__aenter__"):
            return await self.stream.__aenter__()
        return self.stream.__enter__()

    async def __aexit__(self, *error):
        if hasattr(self.stream, "__aexit__"):
            await self.stream.__aexit__(*error)
        else:
            self.stream.__exit__(*error)


async def each(source):
    """Everything that an iterable gives, of either kind."""
    if hasattr(source, "__aiter__"):
        return [item async for item in source]
    return list(source)


def words(message: str):
    """Say the words of a message."""
    yield from message.split(" ")


async def slow_words(message: str):
    """Say the words of a message, from a loop."""
    for word in message.split(" "):
        await asyncio.sleep(0)
        yield word


def shout(message: str) -> str:
    """Answer loudly, with what was said before."""
    now = ledger.current()
    now.note(model=now.settings.get("lm"), usage={"tokens": len(now.earlier())})
    if message == "fail":
        raise ValueError("as asked")
    return message.upper()


async def async_shout(message: str) -> str:
    """Answer loudly, from a loop."""
    await asyncio.sleep(0)
    return shout(message)


async def scenario(open, store, *, loud, streaming):
    """Go through every verb. Returns: what was seen, without what differs from run to run."""
    seen = []
    chat = open("c", loud, store=store, topic="sums")
    seen.append(await got(chat("one")))
    second = await got(chat.send("two", lm="m", request_id="r2"))
    seen += [second.result, second.model, second.usage, second.state, second.ordinal]
    again = await got(chat.send("two", lm="m", request_id="r2"))
    seen.append(again == second)
    with pytest.raises(errors.RequestMismatch):
        await got(chat.send("other", request_id="r2"))
    with pytest.raises(ValueError, match="as asked"):
        await got(chat("fail"))
    seen.append((await got(chat.head)).error)

    tries = await got(chat.tries("again?", settings=[{"lm": "a"}, {"lm": "b"}]))
    seen += [[t.model for t in tries], len({t.parent.id for t in tries})]
    seen.append([t.inputs for t in await got(chat.turns)])
    merged = await got(chat.merge(tries, merging.text("both")))
    seen += [merged.result, [t.model for t in merged.reads], merged.parent.ordinal]
    side = await got(chat.continue_from(second))
    recorded = await got(side.record("asked", "told", model="x", usage={"n": 1}))
    seen += [recorded.parent.ordinal, recorded.messages]
    seen.append([t.ordinal for t in await got(chat.heads())])
    await got(chat.set_head(merged))
    await got(chat.set_title("Sums"))
    seen += [await got(chat.title), (await got(chat.head)).ordinal]
    await got(chat.label("sums"))
    await got(chat.label("easy"))
    await got(chat.unlabel("easy"))
    await got(merged.rate(3, by="maria"))
    await got((await got(merged.rate(True, why="short"))).label("gold"))
    await got((await got(merged.label("later"))).unlabel("later"))
    seen += [await got(chat.labels), merged.labels, merged.rating]
    seen.append([(r.value, r.by, r.why) for r in merged.ratings])
    compared = await got(chat.diff(tries[0], merged))
    seen += [compared.model.a, compared.outputs["result"].b, compared.inputs]
    await got(chat.keep_entry("mine", "note", {"a": 1}))
    seen.append([e["data"] for e in await got(chat.entries("mine", "note"))])
    seen.append(len((await got(chat.lineage(merged))).ancestors))
    seen.append((await got(chat.render("next"))).rows)
    drawn = await got(chat.tree())
    seen += [str(drawn).count("\n") > 3, drawn.mermaid().partition("\n")[0]]

    told = open("s", streaming, store=store)
    async with Entered(told.stream("a b c", request_id="s1")) as s:
        pieces = await each(s)
        seen += [pieces, await got(s.result), s.turn.ordinal]
    async with Entered(told.stream("a b c", request_id="s1")) as s:
        seen += ["".join(await each(s)), await got(s.result)]
    turn = await got((await got(told.head)).refresh())
    events = await each(turn.events())
    seen += [events[0]["kind"], events[-1]["kind"], events[-1]["value"]]
    place = {"writer": events[0]["writer"], "seq": events[0]["seq"]}
    seen.append(await each(turn.events(place)) == events[1:])
    seen += [await got(turn.wait()), await got(turn.stop())]
    with pytest.raises(errors.TurnState):
        await got(turn.abandon())
    seen.append(await got(told.stop(request_id="s1")))
    with pytest.raises(errors.TurnUnknown):
        await got(told.stop(request_id="nobody"))
    receipt = await got(told.forget(turn))
    seen.append(receipt.turn == turn.id)
    seen.append([t.erased for t in await got(told.all_turns())])
    seen.append((await got(chat.turn(1))).inputs)
    return seen


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_one_scenario_through_both(kind, tmp_path):
    """Blocking and awaitable, with programs of all four kinds: the same is seen, on either store."""
    runs = []
    for number, (face, loud, streaming) in enumerate(
        [
            (ledger.open, shout, words),
            (ledger.open, async_shout, slow_words),
            (aio.open, shout, words),
            (aio.open, async_shout, slow_words),
        ]
    ):
        folder = tmp_path / str(number)
        store = ledger.MemoryStore() if kind == "memory" else ledger.FolderStore(folder)
        runs.append(asyncio.run(scenario(face, store, loud=loud, streaming=streaming)))

    assert runs[0] == runs[1] == runs[2] == runs[3]
    assert runs[0][0] == "ONE"


def test_an_opened_conversation_may_be_awaited():
    """`await ledger.aio.open(...)` and `ledger.aio.open(...)` are the same."""

    async def main():
        chat = await aio.open("c", shout, store=ledger.MemoryStore())
        return await chat("x")

    assert asyncio.run(main()) == "X"


def test_what_is_written_by_a_verb_names_it():
    """A property that waits cannot be assigned to: whoever does is told the verb."""
    chat = aio.open("alex", store=ledger.MemoryStore())
    with pytest.raises(AttributeError, match=r"await chat\.set_title"):
        chat.title = "x"
    with pytest.raises(AttributeError, match=r"await chat\.set_head"):
        chat.head = 1
