"""Turns that wait, are left and go on, in one process: clocks are the test's, and stores fail when told."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import ledger
from ledger import errors
from ledger.conversation import Conversation
from ledger.turns import claims, commands
from ledger.turns.judging import Judge
from ledger.turns.log import Log
from ledger.turns.programs import Program
from ledger.turns.resuming import WATCH_S, Resumption
from ledger.turns.view import Start, View
from tests.worlds import FakeWorld


def opened(store, program, world, **how):
    """A conversation of a process whose clock and name are a world's."""
    log = Log(store, "c")
    judge = Judge(log.calls, world)
    return Conversation(log, View("c", Program(program), world=world, judge=judge, **how))


def left_running(store, program):
    """A turn that a process of another machine started and left: records, and nobody behind them."""
    world = FakeWorld(holder="there:1:x", boot="another-boot")
    log = Log(store, "c")
    made = Program(program)
    view = View("c", made, world=world)
    start = Start(view, made, {"message": "hi"}, settings={})
    log.append(start.decide)
    return start.turn


def records(store, kind):
    """The records of a kind."""
    return [r for r in store.read("c") if r["kind"] == kind]


def ask(name="refund", input=7, **how):
    """Call a tool that changes things, inside a turn."""
    return ledger.current().tool(name, input, lambda: f"{name} {input}", effects="changes", **how)


# -- who waits for a person waits, whatever the program makes of it -----------------------------------


def swallowing(message: str) -> list:
    """Catch everything."""
    try:
        return [ask()]
    except BaseException as error:
        return [f"caught {type(error).__name__}"]


def wrapping(message: str) -> list:
    """Make an error of its own of everything."""
    try:
        return [ask()]
    except BaseException as error:
        raise RuntimeError("the tool failed") from error


async def gathering(message: str) -> list:
    """Take exceptions for results."""
    return list(await asyncio.gather(ask(), ask("look"), return_exceptions=True))


