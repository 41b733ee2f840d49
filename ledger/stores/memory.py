"""A store in this process's memory. It keeps the same bytes as a folder, and reads as what a store is."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from ledger.errors import StoreConflict, StoreGone, StoreVersion
from ledger.records import codec, ids, kinds
from ledger.stores import forks, handout, lines
from ledger.stores import verify as verifying
from ledger.stores.base import Position, Records, agrees
from ledger.stores.blobs import MemoryBlobs

T = TypeVar("T")


class _Log:
    """One conversation: the bytes of its log, and where its lines lie in them."""

    def __init__(self, conversation: str, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.scanner = codec.Scanner(codec.first_chain(conversation))
        self.lines: list[codec.Line] = []
        end = data.rfind(b"\n") + 1
        self.scanner.feed(data[:end])
        self.lacks_line_feed = self.scanner.feed_unended(data[end:])
        self.lines += self.scanner.settled(at_end=True)
        self.newer = any(map(lines.is_newer, data.split(b"\n")))

    @property
    def position(self) -> Position:
        if not self.lines:
            return Position(0)
        return Position(len(self.lines), handout.incarnation(self.text(self.lines[0])))

    def text(self, line: codec.Line) -> bytes:
        return bytes(self.data[line.start : line.end])

    def add(self, bodies: Sequence[bytes]) -> None:
        del self.data[self.scanner.offset :]
        before = b"\n" if self.lacks_line_feed else b""
        self.lacks_line_feed = False
        salts = [os.urandom(16) for _ in bodies]
        added, _ = codec.seal(bodies, len(self.lines), self.scanner.covered, salts)
        self.data += before + added
        self.newer = any(map(lines.is_newer, bodies))
        self.scanner.feed(before + added)
        self.lines += self.scanner.settled(at_end=True)


class MemoryStore:
    """Conversations kept in this process's memory, and gone with it. For any number of threads."""

    durability = "memory"
    persistent = False

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()
        self._logs: dict[str, _Log] = {}
        self._changed = threading.Condition()
        forks.join(self)

    def append(
        self,
        conversation: str,
        records: Sequence[Mapping[str, Any]],
        *,
        expect: int | None = None,
    ) -> Position:
        """Add records at the end, all or none, if the conversation still holds `expect` of them.

        Returns: how many records it holds now. Raises: store-conflict, record-invalid,
        record-too-large, store-version: nothing was added.
        """
        ids.check_conversation(conversation)
        bodies = handout.shallow(lambda: [codec.body(record) for record in records])
        with self._changed:
            log = self._logs.get(conversation) or _Log(conversation)
            if expect is not None and not agrees(expect, log.position):
                raise StoreConflict(
                    conversation=conversation, expected=int(expect), found=len(log.lines)
                )
            if bodies:
                if log.newer:
                    raise StoreVersion(
                        where=f"memory, {conversation}", reason="it holds records of a newer format"
                    )
                log.add(bodies)
                self._logs[conversation] = log
                self._changed.notify_all()
            return log.position

    def read(self, conversation: str, after: int = 0) -> Records[dict[str, Any]]:
        """Return the records after a position, in order, as fresh dicts. Raises: store-gone."""
        return self._read(conversation, after, handout.plain)

    def scan(self, conversation: str, after: int = 0) -> Records[kinds.Recorded]:
        """Return what `read` returns, as Structs with their payloads undecoded."""
        return self._read(conversation, after, handout.structs)

    def _read(
        self, conversation: str, after: int, decode: Callable[[lines.Piece, int], list[T]]
    ) -> Records[T]:
        ids.check_conversation(conversation)
        if after < 0:
            raise ValueError("a position is not negative")
        with self._changed:
            log = self._logs.get(conversation) or _Log(conversation)
            position = log.position
            if after > position or (
                after and not agrees(after, Position(after, position.incarnation))
            ):
                raise StoreGone(conversation=conversation, after=int(after), found=len(log.lines))
            found = log.lines[after:]
            base = found[0].start if found else 0
            data = bytes(log.data[base : found[-1].end]) if found else b""
        piece = lines.Piece(found, data, base)
        return Records(handout.shallow(lambda: decode(piece, after)), position)

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        """Block until the conversation is not at position `after`. Returns: whether it changed."""
        ids.check_conversation(conversation)

        def moved() -> bool:
            log = self._logs.get(conversation)
            return not agrees(after, log.position if log is not None else Position(0))

        with self._changed:
            return self._changed.wait_for(moved, timeout)

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that hold a record, sorted."""
        with self._changed:
            return sorted(name for name, log in self._logs.items() if log.lines)

    def delete(self, conversation: str) -> bool:
        """Remove a conversation. Returns: whether there was one."""
        ids.check_conversation(conversation)
        with self._changed:
            there = self._logs.pop(conversation, None) is not None
            self._changed.notify_all()
            return there

    def raw(self, conversation: str) -> bytes:
        """Return the whole log as it is, for `adopt`; no bytes when there is none."""
        ids.check_conversation(conversation)
        with self._changed:
            log = self._logs.get(conversation)
            return bytes(log.data) if log is not None else b""

    def adopt(self, conversation: str, data: bytes) -> Position:
        """Make a conversation of the bytes of a whole log. Raises: store-conflict: it has records."""
        ids.check_conversation(conversation)
        adopted = handout.shallow(lambda: _Log(conversation, data))
        with self._changed:
            log = self._logs.get(conversation)
            if log is not None and log.lines:
                raise StoreConflict(conversation=conversation, expected=0, found=len(log.lines))
            if data:
                self._logs[conversation] = adopted
                self._changed.notify_all()
            return adopted.position

    def damage(self, conversation: str) -> list[verifying.Finding]:
        """Return the lines that are lost or altered, in order; at most the first thousand."""
        return self.verify(conversation).damage

    def verify(self, conversation: str) -> verifying.Report:
        """Check every line and report all that is not sealed."""
        source = lines.BytesSource(self.raw(conversation))
        return handout.shallow(lambda: verifying.verify(source, conversation))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def before_fork(self) -> None:
        """Let no thread be half-way through a change when the process is copied."""
        self._changed.acquire()

    def after_fork(self, *, child: bool) -> None:
        """Go on; in the child with a lock of its own, since who waited on the old one is not there."""
        if child:
            self._changed = threading.Condition()
        else:
            self._changed.release()
