"""Tests of `ledger.formats.agents_sdk`: sessions and their branches, on made-up databases."""

from __future__ import annotations

import json
from typing import Any

from ledger.formats import agents_sdk, tables
from ledger.formats.base import Draft, Schema, Skipped
from tests import tidy
from tests.formats.finds import checked, part, shape, tree, types
from tests.formats.given import Given

PLAIN = """
create table {0}_messages (id integer primary key autoincrement, session_id text,
    message_data text, created_at timestamp default '2026-11-29 20:51:59');
create table {0}_sessions (session_id text primary key);
"""
BRANCHED = """
create table message_structure (id integer primary key, session_id text, message_id integer,
    branch_id text default 'main', message_type text, sequence_number integer, user_turn_number integer);
create table turn_usage (id integer primary key, session_id text, branch_id text,
    user_turn_number integer, input_tokens integer, output_tokens integer, input_tokens_details json);
"""
CALL = {
    "type": "function_call",
    "call_id": "c",
    "name": "add",
    "arguments": "{}",
    "id": "__fake_id__",
}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "2"}


def asked(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "__fake_id__", "role": "assistant", "content": content}


class Sessions:
    """Builds a database of sessions."""

    def __init__(self, *scripts: str, prefix: str = "agent") -> None:
        self.prefix = prefix
        self.database = tidy.connect(":memory:")
        for script in (PLAIN, *scripts):
            self.database.executescript(script.format(prefix))

    def add(self, *items: Any, session: str = "s") -> list[int]:
        query = f"insert into {self.prefix}_messages (session_id, message_data) values (?, ?)"
        texts = [one if isinstance(one, str) else json.dumps(one) for one in items]
        return [int(self.database.execute(query, (session, t)).lastrowid or 0) for t in texts]

    def branch(self, name: str, *rows: tuple[int, int], session: str = "s") -> None:
        """List rows on a branch: each its number, and that of its turn."""
        for place, (row, turn) in enumerate(rows):
            self.database.execute(
                "insert into message_structure (session_id, message_id, branch_id, message_type,"
                " sequence_number, user_turn_number) values (?, ?, ?, '', ?, ?)",
                (session, row, name, place, turn),
            )

    def used(self, branch: str, turn: int, tokens: int, session: str = "s") -> None:
        self.database.execute(
            "insert into turn_usage (session_id, branch_id, user_turn_number, input_tokens,"
            " output_tokens, input_tokens_details) values (?, ?, ?, ?, 1, ?)",
            (session, branch, turn, tokens, '{"cached_tokens": 2}'),
        )

    def found(self) -> list[Draft | Skipped]:
        return list(checked(agents_sdk.drafts([Given(self.database)])))

    def draft(self) -> Draft:
        (one,) = self.found()
        assert isinstance(one, Draft), one
        return one


def forked() -> Sessions:
    """Two turns on `main`; a branch from the second one, written after both."""
    made = Sessions(BRANCHED)
    made.add(asked("a"), said("b"), asked("c"), CALL, RESULT, said("d"), asked("e"), said("f"))
    made.branch("main", *((row, 1 if row < 3 else 2) for row in range(1, 7)))
    made.branch("branch_from_turn_2_1795985519", (1, 1), (2, 1), (7, 2), (8, 2))
    for branch, turn, tokens in (
        ("main", 1, 5),
        ("main", 2, 7),
        ("branch_from_turn_2_1795985519", 2, 9),
    ):
        made.used(branch, turn, tokens)
    return made


def test_a_session_is_a_line_in_the_order_of_its_rows():
    """Item ids that repeat say nothing; a tool round is part of its turn."""
    made = Sessions()
    made.add(asked("a"), said("b"), asked("c"), CALL, RESULT, said("d"))
    one = made.draft()

    assert [("a", "b", None), ("c", "d", "b")] == shape(one)
    assert [["user", "text"], ["assistant", "tool_call"], ["tool", "tool_call_response"]] == types(
        one.turns[1]
    )[:3]
    assert part(one.turns[1], "tool_call")["id"] == part(one.turns[1], "tool_call_response")["id"]
    assert one.current == one.turns[1].id


