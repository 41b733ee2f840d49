"""What of a damaged log can be put right, with proof. Pure, over the bytes of a whole log.

Nothing is guessed: a change is proposed only where the seals check once it is made, so what comes back
is what was written. Three things can be proven. A chain value that was altered: the line's own bytes say
what it was, and the next seal, which covers it, agrees. Bytes for which a copy of the log has
others at the same place: logs only grow, so the same place holds the same bytes for ever. And lines that are
gone, run together, or have become another number of bytes, which a copy has between the same seals (`holes`).

What was forgotten stays forgotten: a copy is used as it would be had its turns been forgotten too, and
a line in which something of a tombstone stands is given nothing else. So one kind of damage stays though
a copy could mend it: the last byte of a line became a space, as a tombstone ends.

All changes but the last keep every length: readers remember offsets. Where lines were lost the offsets behind them are
wrong already, and such a change puts them right.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Literal

import msgspec

from ledger.records import codec, erasing, holes
from ledger.records.verdicts import HANDED_OUT

_OFFSET = attrgetter("offset")
_ERASED = b'"erased":true'
_MARKS = (_ERASED, b'"kind":"erased"')
"""What stands in a tombstone and in no line that says something."""


class Change(msgspec.Struct, frozen=True):
    """Bytes to be put in the place of others; of the same length, but where lines are put back."""

    offset: int
    before: bytes
    after: bytes
    why: str
    """`chain`: the value follows from the bytes before it. `copy`: a copy of the log has it.
    `forgotten`: it has, and its turn was forgotten since, so its tombstone is put there."""

    @property
    def end(self) -> int:
        """Offset behind the bytes that it replaces."""
        return self.offset + len(self.before)

    @property
    def grows_by(self) -> int:
        """By how many bytes it moves what stands behind it."""
        return len(self.after) - len(self.before)


def changes(
    data: bytes, conversation: str, copy: bytes | None = None, forgotten: Iterable[str] = ()
) -> list[Change]:
    """Return what can be put right in a log, in order; applied together, they check.

    No line that can be read is lost by them.
    Args: copy: the log as it was at another time, from a backup or an export. forgotten: turns that
    are known to be forgotten, besides those that have tombstones.
    """
    found = list(_chains(data, conversation))
    if copy is not None:
        told = _forgotten_too(data, copy, forgotten)
        put_back = _put_back(apply(data, found), conversation, copy, told)
        found = _both(data, found, put_back)
        in_place = _from_copy(apply(data, found), conversation, copy, told)
        found = _both(data, found, in_place)
    return _harmless(data, conversation, found)


class Left(msgspec.Struct, frozen=True):
    """Damage that is not put right."""

    offset: int
    size_bytes: int
    why: Literal["alone", "forgotten"] | holes.Reason
    """`alone`: there is no copy. `forgotten`: something stands there that forgetting leaves. Else why the copy does
    not tell."""


def left(
    data: bytes, conversation: str, copy: bytes | None = None, forgotten: Iterable[str] = ()
) -> list[Left]:
    """Return what is damaged in a log and not put right by `changes`, with the reason. Args: as there."""
    bad = list(holes.stretches(data, conversation))
    if not bad or copy is None:
        return [Left(start, end - start, "alone") for start, end in bad]
    source = holes.Copy(copy, _forgotten_too(data, copy, forgotten), conversation)
    return [
        Left(start, end - start, "forgotten" if _hides(data[start:end], b"") else why)
        for start, end in bad
        for why in (source.why_not(data, start),)
    ]


def further(data: bytes, conversation: str, copy: bytes) -> int:
    """Count the sealed lines that a copy has behind the last line of a log; 0 where it does not hold that line."""
    return holes.Copy(copy, copy, conversation).further(data)


def apply(data: bytes, found: Iterable[Change]) -> bytes:
    """Return a log with changes made; those whose `before` does not stand there are left out."""
    healed = bytearray(data)
    for change in sorted(found, key=_OFFSET, reverse=True):
        if healed[change.offset : change.end] == change.before:
            healed[change.offset : change.end] = change.after
    return bytes(healed)


def moved(found: list[Change]) -> list[Change]:
    """Return changes, in order, with the offsets that their bytes have once all are made."""
    by, there = 0, []
    for change in found:
        there.append(Change(change.offset + by, change.before, change.after, change.why))
        by += change.grows_by
    return there


def undone(data: bytes, conversation: str, found: list[Change], size: int) -> list[Change]:
    """Return the changes that undo changes, but for those by which a line appended since would be lost.

    Args: found: with offsets as `moved` gives them. size: how long the log was when they were made.
    """
    back = [Change(c.offset, c.after, c.before, c.why) for c in found]
    there = [c for c in back if data[c.offset : c.end] == c.before]
    return _harmless(data, conversation, there, since=size)


def _harmless(
    data: bytes, conversation: str, found: list[Change], *, since: int = 0
) -> list[Change]:
    """Leave out the changes by which lines are lost: a later seal may have been made on the damage.

    Args: since: offset of the first line that counts.
    """
    if not found:
        return []
    good = {line for line in _good(data, conversation) if line[0] >= since}
    while found:
        still = _good(apply(data, found), conversation)
        now = _Moved(found)
        lost = sorted(
            line
            for line in good
            if now.line(*line) not in still and not any(_meets(c, *line) for c in found)
        )
        if not lost:
            break
        before = [c for c in found if c.offset < lost[0][0]]
        found = [c for c in found if c is not (before or found)[-1]]
    return found


class _Moved:
    """Where lines are once changes were made."""

    def __init__(self, found: Iterable[Change]) -> None:
        moving = sorted((c for c in found if c.grows_by), key=_OFFSET)
        self._ends = [change.end for change in moving]
        self._by = [0, *accumulate(change.grows_by for change in moving)]

    def line(self, start: int, end: int) -> tuple[int, int]:
        """Return where a line begins and ends, of those that no change meets."""
        by = self._by[bisect_right(self._ends, start)]
        return start + by, end + by


def _good(data: bytes, conversation: str) -> set[tuple[int, int]]:
    """Return where the lines that are handed out begin and end."""
    scanner = codec.Scanner(codec.first_chain(conversation))
    scanner.feed(data[: data.rfind(b"\n") + 1])
    lines = scanner.settled(at_end=True)
    return {(line.start, line.end) for line in lines if line.verdict in HANDED_OUT}


# -- chains ----------------------------------------------------------------------------------------


def _chains(data: bytes, conversation: str) -> Iterator[Change]:
    """Yield the chain values that were altered: wrong after the seal before, right for the next."""
    before = codec.first_chain(conversation)
    for line, following in pairwise(holes.sealed(data)):
        due = line.due(data, before)
        if due != line.chain and following.due(data, due) == following.chain:
            yield Change(line.quote_at + 1, line.chain, due, "chain")
            before = due
        else:
            before = line.chain


# -- a copy ----------------------------------------------------------------------------------------


def _from_copy(data: bytes, conversation: str, given: bytes, copy: bytes) -> list[Change]:
    """Return the damaged stretches for which a copy has bytes that check."""
    stretches = list(holes.stretches(data, conversation))
    if not stretches:
        return []
    held = copy.rfind(b"\n") + 1
    proposed = [
        Change(
            start,
            data[start:end],
            copy[start:end],
            "copy" if copy[start:end] == given[start:end] else "forgotten",
        )
        for start, end in ((start, min(end, held)) for start, end in stretches)
        if copy[start:end] != data[start:end]
        and not _brings_back(data[start:end], copy[start:end])
        and not _are_others(data, start, copy[:end])
    ]
    while proposed:
        healed = apply(data, proposed)
        bad = list(holes.stretches(healed, conversation))
        good = [c for c in proposed if not any(_meets(c, start, end) for start, end in bad)]
        if len(good) == len(proposed):
            return good
        proposed = good
    return []


def _are_others(data: bytes, begin: int, copy: bytes) -> bool:
    """Say whether a log has, from a place, a line of another seal than a copy: then lines were lost before it."""
    while begin < len(copy):
        line = data[begin : data.index(b"\n", begin)]
        seal = codec.find_seal(line)
        cut = begin + len(line) > len(copy)
        if seal is not None and not (cut and codec.decode_plain(line) is None):
            written = seal.chain, *([seal.salt.encode()] if seal.salt is not None else [])
            if not any(copy.startswith(text, begin + line.rindex(text)) for text in written):
                return True
        begin += len(line) + 1
    return False


def _put_back(data: bytes, conversation: str, given: bytes, copy: bytes) -> list[Change]:
    """Return the lines of a copy that are lost in a log, each run of them as one change."""
    proposed = [
        Change(
            hole.start,
            data[hole.start : hole.stop],
            copy[hole.begin : hole.end],
            "copy" if copy[hole.begin : hole.end] == given[hole.begin : hole.end] else "forgotten",
        )
        for hole in holes.Copy(given, copy, conversation).holes(data, conversation)
    ]
    proposed = [c for c in proposed if not _hides(c.before, c.after)]
    while proposed:
        bad = list(holes.stretches(apply(data, proposed), conversation))
        there = zip(proposed, moved(proposed), strict=True)
        good = [c for c, m in there if not any(_touches(m, start, end) for start, end in bad)]
        if len(good) == len(proposed):
            break
        proposed = good
    return [_without_last_feed(change) for change in proposed]


def _without_last_feed(change: Change) -> Change:
    """Return a change that leaves alone the line feed that both its sides end in."""
    if change.before.endswith(b"\n") and change.after.endswith(b"\n"):
        return Change(change.offset, change.before[:-1], change.after[:-1], change.why)
    return change


def _touches(there: Change, start: int, end: int) -> bool:
    """Say whether bytes that were put somewhere, or the line behind them, are in a stretch of damage."""
    return start <= there.offset + len(there.after) and there.offset <= end


def _hides(before: bytes, after: bytes) -> bool:
    """Say whether something of a tombstone stands in bytes of which the lines in their place have none.

    Whole tombstones that are among those lines are no such thing.
    """
    for line in after.split(b"\n"):
        if line.endswith(b" ") or any(mark in line for mark in _MARKS):
            before = before.replace(line, b"", 1)
    return b" \n" in before or any(mark in before for mark in _MARKS)


def _both(data: bytes, first: list[Change], then: list[Change]) -> list[Change]:
    """Return the changes of a log that do what two sets of changes do, one made after the other."""
    there = moved(first)
    moving = [change for change in there if change.grows_by]
    ends = [change.offset + len(change.after) for change in moving]
    by = [0, *accumulate(change.grows_by for change in moving)]
    second = []
    for change in then:
        if not any(_touches(m, change.offset, change.end) for m in moving):
            offset = change.offset - by[bisect_right(ends, change.offset)]
            before = data[offset : offset + len(change.before)]
            second.append(Change(offset, before, change.after, change.why))
    kept = [c for c in first if not any(_meets(c, s.offset, s.end) for s in second)]
    return sorted([*kept, *second], key=_OFFSET)


def _forgotten_too(data: bytes, copy: bytes, known: Iterable[str]) -> bytes:
    """Return a copy without what the turns said that are forgotten: known to be, or with a tombstone."""
    forgotten: set[object] = set(known)
    for line in data.split(b"\n"):
        record = codec.decode_plain(line) if _ERASED in line else None
        if record is not None and record.get("erased") is True:
            forgotten.add(record.get("turn"))
    for turn in forgotten:
        if isinstance(turn, str):
            found = erasing.Eraser(turn).changes(_lines(copy))
            copy = apply(copy, [_tombstone(change, copy) for change in found])
    return copy


def _tombstone(change: erasing.Change, data: bytes) -> Change:
    before = data[change.offset : change.offset + change.length]
    return Change(change.offset, before, change.tombstone, "forgotten")


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    for line in data.split(b"\n"):
        yield offset, line
        offset += len(line) + 1


def _brings_back(before: bytes, after: bytes) -> bool:
    """Say whether something of a tombstone stands in a stretch where the copy has none.

    Of a tombstone there may be left: a mark, or the spaces that it ends in. Those stand before the line
    feed that its line always had; before one that the damage made, a space says nothing.
    """
    for mark in _MARKS:
        if any(not after.startswith(mark, place) for place in _places(before, mark)):
            return True
    lines = after + b"\n"
    return any(
        lines[place : place + 1] != b" " and lines[place + 1 : place + 2] == b"\n"
        for place in _places(before + b"\n", b" \n")
    )


def _places(data: bytes, text: bytes) -> Iterator[int]:
    place = data.find(text)
    while place >= 0:
        yield place
        place = data.find(text, place + 1)


def _meets(change: Change, start: int, end: int) -> bool:
    return change.offset < end and start < change.end
