"""The doctor: what a file system keeps is tried on it."""

import os

import pytest

from ledger.errors import StoreIO
from ledger.stores import doctor, files


def test_this_file_system_is_found_fit(tmp_path):
    """Locks, flushes and shared appends work here, and nothing is left behind."""
    found = doctor.examine(tmp_path / "store")

    assert [(c.what, c.detail) for c in found.checks if not c.ok] == []
    assert found.ok
    assert os.listdir(tmp_path / "store") == []


def test_locks_that_exclude_nobody_are_found(tmp_path, monkeypatch):
    """On a file system whose locks do nothing, the answer is no."""
    monkeypatch.setattr(doctor, "_TRY", "print('free')")

    found = doctor.examine(tmp_path)

    assert not found.ok
    assert "another process as well" in found.checks[0].detail


def test_a_lock_that_outlives_its_holder_is_found(tmp_path):
    """A lock that stays held after its process was killed is named."""
    survivor = (
        "import os, sys, time\n"
        "from ledger.stores import locks\n"
        "file = locks.acquire(sys.argv[1], time.monotonic() + 20, create=True)\n"
        "copy = os.dup(file.number)\n"
        "if os.fork():\n"
        "    print('held', flush=True); sys.stdin.read()\n"
        "else:\n"
        "    os.close(1); time.sleep(3)\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "_HOLD", survivor)
        found = doctor.examine(tmp_path)

    assert [c.ok for c in found.checks] == [True, False, True, True]


def test_a_failing_flush_is_found(tmp_path, monkeypatch):
    """Where a folder cannot be flushed, nothing is promised: the system's words come back."""

    def refuse(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "flush_folder", refuse)
    with pytest.raises(StoreIO, match="Input/output"):
        doctor.examine(tmp_path / "new")


def test_the_type_of_the_file_system_is_named():
    """The deepest mount point decides."""
    assert doctor.file_system("/proc/self") == "proc"
