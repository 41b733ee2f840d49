"""The keeper: what is due is done when it is due. No thread, no clock: `tick` is told the time."""

from ledger.turns.keeper import AGAIN_S, LOOK_S, RENEW_S, Keeper


class Turn:
    """A running turn that counts what the keeper does."""

    lane = None

    def __init__(self, *, renews=True):
        self.looks = 0
        self.renewals = []
        self.renews = renews

    def look(self):
        """Count."""
        self.looks += 1

    def renew(self):
        """Count, and say whether it went well."""
        self.renewals.append(None)
        return self.renews


def keeper():
    """A keeper whose pool does what it is given at once."""
    return Keeper(lambda job, lane: job())


def run(kept, until):
    """Tick a keeper at each moment that it asks for, up to a time."""
    due = kept.tick(0)
    while due is not None and due <= until:
        due = kept.tick(due)
    kept.tick(until)


def test_a_turn_is_looked_at_and_renewed():
    """A turn's log is looked at every 0.4 s and its lease renewed every 10 s."""
    kept, turn = keeper(), Turn()
    kept.tend(turn, 0)

    run(kept, 32)

    assert len(turn.renewals) == 3
    assert abs(turn.looks - 32 / LOOK_S) <= 1


def test_a_renewal_that_fails_is_tried_again_soon():
    """A renewal that fails is tried every second until it goes well."""
    kept, turn = keeper(), Turn(renews=False)
    kept.tend(turn, 0)

    run(kept, RENEW_S + 10 * AGAIN_S)

    assert 7 <= len(turn.renewals) <= 10


def test_a_turn_that_ended_is_left_alone():
    """After `leave` nothing is done for a turn, and nothing of it stays."""
    kept, turn = keeper(), Turn()
    kept.tend(turn, 0)
    kept.leave(turn)

    run(kept, 100)

    assert (turn.looks, turn.renewals, kept.tick(1000)) == (0, [], None)


def test_a_thousand_turns():
    """A thousand running turns are each looked at and renewed in time."""
    kept, turns = keeper(), [Turn() for _ in range(1000)]
    for number, turn in enumerate(turns):
        kept.tend(turn, number / 1000)

    run(kept, 22)

    assert {len(turn.renewals) for turn in turns} == {2}
    assert min(turn.looks for turn in turns) >= 20 / LOOK_S - 1


def test_many_turns_that_begin_at_once_are_not_renewed_at_once():
    """The leases of a thousand turns that began together are renewed over 5 s; one turn's alone when it is due."""
    due: list[object] = []

    def submit(job, lane):
        due.append(job)
        job()

    kept = Keeper(submit)
    for turn in [Turn() for _ in range(1000)]:
        kept.tend(turn, 0)
    seconds = []
    for second in range(4, 11):
        due.clear()
        run(kept, second + 0.5)
        seconds.append(len(due))

    assert sum(seconds) == 1000
    assert seconds[0] == 0 < min(seconds[1:])
    assert max(seconds) < 300


def test_many_turns_are_not_looked_at_at_once():
    """No tick looks at more than a quarter of the turns, and each turn is looked at every 0.4 s."""
    kept, turns = keeper(), [Turn() for _ in range(101)]
    for turn in turns:
        kept.tend(turn, 0)
    at, most = 0.0, 0
    while at < 8:
        before = sum(turn.looks for turn in turns)
        at = kept.tick(at) or at
        most = max(most, sum(turn.looks for turn in turns) - before)

    assert most == 26
    assert {turn.looks for turn in turns} <= {18, 19, 20, 21}


def test_a_renewal_that_takes_long_holds_up_nobody():
    """While one renewal hangs in the pool, every other turn is looked at and renewed in time."""
    hanging = []
    kept, stuck, other = Keeper(lambda job, lane: hanging.append(job)), Turn(), Turn()
    kept.tend(stuck, 0)
    kept.tend(other, 0)

    run(kept, 11)

    assert len(hanging) == 2
    assert stuck.looks == other.looks > 20


def test_later_is_not_before():
    """A job is done at its time, not before, in the order of the times."""
    kept, done = keeper(), []
    kept.later(2, lambda: done.append("b"))
    kept.later(1, lambda: done.append("a"))

    assert kept.tick(0.5) == 1
    assert kept.tick(1.5) == 2
    assert done == ["a"]
    assert kept.tick(3) is None
    assert done == ["a", "b"]
