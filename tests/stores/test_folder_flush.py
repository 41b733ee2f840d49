"""The flush of an append, which keeps nobody off: what may happen beside it, and who is told what."""

from __future__ import annotations

import errno
import itertools
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger.errors import StoreGone, StoreIO, StoreUnknown
from ledger.stores.folder import FolderStore
from tests.interrupts import interrupted_at
from tests.stores.support import (
    Failing,
    Unflushed,
    check_seals,
    error,
    foreign,
    log_path,
    run,
    stop,
    turns,
)


class Meanwhile(Unflushed):
    """File calls whose flushes do something first, each its own; then they flush nothing, or fail."""

    def __init__(self, *each: Callable[[], object]) -> None:
        self.each = list(each)
        self.done: list[str] = []

    def write(self, number: int, data: memoryview, offset: int) -> int:
        self.done.append(f"write {offset}")
        return super().write(number, data, offset)

    def flush(self, number: int) -> None:
        self.done.append("flush")
        if self.each:
            self.each.pop(0)()


def fails() -> None:
    raise error(errno.EIO)


def test_others_append_while_one_flushes(tmp_path):
    """An append of others goes between the write and the flush, and each has its place."""
    other = FolderStore(tmp_path, calls=Unflushed(), lock_timeout_s=0.1)
    calls = Meanwhile(lambda: other.append("c", [stop("b")], expect=1))
    store = FolderStore(tmp_path, calls=calls)

    assert store.append("c", [stop("a")]) == 1

    assert turns(store.read("c")) == ["a", "b"]
    assert store.append("c", [stop("d")], expect=2) == 3
    check_seals(log_path(tmp_path).read_bytes())


def step(name: str) -> dict:
    """Return a record that is long, and that an erasure removes."""
    return stop(name) | {"kind": "step", "data": "a secret" * 50}


class Disk(Unflushed):
    """File calls on a disk that tells of a failed flush once, and drops then what was written to the file."""

    def __init__(self) -> None:
        self.fails: Callable[[], bool] = lambda: False
        """Asked as a flush begins."""
        self._wrote: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._dropped: dict[int, list[tuple[int, bytes]]] = {}
        self._kept: dict[int, bytes] = {}

    def kept(self, path: Path) -> bytes:
        """Return what the disk holds of a file."""
        return self._kept[path.stat().st_ino]

    def holds(self, path: Path, data: bytes) -> None:
        """Put what a file holds, and the disk does, too."""
        path.write_bytes(data)
        self._kept[path.stat().st_ino] = data

    def wait_for_writes(self, path: Path, times: int) -> Callable[[], None]:
        """Return what waits until a file is written to a number of times, from now on."""
        file, self._wrote = path.stat().st_ino, queue.SimpleQueue()

        def wait() -> None:
            left = times
            while left:
                left -= self._wrote.get(timeout=10) == file

        return wait

    def write(self, number: int, data: memoryview, offset: int) -> int:
        file = os.fstat(number).st_ino
        with self._lock:
            self._dropped.setdefault(file, []).append((offset, bytes(data)))
        written = super().write(number, data, offset)
        self._wrote.put(file)
        return written

    def flush(self, number: int) -> None:
        file, fails = os.fstat(number).st_ino, self.fails()
        with self._lock:
            written = self._dropped.pop(file, [])
            if fails:
                raise error(errno.EIO)
            for offset, data in written:
                kept = self._kept.get(file, b"").ljust(offset, b"\0")
                self._kept[file] = kept[:offset] + data + kept[offset + len(data) :]


def fails_when(happens: Callable[[], object]) -> tuple[Callable[[], bool], threading.Event]:
    """Return what a flush is asked: the first fails when something happened, and no other. And when it is asked."""
    asked = threading.Event()

    def fails() -> bool:
        if asked.is_set():
            return False
        asked.set()
        happens()
        return True

    return fails, asked


