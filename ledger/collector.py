"""The garbage collector waits while much is made that holds no garbage: it would look at all of it again and again.

Whether it waits holds for the whole process. So whatever ends the work, and wherever an interrupt comes, it goes on;
and so it does in a fork's child, where the thread whose work it waited for is not there.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MANY = 4096
"""From so many objects on it waits until they are made."""

_waits_for: dict[object, None] = {}
"""The work for which it was told to wait, of all threads."""


def wait_for(work: Callable[[], T], *, count: int) -> T:
    """Do work, and have the garbage collector wait meanwhile. Where it is off, it stays so.

    Args: count: how many objects will be made, about; for few it does not wait.
    """
    if count < MANY or not gc.isenabled():
        return work()
    this, ours = object(), _waits_for
    # All in one function, and no call between the end of the work and the last line: an interrupt could come there.
    try:
        ours[this] = None
        gc.disable()
        return work()
    finally:
        del ours[this]
        gc.enable()


def _go_on() -> None:
    """In a fork's child, where it may wait for a thread of the parent's, have it go on."""
    global _waits_for
    if _waits_for:
        _waits_for = {}
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_go_on)
