"""T16, T19, T20: what a turn said is together, branches cost only their turns, every view is the same tree."""

import threading
import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ledger
from ledger.testing.children import Child, children
from tests.scenarios.support import SOON_S, raw, view

BRANCHES = 1000
BRANCHES_S = 1.0
"""How long they may take, in the time of this process: a busy machine gives it less than all."""


def echo(message: str) -> str:
    """Answer at once."""
    return f"re {message}"


# -- T16: messages


def test_the_messages_of_a_turn_are_together(face, store):
    """A turn sent while another one's tool waits has its messages after those of the other, unmixed."""
    entered, go = threading.Event(), threading.Event()

    def with_tool(message: str) -> str:
        ledger.current().emit("let me look, ")
        entered.set()
        assert go.wait(SOON_S)
        ledger.current().emit("it is 4")
        return "let me look, it is 4"

    first = face.begin(face.open("alex", with_tool, store=store).send, "2 + 2?")
    assert entered.wait(SOON_S)
    behind = face.do(face.open("alex", echo, store=store).continue_from, 1)
    second = face.begin(behind.send, "and now?")
    beside = face.do(face.open("alex", echo, store=store, sends="branch").send, "meanwhile")
    go.set()
    first.result(SOON_S)
    second.result(SOON_S)

    def texts(turns):
        return [(m["role"], m["parts"][0]["content"]) for turn in turns for m in turn.messages]

    line = [("user", "2 + 2?"), ("assistant", "let me look, it is 4")]
    line += [("user", "and now?"), ("assistant", "re and now?")]
    assert texts(view(store).continue_from(second.result().id).turns) == line
    assert texts([view(store).turn(beside.id)]) == [
        ("user", "meanwhile"),
        ("assistant", "re meanwhile"),
    ]


# -- T19: branches


@pytest.mark.parametrize("ordinal", [1, 5, 10])
def test_a_branch_includes_its_turn(face, store, ordinal):
    """Continued from the first, a middle or the last turn, that turn is the new one's parent, and is shown."""
    chat = ledger.open("alex", store=store)
    for i in range(1, 11):
        chat.record(f"m{i}", f"r{i}")

    def rows(message: str) -> str:
        return " ".join(row["message"] for row in ledger.current().earlier())

    branch = face.do(face.open("alex", rows, store=store).continue_from, ordinal)
    turn = face.do(branch.send, "new")

    assert turn.parent.ordinal == ordinal
    assert turn.result == " ".join(f"m{i}" for i in range(1, ordinal + 1))


def branch_often(chat, at, count):
    """Make branches from a turn. Returns: the ids, and how many seconds of this process they took."""
    made, begun = [], time.process_time()
    for i in range(count):
        made.append(chat.continue_from(at).record(f"branch {i}", "x").id)
    return made, time.process_time() - begun


def test_a_thousand_branches():
    """A thousand branches of one turn are made within a second, with a thousand ids."""
    store = ledger.MemoryStore()
    at = ledger.open("alex", store=store).record("root", "x")

    made, seconds = branch_often(ledger.open("alex", store=store), at, BRANCHES)

    assert seconds < BRANCHES_S
    assert len(set(made)) == BRANCHES
    heads = view(store).heads()
    assert [turn.id for turn in heads] == made[::-1]
    assert {turn.parent for turn in heads} == {at}


def test_branches_grow_the_log_by_their_turns(store):
    """Each branch adds the bytes of its own turn: the first costs as much as the hundredth."""
    chat = ledger.open("alex", store=store)
    for i in range(20):
        chat.record(f"m{i}", "word " * 200)
    sizes = [len(raw(store))]
    for _ in range(100):
        chat.continue_from(10).record("branch", "x")
        sizes.append(len(raw(store)))

    grown = {after - before for before, after in pairwise(sizes)}
    assert max(grown) - min(grown) < 20
    assert max(grown) < 1500


# -- T20: the same tree from everywhere


def tree_of(store):
    """Return every branch by its leaf, as a view tells it: what each turn asked, in order."""
    chat = ledger.open("alex", store=store)
    return {
        turn.id: [(t.id, t.inputs["message"]) for t in chat.continue_from(turn.id).turns]
        for turn in chat.all_turns()
        if not turn.children
    }


def tell_tree(say, folder):
    """In another process: tell the tree."""
    return tree_of(ledger.FolderStore(folder))


@pytest.fixture(scope="module")
def elsewhere():
    """Another process, which reads the tree."""
    with children(1) as (child,):
        yield child


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(parents=st.lists(st.integers(0, 10_000), min_size=1, max_size=200))
def test_every_view_is_the_same_tree(tmp_path_factory, elsewhere: Child, parents):
    """The views that made a tree, a fresh process and a walk along the parents tell the same branches."""
    folder = tmp_path_factory.mktemp("tree")
    live = [ledger.open("alex", store=ledger.FolderStore(folder)) for _ in range(3)]
    parent_of: dict[str, str | None] = {}
    for number, chosen in enumerate(parents):
        chat = live[number % 3]
        place = (*parent_of, None)[chosen % (len(parent_of) + 1)]
        parent_of[chat.record(f"m{number}", "x", parent=place).id] = place
    names = {turn: f"m{number}" for number, turn in enumerate(parent_of)}

    def walk(turn):
        return [] if turn is None else [*walk(parent_of[turn]), (turn, names[turn])]

    expected = {turn: walk(turn) for turn in parent_of if turn not in parent_of.values()}
    elsewhere.prepare(tell_tree, str(folder))
    elsewhere.begin(SOON_S)
    assert elsewhere.result(SOON_S) == expected
    for chat in live:
        found = {
            turn: [(t.id, t.inputs["message"]) for t in chat.continue_from(turn).turns]
            for turn in expected
        }
        assert found == expected