async def grouping(message: str) -> list:
    """Let a group of tasks make a group of errors."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(ask())
    return [task.result()]


def pooling(message: str) -> list:
    """Look at futures without asking for their results."""
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(ask), pool.submit(ask, "look")]
    return [(call.exception() and "failed") or call.result() for call in calls]


@pytest.mark.parametrize("program", [swallowing, wrapping, gathering, grouping, pooling])
def test_a_program_that_swallows_the_pause_waits_all_the_same(program):
    """A turn that has an open question never ends by what its program makes of the pause."""
    store = ledger.MemoryStore()
    chat = ledger.open("c", program, store=store, approve=["refund"])

    with pytest.raises(errors.TurnWaiting) as caught:
        chat("hi")

    assert [question["name"] for question in caught.value.questions] == ["refund"]
    turn = chat.turn(1)
    assert (turn.state, records(store, "ended")) == ("waiting", [])
    assert turn.approve().resume()[0] == "refund 7"
    assert turn.state == "done"


def test_a_question_beside_a_tool_in_a_group_of_tasks():
    """A group of tasks cancels the others when one asks; what a tool in a thread gives then is still recorded."""
    begun, go = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        threading.Timer(0.05, go.set).start()
        go.wait(20)
        return "booked"

    async def book() -> Any:
        return await ledger.current().tool("book", 1, work, effects="changes")

    async def refund() -> Any:
        await asyncio.to_thread(begun.wait, 20)
        return await ask()

    async def program(message: str) -> list:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in (book(), refund())]
        return [task.result() for task in tasks]

    chat = ledger.open("c", program, store=ledger.MemoryStore(), approve=["refund"])
    with pytest.raises(errors.TurnWaiting):
        chat("hi")
    go.wait(20)

    assert chat.turn(1).approve().resume() == ["booked", "refund 7"]


async def _middle(begun, go):
    begun.set()
    await asyncio.to_thread(go.wait, 20)
    return "booked"


@pytest.mark.parametrize("how", ["answered", "stopped"])
def test_a_question_beside_a_coroutine_in_a_group_of_tasks(how):
    """What a cancelled task is in the middle of goes on and is recorded; a stop breaks it off."""
    begun, go = threading.Event(), threading.Event()

    async def refund() -> Any:
        await asyncio.to_thread(begun.wait, 20)
        return await ask()

    async def program(message: str) -> list:
        tool = ledger.current().tool
        async with asyncio.TaskGroup() as group:
            book = tool("book", 1, lambda: _middle(begun, go), effects="changes")
            tasks = [group.create_task(each) for each in (book, refund())]
        return [task.result() for task in tasks]

    chat = ledger.open("c", program, store=ledger.MemoryStore(), approve=["refund"])
    if how == "stopped":
        stream = chat.stream("hi")
        begun.wait(20)
        chat.stop()
        with pytest.raises(errors.Cancelled):
            _ = stream.result
        go.set()
        assert [tool["name"] for tool in chat.turn(1).unfinished] == ["book"]
        return
    threading.Timer(0.3, go.set).start()
    with pytest.raises(errors.TurnWaiting):
        chat("hi")
    assert go.is_set()
    assert chat.turn(1).approve().resume() == ["booked", "refund 7"]


def test_a_tool_in_a_thread_that_asks_after_its_task_was_cancelled():
    """It is left where it asks, as any other, though nobody awaits it any more."""
    asked, order = threading.Event(), []

    def agent() -> str:
        asked.wait(20)
        return ledger.current().tool("mail", 1, lambda: order.append("mail"))

    async def refund() -> Any:
        try:
            return await ask()
        finally:
            asked.set()

    async def program(message: str) -> list:
        tool = ledger.current().tool
        async with asyncio.TaskGroup() as group:
            inner = tool("agent", 1, lambda: asyncio.run(_blocking(agent)), effects="changes")
            tasks = [group.create_task(each) for each in (inner, refund())]
        return [task.result() for task in tasks]

    chat = ledger.open("c", program, store=ledger.MemoryStore(), approve=["refund", "mail"])
    with pytest.raises(errors.TurnWaiting):
        chat("hi")
    turn = chat.turn(1)
    assert turn.unfinished == []
    for question in turn.waiting:
        turn.approve(question)
    while turn.state != "done":
        with suppress(errors.TurnWaiting):
            turn.resume()
        for question in turn.waiting:
            turn.approve(question)
    assert order == ["mail"]


async def _blocking(work):
    return await asyncio.to_thread(work)


# -- two questions --------------------------------------------------------------------------------


class Asked:
    """A turn that waits with two questions, and the deeds of its tools."""

    def __init__(self, approve=("refund",), **how):
        self.store = ledger.MemoryStore()
        self.done = []

        def tool(name, input, **how):
            def do():
                self.done.append((name, input))
                return f"{name} {len(self.done)}"

            return ledger.current().tool(name, input, do, effects="changes", **how)

        async def program(message: str) -> list:
            both = (
                tool("refund", {"order": self.order}, id="same"),
                tool("refund", {"order": 8}, id="same"),
            )
            return list(await asyncio.gather(*both, return_exceptions=True))

        self.order = 7
        self.chat = ledger.open("c", program, store=self.store, approve=approve, **how)
        with pytest.raises(errors.TurnWaiting):
            self.chat("hi")
        self.turn = self.chat.turn(1)


@pytest.fixture
def asked():
    """Two open questions, of one tool and one tool-call id."""
    return Asked()


def test_answers_name_one_question(asked):
    """Of two calls with one id, an answer by id, path, name or nothing acts on none; by question, on exactly it."""
    first, second = sorted(asked.turn.waiting, key=lambda question: question["input"]["order"])
    for vague in (None, "same", first["path"], "refund", 3, {}, {**first, "input": {"order": 9}}):
        with pytest.raises(errors.QuestionUnknown):
            asked.turn.approve(vague)
        with pytest.raises(errors.QuestionUnknown):
            asked.turn.deny(vague)
    assert records(asked.store, "approval") == []

    asked.turn.approve(second, by="Alex")
    asked.turn.deny(first, reason="too much")

    assert asked.turn.resume() == ["This call was not allowed. Reason: too much", "refund 1"]
    assert asked.done == [("refund", {"order": 8})]


def test_a_partial_answer_leaves_it_waiting(asked):
    """With one of two answered it still waits: resuming, sending and sending again are typed errors; nothing runs."""
    first, second = asked.turn.waiting
    asked.turn.approve(first)
    before = asked.store.raw("c")

    assert (asked.turn.state, asked.turn.waiting) == ("waiting", [second])
    with pytest.raises(errors.TurnWaiting) as waiting:
        asked.turn.resume()
    assert waiting.value.questions == (second,)
    with pytest.raises(errors.BusyWaiting) as busy:
        asked.chat("next")
    assert busy.value.questions == (second,)
    assert busy.value.state == "waiting"
    assert asked.chat.resume_all() == []
    assert asked.done == []
    assert asked.store.raw("c") == before


@pytest.mark.parametrize("verdicts", ["yy", "yn", "ny", "nn"])
def test_a_second_answer_is_refused(asked, verdicts):
    """A question that was answered takes no other answer, nor the same again."""
    first, second = asked.turn.waiting
    verbs = {"y": asked.turn.approve, "n": asked.turn.deny}
    verbs[verdicts[0]](first)

    with pytest.raises(errors.QuestionUnknown, match="answered already"):
        verbs[verdicts[1]](first)

    verbs["n"](second)
    with pytest.raises(errors.QuestionUnknown):
        verbs[verdicts[1]](first)
    asked.turn.resume()
    assert len(asked.done) == (verdicts[0] == "y")
    with pytest.raises(errors.TurnState):
        asked.turn.approve(first)


def test_two_answer_at_once(asked):
    """Of many who answer one question at the same time, one is heard."""
    first, _ = asked.turn.waiting
    heard = []

    def answer(n):
        view = ledger.open("c", store=asked.store).turn(1)
        try:
            (view.approve if n % 2 else view.deny)(first, by=str(n))
            heard.append(n)
        except errors.QuestionUnknown:
            pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(answer, range(8)))

    assert [a["by"] for a in records(asked.store, "approval")] == [str(n) for n in heard]
    assert len(heard) == 1


def test_a_call_with_other_arguments_is_asked_about_anew(asked):
    """A yes is to exactly what was asked: a program that now wants something else waits again, and runs nothing."""
    for question in asked.turn.waiting:
        asked.turn.approve(question)
    asked.order = 700

    with pytest.raises(errors.TurnWaiting) as caught:
        asked.turn.resume()

    assert [q["input"] for q in caught.value.questions] == [{"order": 700}]
    assert asked.done == [("refund", {"order": 8})]


def test_no_answer_is_no_yes():
    """A conversation opened without the rule still runs nothing that was asked about and not answered."""
    asked = Asked()
    again = ledger.open("c", asked.chat._view.program.function, store=asked.store)

    with pytest.raises(errors.TurnWaiting):
        again.turn(1).resume()
    asked.turn.deny(asked.turn.waiting[0])
    asked.turn.deny(asked.turn.waiting[0])
    again.turn(1).resume()

    assert asked.done == []


@pytest.mark.parametrize("close", ["stop", "abandon"])
def test_ending_it_closes_its_questions(asked, close):
    """Stopped or abandoned while it waits, a turn is abandoned: its questions take no answer, a send goes on."""
    question = asked.turn.waiting[0]

    getattr(asked.turn, close)()

    assert (asked.turn.state, asked.turn.waiting) == ("abandoned", [])
    with pytest.raises(errors.TurnState):
        asked.turn.approve(question)
    with pytest.raises(errors.TurnState):
        asked.turn.resume()
    assert asked.done == []
    with pytest.raises(errors.TurnWaiting):
        asked.chat("next")
    assert asked.chat.head.parent is None


@pytest.mark.parametrize(
    "rule, names",
    [
        ("changes", ["refund", "unsaid"]),
        ("all", ["look", "refund", "unsaid"]),
        (["look"], ["look"]),
        (["program/refund", "nothing"], ["refund"]),
        (["helper/unsaid"], []),
        ([], []),
        (None, []),
        (lambda question: None, ["refund", "unsaid"]),
        (lambda question: question["name"] == "refund" or None, ["unsaid"]),
        (lambda question: f"not {question['name']}", []),
    ],
)
def test_rules(rule, names):
    """What a person is asked about, by each sort of rule; a function is asked at once of what changes things."""

    def program(message: str) -> list:
        found = []

        def call(name, effects):
            tool = ledger.current().tool
            found.append(tool(name, 1, lambda: f"{name} ran", effects=effects))

        with ThreadPoolExecutor(3) as pool:
            pool.submit(call, "look", "reads")
            pool.submit(call, "refund", "changes")
            pool.submit(call, "unsaid", None)
        return sorted(found)

    chat = ledger.open("c", program, store=ledger.MemoryStore(), approve=rule)
    with suppress(errors.TurnWaiting):
        chat("hi")
    turn = chat.turn(1)
    assert sorted(question["name"] for question in turn.waiting) == names
    if not names:
        refused = [f"This call was not allowed. Reason: not {n}" for n in ("refund", "unsaid")]
        ran = ["look ran", "refund ran", "unsaid ran"]
        assert turn.result == ([*refused, "look ran"] if callable(rule) else ran)


@pytest.mark.parametrize("rule", ["reads", 5, [1], [""]])
def test_what_is_no_rule(rule):
    """A rule of another sort is refused when the conversation is opened."""
    with pytest.raises((TypeError, ValueError), match="approve is"):
        ledger.open("c", swallowing, store=ledger.MemoryStore(), approve=rule)


def test_busy_is_another_error_than_waiting():
    """A turn that runs and one that waits refuse a send by two errors; the second is told apart by its class."""
    go = threading.Event()

    def slow(message: str) -> str:
        go.wait(20)
        return message

    chat = ledger.open("c", slow, store=ledger.MemoryStore(), sends="refuse")
    stream = chat.stream("one")
    with pytest.raises(errors.Busy) as caught:
        chat("two")
    go.set()
    assert stream.result == "one"
    assert type(caught.value) is errors.Busy
    assert caught.value.state == "running"


# -- one claimant, and clocks -----------------------------------------------------------------------


def plain(message: str) -> str:
    """Answer."""
    return message.upper()


def test_a_holder_elsewhere_is_watched_first():
    """A turn left by another machine is gone on with after 12 s of this process's own time, and no sooner."""
    store, world = ledger.MemoryStore(), FakeWorld()
    turn = left_running(store, plain)
    world.count = 100
    chat = opened(store, plain, world)
    resumption = Resumption(chat._log, chat._view, turn)
    with pytest.raises(errors.TurnState):
        resumption.claim()
    world.set_clock(31)  # The wall clock may be anything: it starts no claim.

    waited = 0.0
    while (wait_s := resumption.claim()) is not None:
        world.pass_time(wait_s)
        waited += wait_s
        assert waited <= WATCH_S

    assert waited == WATCH_S
    assert [lease["attempt"] for lease in records(store, "lease")] == [1, 2]


