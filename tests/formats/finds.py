"""What formats find in files that tests make up. Nothing in them was said by anyone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ledger.formats.base import Draft, DraftTurn, Format, Skipped
from ledger.records import messages, values
from tests.formats.given import Given


def found(format: Format, *given: Any) -> list[Draft | Skipped]:
    """Read values as a format reads them in one file: one a line, when there are several."""
    data = b"\n".join(json.dumps(value).encode() for value in given)
    return list(checked(format.drafts([Given(data)])))


def checked(items: Any) -> Iterator[Draft | Skipped]:
    """Yield what was found; all of a draft may be stored, and parents stand before their children."""
    for item in items:
        if isinstance(item, Draft):
            seen: set[str | None] = {None}
            for turn in item.turns:
                assert turn.id not in seen
                assert turn.parent in seen
                seen.add(turn.id)
                messages.check(turn.messages_in)
                messages.check(turn.messages_out)
                values.check([turn.inputs, turn.outputs, turn.source, turn.usage])
                values.check([turn.messages_in, turn.messages_out, item.title])
            assert item.current in seen
        yield item


def drafts(format: Format, *given: Any) -> list[Draft]:
    """Read values that are all conversations."""
    items = found(format, *given)
    assert all(isinstance(item, Draft) for item in items), items
    return [item for item in items if isinstance(item, Draft)]


def draft(format: Format, *given: Any) -> Draft:
    """Read values that are one conversation."""
    (one,) = drafts(format, *given)
    return one


def answer(turn: DraftTurn) -> str | None:
    return turn.outputs["result"] if turn.outputs is not None else None


def shape(one: Draft) -> list[tuple[str, str | None, str | None]]:
    """Return each turn as (input, answer or None, the answer it continues)."""
    by_id = {turn.id: turn for turn in one.turns}
    return [
        (turn.inputs["message"], answer(turn), answer(by_id[turn.parent]) if turn.parent else None)
        for turn in one.turns
    ]


def tree(one: Draft) -> dict[str, DraftTurn]:
    """Return the turns by id: what a draft is, whatever their order."""
    return {turn.id: turn for turn in one.turns}


def types(turn: DraftTurn) -> list[list[str]]:
    """Return who says what kind of parts."""
    said = [*turn.messages_in, *turn.messages_out]
    return [[message["role"], *(part["type"] for part in message["parts"])] for message in said]


def part(turn: DraftTurn, kind: str) -> dict[str, Any]:
    """Return the first part of a type."""
    said = [*turn.messages_in, *turn.messages_out]
    one: dict[str, Any] = next(p for m in said for p in m["parts"] if p["type"] == kind)
    return one
