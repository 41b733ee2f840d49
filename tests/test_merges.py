"""A merge that a model makes is a turn like any other: what it notes, its request id, turns that still run."""

import asyncio
import inspect
import io
import threading
from contextlib import suppress

import pytest

import ledger
from ledger import Attachment, aio, errors, merging

FACES = pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])


async def got(value):
    """What either face gives."""
    return await value if inspect.isawaitable(value) else value


def begun(face, verb, *args, **kwargs):
    """A task that calls a verb: a blocking one in a thread of its own, so that the loop goes on."""
    if face is aio:
        return asyncio.create_task(verb(*args, **kwargs))
    return asyncio.create_task(asyncio.to_thread(verb, *args, **kwargs))


async def cancel(chat, request_id):
    """Cancel what waits under a request id, as soon as it does."""
    while True:
        with suppress(errors.TurnUnknown):
            return await chat.stop(request_id=request_id)
        await asyncio.sleep(0.001)


def answer(message: str) -> str:
    """A program that says which model it was sent to."""
    return f"{ledger.current().settings['lm']} says"


async def two(face, store=None, program=answer):
    """A conversation, and two answers to the same."""
    chat = face.open("alex", program, store=store or ledger.MemoryStore(), lm="x")
    await got(chat.send("hi"))
    return chat, await got(chat.tries("why", settings=[{"lm": "a"}, {"lm": "b"}]))


def judge(answers):
    """A merging program that asked a model."""
    turn = ledger.current()
    turn.note(
        model=f"judge-{turn.settings['lm']}", usage={"input_tokens": 500, "output_tokens": 50}
    )
    return " + ".join(each["result"] for each in answers)


async def judge_later(answers):
    """The same, async."""
    await asyncio.sleep(0)
    return judge(answers)


@FACES
def test_a_place_to_land_that_will_never_do_is_refused_at_once(face):
    """A turn that failed, or is not there, as `onto`: nobody waits for the turns that still run to be told so."""
    began, go = threading.Event(), threading.Event()

    def program(message: str) -> str:
        if message == "bad":
            raise ValueError("no")
        if message == "slow":
            began.set()
            go.wait(30)
        return message

    async def main():
        chat = face.open("alex", program, store=ledger.MemoryStore())
        with pytest.raises(ValueError, match="no"):
            await got(chat("bad"))
        slow = await got(chat.stream("slow"))
        await asyncio.to_thread(began.wait, 30)
        for onto, refused in ((1, errors.TurnState), (7, errors.TurnUnknown)):
            with pytest.raises(refused):
                await got(chat.merge([slow.turn], judge, onto=onto))
        assert slow.turn.state == "running"
        go.set()
        await got(slow.turn.wait(30))

    asyncio.run(main())


@FACES
@pytest.mark.parametrize("by", [judge, judge_later, ledger.program(judge)])
def test_what_a_merging_program_notes_is_recorded(face, by):
    """The model, the usage and the time are the merge's, whether its program is async or not."""

    async def main():
        chat, ts = await two(face)
        merged = await got(chat.merge(ts, by))
        assert merged.result == "a says + b says"
        assert merged.model == "judge-x"
        assert merged.usage == {"input_tokens": 500, "output_tokens": 50}
        assert merged.seconds is not None
        assert merged.made_by["name"] == by.__name__

    asyncio.run(main())


@FACES
def test_messages_that_are_noted_are_recorded(face):
    """What was asked is in `messages()`; what the model said is the merge's exchange."""
    asked = []

    async def by(answers):
        turn = ledger.current()
        said = turn.messages("openai", instructions="Judge.")
        asked.append(await got(said))
        turn.note(messages={"role": "assistant", "content": "best"}, format="openai")
        return "best"

    async def main():
        chat, ts = await two(face)
        merged = await got(chat.merge(ts, by))
        assert asked[0] == [
            {"role": "system", "content": "Judge."},
            {"role": "user", "content": "why"},
        ]
        assert [m["role"] for m in merged.messages] == ["user", "assistant"]

    asyncio.run(main())


@FACES
def test_an_attachment_that_a_merge_answers_is_named_in_its_messages(face):
    """As it is kept, also after rounds of tools that were noted: its hash is known only then."""
    call = {"type": "tool_call", "id": "1", "name": "draw", "arguments": {}}
    gave = {"type": "tool_call_response", "id": "1", "response": "drawn"}

    def by(answers):
        rounds = [("assistant", call), ("tool", gave)]
        ledger.current().note(messages=[{"role": r, "parts": [p]} for r, p in rounds])
        return Attachment(io.BytesIO(b"both"), media_type="image/png")

    async def main():
        chat = face.open("alex", store=ledger.MemoryStore())
        merged = await got(chat.merge([await got(chat.record("a", "b"))], by))
        assert await asyncio.to_thread(merged.result.read) == b"both"
        (part,) = merged.messages[-1]["parts"]
        assert part["content"] == merged.to_dict()["result"]
        named = await got(chat.attachments())
        assert [await asyncio.to_thread(one.read) for one in named] == [b"both"]

    asyncio.run(main())


