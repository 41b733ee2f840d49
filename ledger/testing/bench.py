"""What every check stands on: the hooks of the store under test, and what it says that it lacks.

A subclass of the suite fills in the hooks and may add tests of its own; everything else of the suite
is final, so that no check can be dropped or bent. What a store cannot do it declares in `lacks`, by
the names in ABILITIES and with the reason; the checks that need it are then reported as skipped, with
that reason. A declaration that is not true fails.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import pytest

ABILITIES: Final[dict[str, str]] = {
    "reopening": "a store opened at the place of another holds what that one held",
    "processes": "several processes use one place at once",
    "forking": "a process that uses the store can be forked, and both sides go on",
    "incarnations": "positions tell a conversation from one made anew under its id",
    "scan": "scan() returns what read() returns, as Structs",
    "wait": "wait() blocks until a conversation has changed",
    "delete": "delete() removes a conversation",
    "conversations": "conversations() lists what holds a record",
    "raw": "the hooks read_bytes and write_bytes reach the bytes of a log, one record a line",
    "tearing": "those bytes can end anywhere, as after a crash",
    "seals": "those bytes are the sealed lines of the format, and are checked when read",
    "copying": "raw() copies a log out whole, adopt() puts one in",
    "verify": "verify() checks every line of a log, damage() lists what is damaged",
    "erase": "erase() takes out what a turn says",
    "blobs": "blobs keeps attachments",
}
"""What a store may lack, by name. What is not here, every store can do."""

_IMPLIED = {
    "processes": ["reopening"],
    "tearing": ["raw"],
    "seals": ["raw"],
    "copying": ["seals"],
    "verify": ["seals"],
    "erase": ["seals"],
}
HOOKS: Final = frozenset(
    {
        *("lacks", "make_place", "open_store", "close_store", "read_bytes", "write_bytes"),
        *("effort", "patience_s"),
    }
)
"""What a subclass may define anew."""

C = TypeVar("C", bound=Callable[..., Any])


def needs(*abilities: str) -> Callable[[C], C]:
    """Mark a check that is skipped, with the reason given, for a store that lacks one of these."""

    def mark(check: C) -> C:
        assert set(abilities) <= set(ABILITIES)
        check.needs = abilities  # type: ignore[attr-defined]
        return check

    return mark


class Refused:
    """What `refused` caught."""

    error: Any


@contextmanager
def refused(code: str) -> Iterator[Refused]:
    """Fail unless what is inside raises an error with this `code`, of whatever class."""
    caught = Refused()
    try:
        yield caught
    except Exception as error:
        found = getattr(error, "code", None)
        if found != code:
            raise AssertionError(
                f"{code} was to be raised, not {type(error).__name__} (code {found!r}): {error}"
            ) from error
        caught.error = error
    else:
        raise AssertionError(f"{code} was to be raised, and nothing was")


class Bench:
    """The hooks of a store under test, and what the checks use of them."""

    # -- hooks: a subclass says here what its store is

    lacks: ClassVar[Mapping[str, str]] = {}
    """What the store cannot do, by the names in ABILITIES, each with the reason."""

    effort: ClassVar[float] = 1.0
    """How much the checks that try many times do; 1 is for every run, 20 for a soak."""

    patience_s: ClassVar[float] = 20.0
    """After how long what should have happened is taken not to happen."""

    def make_place(self, folder: Path) -> Any:
        """Return a new empty place for a store: a value that pickles, for `open_store`.

        Args: folder: an empty folder of its own, to be used or not.
        """
        raise NotImplementedError("make_place(folder) returns where a new, empty store is to be")

    @staticmethod
    def open_store(place: Any) -> Any:
        """Return a store at a place. Other processes call it too, so it must be importable."""
        raise NotImplementedError("open_store(place) opens a store")

    def close_store(self, store: Any) -> None:
        """Free what a store holds; by default its `close`, if it has one."""
        close = getattr(store, "close", None)
        if close is not None:
            close()

    def read_bytes(self, store: Any, conversation: str) -> bytes:
        """Return the bytes of a log, not through the store; none when there is no log."""
        raise NotImplementedError("read_bytes returns a log's bytes; or lacks names `raw`")

    def write_bytes(self, store: Any, conversation: str, data: bytes) -> None:
        """Put bytes in the place of a log's, not through the store."""
        raise NotImplementedError("write_bytes replaces a log's bytes; or lacks names `raw`")

    # -- for the checks

    _shrinks = True
    """Whether random steps that fail are made short before they are shown, which takes a while."""

    @pytest.fixture(autouse=True)
    def _on_the_bench(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
        with self._doing(request.function, tmp_path):
            yield

    @contextmanager
    def _doing(self, check: Callable[..., Any], folder: Path) -> Iterator[None]:
        """Have all that a check needs while it runs; skip it when the store lacks something."""
        refuse_changes(type(self))
        for ability in getattr(check, "needs", ()):
            why = self.why_lacking(ability)
            if why is not None:
                pytest.skip(f"this store lacks {why}")
        self._folder = folder
        self._places = 0
        self._place: Any = None
        with ExitStack() as self._stack:
            yield

    @classmethod
    def why_lacking(cls, ability: str) -> str | None:
        """Return what is declared to lack, and why, so that this ability is lacking; else None."""
        if ability in cls.lacks:
            return f"{ability}: {cls.lacks[ability]}"
        reasons = map(cls.why_lacking, _IMPLIED.get(ability, ()))
        return next((why for why in reasons if why is not None), None)

    @classmethod
    def is_lacking(cls, ability: str) -> bool:
        """Say whether the store lacks an ability, by its own word or as a consequence of it."""
        return cls.why_lacking(ability) is not None

    @property
    def place(self) -> Any:
        """Where the store opened last is."""
        return self._place

    def fresh(self) -> Any:
        """Open a store at a new place."""
        self.move()
        return self.again()

    def move(self) -> Any:
        """Make a new place, where no store was opened yet, and return it."""
        self._places += 1
        folder = self._folder / f"place-{self._places}"
        folder.mkdir()
        self._place = self.make_place(folder)
        return self._place

    def again(self) -> Any:
        """Open another store at the same place."""
        store = type(self).open_store(self._place)
        self._stack.callback(self.close_store, store)
        return store

    def times(self, count: int) -> range:
        """Return the numbers from 0 on, as many as the effort asks for; at least one."""
        return range(max(1, round(count * self.effort)))


def position(store: Any, conversation: str) -> int:
    """Return the position of the end."""
    found = store.read(conversation)
    return getattr(found, "position", len(found))


@contextmanager
def restless() -> Iterator[None]:
    """Let threads take turns as often as can be, so that races happen."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def refuse_changes(suite: type[Bench]) -> None:
    """Raise TypeError unless a suite is whole: nothing but hooks defined anew, `lacks` in order."""
    if not __debug__:
        raise TypeError("python -O takes the checks out of the suite; run it without")
    for base in suite.__mro__:
        if not base.__module__.startswith("ledger.testing."):
            continue
        for name, value in vars(base).items():
            if name.startswith("__") or name in HOOKS:
                continue
            with suppress(AttributeError):
                if inspect.getattr_static(suite, name) is value:
                    continue
            raise TypeError(
                f"{suite.__name__} changes {name}, and the suite is whole or nothing; a subclass "
                f"defines {', '.join(sorted(HOOKS))}, and tests of its own under other names"
            )
    unknown = sorted(set(suite.lacks) - set(ABILITIES))
    silent = sorted(name for name, why in suite.lacks.items() if not str(why or "").strip())
    if unknown or silent:
        raise TypeError(
            f"{suite.__name__}.lacks: unknown: {unknown}, without a reason: {silent}; "
            f"known are {', '.join(ABILITIES)}"
        )
