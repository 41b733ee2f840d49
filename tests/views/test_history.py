"""The fold: records in order become turns; one test per rule, then chance against the twins."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ledger.errors import RecordInvalid, StoreCorrupt, TurnUnknown
from ledger.records import kinds
from ledger.views import History, all_turns, last_turns
from tests.views import build, oracle
from tests.views.build import AHEAD, DAMAGED, NOW, PAST

DEAD = {("h", 1)}


def snapshot(history: History) -> dict[str, Any]:
    """Everything that a history says, damage included, as comparable values."""

    def said(ask: Any) -> Any:
        try:
            return ask()
        except (StoreCorrupt, RecordInvalid) as error:
            return error.code

    names = list(history.order)
    return {
        "position": history.position,
        "order": names,
        "head": history.head,
        "turns": history.turns,
        "heads": history.heads(),
        "roots": history.children(None),
        "programs": list(history.programs),
        "requests": [history.request(r) for r in ("r1", "r2", "r3")],
        "place": [
            repr(history.place(now=NOW, sends=s, dead=DEAD)) for s in ("queue", "refuse", "branch")
        ],
        "nodes": {
            t: (
                history.node(t).ordinal,
                history.node(t).depth,
                history.node(t).attempt,
                history.node(t).attempt_seq,
                history.node(t).stops,
                history.branch(t),
                history.children(t),
                history.latest(t),
                history.state(t, now=NOW),
                said(lambda t=t: history.unanswered(t)),
                [tool.seq for tool in history.unfinished(t)],
                [e.seq for e in history.entries("x", "title", t)],
                said(lambda t=t: history.saw(t)),
                said(lambda t=t: history.lineage(t).rests_on),
                history.lineage(t).missing,
                history.lineage(t).influenced,
                history.lineage(t).explain(),
                history.shown(t, all_turns(without=["result"])).saw,
                history.shown(t, last_turns(2)).saw,
            )
            for t in names
        },
    }


# -- rules of the fold -----------------------------------------------------------------------------


def test_a_parent_is_followed_to_the_root():
    """A branch is the turns from the first to a given turn."""
    history = History.of([*build.line("a", "b", "c"), *build.done("d", "a")])

    assert history.branch("c") == ["a", "b", "c"]
    assert history.branch("d") == ["a", "d"]
    assert history.children("a") == ["b", "d"]
    assert history.children(None) == ["a"]
    assert history.node("d").depth == 1


def test_ordinals_follow_the_log():
    """Ordinals are 1, 2, 3 in log order, on whatever branch a turn is."""
    history = History.of([*build.line("a", "b"), *build.done("c", "a")])

    assert [history.node(t).ordinal for t in history.order] == [1, 2, 3]


@pytest.mark.parametrize("parent", ["nobody", "later", "a", 5, ["x"], {}])
def test_a_parent_that_stands_nowhere_before_makes_a_root(parent):
    """A turn whose parent is unknown, later, itself, or no id at all is a root."""
    history = History.of([build.turn("a", parent), build.turn("later")])

    assert history.node("a").parent is None
    assert history.branch("a") == ["a"]


def test_a_turn_below_a_damaged_line_is_a_root():
    """Damage of a turn's line costs that turn: its children stay, as roots."""
    records: list[Any] = build.line("a", "b", "c")
    records[3] = {"kind": "unreadable", "seq": 4}
    history = History.of(records)

    assert history.order == ["a", "c"]
    assert history.branch("c") == ["c"]
    assert history.position == 9


def test_the_first_record_of_a_turn_counts():
    """A second record of a turn id changes nothing, not the head either."""
    history = History.of([build.turn("a"), build.turn("b", "a"), build.turn("a", "b")])

    assert history.order == ["a", "b"]
    assert history.node("a").parent is None
    assert history.head == "b"


def test_the_first_end_counts():
    """A second `ended` of a turn changes nothing."""
    history = History.of([build.turn("a"), build.ended("a", "failed"), build.ended("a", "done")])

    assert history.state("a", now=NOW) == "failed"


