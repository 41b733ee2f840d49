"""A turn that runs ends once, whoever ends it first. The clock is the test's."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import ledger
from ledger import errors
from ledger.records import kinds, times
from ledger.turns import commands, running
from ledger.turns.current import Running
from ledger.turns.log import Log
from ledger.turns.programs import Program
from ledger.turns.running import Run
from ledger.turns.steps import Steps
from ledger.turns.view import Start, View
from tests.worlds import FakeWorld


def answer(message: str) -> str:
    """Answer."""
    return "fine"


class Scene:
    """A conversation with one turn that runs, by hand."""

    def __init__(self, store=None):
        self.world = FakeWorld()
        self.log = Log(store if store is not None else ledger.MemoryStore(), "c")
        self.program = Program(answer)
        self.view = View("c", self.program, world=self.world)
        start = Start(self.view, self.program, {"message": "hi"}, settings={})
        self.log.append(start.decide)
        self.turn = start.turn
        told = Running("c", self.turn, {}, list)
        steps = Steps(self.log, self.turn, start.claim, self.world)
        self.run = Run(self.log, self.program, told, start.claim, self.world, steps)

    @property
    def ended(self):
        """The turn's end, as recorded."""
        return self.log.read().node(self.turn).ended

    @property
    def leases(self):
        """How many leases were recorded."""
        return [r["kind"] for r in self.log.store.read("c")].count("lease")

    def take_over(self):
        """Let another process claim the turn."""
        until = times.to_text(self.world.now())
        lease = kinds.new("lease", until, turn=self.turn, holder="b", until=until, attempt=2)
        self.log.store.append("c", [lease])


@pytest.fixture
def scene():
    """A running turn."""
    scene = Scene()
    yield scene
    scene.run.lose(errors.LeaseLost(turn=scene.turn, reason="the test is over"))


def test_a_program_that_returned(scene):
    """What the program returned is recorded, then known."""
    scene.run.running.note(model="m", usage={"tokens": 2})

    scene.run.finish("fine")

    assert scene.run.outcome.result(0) == "fine"
    assert (scene.ended.state, scene.ended.model) == ("done", "m")


def test_a_program_that_raised(scene):
    """What the program raised is recorded with what it had said, and raised again as the same object."""
    error = KeyError("x")
    scene.run.running.emit("so far")

    scene.run.fail(error)

    assert scene.run.outcome.exception(0) is error
    assert (scene.ended.state, scene.ended.partial) == ("failed", "so far")


def test_an_answer_that_cannot_be_kept(scene):
    """An answer with no JSON form ends the turn as failed, with the path."""
    scene.run.finish(float("nan"))

    assert isinstance(scene.run.outcome.exception(0), errors.LedgerError | TypeError)
    assert scene.ended.state == "failed"


def test_a_stop_beats_a_program_that_returns(scene):
    """Stopped first, a turn ends stopped though its program returns, and what it said is kept."""
    scene.run.running.emit("half")
    scene.run.stop()

    scene.run.finish("fine")

    assert isinstance(scene.run.outcome.exception(0), errors.Cancelled)
    assert (scene.ended.state, scene.ended.partial) == ("stopped", "half")
    assert not kinds.has(scene.ended.outputs)


def test_a_stop_beats_a_program_that_raises(scene):
    """Stopped first, a turn ends stopped though its program raises."""
    scene.run.stop()
    scene.run.fail(ValueError("interrupted"))

    assert scene.ended.state == "stopped"


def test_a_stop_that_nobody_has_seen_yet_counts(scene):
    """A stop in the log counts at the end, though nobody looked since."""
    scene.log.store.append(
        "c", [kinds.new("stop", times.to_text(scene.world.now()), turn=scene.turn)]
    )

    scene.run.finish("fine")

    assert scene.ended.state == "stopped"
    assert isinstance(scene.run.outcome.exception(0), errors.Cancelled)


def test_a_stop_before_the_attempt_is_not_for_it(scene):
    """A stop that stands before an attempt's first lease does not stop that attempt."""
    scene.log.store.append(
        "c", [kinds.new("stop", times.to_text(scene.world.now()), turn=scene.turn)]
    )
    scene.take_over()
    history = scene.log.read()

    assert not commands.asked_to_stop(history, scene.turn)


def test_a_stopped_program_changes_nothing_later(scene):
    """A program that works on after its turn ended can say, note and return what it likes: nothing changes."""
    scene.run.stop()
    scene.run._end_stopped()
    before = scene.log.store.raw("c")

    scene.run.running.note(usage={"tokens": 1})
    with pytest.raises(errors.Cancelled):
        scene.run.running.emit("more")
    scene.run.finish("late")
    scene.run.fail(ValueError("late"))
    scene.run.renew()

    assert scene.log.store.raw("c") == before


def test_a_program_that_never_ends_is_left_behind(scene):
    """A stop ends the turn a moment later, also when the program does nothing about it."""
    woken = threading.Event()
    scene.run.cancelled_by(woken.set)

    scene.run.stop()

    assert isinstance(scene.run.outcome.exception(5), errors.Cancelled)
    assert woken.is_set()
    assert scene.ended.state == "stopped"


def test_a_stop_before_it_is_known_how_to_wake_the_program(scene):
    """A program that was stopped before its run knew how to wake it is woken as soon as that is known."""
    woken = threading.Event()
    scene.run.stop()

    scene.run.cancelled_by(woken.set)

    assert woken.is_set()


