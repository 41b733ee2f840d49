"""Reading from a folder: never in a writer's way, never a mix, never altered data."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager

import pytest

from ledger.errors import StoreCorrupt, StoreDenied, StoreGone, StoreIO, StoreReadOnly
from ledger.records import kinds
from ledger.stores import files
from ledger.stores.folder import FolderStore
from tests.stores.support import (
    Failing,
    Recorded,
    Unflushed,
    end,
    error,
    foreign,
    heard,
    lock_path,
    log_path,
    run,
    start,
    stop,
    turns,
)


@pytest.fixture
def store(tmp_path):
    """Return a store that holds a and b, appended one by one."""
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("c", [stop("a")])
    store.append("c", [stop("b")])
    return store


def add_bytes(folder, data: bytes) -> None:
    """Add bytes to a log as they are."""
    with log_path(folder).open("ab") as file:
        file.write(data)


@contextmanager
def locked(path):
    """Hold an flock on a file, as another process does."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def batch_bytes(store, tmp_path) -> bytes:
    """Return the bytes that a batch of three adds to a log like the store's, and leave it as it is."""
    shutil.copytree(tmp_path / "conversations", tmp_path / "copy" / "conversations")
    before = log_path(tmp_path).stat().st_size
    copy = FolderStore(tmp_path / "copy", calls=Unflushed())
    copy.append("c", [stop("x"), stop("y"), stop("z")])
    return log_path(tmp_path / "copy").read_bytes()[before:]


def test_an_unfinished_batch_is_in_flight_or_void(store, tmp_path):
    """While somebody holds the append lock, or there is none to try, an unfinished batch at the end
    is not there yet; once the lock can be had, its lines are void and keep their places."""
    batch = batch_bytes(store, tmp_path)
    add_bytes(tmp_path, batch[: batch.rindex(b"\n", 0, -1) + 1])
    for path in (lock_path(tmp_path), log_path(tmp_path)):
        with locked(path):
            for opened in (store, FolderStore(tmp_path)):
                found = opened.read("c")
                assert turns(found) == ["a", "b"]
                assert found.position == 2
                assert opened.read("c", 2) == []
                assert opened.read("c", 3).position == 3
    os.rename(lock_path(tmp_path), tmp_path / "lock")
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b"]
    os.rename(tmp_path / "lock", lock_path(tmp_path))

    for opened in (store, FolderStore(tmp_path)):
        found = opened.read("c")
        assert turns(found) == ["a", "b", None, None]
        assert [r["seq"] for r in found] == [1, 2, 3, 4]
        assert opened.scan("c", 2) == [kinds.Unreadable(seq=3), kinds.Unreadable(seq=4)]
    with locked(lock_path(tmp_path)):
        assert store.read("c", 4).position == 4
    assert store.append("c", [stop("d")], expect=4) == 5
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b", None, None, "d"]


def test_a_batch_that_is_finished_meanwhile(store, tmp_path):
    """What was in flight at one read is handed out by the next, once it is whole."""
    batch = batch_bytes(store, tmp_path)
    middle = batch.index(b"\n") + 30
    add_bytes(tmp_path, batch[:middle])
    with locked(lock_path(tmp_path)):
        assert store.read("c", 2) == []
        add_bytes(tmp_path, batch[middle:])

    assert turns(store.read("c", 2)) == ["x", "y", "z"]


def test_a_line_without_its_line_feed(store, tmp_path):
    """A whole last line without its line feed counts once nobody writes, and not while one does."""
    batch = batch_bytes(store, tmp_path)
    add_bytes(tmp_path, batch[:-1])
    with locked(lock_path(tmp_path)):
        assert turns(store.read("c")) == ["a", "b"]

    found = store.read("c")
    assert turns(found) == ["a", "b", "x", "y", "z"]
    assert store.read("c", found.position) == []
    assert store.append("c", [stop("d")], expect=found.position) == 6
    assert turns(store.read("c", 4)) == ["z", "d"]
    assert store.verify("c").counts == {"sealed": 6}


def test_a_piece_of_a_line_is_not_there(store, tmp_path):
    """What follows the last line feed and is no whole line is not a record."""
    add_bytes(tmp_path, foreign("f", 3)[:-1])

    assert turns(store.read("c")) == ["a", "b"]
    assert store.verify("c").torn_bytes == len(foreign("f", 3)) - 1


