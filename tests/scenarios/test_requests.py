"""T6: a request that is sent again is one turn, wherever and whenever; equal messages are not requests."""

import os
from decimal import Decimal
from typing import NamedTuple

import pytest

import ledger
from ledger import errors
from ledger.testing.children import children, together
from tests.scenarios.support import FACES, SOON_S, Sign, asked, raw, states, until, view


class Counting:
    """A program that counts its calls, and answers after a sign if it has one."""

    def __init__(self, sign=None):
        self.sign = sign
        self.calls = []

    def __call__(self, message: str) -> str:
        """Answer with how manieth call it was."""
        self.calls.append(message)
        if self.sign is not None:
            self.sign.await_()
        if message == "bad":
            raise ValueError("no")
        return f"call {len(self.calls)}"


def send_counted(say, number, folder, counter, messages, face=None):
    """In another process: send a request whose calls are counted in a file, one byte each."""

    def program(message: str) -> str:
        with open(counter, "ab", 0) as file:
            file.write(b".")
        return f"made by {os.getpid()}"

    face = FACES[face or list(FACES)[number % 2]]()
    chat = face.open("alex", program, store=folder)
    try:
        turn = face.do(chat.send, messages[number % len(messages)], request_id="r")
    except errors.LedgerError as error:
        return error.code
    return turn.id, turn.result


def send_for_ever(say, folder):
    """In another process: send a request that never ends."""
    sign = Sign(folder + "-never")
    ledger.open("alex", Counting(sign), store=folder).send("hi", request_id="r")


@pytest.fixture
def sign(tmp_path):
    """The sign on which programs answer; given in the end at the latest."""
    sign = Sign(tmp_path / "sign")
    yield sign
    sign.give()


def test_again_while_it_runs(face, store, sign):
    """Sent again while it runs, a request waits for the one turn and gives its answer."""
    program = Counting(sign)
    sends = [face.begin(face.open("alex", program, store=store).send, "hi", request_id="r")]
    until(lambda: program.calls)
    sends += [
        face.begin(face.open("alex", program, store=store).send, "hi", request_id="r")
        for _ in range(3)
    ]
    before = raw(store)
    sign.give()

    turns = [send.result(SOON_S) for send in sends]

    assert len(set(turns)) == 1
    assert {turn.result for turn in turns} == {"call 1"}
    assert program.calls == ["hi"]
    assert raw(store).startswith(before)
    assert len(view(store).all_turns()) == 1


def test_again_after_it_is_done(face, store):
    """Sent again after it is done, it gives the recorded answer and not a byte is written."""
    program = Counting()
    first = face.do(face.open("alex", program, store=store).send, "hi", request_id="r")
    before = raw(store)

    again = face.open("alex", program, store=store)
    assert face.do(again.send, "hi", request_id="r") == first
    assert face.do(again, "hi", request_id="r") == "call 1"
    assert (program.calls, raw(store)) == (["hi"], before)


class Offer(NamedTuple):
    """Several outputs, typed."""

    reasoning: str
    total: Decimal


def sell(message: str) -> Offer:
    """A program with several outputs."""
    return Offer("it is tea", Decimal("2.50"))


def test_again_gives_all_that_the_program_returned(face, store):
    """Called again, streamed again, in a new view: what comes is what the first call gave, typed as it was."""
    first = face.do(face.open("alex", sell, store=store), "hi", request_id="r")
    chat = face.open("alex", sell, store=store)

    again = face.do(chat, "hi", request_id="r")
    stream = chat.stream("hi", request_id="r")
    streamed = face.result(stream)

    assert [first, again, streamed] == [Offer("it is tea", Decimal("2.50"))] * 3
    assert {type(value) for value in (first, again, streamed)} == {Offer}
    assert face.do(chat.send, "hi", request_id="r").result == Decimal("2.50")


def test_again_by_a_program_without_the_names(face, store):
    """Sent again by a program of other fields, a request gives the answer as JSON has it."""

    def total(message: str) -> str:
        return "never called"

    face.do(face.open("alex", sell, store=store), "hi", request_id="r")

    assert face.do(face.open("alex", total, store=store), "hi", request_id="r") == "2.50"


def test_again_after_other_turns(face, store):
    """However much came since, the request is the same turn, and the next send stands where it would have."""
    chat = face.open("alex", Counting(), store=store)
    first = face.do(chat.send, "hi", request_id="r")
    for i in range(20):
        face.do(chat.send, f"more {i}")

    assert face.do(chat.send, "hi", request_id="r") == first
    assert face.do(chat.send, "next").parent.inputs == {"message": "more 19"}


def test_again_with_other_inputs(face, store, sign):
    """Other inputs under the same id are refused, while the first runs and after; nothing is written."""
    program = Counting(sign)
    chat = face.open("alex", program, store=store)
    begun = face.begin(chat.send, "hi", request_id="r")
    until(lambda: program.calls)
    other = face.open("alex", program, store=store)
    before = raw(store)

    with pytest.raises(errors.RequestMismatch) as caught:
        face.do(other.send, "bye", request_id="r")
    assert caught.value.turn == view(store).turn(1).id
    assert raw(store) == before
    sign.give()
    begun.result(SOON_S)
    with pytest.raises(errors.RequestMismatch):
        face.do(other.send, "bye", request_id="r")
    assert (program.calls, len(view(store).all_turns())) == (["hi"], 1)


def test_again_after_it_failed(face, store):
    """Sent again after it failed, it says how it failed and calls nothing."""
    program = Counting()
    chat = face.open("alex", program, store=store)
    with pytest.raises(ValueError, match="no"):
        face.do(chat.send, "bad", request_id="r")
    before = raw(store)

    with pytest.raises(errors.TurnState, match="ValueError: no") as caught:
        face.do(chat.send, "bad", request_id="r")

    assert (caught.value.state, program.calls, raw(store)) == ("failed", ["bad"], before)


