"""Context rules: which earlier turns a new turn is shown, and with what left out.

A rule turns one pick into another, so rules compose, in order. A pick holds whole turns, the newest first
and made only as far as somebody asks, so that a window costs what it shows. No rule can show a part of a
turn's exchange: fields are left out by name, and steps come all or none.

What a caller's own function decides is recorded by its outcome (`saw`), not by its name: so who goes on
with a turn needs no such function.
"""

from __future__ import annotations

import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
from msgspec import structs

from ledger.records import kinds
from ledger.views import summaries
from ledger.views.earlier import Earlier, Entry
from ledger.views.summaries import Summary, Wanted

Chooser = Callable[[list[Earlier]], Iterable[Earlier]]
"""A rule of a caller's own: earlier turns, oldest first -> those to show."""


class Pick(msgspec.Struct, frozen=True):
    """What is to be shown, as far as it was decided."""

    turns: Iterable[Earlier]
    """Whole turns, the newest first; to be gone through once."""
    kept: Callable[[], Mapping[int, kinds.Entry]] = dict
    """Gives the summaries there are, by place in the log."""
    foresee: bool = False
    """Whether a summary that is to be made counts as made."""
    summary: Summary | None = None
    """What stands before the turns."""
    wants: Wanted | None = None
    """The summary that is to be made first."""


class Rule(ABC):
    """Which earlier turns a new turn is shown. Made by `all_turns`, `last_turns` and the others."""

    @property
    def left_out(self) -> frozenset[str]:
        """The fields that it leaves out of every turn."""
        return frozenset()

    @property
    def summarizes(self) -> bool:
        """Whether summaries may be made for it."""
        return False

    @abstractmethod
    def pick(self, pick: Pick) -> Pick:
        """Return what is shown of what the rules before it show."""


@dataclass(frozen=True)
class Window(Rule):
    """The last turns, or all."""

    last: int | None = None
    """How many, at most; None: all."""
    without: tuple[str, ...] = ()
    """The names of the fields that are left out, sorted, each once."""
    steps: bool = True
    """Whether with their tool calls."""

    @property
    def left_out(self) -> frozenset[str]:
        """The fields that it leaves out of every turn."""
        return frozenset(self.without)

    def pick(self, pick: Pick) -> Pick:
        """Return the last turns, or all."""
        return structs.replace(pick, turns=map(self._shown, islice(pick.turns, self.last)))

    def _shown(self, turn: Earlier) -> Earlier:
        return turn.leaving_out(*self.without).with_steps(self.steps)


@dataclass(frozen=True)
class Within(Rule):
    """As many of the newest turns as a budget has room for."""

    tokens: int
    count: Callable[[dict[str, Any]], int]

    def pick(self, pick: Pick) -> Pick:
        """Return the newest turns, up to the first that has no room; the newest always."""
        summary, left = pick.summary, self.tokens
        if summary is not None and summary.text is not None:
            left -= self._counted(summary.row)
        return structs.replace(pick, turns=self._fitting(pick.turns, left))

    def _fitting(self, turns: Iterable[Earlier], left: int) -> Iterator[Earlier]:
        for place, turn in enumerate(turns):
            left -= self._counted(turn.row)
            if left < 0 and place > 0:
                return
            yield turn

    def _counted(self, row: dict[str, Any]) -> int:
        try:
            count = operator.index(self.count(row))
        except TypeError:
            raise TypeError("within: count gives a whole number for a row") from None
        if count < 0:
            raise ValueError(f"within: count gives a number that is not negative, not {count}")
        return count


@dataclass(frozen=True)
class Only(Rule):
    """The turns of which something is true."""

    predicate: Callable[[Earlier], Any]

    def pick(self, pick: Pick) -> Pick:
        """Return the turns of which it is true."""
        return structs.replace(pick, turns=filter(self.predicate, pick.turns))


