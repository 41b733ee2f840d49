"""SillyTavern's chats: a file of lines each, a header and then the messages. Pure.

Messages have no ids, and a branch or checkpoint is a new file that repeats what came before. So `chain`
names them, and a chat is named by its header, which the copies share: they join as branches. Swipes
are answers to choose from: each is a turn, and the chosen one goes on. A greeting is an answer to
nothing. Times without a zone name no moment; they are kept as text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import chain, clean, each
from ledger.formats import sillytavern_messages as messages
from ledger.formats.base import Draft, File, Notes, Skipped, alone
from ledger.formats.chain import Link
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "sillytavern"
home = re.compile(r"(.*/)?(chats/[^/]+|group chats)/[^/]+\.jsonl", re.IGNORECASE)
together = alone

Raw = dict[str, Any]


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is the header of a chat, or a message of one."""
    return isinstance(sample, dict) and (_is_header(sample) or messages.is_message(sample))


def _is_header(value: Raw) -> bool:
    return isinstance(value.get("chat_metadata"), dict) and "mes" not in value


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each file as a chat; a line that does not read costs itself alone."""
    for file in files:
        notes = Notes()
        header: Raw = {}
        said: list[Raw] = []
        raws: list[bytes] = []
        for number, element in enumerate(file.elements(), 1):
            what = f"{file.name}: line {number}"
            found = each.decoded(element, what, notes)
            if isinstance(found, Skipped):
                yield found
                continue
            raws.append(found.raw)
            value = found.value
            if isinstance(value, dict) and _is_header(value):
                header = header or value
            elif isinstance(value, dict) and messages.is_message(value):
                said.append(value)
            else:
                yield Skipped(what, "it is no message of a chat")
        yield _draft(header, said, b"\n".join(raws), notes, file.name)


def _draft(header: Raw, said: list[Raw], raw: bytes, notes: Notes, what: str) -> Draft | Skipped:
    nodes, last = _nodes(said, notes)
    title = each.title(header.get("character_name"), notes)
    title = None if title == "unused" else title
    source_id = _source_id(header, said)
    tree = Tree(nodes, format=name, conversation=source_id, notes=notes)
    return each.draft(
        format=name,
        source_id=source_id,
        title=title,
        tree=tree,
        current=tree.turn_at(last) if last else None,
        raw=raw,
        raw_type="application/jsonl",
        notes=notes,
        what=what,
    )


def _source_id(header: Raw, said: list[Raw]) -> str:
    """Return a name that a chat shares with its copies: of when it was made, else of its first message."""
    told = [header.get("character_name"), header.get("create_date")]
    if not header.get("create_date"):
        told += [said[0].get("name"), said[0].get("send_date")] if said else []
    text = json.dumps(told, sort_keys=True)
    return f"of-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _nodes(said: list[Raw], notes: Notes) -> tuple[list[Node], str | None]:
    """Return the records of a chat with all swipes, and the last one that was chosen."""
    links = [_link(raw, messages.chosen(raw), notes) for raw in said]
    variants = {
        id(link): [_link(raw, one, notes) for one in messages.swipes(raw)]
        for link, raw in zip(links, said, strict=True)
    }
    nodes: dict[str, Node] = {}
    before, parent = "", None
    for turn in chain.turns_of(links):
        chosen, after = chain.name_turn(turn, before, parent)
        nodes.update((node.id, node) for node in chosen)
        for place, link in enumerate(turn):
            for other in variants[id(link)]:
                named, _ = chain.name_turn([*turn[:place], other], before, parent)
                for node in named:
                    nodes.setdefault(node.id, node)
        before, parent = after, chosen[-1].id
    return list(nodes.values()), parent


def _link(raw: Raw, swipe: messages.Swipe, notes: Notes) -> Link:
    said = messages.neutral(raw, swipe, notes)
    kind = messages.kind(raw)
    node = Node("", None, kind, messages=[said], text=clean.text(swipe.text, notes))
    node.created = clean.moment(swipe.beside.get("send_date", raw.get("send_date")))
    if kind == "answer":
        model = swipe.extra.get("model")
        node.model = clean.text(model, notes) if isinstance(model, str) and model else None
    sent = swipe.beside.get("send_date", raw.get("send_date"))
    return Link(node, [raw.get("name"), raw.get("is_user"), sent, swipe.text])
