"""One of those who go on with a turn at the same time does so; helpers remember the same after a death."""

from __future__ import annotations

import os
import signal
import time

import pytest

import ledger
from ledger import errors
from ledger.testing.children import children, together
from tests.scenarios.support import FACES, SOON_S, view
from tests.scenarios.survival import Case, Deeds, act

MANY = 8


def killed(say, case):
    """In another process: make the turn, say when it waits inside its tool, and be killed there."""
    deeds = Deeds(case.deeds)

    def program(message: str) -> str:
        turn = ledger.current()
        turn.reply("plan", lambda: deeds.do("plan"))
        say(os.getpid())
        time.sleep(SOON_S)
        return "never"

    ledger.open("alex", program, store=f"{case.folder}/store")("hi")


def claims(say, number, case, face):
    """In another process: go on with the turn. Returns: what came of it."""
    deeds = Deeds(case.deeds)

    def program(message: str) -> str:
        turn = ledger.current()
        turn.reply("plan", lambda: deeds.do("plan"))
        return str(turn.tool("book", 7, lambda: deeds.do("book")))

    face = FACES[face]()
    chat = face.open("alex", program, store=f"{case.folder}/store")
    turn = face.do(chat.turn, 1)
    try:
        return face.do(turn.resume)
    except errors.LedgerError as error:
        return error.code


@pytest.mark.parametrize("face", list(FACES))
def test_of_many_one_goes_on(tmp_path, face):
    """A worker is killed; of eight processes that go on with its turn at once one does, and the others are told."""
    case = Case(face, "", "", str(tmp_path))
    with children(1) as (worker,):
        worker.prepare(killed, case)
        worker.begin(SOON_S)
        os.kill(worker.hear(SOON_S), signal.SIGKILL)
        worker.kill()

    came = together(MANY, SOON_S, claims, case, face)

    assert sorted(came) == ["book 1", *["turn-state"] * (MANY - 1)]
    assert dict(Deeds(case.deeds).all) == {"plan": 1, "book": 1}
    store = view(f"{case.folder}/store").store
    kinds = [record["kind"] for record in store.read("alex")]
    assert (kinds.count("lease"), kinds.count("ended")) == (2, 1)


def does(say, number, case):
    """In another process: do what is next of the turn."""
    return act(case, None, f"{case.folder}/note")


def test_many_answer_and_go_on(tmp_path):
    """Processes that all approve and then all go on at once leave one answer, one end, and one refund."""
    case = Case("blocking", "sync", "results", str(tmp_path))
    assert act(case, None, f"{case.folder}/note")[0] == "waits"

    answered = together(4, SOON_S, does, case)
    came = together(4, SOON_S, does, case)

    assert ["approved", None] in [list(each) for each in answered]
    assert {each[0] for each in (*answered, *came)} <= {
        *("approved", "done", "question-unknown", "turn-state"),
    }
    (turn,) = view(f"{case.folder}/store").all_turns()
    assert turn.state == "done"
    assert set(Deeds(case.deeds).all.values()) == {1}
    kinds = [record["kind"] for record in view(f"{case.folder}/store").store.read("alex")]
    assert (kinds.count("approval"), kinds.count("ended")) == (1, 1)
