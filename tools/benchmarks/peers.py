"""What others pick for the same work, each in a process of its own: `python -m tools.benchmarks.peers`.

Each contestant holds one conversation: it can be filled, given one turn, read whole, and asked for its end.
All are durable as they come: SQLite with a write-ahead log, flushed at each commit.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import msgspec

import ledger
from tools.benchmarks import logs, processes
from tools.benchmarks.floors import Appends, SelfClosing
from tools.benchmarks.rows import Bench, Measure, Row, timed

LAST = 10
MOST_TURNS = 10_000
"""Some take as many hours as this takes them minutes for ten times as many."""


def turn(number: int) -> list[dict[str, str]]:
    """Return what is said in a turn."""
    said = f"{number} {logs.TEXT}"
    return [{"role": "user", "content": said}, {"role": "assistant", "content": said}]


class Contestant(Protocol):
    """One conversation, as somebody keeps it."""

    def fill(self, turns: int) -> None:
        """Put turns there, as quickly as may be."""

    def append(self, number: int) -> object:
        """Add a turn, durably."""

    def read(self) -> Any:
        """Read every turn."""

    def last(self) -> Any:
        """Read the last ten."""


class Floor:
    """Lines of a file."""

    def __init__(self, place: Path) -> None:
        self._path = place
        self._file = Appends(place)

    def fill(self, turns: int) -> None:
        """See `Contestant`."""
        for start in range(0, turns, 1000):
            lines = [self._line(number) for number in range(start, min(start + 1000, turns))]
            self._file.append(b"".join(lines))

    def _line(self, number: int) -> bytes:
        return msgspec.json.encode([*turn(number), logs.TEXT]) + b"\n"

    def append(self, number: int) -> None:
        """See `Contestant`."""
        self._file.append(self._line(number))

    def read(self) -> object:
        """See `Contestant`."""
        return [msgspec.json.decode(line) for line in self._path.read_bytes().splitlines()]

    def last(self) -> object:
        """See `Contestant`."""
        with self._path.open("rb") as file:
            file.seek(max(0, self._path.stat().st_size - 65536))
            return [msgspec.json.decode(line) for line in file.read().splitlines()[-LAST:]]


class Ledger:
    """Ours."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._store = ledger.FolderStore(place)
        self._chat = ledger.open(logs.CHAT, store=self._store)

    def fill(self, turns: int) -> None:
        """See `Contestant`."""
        logs.make(self._place, turns)

    def append(self, number: int) -> object:
        """See `Contestant`."""
        asked, answered = turn(number)
        return self._chat.record(asked["content"], answered["content"])

    def read(self) -> object:
        """See `Contestant`."""
        return [(turn.inputs, turn.outputs) for turn in self._chat.turns]

    def last(self) -> object:
        """See `Contestant`."""
        count = int(self._store.append(logs.CHAT, []))
        return self._store.read(logs.CHAT, max(0, count - 2 * LAST))


class SQLite:
    """A row for each turn."""

    def __init__(self, place: Path) -> None:
        self._database = sqlite3.connect(place, isolation_level=None, factory=SelfClosing)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS turns (n INTEGER PRIMARY KEY, said BLOB)"
        )

    def fill(self, turns: int) -> None:
        """See `Contestant`."""
        self._database.execute("BEGIN")
        for number in range(turns):
            self.append(number)
        self._database.execute("COMMIT")

    def append(self, number: int) -> object:
        """See `Contestant`."""
        data = msgspec.json.encode([*turn(number), logs.TEXT])
        return self._database.execute("INSERT INTO turns (said) VALUES (?)", [data])

    def read(self) -> object:
        """See `Contestant`."""
        found = self._database.execute("SELECT said FROM turns ORDER BY n")
        return [msgspec.json.decode(said) for (said,) in found]

    def last(self) -> object:
        """See `Contestant`."""
        found = self._database.execute("SELECT said FROM turns ORDER BY n DESC LIMIT ?", [LAST])
        return [msgspec.json.decode(said) for (said,) in found]


class Eventsourcing:
    """An event for each turn, in eventsourcing's own recorder."""

    ID = UUID(int=1)

    def __init__(self, place: Path) -> None:
        from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

        self._recorder = SQLiteApplicationRecorder(SQLiteDatastore(str(place)))
        self._recorder.create_table()
        newest = self._recorder.select_events(self.ID, desc=True, limit=1)
        self._version = newest[0].originator_version if newest else 0

    def _event(self, number: int) -> Any:
        from eventsourcing.persistence import StoredEvent

        self._version += 1
        said = msgspec.json.encode([*turn(number), logs.TEXT])
        return StoredEvent(self.ID, self._version, "turn", said)

    def fill(self, turns: int) -> None:
        """See `Contestant`."""
        self._recorder.insert_events([self._event(number) for number in range(turns)])

    def append(self, number: int) -> object:
        """See `Contestant`."""
        return self._recorder.insert_events([self._event(number)])

    def read(self) -> object:
        """See `Contestant`."""
        return [msgspec.json.decode(one.state) for one in self._recorder.select_events(self.ID)]

    def last(self) -> object:
        """See `Contestant`."""
        found = self._recorder.select_events(self.ID, desc=True, limit=LAST)
        return [msgspec.json.decode(one.state) for one in found]


