"""What is known of objects that need not be hashable, such as stores that are dataclasses: by identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class ByIdentity(Generic[T]):
    """A mapping from objects to values, by which object it is; it goes with its objects."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Callable[[], Any], T]] = {}

    def get(self, thing: Any) -> T | None:
        """Return what is kept of an object, or None."""
        found = self._kept.get(id(thing))
        return found[1] if found is not None and found[0]() is thing else None

    def set(self, thing: Any, value: T) -> None:
        """Keep a value for an object, for as long as it lives."""
        key = id(thing)
        try:
            alive: Callable[[], Any] = weakref.ref(thing, lambda _: self._kept.pop(key, None))
        except TypeError:  # It cannot be referred to weakly, so it stays.

            def alive() -> Any:
                return thing

        self._kept[key] = alive, value

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
