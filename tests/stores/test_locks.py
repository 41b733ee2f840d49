"""The append lock: among processes, threads and forks, when holders die, stop, or lose the file."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from ledger.errors import StoreBusy, StoreConflict, StoreIO
from ledger.stores import locks
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from tests.stores.support import (
    ROOT,
    Unflushed,
    check_seals,
    end,
    heard,
    lock_path,
    log_path,
    run,
    start,
    stop,
    turns,
    until,
)

HOLD = """
import fcntl
file = open(folder + "/conversations/c.lock", "rb+")
fcntl.flock(file, fcntl.LOCK_EX)
say("held")
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path):
    """Return a store that holds a."""
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("c", [stop("a")])
    return store


@pytest.fixture
def holder(store, tmp_path):
    """Start a process that holds the append lock until it is told to end."""
    process = start(HOLD, tmp_path)
    assert heard(process) == "held"
    yield process
    end(process)


def is_free(path) -> bool:
    """Say whether nobody has an flock on a file."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def waiters() -> list[threading.Thread]:
    """Return the helper threads that wait for a lock."""
    return [thread for thread in threading.enumerate() if thread.name == "ledger-lock"]


def test_processes_take_turns(tmp_path):
    """Of 8 processes that append 50 times each at an expected count, exactly one wins each place."""
    code = """
        store = FolderStore(folder)
        done = 0
        n = 0
        say("ready")
        sys.stdin.readline()
        while done < 50:
            try:
                n = store.append("c", [stop(f"{os.getpid()}-{done}")], expect=n)
                done += 1
                say(int(n))
            except StoreConflict as conflict:
                n = conflict.found
        """
    processes = [start(code, tmp_path) for _ in range(8)]
    for process in processes:
        assert heard(process) == "ready"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0].split() for process in processes]

    assert [process.returncode for process in processes] == [0] * 8
    places = sorted(int(place) for words in said for place in words)
    assert places == list(range(1, 401))
    data = log_path(tmp_path).read_bytes()
    check_seals(data)
    names = turns(FolderStore(tmp_path).read("c"))
    for process, words in zip(processes, said, strict=True):
        for i, place in enumerate(words):
            assert names[int(place) - 1] == f"{process.pid}-{i}"


def test_first_use_by_many_processes(tmp_path):
    """Eight processes that open and use a folder that is not there at the same time all succeed."""
    code = """
        say("ready")
        sys.stdin.readline()
        say(int(FolderStore(folder + "/deep/new").append("c", [stop(str(os.getpid()))])))
        """
    processes = [start(code, tmp_path) for _ in range(8)]
    for process in processes:
        assert heard(process) == "ready"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()

    places = [int(process.communicate(timeout=60)[0]) for process in processes]

    assert sorted(places) == list(range(1, 9))
    check_seals(log_path(tmp_path / "deep" / "new").read_bytes())


def test_a_killed_holder_frees_the_next(store, holder):
    """When the holder of the lock is killed, who waits for it goes on at once."""
    timer = threading.Timer(0.2, holder.kill)
    began = time.monotonic()
    timer.start()

    assert store.append("c", [stop("b")]) == 2

    assert 0.15 < time.monotonic() - began < 5
    timer.join()


def test_a_stopped_holder_makes_busy(store, holder, tmp_path):
    """While the holder is stopped, appends of others end in time, naming it; readers go on."""
    holder.send_signal(signal.SIGSTOP)
    impatient = FolderStore(tmp_path, lock_timeout_s=0.3)
    began = time.monotonic()

    with pytest.raises(StoreBusy) as caught:
        impatient.append("c", [stop("b")])

    assert 0.3 <= time.monotonic() - began < 5
    assert str(holder.pid) in caught.value.reason
    assert turns(impatient.read("c")) == ["a"]
    assert log_path(tmp_path).read_bytes() == store.raw("c")
    holder.send_signal(signal.SIGCONT)
    holder.stdin.close()
    assert impatient.append("c", [stop("b")]) == 2


def test_one_who_gave_up_leaves_no_lock(store, holder, tmp_path):
    """The thread that waited for a caller who has gone gives the lock back as soon as it gets it."""
    impatient = FolderStore(tmp_path, lock_timeout_s=0.05)
    kept = []
    for _ in range(3):
        with pytest.raises(StoreBusy) as caught:
            impatient.append("c", [stop("b")])
        kept.append(caught.value)  # With its traceback, and all that stands in its frames.
    assert len(waiters()) >= 1

    holder.kill()

    until(lambda: not waiters())
    assert is_free(lock_path(tmp_path))
    assert impatient.append("c", [stop("b")]) == 2


def test_an_interrupt_while_waiting_leaves_no_lock(store, holder, tmp_path):
    """A process interrupted while it waits for the lock does not take it later."""
    process = start(
        """
        store = FolderStore(folder)
        say("waiting")
        try:
            store.append("c", [stop("b")])
        except KeyboardInterrupt as error:
            say("interrupted")
            sys.stdin.readline()
            time.sleep(0)
            say(len([t for t in threading.enumerate() if t.name == "ledger-lock"]))
        """,
        tmp_path,
    )
    assert heard(process) == "waiting"
    until(lambda: _threads(process.pid) > 1)
    process.send_signal(signal.SIGINT)
    assert heard(process) == "interrupted"

    holder.kill()

    assert store.append("c", [stop("x")]) == 2
    until(lambda: _threads(process.pid) == 1)
    end(process)


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def test_waiting_does_not_hang_on_a_lock_of_this_process(store, tmp_path):
    """A thread that holds the lock, in this process, makes others wait and then go on."""
    deadline = time.monotonic() + 10
    held = locks.acquire(str(lock_path(tmp_path)), deadline, create=True)
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(store.append("c", [stop("b")])))
    thread.start()
    until(waiters)
    assert done == []

    held.close()
    thread.join(10)

    assert done == [2]


FORK = """
store = FolderStore(folder, lock_timeout_s=20)
store.append("c", [stop("a")])
"""


def test_a_fork_while_the_lock_is_held(tmp_path):
    """A child forked while another thread holds the lock neither keeps it nor hangs: when the parent
    gives it back, or dies, others go on while the child lives, and the child itself can append."""
    code = (
        FORK
        + """
