"""What stands at the paths of a folder store: links, other things, other folders, other cases."""

from __future__ import annotations

import os
import shutil
import socket

import pytest

from ledger.errors import ConversationIdInvalid, StoreIO, StoreLink
from ledger.stores import files, names
from ledger.stores.folder import FolderStore
from tests.stores.support import Unflushed, foreign, lock_path, log_path, stop, turns


def plant(path, what: str, victim) -> None:
    """Put something that is no plain file of the store's own at a path."""
    if what == "link":
        path.symlink_to(victim)
    elif what == "dangling link":
        path.symlink_to(victim.with_name("made"))
    elif what == "hard link":
        path.hardlink_to(victim)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            before = os.getcwd()
            os.chdir(path.parent)
            bound.bind(path.name)
            os.chdir(before)


THINGS = ["link", "dangling link", "hard link", "fifo", "folder", "socket"]


@pytest.mark.parametrize("what", THINGS)
@pytest.mark.parametrize("where", [log_path, lock_path])
def test_what_is_no_plain_file_is_refused(tmp_path, where, what):
    """A link, a second name, a fifo, a folder or a socket at the path of a log or its lock is refused
    at once; nothing is followed, made or changed."""
    store = FolderStore(tmp_path / "s", lock_timeout_s=1)
    store.append("other", [stop("a")])
    victim = tmp_path / "victim"
    victim.write_bytes(foreign("v", 1))
    plant(where(tmp_path / "s"), what, victim)

    with pytest.raises(StoreLink):
        store.append("c", [stop("x")])
    if where is log_path:
        for work in (store.read, store.scan, store.raw, store.verify):
            with pytest.raises(StoreLink):
                work("c")

    assert victim.read_bytes() == foreign("v", 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s", "victim"]
    assert store.conversations() == ["other"]


def test_a_linked_folder_of_conversations_is_refused(tmp_path):
    """`conversations` is never a link; the folder above may be reached through one."""
    FolderStore(tmp_path / "s").append("c", [stop("a")])
    (tmp_path / "way").symlink_to(tmp_path / "s")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "conversations").symlink_to(tmp_path / "s" / "conversations")

    assert turns(FolderStore(tmp_path / "way").read("c")) == ["a"]
    for work in (
        lambda: FolderStore(tmp_path / "t").read("c"),
        lambda: FolderStore(tmp_path / "t").append("c", [stop("b")]),
    ):
        with pytest.raises(StoreLink):
            work()


def test_a_file_in_the_place_of_the_folder(tmp_path):
    """A plain file where the folder should be is named for what it is, and left alone."""
    (tmp_path / "s").write_bytes(b"")
    with pytest.raises(StoreIO, match="a file, not a folder"):
        FolderStore(tmp_path / "s").read("c")
    with pytest.raises(StoreIO, match="a file, not a folder"):
        FolderStore(tmp_path / "s").append("c", [stop("a")])


def test_a_folder_that_was_removed_is_not_made_anew(tmp_path):
    """An open store whose folder was moved away, or replaced, says so; it makes no new one."""
    store = FolderStore(tmp_path / "s")
    store.append("c", [stop("a")])
    os.rename(tmp_path / "s", tmp_path / "t")

    for work in (
        lambda: store.read("c"),
        store.conversations,
        lambda: store.append("c", [stop("b")]),
    ):
        with pytest.raises(StoreIO, match="removed or replaced"):
            work()
    assert not (tmp_path / "s").exists()
    FolderStore(tmp_path / "s").append("c", [stop("x")])
    with pytest.raises(StoreIO, match="removed or replaced"):
        store.append("c", [stop("b")])
    shutil.rmtree(tmp_path / "s")
    os.rename(tmp_path / "t", tmp_path / "s")
    assert store.append("c", [stop("b")], expect=1) == 2


def test_foreign_files_are_skipped(tmp_path):
    """Listing skips what is no log: other names, folders, links, empty files, blank or torn ones.

    What no conversation can use is named on request.
    """
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    place = tmp_path / "conversations"
    for name in ("x y.jsonl", "-.jsonl", "n.txt", ".jsonl", "e.jsonl"):
        (place / name).touch()
    (place / "blank.jsonl").write_bytes(b" \n\n\t\n")
    (place / "torn.jsonl").write_bytes(b'{"a":')
    (place / "d.jsonl").mkdir()
    (place / "l.jsonl").symlink_to(place / "c.jsonl")

    assert store.conversations() == ["c"]
    assert store.foreign_files() == sorted(
        ["x y.jsonl", "-.jsonl", "n.txt", ".jsonl", "d.jsonl", "l.jsonl"]
    )


