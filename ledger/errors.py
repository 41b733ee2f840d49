"""Every error of the ledger: one class for each different thing a caller does next.

The stable word is `code`; it is what another process, another language or a log line compares. The fields
say where; the message is built from them and never holds a record's content. All are picklable.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, dataclass_transform


def counted(count: int, what: str) -> str:
    """Return a count and what is counted, in words: `1 turn`, `2 turns`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


@dataclass_transform(eq_default=False, field_specifiers=(field,))
@dataclass(eq=False, init=False, repr=False)
class LedgerError(Exception):
    """Base of every error this package raises on purpose. Next: look at `code`.

    The annotations of a class are its fields, as in a dataclass; they are given by position or by name.
    """

    code: ClassVar[str] = "ledger"

    def __init_subclass__(cls) -> None:
        # Each is a dataclass; methods of its own would be made at import, and cost more than all else there.
        dataclass(eq=False, init=False, repr=False)(cls)

    def __init__(self, *given: Any, **named: Any) -> None:
        known = {each.name: each.default for each in fields(self)}
        values = dict(zip(known, given, strict=False)) | named
        needed = {name for name, default in known.items() if default is MISSING}
        if len(given) + len(named) > len(values) or not needed <= values.keys() <= known.keys():
            raise TypeError(f"{type(self).__name__} takes {', '.join(known) or 'nothing'}")
        for name, value in values.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        told = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
        return f"{type(self).__qualname__}({told})"

    def message(self) -> str:
        """The sentence for a person: what happened, where, and the next step."""
        return self.code

    def __str__(self) -> str:
        return self.message()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **{f.name: getattr(self, f.name) for f in fields(self)}), ()


class DamageWarning(UserWarning):
    """Told once when a conversation with damaged lines is opened. Next: `turn-ledger verify`."""


class LossWarning(UserWarning):
    """Told when a provider cannot be told all of some messages. Next: see the losses; `strict=True` refuses them."""


# -- what was asked cannot be done as asked ---------------------------------------------------------


class ConversationIdInvalid(LedgerError):
    """Raised when a conversation id cannot be a safe file name. Next: choose another id."""

    code: ClassVar[str] = "conversation-id"
    conversation: str
    """The id as given, shortened for display."""
    reason: str

    def message(self) -> str:
        told = f"conversation id {self.conversation!r} {self.reason}; use 1 to 200 letters"
        return f"{told}, digits, '.', '_' or '-', starting with a letter or digit"


class ConversationUnknown(LedgerError):
    """Raised when a command names a conversation that holds nothing. Next: list what is there."""

    code: ClassVar[str] = "conversation-unknown"
    conversation: str
    where: str
    """The store."""
    like: int = 0
    meant: str | None = None
    """How many ids there begin so; the one that does, where only a whole id is taken."""

    def message(self) -> str:
        if self.meant is not None:
            return f"{self.conversation!r} begins {self.meant!r} alone; this takes the whole id"
        if self.like:
            return f"{self.like} conversations in {self.where} begin with {self.conversation!r}"
        told = f"no conversation {self.conversation!r} in {self.where}; `turn-ledger list` shows"
        return f"{told} what is there, --store names another place"


class SignatureChanged(LedgerError):
    """Raised when a program's fields differ from those of the turns it would be shown.

    Next: map names with `rename`; or leave the fields that differ out of what is shown, where `without` names
    them, by a `context` such as `all_turns(without=[...])`; or start another conversation, or continue from a turn
    that fits. Where `earlier_without` names outputs, nothing else differs: name them in `earlier_without`.
    """

    code: ClassVar[str] = "conversation-signature"
    program: str
    differences: str
    earlier_without: tuple[str, ...] = ()
    """The added outputs, where accepting them is all that is needed."""
    without: tuple[str, ...] = ()
    """The fields without which earlier turns fit, where an input and an output are left; also those left out by now."""

    def message(self) -> str:
        accept = f"accept it with earlier_without={list(self.earlier_without)!r}, "
        leave = f"leave it out of what is shown, with context=ledger.all_turns(without={list(self.without)!r}), "
        way = accept if self.earlier_without else leave if self.without else ""
        told = f"{self.program}: its earlier turns in this conversation have other inputs"
        told = f"{told} or outputs: {self.differences}; {way}map names with"
        return f"{told} `rename`, continue from a turn that fits, or start another conversation"


