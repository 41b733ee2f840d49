"""Tests of `ledger.formats.llm_logs`: both generations of the log, on made-up databases."""

from __future__ import annotations

import json
from typing import Any

from ledger.formats import llm_logs, tables
from ledger.formats.base import Draft, Schema, Skipped
from tests import tidy
from tests.formats.finds import answer, checked, part, shape, tree, types
from tests.formats.given import Given

NEW = """
create table messages (hash text primary key, parent_hash text, role text, provider_metadata text);
create table parts (id integer primary key, message_hash text, position integer, type text,
    tool_name text, text text, payload text);
create table threads (id text primary key, name text, tip_message_hash text, forked_from text);
create table turns (id text primary key, thread_id text, parent_message_hash text,
    tip_message_hash text, model text, resolved_model text, input_tokens integer,
    output_tokens integer, token_details text, datetime_utc text);
create table fragments (id integer primary key, hash text, content text);
create table attachments (id text primary key, type text, path text, url text, content blob);
"""
OLD = """
create table conversations (id text primary key, name text, model text);
create table responses (id text primary key, model text, prompt text, system text, response text,
    conversation_id text, datetime_utc text, input_tokens integer, output_tokens integer);
"""
OLD_TOOLS = """
create table tool_calls (id integer primary key, response_id text, name text, arguments text,
    tool_call_id text);
create table tool_results (id integer primary key, response_id text, name text, output text,
    tool_call_id text, exception text);
"""


class Log:
    """Builds a log; a message's hash is its name, and its role the first letter of it."""

    def __init__(self, *scripts: str) -> None:
        self.database = tidy.connect(":memory:")
        for script in scripts:
            self.database.executescript(script)
        self.calls = 0

    def add(self, table: str, **row: Any) -> None:
        columns, holes = ", ".join(row), ", ".join("?" * len(row))
        query = f"insert into {table} ({columns}) values ({holes})"
        self.database.execute(query, list(row.values()))

    def say(self, hash: str, parent: str | None = None, *parts: tuple[str, Any]) -> None:
        role = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}[hash[0]]
        self.add("messages", hash=hash, parent_hash=parent, role=role)
        for position, (kind, said) in enumerate(parts or [("text", f"say {hash}")]):
            row = {"text": said} if isinstance(said, str) else {"payload": json.dumps(said)}
            self.add("parts", message_hash=hash, position=position, type=kind, **row)

    def thread(self, id: str, tip: str, **keys: Any) -> None:
        self.add("threads", id=id, tip_message_hash=tip, name=f"About {id}", **keys)

    def call(self, thread: str, tip: str, **keys: Any) -> None:
        self.calls += 1
        moment = f"2026-11-29 20:00:{self.calls:02}.5+00:00"
        row = {"model": "m", "datetime_utc": moment, "input_tokens": 10, "output_tokens": 1, **keys}
        self.add("turns", id=f"call-{self.calls:02}", thread_id=thread, tip_message_hash=tip, **row)

    def found(self) -> list[Draft | Skipped]:
        return list(checked(llm_logs.drafts([Given(self.database)])))

    def drafts(self) -> list[Draft]:
        found = self.found()
        assert all(isinstance(item, Draft) for item in found), found
        return [item for item in found if isinstance(item, Draft)]


def pelican() -> Log:
    """One thread: a system's word, a question, a tool round of two calls, and a second question."""
    log = Log(NEW)
    log.say("s")
    log.say("u1", "s")
    log.say("a1", "u1", ("tool_call", {"name": "look", "arguments": {"q": 1}, "tool_call_id": "c"}))
    log.say("t1", "a1", ("tool_result", {"name": "look", "output": "found", "tool_call_id": "c"}))
    log.say("a2", "t1")
    log.say("u2", "a2")
    log.say("a3", "u2", ("reasoning", "hm"), ("text", "say a3"))
    log.thread("t", "a3")
    for tip in ("a1", "a2", "a3"):
        log.call("t", tip)
    return log


# -- the newer generation --------------------------------------------------------------------------


