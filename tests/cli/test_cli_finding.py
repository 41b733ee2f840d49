"""list with filters, search and usage: what they print, and what they refuse."""

import json
from datetime import UTC, datetime, timedelta

import pytest

import ledger
from ledger.cli import finding
from tests.catalog.test_catalog import at, label, put, said, title
from tests.views import build


@pytest.fixture
def store(tmp_path):
    """Three conversations: one that waits, one that failed, one of two models."""
    found = ledger.FolderStore(tmp_path / "store")
    asked = (
        build.question("p#1", 1, id="q1", name="refund", input={"order": 7}, path="support/refund"),
    )
    put(found, "alex", *said("t", "Where is my parcel?", at(1)), title("Parcel"), label("post"))
    put(
        found,
        "alex",
        *said("u", "And now?", at(2), parent="t", model="n", usage={"in": 1200, "out": 3}),
    )
    put(
        found, "bea", build.turn("w"), {**build.waiting("w", asked), "at": at(3)}, title("A refund")
    )
    put(found, "carl", build.turn("x"), {**build.ended("x", "failed"), "at": at(4)})
    return found


def test_list_shows_titles_and_labels(cli, store):
    """Without options all conversations are listed, the newest first, labels behind the title."""
    code, out, _ = cli("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["id", "carl", "alex", "bea"]
    assert out.splitlines()[2].endswith("2      1  2026-01-02  Parcel #post")


def test_one_without_a_title_shows_what_was_asked_first(cli, store, monkeypatch):
    """Behind `>`, on one line, with its labels, cut to the terminal; a title takes its place."""
    long = "How far\nis it \x1b[2J to the post office, and when does it close " + "today " * 40
    put(store, "dora", *said("y", long, at(5)), label("post"))

    (line,) = [line for line in cli("list")[1].splitlines() if line.startswith("dora")]
    assert line.endswith("2026-01-05  > How far is it \\x1b[2J to the post offi… #post")
    assert max(map(len, cli("list")[1].splitlines())) <= 80
    (row,) = [row for row in json.loads(cli("list", "--json")[1]) if row["id"] == "dora"]
    assert (row["title"], len(row["preview"])) == (None, 100)
    assert row["preview"].startswith("How far is it \\x1b[2J to the post office")

    monkeypatch.setenv("COLUMNS", "40")
    assert "2026-01-05  > How far…\n" in cli("list")[1]
    ledger.open("dora", store=store).title = "Mail"
    assert "2026-01-05  Mail" in cli("list")[1]


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (["--state", "failed"], ["carl"]),
        (["--state", "failed", "--state", "waiting"], ["carl", "bea"]),
        (["--model", "n"], ["alex"]),
        (["--label", "post"], ["alex"]),
        (["--title", "REFUND"], ["bea"]),
        (["--since", "2026-01-02"], ["carl", "alex"]),
        (["--since", "2026-01-02T12:00:00Z", "--until", "2026-01-02"], ["alex"]),
        (["--since", "1h"], []),
        (["--limit", "1"], ["carl"]),
    ],
)
def test_list_is_narrowed(cli, store, given, ids):
    """Each option leaves out what does not fit it."""
    code, out, _ = cli("list", *given, "--json")
    assert (code, [row["id"] for row in json.loads(out)]) == (0, ids)


def test_list_says_what_it_left_out(cli, store):
    """A list that was cut says so; one that nothing fits says that."""
    assert cli("list", "--limit", "1")[1].splitlines()[-1] == "and more; --limit shows them"
    assert "no conversations fit in" in cli("list", "--label", "none")[1]


def test_what_waits_is_listed_with_its_questions(cli, store):
    """list --waiting names the turn and the exact call that a person is asked about."""
    code, out, _ = cli("list", "--waiting")
    assert code == 0
    assert out == (
        "bea 1  w  since 2026-01-03 12:00  A refund\n"
        '? refund {"order": 7}\n'
        "  question q1 · path support/refund\n"
    )
    (row,) = json.loads(cli("list", "--waiting", "--json")[1])
    assert (row["conversation"], row["turn"], row["ordinal"]) == ("bea", "w", 1)
    assert row["questions"][0]["name"] == "refund"
    assert cli("list", "--waiting", "--label", "post")[1] == "nothing waits for an answer\n"
    put(store, "bea", build.approval("w", "p#1", 1))
    assert "all is answered: turn-ledger resume bea 1" in cli("list", "--waiting")[1]