class SummaryFailed(LedgerError):
    """Raised when a function that makes summaries fails, or gives no text. Next: mend it, and send again."""

    code: ClassVar[str] = "summary-failed"
    conversation: str
    by: str
    reason: str

    def message(self) -> str:
        told = f"conversation {self.conversation}: {self.by} made no summary: {self.reason}"
        return f"{told}; no turn was recorded"


class ContentRefused(LedgerError):
    """Raised when a turn has a field that may not be kept, and its store would keep it.

    Next: use an in-memory store, or let the field be kept (`ledger.keep`, or the program's `keep`).
    """

    code: ClassVar[str] = "conversation-content"
    fields: tuple[str, ...]
    store: str
    """The store's class."""

    def message(self) -> str:
        told = f"{', '.join(self.fields)} may not be kept, and {self.store} keeps what a turn says"
        return f"{told}; use an in-memory store, or let it be kept; nothing was recorded"


class Opaque(LedgerError):
    """Raised when a program has a field whose values have no JSON form. Next: give it a type."""

    code: ClassVar[str] = "conversation-opaque"
    program: str
    field: str
    reason: str

    def message(self) -> str:
        told = f"{self.program}: {self.field} {self.reason}, and a turn is kept as data by name"
        return f"{told}; change the program's parameters or their types"


class Busy(LedgerError):
    """Raised when the turn to continue from is still running and the view refuses to wait.

    Next: send again later, wait for the turn, or open with sends="queue" or sends="branch".
    """

    code: ClassVar[str] = "conversation-busy"
    conversation: str
    turn: str
    state: str = "running"
    advice: str = 'wait for it, continue from another turn, or send with sends="branch"'

    def message(self) -> str:
        return f"conversation {self.conversation}: turn {self.turn} is {self.state}; {self.advice}"


class BusyWaiting(Busy):
    """Raised when the turn to continue from waits for a person. Next: answer, or continue from another turn."""

    state: str = "waiting"
    advice: str = 'continue from another turn, or send with sends="branch"'
    questions: tuple[Any, ...] = field(default=(), repr=False)
    """The open questions, as the turn's `waiting` record holds them."""

    def message(self) -> str:
        what = (
            f"waits for {counted(len(self.questions), 'answer')} of a person; "
            "approve or deny each and resume it"
            if self.questions
            else "has all its answers, and nobody went on with it yet; resume it"
        )
        return f"conversation {self.conversation}: turn {self.turn} {what}, {self.advice}"


class HeadMoved(LedgerError):
    """Raised when the newest turn is not the one that a send or a list of messages goes on from.

    Next: read the turns and send anew, or keep both: with `continue_from`, of a list with moved="branch".
    """

    code: ClassVar[str] = "conversation-moved"
    conversation: str
    expected: str | None
    found: str | None

    def message(self) -> str:
        news = f"the newest turn is {self.found or 'none'}, not {self.expected or 'none'}"
        return f'conversation {self.conversation}: {news}; read it, or keep both: continue_from, moved="branch"'


class Nested(LedgerError):
    """Raised when a turn would be made from inside a turn: it could wait for itself.

    Next: make it outside of programs; another conversation than the turn's own can be allowed with
    `remembers={that_conversation: "own"}`, where the turn's own is opened.
    """

    code: ClassVar[str] = "conversation-nested"
    conversation: str
    turn: str
    """The turn that is running here."""
    inside: str = ""
    """The conversation of that turn."""

    def message(self) -> str:
        told = f"no turn of conversation {self.conversation} is made inside turn {self.turn}"
        if self.inside in ("", self.conversation):
            return f"{told}: it could wait for itself; make it outside of programs"
        allow = f'remembers={{<conversation {self.conversation}>: "own"}}'
        return f"{told} of {self.inside}; to allow it, open {self.inside} with {allow}"


