"""Folders of every released format open, go on and are exported for ever, with all that they hold."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pytest

import ledger
from ledger.sources.exporting import export_json
from ledger.stores.folder import FolderStore
from tests.compat.make import told
from tests.stores.support import log_path, stop

HERE = Path(__file__).resolve().parent
FOLDERS = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name[0] != "_")
LOGS = [
    (folder, path.stem) for folder in FOLDERS for path in sorted((HERE / folder).rglob("*.jsonl"))
    if path.parent.name == "conversations"
]  # fmt: skip


@pytest.fixture(autouse=True)
def _damage_is_expected():
    """Let the damage that is frozen warn without a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ledger.errors.DamageWarning)
        yield


def copied(folder: str, to: Path) -> Path:
    """Copy a frozen folder to where it may be changed."""
    shutil.copytree(HERE / folder, to / folder)
    for path in (to / folder, *(to / folder).rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return to / folder


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_frozen_folder_reads_as_it_did(tmp_path, folder):
    """Records, turns and verdicts are those that were read when it was written."""
    frozen = json.loads((HERE / f"{folder}.json").read_text(encoding="utf-8"))

    assert told(copied(folder, tmp_path)) == frozen


@pytest.mark.parametrize(("folder", "conversation"), LOGS)
def test_appending_changes_no_byte_before(tmp_path, folder, conversation):
    """A frozen log goes on: every byte up to its last line feed stays, unknown fields and all."""
    place = copied(folder, tmp_path)
    before = log_path(place, conversation).read_bytes()
    count = len(FolderStore(place).read(conversation))

    assert FolderStore(place).append(conversation, [stop("x")], expect=count) == count + 1
    ledger.open(conversation, store=FolderStore(place), sends="branch").record("new", "turn")

    kept = before[: before.rfind(b"\n") + 1]
    assert log_path(place, conversation).read_bytes().startswith(kept)
    assert FolderStore(place).read(conversation, count)[0]["turn"] == "x"
    report = FolderStore(place).verify(conversation)
    assert report.damaged is (conversation == "damaged")


@pytest.mark.parametrize(("folder", "conversation"), LOGS)
def test_an_export_holds_every_byte(tmp_path, folder, conversation):
    """Exported and imported into another store, a frozen log is the same bytes, and so are its attachments."""
    place = copied(folder, tmp_path)
    before = log_path(place, conversation).read_bytes()
    (tmp_path / "export.json").write_bytes(
        export_json(ledger.open(conversation, store=FolderStore(place)))
    )

    ledger.import_conversations(tmp_path / "export.json", store=tmp_path / "new")

    assert log_path(tmp_path / "new", conversation).read_bytes() == before
    if (folder, conversation) == ("format1-ours", "alex"):
        here, there = (list((p / "attachments").rglob("*")) for p in (place, tmp_path / "new"))
        assert [path.name for path in here] == [path.name for path in there]


def test_unknown_keys_are_handed_out(tmp_path):
    """A record's unknown keys are read as they were given, and so are records of unknown kinds."""
    found = FolderStore(copied("format1-unknown", tmp_path)).read("future")

    assert [record["kind"] for record in found if "novel" in record] == [
        *("turn", "ended", "novel_kind", "stop", "novel_kind", "entry"),
    ]
    for record in found:
        if "novel" in record:
            assert record["novel"]["deep"][:4] == [1, 2.5, 0.0, None]
            assert record[""] is True


def test_an_unknown_turn_is_a_turn(tmp_path):
    """Keys that nobody knows do not hide the turn that they stand in."""
    chat = ledger.open("future", store=copied("format1-unknown", tmp_path))

    turn = chat.turn("01a22a97-f751-7051-a503-db1839a9b96b")

    assert (turn.inputs, turn.result) == ({"message": "one"}, "1")


@pytest.mark.parametrize(("folder", "conversation"), LOGS)
def test_functai_reads_what_is_frozen(tmp_path, folder, conversation):
    """The other implementation counts the same records, and hands out those that we do, alike."""
    stores = pytest.importorskip("functai.stores")
    place = copied(folder, tmp_path)
    log = log_path(place, conversation)
    log.write_bytes(log.read_bytes()[: log.read_bytes().rfind(b"\n") + 1])

    theirs = stores.FolderStore(place).read(conversation)

    ours = FolderStore(place).read(conversation)
    assert len(theirs) == len(ours)
    for one, other in zip(ours, theirs, strict=True):
        if one["kind"] != "unreadable":
            assert {k: v for k, v in other.items() if k != "ledger"} == one


def test_no_frozen_folder_is_forgotten():
    """Each folder has its expected reading, and the page of what is here names it."""
    assert FOLDERS == ["format1-functai", "format1-ours", "format1-unknown"]
    page = (HERE / "README.md").read_text(encoding="utf-8")
    for folder in FOLDERS:
        assert (HERE / f"{folder}.json").exists()
        assert f"`{folder}`" in page
