"""The interrupted turns of a store are gone on with: a log that cannot be written costs the others nothing."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ledger
from tests.scenarios.support import states

ROOT = Path(__file__).resolve().parents[2]


def answer(message: str) -> str:
    """Takes a while, when it is not killed."""
    if "DIES" in os.environ:
        os._exit(1)
    time.sleep(0.6)
    return message.upper()


def interrupted(store, name):
    """Leave a turn that a killed process was making."""
    dies = "import ledger, sys; from tests.scenarios.test_resuming_all import answer\n"
    dies += "ledger.open(sys.argv[1], answer, store=sys.argv[2])('hello')"
    env = {**os.environ, "DIES": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", dies, name, str(store)], env=env)
    assert done.returncode == 1


def test_a_conversation_that_is_locked_stops_no_other_turn(tmp_path, face):
    """When one log cannot be written, the turns of the others end done, then the error is raised."""
    for name in ("a", "b", "c"):
        interrupted(tmp_path, name)
    store = ledger.FolderStore(tmp_path, lock_timeout_s=0.2)
    resume_all = ledger.aio.resume_all if face.name == "aio" else ledger.resume_all

    with (tmp_path / "conversations" / "b.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ledger.errors.StoreBusy):
            face.begin(resume_all, store, [answer]).result(30)

    assert [states(ledger.open(n, store=tmp_path).turns) for n in "abc"] == [
        ["done"],
        ["interrupted"],
        ["done"],
    ]
    face.begin(resume_all, store, [answer]).result(30)
    assert states(ledger.open("b", store=tmp_path).turns) == ["done"]