class TurnUnknown(LedgerError):
    """Raised when no turn, or more than one, answers to a name. Next: list the turns."""

    code: ClassVar[str] = "turn-unknown"
    conversation: str
    turn: str
    reason: str = "is not a turn of it"

    def message(self) -> str:
        return f"conversation {self.conversation}: {self.turn!r} {self.reason}; list the turns"


class TurnState(LedgerError):
    """Raised when a turn is not in a state that allows what was asked. Next: look at its state."""

    code: ClassVar[str] = "turn-state"
    turn: str
    state: str
    reason: str

    def message(self) -> str:
        return f"turn {self.turn} is {self.state}: {self.reason}"


class TurnWaiting(LedgerError):
    """Raised when a turn has no result yet because it waits for a person. Next: answer it."""

    code: ClassVar[str] = "turn-waiting"
    turn: str
    questions: tuple[Any, ...] = field(default=(), repr=False)

    def message(self) -> str:
        asked = ", ".join(str(q.get("path")) for q in self.questions[:5] if isinstance(q, dict))
        about = f" (about {asked})" if asked else ""
        told = f"turn {self.turn} waits for {counted(len(self.questions), 'answer')} of a person{about}"
        return f"{told}; approve or deny each, then resume the turn"


class TurnUnfinished(LedgerError):
    """Raised when tools of a turn started and have no result: they may have run.

    Next: find out, and resume with `results={id: what it gave}` or `rerun=[id]`.
    """

    code: ClassVar[str] = "turn-unfinished"
    turn: str
    tools: tuple[str, ...]
    """The key of each tool call, as in `turn.unfinished`."""
    names: tuple[str, ...]
    """The name of each."""

    def message(self) -> str:
        named = (f"{key} ({name})" for key, name in zip(self.tools, self.names, strict=True))
        return (
            f"turn {self.turn}: tools that started may have run, and what they gave is not known: "
            f"{', '.join(named)}; resume with results={{key: output}}, or rerun=[key]"
        )


class TurnChanged(LedgerError):
    """Raised when a resumed program did not make the calls that it had made before.

    Next: resume with the program as it was, or abandon the turn and send anew.
    """

    code: ClassVar[str] = "turn-changed"
    turn: str
    left: tuple[str, ...]
    """The recorded steps that it did not come to again: `tool <id>`, `reply <key>`."""

    def message(self) -> str:
        return (
            f"turn {self.turn}: resumed, its program did not make {len(self.left)} of the calls recorded "
            f"before: {', '.join(self.left[:5])}; resume with the program as it was, or abandon the turn"
        )


class QuestionUnknown(LedgerError):
    """Raised when an answer names no question that is open. Next: look at `turn.waiting` for those that are."""

    code: ClassVar[str] = "question-unknown"
    turn: str
    reason: str

    def message(self) -> str:
        return f"turn {self.turn}: {self.reason}; turn.waiting has the open questions"


class Cancelled(LedgerError):
    """Raised when the turn was stopped. Next: nothing, somebody asked for it; what it did stands (`turn.steps`)."""

    code: ClassVar[str] = "turn-stopped"
    turn: str

    def message(self) -> str:
        return f"turn {self.turn} was stopped; what it had done stands"


class RequestMismatch(LedgerError):
    """Raised when a request id comes back with other inputs. Next: use a new request id."""

    code: ClassVar[str] = "request-mismatch"
    turn: str
    request_id: str

    def message(self) -> str:
        told = f"request {self.request_id!r} was already taken as turn {self.turn}"
        return f"{told}, with other inputs; use a new request id"


class LeaseLost(LedgerError):
    """Raised when a turn's record comes from a process that no longer holds the turn.

    Next: drop the work; the turn's outcome is whatever its new holder records.
    """

    code: ClassVar[str] = "lease-lost"
    turn: str
    reason: str

    def message(self) -> str:
        return f"turn {self.turn}: {self.reason}; nothing was recorded"


