"""What a turn was asked is asked again, beside it: another answer, or another question."""

import asyncio
import enum
import inspect
import threading
from datetime import date

import pytest

import ledger
from ledger import Attachment, aio, errors

FACES = pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
PICTURE = {"type": "uri", "modality": "image", "uri": "https://example.org/l.png"}


async def got(value):
    """What either face gives."""
    return await value if inspect.isawaitable(value) else value


def asked(*parts):
    """A user's message of these parts."""
    told = [{"type": "text", "content": p} if isinstance(p, str) else p for p in parts]
    return [{"role": "user", "parts": told}]


def said(message: str) -> str:
    """A program that answers with what it would send to a model, and which one."""
    turn = ledger.current()
    parts = turn.messages()[-1]["parts"]
    return f"{turn.settings['lm']}: " + ", ".join(p.get("content", p["type"]) for p in parts)


@FACES
def test_an_answer_is_written_again_beside_the_first(face):
    """The same inputs and messages at the same parent; the view and the head go on from the new turn."""

    async def main():
        store = ledger.MemoryStore()
        chat = face.open("alex", said, store=store, lm="a")
        await got(chat.send("hi"))
        first = await got(chat.send("What?", messages=asked("What?", PICTURE)))
        await got(chat.send("more"))

        again = await got(chat.regenerate(first, lm="b"))

        assert again.result == "b: What?, uri"
        assert (again.inputs, again.parent) == (first.inputs, first.parent)
        assert again.messages[0] == first.messages[0]
        assert again.siblings == first.siblings == [first, again]
        assert (await got(chat.send("then"))).parent == again
        elsewhere = await got(face.open("alex", store=store).head)
        assert elsewhere.parent == again

    asyncio.run(main())


@FACES
def test_what_was_asked_is_changed_and_its_picture_stays(face):
    """An input that is given replaces the turn's, in its messages too; by its place or its name."""

    async def main():
        chat = face.open("alex", said, store=ledger.MemoryStore(), lm="a")
        first = await got(chat.send("What?", messages=asked("What?", PICTURE)))
        by_place = await got(chat.regenerate(first, "Where?"))
        by_name = await got(chat.regenerate(by_place, message="When?"))
        assert (by_place.inputs, by_place.result) == ({"message": "Where?"}, "a: Where?, uri")
        assert by_name.result == "a: When?, uri"
        assert by_name.parent is None
        assert [t.ordinal for t in first.siblings] == [1, 2, 3]

        alone = await got(chat.regenerate(1, "Why?", messages=None))
        other = await got(chat.regenerate(1, messages=asked("this", PICTURE)))
        assert (alone.result, other.result) == ("a: Why?", "a: this, uri")

    asyncio.run(main())


@FACES
def test_an_edit_that_has_no_place_in_the_messages_is_refused(face):
    """Old text is not sent for new, and no picture is dropped: the messages are asked for. Nothing is recorded."""

    async def main():
        chat = face.open("alex", said, store=ledger.MemoryStore(), lm="a")
        first = await got(chat.send("What?", messages=asked("What is this?", PICTURE)))
        with pytest.raises(TypeError, match=r"'message' is no text of its own.*messages="):
            await got(chat.regenerate(first, "Where?"))
        assert (await got(chat.regenerate(first, "What?"))).result == "a: What is this?, uri"
        assert len(await got(chat.all_turns())) == 2

    asyncio.run(main())


class Tone(enum.Enum):
    """An input that is recorded as text."""

    KIND = "kind"
    STERN = "stern"


