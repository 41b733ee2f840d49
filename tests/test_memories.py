"""An agent's memory: its three faces, blocking and awaitable, over ordinary conversations."""

import asyncio
import base64
import contextlib
import contextvars
import hashlib
import inspect
import re
import threading
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledger
from ledger import aio, errors
from ledger.records import ids


def user(text):
    return {"role": "user", "content": text}


def bot(text):
    return {"role": "assistant", "content": text}


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "found"}
HELLO = [user("Hi"), bot("Hello")]


async def got(value):
    """What a verb gives, awaited where it has to be."""
    return await value if inspect.isawaitable(value) else value


@contextlib.asynccontextmanager
async def entered(turn):
    """A turn entered as its face wants it."""
    if hasattr(turn, "__aenter__"):
        async with turn:
            yield turn
    else:
        with turn:
            yield turn


def both(scenario):
    """A test that is a scenario for a memory, made by each face, on either store."""

    @pytest.mark.parametrize("kind", ["memory", "folder"])
    @pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
    def test(face, kind, tmp_path):
        store = ledger.MemoryStore() if kind == "memory" else ledger.FolderStore(tmp_path)
        asyncio.run(scenario(face.memory(store, format="openai"), store))

    test.__doc__ = scenario.__doc__
    return test


# -- get and save ----------------------------------------------------------------------------------


@both
async def test_what_is_saved_is_got(memory, store):
    """A list comes back as it was saved, also from another process's memory; it grows by what is new."""
    assert await got(memory.get("a")) is None
    listed = [{"role": "system", "content": "Be kind."}, user("Look"), CALL, RESULT, bot("There")]
    await got(memory.save("a", listed))
    records = len(store.read("a"))
    await got(memory.save("a", await got(memory.get("a"))))
    assert len(store.read("a")) == records

    await got(memory.save("a", [*listed, *HELLO]))

    assert await got(memory.get("a")) == [*listed, *HELLO]
    assert ledger.memory(store, format="openai").get("a") == [*listed, *HELLO]
    assert len(store.read("a")) == records + 2


@both
async def test_what_makes_no_turn_is_kept_beside(memory, store):
    """A list may end without an answer: it comes back whole, and is no turn until it has one."""
    for tail in ([user("?")], [user("?"), CALL, RESULT]):
        await got(memory.save("a", [*HELLO, *tail]))
        assert await got(memory.get("a")) == [*HELLO, *tail]
        assert len(ledger.open("a", store=store).all_turns()) == 1
    await got(memory.save("a", [*HELLO, user("?"), CALL]))
    with pytest.warns(errors.LossWarning, match="no result"):
        assert (await got(memory.get("a")))[:4] == [*HELLO, user("?"), CALL]

    await got(memory.save("a", [*HELLO, user("?"), CALL, RESULT, bot("!")]))
    assert len(ledger.open("a", store=store).all_turns()) == 2
    await got(memory.save("b", [user("first")]))
    assert await got(memory.get("b")) == [user("first")]
    await got(memory.save("b", []))
    assert await got(memory.get("b")) is None


@both
async def test_of_two_that_save_at_once_both_are_kept(memory, store):
    """Two lists that go on from the same place: the last one saved is got, the other is a branch."""
    await got(memory.save("a", HELLO))
    one, two = [*HELLO, user("1"), bot("one")], [*HELLO, user("2"), bot("two")]
    await got(memory.save("a", one))
    await got(memory.save("a", two))

    assert await got(memory.get("a")) == two
    assert [t.result for t in ledger.open("a", store=store).heads()] == ["two", "one"]

    await got(memory.save("a", one))
    assert await got(memory.get("a")) == one
    await got(memory.save("a", HELLO))
    assert await got(memory.get("a")) == HELLO
    assert len(ledger.open("a", store=store).all_turns()) == 3


@both
async def test_changed_instructions_come_back(memory, store):
    """A list whose system message changed is the same conversation, and comes back with the new one."""
    await got(memory.save("a", [{"role": "system", "content": "Monday"}, *HELLO]))
    listed = [{"role": "system", "content": "Tuesday"}, *HELLO, user("2"), bot("two")]
    await got(memory.save("a", listed))

    assert await got(memory.get("a")) == listed
    assert len(ledger.open("a", store=store).heads()) == 1


# -- load, append and clear ----------------------------------------------------------------------


