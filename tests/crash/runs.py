"""Every call of every scene, and something wrong at it: dying, failing, being interrupted."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from ledger.errors import LedgerError
from ledger.stores.folder import FolderStore
from ledger.testing.children import Say
from tests.crash import calls
from tests.crash.calls import Act, Calls, watched
from tests.crash.scenes import CHAT, SCENES, Known, Scene, Wrong, judge, log_of, names, record

ERRORS = [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EINTR, errno.EMFILE, errno.ENOMEM]


def count_calls(scene: Scene) -> int:
    """Return how many calls a scene makes."""
    with _prepared(scene) as (folder, _):
        counted = Calls(folder)
        with watched(counted):
            scene.act(FolderStore(folder, calls=counted))
        return counted.count


class _prepared:
    """A folder with a scene's content, removed at the end."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def __enter__(self) -> tuple[str, Known]:
        self._place = tempfile.mkdtemp(prefix="ledger-crash-")
        folder = os.path.join(self._place, "store")
        return folder, self._scene.prepare(folder)

    def __exit__(self, *_error: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)


def deaths(scenes: list[Scene] = SCENES) -> Counter[str]:
    """Kill a process at every call of every scene, and half-way through every write.

    Returns: how many deaths by scene. Raises: Wrong, saying where.
    """
    died: Counter[str] = Counter()
    for scene in scenes:
        for at in range(1, count_calls(scene) + 1):
            for part in (0, 1, 3):
                died[scene.name] += _die(scene, at, part)
    return died


def deaths_of(_say: Say, _number: int, name: str) -> int:
    """How many deaths the scene of that name has, as a job for another process: a small one forks in no time."""
    (scene,) = (scene for scene in SCENES if scene.name == name)
    return deaths([scene]).total()


def _die(scene: Scene, at: int, part: int) -> int:
    with _prepared(scene) as (folder, known):
        counted = Calls(folder, at=at, act=calls.die, part=part)

        def work() -> None:
            with watched(counted):
                scene.act(FolderStore(folder, calls=counted))

        ended = calls.in_child(work)
        _settle(known, scene, acknowledged=ended == 0)
        _judged(folder, known, f"{scene.name}: killed at call {at}, part {part}")
        return int(ended != 0)


def failures(
    scenes: list[Scene] = SCENES, errors: list[int] = ERRORS, interrupts: bool = True
) -> Counter[str]:
    """Fail every call of every scene, in one process that goes on with the same store.

    The append either says no (and nothing of it is there), or says that it is not known, or says yes.
    Returns: how many by outcome. Raises: Wrong, saying where.
    """
    outcomes: Counter[str] = Counter()
    acts: list[tuple[str, Act]] = [(os.strerror(n), calls.failing(n)) for n in errors]
    if interrupts:
        acts += [(e.__name__, calls.raising(e)) for e in (KeyboardInterrupt, MemoryError)]
    for scene in scenes:
        for at in range(1, count_calls(scene) + 1):
            for name, act in acts:
                for part in (0, 2):
                    where = f"{scene.name}: {name} at call {at}, part {part}"
                    outcomes[_fail(scene, at, act, part, where)] += 1
    return outcomes


def _fail(scene: Scene, at: int, act: Act, part: int, where: str) -> str:
    with _prepared(scene) as (folder, known):
        counted = Calls(folder, at=at, act=act, part=part)
        store = FolderStore(folder, calls=counted)
        with watched(counted):
            outcome = _outcome(scene, store, known)
        if outcome == "no":
            _nothing_of_it(folder, known, scene, where)
        with suppress(LedgerError):
            # The same store goes on, before a fresh one looks.
            known_here = len(store.read(CHAT))
            store.append(CHAT, [record("same store")], expect=known_here)
            _append_known(known, folder)
        _judged(folder, known, where)
        return outcome


def _outcome(scene: Scene, store: FolderStore, known: Known) -> str:
    try:
        scene.act(store)
    except LedgerError as error:
        unknown = error.code == "store-unknown"
        _settle(known, scene, acknowledged=False)
        return "unknown" if unknown else "no"
    except (KeyboardInterrupt, MemoryError):
        _settle(known, scene, acknowledged=False)
        return "interrupted"
    except OSError as error:
        raise Wrong(f"{scene.name}: an error of the system came through: {error}") from error
    _settle(known, scene, acknowledged=True)
    return "yes"


def _settle(known: Known, scene: Scene, *, acknowledged: bool) -> None:
    if acknowledged:
        known.acknowledged += scene.names
    else:
        known.doubtful = list(scene.names)


def _append_known(known: Known, folder: str) -> None:
    """Take what the same store went on with into what was acknowledged, whatever it found."""
    found = names(FolderStore(folder))
    sure = len(known.acknowledged)
    more = [name for name in found[sure:] if name is not None]
    if found[:sure] != known.acknowledged or more not in (
        ["same store"],
        [*known.doubtful, "same store"],
    ):
        raise Wrong(f"the same store went on to {found}; acknowledged {known.acknowledged}")
    known.acknowledged, known.doubtful = found, []


def _nothing_of_it(folder: str, known: Known, scene: Scene, where: str) -> None:
    found = names(FolderStore(folder))
    if set(found) & set(scene.names):
        raise Wrong(f"{where}: it said no, and {found} is there")


def cuts() -> int:
    """Cut a log at every byte, then append and read. Returns: how many cuts."""
    count = 0
    with _prepared(SCENES[2]) as (folder, known):
        SCENES[2].act(FolderStore(folder))
        with open(log_of(folder), "rb") as file:
            data = file.read()
        ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
        for size in range(len(data) + 1):
            with open(log_of(folder), "r+b") as file:
                file.truncate(0)
                file.write(data[:size])
            whole = sum(end <= size or end - 1 == size for end in ends)
            # Appends were of 1, 2 and 3 records: a cut leaves whole batches.
            every = [*known.acknowledged, *SCENES[2].names]
            kept = every[: max(n for n in (0, 1, 3, 6) if n <= whole)]
            _judged(folder, Known(kept), f"cut at byte {size} of {len(data)}")
            count += 1
    return count


def _judged(folder: str, known: Known, where: str) -> None:
    try:
        judge(folder, known)
    except Wrong as wrong:
        raise Wrong(f"{where}: {wrong}") from wrong
    except LedgerError as error:
        raise Wrong(f"{where}: {error} [{error.code}]") from error


def outcomes_text(counts: Counter[str]) -> Iterator[str]:
    """Yield counts as lines, the largest first."""
    for name, count in counts.most_common():
        yield f"{count:>8,}  {name}"
