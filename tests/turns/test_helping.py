"""Programs called inside a turn: what they are shown of their own earlier calls, and what counts for the turn."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import ledger
from ledger import errors

SEEN: dict[str, list[Any]] = {}


def see(message: str) -> None:
    """Note what the helper of a message is shown, and have a tool called."""
    turn = ledger.current()
    SEEN[message] = turn.earlier()
    turn.note(model="helper's", usage={"tokens": 1})


@ledger.program
def plain(message: str) -> str:
    """Answer."""
    see(message)
    ledger.current().tool("look", message, lambda: message * 2, effects="reads")
    return message.upper()


@ledger.program
async def awaited(message: str) -> str:
    """Answer on a loop."""
    see(message)
    await ledger.current().tool("look", message, lambda: message * 2, effects="reads")
    return message.upper()


@ledger.program
def generator(message: str):
    """Answer in pieces."""
    see(message)
    ledger.current().tool("look", message, lambda: message * 2, effects="reads")
    yield from message.upper()


@ledger.program
async def async_generator(message: str):
    """Answer in pieces on a loop."""
    see(message)
    await ledger.current().tool("look", message, lambda: message * 2, effects="reads")
    for piece in message.upper():
        yield piece


async def asked(helper: Any, message: str) -> str:
    """Call a helper of either kind that is async."""
    called = helper(message)
    if hasattr(called, "__aiter__"):
        return "".join([piece async for piece in called])
    return str(await called)


def caller_of(helper: Any) -> Any:
    """Return a program that asks a helper about each word."""

    async def caller(message: str) -> list:
        found = []
        for word in message.split():
            if word == "fail":
                raise ValueError("as asked")
            if word == "ask":
                found.append(await ledger.current().tool("refund", len(found), lambda: "refunded"))
                continue
            found.append(await asked(helper, word))
        ledger.current().note(model="m")
        return found

    return caller


def chat_of(helper: Any, mode: Any = None, store: Any = None, **how: Any) -> Any:
    """Open a conversation whose program has a helper that remembers, or not."""
    remembers = {} if mode is None else {helper: mode}
    store = store if store is not None else ledger.MemoryStore()
    return ledger.open("c", caller_of(helper), store=store, remembers=remembers, **how)


def shown(message: str) -> list[str]:
    """What the helper was shown of its calls when it was called with a message."""
    return [row["message"] for row in SEEN[message]]


def row(message: str, **more: Any) -> dict[str, Any]:
    """A row of a helper's call."""
    return {"message": message, "result": message.upper(), **more}


ASYNC = [awaited, async_generator]


@pytest.mark.parametrize("helper", ASYNC, ids=lambda h: h.__name__)
def test_a_helper_starts_fresh(helper):
    """Without a word of the conversation a helper is shown nothing, and nothing of it is kept."""
    chat = chat_of(helper)
    assert chat("a b") == ["A", "B"]
    chat("c")

    assert [shown(word) for word in "abc"] == [[], [], []]
    assert "call" not in {record["kind"] for record in chat.store.read("c")}


@pytest.mark.parametrize("helper", ASYNC, ids=lambda h: h.__name__)
def test_a_helper_remembers_the_conversation(helper):
    """Its own calls in the earlier turns of the branch, then those of this turn; not those of another branch."""
    chat = chat_of(helper, "conversation")
    chat("a b")
    side = chat.continue_from(chat.turn(1))
    chat("c d")
    side("x")
    side("y")

    assert SEEN["c"] == [row("a"), row("b")]
    assert shown("d") == ["a", "b", "c"]
    assert shown("x") == ["a", "b"]
    assert shown("y") == ["a", "b", "x"]


def test_a_helper_remembers_the_turn():
    """Its own calls in this turn, and none of an earlier one."""
    chat = chat_of(awaited, "turn")
    chat("a b")
    chat("c d")

    assert [shown(word) for word in "abcd"] == [[], ["a"], [], ["c"]]


def test_a_helper_is_shown_its_steps():
    """With `steps=True` each row has the tools that the call had called, with what they gave."""
    chat = chat_of(awaited, ledger.remember("conversation", steps=True))
    chat("a")
    chat("b c")

    def with_steps(word: str) -> dict[str, Any]:
        return row(word, steps=[{"name": "look", "input": word, "output": word * 2}])

    assert SEEN["c"] == [with_steps("a"), with_steps("b")]


def test_calls_of_a_failed_turn_do_not_count():
    """A turn that failed shows nothing to later ones; nor does its helper's memory."""
    chat = chat_of(awaited, "conversation")
    with pytest.raises(ValueError, match="as asked"):
        chat("a fail")
    chat("b")

    assert shown("b") == []


def test_calls_of_an_attempt_that_was_gone_on_after_count_once():
    """A helper called again as a turn goes on is shown what it was, and later turns see its last calls alone."""
    chat = chat_of(awaited, "conversation", approve=["refund"])
    chat("0")
    with pytest.raises(errors.TurnWaiting):
        chat("a b ask c")
    assert (shown("a"), shown("b")) == (["0"], ["0", "a"])
    SEEN.clear()
    chat.head.approve()
    assert chat.head.resume() == ["A", "B", "refunded", "C"]
    assert (shown("a"), shown("b"), shown("c")) == (["0"], ["0", "a"], ["0", "a", "b"])
    chat("d")

    assert shown("d") == ["0", "a", "b", "c"]


