"""Two turns compared: what was asked, what was answered and how, and what each was shown.

Values are compared as JSON has them (1 and 1.0 are one number, true is none) and told as text, so that a change
deep in a value is seen by its words too. What is the same in both is not repeated: it is told to be the same.
Structure first, text from it: whoever draws a `Diff` otherwise (colours, a page) does it from the same pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ledger.records import canonical, values
from ledger.records.values import REFERENCE
from ledger.views import branches, context, ratings, states
from ledger.views.nodes import Node, Tree, mapping, model_of
from ledger.views.ratings import Rating
from ledger.views.text import attachment_text, one_line, printable, runs_text, without_text
from ledger.views.words import Op, Piece, pieces

LONGEST_SAME = 400
"""Of how many characters a stretch that is the same is told whole."""
_SHOWN_OF_SAME = 120

Mark = Callable[[Op, str], str]
"""How a stretch of text is marked: what it is, and its text, which may have several lines."""


class Difference(msgspec.Struct, frozen=True):
    """A value that is not the same in both turns."""

    a: Any | UnsetType = UNSET
    """The first turn's value, as JSON has it; UNSET: it has none of this name."""
    b: Any | UnsetType = UNSET
    """The second turn's."""
    pieces: list[Piece] = []
    """Both as text, by what they share: text as it is, anything else as indented JSON, attachments by their names."""


class Side(msgspec.Struct, frozen=True):
    """One of the two turns."""

    turn: str
    """Its id."""
    ordinal: int
    state: str
    erased: bool
    model: str | None
    ratings: list[Rating]
    labels: list[str]


class Saw(msgspec.Struct, frozen=True):
    """The earlier turns that the two were shown, by id, oldest first."""

    both: list[str]
    only_a: list[str]
    only_b: list[str]
    without_a: dict[str, list[str]] = {}
    """What was left out of those that the first was shown, by id: names of fields, and `steps` of tools. One that
    was shown whole is not named."""
    without_b: dict[str, list[str]] = {}


