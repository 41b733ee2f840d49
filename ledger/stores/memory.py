"""A store in this process's memory. It keeps the same bytes as a folder, and reads as what a store is."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from ledger.bells import Bell
from ledger.errors import AttachmentMissing, EventRefused, StoreGone, StoreVersion
from ledger.records import codec, erasing, ids, kinds
from ledger.stores import forks, handout, lines, plans
from ledger.stores import verify as verifying
from ledger.stores.base import (
    Deleted,
    Erased,
    Incarnation,
    Position,
    Records,
    Since,
    agrees,
    check_expected,
    conflict,
)
from ledger.stores.blobs import MemoryBlobs
from ledger.stores.events import MemoryEvents

T = TypeVar("T")


class _Log:
    """One conversation: the bytes of its log, and where its lines lie in them.

    What the scanner has read is what the log holds. Replacing it is the last step of an append, so one
    that an exception interrupts did not happen; bytes and lines beyond are dropped by the next.
    """

    def __init__(self, conversation: str, data: bytes = b"") -> None:
        self.token = secrets.token_hex(8)
        """Tells it from every other log, also from what it was before something was erased from it."""
        self.data = bytearray(data)
        scanner = codec.Scanner(codec.first_chain(conversation))
        end = data.rfind(b"\n") + 1
        scanner.feed(data[:end])
        self._lacks_line_feed = scanner.feed_unended(data[end:])
        self._lines = scanner.settled(at_end=True)
        self._scanner = scanner
        self._incarnation = self._look_at_first() if self._lines else None
        self.newer = any(map(lines.is_newer, data.split(b"\n")))
        """Whether it holds a record of a newer format."""

    def __len__(self) -> int:
        return self._scanner.count

    @property
    def position(self) -> Position:
        return Position(len(self), self._incarnation)

    def _look_at_first(self) -> Incarnation:
        first = self._lines[0]
        return handout.incarnation(bytes(self.data[first.start : first.end]))

    def whole(self) -> bytes:
        """Return the lines that count; the last one gets the line feed that it may lack."""
        return bytes(self.data[: self._scanner.offset]) + b"\n" * self._lacks_line_feed

    def beyond(self, after: int) -> lines.Piece:
        found = self._lines[after : len(self)]
        base = found[0].start if found else 0
        return lines.Piece(found, bytes(self.data[base : found[-1].end]) if found else b"", base)

    def add(self, bodies: Sequence[bytes]) -> None:
        scanner = self._scanner.onward()
        del self.data[scanner.offset :], self._lines[scanner.count :]
        if self._lacks_line_feed:
            self.data += b"\n"
            scanner.offset += 1
        salts = [os.urandom(16) for _ in bodies]
        added, _ = codec.seal(bodies, len(self), scanner.covered, salts)
        scanner.feed(added)
        self.data += added
        self._lines += scanner.settled(at_end=True)
        if not len(self):
            self._incarnation = self._look_at_first()
        self._scanner, self._lacks_line_feed = scanner, False


class MemoryStore:
    """Conversations kept in this process's memory, and gone with it. For any number of threads."""

    durability = "memory"
    persistent = False
    tells_at_once = True

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()
        self.events = MemoryEvents()
        """The events of running turns."""
        self._logs: dict[str, _Log] = {}
        self._erased: dict[str, int] = {}
        """How often something was erased from each log."""
        self._bell = Bell()
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
        return handout.with_room(lambda: self._append(conversation, bodies, expect))

    def _append(self, conversation: str, bodies: list[bytes], expect: int | None) -> Position:
        with self._bell.lock:
            log = self._log(conversation)
            check_expected(conversation, expect, log.position)
            self._keep(bodies)
            if bodies:
                if log.newer:
                    where = f"conversation {conversation} in memory"
                    raise StoreVersion(where=where, reason="it holds records of a newer format")
                log.add(bodies)
                self._logs[conversation] = log
                self._bell.ring()
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
        with self._bell.lock:
            log = self._log(conversation)
            position = log.position
            if after and (
                after > position or not agrees(after, Position(after, position.incarnation))
            ):
                raise StoreGone(conversation=conversation, after=int(after), found=len(log))
            piece = log.beyond(after)
        return Records(handout.shallow(lambda: decode(piece, after)), position)

    def _keep(self, texts: Iterable[bytes]) -> None:
        """Refuse what names an attachment that was here and is gone. Raises: attachment-missing."""
        for sha256 in self.blobs.lost(
            {name for text in texts for name in erasing.attachments(text)}
        ):
            raise AttachmentMissing(sha256=sha256)

    def _log(self, conversation: str) -> _Log:
        log = self._logs.get(conversation)
        return log if log is not None else _Log(conversation)

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        """Block until the conversation is not at position `after`. Returns: whether it changed."""
        ids.check_conversation(conversation)

        def moved() -> bool:
            return not agrees(after, self._log(conversation).position)

        return self._bell.wait_for(moved, timeout)

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that hold a record, sorted."""
        with self._bell.lock:
            return sorted(name for name, log in self._logs.items() if len(log))

    def looks(self) -> dict[str, str]:
        """Return how each log looks now, by conversation: see `stores.marks`."""
        with self._bell.lock:
            return {name: f"{log.token}:{len(log)}" for name, log in self._logs.items()}

    def since(self, conversation: str, mark: str = "") -> Since:
        """Return what a conversation holds beyond a mark, or all of it: see `stores.marks`."""
        ids.check_conversation(conversation)
        with self._bell.lock:
            log = self._log(conversation)
            look, position = f"{log.token}:{len(log)}", log.position
            of, _, at = mark.rpartition(":")
            after = int(at) if of == log.token else 0
            piece = log.beyond(after)
        records = Records(handout.shallow(lambda: handout.structs(piece, after)), position)
        return Since(records, look, look, whole=not after)

    def delete(self, conversation: str) -> Deleted:
        """Remove a conversation, its turns' events, and the attachments that no other log names.

        What runs or waits in it is refused, as in `Store`.
        Returns: what went; true when there was a log.
        """
        ids.check_conversation(conversation)
        report = Deleted(conversation=conversation)
        with self._bell.lock:
            log = self._logs.pop(conversation, None)
            if log is not None:
                report.found = True
                report.attachments, report.attachments_kept = self._sweep(bytes(log.data))
            self._bell.ring()
        # Their lock is not waited for while the records' is held: a fork takes both, in any order.
        for turn in plans.contents(lines.BytesSource(log.data if log else b""), {}):
            self._forget_events(turn)
        return report

    def erase(self, conversation: str, turn: str, *, expect: int | None = None) -> Erased:
        """Overwrite what a turn's records say; remove its events and attachments that nothing else names.

        Returns: what went. Raises: store-conflict.
        """
        ids.check_conversation(conversation)
        report = handout.with_room(lambda: self._erase(conversation, turn, expect))
        if conversation in self._logs:
            self._forget_events(turn)
        return report

    def erasures(self, conversation: str) -> str:
        """Return a text that is another one whenever a turn was erased."""
        return str(self._erased.get(conversation, ""))

    def _forget_events(self, turn: str) -> None:
        with suppress(EventRefused):  # What could be no log's name, has none.
            self.events.remove(turn)

    def _erase(self, conversation: str, turn: str, expect: int | None) -> Erased:
        with self._bell.lock:
            log = self._log(conversation)
            check_expected(conversation, expect, log.position)
            data = log.whole()
            plan, report = plans.planned(lines.BytesSource(data), conversation, turn)
            if plan.lines:
                self._erased[conversation] = self._erased.get(conversation, 0) + 1
                changed = bytearray(data)
                for place in plan.lines:
                    changed[place.offset : place.end] = place.part(place.offset, place.end)
                self._logs[conversation] = _Log(conversation, bytes(changed))
            named = "".join(f'"sha256":"{sha256}"' for sha256 in plan.attachments).encode()
            report.attachments, report.attachments_kept = self._sweep(named)
            self._bell.ring()
        return report

    def _sweep(self, gone: bytes) -> tuple[list[str], list[str]]:
        """Remove the attachments that some bytes name and no log does. Returns: removed and kept."""
        named = [name for name in dict.fromkeys(erasing.attachments(gone)) if self.blobs.has(name)]
        kept: set[str] = set()
        for log in self._logs.values():
            kept.update(erasing.attachments(log.data))
        removed = [name for name in named if name not in kept]
        self.blobs.remove(removed)
        return removed, [name for name in named if name in kept]

    def raw(self, conversation: str) -> bytes:
        """Return the whole log as it is, for `adopt`; no bytes when there is none."""
        ids.check_conversation(conversation)
        with self._bell.lock:
            log = self._logs.get(conversation)
            return bytes(log.data) if log is not None else b""

    def adopt(self, conversation: str, data: bytes) -> Position:
        """Make a conversation of the bytes of a whole log. Raises: store-conflict: it has records."""
        return self._place(conversation, data, lambda log: not len(log))

    def grow(self, conversation: str, data: bytes) -> Position:
        """Make a conversation what a copy of its log is, of which it holds a beginning, or nothing yet.

        Raises: store-conflict: it holds something else.
        """
        return self._place(conversation, data, lambda log: data.startswith(log.data))

    def _place(self, conversation: str, data: bytes, fits: Callable[[_Log], bool]) -> Position:
        ids.check_conversation(conversation)
        adopted = handout.shallow(lambda: _Log(conversation, data))
        with self._bell.lock:
            log = self._log(conversation)
            if not fits(log):
                raise conflict(conversation, 0, len(log))
            self._keep([data])
            if data:
                self._logs[conversation] = adopted
                self._bell.ring()
            return adopted.position

    def damage(self, conversation: str) -> list[verifying.Finding]:
        """Return the lines that are lost or altered, in order; at most the first thousand."""
        return self.verify(conversation).damage

    def verify(self, conversation: str) -> verifying.Report:
        """Check every line and report all that is not sealed."""
        source = lines.BytesSource(self.raw(conversation))
        return handout.shallow(lambda: verifying.verify(source, conversation))

    def hold(self, holder: str) -> None:
        """Nothing to do: no other process sees this store."""

    def is_dead(self, holder: str) -> bool:
        """No: who holds a turn here is this process."""
        return False

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
        self._bell.lock.acquire()

    def after_fork(self, *, child: bool) -> None:
        """Go on; in the child with a lock of its own, since who waited on the old one is not there."""
        if child:
            self._bell = Bell()
        else:
            self._bell.lock.release()