@FACES
def test_an_input_that_is_given_as_it_was_is_no_edit(face):
    """Compared is what is recorded of it, whatever its type; another one takes its place where it stands."""

    def toned(message: str, tone: Tone, day: date, seen: Attachment) -> str:
        parts = ledger.current().messages()[-1]["parts"]
        return ", ".join(part.get("content", "") for part in parts if part["type"] == "text")

    async def main():
        chat = face.open("alex", toned, store=ledger.MemoryStore())
        picture, day = Attachment(b"png", media_type="image/png"), date(2026, 1, 2)
        told = asked("What?", PICTURE, "kind")
        first = await got(chat.send("What?", Tone.KIND, day, picture, messages=told))
        again = await got(chat.regenerate(first, "Who?", Tone.KIND, day, picture))
        stern = await got(chat.regenerate(first, tone=Tone.STERN))
        assert (again.result, stern.result) == ("Who?, kind", "What?, stern")
        with pytest.raises(TypeError, match="'day' is no text of its own"):
            await got(chat.regenerate(first, day=date(2027, 1, 2)))

    asyncio.run(main())


@FACES
def test_a_turn_is_asked_again_in_pieces(face):
    """`regenerate_stream` is to `stream` what `regenerate` is to `send`; the old turn may still run."""
    go_on = threading.Event()

    def slow(message: str):
        yield message
        if len(calls) == 1:
            go_on.wait(30)

    calls = []

    def counted(message: str):
        calls.append(1)
        yield from slow(message)

    async def main():
        chat = face.open("alex", counted, store=ledger.MemoryStore())
        first = await got(chat.stream("x"))
        while not calls:
            await asyncio.sleep(0.001)
        second = await got(chat.regenerate_stream(first.turn))
        pieces = [p async for p in second] if face is aio else list(second)
        assert pieces == ["x"]
        await got(second.turn.wait(30))
        assert (second.turn.state, first.turn.state) == ("done", "running")
        go_on.set()
        await got(first.turn.wait(30))

    asyncio.run(main())


@FACES
def test_a_click_that_comes_twice_makes_one_turn(face):
    """By its request id."""

    async def main():
        chat = face.open("alex", said, store=ledger.MemoryStore(), lm="a")
        first = await got(chat.send("hi"))
        again = await got(chat.regenerate(first, request_id="r1"))
        assert await got(chat.regenerate(first, request_id="r1")) == again
        assert len(await got(chat.all_turns())) == 2

    asyncio.run(main())


def test_turns_of_any_end_are_asked_again():
    """Failed, recorded, imported, merged: what counts is what was asked. One that was forgotten is refused."""
    store = ledger.MemoryStore()
    with pytest.raises(ZeroDivisionError):
        ledger.open("alex", lambda message: 1 / 0, store=store)("one")
    chat = ledger.open("alex", said, store=store, lm="a")
    chat.record("two", "2", messages=[*asked("two", PICTURE), *answer("2")], parent=None)
    merged = chat.merge([2], ledger.merging.text("m"), onto=None)

    assert [chat.regenerate(t).result for t in (1, 2, merged)] == [
        "a: one",
        "a: two, uri",
        "a: two, uri",
    ]
    chat.forget(1)
    with pytest.raises(errors.TurnState, match="forgotten"):
        chat.regenerate(1)
    with pytest.raises(TypeError, match="without a program"):
        ledger.open("alex", store=store).regenerate(2)


def test_a_greeting_that_nobody_asked_for_is_not_asked_again():
    """It is refused, and says what to do; a question of one's own takes its place."""
    told = {"role": "system", "parts": [{"type": "text", "content": "Be kind."}]}
    chat = ledger.open("alex", said, store=ledger.MemoryStore(), lm="a")
    greeting = chat.record("", "Welcome!", messages=[told, *answer("Welcome!")])

    with pytest.raises(errors.TurnState, match=r"nobody asked anything in it.*send a message"):
        chat.regenerate(greeting)
    assert len(chat.all_turns()) == 1
    assert chat.regenerate(greeting, "Hi", messages=None).result == "a: Hi"


def answer(text):
    """What an assistant said."""
    return [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]


