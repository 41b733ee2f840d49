"""A turn whose processes are killed: its programs, what they do to the world, and a server that forks workers.

What a program does outside is a line in a file (`Deeds`), so that it is counted over all processes. A worker
dies by its own hand, by SIGKILL, at an append of its store that is named beforehand (`Mortal`); nothing of
the library has a say in it. Workers are forked from a process that has imported everything and done nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import ledger
from ledger import aio, conversation, errors
from tests.scenarios.support import FACES

REQUEST = "r-1"

PRELOADED = (aio, conversation)
"""Imported before the forks: else each of them would read all of it anew."""


class Deeds:
    """What was done to the world, by any process: one line each."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)

    def do(self, what: str) -> str:
        """Do something. Returns: what it gave, which no other run of it gives."""
        file = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(file, f"{what}\n".encode())
        finally:
            os.close(file)
        return f"{what} {self.all[what]}"

    @property
    def all(self) -> Counter[str]:
        """How often each was done."""
        if not os.path.exists(self.path):
            return Counter()
        return Counter(Path(self.path).read_text().split("\n")[:-1])


class Mortal(ledger.FolderStore):
    """A folder store whose process dies at one of its appends, before it or after it."""

    def __init__(self, folder: str, death: Death | None, note: str) -> None:
        super().__init__(folder)
        self.death = death
        self.note = note
        self.count = 0

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Any:
        """Add records, and perhaps die of it."""
        records = list(records)
        if not records:
            return super().append(conversation, records, expect=expect)
        self.count += 1
        dies = self.death is not None and self.death.at == self.count
        if dies and self.death is not None and self.death.when == "before":
            self._die(records)
        position = super().append(conversation, records, expect=expect)
        if dies:
            self._die(records)
        return position

    def _die(self, records: list[Any]) -> None:
        said = [
            {name: record.get(name) for name in ("kind", "name", "state", "effects", "site")}
            for record in records
        ]
        Path(self.note).write_text(json.dumps(said))
        os.kill(os.getpid(), signal.SIGKILL)


class Death(NamedTuple):
    """Where a worker dies."""

    at: int
    """The number of the append."""
    when: str
    """`before`, `after`."""


# -- programs ----------------------------------------------------------------------------------------


def programs(deeds: Deeds) -> dict[str, Callable[..., Any]]:
    """Return the same agent as it is written one step after the other, with tasks, and with threads."""
    do = deeds.do

    @ledger.program
    def checker(message: str) -> str:
        """Look at it, and note it: a helper."""
        turn = ledger.current()
        thought = turn.reply({"check": message}, lambda: do("thought"))
        noted = turn.tool("note", {"text": message}, lambda: do("note"), effects="changes")
        return f"{thought}, {noted}"

    @ledger.program
    async def checker_awaited(message: str) -> str:
        """The same helper on a loop."""
        turn = ledger.current()
        thought = await turn.reply({"check": message}, lambda: do("thought"))
        noted = await turn.tool("note", {"text": message}, lambda: do("note"), effects="changes")
        return f"{thought}, {noted}"

    def stock() -> Any:
        tool = ledger.current().tool
        return tool("stock", {"item": 7}, lambda: [do("stock")], effects="reads")

    def book() -> Any:
        return ledger.current().tool("book", {"item": 7}, lambda: do("book"), id="call-1")

    def refund() -> Any:
        return ledger.current().tool(
            "refund", {"order": 7}, lambda: do("refund"), effects="changes"
        )

    def plan(message: str) -> Any:
        return ledger.current().reply({"plan": message}, lambda: {"text": do("plan")})

    def finish(*found: Any) -> Any:
        return ledger.current().reply({"finish": list(found)}, lambda: do("finish"))

    def in_turn(message: str) -> list[Any]:
        plan(message)
        found = [stock(), book(), checker(message), refund()]
        return [*found, finish(*found)]

    async def in_turn_awaited(message: str) -> list[Any]:
        await plan(message)
        found = [await stock(), await book(), await checker_awaited(message), await refund()]
        return [*found, await finish(*found)]

    async def tasks(message: str) -> list[Any]:
        await plan(message)
        found = await asyncio.gather(stock(), book(), checker_awaited(message), refund())
        return [*found, await finish(*found)]

    def threads(message: str) -> list[Any]:
        plan(message)
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(c) for c in (stock, book, lambda: checker(message), refund)]
            found = [call.result() for call in calls]
        return [*found, finish(*found)]

    made = {"sync": in_turn, "async": in_turn_awaited, "tasks": tasks, "threads": threads}
    for name, program in made.items():
        helper = checker_awaited if name in ("async", "tasks") else checker
        program.helpers = {helper: "conversation"}
    return made


CHANGES = ("book", "note", "refund")
PAID = ("plan", "thought", "finish")


# -- processes ---------------------------------------------------------------------------------------


