"""The events of a turn as text for a person: what it says as it comes, the rest in marked lines.

Only marks of ours stand at the beginning of a line: what a turn says stands behind one, or is indented.
So it cannot look like the end of the turn, and nothing in it steers the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ledger.cli.output import answer_mark, block
from ledger.records.event_format import is_event
from ledger.records.events import Event
from ledger.views.text import error_text, one_line, printable

VOID = "~ what it said above is no part of the answer"


class Screen:
    """Makes text of a turn's events, given one after the other, each once.

    Of the calls inside the turn only what they do is told, not what they say.
    """

    def __init__(self, *, width: int = 80, from_start: bool = True) -> None:
        """Args: width: of a marked line, in characters. from_start: the first event is the turn's."""
        self._width = width
        self._from_start = from_start
        self._answer = "result"
        self._open: str | None = None
        """The field whose text the last line goes on with."""
        self._said = ""
        """The text of the answer, as far as it counts."""
        self._spoke = False
        """Whether there is text that a new request would make void."""

    def show(self, event: Event) -> str:
        """Return what to print for the next event; nothing for one that this version does not know."""
        if not is_event(event):
            return ""
        if event["call"] == event["tree"]:
            return self._outer(event)
        name = one_line(event["function"], self._width // 3)
        return self._lines([self._short(f"{line[:2]}{name}: {line[2:]}") for line in told(event)])

    def end(self) -> str:
        """Return what ends the line that is still open, if one is."""
        was_open, self._open = self._open is not None, None
        return "\n" if was_open else ""

    def _outer(self, event: Event) -> str:
        kind = event["kind"]
        if kind == "started":
            self._answer = event["program"]["answer"]
        elif kind in ("text", "thinking"):
            return self._text(event)
        elif kind == "done":
            return self._done(event)
        elif kind == "failed":
            return self._failed(event["error"])
        elif kind in ("request", "retry"):
            return self._again(event)
        else:
            return self._lines(map(self._short, told(event)))
        return ""

    def _text(self, event: Event) -> str:
        field = event.get("field", "thinking")
        if event.get("answer"):
            self._said += event["text"]
        self._spoke = True
        mark = self._mark(field)
        text = printable(event["text"], lines=True).replace("\n", "\n" + " " * len(mark))
        if self._open == field:
            return text
        begun = self.end() + mark + text
        self._open = field
        return begun

    def _again(self, event: Event) -> str:
        lines = [self._short(line) for line in told(event)]
        lines += [VOID] if self._spoke else []
        self._said, self._spoke = "", False
        return self._lines(lines)

    def _done(self, event: Event) -> str:
        value = event.get("value")
        if "value" not in event or self._is_said(value):
            return ""
        return self._lines(block(self._mark(self._answer), value))

    def _is_said(self, value: Any) -> bool:
        """Whether the answer was printed as it came; a watch that goes on has printed the end of it."""
        if self._from_start or not self._said:
            return bool(value == self._said)
        return isinstance(value, str) and value.endswith(self._said)

    def _failed(self, error: dict[str, Any]) -> str:
        if error["type"] == "Cancelled":
            return ""  # How the turn stands then says it all.
        return self._lines(block("! ", error_text(error)))

    def _mark(self, field: str) -> str:
        name = field if field.isidentifier() else repr(field)
        return answer_mark(one_line(name, self._width // 2))

    def _short(self, line: str) -> str:
        return line[:2] + one_line(line[2:], self._width - 2)

    def _lines(self, lines: Iterable[str]) -> str:
        """Return whole lines, after the end of the one that is open."""
        text = "".join(printable(line, lines=True) + "\n" for line in lines)
        return self.end() + text if text else ""


def told(event: Event) -> list[str]:
    """Return what an event says happened, as a line with its mark; nothing of what is no such event."""
    tell = _TOLD.get(event["kind"])
    return [] if tell is None else [tell(event)]


def _plain(event: Event, key: str) -> str:
    value = event.get(key)
    if value is None:
        return ""
    return " " + (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _approval(event: Event) -> str:
    return f"? {event['name']}{_plain(event, 'input')}{_plain(event, 'question')}"


def _approved(event: Event) -> str:
    by = f", by {event['by']}" if event["by"] else ""
    reason = f": {event['reason']}" if event.get("reason") else ""
    return f"? {event['verdict']}{by}{reason}"


def _retry(event: Event) -> str:
    when = f" in {event['wait']} s" if event["wait"] else ""
    return f"~ retry{when}{':' if 'reason' in event else ''}{_plain(event, 'reason')}"


_TOLD: dict[str, Callable[[Event], str]] = {
    "started": lambda event: "+ started",
    "tool_call": lambda event: f"* {event['name']}{_plain(event, 'input')}",
    "tool_result": lambda event: f"= {event['name']}{_plain(event, 'output')}",
    "approval": _approval,
    "approved": _approved,
    "retry": _retry,
    "done": lambda event: "+ done",
    "failed": lambda event: f"! {error_text(event['error'])}",
}
"""How events are told in a line. A mark is two characters."""
