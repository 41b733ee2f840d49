"""Tests of `ledger.formats.codex`: rollouts as they are written twice, forked, rolled back and grown."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import codex
from ledger.formats.base import Draft, DraftTurn, Skipped
from ledger.records import messages, values
from tests.formats.given import Given

Raw = dict[str, Any]
ROOT = "019b2ea4-0000-7000-8000-000000000001"
FORK = "019b2ea5-0000-7000-8000-000000000002"
AGENT = "019b2ea6-0000-7000-8000-000000000003"


class Rollout:
    """Builds the lines of a file; each is a second later than the one before."""

    def __init__(self, session: str = ROOT, *, clock: int = 0, **meta: Any) -> None:
        self.lines: list[Raw] = []
        self.session = session
        self.clock = clock
        self.line("session_meta", id=session, timestamp="2026-01-01T00:00:00.000Z", **meta)
        self.line("turn_context", model="gpt")

    def line(self, kind: str, **payload: Any) -> None:
        self.clock += 1
        minutes, seconds = divmod(self.clock, 60)
        time = f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.000Z"
        self.lines.append({"timestamp": time, "type": kind, "payload": payload})

    def item(self, kind: str, **payload: Any) -> None:
        self.line("response_item", type=kind, **payload)

    def event(self, kind: str, **payload: Any) -> None:
        self.line("event_msg", type=kind, **payload)

    def put(self, text: str, role: str = "user") -> None:
        """Add a user's item that no event repeats."""
        self.item("message", role=role, content=[{"type": "input_text", "text": text}])

    def ask(self, text: str) -> None:
        self.put(text)
        self.event("user_message", message=text, images=[])

    def say(self, text: str, **keys: Any) -> None:
        self.event("agent_message", message=text)
        content = [{"type": "output_text", "text": text}]
        self.item("message", role="assistant", content=content, **keys)

    def tool(self, id: str, output: Any = "fine") -> None:
        self.item("function_call", name="shell", arguments='{"cmd": "ls"}', call_id=id)
        self.item("function_call_output", call_id=id, output=output)

    def used(self, total: int, last: int) -> None:
        """Tell the counts, twice, as limits of rates do."""
        info = {
            "total_token_usage": {"input_tokens": total, "output_tokens": total},
            "last_token_usage": {"input_tokens": last, "output_tokens": last},
        }
        for limit in range(2):
            self.event("token_count", info=info, rate_limits={"used": limit})

    def file(self, path: str | None = None) -> Given:
        data = b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)
        return Given(data, path or f"rollout-2026-{self.session}.jsonl")


def read(*files: Given) -> list[Draft]:
    """Read files as an import does: grouped, each group at once."""
    found = [item for group in codex.together(files) for item in codex.drafts(group)]
    assert not [item for item in found if isinstance(item, Skipped)]
    return [item for item in found if isinstance(item, Draft)]


def one(*files: Given) -> Draft:
    """Read files that hold one conversation."""
    (found,) = read(*files)
    return found


def shape(draft: Draft) -> list[tuple[str, str | None, str | None]]:
    """Return each turn as (input, answer or None, the input of the turn it continues)."""
    by_id = {turn.id: turn for turn in draft.turns}
    return [
        (
            turn.inputs["message"],
            turn.outputs["result"] if turn.outputs is not None else None,
            by_id[turn.parent].inputs["message"] if turn.parent else None,
        )
        for turn in draft.turns
    ]


def straight() -> Rollout:
    """Return a rollout of two prompts, the first with a tool."""
    rollout = Rollout()
    rollout.put("be good", "developer")
    rollout.put("some context no tag tells of")
    rollout.event("task_started", turn_id="1")
    rollout.ask("first")
    rollout.say("on it")
    rollout.tool("c1")
    rollout.used(10, 10)
    rollout.say("done")
    rollout.used(25, 15)
    rollout.event("task_complete", turn_id="1")
    rollout.put("<environment_context>x</environment_context>")
    rollout.event("task_started", turn_id="2")
    rollout.ask("second")
    rollout.say("bye")
    rollout.used(30, 5)
    rollout.event("task_complete", turn_id="2")
    return rollout