def test_search_shows_where_it_was_said(cli, store):
    """search prints conversation and number, as `show` takes them, and the words in their place."""
    code, out, _ = cli("search", "parcel where")
    assert code == 0
    assert out == "alex 1  (m)  2026-01-01 12:00  Parcel\n   [Where] is my [parcel]?\n"
    hits = json.loads(cli("search", "par*", "--json")[1])
    assert {(hit["conversation"], hit["ordinal"]) for hit in hits} == {("alex", 1), ("alex", None)}
    assert "nothing found for 'walrus'" in cli("search", "walrus")[1]
    assert json.loads(cli("search", '"', "--json")[1]) == []
    assert json.loads(cli("search", "now", "--in", "al", "--model", "m", "--json")[1]) == []
    assert cli("search", "now", "--in", "nobody")[0] == 3


def test_what_was_found_steers_no_terminal(cli, store):
    """Control characters in snippets, titles and labels are spelled out."""
    put(store, "dora", *said("y", "\x1b[2J walrus \u202e"), title("\x07"), label("\x1b]0;"))
    for command in (["search", "walrus"], ["list"]):
        out = cli(*command)[1]
        assert "\x1b" not in out
        assert "\\x07" in out


def test_usage_fits_the_terminal(cli, store, monkeypatch):
    """A table that is wider is told below each name, without what is 0; columns of nothing but 0 are left out."""
    usage = {"cache_read_tokens_of_all": 1234567, "none": 0, "in": 0}
    ledger.open("wide", store=store).record("x", "y", model="provider/model", usage=usage)
    assert "none" not in cli("usage")[1]
    monkeypatch.setenv("COLUMNS", "40")
    out = cli("usage")[1].splitlines()
    assert max(map(len, out)) <= 40
    at = out.index("provider/model  1 turn")
    assert out[at + 1] == "  cache_read_tokens_of_all 1,234,567"


def test_a_search_fits_the_terminal(cli, store):
    """A snippet is one line; a query that has no word in it says so; a limit is a number that can be."""
    ledger.open("wide", store=store).record("needle " + "z" * 300, "y")
    assert max(map(len, cli("search", "needle")[1].splitlines())) <= 80
    assert "no word in it" in cli("search", "'\"")[1]
    assert cli("search", "x", "--limit", "9" * 20)[0] == 2


def test_usage_is_a_table(cli, store):
    """usage prints turns and tokens by kind, and their sum; --json has the figures."""
    code, out, _ = cli("usage")
    assert code == 0
    assert out == (
        "model      turns     in  out\n"
        "n              1  1,200    3\n"
        "not known      2      0    0\n"
        "m              1      0    0\n"
        "together       4  1,200    3\n"
    )
    days = json.loads(cli("usage", "--by", "day", "--since", "2026-01-02", "--json")[1])
    assert days == [{"day": "2026-01-02", "turns": 1, "tokens": {"in": 1200, "out": 3}}]
    assert "2026-01-03" in cli("usage", "--by", "day", "--timezone", "Pacific/Kiritimati")[1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["list", "--since", "yesterday"], "no date (2026-01-31)"),
        (["list", "--since", "2026-01-01T10:00:00"], "has no zone"),
        (["list", "--since", "999999w"], "no date"),
        (["list", "--state", "asleep"], "asleep"),
        (["list", "--waiting", "--state", "done"], "--waiting says the state"),
        (["usage", "--timezone", "../etc"], "no time zone"),
        (["usage", "--by", "colour"], "colour"),
        (["search", "x", "--limit", "0"], "greater than or equal to 1"),
    ],
)
def test_wrong_options_are_refused(cli, store, given, told):
    """What cannot be meant is wrong usage, and says what can."""
    code, _, err = cli(*given)
    assert code == 2
    assert told in err


def test_moments():
    """A date begins at its midnight and ends with it; ago is from now."""
    assert finding.when("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert finding.when("2026-01-31", end=True) == datetime(2026, 2, 1, tzinfo=UTC) - timedelta(
        microseconds=1
    )
    ago = finding.when("24h")
    assert ago is not None
    assert abs(datetime.now(UTC) - ago - timedelta(days=1)) < timedelta(minutes=1)


def test_search_and_usage_are_of_labels_and_conversations(cli, store):
    """--label and --in narrow both; usage by label has no sum, as a turn may count twice."""
    put(store, "zoe", *said("z", "a parcel for me", at(5), usage={"in": 7}), label("user:zoe"))

    hits = json.loads(cli("search", "parcel", "--label", "user:zoe", "--json")[1])
    assert [hit["conversation"] for hit in hits] == ["zoe"]
    hits = json.loads(cli("search", "parcel", "--in", "zo", "--in", "alex", "--json")[1])
    assert {hit["conversation"] for hit in hits} == {"zoe", "alex"}
    (spent,) = json.loads(cli("usage", "--label", "user:zoe", "--json")[1])
    assert spent["tokens"] == {"in": 7}
    assert (
        json.loads(cli("usage", "--in", "zoe", "--by", "conversation", "--json")[1])[0][
            "conversation"
        ]
        == "zoe"
    )
    told = cli("usage", "--by", "label")[1]
    assert "no label" in told
    assert "together" not in told
