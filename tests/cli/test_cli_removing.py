"""The commands that remove: what they ask, print, and refuse."""

import json
from pathlib import Path

import pytest

import ledger


@pytest.fixture
def alex(tmp_path):
    """A conversation of two turns, the first with a canary and an attachment."""
    store = ledger.FolderStore(tmp_path / "store")
    sha256, size = store.blobs.put(b"picture")
    named = {"$attachment": {"sha256": sha256, "media_type": "image/png", "size": size}}
    part = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": named}
    chat = ledger.open("alex", store=store)
    chat.record("canary\x1b[31m", "1", messages=[{"role": "user", "parts": [part]}])
    chat.record("two", "2")
    return chat


def test_forget_prints_the_receipt(cli, alex):
    """With --yes the turn is forgotten, and the receipt says what went and what is not promised."""
    code, out, _ = cli("forget", "alex", "1", "--yes")

    assert code == 0
    assert f"turn {alex.turn(1).id} of alex is forgotten" in out
    assert "records: 1 ended, 1 turn" in out
    assert "attachment: " in out
    assert "not promised:" in out
    assert "canary" not in out + cli("log", "alex")[1]
    assert "[erased]" in cli("tree", "alex")[1]


def test_forget_as_json(cli, alex):
    """As JSON the receipt has every field."""
    code, out, _ = cli("forget", "alex", "1", "--yes", "--json")

    told = json.loads(out)
    assert (code, told["turn"]) == (0, alex.turn(1).id)
    assert told["erased"]["records"] == {"turn": 1, "ended": 1}
    assert told["shown_to"] == [alex.turn(2).id]
    assert told["not_promised"]


def test_delete_wants_the_whole_id(cli, alex):
    """A beginning of an id removes nothing; the error names the id, or how many begin so."""
    code, out, err = cli("delete", "al", "--yes")
    assert (code, out) == (3, "")
    assert "'al' begins 'alex' alone; this takes the whole id" in err

    assert cli("add", "alan", "q", "a")[0] == 0
    code, _, err = cli("delete", "al", "--yes")
    assert code == 3
    assert "2 conversations" in err
    assert cli("delete", "bea", "--yes")[2].count("no conversation 'bea'") == 1
    assert alex.turn(1)


@pytest.mark.parametrize("given", ["n\n", "", "\n"])
@pytest.mark.parametrize("command", [("forget", "alex", "1"), ("delete", "alex")])
def test_without_a_yes_nothing_changes(cli, alex, command, given):
    """Who does not say yes, or is nobody, has changed nothing; exit code 4."""
    before = alex.store.raw("alex")

    code, out, err = cli(*command, given=given)

    assert (code, out) == (4, "")
    assert "nothing was changed" in err
    assert "\x1b[31m" not in err
    assert alex.store.raw("alex") == before


def test_a_yes_is_asked_for(cli, alex):
    """The question goes to the error stream, so that --json prints only JSON."""
    code, out, err = cli("forget", "alex", "1", "--json", given="y\n")

    assert (code, json.loads(out)["conversation"]) == (0, "alex")
    assert "This cannot be undone" in err


def test_delete_names_what_went(cli, alex):
    """A deletion names the files and attachments that went; then the conversation is unknown."""
    code, out, _ = cli("delete", "alex", "--yes")

    assert code == 0
    assert "conversation alex is deleted" in out
    assert "file: conversations/alex.jsonl" in out
    assert "attachment: " in out
    assert "brings it back, turns forgotten in it included" in out
    assert cli("delete", "alex", "--yes")[0] == 3
    assert cli("forget", "alex", "1", "--yes")[0] == 3


def test_delete_as_json(cli, alex):
    """As JSON a deletion has every field."""
    told = json.loads(cli("delete", "alex", "--yes", "--json")[1])

    assert told["found"] is True
    assert told["files"] == ["conversations/alex.jsonl"]
    assert len(told["attachments"]) == 1
    assert "Importing one of them" in told["not_promised"][1]


def test_what_was_deleted_comes_back_with_an_import(cli, tmp_path):
    """As the help, the answer and the docs say: an import brings it back, a forgotten turn included."""
    export = str(Path(__file__).parents[2] / "docs" / "tutorial" / "chatgpt-export.json")
    id = "6955bd00-aaaa-4bbb-8ccc-000000000001"
    cli("import", export)
    cli("forget", id, "2", "-y")
    (tmp_path / "store" / "imports.json").unlink(missing_ok=True)
    cli("import", export)
    assert "[erased]" in cli("show", id, "2")[1]

    cli("delete", id, "-y")
    cli("import", export)

    assert "[erased]" not in cli("show", id, "2")[1]


def test_a_forgotten_turn_is_told_from_an_abandoned_one(cli, alex):
    """show, log, tree and the exports say erased, for people and for programs."""
    cli("forget", "alex", "1", "-y")
    assert "[erased]" in cli("show", "alex", "1")[1]
    assert "[erased]" in cli("log", "alex")[1]
    assert json.loads(cli("show", "alex", "1", "--json")[1])["erased"] is True
    assert [t["erased"] for t in json.loads(cli("tree", "alex", "--json")[1])["turns"]] == [
        True,
        False,
    ]
    assert "No answer: erased" in cli("export", "alex", "-f", "markdown")[1]
