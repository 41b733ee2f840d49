"""A conversation as a chat of Open WebUI, its whole tree: one element of the list that is imported there. Pure.

Each turn is the messages that were asked and one answer below them. Turns that stand side by side and were
asked the same share the question, as answers that were made again do there. What an answer is besides a text
(thinking, calls, results) stands in its `output` as items, and once more in `content` as Open WebUI shows it.
A turn hangs on the answer of the nearest turn above that has one; one without an answer is its question alone,
and one that was erased is left out. `formats.open_webui` reads it back to the same tree.

Left out, and counted: what stands beside a tool's result, who speaks by name.
"""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ledger.formats import converting, media, open_webui_messages, pairing, talks
from ledger.formats.base import Notes
from ledger.formats.converting import Line, Losses, Placed, Raw
from ledger.formats.talks import How, Talk
from ledger.records import times
from ledger.records.messages import Message
from ledger.records.transcripts import without_instructions
from ledger.views import exchange
from ledger.views.earlier import usage_of
from ledger.views.nodes import Node, model_of, payload
from ledger.views.place import nearest_done

name = "open-webui"
_IDS = pairing.Ids()


def rows(talk: Talk, how: How, notes: Counter[str]) -> Iterator[Raw]:
    """Yield the chat."""
    if erased := sum(node.erased for node in talk.history.every()):
        notes["turns left out, without an answer (erased)"] += erased
    losses = Losses(name)
    chat = _Chat(talk, how, losses)
    for turn in talk.history.order:
        if not talk.history.node(turn).erased:
            chat.add(talk.history.node(turn))
    talks.note_losses(name, losses.found, notes)
    yield chat.row()


class _Chat:
    """The messages of a chat as they are added, turn by turn."""

    def __init__(self, talk: Talk, how: How, losses: Losses) -> None:
        self._talk = talk
        self._losses = losses
        self._system = _system(talk, how)
        self._messages: dict[str, Raw] = {}
        self._models: dict[str, None] = {}
        self._end: dict[str | None, str] = {}
        """The last message of each turn, by the turn's id."""
        self._asked: dict[tuple[str | None, str], str] = {}
        """The questions that may be shared: where they stand, and what was asked."""

    def add(self, node: Node) -> None:
        """Add a turn behind the nearest one above it that has an answer."""
        above = nearest_done(self._talk.history, node.parent)
        asked = exchange.asked(node)
        if above is None and self._system:
            asked = without_instructions(asked)
        end = self._end.get(above)
        key = end, json.dumps(asked, sort_keys=True)
        if not node.done or key not in self._asked:
            question = self._ask(node, asked, end)
            if not node.done:
                self._end[node.id] = question
                return
            self._asked[key] = question
        self._end[node.id] = self._answer(node, self._asked[key])

    def row(self) -> Raw:
        """Return the chat as it is exported."""
        order = [self._talk.history.node(turn) for turn in self._talk.history.order]
        made, changed = (_seconds(node) for node in (order[0], order[-1])) if order else (0, 0)
        history = {"messages": self._messages, "currentId": self._current()}
        title = self._talk.title or self._talk.id
        chat = {
            "title": title,
            "models": list(self._models),
            "params": {"system": self._system} if self._system else {},
            "history": history,
            "messages": self._line(history["currentId"]),
            "tags": [],
            "files": [],
            "timestamp": made * 1000,
        }
        about = {"created_at": made, "updated_at": changed, "archived": False, "pinned": False}
        return {"id": self._talk.id, "title": title, "chat": chat, **about}

    def _current(self) -> str | None:
        """Return the last message of the turn the view stands on, or of the nearest one above that is here."""
        here = (n.id for n in self._talk.history.upward(self._talk.head) if n.id in self._end)
        return self._end.get(next(here, None))

    def _line(self, last: Any) -> list[Raw]:
        """Return the messages up to the current one, as Open WebUI keeps them beside for its search."""
        line = []
        while last is not None:
            line.append(self._messages[last])
            last = self._messages[last]["parentId"]
        return line[::-1]

    # -- one turn

    def _ask(self, node: Node, asked: Sequence[Message], parent: str | None) -> str:
        """Put a question below an answer, a message for each of its own. Returns: the id of its last one."""
        if not any(message["role"] == "user" for message in asked):
            asked = [*asked, {"role": "user", "parts": [{"type": "text", "content": ""}]}]
        model = model_of(node)
        for place, line in enumerate(self._lines(asked), 1):
            role = "system" if line.role == "developer" else line.role
            text, files = self._content(line)
            said = {"role": role, "content": text, **({"files": files} if files else {})}
            models = {"models": [model] if model else []} if role == "user" else {}
            parent = self._put(f"{node.id}-asked-{place}", parent, node, {**said, **models})
        assert parent is not None
        return parent

    def _answer(self, node: Node, parent: str) -> str:
        model = model_of(node)
        self._models |= {model: None} if model else {}
        messages = exchange.answered(self._talk.history, node)
        lines = pairing.joined(pairing.paired(self._lines(messages), _IDS, self._losses))
        items: list[Raw] = []
        files: list[Raw] = []
        for line in lines:
            items += _items(line, self._losses)
            files += [file for placed in line.parts if (file := _file(placed))]
        content = _shown(items)
        plain = bool(items) and _reads_back(content, items)
        siblings = len(self._messages[parent]["childrenIds"])
        said = {
            "role": "assistant",
            "content": content,
            **({} if plain else {"output": items}),
            **({"files": files} if files else {}),
            "model": model or "",
            "modelName": model or "",
            "modelIdx": siblings,
            "done": True,
            **({"usage": usage} if (usage := usage_of(node)) else {}),
        }
        return self._put(node.id, parent, node, said)

    def _put(self, id: str, parent: str | None, node: Node, said: Raw) -> str:
        if parent is not None:
            self._messages[parent]["childrenIds"].append(id)
        where: Raw = {"id": id, "parentId": parent, "childrenIds": []}
        self._messages[id] = {**where, **said, "timestamp": _seconds(node)}
        return id

    def _lines(self, messages: Sequence[Message]) -> list[Line]:
        lines = media.inlined(converting.lines(list(messages)), self._talk.read, self._losses)
        for line in lines:
            if line.name is not None and line.role != "tool":
                self._losses.add(line.path, "who speaks has no name here")
        return lines

    def _content(self, line: Line) -> tuple[str, list[Raw]]:
        """Return what a message of the user's side says, and its files."""
        files = []
        for placed in line.parts:
            if placed.type != "text":
                file = _file(placed)
                files += [file] if file else []
                if file is None:
                    self._losses.of(placed)
        texts = [placed.part["content"] for placed in line.parts if placed.type == "text"]
        return "\n".join(texts), files


