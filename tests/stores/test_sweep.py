"""Sweeping: attachments that no log names go; what a log names stays, whoever works meanwhile."""

import contextlib
import os
import time

import pytest

import ledger
from ledger import errors

HOUR_S = 3600


def aged(store, sha256, seconds):
    """Make an attachment look as if it had been put so long ago."""
    path = os.path.join(store.folder, "attachments", sha256[:2], sha256)
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_what_is_named_stays_and_the_rest_goes(tmp_path):
    """Of old attachments only those go that no conversation names; young ones are left alone."""
    store = ledger.FolderStore(tmp_path / "s")
    chat = ledger.open("a", store=store)
    chat.record({"picture": ledger.Attachment(b"named", media_type="image/png")}, "nice")
    named = chat.attachments()[0].sha256
    old, _ = store.blobs.put(b"left")
    young, _ = store.blobs.put(b"just now")
    for sha256 in (named, old):
        aged(store, sha256, 2 * HOUR_S)

    assert store.sweep(older_than_s=HOUR_S) == [old]
    assert [store.blobs.has(each) for each in (named, old, young)] == [True, False, True]
    assert store.sweep(older_than_s=0) == [young]
    assert store.sweep(older_than_s=0) == []
    assert chat.attachments()[0].read() == b"named"


def test_pieces_of_processes_that_died_go(tmp_path):
    """A piece that was never whole is removed when it is old."""
    store = ledger.FolderStore(tmp_path / "s")
    store.blobs.put(b"x")
    piece = tmp_path / "s" / "attachments" / "new-0123"
    piece.write_bytes(b"half")
    store.sweep(older_than_s=HOUR_S)
    assert piece.exists()
    os.utime(piece, (1, 1))
    store.sweep(older_than_s=HOUR_S)
    assert not piece.exists()


def test_a_folder_without_any(tmp_path):
    """No folder, or one without attachments, is nothing to sweep, and nothing is made."""
    store = ledger.FolderStore(tmp_path / "s")
    assert store.sweep() == []
    assert not (tmp_path / "s").exists()
    ledger.open("a", store=store).record("hi", "ho")
    assert store.sweep(older_than_s=0) == []


@pytest.mark.parametrize("wrong", [-1, float("nan")])
def test_an_age_is_a_number(tmp_path, wrong):
    """An age that is none removes nothing."""
    with pytest.raises(ValueError, match="number of seconds"):
        ledger.FolderStore(tmp_path).sweep(older_than_s=wrong)


def test_a_log_that_cannot_be_read_may_name_anything(tmp_path):
    """Then everything stays."""
    store = ledger.FolderStore(tmp_path / "s")
    ledger.open("a", store=store).record("hi", "ho")
    left, _ = store.blobs.put(b"left")
    log = tmp_path / "s" / "conversations" / "a.jsonl"
    log.rename(log.with_suffix(".away"))
    log.symlink_to(log.with_suffix(".away"))
    with contextlib.suppress(errors.LedgerError):
        assert store.sweep(older_than_s=0) == []
    assert store.blobs.has(left)
