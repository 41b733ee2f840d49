"""T35: a worker sleeps past its lease, another takes its turn over, and it wakes: it changes nothing more."""

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

import ledger
from ledger import errors
from ledger.records import kinds, times
from ledger.testing.children import children
from ledger.turns.world import SYSTEM
from tests.scenarios.support import FACES, SOON_S, Sign, states, until, view

TOLD_S = 5.0
"""How soon after it woke the worker has to know: 1 s is meant, the rest is for a busy machine."""


def work(say, folder, face, kind, sign):
    """In another process: a turn that says a piece, is quiet until the sign, and then talks on and on.

    Returns: what its caller got, and what its program was told.
    """
    told = []
    awake = Sign(sign)

    def talking(message: str) -> str:
        ledger.current().emit("once ")
        say(os.getpid())
        awake.await_()
        try:
            while True:
                ledger.current().emit("more ")
                time.sleep(0.01)
        except errors.Cancelled as error:
            told.append(error.code)
            raise

    async def talking_awaited(message: str) -> str:
        ledger.current().emit("once ")
        say(os.getpid())
        try:
            while True:
                await asyncio.sleep(0.01)
                if awake.given:
                    ledger.current().emit("more ")
        except (errors.Cancelled, asyncio.CancelledError) as error:
            told.append(getattr(error, "code", "cancelled"))
            raise

    face = FACES[face]()
    chat = face.open("alex", {"plain": talking, "async": talking_awaited}[kind], store=folder)
    try:
        face.do(chat, "hi")
    except errors.LedgerError as error:
        got = error.code
    else:
        got = "an answer"
    until(lambda: told, "the program's being told")
    return got, told[0]


def take_over(store, turn):
    """Claim a turn as another implementation would, once its holder's lease ran out."""
    now = SYSTEM.now()
    until = times.to_text(now + timedelta(seconds=30))
    claim = {"turn": turn, "holder": "elsewhere:1:x", "until": until, "attempt": 2}
    record = kinds.new("lease", times.to_text(now), **claim)
    store.append("alex", [record], expect=len(store.read("alex")))


def events_of(store, turn):
    """Return the bytes of a turn's events."""
    path = Path(store.folder, "trees", f"{turn}.jsonl")
    return path.read_bytes() if path.exists() else b""


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("face", list(FACES))
def test_who_wakes_too_late_changes_nothing(tmp_path, face, kind):
    """Stopped, robbed and woken, a worker writes no record and no event; its caller and program are told."""
    store, sign = ledger.FolderStore(tmp_path / "s"), Sign(tmp_path / "sign")
    with children(1) as (worker,):
        worker.prepare(work, store.folder, face, kind, sign.path)
        worker.begin(SOON_S)
        pid = worker.hear(SOON_S)
        turn = view(store).turn(1).id
        until(lambda: b"once" in events_of(store, turn))
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        take_over(store, turn)
        before = store.raw("alex"), events_of(store, turn)
        sign.give()
        os.kill(pid, signal.SIGCONT)
        begun = time.monotonic()

        got, told = worker.result(SOON_S)

        assert time.monotonic() - begun < TOLD_S
        assert got == "lease-lost"
        assert told in ("turn-stopped", "cancelled")
        assert (store.raw("alex"), events_of(store, turn)) == before
    assert (store.raw("alex"), events_of(store, turn)) == before


def test_who_took_over_ends_the_turn(tmp_path):
    """What counts is what the later holder records; the first one's answer is nowhere."""
    store, sign = ledger.FolderStore(tmp_path / "s"), Sign(tmp_path / "sign")
    with children(1) as (worker,):
        worker.prepare(work, store.folder, "blocking", "plain", sign.path)
        worker.begin(SOON_S)
        pid = worker.hear(SOON_S)
        turn = view(store).turn(1).id
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        take_over(store, turn)
        now = times.to_text(SYSTEM.now())
        ended = kinds.new("ended", now, turn=turn, state="done", saw=[], attempt=2)
        store.append("alex", [{**ended, "outputs": {"result": "theirs"}, "value": "theirs"}])
        sign.give()
        os.kill(pid, signal.SIGCONT)
        assert worker.result(SOON_S)[0] == "lease-lost"

    assert states(view(store).all_turns()) == ["done"]
    assert view(store).turn(1).result == "theirs"
    assert b"more" not in store.raw("alex")


def test_who_sleeps_and_is_not_missed_goes_on(tmp_path):
    """A worker that slept for a moment, and whose turn nobody took, ends it as if nothing had been."""
    store, sign = ledger.FolderStore(tmp_path / "s"), Sign(tmp_path / "sign")
    with children(1) as (worker,):
        worker.prepare(work, store.folder, "aio", "async", sign.path)
        worker.begin(SOON_S)
        pid = worker.hear(SOON_S)
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        assert states(view(store).all_turns()) == ["running"]
        view(store).turn(1).stop()
        sign.give()
        os.kill(pid, signal.SIGCONT)
        assert worker.result(SOON_S)[0] == "turn-stopped"
    assert states(view(store).all_turns()) == ["stopped"]