def test_what_is_written_twice_is_said_once():
    """Items and the events that repeat them are one; what the program puts in is no prompt."""
    draft = one(straight().file())

    assert shape(draft) == [("first", "done", None), ("second", "bye", "first")]
    first, second = draft.turns
    roles = [message["role"] for message in (*first.messages_in, *first.messages_out)]
    assert roles == [
        "developer",
        "developer",
        "user",
        "assistant",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [len(turn.source.get("context", [])) for turn in draft.turns] == [2, 1]
    assert draft.source_id == ROOT
    assert draft.current == second.id


def test_usage_is_what_each_call_used():
    """Totals grow and are told again and again: each call is counted once, in its own turn."""
    first, second = one(straight().file()).turns

    assert (first.usage, second.usage) == (
        {"input_tokens": 25, "output_tokens": 25},
        {"input_tokens": 5, "output_tokens": 5},
    )
    assert (first.model, second.model) == ("gpt", "gpt")


def test_a_total_that_begins_again_is_counted():
    """After a summary the total begins again; what is used then counts, also without a last one."""
    rollout = straight()
    rollout.line("compacted", message="In short: it went well.")
    rollout.ask("third")
    rollout.say("ok")
    rollout.event("token_count", info={"total_token_usage": {"input_tokens": 4}})
    rollout.event("token_count", info={"total_token_usage": {"input_tokens": 9}})
    rollout.event("token_count", info=None)

    third = one(rollout.file()).turns[2]

    assert third.usage == {"input_tokens": 9}
    assert third.messages_in[0]["only"]["codex-cli"] == {"hidden": True, "summary": True}


def test_prompts_that_only_events_tell_are_prompts():
    """Where no item repeats it, the event is the prompt: what was typed, without the editor's words."""
    rollout = Rollout()
    context = (
        "# Context from my IDE setup:\n\n## Active file: x\n\n## My request for Codex:\nlist\n"
    )
    rollout.event("user_message", message=context)
    rollout.say("a, b", phase="final_answer")

    assert shape(one(rollout.file())) == [("list", "a, b", None)]


def test_answers_that_only_events_tell_are_answers():
    """A file without items of the model is read from its events."""
    rollout = Rollout()
    rollout.event("user_message", message="hi")
    rollout.event("agent_reasoning", text="hm")
    rollout.event("agent_message", message="hello")

    draft = one(rollout.file())

    assert shape(draft) == [("hi", "hello", None)]
    assert draft.turns[0].messages_out[0]["parts"] == [{"type": "reasoning", "content": "hm"}]


def test_the_last_thing_said_is_the_answer():
    """Words between tools are on the way; phases say so where they are there."""
    rollout = Rollout()
    rollout.ask("a")
    rollout.say("one", phase="commentary")
    rollout.say("two", phase="final_answer")
    rollout.ask("b")
    rollout.say("three")
    rollout.tool("c")
    rollout.ask("c")

    assert [turn.outputs and turn.outputs["result"] for turn in one(rollout.file()).turns] == [
        "two",
        "three",
        None,
    ]
    assert one(rollout.file()).turns[1].source["cut"] == "no_answer"


def test_a_turn_that_still_runs_is_not_answered():
    """While its task is not complete, what was said last may not be the answer."""
    rollout = Rollout()
    rollout.event("task_started", turn_id="1")
    rollout.ask("a")
    rollout.say("looking")
    (running,) = one(rollout.file()).turns
    rollout.say("found")
    rollout.event("task_complete", turn_id="1")
    (done,) = one(rollout.file()).turns

    assert (running.state, done.outputs) == ("abandoned", {"result": "found"})
    assert running.id != done.id


def test_a_turn_that_was_stopped_is_closed():
    """An aborted turn is over, and the next one follows it."""
    rollout = Rollout()
    rollout.ask("a")
    rollout.event("turn_aborted", reason="interrupted")
    rollout.ask("b")
    rollout.say("ok")

    first, second = one(rollout.file()).turns

    assert (first.state, first.source["cut"]) == ("done", "interrupted")
    assert second.parent == first.id


def test_what_was_rolled_back_is_a_branch():
    """Turns that were taken back stay, beside those that came instead."""
    rollout = straight()
    rollout.event("thread_rolled_back", num_turns=1)
    rollout.ask("instead")
    rollout.say("fine")

    draft = one(rollout.file())

    assert shape(draft) == [
        ("first", "done", None),
        ("second", "bye", "first"),
        ("instead", "fine", "first"),
    ]
    assert draft.current == draft.turns[2].id


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        ({"type": "function_call", "name": "f", "arguments": '{"a": 1}'}, "f", {"a": 1}),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "f", {}),
        (
            {"type": "custom_tool_call", "name": "p", "input": "*** Begin"},
            "p",
            {"text": "*** Begin"},
        ),
        (
            {"type": "local_shell_call", "action": {"command": ["ls"]}},
            "local_shell",
            {"command": ["ls"]},
        ),
        ({"type": "web_search_call", "action": {"query": "q"}}, "web_search", {"query": "q"}),
        ({"type": "tool_call", "function": {"name": "g"}, "arguments": {"b": 2}}, "g", {"b": 2}),
    ],
)
def test_every_spelling_of_a_call_is_a_call(item, name, arguments):
    """Calls of all generations have a name, arguments and an id that their result has too."""
    rollout = Rollout()
    rollout.ask("a")
    rollout.lines.append({"type": "response_item", "payload": item})
    rollout.item("tool_result", name=name, result={"ok": True})
    rollout.say("done")

    called, given, _ = one(rollout.file()).turns[0].messages_out

    part = called["parts"][0]
    assert (part["name"], part["arguments"]) == (name, arguments)
    assert given["parts"][0] == {
        "type": "tool_call_response",
        "id": part["id"],
        "response": {"ok": True},
    }


