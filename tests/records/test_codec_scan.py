"""Scanning: seals checked, and torn, void, erased and damaged lines told apart."""

import contextlib
import json
import sys
import time
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.records import codec
from ledger.records.verdicts import Line
from tests.records import oracle

AT = "2026-01-01T00:00:00.000000Z"
PAD = "x" * 60  # Room for a tombstone, which is longer than a short line.


def text(**keys: Any) -> bytes:
    """A record as another writer would write it, or as our body."""
    record = {"functai_conversation": 1, "kind": "stop", "at": AT, "turn": PAD, **keys}
    return json.dumps(record, separators=(",", ":")).encode()


FOREIGN = text(seq=1)
BLANKS = [b"", b" ", b"\t", b"\r", b"\x0b", b"\x0c", b" \t\r\x0b\x0c "]
OTHERS = [
    FOREIGN,
    FOREIGN + b"\r",
    FOREIGN + b" \r",
    FOREIGN + b" ",
    FOREIGN + b"   ",
    b" \t" + FOREIGN,
    FOREIGN.replace(b",", b",\r"),
    FOREIGN + FOREIGN,
    b"\xef\xbb\xbf" + FOREIGN,
    FOREIGN[:-9],
    b"[]",
    b"3",
    b"null",
    b"{}",
    b"\0" * 20,
    b'{"functai_conversation":1,"kind":"x\xff"}',
    text(kind="unreadable"),
    text(functai_conversation=2),
    text(
        data="a" * 60
        + ',"seq":1,"ledger":["1/1","aaaaaaaaaaaaaaaaaaaaaa","aaaaaaaaaaaaaaaaaaaaaa"]}'
    ),
    text(data={"seq": 1, "ledger": ["1/1", "a" * 22, "a" * 22]}),
]


def salts(start: int = 0) -> Any:
    """16 bytes for each line, each time others."""
    place = start
    while True:
        place += 1
        yield place.to_bytes(16, "big")


class Writer:
    """Builds a log by the twin's hand: batches of ours, whole or cut, and others' lines."""

    def __init__(self) -> None:
        """An empty log of the conversation `c`."""
        self.log = oracle.Log("c")
        self.salts = salts()

    def ours(self, n: int, upto: int | None = None) -> "Writer":
        """A batch of n lines, of which only the first `upto` were written."""
        bodies = [text(data=self.log.count + i) for i in range(n)]
        self.log.ours(bodies, [next(self.salts) for _ in bodies], upto)
        return self

    def others(self, *lines: bytes) -> "Writer":
        """Lines of another writer."""
        for line in lines:
            self.log.others(line)
        return self

    @property
    def lines(self) -> list[bytes]:
        """The lines so far, without line feeds."""
        return self.log.data.split(b"\n")[:-1]


def joined(lines: list[bytes]) -> bytes:
    """Lines as a file."""
    return b"".join(line + b"\n" for line in lines)


def scanned(data: bytes, **given_flags: Any) -> list[Line]:
    """The lines of a whole log at its end."""
    scanner = codec.Scanner(codec.first_chain("c"), **given_flags)
    scanner.feed(data)
    return scanner.settled(at_end=True)


def verdicts(data: bytes, **given_flags: Any) -> list[str]:
    """What each line is."""
    return [line.verdict for line in scanned(data, **given_flags)]


def key(line: Line) -> tuple[int, int, int, str]:
    """A line in a form that compares with the twin's."""
    return line.start, line.end, line.seq, line.verdict


