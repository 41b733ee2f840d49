"""Context rules: which turns each shows, alone and one after the other, by dumb twins."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.views import (
    History,
    all_turns,
    compacted,
    context,
    last_turns,
    only,
    pipeline,
    rules,
    within,
)
from tests.views import build

WORDS = st.lists(st.text("ab", max_size=4), max_size=8)


def said(words: list[str], **keys: Any) -> History:
    """A line of done turns t0, t1 ..., each asked a word and answering its length."""
    records: list[Any] = []
    for i, word in enumerate(words):
        parent = f"t{i - 1}" if i else None
        outputs = {"result": len(word)}
        records += build.done(f"t{i}", parent, inputs={"m": word}, outputs=outputs, **keys)
    return History.of(build.placed(records))


def shown(history: History, rule: Any) -> context.Shown:
    """What a turn after the last one is shown."""
    last = history.order[-1] if history.order else None
    return history.shown(last, rules.of(rule))


def spent(row: dict[str, Any]) -> int:
    """A budget in letters."""
    return len(row.get("m", "")) + len(row.get("summary") or "")


def summarize(earlier: str, rows: list[dict[str, Any]]) -> str:
    """A summary for tests."""
    return earlier + "".join(row["m"] for row in rows)


# -- windows and budgets ---------------------------------------------------------------------------


def with_tools(turns: int, calls: int) -> History:
    """A line of turns, each of which called tools before it answered."""
    records: list[Any] = []
    for i in range(turns):
        begun, lease, end = build.done(f"t{i}", f"t{i - 1}" if i else None, inputs={"m": i})
        made = []
        for j in range(calls):
            known = {"id": f"c{i}.{j}", "input": {"n": j}}
            made.append(build.tool(f"t{i}", "started", "p#1", j + 1, name="look", **known))
            made.append(
                build.tool(f"t{i}", "done", "p#1", j + 1, name="look", output=f"{i}.{j}", **known)
            )
        records += [begun, lease, *made, end]
    return History.of(build.placed(records))


@pytest.mark.parametrize("n", range(6))
def test_every_window_is_whole_turns(n):
    """`last_turns(n)` over turns with several tool calls shows n whole exchanges, never a part of one."""
    history = with_tools(4, 3)
    found = shown(history, last_turns(n))

    assert found.turns == [f"t{i}" for i in range(4)][max(0, 4 - n) :]
    for turn, row in zip(found.turns, found.rows, strict=True):
        outputs = [f"{turn[1:]}.{j}" for j in range(3)]
        assert [call["output"] for call in row["steps"]] == outputs
        assert [call["input"] for call in row["steps"]] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [entry.get("steps") for entry in context_entries(history, found)] == [True] * min(n, 4)


def context_entries(history: History, found: context.Shown) -> list[Any]:
    """The entries of a turn that was recorded with what it was shown, expanded."""
    history.extend(build.done("next", history.order[-1], saw=found.saw))
    return context.expand(history, "next")


def test_steps_can_be_left_out():
    """A row has the tool calls of its turn, unless the rule leaves them out."""
    history = with_tools(1, 1)

    assert shown(history, all_turns(steps=False)).rows == [{"m": 0}]
    (row,) = shown(history, all_turns()).rows
    assert row["steps"] == [{"name": "look", "input": {"n": 0}, "output": "0.0"}]


def test_a_turn_without_steps_is_named_as_it_is():
    """Only a turn that has tool calls says that it is shown with them."""
    found = shown(with_tools(1, 0), all_turns())

    assert (found.saw, found.rows) == ([{"call": "t0"}], [{"m": 0}])


def test_a_turn_that_lacks_a_field_is_shown_without_its_steps():
    """Fields left out and steps exclude each other, in the entry and in the row."""
    found = shown(with_tools(1, 1), all_turns(without=["m"], steps=True))

    assert (found.saw, found.rows) == ([{"call": "t0", "without": ["m"]}], [{}])


def test_a_tool_without_a_result_is_not_shown():
    """A call that started and gave nothing is no step that a later turn could rest on."""
    history = History.of(
        build.placed([build.turn("a"), build.tool("a", "started", "p#1", 1), build.ended("a")])
    )

    assert shown(history, all_turns()).rows == [{}]


@given(WORDS, st.integers(0, 12))
def test_a_budget_takes_the_newest_that_fit(words, tokens):
    """`within` shows the longest end of the line that fits, and at least the newest turn."""
    fits = [n for n in range(len(words) + 1) if sum(map(len, words[len(words) - n :])) <= tokens]
    expected = max(*fits, min(1, len(words)), 0)

    found = shown(said(words), within(tokens=tokens, count=spent))
    assert found.turns == [f"t{i}" for i in range(len(words))][len(words) - expected :]


def test_a_budget_counts_what_is_shown():
    """Fields that a rule before it left out cost nothing."""
    lean = pipeline(all_turns(without=["m"]), within(tokens=0, count=spent))

    assert len(shown(said(["aaaa", "bbbb"]), lean).turns) == 2


def test_a_budget_reads_no_more_than_it_shows():
    """A window costs what it shows, and the one turn that no longer fits, however long the line is."""
    counted: list[Any] = []

    def count(row: dict[str, Any]) -> int:
        counted.append(row)
        return 1

    _ = shown(said(["a"] * 50), within(tokens=3, count=count)).turns
    assert len(counted) == 4


@pytest.mark.parametrize("count", [-1, 1.5, "1", None])
def test_a_count_is_a_whole_number(count):
    """Anything else that `count` gives is a mistake, not a budget."""
    with pytest.raises((TypeError, ValueError), match="count gives"):
        _ = shown(said(["a"]), within(tokens=3, count=lambda row: count)).turns


@given(WORDS)
def test_a_predicate_picks(words):
    """`only` shows the turns of which it is true, with what a turn says of itself to decide by."""
    expected = [f"t{i}" for i, word in enumerate(words) if "a" in word]

    found = shown(said(words), only(lambda turn: "a" in turn.inputs["m"]))
    assert found.turns == expected


def test_what_a_predicate_is_told():
    """An earlier turn tells its id, ordinal, inputs, outputs, answer, model, usage, tools and row."""
    history = with_tools(1, 1)
    history.extend(build.done("b", "t0", inputs={"m": 1})[:2])
    end = build.ended("b", model="big", outputs={"result": 2}, value=3, usage={"total": 4})
    history.extend([end])
    first, second = shown(history, None).earlier

    assert (second.id, second.ordinal, second.model) == ("b", 2, "big")
    assert (second.inputs, second.outputs, second.result) == ({"m": 1}, {"result": 2}, 3)
    assert (second.usage, second.row) == ({"total": 4}, {"m": 1, "result": 2})
    assert [call["name"] for call in first.tools] == ["look"]
    with pytest.raises(AttributeError):
        second.without = frozenset()


# -- a function of one's own -----------------------------------------------------------------------


def test_a_function_of_ones_own_is_recorded_by_its_outcome():
    """It is given earlier turns, oldest first; what it chose and left out is what `saw` says."""
    given_to: list[str] = []

    def mine(turns: list[Any]) -> list[Any]:
        given_to.extend(turn.id for turn in turns)
        return [turns[2], turns[0].leaving_out("result")]

    found = shown(said(["a", "b", "c", "d"]), mine)
    assert found.saw == [{"call": "t0", "without": ["result"]}, {"call": "t2"}]
    assert found.rows == [{"m": "a"}, {"m": "c", "result": 1}]
    assert given_to == ["t0", "t1", "t2", "t3"]


@pytest.mark.parametrize(
    "chosen",
    [
        lambda turns: None,
        lambda turns: [turn.id for turn in turns],
        lambda turns: [{"m": 1}],
        lambda turns: [turns[0], turns[0]],
        lambda turns: shown(said(["x", "y", "z"]), None).earlier,
    ],
)
def test_a_function_gives_turns_that_it_was_given(chosen):
    """Ids, rows, nothing at all, a turn twice or one of elsewhere are refused, not guessed about."""
    with pytest.raises((TypeError, ValueError), match="a context function gives"):
        _ = shown(said(["a", "b"]), chosen).turns


def test_what_a_function_raises_is_raised():
    """A rule's own mistake is told as what it is."""
    with pytest.raises(ZeroDivisionError):
        _ = shown(said(["a"]), only(lambda turn: 1 / 0)).turns


