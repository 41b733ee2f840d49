"""A store in a folder, shared by every process that opens it, of this library and of others.

    <folder>/conversations/<id>.jsonl    the records, one a line
    <folder>/conversations/<id>.lock     locked while appending; of a log with an index, its `witness`
    <folder>/conversations/<id>.erase    what was decided to be removed, until that is done
    <folder>/attachments/                bytes that records refer to
    <folder>/trees/<turn>.jsonl          the events of a turn
    <folder>/holders/                    who lives
    <folder>/indexes/                    what stands where in long logs, derived (`log_index`)

Nothing is kept open between calls, and no lock of this process stands before the file lock; one stands around
a flush alone (`flushing`). What is remembered of a log (where it ended, how many records, which chain) is
used only after the bytes there are found to be the same. Any of it may be dropped at any moment.

The order inside an append: see whether it is too late already; encode and check everything; lock; finish
what a dead process began to remove; find the end; compare `expect`; set a torn tail aside; make the
file's name durable; write; remember; unlock; flush; return. The flush keeps nobody off: the next writer's covers
these bytes too, since they stand before its own, so what is acknowledged is always a beginning of the log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar

from ledger.errors import (
    ConversationUnknown,
    LedgerError,
    StoreCorrupt,
    StoreGone,
    StoreIO,
    StoreUnknown,
    StoreVersion,
)
from ledger.records import codec, erasing
from ledger.stores import (
    appending,
    blobs,
    event_files,
    files,
    forks,
    handout,
    index_making,
    lines,
    locks,
    names,
    plans,
    reading,
    removing,
    repairing,
    sweeping,
    waking,
    whole,
    witness,
)
from ledger.stores import verify as verifying
from ledger.stores.base import (
    Deleted,
    Erased,
    Position,
    Records,
    agrees,
    check_expected,
    conflict,
)
from ledger.stores.flushing import Debts, Flushes
from ledger.stores.holders import Holders
from ledger.stores.home import Home
from ledger.stores.marks import Marked

T = TypeVar("T")

_REMEMBERED = 4096
"""How many logs are remembered; then all are forgotten, and found again as they are asked for."""


class FolderStore(Marked):
    """Conversations kept in a folder, durable when an append returns, for many processes at once.

    A folder that is not there is made by the first append (or attachment), not before; a folder that
    may only be read is read, and nothing is made in it.
    Args: lock_timeout_s: how long an append waits for others before store-busy. strict: reading refuses a
    damaged line (store-corrupt) in place of handing out `unreadable`. calls: what tests pass for the file calls.
    Not promised: that a record that is read is durable before its writer's append returned.
    """

    durability = "disk"
    persistent = True
    tells_at_once = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        lock_timeout_s: float = 30.0,
        strict: bool = False,
        calls: files.Files | None = None,
    ) -> None:
        self.folder = os.path.abspath(os.path.expanduser(os.fspath(folder)))
        """The absolute path of the folder."""
        self.blobs = blobs.FolderBlobs(self.folder, calls=calls)
        """The attachments, by the SHA-256 of their bytes."""
        self.events = event_files.FolderEvents(
            self.folder, lock_timeout_s=lock_timeout_s, calls=calls
        )
        """The events of running turns."""
        self._lock_timeout_s = lock_timeout_s
        self._strict = strict
        self._home = Home(self.folder, calls or files.Files())
        self._holders = Holders(self._home)
        self._indexes = index_making.Indexes(self._home)
        self._known: dict[str, lines.Known] = {}
        self._earlier: dict[str, lines.Known] = {}
        """What was known before, of logs that end in other writers' lines: their places are not found from the end."""
        self._waiters = waking.Waiters()
        forks.join(self)

    def __repr__(self) -> str:
        return f"FolderStore({self.folder!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget what is remembered. Nothing is held open between calls; the store stays usable."""
        self._known, self._earlier = {}, {}
        self._indexes.forget()

    # -- adding

    def append(
        self,
        conversation: str,
        records: Sequence[Mapping[str, Any]],
        *,
        expect: int | None = None,
    ) -> Position:
        """Add records at the end, if the conversation still holds `expect` of them.

        All or none become visible; they are flushed to disk, and so is the name of a new file, when
        this returns. Order within `records` is kept; each is given its `seq`. No records: nothing is
        written or made, `expect` is checked, and what is there is flushed, whoever wrote it.
        Args: expect: how many records the caller has seen, as an int or a `Position`; None: do not
        ask.
        Returns: how many records the conversation holds now, as a `Position`.
        Raises: store-conflict: the log grew, or was made anew; read again, decide again, retry.
        record-invalid, record-too-large, store-full, store-busy, store-io, store-denied,
        store-read-only, store-link, store-version: nothing of it counts. store-unknown: the flush
        failed; whether the records are durable is not known, and they are written again before the
        next append to this conversation is acknowledged. attachment-missing: a record names an
        attachment that was here and has been removed since; put it again.
        Not promised: that another conversation's append is ordered before or after this one; that
        every record of an old log was looked at for a newer format (those that are read here are).
        """
        self._check(conversation)
        self._refuse_early(self._home.log(conversation), expect)
        bodies = handout.shallow(lambda: [codec.body(record) for record in records])
        if not bodies:
            position = self.read_end(conversation)
            check_expected(conversation, expect, position)
            if position:
                self._flush(conversation)
            return position
        added = handout.with_room(lambda: self._append(conversation, bodies, expect))
        self._waiters.wake(conversation)
        # A log that came in one append gets its index from who reads it.
        if index_making.is_due(*added.stretch) and added.position > len(bodies):
            with suppress(RuntimeError):  # Neither room for it, nor a thread that has some.
                handout.with_room(lambda: self._indexes.grown(conversation, added.stretch[1]))
        return added.position

    def _refuse_early(self, log: reading.Log, expect: int | None) -> None:
        """Raise store-conflict if others appended since: who took the lock to be told so would keep others off."""
        known = self._known.get(log.conversation)
        now = reading.grown(log, known) if known is not None and known.count == expect else None
        if now is not None:
            self._remember(log.conversation, now)
            check_expected(log.conversation, expect, now.position)

    def _flush(self, conversation: str) -> None:
        """Make durable what is there: its writer may have died before it did. Raises: store-unknown."""
        log = self._home.log(conversation)
        with suppress(FileNotFoundError), files.Descriptor(log.data, os.O_RDONLY) as file:
            self._home.make_name_durable(log, file)
            try:
                log.write(lambda: self._pay(log), file)
            except OSError as error:
                raise StoreUnknown(where=log.data, reason="the flush to disk failed") from error

    def _pay(self, log: reading.Log) -> None:
        """Write again what is owed of a log, if something is. No lock is held."""
        debts = log.debts()
        if debts:
            deadline = time.monotonic() + self._lock_timeout_s
            with (
                self._locked(log.lock, deadline),
                locks.acquire(log.data, deadline, create=False) as file,
            ):
                debts.pay(file, log.files)

    def _append(self, id: str, bodies: list[bytes], expect: int | None) -> appending.Added:
        log = self._home.log(id)
        deadline = time.monotonic() + self._lock_timeout_s
        self._home.make()
        named = {name for text in bodies for name in erasing.attachments(text)}
        with self._locked(log.lock, deadline, lambda: self._refuse_early(log, expect)) as lock:
            self._home.check_case(id)
            self._settle(log, deadline)
            kept = sweeping.keep(named, self.blobs, self._home.sweeping, deadline)
            with kept, self._data(log, deadline, expect) as file:
                debts = log.debts()
                added = self._append_locked(log, lock, file, bodies, expect)
                file.free()
                lock.free()
                self._acknowledge(log, file, added, debts)
                return added

    def _data(self, log: reading.Log, deadline: float, expect: int | None) -> locks.LockedFile:
        """Return the log's file, locked; a new one only if that is what is expected."""
        try:
            return locks.acquire(log.data, deadline, create=False)
        except FileNotFoundError:
            self._forget_gone(log)
            check_expected(log.conversation, expect, Position(0))
            return self._locked(log.data, deadline)

    def _append_locked(
        self,
        log: reading.Log,
        lock: locks.LockedFile,
        file: locks.LockedFile,
        bodies: list[bytes],
        expect: int | None,
    ) -> appending.Added:
        tail = self._tail(log, file, expect)
        witnessed = lock.found.st_size > 0 and witness.stands(lock, log.files, file.stat())
        added = tail.add(file, bodies)
        there = file.at_its_path()
        if there is None:
            raise StoreIO(where=log.data, reason="it was removed or replaced while it was written")
        if witnessed:
            witness.write(lock, log.files, there)
        self._remember(log.conversation, added.known_at(there))
        return added

    def _acknowledge(
        self, log: reading.Log, file: locks.LockedFile, added: appending.Added, debts: Debts
    ) -> None:
        """Return when what was written is durable, and what was written before it. No lock is held."""
        try:
            debts.flush(file, log.files, added.owed)
            if debts:
                # Another thread's flush failed: of these bytes too, perhaps, or of some that stand before them.
                self._flush(log.conversation)
        except (OSError, LedgerError) as error:
            self._drop(log.conversation)
            raise StoreUnknown(where=log.data, reason="the flush to disk failed") from error
        if file.at_its_path() is None and not added.stands_in(log):
            if self._home.is_there() and files.found_at(log.data) is None:
                raise StoreGone(log.conversation, int(added.position), 0)  # Deleted with them.
            raise StoreIO(where=log.data, reason="it was removed or replaced while it was written")

    def _tail(self, log: reading.Log, file: locks.LockedFile, expect: int | None) -> appending.Tail:
        """Return the end of a log that may be changed now, with nothing unfinished after it."""
        conversation = log.conversation
        log.debts().pay(file, log.files)
        tail = appending.Tail(log, file, self._known.get(conversation))
        if expect is not None and not agrees(expect, tail.position):
            if not tail.counted:
                tail.count()
            self._remember(conversation, tail.known())  # Its caller will try again.
        check_expected(conversation, expect, tail.position)
        if tail.newer:
            raise StoreVersion(where=log.data, reason="it holds records of a newer format")
        self._drop(conversation)
        tail.tidy(file)
        self._home.make_name_durable(log, file)
        return tail

    def adopt(self, conversation: str, data: bytes) -> Position:
        """Make a conversation of the bytes of a whole log, as `raw` gave them; all or nothing.

        The bytes are kept as they are, damage included, and are durable when this returns. No bytes:
        nothing is made.
        Raises: store-conflict: the conversation holds records. Otherwise as `append`.
        Not promised: that the seals check under another id than the log had; `verify` tells.
        """
        return self._put_whole(conversation, data, lambda log: not self.read_end(conversation))

    def grow(self, conversation: str, data: bytes) -> Position:
        """Make a conversation what a copy of its log is, of which it holds a beginning, or nothing yet.

        Raises: store-conflict: it holds something else. Otherwise as `adopt`.
        """
        return self._put_whole(conversation, data, lambda log: whole.begins(log, data))

    def _put_whole(
        self, conversation: str, data: bytes, fits: Callable[[reading.Log], bool]
    ) -> Position:
        self._check(conversation)
        log = self._home.log(conversation)
        if not data:
            return self.append(conversation, [], expect=0)
        deadline = time.monotonic() + self._lock_timeout_s
        self._home.make()
        with self._locked(log.lock, deadline):
            self._home.check_case(conversation)
            self._settle(log, deadline)
            if not fits(log):
                raise conflict(conversation, 0, self.read_end(conversation))
            self._changing(log)
            named = dict.fromkeys(erasing.attachments(data))
            with sweeping.keep(named, self.blobs, self._home.sweeping, deadline):
                whole.place(log, data)
        self._waiters.wake(conversation)
        return self.read_end(conversation)

    # -- removing

    def delete(self, conversation: str) -> Deleted:
        """Remove a conversation: its log, side files, its turns' events; its lock file stays.

        Attachments that no other log names go too. What runs or waits in it is refused, as in `Store`.
        Returns: what went; true when there was a log. Raises: store-busy, store-io, store-denied, store-read-only:
        once it was decided readers see no conversation, also then; the next writer, or deleting again, finishes.
        """
        self._check(conversation)
        log = self._home.log(conversation)
        if not self._home.is_there() or not any(map(files.found_at, (log.data, log.lock))):
            return Deleted(conversation=conversation)
        deadline = time.monotonic() + self._lock_timeout_s
        with self._locked(log.lock, deadline):
            self._home.check_case(conversation)
            plan = None
            with suppress(StoreCorrupt):  # It goes with the rest.
                plan = plans.read(log.plan, log.files)
            if plan is not None and plan.turn is not None:
                self._settle(log, deadline, whole=True)
            self._changing(log, quietly=False)
            begun = plan is not None and plan.turn is None
            report = removing.delete(self._home, log, self.blobs, deadline, begun=begun)
            log.debts().drop()
        self._waiters.wake(conversation)
        return report

    def erase(self, conversation: str, turn: str, *, expect: int | None = None) -> Erased:
        """Overwrite what a turn's records say, in place, and remove what belongs to it alone.

        Lines keep their places and lengths; the seals that follow still check. The turn's events, torn
        pieces that may be of it, and attachments that no other record names go too. What the records
        mean is not asked here, so not whether the turn has ended.
        Args: expect: as for `append`.
        Returns: what went, and what did not.
        Raises: store-conflict; and as `append`. Once the erasure was decided every reader sees it, also
        when this raises; the next writer to the conversation, or erasing again, finishes it.
        Not promised: that the bytes are gone from the disk's spare blocks, from backups, and from the
        memory of processes that read them before.
        """
        self._check(conversation)
        log = self._home.log(conversation)
        if not self._home.is_there() or files.found_at(log.data) is None:
            return self._nothing_to_erase(conversation, turn, expect)
        deadline = time.monotonic() + self._lock_timeout_s
        report = handout.with_room(lambda: self._erase(log, turn, expect, deadline))
        self._waiters.wake(conversation)
        return report

    def _nothing_to_erase(self, conversation: str, turn: str, expect: int | None) -> Erased:
        check_expected(conversation, expect or None, Position(0))
        return Erased(conversation=conversation, turn=turn)

    def _erase(self, log: reading.Log, turn: str, expect: int | None, deadline: float) -> Erased:
        with self._locked(log.lock, deadline):
            self._home.check_case(log.conversation)
            self._settle(log, deadline, whole=True)
            try:
                file = locks.acquire(log.data, deadline, create=False)
            except FileNotFoundError:
                return self._nothing_to_erase(log.conversation, turn, expect)
            with file:
                self._tail(log, file, expect).end_line(file)
                source = lines.FileSource(file, log.files)
                plan, report = plans.planned(source, log.conversation, turn)
                if plan.lines:
                    self._indexes.remove(log)
                    plans.write(log.stem, log.plan, plan, log.files)
                    removing.overwrite(log, file, plan, turn)
            report.files, swept = removing.remove_beside(
                self._home, log, self.blobs, turn, plan.attachments, deadline
            )
            report.attachments, report.attachments_kept = swept
            if plan.lines:
                removing.finish(log, turn)
        return report

    def sweep(self, *, older_than_s: float = 86_400.0) -> list[str]:
        """Remove attachments that no log of the folder names, and that are not young: what refused sends left.

        One that a writer is about to name it puts again.
        Args: older_than_s: seconds. Returns: their SHA-256. Raises: ValueError; store-busy, store-io and the like.
        """
        if not older_than_s >= 0:
            raise ValueError(f"older_than_s is a number of seconds, not {older_than_s!r}")
        until = time.monotonic() + self._lock_timeout_s
        return removing.sweep(self._home, self.blobs, older_than_s, until)

    def repair(
        self, conversation: str, *, copy: bytes | None = None, really: bool = True
    ) -> repairing.Repaired:
        """Put right what of a damaged log can be proven; what it replaced is kept (`repairing`).

        What was forgotten stays so, and no line that could be read is lost, whatever the copy is.
        Args: copy: the bytes of the log at another time. really: False: say what would be done.
        Raises: conversation-unknown: there is no log. store-io and the like.
        """
        if not isinstance(copy, bytes | None):
            raise TypeError(f"copy is the bytes of a log, not {type(copy).__name__}")
        return self._mend(
            conversation, lambda log, f: repairing.repair(log, f, copy, really=really)
        )

    def undo_repair(self, conversation: str) -> repairing.Repaired:
        """Put back what the last repair of a log changed, but for what a later append was made on."""
        return self._mend(conversation, repairing.undo)

    def _mend(self, conversation: str, work: Callable[..., T]) -> T:
        self._check(conversation)
        log, deadline = self._home.log(conversation), time.monotonic() + self._lock_timeout_s
        if not self._home.is_there() or files.found_at(log.data) is None:
            raise ConversationUnknown(conversation, self.folder)
        with self._locked(log.lock, deadline):
            self._settle(log, deadline, whole=True)
            with files.naming(log.data), locks.acquire(log.data, deadline, create=False) as file:
                log.debts().pay(file, log.files)
                self._changing(log)
                return handout.shallow(lambda: work(log, file))

    def _settle(self, log: reading.Log, deadline: float, *, whole: bool = False) -> None:
        """Finish what a process began to remove. The append lock is held. Args: whole: as for `removing.settle`."""
        plan = plans.read(log.plan, log.files)
        if plan is not None:
            self._changing(log)
            removing.settle(self._home, log, self.blobs, plan, deadline, whole=whole)

    # -- reading

    def read(self, conversation: str, after: int = 0) -> Records[dict[str, Any]]:
        """Return the records after a position, in order, as fresh dicts without `ledger`.

        Exactly as many as the count says: a line that cannot be handed out (no record, damaged, void)
        is `{"kind": "unreadable", "seq": k}` in its place. A conversation that does not exist holds
        no records. Never waits for a writer.
        Raises: store-gone: `after` is beyond the end, or of another incarnation; read from 0.
        store-corrupt: the store is strict and a line is damaged. store-io, store-denied, store-link.
        """
        return self._read(conversation, after, handout.plain)

    def _read(self, conversation: str, after: int | None, decode: reading.Decode[T]) -> Records[T]:
        """Args: after: None: the end, as far as it is known."""
        self._check(conversation)
        if after is not None and after < 0:
            raise ValueError("a position is not negative")
        return handout.shallow(lambda: self._read_log(conversation, after, decode))

    def _read_log(
        self, conversation: str, after: int | None, decode: reading.Decode[T]
    ) -> Records[T]:
        log = self._home.log(conversation)
        try:
            if not self._home.is_there():
                raise FileNotFoundError
            with files.Descriptor(log.data, os.O_RDONLY) as file:
                known = self._known.get(conversation)
                if known is None:
                    self._home.check_case(conversation)
                if after is None:
                    known = known or reading.found_end(log, file)
                    after = known.count
                elif known is not None and after < known.count and not known.scanner.is_sealed:
                    earlier = self._earlier.get(conversation)
                    known = earlier if earlier is not None and earlier.count <= after else known
                found, known = reading.read(
                    log, file, after, known=known, decode=decode, strict=self._strict
                )
        except FileNotFoundError:
            self._forget_gone(log)
            if after:
                raise StoreGone(conversation=conversation, after=int(after), found=0) from None
            return Records([], Position(0))
        except StoreGone:
            self._drop(conversation)
            raise
        self._remember(conversation, known)
        return found

    def raw(self, conversation: str) -> bytes:
        """Return the whole log as it is, for `adopt`; no bytes when there is none.

        An append that is being written is left out. Raises as `read`.
        """
        self._check(conversation)
        log = self._home.log(conversation)
        try:
            return whole.copy(log) if self._home.is_there() else b""
        except FileNotFoundError:
            return b""

    def damage(self, conversation: str) -> list[verifying.Finding]:
        """Return the lines that are lost or altered, in order; at most the first thousand."""
        return self.verify(conversation).damage

    def verify(self, conversation: str) -> verifying.Report:
        """Check every line of a log, in bounded memory, and report all that is not sealed.

        Raises: store-io, store-denied, store-link.
        """
        self._check(conversation)
        log = self._home.log(conversation)
        try:
            if not self._home.is_there():
                raise FileNotFoundError
            with files.Descriptor(log.data, os.O_RDONLY) as file:
                source = plans.source(file, log.files, log.plan)
                report = handout.shallow(lambda: verifying.verify(source, conversation))
        except FileNotFoundError:
            return verifying.Report(conversation=conversation)
        report.set_aside, report.wide = self._home.beside(conversation)
        return report

    def exists(self) -> bool:
        """Say whether there is a store in its folder: whether anything was ever written there."""
        return self._home.is_there() or os.path.isdir(os.path.join(self.folder, "attachments"))

    def is_here(self) -> bool:
        """Say whether its folder was not removed or replaced since this store worked in it."""
        return self._home.is_same()

    def hold(self, holder: str) -> None:
        """Let others see that this process lives, until it ends: see `LedgerStore`."""
        self._holders.hold(holder)

    def is_dead(self, holder: str) -> bool:
        """Say whether a holder is known to have ended: see `LedgerStore`."""
        return self._holders.is_dead(holder)

    def _check(self, conversation: object) -> None:
        names.check(conversation, windows=os.name == "nt")

    def _locked(
        self, path: str, deadline: float, still: Callable[[], object] | None = None
    ) -> locks.LockedFile:
        try:
            return locks.acquire(path, deadline, create=True, still=still)
        except FileNotFoundError as error:
            raise self._home.removed() from error

    # -- what is remembered

    def _remember(self, conversation: str, known: lines.Known | None) -> None:
        if not known:
            return
        if len(self._known) >= _REMEMBERED:
            self._known, self._earlier = {}, {}
            self._home.forget()
        before = self._known.get(conversation)
        if before and before.count < known.count and not known.scanner.is_sealed:
            self._earlier[conversation] = before
        self._known[conversation] = known

    def _drop(self, conversation: str) -> None:
        self._known.pop(conversation, None)
        self._earlier.pop(conversation, None)

    def _forget(self, conversation: str) -> None:
        self._drop(conversation)
        self._home.forget(conversation)

    def _forget_gone(self, log: reading.Log) -> None:
        self._forget(log.conversation)
        log.debts().drop()

    def _changing(self, log: reading.Log, *, quietly: bool = True) -> None:
        """Forget all that is known of a log, before bytes of it are changed. The append lock is held."""
        self._forget(log.conversation)
        self._indexes.remove(log, quietly=quietly)

    def before_fork(self) -> None:
        """Nothing is held: see the module's comment."""

    def after_fork(self, *, child: bool) -> None:
        """In the child, leave to the parent who waits there and what its disk owes it."""
        if child:
            self._waiters, self._home.flushes = waking.Waiters(), Flushes()