# -- against the twin ------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn, *, intact: bool = False) -> bytes:
    """A log of our batches and others' lines; unless intact, also cut batches and tombstones."""
    writer = Writer()
    for _ in range(draw(st.integers(1, 6))):
        match draw(
            st.sampled_from(
                ["ours", "others", "blank"] if intact else ["ours", "cut", "others", "blank"]
            )
        ):
            case "ours":
                writer.ours(draw(st.integers(1, 4)))
            case "cut":
                n = draw(st.integers(2, 4))
                writer.ours(n, draw(st.integers(1, n - 1)))
            case "others":
                writer.others(FOREIGN if intact else draw(st.sampled_from(OTHERS)))
            case _:
                writer.others(draw(st.sampled_from(BLANKS)))
    lines = writer.lines
    if not intact:
        for place, line in enumerate(lines):
            if oracle.find_seal(line) and draw(st.integers(0, 5)) == 0:
                lines[place] = oracle.tombstone(line)
    return joined(lines)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A log with up to three accidents."""
    data = draw(logs())
    for _ in range(draw(st.integers(0, 3))):
        lines = data.split(b"\n")[:-1]
        if not lines:
            break
        place = draw(st.integers(0, len(lines) - 1))
        other = draw(st.integers(0, len(lines) - 1))
        match draw(
            st.sampled_from(["flip", "delete", "double", "swap", "cut", "spaces", "garbage"])
        ):
            case "flip":
                data = flipped(data, draw(st.integers(0, len(data) - 1)), draw(st.integers(1, 255)))
                data = data[: data.rfind(b"\n") + 1]
                continue
            case "delete":
                del lines[place]
            case "double":
                lines.insert(other, lines[place])
            case "swap":
                lines[place], lines[other] = lines[other], lines[place]
            case "cut":
                del lines[place:]
            case "spaces":
                lines[place] += draw(st.sampled_from([b" ", b"\t", b"\r", b"  \r"]))
            case _:
                lines.insert(place, draw(st.sampled_from(OTHERS + BLANKS)))
        data = joined(lines)
    return data


def flipped(data: bytes, at: int, mask: int) -> bytes:
    """The same bytes but for one."""
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


@given(damaged(), st.booleans())
@settings(max_examples=400)
def test_verdicts_are_those_of_the_contract(data: bytes, erasing: bool) -> None:
    """Whatever happened to a log, each line has the place and the verdict that the twin gives it."""
    assert list(map(key, scanned(data, erasing=erasing))) == [
        line.key() for line in oracle.judge(data, erasing=erasing)
    ]


@given(damaged(), st.data())
@settings(max_examples=300)
def test_pieces_give_what_the_whole_gives(data: bytes, draws: st.DataObject) -> None:
    """Feeding line by line, asking in between in every way, ends in the same lines and verdicts."""
    scanner = codec.Scanner(codec.first_chain("c"))
    taken: list[Line] = []
    promised: list[tuple[Line, str]] = []
    for line in data.split(b"\n")[:-1]:
        scanner.feed(line + b"\n")
        ask = draws.draw(st.sampled_from(["no", "known", "end", "flight", "both"]))
        if ask != "no":
            flags = {"at_end": ask in ("end", "both"), "in_flight": ask in ("flight", "both")}
            got = scanner.settled(**flags)
            taken += got
            if ask == "known":
                promised += [(line_got, line_got.verdict) for line_got in got]
    taken += scanner.settled(at_end=True)

    assert list(map(key, taken)) == list(map(key, scanned(data)))
    assert scanner.offset == len(data)
    assert scanner.count == len(taken)
    for line_got, verdict in promised:
        assert line_got.verdict == verdict


@given(damaged())
@settings(max_examples=200)
def test_scan_from_the_middle_gives_the_tail(data: bytes) -> None:
    """From after a sealed line whose batch is sound so far, the verdicts are those of the whole."""
    whole = scanned(data)
    for place, line in enumerate(whole):
        if not starts_well(whole, place, data):
            continue
        start = data.index(b"\n", line.end) + 1
        seal = seal_of(line, data)
        assert seal is not None
        tail = codec.Scanner(seal.chain, offset=start, count=line.seq, after=seal)
        tail.feed(data[start:])

        assert list(map(key, tail.settled(at_end=True))) == list(map(key, whole[place + 1 :]))


def test_start_inside_a_batch_takes_the_lines_before_as_there() -> None:
    """Begun after 1/3, the unfinished rest of a batch is void; also when that seal is not given."""
    lines = two_of_three().lines
    for after in (codec.find_seal(lines[0]), None):
        found = codec.find_seal(lines[0])
        assert found is not None
        start = len(lines[0]) + 1
        tail = codec.Scanner(found.chain, offset=start, count=1, after=after)
        tail.feed(joined(lines[1:]))

        assert [line.verdict for line in tail.settled(at_end=True)] == ["void"]


def seal_of(line: Line, data: bytes) -> codec.Seal | None:
    """The seal of a line."""
    return codec.find_seal(data[line.start : line.end])


def starts_well(whole: list[Line], place: int, data: bytes) -> bool:
    """Whether a reader may begin after this line: its batch stands there from its first line on."""
    while True:
        line = whole[place]
        seal = seal_of(line, data)
        if seal is None or line.verdict == "suspect" or place < seal.i - 1:
            return False
        if seal.i == 1:
            return True
        before = seal_of(whole[place - 1], data)
        if before is None or (before.i, before.n) != (seal.i - 1, seal.n):
            return False
        place -= 1


@given(logs(intact=True), st.data())
@settings(max_examples=300)
def test_one_altered_byte_makes_nothing_void(data: bytes, draws: st.DataObject) -> None:
    """Damage never makes a neighbour void: all batches are whole, so whatever is hit, none is void."""
    if len(data) < 2:
        return
    at = draws.draw(st.integers(0, len(data) - 2))
    hurt = flipped(data, at, draws.draw(st.integers(1, 255)))

    assert "void" not in verdicts(hurt)


def test_no_byte_of_a_batch_makes_its_neighbours_void() -> None:
    """The same for every byte of a batch at the end of a log, with and without an append after it."""
    alone = Writer().ours(3)
    for data in (alone.log.data, Writer().ours(3).ours(2).log.data):
        for at in range(len(alone.log.data) - 1):
            for mask in (1, 2, 8, 32, 64, 128):
                hurt = flipped(data, at, mask)
                assert "void" not in verdicts(hurt), hurt


@given(logs(intact=True), st.data())
@settings(max_examples=200)
def test_one_altered_byte_costs_its_line_and_one_seal(data: bytes, draws: st.DataObject) -> None:
    """Lines after the next seal, and before the altered line, are handed out as before."""
    lines = scanned(data)
    sealed = [line for line in lines if line.written]
    if not sealed:
        return
    at = draws.draw(st.integers(0, sealed[-1].end - 1))
    hit = next(i for i, line in enumerate(sealed) if at <= line.end)
    first = sealed[hit - 1].end if hit else -1
    last = sealed[min(hit + 1, len(sealed) - 1)].end

    after = {
        (line.start, line.end): line.verdict
        for line in scanned(flipped(data, at, draws.draw(st.integers(1, 255))))
    }

    for line in lines:
        if line.end <= first or line.start > last:
            assert after[line.start, line.end] == line.verdict


def test_damaged_chain_value_costs_one_more_line() -> None:
    """A chain value that is another makes its own line and the next suspect, and no more."""
    lines = Writer().ours(1).ours(3).ours(1).lines
    for place in range(len(lines)):
        hurt = list(lines)
        hurt[place] = lines[place][:-25] + b"A" * 22 + lines[place][-3:]

        expected = ["suspect" if i in (place, place + 1) else "sealed" for i in range(len(lines))]
        assert verdicts(joined(hurt)) == expected


def test_altered_content_costs_one_line() -> None:
    """A byte of content makes its own line suspect and no other."""
    lines = Writer().ours(1).ours(3).ours(1).lines
    for place in range(len(lines)):
        hurt = list(lines)
        hurt[place] = lines[place].replace(b"xxx", b"xyx", 1)

        assert verdicts(joined(hurt)) == ["suspect" if i == place else "sealed" for i in range(5)]


# -- seals -----------------------------------------------------------------------------------------


def test_log_of_another_conversation_is_noticed() -> None:
    """The first line of a log that was moved to another id is suspect."""
    scanner = codec.Scanner(codec.first_chain("other"))
    scanner.feed(Writer().ours(2).log.data)

    assert [line.verdict for line in scanner.settled(at_end=True)] == ["suspect", "sealed"]


def test_unsealed_lines_are_handed_out_after_the_last_seal() -> None:
    """What another writer appended last is read; no seal covers it yet."""
    assert verdicts(Writer().ours(1).others(FOREIGN).log.data) == ["sealed", "unsealed"]


def test_altered_unsealed_line_is_suspect_with_its_seal() -> None:
    """A seal that does not check makes suspect its own line and all lines that it covers."""
    lines = Writer().ours(1).others(FOREIGN, b"", FOREIGN, b"[]").ours(2).others(FOREIGN).lines
    lines[1] = lines[1].replace(b"xxx", b"xyx", 1)

    assert verdicts(joined(lines)) == ["sealed", *["suspect"] * 4, "sealed", "unsealed"]


@pytest.mark.parametrize("blank", BLANKS, ids=repr)
def test_blank_line_is_covered_and_not_counted(blank: bytes) -> None:
    """A blank line takes no place, and one that is taken out is noticed by the next seal."""
    lines = Writer().ours(1).others(blank).ours(1).lines

    assert verdicts(joined(lines)) == ["sealed", "sealed"]
    assert verdicts(joined([lines[0], lines[2]])) == ["sealed", "suspect"]


@pytest.mark.parametrize("space", [b" ", b"\t", b"\r", b" \t\r  "], ids=repr)
def test_space_after_a_seal_is_not_covered(space: bytes) -> None:
    """An editor that puts CRs or spaces at the ends of lines damages no seal."""
    lines = [line + space for line in Writer().ours(2).ours(1).lines]

    assert verdicts(joined(lines)) == ["sealed"] * 3


@pytest.mark.parametrize("space", [b"\x0b", b"\x0c", b"\0", b"\xc2\xa0"], ids=repr)
def test_other_bytes_after_a_seal_break_it(space: bytes) -> None:
    """A line that ends in anything else is not sealed."""
    assert codec.find_seal(Writer().ours(1).lines[0] + space) is None


def test_content_that_looks_like_a_seal_is_none() -> None:
    """A text or an object at the end of another writer's record cannot pass as its seal."""
    assert [codec.find_seal(line) for line in OTHERS] == [None] * len(OTHERS)