def wrong(value: Any) -> Any:
    """What a type checker would refuse."""
    return value


async def waits(turn: Any) -> bool:
    """A predicate that nobody would await."""
    return True


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: only(wrong(True)),
        lambda: only(waits),
        lambda: rules.of(waits),
        lambda: within(tokens=1, count=wrong(3)),
        lambda: within(tokens=-1, count=len),
        lambda: within(tokens=True, count=len),
        lambda: compacted(wrong(None)),
        lambda: compacted(summarize, keep_last=-1),
        lambda: compacted(summarize, every=0),
        lambda: pipeline(),
        lambda: pipeline(wrong(3)),
        lambda: pipeline(wrong(last_turns)),
        lambda: rules.of("all"),
        lambda: rules.of(all_turns),
        lambda: rules.of(dict),
        lambda: pipeline(compacted(summarize), compacted(summarize)),
        lambda: pipeline(last_turns(3), compacted(summarize)),
        lambda: pipeline(pipeline(within(tokens=3, count=spent)), compacted(summarize)),
    ],
)
def test_mistakes_are_told_when_a_rule_is_made(mistake):
    """A rule that could not work is refused at once, before any turn."""
    with pytest.raises((TypeError, ValueError)):
        mistake()


# -- one after the other ---------------------------------------------------------------------------

