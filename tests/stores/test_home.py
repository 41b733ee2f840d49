"""The folder of a folder store."""

from __future__ import annotations

import os

from ledger.stores.folder import FolderStore
from tests.stores.support import stop, turns


def test_folder_that_another_thread_makes_is_no_other_folder(tmp_path, monkeypatch):
    """A thread that looked just before another made the folder does not take it for a replaced one."""
    store = FolderStore(tmp_path / "store")
    look = os.stat
    made = []

    def look_too_early(path, **options):
        try:
            return look(path, **options)
        except FileNotFoundError:
            if not made:
                made.append(path)
                store.append("c", [stop("a")])
            raise

    monkeypatch.setattr(os, "stat", look_too_early)

    assert store.read("c") == []
    assert turns(store.read("c")) == ["a"]
