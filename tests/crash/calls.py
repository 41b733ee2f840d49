"""The system calls of a store, counted, and something done at one of them.

Reads, writes, cuts and flushes go through the store's own `Files`; opening, locking, making, renaming
and removing are seen by an audit hook of the interpreter, which runs before the call. One process
watches one store at a time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ledger.stores.files import Files

Act = Callable[[str], None]
"""What is done at a call, by its name, before it is made; it may raise, or end the process."""

_SEEN = {
    "open": "open",
    "os.mkdir": "mkdir",
    "os.rename": "rename",
    "os.remove": "unlink",
    "os.rmdir": "rmdir",
    "os.truncate": "truncate",
    "os.listdir": "listdir",
    "os.scandir": "scandir",
    "fcntl.flock": "flock",
}
_watching: list[Calls] = []
_hooked: list[bool] = []


class Calls(Files):
    """File calls that are counted; at number `at` (the first is 1) something is done."""

    def __init__(self, folder: str, *, at: int = 0, act: Act | None = None, part: int = 0) -> None:
        self.folder = folder
        self.at = at
        self.act = act
        self.part = part
        """At a write: of how many quarters of the data are written before the act."""
        self.count = 0
        self.names: list[str] = []
        self.looking = False
        """While it looks itself, its own calls are not counted."""

    def reach(self, name: str) -> bool:
        """Count a call; at the one that is meant, act. Says whether this was the one."""
        self.count += 1
        self.names.append(name)
        if self.count != self.at or self.act is None:
            return False
        self.act(name)
        return True

    def read(self, number: int, length: int, offset: int) -> bytes:
        self.reach("read")
        return super().read(number, length, offset)

    def write(self, number: int, data: memoryview, offset: int) -> int:
        if self.count + 1 == self.at and self.part:
            super().write(number, data[: max(1, len(data) * self.part // 4)], offset)
        self.reach("write")
        return super().write(number, data, offset)

    def cut(self, number: int, size: int) -> None:
        self.reach("cut")
        super().cut(number, size)

    def flush(self, number: int) -> None:
        self.reach("flush")
        super().flush(number)

    def flush_folder(self, path: str) -> None:
        self.reach("flush_folder")
        super().flush_folder(path)


@contextmanager
def watched(calls: Calls) -> Iterator[Calls]:
    """Count what the store opens, locks, makes, renames and removes, too."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    _watching.append(calls)
    try:
        yield calls
    finally:
        _watching.remove(calls)


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _SEEN or not _watching or _watching[-1].looking:
        return
    calls = _watching[-1]
    target = arguments[0] if arguments else None
    if event != "fcntl.flock" and not (isinstance(target, str) and target.startswith(calls.folder)):
        return
    calls.reach(_SEEN[event])


def die(_name: str) -> None:
    """End this process at once, as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def failing(number: int) -> Act:
    """Return an act that fails the call with an error of the system."""

    def fail(_name: str) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def raising(error: type[BaseException]) -> Act:
    """Return an act that interrupts the call."""

    def interrupt(_name: str) -> None:
        raise error

    return interrupt


def in_child(work: Callable[[], None]) -> int:
    """Run work in a fork of this process. Returns: 0 when it ended well, else how it ended."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]