def test_a_renewal_while_it_is_watched():
    """A holder that renews while it is watched lives: the turn runs, and is not claimed."""
    store, world = ledger.MemoryStore(), FakeWorld()
    turn = left_running(store, plain)
    chat = opened(store, plain, world)
    resumption = Resumption(chat._log, chat._view, turn)
    world.set_clock(31)
    resumption.claim()
    world.pass_time(WATCH_S - 1)
    (lease,) = records(store, "lease")
    renewed = ledger.records.times.to_text(world.now().replace(year=2027))
    store.append("c", [{**lease, "until": renewed}])
    world.pass_time(2)

    with pytest.raises(errors.TurnState):
        resumption.claim()

    assert len(records(store, "lease")) == 2


def test_a_renewal_of_a_late_clock_is_watched_anew():
    """A renewal whose writer's clock is behind has run out here at once; it is still a sign of life: 12 s more."""
    store, world = ledger.MemoryStore(), FakeWorld()
    turn = left_running(store, plain)
    chat = opened(store, plain, world)
    resumption = Resumption(chat._log, chat._view, turn)
    world.set_clock(3600)
    resumption.claim()
    world.pass_time(WATCH_S - 1)
    (lease,) = records(store, "lease")
    until = ledger.records.times.from_text(lease["until"])
    later = ledger.records.times.to_text(until.replace(second=40))
    store.append("c", [{**lease, "until": later}])
    world.pass_time(2)

    assert resumption.claim() is not None
    world.pass_time(WATCH_S)
    assert resumption.claim() is None


