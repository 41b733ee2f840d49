"""The index in a folder: brought up cheaply, purged when something is forgotten, made anew when it is damaged."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

import ledger
from ledger.catalog import refreshing
from ledger.stores import names
from ledger.stores.files import Descriptor
from ledger.stores.index_file import IndexFile
from tests.catalog.test_catalog import at, ids, put, said, title
from tests.stores.support import ROOT, Unflushed, log_path


@pytest.fixture
def store(tmp_path):
    """A folder with two conversations."""
    found = ledger.FolderStore(tmp_path / "store", calls=Unflushed())
    put(found, "a", *said("t", "the secret walrus"), *said("u", "parcel"))
    put(found, "b", *said("v", "parcel"))
    return found


def index_of(store) -> Path:
    """Where the index is."""
    return Path(store.folder) / names.INDEX


def everything(folder) -> bytes:
    """All bytes of all files of a folder that are no logs."""
    return b"".join(
        path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file() and path.suffix != ".jsonl"
    )


def fresh(store):
    """The catalog as another process would have it."""
    return ledger.catalog.of(ledger.FolderStore(store.folder, calls=Unflushed()))


class Watched:
    """A store that notes what is read of it."""

    def __init__(self, store):
        self._store = store
        self.read: list[tuple[str, int]] = []

    def looks(self):
        return self._store.looks()

    def since(self, conversation, mark=""):
        found = self._store.since(conversation, mark)
        self.read.append((conversation, len(found.records)))
        return found


def refreshed(store) -> list[tuple[str, int]]:
    """Bring the index up. Returns: what was read, and how many records."""
    catalog = fresh(store)
    watched = catalog._logs = Watched(catalog._logs)
    catalog.refresh()
    return watched.read


# -- cheap -----------------------------------------------------------------------------------------------


def test_only_what_was_added_is_read(store):
    """What did not change is not opened; of what did, the records that are new are read."""
    assert refreshed(store) == [("a", 4), ("b", 2)]
    assert refreshed(store) == []
    put(store, "b", *said("w", "more"))
    assert refreshed(store) == [("b", 2)]
    assert fresh(store).conversations()[0].turns == 2


def test_a_log_that_was_put_back_is_read_whole(store):
    """A log that another file replaced, or that is shorter than it was, is read from its start."""
    refreshed(store)
    log = log_path(store.folder, "a")
    data = log.read_bytes()
    log.write_bytes(data[: data.index(b"\n", data.index(b"\n") + 1) + 1])
    assert refreshed(store) == [("a", 2)]
    assert fresh(store).search("parcel", conversation="a") == []

    store.delete("b")
    put(store, "b", *said("n1", "new"), *said("n2", "newer"), *said("n3", "newest"))
    assert refreshed(store) == [("b", 6)]
    assert fresh(store).conversations("", min_turns=3)[0].turns == 3


def test_a_tail_that_was_exchanged_is_noticed(store):
    """After a fall of the machine other records may stand where others stood: by their bytes it is noticed."""
    refreshed(store)
    log = log_path(store.folder, "b")
    before = log.read_bytes()
    again = ledger.FolderStore(Path(store.folder).parent / "other", calls=Unflushed())
    put(again, "b", *said("v", "walrus"), *said("w", "zebra"))
    with log.open("r+b") as file:  # The same file, with other bytes.
        file.write(log_path(again.folder, "b").read_bytes())
    assert len(log.read_bytes()) > len(before)
    assert refreshed(store) == [("b", 4)]
    assert [hit.conversation for hit in fresh(store).search("zebra")] == ["b"]


# -- forgetting ------------------------------------------------------------------------------------------


def test_what_is_forgotten_leaves_the_index_at_once(store):
    """No byte of a forgotten turn's text is in the index after `forget`, before anybody asks it again."""
    catalog = ledger.catalog.of(store)
    assert len(catalog.search("walrus")) == 1
    assert b"walrus" in everything(store.folder)

    ledger.open("a", store=store).forget(1)
    assert b"walrus" not in everything(store.folder)
    assert catalog.search("walrus") == []
    assert [hit.ordinal for hit in catalog.search("parcel", conversation="a")] == [2]
    assert {row.preview for row in catalog.conversations()} == {"parcel"}


def test_a_deleted_conversation_leaves_the_index_at_once(store):
    """No byte of a deleted conversation's text is in the index after `delete`."""
    catalog = ledger.catalog.of(store)
    catalog.refresh()
    store.delete("a")
    assert b"walrus" not in everything(store.folder)
    assert ids(catalog.conversations()) == ["b"]


@contextmanager
def hidden(store):
    """Have an index out of the way meanwhile, so that it is not told of what is done."""
    index_of(store).rename(f"{store.folder}/away")
    yield
    Path(f"{store.folder}/away").rename(index_of(store))


