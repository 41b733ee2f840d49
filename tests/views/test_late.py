"""A history known from a place on answers as the whole one does, and reads the rest only when it must."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.records import kinds
from ledger.views import History, all_turns, last_turns, within
from ledger.views.late import LateHistory
from tests.views import build
from tests.views.build import NOW
from tests.views.test_history import snapshot


class Late:
    """A late history of a log, and how often it was made whole."""

    def __init__(
        self, records: list[build.Record], cut: int, beginning: int = 0, *, searched: bool = False
    ) -> None:
        self.records, self.completed = records, 0
        begun, sent = structs(records[:beginning]), self.sent if searched else None
        self.history = LateHistory("c", cut, begun, self.complete, sent=sent)
        self.history.extend(structs(records)[cut:])

    def complete(self, history: LateHistory) -> None:
        self.completed += 1
        history.become(structs(self.records)[: history.position])

    def sent(self, request_id: str) -> list[kinds.Recorded]:
        every = structs(self.records)
        turns = [r for r in every if isinstance(r, kinds.Turn) and r.request_id == request_id]
        return [r for r in every if turns and getattr(r, "turn", None) == turns[0].turn]


def structs(records: list[build.Record]) -> list[kinds.Recorded]:
    return [kinds.of(record, seq) for seq, record in enumerate(records, 1)]


def is_sent_once(records: list[build.Record], cut: int) -> bool:
    """Whether no turn is recorded again behind the cut."""
    sent = [
        [r.turn for r in structs(part) if isinstance(r, kinds.Turn)]
        for part in (records[:cut], records[cut:])
    ]
    return not set(sent[0]) & set(sent[1])


QUESTIONS: dict[str, Any] = {
    "head": lambda h, t: h.head,
    "place": lambda h, t: repr(h.place(now=NOW)),
    "branch place": lambda h, t: repr(h.place(now=NOW, sends="branch")),
    "contains": lambda h, t: t in h,
    "len": lambda h, t: len(h),
    "heads": lambda h, t: h.heads(),
    "roots": lambda h, t: h.children(None),
    "programs": lambda h, t: sorted(h.programs),
    "program": lambda h, t: h.programs.get("v1") is not None,
    "request": lambda h, t: h.request("r1"),
    "requested": lambda h, t: told_of(h, h.request("r1")),
    "entries": lambda h, t: [e.seq for e in h.entries("x", "title")],
    "unreadable": lambda h, t: h.unreadable,
    "nodes": lambda h, t: [(n.id, n.ordinal, n.depth, n.versions) for n in h.nodes.values()],
    "node": lambda h, t: (h.node(t).seq, h.node(t).parent, h.node(t).children, h.node(t).attempt),
    "ordinal": lambda h, t: h.node(t).ordinal,
    "latest": lambda h, t: h.latest(t),
    "branch": lambda h, t: h.branch(t),
    "state": lambda h, t: h.state(t, now=NOW),
    "merge base": lambda h, t: h.merge_base(t, "a"),
    "landing": lambda h, t: h.landing([t, "b"]),
    "saw": lambda h, t: h.saw(t),
    "shown": lambda h, t: h.shown(t, last_turns(2)).saw,
    "shown all": lambda h, t: h.shown(t, all_turns()).saw,
    "shown within": lambda h, t: h.shown(t, within(tokens=2, count=lambda row: 1)).saw,
    "messages": lambda h, t: h.shown(t, last_turns(2)).messages,
    "first done": lambda h, t: getattr(h.first_done(t), "id", None),
    "an ordinal": lambda h, t: (h.at(0), h.at(2), h.at(len(h)), h.at(len(h) + 1)),
    "a place": lambda h, t: (h.node(t).depth, h.node(t).ordinal),
    "kept": lambda h, t: [e.seq for e in h.kept.get(("ledger", "rating"), ())],
    "lineage": lambda h, t: h.lineage(t).explain(),
    "labels": lambda h, t: (h.labels(), h.ratings(t)),
}


def told_of(history: History, turn: str | None) -> Any:
    """What is said of a turn, and then what the whole log tells."""
    if turn is None:
        return None
    node = history.node(turn)
    state = history.state(turn, now=NOW)
    told = node.id, node.seq, state, node.outcome, node.outputs(), node.attempt, node.waiting_seq
    return told, node.parent, node.children, node.ordinal


def answer(ask: Any, history: History, turn: str) -> Any:
    try:
        return ask(history, turn)
    except Exception as error:
        return type(error).__name__, str(error)


@given(st.data(), build.logs)
def test_it_answers_as_the_whole_history(data, records):
    """Whatever is asked first, wherever it begins, also with more folded in between."""
    cut = data.draw(st.integers(0, len(records)))
    if not is_sent_once(records, cut):
        return
    until = data.draw(st.integers(cut, len(records)))
    searched = data.draw(st.booleans())
    late = Late(records[:until], cut, data.draw(st.integers(0, cut)), searched=searched)
    whole = History.of(structs(records[:until]), conversation="c")
    ask, turn = QUESTIONS[data.draw(st.sampled_from(sorted(QUESTIONS)))], data.draw(build.NAMES)

    assert answer(ask, late.history, turn) == answer(ask, whole, turn)

    late.records = records
    late.history.extend(structs(records)[until:])
    whole.extend(structs(records)[until:])
    assert answer(ask, late.history, turn) == answer(ask, whole, turn)
    assert snapshot(late.history) == snapshot(whole)
    assert late.completed == 1
    assert type(late.history) is History


LINE = [build.new("program", version="p"), *build.line(*map(str, range(30)))]


def test_the_next_turn_needs_only_the_end():
    """Where it goes, what it is shown by a window, and whether its program is known, is known from the end."""
    late = Late(LINE, 61, beginning=1)
    place = late.history.place(now=NOW)
    shown = late.history.shown(place.parent, last_turns(5))

    assert (late.history.head, place.parent) == ("29", "29")
    assert shown.turns == ["25", "26", "27", "28", "29"]
    assert len(shown.rows) == len(shown.saw) == 5
    assert "p" in late.history.programs
    assert late.history.state("29", now=NOW) == "done"
    assert late.completed == 0
    late.history.extend(build.done("30", "29"))
    assert late.history.latest("28") == "30"
    assert late.completed == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda h: h.node("0"),
        lambda h: "nobody" in h,
        lambda h: h.node("25").ordinal,
        lambda h: h.node("25").depth,
        lambda h: h.turns,
        lambda h: h.programs.get("other"),
        lambda h: h.shown("29", all_turns()).saw,
        lambda h: h.request("r"),
    ],
)
def test_what_stands_before_is_read_when_it_is_asked_for(ask):
    """Once; and whoever holds a node holds the same one after it."""
    late = Late(LINE, 61)
    node = late.history.node("29")
    ask(late.history)

    assert late.completed == 1
    assert late.history.node("29") is node
    assert (node.ordinal, node.depth, node.parent) == (30, 29, "28")


def test_a_turn_is_found_by_its_request_id():
    """With all that is recorded of it, wherever that stands, and nothing else is read."""
    sent = build.new("turn", turn="asked", parent="29", request_id="r")
    ended = build.new("ended", turn="asked", state="done", attempt=1, outputs={"result": "R"})
    records = [*LINE[:31], sent, *LINE[31:], ended, *build.done("30", "29")]
    late = Late(records, len(LINE) - 3, searched=True)
    assert late.history.request("nobody") is None
    assert late.history.request("r") == "asked"
    node = late.history.node("asked")
    assert (node.seq, node.outputs(), node.outcome) == (32, {"result": "R"}, "done")
    assert late.completed == 0
    assert node.parent is None
    assert late.completed == 1
    assert late.history.node("asked") is node


def test_a_head_that_was_moved_to_what_is_not_known_is_looked_for():
    """To a turn before the place, or to none: only the whole log tells."""
    for turn, head in (("3", "3"), ("nobody", "29")):
        late = Late([*LINE, build.new("head", turn=turn)], 61)
        assert late.history.head == head
        assert late.completed == 1


def test_a_log_that_lost_the_turn_says_so():
    """A node whose turn the log has no more asks once, and does not go round in circles."""
    late = Late(LINE, 61)
    node = late.history.node("25")
    late.complete = lambda history: None  # type: ignore[method-assign]
    late.history.complete = late.complete
    with pytest.raises(AttributeError):
        _ = node.ordinal


def test_a_turn_that_calls_itself_its_parent_is_a_root():
    """As in the whole history: a parent stands earlier."""
    late = Late([*LINE, *build.done("odd", "odd")], 61)
    assert late.history.node("odd").children == ()
    assert late.history.node("odd").parent is None
    assert late.history.latest("odd") == "odd"
