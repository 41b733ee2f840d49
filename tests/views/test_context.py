"""What a turn is shown, how it is recorded, and how records are read back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import StoreCorrupt, TurnUnknown
from ledger.records import kinds
from ledger.views import History, Rule, all_turns, context, last_turns
from ledger.views.rules import Window
from tests.views import build, oracle
from tests.views.build import DAMAGED

RULES = st.builds(
    Window,
    st.sampled_from([None, None, 0, 1, 2, 3, 9]),
    st.sampled_from([(), (), ("result",), ("m", "result")]),
    st.sampled_from([False, False, True]),
)


def written(names: list[str], rule: Rule) -> History:
    """Done turns in one line, each recording what the rule showed it."""
    history = History()
    for parent, name in zip([None, *names], names, strict=False):
        saw = history.shown(parent, rule).saw
        history.extend(build.done(name, parent, saw=saw, inputs={"m": 1}, outputs={"result": 2}))
    return history


def own(history: History, name: str) -> Any:
    """The list as it stands in a turn's record."""
    return kinds.payload(history.node(name).record.saw)


# -- rules -----------------------------------------------------------------------------------------


def test_all_done_turns_of_the_branch_are_shown():
    """Only `done` turns of the branch are shown, up to the parent, oldest first."""
    history = History.of(
        [
            *build.line("a", "b"),
            build.turn("f", "b"),
            build.ended("f", "failed"),
            *build.done("c", "f"),
            *build.done("beside", "a"),
        ]
    )

    assert history.shown("c", all_turns()).turns == ["a", "b", "c"]
    assert history.shown("f", all_turns()).turns == ["a", "b"]
    assert history.shown(None, all_turns()).turns == []
    assert history.shown(None, all_turns()).saw == []


def test_the_last_turns_are_shown():
    """last_turns(n) shows the last n of them; 0 shows none."""
    history = History.of(build.line("a", "b", "c"))

    assert history.shown("c", last_turns(2)).turns == ["b", "c"]
    assert history.shown("c", last_turns(9)).turns == ["a", "b", "c"]
    assert history.shown("c", last_turns(0)).turns == []
    assert history.shown("c", last_turns(0)).saw == []


@pytest.mark.parametrize("n", [-1, 1.0, "2", None, True])
def test_last_turns_takes_a_count(n):
    """Anything but a whole number that is not negative is a mistake."""
    with pytest.raises(ValueError, match="last_turns"):
        last_turns(n)


@pytest.mark.parametrize("without", ["result", [1], [None]])
def test_without_takes_names(without):
    """`without` takes names, not one text whose letters would be names."""
    with pytest.raises(ValueError, match="without"):
        all_turns(without=without)


def test_rules_with_the_same_names_are_equal():
    """The order and the repetition of names make no other rule."""
    assert all_turns(without=["b", "a", "b"]) == all_turns(without=("a", "b"))


def test_left_out_fields_are_named_where_they_are():
    """`without` lists, sorted, the left-out fields that this turn really has."""
    history = History.of(
        [
            *build.done("a", inputs={"m": 1, "z": 2}, outputs={"calls": [], "result": 3}),
            *build.done("b", "a", inputs={"m": 1}, outputs={"result": 3}),
        ]
    )
    shown = history.shown("b", all_turns(without=["z", "calls", "never"]))

    assert shown.saw == [{"call": "a", "without": ["calls", "z"]}, {"call": "b"}]
    assert shown.rows == [{"m": 1, "result": 3}, {"m": 1, "result": 3}]


def test_rows_are_fresh():
    """A caller may change the rows that it was given."""
    history = History.of(build.done("a", inputs={"m": []}))
    shown = history.shown("a", all_turns())
    shown.rows[0]["m"].append(1)

    assert shown.rows == [{"m": []}]


def test_damage_of_a_shown_turn_is_told_with_its_rows():
    """A field that does not decode is refused by `rows`, and does not stop `saw`."""
    history = History.of([*build.done("a", inputs=DAMAGED), *build.done("b", "a")])
    shown = history.shown("b", all_turns(without=["m"]))

    assert shown.saw == [{"call": "a"}, {"call": "b"}]
    with pytest.raises(StoreCorrupt, match="inputs"):
        _ = shown.rows


def test_an_unknown_parent_is_refused():
    """Whatever the rule."""
    for rule in (all_turns(), last_turns(0)):
        with pytest.raises(TurnUnknown):
            History().shown("nobody", rule)


# -- the short form --------------------------------------------------------------------------------


def test_a_record_does_not_grow_with_the_conversation():
    """What the parent saw, and then the parent, is written in two entries."""
    history = written(["a", "b", "c", "d"], all_turns())

    assert [own(history, name) for name in "abcd"] == [
        [],
        [{"call": "a"}],
        [{"saw_of": "b"}, {"call": "b"}],
        [{"saw_of": "c"}, {"call": "c"}],
    ]
    assert history.saw("d") == ["a", "b", "c"]