def test_flat_lines_of_the_oldest_generation():
    """Lines without envelopes give the same turns: prompt, call, result, answer."""
    lines: list[Raw] = [
        {"timestamp": "2025-09-10T12:00:00Z", "role": "user", "content": "which?", "model": "m"},
        {"timestamp": "2025-09-10T12:00:01Z", "type": "tool_call", "function": {"name": "git"}},
        {"timestamp": "2025-09-10T12:00:01Z", "type": "tool_result", "name": "git", "result": "x"},
        {"timestamp": "2025-09-10T12:00:02Z", "role": "assistant", "content": "main"},
        {"timestamp": "2025-09-10T12:00:03Z", "type": "error", "text": "oh"},
    ]
    data = "\n".join(map(json.dumps, lines)).encode()

    draft = one(Given(data, "old.jsonl"))

    assert shape(draft) == [("which?", "main", None)]
    assert draft.turns[0].model == "m"
    assert all(codex.looks_like(line) for line in lines[:1])


def test_items_without_an_envelope():
    """The second generation, a line of facts and then items, gives the same turns as today's."""
    rollout = straight()
    lines: list[Raw] = [{"id": ROOT, "timestamp": "2026-01-01T00:00:00.000Z", "instructions": None}]
    lines += [line["payload"] for line in rollout.lines if line["type"] == "response_item"]
    lines.insert(1, {"record_type": "state"})
    data = "\n".join(map(json.dumps, lines)).encode()

    draft = one(Given(data, "x.jsonl"))

    told = [(asked, answer) for asked, answer, _ in shape(draft)]
    assert told[-1] == ("second", "bye")
    assert not draft.notes.unknown


# -- forks and sub-agents --------------------------------------------------------------------------


def fork(of: Rollout, upto: int, session: str = FORK, **meta: Any) -> Rollout:
    """Return a file that begins with a copy of another's lines, with new times."""
    copy = Rollout(session, clock=5000, **({"forked_from_id": of.session} | meta))
    for line in of.lines[:upto]:
        copy.line(line["type"], **line["payload"])
    return copy


def upto(rollout: Rollout, text: str) -> int:
    """Return how many lines stand before what is said in one."""
    return next(n for n, line in enumerate(rollout.lines) if text in json.dumps(line["payload"]))


def test_a_fork_is_a_branch():
    """The copied history is there once, whichever file comes first; times of copies change no id."""
    source = straight()
    copy = fork(source, upto(source, '"turn_id": "2"'))
    copy.ask("other")
    copy.say("yes")
    copy.used(33, 8)

    draft = one(source.file(), copy.file())

    assert shape(draft) == [
        ("first", "done", None),
        ("second", "bye", "first"),
        ("other", "yes", "first"),
    ]
    assert [(turn.usage or {})["input_tokens"] for turn in draft.turns] == [25, 5, 8]
    alone = one(copy.file())
    assert alone.source_id == draft.source_id == ROOT
    assert [turn.id for turn in alone.turns] == [draft.turns[0].id, draft.turns[2].id]
    assert draft.current == draft.turns[2].id


def test_a_fork_of_a_fork_belongs_to_the_first():
    """A fork names its source, which names its own; the lines that came along say so."""
    source = straight()
    second = fork(source, upto(source, '"turn_id": "2"'))
    second.ask("other")
    second.say("yes")
    third = fork(second, len(second.lines), AGENT)
    third.ask("more")
    third.say("no")

    assert one(third.file()).source_id == ROOT
    assert shape(one(third.file(), source.file(), second.file()))[-1][:2] in [
        ("more", "no"),
        ("second", "bye"),
    ]
    assert len(one(third.file(), source.file(), second.file()).turns) == 4


def test_a_sub_agent_is_a_side_line():
    """A sub-agent's session names the call that began it; what it was given of the history is not its."""
    source = Rollout()
    source.ask("first")
    source.item("function_call", name="spawn_agent", arguments="{}", call_id="s1")
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": ROOT, "depth": 1}}}
    side = fork(source, len(source.lines), AGENT, source=spawned, forked_from_id=None)
    side.ask("look")
    side.say("seen")
    source.item("function_call_output", call_id="s1", output=json.dumps({"agent_id": AGENT}))
    source.say("done")

    main, beside = read(side.file(), source.file())

    assert shape(main) == [("first", "done", None)]
    assert shape(beside) == [("look", "seen", None)]
    assert beside.source_id == AGENT
    assert beside.side_of == {"conversation": ROOT, "turn": main.turns[0].id, "call": "s1"}


