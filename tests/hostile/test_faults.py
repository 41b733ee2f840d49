"""Single faults of the fault model that no other test shows: deaths at the end, errors on errors, limits, words."""

from __future__ import annotations

import ast
import errno
import os
import pickle
from pathlib import Path

import pytest

import ledger
from ledger.errors import LedgerError, StoreIO, StoreUnknown
from ledger.stores import doctor, files, locks, names
from ledger.stores.folder import FolderStore
from tests.stores.support import Failing, Recorded, check_seals, error, log_path, run, stop, turns

PACKAGE = Path(ledger.__file__).parent


# -- processes that end ----------------------------------------------------------------------------


def test_threads_that_append_while_the_interpreter_ends(tmp_path):
    """Daemon threads that append as their process ends leave whole records only, and not a word."""
    said = run(
        """
        store = FolderStore(folder)
        def work(name):
            for i in range(10_000):
                store.append("c", [stop(f"{name}/{i}a"), stop(f"{name}/{i}b")])
        for name in range(4):
            threading.Thread(target=work, args=(name,), daemon=True).start()
        store.wait("c", 0, 20)
        while len(store.read("c")) < 20:
            pass
        say("ends")
        """,
        tmp_path,
    )

    assert said == "ends\n"
    found = turns(FolderStore(tmp_path).read("c"))
    assert len(found) >= 20
    assert all(
        first[:-1] == second[:-1] for first, second in zip(found[::2], found[1::2], strict=True)
    )
    assert FolderStore(tmp_path).append("c", [stop("after")]) == len(found) + 1
    assert not FolderStore(tmp_path).verify("c").damaged


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_no_memory_for_a_large_record(tmp_path):
    """A record that does not fit into memory is not written in part; the process goes on."""
    said = run(
        """
        import resource
        store = FolderStore(folder)
        store.append("c", [stop("a")])
        large = {**stop("b"), "text": "x" * 50_000_000}
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000, resource.RLIM_INFINITY))
        try:
            store.append("c", [large])
        except (MemoryError, LedgerError) as error:
            say(type(error).__name__)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        say(int(store.append("c", [stop("d")], expect=1)))
        """,
        tmp_path,
    )

    assert said.split() == ["MemoryError", "2"]
    check_seals(log_path(tmp_path).read_bytes())


def test_a_repeated_request_is_answered_once_it_is_durable(tmp_path):
    """Who answers 'that was done' flushes first: the process that recorded it may have died before."""
    first = ledger.open("alex", lambda message: message, store=tmp_path).send("hi", request_id="r")
    calls = Recorded()
    again = ledger.open("alex", lambda message: message, store=FolderStore(tmp_path, calls=calls))

    assert again.send("hi", request_id="r") == first

    assert ("flush",) in calls.calls
    assert [call for call in calls.calls if call[0] == "write"] == []


def test_a_repeated_request_that_cannot_be_made_durable(tmp_path):
    """When that flush fails, the answer is that it is not known."""
    ledger.open("alex", lambda message: message, store=tmp_path).send("hi", request_id="r")
    calls = Failing()
    again = ledger.open("alex", lambda message: message, store=FolderStore(tmp_path, calls=calls))
    again.all_turns()
    calls.fail["flush"] = [error(errno.EIO)]

    with pytest.raises(StoreUnknown):
        again.send("hi", request_id="r")


# -- disks -----------------------------------------------------------------------------------------


def test_a_whole_log_is_durable_before_it_has_its_name(tmp_path):
    """Adopting writes and flushes, then gives the name, then flushes the folder."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    calls = Recorded()

    FolderStore(tmp_path, calls=calls).adopt("d", store.raw("c"))

    done = [call[0] for call in calls.calls if call[0] != "read"]
    assert (
        done.index("write") < done.index("flush") < len(done) - 1 - done[::-1].index("flush_folder")
    )


def test_a_flush_that_always_fails_acknowledges_nothing(tmp_path):
    """However often it is tried, nothing is acknowledged until a flush has worked."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    calls.fail["flush"] = [error(errno.EIO)] * 6

    for _ in range(6):
        with pytest.raises((StoreUnknown, StoreIO)):
            store.append("c", [stop("b")])

    assert store.append("c", [stop("c")], expect=2) == 3
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b", "c"]


