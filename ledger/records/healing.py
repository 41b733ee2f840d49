"""What of a damaged log can be put right, with proof. Pure, over the bytes of a whole log.

Nothing is guessed: a change is proposed only where the seals check once it is made, so what comes back
is what was written. Two things can be proven. A chain value that was altered: the line's own bytes say
what it was, and the next seal, which covers it, agrees. And bytes for which a copy of the log has
others at the same place: logs only grow, so the same place holds the same bytes for ever.

What was forgotten stays forgotten: a copy is used as it would be had its turns been forgotten too, and
a line in which something of a tombstone stands is given nothing else. So one kind of damage stays though
a copy could mend it: the last byte of a line became a space, as a tombstone ends.

Changes keep every length: readers remember offsets.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec

from ledger.records import codec, erasing
from ledger.records.verdicts import HANDED_OUT

_ERASED = b'"erased":true'
_MARKS = (_ERASED, b'"kind":"erased"')
"""What stands in a tombstone and in no line that says something."""
_BAD = frozenset({"suspect", "unreadable"})


class Change(msgspec.Struct, frozen=True):
    """Bytes to be put in the place of others of the same length."""

    offset: int
    before: bytes
    after: bytes
    why: str
    """`chain`: the value follows from the bytes before it. `copy`: a copy of the log has it.
    `forgotten`: it has, and its turn was forgotten since, so its tombstone is put there."""


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
        found += _from_copy(apply(data, found), conversation, copy, forgotten)
    return _harmless(data, conversation, sorted(found, key=lambda change: change.offset))


def apply(data: bytes, found: list[Change]) -> bytes:
    """Return a log with changes made; those whose `before` does not stand there are left out."""
    healed = bytearray(data)
    for change in found:
        end = change.offset + len(change.before)
        if healed[change.offset : end] == change.before:
            healed[change.offset : end] = change.after
    return bytes(healed)


def undone(data: bytes, conversation: str, found: list[Change], size: int) -> list[Change]:
    """Return the changes that undo changes, but for those by which a line appended since would be lost.

    Args: size: how long the log was when they were made.
    """
    back = [Change(c.offset, c.after, c.before, c.why) for c in found]
    there = [c for c in back if data[c.offset : c.offset + len(c.before)] == c.before]
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
        lost = sorted(line for line in good - still if not any(_meets(c, *line) for c in found))
        if not lost:
            break
        before = [c for c in found if c.offset < lost[0][0]]
        found = [c for c in found if c is not (before or found)[-1]]
    return found


def _good(data: bytes, conversation: str) -> set[tuple[int, int]]:
    """Return where the lines that are handed out begin and end."""
    scanner = codec.Scanner(codec.first_chain(conversation))
    scanner.feed(data[: data.rfind(b"\n") + 1])
    lines = scanner.settled(at_end=True)
    return {(line.start, line.end) for line in lines if line.verdict in HANDED_OUT}


# -- chains ----------------------------------------------------------------------------------------


class _Sealed(NamedTuple):
    covers_from: int
    """Offset of the first byte that its seal covers."""
    quote_at: int
    """Offset of the quote that opens its chain."""
    chain: bytes

    def due(self, data: bytes, before: bytes) -> bytes:
        """Return the chain that its bytes give after another chain."""
        covered = before + data[self.covers_from : self.quote_at]
        return base64.urlsafe_b64encode(hashlib.sha256(covered).digest()[:16]).rstrip(b"=")


def _sealed(data: bytes) -> Iterator[_Sealed]:
    start = covers_from = 0
    while (end := data.find(b"\n", start)) >= 0:
        seal = codec.find_seal(data[start:end])
        if seal is not None:
            yield _Sealed(covers_from, start + seal.quote_at, seal.chain)
            covers_from = end + 1
        start = end + 1


def _chains(data: bytes, conversation: str) -> Iterator[Change]:
    """Yield the chain values that were altered: wrong after the seal before, right for the next."""
    before = codec.first_chain(conversation)
    for line, following in pairwise(_sealed(data)):
        due = line.due(data, before)
        if due != line.chain and following.due(data, due) == following.chain:
            yield Change(line.quote_at + 1, line.chain, due, "chain")
            before = due
        else:
            before = line.chain


# -- a copy ----------------------------------------------------------------------------------------


def _from_copy(
    data: bytes, conversation: str, given: bytes, forgotten: Iterable[str]
) -> list[Change]:
    """Return the damaged stretches for which a copy has bytes that check."""
    stretches = list(_stretches(data, conversation))
    if not stretches:
        return []
    copy = _forgotten_too(data, given, forgotten)
    held = copy.rfind(b"\n") + 1
    proposed = [
        Change(
            start,
            data[start:end],
            copy[start:end],
            "copy" if copy[start:end] == given[start:end] else "forgotten",
        )
        for start, end in ((start, min(end, held)) for start, end in stretches)
        if copy[start:end] != data[start:end] and not _brings_back(data[start:end], copy[start:end])
    ]
    while proposed:
        healed = apply(data, proposed)
        bad = list(_stretches(healed, conversation))
        good = [c for c in proposed if not any(_meets(c, start, end) for start, end in bad)]
        if len(good) == len(proposed):
            return good
        proposed = good
    return []


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
    return change.offset < end and start < change.offset + len(change.before)


def _stretches(data: bytes, conversation: str) -> Iterator[tuple[int, int]]:
    """Yield where damage begins and ends: from one good line to the next, or the end of the last line.

    Blank lines between belong to it: damage makes some, of the first or the last byte of a line.
    """
    scanner = codec.Scanner(codec.first_chain(conversation))
    end = data.rfind(b"\n")
    scanner.feed(data[: end + 1])
    begin, bad = 0, False
    for line in scanner.settled(at_end=True):
        if codec.judged(line, data[line.start : line.end]) in _BAD:
            bad = True
            continue
        if bad:
            yield begin, line.start - 1
        begin, bad = line.end + 1, False
    if bad:
        yield begin, end
