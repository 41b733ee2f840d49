"""`turn-ledger repair`: what it mends, what it says, how it ends."""

import json
import os
import shutil
from pathlib import Path

import pytest

import ledger


@pytest.fixture
def damaged(tmp_path):
    """A conversation of two turns, its backup and its export, then damaged in the middle.

    Returns: the log, the backup, the export, what the log was and what it is.
    """
    store = ledger.FolderStore(tmp_path / "store")
    chat = ledger.open("alex", store=store)
    chat.record("one", "1")
    chat.record("two", "2")
    log = tmp_path / "store" / "conversations" / "alex.jsonl"
    whole = log.read_bytes()
    backup, export = tmp_path / "alex.jsonl", tmp_path / "alex.json"
    backup.write_bytes(whole)
    export.write_bytes(ledger.export_json(chat))
    log.write_bytes(whole.replace(b'"one"', b'"0ne"'))
    return log, backup, export, whole, log.read_bytes()


@pytest.mark.parametrize("which", [1, 2])
def test_damage_is_mended_from_a_copy_and_undone(cli, damaged, which):
    """A backup of the log and an export of it both serve; undoing brings the damage back."""
    log, whole, broken = damaged[0], damaged[3], damaged[4]

    code, out, _ = cli("repair", "alex", "--from", str(damaged[which]))
    assert code == 0
    assert "from the copy" in out
    assert "kept in alex.repaired-1" in out
    assert "alex: ok" in out
    assert log.read_bytes() == whole

    code, out, _ = cli("repair", "alex", "--undo")
    assert code == 8
    assert "put back" in out
    assert log.read_bytes() == broken


def test_what_is_left_is_told_by_the_exit_code(cli, damaged):
    """Without a copy the text cannot be proven: nothing changes, and the code says damage."""
    code, out, _ = cli("repair", "alex")
    assert code == 8
    assert "nothing that can be mended" in out
    assert damaged[0].read_bytes() == damaged[4]


def test_a_dry_run_changes_nothing(cli, damaged):
    """What would be mended is told, as JSON too, and the log stays."""
    code, out, _ = cli("repair", "alex", "--from", str(damaged[1]), "--dry-run", "--json")
    told = json.loads(out)
    assert code == 8
    assert [change["why"] for change in told["changes"]] == ["copy"]
    assert (told["record"], told["damaged"]) == (None, True)
    assert damaged[0].read_bytes() == damaged[4]


def test_a_whole_log_is_left_alone(cli, damaged):
    """Nothing to do is no error."""
    damaged[0].write_bytes(damaged[3])
    assert cli("repair", "alex")[0] == 0


def test_copies_that_cannot_serve_are_refused(cli, damaged, tmp_path):
    """A missing file and an export of another conversation are told; the log stays."""
    other = ledger.open("bea", store=ledger.MemoryStore())
    other.record("one", "1")
    foreign = tmp_path / "bea.json"
    foreign.write_bytes(ledger.export_json(other))
    for path, said in ((tmp_path / "none", "No such file"), (foreign, "an export of bea")):
        code, _, err = cli("repair", "alex", "--from", str(path))
        assert code == 6
        assert said in err
    assert cli("repair", "alex", "--undo", "--dry-run")[0] == 2
    assert cli("repair", "nobody")[0] == 3
    assert damaged[0].read_bytes() == damaged[4]


def test_a_copy_that_is_no_file_is_refused(cli, damaged, tmp_path):
    """A pipe is not waited for, and a device not read; a folder that holds no such conversation is told as one."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        code, _, err = cli("repair", "alex", "--from", str(path))
        assert code == 6
        assert "neither a file nor a folder" in err
    code, _, err = cli("repair", "alex", "--from", str(tmp_path))
    assert code == 6
    assert "holds no alex" in err
    assert "alex.jsonl" in err
    assert cli("repair", "alex", "--from", "")[0] == 2
    assert damaged[0].read_bytes() == damaged[4]


def cut_out(log, whole, first, last):
    """Remove lines of a log."""
    lines = whole.splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:first] + lines[last:]))


def test_a_store_is_a_copy(cli, damaged, tmp_path):
    """A folder, and a database, as --store takes them: lines that are lost come back, and go with undoing."""
    log, whole = damaged[0], damaged[3]
    log.write_bytes(whole)
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    base = f"sqlite:///{tmp_path / 'backup.db'}"
    assert cli("copy", str(tmp_path / "backup"), base, "--all")[0] == 0
    cut_out(log, whole, 1, 3)
    broken = log.read_bytes()
    for copy in (str(tmp_path / "backup"), base):
        code, out, _ = cli("repair", "alex", "--from", copy)
        assert code == 0, out
        assert "in place of 0 at byte" in out
        assert log.read_bytes() == whole
        assert cli("repair", "alex", "--undo")[0] == 8
        assert log.read_bytes() == broken


def test_what_is_left_is_told_with_its_reason(cli, damaged, tmp_path):
    """No copy, one that is too old, one that is damaged too, one of another conversation: each has its next step."""
    log, backup, whole = damaged[0], damaged[1], damaged[3]
    lines = whole.splitlines(keepends=True)
    other = ledger.open("bea", store=ledger.FolderStore(tmp_path / "other"))
    other.record("one", "1")
    bea = tmp_path / "other" / "conversations" / "bea.jsonl"
    cut_out(log, whole, 2, 4)
    assert "--from a log of a backup" in cli("repair", "alex")[1]
    for copy, said in (
        (b"".join(lines[:3]), "a newer copy may"),
        (b"".join(lines[:1]), "a newer copy may"),
        (whole.replace(lines[2], b"?" + lines[2][1:]), "damaged there too"),
        (bea.read_bytes(), "no line of this log"),
    ):
        backup.write_bytes(copy)
        code, out, _ = cli("repair", "alex", "--from", str(backup))
        assert code == 8
        assert said in out
        assert "`import` of an export" in out


def test_records_missing_at_the_end_are_told(cli, damaged):
    """They are no damage, and are not brought back; what to do is said."""
    log, backup, whole = damaged[0], damaged[1], damaged[3]
    cut_out(log, whole, 3, 99)
    short = log.read_bytes()
    code, out, _ = cli("repair", "alex", "--from", str(backup))
    assert code == 0
    assert "2 records more" in out
    assert log.read_bytes() == short
    told = json.loads(cli("repair", "alex", "--from", str(backup), "--json")[1])
    assert (told["further"], told["left"], told["changes"]) == (2, [], [])
