"""Rated turns of a store as rows; rows split, and written to files."""

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import errors
from ledger.sources.rated import _Groups

BIG = 2**53 - 1


@pytest.fixture
def store():
    return ledger.MemoryStore()


def solve(problem: str) -> str:
    """A program with a field of its own."""
    return problem.upper()


def test_a_row_has_what_a_turn_rests_on(store):
    """Inputs, outputs, what it was shown, who rated it how, labels, model and program stand in a row."""
    chat = ledger.open("a", solve, store=store)
    chat("one")
    turn = chat.send("two", lm="m")
    turn.rate(1, by="ann", why="right").rate(0.5, by="ben")
    turn.label("hard")
    (row,) = ledger.rated(store)

    assert {"problem": "two"} == row["inputs"]
    assert {"result": "TWO"} == row["outputs"]
    assert (0.75, ["ann", "ben"]) == (row["rating"], [one["by"] for one in row["ratings"]])
    assert [{"problem": "one", "result": "ONE"}] == row["earlier"]
    assert ("m", ["hard"], "solve", "done") == tuple(
        row[key] for key in ("model", "labels", "program", "state")
    )
    assert ("a", turn.id, chat.turns[0].id) == (row["conversation"], row["turn"], row["group"])
    json.dumps(row)


def test_helpers_calls_are_told(store):
    """The calls of remembered helpers stand in the row, with their inputs and outputs."""

    @ledger.program
    def helper(word: str) -> str:
        return word * 2

    def answer(message: str) -> str:
        return helper(message)

    ledger.open("a", answer, store=store, remembers={helper: "conversation"}).send("x").rate(1)
    ((call,),) = [row["helpers"] for row in ledger.rated(store)]

    assert ({"word": "x"}, {"result": "xx"}) == (call["inputs"], call["outputs"])
    assert "helper" == call["program"]["name"]


def test_helpers_calls_tell_what_they_were_shown(store):
    """Each call has the earlier calls of its helper, as it was shown them; those of a forgotten turn are gone."""
    seen = []

    @ledger.program
    def helper(word: str) -> str:
        turn = ledger.current()
        seen.append(turn.earlier())
        turn.tool("look", {"at": word}, lambda: 1, effects="reads")
        return word * 2

    def answer(message: str) -> list:
        return [helper(word) for word in message.split()]

    for mode in ("conversation", ledger.remember("turn", steps=True)):
        name = "steps" if isinstance(mode, tuple) else "plain"
        chat = ledger.open(name, answer, store=store, remembers={helper: mode})
        chat("a")
        chat.send("b c").rate(1)
    told = {row["conversation"]: row["helpers"] for row in ledger.rated(store)}

    assert seen[1:3] == [call["earlier"] for call in told["plain"]]
    assert seen[4:6] == [call["earlier"] for call in told["steps"]]
    assert {"word": "a", "result": "aa"} == seen[1][0]
    assert ["look"] == [step["name"] for step in seen[5][0]["steps"]]
    json.dumps(told)

    ledger.open("plain", store=store).forget(1)
    left = {row["conversation"]: row["helpers"] for row in ledger.rated(store)}["plain"]
    assert [[], [{"word": "b", "result": "bb"}]] == [call["earlier"] for call in left]


def test_only_what_is_asked_for(store):
    """By program, label and rating; turns that were not rated, or no more, are in no row."""
    chat = ledger.open("a", store=store)
    for n in range(4):
        chat.record(f"q{n}", "x").rate(n)
    chat.turn(1).rate(None)
    chat.turn(4).label("good")
    ledger.open("b", solve, store=store).send("z").rate(True)

    def found(**wanted):
        return [row["inputs"].get("message", "z") for row in ledger.rated(store, **wanted)]

    assert ["q1", "q2", "q3", "z"] == found()
    assert ["q2", "q3"] == found(min_rating=2)
    assert ["q3"] == found(label="good")
    assert ["z"] == found(program="solve")
    assert ["q1", "q2", "q3"] == found(program=chat.turn(1)._node.record.program)


def copied(store, records, name):
    store.append(name, [{k: v for k, v in r.items() if k != "seq"} for r in records])


def test_a_turn_that_was_copied_is_there_once(store):
    """A turn in several conversations gives one row; they are one group."""
    chat = ledger.open("b", store=store)
    chat.record("q", "x").rate(1)
    chat.record("r", "x").rate(1)
    copied(store, store.read("b"), "a")
    ledger.open("c", store=store).record("q", "x").rate(1)
    rows = list(ledger.rated(store))

    assert [("a", "q"), ("a", "r"), ("c", "q")] == [
        (row["conversation"], row["inputs"]["message"]) for row in rows
    ]
    assert rows[0]["group"] == rows[1]["group"] != rows[2]["group"]


