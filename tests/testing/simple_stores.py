"""Two small stores by other people: one in memory with all its steps apart, one of the bare two methods.

The first is cut so that each fault of test_broken_stores.py is one step done wrong.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from typing import Any

from ledger.errors import StoreConflict, StoreGone
from ledger.records import codec, ids
from ledger.stores.base import Position


class SimpleStore:
    """Conversations in memory, as JSON text; with deleting, listing and waiting."""

    durability = "memory"
    persistent = False

    def __init__(self, place: Any = None) -> None:
        self.kept: dict[str, list[str]] = {}
        self.making: dict[str, int] = {}
        self.makings = 0
        self.changed = threading.Condition()

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        key = self.key(conversation)
        given = [self.encode(record) for record in records]
        with self.changed:
            self.check_expect(conversation, expect, self.position(key))
            self.add(key, given)
            self.changed.notify_all()
            return self.position(key)

    def read(self, conversation: str, after: int = 0) -> Any:
        key = self.key(conversation)
        with self.changed:
            self.check_after(conversation, after, self.position(key))
            return self.hand_out(key, after)

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        key = self.key(conversation)
        with self.changed:
            return self.changed.wait_for(
                lambda: not self.agrees(after, self.position(key)), timeout
            )

    def delete(self, conversation: str) -> bool:
        key = self.key(conversation)
        with self.changed:
            self.changed.notify_all()
            self.making.pop(key, None)
            return self.kept.pop(key, None) is not None

    def conversations(self) -> list[str]:
        with self.changed:
            return sorted(self.kept)

    # -- the steps

    def key(self, conversation: Any) -> str:
        return ids.check_conversation(conversation)

    def encode(self, record: Any) -> str:
        return codec.body(record).decode()

    def decode(self, text: str, seq: int) -> dict[str, Any]:
        return {**json.loads(text), "seq": seq}

    def position(self, key: str) -> Position:
        made = self.making.get(key)
        return Position(len(self.kept.get(key, ())), ("", str(made)) if made is not None else None)

    def agrees(self, given: int, found: Position) -> bool:
        made = getattr(given, "incarnation", None)
        return given == found and (made is None or made == found.incarnation)

    def check_expect(self, conversation: str, expect: int | None, found: Position) -> None:
        if expect is not None and not self.agrees(expect, found):
            self.conflict(conversation, expect, found)

    def conflict(self, conversation: str, expect: int, found: int) -> None:
        raise StoreConflict(conversation=conversation, expected=int(expect), found=int(found))

    def check_after(self, conversation: str, after: int, found: Position) -> None:
        made = getattr(after, "incarnation", None)
        if after > found or (after and made is not None and made != found.incarnation):
            raise StoreGone(conversation=conversation, after=int(after), found=int(found))

    def add(self, key: str, given: list[str]) -> None:
        if given:
            if key not in self.kept:
                self.makings += 1
                self.making[key] = self.makings
            self.kept.setdefault(key, []).extend(given)

    def hand_out(self, key: str, after: int) -> Any:
        kept = self.kept.get(key, [])
        records = [self.decode(text, seq) for seq, text in enumerate(kept[after:], after + 1)]
        return _Records(records, self.position(key))


class _Records(list[Any]):
    def __init__(self, records: list[Any], position: Position) -> None:
        super().__init__(records)
        self.position = position


class LinesStore:
    """The two methods and no more, in files: each append is one line, a list of records."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> int:
        path = self.path(conversation)
        bodies = [codec.body(record) for record in records]
        os.makedirs(self.folder, exist_ok=True)
        with open(path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            whole = self.whole(file)
            count = len(self.records(whole))
            if expect is not None and expect != count:
                raise StoreConflict(conversation=conversation, expected=expect, found=count)
            if bodies:
                self.write(file, whole, bodies)
            return count + len(bodies)

    def read(self, conversation: str, after: int = 0) -> list[dict[str, Any]]:
        try:
            with open(self.path(conversation), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                records = self.records(self.whole(file))
        except FileNotFoundError:
            records = []
        if after > len(records):
            raise StoreGone(conversation=conversation, after=after, found=len(records))
        return [{**record, "seq": seq} for seq, record in enumerate(records, 1)][after:]

    # -- the steps

    def path(self, conversation: Any) -> str:
        return os.path.join(self.folder, ids.check_conversation(conversation) + ".jsonl")

    def whole(self, file: Any) -> bytes:
        file.seek(0)
        data: bytes = file.read()
        return data[: data.rfind(b"\n") + 1]

    def records(self, data: bytes) -> list[Any]:
        return [record for line in data.split(b"\n")[:-1] for record in json.loads(line)]

    def write(self, file: Any, whole: bytes, bodies: list[bytes]) -> None:
        file.truncate(len(whole))
        file.write(b"[" + b",".join(bodies) + b"]\n")
        file.flush()
        os.fsync(file.fileno())