def test_altered_data_is_never_handed_out(store, tmp_path):
    """A flipped bit in any byte of a sealed log never alters the content that is handed out.

    (A flip inside the last seal may make its line look like another writer's, content intact.)
    """
    good = log_path(tmp_path).read_bytes()
    contents = [stop("a"), stop("b")]
    for at in range(len(good)):
        log_path(tmp_path).write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
        found = FolderStore(tmp_path, calls=Unflushed()).read("c")
        for record in found:
            content = {key: record.get(key) for key in stop("")}
            assert content in contents or record["kind"] == "unreadable"
        assert [record["seq"] for record in found] == list(range(1, len(found) + 1))


def test_damage_is_told_apart_from_a_change_in_flight(store, tmp_path):
    """Damaged bytes are read again before they are reported: what was mended meanwhile is good."""
    good = log_path(tmp_path).read_bytes()
    bad = good.replace(b'"turn":"a"', b'"turn":"A"')
    log_path(tmp_path).write_bytes(bad)

    class Mended(files.Files):
        """The first look for record 1 and the first reading see bad bytes, every later one good ones."""

        looks = 0

        def read(self, number: int, length: int, offset: int) -> bytes:
            data = super().read(number, length, offset)
            if length == len(bad):
                self.looks += 1
            if self.looks == 2:
                log_path(tmp_path).write_bytes(good)
            return data

    assert turns(FolderStore(tmp_path).read("c")) == [None, "b"]
    assert turns(FolderStore(tmp_path, calls=Mended()).read("c")) == ["a", "b"]


def test_strict_refuses_damage_and_nothing_else(store, tmp_path):
    """A strict store refuses to read a damaged line; void and foreign lines it reads."""
    batch = batch_bytes(store, tmp_path)
    add_bytes(tmp_path, batch[: batch.index(b"\n") + 1] + foreign("f", 4))
    strict = FolderStore(tmp_path, strict=True)
    assert turns(strict.read("c")) == ["a", "b", None, "f"]
    data = log_path(tmp_path).read_bytes()
    log_path(tmp_path).write_bytes(data.replace(b'"turn":"b"', b'"turn":"B"'))

    with pytest.raises(StoreCorrupt) as caught:
        FolderStore(tmp_path, strict=True).scan("c")
    assert caught.value.seq == 2
    assert turns(FolderStore(tmp_path).read("c")) == ["a", None, None, "f"]


def test_only_the_end_is_read(tmp_path):
    """Reading after a known end reads what came since; near the end of a long log, the end only."""
    store = FolderStore(tmp_path, calls=Unflushed())
    for _ in range(40):
        store.append("c", [stop("x" * 2000) for _ in range(20)])
    size = log_path(tmp_path).stat().st_size
    calls = Recorded()
    fresh = FolderStore(tmp_path, calls=calls)

    assert len(fresh.read("c", 790)) == 10
    cold = calls.bytes_read()
    calls.calls.clear()
    store.append("c", [stop("a")])
    assert turns(fresh.read("c", 800)) == ["a"]
    known = calls.bytes_read()
    calls.calls.clear()
    assert len(fresh.read("c", 795)) == 6
    back = calls.bytes_read()

    assert size > 1_500_000
    assert cold < 600_000
    assert known < 2_000
    assert back < 300_000


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("batch", [1, 7, 400])
def test_every_place_of_a_log(tmp_path, sealed, batch):
    """Reading after any place, by an open store or a new one, is the end of reading everything."""
    store = FolderStore(tmp_path, calls=Unflushed())
    if sealed:
        for first in range(0, 800, batch):
            names = range(first, min(800, first + batch))
            store.append("c", [stop(f"{name}-" + "x" * 500) for name in names])
    else:
        store.append("c", [stop("0")])
        add_bytes(tmp_path, b"".join(foreign(f"{n}-" + "x" * 500, n + 1) for n in range(1, 800)))
        store.append("c", [stop("800")])
    whole = FolderStore(tmp_path).read("c")
    structs = FolderStore(tmp_path).scan("c")

    for after in [*range(0, len(whole), 31), len(whole) - 1, len(whole)]:
        fresh = FolderStore(tmp_path)
        assert fresh.read("c", after) == whole[after:]
        assert fresh.scan("c", after) == structs[after:]
        assert store.read("c", after) == whole[after:]


# -- logs that change under a reader ---------------------------------------------------------------


