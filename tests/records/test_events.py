"""What an event is, and how they are numbered."""

from __future__ import annotations

import copy

import pytest
from functai import schemas
from functai.eventlog import MemoryStore
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import EventRefused
from ledger.records import events
from tests.records.event_examples import AT, EXAMPLES, OTHER, PROGRAM, SAW, SHA256, TREE, turn

JUNK = st.sampled_from(
    [
        *(None, True, False, 0, 1, 1.0, 1.5, -1, 2, "", "x", "X-y", "yes", "reads", "owner", "ai"),
        *(
            "remote",
            AT,
            AT + "\n",
            TREE,
            TREE.upper(),
            SHA256,
            SHA256 + "\n",
            [],
            ["a"],
            ["a", "a"],
        ),
        *([""], [1], {}, {"type": ""}, {"type": "E", "message": 1}, {"type": "E", "code": "c"}),
        *({"writer": 1, "seq": 1}, {"writer": 1, "seq": 0}, {"writer": 1}, SAW, [{"call": 1}], [1]),
        *({"writer": 1, "seq": 1, "x": 1}, {"inputs": [], "outputs": ["a"]}, {"inputs": []}),
        *({"inputs": [], "outputs": [], "x": 1}, [{"slot": "a b"}], [{"slot": "a"}], PROGRAM),
        *(
            {**PROGRAM, "signature": SHA256},
            {**PROGRAM, "remote": "here"},
            "text",
            "started",
            "Done",
        ),
        *(
            {**PROGRAM, "kind": "remote", "remote": "x"},
            {**PROGRAM, "line": -1},
            {**PROGRAM, "line": 2.0},
        ),
    ]
)
KEYS = sorted({key for example in EXAMPLES for key in example} | {"x"})


def by_functai(value) -> bool:
    """Say what functai's schema says."""
    return value.get("functai_event") == 2 and schemas.valid("event", value)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["kind"])
def test_each_kind_is_an_event(example):
    """Every kind, with its content and without, and a kind that is not known, is an event for both."""
    assert events.is_event(example)
    assert by_functai(example)


@given(st.data())
def test_is_event_agrees_with_functais_schema(data):
    """However an event is changed, it is one exactly when functai's schema says so."""
    changed = copy.deepcopy(data.draw(st.sampled_from(EXAMPLES)))
    for _ in range(data.draw(st.integers(1, 3))):
        inner = [v for v in (changed.get("error"), changed.get("program")) if isinstance(v, dict)]
        target = data.draw(st.sampled_from([changed, changed, *inner]))
        key = data.draw(st.sampled_from(sorted(target) or ["x"]) | st.sampled_from(KEYS))
        if data.draw(st.booleans()):
            target.pop(key, None)
        else:
            target[key] = copy.deepcopy(data.draw(JUNK))

    assert events.is_event(changed) is by_functai(changed)


@given(st.sampled_from(EXAMPLES), st.sampled_from(KEYS), JUNK)
def test_one_change_agrees_with_functais_schema(example, key, junk):
    """With one key put, replaced or gone, an event is one exactly when functai's schema says so."""
    gone = {name: value for name, value in example.items() if name != key}

    assert events.is_event({**example, key: junk}) is by_functai({**example, key: junk})
    assert events.is_event(gone) is by_functai(gone)


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {}])
def test_what_is_no_object_is_no_event(value):
    """Anything may be asked about."""
    assert events.is_event(value) is False


WRITTEN = st.one_of(
    st.builds(lambda n, m: ("request", (n, m), {}), st.integers(1, 9), st.none() | st.text()),
    st.builds(lambda f, t: ("text", (f, t), {}), st.text(min_size=1), st.text(min_size=1)),
    st.builds(
        lambda v, n: ("tool_call", ("i", "n"), {"input": v, "invocation": n}),
        st.integers(-(2**53) + 1, 2**53 - 1) | st.lists(st.text()),
        st.integers(1, 9),
    ),
    st.builds(lambda t: ("tool_result", ("i", "n"), {"output": t, "invocation": 1}), st.text()),
    st.builds(
        lambda e, p, q: (
            "approval",
            ("i", "n"),
            {"input": 1, "invocation": 1, "path": "p", "effects": e, "plugin": p, "question": q},
        ),
        st.sampled_from(["reads", "changes", None]),
        st.none() | st.just("p"),
        st.none() | st.text(),
    ),
    st.builds(
        lambda v, b, r: ("approved", ("i", v), {"invocation": 1, "by": b, "reason": r}),
        st.sampled_from(["yes", "no"]),
        st.none() | st.text(),
        st.none() | st.text(),
    ),
    st.builds(lambda w: ("retry", ("why", w), {}), st.none() | st.floats(0, 100)),
)
ENDS = st.sampled_from(
    [
        ("done", (None,), {}),
        ("done", ({"a": 1},), {}),
        ("failed", ({"type": "E", "message": ""},), {}),
    ]
)