@both
async def test_turn_by_turn(memory, store):
    """What a turn added goes behind what is there; cleared, there is nothing, and nothing is lost."""
    assert await got(memory.load("a")) == []
    turns = await got(memory.append("a", HELLO, model="m", usage={"tokens": 3}))
    assert [(t.result, t.model, t.usage) for t in turns] == [("Hello", "m", {"tokens": 3})]
    await got(memory.append("a", [user("Look"), CALL, RESULT, bot("There")]))
    assert await got(memory.load("a")) == [*HELLO, user("Look"), CALL, RESULT, bot("There")]

    await got(memory.clear("a"))
    await got(memory.clear("a"))

    assert await got(memory.load("a")) == []
    assert await got(memory.get("a")) is None
    assert ledger.open("a", store=store).head is None
    await got(memory.append("a", HELLO))
    assert await got(memory.load("a")) == HELLO
    chat = ledger.open("a", store=store)
    assert [t.ordinal for t in chat.heads()] == [3, 2]
    chat.head = 2
    assert len(await got(memory.load("a"))) == 6


@both
async def test_an_unanswered_turn_is_not_appended(memory, store):
    """Messages that end without an answer are refused, with their place; nothing is recorded."""
    for added in ([user("?")], [user("?"), CALL, RESULT]):
        with pytest.raises(errors.RecordInvalid, match="answer") as caught:
            await got(memory.append("a", added))
        assert caught.value.path == f"messages[{len(added) - 1}]"
    assert store.read("a") == []


@both
async def test_what_was_left_over_is_gone_on_with(memory, store):
    """An answer that is appended to a question that was left over makes one turn with it."""
    await got(memory.save("a", [*HELLO, user("?")]))
    await got(memory.append("a", [bot("!")]))

    assert await got(memory.load("a")) == [*HELLO, user("?"), bot("!")]
    await got(memory.save("a", [*HELLO, user("?"), bot("!"), user("left")]))
    await got(memory.clear("a"))
    assert await got(memory.load("a")) == []
    await got(memory.save("a", [user("new")]))
    await got(memory.clear("a"))
    assert await got(memory.load("a")) == []


# -- a turn of one's own -----------------------------------------------------------------------


@both
async def test_a_turn_that_succeeded(memory, store):
    """Its list begins with all that was said; what it added is recorded as one turn when it is left."""
    for number in ("one", "two"):
        async with entered(memory.turn("user:42")) as turn:
            assert [m["content"] for m in turn.messages[1::2]] == ["one", "two"][
                : len(turn.messages) // 2
            ]
            turn.messages.append(user(number))
            turn.messages.append(bot(number))
        assert [t.result for t in turn.turns] == [number]

    assert await got(memory.load("user:42")) == [user("one"), bot("one"), user("two"), bot("two")]
    assert [t.result for t in ledger.open("user_3a42", store=store).turns] == ["one", "two"]


async def failing(turn, error):
    """Make a turn that fails once it has all its messages."""
    async with entered(turn):
        turn.messages += [user("2"), bot("two")]
        raise error


