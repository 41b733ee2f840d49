"""A conversation as Markdown, for people: one branch, or all. Pure; it reads rows, not a store.

Each turn is written once: the first branch whole, each further one from where it parts, which its heading
says. The numbers of turns are those of the log, so they tell what goes on from what.

Text of the conversation is shown as it is (most answers are Markdown), but held inside a block
quote, so that no heading, fence or HTML in it can end the turn it stands in. Tool rounds and
thinking are folded into `<details>`, inside fences longer than any they hold.

Not promised: that the document can be read back. `turn-ledger export` writes what can.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypedDict

from ledger.formats.base import Message
from ledger.records import values
from ledger.views.text import value_text

_ASKING = frozenset({"user", "system", "developer"})
_TICKS = re.compile("`+")
_MARKUP = re.compile(r"([\\`*_\[\]<&#~])")
_LINES = re.compile("\r\n|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


class Row(TypedDict, total=False):
    """One turn of the branch; only `ordinal` and `id` must be there."""

    ordinal: int
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any] | None
    """None: the turn has no answer; `state` says why."""
    model: str | None
    state: str
    started: str | None
    """RFC 3339."""
    messages: list[Message]
    """All messages of the turn in order, both sides; used for what is neither input nor output."""


class Branch(NamedTuple):
    """Turns that follow each other, and the one before them."""

    after: int | None
    """The number of the turn that they go on from; None: they stand at the beginning."""
    rows: Iterable[Row]


def document(
    title: str | None, rows: Iterable[Row], others: Iterable[Branch] = ()
) -> Iterator[str]:
    """Yield the Markdown of a conversation, piece by piece; each piece ends with a line feed.

    Args: rows: the turns of the first branch. others: what other branches have beyond those before them.
    """
    yield f"# {_inline(title or 'Untitled conversation')}\n"
    for row in rows:
        yield "\n" + "\n".join(_turn(row)) + "\n"
    for branch in others:
        where = "from the beginning" if branch.after is None else f"after turn {branch.after}"
        yield f"\n# Another branch, {where}\n"
        for row in branch.rows:
            yield "\n" + "\n".join(_turn(row)) + "\n"


def _turn(row: Row) -> Iterator[str]:
    messages = row.get("messages", [])
    asked = [message for message in messages if message.get("role") in _ASKING]
    answered = [message for message in messages if message.get("role") not in _ASKING]
    about = [row.get("started"), f"turn {row['id']}"]
    yield f"## {row['ordinal']} · User"
    yield ""
    yield f"*{' · '.join(_inline(part) for part in about if part)}*"
    yield ""
    yield from _folded(asked)
    yield from _values(row.get("inputs") or {}, "message")
    yield from _named(asked)
    yield f"### {row['ordinal']} · {_inline(row.get('model') or 'Assistant')}"
    yield ""
    yield from _folded(answered)
    yield from _answer(row)
    yield from _named(answered)


def _answer(row: Row) -> Iterator[str]:
    outputs = row.get("outputs")
    if outputs is None:
        yield f"*No answer: {_inline(row.get('state') or 'unknown')}.*"
        yield ""
    else:
        yield from _values(outputs, "result")


def _values(named: dict[str, Any], plain: str) -> Iterator[str]:
    """Write inputs or outputs; the usual single text stands without its name."""
    for name, value in named.items():
        if name != plain or len(named) > 1:
            yield f"**{_inline(name)}**"
            yield ""
        if isinstance(value, str) or any(values.references_in(value)):
            yield from _quoted(value_text(value))
        else:
            yield from _fenced(json.dumps(value, ensure_ascii=False, indent=2), "json")


def _quoted(text: str) -> Iterator[str]:
    """Hold text in a block quote: whatever it opens ends where the quote does."""
    for line in _LINES.split(text):
        yield f"> {line}" if line else ">"
    yield ""


def _fenced(text: str, language: str = "") -> Iterator[str]:
    """Hold text in a fence that is longer than any run of back-ticks in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(text))])
    yield fence + language
    yield from _LINES.split(text)
    yield fence
    yield ""


def _folded(messages: list[Message]) -> Iterator[str]:
    """Write context, thinking and tool rounds, each closed until a reader opens it."""
    for message in messages:
        for part in message.get("parts", []):
            found = _step(message, part)
            if found is not None:
                summary, text = found
                yield f"<details><summary>{_html(summary)}</summary>"
                yield ""
                yield from _fenced(text)
                yield "</details>"
                yield ""


def _step(message: Message, part: dict[str, Any]) -> tuple[str, str] | None:
    """Return what a part is called and holds, when it is neither answer nor pointer."""
    kind = part.get("type")
    if kind == "tool_call":
        return f"Called {part.get('name')}", _shown(part.get("arguments"))
    if kind == "tool_call_response":
        return f"{message.get('name') or 'Tool'} answered", _shown(part.get("response"))
    if kind == "reasoning":
        return "Thinking", _shown(part.get("content"))
    if kind == "text" and message.get("role") in ("system", "developer"):
        return "Context", _shown(part.get("content"))
    if kind in ("text", "uri", "file", "blob"):
        return None
    return f"Part of type {kind}", _shown({k: v for k, v in part.items() if k != "type"})


def _named(messages: list[Message]) -> Iterator[str]:
    """Name images, files and links: what they hold is not in the document."""
    for message in messages:
        for part in message.get("parts", []):
            if part.get("type") in ("uri", "file", "blob"):
                yield f"- {_inline(part.get('modality') or 'file')}: {_inline(_where(part))}"
                yield ""


def _where(part: dict[str, Any]) -> str:
    content = part.get("content")
    reference = content.get("$attachment") if isinstance(content, dict) else None
    if isinstance(reference, dict):
        return str(reference.get("name") or f"attachment {reference.get('sha256')}")
    return str(part.get("uri") or part.get("file_id") or "not named")


def _shown(value: Any) -> str:
    if isinstance(value, dict) and [*value] in (["text"], ["text", "language"]):
        value = value["text"]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _html(text: str) -> str:
    """Return text for one line of HTML, where Markdown's escapes do not count."""
    return html.escape(" ".join(_LINES.split(text)), quote=False)


def _inline(text: object) -> str:
    """Return text for one line, with nothing in it that Markdown reads as markup."""
    return _MARKUP.sub(r"\\\1", " ".join(_LINES.split(str(text))))
