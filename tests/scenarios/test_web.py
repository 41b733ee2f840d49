"""The application of docs/how-to/serve-a-chat-over-http.md, as the page has it, served by two processes."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from tests.docs_runner import find_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "serve-a-chat-over-http.md"
APP, CLIENT = (
    block.text
    for block in find_blocks(PAGE.read_text(encoding="utf-8"), PAGE.name)
    if block.language == "python"
)
DEADLINE_S = 30.0
LONG = " ".join(map(str, range(400)))
"""What takes the application twenty seconds to answer."""


def until(true):
    """Wait until something is true, and give it back."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := true()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)
    return found


# -- workers and clients ---------------------------------------------------------------------------


class Worker:
    """One process that serves the application, on a port of its own."""

    def __init__(self, folder, name):
        self._log = folder / f"{name}.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", "app:app", "--port", "0", "--no-use-colors"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.port = int(until(self._running).group(1))
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=DEADLINE_S)

    def _running(self):
        assert self.process.poll() is None, self._log.read_text()
        return re.search(r"running on http://127\.0\.0\.1:([0-9]+)", self._log.read_text())

    def log(self):
        """What it has logged."""
        return self._log.read_text()

    def turns(self, chat):
        """The turns of a chat, as this worker has them."""
        return self.http.get(f"/chats/{chat}").json()

    def send(self, chat, message, request_id, **seen):
        """Send a message and stay for the answer. Returns: the turn, ended; or the refusal."""
        with self.stream(chat, message, request_id, **seen) as reply:
            return list(received(reply))[-1]["turn"]

    def stream(self, chat, message, request_id, last=None, **seen):
        """Send a message; the response, open."""
        sent = {"message": message, "request_id": request_id, **seen}
        headers = {"Last-Event-ID": last} if last else {}
        return self.http.stream("POST", f"/chats/{chat}/turns", json=sent, headers=headers)

    def follow(self, where, last=None):
        """Follow a turn; the response, open."""
        return self.http.stream("GET", where, headers={"Last-Event-ID": last} if last else {})

    def close(self):
        """End the process, whatever it does."""
        self.http.close()
        self.process.kill()
        self.process.wait()


def received(reply):
    """Yield what comes in a stream of events, each with the id that it came with."""
    assert reply.status_code == 200, reply.read()
    place = None
    for line in reply.iter_lines():
        if line.startswith("id: "):
            place = line.removeprefix("id: ")
        elif line.startswith("data: "):
            yield {**json.loads(line.removeprefix("data: ")), "id": place}
            place = None


def text_of(events):
    """The pieces of an answer, joined."""
    return "".join(event["text"] for event in events if event["kind"] == "text")


@pytest.fixture
def folder(tmp_path):
    """A folder with the application in it."""
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    return tmp_path


@pytest.fixture
def workers(folder):
    """Two processes that serve one folder."""
    with ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda name: Worker(folder, name), "ab"))
    yield both
    for worker in both:
        worker.close()


@pytest.fixture
def client():
    """The page's client."""
    client = ModuleType("client")
    exec(compile(CLIENT, PAGE.name, "exec"), client.__dict__)
    return client


class Cutter:
    """A balancer that gives each connection to the next worker, and cuts the first few in the middle."""

    def __init__(self, workers, cuts):
        self._ports = cycle(worker.port for worker in workers)
        self.cuts = iter(cuts)
        """After how many bytes the connections are cut, in order."""
        self.served = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                self.served += 1
                self._carry(client, next(self._ports), next(self.cuts, sys.maxsize))

    def _carry(self, client, port, left):
        with client, socket.create_connection(("127.0.0.1", port)) as worker:
            threading.Thread(target=self._up, args=(client, worker), daemon=True).start()
            while left > 0 and (data := worker.recv(min(left, 4096))):
                client.sendall(data)
                left -= len(data)
            for end in (client, worker):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _up(self, client, worker):
        with suppress(OSError):
            while data := client.recv(4096):
                worker.sendall(data)

    def close(self):
        """Take no more connections."""
        self._socket.close()


# -- what the page promises ------------------------------------------------------------------------


