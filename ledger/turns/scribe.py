"""What a running turn says, written beside the store, so that other processes can follow it.

Pieces are joined for a moment, so that a fast model does not cost a write a word (see `passes`); a short turn
is one write. This is for watching only: what must survive is in the records. So nothing here fails a turn, and
a log that somebody else has taken over (a process that resumed the turn) is left to them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

from ledger.errors import EventRefused, RecordInvalid
from ledger.records import times
from ledger.records.events import Event, Writer
from ledger.turns import keeper, passes
from ledger.turns.commands import Outcome
from ledger.turns.log import Events
from ledger.turns.pieces import Pieces
from ledger.turns.programs import Description
from ledger.turns.world import World

TRIES = 20
"""How often the last events are tried again, once a second."""
MOST_WAITING = 10_000
"""How many events wait for a store that takes none; then watching this turn is given up."""


class Scribe:
    """Writes the events of one turn. Safe for threads; only `flush` and `end` touch the store."""

    def __init__(
        self,
        events: Events,
        turn: str,
        program: Description,
        pieces: Pieces,
        world: World,
        writer: Writer | None = None,
        lane: Hashable = None,
        *,
        redacted: Callable[[Any, str], Any] = lambda value, path: value,
    ) -> None:
        self._program = program
        self._pieces = pieces
        self._world = world
        self._writer = writer if writer is not None else Writer(turn, program.name)
        self._lane = lane
        # None: it is another implementation's. One that waits for nobody is written to for all turns together.
        at_once: bool | None = getattr(events, "writes_at_once", None)
        self._pass: Hashable = (id(events), "passes") if at_once else lane
        self._add: Callable[[list[Event]], Any] = getattr(
            events, "extend" if at_once is None else "write"
        )
        self._redacted = redacted
        self._waiting: list[Event] = []
        self._written = 0
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._due = False
        self._over = False
        self.ours: Callable[[], bool | None] = lambda: True
        """Asked before a write: whether the turn is still this process's to tell of. None: it cannot be told now."""

    def begin(self, inputs: dict[str, Any], saw: list[Any]) -> None:
        """The turn was recorded, and its program is about to be called.

        It is written with the first pieces, or when the turn is first looked at: a short turn is one write.
        """
        told, at = described(self._program), self._now()
        try:
            self._waiting.append(self._writer.started(told, inputs, saw=saw, at=at))
        except (
            EventRefused
        ):  # A name or a value that this format cannot say: there is no watching it.
            self._over = True
            return
        self._pieces.listen(self.soon)

    def begin_again(self, attempt: int) -> None:
        """The turn was resumed: what was shown of its answer before does not count."""
        self._waiting.append(self._writer.request(attempt, None, at=self._now()))
        self._pieces.listen(self.soon)
        self.soon()

    def step(self, kind: str, *, name: str, **keys: Any) -> None:
        """The program calls a tool or has its result, or a person is asked or answers."""
        named = keys if kind == "approved" else {"name": name, **keys}
        with self._writing, suppress(EventRefused):
            self._gather()
            self._waiting.append(getattr(self._writer, kind)(**named, at=self._now()))
        self.soon()

    @property
    def waits(self) -> bool:
        """Whether there is something to write; pieces are written by themselves."""
        return bool(self._waiting) and not self._over

    def flush(self) -> None:
        """Write what was said since the last time, if the turn is still this process's.

        It waits for no other thread, since other turns wait for this: what is not to be had now is left for the next
        pass.
        """
        with self._lock:
            self._due = False
        ours = self.ours()
        if ours is None or (ours and not self._write_at_once()):
            self.soon()

    def _write_at_once(self) -> bool:
        if not self._writing.acquire(blocking=False):
            return False
        try:
            self._write()
        finally:
            self._writing.release()
        return True

    def end(self, outcome: Outcome) -> None:
        """Write the rest, and how the turn ended; a store that takes it not now is asked again for a while."""
        with self._writing:
            if not self._over:
                self._write(outcome)
                self._over = True
        self._again(TRIES)

    def _again(self, left: int) -> None:
        if self._waiting and left:
            keeper.later(1.0, lambda: self._rest(left), self._lane)

    def _rest(self, left: int) -> None:
        with self._writing:
            self._send()
        self._again(left - 1)

    def leave(self, *, write: bool = False) -> None:
        """Write no more: the turn is somebody else's, or waits.

        Args: write: the rest first; else no other thread is waited for.
        """
        if not write:
            self._over = True
            return
        with self._writing:
            self._write()
            self._over = True

    def soon(self) -> None:
        """Have what was said written, together with what is said until then."""
        # Asked without the lock, too: whoever takes `_due` back looks for what was said only after that.
        if self._due or self._over:
            return
        with self._lock:
            if self._due:
                return
            self._due = True
        try:
            passes.soon(self.flush, self._pass)
        except BaseException:  # An interrupt: the next piece asks again.
            self._due = False
            raise

    def _write(self, outcome: Outcome | None = None) -> None:
        if self._over:
            return
        try:
            self._gather(outcome)
            if outcome is not None:
                self._waiting.append(last(self._writer, outcome, at=self._now()))
        except (EventRefused, RecordInvalid):
            self._give_up()
        else:
            self._send()

    def _send(self) -> None:
        try:
            if self._waiting:
                self._add(self._waiting)
            self._waiting = []
        except EventRefused:
            self._give_up()
        except Exception:
            # The store takes none now. They are sent again with the next, which does no harm.
            if len(self._waiting) > MOST_WAITING:
                self._give_up()

    def _give_up(self) -> None:
        self._over, self._waiting = True, []

    def _gather(self, outcome: Outcome | None = None) -> None:
        """Make one event of the pieces that are not written yet. What is redacted is told at the end, whole."""
        if self._pieces.redacted:
            done = outcome is not None and outcome.state == "done"
            text = self._pieces.text if done else self._pieces.broken_off
            if outcome is not None and (text := self._redacted(text, "partial")):
                event = self._writer.text(self._program.answer, text, at=self._now())
                self._waiting.append(event)
            return
        pieces, _ = self._pieces.after(self._written)
        self._written += len(pieces)
        if text := "".join(pieces):
            event = self._writer.text(self._program.answer, text, at=self._now())
            self._waiting.append(event)

    def _now(self) -> str:
        return times.to_text(self._world.now())


def described(program: Description) -> dict[str, Any]:
    """Return what the first event says of a program."""
    return {
        "name": program.name,
        "kind": "module",
        "module": program.module,
        "version": program.version,
        "interface": program.interface_hash,
        "answer": program.answer,
    }


def last(writer: Writer, outcome: Outcome, *, at: str) -> Event:
    """Return the event that says how a turn ended."""
    if outcome.state == "done":
        return writer.done(outcome.value, at=at)
    if outcome.error:
        return writer.failed(outcome.error, at=at)
    code = f"turn-{outcome.state}"
    told = {"type": "Cancelled", "code": code, "message": f"the turn was {outcome.state}"}
    return writer.failed(told, at=at)
