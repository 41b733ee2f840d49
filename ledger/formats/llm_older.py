"""The conversations that `llm` logged before 0.32: one row of `responses` for each call of a model. Pure.

Rows have no parents: a conversation is a line, in the order of their ids. Results of tools stand at
the row of the call that was given them, which has no prompt of its own then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.formats import clean, each, pieces, tables, talk
from ledger.formats import llm_parts as parts
from ledger.formats.base import Draft, File, Message, Notes, Row, Schema, Skipped, Unreadable
from ledger.formats.converting import Part
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

_NAME = "llm"


def looks_like(sample: object) -> bool:
    """Say whether a database has the older tables."""
    columns = ("id", "model", "prompt", "response", "conversation_id", "datetime_utc")
    return tables.with_columns(sample, *columns) == "responses"


def drafts(file: File, schema: Schema, known: set[str]) -> Iterator[Draft | Skipped]:
    """Read each conversation, but those that are `known` from their threads."""
    titles = {}
    if "conversations" in schema:
        titles = {row["id"]: row["name"] for row in file.rows("select id, name from conversations")}
    query = "select distinct conversation_id as id from responses order by 1"
    for id in [row["id"] for row in file.rows(query)]:
        if id is not None and id not in known:
            yield _read(file, schema, f"conversation {id}", "conversation_id", id, titles.get(id))
    for row in list(
        file.rows("select id from responses where conversation_id is null order by id")
    ):
        if row["id"] not in known:
            yield _read(file, schema, f"response {row['id']}", "id", row["id"], None)


def _read(
    file: File, schema: Schema, what: str, column: str, id: Any, title: Any
) -> Draft | Skipped:
    what = f"{file.name}: {what}"
    query = f"select * from responses where {column} = ? order by id"
    try:
        return _Reader(file, schema).draft(list(file.rows(query, id)), str(id), title, what)
    except Unreadable as error:
        return Skipped(what, f"it cannot be read: {error}")


class _Reader:
    """Reads one conversation."""

    def __init__(self, file: File, schema: Schema) -> None:
        self._file = file
        self._schema = schema
        self._rows: parts.Rows = []
        self._blobs: dict[str, bytes] = {}
        self._notes = Notes()
        self._nodes: list[Node] = []

    def draft(self, responses: list[Row], id: str, title: Any, what: str) -> Draft | Skipped:
        for row in responses:
            self._rows.append(("responses", row))
            self._response(row)
        tree = Tree(self._nodes, format=_NAME, conversation=id, notes=self._notes)
        return each.draft(
            format=_NAME,
            source_id=id,
            title=each.title(title, self._notes),
            tree=tree,
            current=tree.turn_at(self._nodes[-1].id) if self._nodes else None,
            raw=tables.record(self._rows),
            raw_type="application/jsonl",
            notes=self._notes,
            what=what,
            blobs=self._blobs,
        )

    def _response(self, row: Row) -> None:
        """Take one call of a model: what it was given that is new, and what it said."""
        id, moment = str(row["id"]), tables.utc(row.get("datetime_utc"))
        if system := [*self._fragments("system", id), *self._text(row.get("system"))]:
            self._add(f"{id}.system", moment, [{"role": "system", "parts": system}])
        results = [self._result(one) for one in self._beside("tool_results", id)]
        if results:
            self._add(f"{id}.results", moment, results)
        prompt = [*self._fragments("prompt", id), *self._text(row.get("prompt"))]
        prompt += self._attached("prompt_attachments", "response_id", id)
        if prompt or not results:
            prompt = prompt or [{"type": "text", "content": ""}]
            self._add(f"{id}.prompt", moment, [{"role": "user", "parts": prompt}])
        said = [*self._reasoning(row), *self._text(row.get("response"))]
        said += [self._call(one) for one in self._beside("tool_calls", id)]
        answer = self._add(id, moment, [{"role": "assistant", "parts": said}])
        answer.model, answer.usage = parts.model(row, self._notes), parts.counts(row)

    def _add(self, id: str, moment: Any, messages: list[Message]) -> Node:
        parent = self._nodes[-1].id if self._nodes else None
        node = Node(id, parent, talk.kind_of(messages), created=moment, messages=messages)
        node.text = talk.text_of(messages)
        self._nodes.append(node)
        return node

    # -- what stands in tables beside

    def _beside(self, table: str, id: str) -> list[Row]:
        if table not in self._schema:
            return []
        query = f"select * from {table} where response_id = ? order by id"
        found = list(self._file.rows(query, id))
        self._rows += [(table, row) for row in found]
        return found

    def _fragments(self, kind: str, id: str) -> list[Part]:
        if f"{kind}_fragments" not in self._schema:
            return []
        query = f"""select fragments.* from {kind}_fragments join fragments on fragment_id = fragments.id
            where response_id = ? order by "order" """
        found = list(self._file.rows(query, id))
        self._rows += [(f"{kind}_fragments", row) for row in found]
        return [part for row in found for part in self._text(row["content"])]

    def _attached(self, table: str, column: str, id: Any) -> list[Part]:
        if table not in self._schema:
            return []
        query = f'select attachment_id from {table} where {column} = ? order by "order"'
        ids = [row["attachment_id"] for row in self._file.rows(query, id)]
        return list(parts.attached(self._file, ids, self._rows, self._blobs, self._notes))

    def _call(self, row: Row) -> Part:
        given = tables.value(row["arguments"])
        arguments = row["arguments"] if given is None else given
        return {
            "type": "tool_call",
            "id": self._exact(row["tool_call_id"]) or f"call-{row['id']}",
            "name": self._exact(row["name"]) or "unknown",
            "arguments": clean.value(arguments, self._notes),
        }

    def _result(self, row: Row) -> Message:
        part: Part = {
            "type": "tool_call_response",
            "id": self._exact(row["tool_call_id"]) or f"result-{row['id']}",
            "response": clean.value(row["output"], self._notes),
        }
        if row.get("exception"):
            part["only"] = {_NAME: {"exception": clean.value(row["exception"], self._notes)}}
        beside = self._attached("tool_results_attachments", "tool_result_id", row["id"])
        made: Message = {"role": "tool", "parts": [part, *beside]}
        return {**made, "name": self._exact(row["name"])} if row["name"] else made

    def _reasoning(self, row: Row) -> list[Part]:
        return [{**part, "type": "reasoning"} for part in self._text(row.get("reasoning"))]

    def _text(self, given: Any) -> list[Part]:
        return pieces.text(given, self._notes)

    def _exact(self, given: Any) -> str:
        return clean.text(str(given), self._notes) if given is not None else ""
