"""Tests of `ledger.formats.tree`: a source's tree of records folded into turns.

The oracle is dumb: it lists every way from the top to an end and cuts it into questions and
answers. It knows nothing of names, orders or stacks, and it shares no code with the package.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats.base import DraftTurn, Notes
from ledger.formats.nodes import Kind, Node
from ledger.formats.tree import Tree

START = datetime(2024, 1, 1, tzinfo=UTC)
KINDS: tuple[Kind, ...] = ("prompt", "answer", "step", "aside", "nothing")

Path = tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A random tree: each record names an earlier one, or none, and is younger than it."""

    records: tuple[tuple[int | None, Kind], ...]

    def nodes(self, seed: int = 0, *, listed: bool = True) -> list[Node]:
        places: dict[int | None, int] = {}
        nodes = []
        for i, (parent, kind) in enumerate(self.records):
            rank = places[parent] = places.get(parent, -1) + 1
            node = Node(f"n{i}", None if parent is None else f"n{parent}", kind)
            node.created = START + timedelta(seconds=i)
            node.rank = rank if listed and parent is not None else None
            node.text = node.id if kind in ("prompt", "answer") else ""
            nodes.append(node)
        random.Random(seed).shuffle(nodes)
        return nodes


@st.composite
def plans(draw: st.DrawFn, max_size: int = 12) -> Plan:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=max_size))
    parents = [draw(st.none() | st.integers(0, i - 1)) if i else None for i in range(len(kinds))]
    return Plan(tuple(zip(parents, kinds, strict=True)))


def fold(nodes: list[Node]) -> Tree:
    return Tree(nodes, format="f", conversation="c", notes=Notes(), pair=lambda messages: messages)


def paths(turn: DraftTurn) -> tuple[Path, Path]:
    """Return a turn as (its prompts, its answer path)."""
    records = turn.source["records"]
    split = records.index(turn.source["prompt"]) + 1 if "prompt" in turn.source else 0
    return tuple(records[:split]), tuple(records[split:])


def expected(plan: Plan) -> dict[tuple[Path, Path], str]:
    """Return every (prompts, answer path) with its state, by listing all ways down."""
    children: dict[int | None, list[int]] = {}
    for i, (parent, _) in enumerate(plan.records):
        children.setdefault(parent, []).append(i)
    found: dict[tuple[Path, Path], str] = {}

    def down(at: int | None, prompts: Path, path: Path, answered: bool) -> list[str]:
        """Walk on below `at`; return the kinds of the kept records next below."""
        below: list[str] = []
        for i in children.get(at, []):
            kind = plan.records[i][1]
            name = f"n{i}"
            if kind in ("aside", "nothing") or (kind == "step" and not prompts and not path):
                below += down(i, prompts, path, answered)
                continue
            below.append(kind)
            mine: tuple[Path, Path, bool]
            if kind == "prompt":
                mine = ((*prompts, name) if not path else (name,), (), False)
            else:
                mine = (prompts, (*path, name), answered or kind == "answer")
            next_kinds = down(i, *mine)
            if kind == "prompt" and not next_kinds:
                found[mine[0], ()] = "abandoned"
            elif kind != "prompt" and "prompt" in next_kinds:
                found[mine[0], mine[1]] = "done"
            elif kind != "prompt" and not next_kinds:
                found[mine[0], mine[1]] = "done" if mine[2] else "abandoned"
        return below

    down(None, (), (), False)
    return found


@settings(max_examples=400)
@given(plans(), st.integers(0, 99), st.booleans())
def test_the_turns_are_all_ways_down(plan, seed, listed):
    """Every way from a prompt to an end is one turn, and there are no others."""
    tree = fold(plan.nodes(seed, listed=listed))

    wanted = expected(plan)
    got = {paths(turn): turn.state for turn in tree.turns}
    one_attempt = {prompts for (prompts, path), state in wanted.items() if state == "abandoned"}
    assert {way for way, state in wanted.items() if state == "done"} == {
        way for way, state in got.items() if state == "done"
    }
    attempts = [way for way, state in got.items() if state == "abandoned"]
    assert sorted(one_attempt) == sorted(prompts for prompts, _ in attempts)
    assert set(attempts) <= wanted.keys()