class Case(NamedTuple):
    """How a turn is made, and what a person says of a tool that may have run."""

    face: str
    program: str
    says: str
    """`results`, `rerun`."""
    folder: str

    def opened(self, death: Death | None, note: str) -> Any:
        """Return its face and its conversation."""
        face = FACES[self.face]()
        program = programs(Deeds(self.deeds))[self.program]
        helpers: Any = program.helpers
        store = Mortal(f"{self.folder}/store", death, note)
        how: dict[str, Any] = {"approve": ["refund"], "remembers": helpers}
        return face, face.open("alex", program, store=store, **how)

    @property
    def deeds(self) -> str:
        """Where its deeds are kept."""
        return f"{self.folder}/deeds"


def act(case: Case, death: Death | None, note: str) -> Any:
    """Do what is next of a turn, in this process. Returns: what came of it, as (what, more)."""
    face, chat = case.opened(death, note)
    turns = face.do(chat.all_turns) if case.face == "aio" else chat.all_turns()
    try:
        if not turns:
            face.do(chat.send, "hi", request_id=REQUEST)
            return "done", None
        turn = face.do(chat.turn, 1)
        if turn.state == "done":
            return "done", None
        if turn.state == "waiting" and turn.waiting:
            face.do(turn.approve, turn.waiting[0], by="Alex")
            return "approved", None
        try:
            face.do(turn.resume)
        except errors.TurnUnfinished as error:
            left = sorted(tool["name"] for tool in turn.unfinished)
            told = left if len(left) == len(error.tools) else [*error.tools]
            Path(f"{note}.unfinished").write_text(json.dumps(told))
            calls = [tool["id"] for tool in turn.unfinished]
            given: Any = dict.fromkeys(calls, "a person says")
            face.do(turn.resume, **{case.says: given if case.says == "results" else calls})
        return "done", None
    except errors.TurnWaiting as error:
        return "waits", [question["name"] for question in error.questions]
    except errors.LedgerError as error:
        return error.code, str(error)


def forked(case: Case, death: Death | None, note: str) -> Any:
    """Have the next thing done by a process of its own. Returns: what came of it; None: it was killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(writing, json.dumps(act(case, death, note)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return None
    assert os.WEXITSTATUS(status) == 0, "a worker raised; see stderr"
    return json.loads(said)


class Lived(NamedTuple):
    """What became of a turn."""

    came: list[Any]
    """Of each process in turn, what came of it; None: it was killed."""
    deaths: list[list[dict[str, Any]]]
    """What each that was killed was appending."""
    lost: list[str]
    """What was done when a worker was killed and is not in the log: once for each time."""
    started: list[list[str]]
    """The tools that had started and had no end in the log when a worker was killed, each time."""
    unfinished: list[list[str]]
    """The tools that a person was asked about, each time."""
    deeds: dict[str, int]


def live(case: Case, deaths: Callable[[int], Death | None], most: int = 60) -> Lived:
    """Have processes work at a turn, one after the other, until it is done."""
    came, notes, unfinished, started = [], [], [], []
    lost: set[str] = set()
    for number in range(most):
        note = f"{case.folder}/note-{number}"
        came.append(forked(case, deaths(number), note))
        if came[-1] is None:
            notes.append(json.loads(Path(note).read_text()))
            started.append(_started(case))
            lost |= _unrecorded(case)
        if os.path.exists(f"{note}.unfinished"):
            unfinished.append(json.loads(Path(f"{note}.unfinished").read_text()))
        if came[-1] is not None and came[-1][0] not in ("waits", "approved"):
            break
    names = [name.split()[0] for name in lost]
    return Lived(came, notes, names, started, unfinished, dict(Deeds(case.deeds).all))


def _log(case: Case) -> str:
    path = Path(case.folder, "store", "conversations", "alex.jsonl")
    return path.read_text() if path.exists() else ""


def _unrecorded(case: Case) -> set[str]:
    """Return the runs of which the log holds nothing."""
    log, deeds = _log(case), Deeds(case.deeds).all
    runs = {f"{name} {number + 1}" for name, count in deeds.items() for number in range(count)}
    return {run for run in runs if f'"{run}"' not in log}


def _started(case: Case) -> list[str]:
    tools = [json.loads(line) for line in _log(case).split("\n")[:-1]]
    last = {(t["site"], t["invocation"]): t for t in tools if t["kind"] == "tool"}
    return sorted(tool["name"] for tool in last.values() if tool["state"] == "started")


def killed_once(say: Any, case: Case, at: int, when: str) -> Lived:
    """In another process: one worker is killed at an append; the others live."""
    return live(case, lambda number: Death(at, when) if number == 0 else None)


def killed_each(say: Any, case: Case, first: int, at: int, when: str) -> Lived:
    """In another process: the first worker is killed at one append, and each of the others at another."""
    return live(case, lambda number: Death(first if number == 0 else at, when))


def killed_later(say: Any, case: Case, at: int, when: str) -> Lived:
    """In another process: the one that goes on after the approval is killed at an append."""
    return live(case, lambda number: Death(at, when) if number == 2 else None)