def test_a_part_of_a_conversation_is_of_its_group(store):
    """A copy that begins in the middle shares a turn, and so the group, though its first turn is another."""
    chat = ledger.open("a", store=store)
    chat.record("q", "x").rate(1)
    chat.record("r", "x")
    tail = [
        r for r in store.read("a") if r["kind"] == "program" or r.get("turn") == chat.turn(2).id
    ]
    copied(store, tail, "b")
    ledger.open("b", store=store).record("s", "x").rate(1)
    one, other = ledger.rated(store)

    assert ("a", "b") == (one["conversation"], other["conversation"])
    assert one["group"] == other["group"]


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4, unique=True), max_size=6))
def test_groups_are_what_hangs_together(talks):
    """Two conversations have one group exactly when a chain of shared turns leads from one to the other."""
    groups = _Groups()
    for n, turns in enumerate(talks):
        groups.add(f"talk-{n}", turns)
    reached = [{n} for n in range(len(talks))]
    for _ in talks:
        for n, turns in enumerate(talks):
            for m, others in enumerate(talks):
                if set(turns) & set(others):
                    reached[n] |= reached[m]

    for n in range(len(talks)):
        for m in range(len(talks)):
            assert (groups.of(f"talk-{n}") == groups.of(f"talk-{m}")) == (m in reached[n])


def test_a_store_that_lists_nothing_is_refused():
    """Rated turns are looked for in all conversations, so the store has to list them."""

    class Silent:
        """A store that lists nothing."""

        def append(self, conversation, records, *, expect=None):
            raise AssertionError

        def read(self, conversation, after=0):
            return []

    with pytest.raises(errors.StoreUnsupported):
        list(ledger.rated(Silent()))


# -- training and test -----------------------------------------------------------------------------


def row(group, n=0):
    return {"conversation": f"{group}-{n}", "group": group, "n": n}


def test_a_group_is_on_one_side_and_stays_there():
    """Rows of one group go together; adding rows moves none, and another seed is another split."""
    rows = [row(f"g{n % 200}", n) for n in range(600)]
    train, test = ledger.train_test(rows, 0.25, seed=7)
    more = ledger.train_test([*rows, *(row(f"h{n}") for n in range(300))], 0.25, seed=7)

    assert not {r["group"] for r in train} & {r["group"] for r in test}
    assert sorted(train + test, key=lambda r: r["n"]) == rows
    assert 30 < len({r["group"] for r in test}) < 70
    assert all(r in more.train for r in train)
    assert all(r in more.test for r in test)
    assert ledger.train_test(rows, 0.25, seed=7) == (train, test)
    assert ledger.train_test(rows, 0.25, seed=8) != (train, test)


def test_rows_are_kept_together_by_what_is_said():
    """By any key, by a function, and by the conversation where no group is told."""
    rows = [{"conversation": "a", "kind": n % 2} for n in range(8)]

    assert [] in ledger.train_test(rows)
    for by in ("kind", lambda r: r["kind"]):
        sides = ledger.train_test(rows, 0.5, by=by)
        assert not {r["kind"] for r in sides.train} & {r["kind"] for r in sides.test}
    with pytest.raises(KeyError, match="no row has 'label'; the first has conversation"):
        ledger.train_test(rows, by="label")
    with pytest.raises(TypeError, match="no name of a group"):
        ledger.train_test([{"conversation": "a", "labels": []}], by="labels")
    assert (rows, []) == ledger.train_test(rows, 0)
    assert ([], rows) == ledger.train_test(rows, 1)


LONE: dict[str, list[dict[str, Any]]] = {
    "none": [{"n": n, "conversation": None} for n in range(200)],
    "no key": [{"n": n} for n in range(200)],
    "object": [{"n": n, "what": {n}} for n in range(200)],
}


@pytest.mark.parametrize("kind", LONE)
@pytest.mark.parametrize("seed", range(3))
def test_a_row_that_belongs_to_nothing_is_a_group_of_its_own(kind, seed):
    """Rows without a conversation, and those of which a function says None, are split one by one, by what they say."""
    rows = LONE[kind]
    train, test = ledger.train_test(rows, 0.2, seed=seed)

    assert 20 < len(test) < 65
    assert sorted(train + test, key=lambda r: r["n"]) == rows
    assert (train, test) == ledger.train_test([dict(r) for r in rows], 0.2, seed=seed)
    assert (train, test) == ledger.train_test(rows, 0.2, seed=seed, by=lambda _: None)
    assert [] in ledger.train_test([rows[0], dict(rows[0])], 0.2, seed=seed)


