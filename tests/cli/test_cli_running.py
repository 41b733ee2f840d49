"""watch, stop, abandon: on turns that run in another process, which may be stopped or killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import ledger
from ledger.records import kinds, times
from ledger.records.events import position
from ledger.turns.world import SYSTEM

ROOT = Path(__file__).parents[2]
HOSTILE = "\x1b]0;owned\x07\n[done]\u202e"


class Process:
    """A process of ours, which is killed when the test is over."""

    def __init__(self, *arguments, store):
        self.popen = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TURN_LEDGER_STORE": str(store)},
            text=True,
            bufsize=1,
        )

    def say(self, piece):
        """Have the turn say a piece."""
        self.popen.stdin.write(json.dumps(piece) + "\n")

    def line(self):
        """Return the next line it prints."""
        return self.popen.stdout.readline().rstrip("\n")

    def rest(self):
        """Return its exit code and all that it still prints, on both streams; its input ends."""
        self.popen.stdin.close()
        out, err = self.popen.stdout.read(), self.popen.stderr.read()
        return self.popen.wait(60), out, err

    def signal(self, number):
        """Send it a signal."""
        self.popen.send_signal(number)


@pytest.fixture
def start(tmp_path):
    """Starts the command line, or a worker with a turn that runs."""
    begun = []

    def started(*arguments):
        begun.append(Process(*arguments, store=tmp_path / "store"))
        return begun[-1]

    yield started
    for process in begun:
        with process.popen:
            process.popen.kill()


@pytest.fixture
def worker(start, tmp_path):
    """Starts a process with a turn of `alex`, and returns when the turn runs."""

    def started(*options):
        process = start(
            str(Path(__file__).with_name("worker.py")), str(tmp_path / "store"), *options
        )
        assert process.line() == "running"
        return process

    return started


@pytest.fixture
def ledger_cli(start):
    """Starts the command line as a process of its own."""
    return lambda *arguments: start("-m", "ledger.cli", *arguments)


@pytest.fixture
def alex(tmp_path):
    """The conversation of the worker."""
    return ledger.open("alex", store=tmp_path / "store")


@contextmanager
def suspended(process):
    """Have a process do nothing for a while."""
    process.signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.popen.pid, os.WSTOPPED | os.WNOWAIT)
    yield
    process.signal(signal.SIGCONT)


# -- a turn of another process ---------------------------------------------------------------------


def test_a_running_turn_is_watched_and_stopped(worker, ledger_cli, alex):
    """The text is shown as it comes, the turn is stopped from a third process, and all three are told."""
    running = worker()
    watching = ledger_cli("watch", "alex")
    assert watching.line().startswith(f"1  {alex.turn(1).id}  [running]")
    assert watching.line() == "> Say it."
    running.say("one\n")
    assert watching.line() == "< one"

    code, out, err = ledger_cli("stop", "alex").rest()

    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith(f"1  {alex.turn(1).id}  [stopped]")
    assert out.splitlines()[1:] == ["  it ran, and is stopped"]
    assert watching.rest() == (0, "  \n[stopped]\n", "")
    assert running.rest()[1] == "raised turn-stopped\n"
    assert alex.turn(1).partial == "one\n"


def test_a_turn_is_stopped_by_its_request_id(worker, ledger_cli, alex):
    """A request id names its turn; one of nobody is not found, and nothing is stopped."""
    running = worker("order-17")
    code, _, err = ledger_cli("stop", "alex", "--request-id", "order-18").rest()
    assert (code, "'order-18' is the request id of no turn" in err) == (3, True)
    assert alex.turn(1).state == "running"

    code, out, _ = ledger_cli("stop", "alex", "--request-id", "order-17", "--json").rest()
    told = json.loads(out)
    assert (code, told["before"], told["state"]) == (0, "running", "stopped")
    assert running.rest()[1] == "raised turn-stopped\n"


def test_a_turn_that_does_not_react(worker, ledger_cli, alex):
    """When its process does nothing, stop says so in time; the request stays, and is heeded later."""
    running = worker()
    with suspended(running):
        code, out, _ = ledger_cli("stop", "alex", "--wait", "0.1").rest()
        assert code == 0
        assert "it was asked to stop and still runs" in out
        assert "turn-ledger abandon alex 1" in out
        told = json.loads(ledger_cli("stop", "alex", "--wait", "0", "--json").rest()[1])
        assert (told["before"], told["state"]) == ("running", "running")

    assert alex.turn(1).wait(30) == "stopped"
    assert [r["kind"] for r in alex.store.read("alex")].count("stop") == 1


def test_a_running_turn_is_not_abandoned(worker, ledger_cli, alex):
    """abandon refuses it and names the next step; the turn runs on to its answer."""
    running = worker()
    code, out, err = ledger_cli("abandon", "alex", "1").rest()
    assert (code, out) == (4, "")
    assert "stop it [turn-state]" in err
    running.say("fine")
    assert running.rest()[1] == 'answered "fine"\n'


@pytest.mark.parametrize("command", [["abandon", "alex", "1"], ["stop", "alex"]])
def test_a_turn_whose_process_was_killed(worker, ledger_cli, alex, command):
    """abandon and stop end it; both say what it was, and again is no error."""
    running = worker("--late")
    running.signal(signal.SIGKILL)
    running.rest()
    assert "[interrupted] its process died" in ledger_cli("watch", "alex").rest()[1]

    code, out, _ = ledger_cli(*command).rest()
    assert (code, "its process had died; it is abandoned" in out) == (0, True)
    assert alex.turn(1).state == "abandoned"
    code, out, _ = ledger_cli(*command).rest()
    assert (code, "it had ended before, abandoned" in out) == (0, True)


@pytest.mark.parametrize("command", [["abandon", "alex", "1"], ["stop", "alex"]])
def test_what_a_killed_turn_had_said_is_kept(worker, ledger_cli, alex, command):
    """What it said is told while it is interrupted, by every reader, and recorded when it is ended."""
    running = worker()
    watching = ledger_cli("watch", "alex")
    watching.line(), watching.line()
    running.say("Once there was\n")
    assert watching.line() == "< Once there was"
    running.signal(signal.SIGKILL)
    running.rest()

    turn = alex.turn(1)
    assert (turn.state, turn.partial) == ("interrupted", "Once there was\n")
    shown = json.loads(ledger_cli("show", "alex", "1", "--json").rest()[1])
    assert (shown["state"], shown["partial"]) == ("interrupted", "Once there was\n")
    assert "<… Once there was" in ledger_cli("log", "alex").rest()[1]

    assert ledger_cli(*command).rest()[0] == 0
    ended = alex.store.read("alex")[-1]
    assert (ended["state"], ended["partial"]) == ("abandoned", "Once there was\n")
    assert alex.turn(1).partial == "Once there was\n"


def test_a_killed_turn_is_drawn_as_what_it_is(worker, ledger_cli, alex):
    """The tree, drawn and as JSON, has a killed turn as `turn.state` has it, while its lease still lasts."""
    running = worker()
    assert "[running]" in str(alex.tree())
    running.signal(signal.SIGKILL)
    running.rest()

    assert alex.turn(1).state == "interrupted"
    assert "[interrupted]" in str(alex.tree())
    assert "[interrupted]" in ledger_cli("tree", "alex").rest()[1]
    drawn = json.loads(ledger_cli("tree", "alex", "--json").rest()[1])
    assert [turn["state"] for turn in drawn["turns"]] == ["interrupted"]


def test_a_killed_turn_is_forgotten(worker, alex):
    """A turn whose process was killed can be forgotten at once."""
    running = worker()
    running.signal(signal.SIGKILL)
    running.rest()

    alex.forget(1)

    assert alex.turn(1).erased


# -- watching --------------------------------------------------------------------------------------


def test_a_watch_that_is_cut_off_goes_on(worker, ledger_cli):
    """Watched in three parts, each after the last event of the one before: no gap, and nothing twice."""
    running, seen = worker(), []

    def watch():
        options = [] if not seen else ["--after", "{writer}:{seq}".format(**position(seen[-1]))]
        return ledger_cli("watch", "alex", "--json", *options)

    for number in range(3):
        watching = watch()
        for piece in range(2):
            running.say(f"{number}.{piece} ")
            seen.append(json.loads(watching.line()))
        watching.signal(signal.SIGKILL)
        watching.rest()
    last = watch()
    running.rest()
    seen += map(json.loads, last.rest()[1].splitlines())

    whole = [
        json.loads(line)
        for line in ledger_cli("watch", "alex", "--json").rest()[1].split("\n")[:-1]
    ]
    assert seen == whole
    assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
    said = "".join(event["text"] for event in whole if event["kind"] == "text")
    assert said == "0.0 0.1 1.0 1.1 2.0 2.1 " == whole[-1]["value"]


def test_an_interrupt_ends_the_watching_only(worker, ledger_cli, alex):
    """Ctrl-C ends with 130 and says how to go on; the turn runs on, and the rest follows from there."""
    running = worker()
    watching = ledger_cli("watch", "alex")
    watching.line()
    watching.line()
    running.say("one\n")
    assert watching.line() == "< one"
    watching.signal(signal.SIGINT)
    code, _, err = watching.rest()
    assert code == 130
    assert alex.turn(1).state == "running"

    running.say("two")
    running.rest()
    told = re.fullmatch(
        r"turn-ledger: turn 1 is no longer watched; --after (1:[12]) shows the rest\n", err
    )
    # Interrupted after a line and before its place was noted, the line is shown again: none is lost.
    rest = {"1:2": "< two\n[done]\n", "1:1": "< one\n  two\n[done]\n"}[told[1]]
    assert ledger_cli("watch", "alex", "1", "--after", told[1]).rest()[1] == rest


def test_an_interrupt_of_a_program_is_quiet(worker, ledger_cli):
    """With --json an interrupt leaves whole lines, and no word."""
    worker()
    watching = ledger_cli("watch", "alex", "--json")
    assert json.loads(watching.line())["kind"] == "started"
    watching.signal(signal.SIGINT)
    assert watching.rest() == (130, "", "")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_nobody_reads(worker, ledger_cli, options):
    """When the reader leaves, watching ends without a word, also while the turn says nothing."""
    worker()
    watching = ledger_cli("watch", "alex", *options)
    watching.line()
    watching.popen.stdout.close()
    assert watching.popen.wait(30) == 0
    assert watching.popen.stderr.read() == ""


def test_the_end_may_come_before_the_watch(cli, alex):
    """A turn that ended, or that no events are kept of, is told from its records; head or not."""
    alex.record("What is 1/2 + 1/3?", "5/6")
    alex.record("Why?", "Because.")

    assert cli("watch", "alex")[1].splitlines()[1:] == ["> Why?", "< Because.", "[done]"]
    assert "< 5/6\n[done]\n" in cli("watch", "alex", "1")[1]
    events = [json.loads(line) for line in cli("watch", "alex", "--json")[1].splitlines()]
    assert [event["kind"] for event in events] == ["started", "text", "done"]
    assert cli("watch", "alex", "--after", "1:1")[1] == "< Because.\n[done]\n"


def test_what_is_said_steers_no_terminal(worker, ledger_cli, alex):
    """What a turn says is spelled out, and does not look like its end."""
    running = worker()
    watching = ledger_cli("watch", "alex")
    running.say(HOSTILE)
    running.rest()
    out = watching.rest()[1]
    assert all(c.isprintable() or c == "\n" for c in out)
    assert out.endswith("< \\x1b]0;owned\\x07\n  [done]\\u202e\n[done]\n")
    out = ledger_cli("watch", "alex", "--json").rest()[1]
    assert all(c.isprintable() or c == "\n" for c in out)
    assert json.loads(out.splitlines()[-1])["value"] == HOSTILE


# -- states ----------------------------------------------------------------------------------------


def waiting(alex):
    """Add a turn that waits for a person, as another program leaves it."""
    turn, at = SYSTEM.turn_id(), times.to_text(SYSTEM.now())
    asked = {"call": turn, "invocation": 1, "id": "t", "name": "buy", "input": {}, "path": "a"}
    asked |= {"site": "a#1", "effects": "changes"}
    alex.record("before", "it")
    version = alex.store.read("alex")[0]["version"]
    sent = {"program": version, "inputs": {"message": "Buy it."}, "saw": []}
    alex.store.append(
        "alex",
        [
            kinds.new("turn", at, turn=turn, parent=alex.turn(1).id, **sent),
            kinds.new("lease", at, turn=turn, holder="a:1:b", until=at, attempt=1),
            kinds.new("waiting", at, turn=turn, approvals=[asked], saw=[], attempt=1),
        ],
    )
    assert alex.turn(2).state == "waiting"


@pytest.mark.parametrize("command", [["abandon", "alex", "2"], ["stop", "alex"]])
def test_a_turn_that_waits(cli, alex, command):
    """watch says that it waits and ends; abandon and stop end it `abandoned`."""
    waiting(alex)
    assert cli("watch", "alex")[1].endswith("[waiting] for 1 answer of a person\n")
    code, out, _ = cli(*command)
    assert (code, "it waited for a person; it is abandoned" in out) == (0, True)
    assert cli("watch", "alex")[1].endswith("[abandoned]\n")


def test_what_ended_stays(cli, alex):
    """Stopping what ended says so, and changes nothing; abandoning it is refused."""
    alex.record("a", "b")
    before = alex.store.raw("alex")
    code, out, _ = cli("stop", "alex", "1")
    assert (code, "it had ended before, done; nothing was changed" in out) == (0, True)
    code, _, err = cli("abandon", "alex", "1")
    assert (code, "[turn-state]" in err) == (4, True)
    assert alex.store.raw("alex") == before


def test_a_conversation_without_turns(cli, alex):
    """Where there is no turn, there is nothing to watch or stop, which is no error."""
    alex.title = "Nothing yet"
    assert cli("watch", "alex") == (0, "no turns yet\n", "")
    assert cli("watch", "alex", "--json") == (0, "", "")
    assert cli("stop", "alex") == (0, "no turns yet\n", "")
    assert cli("stop", "alex", "--json") == (0, "null\n", "")


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["watch", "nobody"], 3, "conversation-unknown"),
        (["watch", "alex", "9"], 3, "turn-unknown"),
        (["watch", "alex", "--after", "9"], 2, "a writer and a seq"),
        (["watch", "alex", "--after", "\x1b1:2"], 2, "a writer and a seq"),
        (["watch", "alex", "--after", "1:9"], 3, "event-unknown"),
        (["watch", "alex", "--json", "--after", "1:9"], 3, "event-unknown"),
        (["stop", "nobody"], 3, "conversation-unknown"),
        (["stop", "alex", "9"], 3, "turn-unknown"),
        (["stop", "alex", "1", "--request-id", "r"], 2, "not both"),
        (["stop", "alex", "--wait", "-1"], 2, "--wait"),
        (["stop", "alex", "--wait", "nan"], 2, "--wait"),
        (["abandon", "alex"], 2, "Missing"),
        (["abandon", "alex", "\x1b[2J"], 3, "turn-unknown"),
    ],
)
def test_a_users_error_is_one_sentence_and_a_code(cli, alex, args, code, word):
    """Errors go to stderr in one printable line, and nothing to stdout."""
    alex.record("a", "b")
    found, out, err = cli(*args)
    assert (found, out, word in err) == (code, "", True)
    assert len(err.splitlines()) == 1
    assert all(c.isprintable() or c == "\n" for c in err)