def test_delete_removes_the_log_and_its_side_files_only(tmp_path):
    """Deleting removes what belongs to the id; its lock file stays, and so does every neighbour."""
    store = FolderStore(tmp_path)
    for name in ("c", "c.torn-1", "cc", "c.erase"):
        store.append(name, [stop("a")])
    place = tmp_path / "conversations"
    before = {p.name for p in place.iterdir()}
    for name in ("c.torn-1", "c.torn-22", "c.erase", "c.new-0f"):
        (place / name).write_bytes(b"x")
    for name in ("c.torn-x", "c.other"):
        (place / name).write_bytes(b"x")

    assert store.delete("c")

    assert {p.name for p in place.iterdir()} == before - {"c.jsonl"} | {"c.torn-x", "c.other"}


def test_names_of_side_files_never_collide():
    """No id's files are another id's files."""
    ids = ["a", "a.torn-1", "a.lock", "a.jsonl", "a.erase", "a.new-0", "a.torn-1.jsonl"]
    endings = [".jsonl", ".lock", ".torn-1", ".erase", ".new-0"]
    made = {}
    for conversation in ids:
        for ending in endings:
            name = conversation + ending
            if ending not in (".jsonl", ".lock"):
                assert names.is_side_file(name, conversation)
            assert made.setdefault(name, conversation) == conversation or ending != ".jsonl"
    for one in ids:
        for other in ids:
            assert not names.is_side_file(one + ".jsonl", other)
            assert not names.is_side_file(one + ".lock", other)


def test_reserved_names_are_refused_on_windows():
    """Names that Windows keeps for devices, or shortens, are refused there and kept elsewhere."""
    for name in ("CON", "nul.txt", "a.", "Com1", "lpt9.x", "aux"):
        assert names.check(name, windows=False) == name
        with pytest.raises(ConversationIdInvalid):
            names.check(name, windows=True)
    for name in ("CONS", "nul-1", "com10", "a.b"):
        assert names.check(name, windows=True) == name


def test_which_name_stands_for_another():
    """Blind to case, a name is taken by its twin, unless it is there itself."""
    assert names.taken_by("k.jsonl", ["a", "K.jsonl"]) == "K.jsonl"
    assert names.taken_by("k.jsonl", ["K.jsonl", "k.jsonl"]) is None
    assert names.taken_by("k.jsonl", ["kk.jsonl"]) is None


def test_two_ids_never_share_a_file(tmp_path, monkeypatch):
    """Where the file system is blind to case, an id whose file is another's is refused."""
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("k", [stop("a")])
    place = tmp_path / "conversations"
    # What such a file system does: each name of k's files leads to them.
    real_open, real_stat, real_lstat = os.open, os.stat, os.lstat

    def actual(path):
        if isinstance(path, str) and os.path.dirname(path) == str(place):
            for name in os.listdir(place):
                if name.casefold() == os.path.basename(path).casefold():
                    return str(place / name)
        return path

    monkeypatch.setattr(files.os, "open", lambda path, *rest: real_open(actual(path), *rest))
    monkeypatch.setattr(files.os, "stat", lambda path, **rest: real_stat(actual(path), **rest))
    monkeypatch.setattr(files.os, "lstat", lambda path, **rest: real_lstat(actual(path), **rest))
    blind = FolderStore(tmp_path, calls=Unflushed())

    for work in (
        lambda: blind.append("K", [stop("b")]),
        lambda: blind.read("K"),
        lambda: blind.scan("K"),
        lambda: blind.delete("K"),
        lambda: blind.adopt("K", b"x\n"),
    ):
        with pytest.raises(ConversationIdInvalid, match=r"k\.jsonl"):
            work()
    assert turns(blind.read("k")) == ["a"]
    assert blind.append("k", [stop("b")]) == 2
    assert blind.append("j", [stop("b")]) == 1
    assert blind.conversations() == ["j", "k"]


def test_two_spellings_of_a_folder_are_one(tmp_path, monkeypatch):
    """A folder reached by a relative path, or through a link, is the same store."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "way").symlink_to(tmp_path / "s")
    one, two = FolderStore("s"), FolderStore(tmp_path / "way" / ".." / "way")
    position = one.append("c", [stop("a")])

    assert two.append("c", [stop("b")], expect=position) == 2
    monkeypatch.chdir("/")
    assert one.append("c", [stop("d")], expect=2) == 3


def test_adopt_leaves_nothing_when_it_fails(tmp_path):
    """A log that cannot be put in place whole is not put in place at all."""
    from ledger.errors import StoreFull
    from tests.stores.support import Failing, error

    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    data = store.raw("c")
    calls.fail["write"] = [30, error(28)]

    with pytest.raises(StoreFull):
        store.adopt("d", data)

    assert store.read("d") == []
    left = sorted(p.name for p in (tmp_path / "conversations").iterdir())
    assert left == ["c.jsonl", "c.lock", "d.lock"]
    assert store.adopt("d", data) == 1
