"""T3: a second send while the first one runs, in each mode, from here and from another process."""

import pytest

import ledger
from ledger import errors
from ledger.testing.children import children
from tests.scenarios.support import FACES, SOON_S, Sign, asked, raw, states, until, view


def echo(message: str) -> str:
    """Answer at once."""
    return f"re {message}"


def waiting_for(sign):
    """Return a program that waits for a sign."""

    def program(message: str) -> str:
        sign.await_()
        return f"re {message}"

    return program


def send_first(say, folder, sign):
    """In another process: send, and answer when the sign is given."""
    chat = ledger.open("alex", waiting_for(Sign(sign)), store=folder)
    return chat.send("first").id


def send_second(say, folder, face, sends, request_id=None):
    """In another process: send in a mode. Returns: the parent's input, or the code of the refusal."""
    face = FACES[face]()
    chat = face.open("alex", echo, store=folder, sends=sends)
    say("sending")
    try:
        turn = face.do(chat.send, "second", request_id=request_id)
    except errors.LedgerError as error:
        return error.code
    return turn.parent and turn.parent.inputs["message"]


@pytest.fixture
def sign(tmp_path):
    """The sign on which the first turn answers; given in the end at the latest."""
    sign = Sign(tmp_path / "sign")
    yield sign
    sign.give()


@pytest.fixture
def first(face, store, sign):
    """A send whose turn is running."""
    chat = face.open("alex", waiting_for(sign), store=store)
    begun = face.begin(chat.send, "first")
    until(lambda: states(view(store).all_turns()) == ["running"])
    yield begun
    sign.give()
    begun.result(SOON_S)


def is_waiting(chat, face):
    """Whether a send has looked and found that it must wait: its conversation has read the first turn."""
    return until(lambda: (chat._inner if face.name == "aio" else chat)._log.position >= 3)


def test_queue_continues_from_the_first(face, store, first, sign):
    """A queued send records nothing while the first turn runs; then the first is its parent."""
    chat = face.open("alex", echo, store=store)
    second = face.begin(chat.send, "second")
    is_waiting(chat, face)
    assert asked(view(store).all_turns()) == ["first"]

    sign.give()

    assert second.result(SOON_S).result == "re second"
    assert asked(view(store).turns) == ["first", "second"]


def test_refuse_stores_nothing(face, store, first):
    """`refuse` raises conversation-busy at once, and not a byte is written."""
    before = raw(store)
    chat = face.open("alex", echo, store=store, sends="refuse")

    with pytest.raises(errors.Busy) as caught:
        face.do(chat.send, "second")

    assert caught.value.turn == view(store).turn(1).id
    assert raw(store) == before


def test_branch_makes_two_heads(face, store, first, sign):
    """`branch` goes beside the running turn: in the end two heads that share their parent."""
    chat = face.open("alex", echo, store=store, sends="branch")

    second = face.do(chat.send, "second")

    assert second.parent is None
    sign.give()
    first.result(SOON_S)
    assert sorted(asked(view(store).heads())) == ["first", "second"]
    assert {turn.parent for turn in view(store).heads()} == {None}


@pytest.mark.parametrize("second_face", list(FACES))
@pytest.mark.parametrize("sends", ["queue", "refuse", "branch"])
def test_the_modes_between_two_processes(tmp_path, sign, sends, second_face):
    """Between two processes each mode does the same as within one."""
    folder = str(tmp_path / "s")
    with children(2) as (one, other):
        one.prepare(send_first, folder, sign.path)
        one.begin(SOON_S)
        until(lambda: states(view(folder).all_turns()) == ["running"])
        other.prepare(send_second, folder, second_face, sends)
        other.begin(SOON_S)
        assert other.hear(SOON_S) == "sending"
        if sends == "queue":
            assert not other.said_within(0.5)
            assert asked(view(folder).all_turns()) == ["first"]
            sign.give()
        told = other.result(SOON_S)
        sign.give()
        one.result(SOON_S)
    expected = {"queue": "first", "refuse": "conversation-busy", "branch": None}
    assert told == expected[sends]
    assert len(view(folder).all_turns()) == (1 if sends == "refuse" else 2)
    assert set(states(view(folder).all_turns())) == {"done"}


# -- a queued send that is no longer wanted


def test_a_queued_send_is_cancelled_by_its_request_id(face, store, first, sign):
    """`stop(request_id=...)` cancels a send that waits: its caller gets Cancelled, nothing is recorded."""
    chat = face.open("alex", echo, store=store)
    second = face.begin(chat.send, "second", request_id="r")
    is_waiting(chat, face)
    before = raw(store)

    face.do(face.open("alex", echo, store=store).stop, request_id="r")

    assert isinstance(second.exception(2), errors.Cancelled)
    assert raw(store) == before
    sign.give()
    first.result(SOON_S)
    assert asked(view(store).all_turns()) == ["first"]


def test_a_queued_task_is_cancelled(store, sign):
    """A task that waits is cancelled by `task.cancel()`; nothing of it is recorded, then or later."""
    face = FACES["aio"]()
    begun = face.begin(face.open("alex", waiting_for(sign), store=store).send, "first")
    until(lambda: states(view(store).all_turns()) == ["running"])
    chat = face.open("alex", echo, store=store)
    second = face.begin(chat.send, "second")
    is_waiting(chat, face)
    before = raw(store)

    second.cancel()
    face.do(chat.turn, 1)

    assert raw(store) == before
    sign.give()
    begun.result(SOON_S)
    assert face.do(chat.send, "third").parent.inputs == {"message": "first"}
    assert asked(view(store).all_turns()) == ["first", "third"]
    face.close()


def test_a_queued_send_dies_with_its_process(tmp_path, sign):
    """A process that is killed while its send waits leaves nothing of that send."""
    folder = str(tmp_path / "s")
    with children(2) as (one, other):
        one.prepare(send_first, folder, sign.path)
        one.begin(SOON_S)
        until(lambda: states(view(folder).all_turns()) == ["running"])
        other.prepare(send_second, folder, "blocking", "queue")
        other.begin(SOON_S)
        other.hear(SOON_S)
        other.kill()
        sign.give()
        one.result(SOON_S)
    assert asked(view(folder).all_turns()) == ["first"]
    assert ledger.open("alex", echo, store=folder).send("third").parent.ordinal == 1


def test_what_waits_in_another_process_is_unknown_here(tmp_path, sign):
    """A send that waits in another process cannot be named from here: turn-unknown, and it goes on."""
    folder = str(tmp_path / "s")
    with children(2) as (one, other):
        one.prepare(send_first, folder, sign.path)
        one.begin(SOON_S)
        until(lambda: states(view(folder).all_turns()) == ["running"])
        other.prepare(send_second, folder, "blocking", "queue", "r")
        other.begin(SOON_S)
        other.hear(SOON_S)
        with pytest.raises(errors.TurnUnknown):
            view(folder).stop(request_id="r")
        sign.give()
        assert other.result(SOON_S) == "first"
        one.result(SOON_S)
