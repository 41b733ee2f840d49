"""The events of a running turn: what an event is, how they are numbered, what may follow what.

Theory. One log of events belongs to one call tree, named by its outermost call: for us, a turn. An event
has a place, the writer that numbered it and its seq, and says after which place it comes. So a log has
one order whoever keeps it, an event that is sent twice is kept once, and one that goes missing is
noticed. A writer that goes on with a dead one's log claims a higher number; from then on the earlier
one is refused. Along a log seq only grows, so that its last event decides nearly everything.

Must stay in step: `admit` with functai's rules of an append; a test runs both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal, cast

import msgspec

from ledger.errors import ConversationIdInvalid, EventRefused, RecordInvalid, RecordTooLarge
from ledger.records import ids, values
from ledger.records.canonical import canonical
from ledger.records.event_format import FORMAT, is_like_before, is_named
from ledger.records.event_format import is_event as is_event

FIRST_WRITER = 1

Event = dict[str, Any]
Place = dict[str, int]
"""`{"writer", "seq"}`: with the log's tree, the name of an event."""
Answer = Literal["kept", "duplicate"]
Newest = Callable[[], Iterator[Event]]
"""Gives the kept events of a log, the last first, each time it is called."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


# -- places ----------------------------------------------------------------------------------------


def position(event: Mapping[str, Any]) -> Place:
    """Return an event's place."""
    return {"writer": event["writer"], "seq": event["seq"]}


def place_of(named: object) -> Place | None:
    """Return the place that a caller names: an event or its `writer` and `seq`, or both as text, `1:17`.

    None is the place before the first event. Raises: ValueError, TypeError: it names no place.
    """
    if named is None:
        return None
    if isinstance(named, str):
        parts = re.fullmatch(r"([0-9]{1,15}):([0-9]{1,15})", named)
        if parts is None:
            raise ValueError(f"{_PLACE}, not {named!r}")
        return {"writer": int(parts[1]), "seq": int(parts[2])}
    numbers = [named.get(k) for k in ("writer", "seq")] if isinstance(named, Mapping) else [None]
    if not all(type(number) in (int, float) for number in numbers):
        raise TypeError(f"{_PLACE}, not {named!r}")
    return position(cast(Event, named))


_PLACE = "an event is named by its writer and seq, {'writer': 1, 'seq': 17} or '1:17'"


