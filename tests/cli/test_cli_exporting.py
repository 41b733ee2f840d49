"""Conversations written out on the command line: formats, branches, all of a store, rated turns."""

import json
import os

import pytest

import ledger


@pytest.fixture
def trip(cli, tmp_path):
    """A conversation with two answers to its second question, rated; and another one."""
    chat = ledger.open("trip", store=tmp_path / "store")
    first = chat.record("Where?", "Porto.")
    chat.record("How?", "By train.").rate(1).label("good")
    chat.continue_from(first).record("How?", "By plane.").rate(0)
    ledger.open("other", store=tmp_path / "store").record("Hi", "Hello")
    return chat


def rows(out):
    return [json.loads(line) for line in out.splitlines()]


def test_branches_become_lines(cli, trip):
    """The head's branch, the one through a turn, or all."""
    command = ["export", "trip", "--format", "openai-chat"]

    assert ["By plane."] == [row["messages"][-1]["content"] for row in rows(cli(*command)[1])]
    assert ["By train."] == [
        row["messages"][-1]["content"] for row in rows(cli(*command, "--turn", "2")[1])
    ]
    assert 2 == len(rows(cli(*command, "--branches", "all")[1]))


def test_all_conversations_go_into_one_file(cli, trip, tmp_path):
    """--all is every conversation of the store; several may be named; a file is never written over."""
    out = tmp_path / "all.json"
    assert cli("export", "--all", "--format", "open-webui", "-o", str(out))[0] == 0
    assert ["other", "trip"] == [chat["id"] for chat in json.loads(out.read_text())]
    assert cli("export", "--all", "-o", str(out))[0] == 2
    named = json.loads(cli("export", "trip", "oth")[1])
    assert ["trip", "other"] == [one["conversation"] for one in named]
    assert (tmp_path / "store").is_dir()


def test_what_fails_leaves_no_file(cli, trip, tmp_path):
    """An attachment that may not be read ends the export, and no half of a file is left."""
    kept = ledger.Attachment(b"as it was")
    trip.record({"file": kept}, "ok")
    (tmp_path / "store" / "attachments" / kept.sha256[:2]).chmod(0o777)
    before = sorted(os.listdir(tmp_path))
    code, _, err = cli("export", "--all", "-o", str(tmp_path / "out.json"))

    assert (5, before) == (code, sorted(os.listdir(tmp_path)))
    assert "[store-denied]" in err


def test_what_is_left_out_is_told_on_stderr(cli, trip, tmp_path):
    """Turns without an answer are counted, by what became of them; standard output has the lines alone."""

    def fails(message: str) -> str:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ledger.open("trip", fails, store=tmp_path / "store").send("What?")
    code, out, err = cli("export", "trip", "-f", "openai-chat", "--branches", "all")

    assert (0, 2) == (code, len(rows(out)))
    assert err == "turn-ledger: turns left out, without an answer (failed): 1\n"


def test_preferences(cli, trip):
    """Pairs of answers that were rated otherwise, in either spelling."""
    (pair,) = rows(cli("export", "--all", "-f", "preferences", "--pairs", "extremes")[1])
    (other,) = rows(cli("export", "trip", "-f", "preferences-openai")[1])

    assert ("By train.", "By plane.") == (
        pair["chosen"][0]["content"],
        pair["rejected"][0]["content"],
    )
    assert pair["chosen"] == other["preferred_output"]


def test_tools_are_given_in_a_file(cli, tmp_path):
    """Definitions of tools come from a JSON list; what is none is a users error."""
    chat = ledger.open("t", store=tmp_path / "store")
    call = {"type": "tool_call", "id": "c", "name": "add", "arguments": {}}
    said = [
        {"role": "user", "parts": [{"type": "text", "content": "1+1"}]},
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "2"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "2"}]},
    ]
    chat.record("1+1", "2", messages=said)
    tools = tmp_path / "tools.json"
    tools.write_text('[{"type": "function", "function": {"name": "add"}}]')
    command = ["export", "t", "-f", "openai-chat", "--tools", str(tools)]

    assert json.loads(tools.read_text()) == rows(cli(*command)[1])[0]["tools"]
    tools.write_text("{}")
    assert cli(*command)[0] == 2
    tools.unlink()
    assert cli(*command)[0] == 2