@given(st.lists(WRITTEN), ENDS)
def test_what_the_writer_makes_functai_keeps(written, last):
    """Each event of a writer is valid by functai's schema and comes after the one before it."""
    writer = events.Writer(TREE, "tutor")
    made = [writer.started(PROGRAM, {"m": 1}, saw=SAW, at=AT)]
    for name, arguments, keys in [*written, last]:
        made.append(getattr(writer, name)(*arguments, **keys, at=AT))

    store = MemoryStore()
    assert all(map(by_functai, made))
    assert [store.append(event) for event in made] == ["kept"] * len(made)
    assert [event["seq"] for event in made] == list(range(1, len(made) + 1))
    assert writer.after == events.position(made[-1])
    assert [events.finished(event) for event in made[-2:]] == [False, True]


@pytest.mark.parametrize("made_before", [False, True])
def test_what_makes_no_event_uses_up_no_number(made_before):
    """What the format cannot say is refused by the writer, first or later; the next event has the number."""
    writer = events.Writer(TREE, "tutor", writer=2, after={"writer": 1, "seq": 7})
    if made_before:
        assert writer.text("result", "before", at=AT)["seq"] == 8
    number = 9 if made_before else 8
    for work in (
        lambda: writer.text("result", "", at=AT),
        lambda: writer.done(object(), at=AT),
        lambda: writer.done(1, at="yesterday"),
        lambda: writer.text("result", "\ud800", at=AT),
        lambda: writer.started({}, {}, saw=[], at=AT),
    ):
        with pytest.raises(EventRefused) as caught:
            work()
        assert (caught.value.code, caught.value.event) == (
            "event-malformed",
            {"writer": 2, "seq": number},
        )

    event = writer.text("result", "x", at=AT)
    assert (event["writer"], event["seq"]) == (2, number)
    assert event["after"] == {"writer": 2 if made_before else 1, "seq": number - 1}


def test_only_the_outermost_end_finishes():
    """A helper's end inside a turn does not end the turn's log."""
    done = turn()[-1]
    assert events.finished(done)
    assert not events.finished({**done, "call": OTHER})
    assert not events.finished(None)


def test_places_are_one_when_both_numbers_are():
    """Two places are one only when writer and seq are; None is before the first."""
    place = {"writer": 1, "seq": 2}
    assert events.same(place, dict(place))
    assert events.same(None, None)
    assert not events.same(place, None)
    assert not events.same(place, {"writer": 2, "seq": 2})


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"5",
        b"[]",
        b'"x"',
        b"\xff",
        b"[" * 100_000,
        b'{"functai_event":3,"tree":"%s","writer":1,"seq":1,"kind":"x"}' % TREE.encode(),
        b'{"functai_event":2,"tree":"%s","writer":0,"seq":1,"kind":"x"}' % TREE.encode(),
        b'{"functai_event":2,"tree":"%s","writer":1,"seq":1}' % TREE.encode(),
        events.line({**turn()[0], "tree": OTHER}),
    ],
)
def test_a_line_that_is_no_event_reads_as_none(line):
    """Garbage, what is nested without end, other formats and other trees' events read as none."""
    assert events.of_line(line, TREE) is None


def test_a_line_reads_as_what_was_written():
    """An event comes back from its line; one of a later version too, as long as it has a place."""
    for event in turn():
        line = events.line(event)
        assert (line[-1:], line.count(b"\n"), events.of_line(line[:-1], TREE)) == (b"\n", 1, event)
    later = {**turn()[1], "request": "another form"}
    assert events.of_line(events.line(later), TREE) == later


def test_the_whole_log_is_asked_only_for_an_event_that_may_be_there():
    """Deciding about the next event takes the last one alone."""
    log = turn(pieces=5)
    asked = []

    def newest():
        for event in reversed(log[:5]):
            asked.append(event["seq"])
            yield event

    assert events.fresh(log[5:], TREE, newest, 1) == log[5:]
    assert asked == [5]
    asked.clear()
    assert events.fresh(log[3:5], TREE, newest, 1) == []
    assert asked == [5, 5, 4, 5]