@settings(max_examples=400)
@given(plans())
def test_parents_come_first_and_are_done(plan):
    """A turn's parent stands before it, is done, and ends right above its first prompt."""
    seen: dict[str, DraftTurn] = {}
    for turn in fold(plan.nodes()).turns:
        assert turn.id not in seen
        if turn.parent is not None:
            assert "done" == seen[turn.parent].state
        seen[turn.id] = turn


@given(plans(), st.integers(0, 99), st.integers(0, 99))
def test_order_and_lists_of_children_change_no_turn(plan, one, other):
    """However the records are shuffled, and whether children are listed, the turns are the same."""
    first = {turn.id: turn for turn in fold(plan.nodes(one)).turns}
    second = {turn.id: turn for turn in fold(plan.nodes(other, listed=False)).turns}

    assert first == second


@given(plans(), st.integers(0, 99))
def test_shuffled_records_come_in_the_same_order(plan, seed):
    """Where children are listed and there is one root, the order of the records decides nothing."""
    plan = Plan(tuple((0 if i and p is None else p, k) for i, (p, k) in enumerate(plan.records)))

    assert fold(plan.nodes(0)).turns == fold(plan.nodes(seed)).turns


@settings(max_examples=400)
@given(plans(20), st.integers(1, 20), st.booleans())
def test_a_longer_export_only_adds(plan, cut, timed):
    """What grew keeps the id of every answered turn, whose answer at most goes on.

    Records are added at leaves and as younger siblings, as sources do. Times tell which is younger;
    without times lists of children do, where nothing is walked through.
    """
    if not timed:
        plan = Plan(tuple((p, "step" if k in ("aside", "nothing") else k) for p, k in plan.records))
    shorter, longer = Plan(plan.records[:cut]).nodes(), plan.nodes()
    for node in [] if timed else shorter + longer:
        node.created = None
    if not timed:
        shorter.sort(key=lambda node: int(node.id[1:]))
        longer.sort(key=lambda node: int(node.id[1:]))

    before = {turn.id: turn for turn in fold(shorter).turns}
    after = {turn.id: turn for turn in fold(longer).turns}

    for id, turn in before.items():
        if turn.state == "done":
            (prompts, path), (prompts_now, path_now) = paths(turn), paths(after[id])
            assert prompts == prompts_now
            assert path == path_now[: len(path)]
            assert turn.parent == after[id].parent
        elif id in after:
            assert "abandoned" == after[id].state


@given(plans())
def test_every_kept_record_belongs_to_a_turn(plan):
    """The turn at a record holds it, or one below it; asides answer with what is above."""
    tree = fold(plan.nodes())
    by_id = {turn.id: turn for turn in tree.turns}
    for i, (_, kind) in enumerate(plan.records):
        found = tree.turn_at(f"n{i}")
        if kind in ("prompt", "answer"):
            assert found in by_id
    assert tree.turn_at("nowhere") is None


def named(*records: tuple[str, str | None, Kind]) -> dict[Path, str]:
    """Fold records, each younger than the one before; return the ids by answer path."""
    nodes = [
        Node(id, parent, kind, created=START + timedelta(seconds=i))
        for i, (id, parent, kind) in enumerate(records)
    ]
    return {paths(turn)[1]: turn.id for turn in fold(nodes).turns if "U" in turn.source["records"]}


def test_a_fork_in_the_middle_leaves_the_older_answer_its_id():
    """A path that parts from another later on does not rename it."""
    line: list[tuple[str, str | None, Kind]] = [("U", None, "prompt"), ("A", "U", "answer")]
    line.append(("B", "A", "answer"))
    before = named(*line)
    after = named(*line, ("C", "A", "answer"), ("V", "A", "prompt"))

    assert before["A", "B"] == after["A", "B"]
    assert 3 == len(set(after.values()))
    assert {("A", "B"), ("A", "C"), ("A",)} == set(after)


