"""Threads wait for a change, and an interrupt of one harms no other."""

import threading
import time
from itertools import count

from ledger.bells import Bell
from tests.interrupts import interrupted_at

SOON_S = 20


def test_what_is_true_is_not_waited_for():
    """What is true already is given at once, as it is."""
    assert Bell().wait_for(lambda: "found") == "found"


def test_the_time_is_up():
    """What does not become true is given as it was last, when the time is up and not before."""
    begun = time.monotonic()

    assert Bell().wait_for(lambda: 0, 0.02) == 0
    assert time.monotonic() - begun >= 0.02


def test_all_who_wait_are_woken():
    """A ring has each of those who wait ask again; who finds nothing waits on."""
    bell, found, said = Bell(), [], []

    def wait(number):
        said.append(bell.wait_for(lambda: number in found, SOON_S))

    waiting = [threading.Thread(target=wait, args=(number,)) for number in (1, 2, 3)]
    for thread in waiting:
        thread.start()
    for numbers in ([1, 2], [3]):
        with bell.lock:
            found.extend(numbers)
        bell.ring()
        for number in numbers:
            waiting[number - 1].join(SOON_S)
        assert said == [True] * len(found)


def test_an_interrupt_of_one_who_waits_harms_no_other():
    """Interrupted anywhere, who waits leaves the lock free, and the bell rings on."""
    bell = Bell()
    for nth in count():
        place = interrupted_at(nth, lambda: bell.wait_for(lambda: False, 0.001))
        woken = threading.Thread(target=lambda: bell.wait_for(lambda: bell.rung, SOON_S))
        bell.rung = False
        woken.start()
        bell.rung = True
        bell.ring()
        woken.join(SOON_S)
        assert not woken.is_alive(), place
        if place is None:
            break
    assert nth > 10
