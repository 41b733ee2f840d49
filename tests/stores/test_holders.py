"""Who lives: seen at once by other processes, through kills, forks and programs started; never wrongly said dead."""

from __future__ import annotations

import errno
import fcntl
import gc
import hashlib
import os
import shutil
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from ledger.stores import holders, locks
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from tests.stores.support import Unflushed, end, heard, run, start, stop, until

DAY_S = 86400
HOLD = """
store = FolderStore(folder)
store.hold("me")
say("held")
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path):
    """Return a store in an empty folder."""
    return FolderStore(tmp_path, calls=Unflushed())


@pytest.fixture
def living(tmp_path):
    """Start a process that holds as `me` until it is told to end."""
    process = start(HOLD, tmp_path)
    assert heard(process) == "held"
    yield process
    end(process)


@pytest.fixture
def anew(monkeypatch):
    """Let this process hold nothing yet, and nothing of this test afterwards."""
    monkeypatch.setattr(holders, "_process", holders._Process())


def path_of(folder: Path, holder: str) -> Path:
    """Return where the contract puts a holder's file."""
    name = hashlib.sha256(holder.encode()).hexdigest()[:32]
    return folder / "holders" / f"{name}.lock"


def left_behind(folder: Path, holder: str, age_s: float = 0) -> Path:
    """Make the file of a holder that died some time ago."""
    path = path_of(folder, holder)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(0o600)
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def is_free(path: Path) -> bool:
    """Say whether nobody has an flock on a file."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


# -- life and death ---------------------------------------------------------------------------------


def test_a_killed_holder_is_dead_at_once(store, living):
    """A holder lives until it is killed, however often it is asked about, and is dead from then on."""
    assert not any(store.is_dead("me") for _ in range(20))

    living.send_signal(signal.SIGKILL)
    living.wait()

    assert all(store.is_dead("me") for _ in range(20))


def test_a_holder_that_ended_is_dead(store, tmp_path):
    """A process that ended by itself is dead, though it closed its store and dropped it before."""
    run("store = FolderStore(folder)\nstore.hold('me')\nstore.close()\ndel store", tmp_path)

    assert store.is_dead("me")


def test_a_holder_outlives_the_thread_that_held(store, tmp_path):
    """What a thread of a process held is held until the process ends."""
    thread = threading.Thread(target=store.hold, args=("me",))
    thread.start()
    thread.join()
    del thread
    gc.collect()

    assert not is_free(path_of(tmp_path, "me"))


def test_a_stopped_holder_lives(store, living):
    """A process that is stopped, and may go on, is not dead."""
    living.send_signal(signal.SIGSTOP)

    assert not store.is_dead("me")


def test_nobody_knows_a_holder_without_a_file(store, living):
    """A holder that never held here is not known dead, whatever it is called."""
    for name in ("", "other", "../me", "a/b\0c", "\ud800", "x" * 10_000):
        assert not store.is_dead(name)


def test_the_files_name_and_modes(store, tmp_path):
    """The file has the contract's name, the folder is 0700 and the file 0600, whatever the umask."""
    old = os.umask(0)
    try:
        store.hold("here:1:x")
    finally:
        os.umask(old)

    path = path_of(tmp_path, "here:1:x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == [path.name]


def test_this_process_is_never_dead(store, tmp_path):
    """What this process holds is not dead to it, even when somebody replaced its file."""
    store.hold("self")
    path_of(tmp_path, "self").unlink()
    left_behind(tmp_path, "self")

    assert not store.is_dead("self")


def test_holding_again_mends_what_was_removed(store, tmp_path):
    """A file that somebody removed or replaced is there again, and held, after holding again."""
    store.hold("self")
    for mend in (Path.unlink, lambda path: shutil.rmtree(path.parent)):
        mend(path_of(tmp_path, "self"))
        store.hold("self")

        assert not is_free(path_of(tmp_path, "self"))


def test_holding_again_changes_nothing(store, tmp_path):
    """A second hold, of this store or of another on the same folder by another path, keeps the file."""
    store.hold("self")
    before = path_of(tmp_path, "self").stat()
    link = tmp_path.parent / f"{tmp_path.name}-link"
    link.symlink_to(tmp_path)
    for again in (store, FolderStore(tmp_path), FolderStore(link)):
        again.hold("self")
        again.close()
        del again

    after = path_of(tmp_path, "self").stat()
    assert (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns)
    assert not is_free(path_of(tmp_path, "self"))


def test_a_memory_store_knows_no_dead():
    """A memory store takes a holder and calls nobody dead."""
    store = MemoryStore()
    store.hold("me")

    assert not store.is_dead("me")
    assert not store.is_dead("other")


# -- other processes of a holder ----------------------------------------------------------------------


def test_a_forked_child_does_not_keep_its_parent_alive(store, tmp_path):
    """When a holder is killed, it is dead though its child lives; the child holds under its own name."""
    process = start(
        """
        store = FolderStore(folder)
        store.hold("parent")
        child = os.fork()
        if child == 0:
            assert not store.is_dead("parent")
            store.hold("child")
            say(os.getpid())
            time.sleep(600)
        sys.stdin.read()
        """,
        tmp_path,
    )
    child = int(heard(process))
    try:
        assert not store.is_dead("parent")
        assert not store.is_dead("child")
        process.kill()
        process.wait()

        assert store.is_dead("parent")
        assert not store.is_dead("child")
    finally:
        os.kill(child, signal.SIGKILL)
        end(process)
    until(lambda: store.is_dead("child"))


def test_a_forked_child_does_not_free_its_parents_lock(store, tmp_path):
    """A child that drops everything, and ends in whatever way, leaves its parent alive."""
    process = start(
        """
        import gc
        from ledger.stores import holders
        store = FolderStore(folder)
        store.hold("parent")
        for leave in (os._exit, sys.exit):
            child = os.fork()
            if child == 0:
                del store
                gc.collect()
                leave(0)
            os.waitpid(child, 0)
        say("done")
        sys.stdin.read()
        """,
        tmp_path,
    )
    assert heard(process) == "done"
    try:
        assert not store.is_dead("parent")
    finally:
        end(process)


def test_a_started_program_does_not_keep_its_starter_alive(store, tmp_path):
    """A program that a holder started, or became, does not hold its file."""
    sleeper = "import time; print('up', flush=True); time.sleep(600)"
    process = start(
        """
        import subprocess
        store = FolderStore(folder)
        store.hold("starter")
        child = subprocess.Popen([sys.executable, "-c", sys.argv[2]], close_fds=False)
        say(child.pid)
        sys.stdin.readline()
        os.execv(sys.executable, [sys.executable, "-c", sys.argv[2]])
        """,
        tmp_path,
        sleeper,
    )
    child = int(sorted([heard(process), heard(process)])[0])
    try:
        assert not store.is_dead("starter")
        process.stdin.write("\n")
        process.stdin.flush()
        assert heard(process) == "up"

        assert store.is_dead("starter")
    finally:
        os.kill(child, signal.SIGKILL)
        end(process)


def test_forks_while_threads_hold(tmp_path):
    """Children forked while threads hold and ask go on doing so; nothing hangs."""
    said = run(
        """
        store = FolderStore(folder)
        stopping = threading.Event()
        def work(name):
            n = 0
            while not stopping.is_set():
                n += 1
                store.hold(f"{name}-{n % 50}-{os.getpid()}")
                store.is_dead(f"{name}-{n % 50}")
        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        good = 0
        for n in range(30):
            child = os.fork()
            if child == 0:
                store.hold(f"child-{n}")
                os._exit(0 if not store.is_dead(f"child-{n}") else 1)
            good += os.waitpid(child, 0)[1] == 0
        stopping.set()
        for thread in threads:
            thread.join()
        say(good)
        say(sum(store.is_dead(f"child-{n}") for n in range(30)))
        """,
        tmp_path,
    )
    assert said.split() == ["30", "30"]


# -- many at once ---------------------------------------------------------------------------------------


def test_many_threads_ask_and_hold(store, living, tmp_path):
    """However many ask at the same time, one that lives is never dead and one that died always is."""
    left_behind(tmp_path, "gone")
    wrong, ready = [], threading.Barrier(8)

    def ask(number: int) -> None:
        ready.wait()
        for _ in range(200):
            store.hold(f"mine-{number % 2}")
            if store.is_dead("me") or store.is_dead(f"mine-{number % 2}"):
                wrong.append("alive")
            if not store.is_dead("gone"):
                wrong.append("gone")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert not is_free(path_of(tmp_path, "mine-0"))


def test_no_holder_is_dead_while_it_begins(store, tmp_path):
    """Somebody who asks all the time while processes begin to hold never finds one dead."""
    code = """
        store = FolderStore(folder)
        say("ready")
        sys.stdin.readline()
        store.hold(sys.argv[2])
        say("held")
        sys.stdin.read()
        """
    names = [f"p{n}" for n in range(4)]
    processes = [start(code, tmp_path, name) for name in names]
    try:
        for process in processes:
            assert heard(process) == "ready"
            process.stdin.write("\n")
            process.stdin.flush()
        while not all(path_of(tmp_path, name).exists() for name in names):
            assert not any(map(store.is_dead, names))
        assert not any(map(store.is_dead, names))
    finally:
        for process in processes:
            end(process)


# -- where it cannot be done ----------------------------------------------------------------------------


def in_the_way(kind: str, path: Path, elsewhere: Path) -> None:
    """Put something that is no plain file of its own at a path."""
    if kind == "link":
        path.symlink_to(elsewhere / "target")
    elif kind == "live link":
        (elsewhere / "target").write_text("theirs")
        path.symlink_to(elsewhere / "target")
    elif kind == "hard link":
        (elsewhere / "target").write_text("theirs")
        path.hardlink_to(elsewhere / "target")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()


@pytest.fixture
def elsewhere(tmp_path):
    """Return a folder that is nobody's business."""
    folder = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("kind", ["link", "live link", "hard link", "fifo", "folder"])
def test_what_is_no_plain_file_tells_nothing(store, tmp_path, elsewhere, kind):
    """Whatever stands at a holder's path but a plain file: nobody hangs, follows it, or is called dead."""
    store.append("c", [stop("a")])
    (tmp_path / "holders").mkdir()
    in_the_way(kind, path_of(tmp_path, "me"), elsewhere)

    assert not store.is_dead("me")
    store.hold("me")
    assert not FolderStore(tmp_path).is_dead("me")

    assert [path.read_text() for path in elsewhere.iterdir()] in ([], ["theirs"])
    assert [name for name in os.listdir(tmp_path / "holders") if name.startswith("new")] == []
    if kind != "folder":
        assert not is_free(path_of(tmp_path, "me"))


@pytest.mark.parametrize("kind", ["link", "live link", "folder link", "fifo"])
def test_a_holders_folder_that_is_none(store, tmp_path, elsewhere, kind):
    """A link or a fifo in place of the folder is neither followed nor replaced, and fails nothing."""
    store.append("c", [stop("a")])
    place = tmp_path / "holders"
    if kind == "folder link":
        place.symlink_to(elsewhere)
        (elsewhere / path_of(tmp_path, "gone").name).touch()
    else:
        in_the_way(kind, place, elsewhere)
    before = sorted(os.listdir(elsewhere))

    store.hold("me")

    assert not store.is_dead("me")
    assert not store.is_dead("gone")
    assert sorted(os.listdir(elsewhere)) == before
    assert not place.is_dir() or place.is_symlink()


def test_everybodys_folder_tells_nothing(store, tmp_path):
    """A folder that everybody may write to tells nothing, and nothing is put there."""
    path = left_behind(tmp_path, "gone")
    assert store.is_dead("gone")
    path.parent.chmod(0o777)

    assert not store.is_dead("gone")
    store.hold("me")
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_fails_nothing(store, tmp_path):
    """Where nothing can be made, holding does nothing, and asking still works."""
    left_behind(tmp_path, "gone").parent.chmod(0o500)
    store.append("c", [stop("a")])
    try:
        store.hold("me")

        assert store.is_dead("gone")
        assert not store.is_dead("me")
    finally:
        (tmp_path / "holders").chmod(0o700)


def test_a_folder_without_locks_fails_nothing(store, tmp_path, monkeypatch, anew):
    """Where the system gives no lock, holding does nothing and leaves no file."""

    def none_left(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none_left)
    store.hold("me")
    monkeypatch.undo()

    assert os.listdir(tmp_path / "holders") == []
    assert not store.is_dead("me")


def test_no_open_file_left_fails_nothing(store, tmp_path):
    """A process that may open no more files holds nothing, leaves nothing, and can hold later."""
    said = run(
        """
        import resource
        store = FolderStore(folder)
        store.append("c", [stop("a")])
        store.hold("first")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        used = max(int(name) for name in os.listdir("/dev/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 3, limits[1]))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        store.hold("me")
        dead = store.is_dead("me")
        for number in taken:
            os.close(number)
        names = os.listdir(folder + "/holders")
        say(dead), say(len(names))
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        store.hold("me")
        say(len(os.listdir(folder + "/holders")))
        """,
        tmp_path,
    )
    assert said.split() == ["False", "1", "2"]


def test_locks_that_exclude_nobody_are_not_relied_on(store, tmp_path, monkeypatch, anew):
    """Where a lock keeps nobody out no file is left, since it would tell that its holder died."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    monkeypatch.setattr(locks, "_flock", lambda *_: None)

    store.hold("me")

    assert os.listdir(tmp_path / "holders") == []
    assert not store.is_dead("me")


# -- sweeping -------------------------------------------------------------------------------------------


def test_old_files_are_swept_when_a_process_first_holds(store, tmp_path, anew):
    """Files free for more than a day go; younger ones, and what is no file of ours, stay."""
    old = [left_behind(tmp_path, f"old-{n}", 2 * DAY_S) for n in range(3)]
    old.append(tmp_path / "holders" / f"new-{'0' * 32}")
    shutil.copy2(old[0], old[-1])
    young = left_behind(tmp_path, "young", DAY_S / 2)
    others = [tmp_path / "holders" / name for name in ("notes.lock", "new-thing", "a.txt")]
    for path in others:
        shutil.copy2(old[0], path)

    store.hold("me")

    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in (young, *others, path_of(tmp_path, "me")))


def test_a_holder_older_than_a_day_is_not_swept(store, living, tmp_path, anew):
    """The file of one that lives stays, however old it is."""
    path = path_of(tmp_path, "me")
    os.utime(path, (time.time() - 9 * DAY_S,) * 2)

    store.hold("other")

    assert path.exists()
    assert not store.is_dead("me")


def test_links_are_not_swept(store, tmp_path, elsewhere, anew):
    """A link with a holder's name is not followed and not removed, nor is a folder."""
    (tmp_path / "holders").mkdir(mode=0o700)
    for kind in ("live link", "fifo", "folder"):
        path = path_of(tmp_path, kind)
        in_the_way(kind, path, elsewhere)
        os.utime(path, (time.time() - 9 * DAY_S,) * 2, follow_symlinks=False)

    store.hold("me")

    assert all(os.path.lexists(path_of(tmp_path, k)) for k in ("live link", "fifo", "folder"))
    assert (elsewhere / "target").read_text() == "theirs"


def test_a_process_sweeps_once(store, tmp_path, anew):
    """The folder is looked through when the process first holds there, and not for every turn."""
    store.hold("me")
    path = left_behind(tmp_path, "old", 2 * DAY_S)

    store.hold("me")
    store.hold("another name")

    assert path.exists()