def same(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> bool:
    """Say whether two places are one; None is the place before the first event."""
    if a is None or b is None:
        return a is b
    return bool(a.get("writer") == b.get("writer") and a.get("seq") == b.get("seq"))


def outline(event: Event) -> Event:
    """Return of the last event of a log as much as decides what may follow it."""
    return {key: event.get(key) for key in ("kind", "tree", "writer", "seq", "call")}


def finished(event: Mapping[str, Any] | None) -> bool:
    """Say whether a log ends with this event: its outermost call is done, or failed."""
    return (
        event is not None
        and event.get("kind") in ("done", "failed")
        and event.get("call") == event.get("tree")
    )


# -- lines -----------------------------------------------------------------------------------------


def line(event: Mapping[str, Any]) -> bytes:
    """Return an event that was checked as a line of a log, with its line feed."""
    return _encoder.encode(event) + b"\n"


def of_line(text: bytes, tree: str) -> Event | None:
    """Return the event that a line of a tree's log holds, or None: it does not read, or is of another.

    Only what names the event is asked here: of what another version wrote, nothing is held back.
    Raises: RecursionError: the caller stands too deep in its own stack.
    """
    if values.too_deep(text):
        return None
    try:
        event = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return event if is_named(event, tree) else None


# -- what may follow what --------------------------------------------------------------------------


def check_tree(tree: object) -> str:
    """Return the name of a log. Raises: event-malformed: it could be no file name."""
    try:
        return ids.check_conversation(tree)
    except ConversationIdInvalid as error:
        raise EventRefused(
            code="event-malformed", reason="the log's name is no safe name"
        ) from error


def fresh(batch: Iterable[object], tree: str, newest: Newest, writer: int) -> list[Event]:
    """Return those events of a batch that a log is to keep now; the others are kept already.

    Args: see `following`.
    Raises: EventRefused, naming the first that is refused; none is to be kept then.
    """
    events = (checked(given, tree) for given in batch)
    return following(events, next(newest(), None), newest, writer)


def following(
    events: Iterable[Event], last: Event | None, newest: Newest, writer: int
) -> list[Event]:
    """Return those of some events, checked ones, that a log is to keep now; the others are kept already.

    Each is judged as if it came alone, after those before it.
    Args: last: the last event that is kept, or its `outline`. newest: the log. writer: the last writer number
    that was given for it.
    Raises: EventRefused, naming the first that is refused; none is to be kept then.
    """
    new: list[Event] = []
    for event in events:
        if admit(event, last, writer, lambda: chain(reversed(new), newest())) == "kept":
            new.append(event)
            last = event
    return new


def checked(value: object, tree: str) -> Event:
    """Return a value as an event of a tree. Raises: event-malformed."""
    if not is_event(value) or not isinstance(value, Mapping) or value["tree"] != tree:
        place = _named(value)
        raise EventRefused(
            code="event-malformed", tree=tree, event=place, reason="it is no event of this log"
        )
    event, after = dict(value), value["after"]
    if after is not None and (event["seq"] <= after["seq"] or after["writer"] > event["writer"]):
        raise _refused("event-malformed", event, "it cannot come after the event it names")
    try:
        values.check(event, "event")
    except (RecordInvalid, RecordTooLarge) as error:
        raise _refused("event-malformed", event, error.message()) from error
    return event


def check_own(event: Event, keys: Mapping[str, Any]) -> None:
    """Check of a writer's event what is not as in the one before it: when it was, its kind, and the keys of that.

    Raises: event-malformed.
    """
    if not is_like_before(event):
        raise _refused("event-malformed", event, "it is no event of this log")
    try:
        values.check(dict(keys), "event")
    except (RecordInvalid, RecordTooLarge) as error:
        raise _refused("event-malformed", event, error.message()) from error


def admit(event: Event, last: Event | None, writer: int, newest: Newest) -> Answer:
    """Decide about adding an event to a log: "kept": add it; "duplicate": it is there.

    Args: last: the last event that is kept. writer: the last writer number that was given. newest: the
    log, asked only for an event that is not beyond its last.
    Raises: EventRefused: event-conflict, event-gap, event-after-end, event-start.
    """
    if last is not None and event["writer"] != writer:
        raise _refused("event-conflict", event, f"writer {writer} goes on with this log")
    if last is not None and event["seq"] <= last["seq"]:
        kept = _kept_at(event["seq"], newest())
        if kept is not None and canonical(kept) == canonical(event):
            return "duplicate"
        if kept is not None:
            raise _refused("event-conflict", event, "another event is kept in its place")
    if finished(last):
        raise _refused("event-after-end", event, "the log has ended")
    _check_follows(event, last)
    return "kept"


def _kept_at(seq: int, newest: Iterator[Event]) -> Event | None:
    for event in newest:
        if event["seq"] <= seq:
            return event if event["seq"] == seq else None
    return None


def _check_follows(event: Event, last: Event | None) -> None:
    end = None if last is None else position(last)
    after = event["after"]
    if not same(after, end):
        if (after["seq"] if after else 0) > (end["seq"] if end else 0):
            raise _refused("event-gap", event, "events before it are missing")
        raise _refused("event-conflict", event, "the log went on another way")
    opens = event["kind"] == "started" and event["call"] == event["tree"]
    if last is None and not (opens and event["writer"] == FIRST_WRITER):
        raise _refused("event-start", event, "a log begins with its outermost call's start")


def check_claim(tree: str, last: Event | None) -> Event:
    """Return the last event of a log that another writer may go on with.

    Raises: event-unknown: there is no log. event-after-end: it has ended.
    """
    if last is None:
        raise EventRefused(code="event-unknown", tree=tree, reason="there is no such log")
    if finished(last):
        raise EventRefused(code="event-after-end", tree=tree, reason="the log has ended")
    return last


def beyond(after: Mapping[str, Any] | None, tree: str, newest: Iterator[Event]) -> list[Event]:
    """Return the events of a log after a place, in order. Raises: event-unknown: it is not in it."""
    found: list[Event] = []
    for event in newest:
        if same(event, after):
            return found[::-1]
        found.append(event)
    if after is not None:
        raise EventRefused(code="event-unknown", tree=tree, reason="the log has no event there")
    return found[::-1]


def _named(value: object) -> Place | None:
    """Return the place of what may be no event, as far as it says one."""
    if isinstance(value, Mapping) and all(type(value.get(k)) is int for k in ("writer", "seq")):
        return position(value)
    return None


def _refused(code: str, event: Event, reason: str) -> EventRefused:
    return EventRefused(code=code, tree=event["tree"], event=position(event), reason=reason)


# -- numbering -------------------------------------------------------------------------------------


class Writer:
    """Numbers the events of one tree, all of its outermost call.

    Each method returns the next event, valid by functai's schema; `at` is when it happened, as records
    hold times. Raises (each): event-malformed: what is given makes no event; no number is used up.
    Args: function: the name of the program. writer, after: as `claim` gave them, to go on with a log.
    Not promised: that an event was kept; a store is asked for that.
    """

    def __init__(
        self, tree: str, function: str, *, writer: int = FIRST_WRITER, after: Place | None = None
    ) -> None:
        self.tree = tree
        self.writer = writer
        self.after = after
        """The place of the last event that was made; None: none was."""
        self._function = function
        self._checked = False
        """Whether what is the same in each of its events was found to be right."""

    def started(
        self, program: dict[str, Any], inputs: dict[str, Any], *, saw: list[Any], at: str
    ) -> Event:
        """The turn was sent. `program`: its name, kind, module, version, interface and answer."""
        return self._next(
            "started",
            at,
            parent=None,
            root=self.tree,
            program=program,
            inputs=inputs,
            content=True,
            saw=saw,
        )

    def request(self, number: int, model: str | None, *, at: str) -> Event:
        """The model is asked, for the `number`-th time; what was shown as text before is void."""
        return self._next("request", at, request=number, model=model)

    def text(self, field: str, text: str, *, at: str) -> Event:
        """A piece of the answer came; pieces of a field are joined in order. It is not empty."""
        return self._next("text", at, field=field, answer=True, text=text)

    def tool_call(self, id: str, name: str, *, input: Any, invocation: int, at: str) -> Event:
        """A tool is called."""
        return self._next("tool_call", at, id=id, name=name, input=input, invocation=invocation)

    def tool_result(self, id: str, name: str, *, output: str, invocation: int, at: str) -> Event:
        """A tool gave its result, as text."""
        return self._next("tool_result", at, id=id, name=name, output=output, invocation=invocation)

    def approval(
        self,
        id: str,
        name: str,
        *,
        input: Any,
        invocation: int,
        path: str,
        at: str,
        effects: str | None = None,
        to: str = "owner",
        plugin: str | None = None,
        question: str | None = None,
    ) -> Event:
        """A tool call waits for a person. `effects`: `reads`, `changes`; `to`: `owner`, `caller`."""
        keys = {"id": id, "invocation": invocation, "name": name, "input": input}
        keys |= {"effects": effects, "path": path, "to": to}
        return self._next("approval", at, **keys, **_given(plugin=plugin, question=question))

    def approved(
        self,
        id: str,
        verdict: str,
        *,
        invocation: int,
        at: str,
        by: str | None = None,
        reason: str | None = None,
        plugin: str | None = None,
    ) -> Event:
        """A person answered. `verdict`: `yes`, `no`."""
        keys = {"id": id, "invocation": invocation, "verdict": verdict, "by": by, "reason": reason}
        return self._next("approved", at, **keys, **_given(plugin=plugin))

    def retry(self, reason: str, wait: float | None, *, at: str) -> Event:
        """The request is made again, in `wait` seconds; what was shown as text before is void."""
        return self._next("retry", at, reason=reason, wait=wait)

    def done(self, value: Any, *, at: str) -> Event:
        """The turn ended with a value: the last event."""
        return self._next("done", at, value=value)

    def failed(self, error: dict[str, Any], *, at: str) -> Event:
        """The turn ended without: the last event. `error`: `type`, and `message`, `code` if known."""
        return self._next("failed", at, error=error)

    def _next(self, kind: str, at: str, **keys: Any) -> Event:
        event = {
            "functai_event": FORMAT,
            "kind": kind,
            "tree": self.tree,
            "writer": self.writer,
            "seq": self.after["seq"] + 1 if self.after else 1,
            "after": None if self.after is None else dict(self.after),
            "at": at,
            "call": self.tree,
            "function": self._function,
            **keys,
        }
        if self._checked:
            check_own(event, keys)
        else:
            event = checked(event, self.tree)
            self._checked = True
        self.after = position(event)
        return event


def _given(**keys: Any) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}