def test_a_log_cut_by_somebody(store, tmp_path):
    """A log that went back is noticed: an old position is gone, a new read is the new truth."""
    before = log_path(tmp_path).read_bytes()
    position = store.append("c", [stop("d")])
    store.read("c")
    log_path(tmp_path).write_bytes(before)

    with pytest.raises(StoreGone) as caught:
        store.read("c", position)
    assert caught.value.found == 2
    assert turns(store.read("c")) == ["a", "b"]
    with pytest.raises(StoreGone):
        store.read("c", 3)
    assert store.append("c", [stop("e")], expect=2) == 3


def test_a_log_replaced_by_one_of_the_same_size(store, tmp_path):
    """A log replaced, in place or by another file of the same size, is noticed."""
    for in_place in (True, False):
        other = FolderStore(tmp_path / f"other-{in_place}", calls=Unflushed())
        other.append("c", [stop("y")])
        other.append("c", [stop("z")])
        position = store.read("c").position
        new = log_path(tmp_path / f"other-{in_place}").read_bytes()
        assert len(new) == log_path(tmp_path).stat().st_size
        if in_place:
            log_path(tmp_path).write_bytes(new)
        else:
            os.replace(log_path(tmp_path / f"other-{in_place}"), log_path(tmp_path))

        with pytest.raises(StoreGone):
            store.read("c", position)
        assert turns(store.read("c")) == ["y", "z"]
        assert store.wait("c", position, 0) is True
        assert store.append("c", [stop("b")], expect=store.read("c").position) == 3
        log_path(tmp_path).write_bytes(new)


@pytest.mark.parametrize("before", [0, 1])
def test_news_of_another_writer_are_read_alone(tmp_path, before):
    """Of a long log without seals, or with a few far back, by several readers of one store that take turns."""

    class Counting(Unflushed):
        """Counts what is read."""

        count = 0

        def read(self, number: int, length: int, offset: int) -> bytes:
            found = super().read(number, length, offset)
            self.count += len(found)
            return found

    calls = Counting()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    path = log_path(tmp_path)
    data = path.read_bytes() if before else b""
    path.write_bytes(data + b"".join(foreign("x" * 900, n) for n in range(before, 400)))
    places = [store.read("c").position] * 3
    for number in range(400 + before, 405):
        with path.open("ab") as file:
            file.write(foreign(f"t{number}", number))
        calls.count = 0
        for reader in range(3):
            found = store.read("c", places[reader])
            assert turns(found) == [f"t{number}"]
            places[reader] = found.position
        assert calls.count < 10_000
    assert turns(FolderStore(tmp_path).read("c"))[-2:] == ["t403", "t404"]


def test_an_older_copy_put_back_is_noticed_once(store, tmp_path):
    """An older copy of the same log that grew again is no continuation of what was read."""
    old = log_path(tmp_path).read_bytes()
    position = store.append("c", [stop("d")])
    store.read("c", position)
    log_path(tmp_path).write_bytes(old)
    FolderStore(tmp_path).append("c", [stop("e"), stop("f")])

    with pytest.raises(StoreGone):
        store.read("c", position)
    assert turns(store.read("c")) == ["a", "b", "e", "f"]


def test_a_log_removed(store, tmp_path):
    """A log that was removed reads as empty, and its positions are gone."""
    position = store.read("c").position
    log_path(tmp_path).unlink()

    with pytest.raises(StoreGone):
        store.read("c", position)
    assert store.read("c") == []
    assert store.append("c", [stop("n")], expect=0) == 1


def test_blank_lines_and_line_ends(tmp_path):
    """Blank lines are not counted; lines end at byte 0x0A and nowhere else."""
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("c", [stop("a")])
    add_bytes(tmp_path, b" \t\r\v\f\n\n" + foreign("f\xc2\x85", 2)[:-1] + b"\r\n\n")
    store.append("c", [stop("\r\n\x0b\x0c\x1c\u2028")])

    assert turns(store.read("c")) == ["a", "f\xc2\x85", "\r\n\x0b\x0c\x1c\u2028"]
    assert store.verify("c").counts == {"sealed": 2, "unsealed": 1}


def test_two_records_on_a_line_are_none(tmp_path):
    """Two objects on one line are one place, unreadable; those around it keep theirs."""
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("c", [stop("a")])
    add_bytes(tmp_path, foreign("x", 2)[:-1] + foreign("y", 3))
    add_bytes(tmp_path, foreign("z", 3))

    assert turns(store.read("c")) == ["a", None, "z"]
    assert [s.seq for s in store.scan("c")] == [1, 2, 3]


# -- who may read ----------------------------------------------------------------------------------

AS_NOBODY = """
if os.geteuid() == 0:
    os.setgroups([]); os.setegid(65534); os.seteuid(65534)
"""