def test_an_answer_is_streamed_and_recorded(workers):
    """A send is answered by the events of its turn, each with its place, and at last by the turn."""
    a, b = workers

    with a.stream("c", "one two", "r") as reply:
        events = list(received(reply))

    *told, end = events
    assert told[0]["kind"] == "started"
    assert [event["id"] for event in told] == [f"1:{n}" for n in range(1, len(told) + 1)]
    assert text_of(told) == end["turn"]["result"] == "You said: one two "
    assert (end["id"], end["turn"]["state"]) == (None, "done")
    assert b.turns("c") == [end["turn"]]


def test_a_message_from_a_tab_that_is_behind_is_refused(workers):
    """A message whose sender did not see the newest turn is refused, and records nothing; sent again it is one turn."""
    a, b = workers
    first = a.send("c", "one", "r1", seen=None)
    second = b.send("c", "two", "r2", seen=first["id"])

    late = a.http.post(
        "/chats/c/turns", json={"message": "three", "request_id": "r3", "seen": first["id"]}
    )

    assert (late.status_code, late.json()["code"]) == (409, "conversation-moved")
    assert a.send("c", "two", "r2", seen=first["id"]) == second
    assert [turn["id"] for turn in a.turns("c")] == [first["id"], second["id"]]


def test_a_turn_is_followed_at_another_worker(workers):
    """While one worker runs a turn, another gives the same events, from the first on."""
    a, b = workers
    with a.stream("c", "one two three four five six", "r") as here:
        events = received(here)
        first = next(events)
        with b.follow(here.headers["Location"]) as there:
            followed = list(received(there))

        assert followed == [first, *events]


def test_stop_from_another_worker(workers):
    """A stop at one worker ends the stream at the other within about a second, the turn `stopped`."""
    a, b = workers
    with a.stream("c", LONG, "r") as reply:
        events = received(reply)
        said = text_of(islice(events, 3))

        assert b.http.post(reply.headers["Location"].replace("events", "stop")).status_code == 202
        asked = time.monotonic()
        *rest, end = events
        took_s = time.monotonic() - asked

    assert took_s < 5  # A second, and what a busy machine adds.
    assert (rest[-1]["kind"], rest[-1]["error"]["code"]) == ("failed", "turn-stopped")
    assert end["turn"]["state"] == "stopped"
    assert end["turn"]["partial"] == said + text_of(rest)


def test_stop_by_request_id(workers):
    """Who does not know the turn's id stops it by the request id, at any worker."""
    a, b = workers
    with a.stream("c", LONG, "my-request") as reply:
        events = received(reply)
        next(events)

        assert b.http.post("/chats/c/requests/my-request/stop").status_code == 202

        assert list(events)[-1]["turn"]["state"] == "stopped"


def test_a_turn_outlives_its_client(workers):
    """A client that goes away stops nothing: the answer is made and kept."""
    a, b = workers
    with a.stream("c", "one two three four five six", "r") as reply:
        next(received(reply))

    (turn,) = until(lambda: [t for t in b.turns("c") if t["state"] != "running"])

    assert (turn["state"], turn["result"]) == ("done", "You said: one two three four five six ")


@pytest.mark.parametrize("again", ["get", "post"])
def test_going_on_at_another_worker(workers, again):
    """A client that was cut off goes on at another worker: no gap, nothing twice, all of the answer."""
    a, b = workers
    message = "one two three four five six seven eight nine ten"
    with a.stream("c", message, "r") as reply:
        before = list(islice(received(reply), 4))
        where, last = reply.headers["Location"], before[-1]["id"]

    on = b.follow(where, last) if again == "get" else b.stream("c", message, "r", last)
    with on as reply:
        *after, end = received(reply)

    told = before + after
    assert after
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    assert text_of(told) == end["turn"]["result"] == f"You said: {message} "


def test_going_on_after_the_last_event(workers):
    """A client that has every event gets only the end."""
    a, b = workers
    with a.stream("c", "one", "r") as reply:
        *told, end = received(reply)

    with b.follow(reply.headers["Location"], told[-1]["id"]) as reply:
        assert list(received(reply)) == [end]


def test_the_pages_client(workers, client):
    """The page's client yields an answer's pieces, each once, though it is cut off again and again."""
    cutter = Cutter(workers, cuts=[0, 900, 1500, 40, 2000])
    message = " ".join(map(str, range(20)))
    try:
        with httpx.Client(base_url=cutter.url, timeout=DEADLINE_S) as http:
            assert "".join(client.ask(http, "c", message)) == f"You said: {message} "
    finally:
        cutter.close()

    assert cutter.served == 6
    assert len(workers[0].turns("c")) == 1


