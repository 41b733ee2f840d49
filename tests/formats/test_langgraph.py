"""Tests of `ledger.formats.langgraph`: checkpoints, forks, and what is not read, on made-up databases."""

from __future__ import annotations

import contextlib
import json
import pickle
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import langchain_messages, langgraph, plain_msgpack, tables
from ledger.formats.base import Draft, Notes, Schema, Skipped
from tests import tidy
from tests.formats.finds import answer, checked, shape, tree, types
from tests.formats.given import Given

SCRIPT = """
create table checkpoints (thread_id text, checkpoint_ns text default '', checkpoint_id text,
    parent_checkpoint_id text, type text, checkpoint blob, metadata blob);
create table writes (thread_id text, checkpoint_ns text default '', checkpoint_id text, task_id text,
    idx integer, channel text, type text, value blob);
"""
_CLASSES = {
    "h": "HumanMessage",
    "a": "AIMessage",
    "s": "SystemMessage",
    "t": "ToolMessage",
    "r": "RemoveMessage",
}


def packed(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


def said(id: str, content: Any = None, **keys: Any) -> msgspec.msgpack.Ext:
    """Make a message as a state holds it; its type shows in the first letter of its id."""
    word = _CLASSES[id[0]]
    kwargs = {"content": content if content is not None else f"say {id}", "id": id, **keys}
    kwargs["type"] = {"h": "human", "a": "ai", "s": "system", "t": "tool", "r": "remove"}[id[0]]
    path = f"langchain_core.messages.{kwargs['type']}"
    return msgspec.msgpack.Ext(5, packed([path, word, kwargs, "model_validate_json"]))


class Saver:
    """Builds a database; a checkpoint's state is the list of its messages."""

    def __init__(self) -> None:
        self.database = tidy.connect(":memory:")
        self.database.executescript(SCRIPT)
        self.count = 0

    def save(
        self,
        id: str,
        parent: str | None,
        *listed: Any,
        kind: str = "msgpack",
        thread: str = "t",
        namespace: str = "",
        channel: str = "messages",
        **values: Any,
    ) -> str:
        self.count += 1
        values = {channel: list(listed), **values} if listed else values
        state = {"v": 4, "ts": f"2026-11-29T20:52:{self.count:02}+00:00", "channel_values": values}
        data = packed(state) if kind == "msgpack" else json.dumps(state)
        self.raw(id, parent, kind, data, thread, namespace)
        return id

    def raw(
        self,
        id: str,
        parent: str | None,
        kind: Any,
        data: Any,
        thread: str = "t",
        namespace: str = "",
    ) -> None:
        self.database.execute(
            "insert into checkpoints values (?, ?, ?, ?, ?, ?, ?)",
            (thread, namespace, id, parent, kind, data, b"{}"),
        )

    def found(self) -> list[Draft | Skipped]:
        return list(checked(langgraph.drafts([Given(self.database)])))

    def draft(self) -> Draft:
        (one,) = self.found()
        assert isinstance(one, Draft), one
        return one


CALL = {"tool_calls": [{"name": "add", "args": {"a": 1}, "id": "c", "type": "tool_call"}]}


def forked() -> Saver:
    """Two questions, the second with a tool round, whose last answer was made again by time travel."""
    made = Saver()
    first = [said("s1"), said("h1")]
    second = [
        *first,
        said("a1", usage_metadata={"input_tokens": 5, "output_tokens": 2}),
        said("h2"),
    ]
    called = [*second, said("a2", "", **CALL)]
    result = [*called, said("t1", "2", tool_call_id="c")]
    made.save("c0", None, __start__={"messages": [said("h1")]})
    made.save("c1", "c0", *first)
    made.save(
        "c2", "c1", *first, said("a1", usage_metadata={"input_tokens": 5, "output_tokens": 2})
    )
    made.save("c3", "c2", *second)
    made.save("c4", "c3", *called)
    made.save("c5", "c4", *result)
    made.save("c6", "c5", *result, said("a3"))
    made.save("c7", "c5", *result)
    made.save("c8", "c7", *result, said("a4"))
    return made


def test_states_that_repeat_all_give_each_message_once():
    """The steps of a graph are folded into turns; time travel is a branch."""
    one = forked().draft()

    assert [
        ("say h1", "say a1", None),
        ("say h2", "say a3", "say a1"),
        ("say h2", "say a4", "say a1"),
    ] == shape(one)
    assert [
        ["user", "text"],
        ["assistant", "tool_call"],
        ["tool", "tool_call_response"],
        ["assistant", "text"],
    ] == types(one.turns[1])
    assert ("say a4", {"input_tokens": 5, "output_tokens": 2}) == (
        answer(tree(one)[str(one.current)]),
        one.turns[0].usage,
    )


def test_a_key_that_says_nothing_in_its_role_is_kept():
    """Calls of a message that is not the model's, and the id of a call at one that is no result, stay beside it."""
    message = {"type": "human", "content": "a", "tool_calls": [{"id": "1"}], "tool_call_id": "2"}

    (said,) = langchain_messages.neutral(message, Notes())

    assert {"id": None, "tool_calls": [{"id": "1"}], "tool_call_id": "2"} == said["only"][
        "langchain"
    ]


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_rows_says_nothing(chance: random.Random):
    """Rows of checkpoints in any order give the same turns and head."""
    rows = forked().database.execute("select * from checkpoints").fetchall()
    chance.shuffle(rows)
    mixed = Saver()
    mixed.database.executemany("insert into checkpoints values (?, ?, ?, ?, ?, ?, ?)", rows)

    assert forked().draft().turns == mixed.draft().turns
    assert forked().draft().current == mixed.draft().current


def test_a_longer_thread_keeps_its_turns():
    """What is saved later, forks too, changes no id."""
    made = forked()
    before = tree(made.draft())
    made.save("c9", "c8", *[said(id) for id in ("s1", "h1", "a1", "h3")])
    made.save("d0", "c2", said("s1"), said("h1"), said("a1"), said("h4"))

    after = made.draft()

    assert before.keys() <= tree(after).keys()
    assert {"say h3", "say h4"} == {t.inputs["message"] for t in after.turns if t.id not in before}


def test_a_message_that_was_changed_is_a_branch():
    """An update of a message under its id is another way from where it stood."""
    made = forked()
    made.save("c9", "c2", said("s1"), said("h1", "edited"))
    made.save("d0", "c9", said("s1"), said("h1", "edited"), said("a9"))

    assert ("edited", "say a9", None) in shape(made.draft())


def test_a_changed_word_of_the_system_is_no_branch():
    """A system prompt that is made anew for each turn is new context, not another conversation."""
    made = Saver()
    made.save("c1", None, said("s1", "one"), said("h1"), said("a1"))
    made.save("c2", "c1", said("s1", "two"), said("h1"), said("a1"), said("h2"), said("a2"))
    one = made.draft()

    assert [("say h1", "say a1", None), ("say h2", "say a2", "say a1")] == shape(one)
    assert [["system", "text"], ["user", "text"]] == types(one.turns[1])[:2]


def test_what_a_state_dropped_stays():
    """Removals and summaries shrink a state; the way that led there has all."""
    made = forked()
    made.save("c9", "c8", said("r1"), said("s2"), said("h3"))
    made.save("d0", "c9", said("s2"), said("h3"), said("a5"))

    assert ("say h3", "say a5", "say a4") == shape(made.draft())[-1]


def test_increments_are_put_together_from_writes():
    """A state that holds no messages goes on with what was written at its parent."""
    made = Saver()
    made.save("c1", None)
    made.save("c2", "c1")
    made.save("c3", "c2")
    for place, (id, value) in enumerate(
        [("c1", [said("h1")]), ("c2", said("a1")), ("c2", "no message")]
    ):
        made.database.execute(
            "insert into writes values ('t', '', ?, 'task', ?, 'messages', 'msgpack', ?)",
            (id, place, packed(value)),
        )

    assert [("say h1", "say a1", None)] == shape(made.draft())


def test_a_first_question_without_a_step_is_unanswered():
    """What was given and never worked on is the prompt of the last checkpoint."""
    made = Saver()
    made.save("c0", None, __start__={"messages": [said("h1")]})

    assert [("say h1", None, None)] == shape(made.draft())


def test_messages_may_be_of_any_shape_in_any_channel():
    """Constructors in JSON, bare roles without ids, said twice: each is a message of its own."""
    made = Saver()
    path = ["langchain", "schema", "messages", "HumanMessage"]
    listed = [
        {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": "hi"}},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "again"},
        {"role": "assistant", "content": "yes"},
    ]
    made.save("c1", None, *listed, kind="json", channel="talk", other=[1], note="x")

    assert [("hi", "yes", None), ("again", "yes", "yes")] == shape(made.draft())


class Bomb:
    """What must never be unpickled."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("it was executed",)


def test_nothing_is_executed_and_a_state_that_does_not_read_is_walked_through():
    """Pickles are not read, broken states neither; what stands below them is."""
    made = Saver()
    made.save("c1", None, said("h1"))
    made.raw("c2", "c1", "pickle", pickle.dumps(Bomb()))
    made.raw("c3", "c2", "msgpack", b"\x91" * 5000)
    made.raw("c4", "c3", "msgpack", b"\xdd\xff\xff\xff\xff")
    made.save(
        "c5",
        "c4",
        said("h1"),
        said("a1"),
        x=msgspec.msgpack.Ext(0, packed(["os", "system", "true"])),
    )
    made.save("i1", None, said("h9"), namespace="inner")
    one = made.draft()

    assert [("say h1", "say a1", None)] == shape(one)
    assert {
        "states kept as pickle not read": 1,
        "states that do not read left out": 2,
        "checkpoints of graphs within the graph left out": 1,
    } == one.notes.counts


def test_a_circle_of_parents_loses_nothing():
    """Checkpoints that are each other's parents are read as starts of their own."""
    made = Saver()
    made.save("c1", "c2", said("h1"))
    made.save("c2", "c1", said("h1"), said("a1"))

    assert [("say h1", "say a1", None)] == shape(made.draft())


def test_threads_of_one_name_that_began_otherwise_are_two():
    """A thread's id is an app's word: the first question is part of the conversation's name."""
    one, other = Saver(), Saver()
    one.save("c1", None, said("h1"))
    other.save("c1", None, said("h1", "else"))
    other.save("c1", None, said("h1"), thread="u")

    names = [
        one.draft().source_id,
        *(item.source_id for item in other.found() if isinstance(item, Draft)),
    ]
    assert 3 == len(set(names))


def test_extensions_are_read_as_plain_values():
    """Classes, snapshots, bytes, times and unknown codes come as data that JSON has."""
    ext = msgspec.msgpack.Ext
    value = {
        "a": ext(2, packed(["os", "system", {"x": 1}])),
        "b": ext(7, packed([1])),
        "c": ext(9, b"x"),
        "d": b"y",
        1: ext(-1, b"\0\0\0\1"),
        "e": ext(1, packed([])),
    }

    assert {
        "a": {"class": "os.system", "value": {"x": 1}},
        "b": [1],
        "c": {"extension": 9, "base64": "eA=="},
        "d": {"base64": "eQ=="},
        "1": "1970-01-01 00:00:01+00:00",
        "e": {"extension": 1, "base64": "kA=="},
    } == plain_msgpack.loads(packed(value))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_refused(data):
    """No bytes end otherwise than in plain data or a ValueError."""
    with contextlib.suppress(ValueError):
        json.dumps(plain_msgpack.loads(data))


def test_it_is_known_by_its_table():
    """A table of checkpoints with its columns is; others are not."""
    assert langgraph.looks_like(tables.schema(Given(Saver().database)))
    assert not langgraph.looks_like(Schema({"checkpoints": ("thread_id",)}))
    assert not langgraph.looks_like({"checkpoints": []})


def test_a_thread_grows_by_the_time_of_its_last_checkpoint():
    """Within two minutes after its last checkpoint a thread may go on."""
    saver = Saver()
    saver.save("1", None, said("h1"))

    for now, growing in (("2026-11-29T20:54:00Z", True), ("2026-11-29T20:54:01Z", False)):
        (draft,) = langgraph.drafts([Given(saver.database).read_at(now)])
        assert isinstance(draft, Draft)
        assert draft.growing == growing
