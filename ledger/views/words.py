"""What two texts have in common, word by word. Pure.

A text is cut into words, each with the blanks behind it; words are matched, and blanks only where their words
are: so two texts are not aligned by their spaces. Scripts that are written without spaces are cut into characters.

The matching is Myers' (An O(ND) Difference Algorithm, 1986): the shortest script from one to the other. Its cost is
the length times the number of differences, so it is bounded: past `MOST_STEPS` steps, or for texts of together more
than `LONGEST_BY_WORDS` characters, lines are matched instead of words, and past as many steps again nothing but what
both begin and end with.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

import msgspec

MOST_STEPS = 1_000_000
"""How many steps finding the matches may take: a second or less, and some megabytes."""
LONGEST_BY_WORDS = 1_000_000
"""Of how many characters two texts are together at most, to be compared by words."""

Op = Literal["same", "removed", "added"]
Match = tuple[int, int, int]
"""Where a run of the same begins in the one and in the other, and how long it is."""

LEAST_SHARED = 0.25
"""What part of the longer text is shared at least, where it is shared in single words, for that to say anything."""
_SHORT = 12
"""Characters of a shared stretch, on average, that make it single words."""

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"


@cache
def _word() -> re.Pattern[str]:
    """Return what finds a word and the blanks behind it; at the beginning of a text also blanks behind none.

    To compile it takes milliseconds, and most processes compare nothing.
    """
    return re.compile(rf"([{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]|^)(\s*)")


class Piece(msgspec.Struct, frozen=True):
    """A stretch of two texts: in both (`same`), only in the first (`removed`), only in the second (`added`)."""

    op: Op
    text: str


def pieces(a: str, b: str, *, most: int = MOST_STEPS) -> list[Piece]:
    """Return two texts as stretches that are the same or not, in order.

    What is `same` or `removed` makes up the first text, what is `same` or `added` the second, to the character.
    Texts that share but single words here and there are told to share nothing.
    Args: most: the steps that matching may take, each time.
    """
    units = _words if len(a) + len(b) <= LONGEST_BY_WORDS else _lines
    one, other = units(a), units(b)
    found = matches([word for word, _ in one], [word for word, _ in other], most=most)
    if found is None and units is _words:
        one, other = _lines(a), _lines(b)
        found = matches([line for line, _ in one], [line for line, _ in other], most=most)
    if found is None:
        found = _ends([line for line, _ in one], [line for line, _ in other])
    joined = _joined(_script(one, other, found))
    return _whole(a, b) if _is_chance(joined, max(len(a), len(b))) else joined


def _is_chance(found: list[Piece], longer: int) -> bool:
    """Say whether two texts share but words here and there, as any two texts do."""
    same = [len(piece.text) for piece in found if piece.op == "same"]
    shared = sum(same)
    return 0 < shared < LEAST_SHARED * longer and shared < _SHORT * len(same)


def _whole(a: str, b: str) -> list[Piece]:
    return [piece for piece in (Piece("removed", a), Piece("added", b)) if piece.text]


def _words(text: str) -> list[tuple[str, str]]:
    return _word().findall(text)


def _lines(text: str) -> list[tuple[str, str]]:
    return [(line, "") for line in text.splitlines(keepends=True)]


def _script(
    one: list[tuple[str, str]], other: list[tuple[str, str]], found: list[Match]
) -> Iterator[Piece]:
    i = j = 0
    for at, to, size in [*found, (len(one), len(other), 0)]:
        yield Piece("removed", "".join(map("".join, one[i:at])))
        yield Piece("added", "".join(map("".join, other[j:to])))
        i, j = at + size, to + size
        for (word, before), (_, after) in zip(one[at:i], other[to:j], strict=True):
            yield Piece("same", word)
            if before == after:
                yield Piece("same", before)
            else:
                yield Piece("removed", before)
                yield Piece("added", after)


def _joined(script: Iterator[Piece]) -> list[Piece]:
    """Join neighbours, what is removed before what is added; what is the same between two changes and has no
    word in it belongs to both: a lone comma says nothing."""
    out: list[Piece] = []
    same: list[str] = []
    removed: list[str] = []
    added: list[str] = []

    def change() -> Iterator[Piece]:
        yield from (Piece("removed", "".join(removed)), Piece("added", "".join(added)))

    for piece in script:
        if not piece.text:
            continue
        if piece.op == "same":
            same.append(piece.text)
            continue
        between = "".join(same)
        if (between and not (removed or added)) or any(map(str.isalnum, between)):
            out += [*change(), Piece("same", between)]
            removed, added = [], []
        elif between:
            removed.append(between)
            added.append(between)
        same = []
        (removed if piece.op == "removed" else added).append(piece.text)
    out += [*change(), Piece("same", "".join(same))]
    return [piece for piece in out if piece.text]


def matches(a: Sequence[str], b: Sequence[str], *, most: int = MOST_STEPS) -> list[Match] | None:
    """Return the runs that are the same in both, in order, so that the fewest items are left over.

    None: that takes more than `most` steps. What both begin and end with costs none.
    """
    ends = _ends(a, b)
    begin, end = (ends[0][2], ends[-1][2]) if ends else (0, 0)
    inner = _inner(a[begin : len(a) - end], b[begin : len(b) - end], most)
    if inner is None:
        return None
    shifted = ((i + begin, j + begin, size) for i, j, size in inner)
    return [match for match in (*ends[:1], *shifted, *ends[1:]) if match[2]]


def _ends(a: Sequence[str], b: Sequence[str]) -> list[Match]:
    """Return what both begin with, and what both end with of the rest; each may be of no length."""
    shorter = min(len(a), len(b))
    begin = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    rest = shorter - begin
    end = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    return [(0, 0, begin), (len(a) - end, len(b) - end, end)]


def _inner(a: Sequence[str], b: Sequence[str], most: int) -> list[Match] | None:
    """Return the runs of two sequences by Myers' greedy algorithm.

    Each row has, for the diagonals (place in a - place in b) that so many differences lead to, how far they lead
    in a: every second diagonal from its first on, between two -1.
    """
    rows = [_Row(1, array("q", [-1, -1]))]
    steps = 0
    for d in range(len(a) + len(b) + 1):
        first, last = -d + 2 * max(0, d - len(b)), d - 2 * max(0, d - len(a))
        reached = array("q", [-1])
        before = rows[-1].reached
        at = (first - rows[-1].first + 1) // 2
        diagonals = range(first, last + 1, 2)
        for diagonal, left, up in zip(diagonals, before[at:], before[at + 1 :], strict=False):
            x = begun = left + 1 if left >= up else up
            y = x - diagonal
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x += 1
                y += 1
            if x >= len(a) and y >= len(b):
                return _runs(rows, x, diagonal)
            reached.append(x)
            steps += 1 + x - begun
            if steps > most:
                return None
        reached.append(-1)
        rows.append(_Row(first, reached))
    return []


class _Row(NamedTuple):
    first: int
    reached: array[int]

    def on(self, diagonal: int) -> int:
        at = (diagonal - self.first) // 2 + 1
        return self.reached[at] if 0 < at < len(self.reached) else -1


def _runs(rows: list[_Row], x: int, diagonal: int) -> list[Match]:
    """Return the runs on the way to a place, from the rows before it."""
    found = []
    while rows:
        row = rows.pop()
        left, up = row.on(diagonal - 1), row.on(diagonal + 1)
        begun = max(left + 1, up)
        if x > begun:
            found.append((begun, begun - diagonal, x - begun))
        x, diagonal = (left, diagonal - 1) if left >= up else (up, diagonal + 1)
    return found[::-1]
