"""Lines that are lost in the middle of a log come back from a copy of it: all of them, and nothing else."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.records import codec, healing, kinds
from tests.records.test_healing import AT, BAD, FORGOTTEN, ID, SECRET, TOLD, TURN, log, verdicts

WHOLE = log()
LINES = WHOLE.splitlines(keepends=True)
FOREIGN = next(n for n, line in enumerate(LINES) if b'"ledger"' not in line)


def mended(damaged, copy, forgotten=()):
    """Return a log as it is once it was repaired from a copy."""
    return healing.apply(damaged, healing.changes(damaged, ID, copy, forgotten))


def appended(data, text):
    """A log with one more line, as a writer makes it that found this log."""
    scanner = codec.Scanner(codec.first_chain(ID))
    scanner.feed(data)
    body = codec.body(kinds.new("entry", AT, plugin="p", entry="e", data=text))
    salt = hashlib.sha256(text.encode()).digest()[:16]
    return data + codec.seal([body], scanner.count, scanner.covered, [salt])[0]


# -- which losses ----------------------------------------------------------------------------------


@pytest.mark.parametrize("line", range(len(LINES) - 1))
def test_a_line_that_is_gone_is_put_back(line):
    """Also line 1, one of a batch, and another writer's."""
    damaged = b"".join(LINES[:line] + LINES[line + 1 :])
    assert BAD & set(verdicts(damaged))
    assert mended(damaged, WHOLE) == WHOLE


@pytest.mark.parametrize("count", range(1, len(LINES)))
def test_several_lines_that_are_gone_are_put_back(count):
    """As many as there are, as long as a line follows whose seal shows where they end."""
    for line in range(len(LINES) - count):
        assert mended(b"".join(LINES[:line] + LINES[line + count :]), WHOLE) == WHOLE


@pytest.mark.parametrize("line", range(len(LINES) - 1))
def test_two_lines_run_together_are_parted(line):
    """Their line feed is gone, or more around it."""
    for cut in (1, 2, 60):
        before = b"".join(LINES[: line + 1])[:-cut]
        assert mended(before + b"".join(LINES[line + 1 :]), WHOLE) == WHOLE
        assert mended(before + b"".join(LINES[line + 1 :])[cut:], WHOLE) == WHOLE


@pytest.mark.parametrize("line", range(len(LINES)))
@pytest.mark.parametrize("garbage", [b"?\n", b"\n\n", b"?" * 900 + b"\n", b"a\nb\nc\n", b'"]}\n'])
def test_garbage_of_another_length_gives_way_to_the_line(line, garbage):
    """Also at the end of the log, where no line follows."""
    damaged = b"".join([*LINES[:line], garbage, *LINES[line + 1 :]])
    healed = mended(damaged, WHOLE)
    if BAD & set(verdicts(damaged)):
        assert healed == WHOLE
    else:
        assert healed == damaged


def test_lines_that_do_not_belong_go():
    """A line that is there twice, and one that somebody put in between."""
    for line in range(1, len(LINES) - 1):
        assert mended(b"".join([*LINES[:line], LINES[line - 1], *LINES[line:]]), WHOLE) == WHOLE
        assert mended(b"".join([*LINES[:line], b"{}\n", *LINES[line:]]), WHOLE) == WHOLE


def test_what_was_appended_on_the_damage_stays():
    """A line whose seal was made on a log with a hole checks also on the log without it."""
    for line in range(len(LINES) - 1):
        tail = appended(b"".join(LINES[:line] + LINES[line + 1 :]), "later")
        healed = mended(tail, WHOLE)
        assert healed.startswith(WHOLE)
        assert healed[len(WHOLE) :] == tail[len(tail) - len(healed) + len(WHOLE) :]
        assert not BAD & set(verdicts(healed))


# -- which copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("held", range(len(LINES) + 1))
def test_an_older_copy_serves_where_it_holds_all_that_is_lost(held):
    """The line after the hole checks behind the last one of the copy; a copy that ends before that proves nothing."""
    copy = b"".join(LINES[:held])
    for line in range(len(LINES) - 2):
        damaged = b"".join(LINES[:line] + LINES[line + 2 :])
        assert mended(damaged, copy) == (WHOLE if held >= line + 2 else damaged)


def test_a_newer_copy_serves_and_its_later_lines_stay_away():
    """Records that are missing at the end are no damage."""
    newer = appended(appended(WHOLE, "more"), "and more")
    for line in range(len(LINES) - 1):
        assert mended(b"".join(LINES[:line] + LINES[line + 1 :]), newer) == WHOLE


def test_a_copy_that_is_damaged_itself_serves_elsewhere():
    """What does not check in the copy is not taken, also where the log lacks it; the other hole is filled."""
    damaged = b"".join(LINES[:1] + LINES[2:6] + LINES[7:])
    copy = WHOLE.replace(b"text 1.0", b"text 9.9")
    assert mended(damaged, copy) == b"".join(LINES[:1] + LINES[2:])


