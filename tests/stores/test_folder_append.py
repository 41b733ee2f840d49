"""Appending to a folder: the bytes, their order of durability, torn tails and failed writes."""

from __future__ import annotations

import errno
import os
import stat
import sys

import pytest

from ledger.errors import (
    LedgerError,
    StoreConflict,
    StoreFull,
    StoreGone,
    StoreIO,
    StoreUnknown,
    StoreVersion,
)
from ledger.stores.folder import FolderStore
from tests.stores.support import (
    Counting,
    Failing,
    Recorded,
    Unflushed,
    check_seals,
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


def test_the_files_are_the_contracts(tmp_path):
    """A conversation is its log and its lock file, and nothing else is made."""
    FolderStore(tmp_path / "new").append("c", [stop("a")])

    made = sorted(str(p.relative_to(tmp_path / "new")) for p in (tmp_path / "new").rglob("*"))
    assert made == ["conversations", "conversations/c.jsonl", "conversations/c.lock"]
    assert lock_path(tmp_path / "new").read_bytes() == b""
    check_seals(log_path(tmp_path / "new").read_bytes())


def test_opening_and_reading_make_nothing(tmp_path):
    """A store of a folder that is not there reads as empty and makes nothing."""
    store = FolderStore(tmp_path / "new")

    assert store.read("c") == store.conversations() == []
    assert not store.delete("c")
    assert store.append("c", []) == 0
    assert list(tmp_path.iterdir()) == []


def test_modes_do_not_depend_on_the_umask(tmp_path):
    """Folders are 0700 and files 0600, each level made, with a umask of 000."""
    run(
        """
        os.umask(0)
        store = FolderStore(folder + "/a/b")
        store.append("c", [stop("a")])
        with open(folder + "/a/b/conversations/c.jsonl", "ab") as file:
            file.write(b"torn")
        store.append("c", [stop("b")])
        store.blobs.put(b"x")
        """,
        tmp_path,
    )

    for path in tmp_path.rglob("*"):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
    assert len(list(tmp_path.rglob("*"))) == 9


def test_one_write_then_one_flush(tmp_path):
    """All records of an append go out in one write and one flush, the new name flushed before."""
    calls = Recorded()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a"), stop("b")])
    folder = str(tmp_path / "conversations")
    first = [call for call in calls.calls if call[0] != "read"]
    size = log_path(tmp_path).stat().st_size
    calls.calls.clear()

    store.append("c", [stop("d")])

    assert first[-3:] == [("flush_folder", folder), ("write", 0, size), ("flush",)]
    second = [call for call in calls.calls if call[0] != "read"]
    assert second == [("write", size, log_path(tmp_path).stat().st_size - size), ("flush",)]


def test_a_name_that_another_made_is_made_durable(tmp_path):
    """The first append of a store flushes the folder, also when the file was there: its maker may
    have died before."""
    FolderStore(tmp_path).append("c", [stop("a")])
    calls = Recorded()

    FolderStore(tmp_path, calls=calls).append("c", [stop("b")])

    assert ("flush_folder", str(tmp_path / "conversations")) in calls.calls


def test_the_folder_flush_failing_adds_nothing(tmp_path):
    """When the new file's name cannot be made durable, nothing is written."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("other", [stop("a")])
    calls.fail["flush_folder"] = [error(errno.EIO)]

    with pytest.raises(StoreIO):
        store.append("c", [stop("a")])

    assert store.read("c") == []
    assert store.append("c", [stop("a")], expect=0) == 1


def test_every_cut_of_the_last_record(tmp_path):
    """With the log cut at every byte of its last record, two appends come after what was whole."""
    FolderStore(tmp_path).append("c", [stop("a")])
    first = log_path(tmp_path).read_bytes()
    FolderStore(tmp_path).append("c", [stop("b")])
    whole = log_path(tmp_path).read_bytes()
    for cut in range(len(first), len(whole) + 1):
        name = f"cut-{cut}"
        _same_id(tmp_path, name, whole[:cut])
        last = cut >= len(whole) - 1
        store = FolderStore(tmp_path / name, calls=Unflushed())
        assert turns(store.read("c")) == ["a", "b"][: 1 + last]

        assert store.append("c", [stop("x")], expect=1 + last) == 2 + last
        fresh = FolderStore(tmp_path / name, calls=Unflushed())
        assert fresh.append("c", [stop("y")]) == 3 + last

        data = log_path(tmp_path / name).read_bytes()
        check_seals(data)
        assert turns(store.read("c")) == [*["a", "b"][: 1 + last], "x", "y"]
        torn = log_path(tmp_path / name).with_name("c.torn-1")
        if len(first) < cut and not last:
            assert torn.read_bytes() == whole[len(first) : cut]
        else:
            assert not torn.exists()


def _same_id(folder, name: str, data: bytes) -> None:
    path = log_path(folder / name)
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_bytes(data)
    lock_path(folder / name).touch(0o600)


def test_torn_pieces_are_kept_apart(tmp_path):
    """Each torn tail gets a file of its own, durable before the log is cut."""
    calls = Recorded()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    end = log_path(tmp_path).stat().st_size
    for piece in (b"one", b"two"):
        with log_path(tmp_path).open("ab") as file:
            file.write(piece)
        calls.calls.clear()
        store.append("c", [stop("b")])
        done = [call[0] for call in calls.calls if call[0] != "read"]
        assert done == ["write", "flush", "flush_folder", "cut", "write", "flush"]

    torn = sorted(tmp_path.rglob("*.torn-*"))
    assert [(t.name, t.read_bytes()) for t in torn] == [("c.torn-1", b"one"), ("c.torn-2", b"two")]
    assert store.verify("c").set_aside == ["c.torn-1", "c.torn-2"]
    assert log_path(tmp_path).stat().st_size > end
    check_seals(log_path(tmp_path).read_bytes())


def test_a_torn_tail_that_cannot_be_copied_stays(tmp_path):
    """When the torn bytes cannot be set aside, nothing is cut, and reading works."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    with log_path(tmp_path).open("ab") as file:
        file.write(b"torn")
    before = log_path(tmp_path).read_bytes()
    calls.fail["write"] = [error(errno.ENOSPC)]

    with pytest.raises(StoreFull):
        store.append("c", [stop("b")])

    assert log_path(tmp_path).read_bytes() == before
    assert list(tmp_path.rglob("*.torn-*")) == []
    assert turns(store.read("c")) == ["a"]
    assert store.append("c", [stop("b")]) == 2


def test_garbage_lines_keep_their_places(tmp_path):
    """Lines that are no records, at the start, in the middle and at the end, count and are unreadable;
    the next append comes after them."""
    for number, garbage in enumerate([b"[]", b"3", b"{}", b"null", b"nonsense", b"\xff", b"\0\0"]):
        for place in range(3):
            folder = tmp_path / f"{number}-{place}"
            store = FolderStore(folder, calls=Unflushed())
            store.append("c", [stop("a")])
            store.append("c", [stop("b")])
            rows = log_path(folder).read_bytes().split(b"\n")[:-1]
            rows.insert(place, garbage)
            log_path(folder).write_bytes(b"\n".join(rows) + b"\n")
            fresh = FolderStore(folder, calls=Unflushed())

            records = fresh.read("c")

            assert [record["seq"] for record in records] == [1, 2, 3]
            assert records[place] == {"kind": "unreadable", "seq": place + 1}
            assert fresh.append("c", [stop("d")], expect=3) == 4
            assert fresh.read("c")[3]["turn"] == "d"
            assert FolderStore(folder).append("c", [stop("e")], expect=4) == 5


def test_only_what_is_new_is_read(tmp_path):
    """An open store reads what was appended since, whatever the length of the log."""
    FolderStore(tmp_path).append("c", [stop("x" * 900) for _ in range(1000)])
    calls = Recorded()
    store = FolderStore(tmp_path, calls=calls)
    position = store.append("c", [stop("a")])
    cold = calls.bytes_read()
    calls.calls.clear()
    position = store.append("c", [stop("b")], expect=position)
    warm = calls.bytes_read()
    calls.calls.clear()
    with log_path(tmp_path).open("ab") as file:
        file.write(foreign("f", 1003))
    assert store.append("c", [stop("d")], expect=1003) == 1004
    after_another = calls.bytes_read()

    assert log_path(tmp_path).stat().st_size > 1_000_000
    assert cold < 500_000
    assert warm < 1000
    assert after_another < 2000


def test_the_end_is_found_without_the_beginning(tmp_path):
    """A new store appends to a long log reading a few blocks, with the right place and seals."""
    store = FolderStore(tmp_path, calls=Unflushed())
    for _ in range(30):
        store.append("c", [stop("x" * 5000) for _ in range(20)])
    with log_path(tmp_path).open("ab") as file:
        file.write(b" \n" + foreign("f", 601) + b"\t\n" + foreign("g", 602))
    calls = Recorded()

    assert FolderStore(tmp_path, calls=calls).append("c", [stop("a")], expect=602) == 603

    assert calls.bytes_read() < 1_000_000 < log_path(tmp_path).stat().st_size
    report = FolderStore(tmp_path).verify("c")
    assert report.counts == {"sealed": 601, "unsealed": 2}


def test_the_count_of_lines_is_the_truth(tmp_path):
    """In a log with lines removed, a count taken from a `seq` refuses nobody before it is checked."""
    store = FolderStore(tmp_path, calls=Unflushed())
    for _ in range(300):
        store.append("c", [stop("x" * 900)])
    rows = log_path(tmp_path).read_bytes().split(b"\n")
    del rows[5:10]
    log_path(tmp_path).write_bytes(b"\n".join(rows))
    seen = FolderStore(tmp_path).read("c").position
    assert seen == 295

    assert FolderStore(tmp_path).append("c", [stop("a")], expect=seen) == 296

    with pytest.raises(StoreConflict) as caught:
        FolderStore(tmp_path).append("c", [stop("a")], expect=301)
    assert caught.value.found == 296
    assert FolderStore(tmp_path).read("c", 295)[0]["turn"] == "a"


def test_a_newer_format_is_not_written_to(tmp_path):
    """A log with a record of a newer format is read; appending to it is refused."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    newer = foreign("b", 2).replace(b'conversation":1', b'conversation":2')
    with log_path(tmp_path).open("ab") as file:
        file.write(newer)
    before = log_path(tmp_path).read_bytes()

    for opened in (store, FolderStore(tmp_path)):
        assert opened.scan("c")[1].functai_conversation == 2
        with pytest.raises(StoreVersion):
            opened.append("c", [stop("d")])
    with pytest.raises(StoreVersion):
        FolderStore(tmp_path).append("c", [stop("d")])

    assert log_path(tmp_path).read_bytes() == before


# -- writes that fail ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EFBIG, StoreFull),
        (errno.EIO, StoreIO),
        (errno.ENOMEM, StoreIO),
    ],
)
def test_a_write_that_stops_anywhere(tmp_path, number, kind):
    """However many bytes of a batch a failing write took, no record of it is handed out, the log keeps
    its line feeds, and the next append works."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    before = log_path(tmp_path).read_bytes()
    batch = [stop("b"), stop("d")]
    FolderStore(tmp_path / "other").append("c", [stop("a")])
    FolderStore(tmp_path / "other").append("c", batch)
    size = log_path(tmp_path / "other").stat().st_size - len(before)
    for taken in range(0, size, 7):
        folder = tmp_path / f"{number}-{taken}"
        log_path(folder).parent.mkdir(parents=True, mode=0o700)
        log_path(folder).write_bytes(before)
        store = FolderStore(folder, calls=calls)
        assert turns(store.read("c")) == ["a"]
        calls.fail["write"] = [taken, error(number)] if taken else [error(number)]

        with pytest.raises(kind) as caught:
            store.append("c", batch)

        assert type(caught.value) is kind
        data = log_path(folder).read_bytes()
        assert data.startswith(before)
        assert data.endswith(b"\n")
        kept = data.count(b"\n")
        assert turns(store.read("c")) == ["a", None][:kept]
        assert turns(FolderStore(folder).read("c")) == ["a", None][:kept]
        assert store.append("c", [stop("e")], expect=kept) == kept + 1
        check_seals(log_path(folder).read_bytes())
        assert turns(store.read("c")) == [*["a", None][:kept], "e"]


def test_short_writes_are_gone_on_with(tmp_path):
    """A write that takes a few bytes at a time ends in the same bytes."""
    calls = Failing()
    calls.fail["write"] = [1, 2, 3, 50, 1]
    store = FolderStore(tmp_path, calls=calls)

    store.append("c", [stop("a"), stop("b")])

    check_seals(log_path(tmp_path).read_bytes())
    assert turns(store.read("c")) == ["a", "b"]


def test_a_failed_write_that_cannot_be_cut(tmp_path):
    """When what a failed write left cannot be cut, its outcome is unknown, and the next append tidies."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    calls.fail = {"write": [20, error(errno.EIO)], "cut": [error(errno.EIO)]}

    with pytest.raises(StoreUnknown):
        store.append("c", [stop("b")])

    assert turns(store.read("c")) == ["a"]
    assert store.append("c", [stop("d")], expect=1) == 2
    assert len(list(tmp_path.rglob("*.torn-*"))) == 1


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_flush_is_unknown_and_written_again(tmp_path, number):
    """After a failed flush nothing is cut; the same bytes are written again at the same place and
    flushed before anything more is acknowledged."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    start = log_path(tmp_path).stat().st_size
    calls.fail["flush"] = [error(number)]
    with pytest.raises(StoreUnknown):
        store.append("c", [stop("b")])
    good = log_path(tmp_path).read_bytes()
    assert turns(store.read("c")) == ["a", "b"]
    # The system dropped the pages: what is read now is what the disk holds.
    log_path(tmp_path).write_bytes(good[:start] + b"\0" * (len(good) - start))
    calls.fail["flush"] = [error(number)]

    with pytest.raises(LedgerError) as caught:
        store.append("c", [stop("x")], expect=2)
    assert caught.value.code in ("store-io", "store-full")
    assert log_path(tmp_path).read_bytes() == good
    assert store.append("c", [stop("d")], expect=2) == 3

    check_seals(log_path(tmp_path).read_bytes())
    assert turns(store.read("c")) == ["a", "b", "d"]


def test_what_is_owed_is_not_written_into_another_log(tmp_path):
    """Bytes whose flush failed are not written into a log that was put in the place of theirs."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    calls.fail["flush"] = [error(errno.EIO)]
    with pytest.raises(StoreUnknown):
        store.append("c", [stop("a")])
    other = FolderStore(tmp_path / "other")
    other.append("c", [stop("b")])
    os.replace(log_path(tmp_path / "other"), log_path(tmp_path))

    assert store.append("c", [stop("d")], expect=1) == 2

    assert turns(store.read("c")) == ["b", "d"]


def test_file_size_limit(tmp_path):
    """At a file size limit the append says store-full, adds nothing, and the process goes on."""
    said = run(
        """
        import resource
        store = FolderStore(folder)
        store.append("c", [stop("a")])
        size = os.path.getsize(folder + "/conversations/c.jsonl")
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, -1))
        try:
            store.append("c", [stop("b" * 500)])
        except LedgerError as error:
            say(error.code)
        say(os.path.getsize(folder + "/conversations/c.jsonl") == size)
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
        say(int(store.append("c", [stop("d")], expect=1)))
        """,
        tmp_path,
    )

    assert said.split() == ["store-full", "True", "2"]


# -- exceptions at any line ------------------------------------------------------------------------


class Interrupt(KeyboardInterrupt):
    """Stands for Ctrl-C; a class of its own, so that a real one ends the tests."""


def _in_finalizer(frame) -> bool:
    """Say whether a frame serves a `__del__`, in which Python itself swallows every exception."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def interrupted_at(nth: int, work) -> bool:
    """Run work with an interrupt at the nth line of our code. Says whether it came to that."""
    left = nth
    raised = False

    def trace(frame, event, _):
        nonlocal left, raised
        if "/ledger/stores/" not in frame.f_code.co_filename:
            return None
        if event == "line" and not raised and not _in_finalizer(frame):
            left -= 1
            if left < 0:
                raised = True
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except Interrupt:
        pass
    finally:
        sys.settrace(before)
    return raised


