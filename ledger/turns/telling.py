"""What a running turn and its model say to each other, and messages in a provider's form.

A program may note what its model said, as the provider has it. Results of tools need no note: a call that was
noted and has no result gets what the turn's tool gave under the call's id. A program that notes nothing has
its exchange told by its tools and its answer (`views.exchange`), so nothing of it is kept twice.
"""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from typing import Any

from ledger.errors import AttachmentMissing, LossWarning
from ledger.formats import dialects, replies
from ledger.formats.converting import Read
from ledger.formats.replies import Said
from ledger.records import messages, values
from ledger.records.messages import Called, Message
from ledger.turns import loops, raising
from ledger.turns.attachments import lowered
from ledger.turns.log import Log
from ledger.views.steps import MADE_UP


class Exchange:
    """The exchange of one turn, or of a helper's call, while it runs. Safe for threads.

    Args: before: gives what it is shown. asked: its user side. read: gives the bytes of attachments.
    """

    def __init__(
        self,
        before: Callable[[], list[Message]] = list,
        asked: list[Message] | None = None,
        read: Read | None = None,
    ) -> None:
        self._before = before
        self._shown: list[Message] | None = None
        self._asked = asked or []
        self.read = read
        """Gives the bytes of attachments."""
        self._noted: list[Message] = []
        self._called: list[Called] = []
        self._lock = threading.Lock()

    def note(self, said: Any, format: str | None) -> Said:
        """Add messages that came after the user side, in order.

        Returns: them, and what a whole reply tells besides.
        Raises: record-invalid, import-invalid, ValueError; nothing was added.
        """
        found = replies.read(format, said)
        values.check(found.messages, "messages")
        values.check(found.model, "model", references=False)
        with self._lock:
            if not self._noted:
                messages.check_answer_side(found.messages)
            self._noted += copy.deepcopy(found.messages)
        return found

    def called(self, id: str | None, name: str, input: Any, made: Any) -> Any:
        """Remember what a tool gave. Args: made: that; on a loop, what gives it when it is awaited."""
        if loops.running_loop() is not None:
            return self._awaited(id, name, input, made)
        self._add(id, name, input, made)
        return made

    def failed(self, id: str | None, name: str, input: Any, error: Exception) -> None:
        """Remember what a tool raised, as its model is told."""
        self._add(id, name, input, f"{type(error).__name__}: {raising.text_of(error)}")

    async def _awaited(self, id: str | None, name: str, input: Any, made: Any) -> Any:
        try:
            value = await made
        except Exception as error:
            self.failed(id, name, input, error)
            raise
        self._add(id, name, input, value)
        return value

    def _add(self, id: str | None, name: str, input: Any, output: Any) -> None:
        plain = [copy.deepcopy(lowered(value, name, [])) for value in (input, output)]
        with self._lock:
            known = id if id is not None else f"{MADE_UP}{len(self._called) + 1}"
            self._called.append(Called(known, name, *plain))

    def recorded(self, *answer: Any) -> list[Message] | None:
        """Return what the record of the turn's end has; None: nothing was noted.

        Args: answer: what the program answered, where it did: the last reply, if none was noted.
        """
        with self._lock:
            if not self._noted:
                return None
            said = messages.answered(self._noted, self._called)
        replied = messages.without_rounds(said)
        if answer and not any(message["role"] == "assistant" for message in replied):
            said += messages.from_result(answer[0])
        return copy.deepcopy(said)

    @property
    def so_far(self) -> list[Message]:
        """What it is shown, its user side, and what came after that by now."""
        with self._lock:
            called = list(self._called)
        after = self.recorded()
        if after is None:
            after = [message for call in called for message in messages.round_of([call])]
        if self._shown is None:  # It is the same for the whole turn.
            self._shown = self._before()
        return copy.deepcopy([*self._shown, *self._asked, *after])


def told(
    said: list[Message],
    format: str | None,
    *,
    instructions: str | None = None,
    strict: bool = False,
    read: Read | None = None,
) -> Any:
    """Return messages in a provider's form; None: neutral. What cannot be said there is warned of.

    Args: instructions: the text of a system's message to begin with.
    Raises: ValueError: there is no such format. TypeError. messages-lossy: something cannot be said, and
    `strict` forbids that.
    """
    if instructions is not None:
        if not isinstance(instructions, str):
            raise TypeError(f"instructions are text, not {type(instructions).__name__}")
        said = [messages.text("system", instructions), *said]
    if format is None:
        return said
    converted = dialects.named(format).to_provider(said, strict=strict, read=read)
    if converted.losses:
        listed = "; ".join(map(str, converted.losses))
        warnings.warn(f"not all can be said in {format}: {listed}", LossWarning, stacklevel=3)
    return converted.content


def reading(log: Log) -> Read:
    """Return what gives the bytes of attachments of a log's store; None of those that are not there."""

    def read(sha256: str) -> bytes | None:
        blobs = getattr(log.calls, "blobs", None)
        try:
            return None if blobs is None else bytes(blobs.get(sha256))
        except AttachmentMissing:
            return None

    return read
