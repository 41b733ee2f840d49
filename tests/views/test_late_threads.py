"""A history that another thread makes whole while it is asked answers right, whatever moment that comes at.

The moments are tried one after the other: a trace function stands for the other thread. It has the history become
whole at the nth instruction of `late`, or line of what asks it, at which the lock is free: under it alone that is done.
"""

import sys
from array import array
from pathlib import Path

import pytest

from ledger.records import codec, kinds
from ledger.records.undecoded import Lines
from ledger.views import History
from ledger.views.late import LateHistory, LateNode, complete
from ledger.views.nodes import CLEARED, Node
from tests.views import build
from tests.views.test_history import snapshot
from tests.views.test_late import QUESTIONS, answer, structs

CUT = 10
RECORDS = [
    build.new("program", version="v1"),
    build.new("program", version="v2"),
    *(build.turn("a", request_id="r1"), build.ended("a")),
    *(build.turn("b", "a", request_id="r2"), build.ended("b")),
    *(build.turn("c", "a"), build.ended("c")),
    *({**build.turn("d", "c"), "program": "v1"}, build.ended("d")),
    # What is known begins here.
    *(build.turn("e", "b", request_id="r1", saw=[{"call": "a"}], saw_all=True), build.ended("e")),
    *(build.turn("f", "d"), build.tool("f"), build.ended("f")),
    build.new("entry", plugin="x", entry="title", data="t", turn="c"),
    build.new("entry", plugin=CLEARED[0], entry=CLEARED[1], data=None, turn="d"),
    build.new("head", turn="b"),
]

ALL = structs(RECORDS)
USUAL = ("head", "place", "contains", "entries", "ordinal", "latest", "saw", "shown all", "labels")
MORE = ("len", "messages", "first done", "an ordinal", "a place", "kept")
ASKED = {
    **{name: QUESTIONS[name] for name in USUAL + MORE},
    "the nodes": lambda h, t: [h.nodes.get(name) is not None for name in (t, "e", "no")],
    "the children": lambda h, t: h.children(t),
    "the parent": lambda h, t: h.node("e").parent,
    "a program before": lambda h, t: h.has_program("v2"),
    "a program of a turn": lambda h, t: h.has_program("v1"),
    "no program": lambda h, t: h.has_program("v9"),
    "no request": lambda h, t: h.request("r9"),
    "a request before": lambda h, t: h.request("r2"),
    "the nearest turn": lambda h, t: h.merge_base("e", "f"),
    "the nearest turn before": lambda h, t: h.merge_base("b", "d"),
    "what is there": lambda h, t: (list(h.nodes), len(h.programs), h.order),
}


class Whole:
    """What an index finds, found in the records themselves."""

    erased = False

    def __init__(self) -> None:
        self.records = ALL[:CUT]
        self.history = History.of(self.records)

    def turn(self, turn):
        """Return what is recorded of a turn."""
        return [record for record in self.records if getattr(record, "turn", None) == turn]

    def children(self, turn):
        """Return the turns that continue a turn."""
        return self.history.children(turn)

    def request(self, request_id):
        """Return the turn that was sent under a request id."""
        found = self.history.request(request_id)
        return [] if found is None else [found]

    def program(self, version):
        """Return the record of a program."""
        found = self.history.programs.get(version)
        return [] if found is None else [found]

    def head(self):
        """Return the last turn's first record."""
        return self.turn(self.history.order[-1])[:1]

    def meeting(self, a, b):
        """Return the nearest turn on the branches of two."""
        found = self.history.merge_base(a, b)
        return [] if found is None else [found]

    def above(self, turn, depth):
        """Return the turn of a depth on a turn's branch."""
        return self.history.branch(turn)[depth : depth + 1]

    def place(self, turn):
        """Return a turn's ordinal and depth."""
        return self.history.node(turn).ordinal, self.history.node(turn).depth

    def at(self, ordinal):
        """Return the turn of an ordinal."""
        found = self.history.at(ordinal)
        return [] if found is None else [found]

    def count(self):
        """Return how many turns there are."""
        return len(self.history)

    def kept(self, plugin, entry):
        """Return the entries of a kind."""
        return list(self.history.kept.get((plugin, entry), ()))

    def noted(self, turn):
        """Return the ratings and labels of a turn."""
        return list(self.history.annotated.get(turn, ()))


