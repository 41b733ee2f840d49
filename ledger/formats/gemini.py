"""Gemini CLI's sessions: `~/.gemini/tmp/<project>/chats/session-*`, and saved checkpoints. Pure.

A session is one object with `messages`, or, since 0.40, a log of events: a header, messages (an id that
comes again replaces what it said), `{"$set": ...}`, whose `messages` stand for all before, and
`{"$rewindTo": id}`, after which the talk goes on from before that message. What was replaced or
rewound stays here as a branch. A call and its result are one object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ledger.formats import clean, pieces
from ledger.formats.base import Draft, File, Message, Notes, Skipped, alone
from ledger.formats.nodes import Node
from ledger.formats.pieces import Part, Raw, of, string
from ledger.formats.tree import Tree

name = "gemini-cli"
home = re.compile(r"(.*/)?(chats/session-[^/]*\.jsonl?|checkpoint-[^/]*\.json)", re.IGNORECASE)
together = alone

_INJECTED = "This is the Gemini CLI."
"""How the first message of a checkpoint begins, which the program wrote with its answer."""
_CANCELLED = re.compile(r"Request cancelled\.?|User cancelled the request\.?", re.IGNORECASE)
_SILENT = frozenset({"info", "warning"})


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is a session, its header, or (a message of) a checkpoint."""
    if not isinstance(sample, dict):
        return False
    if "sessionId" in sample and ("projectHash" in sample or "startTime" in sample):
        return "type" not in sample
    history = sample.get("history")
    if isinstance(history, list) and history:
        return _is_turn(history[0])
    return _is_turn(sample)


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each file, which is one session."""
    for file in files:
        notes = Notes()
        session = _Session(file, notes)
        for value, raw in pieces.lines(file, notes):
            session.take(value, raw)
        yield session.draft()


def _is_turn(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("role") in ("user", "model")
        and isinstance(value.get("parts"), list)
    )


class _Session:
    """One session as it is read, event by event."""

    def __init__(self, file: File, notes: Notes) -> None:
        self._file = file
        self._notes = notes
        self._nodes: dict[str, Node] = {}
        self._at: str | None = None
        self._facts: Raw = {}
        self._raw: list[bytes] = []
        self._checkpoint: list[Raw] = []

    def take(self, value: Raw, raw: bytes) -> None:
        """Take the next value of the file."""
        self._raw.append(raw)
        if "$set" in value:
            self._set(of(value, "$set"))
        elif "$rewindTo" in value:
            self._rewind(string(value["$rewindTo"]))
        elif _is_turn(value):
            self._checkpoint.append(value)
        elif isinstance(value.get("history"), list):
            self._checkpoint += [one for one in value["history"] if _is_turn(one)]
        elif "sessionId" in value:
            self._set(value)
        else:
            self._message(value)

    def draft(self) -> Draft | Skipped:
        """Return the session as found."""
        if self._checkpoint:
            self._take_checkpoint()
        last = self._nodes.get(self._at or "")
        told = (clean.moment(self._facts.get("lastUpdated")), last.created if last else None)
        growing = self._file.growing(max(filter(None, told), default=None))
        if last is not None and last.kind == "answer" and growing:
            last.kind = "step"
        first = next(iter(self._nodes), "nothing")
        id = clean.record_id(string(self._facts.get("sessionId"))) or f"of-{first}"
        tree = Tree(self._nodes.values(), format=name, conversation=id, notes=self._notes)
        if not tree.turns:
            return Skipped(self._file.name, "it has no message of a user or an answer")
        title = string(self._facts.get("summary")).strip()
        lines = len(self._raw) > 1
        return Draft(
            format=name,
            source_id=id,
            title=clean.text(title, self._notes) or None,
            turns=tree.turns,
            current=tree.turn_at(self._at) if self._at else None,
            raw=[b"".join(raw + b"\n" for raw in self._raw) if lines else b"".join(self._raw)],
            notes=self._notes,
            raw_type="application/jsonl" if lines else "application/json",
            blobs=pieces.blobs(tree.turns),
            side_of=self._side_of(),
            growing=growing,
        )

    def _side_of(self) -> dict[str, Any] | None:
        if self._facts.get("kind") != "subagent":
            return None
        parent = string(self._facts.get("parentSessionId"))
        return {"session": clean.text(parent, self._notes)} if parent else {}

    # -- events

    def _set(self, facts: Raw) -> None:
        self._facts.update({key: value for key, value in facts.items() if key != "messages"})
        if isinstance(facts.get("messages"), list):
            self._at = None
            for message in pieces.objects(facts["messages"]):
                self._message(message)

    def _rewind(self, id: str) -> None:
        """Go on from before a message; from the start when that is not there, as the program does."""
        node = self._nodes.get(clean.record_id(id))
        self._at = node.parent if node is not None else None

    def _message(self, value: Raw) -> None:
        id = clean.record_id(string(value.get("id"))) or pieces.named(self._at, value)
        node = self._nodes.get(id)
        if node is None:
            node = self._nodes[id] = Node(id, self._at, "nothing")
        self._at = id
        node.created = node.updated = clean.moment(value.get("timestamp"))
        kind = string(value.get("type"))
        if kind == "user":
            self._prompt(node, value)
        elif kind == "gemini":
            self._answer(node, value)
        elif kind == "error" or (kind in _SILENT and _CANCELLED.fullmatch(_text(value))):
            node.kind, node.closed = "step", True
            node.cut = "error" if kind == "error" else "interrupted"
            node.messages = [
                pieces.message("assistant", [pieces.opaque(name, kind, value, self._notes)])
            ]
        elif kind not in _SILENT:
            node.kind = "aside"
            parts = pieces.unknown(name, "message", kind, value, self._notes)
            node.messages = [pieces.message("developer", parts, only={name: {"hidden": True}})]

    def _prompt(self, node: Node, value: Raw) -> None:
        parts = list(_parts(value.get("content"), self._notes))
        if parts:
            shown = list(_parts(value.get("displayContent"), self._notes)) or parts
            node.kind, node.text = "prompt", pieces.said(shown)
            node.messages = [pieces.message("user", parts)]

    def _answer(self, node: Node, value: Raw) -> None:
        said = list(_parts(value.get("content"), self._notes))
        thought = [
            part
            for one in pieces.objects(value.get("thoughts"))
            for part in pieces.reasoning(_thought(one), self._notes)
        ]
        calls, results = self._calls(node.id, value)
        node.text = pieces.said(said)
        node.kind = "answer" if said and not calls else "step"
        node.messages = [pieces.message("assistant", [*thought, *said, *calls]), *results]
        node.model = clean.text(string(value.get("model")), self._notes) or None
        node.usage = _usage(of(value, "tokens"))
        if not (thought or said or calls):
            node.kind, node.messages = "nothing", []

    def _calls(self, id: str, value: Raw) -> tuple[list[Part], list[Message]]:
        calls, results = [], []
        for number, one in enumerate(pieces.objects(value.get("toolCalls"))):
            call = string(one.get("id")) or f"{id}-{number}"
            calls.append(pieces.call(call, one.get("name"), one.get("args"), self._notes))
            if (given := one.get("result")) is not None:
                part = pieces.response(call, _result(given), self._notes)
                status = string(one.get("status"))
                part["only"] = {name: {"status": clean.text(status, self._notes)}}
                results.append(pieces.message("tool", [part]))
        return calls, results

    # -- checkpoints

    def _take_checkpoint(self) -> None:
        """Take the messages of a checkpoint, which have neither ids nor times: results are prompts' parts."""
        waiting: list[tuple[str, str]] = []
        skipped = 0
        for number, value in enumerate(self._checkpoint):
            id = pieces.named(self._at, value)
            node = self._nodes[id] = Node(id, self._at, "nothing")
            self._at = id
            if number == 0 and _text({"content": value["parts"]}).startswith(_INJECTED):
                skipped = 2
            given = pieces.objects(value["parts"])
            results = [one["functionResponse"] for one in given if of(one, "functionResponse")]
            if number < skipped:
                parts = list(_parts(given, self._notes))
                node.kind = "aside" if parts else "nothing"
                only = {name: {"hidden": True, "role": value["role"]}}
                node.messages = [pieces.message("developer", parts, only=only)] if parts else []
            elif value["role"] == "model":
                self._answer(node, _as_message(given, id))
                called = [of(one, "functionCall") for one in given if of(one, "functionCall")]
                waiting = [
                    (string(one.get("name")), string(one.get("id")) or f"{id}-{n}")
                    for n, one in enumerate(called)
                ]
            elif results:
                node.kind = "step"
                node.messages = [
                    pieces.message(
                        "tool", [pieces.response(call, one.get("response"), self._notes)]
                    )
                    for one, call in _paired(results, waiting)
                ]
            else:
                self._prompt(node, {"content": given})


