"""tools/bench: every row can be measured, and the conversations it measures on are like real ones."""

from pathlib import Path

import pytest

import ledger
from tools.benchmarks import logs, peers, report, themes
from tools.benchmarks.rows import TINY, Bench, Result, Row, measure

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "performance.md"
BENCH = Bench(Path(), TINY)
ROWS = [row for row in themes.rows(BENCH) if not row.name.startswith("PostgreSQL")]


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory):
    BENCH.folder = tmp_path_factory.mktemp("bench")


def is_first_of_its_point(row):
    return row is next(one for one in ROWS if one.point == row.point)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_row_can_be_measured(row):
    """Each row gives figures, with tiny sizes; the floors, which many rows share, once for each point."""
    measures = row.make()
    names = list(measures) if is_first_of_its_point(row) else ["ours"]
    assert all(measures[name]() >= 0 for name in names)


def test_names_of_rows_differ():
    """A row is known by its name."""
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_made_conversations_are_like_recorded_ones(tmp_path):
    """What is measured on has the records that `chat.record` writes, but for ids and times; it verifies."""
    logs.make(tmp_path / "made", 4)
    made = ledger.FolderStore(tmp_path / "made")
    recorded = ledger.MemoryStore()
    chat = ledger.open(logs.CHAT, store=recorded)
    for _ in range(4):
        chat.record(logs.TEXT, logs.TEXT, model="m", usage={})

    def shape(store):
        ids: dict[str, str] = {}
        for record in store.read(logs.CHAT):
            ids.setdefault(record.get("turn"), f"turn {len(ids)}")
        dated = [{**r, "at": None, "request_id": None} for r in store.read(logs.CHAT)]
        return [named(record, ids) for record in dated]

    assert shape(made) == shape(recorded)
    assert made.verify(logs.CHAT).damage == []
    request = ledger.open(logs.CHAT, store=made).turn(request_id=logs.ASKED_BEFORE)
    assert request.ordinal == 3


def named(value, ids):
    """Return a value in which each turn is called by its place."""
    if isinstance(value, dict):
        return {key: named(inner, ids) for key, inner in value.items()}
    if isinstance(value, list):
        return [named(inner, ids) for inner in value]
    return ids.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("name", peers.there())
def test_each_contestant_keeps_what_it_is_given(name, tmp_path):
    """A contestant that was filled and appended to has all of it, and its end."""
    _, kind = peers.CONTESTANTS[name]
    kind(tmp_path / "place").fill(12)
    kind(tmp_path / "place").append(12)
    contestant = kind(tmp_path / "place")
    assert len(contestant.read()) in (13, 26)
    assert len(contestant.last()) in (10, 20)


def test_ours_and_the_floor_take_turns():
    """Measures are interleaved, and the order turns, so that a slow moment hits both."""
    done = []

    def took(name, seconds):
        def measured():
            done.append(name)
            return seconds

        return measured

    row = Row(1, "some", lambda: {"ours": took("ours", 3.0), "floor": took("floor", 2.0)}, 1.25)
    result = measure(row, 3)
    assert done == ["ours", "floor", "floor", "ours", "ours", "floor"]
    assert result.ratio == 1.5
    assert result.is_met is False


@pytest.mark.parametrize("target, met", [(None, None), (1.0, False), (2.5, True)])
def test_a_figure_without_a_floor_is_held_to_its_target_itself(target, met):
    """Where there is no floor the target is a figure."""
    assert Result(7, "late", "ms", target, {"ours": 2.0}).is_met is met


def test_the_page_has_a_place_for_the_table(tmp_path):
    """The table is put between the marks, and nothing else changes."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    result = Result(1, "append", "ms", 1.25, {"ours": 0.003, "floor": 0.002})
    report.write(page, report.as_markdown([result], "a machine"))
    text = page.read_text()
    assert "| append, ms | 3 | 2 | 1.50× | 1.25× | **missed** |  |" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert report.BEGIN in PAGE.read_text("utf-8")


def test_a_page_without_marks_is_left_as_it_is(tmp_path):
    """Where there is no place for the table, nothing is written."""
    page = tmp_path / "page.md"
    page.write_text("all mine")
    with pytest.raises(ValueError, match="marks"):
        report.write(page, "table")
    assert page.read_text() == "all mine"
