"""Tests of `ledger.formats.opencode`: sessions in a database, with the sub-agents they began."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ledger.formats.base import Draft, Skipped
from ledger.sources.files import find
from ledger.turns.world import SYSTEM, World
from tests import tidy
from tests.formats.test_codex import shape
from tests.worlds import FakeWorld

Raw = dict[str, Any]


class Database:
    """Builds a database; each message is a second later than the one before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = tidy.connect(path)
        self._connection.executescript(
            "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT);"
            "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
            "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
        )
        self.clock = 1_700_000_000_000

    def session(self, id: str, parent: str | None = None) -> None:
        self._insert("session", id, parent, f"Title {id}")

    def say(self, id: str, session: str, data: Any, *parts: Raw) -> None:
        self.clock += 1000
        data = json.dumps(data) if isinstance(data, dict) else data
        self._insert("message", id, session, self.clock, data)
        for number, part in enumerate(parts):
            self._insert("part", f"{id}-{number}", id, session, json.dumps(part))

    def user(self, id: str, session: str = "s", **keys: Any) -> None:
        self.say(id, session, {"role": "user", **keys}, {"type": "text", "text": f"ask {id}"})

    def bot(self, id: str, asked: str, *parts: Raw, session: str = "s", **keys: Any) -> None:
        tokens = {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 3, "write": 0}}
        data = {"role": "assistant", "parentID": asked, "modelID": "m", "tokens": tokens}
        data |= {"finish": "stop", **keys}
        self.say(id, session, data, *(parts or ({"type": "text", "text": f"answer {id}"},)))

    def read(self, world: World = SYSTEM) -> list[Draft]:
        self._connection.commit()
        self._connection.close()
        (source,) = find(self.path, world)
        found = list(source.items)
        assert not [item for item in found if isinstance(item, Skipped)]
        return [item for item in found if isinstance(item, Draft)]

    def _insert(self, table: str, *values: Any) -> None:
        marks = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", values)


@pytest.fixture
def database(tmp_path):
    """An empty database."""
    return Database(tmp_path / "opencode.db")


def tool(call: str, **state: Any) -> Raw:
    """Return a call with its result in it."""
    return {"type": "tool", "callID": call, "tool": "ls", "state": {"input": {"a": 1}, **state}}


def test_steps_of_a_prompt_follow_each_other(database):
    """Messages that name one prompt are its steps, not answers beside each other."""
    database.session("s")
    database.user("u1")
    database.bot("m1", "u1", {"type": "step-start"}, tool("c", output="fine"))
    database.bot("m2", "u1")
    database.user("u2")
    database.bot("m3", "u2")

    (draft,) = database.read()

    assert shape(draft) == [("ask u1", "answer m2", None), ("ask u2", "answer m3", "ask u1")]
    first = draft.turns[0]
    assert first.usage == {
        "input_tokens": 8,
        "output_tokens": 4,
        "cache_read_tokens": 6,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
    }
    assert first.messages_out[1]["parts"][0]["response"] == "fine"
    assert (draft.title, draft.source_id, draft.current) == ("Title s", "s", draft.turns[1].id)
    assert json.loads(draft.raw[0].splitlines()[0])["id"] == "s"


def test_a_prompt_that_waited_follows_the_whole_answer(database):
    """A prompt sent while the model worked follows the last step of the one before it."""
    database.session("s")
    database.user("u1")
    database.bot("m1", "u1", tool("c", output="x"))
    database.bot("m2", "u1")
    database.user("u2")
    database.bot("m3", "u2")

    (draft,) = database.read()

    assert shape(draft)[1] == ("ask u2", "answer m3", "ask u1")


def test_a_task_is_a_side_line(database):
    """A session that a call began names the call, and the call names it."""
    database.session("child", "s")
    database.session("s")
    database.user("u1")
    database.bot("m1", "u1", tool("c", output="x", metadata={"sessionId": "child"}))
    database.bot("m2", "u1")
    database.user("cu", "child")
    database.bot("cm", "cu", session="child")

    main, side = database.read()

    assert side.side_of == {"conversation": "s", "turn": main.turns[0].id, "call": "c"}
    assert main.turns[0].messages_out[0]["parts"][0]["only"] == {"opencode": {"side": "child"}}


def test_what_was_stopped_or_does_not_read(database):
    """A stopped message closes its turn; one that is no JSON costs itself; what is new is kept."""
    database.session("s")
    database.user("u1")
    database.bot("m1", "u1", error={"name": "MessageAbortedError"})
    database.say("bad", "s", "{")
    database.user("u2")
    database.bot("m2", "u2", {"type": "hologram"}, {"type": "text", "text": "ok"})

    (draft,) = database.read()

    first, second = draft.turns
    assert (first.source["cut"], second.parent) == ("interrupted", first.id)
    assert draft.notes.unknown == {"part hologram": 1, "role None": 1}


@pytest.mark.parametrize(("seconds", "growing"), [(121, True), (122, False)])
def test_a_session_grows_by_its_own_last_message(database, seconds, growing):
    """Within two minutes after its last message a session may go on, whatever else the database holds."""
    world = FakeWorld()
    world.time = datetime.fromtimestamp(database.clock / 1000 + seconds, UTC)
    database.session("s")
    database.user("u1")
    database.bot("a1", "u1")
    database.session("old")
    database.clock -= 10_000_000
    database.user("u2", "old")

    drafts = database.read(world)

    assert [draft.growing for draft in drafts] == [growing, False]
