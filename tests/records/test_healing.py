"""Healing: what can be proven is put right; everything else stays as it is."""

import hashlib
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledger.records import codec, erasing, healing, kinds

AT = "2026-01-01T00:00:00.000000Z"
ID = "alex"


def log(batches=(1, 2, 1, 3, 1), seed=1):
    """A log of batches, with another writer's line in the middle; the same one for the same seed."""
    data, count, chain = b"", 0, codec.first_chain(ID)
    salts = random.Random(seed)
    covered = hashlib.sha256(chain)
    for number, size in enumerate(batches):
        bodies = [
            codec.body(kinds.new("entry", AT, plugin="p", entry="e", data=f"text {number}.{i}"))
            for i in range(size)
        ]
        lines, chain = codec.seal(bodies, count, covered, [salts.randbytes(16) for _ in bodies])
        data, count = data + lines, count + size
        covered = hashlib.sha256(chain)
        if number == 2:
            foreign = (
                b'{"functai_conversation":1,"kind":"stop","at":"%b","turn":"t"}\n' % AT.encode()
            )
            data, count = data + foreign, count + 1
            covered.update(foreign)
    return data


def verdicts(data):
    """What each line is."""
    scanner = codec.Scanner(codec.first_chain(ID))
    scanner.feed(data)
    return [line.verdict for line in scanner.settled(at_end=True)]


WHOLE = log()


def test_a_whole_log_needs_nothing():
    """Nothing is proposed for a log that checks."""
    assert healing.changes(WHOLE, ID) == []
    assert healing.changes(WHOLE, ID, WHOLE) == []


def test_an_altered_chain_value_is_recomputed():
    """A chain value follows from the line's bytes, and the next seal proves it."""
    for line in codec_lines(WHOLE)[:-1]:
        place = line.end - 10
        old = WHOLE[place : place + 1]
        damaged = WHOLE[:place] + (b"A" if old != b"A" else b"B") + WHOLE[place + 1 :]
        found = healing.changes(damaged, ID)

        assert [change.why for change in found] == ["chain"]
        assert healing.apply(damaged, found) == WHOLE


def codec_lines(data):
    """The sealed lines of a log."""
    scanner = codec.Scanner(codec.first_chain(ID))
    scanner.feed(data)
    return [line for line in scanner.settled(at_end=True) if line.written is not None]


def flipped(data, place, flip, length):
    """Data with some bytes altered; the last line feed stays."""
    end = min(len(data) - 1, place + length)
    return data[:place] + bytes(byte ^ flip for byte in data[place:end]) + data[end:]


def ends(data):
    """Where lines end."""
    return [place for place, byte in enumerate(data) if byte == 0x0A]


BAD = {"suspect", "unreadable"}
SPACED = ord("}") ^ ord(" ")
FEED = ord("}") ^ ord("\n")
PAIR = next(p for p, byte in enumerate(WHOLE) if byte ^ WHOLE[p + 1] == ord(" ") ^ ord("\n"))
"""Where one flip makes a space and a line feed of two bytes."""
FIRST = ends(WHOLE)[0]


@settings(max_examples=300)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255), st.integers(1, 40))
@example(PAIR, WHOLE[PAIR] ^ ord(" "), 40)  # It makes a line that ends in a space.
@example(0, ord("{") ^ ord("\n"), 1)  # It makes a blank line, before a line
@example(FIRST + 1, ord("{") ^ ord("\n"), 3)
@example(FIRST - 1, FEED, 1)  # and behind one,
@example(len(WHOLE) - 2, FEED, 1)  # also at the end.
@example(FIRST - 1, SPACED, 1)  # It makes a line end as a tombstone does.
@example(len(WHOLE) - 9, SPACED, 40)
def test_a_copy_heals_any_damage_that_keeps_its_length(place, flip, length):
    """With an older or equal copy, altered bytes come back; what is proposed always checks.

    But a line that ends in a space where it did not may be what is left of a tombstone.
    """
    damaged = flipped(WHOLE, place, flip, length)
    found = healing.changes(damaged, ID, WHOLE)
    healed = healing.apply(damaged, found)

    for change in found:
        assert WHOLE[change.offset : change.offset + len(change.after)] == change.after
    if any(damaged[end - 1 : end + 1] == b" \n" for end in ends(WHOLE)):
        assert healed == damaged
    elif BAD & set(verdicts(damaged)):
        assert healed == WHOLE


@settings(max_examples=200)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_nothing_is_proposed_that_was_not_written(place, flip):
    """Without a copy, whatever one byte became, a change restores what stood there, or none is made."""
    damaged = WHOLE[:place] + bytes([WHOLE[place] ^ flip]) + WHOLE[place + 1 :]
    for change in healing.changes(damaged, ID):
        assert WHOLE[change.offset : change.offset + len(change.after)] == change.after