def _system(talk: Talk, how: How) -> str:
    """Return the instructions that all lines of a conversation begin with; none where they differ.

    Where no line has any, those that were given.
    """
    said = {
        json.dumps(_texts(exchange.asked(talk.history.node(root)))) for root in talk.history.roots
    }
    texts = json.loads(said.pop()) if len(said) == 1 else [""]
    return "\n\n".join(texts) if texts else how.instructions


def _texts(asked: list[Message]) -> list[str]:
    """Return the instructions that stand before a question, a text each."""
    leading = asked[: len(asked) - len(without_instructions(asked))]
    parts = [part for message in leading for part in message["parts"]]
    plain = all(part["type"] == "text" for part in parts)
    return [part["content"] for part in parts] if plain else []


def _seconds(node: Node) -> int:
    """Return when a turn was sent, in Unix seconds: an imported one by its source's clock."""
    source = payload(node.record, "source")
    created = source.get("created") if isinstance(source, dict) else None
    told = times.from_text(created) if isinstance(created, str) else None
    moment = told or times.from_text(node.record.at)
    return times.to_milliseconds(moment) // 1000 if moment else 0


# -- what an answer is -----------------------------------------------------------------------------


def _items(line: Line, losses: Losses) -> Iterator[Raw]:
    """Yield a message of the assistant or a tool as items of `output`."""
    response = line.response
    if response is not None:
        for placed in line.parts[1:]:
            losses.of(placed)
        text = converting.dumped(response.part["response"])
        output = [{"type": "input_text", "text": text}]
        yield {"type": "function_call_output", "call_id": response.part["id"], "output": output}
        return
    if line.role != "assistant":
        return losses.add(line.path, f"what the {line.role} says within an answer cannot be said")
    for placed in line.parts:
        part = placed.part
        if part["type"] == "text":
            content = [{"type": "output_text", "text": part["content"]}]
            yield {"type": "message", "role": "assistant", "content": content}
        elif part["type"] == "reasoning":
            summary = [{"type": "summary_text", "text": part["content"]}]
            yield {"type": "reasoning", "summary": summary}
        elif part["type"] == "tool_call":
            said = {"name": part["name"], "arguments": converting.dumped(part["arguments"])}
            yield {"type": "function_call", "call_id": part["id"], **said}
        elif _file(placed) is None:
            losses.of(placed)


def _shown(items: list[Raw]) -> str:
    """Return items as the text that Open WebUI shows: thinking and calls fold."""
    results = {one["call_id"]: one for one in items if one["type"] == "function_call_output"}
    pieces = []
    for one in items:
        if one["type"] == "message":
            pieces.append(one["content"][0]["text"])
        elif one["type"] == "reasoning":
            quoted = "\n".join(f"> {html.escape(t)}" for t in one["summary"][0]["text"].split("\n"))
            pieces.append(_details("reasoning", {}, "Thought", quoted))
        elif one["type"] == "function_call":
            result = results[one["call_id"]]["output"][0]["text"]
            told = {"id": one["call_id"], "name": one["name"]}
            told |= {"arguments": json.dumps(one["arguments"]), "result": json.dumps(result)}
            pieces.append(_details("tool_calls", told, "Tool Executed", ""))
    return "\n".join(pieces)


def _details(kind: str, attributes: dict[str, str], summary: str, inner: str) -> str:
    told = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items())
    head = f'<details type="{kind}" done="true"{told}>\n<summary>{summary}</summary>'
    return "\n".join([head, *([inner] if inner else []), "</details>"])


def _reads_back(content: str, items: list[Raw]) -> bool:
    """Say whether a text alone is read as these items: one message, with nothing in it that folds."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": content}]}]
    return len(items) == 1 and list(open_webui_messages.told("", content, Notes())) == said


def _file(placed: Placed) -> Raw | None:
    """Return an image or another file as it is attached to a message; None: it is none, or not here."""
    part = placed.part
    if part["type"] != "uri":
        return None
    if part["modality"] == "image":
        return {"type": "image", "url": part["uri"]}
    return (
        {"type": "file", "name": part.get("name") or "file", "url": part["uri"]}
        if media.data_of(part["uri"])
        else None
    )
