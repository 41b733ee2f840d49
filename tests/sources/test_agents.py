"""Tests of importing the folders of coding agents into stores: found, joined, grown, known again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import ledger
from ledger.records import times
from ledger.sources import importing
from tests.formats import test_codex as codex
from tests.formats.synthetic_claude_code import OTHER, SESSION, Session, call, id_of
from tests.formats.test_claude_code import fork, straight, with_agents
from tests.worlds import FakeWorld


@pytest.fixture
def home(tmp_path):
    """The home of a program, with what else is in it."""
    folder = tmp_path / "home"
    write(folder / "history.jsonl", b'{"display": "ask", "timestamp": 1, "project": "/x"}\n')
    write(folder / "settings.json", b"{}")
    write(folder / "todos" / "x.json", b"[]")
    return folder


@pytest.fixture
def world():
    """A clock that the test sets."""
    return FakeWorld()


@pytest.fixture
def store(tmp_path):
    """A store in a folder."""
    return ledger.FolderStore(tmp_path / "store")


def write(path: Path, data: bytes, *, old: bool = True) -> Path:
    """Write a file, an hour ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if old:
        hour_ago = path.stat().st_mtime - 3600
        os.utime(path, (hour_ago, hour_ago))
    return path


def test_a_home_is_found_joined_and_known_again(home, store):
    """Sessions, their forks and sub-agents are found among other files; again, all is known."""
    main, side = with_agents()
    project = home / "projects" / "-home-me"
    write(project / f"{SESSION}.jsonl", main.data())
    write(project / SESSION / "subagents" / "agent-a1b2c3d.jsonl", side.data())
    copy = fork(main, len(main.lines))
    copy.model("b", copy.user("more", "a1"), "fine")
    write(project / f"{OTHER}.jsonl", copy.data())

    report = ledger.import_conversations(home, store=store)
    again = ledger.import_conversations(home, store=store)

    assert (report.conversations, report.turns, report.files) == (2, 3, 3)
    assert (again.turns, again.conversations_known, again.turns_known) == (0, 2, 3)
    chat = ledger.open(id_of("u1"), store=store)
    assert [turn.result for turn in chat.turns] == ["seen", "fine"]
    (part,) = chat.turns[0].messages[1]["parts"]
    beside = ledger.open(part["only"]["claude-code"]["side"], store=store)
    made_for = beside.entries("ledger", "import")[0]["data"]["side_of"]
    assert made_for == {"conversation": chat.id, "turn": chat.turns[0].id, "call": "task"}


def test_a_fork_imported_later_joins(home, store):
    """A source and its copy that are imported months apart are one conversation, nothing twice."""
    session = straight()
    copy = fork(session, -2)
    copy.model("b2", copy.user("u2b", "a1"), "other")
    first = write(home / "projects" / "p" / f"{SESSION}.jsonl", session.data())
    ledger.import_conversations(home, store=store)
    first.unlink()
    write(home / "projects" / "p" / f"{OTHER}.jsonl", copy.data())

    report = ledger.import_conversations(home, store=store)

    assert (report.turns, report.turns_known) == (1, 1)
    chat = ledger.open(id_of("u1"), store=store)
    assert len(chat.heads()) == 2
    assert sum(turn.usage["output_tokens"] for turn in chat.all_turns()) == 9 + 5 + 5


def test_a_session_that_runs_is_imported_again_and_again(home, store, world):
    """Imported after each line, a session has each answer and each count once, and nothing half done."""
    session = straight()
    path = home / "projects" / "p" / f"{SESSION}.jsonl"
    reports = []
    for upto in range(1, len(session.lines) + 1):
        part = Session()
        part.lines = session.lines[:upto]
        write(path, part.data())
        world.time = times.from_text(part.lines[-1]["timestamp"])
        reports.append(importing.import_conversations(path, store=store, world=world))
    world.pass_time(120)
    last = importing.import_conversations(path, store=store, world=world)

    turns = ledger.open(id_of("u1"), store=store).all_turns()

    assert [(turn.result, turn.state) for turn in turns] == [("done", "done"), ("bye", "done")]
    assert sum(turn.usage.get("output_tokens", 0) for turn in turns) == 4 + 5 + 5
    assert {report.held for report in reports} == {1}
    assert (last.held, last.turns) == (0, 1)
    data = [
        one["data"]["raw"]
        for one in ledger.open(id_of("u1"), store=store).entries("ledger", "import")
    ]
    rests = [raw["rest"] if isinstance(raw, dict) else raw for raw in data]
    assert session.data() == b"".join(rest.read() for rest in rests if rest is not None)