class RecordInvalid(LedgerError):
    """Raised when a value cannot be kept exactly. Next: convert it at the path that is named."""

    code: ClassVar[str] = "record-invalid"
    path: str
    """Where in the record: `inputs.items[3].price`."""
    reason: str

    def message(self) -> str:
        return f"{self.path or 'the record'}: {self.reason}; nothing was stored, convert it first"


class RecordTooLarge(LedgerError):
    """Raised when one record is over the size limit. Next: keep bulk as an attachment."""

    code: ClassVar[str] = "record-too-large"
    size_bytes: int
    limit_bytes: int

    def message(self) -> str:
        told = f"a record of {self.size_bytes:,} bytes is over the limit of {self.limit_bytes:,}"
        return f"{told}; keep large content as an attachment; nothing was stored"


class AttachmentMissing(LedgerError):
    """Raised when the bytes of an attachment are not in the store. Next: restore that one file."""

    code: ClassVar[str] = "attachment-missing"
    sha256: str

    def message(self) -> str:
        return f"the bytes of attachment {self.sha256} are not in this store; restore that file"


class ImportInvalid(LedgerError):
    """Raised when nothing, or contradicting content, would be imported. Next: read the reason.

    Of several paths, all that can be imported is imported before.
    """

    code: ClassVar[str] = "import-invalid"
    source: str
    reason: str
    report: Any = field(default=None, repr=False)
    """Of `import_conversations`: its `Report`, with what was imported from the other paths."""

    def message(self) -> str:
        return f"{self.source}: {self.reason}"


class MessagesLossy(LedgerError):
    """Raised when a strict conversion would lose something. Next: change that, or convert without `strict`."""

    code: ClassVar[str] = "messages-lossy"
    format: str
    losses: tuple[str, ...]
    """Each with its place: `messages[3].parts[1]: why`."""

    def message(self) -> str:
        return f"not all can be said in {self.format}: {'; '.join(self.losses)}"


# -- events of running turns -----------------------------------------------------------------------


class EventRefused(LedgerError):
    """Raised when a log of events does not take an event, or does not have one.

    Next: by its code, which is the instance's. event-conflict, event-after-end: stop writing, the log
    went on without this writer. event-gap: send what is missing first. event-malformed, event-start:
    mend the event. event-unknown: read from the beginning.
    """

    code: str = "event-malformed"  # type: ignore[misc]
    """`event-malformed`, `event-unknown`, `event-gap`, `event-conflict`, `event-after-end`, `event-start`."""
    reason: str = ""
    tree: str = ""
    """The log; empty when it is not known."""
    event: dict[str, int] | None = None
    """The place of the event that is refused: its `writer` and `seq`."""

    def message(self) -> str:
        place = f", event {self.event['writer']}:{self.event['seq']}" if self.event else ""
        step = _AFTER_EVENT_REFUSED.get(self.code, "look at its code")
        return f"the log of events {self.tree or '(unnamed)'}{place}: {self.reason}; {step}"


_AFTER_EVENT_REFUSED = {
    **dict.fromkeys(("event-conflict", "event-after-end"), "stop writing"),
    **dict.fromkeys(("event-malformed", "event-start"), "mend the event"),
    "event-gap": "send what is missing first",
    "event-unknown": "read from the beginning",
}


# -- stores ----------------------------------------------------------------------------------------


class StoreConflict(LedgerError):
    """Raised when a conversation is not at the expected position. Next: read, decide again, retry."""

    code: ClassVar[str] = "store-conflict"
    conversation: str
    expected: int
    found: int
    """How many records it holds. Equal to `expected` when it was deleted and made anew."""
    reason: str = ""
    """What else is in the way, with the next step in it; empty: nothing is."""

    def message(self) -> str:
        what = f"holds {self.found} records, not {self.expected}; read again and retry"
        if self.expected == self.found:
            what = "is another one since it was read (made anew, or restored); read again and retry"
        return f"conversation {self.conversation} {self.reason or what}"