@both
async def test_a_turn_that_failed(memory, store):
    """Left by an exception, nothing is recorded, whatever it added; the next one begins as it did."""
    await got(memory.save("a", HELLO))
    before = store.read("a")
    for error in (ValueError(), asyncio.CancelledError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            await failing(memory.turn("a"), error)
    assert store.read("a") == before

    async with entered(memory.turn("a")) as turn:
        assert turn.messages == HELLO
    assert store.read("a") == before


@both
async def test_no_id_is_a_call_on_its_own(memory, store):
    """Without an id, or with a history of its own, nothing is loaded and nothing is stored."""
    await got(memory.save("a", HELLO))
    before = store.conversations()
    for none in (None, ""):
        assert await got(memory.get(none)) is None
        assert await got(memory.load(none)) == []
        assert await got(memory.append(none, HELLO)) == []
        await got(memory.save(none, HELLO))
        await got(memory.clear(none))
        async with entered(memory.turn(none)) as turn:
            assert turn.messages == []
            turn.messages += HELLO
        assert turn.turns == []
    async with entered(memory.turn("a", history=[user("x")])) as turn:
        assert turn.messages == [user("x")]
        turn.messages.append(bot("y"))

    assert await got(memory.load("a")) == HELLO
    assert store.conversations() == before


@both
async def test_a_turn_beside_which_others_added_one(memory, store):
    """What another process recorded meanwhile stays, and the turn stands beside it; it is what is loaded."""
    await got(memory.save("a", HELLO))
    async with entered(memory.turn("a")) as turn:
        ledger.open("a", store=store).record("other", "process")
        turn.messages += [user("2"), bot("two")]

    assert [t.result for t in ledger.open("a", store=store).heads()] == ["two", "process"]
    assert await got(memory.load("a")) == [*HELLO, user("2"), bot("two")]


@both
async def test_a_turn_that_changed_what_was_said(memory, store):
    """A list whose beginning was changed is handed over whole: a branch from where it departs."""
    await got(memory.save("a", [*HELLO, user("2"), bot("two")]))
    async with entered(memory.turn("a")) as turn:
        turn.messages[2]["content"] = "zwei"

    assert await got(memory.load("a")) == [*HELLO, user("zwei"), bot("two")]
    assert len(ledger.open("a", store=store).heads()) == 2


@both
async def test_a_turn_without_an_answer_is_kept_beside(memory, store):
    """A turn that is left before its answer is no turn; the next one begins with what it added."""
    async with entered(memory.turn("a")) as turn:
        turn.messages.append(user("?"))
    assert turn.turns == []

    async with entered(memory.turn("a")) as turn:
        assert turn.messages == [user("?")]
        turn.messages.append(bot("!"))
    assert len(turn.turns) == 1


# -- one at a time -----------------------------------------------------------------------------


def test_a_second_turn_queues():
    """Threads that begin a turn of one conversation go one after the other, in order, each after the other's."""
    store = ledger.MemoryStore()
    begun = threading.Event()
    seen = []

    def work(number):
        with ledger.memory(store).turn("a") as turn:
            begun.set()
            seen.append(len(turn.messages))
            turn.messages += [text("user", number), text("assistant", number)]

    with ledger.memory(store).turn("a") as first:
        threads = [threading.Thread(target=work, args=(str(n),)) for n in range(5)]
        for thread in threads:
            thread.start()
        assert not begun.wait(0.05)
        first.messages += [text("user", "first"), text("assistant", "first")]
    for thread in threads:
        thread.join(30)

    assert seen == [2, 4, 6, 8, 10]
    assert len(ledger.open("a", store=store).turns) == 6


def text(role, said):
    return {"role": role, "parts": [{"type": "text", "content": said}]}


def test_a_second_task_queues_and_may_be_cancelled():
    """Tasks go one after the other; one that is cancelled while it waits holds up nobody."""
    store = ledger.MemoryStore()
    order = []

    async def work(memory, number, hold=None):
        async with memory.turn("a") as turn:
            order.append(number)
            if hold is not None:
                await hold.wait()
            turn.messages += [text("user", str(number)), text("assistant", str(number))]

    async def main():
        memory, hold = aio.memory(store), asyncio.Event()
        tasks = [asyncio.create_task(work(memory, 0, hold))]
        while not order:
            await asyncio.sleep(0)
        tasks += [asyncio.create_task(work(memory, n)) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        hold.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(main())

    assert isinstance(results[1], asyncio.CancelledError)
    assert order == [0, 2, 3]
    assert len(ledger.open("a", store=store).turns) == 3


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_a_second_turn_is_refused_as_asked(face):
    """With busy="refuse" a second turn of a conversation is refused, of another it is not."""
    store = ledger.MemoryStore()

    async def main():
        memory = face.memory(store, busy="refuse")
        refused = []

        async def second():
            try:
                async with entered(face.memory(store, busy="refuse").turn("a")):
                    pass
            except errors.Busy as busy:
                refused.append(busy.code)

        async with entered(memory.turn("a")), entered(memory.turn("b")):
            await asyncio.create_task(second())
        await asyncio.create_task(second())
        return refused

    assert asyncio.run(main()) == ["conversation-busy"]


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_a_turn_within_itself_is_refused(face):
    """Who makes a turn does not wait for it to end: also where turns queue, the inner one is refused."""

    async def main():
        memory = face.memory(ledger.MemoryStore())
        async with entered(memory.turn("a")):
            with pytest.raises(errors.Busy):
                async with entered(memory.turn("a")):
                    pass
        async with entered(memory.turn("a")) as turn:
            return turn.messages

    assert asyncio.run(main()) == []


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_a_programs_turn_is_waited_for_or_refused(face):
    """Where a program's turn runs, a turn and an append are refused, or go behind it, as asked."""
    store = ledger.MemoryStore()
    begun, go_on = threading.Event(), threading.Event()

    def slow(message: str) -> str:
        begun.set()
        go_on.wait(30)
        return "late"

    async def main():
        refusing = face.memory(store, format="openai", busy="refuse")
        with pytest.raises(errors.Busy):
            await got(refusing.append("a", HELLO))
        with pytest.raises(errors.Busy):
            async with entered(refusing.turn("a")):
                pass
        queueing = face.memory(store, format="openai")
        threading.Timer(0.05, go_on.set).start()
        async with entered(queueing.turn("a")) as turn:
            turn.messages += HELLO
        return turn.turns[0].parent.result

    thread = threading.Thread(target=lambda: ledger.open("a", slow, store=store)("now"))
    thread.start()
    assert begun.wait(30)
    try:
        assert asyncio.run(main()) == "late"
    finally:
        go_on.set()
        thread.join()


# -- ids ---------------------------------------------------------------------------------------

KEYS = [
    "user:42",
    "ada@example.org",
    "😀",
    "Ada",
    "ada",
    "a" * 10_000,
    "con",
    "x.",
    "_",
    ".",
    "a b",
]


@both
async def test_ids_of_any_text(memory, store):
    """Each id is a conversation of its own, and is told again; two that differ by case, too."""
    for key in KEYS:
        await got(memory.save(key, [user(key[:50]), bot("yes")]))

    for key in KEYS:
        assert await got(memory.get(key)) == [user(key[:50]), bot("yes")]
    assert await got(memory.ids()) == sorted(KEYS)
    assert len({c.casefold() for c in store.conversations()}) == len(KEYS)
    assert memory.conversation("user:42").id == "user_3a42"


@settings(max_examples=50)
@given(st.text(st.characters(), min_size=1, max_size=90), st.text(min_size=1, max_size=90))
def test_a_key_is_one_conversation_and_back(one, other):
    """Any text gives an id that is valid everywhere, blind to case, and tells it again; no other gives it."""
    made = ids.of_key(one)

    assert ids.check_conversation(made) == made
    assert not ids.reserved_on_windows(made)
    assert made == made.lower()
    assert ids.key_of(made) == one or ids.is_long_key(made)
    assert (ids.of_key(other) == made) == (other == one)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}", fullmatch=True))
def test_only_a_keys_id_is_told(conversation):
    """An id that no key has is told as none; the others are their key's."""
    key = ids.key_of(conversation)

    assert key is None or ids.of_key(key) == conversation


def test_how_ids_are_spelled():
    """The spelling is a part of the format: what was kept under an id is found by it for ever."""
    spelled = {
        "alex-1.b": "alex-1.b",
        "user:42": "user_3a42",
        "Ada": "k___41da",
        "a_b": "a_5fb",
        "é": "k___c3_a9",
        "end.": "end_2e",
        "nul.txt": "k___6eul.txt",
        "x" * 201: "h__" + hashlib.sha256(b"x" * 201).hexdigest(),
    }

    assert {key: ids.of_key(key) for key in spelled} == spelled


@pytest.mark.parametrize("key", [7, None, b"x", ""])
def test_what_is_no_key(key):
    """What is no text, or empty, names no conversation."""
    with pytest.raises(errors.ConversationIdInvalid):
        ids.of_key(key)


def test_words_that_are_not_known():
    """A form and a wish that nobody knows, and a store that lists nothing."""
    with pytest.raises(ValueError, match="openai"):
        ledger.memory(format="gpt")
    with pytest.raises(ValueError, match="queue"):
        ledger.memory(busy="branch")  # type: ignore[arg-type]

    class Plain:
        def append(self, conversation, records, *, expect=None):
            return 0

        def read(self, conversation, after=0):
            return []

    with pytest.raises(errors.StoreUnsupported):
        ledger.memory(Plain()).ids()


def test_few_conversations_stay_open():
    """However many conversations a memory uses, it keeps a few open, and finds the others again."""
    memory = ledger.memory(ledger.MemoryStore(), format="openai")
    for n in range(100):
        memory.save(f"c{n}", HELLO)

    assert len(memory._opened) <= 32
    assert memory.get("c0") == HELLO


def test_attachments_are_given_with_their_bytes():
    """What stands as an attachment in the store is given as data, and known when it comes back."""
    store = ledger.MemoryStore()
    sha256, size = store.blobs.put(b"\x89PNG")
    reference = {"sha256": sha256, "media_type": "image/png", "size": size}
    content = {"$attachment": reference}
    image = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": content}
    asked = {"role": "user", "parts": [{"type": "text", "content": "What?"}, image]}
    ledger.memory(store).append("a", [asked, text("assistant", "A picture.")])
    before = store.read("a")
    memory = ledger.memory(store, format="openai")

    listed = memory.get("a")
    assert listed[0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    memory.save("a", listed)
    assert store.read("a") == before


def test_a_conversation_is_told_in_another_form():
    """What one form lost is no edit when the list comes back: nothing is recorded anew."""
    store = ledger.MemoryStore()
    reasoning = {"type": "reasoning", "content": "hm"}
    call = {"type": "tool_call", "id": "c" * 60, "name": "look", "arguments": {}}
    result = {"type": "tool_call_response", "id": "c" * 60, "response": {"n": 1}}
    ledger.memory(store).append(
        "a",
        [
            text("user", "go"),
            {"role": "assistant", "parts": [reasoning, call]},
            {"role": "tool", "parts": [result]},
            text("assistant", "gone"),
        ],
    )
    before = store.read("a")
    for form in ("openai", "openai-responses", "anthropic", "pydantic-ai"):
        memory = ledger.memory(store, format=form)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            listed = memory.get("a")
        assert [w.category for w in told] == (
            [] if form == "pydantic-ai" else [ledger.errors.LossWarning]
        )
        memory.save("a", listed)
        assert store.read("a") == before


@both
async def test_data_is_kept_once(memory, store):
    """An image that stands as data in a list is an attachment of the store: one for all turns, given back as it was."""
    data = "data:image/png;base64," + base64.b64encode(b"\x89PNG" * 5000).decode()
    image = {"type": "image_url", "image_url": {"url": data}}
    listed = []
    for number in range(20):
        asked = {"role": "user", "content": [{"type": "text", "text": f"{number}?"}, image]}
        listed += [asked, bot("A picture.")]
        await got(memory.save("a", listed))
    async with entered(memory.turn("a")) as turn:
        turn.messages += [*listed[:1], bot("Again.")]

    assert await got(memory.get("a")) == [*listed, *listed[:1], bot("Again.")]
    assert len(store.raw("a")) < len(data)
    assert len(ledger.open("a", store=store).attachments()) == 1


def mask(text):
    """Take out what looks like an address."""
    return re.sub(r"\S+@\S+", "<address>", text)


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_what_is_redacted_is_no_edit(face):
    """A list that still says what was redacted goes on all the same, and nothing of it is recorded."""
    store = ledger.MemoryStore()
    listed = [user("I am ada@example.org"), bot("Hi ada@example.org")]

    async def main():
        memory = face.memory(store, format="openai", redact=mask)
        await got(memory.save("a", listed))
        await got(
            memory.save("a", [*listed, user("ada@example.org?"), bot("Yes."), user("o@p left")])
        )
        async with entered(memory.turn("a")) as turn:
            turn.messages += [bot("Yes, ada@example.org.")]
        return await got(memory.get("a"))

    kept = asyncio.run(main())

    assert [m["content"] for m in kept][::2] == ["I am <address>", "<address>", "<address> left"]
    assert len(ledger.open("a", store=store).all_turns()) == 3
    assert b"@" not in store.raw("a")


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_a_window_of_what_was_said(face):
    """With a context a turn begins with the last turns, under the newest instructions; all of it is kept."""
    store = ledger.MemoryStore()

    async def main():
        memory = face.memory(store, format="openai", context=ledger.last_turns(1))
        lead = {"role": "system", "content": "one"}
        await got(memory.save("a", [lead, *HELLO, user("2"), bot("two")]))
        lead = {"role": "system", "content": "two"}
        await got(memory.save("a", [lead, *HELLO, user("2"), bot("two"), user("3"), bot("three")]))
        async with entered(memory.turn("a")) as turn:
            assert turn.messages == [lead, user("3"), bot("three")]
            turn.messages += [user("4"), bot("four")]
        assert await got(memory.load("a")) == [lead, user("4"), bot("four")]
        assert len(await got(memory.get("a"))) == 9

    asyncio.run(main())
    chat = ledger.open("a", store=store)
    assert [t.result for t in chat.turns] == ["Hello", "two", "three", "four"]
    assert chat.messages()[0]["parts"][0]["content"] == "two"


def test_a_window_whose_instructions_change_copies_nothing():
    """What a turn adds behind a window is recorded behind its last turn, whatever the system says that day."""
    memory = ledger.memory(ledger.MemoryStore(), format="openai", context=ledger.last_turns(2))
    for day in range(5):
        with memory.turn("a") as turn:
            turn.messages[:1] = [{"role": "system", "content": f"Today is {day}."}]
            if day == 0:
                turn.messages[:] = turn.messages[:1]
            turn.messages += [
                {"role": "user", "content": f"q{day}"},
                {"role": "assistant", "content": f"a{day}"},
            ]
    chat = memory.conversation("a")
    assert len(chat.all_turns()) == 5
    said = memory.get("a")
    assert [m["content"] for m in said if m["role"] == "user"] == [f"q{n}" for n in range(5)]
    assert [m["content"] for m in memory.load("a") if m["role"] == "system"] == ["Today is 4."]


def test_a_window_that_was_edited_is_refused():
    """What is no whole list cannot say where it departs: nothing is stored, and the error says what to do."""
    memory = ledger.memory(ledger.MemoryStore(), format="openai", context=ledger.last_turns(2))
    for n in range(3):
        with memory.turn("a") as turn:
            turn.messages += [
                {"role": "user", "content": f"q{n}"},
                {"role": "assistant", "content": f"a{n}"},
            ]
    with pytest.raises(ValueError, match="hand the whole list to `save`"), memory.turn("a") as turn:
        del turn.messages[0]
    assert len(memory.conversation("a").all_turns()) == 3


def test_a_memory_makes_no_summaries():
    """A rule that wants them is refused at once."""
    with pytest.raises(ValueError, match="makes no summaries"):
        ledger.memory(context=ledger.compacted(lambda turns: "s"))


# -- what is said of a turn, and for one call ------------------------------------------------------

REPLY = {
    "object": "chat.completion",
    "model": "small",
    "choices": [{"index": 0, "finish_reason": "stop", "message": bot("Hello")}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}


@both
async def test_a_whole_reply_is_noted(memory, store):
    """Its message is added, its model and usage are the turn's; those of several replies are added up."""
    made = memory.turn("a")
    async with entered(made) as turn:
        turn.messages.append(user("Look"))
        call = {**REPLY, "model": "large", "choices": [{**REPLY["choices"][0], "message": CALL}]}
        turn.note(messages=call)
        turn.messages.append(RESULT)
        turn.note(messages=REPLY)
    assert (made.turns[0].model, made.turns[0].usage) == (
        "small",
        {"input_tokens": 10, "output_tokens": 4},
    )
    assert await got(memory.load("a")) == [user("Look"), CALL, RESULT, bot("Hello")]


@both
async def test_model_and_usage_are_noted_alone(memory, store):
    """As for a reply that came in pieces; `save` and `append` take them too."""
    made = memory.turn("a")
    async with entered(made) as turn:
        turn.messages += HELLO
        turn.note(model="small", usage={"input_tokens": 1})
        with pytest.raises(TypeError):
            turn.note(model=5)
    await got(memory.save("b", HELLO, model="large", usage={"input_tokens": 2}))
    kept = await got(memory.conversation("b").turn(1))
    assert (made.turns[0].model, made.turns[0].usage) == ("small", {"input_tokens": 1})
    assert (kept.model, kept.usage) == ("large", {"input_tokens": 2})


@both
async def test_a_whole_reply_among_the_messages_is_refused_with_the_next_step(memory, store):
    """It is named what of it is the message."""
    with pytest.raises(errors.ImportInvalid, match=r"its message is choices\[0\].message"):
        await got(memory.append("a", [user("Hi"), REPLY]))


def test_a_providers_messages_without_a_format_are_refused_with_the_next_step():
    """The format has to be named."""
    memory = ledger.memory(ledger.MemoryStore())
    with pytest.raises(errors.RecordInvalid, match="goes with its `format`"):
        memory.append("a", HELLO)


@both
async def test_a_window_for_one_call(memory, store):
    """`load` and `turn` take a context of their own; what a turn saw is recorded as it was shown."""
    for word in "abc":
        await got(memory.append("x", [user(word), bot(word)]))
    last = ledger.last_turns(1)
    assert await got(memory.load("x", context=last)) == [user("c"), bot("c")]
    assert len(await got(memory.load("x"))) == 6
    made = memory.turn("x", context=last)
    async with entered(made) as turn:
        assert turn.messages == [user("c"), bot("c")]
        turn.messages += HELLO
    appended = await got(memory.append("x", HELLO, context=last))
    whole = await got(memory.append("x", HELLO))
    counts = [[seen.ordinal for seen in t.saw] for t in (*made.turns, *appended, *whole)]
    assert counts == [[3], [4], [1, 2, 3, 4, 5]]
    with pytest.raises(ValueError, match="makes no summaries"):
        memory.turn("x", context=ledger.compacted(lambda before, rows: ""))


@both
async def test_a_window_that_cannot_be_is_refused_first(memory, store):
    """Also where nothing would be loaded or stored."""
    compacted = ledger.compacted(lambda before, rows: "")
    for id in ("x", None):
        with pytest.raises(ValueError, match="makes no summaries"):
            await got(memory.load(id, context=compacted))
        with pytest.raises(ValueError, match="makes no summaries"):
            await got(memory.append(id, HELLO, context=compacted))


@both
async def test_a_turn_that_is_made_twice_counts_each_time_anew(memory, store):
    """What was noted the first time is that turn's alone, and so is which conversation it went into."""
    made = memory.turn("a")
    for count in (1, 2):
        async with entered(made) as turn:
            turn.messages += HELLO
            turn.note(usage={"input_tokens": count}, model="first" if count == 1 else None)
        used = [(turn.model, turn.usage) for turn in made.turns]
        assert used == [("first" if count == 1 else None, {"input_tokens": count})]
    await got(memory.delete("a"))
    async with entered(made) as turn:
        turn.messages += HELLO
    assert await got(memory.load("a")) == HELLO


@both
async def test_deleting_leaves_nothing(memory, store):
    """All of it goes, with its attachments; the id is new afterwards, and what is not there is no error."""
    data = base64.b64encode(b"picture").decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    await got(memory.save("user:1", [{"role": "user", "content": [part]}, bot("A picture")]))
    await got(memory.append("user:2", HELLO))
    gone = await got(memory.delete("user:1"))
    assert (gone.found, len(gone.attachments)) == (True, 1)
    assert not (await got(memory.delete("user:1"))).found
    assert await got(memory.delete(None)) is None
    assert (await got(memory.ids()), await got(memory.load("user:1"))) == (["user:2"], [])
    await got(memory.append("user:1", HELLO))
    assert await got(memory.load("user:1")) == HELLO


@both
async def test_a_turn_is_not_deleted_by_who_makes_it(memory, store):
    """It would come back with its end; nor is a turn of others deleted under them, where nobody waits."""
    async with entered(memory.turn("a")) as turn:
        with pytest.raises(errors.Busy, match="let that end first"):
            await got(memory.delete("a"))
        turn.messages += HELLO
    assert await got(memory.load("a")) == HELLO


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_who_does_not_wait_is_told_what_a_memory_has(face):
    """The next step is one that a memory knows, whoever is at work there: another turn, or a program."""

    def ask(message: str) -> str:
        ledger.current().tool("pay", {}, lambda: "paid", effects="changes")
        return message

    async def scenario():
        store = ledger.MemoryStore()
        memory = face.memory(store, format="openai", busy="refuse")
        async with entered(memory.turn("a")) as turn:
            with pytest.raises(errors.Busy) as refused:
                await asyncio.create_task(other(memory), context=contextvars.Context())
            assert 'busy="queue"' in str(refused.value)
            assert "branch" not in str(refused.value)
            turn.messages += HELLO
        chat = ledger.open("a", ask, store=store, approve="changes")
        with pytest.raises(errors.TurnWaiting):
            chat("x")
        with pytest.raises(errors.BusyWaiting, match="resume it, or begin anew with `clear`"):
            await other(memory)

    async def other(memory):
        async with entered(memory.turn("a")):
            pass

    asyncio.run(scenario())