@pytest.mark.parametrize("torn", [False, True])
def test_an_interrupt_at_any_line(tmp_path, torn):
    """Interrupted at any line of an append: the batch is whole or absent, no lock and no open file is
    left, and the same store goes on."""
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("c", [stop("first")])
    nth = 0
    while True:
        if torn:
            with log_path(tmp_path).open("ab") as file:
                file.write(b"torn")
        before = [name for name in turns(store.read("c")) if name]
        open_files = len(os.listdir("/dev/fd"))
        names = [f"{nth}-a", f"{nth}-b"]
        raised = interrupted_at(nth, lambda names=names: store.append("c", [*map(stop, names)]))

        assert len(os.listdir("/dev/fd")) == open_files, nth
        impatient = FolderStore(tmp_path, lock_timeout_s=0.0, calls=Unflushed())
        found = [name for name in turns(impatient.read("c")) if name]
        assert found in (before, before + names), nth
        assert impatient.append("c", [stop("next")]) == impatient.read("c").position
        assert [name for name in turns(store.read("c")) if name] == [*found, "next"]
        for piece in tmp_path.rglob("*.torn-*"):
            piece.unlink()
        if not raised:
            break
        nth += 1
    assert nth > 100
    assert store.verify("c").damaged is False


def test_append_crosses_a_kill_at_any_moment(tmp_path):
    """A process killed while it appends leaves whole batches only, and everything it was told of."""
    code = """
        store = FolderStore(folder)
        for i in range(10_000):
            say(int(store.append("c", [stop(f"{i}-{k}" + "x" * 3000) for k in range(5)])))
        """
    store = FolderStore(tmp_path)
    told: list[int] = []
    for _ in range(8):
        process = start(code, tmp_path)
        told += [int(heard(process)) for _ in range(4)]
        process.kill()
        rest = process.stdout.read().split("\n")
        told += [int(word) for word in rest[:-1] if word]
        end(process)
        records = store.read("c")
        assert len(records) >= told[-1]
        # Whole lines of a batch that was cut keep their places: they are void.
        for count in told:
            assert [record["kind"] for record in records[count - 5 : count]] == ["stop"] * 5
        store.append("c", [stop("after")])
    report = store.verify("c")
    assert not report.damaged


