"""Tests over real exports, when they are there: each gives what is known about it.

The files are other people's and are not part of this repository. TURN_LEDGER_SAMPLES names the
folder that holds them; without it, `../shared/samples` beside the repository is looked at. The
synthetic conversations of the other modules are read wherever the tests run.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from ledger.formats.base import Draft, DraftTurn, Skipped
from ledger.records import values
from ledger.sources.files import find

REPOSITORY = Path(__file__).parents[2]
SAMPLES = (
    Path(os.environ.get("TURN_LEDGER_SAMPLES") or REPOSITORY / "../shared/samples") / "chatgpt"
)


@dataclass(frozen=True)
class Known:
    """What is known about one file, counted by hand."""

    conversations: int
    turns: int
    branch_points: int
    unanswered: int = 0
    skipped: int = 0
    context: int = 0
    tool_rounds: int = 0
    cut: int = 0


KNOWN = {
    "branch-integers.json": Known(1, 3, 1, unanswered=1),
    "branches-linear-tree.json": Known(1, 6, 2, cut=1),
    "code-interpreter.json": Known(1, 8, 0, tool_rounds=11),
    "early-2023.json": Known(7, 21, 0, unanswered=7),
    "modern-2025-export.json": Known(2, 3, 0, skipped=1, context=1),
    "photosynthesis-2025.json": Known(1, 5, 0, context=1),
}


@pytest.fixture(params=sorted(KNOWN))
def sample(request: pytest.FixtureRequest) -> Path:
    path = SAMPLES / request.param
    if not path.is_file():
        pytest.skip(f"no real exports here: {path} is missing; set TURN_LEDGER_SAMPLES")
    return path


def read(path: Path) -> tuple[list[Draft], list[Skipped]]:
    items = [item for source in find(path) for item in source.items]
    drafts = [item for item in items if isinstance(item, Draft)]
    return drafts, [item for item in items if isinstance(item, Skipped)]


def branch_points(turns: list[DraftTurn]) -> int:
    below = Counter(turn.parent for turn in turns)
    return sum(count > 1 for count in below.values())


def rounds(turn: DraftTurn) -> int:
    parts = [part for message in turn.messages_out for part in message["parts"]]
    calls = {part["id"] for part in parts if part["type"] == "tool_call"}
    answers = {part["id"] for part in parts if part["type"] == "tool_call_response"}
    return len(calls & answers)


def test_a_real_export_gives_what_is_known(sample):
    """The turns, branches, contexts and gaps of each file are those counted by hand."""
    drafts, skipped = read(sample)
    turns = [turn for draft in drafts for turn in draft.turns]

    assert KNOWN[sample.name] == Known(
        conversations=len(drafts),
        turns=len(turns),
        branch_points=sum(branch_points(draft.turns) for draft in drafts),
        unanswered=sum(turn.state == "abandoned" for turn in turns),
        skipped=len(skipped),
        context=sum(len(turn.source.get("context", [])) for turn in turns),
        tool_rounds=sum(rounds(turn) for turn in turns),
        cut=sum("cut" in turn.source for turn in turns),
    )


def test_a_real_export_may_be_stored_whole(sample):
    """Every value may be stored, every current turn is known, and nothing is of unknown type."""
    for draft in read(sample)[0]:
        for turn in draft.turns:
            values.check([turn.inputs, turn.outputs, turn.messages_in, turn.messages_out])
            values.check(turn.source)
        assert draft.current == draft.turns[-1].id or sample.name == "branch-integers.json"
        assert draft.current in {turn.id for turn in draft.turns}
        assert not draft.notes.unknown
        assert draft.raw[0] in sample.read_bytes()


def test_a_real_export_read_again_is_the_same(sample):
    """Reading a file twice gives the same turns under the same ids."""
    assert read(sample) == read(sample)