def test_a_merge_is_shown_no_earlier_turns_and_keeps_no_steps():
    """`saw` is empty, so nothing is shown; a step has nowhere to be recorded."""
    chat = ledger.open("alex", store=ledger.MemoryStore())
    made = [chat.record("q", a) for a in "ab"]

    def by(answers):
        assert ledger.current().earlier() == []
        with pytest.raises(LookupError, match="no conversation records the steps"):
            ledger.current().reply({}, lambda: 1)
        return "x"

    assert chat.merge(made, by).result == "x"


def test_a_merging_program_may_use_other_conversations():
    """It is in no turn that is recorded, so it waits for nobody; inside a turn it is in that."""
    store = ledger.MemoryStore()
    inner = ledger.open("judge", lambda message: message.upper(), store=store)

    def by(answers):
        return inner(answers[0]["result"])

    chat = ledger.open("alex", store=store)
    made = [chat.record("q", a) for a in "ab"]
    assert chat.merge(made, by).result == "A"

    outer = ledger.open("outer", lambda message: chat.merge([1, 2], by).result, store=store)
    with pytest.raises(errors.Nested, match="alex"):
        outer("x")
    own = ledger.open("own", outer_program(chat, by), store=store, remembers={chat: "own"})
    with pytest.raises(errors.Nested, match="judge"):
        own("x")


def outer_program(chat, by):
    """A program that merges in another conversation."""
    return lambda message: chat.merge([1, 2], by).result


def test_threads_of_a_merging_program_are_in_it():
    """What they note is the merge's too."""
    chat = ledger.open("alex", store=ledger.MemoryStore())
    made = [chat.record("q", a) for a in "ab"]

    def by(answers):
        noting = threading.Thread(target=lambda: ledger.current().note(usage={"n": 3}))
        noting.start()
        noting.join()
        return "x"

    assert chat.merge(made, by).usage == {"n": 3}
    with pytest.raises(LookupError):
        ledger.current()


@FACES
def test_what_is_kept_of_one_answer_keeps_its_model(face):
    """`pick` and `majority` keep an answer with the model that gave it; nothing is counted twice."""

    async def main():
        chat = face.open("alex", store=ledger.MemoryStore())
        for model, said in (("a", "no"), ("b", "yes"), ("c", "yes")):
            await got(chat.record("q", said, model=model, usage={"n": 1}, parent=None))
        picked = await got(chat.merge([1, 2], merging.pick(2)))
        most = await got(chat.merge([1, 2, 3], merging.majority()))
        written = await got(chat.merge([1, 2], merging.text("mine")))
        assert [(m.model, m.usage) for m in (picked, most, written)] == [
            ("b", {}),
            ("b", {}),
            (None, {}),
        ]

    asyncio.run(main())


def test_a_merge_keeps_what_was_asked_whole():
    """The user side of the first merged turn goes with its inputs: pictures too."""
    chat = ledger.open("alex", store=ledger.MemoryStore())
    picture = Attachment(b"1", media_type="image/png").part()
    said = [{"role": "user", "parts": [{"type": "text", "content": "what?"}, picture]}]
    answered = {"role": "assistant", "parts": [{"type": "text", "content": "x"}]}
    made = [chat.record("what?", "x", messages=[*said, answered], parent=None) for _ in "ab"]

    merged = chat.merge(made, merging.pick(1))

    assert merged.messages[0] == made[0].messages[0]
    assert [part["type"] for part in merged.messages[0]["parts"]] == ["text", "blob"]


# -- request ids


@FACES
def test_a_merge_that_is_asked_for_twice_is_one(face):
    """The same request id gives the first, whose program is not called again; other turns are refused."""
    calls = []

    def by(answers):
        calls.append(len(answers))
        return "x"

    async def main():
        chat, ts = await two(face)
        first = await got(chat.merge(ts, by, request_id="m1"))
        assert await got(chat.merge(ts, by, request_id="m1")) == first
        assert first.request_id == "m1"
        assert (await got(chat.turn(request_id="m1"))) == first
        with pytest.raises(errors.RequestMismatch):
            await got(chat.merge(ts[:1], by, request_id="m1"))
        with pytest.raises(errors.RequestMismatch):
            await got(chat.send("why", request_id="m1"))
        await got(chat.send("more", request_id="s1"))
        with pytest.raises(errors.RequestMismatch):
            await got(chat.merge(ts, by, request_id="s1"))

    asyncio.run(main())
    assert calls == [2]