class StoreGone(LedgerError):
    """Raised when the log that was read is gone: deleted, or replaced. Next: forget what was read, read from 0."""

    code: ClassVar[str] = "store-gone"
    conversation: str
    after: int
    found: int

    def message(self) -> str:
        return (
            f"conversation {self.conversation} was deleted or replaced meanwhile: position {self.after} is not in this "
            f"log (it holds {self.found} records); nothing was recorded: read from 0, or begin anew"
        )


class StoreFailure(LedgerError):
    """Base of what can go wrong at a place in a store: an operation, a path, a reason."""

    code: ClassVar[str] = "store-io"
    where: str
    """The file or folder, never a record's content."""
    reason: str

    next_step: ClassVar[str] = "look at the file system or the database, then try again"

    def message(self) -> str:
        return f"{self.where}: {self.reason}; {self.next_step}"


class StoreIO(StoreFailure):
    """Raised when the system or the database refuses a read or a write. Next: look at it, try again."""


class StoreFull(StoreFailure):
    """Raised when there is no room: nothing of the append counts. Next: make room, append again."""

    code: ClassVar[str] = "store-full"
    next_step: ClassVar[str] = "nothing was recorded; make room and append again"


class StoreUnknown(StoreFailure):
    """Raised when a flush failed, or a database was lost in an append: the records may be there.

    Next: read, and look whether they are there, before appending again.
    """

    code: ClassVar[str] = "store-unknown"
    next_step: ClassVar[str] = "whether the records are durable is not known; read before retrying"


class StoreBusy(StoreFailure):
    """Raised when another process held the append lock for the whole waiting time. Next: retry."""

    code: ClassVar[str] = "store-busy"
    next_step: ClassVar[str] = "nothing was recorded; try again, or look for a stopped process"


class StoreLink(StoreFailure):
    """Raised when a path of the store is a link, a device or the like. Next: find out whose it is; remove it."""

    code: ClassVar[str] = "store-link"
    next_step: ClassVar[str] = "it was not followed; find out who put it there and remove it"


class StoreDenied(StoreFailure):
    """Raised when the rights are missing, or others may write to the folder. Next: mend the rights."""

    code: ClassVar[str] = "store-denied"
    next_step: ClassVar[str] = "mend its owner, its mode or the rights"


class StoreReadOnly(StoreFailure):
    """Raised when appending to a store that can only be read. Next: open it where it is writable."""

    code: ClassVar[str] = "store-read-only"
    next_step: ClassVar[str] = "it can be read here; append where it is writable"


class StoreVersion(StoreFailure):
    """Raised when a log holds records of a newer format, or a database newer tables. Next: upgrade."""

    code: ClassVar[str] = "store-version"
    next_step: ClassVar[str] = (
        "upgrade turn-ledger; a log can be read as far as this version knows it"
    )


class StoreCorrupt(LedgerError):
    """Raised when the bytes of a record, or of one field of it, do not read. Next: verify the log."""

    code: ClassVar[str] = "store-corrupt"
    where: str
    seq: int
    reason: str

    def message(self) -> str:
        if not self.seq:
            return f"{self.where}: {self.reason}; put it back from a backup"
        told = f"{self.where}, record {self.seq}: {self.reason}"
        return f"{told}; run `turn-ledger verify` to see all"


class StoreUnsupported(LedgerError):
    """Raised when a store lacks an optional method that was needed. Next: use a store that has it."""

    code: ClassVar[str] = "store-unsupported"
    store: str
    """The store's class."""
    method: str

    def message(self) -> str:
        what = {"blobs": "place for attachments (`blobs`)"}.get(self.method, f"{self.method}()")
        return f"{self.store} has no {what}; nothing was changed, use a store that has it"


def __dir__() -> list[str]:
    classes = [each for each in globals().values() if isinstance(each, type)]
    return [each.__name__ for each in classes if each.__module__ == __name__]