def test_rows_are_chosen_and_given_instructions(cli, trip):
    """By rating, label or model of the turn that they end with; that none fits is told."""
    command = ["export", "--all", "-f", "openai-chat", "--branches", "all"]
    _, out, _ = cli(*command, "--label", "good", "--min-rating", "1", "--instructions", "Rhyme.")
    (row,) = rows(out)

    assert {"role": "system", "content": "Rhyme."} == row["messages"][0]
    assert "By train." == row["messages"][-1]["content"]
    assert "nothing to write: no turn fits" in cli(*command, "--model", "x")[2]


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["trip", "--all"],
        ["trip", "-f", "open-webui", "--branches", "head"],
        ["trip", "-f", "sharegpt", "--branches", "all", "--turn", "1"],
        ["trip", "other", "-f", "sharegpt", "--turn", "1"],
        ["trip", "--pairs", "all"],
        ["trip", "--min-rating", "1"],
        ["trip", "-f", "open-webui", "--label", "x"],
        ["trip", "-f", "markdown", "--instructions", "x"],
    ],
)
def test_what_does_not_go_together_is_wrong_usage(cli, trip, args):
    """Options that contradict each other are refused before anything is written."""
    code, out, _ = cli("export", *args)
    assert (2, "") == (code, out)


def test_what_is_not_there_is_not_found(cli, trip):
    """A conversation or turn that is not there ends with 3."""
    assert cli("export", "trip", "nobody")[0] == 3
    assert cli("export", "trip", "-f", "sharegpt", "--turn", "9")[0] == 3


def test_rated_turns(cli, trip, tmp_path):
    """Rated turns as lines or as Parquet, by the end of the name; only those that are asked for."""
    assert [1, 0] == [row["rating"] for row in rows(cli("rated")[1])]
    assert [1] == [row["rating"] for row in rows(cli("rated", "--label", "good")[1])]
    assert [1] == [row["rating"] for row in rows(cli("rated", "--min-rating", "0.5")[1])]
    assert [] == rows(cli("rated", "--program", "other")[1])
    out = tmp_path / "rated.jsonl"
    assert cli("rated", "-o", str(out))[0] == 0
    assert list(ledger.rated(tmp_path / "store")) == rows(out.read_text())
    assert cli("rated", "-o", str(out))[0] == 2
    assert cli("rated", "-o", str(tmp_path / "rated.csv"))[0] == 2


def test_that_there_is_nothing_to_write_is_told(cli, tmp_path):
    """An export or a file of ratings without a row says why on stderr, and succeeds: the file is there."""
    out = tmp_path / "none.jsonl"
    (tmp_path / "store" / "conversations").mkdir(parents=True, mode=0o700)
    (tmp_path / "store").chmod(0o700)
    for command in (["export", "--all"], ["export", "--all", "-f", "sharegpt"]):
        code, _, err = cli(*command)
        assert (code, "nothing to write: no conversations in" in err) == (0, True)
    chat = ledger.open("alex", store=tmp_path / "store")
    chat.record("q", "a")
    code, told, err = cli("export", "--all", "-f", "preferences", "-o", str(out))
    assert (code, told, out.read_bytes()) == (0, "", b"")
    assert "nothing to write: no question has two answers" in err
    code, told, err = cli("rated")
    assert (code, told) == (0, "")
    assert "nothing to write: no turn is rated in" in err
    chat.head.rate(1)
    assert "no rated turn fits in" in cli("rated", "--label", "x")[2]
    assert cli("rated")[2] == cli("export", "alex", "-f", "openai-chat")[2] == ""


def test_rated_turns_as_parquet(cli, trip, tmp_path):
    """A name that ends in .parquet is a table."""
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "rated.parquet"
    assert cli("rated", "-o", str(out))[0] == 0
    assert [1.0, 0.0] == parquet.read_table(out).column("rating").to_pylist()
    assert cli("rated", "-o", str(out))[0] == 2


def test_what_is_damaged_is_told_by_name(cli, tmp_path):
    """An altered attachment is left out of `export --all`, and named with its conversation; the file is there."""
    store = ledger.FolderStore(tmp_path / "store")
    for id in "ab":
        chat = ledger.open(id, store=store)
        chat.record({"message": ["see", ledger.Attachment(id.encode(), name="n.txt")]}, "ok")
    path = next((tmp_path / "store" / "attachments").glob("*/*"))
    path.chmod(0o600)
    path.write_bytes(b"evil")
    out = tmp_path / "all.json"

    code, told, err = cli("export", "--all", "-o", str(out))

    assert (code, told, len(json.loads(out.read_text()))) == (0, "", 2)
    assert "attachment n.txt left out, its bytes were altered: 1" in err