from ledger.stores import locks
held = locks.acquire(folder + "/conversations/c.lock", time.monotonic() + 5, create=False)
read_end, write_end = os.pipe()
child = os.fork()
if child == 0:
    os.close(write_end)
    os.read(read_end, 1)
    say(int(store.append("c", [stop("child")])))
    os._exit(0)
os.close(read_end)
held.close()
say(int(store.append("c", [stop("parent")])))
os.write(write_end, b"x")
os.waitpid(child, 0)
held = locks.acquire(folder + "/conversations/c.lock", time.monotonic() + 5, create=False)
child = os.fork()
if child == 0:
    time.sleep(600)
say(child)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    process = start(code, tmp_path)
    assert [heard(process), heard(process)] == ["2", "3"]
    child = int(heard(process))
    process.wait(10)
    try:
        assert FolderStore(tmp_path, lock_timeout_s=5).append("c", [stop("x")]) == 4
    finally:
        os.kill(child, signal.SIGKILL)
        end(process)


def test_a_childs_objects_do_not_free_the_parents_lock(tmp_path):
    """A child that drops what it inherited leaves its parent's lock alone."""
    said = run(
        FORK
        + """
from ledger.stores import locks
path = folder + "/conversations/c.lock"
held = locks.acquire(path, time.monotonic() + 5, create=False)
child = os.fork()
if child == 0:
    held.close()
    del held
    os._exit(0)
os.waitpid(child, 0)
say(locks.try_lock(path) is None)
held.close()
say(locks.try_lock(path) is not None)
""",
        tmp_path,
    )
    assert said.split() == ["True", "True"]