def test_calls_of_a_tool_round_are_one_turn():
    """Each call of a model is counted once; the turn is all of them."""
    (one,) = pelican().drafts()

    assert [("say u1", "say a2", None), ("say u2", "say a3", "say a2")] == shape(one)
    assert [{"input_tokens": 20, "output_tokens": 2}, {"input_tokens": 10, "output_tokens": 1}] == [
        turn.usage for turn in one.turns
    ]
    assert ["assistant", "reasoning", "text"] == types(one.turns[1])[-1]
    assert ("m", "About t") == (one.turns[0].model, one.title)
    assert one.current == one.turns[1].id


def test_a_forked_thread_is_a_branch_of_the_one_it_came_from():
    """What two threads share is there once, with its usage; each tip is a branch."""
    log = pelican()
    log.say("u3", "a2")
    log.say("a4", "u3")
    log.thread("u", "a4", forked_from="t")
    log.call("u", "a4")
    (one,) = log.drafts()

    assert ("say u3", "say a4", "say a2") == shape(one)[-1]
    assert ("t", 3, one.turns[-1].id) == (one.source_id, len(one.turns), one.current)
    assert 40 == sum((turn.usage or {})["input_tokens"] for turn in one.turns)


def test_threads_that_hold_an_answer_in_common_are_branches_without_a_word_of_it():
    """A client that sends a history again shares its rows; a common prompt alone joins nothing."""
    log = pelican()
    log.say("u3", "a2")
    log.thread("u", "u3")
    log.say("a9", "u1")
    log.thread("v", "a9")
    log.call("v", "a9")
    both, apart = log.drafts()

    assert ("t", "v") == (both.source_id, apart.source_id)
    assert ("say u3", None, "say a2") == shape(both)[-1]
    assert [("say u1", "say a9", None)] == shape(apart)


def test_what_a_thread_left_behind_is_a_branch():
    """Where a thread went back and on elsewhere, its calls lead to the branch it left."""
    log = pelican()
    log.say("a5", "u2")
    log.call("t", "a5")
    log.database.execute("update threads set tip_message_hash = 'a5'")
    (one,) = log.drafts()

    assert {"say a3", "say a5"} == {answer(turn) for turn in one.turns if turn.parent}
    assert "say a5" == answer(tree(one)[str(one.current)])


def test_the_same_answer_twice_is_one_turn_with_both_calls():
    """Two calls that said the very same stand at one message; their counts are added, with a note."""
    log = pelican()
    log.call("t", "a3", resolved_model="m-1", token_details='{"reasoning_tokens": 3}')
    (one,) = log.drafts()

    assert {"input_tokens": 20, "output_tokens": 2, "reasoning_tokens": 3} == one.turns[1].usage
    assert {"model calls with the very answer of another, added to it": 1} == one.notes.counts
    assert "m-1" == one.turns[1].model


def test_texts_of_fragments_and_bytes_of_attachments_are_put_together():
    """A text that borrows fragments reads as it was sent; bytes are kept, an address stays one."""
    log = Log(NEW)
    log.add("fragments", id=7, content="a novel")
    log.add("attachments", id="x", type="image/png", content=b"pixels")
    log.add("attachments", id="y", type="audio/wav", url="https://example.com/y")
    log.add("attachments", id="z", path="/tmp/z.pdf")
    pieces = {"text_ref": [{"literal": "Sum up: "}, {"fragment": 7}]}
    files = [("attachment", {"attachment": {"id": id}}) for id in ("x", "y", "z", "gone")]
    log.say("u1", None, ("text", pieces), *files)
    log.say("a1", "u1")
    log.thread("t", "a1")
    (one,) = log.drafts()

    assert "Sum up: a novel" == one.turns[0].inputs["message"]
    assert ["user", "text", "blob", "uri", "file", "llm:attachment"] == types(one.turns[0])[0]
    assert [b"pixels"] == list(one.blobs.values())
    assert b"pixels" not in one.raw[0]