@dataclass(frozen=True)
class Own(Rule):
    """A caller's own function."""

    function: Chooser

    def pick(self, pick: Pick) -> Pick:
        """Return the turns that it chose, in their order."""
        given = list(pick.turns)[::-1]
        places = {turn.id: place for place, turn in enumerate(given)}
        chosen = self._checked(self.function(list(given)), places)
        return structs.replace(pick, turns=sorted(chosen, key=lambda t: places[t.id], reverse=True))

    def _checked(self, chosen: Any, places: Mapping[str, int]) -> list[Earlier]:
        if not isinstance(chosen, Iterable):
            raise TypeError(f"a context function gives turns, not {type(chosen).__name__}")
        turns = list(chosen)
        if not all(isinstance(turn, Earlier) and turn.id in places for turn in turns):
            raise TypeError("a context function gives turns out of those that it was given")
        if len({turn.id for turn in turns}) != len(turns):
            raise ValueError("a context function gives each turn once")
        return turns


@dataclass(frozen=True)
class Again(Rule):
    """What a turn was shown, as it was recorded."""

    turn: str
    entries: tuple[Entry, ...]
    """Those of its `saw`, expanded."""
    summaries: tuple[int, ...] = ()
    """The places of its `shown_entries`."""

    def pick(self, pick: Pick) -> Pick:
        """Return just these. Raises: ValueError: not all of it is there."""
        given, kept = {turn.id: turn for turn in pick.turns}, pick.kept()
        stood = [summaries.read(kept[place], place) for place in self.summaries if place in kept]
        lacks = [e for e in self.entries if e.get("call") not in given]
        if lacks or None in stood or len(stood) < len(self.summaries):
            raise ValueError(
                f"turn {self.turn} was shown what is not on this branch, or was taken out since: "
                f"{', '.join(str(e.get('call', 'turns before')) for e in lacks) or 'a summary'}"
            )
        turns = [given[entry["call"]].as_in(entry) for entry in reversed(self.entries)]
        return structs.replace(pick, turns=turns, summary=stood[0] if stood else None)


@dataclass(frozen=True)
class Compacted(Rule):
    """A summary in place of the first turns."""

    by: Callable[..., Any]
    name: str
    keep_last: int
    every: int
    summarizes = True

    def pick(self, pick: Pick) -> Pick:
        """Return the summary that fits, if any does, and the turns after it."""
        turns = list(pick.turns)[::-1]
        most = len(turns) - self.keep_last
        summary = summaries.fitting(pick.kept(), self.name, turns, most)
        rest = turns[len(summary.turns) if summary is not None else 0 :]
        wants = None
        if len(rest) >= self.keep_last + self.every:
            fresh = rest[: len(rest) - self.keep_last]
            wants = Wanted(self.by, self.name, summary, tuple(fresh))
            if pick.foresee:
                rest = rest[len(fresh) :]
                summary = Summary(wants.turns, None, self.name)
        return structs.replace(pick, turns=rest[::-1], summary=summary, wants=wants)


@dataclass(frozen=True)
class Pipeline(Rule):
    """Rules, each over what the one before it shows."""

    rules: tuple[Rule, ...]

    @property
    def left_out(self) -> frozenset[str]:
        """The fields that its rules leave out of every turn."""
        return frozenset().union(*(rule.left_out for rule in self.rules))

    @property
    def summarizes(self) -> bool:
        """Whether summaries may be made for one of them."""
        return any(rule.summarizes for rule in self.rules)

    def pick(self, pick: Pick) -> Pick:
        """Return what the last of them shows."""
        for rule in self.rules:
            pick = rule.pick(pick)
        return pick


# -- how they are made -----------------------------------------------------------------------------


def all_turns(*, without: Iterable[str] = (), steps: bool = True) -> Rule:
    """Show every `done` turn of the branch, without the named fields.

    Args: steps: whether with its tool calls: the rounds in its messages, and in its row `steps`, the `name`,
    `input` and `output` of those that gave something. A turn that lacks a field by `without` is shown
    without them; a field of the name `steps` comes before them in the row.
    """
    return Window(None, _names(without), steps)


def last_turns(n: int, *, without: Iterable[str] = (), steps: bool = True) -> Rule:
    """Show the last n `done` turns of the branch. Args: as `all_turns`. Raises: ValueError."""
    if type(n) is not int or n < 0:
        raise ValueError(f"last_turns takes a whole number that is not negative, not {n!r}")
    return Window(n, _names(without), steps)


def within(*, tokens: int, count: Callable[[dict[str, Any]], int]) -> Rule:
    """Show as many of the newest turns as fit: whole turns, up to the first that does not.

    The newest is shown even where it alone is too much. A summary before the turns counts as well.
    Args: tokens: the budget, in what `count` counts. count: a row, as `earlier()` gives it -> a whole number.
    Raises: ValueError, TypeError; from a send also what `count` raises, and then nothing is recorded.
    """
    if type(tokens) is not int or tokens < 0:
        raise ValueError(f"tokens is a whole number that is not negative, not {tokens!r}")
    return Within(tokens, _plain(count, "count"))


