"""What running turns say is written in passes. No thread, no clock: the test does what is to be done later."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from ledger.turns.passes import JOIN_S, SHARE, Passes


class Clock:
    """Jobs that are done later when the test says so, and how long this thread has worked."""

    def __init__(self) -> None:
        self.worked_s = 0.0
        self.jobs: list[tuple[float, Callable[[], Any], Hashable]] = []
        self.passes = Passes(self.later, lambda: self.worked_s)

    def later(self, delay_s: float, job: Callable[[], Any], lane: Hashable) -> None:
        """Note a job."""
        self.jobs.append((delay_s, job, lane))

    def go_on(self) -> float:
        """Do the only job that is noted. Returns: after how many seconds it was to be done."""
        [(delay_s, job, _)] = self.jobs
        self.jobs.clear()
        job()
        return delay_s

    def work(self, seconds: float) -> Callable[[], None]:
        """Return a write that takes some seconds."""

        def write() -> None:
            self.worked_s += seconds

        return write


def test_all_that_is_due_is_written_by_one_job():
    """A hundred turns that have something to write cost one job, 50 ms after the first; then there is none."""
    clock, written = Clock(), []
    for number in range(100):
        clock.passes.soon(lambda number=number: written.append(number), "here")

    assert clock.go_on() == JOIN_S
    assert written == list(range(100))
    assert clock.jobs == []


def test_what_comes_during_a_pass_is_written_by_the_next():
    """A turn that speaks while a pass is under way is written 50 ms after it."""
    clock, written = Clock(), []

    def write() -> None:
        written.append("first")
        clock.passes.soon(lambda: written.append("second"), "here")

    clock.passes.soon(write, "here")
    clock.go_on()
    assert written == ["first"]
    assert clock.go_on() == JOIN_S
    assert written == ["first", "second"]
    assert clock.jobs == []


def test_passes_take_a_share_of_a_core():
    """However much is to be written, passes and the pauses after them are one to seven."""
    clock = Clock()
    paused_s = 0.0
    for _ in range(20):
        clock.passes.soon(clock.work(0.3), "here")
        clock.passes.soon(clock.work(0.1), "here")
        paused_s += clock.go_on()
    paused_s += clock.go_on()

    assert abs(clock.worked_s / (clock.worked_s + paused_s) - SHARE) < 0.001
    assert clock.jobs == []


def test_a_write_that_fails_holds_back_no_other():
    """What one raises is dropped, and the rest of the pass is written."""
    clock, written = Clock(), []
    clock.passes.soon(lambda: 1 // 0, "here")
    clock.passes.soon(lambda: written.append("other"), "here")
    clock.go_on()
    assert written == ["other"]


def test_an_interrupt_leaves_no_lane_without_a_pass():
    """A lane in which `soon` was interrupted, wherever that was, is written when there is something again."""
    clock, written = Clock(), []

    def interrupted(before: bool) -> Callable[..., None]:
        def later(delay_s: float, job: Callable[[], Any], lane: Hashable) -> None:
            if not before:
                clock.later(delay_s, job, lane)
            raise KeyboardInterrupt

        return later

    for before in (True, False):
        clock.passes._later = interrupted(before)
        with pytest.raises(KeyboardInterrupt):
            clock.passes.soon(lambda: written.append("never"), "here")
        clock.passes._later = clock.later
        clock.passes.soon(lambda: written.append("said"), "here")
        for _, job, _ in list(clock.jobs):
            job()
        clock.jobs.clear()

    assert written == ["said", "said"]


def test_lanes_do_not_wait_for_each_other():
    """Each lane has passes of its own."""
    clock = Clock()
    clock.passes.soon(clock.work(1), "one")
    clock.passes.soon(clock.work(1), "other")
    assert [lane for _, _, lane in clock.jobs] == ["one", "other"]
