"""Records become rows: whatever the records and however they come, the rows tell what the fold tells."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.catalog import catalog
from ledger.catalog.projection import project
from ledger.catalog.rows import ConversationRow
from ledger.catalog.sqlite import SQLiteIndex
from ledger.views import History
from tests import tidy
from tests.catalog import oracle
from tests.views import build


def index() -> SQLiteIndex:
    """An empty index in memory."""
    return SQLiteIndex(tidy.connect(":memory:", isolation_level=None))


def take(kept: SQLiteIndex, records: list[Any], conversation: str = "c") -> None:
    """Give an index the records that follow."""
    with kept.writing():
        before = kept.row(conversation) or ConversationRow(id=conversation)
        changes = project(before, records, lambda turn: kept.turn(conversation, turn))
        kept.write(changes, "look", "mark")


def told(kept: SQLiteIndex) -> dict[str, Any]:
    """What an index says of the conversation."""
    row = kept.row("c")
    assert row is not None
    counts = dict(row.states)
    for _, turn in kept.unended():
        state = catalog._state(turn, build.NOW, set())
        counts[state] = counts.get(state, 0) + 1
    return {
        "position": row.position,
        "turns": row.turns,
        "heads": row.ends,
        "states": counts,
        "models": row.models,
        "first": row.first,
        "last": row.last,
        "usage": row.usage,
        "head": row.head,
        "title": row.title,
        "preview": row.preview,
        "labels": row.labels,
        "unreadable": row.unreadable,
    }


@given(st.data(), oracle.logs())
def test_rows_tell_what_the_fold_tells(data, records):
    """In whatever pieces a log comes, its rows say what folding it whole says."""
    kept, history = index(), History("c")
    take(kept, [])
    while records:
        piece = data.draw(st.integers(1, len(records)))
        take(kept, records[:piece])
        history.extend(records[:piece])
        records = records[piece:]

    assert told(kept) == oracle.row(history, build.NOW)
    for name in history.order:
        row = kept.turn("c", name)
        assert row is not None
        assert {
            "ordinal": row.ordinal,
            "parent": row.parent,
            "model": row.model,
            "tokens": {kind: n for kind, n in row.tokens.items() if n},
            "labels": row.labels,
            "questions": row.questions,
        } == oracle.turn(history, name)


@given(oracle.logs())
def test_what_is_given_is_not_changed(records):
    """The row before and the rows that were found stay as they were."""
    before = ConversationRow(id="c")
    changes = project(before, records, lambda turn: None)
    assert before == ConversationRow(id="c")

    rows = changes.turns
    copies = {name: repr(row) for name, row in rows.items()}
    project(changes.conversation, [build.ended(name) for name in rows], rows.get)
    assert {name: repr(row) for name, row in rows.items()} == copies


def test_one_turn_costs_a_few_rows():
    """A turn that is added to a long line asks for and changes its parent and itself, however long the line is."""
    records = build.line(*(f"t{i}" for i in range(2000)))
    kept, asked = index(), []
    take(kept, records)
    before = kept.row("c")
    assert before is not None

    def find(turn):
        asked.append(turn)
        return kept.turn("c", turn)

    changes = project(before, build.done("new", "t1999"), find)
    assert set(changes.turns) == {"new", "t1999"}
    assert set(asked) <= {"new", "t1999"}