@FACES
def test_two_merges_at_once_under_one_request_id_are_one(face):
    """The second waits for the first and calls nothing; where the first fails, it makes the merge."""
    inside, go_on = threading.Event(), threading.Event()
    calls = []

    def by(answers):
        calls.append(1)
        inside.set()
        go_on.wait(30)
        if len(calls) == 1 and fails:
            raise ZeroDivisionError
        return "x"

    async def main():
        chat, ts = await two(face)
        both = [begun(face, chat.merge, ts, by, request_id="m1") for _ in "12"]
        await asyncio.to_thread(inside.wait, 30)
        go_on.set()
        made = await asyncio.gather(*both, return_exceptions=True)
        assert len([t for t in await got(chat.all_turns()) if t.reads]) == 1
        return made

    fails = False
    first, second = asyncio.run(main())
    assert (first, len(calls)) == (second, 1)
    fails = True
    for each in (calls, inside, go_on):
        each.clear()
    made = asyncio.run(main())
    assert sorted(type(each).__name__ for each in made) == ["Turn", "ZeroDivisionError"]


def test_a_merge_does_not_wait_for_itself():
    """A merging program that asks for the very same merge is refused."""
    chat = ledger.open("alex", store=ledger.MemoryStore())
    made = [chat.record("q", a) for a in "ab"]

    def by(answers):
        return chat.merge(made, by, request_id="m1").result

    with pytest.raises(errors.Busy, match="by the caller itself"):
        chat.merge(made, by, request_id="m1")
    assert chat.merge(made, merging.pick(1), request_id="m1").result == "a"


@FACES
@pytest.mark.parametrize("redact", [None, lambda text: text.replace("hi", "[m]")])
def test_a_turn_that_is_recorded_twice_under_a_request_id_is_one(face, redact):
    """The first is given again; other inputs are refused."""

    async def main():
        chat = face.open("alex", store=ledger.MemoryStore(), redact=redact)
        first = await got(chat.record("hi", "there", request_id="r1"))
        assert await got(chat.record("hi", "there", request_id="r1")) == first
        with pytest.raises(errors.RequestMismatch):
            await got(chat.record("ho", "there", request_id="r1"))
        with pytest.raises(ValueError, match="empty"):
            await got(chat.record("ho", "there", request_id=""))
        assert len(await got(chat.all_turns())) == 1

    asyncio.run(main())


@FACES
def test_a_record_under_the_id_of_a_turn_that_failed_says_so(face):
    """As a send under it does."""

    async def main():
        chat = face.open("alex", lambda message: 1 / 0, store=ledger.MemoryStore())
        with pytest.raises(ZeroDivisionError):
            await got(chat.send("hi", request_id="r1"))
        with pytest.raises(errors.TurnState, match="ZeroDivisionError"):
            await got(chat.record("hi", "there", request_id="r1"))

    asyncio.run(main())


@FACES
def test_tries_that_are_asked_for_twice_are_the_same(face):
    """Each has an id of its own; those that were not recorded are made beside the others."""

    async def main():
        chat = face.open("alex", answer, store=ledger.MemoryStore(), lm="x")
        await got(chat.send("hi"))
        models = [{"lm": "a"}, {"lm": "b"}]
        first = await got(chat.tries("why", settings=models, request_id="t"))
        assert await got(chat.tries("why", settings=models, request_id="t")) == first
        assert [t.request_id for t in first] == ["t#1", "t#2"]
        later = await got(chat.continue_from(first[0]))
        more = await got(later.tries("why", settings=[*models, {"lm": "c"}], request_id="t"))
        assert (more[:2], more[2].parent) == (first, first[0].parent)
        assert await got(later.head) == first[0].parent
        with pytest.raises(TypeError, match="request_id is text"):
            await got(chat.tries("why", settings=models, request_id=5))

    asyncio.run(main())


# -- turns that still run


@FACES
def test_a_merge_waits_for_turns_that_run(face):
    """As a queued send does; what they said by their end is merged, and the loop goes on meanwhile."""
    go_on = threading.Event()

    def slow(message: str):
        yield "one"
        go_on.wait(30)
        yield " two"

    async def main():
        chat = face.open("alex", slow, store=ledger.MemoryStore())
        views = [await got(chat.continue_from(None)) for _ in "ab"]
        ts = [(await got(view.stream("x"))).turn for view in views]
        merge = begun(face, chat.merge, ts, joined)
        await asyncio.sleep(0.05)
        assert not merge.done()
        go_on.set()
        assert (await merge).result == "one two|one two"

    def joined(answers):
        return "|".join(each["result"] for each in answers)

    asyncio.run(main())


