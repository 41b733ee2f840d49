"""The garbage collector waits for work, and for nothing else: also after an interrupt, and in a fork's child."""

import gc
import os
import threading
from itertools import count

import pytest

from ledger import collector
from ledger.collector import MANY
from tests.interrupts import interrupted_at


@pytest.fixture(autouse=True)
def collecting():
    """A collector that is on, and as it was afterwards."""
    was = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was else gc.disable)()


def test_it_waits_for_the_work():
    """It is off while the work is done, and on again whatever comes of it."""
    assert collector.wait_for(gc.isenabled, count=MANY) is False
    assert gc.isenabled()
    assert collector.wait_for(gc.isenabled, count=MANY - 1) is True
    with pytest.raises(ZeroDivisionError):
        collector.wait_for(lambda: 1 / 0, count=MANY)
    assert gc.isenabled()


def test_where_it_is_off_it_stays_off():
    """Who has switched it off finds it so."""
    gc.disable()
    assert collector.wait_for(gc.isenabled, count=MANY) is False
    assert not gc.isenabled()


def test_an_interrupt_leaves_it_on():
    """Interrupted anywhere, it goes on collecting."""
    for nth in count():
        found = []

        def work():
            collector.wait_for(lambda: None, count=MANY)

        def go(work=work, found=found):
            gc.enable()
            try:
                work()
            finally:
                found.append(gc.isenabled())

        place = interrupted_at(nth, go)
        assert found in ([], [True]), place
        if place is None:
            break
    assert nth > 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("enabled", [True, False])
def test_a_forks_child_collects_as_its_parent_wants(enabled):
    """Forked while another thread has it wait, a child collects; where its parent switched it off, it does not."""
    begun, go_on = threading.Event(), threading.Event()

    def work():
        begun.set()
        go_on.wait(10)

    if not enabled:
        gc.disable()
    folding = threading.Thread(target=collector.wait_for, args=(work,), kwargs={"count": MANY})
    folding.start()
    begun.wait(10)
    child = os.fork()
    if not child:
        os._exit(gc.isenabled())
    go_on.set()
    folding.join()

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == enabled
    assert gc.isenabled() == enabled