def test_forgetting_is_noticed_where_nobody_told_the_index(store):
    """Who forgets without knowing of the index is noticed by whoever asks it next, and no byte stays then."""
    catalog = ledger.catalog.of(store)
    catalog.refresh()
    with hidden(store):
        chat = ledger.open("a", store=store)
        chat.forget(1)
        chat.record("after", "that")
    assert b"walrus" in everything(store.folder)

    assert catalog.search("walrus") == []
    assert b"walrus" not in everything(store.folder)


def test_an_index_that_cannot_be_purged_is_removed(store):
    """A damaged index is removed when something is forgotten: what it holds, nobody can say."""
    ledger.catalog.of(store).refresh()
    index_of(store).write_bytes(b"walrus" * 1000)
    ledger.open("a", store=store).forget(1)
    assert not index_of(store).exists()


@pytest.mark.parametrize("how", ["forget", "delete"])
def test_what_a_removed_index_left_is_removed(store, how):
    """Somebody removed the index alone: its journal, which holds text too, goes when something is forgotten."""
    journal = Path(f"{index_of(store)}-journal")
    journal.write_bytes(b"walrus")
    ledger.open("a", store=store).forget(1) if how == "forget" else store.delete("a")
    assert not journal.exists()
    assert not index_of(store).exists()


@pytest.mark.parametrize("how", ["ask", "forget", "delete"])
def test_damage_of_which_sqlite_cannot_tell(store, how):
    """Its messages are no text then, which Python raises as it does; nobody sees that, and the index is made anew."""
    catalog = ledger.catalog.of(store)
    catalog.refresh()
    data = index_of(store).read_bytes()
    at = data.index(b"by_last")
    index_of(store).write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    if how == "forget":
        ledger.open("a", store=store).forget(1)
        assert not index_of(store).exists()
    elif how == "delete":
        store.delete("b")
        assert not index_of(store).exists()
    assert ids(catalog.conversations(order="id")) == (["a"] if how == "delete" else ["a", "b"])


def test_no_index_is_made_by_forgetting(store):
    """Where there is no index, forgetting and deleting make none."""
    ledger.open("a", store=store).forget(1)
    store.delete("b")
    assert not index_of(store).exists()


# -- damage ----------------------------------------------------------------------------------------------


def garbage(path):
    """Overwrite it with what is no database."""
    path.write_bytes(b"\0walrus" * 500)


def cut(path):
    """Cut it within a page."""
    os.truncate(path, path.stat().st_size // 2 + 100)


def emptied(path):
    """Cut it to nothing."""
    os.truncate(path, 0)


def holes(path):
    """Overwrite every page but the first."""
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * (size - 4096))


def newer(path):
    """Say that it is of a later version."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
        db.commit()


def anothers(path):
    """Put the database of another program in its place."""
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes(x)")
        db.commit()


def tables_lost(path):
    """Drop a table."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE turns")
        db.commit()


def rows_lost(path):
    """Write nonsense into the rows."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE turns SET data = '{'")
        db.execute("UPDATE conversations SET data = '[1'")
        db.commit()


@pytest.mark.parametrize(
    "harm", [garbage, cut, emptied, holes, newer, anothers, tables_lost, rows_lost, os.unlink]
)
def test_a_damaged_index_is_made_anew(store, harm):
    """Whatever became of the file, the answers are right, nothing is raised, and there is an index again."""
    catalog = ledger.catalog.of(store)
    catalog.refresh()
    harm(index_of(store))

    assert {hit.conversation for hit in catalog.search("parcel")} == {"a", "b"}
    assert ids(catalog.conversations(order="id")) == ["a", "b"]
    assert sum(each.turns for each in catalog.usage()) == 3
    put(store, "b", *said("w", "more parcel"))
    assert len(fresh(store).search("parcel")) == 3
    with closing(sqlite3.connect(index_of(store))) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_it_is_its_owners_alone(store):
    """The files of the index may be read by their owner only, and lie where no conversation can."""
    ledger.catalog.of(store).refresh()
    for name in (names.INDEX, "catalog.lock"):
        assert stat.S_IMODE((Path(store.folder) / name).stat().st_mode) == 0o600
    assert store.conversations() == ["a", "b"]
    assert store.foreign_files() == []


def test_a_link_in_its_place_is_not_followed(store, tmp_path):
    """A link where the index should be is left alone: memory serves."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    index_of(store).symlink_to(victim)
    assert len(ledger.catalog.of(store).search("parcel")) == 2
    assert victim.read_bytes() == b""


