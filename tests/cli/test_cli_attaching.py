"""Attachments on the command line: recorded with a turn, named where turns are shown, written out checked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ledger
from ledger import Attachment

CAT = b"\x89PNG\r\n\0cat\xff"


@pytest.fixture
def chat(cli, tmp_path):
    """A conversation of a turn with a picture among its inputs, and one with files beside its text."""
    (tmp_path / "notes.txt").write_text("notes")
    chat = ledger.open("alex", store=tmp_path / "store")
    chat.record(
        {"message": ["look", Attachment(CAT, name="cat.png")]}, {"result": Attachment(b"x")}
    )
    cli("add", "alex", "and?", "yes", "--attach", str(tmp_path / "notes.txt"))
    return chat


def test_turns_name_their_attachments(cli, chat):
    """Where a turn is printed each stands as its name, media type and size; nowhere as bytes."""
    _, log, _ = cli("log", "alex")
    _, heads, _ = cli("heads", "alex")
    _, tree, _ = cli("tree", "alex")
    _, markdown, _ = cli("export", "alex", "-f", "markdown")

    assert "> look [cat.png (image/png, 11 bytes)]" in log
    assert "< [2d711642b726… (application/octet-stream, 1 byte)]" in log
    assert "  attachment: notes.txt (text/plain, 5 bytes)" in log
    assert "and?" in heads
    assert "look [cat.png" in tree
    assert "> look [cat.png (image/png, 11 bytes)]" in markdown
    assert "- document: notes.txt" in markdown


def test_json_has_references(cli, chat):
    """For programs an attachment is the reference that stands in the log."""
    _, out, _ = cli("show", "alex", "1", "--json")
    reference = json.loads(out)["inputs"]["message"][1]

    assert reference == chat.attachment("cat.png").reference
    _, out, _ = cli("attachment", "alex", "--json")
    listed = json.loads(out)
    assert [each.get("name") for each in listed] == ["cat.png", None, "notes.txt"]
    assert listed[0] == reference["$attachment"]


def test_bytes_are_written_out(cli, chat, tmp_path):
    """By name, or by the beginning of the hash, into a new file; a list names them all."""
    out = tmp_path / "out.png"
    assert cli("attachment", "alex", "cat.png", "-o", str(out))[0] == 0
    assert out.read_bytes() == CAT
    digits = chat.attachment("notes.txt").sha256[:8]
    code, told, _ = cli("attachment", "alex", digits, "-o", str(tmp_path / "n"), "--json")
    assert (code, json.loads(told)["name"]) == (0, "notes.txt")

    _, listed, _ = cli("attachment", "alex")
    assert listed.splitlines()[0].endswith("  cat.png (image/png, 11 bytes)")
    code, _, err = cli("attachment", "alex", "cat.png", "-o", str(out))
    assert (code, "exists" in err) == (2, True)


def test_bytes_go_into_a_pipe(chat, tmp_path):
    """Without a file they go to standard output, as they are."""
    command = [sys.executable, "-m", "ledger", "--store", str(tmp_path / "store")]
    done = subprocess.run(
        [*command, "attachment", "alex", "cat.png"], capture_output=True, check=True
    )
    assert done.stdout == CAT


@pytest.mark.parametrize(
    ("bytes_now", "code", "told"),
    [(None, 3, "attachment-missing"), (b"something else", 5, "store-corrupt")],
)
def test_bytes_that_are_gone_or_bad_leave_no_file(cli, chat, tmp_path, bytes_now, code, told):
    """What is missing or altered is told as what it is, and leaves nothing behind; the turn is still shown."""
    sha256 = chat.attachment("cat.png").sha256
    path = Path(tmp_path, "store", "attachments", sha256[:2], sha256)
    path.unlink() if bytes_now is None else path.write_bytes(bytes_now)
    out = tmp_path / "out.png"

    found, _, err = cli("attachment", "alex", "cat.png", "-o", str(out))

    assert (found, told in err) == (code, True)
    assert not out.exists()
    assert "cat.png" in cli("show", "alex", "1")[1]


@pytest.mark.parametrize(
    ("command", "told", "wanted"),
    [
        (["attachment", "alex", "dog.png"], "names no attachment of it", 3),
        (["attachment", "alex", "-o", "x"], "goes with the name", 2),
        (["add", "alex", "a", "b", "--attach", "none.txt"], "none.txt: No such file", 2),
    ],
)
def test_what_is_not_there_is_refused(cli, chat, command, told, wanted):
    """A name that means none, and a file that is not there, are named; nothing is recorded."""
    code, _, err = cli(*command)
    assert (code, told in err) == (wanted, True), err
    assert len(chat.all_turns()) == 2


def test_a_conversation_without_any(cli, tmp_path):
    """It has none, and says so."""
    ledger.open("bare", store=tmp_path / "store").record("a", "b")
    assert cli("attachment", "bare")[1] == "no attachments\n"