Row = tuple[int, str, frozenset[str]]
Twin = Callable[[list[Row]], list[Row]]


def twin_last(n: int | None, without: list[str]) -> Twin:
    """The last n of a list."""

    def pick(rows: list[Row]) -> list[Row]:
        kept = rows if n is None else rows[len(rows) - min(n, len(rows)) :]
        return [(i, word, out | set(without)) for i, word, out in kept]

    return pick


def twin_within(tokens: int) -> Twin:
    """Ever shorter ends of the list, until one fits or one turn is left."""

    def pick(rows: list[Row]) -> list[Row]:
        def cost(row: Row) -> int:
            return 0 if "m" in row[2] else len(row[1])

        while len(rows) > 1 and sum(map(cost, rows)) > tokens:
            rows = rows[1:]
        return rows

    return pick


def twin_only(letter: str) -> Twin:
    """Those with a letter."""
    return lambda rows: [row for row in rows if letter in row[1]]


WITHOUT = st.lists(st.sampled_from(["m", "result", "never"]), unique=True)
STEPS: st.SearchStrategy[tuple[Any, Twin]] = st.one_of(
    st.builds(
        lambda n, w: (all_turns(without=w) if n is None else last_turns(n, without=w),
                      twin_last(n, w)),
        st.none() | st.integers(0, 5),
        WITHOUT,
    ),
    st.integers(0, 9).map(lambda t: (within(tokens=t, count=spent), twin_within(t))),
    st.sampled_from("ab").map(
        lambda x: (only(lambda turn: x in turn.inputs["m"]), twin_only(x))
    ),
    st.just((lambda turns: turns[::-2], lambda rows: rows[::-2][::-1])),
)  # fmt: skip


@given(WORDS, st.lists(STEPS, min_size=1, max_size=4), st.booleans())
def test_a_pipeline_is_each_rule_over_the_one_before(words, steps, nested):
    """Rules apply in order, whatever they are, and what is recorded is what came out."""
    history = said(words)
    listed = [rule for rule, _ in steps]
    rule = pipeline(*listed) if not nested else pipeline(pipeline(listed[0]), *listed[1:])
    rows: list[Row] = [(i, word, frozenset()) for i, word in enumerate(words)]
    for _, twin in steps:
        rows = twin(rows)

    found = shown(history, rule)
    assert found.turns == [f"t{i}" for i, _, _ in rows]
    expected = []
    for i, word, out in rows:
        fields = {"m": word, "result": len(word)}
        expected.append({k: v for k, v in fields.items() if k not in out})
        missing = sorted(out & fields.keys())
        assert found.earlier[len(expected) - 1].entry == (
            {"call": f"t{i}", "without": missing} if missing else {"call": f"t{i}"}
        )
    assert found.rows == expected
    if words:
        history.extend(build.done("next", history.order[-1], saw=found.saw))
        assert history.rows("next") == expected