@pytest.mark.parametrize("kind", ["lease", "ended", "waiting", "approval", "tool", "head", "stop"])
def test_records_of_an_unknown_turn_are_skipped(kind):
    """A record that names no turn before it moves the position and nothing else."""
    stray = build.new(kind, turn="b", state="done")
    history = History.of([*build.line("a"), stray, build.turn("b", "a")])

    assert history.position == 5
    assert history.head == "b"
    assert history.state("b", now=NOW) == "interrupted"


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "unreadable", "seq": 1},
        {"functai_conversation": 2, "kind": "turn", "turn": "x"},
        {"functai_conversation": 1, "kind": "invented", "turn": "x"},
        {"functai_conversation": 1, "kind": "turn"},
        {},
        None,
        7,
    ],
)
def test_what_is_not_known_only_moves_the_position(record):
    """Unknown kinds and formats, unreadable lines and things that are no records keep their place."""
    history = History.of([record, *build.line("a")])

    assert history.order == ["a"]
    assert history.position == 4
    assert history.node("a").seq == 2


def test_the_head_is_the_latest_turn_or_where_it_was_moved():
    """The head is the latest `turn` record, or the turn of a later `head` record."""
    history = History.of(build.line("a", "b"))
    assert history.head == "b"

    history.extend([build.new("head", turn="a")])
    assert history.head == "a"
    assert history.turns == ["a"]

    history.extend([build.turn("c", "b")])
    assert history.head == "c"
    assert history.turns == ["a", "b", "c"]


def test_the_head_may_be_before_the_first_turn():
    """A `cleared` entry moves the head before the first turn, until there is a turn or the head is moved."""
    cleared = build.new("entry", plugin="ledger", entry="cleared", data=None)
    history = History.of([*build.line("a", "b"), cleared])
    assert (history.head, history.turns, history.heads()) == (None, [], ["b"])

    history.extend([build.turn("c", None)])
    assert history.turns == ["c"]
    history.extend([cleared, build.new("head", turn="b")])
    assert history.turns == ["a", "b"]


def test_an_empty_log_has_no_head():
    """A conversation without records has no turns and no head, and a new turn is its first."""
    history = History.of([])

    assert (history.head, history.turns, len(history), history.position) == (None, [], 0, 0)
    assert history.heads() == []


def test_the_latest_descendant():
    """The latest turn in log order that is a turn or descends from it."""
    history = History.of([*build.line("a", "b", "c"), *build.done("d", "b"), *build.done("e", "a")])

    assert history.latest("b") == "d"
    assert history.latest("c") == "c"
    assert history.latest("a") == "e"


def test_the_first_program_of_a_version_counts():
    """A program record may be written again; the first counts."""
    history = History.of(
        [
            build.new("program", version="v", name="one"),
            build.new("program", version="v", name="two"),
        ]
    )

    assert history.programs["v"].name == "one"


def test_a_request_id_belongs_to_the_first_turn_that_has_it():
    """A request id names the turn that took it first."""
    history = History.of([build.turn("a", request_id="r"), build.turn("b", request_id="r")])

    assert history.request("r") == "a"
    assert history.request("other") is None


def test_entries_are_of_a_branch_or_of_every_branch():
    """An entry of a turn is on the branches through it; one without a turn is on every branch."""

    def entry(data: str, **keys: Any) -> dict[str, Any]:
        return build.new("entry", plugin="x", entry="title", data=data, **keys)

    history = History.of(
        [
            entry("all"),
            entry("lost", turn="a"),
            *build.line("a", "b"),
            *build.done("c", "a"),
            entry("of b", turn="b"),
            entry("of a", turn="a"),
        ]
    )

    def kept(branch: str | None) -> list[Any]:
        return [kinds.payload(e.data) for e in history.entries("x", "title", branch)]

    assert kept("b") == ["all", "of b", "of a"]
    assert kept("c") == ["all", "of a"]
    assert kept(None) == ["all", "of b", "of a"]
    assert history.entries("x", "rating") == []


