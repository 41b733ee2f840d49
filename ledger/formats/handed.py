"""A whole list of messages as a framework hands it over: read into turns, and known again the next time. Pure.

Most of a list was in the list before. So a copy of that one is kept, with where in it which turn ended: what
both begin with is compared item by item, and only what follows the last turn in it is read.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ledger.errors import RecordInvalid
from ledger.formats import dialects
from ledger.formats.converting import MISSING, Dialect, taken
from ledger.records import transcripts
from ledger.records.messages import Message
from ledger.records.values import DEPTH_LIMIT, TOO_DEEP


@dataclass
class Handed:
    """A list as it was read, as far as it has to be."""

    body: list[Any]
    """Its items behind the instructions, as they were handed over."""
    common: int
    """How many of them are as they were in the list before."""
    at: str | None
    """A turn up to which the list is known."""
    end: int
    """Where in the body that turn ends."""
    instructions: list[Message]
    turns: list[list[Message]]
    """The whole turns behind `at`."""
    left: list[Message]
    ends: list[int | None]
    """Where in the body each of the turns ends, where that is known."""
    data: dict[str, bytes] = field(default_factory=dict)
    """The bytes that stand in it, by their hex SHA-256."""


def parts(content: Any) -> tuple[Mapping[str, Any] | None, list[Any], list[Any]]:
    """Return what stands beside a list (`system`), the instructions it begins with, and its other items."""
    rest = None
    if isinstance(content, Mapping) and isinstance(content.get("messages"), list | tuple):
        rest = {key: value for key, value in content.items() if key != "messages"}
        content = content["messages"]
    if not isinstance(content, list | tuple):
        raise TypeError(f"messages are a list, not {type(content).__name__}")
    items = list(content)
    lead = 0
    while lead < len(items) and _leads(items[lead]):
        lead += 1
    return rest, items[:lead], items[lead:]


def _leads(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("role") in transcripts.LEADING


def neutral(content: Any, dialect: Dialect | None) -> list[Message]:
    """Return what a list says. Raises: import-invalid, record-invalid."""
    content = _plain(content, "messages")
    return (
        taken(dialects.as_neutral(content)) if dialect is None else dialect.from_provider(content)
    )


def _plain(value: Any, path: str, depth: int = 0) -> Any:
    """Return a value with the objects of a vendor's package in it as plain data. Raises: record-invalid."""
    if depth > DEPTH_LIMIT:
        raise RecordInvalid(path=path, reason=TOO_DEEP)
    if isinstance(value, Mapping):
        return {key: _plain(inner, path, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        places = (path if depth else f"{path}[{number}]" for number in count())
        return [
            _plain(inner, place, depth + 1) for inner, place in zip(value, places, strict=False)
        ]
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_none=True, exclude_unset=True) if callable(dump) else value


def ends_of(
    body: list[Any], begin: int, pieces: transcripts.Cut, dialect: Dialect | None
) -> list[int | None]:
    """Return where in a list each turn ends: where there is an item for each message, or nothing is left over.

    A dialect either joins items into one message or makes several of one, so as many are one each; unless some
    were taken out (`MISSING`).
    """
    sizes = [len(turn) for turn in pieces.turns]
    alike = begin + sum(sizes) + len(pieces.left) == len(body)
    if alike and MISSING not in str(body[begin:]):
        ends: list[int | None] = []
        for size in sizes:
            begin += size
            ends.append(begin)
        return ends
    ends = [None] * len(sizes)
    end = len(body) - len(pieces.left)
    if sizes and end > 0 and (not pieces.left or neutral(body[end:], dialect) == pieces.left):
        ends[-1] = (
            end  # Of one item that says several messages, more are left than there are items.
        )
    return ends


@dataclass
class Before:
    """A copy of the list that was handed over last, and which turns end where in it."""

    items: list[Any] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)

    def common(self, body: list[Any]) -> int:
        """Return how many items at its beginning are as they were."""
        if len(body) >= len(self.items) and self.items == body[: len(self.items)]:
            return len(self.items)
        pairs = enumerate(zip(self.items, body, strict=False))
        differs = next((i for i, (one, other) in pairs if one != other), None)
        return min(len(self.items), len(body)) if differs is None else differs

    def places(self, common: int) -> Iterator[tuple[int, str]]:
        """Yield the turns that end within so many items, and where, the last one first."""
        last = bisect_right(self.ends, common)
        return ((self.ends[i], self.turns[i]) for i in range(last - 1, -1, -1))

    def take(self, handed: Handed, ends: list[tuple[int, str]]) -> None:
        """Take another list in its place. Args: ends: where its further turns end."""
        last = bisect_right(self.ends, handed.end)
        self.items[handed.common :] = map(exact_copy, handed.body[handed.common :])
        self.ends[last:] = [end for end, _ in ends]
        self.turns[last:] = [turn for _, turn in ends]


class _Exactly:
    """A number that is told from a truth value of the same worth."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self._value) and other == self._value

    __hash__ = None  # type: ignore[assignment]


def exact_copy(value: Any) -> Any:
    """Return a copy that equals what it was made of, and nothing else that JSON tells apart."""
    if type(value) is dict:
        return {key: exact_copy(inner) for key, inner in value.items()}
    if type(value) is list:
        return [exact_copy(inner) for inner in value]
    if type(value) in (bool, int, float):
        return _Exactly(value) if value in (0, 1) else value
    return value if value is None or type(value) is str else copy.deepcopy(value)