def test_a_double_click_is_one_turn(workers):
    """The same request at both workers at once is one turn, and both give its answer."""
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda worker: worker.send("c", "hello", "click"), workers)

    assert first == second
    assert workers[0].turns("c") == [first]


def test_sends_queue(workers):
    """Two sends at once are answered one after the other, the second continuing the first."""
    with ThreadPoolExecutor() as pool:
        answers = pool.map(lambda w: w.send("c", f"from {w.port}", str(w.port)), workers)
        by_id = {turn["id"]: turn for turn in answers}

    first, second = workers[0].turns("c")
    assert (first["parent"], second["parent"]) == (None, first["id"])
    assert by_id == {turn["id"]: turn for turn in (first, second)}


def test_a_worker_that_ends_finishes_its_turns(workers):
    """A worker that is told to end waits for a turn that nobody listens to."""
    a, b = workers
    with a.stream("c", " ".join(map(str, range(60))), "r") as reply:
        next(received(reply))
    assert b.turns("c")[0]["state"] == "running"

    a.process.send_signal(signal.SIGTERM)
    a.process.wait(DEADLINE_S)

    assert b.turns("c")[0]["state"] == "done"


def test_what_a_killed_worker_leaves_another_goes_on_with(workers, client):
    """When a worker is killed, the other goes on with its turn at once, and the page's client is told it all anew."""
    a, b = workers
    message = " ".join(map(str, range(40)))
    with a.stream("c", message, "r") as reply:
        pieces = client.follow(b.http, reply.headers["Location"])
        assert next(pieces).startswith("You")

        a.process.kill()
        a.process.wait()
        killed = time.monotonic()
        told = list(pieces)
        took_s = time.monotonic() - killed

    assert (
        took_s < 20
    )  # At once, and the answer's two seconds; not when its lease of 30 s runs out.
    (turn,) = b.turns("c")
    assert None in told
    anew = told[len(told) - told[::-1].index(None) :]
    assert "".join(anew) == turn["result"] == f"You said: {message} "


def test_a_chat_that_is_deleted_stays_deleted(workers, client):
    """Who follows a turn when its chat is deleted is told so by a status, and brings nothing back."""
    a, b = workers
    pieces = client.ask(a.http, "c", LONG)
    assert next(pieces).startswith("You")

    assert b.http.delete("/chats/c").status_code == 204

    with pytest.raises(httpx.HTTPStatusError) as caught:
        list(pieces)
    assert caught.value.response.status_code == 404
    assert (a.turns("c"), b.turns("c")) == ([], [])
    assert "Traceback" not in a.log() + b.log()


@pytest.mark.parametrize(
    "method, path, json, headers, status, code",
    [
        ("POST", "turns", {"message": "other", "request_id": "r"}, {}, 409, "request-mismatch"),
        ("POST", "turns", {"message": "hello"}, {}, 400, "request-invalid"),
        ("POST", "turns", {"message": "hello", "request_id": ""}, {}, 400, "request-invalid"),
        ("GET", "turns/ffffffff/events", None, {}, 404, "turn-unknown"),
        ("POST", "turns/ffffffff/stop", None, {}, 404, "turn-unknown"),
        ("POST", "requests/other/stop", None, {}, 404, "turn-unknown"),
        ("GET", "turns/{turn}/events", None, {"Last-Event-ID": "7:7"}, 409, "event-unknown"),
        ("GET", "turns/{turn}/events", None, {"Last-Event-ID": "seven"}, 400, None),
        ("GET", "../.hidden", None, {}, 404, "conversation-id"),
    ],
)
def test_refusals(one, method, path, json, headers, status, code):
    """What the ledger refuses is a status and a code."""
    worker, turn = one
    where = f"/chats/c/{path.format(turn=turn)}".replace("/c/..", "")

    reply = worker.http.request(method, where, json=json, headers=headers)

    assert reply.status_code == status
    assert code is None or reply.json()["code"] == code


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """One worker, and a turn of chat `c` that was sent as request `r`."""
    folder = tmp_path_factory.mktemp("one")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    worker = Worker(folder, "one")
    yield worker, worker.send("c", "hello", "r")["id"]
    worker.close()
