"""The keeper of running turns, in real processes: many turns at once, and programs that let no thread run."""

import ctypes
import time

import pytest

import ledger
from ledger.testing.children import children
from tests.scenarios import many
from tests.scenarios.support import FACES, SOON_S, set_to, states, view

LEASE_S = 3.0
"""A lease of 30 s, its renewal each 10 s and its margin of 5 s, all in a tenth of the time."""


def test_many_turns_in_one_process(tmp_path):
    """All turns of a process are renewed in time by a few threads, and each is stopped within a second.

    `tools/soak many` is the full size: a thousand turns, renewed each 10 s.
    """
    told = many.many(tmp_path / "s", count=300, renew_s=2.0)

    assert told.slowest_renewal_s < 10
    assert told.slowest_stop_s < 5  # A second, and what a busy machine adds.
    assert told.codes == ["turn-stopped"]
    assert told.threads < 60


def hold_the_interpreter(say, folder, face, seconds):
    """In another process: a program that lets no other thread of its process run. Returns: its answer."""

    def program(message: str) -> str:
        say("holding")
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
        say("held")
        time.sleep(LEASE_S / 2)
        return "done"

    face = FACES[face]()
    with set_to(LEASE_S=LEASE_S, RENEW_S=LEASE_S / 3, MARGIN_S=LEASE_S / 6):
        return face.do(face.open("alex", program, store=folder), "hi")


@pytest.mark.parametrize("face", list(FACES))
@pytest.mark.parametrize("share", [0.3, 1.2])
def test_a_program_that_lets_no_thread_run(tmp_path, face, share):
    """A program that keeps the interpreter for itself keeps its lease: as long as no lease runs out meanwhile,
    and beyond that, if nobody claimed the turn; then it is renewed again."""
    store = ledger.FolderStore(tmp_path / "s")
    with children(1) as (child,):
        child.prepare(hold_the_interpreter, store.folder, face, share * LEASE_S)
        child.begin(SOON_S)
        assert child.hear(SOON_S) == "holding"
        while not child.said_within(0.05):
            assert share > 1 or states(view(store).all_turns()) == ["running"]
        assert child.result(SOON_S) == "done"
    assert states(view(store).all_turns()) == ["done"]
    assert len(many.leases(store, "alex")) > 1
