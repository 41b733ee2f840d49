"""Token counts, summed. Pure: what turns used comes in, in the order of the conversations' ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import Literal

from ledger.catalog.answers import Spent
from ledger.catalog.index import Used
from ledger.records import times

By = Literal["model", "day", "month", "conversation", "label"]

_LENGTHS = {"day": 10, "month": 7}
"""How much of an ISO date tells it."""


def spent(
    used: Iterable[Used], by: By, *, since: str | None, until: str | None, zone: tzinfo
) -> list[Spent]:
    """Return what turns used, summed, each turn id once: as the first says that says something.

    By label a turn counts for each label of its conversation.
    Args: since, until: of when they were sent, both included, as records have times.
    """
    turns: dict[str, Used] = {}
    for each in used:
        if since is not None and (each.started is None or each.started < since):
            continue
        if until is not None and (each.started is None or each.started > until):
            continue
        known = turns.get(each.turn)
        if known is None or (any(each.tokens.values()) and not any(known.tokens.values())):
            turns[each.turn] = each
    keys = _keys(by, zone)
    counted: Counter[str | None] = Counter()
    tokens: dict[str | None, Counter[str]] = {}
    for each in turns.values():
        for name in keys(each):
            counted[name] += 1
            tokens.setdefault(name, Counter()).update(each.tokens)
    found = [Spent(key=name, turns=n, tokens=dict(tokens[name])) for name, n in counted.items()]
    if by in _LENGTHS:
        return sorted(found, key=lambda each: each.key or "")
    return sorted(found, key=lambda each: (-sum(each.tokens.values()), -each.turns, each.key or ""))


def _keys(by: By, zone: tzinfo) -> Callable[[Used], Sequence[str | None]]:
    if by == "model":
        return lambda used: [used.model]
    if by == "conversation":
        return lambda used: [used.conversation]
    if by == "label":
        return lambda used: used.labels or [None]

    def date(used: Used) -> list[str | None]:
        moment = times.from_text(used.started)
        return [None if moment is None else moment.astimezone(zone).isoformat()[: _LENGTHS[by]]]

    return date