class Failing(ledger.MemoryStore):
    """A store that has no room for some records; or that keeps the first of a kind, and does not know it."""

    def __init__(self):
        super().__init__()
        self.fails = lambda record: False
        self.keeps = {}
        self.lost = set()

    def append(self, conversation, records, *, expect=None):
        """Add records, or fail."""
        records = list(records)
        if not any(map(self.fails, records)):
            return super().append(conversation, records, expect=expect)
        if self.keeps.pop(records[0]["kind"], False):
            super().append(conversation, records, expect=expect)
        self.lost |= {record["turn"] for record in records if record["kind"] == "ended"}
        raise OSError(28, "no room")

    def full_from(self, kind):
        """Have no room from the first record of a kind on."""
        met = []

        def fails(record):
            if record["kind"] == kind[0] and record.get("state") == kind[1]:
                met.append(record)
            return bool(met)

        self.fails = fails

    def mend(self):
        """Have room again. An end that was lost stays so, though it is tried again: its process is as good as dead."""
        lost = set(self.lost)

        def fails(record):
            return record["kind"] == "ended" and record["attempt"] == 1 and record["turn"] in lost

        self.fails = fails


def test_a_turn_that_was_given_back_is_free_at_once():
    """A turn given back by another machine's process is gone on with by anyone at once."""
    store, there, here = Failing(), FakeWorld("there:1:x", "other"), FakeWorld()
    here.count = 100
    wrong = [False]

    def program(message: str) -> list:
        return [] if wrong[0] else [ask()]

    chat = opened(store, program, there)
    store.full_from(("ended", "done"))
    with pytest.raises(OSError, match="no room"):
        chat("hi")
    store.mend()
    there.pass_time(31)
    wrong[0] = True
    with pytest.raises(errors.TurnChanged):
        chat.turn(1).resume()
    wrong[0] = False
    here.time = there.time
    other = opened(store, program, here)

    assert other.turn(1).state == "interrupted"
    assert Resumption(other._log, other._view, chat.turn(1).id).claim() is None