INDEX = Whole()


class Lock:
    """A lock that says whether it is free."""

    def __init__(self) -> None:
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *raised: object) -> None:
        self.depth -= 1


class Another:
    """Another thread, which makes a history whole at the nth moment at which this one does not hold the lock."""

    def __init__(self, nth: int, history: History, lock: Lock) -> None:
        self.left, self.history, self.lock = nth, history, lock

    def trace(self, frame, event, _):
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if self.lock.depth or path.parent.name != "views":
                return None
            frame.f_trace_opcodes = path.name == "late.py"
            frame.f_trace_lines = not frame.f_trace_opcodes
        if not self.lock.depth:
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                complete(self.history)
        return self.trace


def late(index: bool) -> tuple[LateHistory, Lock]:
    lock = Lock()

    def become(history):
        with lock:
            if isinstance(history, LateHistory):
                history.become(ALL)

    history = LateHistory(
        "c",
        CUT,
        ALL[:1],
        become,
        mentions=lambda text: text != b'"r9"',
        index=INDEX if index else None,
        lock=lambda: lock,
    )
    return history.extend(ALL[CUT:]), lock


@pytest.mark.parametrize("index", [False, True], ids=["alone", "index"])
@pytest.mark.parametrize("name", sorted(ASKED))
def test_it_may_become_whole_at_any_moment(name, index):
    """Whatever is asked, of a turn that is known and of one that is not."""
    ask = ASKED[name]
    whole = History.of(ALL, conversation="c")
    said = snapshot(whole)
    for turn in ("c", "f"):
        right = answer(ask, whole, turn)
        nth = -1
        before = sys.gettrace()
        while (nth := nth + 1) < 5000:
            history, lock = late(index)
            other = Another(nth, history, lock)
            sys.settrace(other.trace)
            try:
                found = answer(ask, history, turn)
            finally:
                sys.settrace(before)
            assert found == right, (turn, nth)
            if other.left >= 0:
                assert snapshot(history) == said
                break
        assert 0 < nth < 5000


def test_two_threads_that_lack_the_same_find_it_once():
    """What continues a turn is not lost to who asks for it while another is being told."""
    history, _ = late(index=True)
    node = history.node("d")
    assert isinstance(node, LateNode)
    assert LateHistory.finds_of(history, node, "_children")
    assert LateHistory.finds_of(history, node, "_children")
    assert list(node.children) == ["f"]


@pytest.mark.parametrize("name", ["record", "ended"])
def test_two_threads_may_decode_the_same_record(name):
    """A record that another thread decodes at any moment meanwhile is there."""
    bodies = [b'{"functai_conversation":1,"kind":"turn","turn":"a"}']
    bodies += [b'{"functai_conversation":1,"kind":"ended","turn":"a","state":"done"}']
    covered = codec.Scanner(codec.first_chain("c")).onward().covered
    data, _ = codec.seal(bodies, 0, covered, [bytes(16)] * 2)
    ends = [at for at, byte in enumerate(data, 1) if byte == ord("\n")]
    kept = Lines(data, array("Q", [0, *ends]), 1)
    for nth in range(500):
        first, last = kept.records()
        assert isinstance(first, kinds.Turn)
        assert isinstance(last, kinds.Ended)
        node = Node(first, 1, kept, 1, None)
        node.end(last, 2, kept)
        left = nth

        def trace(frame, event, _, node=node):
            nonlocal left
            frame.f_trace_opcodes = True
            left -= 1
            if left < 0:
                sys.settrace(None)
                assert getattr(node, name) is not None
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            found = getattr(node, name)
        finally:
            sys.settrace(before)
        assert isinstance(found, kinds.Turn if name == "record" else kinds.Ended)
        if left >= 0:
            return
    pytest.fail("it takes more than 500 instructions")
