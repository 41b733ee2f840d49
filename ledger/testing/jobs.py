"""What other processes and threads do to a store, and what they look at. Without pytest: see children."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from ledger.testing.children import Say
from ledger.testing.examples import notes, texts

Opener = Callable[[Any], Any]
LONG = "x" * 20_000


def try_append(store: Any, text: str, expect: int) -> str:
    """Append one record if the count is met. Returns: `won`, or the code of the refusal."""
    try:
        found = store.append("c", notes(text), expect=expect)
    except Exception as error:
        code = str(getattr(error, "code", repr(error)))
        if code != "store-conflict":
            return code
        fits = error.expected == expect and error.found > expect  # type: ignore[attr-defined]
        return code if fits else f"{code} that says {error}"
    return "won" if found == expect + 1 else f"won, and was told {found}"


def race(say: Say, number: int, opener: Opener, place: Any, rounds: int) -> list[tuple[int, str]]:
    """Try to be the one that adds each of the first records."""
    store = opener(place)
    return [(n, try_append(store, f"{n}-{number}", n)) for n in range(rounds)]


def add_in_threads(
    say: Say, number: int, opener: Opener, place: Any, threads: int, times: int
) -> list[int]:
    """Append batches in several threads, each with a store of its own. Returns: the counts given."""
    barrier = threading.Barrier(threads)
    counts: list[int] = []
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            barrier.wait(60)
            store = opener(place)
            for i in range(times):
                counts.append(store.append("c", notes(*([f"{name}-{i}"] * (1 + i % 3)))))
            store.append(f"own-{name}", notes(name), expect=0)
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(f"{number}.{n}",)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[0]
    return counts


def write_batches(say: Say, opener: Opener, place: Any, times: int) -> int:
    """Append batches of three equal records."""
    store = opener(place)
    for i in range(times):
        store.append("c", notes(*([f"batch-{i}"] * 3)))
    return times


def follow(say: Say, opener: Opener, place: Any, expected: int) -> list[str]:
    """Read until there are as many records as expected. Returns: what did not fit."""
    reader = Reader(opener(place))
    while not reader.wrong and reader.count < expected:
        reader.look()
    return reader.wrong


def write_until_killed(say: Say, opener: Opener, place: Any, name: str) -> None:
    """Append batches of three long records for ever, saying each batch once it is acknowledged."""
    store = opener(place)
    for i in count():
        store.append("c", notes(*([f"{name}-{i}-{LONG}"] * 3)))
        say(f"{name}-{i}")


def add_and_delete(say: Say, opener: Opener, place: Any) -> bool:
    """Delete a conversation and make it anew with two records."""
    store = opener(place)
    there = store.delete("c")
    store.append("c", notes("new 1", "new 2"))
    return bool(there)


def read_all(say: Say, opener: Opener, place: Any) -> tuple[int, list[Any]]:
    """Return the position and the texts of a conversation, as another process finds them."""
    found = opener(place).read("c")
    return getattr(found, "position", len(found)), texts(found)


def answer(say: Say, opener: Opener, place: Any, rounds: int, timeout_s: float) -> str:
    """Answer each record that another process appends."""
    store = opener(place)
    after = 0
    for number in range(rounds):
        if not store.wait("c", after, timeout_s):
            return f"did not hear ask {number}"
        if texts(store.read("c", after)) != [f"ask-{number}"]:
            return f"ask {number} is something else"
        after = store.append("c", notes(f"answer-{number}"))
    return "done"


class Reader:
    """Follows a conversation of batches of three, and notes what does not fit."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._seen: list[Any] = []
        self.wrong: list[str] = []

    @property
    def count(self) -> int:
        """How many records were seen."""
        return len(self._seen)

    def look(self) -> None:
        """Read all, and what is new since then."""
        whole = self._store.read("c")
        if texts(whole)[: len(self._seen)] != self._seen:
            self.wrong.append("records that were read are others now")
        rest = self._store.read("c", len(whole))
        self._seen = texts(whole) + texts(rest)
        for found in (whole, rest):
            parts = texts(found)
            if any(
                len(set(parts[i : i + 3])) != 1 or len(parts) % 3 for i in range(0, len(parts), 3)
            ):
                self.wrong.append(f"part of a batch, in {len(found)} records")
        if [one["seq"] for one in [*whole, *rest]] != list(range(1, len(self._seen) + 1)):
            self.wrong.append("places that are not 1, 2, 3 ...")


def runs(found: Iterable[Any]) -> Counter[tuple[Any, int]]:
    """Count runs of equal values by value and length: a batch that was split is two runs."""
    kept: list[tuple[Any, int]] = []
    for value in found:
        if kept and kept[-1][0] == value:
            kept[-1] = (value, kept[-1][1] + 1)
        else:
            kept.append((value, 1))
    return Counter(kept)
