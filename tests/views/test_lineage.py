"""Where answers come from, and where branches meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import TurnUnknown
from ledger.views import History, all_turns, branches, last_turns
from ledger.views.lineage import Rest
from ledger.views.nodes import readable_reads
from tests.views import build, oracle

MAKER = {"name": "judge", "version": "sha256:0", "call": None}


def sent(history: History, name: str, parent: str | None, rule=None, **keys) -> None:
    """Send a turn that records what the rule showed it, and end it."""
    saw = history.shown(parent, rule or all_turns()).saw
    model = keys.pop("model", None)
    records = build.done(name, parent, saw=saw, **keys)
    history.extend([*records[:2], {**records[2], "model": model}])


def merged() -> History:
    """a, then b and c beside each other, m merging them under a, then n."""
    history = History()
    sent(history, "a", None)
    sent(history, "b", "a", model="small")
    sent(history, "c", "a", model="large")
    sent(history, "m", "a", reads=["b", "c"], made_by=MAKER)
    sent(history, "n", "m", last_turns(1))
    return history


def test_the_parts_of_a_lineage():
    """Ancestors, what it saw, read, who made it, what it rests on and influenced."""
    line = merged().lineage("m")

    assert line.ancestors == ["a"]
    assert line.saw == ["a"]
    assert line.read == ["b", "c"]
    assert line.made_by == MAKER
    assert line.influenced == ["n"]
    assert line.rests_on == [Rest("a", "saw"), Rest("b", "read"), Rest("c", "read")]


def test_what_rests_on_a_merge_rests_on_what_it_read():
    """Turns that were not shown themselves are reached through the ones that were."""
    history = merged()

    assert history.lineage("n").rests_on == [
        Rest("a", "through", "m"),
        Rest("b", "through", "m"),
        Rest("c", "through", "m"),
        Rest("m", "saw"),
    ]
    assert history.lineage("b").influenced == ["m", "n"]
    assert history.lineage("a").influenced == ["b", "c", "m", "n"]


def test_a_turn_that_nobody_saw_influenced_nothing():
    """Being an ancestor is no influence: only what was shown or merged is."""
    history = History()
    sent(history, "a", None)
    sent(history, "b", "a", last_turns(0))

    assert history.lineage("a").influenced == []
    assert history.lineage("b").rests_on == []
    assert history.lineage("b").ancestors == ["a"]


def test_what_is_named_but_not_there_is_told():
    """Ids that are no turns of this log are listed as missing, not passed over."""
    history = History.of(
        build.done("a", saw=[{"saw_of": "gone"}, {"call": "lost"}]) + build.done("b", "a")
    )

    assert history.lineage("a").missing == ["lost", "gone"]
    assert history.lineage("a").rests_on == []
    assert history.lineage("b").missing == []


def test_cycles_end():
    """Turns that say they saw each other rest on each other, and the walk ends."""
    history = History.of(
        build.done("a", saw=[{"saw_of": "b"}, {"call": "b"}])
        + build.done("b", saw=[{"saw_of": "a"}, {"call": "a"}])
    )

    assert history.lineage("a").rests_on == [Rest("b", "saw")]
    assert history.lineage("a").influenced == ["b"]


def test_an_unknown_turn_has_no_lineage():
    """It is refused when asked for, not later."""
    with pytest.raises(TurnUnknown):
        History().lineage("a")


# -- text ------------------------------------------------------------------------------------------


def test_the_explanation_is_for_people():
    """Ordinals, short ids, the models where recorded, and how each turn was used."""
    history = merged()

    assert history.lineage("m").explain() == (
        "turn 4 m: done, made by judge\n"
        "  continues turn 1 a\n"
        "  rests on 3 other turns:\n"
        "    saw turn 1 a\n"
        "    read turn 2 b (small)\n"
        "    read turn 3 c (large)\n"
        "  influenced turn 5 n"
    )
    assert "    through turn 4: turns 1 to 3 (small, large)" in history.lineage("n").explain()


def test_long_runs_are_summarised():
    """The text stays short however long the conversation is."""
    history = History()
    for i in range(200):
        sent(history, f"t{i}", f"t{i - 1}" if i else None)
        sent(history, f"w{i}", f"t{i}", last_turns(1))
    text = history.lineage("t199").explain()

    assert "saw turns 1, 3, 5" in text
    assert "and 187 more runs" in text
    assert len(text) < 500

    history = History()
    for i in range(57):
        sent(history, f"t{i}", f"t{i - 1}" if i else None, last_turns(1), model=f"m{i}")
    text = history.lineage("t56").explain()
    assert "    saw turn 56 t55 (m55)\n" in text
    assert len(text.splitlines()) < 30
    assert "and turns 1 to 36 (m35, m34, m33, m32 and 32 more)" in text


# -- where branches meet ---------------------------------------------------------------------------


def tree() -> History:
    """a - b - c, and beside c: d; beside b: e; and another root."""
    return History.of(
        [
            *build.line("a", "b", "c"),
            *build.done("d", "b"),
            *build.done("e", "a"),
            *build.done("other"),
        ]
    )


@pytest.mark.parametrize(
    ("a", "b", "base"),
    [("c", "d", "b"), ("c", "e", "a"), ("c", "a", "a"), ("c", "c", "c"), ("c", "other", None)],
)
def test_the_merge_base(a, b, base):
    """The nearest common turn; a turn is on its own branch; different roots have none."""
    assert tree().merge_base(a, b) == base
    assert tree().merge_base(b, a) == base


@pytest.mark.parametrize(
    ("turns", "place"),
    [
        (["c", "d"], "b"),
        (["c", "d", "e"], "a"),
        (["c", "b"], "a"),
        (["c", "a"], None),
        (["c"], "b"),
        (["c", "other"], None),
        (["a", "other"], None),
        (["c", "c", "d"], "b"),
    ],
)
def test_where_a_merge_lands(turns, place):
    """The shared parent, else the nearest common ancestor that is none of them, else nowhere."""
    assert branches.meeting_place(tree(), turns) == place


def test_a_merge_of_nothing_is_a_mistake():
    """A merge names the turns that it merges."""
    with pytest.raises(ValueError, match="names"):
        branches.meeting_place(tree(), [])


# -- by chance -------------------------------------------------------------------------------------


@given(build.logs)
def test_lineage_matches_a_naive_closure(records):
    """Everything an answer rests on and influenced, each on a shortest way."""
    history = History.of(records)
    for name in history.order:
        away = oracle.rests_on(records, name)
        line = history.lineage(name)
        known = [other for other in oracle.order(records) if other in away]

        assert [rest.turn for rest in line.rests_on] == known
        assert sorted(line.missing) == sorted(set(away) - set(known))
        assert line.influenced == oracle.influenced(records, name)
        assert readable_reads(history, history.node(name)) == oracle.reads(records, name)
        for rest in line.rests_on:
            if rest.how == "through":
                assert rest.through is not None
                assert rest.turn in oracle.uses(records, rest.through)
                assert away[rest.turn] == away[rest.through] + 1 > 1
            elif rest.how == "saw":
                assert rest.turn in oracle.lenient_saw(records, name)
            else:
                assert rest.turn in oracle.reads(records, name)
                assert rest.turn not in oracle.lenient_saw(records, name)
        assert line.explain()


@given(build.logs, st.data())
def test_meeting_places_match_their_twin(records, data):
    """Where two branches meet, and where a merge of any turns lands."""
    history = History.of(records)
    if not history.order:
        return
    turns = data.draw(st.lists(st.sampled_from(history.order), min_size=1, max_size=4))

    assert branches.meeting_place(history, turns) == oracle.meeting_place(records, turns)
    assert history.merge_base(turns[0], turns[-1]) == oracle.merge_base(
        records, turns[0], turns[-1]
    )


CALLED = [
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "1", "name": "f", "arguments": {}}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": 1}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "so"}]},
]


@pytest.mark.parametrize("source", [None, {"format": "x"}])
def test_what_was_left_out_is_named(source):
    """Fields by their record; tool calls, where they were not shown, but not of an import, which does not know."""
    records = [*build.done("a"), *build.done("b", "a")]
    records[2] = {**records[2], "messages": CALLED}
    saw = [{"call": "a"}, {"call": "b", "without": ["result"]}, {"call": "gone", "without": ["x"]}]
    more = build.done("c", "b", saw=saw)
    more[0] = {**more[0], **({"source": source} if source else {})}
    history = History.of([*records, *more])

    lacking = {"b": ["result"]} if source else {"a": ["steps"], "b": ["result"]}
    assert history.without("c") == history.lineage("c").to_dict()["without"] == lacking
    told = str(history.lineage("c"))
    assert ("saw turn 1 a without steps" in told) is (source is None)
    assert "saw turn 2 b without result" in told