# -- what could not be stored -------------------------------------------------------------------------


def booking(done):
    """A program that pays for a reply, books, and answers with both; what it did is noted."""

    def program(message: str) -> list:
        def do(what):
            done.append(what)
            return f"{what} {len(done)}"

        turn = ledger.current()
        reply = turn.reply("plan", lambda: do("plan"))
        return [reply, turn.tool("book", {"item": 7}, lambda: do("book"))]

    return program


@pytest.mark.parametrize("lost", [("reply", None), ("tool", "done"), ("ended", "done")])
@pytest.mark.parametrize("keeps", [False, True], ids=["lost", "kept-unknown"])
def test_a_result_that_could_not_be_stored(lost, keeps):
    """What was done and not stored is stored before anything else when this process goes on: nothing is done twice.

    Also where the store had kept it, and did not know so.
    """
    store, world, done = Failing(), FakeWorld(), []
    chat = opened(store, booking(done), world)
    store.full_from(lost)
    store.keeps = {lost[0]: keeps}
    with pytest.raises(OSError, match="no room"):
        chat("hi")
    store.mend()
    turn = chat.turn(1)
    if lost[0] == "ended" and keeps:
        assert turn.state == "done"
        return
    assert turn.state == "running"
    world.pass_time(31)
    before = store.read("c").position

    assert turn.resume() == ["plan 1", "book 2"]

    assert done == ["plan", "book"]
    first = store.read("c", before)[0]
    assert first["kind"] == ("lease" if lost[0] == "ended" or keeps else lost[0])
    assert len(records(store, "reply")) == 1
    assert [r["state"] for r in records(store, "tool")] == ["started", "done"]
    assert not ledger.turns.steps._unsaved


def test_what_a_person_said_counts_over_what_is_stored_late():
    """Somebody else went on meanwhile, as a person had said what the tool gave: that stays."""
    store, world, done = Failing(), FakeWorld(), []
    chat = opened(store, booking(done), world)
    store.full_from(("tool", "done"))
    with pytest.raises(OSError, match="no room"):
        chat("hi")
    store.mend()
    world.pass_time(31)
    turn, theirs = chat.turn(1).id, commands.Claim("there:1:x", 2)
    said: Any = {"results": {"book": "a person"}, "rerun": (), "now": world.now()}
    chat._log.append(lambda history: claims.resume(history, turn, theirs, **said))
    # That process, which knows nothing of ours, died too.
    world.pass_time(100)
    mine = Resumption(chat._log, chat._view, turn)
    while (wait_s := mine.claim()) is not None:
        world.pass_time(wait_s)

    tools = [(r["state"], r.get("output")) for r in records(store, "tool")]
    assert tools == [("started", None), ("given", "a person")]