@given(st.lists(st.tuples(st.integers(0, 9), STEPS), max_size=9))
def test_any_rule_is_short_where_it_can_be(sends):
    """Turns of a tree sent under any rules: what is written expands to what was shown."""
    history = History()
    for i, (parent, (rule, _)) in enumerate(sends):
        at = f"t{parent % i}" if i else None
        found = history.shown(at, rules.of(rule))
        entries = [turn.entry for turn in found.earlier]
        inputs, outputs = {"m": "ab"[i % 2]}, {"result": 1}
        history.extend(build.done(f"t{i}", at, saw=found.saw, inputs=inputs, outputs=outputs))

        assert context.expand(history, f"t{i}") == entries
        assert len(found.saw) <= max(2, len(entries))


def test_a_pipeline_that_shows_all_is_written_shortly():
    """Where a composed rule shows what the parent saw and the parent, the record does not grow."""
    rule, history = pipeline(all_turns(), only(lambda turn: True)), History()
    for i in range(5):
        at = f"t{i - 1}" if i else None
        history.extend(build.done(f"t{i}", at, saw=history.shown(at, rule).saw))

    assert history.shown("t4", rule).saw == [{"saw_of": "t4"}, {"call": "t4"}]


# -- summaries -------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab")), max_size=14),
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from([None, "a"]),
)
def test_compaction_matches_its_twin(sends, keep_last, every, letter):
    """In any tree, under any settings, also over a predicate: which summary, which turns, which to make."""
    history = History()
    rule = compacted(summarize, keep_last=keep_last, every=every)
    if letter is not None:
        rule = pipeline(only(lambda turn: letter in turn.inputs["m"]), rule)
    words: dict[str, str] = {}
    above: dict[str, str | None] = {}
    made: list[list[str]] = []
    for i, (parent, word) in enumerate(sends):
        at = f"t{parent % (i + 1)}" if parent % (i + 1) < i else None
        line: list[str] = []
        step = at
        while step is not None:
            line.insert(0, step)
            step = above[step]
        line = [name for name in line if letter is None or letter in words[name]]

        def best(line: list[str] = line) -> list[str]:
            fits = [s for s in made if s == line[: len(s)] and len(s) <= len(line) - keep_last]
            return max(fits, key=len, default=[])

        found = history.shown(at, rule)
        due = len(line) - len(best()) >= keep_last + every
        assert (found.wants is not None) == due
        assert found.turns == line[len(best()) :]
        if found.wants is not None:
            foreseen = history.shown(at, rule, foresee=True)
            whole = line[: len(line) - keep_last]
            assert list(found.wants.turns) == whole
            assert foreseen.turns == line[len(whole) :]
            earlier, rows = found.wants.arguments
            assert earlier == "".join(words[name] for name in best())
            data = found.wants.data(summarize(earlier, rows), {})
            history.extend(
                [build.new("entry", plugin="ledger", entry="summary", data=data, turn=whole[-1])]
            )
            made.append(whole)
            found = history.shown(at, rule)
            assert (found.wants, found.saw, found.turns) == (None, foreseen.saw, foreseen.turns)
        text = "".join(words[name] for name in best())
        assert (found.summary.text if found.summary else "") == text
        keys = {"saw": found.saw, "shown_entries": found.entries}
        history.extend(build.done(f"t{i}", at, inputs={"m": word}, **keys))
        words[f"t{i}"], above[f"t{i}"] = word, at
        assert history.rows(f"t{i}") == found.rows