def test_forks_while_threads_append(tmp_path):
    """Children forked while threads append go on appending; nothing hangs, nothing is lost."""
    said = run(
        """
        store = FolderStore(folder, lock_timeout_s=20)
        stopping = threading.Event()
        counts = []
        def work(name):
            n = 0
            while not stopping.is_set():
                store.append("c", [stop(f"{name}-{n}")])
                n += 1
            counts.append(n)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for i in range(8):
            child = os.fork()
            if child == 0:
                store.append("c", [stop(f"child-{i}")])
                os._exit(0)
            pid, status = os.waitpid(child, 0)
            assert status == 0
        stopping.set()
        for thread in threads:
            thread.join()
        say(sum(counts) + 8)
        say(len(store.read("c")))
        """,
        tmp_path,
    )
    expected, found = map(int, said.split())
    assert expected == found
    check_seals(log_path(tmp_path).read_bytes())


def test_memory_in_a_child(tmp_path):
    """A memory store works in a child that was forked while threads used it."""
    said = run(
        """
        from ledger.stores.memory import MemoryStore
        store = MemoryStore()
        stopping = threading.Event()
        def work():
            while not stopping.is_set():
                store.append("c", [stop("a"), stop("b")])
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            child = os.fork()
            if child == 0:
                n = store.append("c", [stop("a"), stop("b")])
                ok = len(store.read("c")) == n and store.verify("c").counts == {"sealed": n}
                os._exit(0 if ok and n % 2 == 0 else 1)
            assert os.waitpid(child, 0)[1] == 0
        stopping.set()
        say("done")
        """,
        tmp_path,
    )
    assert said.split() == ["done"]


def test_open_files_are_not_inherited(store, tmp_path):
    """A program started while the lock is held does not get its file."""
    held = locks.acquire(str(lock_path(tmp_path)), time.monotonic() + 5, create=False)
    listing = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os; print(*[os.readlink(f'/proc/self/fd/{n}') for n in "
            "os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')])",
        ],
        capture_output=True,
        text=True,
        check=True,
        close_fds=False,
    )
    held.close()

    assert "c.lock" not in listing.stdout


def test_a_deleted_lock_file_lets_nobody_in(store, holder, tmp_path):
    """Who holds a lock file that was deleted still keeps others from the log: the log is locked too."""
    process = start(
        """
        from ledger.stores import locks
        deadline = time.monotonic() + 5
        lock = locks.acquire(folder + "/conversations/d.lock", deadline, create=True)
        data = locks.acquire(folder + "/conversations/d.jsonl", deadline, create=True)
        say("held")
        sys.stdin.read()
        """,
        tmp_path,
    )
    assert heard(process) == "held"
    lock_path(tmp_path, "d").unlink()

    with pytest.raises(StoreBusy):
        FolderStore(tmp_path, lock_timeout_s=0.2).append("d", [stop("b")])

    end(process)
    assert store.append("d", [stop("b")]) == 1


def test_a_lock_file_replaced_while_waiting(store, holder, tmp_path):
    """Who gets a lock on a file that is no longer at its path takes the one that is."""
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(store.append("c", [stop("b")])))
    thread.start()
    until(lambda: is_waited_for(holder.pid))
    lock_path(tmp_path).unlink()
    second = start(HOLD.replace('"rb+"', '"ab+"'), tmp_path)
    assert heard(second) == "held"

    holder.kill()
    until(lambda: is_waited_for(second.pid))
    assert done == []
    end(second)
    thread.join(10)

    assert done == [2]


def is_waited_for(pid: int) -> bool:
    """Say whether somebody waits, in the kernel, for a lock that a process holds."""
    with open("/proc/locks") as table:
        rows = [row.split() for row in table]
    held = {row[0] for row in rows if row[1] == "FLOCK" and row[4] == str(pid)}
    return any(row[0] in held and row[1] == "->" for row in rows)


def test_waiting_queues_in_the_kernel(store, holder):
    """Who waits stands in the kernel's queue of the lock; it does not ask again and again."""
    thread = threading.Thread(target=lambda: store.append("c", [stop("b")]))
    thread.start()

    until(lambda: is_waited_for(holder.pid))

    holder.kill()
    thread.join(10)


def test_a_leftover_lock_file_is_fine(tmp_path):
    """A lock file that is there, with anything in it, is taken and left as it is."""
    (tmp_path / "conversations").mkdir(mode=0o700)
    lock_path(tmp_path).write_bytes(b"4711\n")

    assert FolderStore(tmp_path).append("c", [stop("a")]) == 1
    assert lock_path(tmp_path).read_bytes() == b"4711\n"