def _as_message(given: list[Raw], id: str) -> Raw:
    """Return the parts of a checkpoint's message as a session's message."""
    calls = [of(one, "functionCall") for one in given if of(one, "functionCall")]
    return {
        "content": [one for one in given if "functionCall" not in one and not one.get("thought")],
        "thoughts": [
            {"description": one.get("text")} for one in given if one.get("thought") is True
        ],
        "toolCalls": [
            {**call, "id": string(call.get("id")) or f"{id}-{n}"} for n, call in enumerate(calls)
        ],
    }


def _paired(results: list[Raw], waiting: list[tuple[str, str]]) -> Iterator[tuple[Raw, str]]:
    """Give each result the id of its call: its own, else that of the next call of its name."""
    for one in results:
        same = [call for call in waiting if call[0] == string(one.get("name"))]
        if not string(one.get("id")) and same:
            waiting.remove(same[0])
        yield one, string(one.get("id")) or (same[0][1] if same else "")


def _thought(thought: Raw) -> str:
    return "\n".join(filter(None, (string(thought.get(key)) for key in ("subject", "description"))))


def _text(value: Raw) -> str:
    return pieces.said(list(_parts(value.get("content"), Notes()))).strip()


def _parts(content: Any, notes: Notes) -> Iterable[Part]:
    """Yield what stands in a message: a text, or a list of texts, bytes and addresses."""
    if isinstance(content, str | dict):
        content = [content]
    for one in content if isinstance(content, list) else []:
        inline, file = of(one, "inlineData"), of(one, "fileData")
        if isinstance(one, str) or (isinstance(one, dict) and isinstance(one.get("text"), str)):
            yield from pieces.text(one if isinstance(one, str) else one["text"], notes)
        elif inline:
            yield from pieces.image(inline.get("mimeType"), string(inline.get("data")), notes)
        elif file:
            yield from pieces.link(file.get("fileUri"), "document", notes)
        elif one:
            kind = next(iter(one), None) if isinstance(one, dict) else None
            yield from pieces.unknown(name, "part", kind, one, notes)


def _result(given: Any) -> Any:
    """Return what a tool gave back: the output alone where the program added nothing to say."""
    responses = [of(of(one, "functionResponse"), "response") for one in pieces.objects(given)]
    if len(responses) != 1 or not responses[0]:
        return given
    only = responses[0]
    return only["output"] if set(only) == {"output"} else only


def _usage(tokens: Raw) -> dict[str, int] | None:
    """Return counts: thoughts and what tools put in are counted beside the output and the input."""
    if not tokens:
        return None
    return pieces.tokens(
        input_tokens=pieces.plus(tokens.get("input"), tokens.get("tool")),
        output_tokens=pieces.plus(tokens.get("output"), tokens.get("thoughts")),
        cache_read_tokens=tokens.get("cached"),
        reasoning_tokens=tokens.get("thoughts"),
    )
