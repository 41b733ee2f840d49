"""Sessions of the OpenAI Agents SDK, a database: items in the order of their ids, and branches of them. Pure.

Tables are known by their columns, since their names are chosen. An item's own `id` repeats and is no
key; the number of its row is. A branch lists the rows it shares with another again, so equal rows from
the start are shared turns. Session ids are an app's words (`user-1`), so a conversation is named by
its session and its first row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ledger.formats import clean, each, openai_responses, tables, talk, usage
from ledger.formats.base import Draft, File, Notes, Row, Schema, Skipped, Unreadable, alone
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree

name = "openai-agents"
home = None
together = alone

_ITEMS = ("id", "session_id", "message_data")
_BRANCHES = ("session_id", "message_id", "branch_id", "sequence_number")
_USAGE = ("session_id", "branch_id", "user_turn_number", "input_tokens", "output_tokens")


def looks_like(sample: object) -> bool:
    """Say whether a database has a table of items like a session's."""
    return tables.with_columns(sample, *_ITEMS) is not None


class _Tables(NamedTuple):
    items: str
    branches: str | None
    usage: str | None


def drafts(files: Sequence[File]) -> Iterator[Draft | Skipped]:
    """Read each session; one that does not read is skipped, and the next one is read."""
    for file in files:
        try:
            named = _tables(tables.schema(file))
            sessions = tables.texts(file, named.items, "session_id")
            yield from tables.nameless(file, named.items, "session_id")
        except Unreadable as error:
            yield Skipped(file.name, f"it cannot be read: {error}")
            continue
        for session in sessions:
            what = f"{file.name}: session {clean.value(session, Notes())}"
            try:
                yield _draft(file, named, session, what)
            except Unreadable as error:
                yield Skipped(what, f"it cannot be read: {error}")


def _tables(schema: Schema) -> _Tables:
    wanted = [tables.with_columns(schema, *columns) for columns in (_ITEMS, _BRANCHES, _USAGE)]
    items, branches, counts = [tables.quoted(one) if one else None for one in wanted]
    return _Tables(items or "", branches, counts)


def _draft(file: File, named: _Tables, session: Any, what: str) -> Draft | Skipped:
    notes = Notes()
    items = {
        row["id"]: row
        for row in file.rows(
            f"select * from {named.items} where session_id = ? order by id", session
        )
    }
    rows: list[tuple[str, Row]] = [("items", row) for row in items.values()]
    told, ends = _branches(file, named, session, rows)
    counts = _counts(file, named, session, rows)
    places = _placed(items, told, notes)
    nodes = [_node(id, parent, items[row], notes) for id, (parent, row) in places.items()]
    by_id = {node.id: node for node in nodes}
    for key, told_of in counts.items():
        end = ends.get(key)
        node = by_id.get(str(end))
        if node is None or node.kind == "prompt":
            notes.counts["counts of turns that are not there left out"] += 1
        else:
            node.usage = usage.added(node.usage, told_of)
    source_id = f"{clean.record_id(str(session))}-{_beginning(items)}"
    tree = Tree(nodes, format=name, conversation=source_id, notes=notes)
    return each.draft(
        format=name,
        source_id=source_id,
        title=None,
        tree=tree,
        current=tree.turn_at(str(max(items))) if items else None,
        raw=tables.record(rows),
        raw_type="application/jsonl",
        notes=notes,
        what=what,
        growing=file.growing(each.last_time(nodes)),
    )


def _beginning(items: dict[int, Row]) -> str:
    first = items[min(items)]
    told = [first["id"], str(first["message_data"]), str(first.get("created_at"))]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]


# -- branches --------------------------------------------------------------------------------------

_Branches = dict[str, list[int]]
_Ends = dict[tuple[str, Any], int]


def _branches(
    file: File, named: _Tables, session: Any, rows: list[tuple[str, Row]]
) -> tuple[_Branches, _Ends]:
    """Return the rows of each branch in order, and the last row of each of its turns."""
    told: _Branches = {}
    ends: _Ends = {}
    if named.branches is None:
        return told, ends
    query = f"select * from {named.branches} where session_id = ? order by sequence_number, id"
    for row in file.rows(query, session):
        rows.append(("branches", row))
        told.setdefault(str(row["branch_id"]), []).append(row["message_id"])
        ends[str(row["branch_id"]), row.get("user_turn_number")] = row["message_id"]
    return told, ends


def _counts(
    file: File, named: _Tables, session: Any, rows: list[tuple[str, Row]]
) -> dict[tuple[str, Any], dict[str, int]]:
    """Return the token counts of each turn of a branch."""
    found: dict[tuple[str, Any], dict[str, int]] = {}
    if named.usage is None:
        return found
    for row in file.rows(f"select * from {named.usage} where session_id = ? order by 1", session):
        rows.append(("usage", row))
        details = {key: tables.value(row.get(key)) for key in row if key.endswith("_details")}
        if told := usage.counts({**row, **details}):
            key = (str(row["branch_id"]), row["user_turn_number"])
            found[key] = usage.added(found.get(key), told) or {}
    return found


def _placed(
    items: dict[int, Row], told: _Branches, notes: Notes
) -> dict[str, tuple[str | None, int]]:
    """Return each record with its parent and its row, in the order of the rows.

    Without branches the rows are a line. A row that no branch lists follows the one before it.
    """
    places: dict[str, tuple[str | None, int]] = {}
    for branch, listed in told.items():
        parent: str | None = None
        for row in listed:
            if row not in items:
                notes.counts["items of a branch that are not there"] += 1
                continue
            id = str(row)
            if id in places and places[id][0] != parent:
                id = f"{row}@{branch}"
            places.setdefault(id, (parent, row))
            parent = id
    before: str | None = None
    for row in items:
        if str(row) not in places:
            if told:
                notes.counts["items that no branch lists"] += 1
            places[str(row)] = (before, row)
        before = str(row)
    return dict(sorted(places.items(), key=lambda place: (place[1][1], place[0])))


# -- items -----------------------------------------------------------------------------------------


def _node(id: str, parent: str | None, row: Row, notes: Notes) -> Node:
    value = tables.value(row["message_data"])
    if not isinstance(value, dict):
        notes.counts["items that are no JSON object kept as text"] += 1
        value = {"type": "unreadable", "text": str(row["message_data"])}
    said = talk.read(openai_responses, value, notes)
    node = Node(id, parent, talk.kind_of(said), created=tables.utc(row.get("created_at")))
    node.messages, node.text = said, talk.text_of(said)
    return node
