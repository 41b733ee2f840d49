"""What all formats do with the conversations of a file: read each, name it, hand it out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ledger.formats import clean, media
from ledger.formats.base import Broken, Draft, Element, File, Notes, Skipped
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

Make = Callable[[Any, bytes, str, Notes], Iterator[Draft | Skipped]]
"""Makes what an element holds: its value, its bytes, what it is called in messages, its notes."""


class Decoded(NamedTuple):
    """An element's value and its bytes."""

    value: Any
    raw: bytes


def conversations(files: Sequence[File], make: Make) -> Iterator[Draft | Skipped]:
    """Yield what each element holds; one that does not read is skipped, and the next one is read."""
    for file in files:
        yield from elements(file, file.elements(), make)


def elements(
    file: File, given: Iterable[Element | Broken], make: Make
) -> Iterator[Draft | Skipped]:
    """Yield what each of these elements of a file holds."""
    for number, element in enumerate(given, 1):
        what, notes = f"{file.name}: conversation {number}", Notes()
        found = decoded(element, what, notes)
        if isinstance(found, Skipped):
            yield found
        else:
            yield from made(make, found.value, found.raw, what, notes)


def made(make: Make, value: Any, raw: bytes, what: str, notes: Notes) -> Iterator[Draft | Skipped]:
    """Yield what is made of a value; one that holds a message without a bottom is skipped."""
    try:
        yield from make(value, raw, what, notes)
    except RecursionError:
        yield Skipped(what, "what is said in it is nested too deep")


def decoded(element: Element | Broken, what: str, notes: Notes) -> Decoded | Skipped:
    """Return an element's value, or why it does not read."""
    if isinstance(element, Broken):
        return Skipped(what, f"{element.reason} (at byte {element.at})")
    try:
        return Decoded(clean.decoded(element.raw, notes), element.raw)
    except ValueError as error:
        return Skipped(what, f"not readable as JSON: {error} (it begins at byte {element.at})")


def draft(
    *,
    format: str,
    source_id: str,
    title: str | None,
    tree: Tree,
    current: str | None,
    raw: bytes,
    notes: Notes,
    what: str,
    raw_type: str = "application/json",
    blobs: Mapping[str, bytes] | None = None,
    growing: bool = False,
) -> Draft | Skipped:
    """Return a conversation as found; one without a turn is skipped.

    Bytes that stand in messages as `data:` addresses are taken out, to be kept as attachments.
    """
    if not tree.turns:
        return Skipped(what, "it has no message of a user or an answer")
    kept = dict(blobs or {})
    for turn in tree.turns:
        turn.messages_in, asked = media.outlined(turn.messages_in)
        turn.messages_out, answered = media.outlined(turn.messages_out)
        kept.update({**asked, **answered})
    return Draft(
        format=format,
        source_id=source_id,
        title=title,
        turns=tree.turns,
        current=current,
        raw=(raw,),
        notes=notes,
        raw_type=raw_type,
        blobs=kept,
        growing=growing,
    )


def title(given: Any, notes: Notes) -> str | None:
    """Return a title; None when it says nothing."""
    return clean.text(given, notes) if isinstance(given, str) and given.strip() else None


def source_id(nodes: list[Node], *given: Any) -> str:
    """Return a conversation's id: the first given that is one, else that of its oldest prompt.

    The oldest prompt of a source never changes.
    """
    for id in given:
        if isinstance(id, str | int) and not isinstance(id, bool) and id != "":
            return clean.record_id(str(id))
    first = oldest(nodes)
    return f"of-{first.id}" if first else "of-nothing"


def oldest(nodes: list[Node]) -> Node | None:
    """Return the oldest prompt, or the oldest record where nobody asked; it never changes."""
    prompts = [node for node in nodes if node.kind == "prompt"] or nodes
    timed = [node for node in prompts if node.created] or prompts
    return min(timed, key=lambda node: (str(node.created), node.id), default=None)


def ranks(children: Mapping[str, Any]) -> dict[tuple[str | None, str], int]:
    """Return the place of each child in its parent's list, from the lists by parent.

    A list may be absent, name what is not there, or be no list: then it says nothing.
    """
    found: dict[tuple[str | None, str], int] = {}
    for parent, listed in children.items():
        above = clean.record_id(parent)
        for place, child in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(child, str):
                found.setdefault((above, clean.record_id(child)), place)
    return found


def turn_at(record: str, tree: Tree, notes: Notes) -> str | None:
    """Return the turn that a source calls current; a record that is not there is counted."""
    found = tree.turn_at(clean.record_id(record))
    if found is None:
        notes.counts["current messages that are not there"] += 1
    return found


def last_time(nodes: Iterable[Node]) -> datetime | None:
    """Return the time of the record that was written last."""
    return max(filter(None, (node.created for node in nodes)), default=None)


def newest(nodes: list[Node]) -> Node | None:
    """Return the last record that was said, by its time; the last one when a time is missing."""
    said = [node for node in nodes if node.kind in ("prompt", "answer", "step")]
    if not all(node.created for node in said):
        return said[-1] if said else None
    return max(
        said, key=lambda node: (str(node.created), node.kind != "prompt", node.id), default=None
    )
