"""Tests over real chats of many products, when they are there: each gives what is known about it.

See `test_samples` for where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from ledger.formats import dialects
from ledger.formats.base import Notes
from ledger.records import messages, values
from tests.formats.test_samples import SAMPLES, branch_points, read, rounds


@dataclass(frozen=True)
class Known:
    """What is known about one file, counted by hand."""

    conversations: int
    turns: int
    branch_points: int = 0
    unanswered: int = 0
    context: int = 0
    tool_rounds: int = 0
    input_tokens: int = 0
    models: int = 0
    """How many turns name one."""
    kept: int = 0
    """Attachments whose bytes are in the source."""


KNOWN = {
    "claude-ai/api-shape-bakery.json": Known(1, 2, models=2),
    "claude-ai/artifacts-2024.json": Known(1, 10),
    "claude-ai/thinking-block.json": Known(1, 1),
    "claude-ai/tool-use-2026.json": Known(3, 4),
    "claude-ai/two-conversations.json": Known(2, 3),
    "langchain-messages/dumpd-lc-constructor.json": Known(
        1, 1, context=1, tool_rounds=1, input_tokens=5, models=1
    ),
    "langchain-messages/messages-to-dict.json": Known(
        1, 1, context=1, tool_rounds=1, input_tokens=5, models=1
    ),
    "langchain-messages/model-dump.json": Known(
        1, 1, context=1, tool_rounds=1, input_tokens=5, models=1
    ),
    "langgraph-sqlite/checkpoints-with-fork.db": Known(
        1, 3, 1, context=1, tool_rounds=2, input_tokens=5, models=1
    ),
    "librechat/chatbot-ui-v4.json": Known(2, 3, context=2, models=3),
    "librechat/linear-nested-export.json": Known(1, 3),
    "librechat/recursive-tree.json": Known(1, 5, 1, context=1, input_tokens=2380, models=5),
    "llm-logs-db/content-addressed-0.36.db": Known(
        1, 3, context=1, tool_rounds=1, input_tokens=71, models=3, kept=1
    ),
    "llm-logs-db/legacy-0.27.db": Known(
        1, 3, context=1, tool_rounds=1, input_tokens=71, models=3, kept=1
    ),
    "oasst/messages-3.jsonl": Known(3, 17, 7, models=3),
    "oasst/trees-8.jsonl": Known(8, 72, 20, unanswered=14, models=3),
    "open-webui/converted-from-chatgpt.json": Known(1, 5, models=5),
    "open-webui/single-chat-inner.json": Known(1, 1, input_tokens=26, models=1),
    "openai-agents-sqlite/advanced-session-branch.db": Known(
        1, 4, 1, tool_rounds=1, input_tokens=100
    ),
    "openai-agents-sqlite/sqlite-session.db": Known(1, 3, tool_rounds=1),
    "openai-chat-jsonl/toy-fine-tuning.jsonl": Known(5, 8, context=4),
    "pydantic-ai/messages-with-tools.json": Known(
        1, 2, tool_rounds=1, input_tokens=168, models=2, kept=1
    ),
    "sharegpt/vicuna-dummy-80.json": Known(80, 159),
    "sillytavern/swipes.jsonl": Known(1, 5, 2),
}


@pytest.fixture(params=sorted(KNOWN))
def sample(request: pytest.FixtureRequest) -> Path:
    path = SAMPLES.parent / request.param
    if not path.is_file():
        pytest.skip(f"no real chats here: {path} is missing; set TURN_LEDGER_SAMPLES")
    return path


def test_a_real_chat_gives_what_is_known(sample):
    """Turns, branches, contexts, rounds, tokens and attachments of each file are those counted by hand."""
    drafts, skipped = read(sample)
    turns = [turn for draft in drafts for turn in draft.turns]

    assert not skipped
    assert KNOWN[str(sample.relative_to(SAMPLES.parent))] == Known(
        conversations=len(drafts),
        turns=len(turns),
        branch_points=sum(branch_points(draft.turns) for draft in drafts),
        unanswered=sum(turn.state == "abandoned" for turn in turns),
        context=sum(len(turn.source.get("context", [])) for turn in turns),
        tool_rounds=sum(rounds(turn) for turn in turns),
        input_tokens=sum((turn.usage or {}).get("input_tokens", 0) for turn in turns),
        models=sum(turn.model is not None for turn in turns),
        kept=sum(len(draft.blobs) for draft in drafts),
    )


def test_a_real_chat_may_be_stored_and_said_to_every_provider(sample):
    """Every value may be stored, each draft has a current turn, and every dialect says the messages."""
    for draft in read(sample)[0]:
        assert draft.current in {turn.id for turn in draft.turns}
        assert draft.notes == Notes()
        for turn in draft.turns:
            given = messages.check([*turn.messages_in, *turn.messages_out])
            values.check([turn.inputs, turn.outputs, turn.source, turn.usage, given])
            for name in dialects.DIALECTS:
                dialects.named(name).to_provider(given, read=draft.blobs.get)


def test_a_real_chat_read_again_is_the_same(sample):
    """Reading a file twice gives the same turns under the same ids."""
    assert read(sample) == read(sample)


def test_three_shapes_of_the_same_messages_are_one_conversation():
    """LangChain's messages are the same turns, however they were written down."""
    paths = [path for path in KNOWN if path.startswith("langchain")]
    if not all((SAMPLES.parent / path).is_file() for path in paths):
        pytest.skip("no real chats here; set TURN_LEDGER_SAMPLES")
    one, other, third = (read(SAMPLES.parent / path)[0][0].turns for path in paths)

    assert one == other == third
