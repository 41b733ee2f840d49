"""The frame every dialect stands in: neutral messages as a provider has them, and back. Pure.

Three ideas carry all dialects:
(1) What the neutral form does not say of a provider's object is kept beside it, under
    `only.<dialect>` (`beyond`), and laid over what is made again (`merged`). So what came from a
    provider goes back as it was, and nothing of it goes to another.
(2) An object that has no neutral form is kept whole as a part `<dialect>:<its type>`.
(3) What a dialect cannot say is a `Loss`, with its place in what was given: never silent.
(4) What is put in on the way out, because a provider asks for it (`MISSING`), is taken out on the way in
    (`taken`): a list that was handed out and comes back says what was said, and no more.

Must stay in step: docs/reference/dialects.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ledger.errors import ImportInvalid, MessagesLossy, RecordInvalid
from ledger.records import messages as neutral
from ledger.records import values
from ledger.records.messages import Message

MISSING = "No result was recorded."
"""What stands for the result of a call that has none. A result that says just this is the same as none: either
way this is what its call is told with."""

Raw = dict[str, Any]
Part = dict[str, Any]
Read = Callable[[str], bytes | None]
"""Gives the bytes of an attachment by its hex SHA-256; None when they are not at hand."""


class Loss(NamedTuple):
    """Something that was given and is not said, or is said otherwise."""

    path: str
    """Where in what was given: `messages[3].parts[1]`."""
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Converted:
    """Messages as a provider has them, and what of them that provider cannot be told."""

    content: Any
    """What to send: see the dialect for its form."""
    losses: tuple[Loss, ...] = ()
    """In the order in which they were noticed; empty when all is said."""


class Ids(NamedTuple):
    """What a provider asks of the ids of calls."""

    longest: int = 1 << 20
    """Characters."""
    plain: bool = False
    """Only ASCII letters, digits, `_` and `-`."""
    once: bool = False
    """No two calls of a conversation have one id; else no two of one reply."""


class Dialect(Protocol):
    """What a dialect is: a module with a name and two functions."""

    @property
    def name(self) -> str:
        """The word for it, and the key of what it alone understands under `only`."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def IDS(self) -> Ids:
        """What it asks of the ids of calls."""

    def to_provider(
        self, messages: list[Message], *, strict: bool = False, read: Read | None = None
    ) -> Converted:
        """Say neutral messages in this dialect."""

    def from_provider(self, content: Any) -> list[Message]:
        """Return what a provider's messages say, neutral."""


@dataclass(slots=True)
class Placed:
    """A part and where it stood in what was given."""

    path: str
    part: Part

    @property
    def type(self) -> str:
        """The type of the part."""
        return str(self.part["type"])


@dataclass(slots=True)
class Line:
    """A message on its way out; a tool's has one response, first, with what belongs to it behind."""

    path: str
    role: str
    parts: list[Placed]
    name: str | None = None
    finish_reason: str | None = None
    only: Mapping[str, Any] = field(default_factory=dict)

    @property
    def response(self) -> Placed | None:
        """The tool result it begins with, if it does."""
        if self.role != "tool" or not self.parts:
            return None
        return self.parts[0] if self.parts[0].type == "tool_call_response" else None


@dataclass(slots=True)
class Losses:
    """The losses of one conversion, as they are noticed."""

    format: str
    found: list[Loss] = field(default_factory=list)

    def add(self, path: str, reason: str) -> None:
        """Note that something is not said."""
        self.found.append(Loss(path, reason))

    def of(self, placed: Placed, reason: str = "") -> None:
        """Note that a part is not said."""
        self.add(placed.path, reason or f"{described(placed.part)} cannot be said in {self.format}")

    def of_role(self, placed: Placed, role: str, *, by_user: bool) -> None:
        """Note that a part is not said where it stands. Args: by_user: whether it can be in what the user says."""
        if role == "user" or not by_user:
            return self.of(placed)
        told = f"{described(placed.part)} in {_SIDES.get(role, _SYSTEM)} cannot be said in {self.format}"
        return self.add(placed.path, f"{told}; one that the user sends can")

    def converted(self, content: Any, *, strict: bool) -> Converted:
        """Return the result. Raises: messages-lossy: something was lost, and `strict` forbids it."""
        if strict and self.found:
            raise MessagesLossy(format=self.format, losses=tuple(map(str, self.found)))
        return Converted(content, tuple(self.found))


def lines(messages: list[Message]) -> list[Line]:
    """Return checked messages with their places; a tool's message becomes one line per response.

    Raises: record-invalid: they are no neutral messages; it names the place.
    """
    out = []
    for i, message in enumerate(neutral.check(messages)):
        path = f"messages[{i}]"
        placed = [Placed(f"{path}.parts[{j}]", part) for j, part in enumerate(message["parts"])]
        groups = _by_response(placed) if message["role"] == "tool" else [placed]
        beside = (message.get("name"), message.get("finish_reason"), message.get("only", {}))
        out += [Line(path, message["role"], group, *beside) for group in groups]
    return out


def _by_response(placed: list[Placed]) -> list[list[Placed]]:
    groups: list[list[Placed]] = []
    for one in placed:
        if one.type == "tool_call_response" or not groups:
            groups.append([])
        groups[-1].append(one)
    return groups


_SIDES = {"tool": "a tool's result", "assistant": "an answer"}
_SYSTEM = "what the system says"


