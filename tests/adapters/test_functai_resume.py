"""Turns that wait or were interrupted, seen and gone on with by both libraries."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from functai import ConversationError

import ledger
from ledger import errors
from tests.adapters.functai_side import Scripted, echo, fresh, ours, tutor_of
from tests.adapters.test_functai_schema import assert_valid, lines_of


@ledger.program
def checker(message: str) -> str:
    """Look at it: a helper that asks a model and calls a tool."""
    turn = ledger.current()
    thought = turn.reply({"check": message}, lambda: {"text": "thought"})
    return str(turn.tool("note", {"text": thought["text"]}, lambda: {"n": 1}, effects="changes"))


@ledger.program
def agent(message: str) -> str:
    """Answer with the help of another, and of a tool that a person is asked about."""
    turn = ledger.current()
    turn.note(model="m", usage={"input_tokens": 2})
    turn.reply(["plan"], lambda: "a plan")
    turn.tool("look", 1, lambda: [1], effects="reads")
    checker(message)
    return turn.tool("refund", {"order": 7}, lambda: "refunded", id="call-1", effects="changes")


def waiting(folder):
    """A conversation of ours whose turn waits for a person."""
    remembers = {checker: ledger.remember("conversation", steps=True)}
    chat = ledger.open(
        "alex", agent, store=ledger.FolderStore(folder), approve=["refund"], remembers=remembers
    )
    with pytest.raises(errors.TurnWaiting):
        chat("hi")
    return chat


def test_every_step_that_we_write_is_valid(tmp_path):
    """Replies, tools of all states, helpers' calls, waits, answers, claims and what a person gave: each line."""
    chat = waiting(tmp_path)
    turn = chat.turn(1)
    turn.deny(by="Alex", reason="not now")
    assert turn.resume() == "This call was not allowed. Reason: not now"
    with pytest.raises(errors.TurnWaiting):
        chat("again")
    chat.turn(2).approve()
    chat.turn(2).resume()

    lines = lines_of(chat.store)
    assert_valid(lines)
    assert {line["kind"] for line in lines} == {
        *("program", "turn", "lease", "tool", "reply", "call", "waiting", "approval", "ended"),
    }


@pytest.mark.parametrize("verdict", ["yes", "no"])
def test_functai_answers_a_question_of_ours(tmp_path, verdict):
    """functai shows our waiting turn with its question, records an answer to it, and we go on with the turn."""
    chat = waiting(tmp_path)
    theirs = echo.conversation("alex", store=fresh(tmp_path))
    (turn,) = theirs.all_turns()
    assert turn.state == "waiting"
    (question,) = turn.waiting
    assert (question.name, question.input, question.path) == (
        "refund",
        {"order": 7},
        "agent/refund",
    )

    if verdict == "yes":
        turn.approve(question, by="Alex", resume=False)
    else:
        turn.deny(question, "not now", by="Alex", resume=False)

    assert chat.turn(1).waiting == []
    answer = chat.turn(1).resume()
    assert (
        answer == {"yes": "refunded", "no": "This call was not allowed. Reason: not now"}[verdict]
    )
    assert theirs.all_turns()[0].state == "done"
    assert theirs.all_turns()[0].usage == chat.turn(1).usage == {"input_tokens": 2}


def age(folder):
    """Let the leases in a log that functai wrote alone have run out an hour ago."""
    path = folder / "conversations" / "alex.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    past = (dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    aged = [{**line, "until": past} if line["kind"] == "lease" else line for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in aged))


def without_end(folder, kinds=("ended",)):
    """Let its writer have died before the end."""
    path = folder / "conversations" / "alex.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if json.loads(line)["kind"] not in kinds))
    age(folder)


def test_we_go_on_with_an_interrupted_turn_of_a_module(tmp_path, monkeypatch):
    """A functai module's turn without steps that was interrupted is ended by a program with the same fields."""
    monkeypatch.setattr("ledger.turns.resuming.WATCH_S", 0.1)
    echo.conversation("alex", store=fresh(tmp_path))("hi")
    without_end(tmp_path)
    chat = ledger.open("alex", ours, store=ledger.FolderStore(tmp_path))
    assert chat.turn(1).state == "interrupted"

    assert chat.turn(1).resume() == "ours hi"

    (turn,) = echo.conversation("alex", store=fresh(tmp_path)).all_turns()
    assert (turn.state, turn.result) == ("done", "ours hi")


def test_a_turn_of_an_ai_function_is_refused(tmp_path, monkeypatch):
    """A turn of one of functai's AI functions is for functai to go on with: refused; nothing runs or is written."""
    monkeypatch.setattr("ledger.turns.resuming.WATCH_S", 0.1)
    tutor_of(Scripted()).conversation("alex", store=fresh(tmp_path))("hi")
    without_end(tmp_path)
    store, ran = ledger.FolderStore(tmp_path), []

    def program(message: str) -> str:
        ran.append(message)
        return "ours"

    before = store.raw("alex")
    with pytest.raises(errors.TurnState, match="another"):
        ledger.open("alex", program, store=store).turn(1).resume()
    assert (ran, store.raw("alex")) == ([], before)
    again = tutor_of(Scripted()).conversation("alex", store=fresh(tmp_path))
    assert again.all_turns()[0].state == "interrupted"


def test_functai_does_not_go_on_with_ours_unasked(tmp_path):
    """A waiting turn of ours with an open question is refused by functai's resume too."""
    waiting(tmp_path)
    with pytest.raises(ConversationError):
        echo.conversation("alex", store=fresh(tmp_path)).all_turns()[0].resume()
