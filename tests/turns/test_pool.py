"""The pool: a few threads for each lane, so that one that hangs holds up no other."""

import threading

from ledger.turns.pool import Pool, Workers


def pool(**bounds):
    """A pool of its own."""
    return Pool(Workers("test"), **bounds)


def test_a_lane_that_hangs_holds_up_no_other():
    """Jobs of one lane that hang take the threads of their lane, and jobs of others are done."""
    go_on = threading.Event()
    jobs = pool(most=64, most_in_lane=4)
    hanging = [jobs.submit(go_on.wait, "a") for _ in range(40)]

    done = [jobs.submit(lambda n=n: n, f"lane {n}").result(10) for n in range(20)]

    assert done == list(range(20))
    assert sum(job.running() for job in hanging) == 4
    go_on.set()
    assert all(job.result(10) for job in hanging)


def test_no_more_are_done_at_once_than_may_be():
    """However many lanes there are, no more jobs are under way than the pool may do."""
    go_on, jobs = threading.Event(), pool(most=3, most_in_lane=2)
    given = [jobs.submit(go_on.wait, n) for n in range(10)]

    assert sum(job.running() for job in given) <= 3
    go_on.set()
    assert all(job.result(10) for job in given)


def test_jobs_that_hang_make_room_for_others(monkeypatch):
    """Jobs of many lanes that hang for long take no room from others, whose number stays bounded."""
    monkeypatch.setattr("ledger.turns.pool.STUCK_S", 0.0)
    go_on, jobs = threading.Event(), pool(most=2, most_in_lane=1)
    hanging = [jobs.submit(go_on.wait, n) for n in range(20)]

    assert jobs.submit(lambda: "done", "other").result(10) == "done"
    go_on.set()
    assert all(job.result(10) for job in hanging)


def test_what_a_job_raises_is_its_own():
    """An error of a job is told to who asked for it, and the thread goes on."""
    jobs = pool(most=1, most_in_lane=1)

    assert isinstance(jobs.submit(lambda: 1 / 0).exception(10), ZeroDivisionError)
    assert jobs.submit(lambda: 2).result(10) == 2


def test_without_a_thread_a_job_waits():
    """Where no thread can be had, a job waits, and is done with the next that comes."""

    class Poor(Workers):
        lacks = True

        def run(self, work):
            if self.lacks:
                raise RuntimeError("can't start new thread")
            super().run(work)

    workers = Poor("test")
    jobs = Pool(workers)
    first = jobs.submit(lambda: 1)
    assert not first.done()

    workers.lacks = False

    assert jobs.submit(lambda: 2).result(10) == 2
    assert first.result(10) == 1


def test_a_cancelled_job_is_not_done():
    """A job that was cancelled while it stood in line is never begun."""
    go_on, jobs, done = threading.Event(), pool(most=1, most_in_lane=1), []
    first = jobs.submit(go_on.wait)
    second = jobs.submit(lambda: done.append(2))
    assert second.cancel()
    go_on.set()

    assert jobs.submit(lambda: 3).result(10) == 3
    assert (first.result(10), done) == (True, [])
