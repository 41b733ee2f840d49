"""approve, deny, resume: turns that wait for a person, or whose process was killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ledger

ROOT = Path(__file__).parents[2]
APP = '''
import os, sys, time
import ledger

def ran(what):
    with open("ran", "a") as file:
        file.write(what + "\\n")
    if os.environ.get("DIES") == what:
        os._exit(9)
    return f"{what} is done"

def answer(message: str):
    turn = ledger.current()
    yield "Well. "
    for name, number in (part.split("=") for part in message.split()):
        effects = "reads" if name == "look" else "changes"
        said = turn.tool(name, {"order": int(number)}, lambda: ran(f"{name} {number}"), effects=effects)
        yield f"{said}; "

def pair(message: str):
    """Asks two questions at once."""
    turn = ledger.current()
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor() as pool:
        jobs = [
            pool.submit(turn.tool, name, {"to": "\\x1b[2J"}, lambda: name, effects="changes")
            for name in ("mail", "post")
        ]
        time.sleep(0.2)
        for job in jobs:
            job.result()
    return "both"

def silent(message: str):
    return ""

def fails(message: str):
    raise ValueError("no luck")

def other(message: str, more: int):
    return "?"

def endless(message: str):
    yield "running\\n"
    while not ledger.current().stopped:
        time.sleep(0.01)

def no_program(*messages):
    return ""

number = 5

if __name__ == "__main__":
    rule = (lambda question: True) if sys.argv[3] == "yes" else sys.argv[3] or None
    chat = ledger.open("alex", globals()[sys.argv[1]], store="store", approve=rule)
    try:
        chat(sys.argv[2])
    except ledger.LedgerError as error:
        print(error.code)
'''


@pytest.fixture
def app(tmp_path, monkeypatch):
    """A folder with programs in `app`, and a way to send to one in a process of its own."""
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "app", raising=False)

    def send(program, message, *, approve="", dies=""):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "DIES": dies}
        command = [sys.executable, "app.py", program, message, approve]
        return subprocess.run(command, env=env, capture_output=True, text=True).stdout

    yield send
    sys.modules.pop("app", None)


@pytest.fixture
def alex(tmp_path):
    """The conversation that the programs answer in."""
    return ledger.open("alex", store=tmp_path / "store")


def ran():
    """Return the tools that ran, in order."""
    return Path("ran").read_text().splitlines() if Path("ran").exists() else []


# -- approve and deny --------------------------------------------------------------------------------


def test_what_is_asked_is_shown_and_approved(app, cli, alex):
    """show, log and watch show the question; approve answers exactly it; then the turn goes on."""
    assert app("answer", "refund=7", approve="changes") == "turn-waiting\n"
    asked = '? refund {"order": 7}\n  question 1 · path answer/refund · changes things\n'
    for command in (["show", "alex", "1"], ["log", "alex"], ["watch", "alex"]):
        assert asked in cli(*command)[1] + "\n"

    code, out, err = cli("approve", "alex", "--by", "maria")
    assert (code, err) == (0, "")
    assert asked in out
    assert "approved; nothing else is open; `turn-ledger resume alex 1 --program" in out
    assert ran() == []
    assert cli("watch", "alex")[1].splitlines()[-1].startswith("[waiting] for 0 answers")

    code, out, _ = cli("resume", "alex", "--program", "app:answer", "--approve", "changes")
    assert (code, out.splitlines()[-1], ran()) == (0, "[done]", ["refund 7"])
    assert "? yes, by maria\n" in out
    assert alex.turn(1).result == "Well. refund 7 is done; "


def test_what_is_denied_does_not_run(app, cli, alex):
    """deny tells the program the reason; the tool is not called."""
    app("answer", "refund=7", approve="changes")
    code, out, _ = cli("deny", "alex", "1", "answer/refund", "--reason", "no receipt")
    assert (code, "  denied; nothing else is open" in out) == (0, True)
    cli("resume", "alex", "--program", "app:answer", "--approve", "changes")
    assert ran() == []
    assert "no receipt" in alex.turn(1).result


def test_several_questions(app, cli, alex):
    """Without a name several open questions are listed and refused; each is answered by its name."""
    app("pair", "both", approve="all")
    code, out, err = cli("approve", "alex")
    assert (code, out) == (4, "")
    assert "2 questions are open, name one: " in err  # Either, first: two threads ask.
    assert " 1 is " in err
    assert " 2 is " in err
    assert len(err.splitlines()) == 1
    assert all(c.isprintable() or c == "\n" for c in err)

    code, out, _ = cli("approve", "alex", "1", "2", "--json")
    told = json.loads(out)
    assert (told["answered"]["invocation"], told["verdict"]) == (2, "yes")
    assert [q["invocation"] for q in told["waiting"]] == [1]
    code, _, err = cli("deny", "alex", "1", "2")
    assert (code, "[question-unknown]" in err) == (4, True)
    code, _, err = cli("resume", "alex", "--program", "app:pair", "--approve", "all")
    assert (code, "[turn-waiting]" in err) == (4, True)

    code, out, _ = cli("deny", "alex")  # The only one that is open now, as `turn.deny()`.
    assert (code, "\\x1b[2J" in out or "\\u001b[2J" in out) == (0, True)
    assert alex.turn(1).waiting == []


def test_the_only_open_question_needs_no_name(app, cli, alex):
    """Without a name the question that is open is answered, also after others were; a name of both is refused."""
    app("answer", "refund=7 refund=8", approve="all")
    cli("approve", "alex")
    cli("resume", "alex", "--program", "app:answer")

    code, _, err = cli("approve", "alex", "1", "answer/refund")
    assert (code, "others were answered before, name one: 2 is " in err) == (4, True)
    code, out, err = cli("approve", "alex")
    assert (code, err, '? refund {"order": 8}' in out) == (0, "", True)
    assert alex.turn(1).waiting == []


def test_answering_twice(app, cli):
    """A second answer is refused, and says so; the first counts."""
    app("answer", "refund=7", approve="all")
    cli("deny", "alex")
    code, out, err = cli("approve", "alex")
    assert (code, out, "was answered already" in err) == (4, "", True)


# -- resume ------------------------------------------------------------------------------------------


def test_a_killed_turn_goes_on(app, cli, alex):
    """What ran before its process died does not run again; the answer is whole."""
    app("answer", "look=1 look=2", dies="look 2")
    out = cli("watch", "alex")[1]
    assert "[interrupted] its process died; `turn-ledger resume alex 1 --program" in out

    code, out, err = cli("resume", "alex", "--program", "app:answer")
    assert (code, err) == (0, "")
    assert out.splitlines()[-2:] == ["< look 2 is done; ", "[done]"]
    assert ran() == ["look 1", "look 2", "look 2"]
    assert alex.turn(1).result == "Well. look 1 is done; look 2 is done; "


@pytest.mark.parametrize(
    ("said", "runs"),
    [(["--result", '1="paid"'], 1), (["--rerun", "1"], 2)],
)
def test_a_tool_that_may_have_run(app, cli, alex, said, runs):
    """Until a person says what it gave, or that it is to run again, the turn does not go on."""
    app("answer", "refund=7", dies="refund 7")
    shown = cli("show", "alex", "1")[1]
    assert '* refund {"order": 7}\n  it may have run' in shown
    code, out, err = cli("resume", "alex", "--program", "app:answer")
    assert (code, out, "[turn-unfinished]" in err) == (4, "", True)
    assert "answer#1:1 (refund); say so of each with --result KEY=JSON, or --rerun KEY" in err

    code, out, _ = cli("resume", "alex", "--program", "app:answer", "--json", *said)
    told = json.loads(out)
    assert (code, told["state"], told["unfinished"]) == (0, "done", [])
    assert ran() == ["refund 7"] * runs
    assert ("paid" in alex.turn(1).result) is (runs == 1)


def test_show_says_what_a_turn_did_and_who_allowed_it(app, cli, alex):
    """show lists the tools that were called, with what they gave, and each answer with who gave it and why."""
    app("answer", "look=1 refund=7", approve="changes")
    cli("approve", "alex", "--by", "maria", "--reason", "it is owed")
    cli("resume", "alex", "--program", "app:answer")

    out = cli("show", "alex", "1")[1]
    assert '  ? refund {"order": 7} - yes, by maria: it is owed (20' in out
    assert '  * look {"order": 1} -> "look 1 is done"\n' in out
    told = json.loads(cli("show", "alex", "1", "--json")[1])
    assert [step["name"] for step in told["steps"]] == ["look", "refund"]
    assert [(q["verdict"], q["by"]) for q in told["questions"]] == [("yes", "maria")]


def test_a_tool_that_may_have_run_in_a_turn_that_was_given_up(app, cli, alex):
    """show says of a turn that was abandoned which of its tools may have run, and no way to go on."""
    app("answer", "refund=7", dies="refund 7")
    cli("abandon", "alex", "1")
    out = cli("show", "alex", "1")[1]
    assert '* refund {"order": 7}\n  it may have run, begun 20' in out
    assert "--rerun" not in out


def test_all_turns(app, cli, tmp_path, alex):
    """--all goes on with every turn of a conversation, or of the store; those that need a person are left."""
    app("answer", "look=1", dies="look 1")
    app("answer", "look=2", dies="look 2")
    app("answer", "refund=3", dies="refund 3")
    code, out, _ = cli("resume", "alex", "--all", "--program", "app:answer")
    assert (code, [line.split()[:2] for line in out.splitlines()[::2]]) == (
        0,
        [["alex", "1"], ["alex", "2"]],
    )
    assert [turn.state for turn in alex.all_turns()] == ["done", "done", "interrupted"]

    app("answer", "look=4", dies="look 4")
    code, out, _ = cli("resume", "--all", "--program", "app:answer", "--json")
    told = json.loads(out)
    assert [(t["conversation"], t["ordinal"], t["state"]) for t in told] == [("alex", 4, "done")]
    assert "no turn can be gone on" in cli("resume", "--all", "--program", "app:answer")[1]


def test_a_program_that_fails(app, cli, alex):
    """How the turn ended is printed, and the exit code is 0: it was gone on with."""
    app("answer", "look=1", dies="look 1")
    code, out, _ = cli("resume", "alex", "--program", "app:fails")
    assert (code, out.splitlines()[-2:]) == (0, ["! ValueError: no luck", "[failed]"])


def test_a_program_that_changed(app, cli, alex):
    """A program that does not come to a recorded call ends nothing: the turn can be gone on with."""
    app("answer", "look=1 look=2", dies="look 2")
    code, _, err = cli("resume", "alex", "--program", "app:silent")
    assert (code, "[turn-changed]" in err) == (4, True)
    assert alex.turn(1).state == "interrupted"
    assert cli("resume", "alex", "--program", "app:answer")[1].endswith("[done]\n")


def test_who_asked_is_asked_about_the_rest(app, cli, alex):
    """A turn that asked a person asks about its next tools too, unless somebody says otherwise."""
    app("answer", "refund=1 refund=2", approve="changes")
    cli("approve", "alex")

    code, out, _ = cli("resume", "alex", "--program", "app:answer")
    assert (code, ran(), alex.turn(1).state) == (0, ["refund 1"], "waiting")
    assert out.splitlines()[-1] == "[waiting] for 1 answer of a person"
    cli("approve", "alex", "1", "2")
    cli("resume", "alex", "--program", "app:answer", "--approve", "none")
    assert ran() == ["refund 1", "refund 2"]


def test_a_rule_that_was_a_function_has_to_be_given(app, cli, alex):
    """A turn whose questions a function answered is not gone on with unasked."""
    app("answer", "refund=1 look=2", approve="yes", dies="look 2")
    code, out, err = cli("resume", "alex", "--program", "app:answer")
    assert (code, out, "approve" in err) == (4, "", True)
    assert cli("resume", "alex", "--program", "app:answer", "--approve", "changes")[0] == 0
    assert (ran(), alex.turn(1).state) == (["refund 1", "look 2", "look 2"], "done")


def test_an_interrupt_stops_the_turn(app, alex):
    """Ctrl-C ends the turn `stopped`, and the command with 130."""
    app("answer", "look=1", dies="look 1")
    command = [sys.executable, "-m", "ledger.cli", "--store", "store", "resume", "alex"]
    command += ["--program", "app:endless"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as resuming:
        assert [resuming.stdout.readline() for _ in range(2)][1] == "> look=1\n"
        while (line := resuming.stdout.readline()) != "< running\n":
            assert line
        resuming.send_signal(signal.SIGINT)
        resuming.stdout.read()
    assert resuming.returncode == 130
    assert alex.turn(1).state == "stopped"


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["resume", "alex"], 2, "--program MODULE:FUNCTION is missing"),
        (["resume", "--program", "app:answer"], 2, "--all"),
        (["resume", "alex", "1", "--all", "--program", "app:answer"], 2, "--all goes with no turn"),
        (["resume", "alex", "--program", "app"], 2, "a module and a function"),
        (["resume", "alex", "--program", "nowhere:f"], 2, "No module named 'nowhere'"),
        (["resume", "alex", "--program", "broken:f"], 2, "ZeroDivisionError"),
        (["resume", "alex", "--program", "app:nothing"], 2, "there is no 'nothing'"),
        (["resume", "alex", "--program", "app:number"], 2, "is no program: it is int"),
        (["resume", "alex", "--program", "app:no_program"], 4, "conversation-opaque"),
        (["resume", "alex", "--program", "app:other"], 4, "conversation-signature"),
        (["resume", "alex", "--program", "app:answer", "--set", "store=x"], 2, "--set"),
        (["resume", "alex", "--program", "app:answer", "--set", "lm"], 2, "--set"),
        (["resume", "alex", "--program", "app:answer", "--approve", "a,,b"], 2, "--approve"),
        (["resume", "alex", "--program", "app:answer", "--result", "1=paid"], 2, "--result"),
        (["resume", "alex", "--program", "app:answer", "--result", "9=1"], 4, "turn-state"),
        (["resume", "alex", "9", "--program", "app:answer"], 3, "turn-unknown"),
        (["resume", "nobody", "--program", "app:answer"], 3, "conversation-unknown"),
        (["approve", "alex"], 4, "turn-state"),
        (["deny", "alex", "9"], 3, "turn-unknown"),
        (["approve", "nobody"], 3, "conversation-unknown"),
        (["approve", "empty"], 3, "no turns yet"),
    ],
)
def test_a_users_error_is_one_sentence_and_a_code(app, cli, tmp_path, alex, args, code, word):
    """Errors go to stderr in one printable line, and nothing to stdout; the turn is as it was."""
    Path("broken.py").write_text("1 / 0")
    ledger.open("empty", store=tmp_path / "store").title = "Nothing yet"
    app("answer", "look=1", dies="look 1")
    found, out, err = cli(*args)
    assert (found, out, word in err) == (code, "", True)
    assert len(err.splitlines()) == 1
    assert alex.turn(1).state == "interrupted"
