"""Checks of several threads, and of a fork: one winner, nothing lost, whole batches."""

from __future__ import annotations

import os
import select
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ledger.testing.bench import Bench, needs, restless
from ledger.testing.examples import notes, texts
from ledger.testing.jobs import Reader, runs, try_append

THREADS = 8


class ThreadChecks(Bench):
    """What holds when threads share a store, or a place."""

    def test_threads_have_one_winner_per_expect(self) -> None:
        """Of threads that expect the same count, one adds its record and all others conflict."""
        store = self.fresh()
        rounds = self.times(30)
        barrier = threading.Barrier(THREADS)
        outcomes: list[tuple[int, str]] = []

        def race(name: int) -> None:
            for count in rounds:
                barrier.wait(self.patience_s)
                outcomes.append((count, try_append(store, f"{count}-{name}", count)))

        self.in_threads(race)
        assert Counter(outcomes) == Counter(
            {
                **{(count, "won"): 1 for count in rounds},
                **{(count, "store-conflict"): THREADS - 1 for count in rounds},
            }
        )
        found = texts(store.read("c"))
        assert [text.split("-")[0] for text in found] == [str(count) for count in rounds]

    def test_threads_lose_nothing(self) -> None:
        """Without `expect`, all that threads append at once is there once, each batch together."""
        store = self.fresh()
        times = self.times(12)
        counts: list[int] = []

        def work(name: int) -> None:
            for i in times:
                counts.append(store.append("c", notes(*([f"{name}-{i}"] * (1 + i % 3)))))

        self.in_threads(work)
        found = texts(store.read("c"))
        assert runs(found) == Counter(
            {(f"{name}-{i}", 1 + i % 3): 1 for name in range(THREADS) for i in times}
        )
        assert max(counts) == len(found)
        assert len(set(counts)) == len(counts)
        assert [record["seq"] for record in store.read("c")] == list(range(1, len(found) + 1))

    def test_threads_are_the_first_users(self) -> None:
        """A place nobody has used takes the first appends of many threads, to one and to many."""
        for _ in self.times(5):
            store = self.fresh()
            self._begin_in_threads(lambda store=store: store)  # type: ignore[misc]
            self._look_at_beginnings(store)

    @needs("reopening")
    def test_threads_open_a_place_at_once(self) -> None:
        """The same for threads of which each opens a store of its own at that place."""
        for _ in self.times(5):
            self.move()
            self._begin_in_threads(self.again)
            self._look_at_beginnings(self.again())

    def _begin_in_threads(self, store: Callable[[], Any]) -> None:
        def begin(name: int) -> None:
            one = store()
            one.append("c", notes(name))
            one.append(f"own-{name}", notes(name), expect=0)
            assert name in texts(one.read("c"))

        self.in_threads(begin)

    def _look_at_beginnings(self, store: Any) -> None:
        assert sorted(texts(store.read("c"))) == list(range(THREADS))
        for name in range(THREADS):
            assert texts(store.read(f"own-{name}")) == [name]

    def test_readers_see_whole_batches(self) -> None:
        """Reading while others append gives whole batches, and what was read before goes on."""
        store = self.fresh()
        done = threading.Event()
        wrong: list[str] = []

        def read(name: int) -> None:
            reader = Reader(store if name or self.is_lacking("reopening") else self.again())
            while not done.is_set():
                reader.look()
            reader.look()
            wrong.extend(reader.wrong)

        def write(name: int) -> None:
            try:
                for i in self.times(40):
                    store.append("c", notes(*([f"{name}-{i}"] * 3)))
            finally:
                done.set()

        self.in_threads(write, read, read)
        assert wrong == []
        assert len(store.read("c")) == 3 * len(self.times(40))

    def in_threads(self, work: Callable[[int], None], *others: Callable[[int], None]) -> None:
        """Do work in threads that begin at once, and fail with what any of them raised.

        Args: work: done by THREADS threads, each with its number; with others: by one, and each
        of the others by one.
        """
        jobs = [(work, name) for name in range(1 if others else THREADS)]
        jobs += [(other, name) for name, other in enumerate(others)]
        barrier = threading.Barrier(len(jobs))
        failed: list[BaseException] = []

        def run(job: Callable[[int], None], name: int) -> None:
            try:
                barrier.wait(self.patience_s)
                job(name)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=run, args=job, daemon=True) for job in jobs]
        with restless():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(self.patience_s * 3)
        assert not any(thread.is_alive() for thread in threads), "a thread never came back"
        for error in failed:
            if not isinstance(error, threading.BrokenBarrierError):
                raise error
        assert not failed

    @needs("forking")
    def test_both_sides_of_a_fork_go_on(self) -> None:
        """A process forked while its threads append can use the store, and so can its parent."""
        if not hasattr(os, "fork"):
            pytest.skip("this system does not fork")
        store = self.fresh()
        store.append("c", notes("before"))
        done = threading.Event()

        def write() -> None:
            while not done.is_set():
                store.append("busy", notes("a"))

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        try:
            for number in self.times(5):
                said = _in_fork(lambda number=number: _use(store, number), self.patience_s)  # type: ignore[misc]
                assert said == "fine"
                assert store.append("c", notes("parent")) >= number + 2
        finally:
            done.set()
            writer.join(self.patience_s)
        assert not writer.is_alive()
        expected = {"parent": len(self.times(5)), "before": 1}
        if not self.is_lacking("processes"):
            expected |= {f"child-{number}": 1 for number in self.times(5)}
        assert Counter(texts(store.read("c"))) == expected


def _use(store: Any, number: int) -> str:
    """Use a store in the child of a fork. Returns: `fine`, or what is not."""
    before = store.read("c")
    if texts(before)[0] != "before":
        return "the records from before the fork are not there"
    count = store.append("c", notes(f"child-{number}"))
    if texts(store.read("c", count - 1))[:1] != [f"child-{number}"]:
        return "what was appended after the fork is not there"
    store.append("busy", notes("child"))
    return "fine"


def _in_fork(work: Callable[[], str], timeout_s: float) -> str:
    """Do work in a fork of this process; returns what it returned, or how it failed."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Threads are the point here.
        child = os.fork()
    if not child:
        try:
            try:
                said = work()
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            os.write(theirs, said.encode())
        finally:
            os._exit(0)
    os.close(theirs)
    try:
        if not select.select([ours], [], [], timeout_s)[0]:
            return f"nothing for {timeout_s:g} s: it waits for what no thread will free"
        return os.read(ours, 4096).decode()
    finally:
        os.close(ours)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