def test_again_after_it_was_stopped(face, store, sign):
    """Sent again after it was stopped, it raises Cancelled and calls nothing."""
    program = Counting(sign)
    chat = face.open("alex", program, store=store)
    begun = face.begin(chat.send, "hi", request_id="r")
    until(lambda: program.calls)
    face.do(chat.stop, request_id="r")
    with pytest.raises(errors.Cancelled):
        begun.result(SOON_S)

    with pytest.raises(errors.Cancelled):
        face.do(chat.send, "hi", request_id="r")

    assert (program.calls, states(view(store).all_turns())) == (["hi"], ["stopped"])


def test_again_while_its_first_stream_is_read(face, store, sign):
    """Streamed again under its id, the second stream follows the first's turn; leaving it stops nothing."""
    program = Counting(sign)
    first = face.enter(face.open("alex", program, store=store).stream("hi", request_id="r"))
    second = face.enter(face.open("alex", program, store=store).stream("hi", request_id="r"))
    assert second.turn == first.turn

    face.leave(second)
    sign.give()

    assert face.result(first) == "call 1"
    assert states(view(store).all_turns()) == ["done"]


def test_equal_messages_are_turns_of_their_own(face, store):
    """Without a request id each of several equal sends is a turn, one after another and at once."""
    chat = face.open("alex", Counting(), store=store)
    for _ in range(3):
        face.do(chat.send, "hi")
    sends = [face.begin(face.open("alex", Counting(), store=store).send, "hi") for _ in range(5)]
    for send in sends:
        send.result(SOON_S)

    assert asked(view(store).turns) == ["hi"] * 8


# -- between processes


def test_four_processes_send_one_request(tmp_path):
    """Four processes send one request at once: one turn, one call, one answer for all."""
    folder, counter = str(tmp_path / "s"), tmp_path / "calls"

    told = together(4, SOON_S, send_counted, folder, str(counter), ["hi"])

    assert len(set(told)) == 1
    assert counter.read_bytes() == b"."
    turns = view(folder).all_turns()
    assert [(turn.id, turn.result) for turn in turns] == [told[0]]


def test_four_processes_disagree_about_a_request(tmp_path):
    """Two messages under one id from four processes: one is the turn, the senders of the other are refused."""
    folder, counter = str(tmp_path / "s"), tmp_path / "calls"

    told = together(4, SOON_S, send_counted, folder, str(counter), ["hi", "bye"])

    assert told.count("request-mismatch") == 2
    assert len(set(told)) == 2
    assert counter.read_bytes() == b"."
    assert len(view(folder).all_turns()) == 1


def test_again_from_another_process(tmp_path, face, sign):
    """What runs here and is sent again elsewhere is waited for there, and gives this turn's answer."""
    folder, counter = str(tmp_path / "s"), tmp_path / "calls"
    program = Counting(sign)
    begun = face.begin(face.open("alex", program, store=folder).send, "hi", request_id="r")
    until(lambda: program.calls)
    with children(1) as (other,):
        other.prepare(send_counted, 0, folder, str(counter), ["hi"], face.name)
        other.begin(SOON_S)
        assert not other.said_within(0.3)
        sign.give()
        assert other.result(SOON_S) == (begun.result(SOON_S).id, "call 1")
    assert not counter.exists()


def test_again_after_its_process_was_killed(tmp_path, face):
    """Sent again after its process was killed, it calls nothing and names what to do: turn-state."""
    folder = str(tmp_path / "s")
    with children(1) as (other,):
        other.prepare(send_for_ever, folder)
        other.begin(SOON_S)
        until(lambda: states(view(folder).all_turns()) == ["running"])
        other.kill()
    run_out(folder)
    program = Counting()
    chat = face.open("alex", program, store=folder)

    with pytest.raises(errors.TurnState) as caught:
        face.do(chat.send, "hi", request_id="r")

    assert caught.value.state == "interrupted"
    assert program.calls == []
    assert face.do(chat.send, "hi", request_id="r2").parent is None
    assert states(view(folder).all_turns()) == ["interrupted", "done"]


def run_out(store):
    """Let the lease of the first turn run out: its holder's last renewal, as if made long ago."""
    turn = view(store).turn(1).id
    last = [r for r in ledger.FolderStore(store).read("alex") if r["kind"] == "lease"][-1]
    past = "2020-01-01T00:00:00.000000Z"
    ledger.FolderStore(store).append("alex", [{**last, "turn": turn, "until": past}])


VERBS = {
    "send": lambda chat, one, other: chat.send("again", request_id="r1"),
    "record": lambda chat, one, other: chat.record("again", "x", request_id="r1"),
    "regenerate": lambda chat, one, other: chat.regenerate(one, request_id="r1"),
    "merge": lambda chat, one, other: chat.merge([one, other], lambda _: "x", request_id="r1"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_view_goes_on_from_the_turn_that_it_asked_for_again(face, store, verb):
    """Whoever asks twice stands where the first call left them: also a page that was opened anew in between."""
    chat = face.open("alex", lambda message: "x", store=store)
    one, other = (face.do(face.do(chat.continue_from, None).send, text) for text in ("a", "b"))
    made = face.do(VERBS[verb], face.do(chat.continue_from, one), one, other)
    face.do(face.do(chat.continue_from, other).send, "elsewhere")

    view = face.do(chat.continue_from, one)
    again = face.do(VERBS[verb], view, one, other)

    assert again == made
    assert face.do(lambda: view.turns)[-1] == made
    assert face.do(view.send, "more").parent == made
