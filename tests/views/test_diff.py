"""Two turns compared: what differs is told, what is the same is not, whatever they said."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from ledger.errors import StoreCorrupt, TurnUnknown
from ledger.views import History
from ledger.views.diff import Diff, Saw, diff, difference, value_text
from tests.views import build

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from([0.5, 1.0])
    | st.text("ab \n", max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=8,
)
PICTURE = {"sha256": "ab" * 32, "media_type": "image/png", "size": 3, "name": "a.png"}


def compared(history: History, a: str = "b", b: str = "c") -> Diff:
    """The difference of two turns, at noon."""
    return diff(history, a, b, now=build.NOW)


def tried(one: dict[str, Any], other: dict[str, Any]) -> History:
    """A first turn, and two beside each other below it."""
    history = History.of(build.done("a"))
    for name, keys in (("b", one), ("c", other)):
        history.extend(build.done(name, "a", saw=[{"call": "a"}], **keys))
    return history


def test_what_is_the_same_is_left_out():
    """Two turns that say the same differ in nothing."""
    same = {"inputs": {"message": "why"}, "outputs": {"result": [1]}}
    found = compared(tried(same, {**same, "outputs": {"result": [1.0]}}))

    assert (found.inputs, found.outputs, found.state, found.model, found.settings) == (
        {},
        {},
        None,
        None,
        {},
    )
    assert found.same
    assert (found.base, found.saw) == ("a", Saw(["a"], [], []))
    assert "> the same" in str(found)
    assert "< the same" in str(found)


def test_each_difference_is_told_by_its_name():
    """Inputs, outputs and settings by name, with what one of them lacks; the model; words within values."""
    one = {
        "inputs": {"message": "why so", "tone": "dry"},
        "outputs": {"reasoning": "r", "result": "six parts"},
        "settings": {"lm": "small", "effort": 1},
    }
    other = {
        "inputs": {"message": "why not", "tone": "dry"},
        "outputs": {"result": "six pieces", "extra": {"n": [True]}},
        "settings": {"lm": "large", "effort": True},
    }
    found = compared(tried(one, other))

    assert list(found.inputs) == ["message"]
    assert list(found.outputs) == ["reasoning", "result", "extra"]
    assert (found.outputs["reasoning"].a, found.outputs["reasoning"].b) == ("r", UNSET)
    assert list(found.settings) == ["lm", "effort"]
    assert found.model is not None
    assert (
        str(found).splitlines()[2:]
        == [
            "  their branches part after turn 1",
            "> why [-so-]{+not+}",
            "reasoning < [-r-]",
            "< six [-parts-]{+pieces+}",
            "extra < {+{",
            '    "n": [',
            "      true",
            "    ]",
            "  }+}",
            "  model: [-small-] → {+large+}",
            "  effort: [-1-] → {+true+}",
            "  both saw turn 1",
        ]
        or str(found).splitlines()[2:]
    )
    assert not found.same


def test_it_is_json_data():
    """Turns are named by id, what one of them lacks is left out, and everything is plain JSON."""
    found = compared(tried({"outputs": {"result": "x"}}, {"outputs": {"other": None}})).to_dict()

    assert json.loads(json.dumps(found)) == found
    assert found["outputs"]["result"] == {"a": "x", "pieces": [{"op": "removed", "text": "x"}]}
    assert found["outputs"]["other"] == {"b": None, "pieces": [{"op": "added", "text": "null"}]}
    assert (found["a"]["turn"], found["b"]["ordinal"], found["base"]) == ("b", 3, "a")
    saw = {"both": ["a"], "only_a": [], "only_b": [], "without_a": {}, "without_b": {}}
    assert (found["saw"], found["same"]) == (saw, False)


def test_where_they_stand_is_told():
    """On one branch, on two, on lines of their own, and the same turn twice."""
    history = History.of([*build.line("a", "b"), *build.done("c")])

    assert compared(history, "a", "b").base == "a"
    assert "turn 2 comes after turn 1" in str(compared(history, "a", "b"))
    assert "turn 2 comes after turn 1" in str(compared(history, "b", "a"))
    assert compared(history, "b", "c").base is None
    assert "lines of their own" in str(compared(history, "b", "c"))
    assert "they are one turn" in str(compared(history, "b", "b"))


def test_what_each_saw_is_told():
    """Turns that both saw, and those that only one did; ids that are no turns here are left out."""
    history = History.of(build.line("a", "b"))
    history.extend(build.done("c", "b", saw=[{"call": "a"}, {"call": "b"}, {"call": "gone"}]))
    history.extend(build.done("d", "a", saw=[{"call": "a"}]))

    found = compared(history, "c", "d")
    assert found.saw == Saw(["a"], ["b"], [])
    assert "  both saw turn 1\n  only turn 3 saw turn 2" in str(found)
    assert "neither was shown" in str(compared(history, "a", "a"))


def test_states_are_compared():
    """A turn without an answer differs by its state from one that has one; two without have none to compare."""
    history = History.of(
        [*build.done("b", outputs={"result": "x"}), build.turn("c"), build.turn("d")]
    )
    history.extend([build.ended("d", "failed")])

    assert compared(history).state.pieces[0].text == "done"
    assert "state: [-done-] → {+interrupted+}" in str(compared(history))
    assert "< neither has an answer" in str(compared(history, "c", "d"))


def test_attachments_are_told_by_name_and_hash():
    """Two pictures of one name are not told as the same."""
    other = {**PICTURE, "sha256": "cd" * 32}
    found = difference({"$attachment": PICTURE}, ["see", {"$attachment": other}])

    assert value_text({"$attachment": PICTURE}) == "[a.png (image/png, 3 bytes) abababababab]"
    assert found is not None
    assert "cdcdcd" in "".join(piece.text for piece in found.pieces if piece.op == "added")


def test_damage_and_unknown_turns_are_refused():
    """What does not read cannot be compared, and says so; the other turns can."""
    history = tried({}, {"inputs": build.DAMAGED})
    with pytest.raises(StoreCorrupt):
        compared(history)
    with pytest.raises(TurnUnknown):
        compared(history, "a", "nobody")
    assert compared(history, "a", "b").same


def test_nothing_in_a_text_steers_a_terminal():
    """Control characters and direction marks are spelled out, in values, names, models and labels."""
    evil = "\x1b]0;owned\x07\u202e"
    one = {
        "inputs": {evil: evil},
        "outputs": {"result": evil},
        "settings": {"lm": evil, evil: evil},
    }
    history = tried(one, {"outputs": {"result": "x\ty\r\n" + evil}})
    data = {"label": evil, "on": True}
    history.extend([build.new("entry", plugin="ledger", entry="label", turn="b", data=data)])

    for text in (str(compared(history)), str(compared(history, "c", "b"))):
        assert all(c.isprintable() or c in "\n\t" for c in text)
        assert "owned" in text


def test_long_stretches_that_are_the_same_are_shortened_and_lines_broken():
    """How they begin and end is told, and how much was left out; lines are as long as they may be."""
    common = " ".join(f"word{n}" for n in range(400))
    found = compared(
        tried({"outputs": {"result": "A " + common}}, {"outputs": {"result": "B " + common}})
    )

    assert len(str(found)) < 600
    assert "characters the same" in str(found)
    told = found.told(lambda op, text: text, width=60)
    assert max(map(len, told)) <= 60
    assert "\n".join(found.told()) == str(found)


@given(JSON, JSON)
def test_the_pieces_make_up_both_values(a, b):
    """There is a difference exactly where the values differ as JSON, and its pieces are both texts whole."""
    found = difference(a, b)

    plain = [json.loads(json.dumps(value), parse_int=float) for value in (a, b)]
    assert (found is None) == (repr(plain[0]) == repr(plain[1]) or _same(*plain))
    if found is not None:
        sides = [
            "".join(p.text for p in found.pieces if p.op in ("same", op))
            for op in ("removed", "added")
        ]
        assert sides == [value_text(a), value_text(b)]


def _same(a, b):
    """Equal, but true is not 1; objects in any order."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and a == b
