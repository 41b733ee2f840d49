"""Rated turns of a whole store, for training and for evaluation; and rows split, and written to a file."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple, cast

from ledger.formats import jsonl
from ledger.sources.exporting import listed
from ledger.sources.new_file import new_file
from ledger.stores.resolve import store_for
from ledger.turns.log import Log
from ledger.views import rated as views
from ledger.views.rated import Row
from ledger.views.ratings import ratings as ratings_of


def rated(
    store: Any = None,
    *,
    program: str | None = None,
    label: str | None = None,
    min_rating: float | None = None,
) -> Iterator[Row]:
    """Yield a row for each rated turn of a store: a dict of JSON values, each turn once.

    A row has: `conversation`, `turn`, `parent`; `group` (the conversations that share turns with this one,
    by one name: see `train_test`); `state`; `inputs` and `outputs` by name; `rating` (the mean of what each
    person said last: `turn.mean_rating`) and `ratings` (`value`, `by`, `why`, `at`); `earlier` (what the turn was
    shown, as recorded, oldest first); `model`; `labels`; `program` and `version`; `helpers` (the calls of
    remembered helpers in it: `call`, `site`, `program`, `inputs`, `outputs`, `steps`, `tools`, and `earlier`, the calls
    that it was shown of its own, as it was shown them, those of forgotten turns left out); `made_by` and `reads`.
    A merge is a row of what made it: `program` and `version` are that function's, `made_by` is as recorded, `reads`
    the answers that it was given (`turn`, `model`, `inputs`, `outputs`, `result`), `inputs` what was asked. Of any
    other turn `made_by` is None and `reads` empty. Attachments are references. A turn that stands in several
    conversations comes from the first that rated it, by its id.
    Args: store: None: this process's memory; a folder; or a store. program: only turns of this program, by its
    name or version. label: only turns that have it. min_rating: only turns whose mean rating is at least so.
    Raises: store-unsupported: the store lists no conversations; store errors.
    Each conversation is read twice if it holds a rating, else once; memory holds one, and the ids of all turns. It
    blocks while it reads; on an event loop, read it in a thread.
    """
    kept_in = store_for(store)
    groups, holding = _groups(kept_in)
    seen: set[str] = set()
    for name in holding:
        for row in views.rows(Log(kept_in, name).read(), name, groups.of(name)):
            if row["turn"] in seen:
                continue
            seen.add(row["turn"])
            if (
                (program is None or program in (row["program"], row["version"]))
                and (label is None or label in row["labels"])
                and (min_rating is None or row["rating"] >= min_rating)
            ):
                yield row


class _Groups:
    """Conversations joined where they share a turn.

    A group has the name of a conversation's first turn, which never changes: the oldest of them.
    """

    def __init__(self) -> None:
        self._above: dict[str, str] = {}
        self._seen_in: dict[str, str] = {}
        """The first conversation that each turn was seen in."""
        self._names: dict[str, str] = {}

    def add(self, name: str, turns: list[str]) -> None:
        """Add a conversation and its turns, in log order."""
        self._above[name] = name
        self._names[name] = turns[0] if turns else name
        for turn in turns:
            self._join(self._seen_in.setdefault(turn, name), name)

    def of(self, name: str) -> str:
        """Return the name of a conversation's group."""
        return self._names[self._top(name)]

    def _join(self, one: str, other: str) -> None:
        a, b = self._top(one), self._top(other)
        if a != b:
            self._above[b] = a
            self._names[a] = min(self._names[a], self._names[b])

    def _top(self, name: str) -> str:
        top = name
        while self._above[top] != top:
            top = self._above[top]
        self._above[name] = top
        return top


def _groups(store: Any) -> tuple[_Groups, list[str]]:
    """Return which conversations of a store share turns, and which hold a rating."""
    groups, holding = _Groups(), []
    for name in listed(store):
        history = Log(store, name).read()
        groups.add(name, history.order)
        if any(ratings_of(history, turn) for turn in history.annotated if turn is not None):
            holding.append(name)
    return groups, holding


# -- training and test -----------------------------------------------------------------------------


class Split(NamedTuple):
    """Rows for training, and rows to test with."""

    train: list[Row]
    test: list[Row]


def train_test(
    rows: Iterable[Row],
    test: float = 0.2,
    *,
    seed: int | str = 0,
    by: str | Callable[[Row], Hashable] = "conversation",
) -> Split:
    """Split rows so that what belongs together is on one side: about `test` of the groups are for testing.

    Which side a group is on follows from its name and the seed alone: the same rows give the same split
    everywhere, and rows that are added later move none that were there, unless they show that two groups are
    one. So the fraction is that of many groups, not exact; of few it may be far off. Of two groups or more
    none of the sides is empty, unless `test` is 0 or 1: the group that comes next is taken for it, until
    later rows have one of their own.
    A row that belongs to nothing (it has no such key, or None there) is a group of its own, and its name is what it
    says: rows that say the same are on one side.
    Args: test: from 0 to 1. by: what belongs together: the value under this key, or what a function says of a
    row. `conversation`: a conversation with all that share turns with it (forks, copies), as `rated` tells
    (`group`); of rows that do not tell, the conversation.
    Raises: ValueError: `test` is no fraction. KeyError: no row has the key, and it is another than `conversation`.
    """
    if not 0 <= test <= 1:
        raise ValueError(f"test is a fraction from 0 to 1, not {test!r}")
    rows = list(rows)
    if isinstance(by, str) and by != "conversation" and rows and not any(by in r for r in rows):
        raise KeyError(f"no row has {by!r}; the first has {', '.join(map(str, rows[0]))}")
    shares = [_share(_key(row, by), seed) for row in rows]
    few, many = min(shares, default=0.0), max(shares, default=0.0)
    line = test if test in (0, 1) or few == many else min(max(test, math.nextafter(few, 1)), many)
    sides: Split = Split([], [])
    for row, share in zip(rows, shares, strict=True):
        sides[share < line].append(row)
    return sides


def _key(row: Row, by: str | Callable[[Row], Hashable]) -> Hashable:
    """Return the name of a row's group."""
    if callable(by):
        key: Any = by(row)
    elif by == "conversation" and row.get("group") is not None:
        return str(row["group"])
    else:
        key = row.get(by)
    if key is None:
        return ("row", json.dumps(row, sort_keys=True, default=repr))
    try:
        hash(key)
    except TypeError:
        raise TypeError(
            f"{by!r} of a row is no name of a group: give a function of a row"
        ) from None
    return cast(Hashable, key)


def _share(key: Hashable, seed: int | str) -> float:
    """Return where a group stands between 0 and 1."""
    digest = hashlib.sha256(repr((seed, key)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


def write_jsonl(rows: Iterable[Row], path: str | os.PathLike[str]) -> int:
    """Write rows as a new file, one JSON object a line; it is there whole or not at all. Returns: how many.

    Raises: FileExistsError: there is something under the name. OSError.
    """
    count = 0
    with new_file(path) as file:
        for row in rows:
            file.write(jsonl.line(row))
            count += 1
    return count