def test_who_lost_the_turn_records_nothing(scene):
    """After another process claimed the turn, neither its end nor a renewal is recorded."""
    scene.take_over()
    before = scene.log.store.raw("c")

    scene.run.finish("fine")

    assert isinstance(scene.run.outcome.exception(0), errors.LeaseLost)
    assert scene.log.store.raw("c") == before


def test_a_renewal_notices_the_loss(scene):
    """A renewal that finds the turn claimed records nothing, and the caller is told."""
    scene.take_over()

    assert scene.run.renew()

    assert isinstance(scene.run.outcome.exception(0), errors.LeaseLost)
    assert scene.run.running.stopped
    assert scene.leases == 2


def test_a_look_notices_the_loss(scene):
    """A look that finds news reads them: the turn was claimed by another process."""
    scene.take_over()

    scene.run.look()

    assert isinstance(scene.run.outcome.exception(5), errors.LeaseLost)


def test_whose_a_turn_is_is_not_told_while_another_thread_is_at_its_log(scene):
    """That may take long, and other turns wait for the answer."""
    assert scene.run.is_ours() is True
    scene.take_over()
    with ThreadPoolExecutor(1) as other:
        other.submit(scene.log.lock.acquire).result()
        assert scene.run.is_ours() is None
        other.submit(scene.log.lock.release).result()
    assert scene.run.is_ours() is False
    assert scene.run.is_over


def test_a_lease_that_ran_out_unclaimed_is_renewed(scene):
    """A lease that ran out and that nobody claimed is not lost: renewing it goes on."""
    scene.world.pass_time(3600)

    assert scene.run.renew()
    scene.run.finish("fine")

    assert scene.ended.state == "done"
    assert scene.leases == 2


def test_an_end_after_the_lease_ran_out_renews_it_first(scene):
    """The end of a turn whose lease ran out carries a renewal, in the same append."""
    scene.world.pass_time(31)

    scene.run.finish("fine")

    assert [r["kind"] for r in scene.log.store.read("c")][-2:] == ["lease", "ended"]


class FailingStore(ledger.MemoryStore):
    """A store whose appends can be made to fail."""

    fails = False

    def append(self, conversation, records, *, expect=None):
        """Append, or fail as told."""
        if self.fails and records:
            raise errors.StoreFull(where="here", reason="no room")
        return super().append(conversation, records, expect=expect)


def test_a_turn_whose_lease_cannot_be_renewed_is_given_up():
    """When renewing fails until 5 s before the lease ends, the turn is given up, and not before."""
    scene = Scene(FailingStore())
    scene.log.store.fails = True
    scene.world.pass_time(10)
    assert not scene.run.renew()

    scene.world.pass_time(14)
    assert not scene.run._overdue()

    scene.world.pass_time(2)
    assert scene.run._overdue()
    scene.run.look()
    assert isinstance(scene.run.outcome.exception(5), errors.LeaseLost)


def test_a_machine_that_slept_may_try_first():
    """After an hour asleep a turn is not given up before renewing it was tried for 5 s."""
    scene = Scene(FailingStore())
    scene.world.pass_time(3600)
    assert not scene.run._overdue()

    scene.log.store.fails = True
    assert not scene.run.renew()
    assert not scene.run._overdue()

    scene.world.pass_time(6)
    assert scene.run._overdue()
    scene.run.lose(errors.LeaseLost(turn=scene.turn, reason="the test is over"))


def test_an_end_that_cannot_be_stored_is_raised():
    """When the store takes no end, the caller gets the store's error."""
    scene = Scene(FailingStore())
    scene.log.store.fails = True

    scene.run.finish("fine")

    assert isinstance(scene.run.outcome.exception(0), errors.StoreFull)
    assert scene.ended is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forks_child_ends_no_turn_of_its_parent(scene):
    """In a fork's child the copy of a run is nobody's, and its end is refused."""
    child = os.fork()
    if not child:
        scene.run.finish("from the child")
        told = scene.run.outcome.exception(0)
        alone = running.find(scene.turn) is None
        os._exit(0 if isinstance(told, errors.LeaseLost) and alone else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert scene.ended is None


def test_a_deleted_conversation_is_lost(scene):
    """When its conversation is deleted, a turn is lost and its caller told."""
    scene.log.store.delete("c")

    scene.run.finish("fine")

    assert isinstance(scene.run.outcome.exception(0), errors.LeaseLost)
    assert scene.log.store.conversations() == []


@pytest.mark.parametrize("line", range(1, 40))
def test_an_interrupt_while_waiting_holds_nobody_up(scene, line):
    """Interrupted at any line of waiting for a turn, a caller holds no lock that the turn needs to end."""
    count = 0

    def interrupt(frame, event, _):
        nonlocal count
        waiting = frame.f_code.co_filename.endswith(("_base.py", "threading.py", "running.py"))
        count += waiting and event == "line"
        if waiting and event == "line" and count == line:
            raise KeyboardInterrupt
        return interrupt if waiting or frame.f_code.co_name == "result" else None

    ending = threading.Timer(0.05, scene.run.finish, ["fine"])
    ending.start()
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        scene.run.result()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    ending.join(3)

    assert not ending.is_alive()
    assert scene.ended is not None
