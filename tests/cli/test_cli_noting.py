"""diff, rate, label, title; what tree and show say of it; merges that put answers together."""

import json

import pytest

import ledger
from ledger.cli import comparing

EVIL = "\x1b]0;owned\x07\u202e"


@pytest.fixture
def alex(tmp_path):
    """A conversation of three turns, two of them beside each other."""
    chat = ledger.open("alex", store=tmp_path / "store")
    first = chat.record("What is 1/2 + 1/3?", "5/6")
    chat.record("Why?", "Six parts.", model="a")
    chat.continue_from(first).record("Why?", "Six pieces.", model="b")
    return chat


def test_a_turn_is_rated_and_the_rating_taken_back(cli, alex):
    """A number, also a negative one, yes and no; who and why; the turn is shown with its ratings."""
    code, out, _ = cli("rate", "alex", "2", "4.5", "--by", "maria", "--why", "short")
    assert code == 0
    assert out.splitlines()[0].startswith(f"2  {alex.turn(2).id}")
    assert "\n  rated 4.5 by maria (" in out
    assert "): short\n" in out
    assert cli("rate", "alex", "2", "-1")[0] == 0
    assert cli("rate", "alex", "2", "no", "--by", "tom")[0] == 0
    assert cli("rate", "alex", "2", "5", "--by", "maria")[0] == 0

    given = [(r.value, r.by) for r in alex.turn(2).ratings]
    assert given == [(-1, None), (False, "tom"), (5, "maria")]
    cli("rate", "alex", "2", "none", "--by", "maria")
    cli("rate", "alex", "2", "none", "--by", "tom")
    _, out, _ = cli("rate", "alex", "2", "none")
    assert out.splitlines()[1:] == ["  neither rated nor labelled"]


