"""Checks of `wait`: it wakes when there is something, and only then."""

from __future__ import annotations

import threading
import time
from typing import Any

from ledger.testing import jobs
from ledger.testing.bench import Bench, needs, position
from ledger.testing.children import children
from ledger.testing.examples import notes, texts

_SHORT_S = 0.05


class WaitChecks(Bench):
    """Waiting for a conversation to change."""

    @needs("wait")
    def test_wait_times_out(self) -> None:
        """When nothing happens, waiting says False, and not before its time is over."""
        store = self.fresh()
        given = store.append("c", notes("a"))
        for conversation, after in (("c", given), ("c", 1), ("none", 0)):
            began = time.monotonic()
            assert store.wait(conversation, after, _SHORT_S) is False
            assert time.monotonic() - began >= _SHORT_S * 0.9

    @needs("wait")
    def test_wait_says_at_once_what_has_happened(self) -> None:
        """Where the conversation is not at the position, waiting says True without waiting."""
        store = self.fresh()
        given = store.append("c", notes("a", "b"))
        for timeout in (0, self.patience_s * 2):
            began = time.monotonic()
            for after in (0, 1, 3, 100):
                assert store.wait("c", after, timeout) is True
            assert store.wait("none", 1, timeout) is True
            assert time.monotonic() - began < self.patience_s
        assert store.wait("c", given, 0) is False
        assert store.wait("none", 0, 0) is False

    @needs("wait")
    def test_wait_wakes_for_an_append(self) -> None:
        """Who waits is woken by the append of another thread, and by none to another conversation."""
        store = self.fresh()
        store.append("c", notes("a"))
        for count in range(1, 4):
            waiting = Waiting(store, count, self.patience_s)
            store.append("other", notes("x"))
            assert not waiting.is_over(_SHORT_S)
            store.append("c", notes("b"))
            assert waiting.said() is True

    @needs("wait")
    def test_wait_wakes_everyone(self) -> None:
        """All that wait for a conversation are woken by one append."""
        store = self.fresh()
        waiting = [Waiting(store, 0, self.patience_s) for _ in range(5)]
        assert not waiting[0].is_over(_SHORT_S)
        store.append("c", notes("a"))
        assert [one.said() for one in waiting] == [True] * 5

    @needs("wait", "delete")
    def test_wait_wakes_for_a_delete(self) -> None:
        """Who waits is woken when the conversation is deleted."""
        store = self.fresh()
        given = store.append("c", notes("a"))
        waiting = Waiting(store, given, self.patience_s)
        assert not waiting.is_over(_SHORT_S)
        store.delete("c")
        assert waiting.said() is True

    @needs("wait", "delete", "incarnations")
    def test_wait_tells_incarnations_apart(self) -> None:
        """A conversation made anew with as many records is not where it was; a bare int says it is."""
        store = self.fresh()
        given = store.append("c", notes("a"))
        store.delete("c")
        store.append("c", notes("b"))
        assert store.wait("c", given, 0) is True
        assert store.wait("c", int(given), 0) is False

    @needs("wait", "reopening")
    def test_wait_wakes_for_another_store(self) -> None:
        """Who waits is woken by an append of another store at the same place."""
        store = self.fresh()
        store.append("c", notes("a"))
        other = self.again()
        waiting = Waiting(store, 1, self.patience_s)
        assert not waiting.is_over(_SHORT_S)
        other.append("c", notes("b"))
        assert waiting.said() is True

    @needs("wait", "processes")
    def test_wait_wakes_for_another_process(self) -> None:
        """Two processes that wait for each other in turn hear each other every time."""
        store = self.fresh()
        rounds = len(self.times(5))
        with children(1) as (child,):
            child.prepare(jobs.answer, type(self).open_store, self.place, rounds, self.patience_s)
            child.begin(self.patience_s)
            for number in range(rounds):
                asked = store.append("c", notes(f"ask-{number}"))
                assert store.wait("c", asked, self.patience_s) is True
                assert texts(store.read("c", asked)) == [f"answer-{number}"]
            assert child.result(self.patience_s) == "done"
        assert position(store, "c") == 2 * rounds


class Waiting:
    """A thread that waits for the conversation `c`."""

    def __init__(self, store: Any, after: int, timeout_s: float) -> None:
        self._said: list[Any] = []
        self._timeout_s = timeout_s
        begun = threading.Event()

        def wait() -> None:
            begun.set()
            self._said.append(store.wait("c", after, timeout_s * 3))

        self._thread = threading.Thread(target=wait, daemon=True)
        self._thread.start()
        begun.wait(timeout_s)

    def is_over(self, seconds: float) -> bool:
        """Say whether it came back within a time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def said(self) -> Any:
        """Return what waiting said, or that it said nothing long before its own time was over."""
        self._thread.join(self._timeout_s)
        return self._said[0] if self._said else "nothing"