def only(predicate: Callable[[Earlier], Any]) -> Rule:
    """Show the turns of which something is true.

    Args: predicate: an earlier turn (`id`, `ordinal`, `inputs`, `outputs`, `result`, `model`, `usage`,
    `tools`) -> whether to show it. It is asked again whenever the log grew before a turn was recorded.
    Raises: TypeError; from a send also what it raises, and then nothing is recorded.
    """
    return Only(_plain(predicate, "a predicate"))


def compacted(by: Callable[..., Any], *, keep_last: int = 10, every: int | None = None) -> Rule:
    """Show a summary in place of the first turns, and the last ones whole.

    When `keep_last + every` turns are not summarized yet, the next send first has `by` summarize all but
    the last `keep_last` of them. The summary is kept in the log, once, for every later turn of all branches
    through these turns; the turns stay where they are. In `earlier()` it is the first row, `{"summary": text}`.
    Args: by: called with the summary so far ("" at first) and the rows of the turns to add, by place;
    gives the new text; may be async. keep_last: how many turns are shown whole, at least. every: None: as many as
    `keep_last`.
    Raises: ValueError, TypeError; from a send summary-failed, and then nothing is recorded.
    Not promised: that of two sends at once only one calls `by`; one of the summaries is kept and used.
    """
    _callable(by, "by")
    if type(keep_last) is not int or keep_last < 0:
        raise ValueError(f"keep_last is a whole number that is not negative, not {keep_last!r}")
    if every is not None and (type(every) is not int or every < 1):
        raise ValueError(f"every is a whole number of at least 1, not {every!r}")
    made_by = getattr(by, "__qualname__", None) or getattr(by, "__name__", None)
    name = made_by if isinstance(made_by, str) else type(by).__qualname__
    return Compacted(by, name, keep_last, every if every is not None else max(keep_last, 1))


def pipeline(*rules: Rule | Chooser) -> Rule:
    """Apply rules in order, each to the turns that the one before it shows.

    Raises: TypeError: one is no rule. ValueError: there is none; or `compacted` stands twice, or after
    `last_turns` or `within`: the first turns of a window that slides are others with every send.
    """
    if not rules:
        raise ValueError("a pipeline has at least one rule")
    flat: list[Rule] = []
    for rule in map(of, rules):
        flat += rule.rules if isinstance(rule, Pipeline) else [rule]
    places = [place for place, rule in enumerate(flat) if isinstance(rule, Compacted)]
    if len(places) > 1:
        raise ValueError("compacted stands once in a pipeline")
    if any(map(_slides, flat[: places[0]] if places else [])):
        raise ValueError("compacted comes before last_turns and within")
    return Pipeline(tuple(flat))


def of(rule: Any) -> Rule:
    """Return the rule that a caller names: a rule, a function of their own, or None for all turns.

    Raises: TypeError.
    """
    if rule is None:
        return all_turns()
    if isinstance(rule, Rule):
        return rule
    if not callable(rule) or isinstance(rule, type) or rule in _MAKERS:
        raise TypeError(
            "context is a rule, such as all_turns() or last_turns(n), or a function of earlier "
            f"turns, not {rule!r}"
        )
    return Own(_plain(rule, "context"))


_MAKERS = (all_turns, last_turns, within, only, compacted, pipeline)


def _slides(rule: Rule) -> bool:
    return isinstance(rule, Within) or (isinstance(rule, Window) and rule.last is not None)


def _callable(value: Any, what: str) -> Any:
    if not callable(value):
        raise TypeError(f"{what} is a function, not {value!r}")
    return value


def _plain(value: Any, what: str) -> Any:
    """Return a function that answers at once: a rule decides while the log is held."""
    if inspect.iscoroutinefunction(_callable(value, what)):
        raise TypeError(f"{what} is a plain function, not an async one")
    return value


def _names(without: Iterable[str]) -> tuple[str, ...]:
    names = list(without)
    if isinstance(without, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"without takes a list of names, not {without!r}")
    return tuple(sorted(set(names)))
