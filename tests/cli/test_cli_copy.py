"""Stores in a database on the command line: named by URL, and copied to and from."""

from __future__ import annotations

import os


def test_the_command_copies_both_ways(cli, tmp_path):
    """`copy FROM TO` takes folders and URLs, tells what it did, and fails for what it could not copy."""
    folder, url = str(tmp_path / "store"), f"sqlite:///{tmp_path}/chats.db"
    assert cli("add", "alex", "hi", "hello")[0] == 0
    code, told, _ = cli("copy", folder, url, "--all")
    assert (code, told) == (0, "alex: 3 of 3 records copied\n")
    assert cli("--store", url, "show", "alex", "1")[1] == cli("show", "alex", "1")[1]
    assert "alex: ok" in cli("verify", "--store", url)[1]
    assert cli("copy", url, str(tmp_path / "back"), "alex", "nobody")[0] == 3
    log = "conversations/alex.jsonl"
    assert (tmp_path / "back" / log).read_bytes() == (tmp_path / "store" / log).read_bytes()
    assert cli("copy", folder, url)[0] == 2
    assert cli("copy", folder, "http://x", "--all")[0] == 2
    assert cli("doctor", "--store", url)[0] == 2
    assert cli("repair", "alex", "--store", url)[0] == 2
    code, told, error = cli("list", "--store", f"sqlite:///{tmp_path}/none.db")
    assert (code, told) == (3, "")
    assert f"no store in sqlite:///{tmp_path}/none.db" in error
    assert not os.path.exists(tmp_path / "none.db")


def test_a_beginning_of_an_id_names_what_is_copied(cli, tmp_path):
    """`copy` takes the beginning of an id that only one has, as other commands do, and copies to the whole id."""
    folder, other = str(tmp_path / "store"), str(tmp_path / "other")
    for id in ("alex-1", "alex-2", "bea"):
        assert cli("add", id, "hi", "hello")[0] == 0

    code, told, error = cli("copy", folder, other, "b", "alex")

    assert (code, told) == (3, "bea: 3 of 3 records copied\n")
    assert "2 conversations" in error
    assert "begin with 'alex'" in error
    assert cli("--store", other, "show", "bea", "1")[0] == 0


def test_no_password_is_printed(cli):
    """What a command says of a database holds neither user nor password."""
    url = "postgresql://me:pa55-w0rd@127.0.0.1:1/nowhere"
    for command in (["show", "alex", "1"], ["verify"]):
        code, told, error = cli("--store", url, *command)
        assert code == 5, command
        assert "pa55" not in told + error
        assert "127.0.0.1" in error


def test_a_store_that_is_not_there_cannot_be_copied(cli, tmp_path):
    """It is an error that names it; neither store is made. One without conversations is copied in silence."""
    there, other = str(tmp_path / "none"), str(tmp_path / "other")

    code, told, error = cli("copy", there, other, "--all")
    assert (code, told) == (3, "")
    assert f"no store in {there}" in error
    assert cli("copy", there, other, "alex")[0] == 3
    assert not os.path.exists(there)
    assert not os.path.exists(other)
    os.makedirs(f"{there}/conversations", mode=0o700)
    assert cli("copy", there, other, "--all") == (0, f"no conversations in {there}\n", "")
    assert cli("copy", there, other, "--all", "--json") == (0, "[]\n", "")


def test_what_was_copied_is_counted(cli, tmp_path):
    """Attachments are counted with their conversation, and all together at the end; each once."""
    note = tmp_path / "note.txt"
    note.write_text("to keep")
    for id in ("alex", "bea"):
        assert cli("add", id, "see", "seen", "--attach", str(note))[0] == 0

    code, told, _ = cli("copy", str(tmp_path / "store"), str(tmp_path / "other"), "--all")

    assert (code, told.splitlines()) == (
        0,
        [
            "alex: 3 of 3 records and 1 attachment copied",
            "bea: 3 of 3 records copied",
            "together: 2 conversations, 6 of 6 records and 1 attachment",
        ],
    )
