"""Tests over real sessions of coding agents, when they are there: each gives what is known about it.

See `test_samples` for where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from ledger.formats import dialects
from ledger.records import messages, values
from tests.formats.test_samples import SAMPLES, branch_points, read, rounds


@dataclass(frozen=True)
class Known:
    """What is known about one file or folder, counted by hand."""

    turns: int
    branch_points: int = 0
    conversations: int = 1
    sides: int = 0
    """Side lines of sub-agents; their turns are counted apart."""
    unanswered: int = 0
    context: int = 0
    tool_rounds: int = 0
    cut: int = 0
    output_tokens: int = 0


KNOWN = {
    "claude-code/ide-subagent-2.1.33": Known(1, sides=1, tool_rounds=1, output_tokens=4),
    "claude-code/linear-tools-1.0.98.jsonl": Known(1, context=1, tool_rounds=12, output_tokens=953),
    "claude-code/representative-1.0.0.jsonl": Known(
        4, unanswered=1, tool_rounds=2, output_tokens=445
    ),
    "claude-code/resumed-two-session-ids.jsonl": Known(3, output_tokens=90),
    "claude-code/short-mcp-1.0.119.jsonl": Known(2, tool_rounds=1, output_tokens=3),
    "claude-code/sidechains-inline-1.0.108.jsonl": Known(
        1, sides=2, context=1, tool_rounds=13, output_tokens=2003
    ),
    "claude-code/transcripts-sample.jsonl": Known(2, tool_rounds=2, cut=1),
    "claude-code/web-session-loglines.json": Known(5, context=1, tool_rounds=12, cut=2),
    "codex-cli/legacy-flat-2025-09.jsonl": Known(1, tool_rounds=1, cut=1),
    "codex-cli/main-thread-sanitized.jsonl": Known(1, context=5, tool_rounds=7, output_tokens=2411),
    "codex-cli/three-turns.jsonl": Known(3, tool_rounds=3),
    "codex-cli/tool-variants.jsonl": Known(6, context=1, tool_rounds=1, output_tokens=182),
    "gemini-cli/append-log-0.40.jsonl": Known(1, tool_rounds=1, output_tokens=228),
    "gemini-cli/session-json.json": Known(4, unanswered=1, tool_rounds=3, cut=2, output_tokens=215),
    "gemini-cli/tool-call-without-result.json": Known(1, unanswered=1, cut=1),
    "opencode/real-sanitized.db": Known(1, tool_rounds=2, output_tokens=2762),
    "pi-agent/branch-summary.jsonl": Known(4, branch_points=1, context=1),
}


@pytest.fixture(params=sorted(KNOWN))
def sample(request: pytest.FixtureRequest) -> Path:
    path = SAMPLES.parent / request.param
    if not path.exists():
        pytest.skip(f"no real sessions here: {path} is missing; set TURN_LEDGER_SAMPLES")
    return path


def test_a_real_session_gives_what_is_known(sample):
    """Turns, branches, side lines, tool rounds and tokens of each file are those counted by hand."""
    drafts, skipped = read(sample)
    main = [draft for draft in drafts if draft.side_of is None]
    turns = [turn for draft in main for turn in draft.turns]

    assert not skipped
    assert KNOWN[str(sample.relative_to(SAMPLES.parent))] == Known(
        conversations=len(main),
        turns=len(turns),
        branch_points=sum(branch_points(draft.turns) for draft in main),
        sides=len(drafts) - len(main),
        unanswered=sum(turn.state == "abandoned" for turn in turns),
        context=sum(len(turn.source.get("context", [])) for turn in turns),
        tool_rounds=sum(rounds(turn) for turn in turns),
        cut=sum("cut" in turn.source for turn in turns),
        output_tokens=sum((turn.usage or {}).get("output_tokens", 0) for turn in turns),
    )


def test_a_real_session_may_be_stored_and_said_to_every_provider(sample):
    """Every value may be stored, every current turn is known, every dialect can say the messages."""
    for draft in read(sample)[0]:
        assert draft.current in {turn.id for turn in draft.turns}
        for turn in draft.turns:
            given = messages.check([*turn.messages_in, *turn.messages_out])
            values.check([turn.inputs, turn.outputs, turn.source, turn.usage, given])
            for name in dialects.DIALECTS:
                dialects.named(name).to_provider(given)


def test_a_side_line_names_what_it_was_made_for(sample):
    """Each side line names a turn and a call of another conversation of the same files."""
    drafts = {draft.source_id: draft for draft in read(sample)[0]}
    for side in (draft.side_of for draft in drafts.values() if draft.side_of):
        (turn,) = [one for one in drafts[side["conversation"]].turns if one.id == side["turn"]]
        parts = [part for message in turn.messages_out for part in message["parts"]]
        (call,) = [part for part in parts if part.get("id") == side["call"]][:1]
        assert call["type"] == "tool_call"


def test_every_byte_of_a_real_session_is_kept(sample):
    """What the drafts keep of the source are its lines, byte for byte, each once."""
    files = [sample] if sample.is_file() else sorted(sample.rglob("*.jsonl"))
    drafts = read(sample)[0]
    if any(draft.raw_type != "application/jsonl" or draft.format == "opencode" for draft in drafts):
        pytest.skip("its source has no lines")

    kept = sorted(line for draft in drafts for raw in draft.raw for line in raw.splitlines())

    assert kept == sorted(line for file in files for line in file.read_bytes().splitlines() if line)


def test_a_rollout_without_a_message_is_skipped():
    """A rollout that tells of usage alone holds no conversation, and says so."""
    path = SAMPLES.parent / "codex-cli/usage-0.51.jsonl"
    if not path.exists():
        pytest.skip("no real sessions here")

    drafts, (skipped,) = read(path)

    assert not drafts
    assert "no message" in skipped.reason


def test_a_real_session_read_again_is_the_same(sample):
    """Reading a session twice gives the same turns under the same ids."""
    assert read(sample) == read(sample)