def test_an_unknown_turn_is_refused_by_name():
    """Questions about a turn that is not there raise turn-unknown, with the conversation's name."""
    history = History.of(build.line("a"), conversation="c1")

    with pytest.raises(TurnUnknown) as caught:
        history.branch("b")

    assert (caught.value.conversation, caught.value.turn) == ("c1", "b")
    assert "a" in history
    assert "b" not in history


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["done", "failed", "stopped", "abandoned"])
def test_an_end_decides_the_state(state):
    """Rule 1: an `ended` record's state, whatever else was recorded, before or after."""
    history = History.of(
        [
            build.turn("a"),
            build.waiting("a"),
            build.ended("a", state),
            build.lease("a", AHEAD),
            build.waiting("a"),
        ]
    )

    assert history.state("a", now=NOW) == state


def test_a_wait_after_the_last_lease_is_waiting():
    """Rule 2: a `waiting` record later than the last lease."""
    history = History.of([build.turn("a"), build.lease("a", AHEAD), build.waiting("a")])
    assert history.state("a", now=NOW) == "waiting"

    history.extend([build.lease("a", AHEAD, attempt=2)])
    assert history.state("a", now=NOW) == "running"


def test_a_lease_holds_up_to_its_time():
    """Rules 3 and 4: running while `until` is not before now, then interrupted."""
    history = History.of([build.turn("a"), build.lease("a", AHEAD)])
    until = datetime.fromisoformat(AHEAD)

    assert history.state("a", now=until) == "running"
    assert history.state("a", now=until + timedelta(microseconds=1)) == "interrupted"


@pytest.mark.parametrize("until", ["never", "", "2026-01-01T12:00:30", None, 5])
def test_a_time_that_does_not_read_is_past(until):
    """A lease without a time that reads holds nothing."""
    history = History.of([build.turn("a"), build.lease("a", until)])

    assert history.state("a", now=NOW) == "interrupted"


def test_a_turn_without_a_lease_is_interrupted():
    """A turn that nobody holds is interrupted."""
    assert History.of([build.turn("a")]).state("a", now=NOW) == "interrupted"


def test_a_dead_holder_holds_nothing():
    """A running turn whose (holder, attempt) is known dead is interrupted; another attempt is not."""
    history = History.of([build.turn("a"), build.lease("a", AHEAD, "h", 2)])

    assert history.state("a", now=NOW, dead={("h", 2)}) == "interrupted"
    assert history.state("a", now=NOW, dead={("h", 1), ("k", 2)}) == "running"


def test_a_moment_needs_a_zone():
    """A naive datetime names no moment."""
    with pytest.raises(ValueError, match="zone"):
        History.of(build.line("a")).state("a", now=NOW.replace(tzinfo=None))


def test_attempts_count_from_their_first_lease():
    """The highest attempt counts, from its first lease; only later stops are for it."""
    history = History.of(
        [
            build.turn("a"),
            build.lease("a"),
            build.new("stop", turn="a"),
            build.lease("a", attempt=2),
            build.lease("a", attempt=2),
            build.lease("a", attempt=1),
            build.new("stop", turn="a"),
        ]
    )
    node = history.node("a")

    assert (node.attempt, node.attempt_seq, node.lease_seq) == (2, 4, 6)
    assert node.stops == [3, 7]


# -- questions and tools ---------------------------------------------------------------------------


def test_questions_are_open_until_a_later_answer_names_them():
    """Answers name a question by site, invocation and plugin; absent: `approval`. Either verdict."""
    first, second = build.question(), build.question(invocation=2, plugin="other")
    history = History.of(
        [build.turn("a"), build.approval("a"), build.waiting("a", (first, second))]
    )
    first, second = (
        {**asked, "key": f"{asked['site']}:{asked['invocation']}"} for asked in (first, second)
    )
    assert history.unanswered("a") == [first, second]

    history.extend([build.approval("a", plugin="approval"), build.approval("a", invocation=2)])
    assert history.unanswered("a") == [second]

    history.extend([build.approval("a", invocation=2, plugin="other")])
    assert history.unanswered("a") == []


