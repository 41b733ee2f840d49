"""Steps made within a tool's call: an agent as a tool. Found again within it, and gone with it once it is done."""

import asyncio
import contextlib
import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import ledger
from ledger import errors
from ledger.records import kinds
from ledger.turns import steps


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    """Nobody waits long for calls that are not come to."""
    monkeypatch.setattr(steps, "PATIENCE_S", 0.2)
    yield
    steps._unsaved.clear()  # Of stores that died, and are gone.


class Dying(ledger.MemoryStore):
    """A store that takes so many appends and no more, as if its process had died."""

    left = 1 << 30

    def append(self, conversation, records, *, expect=None):
        """Append, while it lives."""
        if records:
            if not self.left:
                raise OSError("died")
            self.left -= 1
        return super().append(conversation, records, expect=expect)


def survivor(store):
    """What another process finds of a store whose process died: its records, and a turn that nobody holds."""
    found = Dying()
    found.append("c", [{k: v for k, v in r.items() if k != "seq"} for r in store.read("c")])
    leases = [r for r in found.read("c") if r["kind"] in ("lease", "waiting")]
    if leases and leases[-1]["kind"] == "lease":
        at = "2026-01-01T00:00:00.000000Z"
        gone = {k: leases[-1][k] for k in ("turn", "holder", "attempt")}
        found.append("c", [kinds.new("lease", at, until=at, **gone)])
    return found


class World:
    """What programs did outside."""

    def __init__(self):
        self.deeds = Counter()

    def do(self, what):
        """Do something. Returns: what no other run of it gives."""
        self.deeds[what] += 1
        return f"{what} {self.deeds[what]}"


# -- programs: each as (name, what it changes, what it pays for, its program) ------------------------


def closing_over(world, effects):
    """The tool's call uses the turn of the program around it."""

    def program(message: str) -> list:
        turn = ledger.current()

        def search():
            asked = turn.reply({"a": message}, lambda: world.do("think"))
            noted = turn.tool("note", {"n": 1}, lambda: world.do("note"), effects="changes")
            return [asked, noted]

        found = turn.tool("search", {"q": message}, search, effects=effects)
        return [*found, turn.reply({"end": found}, lambda: world.do("end"))]

    return program


def by_a_helper(world, effects):
    """The tool's call is an agent: a helper that remembers, with a tool that makes steps too."""

    @ledger.program
    def agent(q: str) -> str:
        turn = ledger.current()
        asked = turn.reply({"a": q}, lambda: world.do("think"))
        return asked + turn.tool("deep", {}, lambda: deeper(turn), effects="reads")

    def deeper(turn):
        return turn.tool("note", {"n": 1}, lambda: world.do("note"), effects="changes")

    def program(message: str) -> list:
        turn = ledger.current()
        found = turn.tool("agent", {"q": message}, lambda: agent(message), effects=effects)
        again = turn.tool("agent", {"q": "2"}, lambda: agent("2"), effects=effects)
        return [found, again, turn.reply({"end": found}, lambda: world.do("end"))]

    program.remembers = {agent: ledger.remember("conversation", steps=True)}
    return program


def in_threads(world, effects):
    """Two equal agents side by side in a pool, which make the same calls."""

    def agent():
        turn = ledger.current()
        asked = turn.reply({"a": 1}, lambda: world.do("think"))
        return [asked, turn.tool("note", {"n": 1}, lambda: world.do("note"), effects="changes")]

    def program(message: str) -> list:
        turn = ledger.current()

        def call(n):
            return turn.tool("agent", {"n": n}, agent, effects=effects)

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(call, [1, 2]))
        return [*found, turn.reply({"end": 1}, lambda: world.do("end"))]

    return program


def in_tasks(world, effects):
    """The same as tasks on a loop."""

    async def agent():
        turn = ledger.current()
        asked = await turn.reply({"a": 1}, lambda: world.do("think"))
        note = turn.tool("note", {"n": 1}, lambda: world.do("note"), effects="changes")
        return [asked, await note]

    async def program(message: str) -> list:
        turn = ledger.current()

        def call(n):
            return turn.tool("agent", {"n": n}, agent, effects=effects)

        found = await asyncio.gather(call(1), call(2))
        return [*found, await turn.reply({"end": 1}, lambda: world.do("end"))]

    return program


PROGRAMS = {
    "closing over": (closing_over, {"think": 1, "note": 1, "end": 1}),
    "helper": (by_a_helper, {"think": 2, "note": 2, "end": 1}),
    "threads": (in_threads, {"think": 2, "note": 2, "end": 1}),
    "tasks": (in_tasks, {"think": 2, "note": 2, "end": 1}),
}


