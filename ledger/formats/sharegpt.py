"""ShareGPT: conversations as lists of `{"from", "value"}`, in many spellings. Pure.

The ids of such files count from 0 in each, so a conversation is named by its id and by how it
begins; its messages have none, so `chain` names them. A file that holds one conversation as a bare
list gives the messages themselves as elements.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import chain, clean, each, pieces, talk
from ledger.formats.base import Broken, Draft, Element, File, Message, Notes, Skipped, alone
from ledger.formats.chain import Link
from ledger.formats.nodes import Kind, Node
from ledger.formats.tree import Tree

name = "sharegpt"
home = None
together = alone

Raw = dict[str, Any]
_LISTS = ("conversations", "conversation", "items")
_SPEAKERS: dict[str, Kind] = {
    **dict.fromkeys(("human", "user", "prompter"), "prompt"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard", "model", "bot"), "answer"),
    **dict.fromkeys(("system", "developer"), "aside"),
    **dict.fromkeys(
        ("function_call", "tool_call", "tool", "observation", "function_response"), "step"
    ),
}
_CALLS = ("function_call", "tool_call")


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a conversation of this kind, or one message of it."""
    return _is_message(sample) or _said(sample) is not None


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("from"), str) and "value" in value


def _said(value: object) -> list[Any] | None:
    """Return the messages of a conversation; None when it has none."""
    if isinstance(value, list):
        return value if value and _is_message(value[0]) else None
    for key in _LISTS if isinstance(value, dict) else ():
        listed = value.get(key)  # type: ignore[attr-defined]
        if isinstance(listed, list) and listed and _is_message(listed[0]):
            return listed
    return None


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each conversation; one that does not read is skipped, and the next one is read."""
    for file in files:
        elements = file.elements()
        first = next(elements, None)
        if first is None:
            continue
        elements = itertools.chain([first], elements)
        if _is_message(_value(first)):
            yield from _bare(file, elements)
        else:
            yield from each.elements(file, elements, _draft)


def _value(element: Element | Broken) -> Any:
    found = each.decoded(element, "", Notes())
    return None if isinstance(found, Skipped) else found.value


def _bare(file: File, elements: Iterator[Element | Broken]) -> Iterator[Draft | Skipped]:
    """Read messages that are the elements of a file as one conversation."""
    notes = Notes()
    messages, raws = [], []
    for number, element in enumerate(elements, 1):
        one = each.decoded(element, f"{file.name}: message {number}", notes)
        if isinstance(one, Skipped):
            yield one
        else:
            messages.append(one.value)
            raws.append(one.raw)
    raw = b"[" + b",\n".join(raws) + b"]"
    yield from each.made(_draft, messages, raw, f"{file.name}: the conversation", notes)


def _draft(value: Any, raw: bytes, what: str, notes: Notes) -> Iterator[Draft | Skipped]:
    messages = _said(value)
    if messages is None:
        yield Skipped(what, "it has no list of messages with `from` and `value`")
        return
    links = [*_context(value, notes), *_links(messages, notes)]
    given = value.get("id") if isinstance(value, dict) else None
    source_id = each.source_id([], given) if given not in (None, "") else "of"
    source_id = f"{source_id}-{chain.beginning(links)}"
    lists = [links, *_chosen(value, links, notes)]
    tree = Tree(chain.branches(lists), format=name, conversation=source_id, notes=notes)
    last = chain.named(lists[-1])
    yield each.draft(
        format=name,
        source_id=source_id,
        title=None,
        tree=tree,
        current=tree.turn_at(last[-1].id) if last else None,
        raw=raw,
        notes=notes,
        what=what,
    )


def _chosen(value: Any, links: list[Link], notes: Notes) -> Iterator[list[Link]]:
    """Yield the conversation with each of the answers that were chosen from, the chosen one last."""
    for key in ("rejected", "chosen") if isinstance(value, dict) else ():
        if _is_message(value.get(key)):
            yield [*links, *_links([value[key]], notes)]


def _context(value: Any, notes: Notes) -> Iterator[Link]:
    """Yield what stands beside the messages: the system's words, and the tools that were offered."""
    parts = []
    for key in ("system", "tools") if isinstance(value, dict) else ():
        given = value.get(key)
        if key == "system" and isinstance(given, str) and given:
            parts += pieces.text(given, notes)
        elif given:
            parts.append({"type": f"{name}:{key}", "content": clean.value(given, notes)})
    if parts:
        message = {"role": "system", "parts": parts}
        yield Link(
            Node("", None, "aside", messages=[message]), [value.get("system"), value.get("tools")]
        )


def _links(messages: list[Any], notes: Notes) -> Iterator[Link]:
    call = ""
    for place, raw in enumerate(messages):
        if not _is_message(raw):
            notes.counts["messages without `from` or `value` left out"] += 1
            continue
        speaker = raw["from"].strip().lower()
        kind = _SPEAKERS.get(speaker)
        if kind is None:
            notes.unknown[f"speaker {clean.text(raw['from'], notes)}"] += 1
        if speaker in _CALLS:
            call = f"call-{place}"
        message = _message(raw, speaker, kind or "aside", call or f"call-{place}", notes)
        yield Link(
            Node("", None, kind or "aside", messages=[message], text=talk.text_of([message])),
            [speaker, raw["value"]],
        )


def _message(raw: Raw, speaker: str, kind: Kind, call: str, notes: Notes) -> Message:
    value = clean.value(raw["value"], notes)
    if speaker in _CALLS:
        message: Message = {"role": "assistant", "parts": _calls(value, call)}
    elif kind == "step":
        part = {"type": "tool_call_response", "id": call, "response": value}
        message = {"role": "tool", "parts": [part]}
    else:
        role = {"prompt": "user", "answer": "assistant"}.get(kind, "system")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        message = {"role": role, "parts": [{"type": "text", "content": text}]}
    kept = {key: value for key, value in raw.items() if key not in ("from", "value")}
    message["only"] = {name: {"from": clean.text(raw["from"], notes), **clean.value(kept, notes)}}
    return message


def _calls(value: Any, id: str) -> list[Raw]:
    """Return the call that a message is; one that is no JSON has no name."""
    try:
        made = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        made = None
    tool = made.get("name") if isinstance(made, dict) else None
    if not isinstance(tool, str):
        return [{"type": "tool_call", "id": id, "name": "unknown", "arguments": value}]
    arguments = made.get("arguments", made.get("parameters"))
    return [{"type": "tool_call", "id": id, "name": tool, "arguments": arguments}]
