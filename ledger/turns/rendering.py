"""What a next turn would be shown, and asked: nothing of it is recorded, or sent anywhere."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ledger.errors import counted
from ledger.formats.converting import Read
from ledger.records.messages import Message, from_inputs
from ledger.turns import telling
from ledger.turns.attachments import Attachment
from ledger.turns.log import Log
from ledger.turns.view import View
from ledger.views.text import one_line


@dataclass(frozen=True, kw_only=True)
class RenderedBase:
    """What a next turn would be shown."""

    parent: str | None
    """The turn it would continue."""
    inputs: dict[str, Any]
    """Its own inputs, by name."""
    saw: list[dict[str, Any]]
    """The entries of its record."""
    rows: list[dict[str, Any]]
    """Each earlier turn's inputs and outputs by name, in order: what `earlier()` gives. A summary's row is
    the first, `{"summary": text}`; its text is None where it is still to be made."""
    summary: str | None
    """The text of the summary that it would be shown; None: none, or it is still to be made."""
    shown_entries: list[int]
    """The places of the entries that it would be shown: that of the summary."""
    to_summarize: list[str]
    """The turns that a summary would be made of first: those it is to stand for, by id."""
    _said: list[Message] = field(repr=False)
    _given: list[Attachment] = field(repr=False)
    _log: Log = field(repr=False, compare=False)

    def _reading(self) -> Read:
        """Return what gives the bytes of attachments, also of those that no store has yet."""
        unkept = {name: a for a in self._given for name in (a.token, a._named["sha256"])}
        kept = telling.reading(self._log)
        return lambda named: unkept[named].read() if named in unkept else kept(named)

    def __str__(self) -> str:
        lines = []
        if self.to_summarize:
            lines.append(f"first a summary is made of {counted(len(self.to_summarize), 'turn')}")
        for number, row in enumerate([*self.rows, self.inputs] if self.inputs else self.rows, 1):
            label = "next" if number > len(self.rows) else f"{number:>4}"
            lines += [f"{label}  {name}: {one_line(value, 100)}" for name, value in row.items()]
        return "\n".join(lines) or "nothing"


class Rendered(RenderedBase):
    """What a next turn would be shown; `str` of it tells it in lines."""

    def messages(
        self, format: str | None = None, *, instructions: str | None = None, strict: bool = False
    ) -> Any:
        """Return what its program would have to send to a model first: what it is shown, and what is asked.

        Just what `current().messages()` would give there before the program noted anything. A summary that is
        still to be made is not in it: its turns stand in its place.
        Args, Raises: as `Conversation.messages`. ValueError: an attachment is a stream, which is read when it is kept.
        """
        said, read = copy.deepcopy(self._said), self._reading()
        return telling.told(said, format, instructions=instructions, strict=strict, read=read)


def parts(log: Log, view: View, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a rendered turn is made of. Raises: as a send that binds these."""
    inputs: dict[str, Any] = {}
    asked: list[Message] = []
    given: list[Attachment] = []
    beside, rest = view.take_beside(kwargs, given)
    if args or rest or beside.messages is not None:
        _, bound, _ = view.bind(args, rest, given)
        for attachment in given:
            with suppress(ValueError):  # The hash of a file is known when it is kept.
                attachment._find_out()
        inputs = log.redacted(bound, "inputs")
        asked = from_inputs(bound) if beside.messages is None else beside.messages
    history = log.read()
    place = view.place(history, "branch")
    rule = view.rule if beside.rule is None else beside.rule
    shown = history.shown(place.parent, rule, foresee=True)
    summary, wants = shown.summary, shown.wants
    whole = shown if wants is None else history.shown(place.parent, rule)
    return {
        "parent": shown.parent,
        "inputs": log.raised(inputs, given),
        "saw": list(shown.saw),
        "rows": log.raised(shown.rows),
        "summary": summary.text if summary is not None else None,
        "shown_entries": shown.entries,
        "to_summarize": list(wants.turns) if wants is not None else [],
        "_said": [*whole.messages, *asked],
        "_given": given,
        "_log": log,
    }
