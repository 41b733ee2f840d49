"""Conversations that real programs wrote, through every dialect, when they are there.

The files are other people's; see test_samples.py for where they are looked for.
"""

import json
import os
from pathlib import Path

import pytest

from ledger.formats import dialects
from ledger.formats.base import Draft
from ledger.records import messages, values
from ledger.sources.files import find

REPOSITORY = Path(__file__).parents[2]
SAMPLES = Path(os.environ.get("TURN_LEDGER_SAMPLES") or REPOSITORY / "../shared/samples")
CHATGPT = sorted((SAMPLES / "chatgpt").glob("*.json"))


def sample(*path):
    found = SAMPLES.joinpath(*path)
    if not found.is_file():
        pytest.skip(f"no real files here: {found} is missing; set TURN_LEDGER_SAMPLES")
    return found.read_text(encoding="utf-8")


def test_fine_tuning_lines_come_back_as_they_were():
    """Lines of Chat Completions messages come back word for word."""
    for line in sample("openai-chat-jsonl", "toy-fine-tuning.jsonl").splitlines():
        given = json.loads(line)["messages"]
        dialect = dialects.named("openai")
        sent = dialect.to_provider(dialect.from_provider(given), strict=True)
        assert sent.content == given


def test_a_pydantic_ai_history_comes_back_as_it_was():
    """A history that pydantic-ai wrote comes back word for word, and the others are told its words."""
    given = json.loads(sample("pydantic-ai", "messages-with-tools.json"))
    dialect = dialects.named("pydantic-ai")
    neutral = dialect.from_provider(given)

    assert dialect.to_provider(neutral, strict=True).content == given
    for name in dialects.DIALECTS:
        sent = dialects.named(name).to_provider(neutral)
        assert "Paris: 18C" in json.dumps(sent.content)
        assert {"reasoning" in loss.reason for loss in sent.losses} <= {True}


@pytest.mark.parametrize("path", CHATGPT, ids=lambda path: path.name)
def test_an_imported_conversation_is_said_to_every_provider(path):
    """What the ChatGPT importer makes passes the check of messages and every dialect."""
    items = [item for source in find(path) for item in source.items]
    turns = [turn for item in items if isinstance(item, Draft) for turn in item.turns]
    assert turns
    for turn in turns:
        given = messages.check([*turn.messages_in, *turn.messages_out])
        for name in dialects.DIALECTS:
            sent = dialects.named(name).to_provider(given)
            values.check(sent.content)
            assert dialects.named(name).from_provider(sent.content)
