"""The proof that nothing is lost, as a short version of tools/soak; every claim is about real files."""

import errno

import pytest

from ledger.testing.children import together
from tests.crash import crowds, power, runs
from tests.crash.scenes import SCENES

PATIENCE_S = 240.0


def test_a_log_cut_at_any_byte_keeps_every_whole_append():
    """Cut anywhere, a log gives its whole appends, and the next append works."""
    assert runs.cuts() > 500


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_death_at_any_call_loses_nothing(scene):
    """Killed at every system call of an append, and within every write, a process loses nothing."""
    (died,) = together(1, PATIENCE_S, runs.deaths_of, scene.name)
    assert died > 20


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_an_error_at_any_call_is_told_and_survived(scene):
    """Whatever call fails, the append says yes, no or unknown truly, and the store goes on."""
    outcomes = runs.failures([scene], [errno.ENOSPC, errno.EIO, errno.EMFILE])
    assert outcomes["no"] > 20


def test_a_power_cut_at_any_moment_loses_nothing_acknowledged(tmp_path):
    """Whatever unflushed writes and names a disk keeps or tears, what was acknowledged is there."""
    assert power.power_cuts(str(tmp_path)).states > 100


def test_sixteen_processes_race_without_loss(tmp_path):
    """Each place is given once, to the one who was told so."""
    acknowledged, _ = crowds.race(str(tmp_path / "store"), processes=16, each=15)
    assert acknowledged == 240


def test_a_killed_lock_holder_delays_nobody(tmp_path):
    """The next writer goes on within a second."""
    assert crowds.holder_killed(str(tmp_path / "store")) < 4.0


def test_a_disk_that_fills_up_loses_nothing(tmp_path):
    """On a full disk appends are refused whole; with room they go on in the same process."""
    with crowds.small_disk(str(tmp_path)) as mounted:
        if mounted is None:
            assert crowds.fill_to_a_limit(str(tmp_path / "store")) > 20
        else:
            assert crowds.fill(f"{mounted}/store") > 20


def test_a_file_size_limit_is_a_full_disk(tmp_path):
    """The limit of a process is refused and survived like a full disk."""
    assert crowds.fill_to_a_limit(str(tmp_path / "store")) > 20