@pytest.mark.parametrize("what", ["append", "erase", "repair"])
def test_what_is_written_while_anothers_flush_fails(tmp_path, what):
    """What the system told the one that failed may be of the other's bytes too: all are written again, and flushed,
    before the other is told that it is done."""
    disk, path = Disk(), log_path(tmp_path)
    store = FolderStore(tmp_path, calls=disk)
    store.append("c", [stop("a"), step("b")])
    copy = path.read_bytes()
    if what == "repair":
        disk.holds(path, copy[:-100] + b"x" + copy[-99:])
    disk.fails, begun = fails_when(disk.wait_for_writes(path, 2))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(store.append, "c", [stop("first")])
        assert begun.wait(10)

        {
            "append": lambda: store.append("c", [stop("second")]),
            "erase": lambda: store.erase("c", "b"),
            "repair": lambda: store.repair("c", copy=copy),
        }[what]()

        changed = path.read_bytes()[: len(copy) if what != "append" else None]
        assert disk.kept(path)[: len(changed)] == changed
        with pytest.raises(StoreUnknown):
            first.result()
    assert (changed[: len(copy)] == copy) == (what != "erase")
    store.append("c", [stop("d")])
    assert disk.kept(path) == path.read_bytes()
    assert not store.verify("c").damaged


def test_what_any_thread_is_told_of_is_on_the_disk(tmp_path):
    """Of threads that append while every third flush fails, who is told yes finds all up to its records on the disk."""
    disk, path, numbers = Disk(), log_path(tmp_path), itertools.count(1)
    store = FolderStore(tmp_path, calls=disk)
    store.append("c", [stop("a")])
    disk.fails = lambda: next(numbers) % 3 == 0

    def appends(name: str) -> int:
        told = 0
        for i in range(40):
            try:
                position = store.append("c", [stop(f"{name}-{i}")] if i % 4 else [])
            except (StoreUnknown, StoreIO):
                continue
            kept, log = disk.kept(path).split(b"\n"), path.read_bytes().split(b"\n")
            assert kept[:position] == log[:position]
            told += 1
        return told

    with ThreadPoolExecutor(6) as pool:
        assert min(pool.map(appends, "abcdef")) > 0

    disk.fails = lambda: False
    store.append("c", [stop("z")])
    assert disk.kept(path) == path.read_bytes()
    check_seals(path.read_bytes())


def test_one_conversations_flush_waits_for_no_others(tmp_path):
    """A flush that takes long keeps other conversations' flushes off no more than appends to its own."""
    calls = Meanwhile()
    store = FolderStore(tmp_path, calls=calls)
    other = FolderStore(tmp_path, calls=Unflushed())

    def others_go_on() -> None:
        with ThreadPoolExecutor() as pool:
            pool.submit(store.append, "d", [stop("a")]).result(10)
            pool.submit(other.append, "c", [stop("b")]).result(10)

    calls.each = [others_go_on]

    assert store.append("c", [stop("a")]) == 1
    assert turns(store.read("c")) == ["a", "b"]


def test_a_child_flushes_beside_a_thread_of_its_parent(tmp_path):
    """Who is forked while another thread flushes waits for nobody, and owes nothing."""
    said = run(
        """
        from ledger.stores.files import Files
        flushes, forked = threading.Event(), threading.Event()
        class Stuck(Files):
            def flush(self, number):
                if threading.current_thread() is thread:
                    flushes.set()
                    forked.wait(10)
                    raise OSError(5, "no")
        store = FolderStore(folder, calls=Stuck())
        def append():
            try:
                store.append("c", [stop("a")])
            except LedgerError as error:
                say(error.code)
        thread = threading.Thread(target=append)
        thread.start()
        flushes.wait(10)
        child = os.fork()
        if not child:
            say(int(store.append("c", [stop("child")])))
            os._exit(0)
        os.waitpid(child, 0)
        forked.set()
        thread.join()
        say(int(store.append("c", [stop("b")], expect=2)))
        """,
        tmp_path,
    )

    assert said.split() == ["2", "store-unknown", "3"]
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "child", "b"]


