"""The workers of docs/how-to/survive-a-crash.md, as the page has them, killed and told to go."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ledger
from tests.docs_runner import find_blocks
from tests.scenarios.support import until

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "survive-a-crash.md"
WORKER = next(
    block.text
    for block in find_blocks(PAGE.read_text(encoding="utf-8"), PAGE.name)
    if "from shop import" in block.text
)
SHOP = """
import os, time
import ledger

def note(what):
    with open("done", "a") as file:
        file.write(f"{what}\\n")

def held():
    note("tool 2 begins")
    while not os.path.exists("go"):
        time.sleep(0.01)
    return "second"

def support(message: str) -> str:
    turn = ledger.current()
    turn.reply(message, lambda: note("reply"))
    first = turn.tool("one", {}, lambda: note("tool 1") or "first", effects="changes")
    return f"{message}: {first} {turn.tool('two', {}, held, effects='reads')}"
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with the page's worker and a program that stops in its second tool until there is `go`."""
    (tmp_path / "worker.py").write_text(WORKER, encoding="utf-8")
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "jobs").mkdir()
    return tmp_path


@pytest.fixture
def start(folder):
    """Starts a worker, which is killed when the test is over."""
    begun = []

    def started():
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        begun.append(subprocess.Popen([sys.executable, "worker.py"], cwd=folder, env=env))
        return begun[-1]

    yield started
    for process in begun:
        process.kill()
        process.wait()


def put(folder, name, message, to="alex"):
    """Put a message where workers take it."""
    written = folder / "jobs" / f"{name}.new"
    written.write_text(f"{to}\n{message}")
    written.rename(folder / "jobs" / f"{name}.job")


def done(folder):
    """Return what the program did, in order."""
    path = folder / "done"
    return path.read_text().splitlines() if path.exists() else []


def test_a_killed_workers_turn_is_finished_by_the_next(folder, start):
    """A worker is killed in a turn; the one that is started then gives the answer, and pays nothing twice."""
    killed = start()
    put(folder, "m1", "money")
    until(lambda: "tool 2 begins" in done(folder))
    killed.kill()
    killed.wait()
    (folder / "go").touch()

    start()

    chat = ledger.open("alex", store=folder / "chats")
    until(lambda: chat.turn(1).state == "done")
    assert chat.turn(1).result == "money: first second"
    assert done(folder) == ["reply", "tool 1", "tool 2 begins", "tool 2 begins"]
    assert (chat.turn(1).request_id, len(chat.all_turns())) == ("m1.job", 1)
    assert list((folder / "jobs").iterdir()) == []


def test_a_worker_that_is_told_to_go_finishes_its_turn(folder, start):
    """Told to go, a worker takes no more messages and waits for its turn; another takes what came since."""
    going = start()
    put(folder, "m1", "money")
    until(lambda: "tool 2 begins" in done(folder))
    going.send_signal(signal.SIGTERM)
    put(folder, "m2", "more")
    (folder / "go").touch()
    assert going.wait(30) == 0

    chat = ledger.open("alex", store=folder / "chats")
    assert chat.turn(1).state == "done"
    start()
    until(lambda: len(chat.all_turns()) == 2 and chat.turn(2).state == "done")
    assert done(folder).count("reply") == 2


def test_messages_of_a_conversation_are_answered_in_their_order(folder, start):
    """However many workers there are, and whatever comes between: by their names, each once."""
    (folder / "go").touch()
    messages = [f"{n:02}" for n in range(16)]
    for message in messages:
        put(folder, message, message, to=f"conv{int(message) % 2}")

    start()
    start()

    until(lambda: not list((folder / "jobs").iterdir()))
    for number in (0, 1):
        chat = ledger.open(f"conv{number}", store=folder / "chats")
        until(lambda chat=chat: all(turn.state == "done" for turn in chat.all_turns()))
        assert [turn.inputs["message"] for turn in chat.turns] == messages[number::2]
        assert len(chat.all_turns()) == len(chat.turns)
