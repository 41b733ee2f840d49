"""Tests of `ledger.sources.seen`: importing again reads only what is new."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import ledger
from ledger.sources import seen
from ledger.sources.opened import Opened

EXPORT = Path(__file__).parents[2] / "docs" / "tutorial" / "chatgpt-export.json"


@pytest.fixture
def store(tmp_path):
    """A store in a folder: others remember nothing."""
    return ledger.FolderStore(tmp_path / "store")


@pytest.fixture
def file(tmp_path):
    """An export that may be changed."""
    path = tmp_path / "conversations.json"
    path.write_bytes(EXPORT.read_bytes())
    age(path)
    return path


def age(file):
    """Make a file an hour old: one that was written to just now is always read."""
    hour_ago = file.stat().st_mtime - 3600
    os.utime(file, (hour_ago, hour_ago))


def spoil(file):
    """Cut the end off a file without a trace in its size and time: who reads it sees it."""
    before = file.stat()
    file.write_bytes(file.read_bytes()[:-100] + b" " * 100)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_file_that_is_as_it_was_is_not_read_again(store, file):
    """The second import of an unchanged file reports the same as if it had read it."""
    ledger.import_conversations(file, store=store)
    spoil(file)

    report = ledger.import_conversations(file, store=store)

    assert not report.notes.skipped
    assert (report.conversations_known, report.turns_known) == (2, 6)
    assert (report.files, report.files_read) == (1, 1)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"turn_ledger_imports": "0"}'])
def test_what_is_remembered_may_be_lost(store, file, damage):
    """A remembrance that is missing, damaged or of another version costs a reading, nothing else."""
    ledger.import_conversations(file, store=store)
    path = Path(store.folder, seen.IMPORTS)
    assert path.stat().st_mode & 0o077 == 0
    path.write_bytes(damage)
    spoil(file)

    report = ledger.import_conversations(file, store=store)

    assert report.notes.skipped
    assert report.turns == 0


def test_a_changed_file_and_a_deleted_conversation_are_read_again(store, file):
    """What has changed, in the source or in the store, is read."""
    ledger.import_conversations(file, store=store)
    gone = store.conversations()[0]
    store.delete(gone)
    assert ledger.import_conversations(file, store=store).conversations == 1

    spoil(file)
    os.utime(file)
    assert ledger.import_conversations(file, store=store).notes.skipped


def test_what_was_skipped_is_told_again(store, file):
    """A file in which something was skipped is read at each import, so that each report names it."""
    file.write_text(json.dumps([*json.loads(file.read_text()), {"mapping": None}]))

    reports = [ledger.import_conversations(file, store=store) for _ in range(2)]

    assert [1, 1] == [len(report.notes.skipped) for report in reports]


def test_a_stamp_names_what_is_beside_a_database(tmp_path):
    """A write that stands in the write-ahead log only changes the stamp."""
    path = tmp_path / "x.db"
    path.write_bytes(b"x")
    file = Opened(str(path), "x.db", lambda: path.open("rb"), path)
    before = file.stamp()

    path.with_name("x.db-wal").write_bytes(b"y")

    assert before != file.stamp()