@pytest.mark.parametrize("call", ["read", "scan", "verify", "append", "raw"])
def test_a_read_error_is_told_by_every_call(tmp_path, call):
    """A disk that cannot read is store-io: never an empty conversation, a count of 0, or an append."""
    FolderStore(tmp_path).append("c", [stop("a"), stop("b")])
    before = log_path(tmp_path).read_bytes()
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    calls.fail["read"] = [error(errno.EIO)] * 50
    arguments = {"append": [[stop("x")]]}.get(call, [])

    with pytest.raises(StoreIO):
        getattr(store, call)("c", *arguments)

    calls.fail.clear()
    assert log_path(tmp_path).read_bytes() == before
    assert turns(store.read("c")) == ["a", "b"]


@pytest.mark.parametrize("supported", [True, False])
def test_the_drive_is_flushed_on_macos(tmp_path, monkeypatch, supported):
    """Where a flush stops at the drive's memory, the drive is told too; where it cannot be, a flush it is."""
    done = []

    def fcntl_(number, operation):
        done.append(operation)
        if not supported:
            raise OSError(errno.ENOTSUP, "")

    monkeypatch.setattr(files.sys, "platform", "darwin")
    monkeypatch.setattr("fcntl.F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr("fcntl.fcntl", fcntl_)
    monkeypatch.setattr(files.os, "fsync", lambda number: done.append("fsync"))

    files.flush(0)

    assert done == [51] if supported else [51, "fsync"]


def test_the_doctor_says_what_it_cannot_try(tmp_path):
    """Whether a drive keeps its word is said to be unknown, always."""
    assert any("keeps its word" in warning for warning in doctor.examine(tmp_path).warnings)


# -- errors of the system --------------------------------------------------------------------------


def test_no_file_may_be_opened_any_more(tmp_path):
    """A process out of descriptors is told store-io, leaks none, and goes on when it has some again."""
    said = run(
        """
        import resource
        store = FolderStore(folder)
        store.append("c", [stop("a")])
        def taken():
            return len(os.listdir("/dev/fd"))
        before = taken()
        resource.setrlimit(resource.RLIMIT_NOFILE, (before + 6, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        held = []
        while True:
            try:
                held.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        def code(work):
            try:
                return work()
            except LedgerError as error:
                return error.code
        say(code(lambda: store.append("c", [stop("b")])))
        say(code(lambda: store.read("c")))
        os.close(held.pop())
        say(code(lambda: store.append("c", [stop("b")])))
        for number in held:
            os.close(number)
        say(int(store.append("c", [stop("c")], expect=1)))
        say(taken() == before)
        """,
        tmp_path,
    )

    assert said.split() == ["store-io", "store-io", "store-io", "2", "True"]


def test_an_answer_stands_when_giving_back_fails(tmp_path, monkeypatch):
    """Once it is flushed, an append succeeded, whatever unlocking and closing say."""
    store = FolderStore(tmp_path)
    flock = locks._flock

    def failing(number, operation):
        flock(number, operation)
        if operation == locks.fcntl.LOCK_UN:
            raise error(errno.EIO)

    monkeypatch.setattr(locks, "_flock", failing)

    assert store.append("c", [stop("a")]) == 1
    assert store.append("c", [stop("b")], expect=1) == 2


def test_an_error_while_an_error_is_handled_keeps_the_first(tmp_path):
    """When cutting back fails too, what went wrong first stays in the chain of what is told."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", [stop("a")])
    calls.fail["write"] = [30, error(errno.ENOSPC)]
    calls.fail["cut"] = [error(errno.EIO)]

    with pytest.raises(StoreUnknown) as caught:
        store.append("c", [stop("b")])

    chain, numbers = caught.value.__cause__ or caught.value.__context__, []
    while chain is not None:
        numbers.append(getattr(chain, "errno", None))
        chain = chain.__cause__ or chain.__context__
    assert errno.ENOSPC in numbers
    assert errno.EIO in numbers


# -- how files are opened, and what they are called ------------------------------------------------


def test_every_file_is_opened_safely(tmp_path, monkeypatch):
    """No open follows a link, waits for a fifo, outlives an exec, or lets the system choose the end."""
    opened = []
    real = os.open

    def noted(path, flags, *rest):
        opened.append((str(path), flags))
        return real(path, flags, *rest)

    monkeypatch.setattr(files.os, "open", noted)
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    with log_path(tmp_path).open("ab") as file:
        file.write(b"torn")
    store.append("c", [stop("b"), stop("d")])
    store.read("c")
    store.adopt("d", store.raw("c"))
    store.blobs.get(store.blobs.put(b"abc")[0])
    store.verify("c")
    store.delete("c")

    assert len(opened) > 15
    for path, flags in opened:
        assert flags & os.O_CLOEXEC, path
        assert not flags & os.O_APPEND, path
        assert flags & os.O_DIRECTORY or (flags & os.O_NOFOLLOW and flags & os.O_NONBLOCK), path


def test_the_longest_names_fit_everywhere():
    """The longest id makes no file name over 240 bytes, with every ending there is."""
    longest = "x" * 200
    assert names.check(longest, windows=True) == longest
    for ending in (names.LOG, names.LOCK, ".torn-99999999", ".erase", f".new-{'0' * 16}"):
        assert names.may_be_ours(longest + ending) or ending == names.LOG
        assert len(longest + ending) <= 240


# -- what is said ----------------------------------------------------------------------------------

CANARY = "canary-in-a-coal-mine"


def test_no_error_holds_what_was_to_be_recorded(tmp_path):
    """A refused record's content is in no message, representation or pickle of its error."""
    store = FolderStore(tmp_path, strict=True)
    store.append("c", [{**stop("a"), "text": CANARY}])
    log_path(tmp_path).write_bytes(log_path(tmp_path).read_bytes().replace(b"canary", b"Canary"))
    chat = ledger.open("alex", store=store)
    made = chat.record(CANARY, CANARY)
    for work in (
        lambda: store.append("c", [{**stop(CANARY), "x": float("nan"), "y": CANARY}]),
        lambda: store.append("c", [{**stop(CANARY), "kind": CANARY}]),
        lambda: store.append("c", [{**stop(CANARY), "at": CANARY}]),
        lambda: store.append("c", [{**stop(CANARY), "x": [f"{CANARY}\ud800"]}]),
        lambda: store.append("c", [{**stop(CANARY), "x": {CANARY}}]),
        lambda: store.append("c", [stop(CANARY)], expect=7),
        lambda: store.read("c"),
        lambda: chat.record(CANARY, {"a": {CANARY, CANARY + "b"}}),
        lambda: chat.continue_from(made).record({"message": object(), "b": CANARY}, CANARY),
    ):
        with pytest.raises((LedgerError, TypeError)) as caught:
            work()
        for said in (str(caught.value), repr(caught.value), repr(caught.value.__cause__)):
            assert CANARY not in said
        if isinstance(caught.value, LedgerError):
            assert CANARY.encode() not in pickle.dumps(caught.value)


FORBIDDEN = {"pickle", "marshal", "shelve", "yaml", "dill", "cloudpickle"}


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if "testing" not in path.parts]
"""All but the suite for other people's stores, whose processes pickle their errors to each other."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_nothing_that_is_read_can_run(path):
    """No module can load code from data: no pickle, no eval or exec, no import by a name that is read."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not {name.name.partition(".")[0] for name in node.names} & FORBIDDEN
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in FORBIDDEN
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "compile", "__import__")


def test_checking_changes_nothing(tmp_path):
    """verify, damage, list and read leave a torn, damaged and void log and its folder as they are."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    store.append("c", [stop("b"), stop("d")])
    data = log_path(tmp_path).read_bytes()
    log_path(tmp_path).write_bytes(data.replace(b'"a"', b'"A"')[:-20])
    os.chmod(log_path(tmp_path), 0o640)

    def seen():
        return sorted(
            (
                str(path),
                path.stat().st_mtime_ns,
                path.stat().st_mode,
                path.is_file() and path.read_bytes(),
            )
            for path in tmp_path.rglob("*")
        )

    before = seen()
    opened = FolderStore(tmp_path)
    for work in (
        lambda: opened.verify("c"),
        lambda: opened.damage("c"),
        lambda: opened.read("c"),
        lambda: opened.raw("c"),
        opened.conversations,
        opened.foreign_files,
    ):
        work()

    assert seen() == before