@pytest.mark.parametrize("how", ["error", "stop", "death"])
def test_what_broke_between_call_and_result_is_not_shown(how):
    """A turn that broke between a tool's call and its result is seen among all turns, with what is unfinished
    where it can be gone on with, and is no part of what the next turn is shown."""
    store, world, seen = Failing(), FakeWorld(), []
    stopped = threading.Event()

    def breaks() -> str:
        if how == "death":  # Its process can record nothing more.
            store.fails = lambda record: True
            return "lost"
        if how == "stop":
            chat.turn(2).stop()
            assert stopped.wait(20)
        raise ValueError("broken")

    def program(message: str) -> str:
        seen.append(ledger.current().earlier())
        ledger.current().tool("look", 1, lambda: "seen")
        return str(ledger.current().tool("book", 7, breaks)) if message == "break" else message

    chat = opened(store, program, world)
    chat("before")
    with pytest.raises((ValueError, errors.Cancelled, OSError)):
        chat("break")
    stopped.set()
    store.mend()
    world.pass_time(31)
    chat("after")

    steps = [{"name": "look", "input": 1, "output": "seen"}]
    assert seen[-1] == [{"message": "before", "result": "before", "steps": steps}]
    broken = chat.turn(2)
    assert broken.state == {"error": "failed", "stop": "stopped", "death": "interrupted"}[how]
    assert (broken in chat.turns, broken in chat.all_turns()) == (False, True)
    # What a call raised is known; what became of one that a stop or a death broke off is not.
    assert [tool["name"] for tool in broken.unfinished] == ([] if how == "error" else ["book"])
    kinds = [part["type"] for turn in chat.turns for m in turn.messages for part in m["parts"]]
    assert kinds.count("tool_call") == kinds.count("tool_call_response") == 2


# -- a program that changed ---------------------------------------------------------------------------


def test_a_changed_program_loses_nothing():
    """Resumed by a program that skips, changes or adds calls, a turn is refused and given back; the right program
    then finds all that was recorded, whatever the wrong ones did besides, and does nothing twice."""
    store, world, done = Failing(), FakeWorld(), []
    how = ["right"]

    def do(what):
        done.append(what)
        return what

    def program(message: str) -> list:
        turn = ledger.current()
        if how[0] == "skips the reply":
            return [turn.tool("book", 1, lambda: do("book"))]
        plan = turn.reply("plan" if how[0] != "changes" else "another", lambda: do(how[0]))
        if how[0] == "skips the tool":
            return [plan]
        if how[0] == "adds":
            turn.tool("look", 2, lambda: do("look"), effects="reads")
            return [plan]
        return [plan, turn.tool("book", 1, lambda: do("book"))]

    chat = opened(store, program, world)
    store.full_from(("ended", "done"))
    with pytest.raises(OSError, match="no room"):
        chat("hi")
    store.mend()
    world.pass_time(31)
    turn = chat.turn(1)
    for wrong in ("skips the reply", "skips the tool", "changes", "adds"):
        how[0] = wrong
        with pytest.raises(errors.TurnChanged) as caught:
            turn.resume()
        assert caught.value.left
        assert turn.state == "interrupted"
    how[0] = "right"
    paid = list(done)

    assert turn.resume() == ["right", "book"]
    assert done == paid
    assert done.count("book") == 1


def test_a_turn_that_ended_is_not_resumed_whatever_the_program():
    """That it has ended is said before anything about the program's fields."""
    store = ledger.MemoryStore()
    ledger.open("c", lambda message: message, store=store)("hi")

    def other(question: str, more: int) -> str:
        return question

    with pytest.raises(errors.TurnState, match="only a turn that has not ended"):
        ledger.open("c", other, store=store).turn(1).resume()
