"""Many lines are checked at once, and what is found is what is found one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.records import codec, runs
from ledger.records.verdicts import Stretch, each
from tests.records import oracle
from tests.records.test_codec_scan import (
    FOREIGN,
    OTHERS,
    Writer,
    flipped,
    joined,
    key,
    scanned,
    text,
)


def run_of(data: bytes) -> runs.Run | None:
    """What the lines of a whole log are, at once."""
    ends = [at for at, byte in enumerate(data) if byte == 0x0A]
    starts = [0, *(end + 1 for end in ends[:-1])]
    return runs.run_of(data, starts, ends, codec.first_chain("c"), 0, 0, 0)


def test_good_lines_are_a_run() -> None:
    """Whole batches of any size, and the beginning of one: the last chain, the place, and what is open."""
    writer = Writer().ours(1).ours(12).ours(2).ours(3, 2)

    assert run_of(writer.log.data) == runs.Run(writer.log.chain.encode(), 2, 3, 15)


def test_a_run_goes_on_with_an_open_batch() -> None:
    """What began before goes on, and only with the next of it."""
    writer = Writer().ours(5)
    first = joined(writer.lines[:2])
    seal = codec.find_seal(writer.lines[1])
    assert seal is not None
    data = writer.log.data[len(first) :]
    ends = [at for at, byte in enumerate(data) if byte == 0x0A]
    starts = [0, *(end + 1 for end in ends[:-1])]

    def going_on(i: int, n: int) -> runs.Run | None:
        return runs.run_of(data, starts, ends, seal.chain, 2, i, n)

    assert going_on(2, 5) == runs.Run(writer.log.chain.encode(), 5, 5, -1)
    assert going_on(1, 5) is going_on(2, 6) is going_on(5, 5) is None


def test_good_lines_are_taken_as_one() -> None:
    """But for those of a batch that may go on: what they are may change yet."""
    writer = Writer().ours(2).ours(3).ours(4, 2)
    scanner = codec.Scanner(codec.first_chain("c"))
    scanner.feed(writer.log.data)
    (good,) = scanner.take()

    assert isinstance(good, Stretch)
    assert (good.seq, good.last) == (1, 5)
    assert each([good]) == scanned(joined(writer.lines[:5]))
    assert [line.verdict for line in each(scanner.take(at_end=True))] == ["void", "void"]


def test_each_byte_of_a_run_counts() -> None:
    """Whichever byte of good lines is another, they are no run."""
    data = Writer().ours(2).ours(1).log.data
    assert run_of(data) is not None
    for at, byte in enumerate(data):
        if byte != 0x0A:
            assert all(run_of(flipped(data, at, mask)) is None for mask in (1, 2, 0x20, 0x80)), at


def test_what_is_no_good_line_is_no_run() -> None:
    """Other writers' lines, tombstones, lines beside their place, too large, or of another format."""
    good = Writer().ours(2).lines
    large = Writer()
    large.log.ours([text(data="x" * runs.LARGE)], [bytes(16)])
    newer = Writer()
    newer.log.ours([text(functai_conversation=2)], [bytes(16)])
    for lines in (
        [FOREIGN],
        [oracle.tombstone(good[0]), good[1]],
        good[1:],
        [good[0], good[0]],
        [good[0], good[1] + b" "],
        [b""],
        [b'"]}'],
        large.lines,
        newer.lines,
    ):
        assert run_of(joined(lines)) is None


@given(st.data(), st.lists(st.integers(1, 40), min_size=10, max_size=20))
@settings(max_examples=25)
def test_accidents_in_a_long_log_cost_what_they_cost_line_by_line(
    draws: st.DataObject, batches: list[int]
) -> None:
    """However many good lines are around it, what was hit is judged as the twin judges it."""
    writer = Writer()
    for batch in batches:
        writer.ours(batch)
    lines = writer.lines
    for place in draws.draw(st.lists(st.integers(0, len(lines) - 1), max_size=4)):
        match draws.draw(st.sampled_from(["flip", "tombstone", "others", "delete", "double"])):
            case "flip":
                at = draws.draw(st.integers(0, 1000)) % max(1, len(lines[place]))
                lines[place] = flipped(lines[place], at, 1).replace(b"\n", b"x")
            case "tombstone" if oracle.find_seal(lines[place]):
                lines[place] = oracle.tombstone(lines[place])
            case "others":
                lines.insert(place, draws.draw(st.sampled_from(OTHERS)))
            case "delete":
                lines[place] = b""
            case _:
                lines.insert(place, lines[place])
    data = joined(lines)

    assert list(map(key, scanned(data))) == [line.key() for line in oracle.judge(data)]
