"""A send, or a turn that is recorded, names the turn that its sender saw: behind another one it is refused."""

import asyncio
import threading

import pytest

import ledger
from ledger import aio, errors


def echo(message: str) -> str:
    return f"re {message}"


def either(message: str) -> str:
    if message == "bad":
        raise ValueError("no")
    return f"re {message}"


@pytest.fixture
def chat():
    chat = ledger.open("c", either, store=ledger.MemoryStore())
    chat("one")
    return chat


def again(chat):
    """The conversation as another tab opens it."""
    return ledger.open("c", either, store=chat.store)


def refused(chat, make):
    """What is refused because the conversation moved, with nothing recorded."""
    before = chat.store.read("c")
    with pytest.raises(errors.HeadMoved) as caught:
        make()
    assert chat.store.read("c") == before
    return caught.value


VERBS = {
    "send": lambda view, **how: view.send("x", **how),
    "call": lambda view, **how: view("x", **how),
    "stream": lambda view, **how: view.stream("x", **how).result,
    "regenerate": lambda view, **how: view.regenerate(1, **how),
    "tries": lambda view, **how: view.tries("x", settings=[{"lm": "a"}, {"lm": "b"}], **how),
    "record": lambda view, **how: view.record("x", "y", **how),
    "record under a parent": lambda view, **how: view.record("x", "y", parent=1, **how),
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_was_not_seen_refuses_a_turn(chat, verb):
    """Each verb that makes a turn is refused behind one that its sender did not see, and made behind one it saw."""
    seen = chat.head
    newer = again(chat).send("two")

    error = refused(chat, lambda: VERBS[verb](again(chat), expect=seen))

    assert (error.code, error.expected, error.found) == ("conversation-moved", seen.id, newer.id)
    VERBS[verb](again(chat), expect=newer.id)
    assert len(chat.all_turns()) == (4 if verb == "tries" else 3)


def test_nothing_is_expected_of_a_new_conversation():
    """None says that no turn was seen: the first send is made, the second one that saw none is refused."""
    store = ledger.MemoryStore()

    first = ledger.open("c", either, store=store).send("one", expect=None)

    with pytest.raises(errors.HeadMoved):
        ledger.open("c", either, store=store).send("two", expect=None)
    assert first.parent is None


def test_a_turn_without_an_answer_is_not_news(chat):
    """A turn that failed meanwhile changes nothing: it is no parent; who saw it may say so as well."""
    seen = chat.head
    with pytest.raises(ValueError, match="no"):
        again(chat)("bad")
    failed = again(chat).head

    assert again(chat).send("two", expect=seen).parent == seen
    refused(chat, lambda: again(chat).send("three", expect=failed))


def test_a_message_that_is_sent_again_is_the_same_turn(chat):
    """A request id that a turn has gives that turn, whatever was seen: what it expected came true once."""
    seen = chat.head
    sent = again(chat).send("two", expect=seen, request_id="r")

    assert again(chat).send("two", expect=seen, request_id="r") == sent


def test_a_view_on_an_exact_turn_expects_it_to_be_the_last_of_its_branch(chat):
    """Behind `continue_from(turn)` nothing was made that the sender did not see; what stands beside does not count."""
    one = chat.head
    two = chat.send("two")
    beside = chat.continue_from(one).send("beside")
    view = again(chat)

    refused(chat, lambda: view.continue_from(one).send("x", expect=one))
    assert view.continue_from(two).send("x", expect=two).parent == two
    refused(chat, lambda: view.continue_from(two).send("y", expect=two))
    chat.head = beside
    assert chat.send("z", expect=beside).parent == beside


def test_a_head_that_was_set_back_is_what_is_seen(chat):
    """Where the head was moved to a turn with others behind it, that turn is the newest."""
    one = chat.head
    chat.send("two")
    chat.head = one

    assert chat.send("x", expect=one).parent == one


def test_a_name_of_the_program_comes_first():
    """A program with an input `expect` gets it."""
    told = []
    chat = ledger.open("c", lambda expect: told.append(expect), store=ledger.MemoryStore())

    chat(expect="rain")

    assert told == ["rain"]


def test_an_unknown_turn_is_refused(chat):
    """A turn that is not there cannot have been seen."""
    with pytest.raises(errors.TurnUnknown):
        chat.send("x", expect="01a22f23-eaa8-7268-8071-55b8ac9990a2")


def test_a_turn_that_runs_is_news_and_may_be_expected():
    """Behind a running turn a send waits if its sender saw that one, and is refused at once if not."""
    store = ledger.MemoryStore()
    began, go = threading.Event(), threading.Event()

    def slow(message: str) -> str:
        if message == "slow":
            began.set()
            assert go.wait(10)
        return message

    def tab():
        return ledger.open("c", slow, store=store)

    one = tab().send("one")
    running = tab().stream("slow")
    assert began.wait(10)
    with pytest.raises(errors.HeadMoved):
        tab().send("two", expect=one)
    threading.Timer(0.05, go.set).start()
    assert tab().send("two", expect=running.turn).parent.id == running.turn.id


def test_of_two_tabs_one_wins_on_a_loop():
    """Both faces: of sends at once that saw the same turn one is made, and the other is refused as it is appended."""
    store = ledger.MemoryStore()

    async def scenario():
        seen = await aio.open("c", echo, store=store).send("one", expect=None)
        tabs = [aio.open("c", echo, store=store) for _ in range(4)]
        sends = [tab.send(str(i), expect=seen.id) for i, tab in enumerate(tabs)]
        made = await asyncio.gather(*sends, return_exceptions=True)
        with pytest.raises(errors.HeadMoved):
            await tabs[0].record("x", "y", expect=seen.id)
        return made

    made = asyncio.run(scenario())

    assert sorted(type(each).__name__ for each in made) == [*["HeadMoved"] * 3, "Turn"]
    assert len(ledger.open("c", store=store).all_turns()) == 2