def test_inputs_are_read_back_as_they_are_declared():
    """Types and attachments come to the program as they did the first time; what it does not take is told."""
    seen = []

    def program(day: date, files: list, note: str = "-") -> str:
        seen.append((day, [f.read() for f in files], note))
        return note

    chat = ledger.open("alex", program, store=ledger.MemoryStore())
    first = chat.send(date(2024, 2, 29), [Attachment(b"1", media_type="image/png")])
    chat.regenerate(first, note="!")
    assert seen == [(date(2024, 2, 29), [b"1"], "-"), (date(2024, 2, 29), [b"1"], "!")]
    with pytest.raises(TypeError, match="given twice"):
        chat.regenerate(first, date(2024, 1, 1), day=date(2024, 1, 1))
    with pytest.raises(TypeError, match="too many positional"):
        chat.regenerate(first, 1, 2, 3, 4)

    other = ledger.open("ben", lambda question: question, store=chat.store)
    other.record("hi", "there")
    with pytest.raises(TypeError, match="no input 'message'"):
        other.regenerate(1)


def test_an_input_that_the_program_does_not_take_is_no_setting():
    """A turn of another program is not asked again by less than it was asked, whatever its inputs are called."""

    def with_model(message: str, lm: str) -> str:
        return lm

    def with_context(message: str, context: str) -> str:
        return context

    store = ledger.MemoryStore()
    ledger.open("alex", with_model, store=store).send("hi", "large")
    ledger.open("ben", with_context, store=store).send("hi", "all")
    for id, name in (("alex", "lm"), ("ben", "context")):
        chat = ledger.open(id, said, store=store, lm="a")
        for given in ({}, {name: None}):
            with pytest.raises(TypeError, match=f"no input '{name}'"):
                chat.regenerate(1, **given)
        assert len(chat.all_turns()) == 1


@FACES
def test_inputs_that_are_given_by_their_place_alone_are_asked_again(face):
    """A program may have inputs that no keyword names, `request_id` among them; the others keep their values."""

    def program(message: str, request_id: int = 7, /, *, tone: str = "dry") -> str:
        return f"{message} {request_id} {tone}"

    async def main():
        chat = face.open("alex", program, store=ledger.MemoryStore())
        first = await got(chat.send("hi", 8))
        assert (await got(chat.regenerate(first))).result == "hi 8 dry"
        assert (await got(chat.regenerate(first, "ho", tone="wet"))).result == "ho 8 wet"

    asyncio.run(main())


@FACES
def test_the_arrows_of_a_page(face):
    """`latest` is where a turn's branch ends by now: with it as the head all of that is shown and gone on from."""

    async def main():
        store = ledger.MemoryStore()
        chat = face.open("alex", said, store=store, lm="a")
        first, second = [await got(chat.send(each)) for each in ("a", "b")]
        last = await got(chat.send("c"))
        other = await got(chat.regenerate(first, "else"))
        assert (first.latest, second.latest, last.latest, other.latest) == (last, last, last, other)
        assert type(first.latest) is type(first)

        await got(chat.set_head((await got(chat.turn(other.id))).siblings[0].latest))

        assert ledger.open("alex", store=store).turns == [first, second, last]
        assert (await got(face.open("alex", said, store=store, lm="a").send("d"))).parent == last
        assert ledger.open("alex", store=store).turn(1).latest.inputs == {"message": "d"}

    asyncio.run(main())


def test_siblings_of_a_first_turn_are_all_first_turns(tmp_path):
    """Of any other turn they are its parent's children; both also in a long log, of which the end was read."""
    chat = ledger.open("alex", store=tmp_path)
    for n in range(140):
        chat.record(f"q{n}", "a")
    last = chat.continue_from(139).record("again", "b")
    root = chat.record("else", "c", parent=None)

    new = ledger.open("alex", store=tmp_path)
    assert [t.ordinal for t in new.turn(last.id).siblings] == [140, 141]
    assert [t.ordinal for t in new.turn(root.id).siblings] == [1, 142]
    assert [new.turn(n).latest.ordinal for n in (140, 1)] == [140, 141]
