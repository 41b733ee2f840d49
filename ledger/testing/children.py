"""Other processes for checks: fresh interpreters that open the same place and do as they are told.

A child is started anew (nothing is inherited but the import path), and serves one job after another:
a job is a module-level function of this library or of the tester, with what opens the store. It says
that it is ready before it starts, so that several can start together; what it says meanwhile arrives
at once, so that it can be killed at a moment of the parent's choosing. A child ends when its parent
does. This module imports neither pytest nor hypothesis: children start sooner.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

_BOOT = (
    "import pickle, sys; sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[2])); "
    "from ledger.testing.children import serve; serve(int(sys.argv[1]))"
)

Say = Callable[[Any], None]
"""What a job is given to tell its parent something while it runs."""


class ChildFailed(AssertionError):
    """Raised when a job in another process raised, died or took too long. Next: read what it says."""


class Child:
    """Another process, which does one job at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        number = theirs.fileno()
        paths = pickle.dumps([os.path.abspath(path) for path in sys.path])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(number), paths.hex()],
                stdin=subprocess.DEVNULL,
                pass_fds=(number,),
            )
        self._idle = True

    @property
    def idle(self) -> bool:
        """Whether it can be given a job."""
        return self._idle and self._process.poll() is None

    def prepare(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Hand over a job; it begins when told to. The first argument of the job is `Say`."""
        self._idle = False
        self._connection.send_bytes(pickle.dumps((job, arguments)))

    def begin(self, timeout_s: float) -> None:
        """Let the job that was handed over begin."""
        self.hear(timeout_s)
        self._connection.send("begin")

    def hear(self, timeout_s: float) -> Any:
        """Return the next thing that the job says. Raises: ChildFailed."""
        ended, said = self._next(timeout_s)
        if ended:
            raise ChildFailed("the job ended, and was to say something")
        return said

    def result(self, timeout_s: float) -> Any:
        """Return what the job returned; what it said before is dropped. Raises: ChildFailed."""
        while True:
            ended, said = self._next(timeout_s)
            if ended:
                self._idle = True
                return said

    def said_within(self, seconds: float) -> bool:
        """Wait for the job to say something, no longer than this. Returns: whether it did."""
        return self._connection.poll(seconds)

    def _next(self, timeout_s: float) -> tuple[bool, Any]:
        try:
            if not self._connection.poll(timeout_s):
                raise ChildFailed(f"another process said nothing for {timeout_s:g} s")
            what, said = self._connection.recv()
        except (EOFError, OSError) as error:
            raise ChildFailed(f"another process died, exit code {self._process.poll()}") from error
        if what == "raised":
            self._idle = True
            raise ChildFailed(f"in another process:\n{said}")
        return what == "returned", said

    def kill(self) -> list[Any]:
        """End it now, whatever it does. Returns: what it had said that was not heard yet."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        heard = []
        try:
            while self._connection.poll(0):
                heard.append(self._connection.recv()[1])
        except (EOFError, OSError, pickle.UnpicklingError):
            pass
        self._connection.close()
        return heard


_waiting: list[Child] = []


@contextmanager
def children(count: int) -> Iterator[list[Child]]:
    """Lend some processes that wait for jobs; those still busy in the end are killed."""
    with ExitStack() as stack:
        lent: list[Child] = []
        stack.callback(_take_back, lent)
        while len(lent) < count:
            lent.append(_waiting.pop() if _waiting else Child())
        yield lent


def _take_back(lent: list[Child]) -> None:
    for child in lent:
        if child.idle:
            _waiting.append(child)
        else:
            _kill(child)


def _kill(child: Child) -> None:
    with suppress(OSError):  # It was killed by the check, and its connection is closed.
        child.kill()


@atexit.register
def _end() -> None:
    while _waiting:
        _kill(_waiting.pop())


def together(count: int, timeout_s: float, job: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Do a job in several processes that begin at once. Returns: what each returned.

    Args: arguments: what each is given after `Say`; the job is also given its number, first.
    Raises: ChildFailed.
    """
    with children(count) as lent:
        for number, child in enumerate(lent):
            child.prepare(job, number, *arguments)
        for child in lent:
            child.begin(timeout_s)
        return [child.result(timeout_s) for child in lent]


# -- in the child ----------------------------------------------------------------------------------


def serve(number: int) -> None:
    """Do jobs until the parent is gone."""
    connection = Connection(number)

    def say(what: Any) -> None:
        connection.send(("said", what))

    while True:
        try:
            _do_one(connection, say)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _do_one(connection: Connection, say: Say) -> None:
    given = connection.recv_bytes()
    try:
        job, arguments = pickle.loads(given)
        say("ready")
        connection.recv()
        connection.send(("returned", job(say, *arguments)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except BaseException:
        connection.send(("raised", traceback.format_exc()))
