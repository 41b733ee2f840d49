"""What must not be broken off half-way is done by another thread, while the main one waits."""

import os
import threading
from contextvars import ContextVar
from itertools import count

import pytest

from ledger.turns import apart
from tests.interrupts import interrupted_at

SOON_S = 20
NAME = ContextVar("name", default="nobody")


def test_it_is_done_by_another_thread_in_the_callers_context():
    """The main thread waits for a thread that finds what its caller's context holds, and leaves that as it was."""
    token = NAME.set("alex")

    def work():
        found = NAME.get()
        NAME.set("another")
        return found, threading.current_thread() is threading.main_thread()

    assert apart.do(work) == ("alex", False)
    assert NAME.get() == "alex"
    NAME.reset(token)


def test_what_it_raises_is_raised():
    """What the work raises, its caller raises."""
    with pytest.raises(ZeroDivisionError):
        apart.do(lambda: 1 / 0)


def test_other_threads_do_their_own_work():
    """A thread that no signal reaches does the work itself."""
    found = []
    thread = threading.Thread(target=lambda: found.append(apart.do(threading.get_ident)))
    thread.start()
    ident = thread.ident
    thread.join(SOON_S)

    assert found == [ident]


def test_where_no_thread_can_be_had_it_is_done_here(monkeypatch):
    """A process that can start no thread goes on without."""

    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(apart._threads, "workers", apart.Workers("none"))
    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert apart.do(threading.get_ident) == threading.main_thread().ident


def test_an_interrupt_breaks_off_nothing():
    """Interrupted anywhere, a caller goes on once its work is done, whole, if it was begun; some hears it in time."""
    told = 0
    for nth in count():
        done, unwanted = [], threading.Lock()

        def work(done=done, unwanted=unwanted):
            done.append(unwanted.locked())
            done.append("whole")

        def go(work=work, unwanted=unwanted):
            apart.do(work, interrupted=unwanted.acquire)

        place = interrupted_at(nth, go)
        assert done in ([], [False, "whole"], [True, "whole"]), place
        if place is None:
            break
        told += done[:1] == [True]
    assert nth > 20
    assert told


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forks_child_has_threads_of_its_own():
    """A child does not hand work to the threads of its parent, which it does not have."""
    assert apart.do(lambda: 1) == 1
    child = os.fork()
    if not child:
        os._exit(apart.do(lambda: 7))

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