def test_left_out_fields_stand_in_the_short_form():
    """The parent's entry says what was left out of it."""
    history = written(["a", "b", "c"], all_turns(without=["m"]))

    assert own(history, "c") == [{"saw_of": "b"}, {"call": "b", "without": ["m"]}]


def test_another_rule_is_written_in_full():
    """When the parent saw something else, every turn is named."""
    history = written(["a", "b", "c"], all_turns(without=["m"]))

    assert history.shown("c", all_turns()).saw == [{"call": "a"}, {"call": "b"}, {"call": "c"}]


def test_a_list_that_is_not_known_is_no_start():
    """A parent whose own list was not recorded, or is damaged, cannot be referred to."""
    for keys in ({}, {"saw": DAMAGED}, {"saw": "x"}):
        history = History.of([*build.line("a"), *build.done("b", "a", **keys)])
        for rule in (all_turns(), last_turns(5)):
            assert history.shown("b", rule).saw == [{"call": "a"}, {"call": "b"}]


def test_a_sliding_window_is_written_in_full():
    """last_turns(n) is short only while the branch is not longer than n."""
    history = written(["a", "b", "c", "d", "e"], last_turns(3))

    assert own(history, "d") == [{"saw_of": "c"}, {"call": "c"}]
    assert own(history, "e") == [{"call": "b"}, {"call": "c"}, {"call": "d"}]


def test_steps_are_kept_and_are_another_entry():
    """Entries with steps, of another writer, are read as they are, and are not our entries."""
    with_steps = [{"call": "a", "steps": True}]
    history = History.of([*build.line("a"), *build.done("b", "a", saw=with_steps)])

    assert context.expand(history, "b") == with_steps
    assert history.shown("b", all_turns()).saw == [{"call": "a"}, {"call": "b"}]


def test_a_turn_that_ends_late_changes_the_line():
    """A turn that ends after its child is shown from then on; what was proven before is not used."""
    history = History.of(
        [
            *build.done("a", saw=[]),
            build.turn("late", "a", saw=[{"call": "a"}]),
            *build.done("b", "late", saw=[{"call": "a"}]),
        ]
    )
    assert history.shown("b", all_turns()).saw == [{"saw_of": "b"}, {"call": "b"}]

    history.extend([build.ended("late")])
    assert history.shown("b", all_turns()).turns == ["a", "late", "b"]
    assert history.shown("b", all_turns()).saw == [
        {"saw_of": "late"},
        {"call": "late"},
        {"call": "b"},
    ]


def test_sending_one_by_one_is_linear(monkeypatch):
    """Each send reads a bounded number of lists, however long the conversation is."""
    reads = 0
    plain = context.recorded

    def counted(node: Any) -> Any:
        nonlocal reads
        reads += 1
        return plain(node)

    monkeypatch.setattr(context, "recorded", counted)
    names = [f"t{i}" for i in range(2_000)]
    history = written(names, all_turns(without=["m"]))

    assert reads <= 3 * len(names)
    assert history.saw(names[-1]) == names[:-1]


# -- reading back ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "waited", "sent", "counts"),
    [
        ([{"call": "e"}], [{"call": "w"}], [{"call": "t"}], ["e"]),
        ([], [{"call": "w"}], [{"call": "t"}], ["t"]),
        (None, [{"call": "w"}], [{"call": "t"}], ["w"]),
        (None, None, [{"call": "t"}], ["t"]),
        ("x", None, [{"call": "t"}], ["t"]),
        (None, None, None, []),
        ([], None, None, []),
    ],
)
def test_which_list_counts(ended, waited, sent, counts):
    """`ended`'s counts, an empty one yields to `turn`'s; without one `waiting`'s, then `turn`'s."""

    def keys(saw: Any) -> dict[str, Any]:
        return {"saw": saw} if saw is not None else {}

    history = History.of(
        [
            build.turn("a", **keys(sent)),
            build.waiting("a", **keys(waited)),
            build.ended("a", **keys(ended)),
        ]
    )

    assert history.saw("a") == counts


def test_entries_of_other_shapes_are_skipped():
    """Only entries with a `call` count, and `saw_of` only as the first entry, alone."""
    odd = [None, {"call": 4}, {"saw_of": "a"}, {"call": "a", "saw_of": "a"}, {"call": "a"}, "a"]
    history = History.of([*build.done("a", saw=[{"call": "x"}]), *build.done("b", "a", saw=odd)])

    assert context.expand(history, "b") == [{"call": "a"}]


def test_two_links_do_not_multiply():
    """Lists that link twice would double with every turn; the second link is no entry."""
    records = build.done("t0", saw=[])
    for i in range(1, 100):
        link = {"saw_of": f"t{i - 1}"}
        records += build.done(f"t{i}", f"t{i - 1}", saw=[link, link, {"call": f"t{i - 1}"}])

    assert History.of(records).saw("t99") == [f"t{i}" for i in range(99)]