def test_only_the_last_wait_asks():
    """The questions are those of the last `waiting` record."""
    history = History.of(
        [
            build.turn("a"),
            build.waiting("a", (build.question(),)),
            build.waiting("a", (build.question(invocation=9),)),
        ]
    )

    assert [q["invocation"] for q in history.unanswered("a")] == [9]


def test_an_end_closes_the_questions():
    """A turn that ended, abandoned while it waited, has no open questions."""
    history = History.of(
        [build.turn("a"), build.waiting("a", (build.question(),)), build.ended("a", "abandoned")]
    )

    assert history.unanswered("a") == []


def test_a_tool_may_have_run_until_a_later_record_says():
    """Unfinished tools: the last record for (site, invocation) is `started`."""
    records = [build.turn("a"), build.tool("a"), build.tool("a", invocation=2)]
    history = History.of(build.placed(records))
    assert [tool.seq for tool in history.unfinished("a")] == [2, 3]

    history.extend([build.tool("a", "done"), build.tool("a", "rerun", invocation=2)])
    assert history.unfinished("a") == []

    history.extend([build.tool("a", "started", invocation=2)])
    assert [tool.seq for tool in history.unfinished("a")] == [6]


# -- heads -----------------------------------------------------------------------------------------


def test_heads_are_the_leaves_newest_first():
    """Running, waiting and interrupted leaves are heads like done ones."""
    history = History.of(
        [
            *build.line("a"),
            build.turn("run", "a"),
            build.lease("run", AHEAD),
            build.turn("wait", "a"),
            build.waiting("wait"),
            build.turn("lost", "a"),
            *build.done("b", "a"),
        ]
    )

    assert history.heads() == ["b", "lost", "wait", "run"]


@pytest.mark.parametrize("state", ["failed", "stopped", "abandoned"])
def test_a_leaf_without_an_answer_is_no_head(state):
    """An unanswered leaf is left out, and its parent is a leaf then."""
    history = History.of([*build.line("a"), build.turn("b", "a"), build.ended("b", state)])
    assert history.heads() == ["a"]

    history.extend(build.done("c", "b"))
    assert history.heads() == ["c"]


def test_merged_leaves_are_no_heads():
    """What a done merge reads is left out; a merge that failed hides nothing."""
    history = History.of(
        [
            *build.line("a"),
            *build.done("b", "a"),
            *build.done("c", "a"),
            build.turn("m", "a", reads=["b", "c"]),
        ]
    )
    assert history.heads() == ["m", "c", "b"]

    failed = History.of([*build.line("a", "b"), build.turn("m", reads=["b"])])
    failed.extend([build.ended("m", "failed")])
    assert failed.heads() == ["b"]

    history.extend([build.ended("m")])
    assert history.heads() == ["m"]


def test_a_merge_cannot_hide_itself_or_what_comes_later():
    """`reads` counts only turns that stand before the merge."""
    history = History.of([*build.done("m", reads=["m", "later", "nobody"]), *build.done("later")])

    assert history.heads() == ["later", "m"]


# -- damage and size -------------------------------------------------------------------------------


def test_damage_stays_in_its_field():
    """A payload that does not decode is refused when it is asked for, and stops nothing else."""
    keys = {"inputs": DAMAGED, "saw": DAMAGED, "reads": DAMAGED, "made_by": DAMAGED}
    history = History.of(
        [*build.line("a"), build.turn("b", "a", **keys), build.waiting("b", DAMAGED)]
    )
    history.extend(build.done("c", "a"))

    for ask in (
        lambda: history.saw("b"),
        lambda: history.unanswered("b"),
        lambda: history.lineage("b").read,
        lambda: history.lineage("b").made_by,
    ):
        with pytest.raises(StoreCorrupt):
            ask()
    assert history.heads() == ["c", "b"]
    assert history.shown("c", all_turns()).rows == [{}, {}]
    assert history.lineage("b").explain().startswith("turn 2 b: not ended")