def test_where_nothing_may_be_written_memory_serves(store, monkeypatch):
    """In a folder that may only be read the answers are the same, and nothing is made in it."""
    real = Descriptor.__init__

    def refuse(self, path, flags, mode=0o600):
        if "catalog" in path:
            raise PermissionError(13, "Permission denied", path)
        real(self, path, flags, mode)

    monkeypatch.setattr(Descriptor, "__init__", refuse)
    catalog = fresh(store)
    assert len(catalog.search("parcel")) == 2
    put(store, "b", *said("w", "parcel"))
    assert len(catalog.search("parcel")) == 3
    assert not index_of(store).exists()


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    """Asking of a store that does not exist answers nothing, and makes nothing."""
    catalog = ledger.catalog.of(tmp_path / "none")
    assert catalog.conversations() == catalog.search("x") == catalog.usage() == []
    assert not (tmp_path / "none").exists()


def test_rebuilding_gives_the_same(store):
    """Made anew, the index says what it said."""
    catalog = ledger.catalog.of(store)
    before = catalog.conversations(), catalog.search("parcel"), catalog.usage()
    inode = index_of(store).stat().st_ino
    catalog.rebuild()
    assert (catalog.conversations(), catalog.search("parcel"), catalog.usage()) == before
    assert index_of(store).stat().st_ino != inode or before


def test_a_busy_index_is_waited_for_then_memory_serves(store):
    """While another holds the index for writing the answers are right all the same."""
    ledger.catalog.of(store).refresh()
    put(store, "b", *said("w", "parcel"))
    catalog = fresh(store)
    catalog._kept._file = IndexFile(store.folder, timeout_s=0.05)
    with closing(sqlite3.connect(index_of(store), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert len(catalog.search("parcel")) == 3
    assert len(catalog.search("parcel")) == 3


# -- several processes -----------------------------------------------------------------------------------

_ASK = """
import sys, ledger
catalog = ledger.catalog.of(sys.argv[1])
print("ready", flush=True)
seen = 0
while seen < int(sys.argv[2]):
    found = catalog.conversations()
    turns = sum(each.turns for each in found)
    assert turns >= seen, (turns, seen)
    assert len(catalog.search("parcel", limit=1000)) >= turns
    assert sum(each.turns for each in catalog.usage()) >= turns
    seen = turns
"""
_REBUILD = """
import sys, ledger
catalog = ledger.catalog.of(sys.argv[1])
print("ready", flush=True)
while True:
    catalog.rebuild()
"""


@contextmanager
def running(script, *arguments):
    """A process that runs a script and has said that it is ready; killed in the end, if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_processes_ask_while_others_write_and_rebuild(tmp_path):
    """Two processes that ask, one that makes the index anew again and again, one that writes: all see all."""
    store = ledger.FolderStore(tmp_path / "store", calls=Unflushed())
    put(store, "c0", *said("t", "parcel"))
    asking = [running(_ASK, store.folder, "30") for _ in range(2)]
    with asking[0] as one, asking[1] as other, running(_REBUILD, store.folder):
        for number in range(1, 30):
            put(store, f"c{number % 5}", *said(f"t{number}", "parcel", at(number)))
        assert [one.wait(60), other.wait(60)] == [0, 0]
    assert len(ledger.catalog.of(store).search("parcel", limit=100)) == 30


@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.03])
def test_a_process_killed_as_it_refreshes_harms_nothing(tmp_path, delay_s):
    """Whoever is killed while it writes to the index leaves one that is right, or is made anew."""
    store = ledger.FolderStore(tmp_path / "store", calls=Unflushed())
    for number in range(40):
        put(store, f"c{number}", *said(f"t{number}", "parcel " * 50))
    with running(_REBUILD, store.folder) as process:
        time.sleep(delay_s)  # At whatever place it then is.
        process.send_signal(signal.SIGKILL)

    catalog = ledger.catalog.of(store)
    assert len(catalog.search("parcel", limit=100)) == 40
    assert sum(each.turns for each in catalog.usage()) == 40
    with closing(sqlite3.connect(index_of(store))) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_is_erased_while_another_reads_it_does_not_come_back(store, monkeypatch):
    """A turn that is forgotten between reading its log and writing the index is not in the index afterwards."""
    catalog, forgotten = fresh(store), []
    take = refreshing._take

    with ExitStack() as stack:

        def slow(index, logs, conversation):
            done = take(index, logs, conversation)
            if conversation == "a" and not forgotten:
                forgotten.append(stack.enter_context(running(_FORGET, store.folder)))
            return done

        monkeypatch.setattr(refreshing, "_take", slow)
        catalog.refresh()
        assert forgotten[0].wait(60) == 0
    assert b"walrus" not in everything(store.folder)
    assert catalog.search("walrus") == []


_FORGET = """
import sys, ledger
print("ready", flush=True)
ledger.open("a", store=sys.argv[1]).forget(1)
"""


def test_a_title_may_come_alone(store):
    """A conversation of no turns is listed with what it has."""
    put(store, "c", title("Only a title"))
    (row,) = fresh(store).conversations("only")
    assert (row.turns, row.heads, row.states, row.last, row.head) == (0, 0, {}, None, None)