def test_a_folder_without_rights(tmp_path):
    """A folder that this user may only read is read, whole lines and all, and nothing is made in it;
    appending says store-denied, and so does reading what may not be read."""
    said = run(
        AS_NOBODY
        + """
store = FolderStore(folder + "/s")
store.append("c", [stop("a")])
place = folder + "/s/conversations"
with open(place + "/c.jsonl", "ab") as file:
    file.write(b"torn")
os.remove(place + "/c.lock")
os.chmod(place + "/c.jsonl", 0o400)
os.chmod(place, 0o500)
store = FolderStore(folder + "/s")
say(len(store.read("c")))
say(",".join(store.conversations()))
for work in (lambda: store.append("c", [stop("b")]), lambda: store.delete("c")):
    try:
        work()
    except LedgerError as error:
        say(error.code)
say(sorted(os.listdir(place)) == ["c.jsonl"])
os.chmod(place + "/c.jsonl", 0)
try:
    store.read("c")
except LedgerError as error:
    say(error.code)
os.chmod(place, 0)
for work in (lambda: store.read("c"), store.conversations):
    try:
        work()
    except LedgerError as error:
        say(error.code)
os.chmod(place, 0o700)
""",
        _open_to_all(tmp_path),
    )

    assert said.split() == [
        "1",
        "c",
        "store-denied",
        "store-denied",
        "True",
        "store-denied",
        "store-denied",
        "store-denied",
    ]


def _open_to_all(tmp_path):
    """Return a folder in which any user may make things, reachable by any user."""
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o1777)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.geteuid() and above != above.parent:
            above.chmod(above.stat().st_mode | 0o011)
    return place


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_read_only_file_system(store, tmp_path):
    """A store on a read-only file system is read; every change says store-read-only."""
    place = tmp_path / "mounted"
    place.mkdir()
    code = os.system(f"mount --bind {tmp_path} {place} && mount -o remount,bind,ro {place}")
    if code:
        pytest.skip("mounting is not permitted here")
    try:
        mounted = FolderStore(place)
        assert turns(mounted.read("c")) == ["a", "b"]
        for change in (
            lambda: mounted.append("c", [stop("x")]),
            lambda: mounted.append("new", [stop("x")]),
            lambda: mounted.delete("c"),
            lambda: mounted.adopt("new", b"x\n"),
            lambda: mounted.blobs.put(b"x"),
            lambda: FolderStore(place / "none").append("c", [stop("x")]),
        ):
            with pytest.raises(StoreReadOnly):
                change()
    finally:
        os.system(f"umount {place}")


def test_a_read_error_is_no_empty_conversation(store, tmp_path):
    """When the system cannot read the log, that is said; it is not taken for an empty one."""
    calls = Failing()
    failing = FolderStore(tmp_path, calls=calls)
    calls.fail["read"] = [error(5)]

    with pytest.raises(StoreIO):
        failing.read("c")
    assert turns(failing.read("c")) == ["a", "b"]


def test_another_users_folder_is_refused(tmp_path):
    """A folder of another user, or that everybody may write to, is refused, saying why."""
    store = FolderStore(tmp_path / "s")
    store.append("c", [stop("a")])
    os.chmod(tmp_path / "s" / "conversations", 0o777)

    with pytest.raises(StoreDenied) as caught:
        FolderStore(tmp_path / "s").read("c")
    assert "everybody may write" in str(caught.value)
    with pytest.raises(StoreDenied):
        FolderStore(tmp_path / "s").append("c", [stop("b")])


def test_readers_during_writes(tmp_path):
    """Readers of a log that another process appends to see a growing prefix of whole batches."""
    process = start(
        """
        store = FolderStore(folder)
        for i in range(150):
            store.append("c", [stop(f"{i}-{k}" + "x" * 2000) for k in range(6)])
            if i == 0:
                say("started")
        """,
        tmp_path,
    )
    assert heard(process) == "started"
    store = FolderStore(tmp_path)
    seen: list = []
    position = store.read("c", 0).position
    seen += store.read("c")[:position]
    while len(seen) < 900:
        assert store.wait("c", len(seen), 20)
        more = store.read("c", len(seen))
        assert len(more) % 6 == 0
        assert all(record["kind"] == "stop" for record in more)
        seen += more
        assert process.poll() in (None, 0)

    assert [r["seq"] for r in seen] == list(range(1, 901))
    assert turns(seen) == turns(store.read("c"))
    end(process)
