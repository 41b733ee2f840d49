"""Leaving: a process is interrupted, or ends, while its turns run. It ends at once, and its log is in order."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import ledger
from tests.scenarios.scripts import KINDS
from tests.scenarios.support import FACES, SOON_S, asked, states, until, view

SOON_OVER_S = 10.0
"""How long a process may take to end: a second for its turn, and what a busy machine takes to end one."""


@contextmanager
def process(*arguments):
    """Run a script; whatever happens, it is gone in the end."""
    command = [sys.executable, "-m", "tests.scenarios.scripts", *map(str, arguments)]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def ended(running, begun):
    """Wait until a process ended. Returns: what it said, once it is clear that it ended in time."""
    out, err = running.communicate(timeout=SOON_S)
    assert time.monotonic() - begun < SOON_OVER_S
    assert running.returncode == 0, err
    assert "Traceback" not in err, err
    return out.split()


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("face", list(FACES))
@pytest.mark.parametrize("how", ["call", "stream"])
def test_an_interrupt_stops_the_turn(tmp_path, how, face, kind):
    """Interrupted by Ctrl-C, a process ends at once, and its turn is `stopped` with what it had said."""
    with process(how, tmp_path / "s", face, kind) as running:
        assert running.stdout.readline() == "running\n"
        begun = time.monotonic()
        running.send_signal(signal.SIGINT)
        assert ended(running, begun) == ["interrupted", "over"]

    turn = view(tmp_path / "s").turn(1)
    assert (turn.state, turn.partial) == ("stopped", "once ")


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("face", list(FACES))
def test_a_process_ends_though_its_stream_runs(tmp_path, face, kind):
    """A process that ends while a stream of its runs does end; the turn is `stopped`, or at once `interrupted`."""
    with process("left", tmp_path / "s", face, kind) as running:
        begun = time.monotonic()
        assert ended(running, begun) == ["running", "over"]

    turn = view(tmp_path / "s").turn(1)
    assert turn.state in ("stopped", "interrupted")
    assert ledger.open("alex", lambda message: message, store=tmp_path / "s")("next") == "next"


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("face", list(FACES))
def test_a_process_ends_though_its_loop_ended(face, kind):
    """So does one whose store is awaited on a loop that ended before."""
    with process("left", "-", face, kind) as running:
        assert ended(running, time.monotonic()) == ["running", "over"]


@pytest.mark.parametrize("face", list(FACES))
def test_an_interrupt_while_a_send_waits(tmp_path, face):
    """Interrupted while its send waits behind another turn, a process ends at once; nothing is recorded."""
    folder = tmp_path / "s"
    with process("call", folder, "blocking", "plain") as first:
        assert first.stdout.readline() == "running\n"
        with process("queued", folder, face, "plain") as running:
            assert running.stdout.readline() == "running\n"
            time.sleep(0.3)
            begun = time.monotonic()
            running.send_signal(signal.SIGINT)
            assert ended(running, begun) == ["interrupted", "over"]
        assert asked(view(folder).all_turns()) == ["hi"]
        view(folder).stop()
        until(lambda: states(view(folder).all_turns()) == ["stopped"])


@pytest.mark.parametrize("face", list(FACES))
def test_an_interrupt_at_any_moment(tmp_path, face):
    """Interrupted at any moment of a send, a process leaves a turn that is stopped, or none; or, where it was gone
    before it could say so, one that is `interrupted` at once. (test_interrupts.py is exact about each moment.)"""
    found = set()
    for round_ in range(5):
        folder = tmp_path / str(round_)
        with process("call", folder, face, "awaited") as running:
            until(lambda folder=folder: folder.exists(), "the first write")
            time.sleep(round_ / 1000)
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=SOON_S)
        found.update(states(view(folder).all_turns()))
    assert found <= {"stopped", "interrupted"}


def test_a_killed_process_is_seen_dead_at_once(tmp_path):
    """Killed, a process leaves a turn that is `interrupted` at once, and a queued send goes on without it."""
    with process("call", tmp_path / "s", "blocking", "plain") as running:
        assert running.stdout.readline() == "running\n"
        assert states(view(tmp_path / "s").all_turns()) == ["running"]
        running.kill()
        running.wait()

    assert states(view(tmp_path / "s").all_turns()) == ["interrupted"]
    begun = time.monotonic()
    assert ledger.open("alex", lambda message: message, store=tmp_path / "s")("next") == "next"
    assert time.monotonic() - begun < 5  # At once, not when its lease of 30 s runs out.