def test_text_that_looks_like_a_seal_is_sealed_as_content() -> None:
    """Our own record with such a text has one seal, its own."""
    fake = ',"seq":1,"ledger":["1/9","aaaaaaaaaaaaaaaaaaaaaa","aaaaaaaaaaaaaaaaaaaaaa"]}'
    covered = codec.Scanner(codec.first_chain("c")).covered
    line, chain = codec.seal([text(data=fake)], 0, covered, [b"a" * 16])
    found = codec.find_seal(line[:-1])

    assert found is not None
    assert (found.i, found.n, found.chain) == (1, 1, chain)
    assert verdicts(line) == ["sealed"]


SEALS = {
    "a seal": (b"1", b"1/1", True),
    "last of nine": (b"99", b"9/9", True),
    "seq 0": (b"0", b"1/1", False),
    "seq with leading zero": (b"01", b"1/1", False),
    "i 0": (b"1", b"0/1", False),
    "i with leading zero": (b"1", b"01/1", False),
    "i beyond n": (b"1", b"2/1", False),
    "negative": (b"-1", b"1/1", False),
    "spaces": (b" 1", b"1/1", False),
    "float": (b"1.0", b"1/1", False),
}


@pytest.mark.parametrize(("seq", "place", "fits"), SEALS.values(), ids=SEALS.keys())
def test_seal_has_one_form(seq: bytes, place: bytes, fits: bool) -> None:
    """Numbers are decimal without leading zeros, and a line's place is within its batch."""
    line = b'{"a":1,"seq":%b,"ledger":["%b","%b","%b"]}' % (seq, place, b"-" * 22, b"_" * 22)

    assert (codec.find_seal(line) is not None) is fits


