"""Sends of one process that wait are begun in the order in which they were sent."""

import asyncio
import threading

import pytest

import ledger
from ledger import errors
from ledger.turns import arrivals
from tests.scenarios.support import FACES, SOON_S, Sign, asked, states, until, view


@pytest.fixture
def sign(tmp_path):
    """The sign on which the first turn answers; given in the end at the latest."""
    sign = Sign(tmp_path / "sign")
    yield sign
    sign.give()


@pytest.fixture
def program(sign):
    """Answers at once; what is called first or slow only when the sign is given."""

    def answer(message: str) -> str:
        if message in ("first", "slow"):
            sign.await_()
        return f"re {message}"

    return answer


def waiting(count, conversation="alex"):
    """Wait until so many sends wait."""
    until(lambda: len(arrivals._arrived.get(conversation, ())) == count)


@pytest.fixture
def first(face, store, program):
    """A send whose turn is running."""
    begun = face.begin(face.open("alex", program, store=store).send, "first")
    until(lambda: states(view(store).all_turns()) == ["running"])
    waiting(0)
    return begun


def line(face, chats, messages):
    """Send one after another, each when the one before it has come; none of them can begin yet."""
    begun = []
    for number, message in enumerate(messages):
        begun.append(face.begin(chats[number % len(chats)].send, message))
        waiting(number + 1)
    return begun


@pytest.mark.parametrize("objects", [1, 3])
def test_first_in_first_out(face, store, program, first, sign, objects):
    """Whether one conversation object is shared or each send has its own."""
    chats = [face.open("alex", program, store=store) for _ in range(objects)]
    begun = line(face, chats, "bcdefg")
    sign.give()

    assert [each.result(SOON_S).ordinal for each in begun] == [2, 3, 4, 5, 6, 7]
    assert asked(view(store).turns) == ["first", *"bcdefg"]
    assert not arrivals._arrived


def test_threads_and_tasks_stand_in_one_line(tmp_path, program, sign):
    """In a database too."""
    store = ledger.SQLStore(f"sqlite:///{tmp_path}/ledger.db")
    faces = [FACES[name]() for name in FACES]
    begun = [faces[0].begin(faces[0].open("alex", program, store=store).send, "first")]
    until(lambda: states(view(store).all_turns()) == ["running"])
    waiting(0)
    for number in range(6):
        face = faces[number % 2]
        begun.append(face.begin(face.open("alex", program, store=store).send, str(number)))
        waiting(number + 1)
    sign.give()

    assert [each.result(SOON_S).ordinal for each in begun] == [1, 2, 3, 4, 5, 6, 7]
    for face in faces:
        face.close()


def test_tasks_that_begin_at_once(store):
    """Nothing runs yet, and several are sent at once: in the order of the calls."""

    async def answer(message: str) -> str:
        return message

    async def all_at_once():
        sends = (ledger.aio.open("alex", answer, store=store).send(each) for each in "abcdef")
        return [turn.ordinal for turn in await asyncio.gather(*sends)]

    assert asyncio.run(all_at_once()) == [1, 2, 3, 4, 5, 6]


def test_turns_that_are_recorded_stand_in_line_too(face, store, program, first, sign):
    """`record` waits as `send` does."""
    chat = face.open("alex", program, store=store)
    begun = line(face, [chat], ["b"])
    begun.append(face.begin(face.open("alex", store=store).record, "c", "re c"))
    waiting(2)
    sign.give()
    assert [each.result(SOON_S).ordinal for each in begun] == [2, 3]


def test_who_is_cancelled_leaves_the_line(face, store, program, first, sign):
    """The others go on in order, and nothing is recorded of those that left."""
    chat = face.open("alex", program, store=store)
    begun = []
    for number in range(4):
        begun.append(face.begin(chat.send, str(number), request_id=str(number)))
        waiting(number + 1)
    face.do(chat.stop, request_id="0")
    face.do(chat.stop, request_id="2")
    waiting(2)
    sign.give()

    ends = [each.exception(SOON_S) for each in begun]
    assert [type(end) for end in ends] == [errors.Cancelled, type(None)] * 2
    assert asked(view(store).all_turns()) == ["first", "1", "3"]


def test_a_known_request_waits_for_nobody(face, store, program, sign):
    """Sent again, it is the turn that it was, though others wait."""
    chat = face.open("alex", program, store=store)
    known = face.do(chat.send, "known", request_id="r")
    begun = [face.begin(chat.send, "slow")]
    until(lambda: states(view(store).all_turns()) == ["done", "running"])
    waiting(0)
    begun += line(face, [face.open("alex", program, store=store)], "bc")

    assert face.do(chat.send, "known", request_id="r") == known
    sign.give()
    assert [each.result(SOON_S).ordinal for each in begun] == [2, 3, 4]


def test_another_branch_goes_on_beside(face, store, program, first, sign):
    """A line is for one place: who continues another turn begins at once, and so do `branch` and `refuse` there."""
    chat = face.open("alex", program, store=store)
    begun = line(face, [face.do(chat.continue_from, 1)], "bc")
    elsewhere = face.do(chat.continue_from, None)

    assert face.do(elsewhere.send, "x").result == "re x"
    assert face.do(elsewhere.send, "y").parent.inputs == {"message": "x"}
    waiting(2)
    assert states(view(store).all_turns()) == ["running", "done", "done"]
    view(store).head = 1
    with pytest.raises(errors.Busy):
        face.do(face.open("alex", program, store=store, sends="refuse").send, "z")
    assert face.do(face.open("alex", program, store=store, sends="branch").send, "z").parent is None
    sign.give()
    for each in begun:
        each.result(SOON_S)
    assert asked(view(store).turns)[-2:] == ["b", "c"]


def test_a_summary_keeps_its_place(face, store):
    """Who wants a summary first is not overtaken meanwhile; what that sends to the conversation waits for nobody."""
    at_work, go_on = threading.Event(), threading.Event()

    def answer(message: str) -> str:
        return message

    def by(earlier, before):
        at_work.set()
        go_on.wait(SOON_S)
        return view(store).record("inside", "noted").result

    for message in "abc":
        view(store).record(message, "said")
    rule = ledger.compacted(by, keep_last=1, every=2)
    begun = [face.begin(face.open("alex", answer, store=store, context=rule).send, "d")]
    assert at_work.wait(SOON_S)
    begun.append(face.begin(face.open("alex", answer, store=store).send, "e"))
    waiting(2)
    go_on.set()

    assert [each.result(SOON_S).ordinal for each in begun] == [5, 6]
    assert asked(view(store).turns) == [*"abc", "inside", "d", "e"]


def test_who_holds_up_its_loop_holds_up_nobody_else(store, program, sign, monkeypatch):
    """A caller that blocks a loop waits behind a task of that loop for a while only, and then goes first."""
    monkeypatch.setattr(arrivals, "PATIENCE_S", 0.2)
    chat = ledger.open("alex", program, store=store)
    first = threading.Thread(target=chat.send, args=("first",))
    first.start()
    until(lambda: states(view(store).all_turns()) == ["running"])
    waiting(0)

    async def both():
        task = asyncio.create_task(ledger.aio.open("alex", program, store=store).send("task"))
        while not (found := arrivals._arrived.get("alex")) or found[0].send().rests is None:
            await asyncio.sleep(0)
        sign.give()
        mine = ledger.open("alex", program, store=store).send("mine")
        return mine.ordinal, (await task).ordinal

    assert sorted(asyncio.run(both())) == [2, 3]
    first.join()
