"""The application of docs/how-to/ask-a-person.md, as the page has it: questions answered by links, over HTTP."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

import ledger
from tests.docs_runner import find_blocks
from tests.scenarios import test_web
from tests.scenarios.support import until

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "ask-a-person.md"
PROGRAM, APP, WORKER = (
    next(text for text in texts if part in text)
    for texts in [[b.text for b in find_blocks(PAGE.read_text(encoding="utf-8"), PAGE.name)]]
    for part in ("def support", "LINK_KEY", "while True")
)
NASTY = "<script>alert(1)</script>"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the page's files, and the key of the links in the environment."""
    monkeypatch.setenv("LINK_KEY", "a key of the test, long enough!!")
    program = PROGRAM.split("chat = ")[0].replace('"paid": 40', f'"paid": "{NASTY}"')
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "go_on.py").write_text(WORKER, encoding="utf-8")
    return tmp_path


@pytest.fixture
def http(folder):
    """A client of the served application."""
    worker = test_web.Worker(folder, "asking")
    yield worker.http
    worker.close()


def module(folder, name):
    """Load a file of the folder."""
    made = ModuleType(name)
    text = (folder / f"{name}.py").read_text(encoding="utf-8")
    exec(compile(text, f"{name}.py", "exec"), made.__dict__)
    return made


@pytest.fixture
def turn(folder):
    """A turn that waits for a person."""
    support = module(folder, "shop").support
    chat = ledger.open("alex", support, store=folder / "chats", approve="changes")
    with pytest.raises(ledger.errors.TurnWaiting):
        chat("money")
    return chat.turn(1)


@pytest.fixture
def link(folder, turn):
    """The link at which maria answers the turn's question."""
    return module(folder, "app").link(turn, turn.waiting[0], "maria")


def test_a_link_shows_the_call_and_answers_nothing(http, link, turn):
    """Opened, a link shows exactly the call, escaped; the turn still waits, however often it is opened."""
    for _ in range(2):
        seen = http.get(link)
        assert seen.status_code == 200
        assert "support/refund" in seen.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in seen.text
        assert NASTY not in seen.text
    assert len(turn.waiting) == 1


def test_an_answer_is_recorded_and_a_worker_goes_on(folder, http, link, turn):
    """After a yes over HTTP another process goes on with the turn; a second answer is refused clearly."""
    assert http.post(link, data={"verdict": "yes", "reason": "ok"}).status_code == 200
    again = http.post(link, data={"verdict": "no"})
    assert (again.status_code, "answered already" in again.text) == (409, True)
    assert http.get(link).status_code == 409
    assert turn.state == "waiting"

    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "go_on.py"], cwd=folder, env=env) as worker:
        try:
            until(lambda: turn.state == "done")
        finally:
            worker.kill()
    assert turn.result == f"I asked for a refund: paid back {NASTY}"
    said = [r for r in ledger.FolderStore(folder / "chats").read("alex") if r["kind"] == "approval"]
    assert [(r["verdict"], r["by"], r["reason"]) for r in said] == [("yes", "maria", "ok")]


def test_two_answers_at_once(http, link, turn):
    """Of several answers at the same time one counts, and each of the others is told so."""
    verdicts = ["yes", "no"] * 4
    with ThreadPoolExecutor() as pool:
        replies = list(pool.map(lambda v: http.post(link, data={"verdict": v}), verdicts))
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
    assert turn.waiting == []


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1] + ("0" if t[-1] != "0" else "1"), lambda t: "A" + t, lambda t: "ä."]
)
def test_a_link_that_was_made_up(http, link, turn, change):
    """A link that was changed names nothing and answers nothing."""
    made_up = "/questions/" + change(link.removeprefix("/questions/"))
    assert http.get(made_up).status_code == 404
    assert http.post(made_up, data={"verdict": "yes"}).status_code == 404
    assert len(turn.waiting) == 1


def test_neither_yes_nor_no(http, link, turn):
    """No answer is never yes."""
    assert http.post(link, data={"verdict": "maybe"}).status_code == 400
    assert http.post(link).status_code == 400
    assert len(turn.waiting) == 1


def test_a_question_that_is_asked_no_more(http, link, turn):
    """When the turn was given up, its link says so and answers nothing."""
    turn.abandon()
    assert http.post(link, data={"verdict": "yes"}).status_code == 409
    assert turn.state == "abandoned"
