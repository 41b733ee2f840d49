"""The flush of an append, which keeps nobody off: what may happen beside it, and who is told what."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable

import pytest

from ledger.errors import StoreIO, StoreUnknown
from ledger.stores.folder import FolderStore
from tests.stores.support import Unflushed, check_seals, error, log_path, stop, turns


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


def test_a_thread_whose_flush_works_while_anothers_fails(tmp_path):
    """What the system told the one that failed may be of the other's bytes too: all are written again, and
    flushed, before the other is told that its records are kept."""
    calls = Meanwhile()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    start = log_path(tmp_path).stat().st_size
    first_flushes, second_flushes = threading.Event(), threading.Event()
    said: list[type[BaseException]] = []

    def first_fails() -> None:
        first_flushes.set()
        assert second_flushes.wait(10)
        fails()

    def first_has_failed() -> None:
        second_flushes.set()
        first.join(10)

    def first_appends() -> None:
        with pytest.raises(StoreUnknown) as caught:
            store.append("c", [stop("first")])
        said.append(caught.type)

    calls.each = [first_fails, first_has_failed]
    first = threading.Thread(target=first_appends)
    first.start()
    assert first_flushes.wait(10)

    store.append("c", [stop("second")])

    assert said == [StoreUnknown]
    assert calls.done[-3:] == [f"write {start}", "flush", "flush"]
    assert turns(store.read("c")) == ["a", "first", "second"]


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
    """Who deletes a conversation while an append to it is flushed has deleted that too."""
    other = FolderStore(tmp_path, calls=Unflushed())
    store = FolderStore(tmp_path, calls=Meanwhile(lambda: other.delete("c")))

    with pytest.raises(StoreIO, match="removed or replaced"):
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