def test_the_lock_is_free_after_each_call(store, tmp_path):
    """Appending, reading, deleting and refusing leave both locks free."""
    for work in (
        lambda: store.append("c", [stop("b")]),
        lambda: store.append("c", [stop("b")], expect=77),
        lambda: store.read("c"),
        lambda: store.raw("c"),
        lambda: store.adopt("c", b"x"),
    ):
        with suppress(StoreConflict):
            work()
        assert is_free(lock_path(tmp_path))
        assert is_free(log_path(tmp_path))
    store.delete("c")
    assert is_free(lock_path(tmp_path))


def test_a_file_system_without_locks_is_refused(store, monkeypatch):
    """Where the system has no locks, that is said; no weaker lock is taken in silence."""

    def no_locks(number: int, operation: int) -> None:
        if operation != fcntl.LOCK_UN:
            raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks, "_flock", no_locks)

    with pytest.raises(StoreIO, match="cannot be locked"):
        store.append("c", [stop("b")])


def test_the_lock_libraries_load_with_the_first_folder_store(tmp_path):
    """Resolving a store in memory does not import the lock libraries; a folder store does."""
    code = (
        "import sys; from ledger.stores.resolve import store_for; store_for(None);"
        "print('portalocker' in sys.modules); store_for(sys.argv[1]);"
        "print('portalocker' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert found.stdout.split() == ["False", "True"], found.stderr


def test_a_file_that_was_being_opened_at_a_fork(store, tmp_path):
    """A child closes also the file that another thread had opened and not yet noted as it forked."""
    said = run(
        """
        from ledger.stores import files
        path = folder + "/conversations/c.lock"
        half_open = files.Descriptor(path, os.O_RDWR)
        number = half_open._number.pop()  # As it is between the system's call and the note of it.
        child = os.fork()
        if child == 0:
            try:
                os.fstat(number)
            except OSError:
                say("closed")
            os._exit(0)
        os.waitpid(child, 0)
        os.fstat(number)
        say("open")
        """,
        tmp_path,
    )
    assert said.split() == ["closed", "open"]


def test_who_is_too_late_is_told_while_others_have_the_lock(store, holder, tmp_path):
    """Others appended since its caller read the log: an append is refused without waiting for the lock."""
    at = len(store.read("c"))
    log_path(tmp_path).write_bytes(appended(tmp_path, [stop("b")]))

    with pytest.raises(StoreConflict) as late:
        store.append("c", [stop("x")], expect=at)

    assert late.value.found == at + 1


def test_who_waits_is_told_once_others_appended(store, holder, tmp_path):
    """Others append while it waits for their lock: an append is refused before they free it."""
    at, looks = len(store.read("c")), 0

    def soon() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            log_path(tmp_path).write_bytes(appended(tmp_path, [stop("b")]))
        store._refuse_early(store._home.log("c"), at)

    with pytest.raises(StoreConflict):
        locks.acquire(str(lock_path(tmp_path)), time.monotonic() + 30, create=True, still=soon)

    assert looks == 3
    assert turns(store.read("c")) == ["a", "b"]


@pytest.mark.parametrize("whole", [0, 1])
def test_what_a_dead_process_left_refuses_nobody_early(store, tmp_path, whole):
    """A batch that was not written whole is left to who has the lock: the size of a log says not what counts."""
    at = len(store.read("c"))
    batch = appended(tmp_path, [stop("b"), stop("b")])[log_path(tmp_path).stat().st_size :]
    with log_path(tmp_path).open("ab") as file:
        file.write(batch[: batch.index(b"\n") + (20 if whole else -9)])

    store._refuse_early(store._home.log("c"), at)

    assert FolderStore(tmp_path, calls=Unflushed()).append("c", [stop("c")], expect=at + whole)
    check_seals(log_path(tmp_path).read_bytes())


def appended(folder, records):
    """Return a log as it is once another store appended to a copy of it."""
    copy = MemoryStore()
    copy.adopt("c", log_path(folder).read_bytes())
    copy.append("c", records)
    return copy.raw("c")