@given(st.integers(0, len(WHOLE)), st.binary(max_size=300))
def test_a_copy_of_another_log_changes_nothing(cut, tail):
    """Bytes that do not check are never taken over, wherever they come from."""
    damaged = WHOLE.replace(b"text 1.0", b"text 9.9")
    other = log((2, 2, 2, 2), seed=2)
    for copy in (other, other[:cut] + tail, tail):
        for change in healing.changes(damaged, ID, copy):
            assert WHOLE[change.offset : change.offset + len(change.after)] == change.after


def test_changes_can_be_undone():
    """Undoing puts the damaged bytes back."""
    damaged = WHOLE.replace(b"text 1.0", b"text 9.9")
    found = healing.changes(damaged, ID, WHOLE)
    healed = healing.apply(damaged, found)

    assert healed == WHOLE
    assert healing.apply(healed, healing.undone(healed, ID, found, len(healed))) == damaged


def test_an_older_copy_heals_as_far_as_it_goes():
    """Of damaged lines that follow each other those come back that a copy holds, also one that ends within a line."""
    first, second, third = ends(WHOLE)[:3]
    damaged = flipped(WHOLE, first - 50, 1, third - first + 50)
    for size in (second + 1, third - 1):
        healed = healing.apply(damaged, healing.changes(damaged, ID, WHOLE[:size]))
        assert healed == WHOLE[: second + 1] + damaged[second + 1 :]


# -- what was forgotten ----------------------------------------------------------------------------

TURN, SECRET = "0199c000-0000-7000-8000-00000000000a", b"canary"


def told():
    """A log in which a turn tells a secret, three times."""
    said = SECRET.decode()
    records = [
        kinds.new("entry", AT, plugin="p", entry="e", data="before"),
        kinds.new("turn", AT, turn=TURN, parent=None, program="p", inputs={"message": said}),
        kinds.new("reply", AT, turn=TURN, key="k", response={"text": said * 20}),
        kinds.new("ended", AT, turn=TURN, state="done", outputs={"result": said}, saw=[]),
        kinds.new("entry", AT, plugin="p", entry="e", data="after"),
    ]
    data, chain, salts = b"", codec.first_chain(ID), random.Random(3)
    for count, record in enumerate(records):
        covered, salt = hashlib.sha256(chain), salts.randbytes(16)
        line, chain = codec.seal([codec.body(record)], count, covered, [salt])
        data += line
    return data


def forgotten(data):
    """A log after its turn was forgotten."""
    lines, offset = [], 0
    for line in data.split(b"\n")[:-1]:
        lines.append((offset, line))
        offset += len(line) + 1
    after = bytearray(data)
    for change in erasing.Eraser(TURN).changes(lines):
        after[change.offset : change.offset + change.length] = change.tombstone
    return bytes(after)


TOLD = told()
FORGOTTEN = forgotten(TOLD)
MARKS = (b'"erased":true', b'"kind":"erased"', b" \n")


def marked(data, start, end):
    """Whether something of a tombstone stands at a place where there was one."""
    return any(
        FORGOTTEN.startswith(mark, place) and data.startswith(mark, place)
        for mark in MARKS
        for place in range(start, end)
    )


@settings(max_examples=300)
@given(
    place=st.integers(0, len(FORGOTTEN) - 2),
    length=st.integers(1, 600),
    flip=st.integers(0, 255),
    known=st.booleans(),
)
def test_no_copy_brings_back_what_was_forgotten(place, length, flip, known):
    """Known to be forgotten, a turn stays so; not known, every line of it in which a mark of that stands."""
    if flip:
        damaged = flipped(FORGOTTEN, place, flip, length)
    else:
        end = min(place + length, len(FORGOTTEN) - 1)
        damaged = FORGOTTEN[:place] + bytes(end - place) + FORGOTTEN[end:]
    found = healing.changes(damaged, ID, TOLD, [TURN] if known else [])
    healed = healing.apply(damaged, found)

    start = 0
    for end in ends(TOLD):
        if known or marked(damaged, start, end):
            assert SECRET not in healed[start:end]
        start = end + 1


@pytest.mark.parametrize("mark", MARKS[:2])
def test_one_mark_of_a_tombstone_is_enough(mark):
    """All else of it destroyed, and whose it was unknown, a line is not brought back."""
    at = FORGOTTEN.index(mark)
    start, end = FORGOTTEN.rindex(b"\n", 0, at) + 1, FORGOTTEN.index(b"\n", at)
    left = mark.rjust(at - start + len(mark), b"?").ljust(end - start, b"?")
    damaged = FORGOTTEN[:start] + left + FORGOTTEN[end:]

    assert not healing.changes(damaged.replace(TURN.encode(), b"?" * len(TURN)), ID, TOLD)
