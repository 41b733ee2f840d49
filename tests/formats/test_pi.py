"""Tests of `ledger.formats.pi`: trees of entries, their summaries and forks."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import pi
from ledger.formats.base import Draft, Skipped
from ledger.records import messages, values
from tests.formats.given import Given
from tests.formats.test_codex import shape

Raw = dict[str, Any]
ROOT = "019f0a11-0000-7000-8000-000000000001"
FORK = "019f0a12-0000-7000-8000-000000000002"


class Session:
    """Builds a session's entries; each is a second later than the one before."""

    def __init__(self, id: str = ROOT, **keys: Any) -> None:
        self.lines: list[Raw] = [{"type": "session", "version": 3, "id": id, "cwd": "/x", **keys}]
        self.id = id

    def entry(self, id: str, above: str | None, kind: str, **keys: Any) -> str:
        time = f"2026-01-01T00:00:{len(self.lines):02}.000Z"
        self.lines.append({"type": kind, "id": id, "parentId": above, "timestamp": time, **keys})
        return id

    def say(self, id: str, above: str | None, role: str, content: Any, **keys: Any) -> str:
        return self.entry(id, above, "message", message={"role": role, "content": content, **keys})

    def user(self, id: str, above: str | None) -> str:
        return self.say(id, above, "user", f"ask {id}")

    def bot(self, id: str, above: str, *blocks: Any, **keys: Any) -> str:
        content = blocks or [{"type": "text", "text": f"answer {id}"}]
        usage = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "cost": {"total": 0.1}}
        return self.say(id, above, "assistant", list(content), model="m", usage=usage, **keys)

    def file(self) -> Given:
        data = b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)
        return Given(data, f"2026_{self.id}.jsonl")


def one(*files: Given) -> Draft:
    """Read files that are one conversation."""
    (group,) = pi.together(files)
    (found,) = pi.drafts(group)
    assert isinstance(found, Draft), found
    return found


def straight() -> Session:
    """Return a session of two prompts."""
    session = Session()
    session.bot("a1", session.user("u1", None))
    session.bot("a2", session.user("u2", "a1"))
    return session


def test_branches_and_their_summaries():
    """A branch that was left is a branch; its summary is context of what was asked below it."""
    session = straight()
    session.entry("s", "a1", "branch_summary", fromId="a2", summary="It failed.")
    session.entry("m", "s", "model_change", modelId="x")
    session.bot("a3", session.user("u3", "m"))
    session.entry("i", "a3", "session_info", name="Title")

    draft = one(session.file())

    assert shape(draft) == [
        ("ask u1", "answer a1", None),
        ("ask u2", "answer a2", "ask u1"),
        ("ask u3", "answer a3", "ask u1"),
    ]
    hidden = draft.turns[2].messages_in[0]
    assert hidden["parts"][0]["content"] == "It failed."
    assert hidden["only"]["pi"] == {"hidden": True, "summary": True, "fromId": "a2"}
    assert (draft.title, draft.current) == ("Title", draft.turns[2].id)


def test_tools_their_results_and_what_they_used():
    """Calls and results belong to the answer they led to; what was cached was read too."""
    session = Session()
    call = {"type": "toolCall", "id": "c", "name": "ls", "arguments": {"a": 1}}
    at = session.bot("s1", session.user("u", None), {"type": "thinking", "thinking": "hm"}, call)
    text = [{"type": "text", "text": "x"}]
    at = session.say("r", at, "toolResult", text, toolCallId="c", toolName="ls", isError=True)
    session.bot("a", at, stopReason="stop")

    (turn,) = one(session.file()).turns

    called, given, _ = turn.messages_out
    assert called["parts"][1]["arguments"] == {"a": 1}
    assert given["parts"][0] == {
        "type": "tool_call_response",
        "id": "c",
        "response": "x",
        "only": {"pi": {"is_error": True}},
    }
    assert turn.usage == {
        "input_tokens": 16,
        "output_tokens": 4,
        "cache_read_tokens": 6,
        "cache_write_tokens": 8,
    }


def test_a_stopped_answer_is_closed():
    """An answer that was stopped, or failed, is no answer, and what follows goes on from it."""
    session = Session()
    session.bot("a1", session.user("u1", None), stopReason="aborted")
    session.bot("a2", session.user("u2", "a1"))

    first, second = one(session.file()).turns

    assert (first.source["cut"], second.parent) == ("interrupted", first.id)
    assert first.outputs == {"result": "answer a1"}


