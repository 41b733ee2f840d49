"""Tests of importing each format into a store: once is enough, and what was read stays as it was."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger.sources.importing import import_conversations
from tests import tidy
from tests.formats import test_llm_logs
from tests.formats.test_any_values import DATABASES, EXAMPLES


def written(folder: Path, name: str) -> Path:
    """Write the example of a format as its file."""
    if name in EXAMPLES:
        path = folder / "given.jsonl"
        lines = [json.dumps(value) for value in EXAMPLES[name][1]]
        path.write_text("\n".join(lines), "utf-8")
        return path
    path = folder / "given.db"
    database: sqlite3.Connection = DATABASES[name][1]()
    database.commit()
    target = tidy.connect(path)
    database.backup(target)
    target.close()
    return path


@pytest.mark.parametrize("name", sorted({**EXAMPLES, **DATABASES}))
def test_importing_again_adds_nothing(tmp_path, name):
    """Every format's file gives its turns once, in whatever store; a copy of it gives none."""
    path = written(tmp_path, name)
    store = ledger.MemoryStore()
    first = import_conversations(path, store=store)
    copy = path.with_name(f"copy{path.suffix}")
    copy.write_bytes(path.read_bytes())

    second = import_conversations([path, copy], store=store)

    assert first.turns > 0
    assert (0, 2 * (first.turns + first.turns_known)) == (second.turns, second.turns_known)


@pytest.mark.parametrize("name", sorted({**EXAMPLES, **DATABASES}))
def test_every_format_is_found_by_looking(tmp_path, name):
    """A file is read as what it is, whatever its name: the turns say which."""
    store = ledger.MemoryStore()
    import_conversations(written(tmp_path, name), store=store)

    formats = {
        turn.source["format"]
        for conversation in store.conversations()
        for turn in ledger.open(conversation, store=store).all_turns()
    }

    assert {name.partition(",")[0]} == formats


def test_the_log_of_llm_is_left_as_it_was(tmp_path):
    """Also one that another program has open, with its last writes beside it: nothing is touched."""
    path = tmp_path / "logs.db"
    with tidy.connect(path) as writer:
        writer.execute("pragma journal_mode = wal")
        for line in test_llm_logs.pelican().database.iterdump():
            if line not in ("BEGIN TRANSACTION;", "COMMIT;"):
                writer.execute(line)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert before["logs.db-wal"]

    report = import_conversations(path, store=ledger.MemoryStore())

    assert 2 == report.turns
    assert before == {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    writer.close()


def test_bytes_in_a_source_are_attachments_in_the_store(tmp_path):
    """What a chat holds in base64, and a database in a column, is read back from the store."""
    chat: dict[str, Any] = {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,cGl4"}}
                ],
            },
            {"role": "assistant", "content": "A pixel."},
        ]
    }
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(chat))
    store = ledger.MemoryStore()
    import_conversations(path, store=store)
    (conversation,) = store.conversations()
    (turn,) = ledger.open(conversation, store=store).all_turns()

    reference = turn.messages[0]["parts"][0]["content"]["$attachment"]
    assert b"pix" == store.blobs.get(reference["sha256"])
