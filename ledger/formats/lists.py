"""Files that are one list of messages: an agent's saved history, whose elements are the messages. Pure.

Such a file has no conversation id, or one in each message; so its records are named by `chain`, and
two files that begin alike are branches of one conversation. A file may also hold one list a line.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ledger.formats import chain, each
from ledger.formats.base import Draft, File, Notes, Skipped
from ledger.formats.chain import Link
from ledger.formats.tree import Tree

Links = Callable[[list[Any], Notes], list[Link]]
"""Makes the records of a list of messages."""
Name = Callable[[list[Any]], Any]
"""Finds the id of the conversation in its messages; None: they tell none."""


def drafts(
    files: Sequence[File],
    *,
    format: str,
    is_message: Callable[[object], bool],
    links: Links,
    id_of: Name = lambda messages: None,
) -> Iterator[Draft | Skipped]:
    """Read each file as a conversation, or each of its elements, when these are lists themselves.

    A message that does not read is skipped, and the rest of the conversation is read.
    """
    make = partial(_draft, format, links, id_of)
    for file in files:
        notes = Notes()
        messages: list[Any] = []
        raws: list[bytes] = []
        for number, element in enumerate(file.elements(), 1):
            found = each.decoded(element, f"{file.name}: message {number}", notes)
            if isinstance(found, Skipped):
                yield found
            elif isinstance(found.value, list):
                what = f"{file.name}: conversation {number}"
                yield from each.made(make, found.value, found.raw, what, Notes())
            elif is_message(found.value):
                messages.append(found.value)
                raws.append(found.raw)
            else:
                yield Skipped(f"{file.name}: message {number}", "it is no message of this kind")
        if messages:
            raw = b"[" + b",\n".join(raws) + b"]"
            yield from each.made(make, messages, raw, file.name, notes)


def _draft(
    format: str, links_of: Links, id_of: Name, messages: Any, raw: bytes, what: str, notes: Notes
) -> Iterator[Draft | Skipped]:
    links = links_of(messages, notes)
    nodes = chain.named(links)
    source_id = each.source_id(nodes, id_of(messages), f"of-{chain.beginning(links)}")
    tree = Tree(nodes, format=format, conversation=source_id, notes=notes)
    yield each.draft(
        format=format,
        source_id=source_id,
        title=None,
        tree=tree,
        current=tree.turn_at(nodes[-1].id) if nodes else None,
        raw=raw,
        notes=notes,
        what=what,
    )


def looks_like(sample: object, is_message: Callable[[object], bool]) -> bool:
    """Say whether a decoded value is a message, or a list that begins with one."""
    if isinstance(sample, list):
        return any(map(is_message, itertools.islice(sample, 5)))
    return is_message(sample)
