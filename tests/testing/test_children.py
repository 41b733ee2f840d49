"""Other processes, as the checks use them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from ledger.testing.children import Child, ChildFailed, Say, children, together


def tell(say: Say, *words: str) -> int:
    """Say words, and return the number of the process."""
    for word in words:
        say(word)
    return os.getpid()


def fail(say: Say) -> None:
    """Raise."""
    raise ValueError("told to")


def end(say: Say) -> None:
    """Die."""
    os._exit(3)


def wait(say: Say) -> None:
    """Say that it waits, and wait for ever."""
    say("waiting")
    os.read(os.pipe()[0], 1)


def number(say: Say, place: int, other: Any) -> tuple[int, Any, int]:
    """Return what was given, and the number of the process."""
    return place, other, os.getpid()


def test_jobs_are_done_elsewhere() -> None:
    """A job runs in another process, which is used again for the next."""
    with children(1) as (child,):
        found = []
        for _ in range(2):
            child.prepare(tell, "a", "b")
            child.begin(20)
            assert [child.hear(20), child.hear(20)] == ["a", "b"]
            found.append(child.result(20))
    assert found[0] == found[1] != os.getpid()


def test_several_do_one_job_together() -> None:
    """Each of several processes is given its number and the same arguments."""
    found = together(3, 20, number, "x")

    assert [one[:2] for one in found] == [(0, "x"), (1, "x"), (2, "x")]
    assert len({one[2] for one in found}) == 3


@pytest.mark.parametrize(("job", "said"), [(fail, "ValueError: told to"), (end, "exit code")])
def test_failures_come_back(job: Any, said: str) -> None:
    """A job that raises or dies is reported with its reason, and the next process works."""
    with children(1) as (child,):
        child.prepare(job)
        child.begin(20)
        with pytest.raises(ChildFailed, match=said):
            child.result(20)
    assert together(1, 20, number, 1)[0][:2] == (0, 1)


def test_a_job_that_takes_too_long_is_left() -> None:
    """Waiting for a job ends in time, and its process is killed and not used again."""
    with children(1) as (child,):
        child.prepare(wait)
        child.begin(20)
        assert child.hear(20) == "waiting"
        with pytest.raises(ChildFailed, match="said nothing"):
            child.result(0.01)
    assert not child.idle


def test_what_was_said_before_a_kill_is_heard() -> None:
    """What a job had said when it was killed is not lost."""
    child = Child()
    child.prepare(wait)
    child.begin(20)
    assert child.said_within(20)

    assert child.kill() == ["waiting"]
