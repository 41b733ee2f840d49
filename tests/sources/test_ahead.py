"""What is written while the next is read: in order, few at once, and nothing left under way."""

import threading
from collections.abc import Sequence
from functools import partial

import pytest

from ledger.sources import ahead
from ledger.sources.ahead import Job, in_order

WAIT_S = 30


def noted(done: list[int], number: int) -> int:
    """A job: what it is, noted when it is done."""
    done.append(number)
    return number


def test_what_came_of_jobs_is_in_their_order():
    """A job that is done before an earlier one is handed out after it."""
    second_is_done = threading.Event()

    def first() -> str:
        assert second_is_done.wait(WAIT_S)
        return "first"

    def second() -> str:
        second_is_done.set()
        return "second"

    assert list(in_order([Job("a", 1, first), Job("b", 1, second)])) == ["first", "second"]


@pytest.mark.parametrize(
    ("jobs", "most"),
    [
        ([("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)], ahead.MOST),
        ([("a", ahead.MOST_BYTES + 1), ("b", 1)], 1),
        ([("a", 1), ("b", ahead.MOST_BYTES), ("c", 1)], 2),
        ([("a", 1), ("a", 1), ("a", 1)], 1),
    ],
    ids=[
        "no more than so many",
        "a large one is alone",
        "so many bytes together",
        "one name, one at a time",
    ],
)
def test_few_are_under_way_at_once(jobs, most):
    """What is read ahead is bounded, in number and in bytes; two of one name are never at work together."""
    begun: list[int] = []
    given: list[int] = []
    read_ahead = 0

    def read():
        nonlocal read_ahead
        for number, (name, size) in enumerate(jobs):
            yield Job(name, size, partial(noted, begun, number))
            read_ahead = max(read_ahead, number + 1 - len(given))

    for number in in_order(read()):
        assert all(earlier in begun for earlier in range(number))
        given.append(number)

    assert given == list(range(len(jobs)))
    assert read_ahead <= most


def test_a_large_one_is_done_by_the_caller_alone():
    """What was begun before a large job is over when that begins, in the caller's thread."""
    small_is_done = threading.Event()

    def large() -> tuple[bool, threading.Thread]:
        return small_is_done.is_set(), threading.current_thread()

    found = list(in_order([Job("a", 1, small_is_done.set), Job("b", ahead.MOST_BYTES + 1, large)]))

    assert found[1] == (True, threading.current_thread())


class Clock:
    """Clocks that stand still, but for what a job says."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0

    def perf_counter(self) -> float:
        return self.now

    monotonic = perf_counter

    def thread_time(self) -> float:
        return self.worked


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The clocks that are asked how long a job took."""
    found = Clock()
    monkeypatch.setattr(ahead, "time", found)
    return found


LESS, MORE = ahead.LITTLE - 0.25, ahead.LITTLE + 0.25
"""For how long jobs may wait that work for 1 s, and for how long not."""


def by_the_caller(clock: Clock, waits_s: Sequence[float]) -> list[int]:
    """Do jobs that work for 1 s, and wait for some time. Returns: which were done by the caller."""
    caller = threading.current_thread()

    def job(wait_s: float) -> bool:
        mine = threading.current_thread() is caller
        if mine:
            clock.worked += 1.0
            clock.now += 1.0 + wait_s
        return mine

    found = in_order(Job(str(n), 1, partial(job, wait_s)) for n, wait_s in enumerate(waits_s))
    return [number for number, mine in enumerate(found) if mine]


def test_jobs_that_wait_for_little_are_done_by_the_caller(clock):
    """Some are done in threads at first; then one is timed, and the others are done as it was."""
    first = ahead.AT_FIRST

    assert by_the_caller(clock, [LESS] * (first + 20)) == list(range(first, first + 20))


def test_one_job_that_waits_for_longer_changes_little(clock):
    """It uses up what was spared; only the second has some that follow done in threads."""
    first = ahead.AT_FIRST
    longer = ahead.LITTLE + ahead.SPARE_S * 0.75
    waits_s = [LESS] * (first + 3) + [longer] + [LESS] * 3 + [longer, longer] + [LESS] * 20
    timed = [*range(first, first + 9), *range(2 * first + 9, first + 29)]

    assert by_the_caller(clock, waits_s) == timed


def test_jobs_that_wait_for_long_are_done_in_threads(clock):
    """One is timed now and then, each time after twice as many, up to some number."""
    timed, at, pause = [], ahead.AT_FIRST, ahead.AT_FIRST
    while pause < 4 * ahead.AT_LAST:
        timed.append(at)
        at += 1 + min(pause, ahead.AT_LAST)
        pause *= 2

    assert by_the_caller(clock, [MORE] * at) == timed


def test_what_was_begun_is_over_when_a_job_is_timed(clock):
    """It waits for the disk alone, not for others that work."""
    done: list[int] = []
    jobs = [Job(str(number), 1, partial(noted, done, number)) for number in range(ahead.AT_FIRST)]
    timed = Job("timed", 1, lambda: len(done))

    assert list(in_order([*jobs, timed]))[-1] == ahead.AT_FIRST


def test_two_of_one_name_are_done_one_after_the_other():
    """The second begins when the first is over."""
    done: list[int] = []
    jobs = [Job("a", 1, partial(noted, done, number)) for number in range(3)]

    assert list(in_order(jobs)) == [0, 1, 2]
    assert done == [0, 1, 2]


def test_an_error_comes_in_its_place_and_nothing_stays_under_way():
    """Those before it are handed out; those that were begun are over when it is raised."""
    may_end, ended = threading.Event(), threading.Event()

    def fail() -> str:
        may_end.set()
        raise OSError("no disk")

    def slow() -> str:
        assert may_end.wait(WAIT_S)
        ended.set()
        return "slow"

    found = in_order([Job("a", 1, lambda: "a"), Job("b", 1, fail), Job("c", 1, slow)])

    assert next(found) == "a"
    with pytest.raises(OSError, match="no disk"):
        next(found)
    assert ended.is_set()


def test_who_stops_asking_leaves_nothing_under_way():
    """A consumer that goes away waits for what was begun."""
    ended = threading.Event()
    found = in_order([Job("a", 1, lambda: "a"), Job("b", 1, ended.set), Job("c", 1, lambda: "c")])
    next(found)

    found.close()

    assert ended.is_set()