def test_an_interrupt_of_a_flush_leaves_it_to_others(tmp_path):
    """Interrupted at any moment, a thread that appends leaves nothing that another has to wait for."""
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("c", [stop("first")])
    nth = 0
    with ThreadPoolExecutor() as pool:
        while interrupted_at(nth, lambda: store.append("c", [stop("a")])) is not None:
            pool.submit(store.append, "c", [stop("b")]).result(10)
            nth += 1
    assert nth > 100
    assert not store.verify("c").damaged


# -- whose bytes stand there now -------------------------------------------------------------------


class Owing:
    """A store to which the last append of a conversation is owed, and others who change its log in place."""

    def __init__(self, folder: Path, before: int = 3) -> None:
        self.path = log_path(folder)
        self.calls = Failing()
        self.store = FolderStore(folder, calls=self.calls)
        self.other = FolderStore(folder, calls=Unflushed())
        for i in range(before):
            self.store.append("c", [step(f"before {i}")])
        self.before = self.path.read_bytes() if before else b""
        self.calls.fail["flush"] = [error(errno.EIO)]
        with pytest.raises(StoreUnknown):
            self.store.append("c", [step(f"owed {i}") for i in range(3)])
        self.log = self.path.read_bytes()

    def put(self, data: bytes) -> None:
        """Put other bytes into the log in place, as `cp` does."""
        self.path.write_bytes(data)

    def goes_on(self) -> bytes:
        """Return the log as it stands before the append that follows, having tried that."""
        self.store.append("c", [])
        self.store.append("c", [stop("goes on")])
        data = self.path.read_bytes()
        return data[: data.rindex(b"\n", 0, -1) + 1]


@pytest.mark.parametrize("before", [0, 3])
def test_a_log_begun_anew_in_the_same_file_is_left_alone(tmp_path, before):
    """A file that the system made of the one that was deleted holds another log."""
    owing = Owing(tmp_path, before)
    owing.put(b"")
    for i in range(40):
        owing.other.append("c", [stop(f"new {i}")])
    data = owing.path.read_bytes()

    assert owing.goes_on() == data


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("before", [0, 3])
def test_what_others_appended_to_an_older_copy_is_left_alone(tmp_path, before, ours):
    """Whether others' lines are sealed or not, they stay where they went on from the state before."""
    owing = Owing(tmp_path, before)
    owing.put(owing.before)
    for i in range(before + 1, before + 19):
        if ours:
            owing.other.append("c", [stop(f"other {i}")])
        else:
            owing.put(owing.path.read_bytes() + foreign(f"other {i}", i))
    data = owing.path.read_bytes()

    assert owing.goes_on() == data


def test_a_hole_in_a_log_begun_anew_is_left_alone(tmp_path):
    """What was deleted is not written into another log, where the system lost bytes of that, too."""
    owing = Owing(tmp_path)
    owing.put(b"")
    for i in range(40):
        owing.other.append("c", [stop(f"new {i}")])
    data = owing.path.read_bytes()
    start, end = len(owing.before), len(owing.log)
    holed = data[:start] + bytes(end - start) + data[end:]
    owing.put(holed)

    assert owing.goes_on() == holed


@pytest.mark.parametrize("before", [0, 3])
def test_what_is_left_of_it_is_made_whole(tmp_path, before):
    """Pages that were dropped read as zeros, wherever in our lines they begin and end."""
    owing = Owing(tmp_path, before)
    log, start, end = owing.log, len(owing.before), len(owing.log)
    feed = log.index(b"\n", start)
    for at in (start, start + 1, feed - 30, feed, feed + 1, feed + 2, end - 1):
        for holed in (
            log[:at] + bytes(end - at),
            log[:start] + bytes(at - start) + log[at:],
            log[:at] + bytes(5) + log[at + 5 :],
        ):
            owing.put(holed[:end])
            owing.calls.fail["flush"] = [error(errno.EIO)]
            with pytest.raises(StoreIO):
                owing.store.append("c", [stop("x")])
            assert owing.path.read_bytes() == log

    owing.put(log[:start] + bytes(end - start))
    assert owing.goes_on() == log