def test_results_of_the_provider_and_unknown_parts_are_kept():
    """A result among an assistant's own parts is a tool's message; a new type is kept whole."""
    log = Log(NEW)
    log.say("u1")
    call = {"name": "web", "arguments": {}, "server_executed": True}
    log.say(
        "a1",
        "u1",
        ("tool_call", call),
        ("tool_result", {"output": "x"}),
        ("text", "ok"),
        ("mood", {"a": 1}),
    )
    log.thread("t", "a1")
    (one,) = log.drafts()

    assert [
        ["assistant", "tool_call"],
        ["tool", "tool_call_response"],
        ["assistant", "text", "llm:mood"],
    ] == types(one.turns[0])[1:]
    assert {"server_executed": True} == part(one.turns[0], "tool_call")["only"]["llm"]
    assert {"part llm:mood": 1} == one.notes.unknown


def test_a_parent_that_was_never_written_loses_no_message():
    """A message whose parent is gone starts anew; messages of no thread are told."""
    log = pelican()
    log.database.execute("delete from messages where hash = 's'")
    log.say("u8")
    whole, left = log.found()

    assert not isinstance(whole, Skipped)
    assert ("say u1", "say a2", None) == shape(whole)[0]
    assert Skipped("given.json: 1 messages", "no thread leads to them") == left


# -- the older generation --------------------------------------------------------------------------


def older() -> Log:
    log = Log(OLD, OLD_TOOLS)
    log.add("conversations", id="c", name="Pets")
    rows = [("r1", "ask", "Be brief.", "one"), ("r2", "use it", None, ""), ("r3", "", None, "done")]
    for id, prompt, system, response in rows:
        said = {"prompt": prompt, "system": system, "response": response}
        counts = {"model": "m", "input_tokens": 5, "datetime_utc": f"2024-01-01T00:00:0{id[1]}"}
        log.add("responses", id=id, conversation_id="c", **said, **counts)
    log.add(
        "tool_calls", id=1, response_id="r2", name="look", arguments='{"q": 1}', tool_call_id="x"
    )
    log.add("tool_results", id=1, response_id="r3", name="look", output="bird", tool_call_id="x")
    return log


def test_older_responses_are_a_line_and_a_tool_chain_is_one_turn():
    """A response that was given results goes on with the turn of the one before."""
    (one,) = older().drafts()

    assert [("ask", "one", None), ("use it", "done", "one")] == shape(one)
    assert ["system", "text"] == types(one.turns[0])[0]
    assert (
        part(one.turns[1], "tool_call")["id"]
        == part(one.turns[1], "tool_call_response")["id"]
        == "x"
    )
    assert [{"input_tokens": 5}, {"input_tokens": 10}] == [turn.usage for turn in one.turns]
    assert ("Pets", "2024-01-01T00:00:01.000000Z") == (one.title, one.turns[0].source["created"])


def test_the_oldest_tables_read_too():
    """Without the tables of tools, and without a conversation, a response is a turn of its own."""
    log = Log(OLD)
    log.add("responses", id="r1", prompt="ask", response="one", system="x")
    log.add("responses", id="r2", prompt="", response="two", system="sum up")

    assert [[("ask", "one", None)], [("", "two", None)]] == [shape(one) for one in log.drafts()]


def test_a_conversation_that_went_on_is_told_once():
    """In a log of both generations, what is a thread now is not told again from the old tables."""
    log = older()
    log.database.executescript(NEW)
    log.say("u1")
    log.say("a1", "u1")
    log.thread("c", "a1")
    log.add("responses", id="r9", prompt="else", response="yes", conversation_id="d")

    assert [[("say u1", "say a1", None)], [("else", "yes", None)]] == [
        shape(one) for one in log.drafts()
    ]


def test_it_is_known_by_its_tables():
    """Each generation is recognised; other databases, and JSON, are not."""
    for log in (Log(NEW), Log(OLD), Log(OLD, OLD_TOOLS, NEW)):
        assert llm_logs.looks_like(tables.schema(Given(log.database)))
    assert not llm_logs.looks_like(Schema({"responses": ("id", "model")}))
    assert not llm_logs.looks_like({"responses": ["id"]})
    assert not llm_logs.looks_like(None)


def test_a_database_that_cannot_be_read_on_says_so():
    """What was read before stays; the rest is skipped with the reason."""
    log = pelican()
    log.database.execute("drop table parts")

    (one,) = log.found()

    assert isinstance(one, Skipped)
    assert "parts" in one.reason