def test_some_rows_may_belong_to_nothing():
    """Where some rows have the key, those that have not are groups of their own, and the others keep together."""
    rows = [{"n": n, "kind": n % 3} for n in range(60)] + [{"n": n} for n in range(60, 160)]
    train, test = ledger.train_test(rows, 0.5, by="kind")

    assert not {r.get("kind", -1) for r in train} & {r.get("kind", -2) for r in test}
    assert 25 < sum("kind" not in r for r in test) < 75


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(), st.floats(0, 1))
def test_no_side_is_empty_of_two_groups(groups, seed, share):
    """Of two groups or more each side has one; all rows of a group are on one side."""
    rows = [{"conversation": g, "n": n} for n, g in enumerate(groups)]
    train, test = (
        {r["conversation"] for r in side} for side in ledger.train_test(rows, share, seed=seed)
    )

    assert not train & test
    assert train | test == set(groups)
    if len(set(groups)) > 1 and 0 < share < 1:
        assert train
        assert test


@pytest.mark.parametrize("test", [-0.1, 1.1, 20])
def test_a_share_is_a_fraction(test):
    """A share that is none is refused."""
    with pytest.raises(ValueError, match="fraction"):
        ledger.train_test([], test)


# -- files -----------------------------------------------------------------------------------------

EXACT = {
    "big": BIG,
    "small": 5e-324,
    "third": 1 / 3,
    "text": "\u2028\x85é",
    "none": None,
    "list": [[]],
}


@pytest.fixture
def rows(store):
    """Two rated turns, one with values that are hard to keep."""
    chat = ledger.open("a", store=store)
    chat.record({"message": "q"}, {"result": EXACT}).rate(BIG).label("good")
    chat.record("r", "x").rate(0.1)
    return list(ledger.rated(store))


def test_lines_keep_every_value(rows, tmp_path):
    """Each row is one line for every reader, and comes back as it was; a file is never written over."""
    path = tmp_path / "rows.jsonl"
    assert 2 == ledger.write_jsonl(rows, path)

    assert rows == [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    with pytest.raises(FileExistsError):
        ledger.write_jsonl([], path)


def test_parquet_keeps_every_value(rows, tmp_path):
    """What is plain is a column of its type; the rest is JSON text that says exactly what was there."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    assert 2 == ledger.write_parquet(iter(rows), path)
    table = parquet.read_table(path)
    in_json = json.loads(table.schema.metadata[b"json"])
    back = [
        {key: json.loads(value) if key in in_json else value for key, value in one.items()}
        for one in table.to_pylist()
    ]

    assert rows == back
    assert float(BIG) == back[0]["rating"] == rows[0]["rating"]
    assert ["good"] == back[0]["labels"]
    assert "double" == str(table.schema.field("rating").type)
    assert ["rows.parquet"] == os.listdir(tmp_path)


def test_parquet_of_no_row_has_its_columns(rows, tmp_path):
    """Without a row the columns are those that rows have."""
    parquet = pytest.importorskip("pyarrow.parquet")
    ledger.write_parquet([], tmp_path / "none.parquet")

    assert list(rows[0]) == parquet.read_schema(tmp_path / "none.parquet").names


@pytest.mark.parametrize("second", [{"other": 1}, {"turn": 7, "n": 1}, {"turn": "b"}])
def test_parquet_refuses_rows_of_another_form(second, tmp_path):
    """A row with other keys, or a number where a name stands, is refused, and no file is left."""
    pytest.importorskip("pyarrow.parquet")
    with pytest.raises(ValueError, match="row"):
        ledger.write_parquet([{"turn": "a", "n": 1}, second], tmp_path / "rows.parquet")

    assert [] == os.listdir(tmp_path)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    """Who has no pyarrow is told what to install."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)

    with pytest.raises(ModuleNotFoundError, match=r"turn-ledger\[parquet\]"):
        ledger.write_parquet([], tmp_path / "rows.parquet")


def test_a_merge_is_a_row_of_what_made_it(store):
    """Its program is the function that merged, beside the answers that it read; the turn's program has no such row."""

    def combine(answers):
        return answers[0]["result"]

    chat = ledger.open("a", solve, store=store)
    one, two = chat.tries("why", settings=[{"lm": "x"}, {"lm": "y"}])
    merged = chat.merge([one, two], combine)
    merged.rate(1)
    one.rate(0)

    (row,) = ledger.rated(store, program="combine")

    assert [one.id] == [row["turn"] for row in ledger.rated(store, program="solve")]
    assert (merged.id, merged.made_by) == (row["turn"], row["made_by"])
    assert [row] == list(ledger.rated(store, program=merged.made_by["version"]))
    assert ({"problem": "why"}, {"result": "WHY"}) == (row["inputs"], row["outputs"])
    assert ["x", "y"] == [read["model"] for read in row["reads"]]
    assert row["reads"][0] == {
        "turn": one.id,
        "model": "x",
        "inputs": {"problem": "why"},
        "outputs": {"result": "WHY"},
        "result": "WHY",
    }
    (other,) = ledger.rated(store, program="solve")
    assert (None, []) == (other["made_by"], other["reads"])
    json.dumps(row)
