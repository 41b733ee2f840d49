"""What somebody planted at each name that a store uses: refused or passed by, never followed."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest

import ledger
from ledger.errors import StoreFailure, StoreIO, StoreLink
from ledger.stores.folder import FolderStore
from tests.stores.support import foreign, log_path, stop, turns

THINGS = ["link", "dangling link", "link to a folder", "second name", "fifo", "socket", "folder"]
NO_FOLDERS = [thing for thing in THINGS if thing != "folder"]
CONTENT = b"the bytes of an attachment"
NAME = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def victim(tmp_path):
    """Something outside of the store, which must not change."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    (outside / "file").write_bytes(foreign("v", 1))
    (outside / NAME).write_bytes(CONTENT)
    before = seen(outside)
    yield outside
    assert seen(outside) == before


def seen(folder: Path) -> dict[str, bytes | None]:
    """Return all that is in a folder."""
    return {
        path.name: path.read_bytes() if path.is_file() else None
        for path in sorted(folder.iterdir())
    }


def plant(path: Path, what: str, outside: Path) -> None:
    """Put a thing at a path."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if what == "link":
        path.symlink_to(outside / "file")
    elif what == "dangling link":
        path.symlink_to(outside / "made")
    elif what == "link to a folder":
        path.symlink_to(outside)
    elif what == "second name":
        path.hardlink_to(outside / "file")
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        before = os.getcwd()
        with socket.socket(socket.AF_UNIX) as bound:
            os.chdir(path.parent)
            try:
                bound.bind(path.name)
            finally:
                os.chdir(before)


def what_is_at(path: Path) -> tuple[int, int, int]:
    """Return what tells a planted thing from another."""
    found = path.lstat()
    return found.st_dev, found.st_ino, found.st_mode


@pytest.mark.parametrize(
    ("where", "what"),
    [("conversations", what) for what in NO_FOLDERS]
    + [("", what) for what in NO_FOLDERS if what != "link to a folder"],
)
def test_planted_at_a_folder_of_conversations(tmp_path, victim, where, what):
    """Whatever is no folder, where one of the store's should be, is refused by reading and appending.

    The store's own folder may be reached by a link: that is the user's choice of a path.
    """
    plant(tmp_path / "s" / where if where else tmp_path / "s", what, victim)
    store = FolderStore(tmp_path / "s")
    reading = [lambda: store.read("c"), store.conversations]
    changing = [lambda: store.append("c", [stop("a")]), lambda: store.adopt("c", foreign("a", 1))]
    nothing_there = where == "" and what == "dangling link"

    for work in changing if nothing_there else [*reading, *changing]:
        with pytest.raises(StoreLink if where else StoreFailure):
            work()


@pytest.mark.parametrize("what", THINGS)
def test_planted_at_the_place_for_a_torn_tail(tmp_path, victim, what):
    """A torn tail is set aside under a name that nothing has; what was planted stays as it is."""
    store = FolderStore(tmp_path / "s")
    store.append("c", [stop("a")])
    planted = tmp_path / "s" / "conversations" / "c.torn-1"
    plant(planted, what, victim)
    before = what_is_at(planted)
    with log_path(tmp_path / "s").open("ab") as file:
        file.write(b"torn")

    store.append("c", [stop("b")])

    assert turns(store.read("c")) == ["a", "b"]
    assert (tmp_path / "s" / "conversations" / "c.torn-2").read_bytes() == b"torn"
    assert what_is_at(planted) == before


@pytest.mark.parametrize("what", THINGS)
def test_planted_at_the_place_of_a_new_file(tmp_path, victim, what, monkeypatch):
    """A file that is made under a random name is made by nobody else: what is there is not written to."""
    store = FolderStore(tmp_path / "s")
    store.append("c", [stop("a")])
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    plant(tmp_path / "s" / "conversations" / f"d.new-{'0' * 16}", what, victim)
    plant(tmp_path / "s" / "attachments" / f"new-{'0' * 32}", what, victim)

    for work in (lambda: store.adopt("d", store.raw("c")), lambda: store.blobs.put(CONTENT)):
        with pytest.raises(StoreIO, match="File exists"):
            work()


@pytest.mark.parametrize("what", NO_FOLDERS)
@pytest.mark.parametrize("where", ["attachments", f"attachments/{NAME[:2]}"])
def test_planted_at_a_folder_of_attachments(tmp_path, victim, where, what):
    """Whatever is no folder, where one for attachments should be, is refused; nothing is kept in it."""
    plant(tmp_path / "s" / where, what, victim)
    store = FolderStore(tmp_path / "s")

    for work in (lambda: store.blobs.put(CONTENT), lambda: store.blobs.get(NAME)):
        with pytest.raises(StoreLink):
            work()


@pytest.mark.parametrize("what", THINGS)
def test_planted_at_an_attachment(tmp_path, victim, what):
    """What is no plain file is not read as an attachment; putting the bytes puts the file in its place."""
    planted = tmp_path / "s" / "attachments" / NAME[:2] / NAME
    plant(planted, what, victim)
    blobs = FolderStore(tmp_path / "s").blobs

    assert blobs.has(NAME) is (what == "second name")
    with pytest.raises(StoreLink):
        blobs.get(NAME)
    if what == "folder":
        with pytest.raises(StoreLink):
            blobs.put(CONTENT)
    else:
        blobs.put(CONTENT)
        assert blobs.get(NAME) == CONTENT
        assert planted.lstat().st_nlink == 1


@pytest.mark.parametrize("what", THINGS)
def test_planted_at_the_place_of_a_plan_to_erase(tmp_path, victim, what):
    """What is no plain file is not taken for a plan of what to overwrite, nor passed over as none."""
    store = FolderStore(tmp_path / "s")
    store.append("c", [stop("a")])
    before = log_path(tmp_path / "s").read_bytes()
    plant(tmp_path / "s" / "conversations" / "c.erase", what, victim)

    for work in (lambda: store.append("c", [stop("b")]), lambda: store.read("c")):
        with pytest.raises(StoreLink):
            work()
    assert log_path(tmp_path / "s").read_bytes() == before


@pytest.mark.parametrize("what", THINGS)
def test_planted_at_the_lock_of_attachments(tmp_path, victim, what):
    """A record that names an attachment is not appended past a lock that is no plain file."""
    store = FolderStore(tmp_path / "s")
    sha256, size = store.blobs.put(CONTENT)
    named = {"$attachment": {"sha256": sha256, "media_type": "text/plain", "size": size}}
    plant(tmp_path / "s" / "attachments.lock", what, victim)

    with pytest.raises(StoreLink):
        store.append("c", [{**stop("a"), "file": named}])


@pytest.mark.parametrize("what", NO_FOLDERS)
def test_planted_at_the_folder_of_events(tmp_path, victim, what):
    """Removing the events of turns follows nothing out of the store; the conversation is not half gone."""
    chat = ledger.open("c", store=tmp_path / "s")
    turn = chat.record("a secret", "an answer")
    plant(tmp_path / "s" / "trees", what, victim)

    for work in (lambda: chat.forget(turn), lambda: chat.store.delete("c")):
        with pytest.raises(StoreLink):
            work()
    (tmp_path / "s" / "trees").unlink()
    assert chat.store.delete("c")


@pytest.mark.parametrize("what", NO_FOLDERS)
def test_deleting_removes_a_planted_name_and_no_more(tmp_path, victim, what):
    """Where a side file of a deleted conversation should be, the name goes; nothing is followed."""
    store = FolderStore(tmp_path / "s")
    store.append("c", [stop("a")])
    planted = tmp_path / "s" / "conversations" / "c.torn-1"
    plant(planted, what, victim)

    assert store.delete("c")

    assert not os.path.lexists(planted)


@pytest.mark.parametrize("what", THINGS)
def test_listing_passes_over_what_is_planted_as_a_log(tmp_path, victim, what):
    """A log that is no plain file of its own is not listed as a conversation, and is named as foreign."""
    store = FolderStore(tmp_path / "s")
    store.append("c", [stop("a")])
    plant(log_path(tmp_path / "s", "d"), what, victim)

    assert store.conversations() == ["c"]
    assert store.foreign_files() == ["d.jsonl"]