@given(st.integers(0, len(WHOLE)), st.binary(max_size=300))
def test_a_copy_of_another_log_changes_nothing(cut, tail):
    """Wherever the hole is."""
    other = log((2, 2, 2, 2), seed=2)
    damaged = b"".join(LINES[:2] + LINES[3:])
    for copy in (other, other[:cut] + tail, tail, WHOLE[cut:] + tail):
        assert mended(damaged, copy) in (damaged, WHOLE)


def test_what_was_appended_to_a_restored_copy_is_not_mixed_in():
    """Two logs that went on apart: of the other's lines none is put into this one."""
    here, there = appended(WHOLE, "here"), appended(WHOLE, "there")
    damaged = b"".join(LINES[:2] + LINES[3:]) + here[len(WHOLE) :]
    assert mended(damaged, there) == here


# -- an oracle -------------------------------------------------------------------------------------

DAMAGES = st.lists(
    st.one_of(
        st.tuples(st.just("remove"), st.integers(0, 90), st.integers(1, 3)),
        st.tuples(st.just("join"), st.integers(0, 90), st.integers(1, 80)),
        st.tuples(st.just("garble"), st.integers(0, 90), st.binary(max_size=60)),
        st.tuples(st.just("insert"), st.integers(0, 90), st.binary(max_size=60)),
    ),
    min_size=1,
    max_size=4,
)


def harm(lines, what, at, how):
    """Damage a log that is given as a list of lines; the last line stays, so that the end is where it was."""
    at %= max(1, len(lines) - 1)
    if what == "remove":
        return lines[:at] + lines[min(at + how, len(lines) - 1) :]
    if what == "join":
        return [*lines[:at], lines[at][:-how] + b"".join(lines[at + 1 : at + 2]), *lines[at + 2 :]]
    if what == "garble":
        return [*lines[:at], how + b"\n", *lines[at + 1 :]]
    return [*lines[:at], how + b"\n", *lines[at:]]


@settings(max_examples=250)
@given(DAMAGES, st.lists(st.sampled_from("xyz"), max_size=2))
def test_a_whole_copy_gives_the_log_back(damages, later):
    """Whatever was removed, run together, garbled or put in between: the log is what it was.

    What was appended on the damage is never lost; where its seals cover the damage, that stays.
    """
    lines = LINES
    for damage in damages:
        lines = harm(lines, *damage)
    damaged = b"".join(lines)
    for text in later if damaged.endswith(LINES[-1]) else ():
        damaged = appended(damaged, text)
    good = readable(damaged)
    healed = mended(damaged, WHOLE)

    assert good <= readable(healed)
    if damaged.endswith(LINES[-1]):
        assert healed == WHOLE
    elif later and any(line.endswith(LINES[-1]) for line in lines):
        assert healed.startswith(WHOLE)


def readable(data):
    """The lines that are handed out."""
    found = zip(data.split(b"\n"), verdicts_by_line(data), strict=False)
    return {line for line, verdict in found if verdict in {"sealed", "unsealed", "erased"}}


def verdicts_by_line(data):
    """What each line is, blank ones too."""
    each = iter(verdicts(data))
    return ["blank" if codec.is_blank(line) else next(each) for line in data.split(b"\n")[:-1]]


# -- what was forgotten ----------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.integers(0, 3), st.integers(1, 3), st.sampled_from([b"", b"?\n", b"?" * 999 + b"\n"]))
def test_what_was_forgotten_comes_back_as_tombstones(line, count, instead):
    """A copy from before that has the turn's lines; the log gets their tombstones, and is what it was."""
    lines = FORGOTTEN.splitlines(keepends=True)
    damaged = b"".join([*lines[:line], instead, *lines[min(line + count, 4) :]])
    healed = mended(damaged, TOLD, [TURN])
    assert SECRET not in healed
    assert healed == FORGOTTEN


def test_a_mark_of_a_tombstone_keeps_other_lines_away():
    """Nobody knows whose it was, and the copy has lines there that say something."""
    lines = FORGOTTEN.splitlines(keepends=True)
    damaged = lines[0] + b"? " + b'"erased":true' + b" ?\n" + lines[4]
    assert mended(damaged, TOLD) == damaged


def test_changes_are_undone_where_bytes_moved():
    """The damage is what it was, behind several changes of other lengths and an append."""
    damaged = b"".join(LINES[:1] + LINES[2:4] + [b"??\n"] + LINES[5:])
    found = healing.changes(damaged, ID, WHOLE)
    healed = healing.apply(damaged, found)
    assert (healed, len(found)) == (WHOLE, 2)

    back = healing.undone(healed, ID, healing.moved(found), len(healed))
    assert healing.apply(healed, back) == damaged
    grown = appended(healed, "later")
    back = healing.undone(grown, ID, healing.moved(found), len(healed))
    assert healing.apply(grown, back) == damaged + grown[len(healed) :]
