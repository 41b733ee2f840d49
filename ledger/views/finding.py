"""What a late history looks for when it is asked: the questions to an index, and dicts that find what they lack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from ledger.records import kinds

K = TypeVar("K")
V = TypeVar("V")


class Index(Protocol):
    """What finds records that stand before a place of a log. Every answer may be None: it cannot tell."""

    def turn(self, turn: str) -> list[kinds.Recorded] | None:
        """Return what is recorded of a turn, its first record first; nothing: there is no such turn."""
        ...

    def children(self, turn: str) -> list[str] | None:
        """Return the turns that continue a turn, in log order."""
        ...

    def request(self, request_id: str) -> list[str] | None:
        """Return the turns that were sent under a request id, in log order."""
        ...

    def program(self, version: str) -> list[kinds.Program] | None:
        """Return the records of a program, the first one first."""
        ...

    def head(self) -> list[kinds.Recorded] | None:
        """Return the last turn's first record, and what moved the head since."""
        ...

    @property
    def erased(self) -> bool:
        """Whether something was erased."""
        ...

    def meeting(self, a: str, b: str) -> list[str] | None:
        """Return the nearest turn on the branches of two turns that are there; nothing: there is none."""
        ...

    def above(self, turn: str, depth: int) -> list[str] | None:
        """Return the turn of a depth (0: a root) on the branch of one that is there; nothing: it is not that deep."""
        ...

    def place(self, turn: str) -> tuple[int, int] | None:
        """Return the ordinal of a turn that is there, and how many turns stand above it."""
        ...

    def at(self, ordinal: int) -> list[str] | None:
        """Return the turn of an ordinal; nothing: there are not so many."""
        ...

    def count(self) -> int | None:
        """Return how many turns there are."""
        ...

    def kept(self, plugin: str, entry: str) -> list[kinds.Entry] | None:
        """Return the entries of a kind, in log order."""
        ...

    def noted(self, turn: str | None) -> list[kinds.Entry] | None:
        """Return the ratings and labels of a turn, or the conversation's, in log order."""
        ...


class Late(Protocol):
    """What may become whole."""

    @property
    def is_late(self) -> bool:
        """Whether it did not yet."""
        ...

    @property
    def lock(self) -> Callable[[], AbstractContextManager[Any]]:
        """Gives what is held meanwhile."""
        ...

    @property
    def complete(self) -> Callable[[Any], None]:
        """Has it become whole."""
        ...


class Known(dict[K, V]):
    """What is known by name, before a history is whole. What is asked for and not here makes it so."""

    def __init__(
        self,
        history: Late,
        name: str,
        keys: type | tuple[type, ...],
        find: Callable[[Any], list[Any] | None],
    ) -> None:
        super().__init__()
        self._history, self._name, self._keys, self._find = history, name, keys, find

    @property
    def _all(self) -> dict[K, V]:
        if self._history.is_late:
            self._history.complete(self._history)
        found: dict[K, V] = getattr(self._history, self._name)
        return found

    def __missing__(self, key: K) -> V:
        found = self._found(key)
        if found is None:
            return self._all[key]
        if not found:
            raise KeyError(key)
        return found[0]

    def _found(self, key: object) -> list[V] | None:
        """Return what has a name, found; nothing: nothing has it; None: only the whole tells."""
        with self._history.lock():
            if not self._history.is_late or not isinstance(key, self._keys):
                return None
            known: Any = key
            if super().__contains__(known):
                return [super().__getitem__(known)]
            found = self._find(known)
            if found:
                self[known] = found[0]
            return found

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        found = self._found(key)
        return key in self._all if found is None else bool(found)

    def get(self, key: K, default: Any = None) -> Any:
        """Return what has a name, or the default."""
        if super().__contains__(key):
            return self[key]
        found = self._found(key)
        if found is None:
            return self._all.get(key, default)
        return found[0] if found else default

    def __iter__(self) -> Iterator[K]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def keys(self) -> Any:
        """Return all names."""
        return self._all.keys()

    def values(self) -> Any:
        """Return all there is."""
        return self._all.values()

    def items(self) -> Any:
        """Return all there is, with names."""
        return self._all.items()
