"""What has to happen around a fork, for objects that live in this process.

A fork copies locks as they are, and in the child the threads that would free them are gone. So an
object with a lock joins here: it is told before the fork (and takes its lock, so that nothing is half
done in the copy) and after it, on both sides. Nothing is registered before the first object joins.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Member(Protocol):
    """An object that a fork concerns."""

    def before_fork(self) -> None:
        """Take what must not change while the process is copied."""

    def after_fork(self, *, child: bool) -> None:
        """Give it back; in the child, make anew what other threads may have held."""


_members: WeakSet[Member] = WeakSet()
_registered = False


class _Told(threading.local):
    """The members that this thread told of the fork it is making: two threads may fork at once."""

    def __init__(self) -> None:
        self.members: list[Member] = []


_told = _Told()


def join(member: Member) -> None:
    """Tell a member of every fork from now on, for as long as it lives."""
    global _registered
    if not _registered:
        _registered = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
            )
    _members.add(member)


def _before() -> None:
    for member in list(_members):
        member.before_fork()
        _told.members.append(member)


def _after_in_parent() -> None:
    while _told.members:
        _told.members.pop().after_fork(child=False)


def _after_in_child() -> None:
    while _told.members:
        _told.members.pop().after_fork(child=True)