def test_long_and_wide_logs():
    """50,000 turns in one line, and 10,000 children under one: no recursion, nothing quadratic."""
    total = 50_000
    names = [f"t{i}" for i in range(total)]
    above = [None, *names]
    history = History()
    for name, parent in zip(names, above, strict=False):
        saw = f'[{{"saw_of":"{parent}"}},{{"call":"{parent}"}}]' if parent is not None else "[]"
        history.extend(
            [
                kinds.Turn(functai_conversation=1, turn=name, parent=parent, saw=Raw(saw)),
                kinds.Ended(functai_conversation=1, turn=name, state="done"),
            ]
        )
    last = names[-1]

    assert history.turns == names
    assert history.heads() == [last]
    assert history.latest(names[0]) == last
    assert history.merge_base(last, names[7]) == names[7]
    assert history.saw(last) == names[:-1]
    assert len(history.lineage(last).rests_on) == total - 1
    assert len(history.lineage(names[0]).influenced) == total - 1
    assert history.shown(last, all_turns()).saw == [{"saw_of": last}, {"call": last}]

    for i in range(10_000):
        history.extend([kinds.Turn(functai_conversation=1, turn=f"w{i}", parent=last)])
    assert len(history.children(last)) == 10_000
    assert len(history.heads()) == 10_000
    assert history.latest(last) == "w9999"


# -- by chance -------------------------------------------------------------------------------------


@given(st.data(), build.logs)
def test_incremental_equals_whole(data, records):
    """Folding in parts, with questions between, says what folding the whole says; so do Structs."""
    whole = snapshot(History.of(records))
    history = History()
    rest = data.draw(build.mixed(records))
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        assert history.extend(rest[:size]) is history
        rest = rest[size:]
        if data.draw(st.booleans()):
            snapshot(history)

    assert snapshot(history) == whole
    assert snapshot(History.of(records)) == whole


@given(build.logs)
def test_the_tree_matches_its_twin(records):
    """Order, parents, children, head, heads, latest, requests: as the contract says."""
    history = History.of(records)

    assert history.position == len(records)
    assert history.order == oracle.order(records)
    assert history.head == oracle.head(records)
    assert history.heads() == oracle.heads(records)
    assert history.children(None) == oracle.children(records, None)
    for request_id in ("r1", "r2"):
        assert history.request(request_id) == oracle.request(records, request_id)
    for name in history.order:
        assert history.branch(name) == oracle.branch(records, name)
        assert history.children(name) == oracle.children(records, name)
        assert history.latest(name) == oracle.latest(records, name)
        assert history.node(name).depth == len(oracle.branch(records, name)) - 1


@given(build.logs)
def test_states_match_their_twin(records):
    """States, open questions, unfinished tools and entries: as the contract says."""
    history = History.of(records)

    for branch in (None, *history.order):
        found = [entry.seq for entry in history.entries("x", "title", branch)]
        assert found == oracle.entries(records, "x", "title", branch)
    for name in history.order:
        for dead in (set(), DEAD):
            expected = oracle.state(records, name, NOW, dead)
            assert history.state(name, now=NOW, dead=dead) == expected
        assert [tool.seq for tool in history.unfinished(name)] == oracle.unfinished(records, name)
        open_questions = oracle.unanswered(records, name)
        if open_questions == [oracle.DAMAGED]:
            with pytest.raises(StoreCorrupt):
                history.unanswered(name)
        else:
            assert history.unanswered(name) == open_questions


def test_leases_that_ran_out_are_past():
    """The builders' times are what they say."""
    assert datetime.fromisoformat(PAST) < NOW < datetime.fromisoformat(AHEAD)