class Diff(msgspec.Struct, frozen=True):
    """How two turns differ; what is the same is left out. `str` tells it in lines."""

    a: Side
    b: Side
    base: str | None
    """The nearest turn on both branches, by id: one of the two where the other follows it; None: there is none."""
    inputs: dict[str, Difference]
    """By name, those that differ."""
    outputs: dict[str, Difference]
    state: Difference | None
    model: Difference | None
    settings: dict[str, Difference]
    """Those recorded, by name."""
    saw: Saw
    summary: Difference | None
    """The summaries of still earlier turns that they were shown."""
    ordinals: dict[str, int]
    """The numbers of the turns that are named."""

    @property
    def same(self) -> bool:
        """Whether the same was asked and answered, in the same state."""
        return not (self.inputs or self.outputs or self.state)

    def to_dict(self) -> dict[str, Any]:
        """Return all this as JSON data; turns are named by id."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        del found["ordinals"]
        return {**found, "same": self.same}

    def __str__(self) -> str:
        return "\n".join(self.told())

    __repr__ = __str__

    def told(self, mark: Mark | None = None, *, width: int | None = None) -> list[str]:
        """Return it as printable lines. Args: mark: how stretches of text are marked; None: `[-removed-]` and
        `{+added+}`. width: where lines are broken, in characters; None: nowhere."""
        return list(_lines(self, mark if mark is not None else _marked, width))


def diff(tree: Tree, a: str, b: str, *, now: datetime, dead: states.Dead = frozenset()) -> Diff:
    """Compare two turns. Args: now, dead: as for a state.

    Raises: turn-unknown. store-corrupt, record-invalid: what is compared of them does not read.
    """
    one, other = tree.node(a), tree.node(b)
    sides = [_side(tree, node, now, dead) for node in (one, other)]
    base, saw = branches.merge_base(tree, a, b), _saw(tree, a, b)
    named = [a, b, *saw.both, *saw.only_a, *saw.only_b, *([base] if base else [])]
    shown = [context.summary_of(tree, turn) for turn in (a, b)]
    return Diff(
        a=sides[0],
        b=sides[1],
        base=base,
        inputs=_by_name(one.inputs(), other.inputs()),
        outputs=_by_name(one.outputs(), other.outputs()),
        state=difference(sides[0].state, sides[1].state),
        model=difference(*(side.model or UNSET for side in sides)),
        settings=_by_name(mapping(one.record, "settings"), mapping(other.record, "settings")),
        saw=saw,
        summary=difference(*(UNSET if one is None else one.text for one in shown)),
        ordinals={turn: tree.nodes[turn].ordinal for turn in named},
    )


def difference(a: Any, b: Any) -> Difference | None:
    """Return how two values differ, None when they do not. Args: UNSET: there is none."""
    if a is UNSET and b is UNSET:
        return None
    both = a is not UNSET and b is not UNSET
    if both and canonical.canonical(a) == canonical.canonical(b):
        return None
    texts = ["" if value is UNSET else value_text(value) for value in (a, b)]
    return Difference(a, b, pieces(*texts))


def value_text(value: Any) -> str:
    """Return a value as text to compare: text as it is, anything else as indented JSON, attachments by name."""
    told = values.replaced(value, _attachment)
    return told if isinstance(told, str) else json.dumps(told, indent=2, ensure_ascii=False)


def _attachment(reference: Mapping[str, Any]) -> str:
    return f"[{attachment_text(reference)} {str(reference[REFERENCE].get('sha256'))[:12]}]"


def _by_name(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Difference]:
    found = ((name, difference(a.get(name, UNSET), b.get(name, UNSET))) for name in {**a, **b})
    return {name: each for name, each in found if each is not None}


def _side(tree: Tree, node: Node, now: datetime, dead: states.Dead) -> Side:
    return Side(
        turn=node.id,
        ordinal=node.ordinal,
        state="erased" if node.erased else states.state(node, now=now, dead=dead),
        erased=node.erased,
        model=model_of(node),
        ratings=ratings.ratings(tree, node.id),
        labels=ratings.labels(tree, node.id),
    )


def _saw(tree: Tree, a: str, b: str) -> Saw:
    one, other = ([t for t in context.saw(tree, turn) if t in tree.nodes] for turn in (a, b))
    here, there = set(one), set(other)
    return Saw(
        both=[turn for turn in one if turn in there],
        only_a=[turn for turn in one if turn not in there],
        only_b=[turn for turn in other if turn not in here],
        without_a=context.without(tree, a),
        without_b=context.without(tree, b),
    )


# -- text for people -------------------------------------------------------------------------------


def _marked(op: Op, text: str) -> str:
    return {"same": text, "removed": f"[-{text}-]", "added": f"{{+{text}+}}"}[op]


def _lines(diff: Diff, mark: Mark, width: int | None) -> Iterator[str]:
    yield mark("removed", _named(diff.a))
    yield mark("added", _named(diff.b))
    yield "  " + _where(diff)
    yield from _fields(diff.inputs, ">", "message", mark, width)
    if "done" in (diff.a.state, diff.b.state):
        yield from _fields(diff.outputs, "<", "result", mark, width)
    else:
        yield "< neither has an answer"
    facts = {"state": diff.state, "model": diff.model, "summary shown": diff.summary}
    settings = {n: d for n, d in diff.settings.items() if n != "lm" or diff.model is None}
    for name, found in [*facts.items(), *settings.items()]:
        if found is not None:
            yield from _told(f"  {one_line(name, 40)}: ", _apart(found.pieces), mark, width)
    yield from _seen(diff)


def _named(side: Side) -> str:
    parts = [f"turn {side.ordinal} {side.turn[-8:]}: {side.state}"]
    parts += [f"({one_line(side.model, 40)})"] if side.model else []
    parts += [f"★ {one_line(str(rating), 60)}" for rating in side.ratings]
    return "  ".join([*parts, *(f"#{one_line(label, 40)}" for label in side.labels)])


def _where(diff: Diff) -> str:
    if diff.a.turn == diff.b.turn:
        return "they are one turn"
    if diff.base is None:
        return "they are on lines of their own"
    if diff.base == diff.a.turn:
        return f"turn {diff.b.ordinal} comes after turn {diff.a.ordinal}"
    if diff.base == diff.b.turn:
        return f"turn {diff.a.ordinal} comes after turn {diff.b.ordinal}"
    return f"their branches part after turn {diff.ordinals[diff.base]}"


def _fields(
    found: dict[str, Difference], sign: str, usual: str, mark: Mark, width: int | None
) -> Iterator[str]:
    if not found:
        yield f"{sign} the same"
    for name, each in found.items():
        named = "" if name == usual else f"{one_line(name, 40)} "
        yield from _told(f"{named}{sign} ", each.pieces, mark, width)


def _told(begin: str, found: list[Piece], mark: Mark, width: int | None) -> Iterator[str]:
    """Yield a text with its differences marked, behind what begins its first line; the others are indented."""
    shown = (Piece(each.op, printable(_shortened(each), lines=True)) for each in found)
    broken = _broken(shown, None if width is None else max(20, width - len(begin)))
    text = "".join(mark(each.op, each.text) for each in broken)
    for line in text.split("\n"):
        yield (begin + line) if line else ""
        begin = " " * len(begin)


def _apart(found: list[Piece]) -> list[Piece]:
    """Return pieces with an arrow between two values that have nothing in common."""
    return found if len(found) != 2 else [found[0], Piece("same", " → "), found[1]]


def _shortened(piece: Piece) -> str:
    """Return the text of a piece; of a long one that is the same, how it begins and ends."""
    text = piece.text
    if piece.op != "same" or len(text) <= LONGEST_SAME:
        return text
    head, tail = text[:_SHOWN_OF_SAME], text[-_SHOWN_OF_SAME:]
    left = len(text) - len(head) - len(tail)
    return f"{head}… ({left} characters the same) …{tail}"


def _broken(found: Iterable[Piece], room: int | None) -> Iterator[Piece]:
    """Yield pieces with line feeds between words where a line is full."""
    column = 0
    for piece in found:
        parts: list[str] = []
        for part in _PART.findall(piece.text):
            full = room is not None and column and column + len(part.rstrip()) > room
            if full:
                parts.append("\n")
                part, column = part.lstrip(), 0
            parts.append(part)
            column = 0 if part == "\n" else column + len(part)
        yield Piece(piece.op, "".join(parts))


_PART = re.compile(r"\n|[^\S\n]*\S+[^\S\n]?|[^\S\n]+")
"""A line feed, or a word with its blanks; those before it are not needed at the beginning of a line."""


def _seen(diff: Diff) -> Iterator[str]:
    saw, (a, b) = diff.saw, (diff.a.ordinal, diff.b.ordinal)
    alike = [t for t in saw.both if saw.without_a.get(t) == saw.without_b.get(t)]
    unlike = [t for t in saw.both if saw.without_a.get(t) != saw.without_b.get(t)]
    for who, turns, without in (
        ("both saw", alike, saw.without_a),
        (f"turn {a} saw", unlike, saw.without_a),
        (f"turn {b} saw", unlike, saw.without_b),
        (f"only turn {a} saw", saw.only_a, saw.without_a),
        (f"only turn {b} saw", saw.only_b, saw.without_b),
    ):
        lacking: dict[tuple[str, ...], list[int]] = {}
        for turn in turns:
            lacking.setdefault(tuple(without.get(turn, ())), []).append(diff.ordinals[turn])
        for names, ordinals in lacking.items():
            told = f"turn{'' if len(ordinals) == 1 else 's'} {runs_text(sorted(ordinals))}"
            yield f"  {who} {told}{without_text(names)}"
    if not (saw.both or saw.only_a or saw.only_b):
        yield "  neither was shown earlier turns"