def test_a_cycle_is_refused_by_name():
    """Links that come back to themselves are refused; other turns are not hurt."""
    history = History.of(
        [
            *build.done("a", saw=[{"saw_of": "b"}, {"call": "x"}]),
            *build.done("b", "a", saw=[{"saw_of": "a"}, {"call": "a"}]),
            *build.done("c", "b", saw=[{"call": "a"}]),
        ]
    )

    with pytest.raises(StoreCorrupt, match=r"turn b, record \d+: what it saw comes back to b"):
        history.saw("b")
    assert history.saw("c") == ["a"]
    for rule in (all_turns(), last_turns(5)):
        assert history.shown("b", rule).saw == [{"call": "a"}, {"call": "b"}]


@pytest.mark.parametrize("missing", ["nobody", "unknown", "damaged"])
def test_a_link_that_cannot_be_followed_stays(missing):
    """What stood before a link to no turn, or to no list that reads, is not known: it stays."""
    history = History.of(
        [
            build.turn("unknown"),
            build.turn("damaged", saw=DAMAGED),
            *build.done("a", saw=[{"saw_of": missing}, {"call": "x"}]),
            *build.done("b", "a", saw=[{"saw_of": "a"}, {"call": "a"}]),
        ]
    )

    assert context.expand(history, "b") == [{"saw_of": missing}, {"call": "x"}, {"call": "a"}]
    assert history.saw("b") == ["x", "a"]


def test_long_chains_are_expanded():
    """A chain of links as long as the conversation needs no recursion."""
    total = 50_000
    history = History()
    for i in range(total):
        saw = [{"saw_of": f"t{i - 1}"}, {"call": f"t{i - 1}"}] if i else []
        record = kinds.Turn(functai_conversation=1, turn=f"t{i}", saw=saw)  # type: ignore[arg-type]
        history.extend([record])

    assert len(history.saw(f"t{total - 1}")) == total - 1


# -- by chance -------------------------------------------------------------------------------------


@given(build.logs, RULES)
def test_shown_matches_its_twin(records, rule):
    """What is shown and how it is written, under every turn and in every log."""
    history = History.of(records)
    for parent in (None, *history.order):
        shown = history.shown(parent, rule)
        names = list(rule.without)
        entries = oracle.shown(records, parent, rule.last, names, rule.steps)

        assert shown.turns == [entry["call"] for entry in entries]
        assert shown.saw == oracle.recorded(records, parent, rule.last, names, rule.steps)


@given(build.logs)
def test_expansion_matches_its_twin(records):
    """What a turn saw, cycles and damage told apart."""
    history = History.of(records)
    for name in history.order:
        expected = oracle.saw(records, name)
        if expected == "cycle":
            with pytest.raises(StoreCorrupt, match="comes back to"):
                history.saw(name)
        elif expected == oracle.DAMAGED:
            with pytest.raises(StoreCorrupt):
                history.saw(name)
        else:
            assert context.expand(history, name) == expected


@given(st.lists(st.tuples(st.integers(0, 9), RULES, st.sampled_from(["done", "failed"]))))
def test_short_and_expanded_again_is_the_same(sends):
    """Whatever rules the turns of a tree were sent under: short, then expanded, is what was shown."""
    history = History()
    for i, (parent, rule, state) in enumerate(sends):
        at = history.place(now=build.NOW, at=f"t{parent % i}").parent if i else None
        shown = history.shown(at, rule)
        expected = [context._entry(history.node(name), rule) for name in shown.turns]
        records = build.done(f"t{i}", at, saw=shown.saw, inputs={"m": 1}, outputs={"result": 2})
        history.extend([*records[:2], {**records[2], "state": state}])

        assert context.expand(history, f"t{i}") == expected
        assert len(shown.saw) <= max(2, len(expected))


class Counting(dict):
    """Counts how often a node is asked for."""

    asked = 0

    def __getitem__(self, key):
        self.asked += 1
        return super().__getitem__(key)


def asked_of_a_line(length: int) -> int:
    """How often nodes are asked for, for what a turn saw at the end of a line of which an early turn was erased."""
    records = []
    for number in range(length):
        parent = f"t{number - 1}" if number else None
        saw = [{"saw_of": parent}, {"call": parent}] if number > 1 else [{"call": parent}][:number]
        records += [build.turn(f"t{number}", parent, saw=saw), build.ended(f"t{number}", saw=saw)]
    records[5] = build.ended("t2", "abandoned", saw=[])
    history = History.of(records)
    history.nodes = Counting(history.nodes)
    assert len(history.shown(f"t{length - 1}", all_turns()).saw) == length - 1
    return history.nodes.asked


def test_a_line_of_which_a_turn_was_erased_is_walked_a_few_times_not_once_a_turn():
    """Who goes on from the list of a turn that did not see all did not either: each link is followed once."""
    assert asked_of_a_line(800) < 3 * asked_of_a_line(400)