@FACES
def test_a_merge_of_a_turn_that_does_not_end_done_is_refused(face):
    """Stopped meanwhile, or failed, it has no answer; nothing is recorded, and `by` is not called."""
    go_on = threading.Event()

    def slow(message: str):
        yield "one"
        go_on.wait(30)

    async def main():
        chat = face.open("alex", slow, store=ledger.MemoryStore())
        s = await got(chat.stream("a"))
        merge = begun(face, chat.merge, [s.turn], lambda answers: 1 / 0)
        await asyncio.sleep(0.05)
        await got(chat.stop())
        with pytest.raises(errors.TurnState, match="is stopped: only a turn that is done"):
            await merge
        assert len(await got(chat.all_turns())) == 1

    asyncio.run(main())
    go_on.set()


def test_a_merge_of_a_turn_that_nobody_ends_is_refused():
    """Its process died, or it waits for a person: a merge would wait for ever."""
    running = ledger.MemoryStore()
    ledger.open("alex", lambda message: message, store=running).send("x")
    begun = [r for r in running.read("alex") if r["kind"] in ("program", "turn", "lease")]
    begun[2] = {**begun[2], "until": "2020-01-01T00:00:00.000000Z"}
    store = ledger.MemoryStore()
    store.append("alex", begun)
    with pytest.raises(errors.TurnState, match="is interrupted: only a turn that is done"):
        ledger.open("alex", store=store).merge([1], merging.pick(1))

    def asks(message: str) -> str:
        return ledger.current().tool("refund", {}, lambda: "ok", effects="changes")

    chat = ledger.open("ben", asks, store=store, approve="changes")
    with pytest.raises(errors.TurnWaiting):
        chat("x")
    with pytest.raises(errors.TurnState, match="is waiting"):
        chat.merge([1], merging.pick(1))


def test_a_record_that_waits_is_cancelled_under_its_request_id():
    """As a send is: by whoever stops it in this process."""
    go_on = threading.Event()

    async def main():
        chat = aio.open("alex", lambda message: go_on.wait(30), store=ledger.MemoryStore())
        s = await chat.stream("a")
        record = asyncio.create_task(chat.record("b", "c", request_id="r1"))
        await cancel(chat, "r1")
        with pytest.raises(errors.Cancelled):
            await record
        go_on.set()
        await s.turn.wait(30)
        assert len(await chat.all_turns()) == 1

    asyncio.run(main())


def test_a_merge_that_waits_is_cancelled_under_its_request_id():
    """By whoever stops it in this process; awaited, by cancelling it. Nothing is recorded."""
    go_on = threading.Event()

    def slow(message: str) -> str:
        go_on.wait(30)
        return "x"

    async def main():
        chat = aio.open("alex", slow, store=ledger.MemoryStore())
        s = await chat.stream("a")
        merge = asyncio.create_task(chat.merge([s.turn], merging.pick(s.turn), request_id="m1"))
        other = asyncio.create_task(chat.merge([s.turn], merging.pick(s.turn)))
        await cancel(chat, "m1")
        other.cancel()
        with pytest.raises(errors.Cancelled):
            await merge
        with pytest.raises(asyncio.CancelledError):
            await other
        go_on.set()
        await s.turn.wait(30)
        assert len(await chat.all_turns()) == 1

    asyncio.run(main())


def test_a_merging_program_sees_that_it_is_not_wanted_any_more():
    """Cancelled, `current().stopped` is true for the thread that goes on; what it returns is not recorded."""
    seen, inside = threading.Event(), threading.Event()

    def by(answers):
        inside.set()
        while not ledger.current().stopped:
            inside.wait(0.001)
        seen.set()
        return "late"

    async def main():
        chat, ts = await two(aio)
        merge = asyncio.create_task(chat.merge(ts, by))
        await asyncio.to_thread(inside.wait, 30)
        merge.cancel()
        with pytest.raises(asyncio.CancelledError):
            await merge
        assert await asyncio.to_thread(seen.wait, 30)
        assert len(await chat.all_turns()) == 3

    asyncio.run(main())


# -- turns of other conversations


@FACES
def test_a_turn_of_another_conversation_is_told_of_which(face):
    """Wherever a turn is named."""

    async def main():
        store = ledger.MemoryStore()
        here, there = (face.open(name, store=store) for name in ("here", "there"))
        mine = await got(here.record("a", "b"))
        other = await got(there.record("a", "b"))
        told = "is a turn of conversation there"
        for ask in (
            lambda: here.merge([mine, other], merging.pick(mine)),
            lambda: here.diff(mine, other),
            lambda: here.set_head(other),
        ):
            with pytest.raises(errors.TurnUnknown, match=told):
                await got(ask())
        with pytest.raises(errors.TurnUnknown, match=told):
            await got(here.continue_from(other))
        with pytest.raises(TypeError, match="named by a Turn"):  # A conversation has an id, too.
            await got(here.set_head(there))

    asyncio.run(main())
