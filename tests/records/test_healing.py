"""Healing: what can be proven is put right; everything else stays as it is."""

import hashlib
import os

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.records import codec, healing, kinds

AT = "2026-01-01T00:00:00.000000Z"
ID = "alex"


def log(batches=(1, 2, 1, 3, 1)):
    """A log of batches, with another writer's line in the middle."""
    data, count, chain = b"", 0, codec.first_chain(ID)
    covered = hashlib.sha256(chain)
    for number, size in enumerate(batches):
        bodies = [
            codec.body(kinds.new("entry", AT, plugin="p", entry="e", data=f"text {number}.{i}"))
            for i in range(size)
        ]
        lines, chain = codec.seal(bodies, count, covered, [os.urandom(16) for _ in bodies])
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
    return [line for line in scanner.settled(at_end=True) if line.seal is not None]


@settings(max_examples=300)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255), st.integers(1, 40))
def test_a_copy_heals_any_damage_that_keeps_its_length(place, flip, length):
    """With an older or equal copy, altered bytes come back; what is proposed always checks."""
    end = min(len(WHOLE) - 1, place + length)
    altered = bytes(byte ^ flip for byte in WHOLE[place:end])
    damaged = WHOLE[:place] + altered + WHOLE[end:]
    found = healing.changes(damaged, ID, WHOLE)
    healed = healing.apply(damaged, found)

    assert len(healed) == len(WHOLE)
    for change in found:
        assert WHOLE[change.offset : change.offset + len(change.after)] == change.after
    if "suspect" in verdicts(damaged) or "unreadable" in verdicts(damaged):
        assert not {"suspect", "unreadable"} & set(verdicts(healed))


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
    other = log((2, 2, 2, 2))
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
