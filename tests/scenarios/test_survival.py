"""T9: a worker is killed at each append of a turn in turn; others approve and go on, until it is done.

A killed worker's death is seen at once on its machine, so nothing here waits for a lease.
"""

import itertools
from collections import Counter
from pathlib import Path

import pytest

from ledger.testing.children import children
from tests.adapters.test_functai_schema import assert_valid, lines_of
from tests.scenarios.support import view
from tests.scenarios.survival import (
    CHANGES,
    PAID,
    Case,
    killed_each,
    killed_later,
    killed_once,
)

LONG_S = 120.0
CASES = [
    ("blocking", "sync", "results"),
    ("aio", "async", "rerun"),
    ("blocking", "threads", "rerun"),
    ("aio", "tasks", "results"),
]
OTHERS = [("aio", "threads", "results"), ("blocking", "tasks", "rerun")]


def lived(job, case, *arguments):
    """What became of a turn, in processes forked from a fresh one."""
    Path(case.folder).mkdir(parents=True)
    with children(1) as (server,):
        server.prepare(job, case, *arguments)
        server.begin(LONG_S)
        return server.result(LONG_S)


def maybe_ran(death, when):
    """The tools that may have run when a worker was killed, by what it was appending."""
    return [
        r["name"]
        for r in death
        if r["kind"] == "tool"
        and (
            (r["state"] == "started" and when == "after")
            or (r["state"] == "done" and r["name"] in CHANGES and when == "before")
        )
    ]


def check(case, life):
    """The turn is done, with one end; what was done twice was asked for, or was paid and not yet recorded."""
    assert life.came[-1] == ["done", None], life
    chat = view(f"{case.folder}/store")
    (turn,) = chat.all_turns()
    assert turn.state == "done"
    lines = lines_of(chat.store)
    assert_valid(lines)
    assert [line["kind"] for line in lines].count("ended") == 1
    assert not chat.store.verify("alex").damaged
    # A person is asked exactly about the tools whose start is in the log and whose end is not.
    assert life.unfinished == [names for names in life.started if names], life
    for name in (*PAID, "stock"):
        assert life.deeds[name] == 1 + life.lost.count(name), (name, life)
    asked = Counter(name for names in life.unfinished for name in names)
    for name in CHANGES:
        if case.says == "rerun":
            assert life.deeds[name] <= 1 + asked[name], (name, life)
        assert life.deeds.get(name, 0) == 1 or asked[name], (name, life)
        assert life.deeds.get(name, 0) <= 1 or case.says == "rerun", (name, life)
    # What it answers is what the log says, and nothing that was lost.
    assert [str(part).split()[0] for part in turn.result[-1:]] == ["finish"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("face, program, says", CASES)
def test_a_kill_at_any_append(tmp_path, face, program, says, when):
    """Killed at any append of its turn, a worker's turn is ended once by others, and nothing is done twice.

    Where the steps come one after the other, a person is asked only when the kill came between the record
    of a tool's start and that of its end; a model's reply is paid twice only between it and its record.
    """
    for at in itertools.count(1):
        case = Case(face, program, says, str(tmp_path / str(at)))
        life = lived(killed_once, case, at, when)
        check(case, life)
        if life.came[0] is not None:
            break
        if program in ("sync", "async"):
            (death,) = life.deaths
            assert life.unfinished == [names for names in [maybe_ran(death, when)] if names]
            replies = [r["kind"] for r in death].count("reply") if when == "before" else 0
            assert len([name for name in life.lost if name in PAID]) == replies
    assert at > 8


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("face, program, says", CASES)
def test_a_kill_at_any_append_after_the_approval(tmp_path, face, program, says, when):
    """The same for the worker that goes on after a person said yes."""
    for at in itertools.count(1):
        case = Case(face, program, says, str(tmp_path / str(at)))
        life = lived(killed_later, case, at, when)
        check(case, life)
        if None not in life.came:
            break
    assert at > 4


@pytest.mark.parametrize("face, program, says", [*CASES, *OTHERS])
def test_kill_after_kill(tmp_path, face, program, says):
    """Workers that die one after the other, each after a few records, bring a turn to its end together."""
    case = Case(face, program, says, str(tmp_path / "c"))
    # The claim, the remembered helper's call, which belongs to each attempt, and one step of its own. Calls that
    # are begun again together need room for all their ends.
    few = {"results": 3, "rerun": 4 if program == "async" else 7}[says]
    life = lived(killed_each, case, 1, few, "after")

    check(case, life)
    assert len(life.deaths) >= 12 / few
