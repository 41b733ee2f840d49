"""A power cut: every disk that could be left behind, rebuilt from what a store wrote and flushed.

The model is POSIX at its worst. What was flushed stays. A write or cut that was not flushed may be
there or not, in any order, torn at 512 bytes; a sector of it that is not there, below the length that
is, reads as zeros. A name stays once its folder was flushed; before that it may be there or not,
whatever was flushed of the file.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

from ledger.stores.files import Files
from ledger.stores.folder import FolderStore
from tests.crash.calls import Calls, watched
from tests.crash.scenes import CHAT, Known, Wrong, judge, record

SECTOR = 512
_MOST = 40
"""How many states of one file are tried at one moment; beyond, a sample is."""


@dataclass
class Step:
    """One thing that was done: `make`, `write`, `cut`, `flush`, `flush_folder`, `rename`, `unlink`,
    or `acknowledged`."""

    what: str
    path: str = ""
    offset: int = 0
    data: bytes = b""
    names: list[str] = field(default_factory=list)


class Traced(Calls):
    """File calls that note every step."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.steps: list[Step] = []

    def reach(self, name: str) -> bool:
        self.note_names()
        return False

    def note_names(self) -> None:
        """Note files and folders that are there now and were not before."""
        if self.looking:
            return
        self.looking = True
        try:
            self._look()
        finally:
            self.looking = False

    def _look(self) -> None:
        seen = {step.path for step in self.steps if step.what == "make"}
        for above, folders, files in os.walk(self.folder):
            for path in [above, *(os.path.join(above, n) for n in (*folders, *files))]:
                if path not in seen:
                    seen.add(path)
                    self.steps.append(Step("make", path))

    def _path(self, number: int) -> str:
        self.note_names()
        return os.readlink(f"/proc/self/fd/{number}")

    def write(self, number: int, data: memoryview, offset: int) -> int:
        self.steps.append(Step("write", self._path(number), offset, bytes(data)))
        return Files.write(self, number, data, offset)

    def cut(self, number: int, size: int) -> None:
        self.steps.append(Step("cut", self._path(number), size))
        Files.cut(self, number, size)

    def flush(self, number: int) -> None:
        path = self._path(number)
        Files.flush(self, number)
        self.steps.append(Step("flush", path))

    def flush_folder(self, path: str) -> None:
        self.note_names()
        Files.flush_folder(self, path)
        self.steps.append(Step("flush_folder", path))


def trace(folder: str, sizes: list[int]) -> list[Step]:
    """Append batches of one to three records, as large as told, and return every step of it."""
    traced = Traced(folder)
    with watched(traced):
        store = FolderStore(folder, calls=traced)
        for number, size in enumerate(sizes):
            names = [f"{number}.{i}" for i in range(1 + number % 3)]
            store.append(CHAT, [record(name, size) for name in names])
            traced.steps.append(Step("acknowledged", names=names))
    return traced.steps


# -- disks -----------------------------------------------------------------------------------------


@dataclass
class _File:
    kept: bytes = b""
    open: list[Step] = field(default_factory=list)
    """Writes and cuts since the last flush."""


@dataclass
class Disk:
    """What is certain, and what is open, at one moment."""

    files: dict[str, _File] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    sure: set[str] = field(default_factory=set)
    """Paths whose names stay."""

    def take(self, step: Step) -> None:
        """Go on by one step."""
        if step.what == "make":
            if os.path.isdir(step.path):
                self.folders.append(step.path)
            else:
                self.files[step.path] = _File()
        elif step.what in ("write", "cut"):
            self.files[step.path].open.append(step)
        elif step.what == "flush":
            file = self.files[step.path]
            file.kept, file.open = _applied(file.kept, file.open), []
        elif step.what == "flush_folder":
            inside = [*self.files, *self.folders]
            self.sure.update(p for p in inside if os.path.dirname(p) == step.path)

    def states(self, chance: random.Random) -> Iterator[dict[str, bytes | None]]:
        """Yield disks that could be left: content by path, None for a folder."""
        unsure = [p for p in [*self.folders, *self.files] if p not in self.sure]
        contents = {path: list(_contents(file, chance)) for path, file in self.files.items()}
        most = max((len(found) for found in contents.values()), default=1)
        for lost in _subsets(unsure):
            for i in range(most):
                yield self._state(lost, {p: found[i % len(found)] for p, found in contents.items()})

    def _state(self, lost: frozenset[str], contents: dict[str, bytes]) -> dict[str, bytes | None]:
        there: dict[str, bytes | None] = dict.fromkeys(self.folders)
        there.update(contents)
        return {
            path: content
            for path, content in there.items()
            if not any(path == gone or path.startswith(gone + "/") for gone in lost)
        }


