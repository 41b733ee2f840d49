"""What was forgotten is not written down again by a merge, an answer that is made anew, or a list that was edited."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import ledger
from ledger import Attachment, aio, errors

FACES = pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
SECRET = "my PIN is 4711"


@pytest.fixture(params=["memory", "folder", "sql"])
def store(request, tmp_path):
    """A store of each kind that comes with the package."""
    if request.param == "memory":
        return ledger.MemoryStore()
    if request.param == "folder":
        return ledger.FolderStore(tmp_path)
    return ledger.SQLStore(f"sqlite:///{tmp_path / 'chats.db'}")


async def got(value):
    """What either face gives."""
    return await value if inspect.isawaitable(value) else value


def program(message: str) -> str:
    """Answer with nothing of what was asked."""
    return "fine"


def two(store):
    """A conversation of a turn and two that continue it, the first of which is to be forgotten."""
    chat = ledger.open("alex", program, store=store)
    chat.record("Hi", "Hello")
    return [chat.continue_from(1).record(text, "fine") for text in (SECRET, "other")]


def forget(store, turn):
    """Forget a turn as another process would. Returns: nothing, once the receipt is there."""
    ledger.open("alex", store=store).forget(turn.id)


def is_gone(store):
    """Say whether the secret is nowhere in the log, and the log is as it should be."""
    return "PIN" not in repr(store.read("alex"))


@FACES
def test_a_merge_does_not_copy_a_turn_that_was_forgotten_meanwhile(face, store):
    """While its program is at work, one of its turns is forgotten: the merge is refused, and records nothing."""

    async def main():
        one, other = two(store)
        chat = face.open("alex", store=store)
        with pytest.raises(errors.TurnState, match="forgotten"):
            await got(chat.merge([one.id, other.id], lambda answers: forget(store, one) or "both"))
        assert is_gone(store)
        assert len(await got(chat.all_turns())) == 3

    asyncio.run(main())


def test_a_merge_does_not_land_on_a_turn_that_was_forgotten_meanwhile(store):
    """Where it was to land nothing can be continued any more."""
    turns = two(store)
    chat = ledger.open("alex", store=store)
    end = chat.record("there", "x")
    with pytest.raises(errors.TurnState, match="lands on"):
        chat.merge(turns, lambda answers: forget(store, end) or "both", onto=end)
    assert len(chat.all_turns()) == 4


@FACES
def test_an_answer_is_not_made_anew_to_what_was_forgotten_meanwhile(face, store):
    """While a summary for it is made, the turn that is asked again is forgotten: nothing is asked."""

    async def main():
        one, _ = two(store)
        first = ledger.open("alex", store=store).turn(1)

        def summary(so_far, rows):
            forget(store, one)
            return "some"

        chat = face.open(
            "alex", program, store=store, context=ledger.compacted(summary, keep_last=0, every=1)
        )
        with pytest.raises(errors.TurnState, match="forgotten"):
            await got(chat.regenerate(one.id))
        assert is_gone(store)
        assert ledger.open("alex", store=store).turn(first.id).children == [
            ledger.open("alex", store=store).turn(2),
            ledger.open("alex", store=store).turn(3),
        ]

    asyncio.run(main())


def test_its_attachment_went_with_it(tmp_path):
    """Of a turn with an attachment the same is said, and not that the attachment is missing."""
    store = ledger.FolderStore(tmp_path)

    def look(file: Attachment) -> str:
        return "seen"

    def summary(so_far, rows):
        forget(store, turn)
        return "some"

    chat = ledger.open("alex", look, store=store)
    chat.send(Attachment(b"first"))
    turn = chat.send(Attachment(SECRET.encode()))
    rule = ledger.compacted(summary, keep_last=0, every=1)
    with pytest.raises(errors.TurnState, match="forgotten"):
        ledger.open("alex", look, store=store, context=rule).regenerate(turn)
    assert [turn.state for turn in chat.all_turns()] == ["done", "abandoned"]


class Between(ledger.MemoryStore):
    """A store in which something happens just before the next append, when its caller has looked at the log."""

    act: Callable[[], Any] | None = None

    def append(self, conversation, records, *, expect=None):
        """Do it, once."""
        act, self.act = self.act, None
        if act is not None:
            act()
        return super().append(conversation, records, expect=expect)


class Silent(Between):
    """One that does not tell of erasures."""

    erasures: Any = None


QUOTING = {
    "merge": lambda chat, one, other: chat.merge([one, other], lambda answers: "both"),
    "regenerate": lambda chat, one, other: chat.regenerate(one),
}


@pytest.mark.parametrize("kind", [Between, Silent])
@pytest.mark.parametrize("verb", QUOTING)
def test_what_is_forgotten_between_the_look_and_the_append_is_taken_out_again(kind, verb):
    """An erasure makes a log no longer: the append stands, so its words are taken out, and the caller is told."""
    store = kind()
    one, other = two(store)
    chat = ledger.open("alex", program, store=store)
    chat.all_turns()
    store.act = lambda: forget(store, one)
    with pytest.raises(errors.TurnState, match="forgotten"):
        QUOTING[verb](chat, one.id, other.id)
    assert is_gone(store)
    assert [turn.erased for turn in chat.all_turns()] == [False, True, False, True]
    assert chat.send("more").parent is not None


@pytest.mark.parametrize("when", ["before", "between"])
def test_an_edited_list_does_not_bring_back_what_was_forgotten_meanwhile(when):
    """An agent shortens the list that it was given, which is recorded as a line of its own."""
    store = Between()
    memory = ledger.memory(store)
    memory.append("alex", [*said(SECRET), *said("more")])
    secret = memory.conversation("alex").turn(1)

    def shortened():
        with memory.turn("alex") as turn:
            turn.messages.pop()
            turn.messages += said("then")[1:]
            if when == "before":
                forget(store, secret)
            else:
                store.act = lambda: forget(store, secret)

    with pytest.raises(errors.TurnState, match="forgotten"):
        shortened()
    assert is_gone(store)


def said(text):
    """An exchange, as messages."""
    return [
        {"role": role, "parts": [{"type": "text", "content": text}]}
        for role in ("user", "assistant")
    ]


@FACES
def test_a_click_that_comes_twice_is_one_also_when_the_turn_was_forgotten_since(face, store):
    """What was asked again under a request id is that turn; what else is asked again now is refused."""

    async def main():
        one, _ = two(store)
        chat = face.open("alex", program, store=store)
        again = await got(chat.regenerate(one.id, request_id="click"))
        forget(store, one)

        assert await got(chat.regenerate(one.id, request_id="click")) == again
        with pytest.raises(errors.RequestMismatch):
            await got(chat.regenerate(one.id, "something else", request_id="click"))
        with pytest.raises(errors.TurnState, match="forgotten"):
            await got(chat.regenerate(one.id, request_id="another click"))
        with pytest.raises(errors.TurnState, match="forgotten"):
            await got(chat.regenerate(one.id))

    asyncio.run(main())