def test_a_fork_joins_what_it_came_from():
    """A forked session begins with its source's entries: they are there once, with the same ids."""
    source = straight()
    fork = Session(FORK, parentSession=f"/x/2026_{ROOT}.jsonl")
    fork.lines += source.lines[1:3]
    fork.bot("b2", fork.user("v2", "a1"))

    draft = one(fork.file(), source.file())

    assert len(draft.turns) == 3
    assert draft.source_id == one(source.file()).source_id == one(fork.file()).source_id == ROOT
    assert {turn.id for turn in one(fork.file()).turns} < {turn.id for turn in draft.turns}


def test_a_short_id_may_come_twice():
    """Entries of two sessions that happen to have one id are two."""
    source, fork = straight(), Session(FORK, parentSession=f"/x/{ROOT}.jsonl")
    fork.lines += source.lines[1:3]
    fork.bot("a2", fork.say("u2", "a1", "user", "something else"))

    assert sorted(asked for asked, _, _ in shape(one(source.file(), fork.file()))) == [
        "ask u1",
        "ask u2",
        "something else",
    ]


def test_the_first_version_has_no_ids():
    """Where entries have no ids, the order of the file is that of the talk."""
    session = straight()
    for line in session.lines:
        line.pop("id"), line.pop("parentId", None)

    assert [turn.inputs["message"] for turn in one(session.file()).turns] == ["ask u1", "ask u2"]


def test_what_is_not_known_is_kept():
    """Entries, roles and blocks of unknown types are kept whole, hidden, and counted."""
    session = straight()
    session.entry("x", "a2", "hologram", colour="blue")
    session.say("b", "x", "bashExecution", None, command="ls", output="x")
    session.bot("a3", session.user("u3", "b"), {"type": "smell"}, {"type": "text", "text": "ok"})

    draft = one(session.file())

    turn = draft.turns[2]
    kinds = [part["type"] for message in turn.messages_in for part in message["parts"]]
    assert kinds == ["pi:hologram", "pi:bashExecution", "text"]
    assert draft.notes.unknown == {"entry hologram": 1, "block smell": 1}


JUNK = st.none() | st.integers() | st.text(max_size=2) | st.just([5]) | st.just({"a": []})


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 99), st.data())
@settings(deadline=None, max_examples=80)
def test_entries_in_any_order_and_of_any_content(parents, seed, data):
    """Where entries name their parents their order changes no turn; nothing in them stops the reading."""
    session = Session()
    ends: list[str | None] = [None]
    for n, parent in enumerate(parents):
        ends.append(session.bot(f"a{n}", session.user(f"u{n}", ends[parent % len(ends)])))
    whole = one(session.file())
    assert len(whole.turns) == len(parents)
    head, *lines = session.lines
    session.lines = [head, *random.Random(seed).sample(lines, len(lines))]
    assert {turn.id: turn for turn in one(session.file()).turns} == {t.id: t for t in whole.turns}

    for line in data.draw(st.lists(st.sampled_from(session.lines), max_size=6)):
        target = data.draw(st.sampled_from([line, line.get("message")]))
        if isinstance(target, dict) and target:
            target[data.draw(st.sampled_from(sorted(target)))] = copy.deepcopy(data.draw(JUNK))
    (found,) = pi.drafts([session.file()])
    for turn in found.turns if isinstance(found, Draft) else ():
        given = messages.check([*turn.messages_in, *turn.messages_out])
        values.check([turn.inputs, turn.outputs, turn.source, turn.usage, given])
    assert isinstance(found, Draft | Skipped)


def test_a_session_grows_by_the_time_of_its_last_entry():
    """Within two minutes after the last entry of one of its files a conversation may go on."""
    fork = Session(FORK, parentSession=f"/s/2026_{ROOT}.jsonl")
    fork.lines += straight().lines[1:]
    fork.user("u3", "a2")

    for now, growing in (("2026-01-01T00:02:04Z", True), ("2026-01-01T00:02:05Z", False)):
        files = [session.file().read_at(now) for session in (fork, straight())]
        assert one(*files).growing == growing