def test_a_rating_is_told_to_programs(cli, alex):
    """With --json the turn is printed as show prints it, ratings and labels in it."""
    rated = json.loads(cli("rate", "alex", "2", "yes", "--by", "maria", "--json")[1])
    labelled = json.loads(cli("label", "alex", "2", "gold", "--json")[1])
    shown = json.loads(cli("show", "alex", "2", "--json")[1])

    (rating,) = rated["ratings"]
    assert (rating["value"], rating["by"], rating["why"]) == (True, "maria", None)
    assert rating["at"].endswith("Z")
    assert labelled["labels"] == ["gold"]
    assert shown == labelled


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rate", "alex", "2", "five"], "a number, yes, no or none"),
        (["rate", "alex", "2", "nan"], "finite"),
        (["rate", "alex", "2", "1", "--by", ""], "by is empty"),
        (["rate", "alex", "2", "1", "--bye", "x"], "--bye"),
        (["rate", "alex", "2"], "'value'"),
        (["label", "alex", "2", ""], "a label is empty"),
        (["label", "alex", "x" * 101], "at most 100"),
        (["label", "alex", "2", "to", "publish"], "goes in quotes"),
        (["merge", "alex", "2", "3"], "give one of"),
        (["merge", "alex", "2", "3", "--majority", "--three-way"], "give one of"),
        (["merge", "alex", "2", "3", "--pick", "2", "--field", "x"], "--field is for"),
        (["tree", "alex", "--mermaid", "--json"], "--mermaid"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_wrong_usage_says_what_is_wrong(cli, alex, arguments, told):
    """One sentence, exit code 2, and nothing is recorded."""
    before = alex.store.read("alex")
    code, out, err = cli(*arguments)

    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1
    assert alex.store.read("alex") == before


def test_what_is_not_there_is_not_found_and_what_was_erased_is_refused(cli, alex):
    """Exit codes 3 and 4, as of the other commands."""
    alex.forget(2)
    for command in (
        ["rate", "alex", "9", "1"],
        ["rate", "nobody", "1", "1"],
        ["diff", "alex", "1", "9"],
    ):
        assert cli(*command)[0] == 3
    for command in (["label", "nobody", "x"], ["title", "nobody"]):
        assert cli(*command)[0] == 3
    for command in (["rate", "alex", "2", "1"], ["label", "alex", "2", "x"]):
        code, _, err = cli(*command)
        assert (code, "forgotten" in err) == (4, True)


def test_labels_are_put_on_and_taken_off(cli, alex):
    """On a turn by its number or id, on the conversation without one; --remove takes it off."""
    assert "\n  labels: gold\n" in cli("label", "alex", "3", "gold")[1]
    assert (
        "\n  labels: gold, to publish\n"
        in cli("label", "alex", alex.turn(3).id[-8:], "to publish")[1]
    )
    assert "labels: to publish" in cli("label", "alex", "3", "gold", "--remove")[1]
    assert cli("label", "alex", "fractions")[1] == "alex\n  labels: fractions\n"

    assert alex.turn(3).labels == ["to publish"]
    assert alex.labels == ["fractions"]
    removed = json.loads(cli("label", "alex", "fractions", "--remove", "--json")[1])
    assert removed == {"id": "alex", "labels": []}
    assert cli("label", "alex", "other", "--remove")[1] == "alex\n  labels: none\n"


def test_the_title_is_shown_and_set(cli, alex):
    """Without a text it is shown, with one set."""
    assert cli("title", "alex")[1] == "no title yet\n"
    assert cli("title", "alex", "Fractions")[1] == "Fractions\n"
    assert json.loads(cli("title", "alex", "--json")[1]) == {"id": "alex", "title": "Fractions"}
    assert alex.title == "Fractions"
    code, out, err = cli("title", "alex", "two\nlines")
    assert (code, out) == (2, "")
    assert "a title is one line" in err
    assert alex.title == "Fractions"


def test_the_tree_shows_ratings_and_labels(cli, alex):
    """Ratings behind a star, labels behind a hash, those of the conversation above; within the width."""
    alex.turn(2).rate(4, by="maria").rate(False).label("gold")
    alex.label("fractions")

    lines = cli("tree", "alex")[1].splitlines()
    assert lines[0] == "alex · 3 turns, 2 heads · #fractions"
    assert lines[2] == "├─ 2  Why? → Six parts.  (a) ★ 4, no #gold"
    assert max(map(len, lines)) <= 80
    told = json.loads(cli("tree", "alex", "--json")[1])
    assert told["labels"] == ["fractions"]
    assert [rating["value"] for rating in told["turns"][1]["ratings"]] == [4, False]
    assert told["turns"][1]["labels"] == ["gold"]
    assert (
        cli("tree", "alex", "--mermaid")[1]
        == ledger.open("alex", store=alex.store).tree().mermaid() + "\n"
    )


def test_two_turns_are_compared(cli, alex):
    """In a pipe differences stand in brackets; --json has them as data."""
    code, out, _ = cli("diff", "alex", "2", alex.turn(3).id)

    assert (code, out.splitlines()) == (0, str(alex.diff(2, 3)).splitlines())
    assert "< Six [-parts-]{+pieces+}." in out
    told = json.loads(cli("diff", "alex", "2", "3", "--json")[1])
    assert told["outputs"]["result"]["pieces"][1] == {"op": "removed", "text": "parts"}
    assert told == alex.diff(2, 3).to_dict()


def test_a_terminal_gets_colours_and_nothing_else(alex):
    """Only our own colours steer it; each line is coloured by itself; blanks that changed are seen."""
    alex.record(f"evil {EVIL}", f"x {EVIL}\ny {EVIL}", parent=None)
    text = "\n".join(alex.diff(2, 4).told(comparing.coloured, width=60))

    assert "\x1b[31mSix parts.\x1b[0m" in text
    left = text.replace("\x1b[31m", "").replace("\x1b[32m", "").replace("\x1b[0m", "")
    assert all(c.isprintable() or c == "\n" for c in left)
    assert all(line.count("\x1b[3") == line.count("\x1b[0m") for line in text.split("\n"))
    assert comparing.coloured("removed", "\n") == "\x1b[31m↵\x1b[0m\n"
    assert comparing.coloured("added", "  ") == "\x1b[32m··\x1b[0m"


def test_merges_by_majority_and_three_way(cli, alex, tmp_path):
    """Votes are counted, changes put together; what is tied or in conflict is refused and not recorded."""
    alex.record("Why?", "six PIECES.", parent=1)
    assert "< Six pieces." in cli("merge", "alex", "3", "2", "4", "--majority")[1]
    made = [
        ({"a": 1, "b": 1}, None),
        ({"a": 2, "b": 1}, 1),
        ({"a": 1, "b": 2}, 1),
        ({"a": 3, "b": 1}, 1),
    ]
    plan = ledger.open("plan", store=tmp_path / "store")
    for outputs, parent in made:
        plan.record("x", outputs, parent=parent)
    assert cli("merge", "plan", "2", "3", "--three-way")[0] == 0
    assert plan.turn(5).outputs == {"a": 2, "b": 2}
    assert cli("merge", "plan", "2", "3", "4", "--majority", "--field", "b")[0] == 0
    before = plan.store.read("plan")

    code, _, err = cli("merge", "plan", "2", "4", "--three-way")
    assert (code, "otherwise: a;" in err, err.count("\n")) == (4, True, 1)
    code, _, err = cli("merge", "plan", "2", "4", "--majority", "--json")
    assert (code, "1 vote each" in json.loads(err)["error"]["message"]) == (4, True)
    assert plan.store.read("plan") == before


def test_nothing_that_was_said_of_a_turn_steers_the_terminal(cli, alex):
    """Names, reasons, labels and titles of other writers are spelled out, and make no lines of their own."""
    evil = f"{EVIL}\n  rated 5 by admin"
    rating = {"value": 1, "by": evil, "why": evil}
    alex.keep_entry("ledger", "rating", rating, turn=2)
    for turn in (2, None):
        alex.keep_entry("ledger", "label", {"label": evil, "on": True}, turn=turn)
    alex.keep_entry("ledger", "title", evil)

    for command in (
        ["show", "alex", "2"],
        ["tree", "alex"],
        ["tree", "alex", "--mermaid"],
        ["diff", "alex", "2", "3"],
        ["rate", "alex", "2", "2"],
        ["label", "alex", "x"],
        ["title", "alex"],
    ):
        code, out, _ = cli(*command)
        assert code == 0
        assert all(c.isprintable() or c == "\n" for c in out)
        assert not [line for line in out.splitlines() if line.startswith("  rated 5")]
