"""What may be named as a store."""

from __future__ import annotations

import os

import pytest

from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from ledger.stores.resolve import store_for
from tests.stores.support import stop, turns


def test_nothing_is_this_processs_memory():
    """None names one memory store, the same at each call."""
    assert isinstance(store_for(None), MemoryStore)
    assert store_for(None) is store_for()


def test_a_path_is_one_folder_store(tmp_path, monkeypatch):
    """A folder, spelled as text or path, absolute or not, is one store in this process."""
    monkeypatch.chdir(tmp_path)

    store = store_for(tmp_path / "s")

    assert isinstance(store, FolderStore)
    assert store_for(str(tmp_path / "s")) is store
    assert store_for("s") is store
    assert store_for("./x/../s") is store
    assert store_for(tmp_path / "t") is not store
    assert os.listdir(tmp_path) == []


def test_a_folder_that_was_replaced_is_a_new_store(tmp_path):
    """When a folder was moved away, its path names a new store."""
    store = store_for(tmp_path / "s")
    store.append("c", [stop("a")])
    os.rename(tmp_path / "s", tmp_path / "t")

    assert store_for(tmp_path / "s").read("c") == []
    assert turns(store_for(tmp_path / "t").read("c")) == ["a"]


def test_a_store_is_itself():
    """An object with append and read is a store."""

    class Theirs:
        """Another library's store."""

        def append(self, conversation, records, *, expect=None):
            return 0

        def read(self, conversation, after=0):
            return []

    theirs = Theirs()
    assert store_for(theirs) is theirs


@pytest.mark.parametrize("value", [1, b"x", object(), [], False])
def test_anything_else_is_refused(value):
    """What cannot be a store is refused at once."""
    with pytest.raises(TypeError):
        store_for(value)


def test_true_is_the_folder_of_the_command_line(tmp_path, monkeypatch):
    """That of TURN_LEDGER_STORE, else the one under the user's data; False names none."""
    monkeypatch.delenv("TURN_LEDGER_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert store_for(True) is store_for(tmp_path / "data" / "turn-ledger")
    monkeypatch.setenv("TURN_LEDGER_STORE", str(tmp_path / "chats"))
    assert store_for(True) is store_for(tmp_path / "chats")
    with pytest.raises(TypeError, match="not bool"):
        store_for(False)