def described(part: Part) -> str:
    """Return what a part is, for a person: `an audio uri`, `an attached image (image/png)`, `a part of type x`."""
    kind, modality = part["type"], part.get("modality")
    if kind == "uri" and part["uri"].startswith("data:"):
        typed = f" ({part['mime_type']})" if "mime_type" in part else ""
        return f"an attached {modality}{typed}"
    if modality:
        return f"{'an' if modality[0] in 'aeiou' else 'a'} {modality} {kind}"
    if kind in neutral.PARTS:
        return f"a {kind}"
    return f"a part of type {kind!r}"


# -- what one provider alone understands -----------------------------------------------------------


def own(thing: Mapping[str, Any], name: str) -> Raw:
    """Return what a part or message keeps for one dialect."""
    kept: Raw = thing.get("only", {}).get(name, {})
    return kept


def beyond(raw: Raw, made: Raw) -> Raw:
    """Return what must be laid over `made` to give `raw`: `merged(made, beyond(raw, made)) == raw`."""
    kept = {}
    for key, value in raw.items():
        if key not in made:
            kept[key] = value
        elif made[key] != value:
            inside = isinstance(value, dict) and isinstance(made[key], dict)
            kept[key] = beyond(value, made[key]) if inside else value
    gone = sorted(key for key in made if key not in raw)
    return {**kept, "without": gone} if gone else kept


def merged(made: Raw, kept: Raw) -> Raw:
    """Return `made` with what was kept beside laid over it."""
    gone = kept.get("without")
    gone = gone if isinstance(gone, list) else ()
    out = {key: value for key, value in made.items() if key not in gone}
    for key, value in kept.items():
        if key == "without":
            continue
        inside = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merged(out[key], value) if inside else value
    return out


def with_own(thing: Raw, name: str, kept: Raw) -> Raw:
    """Return a part or message with something kept for one dialect; as it is when that is nothing."""
    return {**thing, "only": {name: kept}} if kept else thing


def whole(name: str, raw: Raw, kind: str = "type") -> Part:
    """Return the part of something that has no neutral form; its type is named by the key `kind`."""
    return {"type": f"{name}:{raw.get(kind, 'unnamed')}", "content": raw}


def is_whole(name: str, part: Part) -> bool:
    """Say whether a part was kept whole by this dialect."""
    return part["type"].startswith(f"{name}:") and isinstance(part.get("content"), dict)


# -- contents that are text or a list --------------------------------------------------------------


def spelled(blocks: list[Raw], kind: str, kept: Raw) -> str | list[Raw]:
    """Return blocks as content: one plain text is a string, unless it came in a list."""
    alone = blocks[0] if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} else {}
    plain = alone.get("type") == kind and isinstance(alone["text"], str)
    return alone["text"] if plain and kept.get("as") != "list" else blocks


def read_content(
    content: Any, kind: str, path: str, make: Callable[[Raw], Part]
) -> tuple[list[Part], Raw]:
    """Return the parts of content, and the mark it needs to be spelled so again.

    Raises: import-invalid: it is neither text nor a list of objects.
    """
    if isinstance(content, str):
        return [{"type": "text", "content": content}], {}
    blocks = [item(block, f"{path}[{i}]") for i, block in enumerate(listed(content, path))]
    mark = {} if isinstance(spelled(blocks, kind, {}), list) else {"as": "list"}
    return [make(block) for block in blocks], mark


def dumped(value: Any) -> str:
    """Return a tool's arguments or result as text: text as it is, else JSON; nothing is no text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def arguments(text: Any) -> Any:
    """Return the JSON object that a text of arguments is; any other text stays text."""
    try:
        found = json.loads(text)
        values.check(found)
    except (ValueError, TypeError, RecursionError, RecordInvalid):
        return text
    return found if isinstance(found, dict) else text


# -- reading what somebody else wrote --------------------------------------------------------------


def listed(value: Any, path: str) -> list[Any]:
    """Return a list. Raises: import-invalid: it is none."""
    if not isinstance(value, list):
        raise ImportInvalid(source=path, reason=f"a list is expected, not {type(value).__name__}")
    return value


def item(value: Any, path: str) -> Raw:
    """Return an object. Raises: import-invalid: it is none."""
    if not isinstance(value, dict):
        raise ImportInvalid(
            source=path, reason=f"an object is expected, not {type(value).__name__}"
        )
    return value


def text_of(raw: Raw, key: str, path: str) -> str:
    """Return the text under a key. Raises: import-invalid: there is none."""
    value = raw.get(key)
    if not isinstance(value, str):
        raise ImportInvalid(source=path, reason=f"`{key}` is text")
    return value


def taken(messages: Iterable[Message]) -> list[Message]:
    """Return messages that may be recorded, without results that were put in (`MISSING`).

    Raises: record-invalid: they hold what JSON does not.
    """
    out = neutral.check(list(messages))
    values.check(out, "messages")
    return [said for message in out if (said := _without_missing(message)) is not None]


def _without_missing(message: Message) -> Message | None:
    """Return a message without the results that were put in; None: nothing else is in it."""
    if message["role"] != "tool":
        return message
    results = _by_response([Placed("", part) for part in message["parts"]])
    kept = [placed.part for result in results if not is_missing(result) for placed in result]
    return {**message, "parts": kept} if kept else None


def is_missing(result: list[Placed]) -> bool:
    """Say whether a result, with what belongs to it, was put in, however it came to be spelled."""
    first, *beside = (placed.part for placed in result)
    if first["type"] != "tool_call_response":
        return False
    said = [] if first["response"] is None else [first["response"]]
    return [*said, *(part.get("content") for part in beside)] == [MISSING]