def test_branches_that_list_the_same_rows_share_them():
    """Equal rows from the start are there once; the fork is a sibling of what it replaces."""
    one = forked().draft()

    assert [("a", "b", None), ("c", "d", "b"), ("e", "f", "b")] == shape(one)
    assert [5, 7, 9] == [(turn.usage or {})["input_tokens"] for turn in one.turns]
    assert {"input_tokens": 5, "output_tokens": 1, "cache_read_tokens": 2} == one.turns[0].usage


def test_the_order_of_the_structure_is_that_of_its_numbers():
    """Rows of the structure that were written in another order give the same tree."""
    mixed = forked()
    mixed.database.execute("update message_structure set id = 1000 - id")

    assert tree(forked().draft()) == tree(mixed.draft())


def test_a_row_of_two_places_stands_in_both():
    """A branch that lists a row behind another row has it there too."""
    made = Sessions(BRANCHED)
    made.add(asked("a"), said("b"), asked("c"), said("d"))
    made.branch("main", (1, 1), (2, 1), (3, 2), (4, 2))
    made.branch("cut", (3, 1), (4, 1), (99, 1))
    one = made.draft()

    assert [("a", "b", None), ("c", "d", "b"), ("c", "d", None)] == shape(one)
    assert {"items of a branch that are not there": 1} == one.notes.counts


def test_items_that_no_branch_lists_follow_what_was_before():
    """Rows written without a structure are not lost."""
    made = forked()
    made.add(said("g"))

    assert ("e", "f\n\ng", "b") == shape(made.draft())[-1]


def test_sessions_of_one_name_in_two_databases_are_two_conversations():
    """A session's id is an app's word: what began otherwise is another; what went on is the same."""
    one, other = Sessions(), Sessions(prefix="my")
    one.add(asked("a"), said("b"))
    other.add(asked("x"), said("b"))
    before, elsewhere = one.draft(), other.draft()
    one.add(asked("c"), said("d"))
    after = one.draft()

    assert before.source_id == after.source_id != elsewhere.source_id
    assert before.turns == after.turns[:1]
    assert before.source_id.startswith("s-")


def test_each_session_is_a_conversation_and_a_broken_item_costs_itself_alone():
    """Text that is no JSON and items that are not known are kept as parts."""
    made = Sessions()
    made.add(
        asked("a"),
        "{broken",
        {"type": "web_search_call", "id": "w"},
        {"type": "compaction"},
        said("b"),
    )
    made.add(asked("c"), session="t")
    one, other = made.found()

    assert isinstance(one, Draft)
    assert isinstance(other, Draft)
    assert [("a", "b", None)] == shape(one)
    assert {
        "part openai-responses:unreadable": 1,
        "part openai-responses:web_search_call": 1,
        "part openai-responses:compaction": 1,
    } == one.notes.unknown
    assert [("c", None, None)] == shape(other)


def test_it_is_known_by_columns_not_by_names():
    """Any table with sessions and items is; other databases are not."""
    assert agents_sdk.looks_like(tables.schema(Given(Sessions(prefix="my").database)))
    assert not agents_sdk.looks_like(Schema({"agent_messages": ("id", "session_id")}))
    assert not agents_sdk.looks_like({"agent_messages": ["id", "session_id", "message_data"]})


def test_a_view_is_not_read():
    """What stands in place of a table is passed over: the session is a line without it."""
    made = forked()
    made.database.execute("drop table message_structure")
    made.database.execute("create view message_structure as select * from nowhere")
    one = made.draft()

    assert [("a", "b", None), ("c", "d", "b"), ("e", "f", "d")] == shape(one)
    assert {"counts of turns that are not there left out": 3} == one.notes.counts


def test_a_session_grows_by_the_time_of_its_last_item():
    """Within two minutes after its last item a session may go on."""
    sessions = Sessions()
    sessions.add(asked("one"))

    for now, growing in (("2026-11-29T20:53:58Z", True), ("2026-11-29T20:53:59Z", False)):
        (draft,) = agents_sdk.drafts([Given(sessions.database).read_at(now)])
        assert isinstance(draft, Draft)
        assert draft.growing == growing