def test_a_copy_from_before_with_nothing_behind_stays_as_it_is(tmp_path):
    """Who puts the state before back has it back."""
    owing = Owing(tmp_path)
    owing.put(owing.before)

    assert owing.goes_on() == owing.before


@pytest.mark.parametrize("turn", ["before 0", "before 2", "owed 0", "owed 1"])
def test_what_is_owed_beside_a_turn_that_was_erased(tmp_path, turn):
    """Others' tombstones stay, wherever they stand, and what is owed beside them is written again."""
    owing = Owing(tmp_path)
    owing.other.erase("c", turn)
    erased = owing.path.read_bytes()
    assert erased.count(b"a secret") == 250
    owing.put(erased[:-300] + bytes(300))

    assert owing.goes_on() == erased


def test_none_is_told_yes_while_nothing_can_be_flushed(tmp_path):
    """Two threads' flushes fail: both are told that it is not known, and both batches are written again."""
    calls = Meanwhile()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    start = log_path(tmp_path).stat().st_size
    said: list[str] = []

    def the_second_fails_too() -> None:
        calls.each = [fails]
        with pytest.raises(StoreUnknown) as caught:
            store.append("c", [stop("second")])
        said.append(caught.value.code)
        fails()

    calls.each = [the_second_fails_too]
    with pytest.raises(StoreUnknown):
        store.append("c", [stop("first")])
    good = log_path(tmp_path).read_bytes()
    # The system dropped the pages: what is read now is what the disk holds.
    log_path(tmp_path).write_bytes(good[:start] + b"\0" * (len(good) - start))

    store.append("c", [stop("d")])

    assert said == ["store-unknown"]
    assert turns(store.read("c")) == ["a", "first", "second", "d"]
    check_seals(log_path(tmp_path).read_bytes())


def test_a_log_that_was_put_anew_meanwhile_holds_what_was_appended(tmp_path):
    """A file that takes the log's place while it is flushed, and holds the records, is as good."""

    def copied() -> None:
        data = log_path(tmp_path).read_bytes()
        log_path(tmp_path).unlink()
        log_path(tmp_path).write_bytes(data)

    store = FolderStore(tmp_path, calls=Meanwhile(copied))

    assert store.append("c", [stop("a")]) == 1
    assert turns(store.read("c")) == ["a"]


def test_a_conversation_deleted_meanwhile_is_not_acknowledged(tmp_path):
    """Who deletes a conversation while an append to it is flushed has deleted that too, and the append is told so."""
    other = FolderStore(tmp_path, calls=Unflushed())
    store = FolderStore(tmp_path, calls=Meanwhile(lambda: other.delete("c")))

    with pytest.raises(StoreGone):
        store.append("c", [stop("a")])

    assert store.read("c") == []
    assert store.append("c", [stop("b")], expect=0) == 1


def test_a_turn_erased_meanwhile_stays_erased(tmp_path):
    """Who erases a turn whose records are being flushed finds them, and they are not written again."""
    other = FolderStore(tmp_path, calls=Unflushed())

    def erased_and_failed() -> None:
        other.erase("c", "a")
        fails()

    store = FolderStore(tmp_path, calls=Meanwhile(erased_and_failed))
    record = stop("a") | {"kind": "step", "data": "a secret"}
    with pytest.raises(StoreUnknown):
        store.append("c", [record])

    store.append("c", [stop("b")])

    assert b"a secret" not in log_path(tmp_path).read_bytes()
