"""Every lock that a module or a class of the package holds is free in a fork's child, whoever held it in its parent."""

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ledger

LOCKS = (type(threading.Lock()), type(threading.RLock()))
DEPTH = 4
"""How far from a module's name it is looked for locks."""


def modules() -> Iterator[Any]:
    """Every module of the package."""
    for found in pkgutil.walk_packages(ledger.__path__, "ledger."):
        if not found.name.endswith("__main__"):
            with suppress(ImportError):  # It wants a package that need not be there.
                yield importlib.import_module(found.name)


def locks_in(
    value: Any, name: str, seen: dict[int, Any], depth: int = DEPTH
) -> Iterator[tuple[str, Any]]:
    """The locks in what a module or class names, in objects of the package and in what holds them."""
    if isinstance(value, LOCKS):
        yield name, value
        return
    if id(value) in seen or not depth:
        return
    seen[id(value)] = value  # Kept, so that no other gets its number.
    if isinstance(value, dict):
        inside = [(f"{name}[{key!r}]", each) for key, each in list(value.items())]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = [(f"{name}[{at}]", each) for at, each in enumerate(list(value))]
    else:
        is_ours = (value if inspect.isclass(value) else type(value)).__module__.startswith("ledger")
        inside = (
            [(f"{name}.{key}", each) for key, each in list(vars(value).items())]
            if is_ours and hasattr(value, "__dict__")
            else []
        )
    for where, each in inside:
        yield from locks_in(each, where, seen, depth - 1)


def all_locks() -> dict[str, Any]:
    """Every lock that can be reached from a module of the package, by where it is."""
    seen: dict[int, Any] = {}
    return {
        where: lock
        for module in modules()
        for name, value in list(vars(module).items())
        for where, lock in locks_in(value, f"{module.__name__}.{name}", seen)
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_gets_free_locks():
    """Forked while another thread holds every one of them, a child can take each."""
    # In a process of its own: what other tests left running has locks that are made anew when they are needed.
    code = "from tests.test_forking import taken_in_a_child; print(*taken_in_a_child())"
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert (done.stdout.split(), done.returncode) == ([], 0), done.stderr


def taken_in_a_child() -> list[str]:
    """Hold every lock in a thread, fork, and return which ones a child cannot take."""
    held, free = threading.Event(), threading.Event()
    locks = all_locks()
    assert {name.rpartition(".")[0] for name in locks} >= {"ledger.turns.queueing"}

    def hold() -> None:
        taken = [lock for lock in locks.values() if lock.acquire(timeout=5)]
        held.set()
        free.wait(10)
        for lock in taken:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        taken = [name for name, lock in all_locks().items() if not lock.acquire(blocking=False)]
        os.write(theirs, "\n".join(taken).encode())
        os._exit(0)
    free.set()
    thread.join()
    os.close(theirs)
    with os.fdopen(ours) as said:
        found = said.read().split()
    os.waitpid(child, 0)
    return found