class Agents:
    """openai-agents' session in SQLite."""

    def __init__(self, place: Path) -> None:
        from agents import SQLiteSession

        self._session: Any = SQLiteSession("bench", place)
        self._loop = asyncio.new_event_loop()

    def fill(self, turns: int) -> None:
        """See `Contestant`."""
        items = [item for number in range(turns) for item in turn(number)]
        self._loop.run_until_complete(self._session.add_items(items))

    def append(self, number: int) -> object:
        """See `Contestant`."""
        return self._loop.run_until_complete(self._session.add_items(turn(number)))

    def read(self) -> object:
        """See `Contestant`."""
        return self._loop.run_until_complete(self._session.get_items())

    def last(self) -> object:
        """See `Contestant`."""
        return self._loop.run_until_complete(self._session.get_items(2 * LAST))


class LangGraph:
    """A graph of one node that answers, its checkpoints in SQLite."""

    def __init__(self, place: Path) -> None:
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import START, MessagesState, StateGraph

        graph: Any = StateGraph(MessagesState)
        graph.add_node("answer", lambda state: {"messages": [turn(0)[1]]})
        graph.add_edge(START, "answer")
        saver = SqliteSaver(sqlite3.connect(place, check_same_thread=False))
        saver.setup()
        self._graph = graph.compile(checkpointer=saver)
        self._config = {"configurable": {"thread_id": "bench"}}

    def fill(self, turns: int) -> None:
        """See `Contestant`."""
        items = [item for number in range(turns) for item in turn(number)]
        self._graph.update_state(self._config, {"messages": items}, as_node="answer")

    def append(self, number: int) -> object:
        """See `Contestant`."""
        return self._graph.invoke({"messages": [turn(number)[0]]}, self._config)

    def read(self) -> object:
        """See `Contestant`."""
        return self._graph.get_state(self._config).values["messages"]

    def last(self) -> object:
        """See `Contestant`."""
        return self._graph.get_state(self._config).values["messages"][-2 * LAST :]


class Functai:
    """A functai module's conversation, in its folder."""

    def __init__(self, place: Path) -> None:
        import functai

        def answer(message: str) -> str:
            return logs.TEXT

        self._place = place
        rule = functai.last_turns(LAST)
        module: Any = functai.module(answer)
        self._chat = module.conversation(logs.CHAT, store=str(place), context=rule)

    def fill(self, turns: int) -> None:
        """See `Contestant`."""
        logs.make(self._place, turns)

    def append(self, number: int) -> object:
        """See `Contestant`."""
        return self._chat(turn(number)[0]["content"])

    def read(self) -> object:
        """See `Contestant`."""
        return [(turn.inputs, turn.outputs) for turn in self._chat.turns]

    def last(self) -> object:
        """See `Contestant`."""
        return [(turn.inputs, turn.outputs) for turn in self._chat.turns[-LAST:]]


CONTESTANTS: dict[str, tuple[str, Callable[[Path], Contestant]]] = {
    "ours": ("ledger", Ledger),
    "floor": ("msgspec", Floor),
    "bare SQLite": ("sqlite3", SQLite),
    "eventsourcing": ("eventsourcing", Eventsourcing),
    "agents": ("agents", Agents),
    "functai": ("functai", Functai),
    "langgraph": ("langgraph.checkpoint", LangGraph),
}
"""By name: the module that it needs, and what opens it at a place."""


def appended_open(open: Callable[[], Contestant], times: int) -> float:
    """Return the median seconds of an append to what is open."""
    contestant = open()
    contestant.append(0)
    return statistics.median(timed(lambda: contestant.append(1)) for _ in range(times))


VERBS: dict[str, Callable[[Callable[[], Contestant], int], float]] = {
    "append": appended_open,
    "append-new": lambda open, _: timed(lambda: open().append(1)),
    "read": lambda open, _: timed(lambda: open().read()),
    "last": lambda open, _: timed(lambda: open().last()),
}
NAMES = {
    "append": "append, open",
    "append-new": "new process: append",
    "read": "new process: read everything",
    "last": "new process: the last 10",
}


def rows(bench: Bench) -> Iterator[Row]:
    """Give the rows of this theme."""
    for verb, name in NAMES.items():
        yield Row(0, f"peers, {filled(bench):,} turns: {name}", beside(bench, verb))


def filled(bench: Bench) -> int:
    """Return how many turns each contestant has."""
    return min(bench.sizes.read, MOST_TURNS)


def there() -> list[str]:
    """Return the contestants whose module is installed."""
    return [name for name, (module, _) in CONTESTANTS.items() if is_installed(module)]


def is_installed(module: str) -> bool:
    """Say whether a module can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def beside(bench: Bench, verb: str) -> Callable[[], Mapping[str, Measure]]:
    """Return what fills every contestant that is there, and has each do something in a new process."""

    def make() -> dict[str, Measure]:
        measures: dict[str, Measure] = {}
        for name in there():
            place = bench.folder / f"peer-{name.replace(' ', '-')}"
            if not place.exists():
                run(name, place, "fill", filled(bench))
            measures[name] = partial(run, name, place, verb, min(bench.sizes.appends, 5))
        return measures

    return make


def run(name: str, place: Path, verb: str, count: int) -> float:
    """Have a contestant do something in a process of its own; return the seconds that it took."""
    code = "from tools.benchmarks.peers import main\nmain(*sys.argv[1:])"
    return processes.number(code, name, place, verb, count)


def main(name: str, place: str, verb: str, count: str) -> None:
    """Do something with a contestant, and print the seconds."""
    _, kind = CONTESTANTS[name]

    def open() -> Contestant:
        return kind(Path(place))

    if verb == "fill":
        print(timed(lambda: open().fill(int(count))))
        return
    warm_up(kind)
    print(VERBS[verb](open, int(count)))


def warm_up(kind: Callable[[Path], Contestant]) -> None:
    """Use a contestant at another place first, so that what it imports late is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        contestant = kind(Path(folder) / "warm")
        contestant.append(0)
        contestant.read()
        contestant.last()