def test_the_same_session_twice_is_taken_once():
    """A session that lies in the archive too is one conversation, and counts once."""
    file = straight().file()

    assert one(file, straight().file("archived_sessions/rollout-x.jsonl")).turns == one(file).turns


# -- properties ------------------------------------------------------------------------------------

SAID = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=5)


def built(said: list[tuple[str, int]]) -> Rollout:
    """Return a rollout of prompts, each with some tools and an answer."""
    rollout = Rollout()
    for n, (text, tools) in enumerate(said):
        rollout.event("task_started", turn_id=str(n))
        rollout.ask(text)
        for tool in range(tools):
            rollout.say(f"step {tool}")
            rollout.tool(f"c{n}-{tool}")
        rollout.say("the same answer")
        rollout.used(n + 1, 1)
        rollout.event("task_complete", turn_id=str(n))
    return rollout


def used(turns: list[DraftTurn]) -> int:
    """Return what turns have used."""
    return sum((turn.usage or {}).get("input_tokens", 0) for turn in turns)


@given(SAID, st.integers(0, 200))
@settings(deadline=None, max_examples=50)
def test_a_file_that_grows_only_adds(said, cut):
    """At whatever line a file was read before, its answered turns are in the longer one."""
    rollout = built(said)
    whole = one(rollout.file())
    assert [turn.inputs["message"] for turn in whole.turns] == [text for text, _ in said]
    assert used(whole.turns) == len(said)
    rollout.lines = rollout.lines[: 1 + cut % len(rollout.lines)]

    before = [item for item in codex.drafts([rollout.file()]) if isinstance(item, Draft)]

    ids = {turn.id for turn in whole.turns}
    turns = [turn for draft in before for turn in draft.turns]
    assert {turn.id for turn in turns if turn.outputs is not None} <= ids
    assert sum(turn.outputs is None for turn in turns) <= 1


@given(SAID, st.integers(0, 200), SAID)
@settings(deadline=None, max_examples=50)
def test_forks_count_nothing_twice(said, cut, more):
    """Wherever a fork parts, each call is counted once, and no turn is there twice."""
    source = built(said)
    starts = [
        n for n, line in enumerate(source.lines) if line["payload"].get("type") == "task_started"
    ]
    copy = fork(source, starts[cut % len(starts)])
    for n, (text, _) in enumerate(more):
        copy.ask(f"fork {n} {text}")
        copy.say("x")
        copy.used(1000 + n, 1)

    draft = one(source.file(), copy.file())

    assert len({turn.id for turn in draft.turns}) == len(draft.turns) == len(said) + len(more)
    assert used(draft.turns) == len(said) + len(more)


JUNK: st.SearchStrategy[object] = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
JUNK |= st.just([]) | st.just({}) | st.just([{"type": 5}]) | st.just([[]])


@given(SAID, st.data())
@settings(deadline=None, max_examples=60)
def test_nothing_in_a_line_stops_the_reading(said, data):
    """Whatever stands in the fields of a line, the file is read, and what is read may be stored."""
    rollout = built(said)
    for line in data.draw(st.lists(st.sampled_from(rollout.lines), max_size=8)):
        target = data.draw(st.sampled_from([line, line.get("payload")]))
        if isinstance(target, dict) and target:
            target[data.draw(st.sampled_from(sorted(target)))] = copy.deepcopy(data.draw(JUNK))

    for draft in (
        item for group in codex.together([rollout.file()]) for item in codex.drafts(group)
    ):
        for turn in draft.turns if isinstance(draft, Draft) else ():
            given = messages.check([*turn.messages_in, *turn.messages_out])
            values.check([turn.inputs, turn.outputs, turn.source, turn.usage, given])


def test_a_session_grows_by_the_time_of_its_last_line():
    """Within two minutes after its last line a session may go on; what it said last may be no answer."""
    rollout = Rollout()
    rollout.ask("one")
    rollout.say("done")

    (soon,) = codex.drafts([rollout.file().read_at("2026-01-01T00:02:05Z")])
    (later,) = codex.drafts([rollout.file().read_at("2026-01-01T00:02:06Z")])

    assert isinstance(soon, Draft)
    assert isinstance(later, Draft)
    assert (soon.growing, [turn.state for turn in soon.turns]) == (True, ["abandoned"])
    assert (later.growing, [turn.state for turn in later.turns]) == (False, ["done"])