@pytest.mark.parametrize(
    "salt", [b'""', b'"short"', b'"' + b"a" * 23 + b'"', b"0", b"nul"], ids=repr
)
def test_seal_has_a_whole_salt_or_null(salt: bytes) -> None:
    """A salt is 22 characters of base64url, or null in a tombstone."""
    line = b'{"a":1,"seq":1,"ledger":["1/1",%b,"%b"]}' % (salt, b"a" * 22)

    assert codec.find_seal(line) is None


HOSTILE = [b"9", b" ", b'"', b",", b'["', b'","', b',"seq":1', b"a", b"\r", b"\\", b"1/"]


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_looking_for_a_seal_is_linear(piece: bytes) -> None:
    """A hostile line of 1 MB is looked at in a moment."""
    line = b'{"a":1,"seq":' + piece * (1_000_000 // len(piece))
    began = time.process_time()

    codec.find_seal(line)
    codec.find_seal(line + b'"]}')

    assert time.process_time() - began < 0.5


# -- tombstones ------------------------------------------------------------------------------------


def test_tombstone_of_ours_is_erased_and_its_neighbours_sealed() -> None:
    """Erasing any line of a log leaves all other lines as they were."""
    lines = Writer().ours(1).ours(3).ours(1).lines
    for place in range(len(lines)):
        erased = list(lines)
        erased[place] = oracle.tombstone(lines[place])

        assert [len(line) for line in erased] == [len(line) for line in lines]
        expected = ["erased" if i == place else "sealed" for i in range(len(lines))]
        assert verdicts(joined(erased)) == expected


def test_seal_over_a_tombstone_is_unprovable_and_handed_out() -> None:
    """Where another writer's line was erased, the seal over it proves nothing, and nothing is lost."""
    lines = Writer().ours(1).others(FOREIGN, FOREIGN).ours(2).lines
    lines[2] = b'{"functai_conversation":1,"kind":"erased","at":"x"}'.ljust(len(lines[2]))

    assert verdicts(joined(lines)) == ["sealed", "unsealed", "unsealed", "unprovable", "sealed"]


def test_line_before_a_seal_over_a_tombstone_is_still_checked() -> None:
    """One unprovable seal excuses no other one."""
    lines = Writer().ours(1).others(FOREIGN).ours(2).lines
    lines[1] = b'{"functai_conversation":1,"kind":"erased","at":"x"}'.ljust(len(lines[1]))
    for place, expected in (
        (0, ["suspect", "unsealed", "unprovable", "sealed"]),
        (3, ["sealed", "unsealed", "unprovable", "suspect"]),
    ):
        hurt = list(lines)
        hurt[place] = hurt[place].replace(b"xxx", b"xyx", 1)

        assert verdicts(joined(hurt)) == expected


def test_tombstone_that_was_sealed_over_is_proved() -> None:
    """A seal made after the erasing covers the tombstone and checks."""
    gone = FOREIGN[:-20] + b"   "

    assert verdicts(Writer().others(gone).ours(1).log.data)[-1] == "sealed"


def test_seal_under_an_erase_plan_is_unprovable() -> None:
    """While an erase is under way, a seal that does not check proves nothing."""
    lines = Writer().ours(2).lines
    lines[0] = lines[0].replace(b"xxx", b"xyx", 1)

    assert verdicts(joined(lines), erasing=True) == ["unprovable", "sealed"]


# -- void batches ----------------------------------------------------------------------------------


class Case(NamedTuple):
    """What follows the first two lines of a batch of three, and what becomes of the lines."""

    lines: list[bytes]
    expected: list[str]


def two_of_three() -> Writer:
    """An append of three that stopped after two."""
    return Writer().ours(3, 2)


def hurt_last(writer: Writer, old: bytes = b"xxx", new: bytes = b"xyx") -> list[bytes]:
    """The lines, the last of them altered."""
    lines = writer.lines
    assert old in lines[-1]
    return [*lines[:-1], lines[-1].replace(old, new, 1)]


def erased_last(writer: Writer) -> list[bytes]:
    """The lines, the last of them erased."""
    lines = writer.lines
    return [*lines[:-1], oracle.tombstone(lines[-1])]


def tampered_then_sealed() -> list[bytes]:
    """A batch whose last line lost its seal to damage, and then a sealed append."""
    lines = Writer().ours(3).ours(1).lines
    return [*lines[:2], lines[2].replace(b'"ledger"', b'"lodger"'), lines[3]]


VOID = ["void", "void"]
COUNT = ["sealed", "sealed"]
CASES = {
    "end": Case(two_of_three().lines, VOID),
    "sealed 1/1": Case(two_of_three().ours(1).lines, [*VOID, "sealed"]),
    "sealed 1/3": Case(two_of_three().ours(3).lines, [*VOID, *["sealed"] * 3]),
    "sealed 1/3, unfinished too": Case(two_of_three().ours(3, 1).lines, [*VOID, "void"]),
    "erased 1/1": Case(erased_last(two_of_three().ours(1)), [*VOID, "erased"]),
    "unsealed readable": Case(two_of_three().others(FOREIGN).lines, [*VOID, "unsealed"]),
    "unsealed readable, sealed": Case(
        two_of_three().others(FOREIGN).ours(1).lines, [*VOID, "unsealed", "sealed"]
    ),
    "unsealed readable, unreadable": Case(
        two_of_three().others(FOREIGN, b"[]").ours(1).lines,
        [*VOID, "unsealed", "unreadable", "sealed"],
    ),
    "unsealed of format 2": Case(
        two_of_three().others(text(functai_conversation=2)).lines, [*VOID, "unsealed"]
    ),
    "unsealed unreadable": Case(two_of_three().others(b"{garbage").lines, [*COUNT, "unreadable"]),
    "unsealed no record": Case(two_of_three().others(b"[]").lines, [*COUNT, "unreadable"]),
    "unsealed unreadable, readable": Case(
        two_of_three().others(b"[]", FOREIGN).ours(1).lines,
        [*COUNT, "unreadable", "unsealed", "sealed"],
    ),
    "bad seal 3/3": Case(hurt_last(Writer().ours(3)), [*COUNT, "suspect"]),
    "bad seal 1/1": Case(hurt_last(two_of_three().ours(1)), [*COUNT, "suspect"]),
    "bad seal over an unsealed line": Case(
        hurt_last(two_of_three().others(FOREIGN).ours(1)), [*COUNT, "suspect", "suspect"]
    ),
    "3/3 of the batch": Case(Writer().ours(3).lines, [*COUNT, "sealed"]),
    "3/3 erased": Case(erased_last(Writer().ours(3)), [*COUNT, "erased"]),
    "3/3 that lost its seal": Case(
        hurt_last(Writer().ours(3), b'"ledger"', b'"lodger"'), [*COUNT, "unsealed"]
    ),
    "3/3 whose place is hurt": Case(
        hurt_last(Writer().ours(3), b'"3/3"', b'"3-3"'), [*COUNT, "unsealed"]
    ),
    "3/3 that lost its seal, sealed": Case(tampered_then_sealed(), [*COUNT, "suspect", "suspect"]),
    "blank lines and the end": Case(two_of_three().others(*BLANKS).lines, VOID),
    "blank lines and 1/1": Case(two_of_three().others(*BLANKS).ours(1).lines, [*VOID, "sealed"]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_unfinished_batch(case: Case) -> None:
    """A batch is void when the end, a sealed 1/m or another writer's record follows, else it counts."""
    assert verdicts(joined(case.lines)) == case.expected
    assert [line.verdict for line in oracle.judge(joined(case.lines))] == case.expected


def test_missing_middle_line_is_damage_not_void() -> None:
    """1/4, 3/4, 4/4: a later line of the batch follows, so it was written whole."""
    lines = Writer().ours(4).lines
    del lines[1]

    assert verdicts(joined(lines)) == ["sealed", "suspect", "sealed"]


def test_missing_lines_before_an_erased_one_are_damage_not_void() -> None:
    """1/4, an erased 3/4: its place in the batch still shows that the batch was written whole."""
    lines = Writer().ours(4, 3).lines
    lines[2] = oracle.tombstone(lines[2])
    del lines[1]

    assert verdicts(joined(lines)) == ["sealed", "erased"]


def test_damaged_first_line_does_not_make_the_rest_void() -> None:
    """A batch whose first line is damaged counts from its second on."""
    lines = Writer().ours(3).lines
    lines[0] = lines[0].replace(b"xxx", b"xyx", 1)

    assert verdicts(joined(lines)) == ["suspect", "sealed", "sealed"]


def test_later_line_of_the_batch_after_another_record_makes_it_count() -> None:
    """1/3, 2/3, a record that was put in, an erased 3/3: the batch was written whole."""
    lines = erased_last(Writer().ours(3))
    lines.insert(2, FOREIGN)

    assert verdicts(joined(lines)) == [*COUNT, "unsealed", "erased"]


def test_void_lines_keep_their_places() -> None:
    """Void lines are counted, so later records keep their numbers."""
    lines = scanned(two_of_three().ours(1).log.data)

    assert [line.seq for line in lines] == [1, 2, 3]
    assert lines[2].written == 3


# -- settling --------------------------------------------------------------------------------------


def test_open_batch_is_held_until_it_is_known() -> None:
    """Without word of the end, neither a batch's lines nor what follows them are handed out."""
    lines = Writer().ours(1).ours(3).lines
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(joined(lines[:3]))

    assert [line.seq for line in scanner.settled()] == [1]
    assert scanner.batch_open
    scanner.feed(joined(lines[3:]))
    assert [line.verdict for line in scanner.settled()] == ["sealed"] * 3
    assert not scanner.batch_open


def test_batch_in_flight_is_not_taken() -> None:
    """A reader that may not look twice gets the records before the batch and no more."""
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(Writer().others(FOREIGN).ours(1).ours(3, 2).log.data)

    assert [line.seq for line in scanner.settled(in_flight=True)] == [1, 2]
    assert scanner.settled(in_flight=True) == []
    assert [line.verdict for line in scanner.settled(at_end=True)] == VOID


def test_batch_before_another_writers_record_is_not_in_flight() -> None:
    """Who appended after the batch held the lock, so nobody is still writing the batch."""
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(two_of_three().others(FOREIGN).log.data)

    assert not scanner.batch_open
    assert [line.verdict for line in scanner.settled(in_flight=True)] == [*VOID, "unsealed"]


def test_unsealed_lines_wait_for_their_seal() -> None:
    """Without word of the end, another writer's lines are held until a seal covers them."""
    lines = Writer().others(FOREIGN).ours(1).lines
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(joined(lines[:1]))

    assert scanner.settled() == []
    scanner.feed(joined(lines[1:]))
    assert [line.verdict for line in scanner.settled()] == ["unsealed", "sealed"]


def test_early_void_is_corrected_when_the_batch_goes_on() -> None:
    """Lines called void at the end get back what they were, tombstones too, if the rest appears."""
    lines = Writer().ours(3).lines
    lines[0] = oracle.tombstone(lines[0])
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(joined(lines[:2]))
    early = scanner.settled(at_end=True)
    assert [line.verdict for line in early] == VOID

    scanner.feed(joined(lines[2:]))

    assert [line.verdict for line in early] == ["erased", "sealed"]


def test_each_line_is_taken_once() -> None:
    """Lines are handed over in order, each once."""
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(Writer().ours(2).log.data)

    assert len(scanner.settled()) == 2
    assert scanner.settled(at_end=True) == []


def test_many_unsealed_lines_are_settled_in_linear_time() -> None:
    """Asking after each line of a long log of another writer does not cost its square."""
    scanner = codec.Scanner(codec.first_chain("c"))
    began = time.process_time()
    for _ in range(20_000):
        scanner.feed(FOREIGN + b"\n")
        scanner.settled()

    assert time.process_time() - began < 5


# -- the end of the file ---------------------------------------------------------------------------


def test_last_line_without_line_feed_counts_when_it_checks() -> None:
    """A log cut by its last line feed only lost nothing."""
    data = Writer().ours(1).ours(2).log.data
    cut = data.rindex(b"\n", 0, -1) + 1
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(data[:cut])

    assert scanner.feed_unended(data[cut:-1])
    assert [line.verdict for line in scanner.settled(at_end=True)] == ["sealed"] * 3
    assert scanner.offset == len(data) - 1


def test_line_feed_that_comes_later_belongs_to_its_line() -> None:
    """The next append writes the missing line feed first; its seal does not cover it."""
    data = Writer().ours(1).ours(2).log.data
    end = data.index(b"\n")
    scanner = codec.Scanner(codec.first_chain("c"))
    assert scanner.feed_unended(data[:end])
    lines, _ = codec.seal([text()], 1, scanner.covered, [b"a" * 16])

    scanner.feed(b"\n" + lines)

    whole = data[: end + 1] + lines
    assert list(map(key, scanner.settled(at_end=True))) == list(map(key, scanned(whole)))
    assert verdicts(whole) == ["sealed", "sealed"]
    assert scanner.offset == len(whole)


def test_bytes_glued_to_an_unended_line_are_refused() -> None:
    """When another writer glued its record to the line, the scan has to begin anew."""
    scanner = codec.Scanner(codec.first_chain("c"))
    assert scanner.feed_unended(Writer().ours(1).lines[0])

    with pytest.raises(ValueError, match="line feed"):
        scanner.feed(FOREIGN + b"\n")


@pytest.mark.parametrize("line", [b"", b" ", FOREIGN, FOREIGN[:-3], b"\0" * 8], ids=repr)
def test_torn_tail_is_not_read(line: bytes) -> None:
    """Bytes after the last line feed that are no sealed line leave the scanner as it was."""
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(Writer().ours(1).log.data)
    before = (scanner.offset, scanner.count, scanner.covered.digest())

    assert not scanner.feed_unended(line)
    assert (scanner.offset, scanner.count, scanner.covered.digest()) == before


def test_log_cut_at_every_byte_is_whole_or_void() -> None:
    """Cut anywhere, each batch before the cut is read, and the one it hits is void or whole."""
    data = Writer().ours(1).ours(3).log.data
    sizes = [i + 1 for i, byte in enumerate(data) if byte == 10]
    for cut in range(len(data) + 1):
        scanner = codec.Scanner(codec.first_chain("c"))
        kept = data.rfind(b"\n", 0, cut) + 1
        scanner.feed(data[:kept])
        scanner.feed_unended(data[kept:cut])

        whole = sum(cut >= size - 1 for size in sizes)
        expected = ["sealed"] * min(whole, 1) + ["sealed" if whole == 4 else "void"] * max(
            0, whole - 1
        )
        assert [line.verdict for line in scanner.settled(at_end=True)] == expected


def test_data_without_its_last_line_feed_is_refused() -> None:
    """Whole lines only: a piece of a line is the caller's to keep."""
    with pytest.raises(ValueError, match="subsection"):
        codec.Scanner(codec.first_chain("c")).feed(b"{}\n{")


def test_deep_stack_leaves_the_scanner_at_the_line() -> None:
    """When another writer's good line is too nested for the caller's stack, the scan goes on from it."""
    nested = text(data=json.loads("[" * 150 + "]" * 150))
    data = Writer().ours(1).others(nested).ours(1).log.data

    def deep(levels: int, scanner: codec.Scanner) -> None:
        if levels:
            deep(levels - 1, scanner)
        else:
            scanner.feed(data)

    for levels in range(500, sys.getrecursionlimit(), 5):
        scanner = codec.Scanner(codec.first_chain("c"))
        with contextlib.suppress(RecursionError):
            deep(levels, scanner)
        scanner.feed(data[scanner.offset :])

        assert list(map(key, scanner.settled(at_end=True))) == list(map(key, scanned(data)))
