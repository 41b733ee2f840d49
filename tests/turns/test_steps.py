"""What a resumed run finds of the steps before it: each used once, whatever the order of parallel calls."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.records.kinds import new
from ledger.turns.before import Before
from ledger.turns.sites import Site
from ledger.views import History
from ledger.views.steps import hashed, named

TURN = "018f0000-0000-7000-8000-000000000001"
HERE = Site(TURN, "support#1")
AT = "2026-01-01T00:00:00.000000Z"

CALLS = st.lists(
    st.tuples(
        st.sampled_from(["", "a#1", "a#2"]),
        st.sampled_from(["look", "book"]),
        st.sampled_from([None, "c1", "c2"]),
        st.integers(0, 1),
        st.sampled_from(["done", "given", "asked", "yes", "no", "yes-done"]),
    ),
    max_size=8,
)
"""Calls: site, name, the caller's own id, input, and what is recorded of each."""


def records_of(calls):
    """The records of calls as one attempt leaves them, numbered by site, each with an output of its own."""
    numbers, tools, questions, answers = Counter(), [], [], []
    for n, (site, name, id, input, what) in enumerate(calls):
        numbers[site] += 1
        place = {"site": site, "invocation": numbers[site]}
        keys = {**place, "id": id or f"#{numbers[site]}", "name": name}
        if what in ("asked", "yes", "no", "yes-done"):
            asked = {**keys, "input": input, "path": name, "plugin": "approval"}
            questions.append({**asked, "asked": hashed(name, input)})
        if what in ("yes", "no", "yes-done"):
            verdict = what.split("-")[0]
            answers.append(new("approval", AT, turn=TURN, **place, verdict=verdict))
        if what in ("done", "given", "yes-done"):
            state = "given" if what == "given" else "done"
            tool = new("tool", AT, turn=TURN, state=state, output=f"out {n}", attempt=1, **keys)
            tools.append({**tool, "input": input})
    waiting = new("waiting", AT, turn=TURN, approvals=questions, attempt=1)
    return [*tools, waiting, *answers]


def node_of(records):
    """The node of a turn with such records."""
    start = [
        new("turn", AT, turn=TURN, parent=None, program="p", inputs={}),
        new("lease", AT, turn=TURN, holder="h", until=AT, attempt=1),
    ]
    numbered = [{**r, "seq": n} for n, r in enumerate([*start, *records], 1)]
    return History.of(numbered).node(TURN)


@given(CALLS, st.randoms(use_true_random=False))
def test_any_order_of_the_same_calls_finds_what_was_recorded(calls, random):
    """Calls made again in any order are given, together, exactly what was recorded of such calls: each once,
    and a tool's output goes with the answer to the question about that very call."""
    before = Before(node_of(records_of(calls)))
    again = list(enumerate(calls))
    random.shuffle(again)

    found = [
        (call, before.tool(named(call[2], call[1], call[3], None), call[0])) for _, call in again
    ]

    def kind(call):
        return call[1:4]

    for wanted in {kind(call) for call in calls}:
        recorded = Counter(
            (
                f"out {n}" if "done" in call[4] or call[4] == "given" else None,
                call[4].split("-")[0] if call[4] in ("yes", "no", "yes-done") else None,
                call[4] in ("asked", "yes", "no", "yes-done"),
            )
            for n, call in enumerate(calls)
            if kind(call) == wanted
        )
        given_back = Counter(
            (
                place.tool.output if place.tool is not None else None,
                place.asked.verdict if place.asked is not None else None,
                place.asked is not None,
            )
            for call, place in found
            if kind(call) == wanted
        )
        assert given_back == recorded
    places = [(place.site, place.invocation) for _, place in found]
    assert len(places) == len(set(places))
    assert before.left() == []


@given(CALLS)
def test_calls_in_their_own_order_find_their_own(calls):
    """Made again at the same sites in the same order, each call is given what it was given itself, unless
    the very same call was made at that site before."""
    before = Before(node_of(records_of(calls)))
    numbers = Counter()
    for n, call in enumerate(calls):
        site, name, id, input, what = call
        numbers[site] += 1
        place = before.tool(named(id, name, input, None), site)
        assert (place.site, place.invocation) == (site, numbers[site])
        if what in ("done", "given", "yes-done"):
            assert place.tool.output == f"out {n}"


@given(CALLS, st.data())
def test_other_calls_find_nothing(calls, data):
    """A call with another input, name or id of its own is given nothing, and takes a place of its own."""
    before = Before(node_of(records_of(calls)))
    site = data.draw(st.sampled_from(["", "a#1", "b#1"]))
    name, input, id = data.draw(
        st.sampled_from([("look", 2, None), ("x", 0, None), ("look", 0, "c3")])
    )

    place = before.tool(named(id, name, input, None), site)

    assert (place.tool, place.asked) == (None, None)
    used = {(r["site"], r["invocation"]) for r in records_of(calls) if "site" in r}
    assert (place.site, place.invocation) not in used


@given(st.lists(st.sampled_from("abc"), max_size=8), st.randoms(use_true_random=False))
def test_replies_are_a_queue_for_each_request(keys, random):
    """The replies to one request come in the order in which they were recorded, each once."""
    records = [
        new("reply", AT, turn=TURN, key=key, response={"n": n}, attempt=1)
        for n, key in enumerate(keys)
    ]
    before = Before(node_of(records))
    again = list(keys)
    random.shuffle(again)

    found = [(key, before.reply(key, HERE).response["n"]) for key in again]

    for key in set(keys):
        assert [n for k, n in found if k == key] == [n for n, k in enumerate(keys) if k == key]
    assert all(before.reply(key, HERE) is None for key in "abc")
    assert before.left() == []


def test_of_two_answers_the_first_counts():
    """Another writer's second answer to a question changes nothing."""
    records = records_of([("", "book", None, 0, "no")])
    records.append(new("approval", AT, turn=TURN, site="", invocation=1, verdict="yes"))
    before = Before(node_of(records))

    assert before.tool(named(None, "book", 0, None), "").asked.verdict == "no"


@pytest.mark.parametrize("order", list(itertools.permutations([0, 1])))
def test_a_rerun_in_another_helper_overwrites_nothing(order):
    """Two helpers called the same tool; one's is to run again. Whoever comes first, the record of the other's
    output stays what it is: the second run is recorded at its own place."""
    done, rerun = records_of([("a#1", "book", None, 0, "done"), ("a#2", "book", None, 0, "done")])[
        :2
    ]
    before = Before(node_of([done, {**rerun, "state": "rerun"}]))
    sites = ["a#1", "a#2"]

    places = [before.tool(named(None, "book", 0, None), sites[n]) for n in order]

    for place in places:
        assert (place.tool.state == "done") == ((place.site, place.invocation) == ("a#1", 1))
