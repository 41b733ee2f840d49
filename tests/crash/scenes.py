"""What is done to a store while something happens to it, and what must hold afterwards.

A scene prepares a folder with acknowledged records and does one more thing. `judge` is dumb: it reads
with a fresh store and compares with what was acknowledged: all of it there, once, at its place; of the
one thing in doubt all or nothing; no damage; and the next append works.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ledger.stores.folder import FolderStore

AT = "2026-01-01T00:00:00.000000Z"
CHAT = "c"


def record(name: str, size: int = 0) -> dict:
    """Return a small record that is known by its name."""
    kept = {"functai_conversation": 1, "kind": "note", "at": AT, "name": name}
    return {**kept, "text": "x" * size} if size else kept


@dataclass
class Known:
    """What a store said yes to, by place, and what it has not answered for."""

    acknowledged: list[str | None] = field(default_factory=list)
    """None: the place of a line that an append left which failed."""
    doubtful: list[str] = field(default_factory=list)


@dataclass
class Scene:
    """One thing done to a store that holds something already."""

    name: str
    prepare: Callable[[str], Known]
    """Makes the folder's content; the folder itself may not be there yet."""
    names: list[str]
    """The records that it appends, in one batch."""
    size: int = 0

    def act(self, store: FolderStore) -> None:
        """Do it."""
        store.append(CHAT, [record(name, self.size) for name in self.names])


def log_of(folder: str) -> str:
    """Return the path of the log."""
    return os.path.join(folder, "conversations", f"{CHAT}.jsonl")


def _empty(folder: str) -> Known:
    return Known()


def _three(folder: str) -> Known:
    store = FolderStore(folder)
    store.append(CHAT, [record("a")])
    store.append(CHAT, [record("b"), record("c")])
    return Known(["a", "b", "c"])


def _torn(folder: str) -> Known:
    known = _three(folder)
    with open(log_of(folder), "ab") as file:
        file.write(b'{"functai_conversation":1,"kind":"note","at":"2026-01-01T00:00')
    return known


def _unfinished(folder: str) -> Known:
    """Leave the first two lines of a batch of three, as a writer that died leaves them."""
    known = _three(folder)
    size = os.path.getsize(log_of(folder))
    FolderStore(folder).append(CHAT, [record("lost 1"), record("lost 2"), record("lost 3")])
    with open(log_of(folder), "r+b") as file:
        data = file.read()
        end = data.index(b"\n", data.index(b"\n", size) + 1) + 1
        file.truncate(end)
    return Known([*known.acknowledged, None, None])


def _foreign(folder: str) -> Known:
    known = _three(folder)
    with open(log_of(folder), "ab") as file:
        file.write(b'{"functai_conversation":1,"kind":"note","at":"%b","name":"d"}\n' % AT.encode())
    return Known([*known.acknowledged, "d"])


SCENES = [
    Scene("the first append of a store", _empty, ["new"]),
    Scene("an append", _three, ["new"]),
    Scene("a batch", _three, ["new 1", "new 2", "new 3"]),
    Scene("a batch of many pages", _three, ["new 1", "new 2", "new 3"], size=9_000),
    Scene("an append after a torn tail", _torn, ["new"]),
    Scene("an append after an unfinished batch", _unfinished, ["new 1", "new 2"]),
    Scene("an append after another writer's line", _foreign, ["new"]),
]


class Wrong(AssertionError):
    """What must hold does not."""


def judge(folder: str, known: Known) -> None:
    """Compare a folder with what was acknowledged, then append and read once more."""
    store = FolderStore(folder, lock_timeout_s=5.0)
    found = names(store)
    sure = len(known.acknowledged)
    if found[:sure] != known.acknowledged:
        raise Wrong(f"acknowledged {known.acknowledged}, found {found}")
    if [name for name in found[sure:] if name is not None] not in ([], known.doubtful):
        raise Wrong(f"of {known.doubtful} a part is there: {found}")
    begun = time.monotonic()
    position = store.append(CHAT, [record("after")], expect=len(found))
    if time.monotonic() - begun > 4.0:
        raise Wrong("the next append waited for somebody")
    again = names(FolderStore(folder))
    if again != [*found, "after"] or int(position) != len(again):
        raise Wrong(f"after {found} the next append gave {again}, position {int(position)}")
    report = store.verify(CHAT)
    if report.damaged or report.torn_bytes:
        raise Wrong(f"the log does not verify: {report.counts}, {report.torn_bytes} torn bytes")


def names(store: FolderStore) -> list[str | None]:
    """Return the names of the records by place; None: not readable there."""
    return [found.get("name") for found in store.read(CHAT)]
