"""What people and programs say of turns: ratings and labels, kept as entries beside them.

Of the ratings of a turn the last one by each counts, also when it takes the earlier one back; of what is said of
a label, the last. So an annotation is changed by one more entry and never by changing one. Data that are not
those of a rating or a label say nothing: others write to the same log.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ledger.errors import StoreCorrupt
from ledger.records import kinds, times
from ledger.records.values import INTEGER_LIMIT
from ledger.views.nodes import LABEL, RATING, Tree
from ledger.views.text import one_line

Value = bool | int | float
"""What a turn can be rated: the scale is the rater's. A bool is a yes or no, and compares as 1 and 0."""

LONGEST_NAME = 100
"""How many characters a label, or the name of who rates, has at most."""


@dataclass(frozen=True)
class Rating:
    """How somebody rated a turn."""

    value: Value
    """A number on the rater's own scale, or a bool."""
    by: str | None
    """Who rated; None: nobody in particular."""
    why: str | None
    """The reason that was given."""
    at: datetime | None
    """When; None: the record's time does not read."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data; `at` as RFC 3339 text."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by else ""
        return f"{value_text(self.value)}{by}" + (f": {self.why}" if self.why else "")


# -- read


def ratings(tree: Tree, turn: str) -> list[Rating]:
    """Return the ratings of a turn that count, one by each, the one that was given last at the end."""
    found: dict[str | None, Rating] = {}
    for entry, data in _noted(tree, turn, RATING):
        value, by, why = data.get("value", ...), data.get("by"), data.get("why")
        if not (value is None or _is_value(value)) or not (by is None or isinstance(by, str)):
            continue
        found.pop(by, None)
        if value is not None:
            said = why if isinstance(why, str) else None
            found[by] = Rating(value, by, said, times.from_text(entry.at))
    return list(found.values())


def mean(given: Iterable[Rating]) -> float | None:
    """Return the mean of ratings, True as 1 and False as 0, exact as far as a float is; None: there is none."""
    parts = [(rating.value + 0).as_integer_ratio() for rating in given]
    if not parts:
        return None
    below = max(each for _, each in parts)  # They are powers of 2.
    return sum(above * (below // each) for above, each in parts) / (below * len(parts))


def labels(tree: Tree, turn: str | None) -> list[str]:
    """Return the labels of a turn, or of the conversation (None), in the order in which they were put on."""
    found: dict[str, None] = {}
    for _, data in _noted(tree, turn, LABEL):
        label, on = data.get("label"), data.get("on")
        if not isinstance(label, str) or not isinstance(on, bool):
            continue
        if on:
            found.setdefault(label)
        else:
            found.pop(label, None)
    return list(found)


def _noted(
    tree: Tree, turn: str | None, kind: tuple[str, str]
) -> Iterator[tuple[kinds.Entry, dict[str, Any]]]:
    for entry in tree.annotated.get(turn, ()):
        if (entry.plugin, entry.entry) != kind:
            continue
        try:
            yield entry, kinds.mapping(entry.data, entry.seq)
        except StoreCorrupt:
            continue


def _is_value(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


# -- as text for people


def value_text(value: Value) -> str:
    """Return what was given as text: yes or no, or the number."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).removesuffix(".0")


def marks(tree: Tree, turn: str | None, *, width: int) -> list[str]:
    """Return a turn's ratings and labels in short: a star with the values, each label behind a `#`.

    Args: width: of each of the two, in characters.
    """
    given = [] if turn is None else ratings(tree, turn)
    stars = "★ " + ", ".join(value_text(rating.value) for rating in given)
    put = " ".join(f"#{label}" for label in labels(tree, turn))
    return [one_line(stars, width)] * bool(given) + [one_line(put, width)] * bool(put)


# -- what is to be kept


def rating_data(value: Any, by: Any, why: Any) -> dict[str, Any]:
    """Return the data of a rating's entry. Raises: TypeError, ValueError, naming what is wrong."""
    if not (value is None or isinstance(value, int | float)):
        raise TypeError(
            f"a rating's value is a number, True, False, or None to take it back, not {type(value).__name__}"
        )
    if isinstance(value, float):
        value = float(value)  # Of a class of its own, such as numpy's.
        if not math.isfinite(value):
            raise ValueError(f"a rating's value is a finite number, not {value}")
    elif isinstance(value, int) and not isinstance(value, bool):
        value = int(value)
        if abs(value) > INTEGER_LIMIT:
            raise ValueError(f"a rating's value is at most {INTEGER_LIMIT}; give more as a float")
    if by is not None:
        _check_name(by, "a rating's by")
    if why is not None and not isinstance(why, str):
        raise TypeError(f"a rating's why is text, not {type(why).__name__}")
    return {"value": value, "by": by, "why": why or None}


def label_data(text: Any, *, on: bool) -> dict[str, Any]:
    """Return the data of a label's entry. Raises: TypeError, ValueError, naming what is wrong."""
    _check_name(text, "a label")
    if on and any(unicodedata.category(sign) == "Cc" for sign in text):
        raise ValueError("a label has no control characters; an index could not find it by them")
    return {"label": text, "on": on}


def _check_name(text: Any, what: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} is text, not {type(text).__name__}")
    if not text.strip():
        raise ValueError(f"{what} is empty")
    if len(text.splitlines()) > 1 or text != text.strip():
        raise ValueError(f"{what} is one line that neither begins nor ends with a blank")
    if len(text) > LONGEST_NAME:
        raise ValueError(f"{what} has at most {LONGEST_NAME} characters, not {len(text)}")