def opened(store, program, **how):
    """A conversation with a program, and what its helpers remember."""
    return ledger.open(
        "c", program, store=store, remembers=getattr(program, "remembers", {}), **how
    )


def live(store, program, appends, **how):
    """Work at the turn in one process that takes so many appends.

    Returns: the tools of which a person said that they run again.
    """
    store.left = appends
    chat = opened(store, program, **how)
    said = []
    try:
        if not chat.all_turns():
            chat("hi")
        turn = chat.turn(1)
        while turn.state != "done":
            for _ in turn.waiting:
                turn.approve(turn.waiting[0])
            rerun = [tool["key"] for tool in turn.unfinished]
            said += [tool["name"] for tool in turn.unfinished]
            with contextlib.suppress(errors.TurnWaiting):
                turn.resume(rerun=rerun)
    except errors.TurnWaiting:
        said += live(store, program, store.left, **how)
    except OSError:
        pass
    return said


@pytest.mark.parametrize("approve", [None, ["note"]])
@pytest.mark.parametrize("effects", ["reads", "changes"])
@pytest.mark.parametrize("kind", list(PROGRAMS))
def test_a_death_at_any_append(kind, effects, approve):
    """Whenever its process dies, and the next one's at the same number: the turn is ended, nothing that
    changes things runs twice unless a person said so, and nothing that is recorded is paid again."""
    make, wanted = PROGRAMS[kind]
    for appends in itertools.count(1):
        world, store, said = World(), Dying(), Counter()
        program = make(world, effects)
        lives = 0
        while True:
            lives += 1
            said.update(live(store, program, max(appends, lives + 1), approve=approve))
            if any(r["kind"] == "ended" for r in store.read("c")):
                break
            assert lives < 30, [
                {k: r.get(k) for k in ("kind", "name", "state", "site", "invocation", "attempt")}
                for r in store.read("c")
            ]
            store = survivor(store)
        turn = opened(store, program).turn(1)
        assert turn.state == "done"
        for what, count in wanted.items():
            # A reply is lost that came just before its process died: of each of two side by side one.
            lost = said[what] if what == "note" else (lives - 1) * min(count, 2)
            allowed = count + lost
            assert count <= world.deeds[what] <= allowed, (what, world.deeds, said, lives)
        if lives == 1:
            assert world.deeds == wanted
            break


# -- what goes with a tool's call ------------------------------------------------------------------------


def left_by(program, appends, **how):
    """The store of a process that died after so many appends."""
    store = Dying()
    live(store, program, appends, **how)
    return survivor(store)


def test_what_a_person_says_of_a_call_settles_what_was_made_within():
    """A call whose output a person says is not made again, nor is anything within, and none of it is asked about."""
    world = World()
    store = left_by(closing_over(world, "changes"), 4)
    turn = opened(store, closing_over(world, "changes")).turn(1)
    assert [tool["name"] for tool in turn.unfinished] == ["search", "note"]

    for both in ({"rerun": ["note"]}, {}):
        results = {"search": ["said"], **({} if both else {"note": "x"})}
        with pytest.raises(errors.TurnState, match="within a call whose result is said"):
            turn.resume(results=results, **both)
    assert turn.resume(results={"search": ["said"]}) == ["said", "end 1"]
    assert world.deeds == {"think": 1, "note": 1, "end": 1}
    assert turn.unfinished == []


def test_helpers_within_a_tool_are_remembered_once():
    """Calls of a helper made within a tool's call are shown to later ones, also where the tool was not called again."""
    world = World()
    seen = []

    @ledger.program
    def agent(q: str) -> str:
        seen.append([row["q"] for row in ledger.current().earlier()])
        return world.do(q)

    def program(message: str) -> str:
        turn = ledger.current()
        turn.tool("one", {"m": message}, lambda: agent(f"{message}1"), effects="reads")
        turn.reply({"then": message}, lambda: world.do("think"))
        return agent(f"{message}2")

    program.remembers = {agent: "conversation"}
    whole = Dying()
    chat = opened(whole, program)
    chat("hi")
    chat("b")
    expected = seen[:]
    assert expected == [[], ["hi1"], ["hi1", "hi2"], ["hi1", "hi2", "b1"]]

    for appends in range(2, 9):
        seen.clear()
        store = Dying()
        live(store, program, appends)
        store = survivor(store)
        turn = opened(store, program).turn(1)
        if turn.state != "done":
            turn.resume()
        opened(store, program)("b")
        assert seen[-2:] == expected[-2:]