def _subsets(paths: list[str]) -> Iterator[frozenset[str]]:
    if len(paths) <= 4:
        for count in range(len(paths) + 1):
            yield from map(frozenset, itertools.combinations(paths, count))
        return
    yield frozenset()
    yield frozenset(paths)
    yield from (frozenset([path]) for path in paths)


def _applied(content: bytes, steps: list[Step]) -> bytes:
    for step in steps:
        if step.what == "cut":
            content = content[: step.offset].ljust(step.offset, b"\0")
        else:
            content = _written(content, step.offset, step.data)
    return content


def _written(content: bytes, offset: int, data: bytes) -> bytes:
    content = content.ljust(offset, b"\0")
    return content[:offset] + data + content[offset + len(data) :]


def _contents(file: _File, chance: random.Random) -> Iterator[bytes]:
    """Yield contents that a file could have: each open step, or each sector of it, there or not."""
    yield file.kept
    if not file.open:
        return
    yield _applied(file.kept, file.open)
    pieces = [piece for step in file.open for piece in _sectors(step)]
    found = set()
    for count in range(len(pieces)):
        found.add(_applied(file.kept, pieces[:count]))  # in order, the rest lost
        found.add(_applied(file.kept, pieces[:count] + pieces[count + 1 :]))  # one lost
    for _ in range(_MOST):
        found.add(_applied(file.kept, [piece for piece in pieces if chance.random() < 0.6]))
    # The length may be there without the content.
    found.add(
        _applied(file.kept, [*file.open])[: len(file.kept)].ljust(
            len(_applied(file.kept, file.open)), b"\0"
        )
    )
    yield from sorted(found)[: 2 * _MOST]


def _sectors(step: Step) -> Iterator[Step]:
    if step.what == "cut":
        yield step
        return
    start = step.offset
    while start < step.offset + len(step.data):
        end = min((start // SECTOR + 1) * SECTOR, step.offset + len(step.data))
        data = step.data[start - step.offset : end - step.offset]
        yield Step("write", step.path, start, data)
        start = end


# -- the run ---------------------------------------------------------------------------------------


@dataclass
class Cut:
    """What a run of power cuts tried and found."""

    moments: int = 0
    states: int = 0
    damaged_in_doubt: int = 0
    """States in which a batch that was never acknowledged lies there in part (a hole in it)."""


def power_cuts(place: str, *, seed: int = 0, appends: int = 6) -> Cut:
    """Cut the power at every step, rebuild the disks that could be left, and judge each.

    Raises: Wrong: something acknowledged is not there whole, or the store does not go on.
    """
    chance = random.Random(seed)
    folder = os.path.join(place, "store")
    sizes = [0, *(chance.choice((0, 0, 300, 700, 3_000)) for _ in range(appends - 1))]
    steps = trace(folder, sizes)
    rebuilt = os.path.join(place, "rebuilt")
    cut, disk, known = Cut(), Disk(), Known()
    for step in steps:
        if step.what == "acknowledged":
            known.acknowledged += step.names
        else:
            disk.take(step)
        cut.moments += 1
        for state in disk.states(chance):
            cut.states += 1
            _rebuild(state, folder, rebuilt)
            _judge(rebuilt, known, cut, f"after step {cut.moments} ({step.what})")
    return cut


def _rebuild(state: dict[str, bytes | None], folder: str, rebuilt: str) -> None:
    shutil.rmtree(rebuilt, ignore_errors=True)
    for path, content in state.items():
        copy = rebuilt + path[len(folder) :]
        if content is None:
            os.makedirs(copy, mode=0o700, exist_ok=True)
    for path, content in state.items():
        if content is not None:
            copy = rebuilt + path[len(folder) :]
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(descriptor, content)
            os.close(descriptor)


def _judge(rebuilt: str, known: Known, cut: Cut, where: str) -> None:
    """All that was acknowledged is there at its place; the rest is whole, absent, or named damage."""
    store = FolderStore(rebuilt)
    found = [r.get("name") for r in store.read(CHAT)]
    sure = len(known.acknowledged)
    if found[:sure] != known.acknowledged:
        raise Wrong(f"{where}: acknowledged {known.acknowledged}, found {found}")
    if store.verify(CHAT).damaged:
        cut.damaged_in_doubt += 1
        position = store.append(CHAT, [record("after")], expect=len(found))
        again = [r.get("name") for r in FolderStore(rebuilt).read(CHAT)]
        if again[:sure] != known.acknowledged or again[-1] != "after" or len(again) != position:
            raise Wrong(f"{where}: after {found}, the next append gave {again}")
        return
    known_here = Known(list(known.acknowledged), _in_doubt(found[sure:]))
    judge(rebuilt, known_here)


def _in_doubt(found: list[str | None]) -> list[str]:
    """A batch that was being written has one number in its names; all of it or nothing is there."""
    here = [name for name in found if name is not None]
    if not here:
        return []
    number = int(here[0].partition(".")[0])
    return [f"{number}.{i}" for i in range(1 + number % 3)]