def test_a_copy_of_old_sessions_is_whole(home, store):
    """What was copied just now and was said long ago is over: the lines tell the time, not the files."""
    write(home / "projects" / "p" / f"{SESSION}.jsonl", straight().data(), old=False)

    report = ledger.import_conversations(home, store=store)

    assert (report.turns, report.held, report.to_dict()["held"]) == (2, 0, 0)
    turns = ledger.open(id_of("u1"), store=store).all_turns()
    assert [turn.state for turn in turns] == ["done", "done"]


def test_what_may_go_on_is_told(home, store, world):
    """A turn that may go on is left out, and the report says so; minutes later it comes as it is then."""
    session = straight()
    session.user("u3", "a2")
    path = write(home / "projects" / "p" / f"{SESSION}.jsonl", session.data())
    world.time = times.from_text(session.time())

    report = importing.import_conversations(home, store=store, world=world)

    assert (report.turns, report.turns_known, report.held) == (2, 0, 1)
    assert "the last turn of 1 conversation left out, which may still go on" in str(report)
    chat = ledger.open(id_of("u1"), store=store)
    assert chat.head.result == "bye"
    again = importing.import_conversations(home, store=store, world=world)
    assert (again.turns, again.turns_known, again.held) == (0, 2, 1)
    world.pass_time(120)
    later = importing.import_conversations(home, store=store, world=world)
    assert (later.turns, later.held) == (1, 0)
    assert chat.all_turns()[-1].state == "abandoned"
    assert path.exists()


def test_only_a_turn_that_may_go_on_is_no_error(home, store, world):
    """A session of one turn that may go on holds something: nothing is recorded, and it is told."""
    session = Session()
    session.user("u1", None)
    write(home / "projects" / "p" / f"{SESSION}.jsonl", session.data())
    world.time = times.from_text(session.time())

    report = importing.import_conversations(home, store=store, world=world)

    assert (report.conversations, report.turns, report.held) == (0, 0, 1)
    assert store.conversations() == []


def test_without_times_that_of_the_file_counts(home, store):
    """Lines that tell no time, in a file that was written to just now, may go on."""
    session = straight()
    for line in session.lines:
        del line["timestamp"]
    path = write(home / "projects" / "p" / f"{SESSION}.jsonl", session.data(), old=False)

    assert ledger.import_conversations(home, store=store).held == 1
    hour_ago = path.stat().st_mtime - 3600
    os.utime(path, (hour_ago, hour_ago))
    report = ledger.import_conversations(home, store=store)

    assert (report.held, report.turns) == (0, 1)


def test_a_sub_agent_of_a_turn_that_may_go_on_waits_with_it(home, store, world):
    """While a turn may go on, its sub-agents are not imported: they name the turn that it will be."""
    main, side = with_agents()
    main.lines = main.lines[:-1]
    project = home / "projects" / "-home-me"
    write(project / f"{SESSION}.jsonl", main.data())
    write(project / SESSION / "subagents" / "agent-a1b2c3d.jsonl", side.data())
    world.time = times.from_text(side.time())

    report = importing.import_conversations(home, store=store, world=world)
    assert (report.turns, report.held) == (0, 2)
    write(project / f"{SESSION}.jsonl", with_agents()[0].data())
    world.pass_time(120)
    importing.import_conversations(home, store=store, world=world)

    (turn,) = ledger.open(id_of("u1"), store=store).turns
    (beside,) = (id for id in store.conversations() if id != id_of("u1"))
    (entry,) = ledger.open(beside, store=store).entries("ledger", "import")
    assert entry["data"]["side_of"]["turn"] == turn.id


def test_a_codex_home_is_found(home, store):
    """Rollouts in sessions and in the archive are found, the same one once."""
    rollout = codex.straight()
    data = b"".join(json.dumps(line).encode() + b"\n" for line in rollout.lines)
    for folder in ("sessions/2026/01/01", "archived_sessions"):
        write(home / folder / f"rollout-2026-01-01T00-00-00-{codex.ROOT}.jsonl", data)

    report = ledger.import_conversations(home, store=store)

    assert (report.conversations, report.turns, report.files) == (1, 2, 2)


def test_an_image_is_there(home, store):
    """The bytes of an image in a prompt are kept, and named by the message."""
    session = Session()
    source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
    session.model("a", session.user("u", None, [{"type": "image", "source": source}]), call("x"))
    session.model("b", session.result("r", "a", "x"), "seen")
    write(home / "projects" / "p" / f"{SESSION}.jsonl", session.data())

    ledger.import_conversations(home, store=store)

    (part,) = ledger.open(id_of("u"), store=store).turns[0].messages[0]["parts"]
    assert store.blobs.get(part["content"]["$attachment"]["sha256"]) == b"hello"
