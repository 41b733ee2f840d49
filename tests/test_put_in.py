"""A result that was put in for a call that had none is nobody's word: it goes when the list comes back."""

import asyncio
import copy
import inspect
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledger
from ledger import aio
from ledger.formats import dialects
from ledger.formats.converting import MISSING

FORMATS = list(dialects.DIALECTS)
pytestmark = pytest.mark.filterwarnings("ignore::ledger.errors.LossWarning")


def said(role, *parts):
    given = [{"type": "text", "content": p} if isinstance(p, str) else p for p in parts]
    return {"role": role, "parts": given}


def call(id):
    return {"type": "tool_call", "id": id, "name": "pay", "arguments": {"n": 5}}


def result(id, response):
    return said("tool", {"type": "tool_call_response", "id": id, "response": response})


U, C, R, A = (
    said("user", "pay 5"),
    said("assistant", call("c1")),
    result("c1", "paid"),
    said("assistant", "done"),
)
U2, A2 = said("user", "hello?"), said("assistant", "hi")


def items(format, *messages):
    """The items of a form that say messages; a result among them is that of the call `C`."""
    return told(format, [C, *messages])[1:] if R in messages else told(format, messages)


def told(format, messages):
    """Messages as a memory of a form hands them out."""
    content = dialects.named(format).to_provider(list(messages)).content
    return content["messages"] if isinstance(content, dict) else content


def heard(memory, id):
    """The parts that the turns of a conversation say."""
    return [p for turn in memory.conversation(id).turns for m in turn.messages for p in m["parts"]]


def responses(parts):
    return [part["response"] for part in parts if part["type"] == "tool_call_response"]


async def got(value):
    return await value if inspect.isawaitable(value) else value


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_real_result_takes_its_place(format, face):
    """A list is saved while a tool waits; who reads it, runs the tool and saves it has the real result kept."""

    async def scenario():
        store = ledger.MemoryStore()
        memory = face.memory(store, format=format)
        await got(memory.save("u", told(format, [U, C])[:2]))
        later = face.memory(store, format=format)
        listed = await got(later.get("u"))
        assert MISSING in str(listed[-1])

        await got(later.save("u", [*listed, *items(format, R, A)]))

        assert await got(later.get("u")) == told(format, [U, C, R, A])
        blocking = ledger.memory(store, format=format)
        assert responses(heard(blocking, "u")) == ["paid"]
        assert len(blocking.conversation("u").all_turns()) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_model_was_told_is_told_again(format):
    """A list that goes on without the result is got as it was saved, and no result is recorded; twice is once."""
    for more in ([A], [U2, A2], [A, U2, A2]):
        store = ledger.MemoryStore()
        memory = ledger.memory(store, format=format)
        memory.save("u", told(format, [U, C]))
        listed = [*memory.get("u"), *items(format, *more)]

        memory.save("u", listed)

        assert memory.get("u") == listed
        assert responses(heard(memory, "u")) == []
        assert memory.conversation("u").turns[-1].result == more[-1]["parts"][0]["content"]
        count = len(store.read("u"))
        for again in (memory, ledger.memory(store, format=format)):
            again.save("u", again.get("u"))
        assert len(store.read("u")) == count


@pytest.mark.parametrize("format", FORMATS)
def test_every_verb_takes_it_out(format):
    """`turn`, `append`, `sync`, `record` and `note` of what was handed out say no more than was said."""
    memory = ledger.memory(ledger.MemoryStore(), format=format)
    with memory.turn("u") as turn:
        turn.messages += told(format, [U, C])[:2]
    with memory.turn("u") as turn:
        turn.messages += items(format, R, A)
    assert responses(heard(memory, "u")) == ["paid"]

    memory.append("v", told(format, [U, C, A]))
    assert responses(heard(memory, "v")) == []

    chat = ledger.open("w", store=ledger.MemoryStore())
    chat.sync(told(format, [U, C]), format=format)
    chat.sync([*told(format, [U, C]), *items(format, R, A)], format=format)
    assert responses(p for t in chat.turns for m in t.messages for p in m["parts"]) == ["paid"]

    def agent(message):
        ledger.current().note(messages=told(format, [C, A]), format=format)
        return "done"

    noted = ledger.open("x", agent, store=ledger.MemoryStore()).send("pay 5").messages
    assert responses(p for m in noted for p in m["parts"]) == []


def test_a_tool_that_says_just_this_is_told_so():
    """A result of the same words is told with the same words, whoever said them."""
    memory = ledger.memory(ledger.MemoryStore(), format="openai")
    listed = told("openai", [U, C, result("c1", MISSING), A])

    memory.save("u", listed)

    assert memory.get("u") == listed


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
@pytest.mark.parametrize("format", FORMATS)
def test_taking_back_the_last_ends(format, face):
    """`pop` takes one item at a time, the last first, a call without its result too, down to nothing."""

    async def scenario():
        memory = face.memory(ledger.MemoryStore(), format=format)
        listed = told(format, [U, C, R, A, U2, A2])
        await got(memory.save("u", listed))

        popped = []
        while (item := await got(memory.pop("u"))) is not None:
            popped.append(item)

        assert popped == listed[::-1]
        assert await got(memory.get("u")) is None
        assert await got(memory.pop("u")) is None
        assert await got(memory.pop(None)) is None

    asyncio.run(scenario())


SAID = st.sampled_from(["user", "assistant", "call", "two calls", "result"])


def made(kinds, begun):
    """Messages of kinds; calls have ids of their own, a result is that of the latest call."""
    out, ids = [], []
    for i, kind in enumerate(kinds):
        if kind == "result":
            out += [result(ids.pop(), "paid")] if ids else []
        elif kind in ("user", "assistant"):
            out.append(said(kind, kind))
        else:
            ids = [f"c{begun}_{i}_{n}" for n in range(2 if kind == "two calls" else 1)]
            out.append(said("assistant", *map(call, ids)))
    return out


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=15, deadline=None)
@given(lists=st.lists(st.lists(SAID, max_size=5), max_size=3))
def test_any_list_that_was_handed_out_is_known(format, lists):
    """However a list goes on: saving what is got records nothing, here or in a new process; every result that is
    recorded was somebody's; and taking back one item after the other comes to an end."""
    store = ledger.MemoryStore()
    memory, now = ledger.memory(store, format=format), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for begun, kinds in enumerate(lists):
            memory.save("u", [*(memory.get("u") or []), *told(format, made(kinds, begun))])

            assert MISSING not in responses(heard(memory, "u"))
            now, count = memory.get("u") or [], len(store.read("u"))
            for each in (memory, ledger.memory(store, format=format)):
                each.save("u", copy.deepcopy(now))
                assert (each.get("u") or []) == now
            assert len(store.read("u")) == count
        for _ in now:
            memory.pop("u")
        assert memory.get("u") is None