def test_what_helpers_use_counts_once():
    """Token counts are summed over helpers, and a turn that waited counts them once; its model is its own."""
    chat = chat_of(awaited, "conversation", approve=["refund"])
    with pytest.raises(errors.TurnWaiting):
        chat("a b ask c")
    chat.head.approve()
    chat.head.resume()

    assert (chat.head.usage, chat.head.model) == ({"tokens": 3}, "m")


@pytest.mark.parametrize("mode", ["conversation", "turn"])
def test_blocking_helpers(mode):
    """Helpers that block remember the same, called from a program that blocks; generators, as they are read."""

    def caller(message: str) -> list:
        return [helper_said(word) for word in message.split()]

    def helper_said(word: str) -> str:
        if word.isdigit():
            return "".join(generator(word))
        return plain(word)

    store = ledger.MemoryStore()
    chat = ledger.open("c", caller, store=store, remembers={plain: mode, generator: mode})
    assert chat("a 1 b 2") == ["A", "1", "B", "2"]
    chat("c 3")

    assert (shown("b"), shown("2")) == (["a"], ["1"])
    assert shown("c") == (["a", "b"] if mode == "conversation" else [])
    assert shown("3") == (["1", "2"] if mode == "conversation" else [])


def test_a_helper_that_fails_is_not_remembered():
    """A call that raised has no answer to show; the program may go on without it."""

    @ledger.program
    def fails(message: str) -> str:
        SEEN[message] = ledger.current().earlier()
        raise KeyError(message)

    def caller(message: str) -> str:
        for word in message.split():
            with pytest.raises(KeyError):
                fails(word)
        return "done"

    chat = ledger.open("c", caller, store=ledger.MemoryStore(), remembers={fails: "conversation"})
    assert chat("a b") == "done"
    assert SEEN["b"] == []


@pytest.mark.parametrize("declared", [False, True])
def test_a_conversation_inside_a_turn(declared):
    """A conversation used inside another's turn is refused, unless it was declared; then it is one of its own."""
    store = ledger.MemoryStore()
    inner = ledger.open("inner", plain, store=store)

    def caller(message: str) -> str:
        return str(inner(message))

    remembers: Any = {inner: "own"} if declared else {}
    chat = ledger.open("outer", caller, store=store, remembers=remembers)
    if not declared:
        with pytest.raises(errors.Nested):
            chat("a")
        assert store.read("inner") == []
        return
    assert chat("a") == "A"
    assert chat("b") == "B"
    assert [turn.inputs["message"] for turn in inner.turns] == ["a", "b"]
    assert SEEN["b"] == [row("a", steps=[{"name": "look", "input": "a", "output": "aa"}])]
    with pytest.raises(errors.Nested):
        ledger.open("other", lambda message: chat(message), store=store)("c")


def test_outside_of_turns_a_helper_is_a_function():
    """A declared program called outside a turn is what it was."""

    @ledger.program
    def double(n: int) -> int:
        return n * 2

    assert double(4) == 8


class Desk:
    """An object with a helper of its own, and one that is called."""

    @staticmethod
    @ledger.program
    def hint(message: str) -> list:
        return [row["message"] for row in ledger.current().earlier()]

    def undeclared(self, message: str) -> str:
        return message

    def __call__(self, message: str) -> str:
        return message


def undeclared(message: str) -> str:
    """No helper."""
    return message


NAMED = {
    "function": lambda: plain,
    "partial": lambda: functools.partial(plain, "x"),
    "wrapper": lambda: functools.wraps(plain)(lambda *args: plain(*args)),
    "attribute": lambda: Desk().hint,
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("face", [ledger, ledger.aio])
def test_a_helper_is_named_by_what_stands_for_it(name, face):
    """The declared function, a partial or wrapper of it, and where it is kept in a class name the same helper."""
    who = NAMED[name]()
    how: dict[str, Any] = {"store": ledger.MemoryStore(), "remembers": {who: "conversation"}}
    chat: Any = face.open("c", lambda message: Desk.hint(message) and plain(message), **how)
    inner = getattr(chat, "_inner", chat)
    said = inner._view.remembering.recorded()

    assert [("hint" if name == "attribute" else "plain", __name__)] == [
        (each["name"], each["module"]) for each in said
    ]


NO_HELPERS = {
    "function": lambda: undeclared,
    "partial": lambda: functools.partial(undeclared, "x"),
    "method": lambda: Desk().undeclared,
    "object": Desk,
    "declared object": lambda: ledger.program(Desk()),
    "class": lambda: Desk,
    "builtin": lambda: len,
    "text": lambda: "plain",
    "conversation": lambda: ledger.open("d", store=ledger.MemoryStore()),
}


@pytest.mark.parametrize("name", NO_HELPERS)
@pytest.mark.parametrize("face", [ledger, ledger.aio])
def test_what_would_remember_nothing_is_refused(name, face):
    """What is no helper cannot remember: opening says so, and what to do."""
    next_step = {"text": "maps programs", "conversation": '"own"'}.get(name, "@ledger.program")
    with pytest.raises(TypeError, match=next_step):
        face.open("c", plain, store=ledger.MemoryStore(), remembers={NO_HELPERS[name](): "turn"})


def test_two_words_about_one_helper_are_refused():
    """A helper that is named twice, and otherwise, is refused: one of both would count for nothing."""
    twice = {plain: "conversation", functools.partial(plain, "x"): "turn"}
    with pytest.raises(TypeError, match=r"two things of .*plain"):
        ledger.open("c", plain, store=ledger.MemoryStore(), remembers=twice)