def test_a_log_removed_while_it_is_written(tmp_path):
    """An append into a log that somebody removes meanwhile is not acknowledged; it is gone with that."""

    class Removing(Unflushed):
        """Removes the log before it is flushed."""

        def flush(self, number: int) -> None:
            log_path(tmp_path).unlink()

    with pytest.raises(StoreGone):
        FolderStore(tmp_path, calls=Removing()).append("c", [stop("a")])

    assert FolderStore(tmp_path).append("c", [stop("a")], expect=0) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_full_file_system(tmp_path):
    """On a file system that fills up, appends say store-full, nothing told is lost, reading works, and
    once there is room the same store goes on."""
    place = tmp_path / "small"
    place.mkdir()
    if os.system(f"mount -t tmpfs -o size=300k,mode=700 none {place}"):
        pytest.skip("mounting is not permitted here")
    try:
        store = FolderStore(place / "s", calls=Unflushed())
        ballast = place / "ballast"
        ballast.write_bytes(b"x" * 60_000)
        told = 0
        full = False
        while not full:
            try:
                told = store.append("c", [stop(f"{told}-{k}" + "x" * 900) for k in range(3)])
            except StoreFull:
                full = True
        assert told > 100
        for opened in (store, FolderStore(place / "s")):
            records = opened.read("c")
            assert all(record["kind"] == "stop" for record in records[:told])
            assert all(record["kind"] == "unreadable" for record in records[told:])
        held = len(store.read("c"))
        with pytest.raises(StoreFull):
            store.append("d", [stop("x" * 200_000)])
        ballast.unlink()

        assert store.append("c", [stop("after")], expect=held) == held + 1
        check_seals(log_path(place / "s").read_bytes())
    finally:
        os.system(f"umount {place}")


def test_what_a_conflict_found_is_not_read_again(tmp_path):
    """Who loses again and again reads each line that others wrote once: what it reads does not grow with its losses."""
    calls = Counting()
    loser, winner = FolderStore(tmp_path, calls=calls), FolderStore(tmp_path, calls=Unflushed())
    seen: int = loser.append("c", [stop("first")])
    for _ in range(200):
        winner.append("c", [stop("t" * 1000)])
        with pytest.raises(StoreConflict) as lost:
            loser.append("c", [stop("x")], expect=seen)
        seen = lost.value.found - 1  # Never what is there.

    assert calls.read_bytes < 4 * log_path(tmp_path).stat().st_size