def test_what_is_noted_within_is_counted_once():
    """The usage of a turn holds what was noted in a tool's call and in the steps within, each once."""

    def note(n, model):
        ledger.current().note(usage={"tokens": n}, model=model)
        return n

    def program(message: str) -> int:
        turn = ledger.current()

        def agent():
            note(1, "agent")
            inner = turn.reply({"a": 1}, lambda: note(10, "inner"))
            deep = turn.tool("deep", {}, lambda: note(100, "deep"), effects="reads")
            return inner + deep

        found = turn.tool("agent", {}, agent, effects="reads")
        return found + turn.reply({"end": 1}, lambda: 1000 if message == "x" else note(1000, None))

    whole = Dying()
    assert opened(whole, program)("hi") == 1110
    assert opened(whole, program).turn(1).usage == {"tokens": 1111}
    assert opened(whole, program).turn(1).model == "deep"
    for appends in range(1, 6):
        store = left_by(program, appends)
        turn = opened(store, program).turn(1)
        if turn.state != "done":
            turn.resume()
        assert turn.usage == {"tokens": 1111}, appends
        assert turn.model == "deep"


@pytest.mark.parametrize("effects", ["reads", "changes"])
def test_a_call_that_raised_and_was_made_again_goes_with_what_was_in_it(effects):
    """What was made within a call that raised is not asked for when the program made the call again."""
    world = World()

    def agent():
        asked = ledger.current().tool("ask", {}, lambda: world.do("ask"), effects="changes")
        if world.do("try") == "try 1":
            raise ValueError("once")
        return asked

    def program(message: str) -> str:
        turn = ledger.current()
        found = ""
        while not found:
            try:
                found = turn.tool("agent", {}, agent, effects=effects)
            except ValueError:
                continue
        return found + turn.reply({"end": 1}, lambda: world.do("end"))

    for appends in itertools.count(1):
        world.deeds.clear()
        store = left_by(program, appends)
        turn = opened(store, program).turn(1)
        if turn.state == "done":
            break
        said = [tool["key"] for tool in turn.unfinished]
        assert turn.resume(rerun=said).startswith("ask"), appends
        assert world.deeds["end"] <= 2
    assert appends > 4


def test_only_what_the_tool_gave_is_seen_later():
    """Among the tool calls of a turn stand those of its program and its helpers, and none that a tool made."""
    world, store = World(), Dying()
    chat = opened(store, closing_over(world, "reads"))
    chat("hi")

    def show(message: str) -> list:
        return [[step["name"] for step in row["steps"]] for row in ledger.current().earlier()]

    last = ledger.open("c", show, store=store, context=ledger.all_turns(steps=True))
    assert last("what") == [["search"]]


def test_a_question_within_a_tool_says_where_it_is():
    """Its path goes through the tool, and a rule may name it by that."""
    world = World()
    program = by_a_helper(world, "reads")
    chat = opened(Dying(), program, approve=["agent/agent/deep/note"])
    with pytest.raises(errors.TurnWaiting) as caught:
        chat("hi")

    (asked,) = caught.value.questions
    assert asked["path"] == "program/agent/agent/deep/note"
    assert asked["site"] == "program#1/agent@1/agent#1/deep@1"
    assert asked["within"] == {"name": "deep", "inputs": {}}


def test_a_tool_that_only_reads_has_no_record_before_its_end():
    """Unless steps are made within it: then its place is in the log before them."""
    store = Dying()

    def program(message: str) -> str:
        turn = ledger.current()
        turn.tool("plain", {}, lambda: 1, effects="reads")
        inner = lambda: turn.tool("inner", {}, lambda: 2, effects="reads")  # noqa: E731
        return str(turn.tool("outer", {}, inner, effects="reads"))

    opened(store, program)("hi")
    tools = [(r["name"], r["state"]) for r in store.read("c") if r["kind"] == "tool"]
    assert tools == [("plain", "done"), ("outer", "rerun"), ("inner", "done"), ("outer", "done")]


@pytest.mark.parametrize("face", ["sync", "async"])
def test_no_steps_are_made_within_a_reply(face):
    """A reply is kept whole: a step in its call could not be found again, and is refused with what to do."""

    def program(message: str) -> str:
        turn = ledger.current()
        return turn.reply({"a": 1}, lambda: turn.reply({"b": 1}, lambda: "x"))

    async def awaited(message: str) -> str:
        turn = ledger.current()
        return await turn.reply({"a": 1}, lambda: turn.tool("b", {}, lambda: "x"))

    chat = ledger.open("c", program if face == "sync" else awaited, store=Dying())
    with pytest.raises(LookupError, match="Have a call that makes steps made by `tool`"):
        chat("hi")
