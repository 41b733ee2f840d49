"""The real world: a clock that nobody sets, and the boot of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID

import pytest

from ledger.turns import world

BOOTTIME = getattr(time, "CLOCK_BOOTTIME", -1)


def test_the_monotonic_clock_goes_forward():
    """It never goes back."""
    seen = [world.SYSTEM.monotonic() for _ in range(1000)]

    assert seen == sorted(seen)


@pytest.mark.skipif(BOOTTIME == -1, reason="this system has no such clock")
def test_the_monotonic_clock_counts_sleep():
    """It is the clock that goes on while the machine is suspended."""
    before = time.clock_gettime(BOOTTIME)

    assert before <= world.SYSTEM.monotonic() <= time.clock_gettime(BOOTTIME)


@pytest.mark.skipif(not os.path.exists(world.BOOT_ID), reason="only Linux has a boot id")
def test_the_boot_is_the_kernels():
    """Every process of a machine names the same boot, as the kernel tells it."""
    found = world.SYSTEM.boot()
    other = subprocess.run(
        [sys.executable, "-c", "from ledger.turns.world import SYSTEM; print(SYSTEM.boot())"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )

    assert str(UUID(found)) == found == other.stdout.strip()


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe"])
def test_no_boot_id(tmp_path, content):
    """Where the kernel tells none, or nothing that can be read, there is none."""
    path = tmp_path / "boot_id"
    if content is not None:
        path.write_bytes(content)

    assert world._boot(str(path)) is None