def test_a_shorter_turn_that_was_there_first_keeps_its_id():
    """Where the user went on first, a longer answer that is found later is the new turn."""
    line: list[tuple[str, str | None, Kind]] = [("U", None, "prompt"), ("A", "U", "answer")]
    line.append(("V", "A", "prompt"))
    before = named(*line)
    after = named(*line, ("B", "A", "answer"))

    assert before["A",] == after["A",]
    assert after["A",] != after["A", "B"]


def test_duplicate_ids_are_noted():
    """The first record of an id is kept; the others are counted."""
    notes = Notes()
    node = Node("a", None, "prompt", text="one")
    nodes = [node, replace(node, text="two")]

    tree = Tree(nodes, format="f", conversation="c", notes=notes, pair=lambda messages: messages)

    assert ["one"] == [turn.inputs["message"] for turn in tree.turns]
    assert 1 == sum(notes.counts.values())


def test_unanswered_attempts_are_one_turn():
    """Attempts that ended without an answer have one name; the oldest is kept, the rest counted."""
    notes = Notes()
    nodes = [Node("u", None, "prompt")] + [Node(f"s{i}", "u", "step") for i in range(3)]

    tree = Tree(nodes, format="f", conversation="c", notes=notes, pair=lambda messages: messages)

    (turn,) = tree.turns
    assert ["u", "s0"] == turn.source["records"]
    assert {turn.id} == {tree.turn_at(f"s{i}") for i in range(3)}
    assert 2 == sum(notes.counts.values())


@given(plans(), st.integers(0, 9))
def test_every_record_is_counted_in_one_turn(plan, seed):
    """Whatever paths share, what each record has used is counted once, in whatever order they come."""
    nodes = plan.nodes(seed)
    for node in nodes:
        node.usage = {"output_tokens": 1}

    turns = fold(nodes).turns

    told = {record for turn in turns for record in paths(turn)[1]}
    assert len(told) == sum((turn.usage or {}).get("output_tokens", 0) for turn in turns)


def test_what_an_attempt_left_out_shares_is_counted_by_the_turn_that_shares_it():
    """It is in no turn of that attempt's own, and would be counted nowhere; what stands in it alone is not."""
    records: tuple[tuple[int | None, Kind], ...] = (
        (None, "prompt"),
        (0, "step"),  # The oldest attempt: it stands for all.
        (0, "step"),
        (2, "step"),  # Another, left out, that names the record above.
        (2, "answer"),
    )
    nodes = Plan(records).nodes()
    for node in nodes:
        node.usage = {"output_tokens": 10 + int(node.id[1:])}

    used = {paths(turn)[1]: turn.usage for turn in fold(nodes).turns}

    assert used == {("n1",): {"output_tokens": 11}, ("n2", "n4"): {"output_tokens": 12 + 14}}


def test_a_step_that_was_stopped_ends_its_turn():
    """Steps that the user stopped are a whole turn: what follows later gives it no other id."""
    nodes = [Node("p", None, "prompt", text="do"), Node("s", "p", "step", cut="interrupted")]
    nodes[1].closed = True
    (stopped,) = fold([replace(node) for node in nodes]).turns

    first, second = fold([*nodes, Node("q", "s", "prompt", text="more")]).turns

    assert ("done", "interrupted") == (stopped.state, stopped.source["cut"])
    assert (stopped.id, None) == (first.id, first.parent)
    assert first.id == second.parent


def test_ids_may_be_made_by_the_format():
    """A format whose records have ids that hold everywhere makes the ids of turns itself."""
    nodes = [Node("p", None, "prompt"), Node("a", "p", "answer")]
    made = []

    def identify(user, name):
        made.append((user.id, name))
        return "0" * 32

    Tree(nodes, format="f", conversation="c", notes=Notes(), identify=identify)

    assert [("p", "a")] == made
